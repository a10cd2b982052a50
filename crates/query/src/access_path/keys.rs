//! Conditions that give every field of the key, so that the key index finds the rows.
//!
//! ```text
//! key (city, number)       city IN ('Bonn', 'Kiel') AND number = 7 AND age > 60
//! values of each field     ['Bonn', 'Kiel'] × [7]                        left: age > 60
//! keys                     ('Bonn', 7)  ('Kiel', 7)
//! ```
//!
//! A part that the key index does not know, such as what a transaction has written, is read as if
//! there were no key.

use std::ops::Bound as End;

use esker_format::order_key::{Key, KeyRange, value_of};
use esker_format::{DataType, ValueRef};

use super::candidates::Candidates;
use super::cost;
use super::ranges::ranges_of;
use super::{Access, Goal, PartPlan, ScanPlan};
use crate::Result;
use crate::options::{IndexUse, Options};
use crate::predicate::{Condition, Predicate};
use crate::source::{KeyRows, Source};

/// The most keys that are looked up.
const KEYS_MAX: usize = 4_096;

/// The most keys of one range: rows of more lie together, mostly, and zone maps find them.
const NEIGHBOURS_MAX: Key = 16;

/// The keys of all rows that can pass.
struct Wanted<'p> {
    keys: Vec<Vec<ValueRef<'p>>>,
    /// What rows with these keys still have to pass.
    residual: Predicate,
}

/// The plan that looks rows up by their keys; `None` where the filter does not give them, where
/// there are so many that other ways are cheaper, and where the source cannot tell.
///
/// # Errors
/// When the rows cannot be read.
pub(super) fn plan<'a>(
    predicate: &Predicate,
    source: &'a dyn Source,
    goal: Goal,
    options: &Options,
) -> Result<Option<ScanPlan<'a>>> {
    if source.schema().key_positions().is_empty() || options.indexes == IndexUse::Never {
        return Ok(None);
    }
    let Some(Wanted { keys, residual }) = wanted(predicate, source) else { return Ok(None) };
    let parts = || (0..source.part_count()).map(|i| source.part(i));
    let rows: usize = parts().map(|part| part.row_count()).sum();
    let share = super::share_read(goal, keys.len() as f64);
    let scan_ns = cost::scan_ns(rows, predicate.weight()) * share;
    let is_cheaper = cost::keys_ns(keys.len(), residual.weight()) < scan_ns;
    if !is_cheaper && options.indexes != IndexUse::Always {
        return Ok(None);
    }
    let Some(KeyRows { parts: found }) = source.find_keys(&keys)? else { return Ok(None) };
    let mut plans = Vec::with_capacity(found.len());
    for (part, rows) in parts().zip(found) {
        plans.push(match rows {
            None => {
                let found = super::find(predicate, part, options)?;
                super::chosen(predicate, part, found, (goal, share), options)
            }
            Some(rows) if rows.is_empty() => PartPlan { access: Access::Nothing, residual: None },
            Some(rows) => {
                let access = Access::Lookup(Candidates::Keys(rows));
                PartPlan { access, residual: Some(residual.clone()) }
            }
        });
    }
    Ok(Some(ScanPlan::of(plans)))
}

/// The keys of the rows that can pass, where a conjunction gives every field of them.
fn wanted<'p>(predicate: &'p Predicate, source: &dyn Source) -> Option<Wanted<'p>> {
    let members = match predicate {
        Predicate::All(members) => members.as_slice(),
        other => std::slice::from_ref(other),
    };
    let positions = source.schema().key_positions();
    let mut given = Vec::with_capacity(positions.len());
    let mut keys: Vec<Vec<ValueRef<'p>>> = vec![Vec::with_capacity(positions.len())];
    for position in positions {
        let (place, values) = members.iter().enumerate().find_map(|(place, member)| {
            let Predicate::Test(test) = member else { return None };
            let of_field = (test.field == *position).then_some(test)?;
            Some((place, values_of(&of_field.condition, of_field.data_type)?))
        })?;
        if keys.len().saturating_mul(values.len()) > KEYS_MAX {
            return None;
        }
        given.push(place);
        let with = |key: &Vec<ValueRef<'p>>, value| {
            let mut key = key.clone();
            key.push(value);
            key
        };
        keys =
            keys.iter().flat_map(|key| values.iter().map(move |value| with(key, *value))).collect();
    }
    let left = members.iter().enumerate().filter(|(place, _)| !given.contains(place));
    let residual = Predicate::all_of(left.map(|(_, member)| member.clone()).collect());
    Some(Wanted { keys, residual })
}

/// The values, each once, that meet a condition; `None` where these are not few.
fn values_of(condition: &Condition, data_type: DataType) -> Option<Vec<ValueRef<'_>>> {
    let count = match condition {
        Condition::Set { keys, negated: false } => keys.len(),
        Condition::TextSet { values, negated: false } => values.len(),
        _ => 0,
    };
    if count > KEYS_MAX {
        return None;
    }
    if let Condition::Set { keys, negated: false } = condition {
        let mut keys = keys.clone();
        keys.dedup();
        return keys.into_iter().map(|key| value_of(data_type, key)).collect();
    }
    let mut values = Vec::with_capacity(count);
    for range in ranges_of(condition, data_type)? {
        match range {
            KeyRange::Keys(least, greatest) if greatest.checked_sub(least)? < NEIGHBOURS_MAX => {
                for key in least..=greatest {
                    values.push(value_of(data_type, key)?);
                }
            }
            KeyRange::Bytes(End::Included(least), End::Included(greatest)) if least == greatest => {
                values.push(ValueRef::from_bytes(data_type, least));
            }
            _ => return None,
        }
    }
    Some(values)
}
