//! A table's snapshot, as queries read it.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use esker_format::schema::IndexKind;
use esker_format::{ColumnSlice, Field, FieldId, Schema, ValueRef};
use esker_query::{
    BitmapRun, Entries, Fragment, GramRun, KeyRange, KeyRows, RunPath, Source, Zone,
};
use esker_table::TableSnapshot;
use esker_table::index_run::IndexRun;
use esker_table::segment::Segment;
use esker_table::table::SnapshotPart;
use esker_table::view::RowGroup;

/// A [`Source`] over a snapshot of a table.
pub(crate) struct SnapshotSource<'a> {
    snapshot: &'a TableSnapshot,
    parts: Vec<SourcePart<'a>>,
}

/// One part of a snapshot.
pub(crate) struct SourcePart<'a> {
    part: &'a SnapshotPart,
    runs: Vec<PartRun<'a>>,
    gram_runs: Vec<PartGrams<'a>>,
    bitmap_runs: Vec<PartBitmaps<'a>>,
}

/// A run of bitmaps of a part, for the reader's schema.
struct PartBitmaps<'a> {
    segment: &'a Segment,
    run: Arc<IndexRun>,
    position: usize,
    field: &'a Field,
}

/// A run of grams of a part.
struct PartGrams<'a> {
    segment: &'a Segment,
    run: Arc<IndexRun>,
    field: usize,
}

/// A run of a part, for the reader's schema.
struct PartRun<'a> {
    part: &'a SnapshotPart,
    segment: &'a Segment,
    run: Arc<IndexRun>,
    fields: Vec<(usize, bool)>,
    paths: Vec<Option<RunPath>>,
}

impl<'a> SourcePart<'a> {
    pub fn new(part: &'a SnapshotPart) -> Self {
        Self { part, runs: runs(part), gram_runs: gram_runs(part), bitmap_runs: bitmap_runs(part) }
    }

    /// The row ids of some rows as a column, where they lie as one.
    pub fn row_id_column(
        &self,
        rows: Range<usize>,
    ) -> Option<esker_query::Result<ColumnSlice<'_>>> {
        let RowGroup::Segment(segment) = self.part.row_group() else { return None };
        Some(segment.row_id_column(rows).map_err(|e| query_error(&e)))
    }

    /// True for a segment whose rows lie by row id.
    pub fn is_by_row_id(&self) -> bool {
        matches!(self.part.row_group(), RowGroup::Segment(segment) if !segment.is_ordered_by_key())
    }

    /// The row ids of some rows.
    pub fn row_ids(&self, rows: Range<usize>) -> esker_query::Result<Vec<u64>> {
        let row_group = self.part.row_group();
        rows.map(|row| row_group.row_id(row).map_err(|e| query_error(&e))).collect()
    }
}

impl<'a> SnapshotSource<'a> {
    pub fn new(snapshot: &'a TableSnapshot) -> Self {
        Self {
            snapshot,
            parts: snapshot.parts().iter().map(|part| SourcePart::new(part)).collect(),
        }
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
    fn part(&self, index: usize) -> &dyn Fragment {
        &self.parts[index]
    }

    fn find_keys(&self, keys: &[Vec<ValueRef<'_>>]) -> esker_query::Result<Option<KeyRows>> {
        find_keys(self.snapshot, keys)
    }
}

/// Where the rows with some keys are.
pub(crate) fn find_keys(
    snapshot: &TableSnapshot,
    keys: &[Vec<ValueRef<'_>>],
) -> esker_query::Result<Option<KeyRows>> {
    let found = snapshot.rows_of_keys(keys).map_err(|e| query_error(&e))?;
    Ok(found.map(|parts| KeyRows { parts }))
}

impl Fragment for SourcePart<'_> {
    fn row_count(&self) -> usize {
        self.part.row_count()
    }

    fn visible_count(&self) -> Option<usize> {
        self.part.known_count()
    }

    fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        self.part.batch_end(start, rows_max)
    }

    fn rows_at_once(&self) -> usize {
        self.part.rows_at_once()
    }

    fn column(&self, position: usize, rows: Range<usize>) -> esker_query::Result<ColumnSlice<'_>> {
        self.part.column(position, rows).map_err(|e| query_error(&e))
    }

    fn visible(&self, rows: Range<usize>) -> Option<Vec<u64>> {
        self.part.visible(rows)
    }

    fn zone(&self, position: usize, zone: usize) -> Option<Zone<'_>> {
        let (least, greatest, null_count) = self.part.zone(position, zone)?;
        Some(Zone { least, greatest, null_count })
    }

    fn lengths(&self, position: usize, zone: usize) -> Option<RangeInclusive<u32>> {
        self.part.lengths(position, zone)
    }

    fn learn_lengths(&self, position: usize, rows: Range<usize>, lengths: RangeInclusive<u32>) {
        self.part.learn_lengths(position, rows, lengths);
    }

    fn run_count(&self) -> usize {
        self.runs.len()
    }

    fn run(&self, index: usize) -> Option<&dyn esker_query::IndexRun> {
        self.runs.get(index).map(|run| run as &dyn esker_query::IndexRun)
    }

    fn gram_run_count(&self) -> usize {
        self.gram_runs.len()
    }

    fn gram_run(&self, index: usize) -> Option<&dyn GramRun> {
        self.gram_runs.get(index).map(|run| run as &dyn GramRun)
    }

    fn bitmap_run_count(&self) -> usize {
        self.bitmap_runs.len()
    }

    fn bitmap_run(&self, index: usize) -> Option<&dyn BitmapRun> {
        self.bitmap_runs.get(index).map(|run| run as &dyn BitmapRun)
    }
}

/// The runs of grams of a part whose indexes the reader's schema has.
fn gram_runs(part: &SnapshotPart) -> Vec<PartGrams<'_>> {
    let schema = part.schema();
    let RowGroup::Segment(segment) = part.row_group() else { return Vec::new() };
    let of = |run: &Arc<IndexRun>| {
        let index = run.index();
        schema.indexes().iter().find(|known| known.id == index.id)?;
        let only = index.fields.first().filter(|_| index.kind == IndexKind::Trigram)?;
        let field = schema.fields().iter().position(|f| f.id == only.field)?;
        Some(PartGrams { segment, run: Arc::clone(run), field })
    };
    segment.runs().iter().filter_map(of).collect()
}

impl GramRun for PartGrams<'_> {
    fn name(&self) -> &str {
        &self.run.index().name
    }

    fn field(&self) -> usize {
        self.field
    }

    fn count(&self, gram: u32) -> esker_query::Result<usize> {
        self.run.gram_count(gram).map_err(|e| query_error(&e))
    }

    fn rows(&self, gram: u32) -> esker_query::Result<Vec<u32>> {
        let rows = self.run.gram_rows(gram, self.segment.row_count());
        rows.map_err(|e| query_error(&e))
    }
}

/// The runs of bitmaps of a part whose indexes the reader's schema has; one that cannot be read is
/// as one that is not built.
fn bitmap_runs(part: &SnapshotPart) -> Vec<PartBitmaps<'_>> {
    let schema = part.schema();
    let RowGroup::Segment(segment) = part.row_group() else { return Vec::new() };
    let of = |run: &Arc<IndexRun>| {
        let index = run.index();
        schema.indexes().iter().find(|known| known.id == index.id)?;
        let only = index.fields.first().filter(|_| index.kind == IndexKind::Bitmap)?;
        let position = schema.fields().iter().position(|f| f.id == only.field)?;
        let field = schema.fields().get(position)?;
        // default: a run that cannot be read says so where it is read
        let is_usable = run.is_readable_by(schema) && !run.has_too_many_values().unwrap_or(true);
        is_usable.then(|| PartBitmaps { segment, run: Arc::clone(run), position, field })
    };
    segment.runs().iter().filter_map(of).collect()
}

impl BitmapRun for PartBitmaps<'_> {
    fn name(&self) -> &str {
        &self.run.index().name
    }

    fn field(&self) -> usize {
        self.position
    }

    fn values(&self) -> esker_query::Result<ColumnSlice<'_>> {
        self.run.values(self.field).map_err(|e| query_error(&e))
    }

    fn count(&self, value: usize) -> esker_query::Result<usize> {
        self.run.value_count(value).map_err(|e| query_error(&e))
    }

    fn add_rows(&self, value: usize, bits: &mut [u64]) -> esker_query::Result<()> {
        let added = self.run.add_rows_of_value(value, self.segment.row_count(), bits);
        added.map_err(|e| query_error(&e))
    }
}

/// The runs of a part whose indexes the reader's schema has.
fn runs(part: &SnapshotPart) -> Vec<PartRun<'_>> {
    let schema = part.schema();
    let RowGroup::Segment(segment) = part.row_group() else { return Vec::new() };
    if schema.indexes().is_empty() {
        return Vec::new();
    }
    let position = |field: FieldId| schema.fields().iter().position(|f| f.id == field);
    let of = |run: &Arc<IndexRun>| {
        let index = run.index();
        schema.indexes().iter().find(|known| known.id == index.id)?;
        if index.kind != IndexKind::Ordered || !run.is_readable_by(schema) {
            return None;
        }
        let (mut fields, mut paths) = (Vec::new(), Vec::new());
        for f in &index.fields {
            let field = position(f.field)?;
            let path = RunPath { field, steps: f.path.clone() };
            let path = Some(path).filter(|path| !path.steps.is_empty());
            fields.push((if path.is_some() { usize::MAX } else { field }, f.descending));
            paths.push(path);
        }
        Some(PartRun { part, segment, run: Arc::clone(run), fields, paths })
    };
    segment.runs().iter().filter_map(of).collect()
}

impl esker_query::IndexRun for PartRun<'_> {
    fn name(&self) -> &str {
        &self.run.index().name
    }

    fn fields(&self) -> &[(usize, bool)] {
        &self.fields
    }

    fn path(&self, number: usize) -> Option<&RunPath> {
        self.paths.get(number)?.as_ref()
    }

    fn len(&self) -> usize {
        self.run.len()
    }

    fn is_sorted_exactly(&self) -> bool {
        true
    }

    fn find(
        &self,
        within: Range<usize>,
        field: usize,
        range: &KeyRange<'_>,
    ) -> esker_query::Result<Entries> {
        let schema = self.part.schema();
        let found = self.run.find(self.segment, schema, within, field, range);
        found.map(|range| Entries { range, exact: true }).map_err(|e| query_error(&e))
    }

    fn rows(&self, entries: Range<usize>) -> esker_query::Result<Cow<'_, [u32]>> {
        self.run.rows(entries).map_err(|e| query_error(&e))
    }

    fn count_visible(&self, entries: Range<usize>) -> esker_query::Result<usize> {
        if self.part.hides_rows() {
            let rows = self.rows(entries)?;
            return Ok(rows.iter().filter(|row| self.part.is_visible(**row as usize)).count());
        }
        let count = self.run.count_visible(self.segment, entries, self.part.at());
        count.map_err(|e| query_error(&e))
    }
}

fn query_error(e: &esker_table::Error) -> esker_query::Error {
    let kind = match e.kind() {
        esker_table::ErrorKind::Corrupt => esker_query::ErrorKind::Corrupt,
        _ => esker_query::ErrorKind::Io,
    };
    esker_query::Error::new(kind, e.to_string())
}
