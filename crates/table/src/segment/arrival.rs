//! The rows of a segment in the order in which they arrived, that of their row ids.

use std::ops::Range;
use std::sync::Arc;

use super::Segment;
use crate::Result;

/// Rows of a segment by rising row id, in whatever order they lie.
#[derive(Clone, Debug)]
pub enum ArrivedRows {
    /// They lie in the order of row ids.
    AsTheyLie(Range<usize>),
    /// All rows of the segment, sorted, and which of them come next.
    Sorted(Arc<Vec<u32>>, Range<usize>),
}

impl ArrivedRows {
    /// The first of them.
    #[must_use]
    pub fn first(&self) -> Option<usize> {
        match self {
            Self::AsTheyLie(rows) => (!rows.is_empty()).then_some(rows.start),
            Self::Sorted(rows, left) if !left.is_empty() => {
                rows.get(left.start).map(|row| *row as usize)
            }
            Self::Sorted(..) => None,
        }
    }

    /// Goes on to the next one.
    pub fn advance(&mut self) {
        let (Self::AsTheyLie(left) | Self::Sorted(_, left)) = self;
        left.start = left.end.min(left.start + 1);
    }
}

impl Segment {
    /// The rows with greater row ids than one. Where rows do not lie in the order of row ids, the
    /// first call sorts all of them, which takes four bytes a row from then on; see
    /// [`Segment::forget_row_order`].
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn rows_after_id(&self, row_id: u64) -> Result<ArrivedRows> {
        let (count, (least, greatest)) = (self.row_count(), self.row_id_bounds());
        if count == 0 || greatest <= row_id {
            return Ok(ArrivedRows::AsTheyLie(count..count));
        }
        if self.has_rising_row_ids() {
            let first = match least > row_id {
                true => 0,
                false => first_after(count, row_id, |at| self.row_id(at))?,
            };
            return Ok(ArrivedRows::AsTheyLie(first..count));
        }
        let rows = self.rows_by_row_id()?;
        let id_at = |at: usize| match rows.get(at) {
            Some(row) => self.row_id(*row as usize),
            None => Err(self.no_row(at)),
        };
        let first = first_after(rows.len(), row_id, id_at)?;
        let left = first..rows.len();
        Ok(ArrivedRows::Sorted(rows, left))
    }
}

/// The first of so many places, whose row ids rise, that has a greater one.
fn first_after(
    count: usize,
    row_id: u64,
    mut id_at: impl FnMut(usize) -> Result<u64>,
) -> Result<usize> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if id_at(middle)? <= row_id { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}
