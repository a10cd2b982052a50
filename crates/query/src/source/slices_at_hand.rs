//! Rows that lie in memory by column.

use std::ops::Range;

use esker_format::{ColumnSlice, Room};

use super::{Fragment, Zone};
use crate::{Error, Result};

/// Rows at hand, by the columns that are read, which can be cut.
pub(crate) struct SlicesAtHand<'a> {
    pub(crate) columns: &'a [ColumnSlice<'a>],
    pub(crate) rows: usize,
}

impl Fragment for SlicesAtHand<'_> {
    fn row_count(&self) -> usize {
        self.rows
    }

    fn visible_count(&self) -> Option<usize> {
        Some(self.rows)
    }

    fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        self.rows.min(start.saturating_add(rows_max))
    }

    fn column<'a>(
        &'a self,
        position: usize,
        rows: Range<usize>,
        _: &'a Room,
    ) -> Result<ColumnSlice<'a>> {
        let column = self.columns.get(position);
        let column = column.ok_or_else(|| Error::invalid(format!("no column {position}")))?;
        match rows.end <= column.len {
            true => Ok(column.rows(rows.start, rows.end)),
            false => Err(Error::invalid("rows past the end")),
        }
    }

    fn visible(&self, _rows: Range<usize>) -> Option<Vec<u64>> {
        None
    }

    fn zone(&self, _position: usize, _zone: usize) -> Option<Zone<'_>> {
        None
    }
}
