//! A table's snapshot, as queries read it: its parts, their index runs, and behind the last field
//! the row ids, a hidden column.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, OnceLock};

use esker_format::schema::{Index, IndexKind};
use esker_format::segment::FieldSketch;
use esker_format::{ColumnSlice, Data, DataType, FieldId, Room, Schema, Validity, ValueRef};
use esker_query::{
    BitmapRun, Entries, Fragment, GramRun, IndexRun, KeyRange, KeyRows, PartialAggregates,
    RollupBlocks, RollupShape, RunExpression, RunPath, SortedRun, Source, ZONE_ROWS, Zone,
};
use esker_table::TableSnapshot;
use esker_table::index_run;
use esker_table::segment::Segment;
use esker_table::table::SnapshotPart;
use esker_table::view::RowGroup;

use super::rollup_blocks::OpenRollup;
use super::time_run::TimeRun;
use crate::catalog::computed_index::{self, ComputedIndex};

type Result<T> = esker_query::Result<T>;

/// A [`Source`] over a snapshot of a table.
pub(crate) struct SnapshotSource<'a> {
    snapshot: &'a TableSnapshot,
    schema: Cow<'a, Schema>,
    parts: Vec<SourcePart<'a>>,
}

/// One part of a snapshot.
pub(super) struct SourcePart<'a> {
    part: &'a SnapshotPart,
    /// The position of the row ids.
    row_id_position: usize,
    /// The row ids of each zone of a group, once they were needed.
    row_ids: OnceLock<Box<[OnceLock<Vec<u64>>]>>,
    /// Its index runs, once they were needed.
    runs: OnceLock<Vec<PartRun<'a>>>,
    /// The events of a segment by time, where they lie so.
    by_time: Option<TimeRun<'a>>,
    /// Whether other readers see it, too.
    is_shared: bool,
    /// What rollups have of it, of an open group, once that was needed.
    open_rollups: OnceLock<Vec<OpenRollup<'a>>>,
}

/// An index run of a part, for the reader's schema.
pub(super) struct PartRun<'a> {
    part: &'a SnapshotPart,
    segment: &'a Segment,
    layout: Arc<RunLayout>,
}

/// What an index run is for the readers with a schema.
struct RunLayout {
    run: Arc<index_run::IndexRun>,
    fields: Vec<(usize, bool)>,
    paths: Vec<Option<RunPath>>,
    expressions: Vec<Option<RunExpression>>,
    filter: Option<RunExpression>,
    /// What a rollup is.
    rollup: Option<RollupShape>,
    /// How an index of which something is computed is shown, with what that is.
    shown: Option<String>,
}

impl<'a> SnapshotSource<'a> {
    /// With the fields of the table; the row ids are no field.
    pub(crate) fn new(snapshot: &'a TableSnapshot) -> Self {
        let row_id_position = snapshot.schema().fields().len();
        let shared = snapshot.shared_parts();
        let part = |(at, part): (usize, &'a Arc<SnapshotPart>)| SourcePart {
            part,
            row_id_position,
            row_ids: OnceLock::new(),
            runs: OnceLock::new(),
            by_time: TimeRun::of(part, row_id_position),
            is_shared: at < shared,
            open_rollups: OnceLock::new(),
        };
        let parts = snapshot.parts().iter().enumerate().map(part).collect();
        Self { snapshot, schema: Cow::Borrowed(snapshot.schema()), parts }
    }

    /// Its parts.
    pub(super) fn into_parts(self) -> Vec<SourcePart<'a>> {
        self.parts
    }

    /// With the row id as the last field, by which a statement finds its rows again.
    pub(crate) fn with_row_id(snapshot: &'a TableSnapshot) -> Self {
        Self { schema: Cow::Owned(snapshot.schema().with_row_id()), ..Self::new(snapshot) }
    }
}

impl Source for SnapshotSource<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn part_count(&self) -> usize {
        self.parts.len()
    }

    #[allow(clippy::indexing_slicing, reason = "the executor keeps below part_count")]
    fn part(&self, index: usize) -> &dyn Fragment {
        &self.parts[index]
    }

    fn find_keys(&self, keys: &[Vec<ValueRef<'_>>]) -> Result<Option<KeyRows>> {
        let found = self.snapshot.rows_of_keys(keys).map_err(|e| query_error(&e))?;
        Ok(found.map(|parts| KeyRows { parts }))
    }

    fn row_id_position(&self) -> Option<usize> {
        Some(self.snapshot.schema().fields().len())
    }
}

impl<'a> SourcePart<'a> {
    fn runs(&self) -> &[PartRun<'a>] {
        self.runs.get_or_init(|| runs(self.part))
    }

    /// The row ids of some rows. Those of a segment lie as a column.
    fn row_ids(&self, rows: Range<usize>) -> Result<ColumnSlice<'_>> {
        let row_group = self.part.row_group();
        if let RowGroup::Segment(segment) = row_group {
            return segment.row_id_column(rows).map_err(|e| query_error(&e));
        }
        let zones = self.row_ids.get_or_init(|| {
            let zones = self.row_count().div_ceil(ZONE_ROWS);
            std::iter::repeat_with(OnceLock::new).take(zones).collect()
        });
        let zone = rows.start / ZONE_ROWS;
        let (first, len) = (zone * ZONE_ROWS, rows.len());
        let missing = || esker_query::Error::new(esker_query::ErrorKind::Corrupt, "no row ids");
        let cell = zones.get(zone).ok_or_else(missing)?;
        let ids = match cell.get() {
            Some(ids) => ids,
            None => {
                let ids = (first..self.row_count().min(first + ZONE_ROWS))
                    .map(|row| row_group.row_id(row).map_err(|e| query_error(&e)))
                    .collect::<Result<Vec<u64>>>()?;
                cell.get_or_init(|| ids)
            }
        };
        let ids = ids.get(rows.start - first..rows.end - first).ok_or_else(missing)?;
        let (data_type, validity) = (DataType::U64, Validity::AllValid);
        Ok(ColumnSlice { data_type, len, validity, data: Data::U64(ids) })
    }
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

    fn column<'a>(
        &'a self,
        position: usize,
        rows: Range<usize>,
        room: &'a Room,
    ) -> Result<ColumnSlice<'a>> {
        if position == self.row_id_position {
            return self.row_ids(rows);
        }
        self.part.column(position, rows, room).map_err(|e| query_error(&e))
    }

    fn value<'a>(&'a self, position: usize, row: usize, room: &'a Room) -> Result<ValueRef<'a>> {
        if position == self.row_id_position {
            return Ok(self.row_ids(row..row + 1)?.value(0));
        }
        self.part.value(position, row, room).map_err(|e| query_error(&e))
    }

    fn visible(&self, rows: Range<usize>) -> Option<Vec<u64>> {
        self.part.visible(rows)
    }

    fn first_shown(&self, rows: Range<usize>) -> usize {
        self.part.first_shown(rows)
    }

    fn zone(&self, position: usize, zone: usize) -> Option<Zone<'_>> {
        if position == self.row_id_position {
            // Of all zones together: what is none of a segment's is in none of them.
            let RowGroup::Segment(segment) = self.part.row_group() else { return None };
            let (least, greatest) = segment.row_id_bounds();
            let (least, greatest) = (ValueRef::Uint(least), Some(ValueRef::Uint(greatest)));
            return Some(Zone { least, greatest, null_count: 0 });
        }
        let (least, greatest, null_count) = self.part.zone(position, zone)?;
        Some(Zone { least, greatest, null_count })
    }

    fn sketch(&self, position: usize) -> Option<&FieldSketch> {
        self.part.sketch(position)
    }

    fn lengths(&self, position: usize, zone: usize) -> Option<RangeInclusive<u32>> {
        self.part.lengths(position, zone)
    }

    fn learn_lengths(&self, position: usize, rows: Range<usize>, lengths: RangeInclusive<u32>) {
        self.part.learn_lengths(position, rows, lengths);
    }

    fn has_rising_row_ids(&self) -> bool {
        matches!(self.part.row_group(), RowGroup::Segment(segment) if segment.has_rising_row_ids())
    }

    fn rollup_blocks(&self) -> Vec<&dyn RollupBlocks> {
        if !self.is_shared {
            // What a savepoint takes back is put again by other values.
            return Vec::new();
        }
        let open = self.open_rollups.get_or_init(|| OpenRollup::all(self.part));
        open.iter().map(|rollup| rollup as &dyn RollupBlocks).collect()
    }

    fn run_count(&self) -> usize {
        self.runs().len() + usize::from(self.by_time.is_some())
    }

    fn run(&self, index: usize) -> Option<IndexRun<'_>> {
        let index = match (&self.by_time, index) {
            (Some(by_time), 0) => return Some(IndexRun::Sorted(by_time)),
            (Some(_), _) => index - 1,
            (None, _) => index,
        };
        let run = self.runs().get(index)?;
        Some(match run.layout.run.index().kind {
            IndexKind::Ordered => IndexRun::Sorted(run),
            IndexKind::Trigram => IndexRun::Grams(run),
            IndexKind::Bitmap => IndexRun::Bitmaps(run),
            IndexKind::Rollup => IndexRun::Rollup(run),
        })
    }
}

/// The runs of a part whose indexes the reader's schema has, sorted ones first.
fn runs(part: &SnapshotPart) -> Vec<PartRun<'_>> {
    let schema = part.schema();
    let RowGroup::Segment(segment) = part.row_group() else { return Vec::new() };
    if schema.indexes().is_empty() {
        return Vec::new();
    }
    let runs = segment.runs();
    let layouts = match runs.reading::<Vec<Arc<RunLayout>>>(schema) {
        Some(kept) => kept,
        None => {
            let (layouts, are_sure) = RunLayout::all(&runs, schema);
            let layouts = Arc::new(layouts);
            if are_sure {
                runs.keep_reading(schema, Arc::clone(&layouts) as _);
            }
            layouts
        }
    };
    let run = |layout: &Arc<RunLayout>| PartRun { part, segment, layout: Arc::clone(layout) };
    layouts.iter().map(run).collect()
}

impl RunLayout {
    /// Those of runs, sorted ones first; false where one could not be read, which may come right.
    fn all(runs: &[Arc<index_run::IndexRun>], schema: &Schema) -> (Vec<Arc<Self>>, bool) {
        let (mut layouts, mut are_sure) = (Vec::new(), true);
        for run in runs {
            let is_known = schema.indexes().iter().any(|index| index.id == run.index().id);
            if !is_known || !run.is_readable_by(schema) {
                continue;
            }
            match run.is_left_out() {
                Ok(false) => layouts.extend(Self::of(run, schema).map(Arc::new)),
                Ok(true) => {}
                // It is as one that is not built.
                Err(_) => are_sure = false,
            }
        }
        layouts.sort_by_key(|layout| layout.run.index().kind);
        (layouts, are_sure)
    }

    fn of(run: &Arc<index_run::IndexRun>, schema: &Schema) -> Option<Self> {
        let index = run.index();
        if index.is_rollup() {
            return Self::of_rollup(run, schema);
        }
        let computed = match run.index_values() {
            None => None,
            Some(values) => Some(ComputedIndex::of(&**values)?.computation()),
        };
        // default: a run is readable by a schema that has what it reads
        let place = |id: FieldId| schema.positions_of(&[id]).map_or(usize::MAX, |at| first(&at));
        let (mut fields, mut paths, mut expressions) = (Vec::new(), Vec::new(), Vec::new());
        for (number, f) in index.fields.iter().enumerate() {
            if f.expression.is_some() {
                expressions.push(Some(computed?.part(number, &place)?));
                fields.push((usize::MAX, f.descending));
                paths.push(None);
                continue;
            }
            expressions.push(None);
            let field = schema.fields().iter().position(|field| field.id == f.field)?;
            let path = RunPath { field, steps: f.path.clone() };
            let path = Some(path).filter(|path| !path.steps.is_empty());
            fields.push((if path.is_some() { usize::MAX } else { field }, f.descending));
            paths.push(path);
        }
        let filter = computed.and_then(|computed| computed.filter(&place));
        let shown = index.is_computed().then(|| shown(schema, index));
        let (run, rollup) = (Arc::clone(run), None);
        Some(Self { run, fields, paths, expressions, filter, rollup, shown })
    }

    fn of_rollup(run: &Arc<index_run::IndexRun>, schema: &Schema) -> Option<Self> {
        let partials = PartialAggregates::of(run.index(), schema).ok()?;
        if !run.has_partials_of(partials.layout().types()) {
            return None;
        }
        // default: the schema has what it reads
        let place = |id: FieldId| schema.positions_of(&[id]).map_or(usize::MAX, |at| first(&at));
        Some(Self {
            run: Arc::clone(run),
            fields: Vec::new(),
            paths: Vec::new(),
            expressions: Vec::new(),
            filter: None,
            rollup: Some(partials.shape(&place)),
            shown: None,
        })
    }
}

/// The only one of some positions.
fn first(positions: &[usize]) -> usize {
    // default: a position was asked for
    positions.first().copied().unwrap_or(usize::MAX)
}

/// An index with what it computes: `by_mail (lower(mail)) where active`.
fn shown(schema: &Schema, index: &Index) -> String {
    let filter = computed_index::filter_text(schema, index);
    let filter = filter.iter().map(|filter| format!(" where {filter}")).collect::<String>();
    let parts = computed_index::parts_text(schema, index).join(", ");
    format!("{} ({parts}){filter}", index.name)
}

impl PartRun<'_> {
    /// The run as it is stored.
    pub(super) fn index_run(&self) -> &index_run::IndexRun {
        &self.layout.run
    }

    /// The name that the index has for the reader: a run is not written again for another one.
    pub(super) fn index_name(&self) -> &str {
        let own = self.layout.run.index();
        let known = self.part.schema().indexes().iter().find(|index| index.id == own.id);
        // default: it is of an index that the schema has
        known.map_or(&own.name, |index| &index.name)
    }

    /// What the rollup is of which this is kept.
    pub(super) fn rollup_shape(&self) -> Option<&RollupShape> {
        self.layout.rollup.as_ref()
    }

    /// The position of the first field, which is the only one of an index without an order.
    fn first_field(&self) -> usize {
        // default: an index has a field
        self.layout.fields.first().map_or(usize::MAX, |(position, _)| *position)
    }
}

impl SortedRun for PartRun<'_> {
    fn name(&self) -> &str {
        // default: one of which nothing is computed goes by its name
        self.layout.shown.as_deref().unwrap_or(&self.layout.run.index().name)
    }

    fn fields(&self) -> &[(usize, bool)] {
        &self.layout.fields
    }

    fn path(&self, number: usize) -> Option<&RunPath> {
        self.layout.paths.get(number)?.as_ref()
    }

    fn expression(&self, number: usize) -> Option<&RunExpression> {
        self.layout.expressions.get(number)?.as_ref()
    }

    fn filter(&self) -> Option<&RunExpression> {
        self.layout.filter.as_ref()
    }

    fn len(&self) -> usize {
        self.layout.run.len()
    }

    fn is_sorted_exactly(&self) -> bool {
        true
    }

    fn find(&self, within: Range<usize>, field: usize, range: &KeyRange<'_>) -> Result<Entries> {
        let schema = self.part.schema();
        let found = self.layout.run.find(self.segment, schema, within, field, range);
        found.map(|range| Entries { range, exact: true }).map_err(|e| query_error(&e))
    }

    fn rows(&self, entries: Range<usize>) -> Result<Cow<'_, [u32]>> {
        self.layout.run.rows(entries).map_err(|e| query_error(&e))
    }

    fn shown(&self, entries: Range<usize>) -> Result<Range<usize>> {
        if self.part.known_count().is_some() {
            return Ok(entries);
        }
        let is_seen = |row| self.part.is_visible(row);
        let shown = self.layout.run.shown(self.segment, entries, self.part.at(), is_seen);
        shown.map_err(|e| query_error(&e))
    }

    fn count_visible(&self, entries: Range<usize>) -> Result<usize> {
        if self.part.hides_rows() {
            let rows = SortedRun::rows(self, entries)?;
            return Ok(rows.iter().filter(|row| self.part.is_visible(**row as usize)).count());
        }
        let count = self.layout.run.count_visible(self.segment, entries, self.part.at());
        count.map_err(|e| query_error(&e))
    }
}

impl GramRun for PartRun<'_> {
    fn name(&self) -> &str {
        &self.layout.run.index().name
    }

    fn field(&self) -> usize {
        self.first_field()
    }

    fn count(&self, gram: u32) -> Result<usize> {
        self.layout.run.gram_count(gram).map_err(|e| query_error(&e))
    }

    fn rows(&self, gram: u32) -> Result<Vec<u32>> {
        self.layout.run.gram_rows(gram, self.segment.row_count()).map_err(|e| query_error(&e))
    }
}

impl BitmapRun for PartRun<'_> {
    fn name(&self) -> &str {
        &self.layout.run.index().name
    }

    fn field(&self) -> usize {
        self.first_field()
    }

    fn values(&self) -> Result<ColumnSlice<'_>> {
        let missing = || esker_query::Error::invalid("a bitmap index of a field that is gone");
        let field = self.part.schema().fields().get(self.first_field()).ok_or_else(missing)?;
        self.layout.run.values(field).map_err(|e| query_error(&e))
    }

    fn count(&self, value: usize) -> Result<usize> {
        self.layout.run.value_count(value).map_err(|e| query_error(&e))
    }

    fn add_rows(&self, value: usize, bits: &mut [u64]) -> Result<()> {
        let added = self.layout.run.add_rows_of_value(value, self.segment.row_count(), bits);
        added.map_err(|e| query_error(&e))
    }
}

pub(super) fn query_error(e: &esker_table::Error) -> esker_query::Error {
    let kind = match e.kind() {
        esker_table::ErrorKind::Corrupt => esker_query::ErrorKind::Corrupt,
        _ => esker_query::ErrorKind::Io,
    };
    esker_query::Error::new(kind, e.to_string())
}
