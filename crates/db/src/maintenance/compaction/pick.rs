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
use esker_table::Table as TableCore;
use esker_table::rewrite::{RewritePlan, SEGMENT_BYTES_MAX, decoded_bytes, variable_fields};
use esker_table::segment::Segment;
use esker_table::view::Unit;

use crate::Result;
use crate::engine::Engine;
use crate::maintenance::compaction::expired::Expired;
use crate::maintenance::compaction::leveled as key_levels;
use crate::maintenance::seal::frozen_groups;
use crate::maintenance::work::bytes_of;
use crate::maintenance::{FileSink, TableJob};

/// Segments a table may have before the smallest are merged.
const SEGMENTS_MAX: usize = 8;
/// A unit is due when one row in this many is dead.
const DEAD_SHARE: u64 = 20;
/// Frozen groups of a memory database are due when one row in this many is dead.
const MEMORY_DEAD_SHARE: u64 = 4;
/// The longest that a table whose merges fail is left alone, in seconds.
const BACK_OFF_SECONDS_MAX: u64 = 300;
/// The shortest time until the next look, when another thread is at the merge that is due.
const LOOK_AGAIN_MIN: Duration = Duration::from_millis(10);

/// What is most due in a table.
enum Picked {
    /// To be merged; none when nothing is due.
    Units(Vec<Unit>),
    /// Its expired rows are to be deleted.
    Expired(Unit),
}

impl Engine {
    /// Merges what is most due in some table. False when nothing is. Tables whose last merge failed
    /// wait for their turn, unless the caller is not `patient`.
    ///
    /// # Errors
    /// What the first merge met that failed, when no other table had one that did not.
    pub(crate) fn merge_one(self: &Arc<Self>, patient: bool) -> Result<bool> {
        let readers = match esker_log::sabotage::planted("merge_drops_snapshot_rows") {
            true => ReadCommits::new(Vec::new(), self.visible()),
            false => self.read_commits(),
        };
        let tables: Vec<_> = {
            let catalogue = self.lock();
            let tables = catalogue.tables.values();
            tables.map(|e| (Arc::clone(e.writer.table()), frozen_groups(e))).collect()
        };
        let is_there = |id: &TableId| tables.iter().any(|(table, _)| table.id() == *id);
        let units: BTreeSet<u64> = tables
            .iter()
            .flat_map(|(table, _)| table.view().units.iter().map(Unit::id).collect::<Vec<_>>())
            .collect();
        let has_unit = |id| units.contains(&id);
        self.forget_expiring(has_unit);
        self.maintenance_state().back_off.retain(|(id, _), _| is_there(id));
        self.maintenance_state().judged.retain(|id, _| has_unit(*id));
        self.maintenance_state().sweeps.retain(|id, _| is_there(id));
        let mut failed = None;
        for (table, frozen) in tables {
            if patient && self.is_backing_off(table.id(), TableJob::Merge) {
                continue;
            }
            let merged = self.merge_table(&table, &frozen, &readers);
            self.back_off(table.id(), TableJob::Merge, merged.is_err());
            match merged {
                Ok(true) => {
                    // Nobody else tells of it then.
                    failed.iter().for_each(|e| self.note_error(e));
                    return Ok(true);
                }
                Ok(false) => {}
                Err(e) => failed = failed.or(Some(e)),
            }
        }
        failed.map_or(Ok(false), Err)
    }

    fn merge_table(
        self: &Arc<Self>,
        table: &Arc<TableCore>,
        frozen: &[Unit],
        readers: &ReadCommits,
    ) -> Result<bool> {
        let inputs = match self.pick_inputs(table, frozen, readers)? {
            Picked::Units(inputs) => inputs,
            Picked::Expired(unit) => return self.end_expired_of(table, &unit),
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
        let seconds = BACK_OFF_SECONDS_MAX.min(1 << (*failures).min(16));
        *failures += 1;
        *until = now + seconds * 1_000_000_000;
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
        inputs: Vec<Unit>,
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
        inputs: Vec<Unit>,
        readers: &ReadCommits,
        emptied: BTreeSet<u64>,
        tell: &mut dyn FnMut(u64),
    ) -> Result<Option<Vec<u64>>> {
        let through = self.watermarks.published();
        let ids: Vec<u64> = inputs.iter().map(Unit::id).collect();
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
            if let Some(sweep) = self.maintenance_state().sweeps.get_mut(&table.id()) {
                sweep.follow(&ids, &written);
            }
            Ok(Some(written))
        })
    }

    fn pick_inputs(
        &self,
        table: &Arc<TableCore>,
        frozen: &[Unit],
        readers: &ReadCommits,
    ) -> Result<Picked> {
        let view = table.view();
        let ready = |s: &&Arc<Segment>| !s.is_loading();
        let segments: Vec<Unit> =
            view.segments().filter(ready).map(|s| Unit::Segment(Arc::clone(s))).collect();
        let memory = if self.is_durable() { &[] } else { frozen };
        let due = segments
            .iter()
            .map(|unit| (unit, DEAD_SHARE))
            .chain(memory.iter().map(|unit| (unit, MEMORY_DEAD_SHARE)))
            .find(|(unit, share)| self.is_due(unit, *share, readers));
        if let Some((unit, _)) = due {
            return Ok(Picked::Units(vec![unit.clone()]));
        }
        let with_frozen: Vec<Unit> = segments.iter().chain(memory).cloned().collect();
        match self.find_expired(table, &with_frozen, readers)? {
            Some(Expired::ForAll(unit)) => return Ok(Picked::Units(vec![unit])),
            Some(Expired::ForLater(unit)) => return Ok(Picked::Expired(unit)),
            None => {}
        }
        if table.schema().is_ordered_by_key() {
            let mut sweep = self.maintenance_state().sweeps.remove(&table.id());
            let rows_max = self.options.merge_rows_max;
            let picked = key_levels::pick(table, &segments, rows_max, &mut sweep);
            let sweep = sweep.map(|sweep| (table.id(), sweep));
            self.maintenance_state().sweeps.extend(sweep);
            return picked.map(Picked::Units);
        }
        if segments.len() <= SEGMENTS_MAX {
            return Ok(Picked::Units(Vec::new()));
        }
        let texts = variable_fields(view.schema.fields());
        let options = &self.options;
        smallest(segments, &texts, (options.merged_rows_max, options.column_bytes_max))
            .map(Picked::Units)
    }

    /// True when enough rows of a unit are dead and out of every snapshot's sight.
    fn is_due(&self, unit: &Unit, share: u64, readers: &ReadCommits) -> bool {
        let rows = unit.row_count() as u64;
        if unit.dead_count() * share <= rows {
            return false;
        }
        // Before the rows are looked at: what happens meanwhile counts as having come later.
        let events = unit.death_events();
        let judged = self.maintenance_state().judged.remove(&unit.id());
        if let Some(judged) = judged.filter(|judged| judged.holds(events, readers)) {
            self.maintenance_state().judged.insert(unit.id(), judged);
            return false;
        }
        let (droppable, soon, newest) = unit.count_droppable(readers);
        if droppable * share > rows {
            return true;
        }
        let missing = (rows / share + 1).saturating_sub(droppable + soon);
        let judged = Judged { readers: readers.up_to(newest), newest, events, missing };
        self.maintenance_state().judged.insert(unit.id(), judged);
        false
    }
}

/// A unit that is not worth rewriting yet. Counting costs time: it is not done again before it may
/// come to something else.
pub(crate) struct Judged {
    /// Those who might see a version that was dead then: whoever comes and goes later does not.
    readers: ReadCommits,
    /// When the last of the dead had died.
    newest: u64,
    /// Deaths, and successors of dead rows, until then.
    events: u64,
    /// How many more there have to be for the same readers.
    missing: u64,
}

impl Judged {
    fn holds(&self, events: u64, readers: &ReadCommits) -> bool {
        let readers = readers.up_to(self.newest);
        let same_time = self.readers.since() == readers.since();
        self.readers.are_held_alike(&readers)
            && match self.missing {
                0 => same_time,
                missing => events < self.events + missing,
            }
    }
}

/// The fewest of the smallest segments whose merging leaves fewer segments.
fn smallest(
    mut segments: Vec<Unit>,
    texts: &[&Field],
    (rows_max, column_bytes_max): (usize, u64),
) -> Result<Vec<Unit>> {
    segments.sort_by_key(|unit| (unit.row_count(), unit.id()));
    let (mut rows, mut bytes, mut sums) = (0u64, 0u64, vec![0u64; texts.len()]);
    let mut best = 0;
    for (i, unit) in segments.iter().enumerate() {
        rows += unit.row_count() as u64;
        bytes += unit.byte_count();
        let decoded = decoded_bytes(std::slice::from_ref(unit), texts)?;
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
    segments.sort_by_key(Unit::id);
    Ok(segments)
}

#[cfg(test)]
mod tests;
