//! Bulk load: many rows become visible at once, or none (protocol rule 8).
//!
//! ```text
//! push ─► gather columns ─► segment full? ─► write file, sync ─► register, invisible ─► index keys
//!                                            └──────────── by a worker, beside push ───────────┘
//! finish ─► sync directory ─► number the frame that names the files ─► one word makes all real
//! ```
//!
//! * Rows go to segment files, not to the log. Small loads (below 64 Ki rows and 4 MiB, and 16 MiB
//!   as rows of values where keys are looked up) are one ordinary commit instead.
//! * A loading row is in the primary index beside whatever else has its key, and no reader sees
//!   it: its segment's creation commit is not known yet. A writer that meets one gets a retryable
//!   conflict. A load that meets a row newer than its start gets one, too.
//! * Dropping a load before `finish` takes its index entries, segments and files away.

pub(crate) mod appender;
pub(crate) mod batch_check;
mod budget;
mod expired;
mod gathered_rows;
mod indexing;
mod key_order;
mod references;
mod replacing;
mod seen_numbers;
mod worker;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_arena::{Category, Reservation};
use esker_format::edit::Edit;
use esker_format::frame::PAYLOAD_BYTES_MAX;
use esker_format::{Batch, ColumnSlice, Schema, Value};
use esker_log::sabotage::Bug;
use esker_query::model::OnConflict;
use esker_table::segment::Segment;
use esker_table::view::Forwarding;
use esker_vfs::sync::Mutex;

use super::{Error, ErrorKind, Result, Table};
use crate::commit::apply::{LinkSegments, Own, Source};
use crate::commit::conflict::refuse_other_schema;
use crate::commit::fit::refuse_long_values;
use crate::commit::journal::Ticket;
use crate::commit::log_reserve::purpose_of;
use crate::commit::reference_check::named_beside_key;
use crate::commit::segment_rows::shift_to_commit;
use crate::feed::shape::refuse_unheard;
use crate::limits::without_limits;
use appender::Appender;
pub(crate) use batch_check::check_batch;
use budget::{Budget, Gathered, rows_that_fit};
use gathered_rows::GatheredRows;
use references::LoadReferences;
use replacing::Replacing;
use worker::Shared;

/// Loads below both go through the log.
const SMALL_ROWS: usize = 64 << 10;
const SMALL_BYTES: usize = 4 << 20;
/// So do those only that take no more as rows of values, where each key is looked up.
const SMALL_ROWS_COST: u64 = 16 << 20;

/// What a load did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LoadReport {
    /// Rows that were added, or took the place of others: those of [`Load::rows`] that were not
    /// left out.
    pub rows: u64,
    /// Segments that were written; 0 when the rows went through the log.
    pub segments: usize,
    /// The commit that made the segments visible; 0 when the rows went through the log.
    pub commit: u64,
}

/// A bulk load in progress.
pub struct Load {
    shared: Arc<Shared>,
    budget: Budget,
    gathered: Gathered,
    /// Rows of which something is yet to be computed.
    waiting: GatheredRows,
    /// What something beside the load takes for it.
    input: Reservation,
    rows: u64,
    /// Rows that have met the checks.
    tested: u64,
    /// The rows of other tables that its rows name.
    references: Option<LoadReferences>,
    /// Segments handed to workers.
    started: usize,
    finished: bool,
    /// Its rows were those of a table already.
    is_copy: bool,
}

impl Table {
    /// Starts appending a stream of rows.
    #[must_use]
    pub fn appender(&self) -> Appender {
        Appender::new(self.clone())
    }

    /// Starts a bulk load: atomic as a whole, beside other writers.
    ///
    /// # Errors
    /// `ReadOnly` when the database is.
    pub fn load(&self) -> Result<Load> {
        Load::start(self.clone())
    }
}

impl Load {
    pub(crate) fn start(table: Table) -> Result<Self> {
        refuse_unheard(&table.name(), &table.schema(), "a bulk load")?;
        Self::begin(table)
    }

    /// Of rows that were those of a table already: the times of events are not compared with now,
    /// and a feed is another table whose rows are copied.
    pub(crate) fn copy(table: Table) -> Result<Self> {
        let mut load = Self::begin(table)?;
        load.is_copy = true;
        Ok(load)
    }

    fn begin(table: Table) -> Result<Self> {
        drop(table.engine.lock_for_change()?);
        let started_at = table.engine.watermarks.published();
        let shared = Shared::new(table, started_at)?;
        let engine = &shared.table.engine;
        let budget = Budget::of(engine, &shared.schema);
        let gathered = Gathered::fresh(Batch::empty(&shared.schema), engine);
        let input = Reservation::new(&engine.arena, Category::Load);
        let references = match shared.schema.references() {
            [] => None,
            _ => Some(LoadReferences::new(engine, &shared.current())?),
        };
        Ok(Self {
            shared,
            budget,
            gathered,
            waiting: GatheredRows::default(),
            input,
            rows: 0,
            tested: 0,
            references,
            started: 0,
            finished: false,
            is_copy: false,
        })
    }

    fn schema(&self) -> &Schema {
        &self.shared.schema
    }

    /// From now on leaves rows out whose keys exist, in the table or in an earlier row, instead of
    /// failing. To be called before the first row. What is written beside the load is written by
    /// one thread then, since the first of two rows with one key is the one that stays.
    ///
    /// # Errors
    /// `InvalidInput` when rows have been given.
    pub fn skip_existing(&mut self) -> Result<()> {
        self.expect_no_rows("skip_existing")?;
        if let Some(shared) = Arc::get_mut(&mut self.shared)
            && shared.schema.has_unique_values()
        {
            shared.skips = true;
            self.budget.workers = 1;
        }
        Ok(())
    }

    /// Refuses to change what becomes of rows that may be written already.
    fn expect_no_rows(&self, call: &str) -> Result<()> {
        match self.rows() {
            0 => Ok(()),
            rows => Err(Error::invalid(format!(
                "{call}: expected a load without rows; {rows} have been given"
            ))),
        }
    }

    /// From now on replaces rows whose keys exist; of rows of the load with one key the last one
    /// stays. To be called before the first row. The load is as atomic as without: when somebody
    /// changes a row that it replaces, it fails with `Conflict`. A row that takes the place of
    /// another has a row id of its own. One thread writes beside the load then.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    /// let table = db.create_table("t", schema.primary_key(["id"]).build()?)?;
    /// table.insert(&[1i64.into(), 1i64.into()])?;
    /// let mut load = table.load()?;
    /// load.replace_existing()?;
    /// for n in 2..100_000i64 {
    ///     load.push_row(&[(n % 70_000).into(), n.into()])?;
    /// }
    /// load.finish()?;
    /// assert_eq!(table.count()?, 70_000);
    /// let row = table.get(&[1i64.into()])?.expect("a row");
    /// assert_eq!(row.get("n"), Some(&70_001i64.into()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` when rows have been given, `OverBudget` when too many snapshots are open.
    pub fn replace_existing(&mut self) -> Result<()> {
        self.expect_no_rows("replace_existing")?;
        refuse_replacing_named(&self.shared.schema)?;
        if let Some(shared) = Arc::get_mut(&mut self.shared)
            && !shared.schema.key_positions().is_empty()
        {
            let replacing = Replacing::start(&shared.table.engine, &shared.core)?;
            shared.started_at = replacing.started.commit();
            shared.replacing = Some(Mutex::new(replacing));
            self.budget.workers = 1;
        }
        Ok(())
    }

    /// How many rows have been given so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows + self.waiting.len() as u64
    }

    /// Counts memory that is taken for the load by the caller, such as the reader of a file for
    /// it, with the load's own, until the load ends.
    ///
    /// # Errors
    /// `OverBudget` with the number of bytes that are missing.
    pub fn reserve_input(&mut self, bytes: u64) -> Result<()> {
        let engine = &self.shared.table.engine;
        if engine.seal_for_load(&mut self.input, bytes)? {
            return Ok(());
        }
        Err(engine.refuse_load(&self.input, bytes))
    }

    /// Adds rows. The batch has the schema's columns, with values that fit them; rows marked so
    /// ([`Column::DEFAULT_MARK`](super::Column::DEFAULT_MARK)) get defaults. What is generated is
    /// computed: NULL, or what comes of the row, stands in its place. When memory is
    /// short this waits for segments to be written and for groups to be sealed.
    ///
    /// # Errors
    /// `InvalidInput` naming field and row when a column's type or length differs, or a value is
    /// none of its type, such as text that is not UTF-8; `ConstraintViolated` when a NULL stands
    /// where none may, or a row does not meet a check (a later call may tell that);
    /// `AlreadyExists` naming a key that exists or comes twice (rows are indexed beside this
    /// call, so a later call, or `finish`, may tell); `Conflict` when another writer holds a key;
    /// `OverBudget` when memory is too small for a row. After an error the load can only be
    /// dropped.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        self.push_gathered()?;
        self.push_batch(batch)
    }

    fn push_batch(&mut self, mut batch: Batch) -> Result<()> {
        self.shared.table.engine.fill_batch(self.schema(), &mut batch)?;
        check_batch(self.schema(), &batch, self.rows)?;
        let shared = &self.shared;
        let is_whole = self.is_copy && shared.table.engine.looks_up(&shared.current())?;
        if self.schema().has_generated() && !is_whole {
            let current = shared.current();
            shared.table.engine.complete_batch(&current, &mut batch, self.rows)?;
            shared.looked_up.note_of(&current.looked_up);
        }
        self.rows += batch.len() as u64;
        let limit = self.shared.table.engine.options.segment_rows_max;
        // Halved while there is no memory for as many rows at a time.
        let mut rows_max = batch.len();
        let mut start = 0;
        while start < batch.len() {
            let left = limit - self.gathered.batch.len().min(limit);
            let most = (batch.len() - start).min(left).min(rows_max);
            let room = self.budget.segment_bytes.saturating_sub(self.gathered.bytes);
            if most == 0 || room == 0 {
                self.write_segment()?;
                continue;
            }
            let (count, bytes) = rows_that_fit(&batch, start, most, room);
            if !self.make_room(count, bytes)? {
                if count == 1 {
                    return Err(self.refuse(1, bytes));
                }
                rows_max = count / 2;
                continue;
            }
            for (to, from) in self.gathered.batch.columns.iter_mut().zip(&batch.columns) {
                to.append(&ColumnSlice::from(from).rows(start, start + count))?;
            }
            self.gathered.bytes += bytes;
            start += count;
        }
        self.write_if_full()
    }

    /// Adds one row.
    ///
    /// # Errors
    /// As for [`Load::push`].
    pub fn push_row(&mut self, row: &[Value]) -> Result<()> {
        // default: what is no bytes is a word
        let variable = |v: &Value| v.as_ref().as_bytes().map_or(8, |b| b.len() + 4);
        let bytes = row.iter().map(variable).sum::<usize>();
        if self.schema().has_generated() {
            return self.gather_row(row, bytes);
        }
        if !self.make_room(1, bytes)? {
            return Err(self.refuse(1, bytes));
        }
        let schema = &self.shared.schema;
        refuse_long_values(schema, |position| row.get(position).map(Value::as_ref))?;
        self.gathered.batch.push_row(schema, row)?;
        self.gathered.bytes += bytes;
        self.rows += 1;
        self.write_if_full()
    }

    /// Waits until the full segments given so far are written and their keys are checked.
    ///
    /// # Errors
    /// As for [`Load::push`].
    pub fn wait(&self) -> Result<()> {
        self.shared.wait_below(1)
    }

    /// Has memory for some more rows counted. False when there is not enough, even for them alone.
    #[inline]
    fn make_room(&mut self, rows: usize, bytes: usize) -> Result<bool> {
        let needed = self.gathered.needed_with(&self.budget, rows, bytes);
        if needed <= self.gathered.held.bytes() { Ok(true) } else { self.find_room(rows, bytes) }
    }

    fn refuse(&self, rows: usize, bytes: usize) -> Error {
        let needed = self.gathered.needed_with(&self.budget, rows, bytes);
        self.shared.table.engine.refuse_load(&self.gathered.held, needed)
    }

    #[cold]
    fn find_room(&mut self, rows: usize, bytes: usize) -> Result<bool> {
        let shared = Arc::clone(&self.shared);
        let engine = &shared.table.engine;
        loop {
            let needed = self.gathered.needed_with(&self.budget, rows, bytes);
            let held = &mut self.gathered.held;
            // More than is needed now, so that not each row reserves.
            let ample = needed + needed / 4;
            if engine.reserve_for_load(held, ample) || engine.reserve_for_load(held, needed) {
                return Ok(true);
            }
            if shared.free_spares() {
                continue;
            }
            if self.gathered.is_spare() {
                self.gathered = Gathered::fresh(Batch::empty(&shared.schema), engine);
                continue;
            }
            let held = &mut self.gathered.held;
            if self.gathered.bytes >= self.budget.segment_bytes / 4 {
                self.write_segment()?;
            } else if shared.is_writing() {
                shared.wait_for_one()?;
            } else if engine.seal_for_load(held, needed)? {
                return Ok(true);
            } else if !self.gathered.batch.is_empty() {
                self.write_segment()?;
            } else {
                return Ok(false);
            }
        }
    }

    fn write_if_full(&mut self) -> Result<()> {
        let limit = self.shared.table.engine.options.segment_rows_max;
        let full =
            self.gathered.batch.len() >= limit || self.gathered.bytes >= self.budget.segment_bytes;
        if full { self.write_segment() } else { Ok(()) }
    }

    /// Hands what has been gathered to a worker.
    fn write_segment(&mut self) -> Result<()> {
        if self.gathered.batch.is_empty() {
            return Ok(());
        }
        if let Some(checks) = &self.shared.checks {
            let limits = self.shared.table.engine.limits();
            checks.test(&self.gathered.batch, self.tested, &limits)?;
        }
        let first_row = self.tested;
        let schema = &self.shared.schema;
        if !self.is_copy {
            self.shared.table.engine.expect_times(schema, &self.gathered.batch, first_row)?;
        }
        if let Some(references) = &mut self.references {
            let engine = &self.shared.table.engine;
            references.test(engine, &self.gathered.batch, first_row)?;
        }
        self.tested += self.gathered.batch.len() as u64;
        let empty = self.shared.empty_batch();
        let mut full = std::mem::replace(&mut self.gathered, empty);
        full.settle(&self.budget);
        self.started += 1;
        self.shared.start(full, first_row, self.budget.workers)
    }

    /// Makes every row visible, durably.
    ///
    /// # Errors
    /// As for [`Load::push`], and what the disk says. Nothing is loaded then, except after
    /// `OutcomeUnknown`.
    pub fn finish(mut self) -> Result<LoadReport> {
        self.push_gathered()?;
        if self.started == 0 && self.takes_the_log() {
            return self.finish_small();
        }
        self.write_segment()?;
        self.shared.wait_below(1)?;
        let engine = Arc::clone(&self.shared.table.engine);
        engine.sync_segment_dir()?;
        engine.environment.tasks.pause();
        let segments = self.shared.segments();
        let written = self.rows - self.shared.left_out();
        if segments.is_empty() {
            return Ok(LoadReport::default());
        }
        let ticket = self.commit(&segments, written)?;
        engine.wake_maintenance();
        engine.acknowledge(ticket)?;
        // Those that a later one replaced count, too.
        let rows = if self.shared.replacing.is_some() { self.rows } else { written };
        Ok(LoadReport { rows, segments: segments.len(), commit: ticket.commit() })
    }

    /// Numbers the frame that makes all rows real, and applies it.
    fn commit(&mut self, segments: &[Arc<Segment>], rows: u64) -> Result<Ticket> {
        let shared = Arc::clone(&self.shared);
        let engine = &shared.table.engine;
        let rows = i64::try_from(rows)
            .map_err(|_| Error::new(ErrorKind::Corrupt, format!("a load of {rows} rows")))?;
        let mut replacing = shared.replacing();
        if let Some(replacing) = &mut replacing {
            replacing.settle();
        }
        let mut catalogue = engine.lock_for_change()?;
        let table = shared.core.id();
        refuse_other_schema(&mut catalogue, table, &shared.schema)?;
        engine.expect_looked_up(&shared.current())?;
        if let Some(references) = &self.references {
            references.expect_there(&mut catalogue)?;
        }
        if engine.has_expiring() && shared.schema.expiry_field().is_some() {
            engine.time_of_commit()?;
        }
        let writer = &mut catalogue.entry(table)?.writer;
        if shared.schema.stream().is_some() {
            shift_to_commit(writer, segments)?;
        }
        let next_row_id = writer.next_row_id();
        let mut segments: Vec<_> = segments.iter().map(|segment| segment.entry()).collect();
        if Bug::RowIdBaseNotInFrame.is_planted() {
            segments.iter_mut().for_each(|entry| entry.row_id_shift = 0);
        }
        let (mut replaced, superseded) = match &mut replacing {
            None => Default::default(),
            Some(replacing) => {
                replacing.expect_alive()?;
                replacing.expect_unique(&shared.core.view())?;
                replacing.row_ids()
            }
        };
        replaced.extend(shared.expired.settle()?);
        // A row may have been replaced first, and have expired when its key came again.
        replaced.sort_unstable();
        replaced.dedup();
        let edit = Edit::Load { table, segments, next_row_id, replaced, superseded };
        refuse_long(&edit)?;
        let (shared, finished) = (&self.shared, &mut self.finished);
        let link: &mut LinkSegments<'_> = &mut |_, _, commit| {
            shared.commit.store(commit, Ordering::Release);
            shared.core.add_live_rows(rows);
            if let Some(replacing) = &replacing {
                replacing.mark_deleted(&shared.core, commit)?;
            }
            Ok(shared.expired.mark_deleted(&shared.core, commit)?)
        };
        engine.commit_edit(&mut catalogue, purpose_of(&edit), &edit, |catalogue, commit| {
            *finished = true;
            let own = Own { link: Some(link), ..Own::default() };
            engine.apply(catalogue, commit, Some(&edit), Source::Own(own)).map(drop)
        })
    }

    /// Do the gathered rows go through the log? Counts what they take then.
    fn takes_the_log(&mut self) -> bool {
        let engine = &self.shared.table.engine;
        let (rows, bytes) = (self.gathered.batch.len(), self.gathered.bytes);
        let limit = engine.options.segment_rows_max.min(SMALL_ROWS);
        if rows == 0 || rows >= limit || bytes >= SMALL_BYTES {
            return rows == 0;
        }
        // Rows of the log would be told by a feed, or be those of one.
        if self.is_copy && self.schema().changes().is_some() {
            return false;
        }
        if !self.schema().has_unique_values() {
            return true;
        }
        // What was looked up for a row once stays.
        if self.is_copy && self.schema().has_generated() {
            return false;
        }
        let cost = Budget::rows_cost(self.schema().fields().len(), rows, bytes);
        cost <= SMALL_ROWS_COST && self.gathered.settle_as_rows(engine, cost)
    }

    fn finish_small(&mut self) -> Result<LoadReport> {
        self.finished = true;
        let mut batch = std::mem::take(&mut self.gathered.batch);
        if !self.is_copy {
            self.shared.table.engine.forget_columns(&self.shared.current(), &mut batch)?;
        }
        if batch.is_empty() {
            return Ok(LoadReport::default());
        }
        let table = &self.shared.table;
        if !self.schema().has_unique_values() {
            let engine = &table.engine;
            match self.is_copy {
                true => engine.commit_tested(&self.shared.current(), &batch)?,
                false => engine.commit_batch(&self.shared.current(), &batch)?,
            };
            return Ok(LoadReport { rows: self.rows, ..LoadReport::default() });
        }
        let row = |i| batch.columns.iter().map(|c| c.value(i).to_owned()).collect();
        let rows: Vec<Vec<Value>> = (0..batch.len()).map(row).collect();
        let on_conflict = match (self.shared.skips, &self.shared.replacing) {
            (true, _) => OnConflict::Skip,
            (false, Some(_)) => OnConflict::Replace,
            (false, None) => OnConflict::Fail,
        };
        let rows = table.put_batch(&self.shared.current(), &rows, &on_conflict, &without_limits)?;
        Ok(LoadReport { rows, ..LoadReport::default() })
    }

    /// Takes index entries, segments and files away again.
    fn abort(&mut self) {
        // The error of a worker was returned, or the load is dropped.
        let _ = self.shared.wait_below(1);
        let table = &self.shared.table;
        let segments = self.shared.take_segments();
        let ids: Vec<u64> = segments.iter().map(|s| s.id()).collect();
        let mut still_indexed = Vec::new();
        for segment in &segments {
            let stays = Bug::AbortedLoadStaysIndexed.is_planted();
            if self.schema().has_unique_values()
                && !stays
                && indexing::unindex_segment(&table.engine, &self.shared.core, segment).is_err()
            {
                still_indexed.push(segment.id());
            }
            segment.mark_for_deletion();
        }
        let _catalogue = table.engine.lock();
        let core = &self.shared.core;
        let mut view = (*core.view()).clone();
        view.remove(&ids);
        // Entries that cannot be found again lead nowhere for good.
        for row_group in still_indexed {
            let forwarding = Forwarding::new(row_group, Vec::new(), Vec::new());
            view.retire(Arc::new(forwarding));
        }
        // default: of a view that is refused the one before stays, whose segments have no readers
        let _ = core.set_view(view);
    }
}

/// Refuses to replace rows that others name by other fields than the key.
fn refuse_replacing_named(schema: &Schema) -> Result<()> {
    if named_beside_key(schema)?.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(
        "rows that others refer to by other fields than the key are not replaced by a load: use \
         an upsert",
    ))
}

/// Refuses a load that replaces more rows than a frame can name.
fn refuse_long(edit: &Edit) -> Result<()> {
    let Edit::Load { replaced, superseded, .. } = edit else { return Ok(()) };
    let count = replaced.len() + superseded.len();
    // A number takes a byte at least.
    if count == 0 || edit.encode().len() <= PAYLOAD_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "the load replaces {count} rows, whose numbers take more than the {PAYLOAD_BYTES_MAX} \
         bytes that a commit may have: load less at a time"
    );
    Err(Error::new(ErrorKind::OverBudget, message))
}

impl Drop for Load {
    fn drop(&mut self) {
        if !self.finished && self.started > 0 {
            self.abort();
        }
        // A worker that is done may hold on to what is shared for a moment longer.
        self.shared.free_spares();
    }
}

/// A key that a load may not add.
pub(crate) fn refused(kind: ErrorKind, key: &str, why: &str) -> Error {
    Error::new(kind, format!("{key} {why}"))
}

#[cfg(test)]
mod tests;
