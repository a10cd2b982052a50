//! A stream with the history of one of its rollups, as the query of that rollup reads it.
//!
//! ```text
//! parts of calls:          rows   rows   rows
//! parts of spend$history:                       no rows, groups   no rows, groups
//! ```
//!
//! The groups are those that the reader sees: both tables are read as of one commit.

use std::ops::Range;

use esker_format::{ColumnSlice, FieldId, Room, Schema, ValueRef};
use esker_query::{Fragment, KeyRows, PartialAggregates, RollupRun, RollupShape, Source, Zone};
use esker_table::TableSnapshot;

use super::source::{SnapshotSource, SourcePart};
use crate::{Error, Result};

/// A [`Source`] over a stream and a history.
pub(crate) struct HistorySource<'a> {
    rows: SnapshotSource<'a>,
    history: Vec<HistoryPart<'a>>,
}

/// A part of a history: of no rows, with groups.
struct HistoryPart<'a> {
    name: &'a str,
    shape: &'a RollupShape,
    entries: SourcePart<'a>,
}

/// A rollup that is read with its history.
pub(crate) struct HistoryShape {
    /// The rollup.
    name: String,
    shape: RollupShape,
}

impl HistoryShape {
    /// A rollup of a stream, given the fields of that and of its history.
    ///
    /// # Errors
    /// `Corrupt` when the history is not that of the rollup.
    pub fn new(name: &str, schema: &Schema, history: &Schema) -> Result<Self> {
        let other = || Error::corrupt(format!("the history of rollup {name:?} is of another one"));
        let partials = PartialAggregates::of(schema.rollup(name).ok_or_else(other)?, schema)?;
        let types = history.fields().iter().map(|field| &field.data_type);
        if !types.eq(partials.layout().types()) {
            return Err(other());
        }
        // default: the schema has what the rollup reads
        let first = |at: Vec<usize>| at.first().copied().unwrap_or(usize::MAX);
        // default: as above
        let place = |id: FieldId| schema.positions_of(&[id]).map_or(usize::MAX, first);
        Ok(Self { name: name.to_owned(), shape: partials.shape(&place) })
    }

    /// The parts of a stream and of its history.
    pub fn source<'a>(
        &'a self,
        rows: &'a TableSnapshot,
        history: &'a TableSnapshot,
    ) -> HistorySource<'a> {
        let part = |entries| HistoryPart { name: &self.name, shape: &self.shape, entries };
        let history = SnapshotSource::new(history).into_parts();
        let rows = SnapshotSource::new(rows);
        HistorySource { rows, history: history.into_iter().map(part).collect() }
    }
}

impl Source for HistorySource<'_> {
    fn schema(&self) -> &Schema {
        self.rows.schema()
    }

    fn part_count(&self) -> usize {
        self.rows.part_count() + self.history.len()
    }

    fn part(&self, index: usize) -> &dyn Fragment {
        match index.checked_sub(self.rows.part_count()).and_then(|at| self.history.get(at)) {
            Some(part) => part,
            None => self.rows.part(index),
        }
    }

    fn find_keys(&self, _: &[Vec<ValueRef<'_>>]) -> esker_query::Result<Option<KeyRows>> {
        // Its parts are more than those of the rows.
        Ok(None)
    }
}

impl RollupRun for HistoryPart<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn shape(&self) -> Option<&RollupShape> {
        Some(self.shape)
    }

    fn entries(&self) -> &dyn Fragment {
        &self.entries
    }
}

impl Fragment for HistoryPart<'_> {
    fn row_count(&self) -> usize {
        0
    }

    fn visible_count(&self) -> Option<usize> {
        Some(0)
    }

    fn batch_end(&self, start: usize, _: usize) -> usize {
        start
    }

    fn column<'a>(
        &'a self,
        position: usize,
        _: Range<usize>,
        _: &'a Room,
    ) -> esker_query::Result<ColumnSlice<'a>> {
        let message = format!("column {position} of a part of a history, which has no rows");
        Err(esker_query::Error::new(esker_query::ErrorKind::Corrupt, message))
    }

    fn visible(&self, _: Range<usize>) -> Option<Vec<u64>> {
        None
    }

    fn zone(&self, _: usize, _: usize) -> Option<Zone<'_>> {
        None
    }

    fn history(&self) -> Option<&dyn RollupRun> {
        Some(self)
    }
}
