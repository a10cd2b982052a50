//! What rollups have of an open group: the groups of blocks of its rows, computed by whoever asks
//! and kept with the group.
//!
//! ```text
//! rows     0 ────────────── 65536 ─────── 73728 ── 81920 ── 84000
//! blocks   └──── 8 × 8192 ────┘ └── 8192 ──┘ └─ 8192 ─┘ rest: scanned
//! ```
//!
//! A reader takes the longest blocks that begin where the one before ends. Of those that are not
//! known yet it computes as many as take some milliseconds. What a block comes to is of all of its
//! rows, which lie below the rows that the reader may see.

use std::ops::Range;
use std::sync::Arc;

use esker_format::{Column, ColumnSlice, FieldId, Room, Schema};
use esker_log::sabotage::Bug;
use esker_query::{PartialAggregates, RollupBlock, RollupBlocks, RollupShape, ZONE_ROWS};
use esker_table::group::{BlockGroups, Group};
use esker_table::table::SnapshotPart;
use esker_table::view::RowGroup;

use super::source::query_error;

type Result<T> = esker_query::Result<T>;

/// Lengths of blocks, the longest first.
const BLOCK_ROWS: [usize; 3] = [ZONE_ROWS * 64, ZONE_ROWS * 8, ZONE_ROWS];
/// The most rows whose blocks one reader computes.
const NEW_ROWS_MAX: usize = ZONE_ROWS * 16;
/// A block is left out that has more groups than one for so many rows.
const ROWS_OF_GROUP_MIN: usize = 32;

/// A rollup of the table, for the readers with a schema.
pub(super) struct TableRollup {
    id: u32,
    name: String,
    partials: PartialAggregates,
    shape: RollupShape,
    /// Where the fields are that it reads.
    reads: Vec<usize>,
}

/// A rollup of the rows of an open group.
pub(super) struct OpenRollup<'a> {
    part: &'a SnapshotPart,
    group: &'a Group,
    rollups: Arc<Vec<TableRollup>>,
    at: usize,
}

impl TableRollup {
    /// Those of a table.
    fn all(schema: &Schema) -> Vec<Self> {
        let rollups = schema.indexes().iter().filter(|index| index.is_rollup());
        let of = |index: &esker_format::schema::Index| {
            let partials = PartialAggregates::of(index, schema).ok()?;
            let place = |id: FieldId| {
                let at = schema.positions_of(&[id]).ok()?;
                at.first().copied()
            };
            let reads = partials.reads().iter().map(|id| place(*id)).collect::<Option<_>>()?;
            // default: it is among those that are read
            let shape = partials.shape(&|id| place(id).unwrap_or(usize::MAX));
            Some(Self { id: index.id.0, name: index.name.clone(), partials, shape, reads })
        };
        rollups.filter_map(of).collect()
    }
}

impl<'a> OpenRollup<'a> {
    /// Those of a part, which is a group that all readers share.
    pub(super) fn all(part: &'a SnapshotPart) -> Vec<Self> {
        let (RowGroup::Group(group), schema) = (part.row_group(), part.schema()) else {
            return Vec::new();
        };
        if schema.indexes().iter().all(|index| !index.is_rollup()) {
            return Vec::new();
        }
        let kept = group.partial_blocks();
        // default: nobody has read it by this schema
        let rollups = kept.reading::<Vec<TableRollup>>(schema).unwrap_or_else(|| {
            let made = Arc::new(TableRollup::all(schema));
            kept.keep_reading(schema, Arc::clone(&made) as _);
            made
        });
        let open = |at| Self { part, group, rollups: Arc::clone(&rollups), at };
        (0..rollups.len()).map(open).collect()
    }

    #[allow(clippy::indexing_slicing, reason = "it is one of them")]
    fn rollup(&self) -> &TableRollup {
        &self.rollups[self.at]
    }

    /// What a block comes to.
    fn compute(&self, rows: &Range<usize>) -> Result<BlockGroups> {
        let TableRollup { partials, reads, .. } = self.rollup();
        let schema = self.part.schema();
        let mut columns = Vec::with_capacity(reads.len());
        for position in reads {
            let field = schema.fields().get(*position);
            let field = field.ok_or_else(|| broken("a field is gone"))?;
            let (mut column, mut start) = (Column::empty(field.data_type), rows.start);
            while start < rows.end {
                let end = self.part.batch_end(start, rows.end - start).clamp(start + 1, rows.end);
                let room = Room::default();
                let slice = self.part.column(*position, start..end, &room);
                let slice = slice.map_err(|e| query_error(&e))?;
                column.append(&slice).map_err(|e| broken(&e.to_string()))?;
                start = end;
            }
            columns.push(column);
        }
        let slices: Vec<ColumnSlice<'_>> = columns.iter().map(ColumnSlice::from).collect();
        partials.compute(&slices, rows.len(), rows.len() / ROWS_OF_GROUP_MIN)
    }
}

fn broken(why: &str) -> esker_query::Error {
    let message = format!("partial aggregates of an open group: {why}");
    esker_query::Error::new(esker_query::ErrorKind::Corrupt, message)
}

impl RollupBlocks for OpenRollup<'_> {
    fn name(&self) -> &str {
        &self.rollup().name
    }

    fn shape(&self) -> &RollupShape {
        &self.rollup().shape
    }

    fn blocks(&self) -> Result<Vec<RollupBlock>> {
        let (id, kept) = (self.rollup().id, self.group.partial_blocks());
        let len = match Bug::TailBlockPastPrefix.is_planted() {
            true => self.group.row_count(),
            false => self.part.row_count(),
        };
        let (mut blocks, mut start, mut left) = (Vec::new(), 0, NEW_ROWS_MAX);
        while start + ZONE_ROWS <= len {
            let fits = |size: &usize| start.is_multiple_of(*size) && start + size <= len;
            let mut found = None;
            for size in BLOCK_ROWS.into_iter().filter(fits) {
                let rows = start..start + size;
                let groups = match kept.known(id, &rows) {
                    Some(groups) => groups,
                    None if size <= left => {
                        left -= size;
                        kept.keep(id, &rows, self.compute(&rows)?)
                    }
                    None => continue,
                };
                found = Some(RollupBlock { rows, groups });
                break;
            }
            // What would take long to compute is scanned.
            // default: one zone
            start = found.as_ref().map_or(start + ZONE_ROWS, |block| block.rows.end);
            blocks.extend(found);
        }
        Ok(blocks)
    }
}
