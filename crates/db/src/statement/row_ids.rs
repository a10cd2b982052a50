//! A table's snapshot with one more column: the row ids, by which a statement finds its rows again.

use std::ops::{Range, RangeInclusive};
use std::sync::OnceLock;

use esker_format::{ColumnSlice, Data, DataType, Schema, Validity, ValueRef};
use esker_query::{BitmapRun, Fragment, GramRun, KeyRows, Source, ZONE_ROWS, Zone};
use esker_table::TableSnapshot;

use crate::read::source::{SourcePart, find_keys};

/// A [`Source`] that has the row ids, behind the last field.
pub(crate) struct RowIdSource<'a> {
    snapshot: &'a TableSnapshot,
    schema: Schema,
    position: usize,
    parts: Vec<RowIdPart<'a>>,
}

struct RowIdPart<'a> {
    inner: SourcePart<'a>,
    /// The position of the row ids.
    position: usize,
    /// The ids of each zone, once they were needed: only where rows match.
    zones: Vec<OnceLock<Vec<u64>>>,
}

impl<'a> RowIdSource<'a> {
    /// With the row id as the last field.
    pub(crate) fn new(snapshot: &'a TableSnapshot) -> Self {
        Self { schema: snapshot.schema().with_row_id(), ..Self::beside_fields(snapshot) }
    }

    /// With row ids that are no field.
    pub(crate) fn beside_fields(snapshot: &'a TableSnapshot) -> Self {
        let position = snapshot.schema().fields().len();
        let part = |inner: SourcePart<'a>| {
            let zones = inner.row_count().div_ceil(ZONE_ROWS);
            let zones = std::iter::repeat_with(OnceLock::new).take(zones).collect();
            RowIdPart { inner, position, zones }
        };
        let parts = snapshot.parts().iter().map(|p| part(SourcePart::new(p))).collect();
        Self { snapshot, schema: Schema::clone(snapshot.schema()), position, parts }
    }
}

impl Source for RowIdSource<'_> {
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

    fn find_keys(&self, keys: &[Vec<ValueRef<'_>>]) -> esker_query::Result<Option<KeyRows>> {
        find_keys(self.snapshot, keys)
    }

    fn row_id_position(&self) -> Option<usize> {
        Some(self.position)
    }
}

impl RowIdPart<'_> {
    fn row_ids(&self, rows: Range<usize>) -> esker_query::Result<ColumnSlice<'_>> {
        if let Some(column) = self.inner.row_id_column(rows.clone()) {
            return column;
        }
        let zone = rows.start / ZONE_ROWS;
        let (first, len) = (zone * ZONE_ROWS, rows.len());
        let missing = || esker_query::Error::new(esker_query::ErrorKind::Corrupt, "no row ids");
        let cell = self.zones.get(zone).ok_or_else(missing)?;
        let ids = match cell.get() {
            Some(ids) => ids,
            None => {
                let end = self.inner.row_count().min(first + ZONE_ROWS);
                let ids = self.inner.row_ids(first..end)?;
                cell.get_or_init(|| ids)
            }
        };
        let ids = ids.get(rows.start - first..rows.end - first).ok_or_else(missing)?;
        let (data_type, validity) = (DataType::U64, Validity::AllValid);
        Ok(ColumnSlice { data_type, len, validity, data: Data::U64(ids) })
    }
}

impl Fragment for RowIdPart<'_> {
    fn row_count(&self) -> usize {
        self.inner.row_count()
    }

    fn visible_count(&self) -> Option<usize> {
        self.inner.visible_count()
    }

    fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        self.inner.batch_end(start, rows_max)
    }

    fn rows_at_once(&self) -> usize {
        self.inner.rows_at_once()
    }

    fn column(&self, position: usize, rows: Range<usize>) -> esker_query::Result<ColumnSlice<'_>> {
        if position == self.position {
            return self.row_ids(rows);
        }
        self.inner.column(position, rows)
    }

    fn visible(&self, rows: Range<usize>) -> Option<Vec<u64>> {
        self.inner.visible(rows)
    }

    fn zone(&self, position: usize, zone: usize) -> Option<Zone<'_>> {
        if position == self.position { None } else { self.inner.zone(position, zone) }
    }

    fn lengths(&self, position: usize, zone: usize) -> Option<RangeInclusive<u32>> {
        if position == self.position { None } else { self.inner.lengths(position, zone) }
    }

    fn learn_lengths(&self, position: usize, rows: Range<usize>, lengths: RangeInclusive<u32>) {
        if position != self.position {
            self.inner.learn_lengths(position, rows, lengths);
        }
    }

    fn has_rising_row_ids(&self) -> bool {
        self.inner.is_by_row_id()
    }

    fn run_count(&self) -> usize {
        self.inner.run_count()
    }

    fn run(&self, index: usize) -> Option<&dyn esker_query::IndexRun> {
        self.inner.run(index)
    }

    fn gram_run_count(&self) -> usize {
        self.inner.gram_run_count()
    }

    fn gram_run(&self, index: usize) -> Option<&dyn GramRun> {
        self.inner.gram_run(index)
    }

    fn bitmap_run_count(&self) -> usize {
        self.inner.bitmap_run_count()
    }

    fn bitmap_run(&self, index: usize) -> Option<&dyn BitmapRun> {
        self.inner.bitmap_run(index)
    }
}
