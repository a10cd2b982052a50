//! A source with fewer visible rows: the answer of a semi or anti join.

use std::ops::Range;

use esker_format::segment::FieldSketch;
use esker_format::{ColumnSlice, Room, Schema};

use crate::exec::scan::row_set::RowSet;
use crate::exec::sort::Location;
use crate::source::SourceRef;
use crate::{Fragment, Result, Source, Zone};

/// The rows of a source at some locations. Its indexes are not seen: they count other rows.
pub(crate) struct SemiJoinSource<'a> {
    schema: Schema,
    parts: Vec<SemiJoinFragment<'a>>,
}

/// Which rows of a part are left.
struct SemiJoinFragment<'a> {
    source: SourceRef<'a>,
    index: usize,
    rows: RowSet,
    count: usize,
}

impl<'a> SemiJoinSource<'a> {
    /// `locations` ascend, and are those of visible rows; the schema is that of the source, but for
    /// names.
    pub(crate) fn new(source: &SourceRef<'a>, schema: Schema, locations: &[Location]) -> Self {
        let part = |index: usize| {
            let of = |l: &Location| (l.part as usize).cmp(&index);
            let start = locations.partition_point(|l| of(l).is_lt());
            let end = locations.partition_point(|l| of(l).is_le());
            let rows = locations.get(start..end).unwrap_or_default().iter().map(|l| l.row);
            let rows = RowSet::of_rows(rows.collect(), source.get().part(index).row_count());
            SemiJoinFragment { source: source.clone(), index, rows, count: end - start }
        };
        let parts = (0..source.get().part_count()).map(part).collect();
        Self { schema, parts }
    }
}

impl Source for SemiJoinSource<'_> {
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

impl SemiJoinFragment<'_> {
    fn part(&self) -> &dyn Fragment {
        self.source.get().part(self.index)
    }
}

impl Fragment for SemiJoinFragment<'_> {
    fn row_count(&self) -> usize {
        self.part().row_count()
    }

    fn visible_count(&self) -> Option<usize> {
        Some(self.count)
    }

    fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        self.part().batch_end(start, rows_max)
    }

    fn rows_at_once(&self) -> usize {
        self.part().rows_at_once()
    }

    fn column<'a>(
        &'a self,
        position: usize,
        rows: Range<usize>,
        room: &'a Room,
    ) -> Result<ColumnSlice<'a>> {
        self.part().column(position, rows, room)
    }

    fn visible(&self, rows: Range<usize>) -> Option<Vec<u64>> {
        Some(self.rows.mask(rows).words().to_vec())
    }

    fn first_shown(&self, rows: Range<usize>) -> usize {
        self.part().first_shown(rows)
    }

    fn zone(&self, position: usize, zone: usize) -> Option<Zone<'_>> {
        self.part().zone(position, zone)
    }

    fn sketch(&self, position: usize) -> Option<&FieldSketch> {
        self.part().sketch(position)
    }
}
