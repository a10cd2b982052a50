//! Choosing what to merge.
//!
//! * A segment more than a twentieth dead is rewritten, once enough of its dead are out of every
//!   snapshot's sight: those, too, that died while older snapshots are held and see older versions.
//! * Past eight segments, the smallest are merged, as many as make the number fall.
//!
//! A table whose merge fails is left alone for a while, longer each time, and the others go on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use esker_arena::ReadCommits;
use esker_format::edit::Edit;
use esker_format::{Field, TableId};
use esker_log::sabotage::Bug;
use esker_table::Table as TableCore;
use esker_table::rewrite::{RewritePlan, SEGMENT_BYTES_MAX, decoded_bytes, variable_fields};
use esker_table::segment::Segment;
use esker_table::view::RowGroup;

use crate::Result;
use crate::engine::Engine;
use crate::maintenance::compaction::expired::Expired;
use crate::maintenance::compaction::leveled as key_levels;
use crate::maintenance::seal::frozen_groups;
use crate::maintenance::state::SkipCache;
use crate::maintenance::work::bytes_of;
use crate::maintenance::{FileSink, TableJob};

/// Segments a table may have before the smallest are merged.
const SEGMENTS_MAX: usize = 8;
/// A row group is due when one row in this many is dead.
const DEAD_SHARE: u64 = 20;
/// Frozen groups of a memory database are due when one row in this many is dead.
const MEMORY_DEAD_SHARE: u64 = 4;
/// The longest that a table whose merges fail is left alone, in seconds.
const BACK_OFF_SECONDS_MAX: u64 = 300;
/// The shortest time until the next look, when another thread is at the merge that is due.
const LOOK_AGAIN_MIN: Duration = Duration::from_millis(10);

/// How long a job is left alone that has failed so often before.
pub(crate) fn back_off_seconds(failures: u32) -> u64 {
    BACK_OFF_SECONDS_MAX.min(1 << failures.min(16))
}

/// What is most due in a table.
enum Picked {
    /// To be merged; none when nothing is due.
    RowGroups(Vec<RowGroup>),
    /// Its expired rows are to be deleted.
    Expired(RowGroup),
}

impl Engine {
    /// Merges what is most due in some table. False when nothing is. Tables whose last merge failed
    /// wait for their turn, unless the caller is not `patient`.
    ///
    /// # Errors
    /// What the first merge met that failed, when no other table had one that did not.
    pub(crate) fn merge_one(self: &Arc<Self>, patient: bool) -> Result<bool> {
        let readers = match Bug::MergeDropsSnapshotRows.is_planted() {
            true => ReadCommits::new(Vec::new(), self.visible()),
            false => self.read_commits(),
        };
        let tables: Vec<_> = {
            let catalogue = self.lock();
            let tables = catalogue.tables.values();
            tables.map(|e| (Arc::clone(e.writer.table()), frozen_groups(e))).collect()
        };
        let is_there = |id: &TableId| tables.iter().any(|(table, _)| table.id() == *id);
        let row_groups: BTreeSet<u64> = tables
            .iter()
            .flat_map(|(table, _)| {
                table.view().row_groups.iter().map(RowGroup::id).collect::<Vec<_>>()
            })
            .collect();
        let has_row_group = |id| row_groups.contains(&id);
        self.forget_expiring(has_row_group);
        self.maintenance_state().back_off.retain(|(id, _), _| is_there(id));
        self.maintenance_state().skip_cache.retain(|id, _| has_row_group(*id));
        self.maintenance_state().window_spans.retain(|id, _| has_row_group(*id));
        self.maintenance_state().segment_classes.retain(|id, _| has_row_group(*id));
        self.maintenance_state().retained.retain(|id, _| is_there(id));
        self.maintenance_state().compaction_cursors.retain(|id, _| is_there(id));
        let mut failed = None;
        for (table, frozen) in tables {
            if patient && self.is_backing_off(table.id(), TableJob::Merge) {
                continue;
            }
            let merged = self.merge_table(&table, &frozen, &readers);
            self.back_off(table.id(), TableJob::Merge, merged.is_err());
            match merged {
                Ok(true) => {
                    // Nothing else reports it then.
                    failed.iter().for_each(|e| self.note_error(e));
                    return Ok(true);
                }
                Ok(false) => {}
                Err(e) => failed = failed.or(Some(e)),
            }
        }
        // default: nothing failed
        failed.map_or(Ok(false), Err)
    }

    fn merge_table(
        self: &Arc<Self>,
        table: &Arc<TableCore>,
        frozen: &[RowGroup],
        readers: &ReadCommits,
    ) -> Result<bool> {
        let inputs = match self.pick_inputs(table, frozen, readers)? {
            Picked::RowGroups(inputs) => inputs,
            Picked::Expired(row_group) => return self.end_expired_of(table, &row_group),
        };
        if inputs.is_empty() {
            return Ok(false);
        }
        self.merge(table, inputs, readers, BTreeSet::new())?;
        Ok(true)
    }

    pub(crate) fn is_backing_off(&self, table: TableId, job: TableJob) -> bool {
        let now = self.environment.clock.monotonic_ns();
        let state = self.maintenance_state();
        state.back_off.get(&(table, job)).is_some_and(|(_, until)| *until > now)
    }

    /// A job of a table that failed is left alone for a second, then for two, and so on.
    pub(crate) fn back_off(&self, table: TableId, job: TableJob, failed: bool) {
        let now = self.environment.clock.monotonic_ns();
        let mut state = self.maintenance_state();
        if !failed {
            state.back_off.remove(&(table, job));
            return;
        }
        let (failures, until) = state.back_off.entry((table, job)).or_default();
        *until = now + back_off_seconds(*failures) * 1_000_000_000;
        *failures += 1;
    }

    /// How long until a job of a table that failed has its turn again.
    pub(crate) fn until_next_try(&self) -> Option<Duration> {
        let now = self.environment.clock.monotonic_ns();
        let state = self.maintenance_state();
        let next = state.back_off.values().map(|(_, until)| *until).min()?;
        Some(Duration::from_nanos(next.saturating_sub(now)).max(LOOK_AGAIN_MIN))
    }

    pub(crate) fn merge(
        self: &Arc<Self>,
        table: &Arc<TableCore>,
        inputs: Vec<RowGroup>,
        readers: &ReadCommits,
        emptied: BTreeSet<u64>,
    ) -> Result<()> {
        self.merge_telling(table, inputs, readers, emptied, &mut |_| {}).map(drop)
    }

    /// Merges, and tells how many rows each segment has as soon as it is written. Returns the
    /// segments; `None` when the table was dropped meanwhile.
    pub(crate) fn merge_telling(
        self: &Arc<Self>,
        table: &Arc<TableCore>,
        inputs: Vec<RowGroup>,
        readers: &ReadCommits,
        emptied: BTreeSet<u64>,
        tell: &mut dyn FnMut(u64),
    ) -> Result<Option<Vec<u64>>> {
        let through = self.watermarks.published();
        let ids: Vec<u64> = inputs.iter().map(RowGroup::id).collect();
        let plan = RewritePlan {
            table: Arc::clone(table),
            inputs,
            readers: readers.clone(),
            expired: self.oldest_moment(),
            through,
            database: self.database,
            rows_max: self.options.merged_rows_max,
            column_bytes_max: self.options.column_bytes_max,
            emptied,
            window_rows_min: self.window_rows_min(),
        };
        let clock = &*self.environment.clock;
        self.merges.count(clock, |bytes| {
            let share = self.options.merge_share_percent;
            let mut sink = FileSink::new(self).with_share(share);
            let rewritten = plan.build(&mut sink, tell)?;
            self.build_first_runs(table, &rewritten.segments, &mut sink)?;
            sink.keep();
            let segments = rewritten.entries();
            let written: Vec<u64> = segments.iter().map(|segment| segment.id).collect();
            *bytes = bytes_of(&rewritten);
            let edit = Edit::Merge { table: table.id(), inputs: ids.clone(), segments };
            if !self.install(table, rewritten, &edit)? {
                return Ok(None);
            }
            if let Some(compaction_cursor) =
                self.maintenance_state().compaction_cursors.get_mut(&table.id())
            {
                compaction_cursor.follow(&ids, &written);
            }
            Ok(Some(written))
        })
    }

    fn pick_inputs(
        &self,
        table: &Arc<TableCore>,
        frozen: &[RowGroup],
        readers: &ReadCommits,
    ) -> Result<Picked> {
        let view = table.view();
        let ready = |s: &&Arc<Segment>| !s.is_loading();
        let segments: Vec<RowGroup> =
            view.segments().filter(ready).map(|s| RowGroup::Segment(Arc::clone(s))).collect();
        let memory = if self.is_durable() { &[] } else { frozen };
        let due = segments
            .iter()
            .map(|row_group| (row_group, DEAD_SHARE))
            .chain(memory.iter().map(|row_group| (row_group, MEMORY_DEAD_SHARE)))
            .find(|(row_group, share)| self.is_due(row_group, *share, readers));
        if let Some((row_group, _)) = due {
            return Ok(Picked::RowGroups(vec![row_group.clone()]));
        }
        let with_frozen: Vec<RowGroup> = segments.iter().chain(memory).cloned().collect();
        match self.find_expired(table, &with_frozen, readers)? {
            Some(Expired::ForAll(row_group)) => return Ok(Picked::RowGroups(vec![row_group])),
            Some(Expired::ForLater(row_group)) => return Ok(Picked::Expired(row_group)),
            None => {}
        }
        if table.schema().is_ordered_by_key() {
            let mut compaction_cursor =
                self.maintenance_state().compaction_cursors.remove(&table.id());
            let rows_max = self.options.merge_rows_max;
            let picked = key_levels::pick(table, &segments, rows_max, &mut compaction_cursor);
            let compaction_cursor =
                compaction_cursor.map(|compaction_cursor| (table.id(), compaction_cursor));
            self.maintenance_state().compaction_cursors.extend(compaction_cursor);
            return picked.map(Picked::RowGroups);
        }
        if view.schema.stream().is_some() {
            let segments: Vec<_> = view.segments().filter(ready).cloned().collect();
            return self.pick_of_windows(&view.schema, &segments).map(Picked::RowGroups);
        }
        if segments.len() <= SEGMENTS_MAX {
            return Ok(Picked::RowGroups(Vec::new()));
        }
        let texts = variable_fields(view.schema.fields());
        let options = &self.options;
        smallest(segments, &texts, (options.merged_rows_max, options.column_bytes_max))
            .map(Picked::RowGroups)
    }

    /// True when enough rows of a row group are dead and out of every snapshot's sight.
    fn is_due(&self, row_group: &RowGroup, share: u64, readers: &ReadCommits) -> bool {
        let rows = row_group.row_count() as u64;
        if row_group.dead_count() * share <= rows {
            return false;
        }
        // Before the rows are looked at: what happens meanwhile counts as having come later.
        let events = row_group.delete_events();
        let skip_cache = self.maintenance_state().skip_cache.remove(&row_group.id());
        if let Some(skip_cache) = skip_cache.filter(|skip_cache| skip_cache.holds(events, readers))
        {
            self.maintenance_state().skip_cache.insert(row_group.id(), skip_cache);
            return false;
        }
        let (droppable, soon, newest) = row_group.count_droppable(readers);
        if droppable * share > rows {
            return true;
        }
        let missing = (rows / share + 1).saturating_sub(droppable + soon);
        let skip_cache = SkipCache { readers: readers.up_to(newest), newest, events, missing };
        self.maintenance_state().skip_cache.insert(row_group.id(), skip_cache);
        false
    }
}

/// The fewest of the smallest segments whose merging leaves fewer segments.
pub(super) fn smallest(
    mut segments: Vec<RowGroup>,
    texts: &[&Field],
    (rows_max, column_bytes_max): (usize, u64),
) -> Result<Vec<RowGroup>> {
    segments.sort_by_key(|row_group| (row_group.row_count(), row_group.id()));
    let (mut rows, mut bytes, mut sums) = (0u64, 0u64, vec![0u64; texts.len()]);
    let mut best = 0;
    for (i, row_group) in segments.iter().enumerate() {
        rows += row_group.row_count() as u64;
        bytes += row_group.byte_count();
        let decoded = decoded_bytes(std::slice::from_ref(row_group), texts)?;
        sums.iter_mut().zip(decoded).for_each(|(sum, bytes)| *sum += bytes);
        let outputs = rows.div_ceil(rows_max as u64).max(bytes.div_ceil(SEGMENT_BYTES_MAX)).max(1);
        // Of two outputs that a column ends one after the other, one is at least half full.
        let large = sums.iter().filter(|sum| **sum > column_bytes_max);
        let by_columns: u64 = large.map(|sum| 1 + sum.saturating_mul(2) / column_bytes_max).sum();
        let outputs = outputs + by_columns;
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
    segments.sort_by_key(RowGroup::id);
    Ok(segments)
}

#[cfg(test)]
mod tests;
