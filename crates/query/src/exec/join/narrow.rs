//! What is known of the side that is built, asked of the other side before it is read: the keys
//! themselves where they are few, else the range that they lie in, where zone maps leave out rows
//! outside of it.

use super::build::Built;
use super::{Input, JoinPlan, Side};
use crate::bound::{Bound, Comparison, Node};
use crate::model::JoinKind;
use crate::predicate::{Predicate, Verdict};
use crate::{IndexUse, Options, ZONE_ROWS};
use esker_format::DataType;
use esker_vfs::sabotage::Bug;

/// As many keys as an index is searched for, or a scan tests each row for.
const INDEXED_MAX: usize = 2_048;
const TESTED_MAX: usize = 64;

/// Looking up a key takes as long as scanning so many rows.
const KEY_ROWS: usize = 2_000;

/// A range is tested where it leaves out one zone of so many.
const ZONES_LEFT_OUT: usize = 16;

/// The filter of the probe side with what is known of the keys that were built, where asking for
/// that first is worth it, and no other row of the probe side is wanted.
pub(super) fn narrowed(
    plan: &JoinPlan<'_>,
    side: Side,
    probe: &Input<'_>,
    built: &Built<'_>,
    floats: &[bool],
    options: &Options,
) -> Option<Bound> {
    let [key] = probe.keys.as_slice() else { return None };
    let Node::Field(position) = key.node else { return None };
    let wants_others = side == Side::Right && matches!(plan.kind, JoinKind::Left | JoinKind::Anti);
    if wants_others || floats != [false] || options.indexes == IndexUse::Never {
        return None;
    }
    let leads = |part: usize| {
        let part = probe.source.part(part);
        let mut runs = part.sorted_runs();
        runs.any(|run| run.fields().first().is_some_and(|(field, _)| *field == position))
    };
    let parts = 0..probe.source.part_count();
    let rows: usize = parts.clone().map(|part| probe.source.part(part).row_count()).sum();
    let most = match probe.source.schema().key_positions() == [position] {
        _ if parts.clone().any(leads) => INDEXED_MAX,
        true => (rows / KEY_ROWS).clamp(TESTED_MAX, INDEXED_MAX),
        false => TESTED_MAX,
    };
    let narrow = match built.index.values(most, key) {
        Some(mut values) => {
            if Bug::RuntimeFilterLosesLastKey.is_planted() {
                values.pop();
            }
            Bound::new(Node::In(Box::new(key.clone()), values), DataType::Bool)
        }
        None => range(probe, built, key)?,
    };
    Some(match &probe.filter {
        None => narrow,
        Some(filter) => Bound::new(Node::And(vec![narrow, filter.clone()]), DataType::Bool),
    })
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
