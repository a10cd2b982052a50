//! What is known of the side that is built, asked of the other side before it is read.
//!
//! | keys that were built | what the other side is asked for |
//! |---|---|
//! | few, of one field | the keys themselves, by an index where there is one |
//! | more, of one field | the range that they lie in, where zone maps leave out enough by it |
//! | any, of one field or several | that a field is in a set of its keys |
//!
//! A set is looked up before anything else is computed of a row. It is made where it is thought to
//! remove half of the rows; the scan stops looking up keys in a morsel of which they do not remove
//! enough. It takes part of the query's memory, and is left out where there is not enough.

use super::build::Built;
use super::index::is_int;
use super::probe::Found;
use super::{Input, JoinPlan, Side};
use crate::access_path::cardinality;
use crate::bound::{Bound, Comparison, Node};
use crate::budget::Charge;
use crate::filter::{FieldKeys, KeySet};
use crate::model::JoinKind;
use crate::predicate::{Predicate, Verdict};
use crate::{IndexUse, Options, Result, Source, ZONE_ROWS};
use esker_format::DataType;
use esker_vfs::sabotage::Bug;

/// As many keys as an index is searched for, or a scan tests each row for.
const INDEXED_MAX: usize = 2_048;
const TESTED_MAX: usize = 64;

/// Looking up a key takes as long as scanning so many rows.
const KEY_ROWS: usize = 2_000;

/// A range is tested where it leaves out one zone of so many.
const ZONES_LEFT_OUT: usize = 16;

/// A set is made for so many rows at least, of which this share may pass.
const SET_ROWS_MIN: usize = 4 * ZONE_ROWS;
const SET_SHARE_MAX: f64 = 0.5;

/// What the probe side is asked for.
#[derive(Debug)]
pub(super) struct Narrowed<'b> {
    /// The filter of the probe side with a list or a range of keys.
    pub(super) filter: Option<Bound>,
    /// The fields that are looked up in sets.
    pub(super) among: Vec<FieldKeys>,
    /// What is said of it.
    asked: Vec<String>,
    charge: Charge<'b>,
}

impl<'b> Narrowed<'b> {
    /// What is worth asking, where no other row of the probe side is wanted.
    ///
    /// # Errors
    /// When a column cannot be read.
    pub(super) fn new(
        plan: &JoinPlan<'_>,
        side: Side,
        built: &Built<'_>,
        floats: &[bool],
        options: &'b Options,
    ) -> Result<Self> {
        let (_, probe) = plan.inputs(side);
        let charge = options.memory().charge();
        let mut this = Self { filter: None, among: Vec::new(), asked: Vec::new(), charge };
        let wants_others =
            side == Side::Right && matches!(plan.kind, JoinKind::Left | JoinKind::Anti);
        // What may fail does so whatever the other keys of the row are.
        let are_fields = probe.keys.iter().all(|key| matches!(key.node, Node::Field(_)));
        if wants_others || !are_fields || options.indexes == IndexUse::Never {
            return Ok(this);
        }
        let has_list = match (probe.keys.as_slice(), floats) {
            ([key], [false]) => this.ask_one(probe, built, key),
            _ => false,
        };
        if !has_list {
            this.ask_sets(probe, built, floats, options)?;
        }
        Ok(this)
    }

    /// Asks for a list or a range of the values of one field; true where it is a list.
    fn ask_one(&mut self, probe: &Input<'_>, built: &Built<'_>, key: &Bound) -> bool {
        let Node::Field(position) = key.node else { return false };
        let name = field_name(probe, position);
        let most = keys_most(probe.source, position);
        let values = built.index.values(most, key);
        let is_list = values.is_some();
        let narrow = match values {
            Some(mut values) => {
                if Bug::RuntimeFilterLosesLastKey.is_planted() {
                    values.pop();
                }
                self.asked.push(format!("{name} in {} keys", values.len()));
                Bound::new(Node::In(Box::new(key.clone()), values), DataType::Bool)
            }
            None => match range(probe, built, key) {
                None => return false,
                Some(range) => {
                    self.asked.push(format!("the range of {name}"));
                    range
                }
            },
        };
        self.filter = Some(match &probe.filter {
            None => narrow,
            Some(filter) => Bound::new(Node::And(vec![narrow, filter.clone()]), DataType::Bool),
        });
        is_list
    }

    /// Asks fields to be in the set of their keys.
    fn ask_sets(
        &mut self,
        probe: &Input<'_>,
        built: &Built<'_>,
        floats: &[bool],
        options: &'b Options,
    ) -> Result<()> {
        let is_asked = options.indexes == IndexUse::Always;
        let rows = cardinality::row_count(probe.source);
        let keys_max = built.index.keys_max() as f64;
        if !is_asked && (rows < SET_ROWS_MIN as f64 || keys_max > rows) {
            return Ok(());
        }
        let types: Vec<DataType> = (probe.keys.iter().zip(floats))
            .map(|(key, as_float)| if *as_float { DataType::F64 } else { key.data_type() })
            .collect();
        for (at, (key, as_float)) in probe.keys.iter().zip(floats).enumerate() {
            let Node::Field(position) = key.node else { continue };
            if *as_float || !is_int(key) {
                continue;
            }
            let values = || cardinality::distinct(probe.source, position);
            if !is_asked && keys_max > SET_SHARE_MAX * values()?.count {
                continue;
            }
            self.ask_set(position, built.index.words(&types, at), probe, options);
        }
        Ok(())
    }

    fn ask_set(
        &mut self,
        position: usize,
        words: Option<Vec<i64>>,
        probe: &Input<'_>,
        options: &'b Options,
    ) {
        let mut held = options.memory().charge();
        let Some(mut words) = words else { return };
        let ends = words.iter().min().copied().zip(words.iter().max().copied());
        let Some((least, greatest)) = ends else { return };
        let bytes = KeySet::bytes_of(least, greatest, words.len());
        let all: usize = self.among.iter().map(|field| field.keys.bytes()).sum();
        if held.set(words.capacity() * 8).is_err() || self.charge.set(all + bytes).is_err() {
            return;
        }
        if Bug::RuntimeFilterLosesLastKey.is_planted() {
            words.retain(|word| *word < greatest);
        }
        let Some(keys) = KeySet::new(&words) else { return };
        let kind = if keys.is_bloom() { "a Bloom filter" } else { "a set" };
        let (name, count) = (field_name(probe, position), words.len());
        self.asked.push(format!("{name} in {kind} of {count} keys"));
        self.among.push(FieldKeys { position, keys });
    }

    /// What the probe side was asked for, to be shown.
    pub(super) fn shown(&self) -> Option<String> {
        (!self.asked.is_empty()).then(|| self.asked.join(" and "))
    }

    /// How many rows were left out; `None` where the filter of the probe side left out others.
    pub(super) fn rows_removed(&self, probe: &Input<'_>, found: &Found<'_>) -> Option<u64> {
        match (&self.filter, &probe.filter) {
            _ if self.asked.is_empty() => None,
            (None, _) => Some(found.rows_removed),
            (Some(_), Some(_)) => None,
            (Some(_), None) => {
                let source = probe.source;
                let visible = |part: usize| source.part(part).visible_count();
                let rows: Option<usize> = (0..source.part_count()).map(visible).sum();
                (rows? as u64).checked_sub(found.rows_probed)
            }
        }
    }
}

fn field_name(probe: &Input<'_>, position: usize) -> String {
    let field = probe.source.schema().fields().get(position);
    field.map(|field| field.name.to_string()).unwrap_or_default()
}

/// How many keys of a field are worth listing.
fn keys_most(source: &dyn Source, position: usize) -> usize {
    let leads = |part: usize| {
        let mut runs = source.part(part).whole_runs();
        runs.any(|run| run.fields().first().is_some_and(|(field, _)| *field == position))
    };
    let parts = 0..source.part_count();
    let rows: usize = parts.clone().map(|part| source.part(part).row_count()).sum();
    match source.schema().key_positions() == [position] {
        _ if parts.clone().any(leads) => INDEXED_MAX,
        true => (rows / KEY_ROWS).clamp(TESTED_MAX, INDEXED_MAX),
        false => TESTED_MAX,
    }
}

/// The range of the keys, where zone maps leave out enough by it.
fn range(probe: &Input<'_>, built: &Built<'_>, key: &Bound) -> Option<Bound> {
    let ends = built.index.bounds(key)?;
    let [least, greatest] = ends.map(|end| Bound { is_typed: true, ..Bound::literal(end) });
    let compare = |comparison, end| {
        let node = Node::Compare(comparison, Box::new(key.clone()), Box::new(end));
        Bound::new(node, DataType::Bool)
    };
    let last = match Bug::RuntimeFilterLosesLastKey.is_planted() {
        true => Comparison::Lt,
        false => Comparison::Lte,
    };
    let both = vec![compare(Comparison::Gte, least), compare(last, greatest)];
    let range = Bound::new(Node::And(both), DataType::Bool);
    let predicate = Predicate::compile(Some(&range));
    let (mut zones, mut left_out) = (0usize, 0usize);
    for part in (0..probe.source.part_count()).map(|part| probe.source.part(part)) {
        for zone in 0..part.row_count().div_ceil(ZONE_ROWS) {
            zones += 1;
            left_out += usize::from(predicate.verdict(part, zone) == Verdict::Never);
        }
    }
    (left_out > 0 && left_out * ZONES_LEFT_OUT >= zones).then_some(range)
}
