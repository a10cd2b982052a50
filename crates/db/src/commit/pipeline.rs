//! The commit pipeline: the one way by which changes become a numbered, visible, durable commit.
//!
//! ```text
//!  wait for memory ─► commit lock ─► validate ─► stage ─► extend (hooks)
//!                                                           │ too large, or long values
//!                                                           ├────► unlock, write files, lock,
//!                                                           │      still as staged?
//!                                                           ▼
//!                                     number ─► apply ─► publish ─► unlock ─► acknowledge
//! ```
//!
//! | what is committed | staged by | numbered by |
//! |---|---|---|
//! | rows, statements, batches, transactions | `commit_writes` | [`Engine::commit_frame`] |
//! | columns of an appender or a small load | `commit_batch` | the same |
//! | rows that have expired | `commit_deletes` | the same |
//! | what is too large for a frame | [`overflow`](super::overflow) | [`Engine::commit_edit`] |
//! | definitions, sequences that come and go, loads, checkpoints | their modules | the same |
//! | seals, merges; values of a sequence: no answer changes | theirs | [`Engine::log_edit`] |
//! | the clock | [`expiry_clock`](super::expiry_clock) | [`Engine::log_before`] |
//!
//! # Invariants
//!
//! 1. What has a number is applied, or the catalogue is broken and refuses all further changes:
//!    `commit_frame`. What changes no answer acts later: once it is durable, or in the memory of
//!    its module, before the commit lock is let go.
//! 2. A commit is published under the commit lock after it is applied, in the order of numbers: the
//!    watermarks refuse a gap and another order.
//! 3. Nothing is reported, not even a refusal, before what it rests on is durable: see
//!    [`acknowledge`](super::acknowledge), which refuses it.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use esker_format::codec::Writer;
use esker_format::edit::{Edit, ROWS_FRAME};
use esker_format::frame::PAYLOAD_BYTES_MAX;
use esker_format::{Batch, Value};
use esker_log::Purpose;
use esker_log::sabotage::Bug;
use esker_table::TableWriter;
use esker_vfs::sync::MutexGuard;

use crate::catalogue::{Catalogue, TableEntry};
use crate::commit::apply::{Own, Source};
use crate::commit::bound_commits::BoundCommit;
use crate::commit::changed_rows::{cut_for_feed, refuse_feeds, refuse_other_history};
use crate::commit::conflict::refuse_other_schema;
use crate::commit::definitions::together;
use crate::commit::extension::Extension;
use crate::commit::journal::Ticket;
use crate::commit::log_reserve::purpose_of;
use crate::commit::options::CommitOptions;
use crate::commit::reference_check::{bound_changes, leaves_named};
use crate::commit::staged::{Staged, StagedBatch};
use crate::commit::unique_check as unique;
use crate::commit::write_set::{TableWrites, WriteSet};
use crate::engine::Engine;
use crate::engine_handle::EngineHandle;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

/// Frames from here on are weighed against the memory that is left.
const LARGE_FRAME_BYTES: usize = 1 << 20;
/// Versions that end before maintenance looks whether a row group is worth rewriting.
const KILLED_WAKE: u64 = 4_096;
/// An open group is full when its long values take this many times what its other values may.
const LONG_BYTES_FACTOR: u64 = 16;
/// The same where the rows may have long values.
const LONG_KILLED_WAKE: u64 = 64;
/// Commits between two looks at the length of the log, which is a limit for its order of magnitude.
const LOG_LENGTH_EVERY: u64 = 32;

/// What the log is to have of a commit.
pub(crate) struct Frame<'p> {
    pub purpose: Purpose,
    pub kind: u16,
    pub payload: &'p [u8],
}

/// Why changes that are staged were not numbered.
pub(crate) enum Stop {
    Failed(Error),
    /// There is nothing to change.
    Empty,
    /// Files have to be written before.
    NeedsFiles,
    /// Rows go that others may name: a transaction does it, which was begun.
    LeavesNamed(Box<dyn BoundCommit>),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The commit has a number, so recovery will apply it whole; this process no longer can.
fn half_applied(e: &Error) -> Error {
    let message = format!("the commit is in the log but could not be applied: {e}");
    Error::new(ErrorKind::OutcomeUnknown, message)
}

/// Committing changes of rows.
impl EngineHandle {
    /// One atomic commit of changes to one table, which `stage` validates under the commit lock.
    /// They were prepared for a version of its schema.
    pub fn commit_rows<'r, R>(
        &self,
        current: &'r TableVersion,
        stage: impl FnOnce(&mut TableWriter, &mut Staged<'r>) -> Result<R>,
    ) -> Result<R> {
        let (mut stage, mut result) = (Some(stage), None);
        let writes = WriteSet::One(TableWrites::new(current));
        self.commit_writes(writes, CommitOptions::default(), |_, writer, writes| {
            if let Some(stage) = stage.take() {
                result = Some(stage(writer, &mut writes.staged)?);
            }
            Ok(())
        })?;
        result.ok_or_else(|| Error::corrupt("the changes of a commit were not staged"))
    }

    /// One commit of a batch of inserted rows of a table with a generated key, without unique
    /// indexes; returns the first of their row ids.
    pub fn commit_batch(&self, current: &TableVersion, columns: &Batch) -> Result<u64> {
        self.looking_up(current, |current| self.commit_batch_once(current, columns))
    }

    fn commit_batch_once(&self, current: &TableVersion, columns: &Batch) -> Result<u64> {
        let mut columns = Cow::Borrowed(columns);
        if current.schema.has_generated() {
            self.complete_batch(current, columns.to_mut(), 0)?;
        }
        let columns = &*columns;
        if let Some(checks) = self.checks(current)? {
            checks.test(columns, 0, &self.limits())?;
        }
        self.expect_times(&current.schema, columns, 0)?;
        self.commit_tested(current, columns)
    }

    /// The same of rows that are whole and meet the checks.
    pub fn commit_tested(&self, current: &TableVersion, columns: &Batch) -> Result<u64> {
        self.wait_for_memory()?;
        let long = self.store_long_columns(&current.schema, columns)?;
        self.commit_rows(current, |writer, staged| {
            let first_row_id = writer.reserve_row_ids(columns.len() as u64);
            staged.batch = Some(StagedBatch { columns, long, first_row_id });
            Ok(first_row_id)
        })
    }

    /// One atomic commit: `stage` validates the changes of each table, which it knows by its
    /// place in the set, under the commit lock. Returns the commit's number; 0 when nothing was
    /// changed.
    pub fn commit_writes<'r>(
        &self,
        mut set: WriteSet<'r>,
        options: CommitOptions<'_>,
        mut stage: impl FnMut(usize, &mut TableWriter, &mut TableWrites<'r>) -> Result<()>,
    ) -> Result<u64> {
        // Definitions alone take none, and those that drop tables give some back.
        if !set.as_slice().is_empty() {
            self.wait_for_memory()?;
        }
        let mut catalogue = self.lock_for_change()?;
        let valid = (options.validate)(&mut catalogue).map_err(Stop::Failed);
        if Bug::ValidatedBeforeTheLock.is_planted() {
            drop(catalogue);
            catalogue = self.lock_for_change()?;
        }
        let outcome = valid.and_then(|()| {
            self.defining(&mut catalogue, options, |catalogue| {
                self.stage_all(catalogue, &mut set, options, &mut stage)?;
                if leaves_named(&set)? {
                    let sync = options.sync.or_else(|| set.sync());
                    return Err(Stop::LeavesNamed(self.bound_commits.begin(self, sync)?));
                }
                self.commit_staged(catalogue, &mut set, options)
            })
        });
        let options = CommitOptions { sync: options.sync.or_else(|| set.sync()), ..options };
        let ticket = match outcome {
            Ok(ticket) => ticket,
            Err(Stop::NeedsFiles) => {
                return self.commit_after_files(catalogue, set, options).map(Ticket::commit);
            }
            Err(Stop::LeavesNamed(begun)) => {
                let changes = bound_changes(&set);
                drop(catalogue);
                return begun.run(changes?);
            }
            Err(stop) => {
                drop(catalogue);
                self.acknowledge_published()?;
                return if let Stop::Failed(e) = stop { Err(e) } else { Ok(0) };
            }
        };
        drop(catalogue);
        self.acknowledge_as(ticket, options.sync)?;
        self.settle_definitions(options);
        Ok(ticket.commit())
    }

    /// Lets the lock go, writes files, and commits if all is as it was staged.
    fn commit_after_files(
        &self,
        catalogue: MutexGuard<'_, Catalogue>,
        set: WriteSet<'_>,
        options: CommitOptions<'_>,
    ) -> Result<Ticket> {
        // So that it is known which versions came since.
        let guard = self.registry.register(|| self.watermarks.published())?;
        let mut writes = set.into_changed();
        // Rows that were there may go while files are written.
        let named = self.named_rows(&writes)?;
        for TableWrites { current, staged, .. } in &mut writes {
            staged.remember_deleted(&current.core)?;
        }
        drop(catalogue);
        let validate = |catalogue: &mut Catalogue| {
            (options.validate)(catalogue)?;
            named.expect_there(catalogue, ErrorKind::ConstraintViolated)
        };
        let options = CommitOptions { validate: &validate, ..options };
        self.commit_with_files(writes, options, &guard)
    }
}

/// Staging, and commits of one frame. All under the commit lock.
impl Engine {
    /// Commits deletes of rows that have expired: no thread waits for that, and a transaction that
    /// has read the table finds it unchanged. It may go before another commit, which is staged, so
    /// that the table is as it is before that. Under the commit lock.
    pub fn commit_deletes(
        &self,
        catalogue: &mut Catalogue,
        current: &TableVersion,
        staged: Staged<'_>,
    ) -> Result<()> {
        let id = current.core.id();
        let Some(entry) = catalogue.tables.get(&id).filter(|_| !staged.is_empty()) else {
            return Ok(());
        };
        let changed_at = entry.changed_at;
        let current = TableVersion::newest(&current.core);
        for part in cut_for_feed(&current, staged)? {
            let mut writes = TableWrites::new(&current);
            part.into_iter().for_each(|existing| writes.staged.delete(existing));
            let (mut set, options) = (WriteSet::One(writes), CommitOptions::default());
            self.extend_by(catalogue, &mut set, options, true)?;
            // However many there are: nothing of a delete goes into files.
            self.commit_in_frame(catalogue, set.as_slice(), options)?;
            catalogue.entry(id)?.changed_at = changed_at;
        }
        Ok(())
    }

    /// Commits one whole row without waiting for memory: maintenance may, which makes room for
    /// those who wait. Under the commit lock.
    pub fn commit_row(
        &self,
        catalogue: &mut Catalogue,
        current: &TableVersion,
        row: Vec<Value>,
    ) -> Result<()> {
        let mut writes = TableWrites::new(current);
        let options = CommitOptions::default();
        self.stage(catalogue, &mut writes, options, |writer, writes| {
            let prepared = writer.prepare_put(&row, false)?;
            writes.staged.put(row, prepared);
            Ok(())
        })?;
        let mut set = WriteSet::One(writes);
        self.extend(catalogue, &mut set, options)?;
        self.commit_in_frame(catalogue, set.as_slice(), options).map(drop)
    }

    /// Stages the changes of all tables.
    fn stage_all<'r>(
        &self,
        catalogue: &mut Catalogue,
        set: &mut WriteSet<'r>,
        options: CommitOptions<'_>,
        stage: &mut impl FnMut(usize, &mut TableWriter, &mut TableWrites<'r>) -> Result<()>,
    ) -> Result<()> {
        set.expect_distinct()?;
        refuse_feeds(set.as_slice())?;
        for (at, writes) in set.as_mut_slice().iter_mut().enumerate() {
            self.stage(catalogue, writes, options, |writer, writes| stage(at, writer, writes))?;
            refuse_other_history(writes)?;
        }
        Ok(())
    }

    /// Stages the changes of one table, which `stage` validates.
    pub(super) fn stage<'r>(
        &self,
        catalogue: &mut Catalogue,
        writes: &mut TableWrites<'r>,
        options: CommitOptions<'_>,
        stage: impl FnOnce(&mut TableWriter, &mut TableWrites<'r>) -> Result<()>,
    ) -> Result<()> {
        let id = writes.current.core.id();
        refuse_other_schema(catalogue, id, options.schema_before(&writes.current))?;
        self.on_time(catalogue, &writes.current)?;
        stage(&mut catalogue.entry(id)?.writer, writes)?;
        self.finish_staging(catalogue, writes)
    }

    /// What holds for all staged rows, however they were staged: their unique values are free, and
    /// the engine knows whether they expire.
    fn finish_staging(
        &self,
        catalogue: &mut Catalogue,
        writes: &mut TableWrites<'_>,
    ) -> Result<()> {
        let TableWrites { current, staged, private } = writes;
        self.expect_looked_up(current)?;
        self.end_expired_holders(catalogue, current, staged)?;
        if private.is_none() {
            let writer = &catalogue.entry(current.core.id())?.writer;
            unique::expect_unique(writer, &current.schema, staged)?;
        }
        if staged.is_dry_run {
            staged.clear();
        }
        self.note_ends(&current.schema, staged)
    }

    /// Numbers and applies what is staged, unless files are to be written before. Under the commit
    /// lock.
    fn commit_staged(
        &self,
        catalogue: &mut Catalogue,
        set: &mut WriteSet<'_>,
        options: CommitOptions<'_>,
    ) -> std::result::Result<Ticket, Stop> {
        if set.is_empty() && options.definitions.is_none() {
            return Err(Stop::Empty);
        }
        self.extend(catalogue, set, options)?;
        self.expect_named(catalogue, set.as_slice())?;
        if options.is_probe {
            return Err(Stop::Empty);
        }
        match self.needs_files(set.as_slice()) {
            true if options.in_one_frame => {
                let message = "more than a commit takes together with its entries";
                Err(Stop::Failed(Error::new(ErrorKind::OverBudget, message)))
            }
            true => Err(Stop::NeedsFiles),
            false => Ok(self.commit_in_frame(catalogue, set.as_slice(), options)?),
        }
    }

    /// Lets hooks add to a set.
    pub(super) fn extend(
        &self,
        catalogue: &mut Catalogue,
        set: &mut WriteSet<'_>,
        options: CommitOptions<'_>,
    ) -> Result<()> {
        self.extend_by(catalogue, set, options, false)
    }

    /// The same, where rows that are deleted may be those whose time is over.
    fn extend_by(
        &self,
        catalogue: &mut Catalogue,
        set: &mut WriteSet<'_>,
        options: CommitOptions<'_>,
        ends_expired: bool,
    ) -> Result<()> {
        let engine = self;
        let mut extension = Extension { engine, catalogue, set, options, ends_expired };
        extension.add_changes()?;
        self.hooks.extend_write_set(&mut extension)
    }

    /// Commits changes that one frame of the log holds. Under the commit lock.
    pub(crate) fn commit_in_frame(
        &self,
        catalogue: &mut Catalogue,
        writes: &[TableWrites<'_>],
        options: CommitOptions<'_>,
    ) -> Result<Ticket> {
        let mut rows = std::mem::replace(&mut catalogue.scratch, Writer::new());
        rows.clear();
        self.encode_rows(&mut rows, writes, options)?;
        let purpose = options.purpose(writes);
        let mut has_frozen = false;
        let mut apply = |catalogue: &mut Catalogue, commit, edit: Option<&Edit>| {
            if options.tells_commit {
                self.on_commit(commit);
            }
            if Bug::PartsPublishedBeforeApplied.is_planted() && writes.len() > 1 {
                self.watermarks.publish(commit)?;
            }
            let own = Own { writes, definitions: options.definitions, link: None };
            has_frozen = self.apply(catalogue, commit, edit, Source::Own(own))?;
            Ok(())
        };
        let ticket = match options.definitions {
            None => {
                let frame = Frame { purpose, kind: ROWS_FRAME, payload: rows.as_bytes() };
                let ticket = self.commit_frame(catalogue, frame, |catalogue, commit| {
                    apply(catalogue, commit, None)
                })?;
                rows.clear();
                catalogue.scratch = rows;
                ticket
            }
            Some(new) => {
                let edit = together(new.edits(), rows.into_bytes());
                self.commit_edit(catalogue, purpose, &edit, |catalogue, commit| {
                    apply(catalogue, commit, Some(&edit))
                })?
            }
        };
        let makes_work = options.definitions.is_some_and(|new| new.makes_work());
        let mut wakes = has_frozen || makes_work;
        for writes in writes {
            wakes |= self.note_ended(catalogue, &writes.staged);
        }
        if wakes || self.log_is_long(ticket.commit()) {
            self.wake_maintenance();
        }
        Ok(ticket)
    }

    /// Appends the changes of rows as they are in the log; nothing in a memory database.
    pub(crate) fn encode_rows(
        &self,
        out: &mut Writer,
        writes: &[TableWrites<'_>],
        options: CommitOptions<'_>,
    ) -> Result<()> {
        let one_only = Bug::BatchFrameHasOneTable.is_planted();
        // default: a planted bug
        let named = if one_only { writes.get(..1).unwrap_or_default() } else { writes };
        for TableWrites { current, staged, .. } in named.iter().filter(|_| self.is_durable()) {
            let schema = match Bug::RowsLoggedByOldSchema.is_planted() {
                true => options.schema_before(current),
                false => &current.schema,
            };
            staged.encode(out, current.core.id(), schema)?;
        }
        Ok(())
    }

    /// Counts the versions that ended; true when maintenance is to look at them.
    fn note_ended(&self, catalogue: &mut Catalogue, staged: &Staged<'_>) -> bool {
        catalogue.killed += staged.ended_count() as u64;
        let is_costly = self.segment_files.values().is_used();
        let wake = if is_costly { LONG_KILLED_WAKE } else { KILLED_WAKE };
        let many_ended = catalogue.killed >= wake;
        if many_ended {
            catalogue.killed = 0;
        }
        many_ended
    }

    /// Freezes the open group when it is full, or has no room for `rows` more.
    pub(crate) fn freeze_if_full(&self, entry: &mut TableEntry, rows: usize) -> bool {
        let Some(group) = entry.writer.open_group() else { return false };
        let bytes = group.group().byte_count();
        // Versions that are dead give their value files back when the group is sealed only.
        let long_bytes_max = self.options.group_bytes_max.saturating_mul(LONG_BYTES_FACTOR);
        let full = group.rows() >= self.options.group_rows_max
            || bytes >= self.options.group_bytes_max
            || group.group().long_bytes() >= long_bytes_max;
        let writer = &mut entry.writer;
        if full {
            writer.freeze();
        } else {
            writer.make_room(rows);
        }
        let frozen = entry.writer.open_group().is_none();
        if frozen && self.is_durable() {
            self.frozen_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        frozen
    }

    /// Looked at now and then only: it is a lock to take.
    fn log_is_long(&self, commit: u64) -> bool {
        commit.is_multiple_of(LOG_LENGTH_EVERY)
            && self.journal.log().is_some_and(|log| log.bytes() > self.options.log_limit_bytes)
    }
}

/// Numbering, applying, publishing. All under the commit lock.
impl Engine {
    /// Gives a frame its number, applies what it says, and publishes it: the only way by which
    /// memory and log change together.
    pub(crate) fn commit_frame(
        &self,
        catalogue: &mut Catalogue,
        frame: Frame<'_>,
        apply: impl FnOnce(&mut Catalogue, u64) -> Result<()>,
    ) -> Result<Ticket> {
        let is_lost = |e: &Error| e.kind() == ErrorKind::Corrupt;
        let ticket = self.number(frame).inspect_err(|e| catalogue.broken |= is_lost(e))?;
        let commit = ticket.commit();
        if Bug::PublishedBeforeApplied.is_planted() {
            self.watermarks.publish(commit)?;
        }
        let applied = apply(catalogue, commit);
        if let Err(e) = applied.and_then(|()| self.watermarks.publish(commit)) {
            catalogue.broken = true;
            return Err(half_applied(&e));
        }
        Ok(ticket)
    }

    /// The same for an edit of the catalogue.
    pub(crate) fn commit_edit(
        &self,
        catalogue: &mut Catalogue,
        purpose: Purpose,
        edit: &Edit,
        apply: impl FnOnce(&mut Catalogue, u64) -> Result<()>,
    ) -> Result<Ticket> {
        let frame = Frame { purpose, kind: edit.frame_kind(), payload: &edit.encode() };
        self.commit_frame(catalogue, frame, apply)
    }

    /// Numbers and publishes an edit that changes no answer, whatever the caller does then.
    pub(crate) fn log_edit(&self, edit: &Edit) -> Result<Ticket> {
        let payload = &edit.encode();
        let ticket =
            self.number(Frame { purpose: purpose_of(edit), kind: edit.frame_kind(), payload })?;
        self.watermarks.publish(ticket.commit())?;
        Ok(ticket)
    }

    /// The same before the frame that it is for, which has the purpose: `number` does not ask for
    /// the time then.
    pub(crate) fn log_before(&self, purpose: Purpose, edit: &Edit) -> Result<()> {
        let payload = &edit.encode();
        let ticket = self.append(Frame { purpose, kind: edit.frame_kind(), payload })?;
        self.watermarks.publish(ticket.commit())
    }

    fn number(&self, frame: Frame<'_>) -> Result<Ticket> {
        self.refuse_large_frame(frame.payload.len())?;
        if self.time_is_owed.load(Ordering::Relaxed) {
            self.time_before(frame.purpose)?;
        }
        self.append(frame)
    }

    fn append(&self, frame: Frame<'_>) -> Result<Ticket> {
        let ticket = self.journal.append(frame.purpose, frame.kind, frame.payload)?;
        self.watermarks.number(ticket.commit())?;
        Ok(ticket)
    }

    /// Tells a test which number a commit of rows got.
    pub(crate) fn on_commit(&self, commit: u64) {
        if let Some(tell) = self.options.on_commit {
            tell(commit);
        }
    }

    /// Refuses a frame that is too long, or that the memory that is left may not hold.
    fn refuse_large_frame(&self, bytes: usize) -> Result<()> {
        if bytes > PAYLOAD_BYTES_MAX {
            let most = PAYLOAD_BYTES_MAX;
            let message = format!("one commit of {bytes} bytes, at most {most}; use a bulk load");
            return Err(Error::new(ErrorKind::OverBudget, message));
        }
        if bytes >= LARGE_FRAME_BYTES { self.refuse_too_large(bytes) } else { Ok(()) }
    }
}
