//! What a query reads: rows as of one commit, in parts that can be scanned apart.
//!
//! The executor knows tables only through these two traits, and nothing in them assumes a local
//! file.

use std::ops::Range;

use esker_format::{ColumnSlice, Schema, ValueRef};

use crate::Result;

/// Rows per zone: the unit of zone maps, and the most rows worth taking as one batch.
pub const ZONE_ROWS: usize = 8_192;

/// A table as of one commit.
pub trait Source: Sync {
    /// The fields.
    fn schema(&self) -> &Schema;

    /// How many parts the rows lie in.
    fn part_count(&self) -> usize;

    /// One part. `index` is below [`Source::part_count`].
    fn part(&self, index: usize) -> &dyn Part;
}

/// Some rows of a table that lie together: a sealed segment or an open group.
pub trait Part: Sync {
    /// How many rows the part has, the dead and the invisible included.
    fn row_count(&self) -> usize;

    /// How many rows are visible, when that is known without looking at them.
    fn visible_count(&self) -> Option<usize>;

    /// The end of the longest batch that starts at `start`, holds at most `rows_max` rows, lies
    /// within one zone, and whose columns are each contiguous.
    fn batch_end(&self, start: usize, rows_max: usize) -> usize;

    /// A column of a batch. `position` is the field's position in the schema; `rows` lies within
    /// what [`Part::batch_end`] allows.
    ///
    /// # Errors
    /// When the bytes behind it are damaged or cannot be read.
    fn column(&self, position: usize, rows: Range<usize>) -> Result<ColumnSlice<'_>>;

    /// Which rows of a batch are visible: `None` when all are, else one bit per row, the first at
    /// the least significant bit of the first word; bits past the end are zero.
    fn visible(&self, rows: Range<usize>) -> Option<Vec<u64>>;

    /// What is known of a field within zone `zone` (rows `zone * ZONE_ROWS ..`), the dead rows
    /// included; `None` when nothing is.
    fn zone(&self, position: usize, zone: usize) -> Option<Zone<'_>>;
}

/// Bounds on the values of one field within one zone.
#[derive(Clone, Copy, Debug)]
pub struct Zone<'a> {
    /// No value that is not NULL is less; NULL when every row is NULL.
    pub least: ValueRef<'a>,
    /// No value that is not NULL is greater; `None` when that is not known (long text).
    pub greatest: Option<ValueRef<'a>>,
    /// How many rows are NULL.
    pub null_count: usize,
}
