//! Choosing what to merge.
//!
//! * A segment more than a twentieth dead is rewritten, once enough of its dead are out of every
//!   snapshot's sight.
//! * Past eight segments, the smallest are merged, as many as make the number fall.

use std::sync::Arc;

use esker_format::edit::Edit;
use esker_format::segment::SEGMENT_ROWS_MAX;
use esker_table::Table as TableCore;
use esker_table::rewrite::{RewritePlan, SEGMENT_BYTES_MAX};
use esker_table::segment::Segment;
use esker_table::view::Unit;

use super::FileSink;
use super::seal::frozen_groups;
use crate::Result;
use crate::engine::Engine;

/// Segments a table may have before the smallest are merged.
const SEGMENTS_MAX: usize = 8;
/// A unit is due when one row in this many is dead.
const DEAD_SHARE: u64 = 20;
/// Frozen groups of a memory database are due when one row in this many is dead.
const MEMORY_DEAD_SHARE: u64 = 4;

impl Engine {
    /// Merges what is most due in some table. False when nothing is.
    pub(super) fn merge_one(self: &Arc<Self>) -> Result<bool> {
        let oldest = match esker_log::sabotage::planted("merge_drops_snapshot_rows") {
            true => self.visible(),
            false => self.oldest(),
        };
        let tables: Vec<_> = {
            let catalogue = self.lock();
            let tables = catalogue.tables.values();
            tables.map(|e| (Arc::clone(e.writer.table()), frozen_groups(e))).collect()
        };
        for (table, frozen) in tables {
            let inputs = self.pick_inputs(&table, &frozen, oldest);
            if !inputs.is_empty() {
                self.merge(&table, inputs, oldest)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn merge(
        self: &Arc<Self>,
        table: &Arc<TableCore>,
        inputs: Vec<Unit>,
        oldest: u64,
    ) -> Result<()> {
        let through = self.watermarks.published();
        let ids = inputs.iter().map(Unit::id).collect();
        let plan = RewritePlan {
            table: Arc::clone(table),
            inputs,
            oldest,
            through,
            database: self.database,
        };
        let share = self.options.merge_share_percent;
        let mut sink = FileSink::new(self, table.schema()).with_share(share);
        let rewritten = plan.build(&mut sink)?;
        sink.keep();
        let segments = rewritten.entries();
        let edit = Edit::Merge { table: table.id(), inputs: ids, segments };
        self.install(table, rewritten, &edit)?;
        Ok(())
    }

    fn pick_inputs(&self, table: &Arc<TableCore>, frozen: &[Unit], oldest: u64) -> Vec<Unit> {
        let view = table.view();
        let ready = |s: &&Arc<Segment>| !s.is_loading();
        let segments: Vec<Unit> =
            view.segments().filter(ready).map(|s| Unit::Segment(Arc::clone(s))).collect();
        let memory = if self.is_durable() { &[] } else { frozen };
        let due = segments
            .iter()
            .map(|unit| (unit, DEAD_SHARE))
            .chain(memory.iter().map(|unit| (unit, MEMORY_DEAD_SHARE)))
            .find(|(unit, share)| self.is_due(unit, *share, oldest));
        if let Some((unit, _)) = due {
            return vec![unit.clone()];
        }
        if segments.len() > SEGMENTS_MAX { smallest(segments) } else { Vec::new() }
    }

    /// True when enough rows of a unit are dead and out of every snapshot's sight.
    fn is_due(&self, unit: &Unit, share: u64, oldest: u64) -> bool {
        let rows = unit.row_count() as u64;
        if unit.dead_count() * share <= rows {
            return false;
        }
        // Counting costs time: not again before some snapshot has moved.
        let mut state = self.maintenance_state();
        if state.judged.get(&unit.id()).is_some_and(|at| *at == oldest) {
            return false;
        }
        let droppable = (0..unit.row_count())
            .filter(|row| {
                let deleted = unit.deleted(*row);
                deleted != 0 && deleted <= oldest
            })
            .count() as u64;
        if droppable * share > rows {
            state.judged.remove(&unit.id());
            return true;
        }
        state.judged.insert(unit.id(), oldest);
        false
    }
}

/// The fewest of the smallest segments whose merging leaves fewer segments.
fn smallest(mut segments: Vec<Unit>) -> Vec<Unit> {
    segments.sort_by_key(|unit| (unit.row_count(), unit.id()));
    let (mut rows, mut bytes) = (0u64, 0u64);
    let mut best = 0;
    for (i, unit) in segments.iter().enumerate() {
        rows += unit.row_count() as u64;
        bytes += unit.byte_count();
        let outputs =
            rows.div_ceil(SEGMENT_ROWS_MAX as u64).max(bytes.div_ceil(SEGMENT_BYTES_MAX)).max(1);
        let falls = outputs <= i as u64;
        // As many as fit one output; else the first set that makes the number fall.
        if falls && (outputs == 1 || best == 0) {
            best = i + 1;
        }
        if best > 0 && outputs > 1 {
            break;
        }
    }
    segments.truncate(best);
    // By age, so that versions of one row stay in order.
    segments.sort_by_key(Unit::id);
    segments
}
