//! What each kind of index run does in its own way.
//!
//! A run is derived of the rows of one segment and stored beside it as a segment of its own. What
//! all runs share is in [`IndexRun`]: their names, when they are built, opened and deleted, and
//! that readers without one scan. A kind says the rest here.
//!
//! | kind | an entry is | finds |
//! |---|---|---|
//! | ordered | a row, in the order of the fields | ranges, order, the least and the greatest |
//! | trigram | three bytes and the rows that have them | parts of texts |
//! | bitmap | a value and its rows | sets of values, what is not among them |
//! | rollup | a group and its partial aggregates | no rows: it answers groupings |
//!
//! A new kind is a code in [`IndexKind`](esker_format::schema::IndexKind), an implementation of
//! this trait, an arm in `format_of`, and a member of `IndexRun` in `query`, which says how it
//! gives candidates.

use std::sync::Arc;

use esker_format::schema::{Index, IndexField};
use esker_format::{ColumnSlice, Field, Room, Schema, TableId};

use super::run::IndexRun;
use crate::index_values::IndexValues;
use crate::segment::Segment;
use crate::segment::sink::SegmentSink;
use crate::{Error, Result};

/// Where the values of a segment come from.
pub trait RunSource {
    /// How many rows there are.
    fn row_count(&self) -> usize;

    /// The whole column of a field.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    fn column<'a>(&'a self, field: &'a Field, room: &'a Room) -> Result<ColumnSlice<'a>>;
}

impl RunSource for Segment {
    fn row_count(&self) -> usize {
        Self::row_count(self)
    }

    fn column<'a>(&'a self, field: &'a Field, room: &'a Room) -> Result<ColumnSlice<'a>> {
        Self::column(self, field, 0..Self::row_count(self), room)
    }
}

/// Which run is written.
#[derive(Clone, Copy)]
pub struct NewRun<'a> {
    /// The identity of the database.
    pub database: u128,
    /// The table.
    pub table: TableId,
    /// The number of the segment.
    pub segment: u64,
    /// The schema of the rows.
    pub schema: &'a Schema,
    /// The index.
    pub index: &'a Index,
    /// What computes its values, where anything is computed.
    pub values: Option<&'a Arc<dyn IndexValues>>,
}

impl<'a> NewRun<'a> {
    /// The field of a part of the index.
    pub(super) fn indexed_field(&self, part: &IndexField) -> Result<&'a Field> {
        self.schema.field_of(part.field).ok_or_else(|| self.no_field())
    }

    pub(super) fn no_field(&self) -> Error {
        let message = format!("index {:?} is of a field that the schema lacks", self.index.name);
        Error::corrupt(message)
    }

    pub(super) fn at(&self, error: Error) -> Error {
        error.at(format_args!("index {:?}, segment {}", self.index.name, self.segment))
    }
}

/// A run as one that is written.
pub(super) fn new_for<'a>(run: &'a IndexRun, owner: &Segment, schema: &'a Schema) -> NewRun<'a> {
    let (index, values) = (&run.index, run.values.as_ref());
    // default: nothing is written
    let (database, table) = (0, TableId(0));
    NewRun { database, table, segment: owner.id(), schema, index, values }
}

/// A kind of index run.
pub(super) trait RunFormat {
    /// Writes the entries of some rows, as a segment.
    ///
    /// # Errors
    /// What the machine says, or `Corrupt` when a block of the source does not fit its checksum.
    fn write(
        &self,
        new: NewRun<'_>,
        source: &dyn RunSource,
        sink: &mut dyn SegmentSink,
    ) -> Result<Segment>;

    /// How many entries there are for so many rows; `None` when the rows decide.
    fn entry_count(&self, rows: usize) -> Option<usize> {
        let _ = rows;
        None
    }

    /// What of its invariants is broken, as far as that is seen without reading all entries.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    fn broken_rule(&self, run: &IndexRun) -> Result<Option<String>>;

    /// True when what a reader with a schema looks for can be found in it.
    fn is_readable_by(&self, run: &IndexRun, schema: &Schema) -> bool;

    /// True when the run says no more than that its segment is not worth one.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; the same below.
    fn is_left_out(&self, run: &IndexRun) -> Result<bool> {
        let _ = run;
        Ok(false)
    }

    /// Compares every entry with the rows.
    fn verify(&self, run: &IndexRun, owner: &Segment, schema: &Schema) -> Result<()>;
}
