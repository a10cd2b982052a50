//! The groups that a part keeps of a rollup, as the rows of a part that queries read.

use std::ops::Range;

use esker_format::{ColumnSlice, Room};
use esker_query::{Fragment, RollupRun, RollupShape, ZONE_ROWS, Zone};

use super::source::{PartRun, query_error};

type Result<T> = esker_query::Result<T>;

impl RollupRun for PartRun<'_> {
    fn name(&self) -> &str {
        self.index_name()
    }

    fn shape(&self) -> Option<&RollupShape> {
        self.rollup_shape()
    }

    fn entries(&self) -> &dyn Fragment {
        self
    }
}

impl Fragment for PartRun<'_> {
    fn row_count(&self) -> usize {
        self.index_run().len()
    }

    fn visible_count(&self) -> Option<usize> {
        Some(self.index_run().len())
    }

    fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        let zone_end = (start / ZONE_ROWS + 1) * ZONE_ROWS;
        zone_end.min(start.saturating_add(rows_max)).min(self.index_run().len())
    }

    fn column<'a>(
        &'a self,
        position: usize,
        rows: Range<usize>,
        _: &'a Room,
    ) -> Result<ColumnSlice<'a>> {
        self.index_run().partial_column(position, rows).map_err(|e| query_error(&e))
    }

    fn visible(&self, _: Range<usize>) -> Option<Vec<u64>> {
        None
    }

    fn zone(&self, position: usize, zone: usize) -> Option<Zone<'_>> {
        let (least, greatest, null_count) = self.index_run().partial_zone(position, zone)?;
        Some(Zone { least, greatest, null_count })
    }
}
