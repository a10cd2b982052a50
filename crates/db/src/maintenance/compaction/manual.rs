//! Compaction on demand: every segment with a dead row is rewritten, small ones become one.
//!
//! Maintenance does the same by itself, but only once it pays; this does all of it, so that the
//! database takes as little space as it can.

use std::sync::Arc;

use esker_format::TableId;
use esker_table::Table as TableCore;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::maintenance::compaction::table::Progress;
use crate::maintenance::value_gc::CollectionThreshold;
use crate::{Bucket, Database, Error, ErrorKind, Result, Table};

/// What a compaction did, or would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// writers. Segments of a table that is ordered by key are disjoint then. A dry run only
    /// counts.
    ///
    /// `progress` gets how many rows are done, of how many that all tables had at first: at
    /// the beginning, with each segment that is written, and once all are.
    ///
    /// Rows that a snapshot still sees stay. Erasures that wait for nothing come to their end.
    ///
    /// # Errors
    /// `ReadOnly`, `NoSpace`, `Io`, `Corrupt`.
    pub fn compact(
        &self,
        dry_run: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<CompactReport> {
        let engine = self.engine();
        let tables: Vec<(TableId, u64)> = {
            let catalogue = engine.lock_for_change()?;
            let tables = catalogue.tables.iter();
            tables.map(|(id, entry)| (*id, rows_of(entry.writer.table()))).collect()
        };
        let mut report =
            CompactReport { bytes_before: engine.segment_bytes(), ..Default::default() };
        let mut progress = Progress::new(progress, tables.iter().map(|(_, rows)| rows).sum());
        for (id, rows) in tables {
            progress.begin(rows);
            report.rewritten +=
                engine.exclusively(|engine| engine.compact_table(id, dry_run, &mut progress))?;
            progress.end();
        }
        if !dry_run {
            // Each once only: what it is copied to has a higher number.
            let threshold = CollectionThreshold::Compact { before: engine.new_row_group() };
            while engine.exclusively(|engine| engine.empty_value_file(threshold))? {}
            // The log still has what was sealed.
            engine.exclusively(Engine::make_requested_checkpoint)?;
            engine.exclusively(|engine| engine.remove_unused_values())?;
            // Those that wait for readers go on in the background.
            while engine.exclusively(|engine| engine.erase_one(false))? {}
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
            // No commit changes the counter while the lock is held.
            let catalogue = engine.lock();
            let Some(core) = engine.names.load().newest().get(&name).cloned() else { continue };
            let view = core.view();
            let ready = view.row_groups.iter().filter(|row_group| !row_group.is_loading());
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

impl Bucket {
    /// Rewrites what this bucket has of dead and expired entries, and makes few, disjoint segments
    /// of those it has, as [`Database::compact`] does for all tables, whose `progress` this one
    /// has, too. Files of long values are of the whole database, and stay as they are.
    ///
    /// ```
    /// # let db = esker::Options::new().memory()?;
    /// let bucket = db.bucket("letters")?;
    /// bucket.load((0..70_000).map(|n| (n.to_string(), "x")))?;
    /// bucket.compact(&mut |done, all| assert!(done <= all))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` when the bucket has been dropped; else as for [`Database::compact`].
    pub fn compact(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<CompactReport> {
        let engine = &self.as_table().engine;
        engine.compact_alone(self.as_table().core(), false, progress)
    }
}

impl Table {
    /// The same for this table, as [`Database::compact`] does for all: files of long values are of
    /// the whole database, and stay as they are. A dry run only counts.
    ///
    /// # Errors
    /// `NotFound` when the table has been dropped; else as for [`Database::compact`].
    pub fn compact(
        &self,
        dry_run: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<CompactReport> {
        self.engine.compact_alone(self.core(), dry_run, progress)
    }
}

impl Engine {
    fn compact_alone(
        self: &Arc<Self>,
        table: &Arc<TableCore>,
        dry_run: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<CompactReport> {
        let kind = if table.schema().is_bucket() { "bucket" } else { "table" };
        if !self.lock_for_change()?.tables.contains_key(&table.id()) {
            let message = format!("the {kind} has been dropped");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let rows = rows_of(table);
        let bytes_before = bytes_of(table);
        let mut progress = Progress::new(progress, rows);
        progress.begin(rows);
        let rewritten =
            self.exclusively(|engine| engine.compact_table(table.id(), dry_run, &mut progress))?;
        progress.end();
        Ok(CompactReport { rewritten, bytes_before, bytes_after: bytes_of(table) })
    }
}

impl Engine {
    /// Bytes of segments and value files.
    pub(crate) fn segment_bytes(&self) -> u64 {
        let catalogue = self.lock();
        let tables = catalogue.tables.values();
        let segments: u64 = tables.map(|entry| bytes_of(entry.writer.table())).sum();
        segments + self.value_bytes()
    }
}

/// Bytes of the segments of a table.
fn bytes_of(table: &TableCore) -> u64 {
    table.view().segments().map(|segment| segment.file_bytes()).sum()
}

/// Rows of a table, the dead included.
fn rows_of(table: &TableCore) -> u64 {
    let view = table.view();
    let ready = view.row_groups.iter().filter(|row_group| !row_group.is_loading());
    ready.map(|row_group| row_group.row_count() as u64).sum()
}

#[cfg(test)]
mod tests;
