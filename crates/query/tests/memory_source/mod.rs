//! A source in memory, for tests and measurements: each part holds its columns in the encoding
//! requested, with NULLs, dead rows, chunks and zone maps as tables have them.

mod encoded;
mod run;

use std::ops::Range;

use esker_format::{Batch, ColumnSlice, Room, Schema};

pub use encoded::{Encoding, NullForm};
pub use run::RunLayout;

use esker_query::{Error, Fragment, IndexRun, Result, Source, ZONE_ROWS, Zone};

use encoded::EncodedColumn;
use run::MemoryRun;

/// A table in memory.
#[derive(Debug)]
pub struct MemorySource {
    schema: Schema,
    parts: Vec<MemoryPart>,
}

/// Some of its rows.
#[derive(Debug)]
pub struct MemoryPart {
    columns: Vec<EncodedColumn>,
    row_count: usize,
    chunk_rows: usize,
    visible: Option<Vec<bool>>,
    has_zones: bool,
    runs: Vec<MemoryRun>,
}

/// How a part is laid out.
#[derive(Clone, Debug)]
pub struct Layout {
    /// How the columns are encoded, where that is possible; else plain.
    pub encoding: Encoding,
    /// How NULLs are marked.
    pub nulls: NullForm,
    /// Batches do not reach across a multiple of this many rows.
    pub chunk_rows: usize,
    /// Which rows are visible; `None` for all.
    pub visible: Option<Vec<bool>>,
    /// Whether there are zone maps.
    pub has_zones: bool,
    /// Its sorted runs.
    pub runs: Vec<RunLayout>,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            encoding: Encoding::Plain,
            nulls: NullForm::Bytes,
            chunk_rows: ZONE_ROWS,
            visible: None,
            has_zones: true,
            runs: Vec::new(),
        }
    }
}

impl MemorySource {
    /// A table without rows.
    #[must_use]
    pub fn new(schema: Schema) -> Self {
        Self { schema, parts: Vec::new() }
    }

    /// Adds a part with the rows of a batch.
    #[must_use]
    pub fn with_part(mut self, batch: &Batch, layout: &Layout) -> Self {
        let columns = batch.columns.iter();
        let columns = columns.map(|c| EncodedColumn::new(c, layout.encoding, layout.nulls));
        self.parts.push(MemoryPart {
            columns: columns.collect(),
            row_count: batch.len(),
            chunk_rows: layout.chunk_rows.max(1),
            visible: layout.visible.clone(),
            has_zones: layout.has_zones,
            runs: layout.runs.iter().map(|run| MemoryRun::new(run, batch, layout)).collect(),
        });
        self
    }
}

impl Source for MemorySource {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn part_count(&self) -> usize {
        self.parts.len()
    }

    #[allow(clippy::indexing_slicing, reason = "the contract of the trait")]
    fn part(&self, index: usize) -> &dyn Fragment {
        &self.parts[index]
    }
}

impl Fragment for MemoryPart {
    fn row_count(&self) -> usize {
        self.row_count
    }

    fn visible_count(&self) -> Option<usize> {
        self.visible.is_none().then_some(self.row_count)
    }

    fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        let next = |step: usize| (start / step + 1) * step;
        let end = start.saturating_add(rows_max).min(next(ZONE_ROWS)).min(next(self.chunk_rows));
        end.min(self.row_count)
    }

    fn column<'a>(
        &'a self,
        position: usize,
        rows: Range<usize>,
        _: &'a Room,
    ) -> Result<ColumnSlice<'a>> {
        let column = self.columns.get(position);
        let slice = column.and_then(|column| column.slice(rows.clone()));
        slice.ok_or_else(|| Error::invalid(format!("no rows {rows:?} of column {position}")))
    }

    fn visible(&self, rows: Range<usize>) -> Option<Vec<u64>> {
        let visible = self.visible.as_ref()?.get(rows)?;
        let word = |chunk: &[bool]| {
            chunk.iter().enumerate().fold(0, |word, (i, v)| word | u64::from(*v) << i)
        };
        Some(visible.chunks(64).map(word).collect())
    }

    fn first_shown(&self, rows: Range<usize>) -> usize {
        let Some(visible) = &self.visible else { return rows.start };
        let first = rows.clone().find(|row| visible.get(*row) == Some(&true));
        first.map_or(rows.end, |row| rows.start.max(row / 64 * 64))
    }

    fn zone(&self, position: usize, zone: usize) -> Option<Zone<'_>> {
        if !self.has_zones {
            return None;
        }
        self.columns.get(position)?.zone(zone)
    }

    fn run_count(&self) -> usize {
        self.runs.len()
    }

    fn run(&self, index: usize) -> Option<IndexRun<'_>> {
        self.runs.get(index).map(|run| IndexRun::Sorted(run))
    }
}
