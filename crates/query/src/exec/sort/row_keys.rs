//! The keys of rows by the order of a projection, put into a sorter.

use crate::bind::Projection;
use crate::bound::Node;
use crate::evaluate::{Rows, Selection, evaluate};
use crate::exec::scan::Morsel;
use crate::exec::sort::sorter::{encode, encode_value};
use crate::exec::sort::{Location, Sorter};
use crate::{Error, ErrorKind, Fragment, Result};
use esker_format::Room;

/// The part of a morsel, as locations have it.
///
/// # Errors
/// `OverBudget` when a row of it has no location.
pub(crate) fn location_part(morsel: &Morsel) -> Result<u32> {
    // Locations are two words of 32 bits: a part holds at most 4 Mi rows by design.
    let fits = u32::try_from(morsel.rows.end).is_ok();
    u32::try_from(morsel.part).ok().filter(|_| fits).ok_or_else(|| {
        Error::new(ErrorKind::OverBudget, "a part with more than 2^32 rows cannot be ordered")
    })
}

/// Adds a row of a part to a sorter whose keys are all fields, unless the order has left it behind;
/// returns how many were added. `bytes` is room for its key.
pub(crate) fn add_key(
    sorter: &mut Sorter,
    projection: &Projection,
    (part, location): (&dyn Fragment, Location),
    bytes: &mut Vec<u8>,
) -> Result<usize> {
    let row = location.row as usize;
    bytes.clear();
    for key in &projection.order {
        if let Node::Field(position) = key.bound.node {
            let room = Room::default();
            let value = part.value(position, row, &room)?;
            encode_value(bytes, key, key.bound.data_type(), value);
        }
    }
    let is_wanted = projection.after.as_ref().is_none_or(|after| after.is_before(bytes));
    if is_wanted {
        sorter.push(bytes, location);
    }
    Ok(usize::from(is_wanted))
}

/// Adds rows to a sorter, but for those that the order has left behind; returns how many.
#[allow(clippy::cast_possible_truncation, reason = "location_part has checked the row numbers")]
pub(crate) fn add_keys<'a>(
    sorter: &mut Sorter,
    projection: &'a Projection,
    rows: &Rows<'a>,
    picked: &[u32],
    part: u32,
) -> Result<usize> {
    let selection = Selection::Rows(picked);
    let vectors = projection.order.iter().map(|key| evaluate(&key.bound, rows, selection));
    let vectors = vectors.collect::<Result<Vec<_>>>()?;
    let _copies = rows.meter().room_for_copies(&vectors)?;
    let mut bytes = Vec::new();
    let mut added = 0;
    for (i, row) in picked.iter().enumerate() {
        bytes.clear();
        for (key, vector) in projection.order.iter().zip(&vectors) {
            encode(&mut bytes, key, vector, i);
        }
        if projection.after.as_ref().is_none_or(|after| after.is_before(&bytes)) {
            sorter.push(&bytes, Location { part, row: rows.start() as u32 + row });
            added += 1;
        }
    }
    Ok(added)
}
