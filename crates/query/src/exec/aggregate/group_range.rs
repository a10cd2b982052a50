//! Which of the groups that are kept of a rollup may pass a filter: they lie in the order of their
//! keys, NULL last.
//!
//! ```text
//! hour   10 10 10 11 11 12      hour = 11 AND user_id >= 5:
//! user    1  5  9  1  7  5      the groups of 11, and among these those from 5 on
//! ```
//!
//! Others may be among them, which the filter leaves out; none that passes is missing.

use std::cmp::Ordering;
use std::mem::discriminant;
use std::ops::Range;

use esker_format::{DataType, Room, Value, ValueRef};

use crate::Result;
use crate::bound::{Bound, Comparison, Node};
use crate::source::Fragment;

/// The groups that may pass some conditions, all of which have to hold.
pub(super) fn of(
    conditions: &[Bound],
    keys: usize,
    entries: &dyn Fragment,
) -> Result<Range<usize>> {
    let mut range = 0..entries.row_count();
    for key in 0..keys {
        let mut is_equal = false;
        for (comparison, limit) in conditions.iter().filter_map(|bound| on_key(bound, key)) {
            let below = |wanted: Ordering| {
                first_not(entries, (range.clone(), key), limit.as_ref(), &|order| order < wanted)
            };
            // The first that is not less, and the first that is greater.
            let (Some(least), Some(greater)) = (below(Ordering::Equal)?, below(Ordering::Greater)?)
            else {
                return Ok(range);
            };
            range = match comparison {
                Comparison::Eq => least..greater,
                Comparison::Gte => least..range.end,
                Comparison::Gt => greater..range.end,
                Comparison::Lt => range.start..least,
                Comparison::Lte => range.start..greater,
                Comparison::Neq => continue,
            };
            is_equal |= comparison == Comparison::Eq;
        }
        if !is_equal {
            break;
        }
    }
    Ok(range)
}

/// A comparison of a key with a constant.
fn on_key(condition: &Bound, key: usize) -> Option<(Comparison, &Value)> {
    let Node::Compare(comparison, a, b) = &condition.node else { return None };
    let (comparison, of, limit) = match (a.as_literal(), b.as_literal()) {
        (None, Some(limit)) => (*comparison, a, limit),
        (Some(limit), None) => (comparison.mirrored(), b, limit),
        _ => return None,
    };
    // Labels have an order of their own, and of floats some are equal that are not the same.
    let has_order = !of.data_type.is_some_and(|t| t.is_float() || t == DataType::Enum);
    let is_key = matches!(of.node, Node::Field(position) if position == key);
    (is_key && has_order && !limit.is_null()).then_some((comparison, limit))
}

/// The first group of a range whose key is not so; `None` where it cannot be compared. Those before
/// it are, and those behind it are not.
fn first_not(
    entries: &dyn Fragment,
    (range, key): (Range<usize>, usize),
    limit: ValueRef<'_>,
    is_so: &dyn Fn(Ordering) -> bool,
) -> Result<Option<usize>> {
    let (mut start, mut end) = (range.start, range.end);
    while start < end {
        let middle = start + (end - start) / 2;
        let room = Room::default();
        let value = entries.value(key, middle, &room)?;
        let order = match value.is_null() {
            true => Ordering::Greater,
            false if discriminant(&value) == discriminant(&limit) => value.compare(limit),
            false => return Ok(None),
        };
        match is_so(order) {
            true => start = middle + 1,
            false => end = middle,
        }
    }
    Ok(Some(start))
}
