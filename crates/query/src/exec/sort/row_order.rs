//! Rows by row id: a part that has them in this order is read from where it begins, until there
//! are enough.

use std::ops::{ControlFlow, Range};

use esker_format::{Room, Value, ValueRef};

use crate::access_path::Access;
use crate::bind::Projection;
use crate::bound::{Node, OrderKey};
use crate::exec::scan::{Morsel, Scan};
use crate::exec::sort::index_order_scan::IndexOrderRows;
use crate::exec::sort::row_keys::add_keys;
use crate::{Fragment, Result, ZONE_ROWS};

/// The fewest rows that are read together.
const SPAN_ROWS: usize = 128;

/// True for a key that is the row id.
pub(crate) fn is_row_id(scan: &Scan<'_>, key: &OrderKey) -> bool {
    scan.source.row_id_position().is_some_and(|position| key.bound.node == Node::Field(position))
}

/// The row id of a row.
pub(crate) fn row_id_of(scan: &Scan<'_>, part: &dyn Fragment, row: usize) -> Result<u64> {
    let Some(position) = scan.source.row_id_position() else { return Ok(0) };
    Ok(match part.value(position, row, &Room::default())? {
        ValueRef::Uint(row_id) => row_id,
        _ => 0,
    })
}

/// True when a part has its rows in the order requested, and only some are wanted.
pub(crate) fn is_order_of(scan: &Scan<'_>, projection: &Projection, part: usize) -> bool {
    let may_fail =
        scan.predicate.may_fail() || projection.order.iter().any(|key| key.bound.may_fail());
    !may_fail
        && projection.limit.is_some()
        && projection.order.first().is_some_and(|key| is_row_id(scan, key))
        && scan.source.part(part).has_rising_row_ids()
        && !matches!(scan.plan.part(part).access, Access::Nothing)
}

/// The first rows by row id that pass.
///
/// # Errors
/// When a column cannot be read.
pub(crate) fn rows<'a>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    part_index: usize,
) -> Result<Option<IndexOrderRows>> {
    let part = scan.source.part(part_index);
    let descending = projection.order.first().is_some_and(|key| key.descending);
    let after = projection.after.as_ref().and_then(|after| after.values.first());
    let mut rest = match after {
        Some(Value::Uint(row_id)) => rows_after(scan, part, *row_id, descending)?,
        _ => 0..part.row_count(),
    };
    let wanted = projection.rows_wanted();
    let mut walked = IndexOrderRows::new(wanted);
    let mut span = wanted.saturating_mul(2).clamp(SPAN_ROWS, ZONE_ROWS);
    let number = u32::try_from(part_index).unwrap_or(u32::MAX);
    while walked.added < wanted && !rest.is_empty() {
        let len = span.min(rest.len());
        let now = if descending { rest.end - len..rest.end } else { rest.start..rest.start + len };
        rest = if descending { rest.start..now.start } else { now.end..rest.end };
        span = (span * 2).min(ZONE_ROWS);
        let morsel = Morsel { part: part_index, rows: now };
        let room = Room::default();
        let counts = scan.run((&morsel, &room), |rows, mask| {
            let picked = mask.rows();
            walked.added += add_keys(&mut walked.sorter, projection, rows, &picked, number)?;
            Ok(ControlFlow::Continue(()))
        })?;
        walked.counts += counts;
    }
    walked.sorter.prune();
    Ok(Some(walked))
}

/// The rows of a part that come after a row id.
fn rows_after(
    scan: &Scan<'_>,
    part: &dyn Fragment,
    row_id: u64,
    descending: bool,
) -> Result<Range<usize>> {
    let (mut low, mut high) = (0, part.row_count());
    while low < high {
        let middle = low.midpoint(high);
        let found = row_id_of(scan, part, middle)?;
        let is_before = if descending { found < row_id } else { found <= row_id };
        if is_before { low = middle + 1 } else { high = middle }
    }
    Ok(if descending { 0..low } else { low..part.row_count() })
}
