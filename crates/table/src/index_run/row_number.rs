//! Numbers of rows as index runs store them.

use esker_format::ValueRef;

use crate::{Error, Result};

pub(super) fn number(value: ValueRef<'_>) -> Result<u32> {
    match value {
        ValueRef::Uint(number) => u32::try_from(number).ok(),
        _ => None,
    }
    .ok_or_else(|| Error::corrupt("a run has a number that is none"))
}
/// What the numbers of the rows of a segment are below.
pub(super) fn row_limit(rows: usize) -> u32 {
    // default: a limit beyond all row numbers
    u32::try_from(rows).unwrap_or(u32::MAX)
}
