//! A table's snapshot, as queries read it.

use std::ops::Range;

use esker_format::{ColumnSlice, Schema};
use esker_query::{Part, Source, Zone};
use esker_table::TableSnapshot;
use esker_table::table::SnapshotPart;

/// A [`Source`] over a snapshot of a table.
pub(crate) struct SnapshotSource<'a> {
    snapshot: &'a TableSnapshot,
    parts: Vec<SourcePart<'a>>,
}

/// One part of a snapshot.
pub(crate) struct SourcePart<'a>(&'a SnapshotPart);

impl<'a> SourcePart<'a> {
    pub fn new(part: &'a SnapshotPart) -> Self {
        Self(part)
    }

    /// The row ids of some rows.
    pub fn row_ids(&self, rows: Range<usize>) -> esker_query::Result<Vec<u64>> {
        let unit = self.0.unit();
        rows.map(|row| unit.row_id(row).map_err(|e| query_error(&e))).collect()
    }
}

impl<'a> SnapshotSource<'a> {
    pub fn new(snapshot: &'a TableSnapshot) -> Self {
        Self { snapshot, parts: snapshot.parts().iter().map(SourcePart::new).collect() }
    }
}

impl Source for SnapshotSource<'_> {
    fn schema(&self) -> &Schema {
        self.snapshot.schema()
    }

    fn part_count(&self) -> usize {
        self.parts.len()
    }

    #[allow(clippy::indexing_slicing, reason = "the executor keeps below part_count")]
    fn part(&self, index: usize) -> &dyn Part {
        &self.parts[index]
    }
}

impl Part for SourcePart<'_> {
    fn row_count(&self) -> usize {
        self.0.row_count()
    }

    fn visible_count(&self) -> Option<usize> {
        self.0.known_count()
    }

    fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        self.0.batch_end(start, rows_max)
    }

    fn column(&self, position: usize, rows: Range<usize>) -> esker_query::Result<ColumnSlice<'_>> {
        self.0.column(position, rows).map_err(|e| query_error(&e))
    }

    fn visible(&self, rows: Range<usize>) -> Option<Vec<u64>> {
        self.0.visible(rows)
    }

    fn zone(&self, position: usize, zone: usize) -> Option<Zone<'_>> {
        let (least, greatest, null_count) = self.0.zone(position, zone)?;
        Some(Zone { least, greatest, null_count })
    }
}

fn query_error(e: &esker_table::Error) -> esker_query::Error {
    let kind = match e.kind() {
        esker_table::ErrorKind::Corrupt => esker_query::ErrorKind::Corrupt,
        _ => esker_query::ErrorKind::Io,
    };
    esker_query::Error::new(kind, e.to_string())
}
