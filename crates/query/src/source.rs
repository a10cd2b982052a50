//! What a query reads: rows as of one commit, in parts that can be scanned apart.
//!
//! The executor knows tables only through these two traits, and nothing in them assumes a local
//! file.

pub(crate) mod no_rows;
pub(crate) mod one_row;
pub(crate) mod renamed;
pub(crate) mod rollup_blocks;
pub(crate) mod rollup_layout;
pub(crate) mod rollup_run;
pub(crate) mod series;
pub(crate) mod slices_at_hand;

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

pub use esker_format::order_key::KeyRange;
use esker_format::segment::FieldSketch;
use esker_format::{ColumnSlice, Room, Schema, ValueRef};

use crate::Result;
use crate::bound::Bound;
pub use rollup_blocks::{RollupBlock, RollupBlocks};
pub use rollup_layout::{OperandColumns, RollupLayout};
pub use rollup_run::{RollupRun, RollupShape};

/// Rows per zone: the unit of zone maps, and the most rows worth taking as one batch.
pub const ZONE_ROWS: usize = 8_192;

/// A table as of one commit.
pub trait Source: Sync {
    /// The fields.
    fn schema(&self) -> &Schema;

    /// How many parts the rows lie in.
    fn part_count(&self) -> usize;

    /// One part. `index` is below [`Source::part_count`].
    fn part(&self, index: usize) -> &dyn Fragment;

    /// Where the rows with some keys are: those that are visible, at least. Each key has one value
    /// for each key field, of the field's type. `None` when that is unknown.
    ///
    /// # Errors
    /// When a row cannot be read.
    fn find_keys(&self, keys: &[Vec<ValueRef<'_>>]) -> Result<Option<KeyRows>> {
        let _ = keys;
        Ok(None)
    }

    /// The position at which parts give the row ids, numbers of type `u64` that no two visible rows
    /// share; `None` when they give none. It need not be a field of the schema.
    fn row_id_position(&self) -> Option<usize> {
        None
    }
}

/// Where the rows with some keys are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRows {
    /// By part: the rows, rising; `None` where the part may have others.
    pub parts: Vec<Option<Vec<u32>>>,
}

/// Some rows of a table that lie together: a sealed segment or an open group.
pub trait Fragment: Sync {
    /// How many rows the part has, the dead and the invisible included.
    fn row_count(&self) -> usize;

    /// How many rows are visible, when that is known without looking at them.
    fn visible_count(&self) -> Option<usize>;

    /// The end of the longest batch that starts at `start`, holds at most `rows_max` rows, lies
    /// within one zone, and whose columns are each contiguous.
    fn batch_end(&self, start: usize, rows_max: usize) -> usize;

    /// How many rows are read at once, at the most: few where values are long.
    fn rows_at_once(&self) -> usize {
        usize::MAX
    }

    /// A column of a batch. `position` is the field's position in the schema; `rows` lies within
    /// what [`Fragment::batch_end`] allows. What does not lie anywhere as it is read goes to
    /// `room`.
    ///
    /// # Errors
    /// When the bytes behind it are damaged or cannot be read.
    fn column<'a>(
        &'a self,
        position: usize,
        rows: Range<usize>,
        room: &'a Room,
    ) -> Result<ColumnSlice<'a>>;

    /// One value of a row, as [`Fragment::column`] has it.
    ///
    /// # Errors
    /// As for [`Fragment::column`].
    fn value<'a>(&'a self, position: usize, row: usize, room: &'a Room) -> Result<ValueRef<'a>> {
        Ok(self.column(position, row..row + 1, room)?.value(0))
    }

    /// Which rows of a batch are visible: `None` when all are, else one bit per row, the first at
    /// the least significant bit of the first word; bits past the end are zero.
    fn visible(&self, rows: Range<usize>) -> Option<Vec<u64>>;

    /// The first of some rows that may be visible, as far as that is known without a look at each;
    /// their end when none is. It is the first of them, a multiple of 64, or their end.
    fn first_shown(&self, rows: Range<usize>) -> usize {
        rows.start
    }

    /// What is known of a field within zone `zone` (rows `zone * ZONE_ROWS ..`), the dead rows
    /// included; `None` when nothing is.
    fn zone(&self, position: usize, zone: usize) -> Option<Zone<'_>>;

    /// About which values a field has, invisible rows included, of all rows of the part; `None`
    /// when that is not known.
    fn sketch(&self, position: usize) -> Option<&FieldSketch> {
        let _ = position;
        None
    }

    /// The least and the greatest length of a field's values within a zone, NULLs left out and dead
    /// rows counted in; `None` when it is not known. A text's is in characters,
    /// a byte string's in bytes. A greatest of [`u32::MAX`] says nothing.
    fn lengths(&self, position: usize, zone: usize) -> Option<RangeInclusive<u32>> {
        let _ = (position, zone);
        None
    }

    /// Tells what [`Fragment::lengths`] answers, of some rows of one zone. A part may forget
    /// it.
    fn learn_lengths(&self, position: usize, rows: Range<usize>, lengths: RangeInclusive<u32>) {
        let _ = (position, rows, lengths);
    }

    /// True when the row ids never fall from one row to the next.
    fn has_rising_row_ids(&self) -> bool {
        false
    }

    /// How many index runs the part has that can be used: at most one for each index.
    fn run_count(&self) -> usize {
        0
    }

    /// One run. `index` is below [`Fragment::run_count`].
    fn run(&self, index: usize) -> Option<IndexRun<'_>> {
        let _ = index;
        None
    }

    /// What rollups have of the rows of a part that grows.
    fn rollup_blocks(&self) -> Vec<&dyn RollupBlocks> {
        Vec::new()
    }

    /// What a rollup has of rows that are gone, in a part that has no rows. Groupings add it to
    /// those of the other parts; nothing else reads such a part.
    fn history(&self) -> Option<&dyn RollupRun> {
        None
    }
}

impl dyn Source + '_ {
    /// Whether a part has what a rollup has of rows that are gone.
    pub(crate) fn has_history(&self) -> bool {
        (0..self.part_count()).any(|index| self.part(index).history().is_some())
    }
}

impl dyn Fragment + '_ {
    /// The index runs.
    pub(crate) fn runs(&self) -> impl Iterator<Item = IndexRun<'_>> {
        (0..self.run_count()).filter_map(|index| self.run(index))
    }

    /// Those that are sorted.
    pub(crate) fn sorted_runs(&self) -> impl Iterator<Item = &dyn SortedRun> {
        self.runs().filter_map(|run| match run {
            IndexRun::Sorted(run) => Some(run),
            IndexRun::Grams(_) | IndexRun::Bitmaps(_) | IndexRun::Rollup(_) => None,
        })
    }

    /// What is kept of rollups.
    pub(crate) fn rollup_runs(&self) -> impl Iterator<Item = &dyn RollupRun> {
        self.runs().filter_map(|run| match run {
            IndexRun::Rollup(run) => Some(run),
            IndexRun::Sorted(_) | IndexRun::Grams(_) | IndexRun::Bitmaps(_) => None,
        })
    }

    /// Those of them in which every row has an entry.
    pub(crate) fn whole_runs(&self) -> impl Iterator<Item = &dyn SortedRun> {
        self.sorted_runs().filter(|run| run.filter().is_none())
    }
}

/// An index run of a part, by what it can answer. Each kind finds candidates in its own way, which
/// `access_path::candidates` asks for; partial aggregates find none, and answer groupings.
#[derive(Clone, Copy)]
pub enum IndexRun<'a> {
    /// The rows in the order of some fields.
    Sorted(&'a dyn SortedRun),
    /// The rows of each gram of a text.
    Grams(&'a dyn GramRun),
    /// The rows of each value.
    Bitmaps(&'a dyn BitmapRun),
    /// Partial aggregates of the groups of a rollup.
    Rollup(&'a dyn RollupRun),
}

/// The rows of a part by the values of one field that has few. Each row is among those of one
/// value; NULL is one. Invisible and dead rows are among them.
pub trait BitmapRun: Sync {
    /// The index's name.
    fn name(&self) -> &str;

    /// The field: its position in the schema.
    fn field(&self) -> usize;

    /// The values, each once, NULL included; fewer than [`ZONE_ROWS`].
    ///
    /// # Errors
    /// When the bytes behind it are damaged or cannot be read.
    fn values(&self) -> Result<ColumnSlice<'_>>;

    /// How many rows have a value, by its place among the values.
    ///
    /// # Errors
    /// As for [`BitmapRun::values`].
    fn count(&self, value: usize) -> Result<usize>;

    /// Sets the bits of the rows that have a value: one bit per row, the first at the least
    /// significant bit of the first word.
    ///
    /// # Errors
    /// As for [`BitmapRun::values`].
    fn add_rows(&self, value: usize, bits: &mut [u64]) -> Result<()>;
}

/// The rows of a part by the grams ([`esker_format::grams`]) that a text of theirs has. Invisible
/// and dead rows are among them.
pub trait GramRun: Sync {
    /// The index's name.
    fn name(&self) -> &str;

    /// The field with the text: its position in the schema.
    fn field(&self) -> usize;

    /// How many rows have a gram.
    ///
    /// # Errors
    /// When the bytes behind it are damaged or cannot be read.
    fn count(&self, gram: u32) -> Result<usize>;

    /// The rows that have a gram, rising.
    ///
    /// # Errors
    /// As for [`GramRun::count`].
    fn rows(&self, gram: u32) -> Result<Vec<u32>>;
}

/// The rows of a part in the order of some fields: *entries*, each with its row.
///
/// ```text
/// entry   0     1     2     3     4     5
/// key     7     7     9    12    12   NULL     NULL comes last, whatever the direction
/// row     0     4     1     2     5     3
/// ```
///
/// Invisible and dead rows have entries, too. In a run that is sorted exactly, entries that are
/// equal in all fields come in the order of their rows.
pub trait SortedRun: Sync {
    /// The index's name.
    fn name(&self) -> &str;

    /// The fields that order it: positions in the schema, and whether the greatest comes first. In
    /// place of a path, or of an expression, there is a position that no field has.
    fn fields(&self) -> &[(usize, bool)];

    /// The path whose texts stand in place of field number `number`.
    fn path(&self, number: usize) -> Option<&RunPath> {
        let _ = number;
        None
    }

    /// The expression whose values stand in place of field number `number`.
    fn expression(&self, number: usize) -> Option<&RunExpression> {
        let _ = number;
        None
    }

    /// What is true of the rows that have entries; `None` where all rows have.
    fn filter(&self) -> Option<&RunExpression> {
        None
    }

    /// How many entries there are: as many as rows that have one.
    fn len(&self) -> usize;

    /// True when there are no entries.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// False when values were cut, so that entries of different values may come in any order.
    fn is_sorted_exactly(&self) -> bool;

    /// The entries, within some that are equal in all fields before `field`, whose value of field
    /// number `field` of the run lies in a range. Where `exact` is false, there are others among
    /// them, which have to be tested; none is missing.
    ///
    /// # Errors
    /// When the bytes behind it are damaged or cannot be read.
    fn find(&self, within: Range<usize>, field: usize, range: &KeyRange<'_>) -> Result<Entries>;

    /// The rows of some entries.
    ///
    /// # Errors
    /// As for [`SortedRun::find`].
    fn rows(&self, entries: Range<usize>) -> Result<Cow<'_, [u32]>>;

    /// Some entries without those at both ends of rows that are not visible, as far as that is
    /// known; a range that has none that is stays a range within.
    ///
    /// # Errors
    /// As for [`SortedRun::find`].
    fn shown(&self, entries: Range<usize>) -> Result<Range<usize>> {
        Ok(entries)
    }

    /// How many rows of some entries are visible.
    ///
    /// # Errors
    /// As for [`SortedRun::find`].
    fn count_visible(&self, entries: Range<usize>) -> Result<usize>;
}

/// A path into the documents of a field, to a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPath {
    /// The position of the field.
    pub field: usize,
    /// Names, from the document on.
    pub steps: Vec<String>,
}

/// An expression over the fields of a part, as an index of it has it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunExpression {
    pub(crate) bound: Bound,
}

impl RunExpression {
    pub(crate) fn new(bound: Bound) -> Self {
        Self { bound }
    }
}

/// What was found in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries {
    /// The entries.
    pub range: Range<usize>,
    /// True when each of them lies in the range that was requested.
    pub exact: bool,
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

/// A source that is borrowed, or shared with what is made of it.
#[derive(Clone)]
pub(crate) enum SourceRef<'a> {
    Borrowed(&'a dyn Source),
    Shared(Arc<dyn Source + Send + 'a>),
}

impl SourceRef<'_> {
    pub(crate) fn get(&self) -> &dyn Source {
        match self {
            Self::Borrowed(source) => *source,
            Self::Shared(source) => &**source,
        }
    }
}
