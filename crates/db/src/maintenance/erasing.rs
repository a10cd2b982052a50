//! Erasures on their way: what is dead in their tables goes from all files.
//!
//! A look at an erasure does the first thing that is due, and says what it waits for where nothing
//! is. It is not done before all of these hold, in this order:
//!
//! 1. No row group of its tables has a row that had died by its commit. One that has is written
//!    anew, for itself, as soon as a reader less sees such a row; an open group is sealed before.
//! 2. No value file of before has garbage.
//! 3. A checkpoint was made, by which the log and older checkpoints went, and the reserve of the
//!    log has none of its bytes.
//! 4. No file of a segment of before, or of a run of one, is there that no table has: those go
//!    with their last reader. No value file of before is there that could not be removed.
//!
//! What is found in 2 and 4 is of all tables: a file does not say which table it was of, and one
//! that was dropped is not there to ask. "Before" is a number of row groups and value files, which
//! rise; it is drawn when 1 holds for the first time.
//!
//! Bytes that are left are counted for 1: what comes then is known by name, not by bytes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use esker_arena::ReadCommits;
use esker_format::{Room, Schema, TableId, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_table::Table as TableCore;
use esker_table::segment::{is_unnamed_run, run_file_number, run_of_file, segment_file_id};
use esker_table::view::RowGroup;

use super::compaction::pick::back_off_seconds;
use super::unfinished_erasures::{Erasures, LOOK, LOOK_MIN, Unfinished, after};
use super::value_gc::{CollectionThreshold, is_of_file};
use crate::engine::Engine;
use crate::erasure::{ERASURES, ErasureInfo, Record};
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

/// What a look came to.
enum Look {
    /// Something was done.
    Did,
    /// Others hold what is to go.
    Waits(&'static str),
    Done,
}

impl Engine {
    /// Does what is due for the first erasure that has something. False where there is none.
    pub(crate) fn erase_one(self: &Arc<Self>, patient: bool) -> Result<bool> {
        if self.options.read_only {
            return Ok(false);
        }
        self.find_erasures()?;
        let now = self.environment.clock.monotonic_ns();
        let numbers: Vec<u64> = {
            let mut state = self.maintenance_state();
            let is_early = patient && state.erasures.next_look_ns > now;
            if state.erasures.is_empty() || is_early {
                return Ok(false);
            }
            state.erasures.looked_ns = now;
            state.erasures.next_look_ns = after(now, LOOK);
            state.erasures.unfinished.iter().map(|one| one.record.number).collect()
        };
        let mut failed = None;
        for number in numbers {
            if patient && self.with_erasure(number, |one| one.retry_ns > now) == Some(true) {
                continue;
            }
            match self.erase(number) {
                Ok(true) => {
                    self.maintenance_state().erasures.next_look_ns = 0;
                    return Ok(true);
                }
                Ok(false) => {}
                Err(e) => {
                    self.leave_alone(number, &e);
                    failed = failed.or(Some(e));
                }
            }
        }
        let now = self.environment.clock.monotonic_ns();
        self.maintenance_state().erasures.end_look(now);
        match failed {
            Some(e) if !patient => Err(e),
            _ => Ok(false),
        }
    }

    /// An erasure that failed is left alone for a second, then for two, and so on. Writers that
    /// wait for memory do not get its error.
    fn leave_alone(&self, number: u64, error: &Error) {
        let now = self.environment.clock.monotonic_ns();
        self.with_erasure(number, |one| {
            one.waits_for = match error.kind() {
                ErrorKind::Corrupt => "damage",
                ErrorKind::NoSpace => "space",
                _ => "failure",
            };
            one.retry_ns = after(now, Duration::from_secs(back_off_seconds(one.failures)));
            one.failures = one.failures.saturating_add(1);
        });
        self.note_erasure_error(error);
    }

    fn note_erasure_error(&self, error: &Error) {
        self.maintenance_state().last_error = Some(error.to_string());
    }

    /// How long until erasures are looked at.
    pub(super) fn until_erasures(&self) -> Option<Duration> {
        let state = self.maintenance_state();
        let wait_ns =
            state.erasures.next_look_ns.saturating_sub(self.environment.clock.monotonic_ns());
        (!state.erasures.is_empty()).then(|| Duration::from_nanos(wait_ns).max(LOOK_MIN / 4))
    }

    fn erasures_changed_at(&self) -> Option<u64> {
        let names = self.names.load();
        let bucket = names.newest().get(ERASURES).filter(|table| table.schema().is_bucket());
        bucket.map(|bucket| bucket.changed_at())
    }

    /// True when the bucket of erasures has changed since it was read.
    pub(super) fn has_new_erasures(&self, erasures: &Erasures) -> bool {
        erasures.may_come && erasures.read_at != Some(self.erasures_changed_at())
    }

    /// Notes that rows are erased: maintenance looks for that when a transaction ends.
    pub(crate) fn expect_erasures(&self) {
        self.maintenance_state().erasures.may_come = true;
    }

    /// Reads the bucket of erasures, where it has changed.
    fn find_erasures(self: &Arc<Self>) -> Result<()> {
        let read_at = self.maintenance_state().erasures.read_at;
        if read_at == Some(self.erasures_changed_at()) {
            return Ok(());
        }
        // A change is noted before it is published, and both under the commit lock.
        let changed_at = {
            let _catalogue = self.lock();
            self.erasures_changed_at()
        };
        let mut found = Vec::new();
        let is_forgotten = read_at.is_none() && Bug::ErasureForgottenAtOpen.is_planted();
        if changed_at.is_some() && !is_forgotten {
            // What has been numbered is to be seen, and is not erased before it is durable.
            self.wait_for_published()?;
            found = self.unfinished_records();
        }
        {
            // A number may be that of another erasure by now.
            let mut state = self.maintenance_state();
            let unfinished = &mut state.erasures.unfinished;
            unfinished.retain(|one| found.contains(&one.record));
            found.retain(|record| unfinished.iter().all(|one| one.record != *record));
        }
        let mut new = Vec::new();
        for record in found {
            // A failure is met again, and noted, when it is looked at.
            let since = self.begin_erasure(&record.tables).ok();
            let bytes_left = self.bytes_to_erase(&record.tables);
            new.push(Unfinished::new(record, since, bytes_left));
        }
        let mut state = self.maintenance_state();
        if !new.is_empty() {
            state.erasures.next_look_ns = 0;
        }
        state.erasures.unfinished.extend(new);
        state.erasures.read_at = Some(changed_at);
        Ok(())
    }

    /// The records of erasures that are not done. Entries that are no erasures are left out.
    fn unfinished_records(&self) -> Vec<Record> {
        let names = self.names.load();
        let Some(bucket) = names.newest().get(ERASURES) else { return Vec::new() };
        let (view, at) = (bucket.view(), self.watermarks.published());
        let mut found = Vec::new();
        for row_group in view.row_groups.iter().filter(|group| !group.is_loading()) {
            for row in (0..row_group.row_count()).filter(|row| row_group.is_visible(*row, at)) {
                match record_of(&view.schema, row_group, row) {
                    Ok(record) if record.finished_us.is_none() => found.push(record),
                    Ok(_) => {}
                    Err(e) => self.note_erasure_error(&e),
                }
            }
        }
        found.sort_by_key(|record| record.number);
        found
    }

    /// Begins an erasure that this process has not known: rows that have expired, which no
    /// statement finds, go with it. Returns by which commit its rows have died.
    fn begin_erasure(self: &Arc<Self>, tables: &[TableId]) -> Result<u64> {
        let mut failed = None;
        for core in self.tables_of(tables) {
            if core.schema().expiry_field().is_none() {
                continue;
            }
            let view = core.view();
            for row_group in view.row_groups.iter().filter(|group| !group.is_loading()) {
                failed = failed.or(self.end_expired_of(&core, row_group).err());
            }
        }
        let since = self.watermarks.published();
        failed.map_or(Ok(since), Err) // default: all were ended
    }

    /// The tables of an erasure that are still there.
    fn tables_of(&self, ids: &[TableId]) -> Vec<Arc<TableCore>> {
        let catalogue = self.lock();
        let entries = ids.iter().filter_map(|id| catalogue.tables.get(id));
        entries.map(|entry| Arc::clone(entry.writer.table())).collect()
    }

    /// The bytes of row groups of some tables that have dead rows.
    pub(crate) fn bytes_to_erase(&self, ids: &[TableId]) -> u64 {
        let of = |core: &Arc<TableCore>| {
            let view = core.view();
            let dead = view.row_groups.iter().filter(|row_group| row_group.dead_count() > 0);
            dead.map(RowGroup::byte_count).sum::<u64>()
        };
        self.tables_of(ids).iter().map(of).sum()
    }

    /// What is told of an erasure.
    pub(crate) fn erasure_info(&self, record: Record) -> ErasureInfo {
        let state = self.maintenance_state();
        let known = state.erasures.unfinished.iter().find(|one| one.record == record);
        let known = known.map(|one| (one.bytes_left, one.waits_for));
        drop(state);
        let (bytes_left, waits_for) = match (record.finished_us, known) {
            (Some(_), _) => (0, None),
            (None, Some((bytes_left, waits_for))) => (bytes_left, Some(waits_for)),
            (None, None) => (self.bytes_to_erase(&record.tables), Some("rewriting")),
        };
        let Record { number, table, begun_us, rows, finished_us, .. } = record;
        ErasureInfo { number, table, begun_us, rows, bytes_left, waits_for, finished_us }
    }

    /// Does what is due for an erasure. False where it is nothing.
    fn erase(self: &Arc<Self>, number: u64) -> Result<bool> {
        let (did, waits_for) = match self.look_at_erasure(number)? {
            Look::Did => (true, "rewriting"),
            Look::Waits(what) => (false, what),
            Look::Done => {
                self.finish_erasure(number)?;
                return Ok(true);
            }
        };
        self.with_erasure(number, |one| {
            (one.failures, one.retry_ns) = (0, 0);
            one.waits_for = waits_for;
        });
        Ok(did)
    }

    fn with_erasure<R>(&self, number: u64, with: impl FnOnce(&mut Unfinished) -> R) -> Option<R> {
        let mut state = self.maintenance_state();
        let mut all = state.erasures.unfinished.iter_mut();
        all.find(|one| one.record.number == number).map(with)
    }

    fn look_at_erasure(self: &Arc<Self>, number: u64) -> Result<Look> {
        let known = self.with_erasure(number, |one| {
            (one.record.tables.clone(), one.since, one.before, one.is_log_cut)
        });
        let Some((tables, since, before, is_log_cut)) = known else { return Ok(Look::Done) };
        let since = match since {
            Some(since) => since,
            None => self.begin_erasure(&tables)?,
        };
        self.with_erasure(number, |one| one.since = Some(since));
        match self.rewrite_dead(number, &tables, since)? {
            Look::Done => {}
            other => return Ok(other),
        }
        // default: all that there is now may have had such rows
        let before = before.unwrap_or_else(|| self.new_row_group());
        self.with_erasure(number, |one| one.before = Some(before));
        let threshold = CollectionThreshold::All { before };
        if self.empty_value_file(threshold)? || self.remove_unused_values()? {
            return Ok(Look::Did);
        }
        if !is_log_cut {
            self.cut_log_for_erasures()?;
            return Ok(Look::Did);
        }
        if self.has_due_values(threshold)? || self.has_replaced_files(before)? {
            return Ok(Look::Waits("readers"));
        }
        if self.is_durable() {
            self.segment_files.values().remove_left(before)?;
        }
        Ok(Look::Done)
    }

    /// Writes a row group anew that has rows which had died by a commit.
    fn rewrite_dead(self: &Arc<Self>, number: u64, tables: &[TableId], since: u64) -> Result<Look> {
        let readers = self.read_commits();
        let (mut bytes_left, mut due, mut rest) = (0, Vec::new(), Look::Done);
        for core in self.tables_of(tables) {
            let view = core.view();
            for row_group in view.row_groups.iter().filter(|group| group.has_dead_by(since)) {
                bytes_left += row_group.byte_count();
                let is_due = !row_group.is_loading()
                    && (self.is_group(row_group) || row_group.drops_dead_by(since, &readers));
                match is_due {
                    true => due.push((Arc::clone(&core), row_group.clone())),
                    false => rest = Look::Waits("snapshots"),
                }
            }
        }
        let failed = self.with_erasure(number, |one| {
            one.bytes_left = bytes_left;
            one.failed.clone()
        });
        // default: none has failed
        let failed = failed.unwrap_or_default();
        due.sort_by_key(|(_, row_group)| failed.contains(&row_group.id()));
        let mut error = None;
        for (core, row_group) in due {
            let id = row_group.id();
            match self.rewrite_one(&core, row_group, &readers) {
                Ok(()) => return Ok(Look::Did),
                Err(e) if !is_of_file(&e) => return Err(e),
                // What cannot be read keeps nothing else from being erased.
                Err(e) => {
                    self.with_erasure(number, |one| one.failed.insert(id));
                    error = error.or(Some(e));
                }
            }
        }
        error.map_or(Ok(rest), Err) // default: nothing was due
    }

    /// Writes a row group anew, or has it sealed where it is a group.
    fn rewrite_one(
        self: &Arc<Self>,
        core: &Arc<TableCore>,
        row_group: RowGroup,
        readers: &ReadCommits,
    ) -> Result<()> {
        if matches!(row_group, RowGroup::Group(_)) {
            self.freeze_groups_of(core)?;
        }
        if self.is_group(&row_group) {
            return Ok(());
        }
        self.merge(core, vec![row_group], readers, BTreeSet::new())
    }

    /// True for a group that becomes a segment first.
    fn is_group(&self, row_group: &RowGroup) -> bool {
        self.is_durable() && matches!(row_group, RowGroup::Group(_))
    }

    /// Makes a checkpoint, so that neither the log nor an older checkpoint has a row that is dead
    /// now.
    fn cut_log_for_erasures(self: &Arc<Self>) -> Result<()> {
        if !Bug::ErasedRowLeftInLog.is_planted() {
            // Frames that are queued would go into the log file that stays.
            self.sync()?;
            // It keeps the reserve for commits: on a full disk an erasure waits.
            self.make_checkpoint()?;
        }
        if let Some(log) = self.journal.log().filter(|_| !Bug::ErasedRowLeftInReserve.is_planted())
        {
            log.clear_reserve()?;
        }
        let mut state = self.maintenance_state();
        // The checkpoint has rows that have expired and are not ended.
        let begun = state.erasures.unfinished.iter_mut().filter(|one| one.since.is_some());
        begun.for_each(|one| one.is_log_cut = true);
        Ok(())
    }

    /// True while there are files of segments, or of runs of these, that no table has.
    fn has_replaced_files(&self, before: u64) -> Result<bool> {
        if !self.is_durable() || Bug::ErasedRowLeftForReader.is_planted() {
            return Ok(false);
        }
        let known: BTreeSet<u64> = {
            let catalogue = self.lock();
            let views = catalogue.tables.values().map(|entry| entry.writer.table().view());
            views.flat_map(|view| view.segments().map(|s| s.id()).collect::<Vec<_>>()).collect()
        };
        let is_replaced =
            |name: &String| segment_of(name).is_some_and(|id| id < before && !known.contains(&id));
        Ok(self.environment.files.list(&self.dir)?.iter().any(is_replaced))
    }

    /// The last byte is gone: the entry of the erasure says so.
    fn finish_erasure(self: &Arc<Self>, number: u64) -> Result<()> {
        let Some(mut record) = self.with_erasure(number, |one| one.record.clone()) else {
            return Ok(());
        };
        if self.is_durable() {
            // No crash brings the name of a file back that was removed.
            self.sync_segment_dir()?;
        }
        record.finished_us = Some(self.environment.clock.wall_us());
        let entry = vec![Value::Bytes(record.key()), Value::Bytes(record.encode()), Value::Null];
        {
            let mut catalogue = self.lock_for_change()?;
            // One whose entry was changed meanwhile is looked at again: it may have none to end.
            let read_at = self.maintenance_state().erasures.read_at;
            if read_at != Some(self.erasures_changed_at()) {
                return Ok(());
            }
            if let Some(bucket) = self.names.load().newest().get(ERASURES) {
                self.commit_row(&mut catalogue, &TableVersion::newest(bucket), entry)?;
            }
        }
        self.maintenance_state().erasures.unfinished.retain(|one| one.record.number != number);
        Ok(())
    }
}

/// An erasure as an entry of the bucket has it.
fn record_of(schema: &Schema, row_group: &RowGroup, row: usize) -> Result<Record> {
    let (key_room, value_room) = (Room::default(), Room::default());
    let strange = || Error::corrupt(format!("bucket {ERASURES:?}: an entry of other fields"));
    let [key, value, ..] = schema.fields() else { return Err(strange()) };
    match (row_group.value(key, row, &key_room)?, row_group.value(value, row, &value_room)?) {
        (ValueRef::Bytes(key), ValueRef::Bytes(value)) => Record::decode(key, value),
        _ => Err(strange()),
    }
}

/// The segment that a file is of, or is a run of.
fn segment_of(name: &str) -> Option<u64> {
    let whole = name.split_once('.').filter(|_| is_unnamed_run(name));
    let name = whole.map_or(name, |(run, _)| run); // default: it has its name
    let of_run = || run_file_number(name).and_then(run_of_file).map(|(segment, _)| segment);
    segment_file_id(name).or_else(of_run)
}
