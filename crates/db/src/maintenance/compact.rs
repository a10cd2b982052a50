//! Compaction on demand: every segment with a dead row is rewritten, small ones become one.
//!
//! Maintenance does the same by itself, but only once it pays; this does all of it, so that the
//! database takes as little space as it can.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::TableId;
use esker_format::segment::SEGMENT_ROWS_MAX;
use esker_table::Table as TableCore;
use esker_table::view::Unit;

use super::key_levels;
use super::value_files::Thrift;
use crate::engine::Engine;
use crate::{Database, Result};

/// What a compaction did, or would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// Segments that were rewritten.
    pub rewritten: u64,
    /// Bytes of segments and value files before.
    pub bytes_before: u64,
    /// Bytes of segments and value files after. A dry run does not know: it says what was before.
    pub bytes_after: u64,
}

impl Database {
    /// Rewrites what has dead rows and makes one segment of several small ones, beside readers and
    /// writers. `progress` is told tables done and tables there are. A dry run only counts.
    ///
    /// Rows that a snapshot still sees stay.
    ///
    /// # Errors
    /// `ReadOnly`, `NoSpace`, `Io`, `Corrupt`.
    pub fn compact(
        &self,
        dry_run: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<CompactReport> {
        let engine = self.engine();
        let ids: Vec<TableId> = engine.lock_for_change()?.tables.keys().copied().collect();
        let mut report =
            CompactReport { bytes_before: engine.segment_bytes(), ..Default::default() };
        for (done, id) in (0..).zip(&ids) {
            progress(done, ids.len() as u64);
            report.rewritten += engine.exclusively(|engine| engine.compact_table(*id, dry_run))?;
        }
        progress(ids.len() as u64, ids.len() as u64);
        if !dry_run {
            // Each once only: what it is copied to has a higher number.
            let thrift = Thrift::Compact { before: engine.new_unit() };
            while engine.exclusively(|engine| engine.empty_value_file(thrift))? {}
            // The log still has what was sealed.
            engine.exclusively(|engine| engine.make_checkpoint())?;
            engine.exclusively(|engine| engine.remove_unused_values())?;
        }
        report.bytes_after = engine.segment_bytes();
        Ok(report)
    }

    /// Counts the rows of every table anew, and corrects the counter of those where it was wrong.
    /// Returns name, counted before, and counted now, of these.
    ///
    /// # Errors
    /// None today.
    pub fn recount(&self, dry_run: bool) -> Result<Vec<(String, u64, u64)>> {
        let engine = self.engine();
        let mut wrong = Vec::new();
        for name in self.tables() {
            // Nobody changes the counter while the lock is held.
            let catalogue = engine.lock();
            let Some(core) = engine.names.load().newest().get(&name).cloned() else { continue };
            let view = core.view();
            let ready = view.units.iter().filter(|unit| !unit.is_loading());
            let now: u64 = ready.map(|u| u.row_count() as u64 - u.dead_count()).sum();
            let before = core.live_rows();
            if now != before {
                if !dry_run {
                    core.add_live_rows(now.wrapping_sub(before).cast_signed());
                }
                wrong.push((name, before, now));
            }
            drop(catalogue);
        }
        Ok(wrong)
    }
}

impl Engine {
    fn segment_bytes(&self) -> u64 {
        let catalogue = self.lock();
        let views = catalogue.tables.values().map(|entry| entry.writer.table().view());
        let segments: u64 =
            views.map(|view| view.segments().map(|s| s.file_bytes()).sum::<u64>()).sum();
        segments + self.value_bytes()
    }

    /// Returns how many segments were rewritten.
    fn compact_table(self: &Arc<Self>, id: TableId, dry_run: bool) -> Result<u64> {
        let table = {
            let mut catalogue = self.lock_for_change()?;
            let Some(entry) = catalogue.tables.get_mut(&id) else { return Ok(0) };
            let large = entry
                .writer
                .open_group()
                .is_some_and(|group| group.group().byte_count() >= self.options.small_group_bytes);
            if large && !dry_run {
                entry.writer.freeze();
            }
            let table = Arc::clone(entry.writer.table());
            self.recount_frozen(&catalogue);
            table
        };
        if dry_run {
            return Ok(self.compaction_batches(&table)?.iter().map(|b| b.len() as u64).sum());
        }
        while self.seal_frozen()? {}
        self.finish_moving()?;
        let mut rewritten = 0;
        for inputs in self.compaction_batches(&table)? {
            rewritten += inputs.len() as u64;
            let oldest = self.oldest();
            self.merge(&table, inputs, oldest, BTreeSet::new())?;
        }
        Ok(rewritten)
    }

    /// What is rewritten together.
    fn compaction_batches(&self, table: &Arc<TableCore>) -> Result<Vec<Vec<Unit>>> {
        let mut worth = self.worth_rewriting(table)?;
        if table.schema().is_ordered_by_key() {
            let segments: Vec<_> = table.view().segments().cloned().collect();
            let ready = segments.into_iter().filter(|segment| !segment.is_loading());
            let units: Vec<Unit> = ready.map(Unit::Segment).collect();
            if key_levels::overlap(table, &units)? {
                worth = units;
            }
        }
        Ok(batches(worth))
    }

    /// Segments with rows or long values that nobody can see any more, and small ones where there
    /// are several.
    fn worth_rewriting(&self, table: &Arc<TableCore>) -> Result<Vec<Unit>> {
        let oldest = self.oldest();
        let view = table.view();
        let fields = view.fields_since(oldest);
        let segments = view.segments().filter(|s| !s.is_loading());
        let units: Vec<Unit> = segments.map(|s| Unit::Segment(Arc::clone(s))).collect();
        let is_small = |unit: &&Unit| unit.row_count() < SEGMENT_ROWS_MAX / 2;
        let small = units.iter().filter(is_small).count();
        let has_dead = |unit: &Unit| {
            unit.dead_count() > 0
                && (0..unit.row_count()).any(|row| (1..=oldest).contains(&unit.deleted(row)))
        };
        let has_dropped = |unit: &Unit| match unit {
            Unit::Segment(segment) => !segment.has_long_only_of(&fields),
            Unit::Group(_) => false,
        };
        let (schema, expired_us) = (table.schema(), self.oldest_time_us());
        let mut worth = Vec::new();
        for unit in &units {
            let has_expired = match schema.expiry_field() {
                Some(field) => unit.count_expired(field, expired_us, oldest)? > 0,
                None => false,
            };
            let is_merged = small > 1 && is_small(&unit);
            if is_merged || has_expired || has_dropped(unit) || has_dead(unit) {
                worth.push(unit.clone());
            }
        }
        Ok(worth)
    }
}

/// As many as make about one full segment, by age.
fn batches(units: Vec<Unit>) -> Vec<Vec<Unit>> {
    let mut batches: Vec<Vec<Unit>> = Vec::new();
    let mut rows = 0;
    for unit in units {
        if batches.is_empty() || rows + unit.row_count() > SEGMENT_ROWS_MAX {
            batches.push(Vec::new());
            rows = 0;
        }
        rows += unit.row_count();
        if let Some(batch) = batches.last_mut() {
            batch.push(unit);
        }
    }
    batches
}
