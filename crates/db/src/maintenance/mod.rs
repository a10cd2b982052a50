//! Background work: sealing, merging, checkpoints, and forgetting what no snapshot needs.
//!
//! One task does all of it, one job after another, so that a checkpoint never meets a half-done
//! merge. Each step picks the most urgent job:
//!
//! 1. forget when rows were created, and dropped tables, once no snapshot asks any more;
//! 2. end events of streams that are older than they are to be kept;
//! 3. seal frozen groups, oldest first;
//! 4. make a checkpoint, when the log is too long;
//! 5. rewrite what has rows that were erased, until the last byte of them is gone;
//! 6. merge segments that are a twentieth dead, or too many;
//! 7. build the runs of indexes that are missing;
//! 8. remove value files without a holder, and rewrite what refers to those that are mostly
//!    garbage.
//!
//! Before each job the log's reserve is filled, where the disk was full before.
//!
//! A job that fails is tried again a second later; what it wrote is named by no catalogue. A merge
//! that fails is tried again later each time, and does not hold back those of other tables. So is
//! a run that cannot be built, which does not hold back what comes after it either.

mod checkpoint;
pub(crate) mod compaction;
mod ended_groups;
mod erasing;
mod flusher;
mod index_file;
mod index_runs;
pub(crate) mod retention;
mod seal;
mod sink;
mod state;
mod unfinished_erasures;
mod value_gc;
mod work;

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use esker_vfs::sync::MutexGuard;
use esker_vfs::{Step, Task};

use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};
pub(crate) use checkpoint::{PinnedState, checkpoint_path, index_path, parse_number};
pub use compaction::manual::CompactReport;
pub(crate) use flusher::{flush_window, flusher_of};
pub(crate) use index_file::IndexFile;
pub(crate) use index_runs::{Building, RunCounts, count_runs};
pub(crate) use seal::frozen_groups;
pub(crate) use sink::FileSink;
pub(crate) use state::{State, TableJob};
use value_gc::CollectionThreshold;
pub(crate) use work::Work;
pub use work::WorkInfo;

/// A checkpoint is made for the sake of the index past this many times the rows that are worth an
/// index file.
const UNCOVERED_FACTOR: usize = 8;

/// The log's reserve is filled again after this time, when the disk was full.
const RESERVE_RETRY: Duration = Duration::from_secs(1);

/// The holder of a job. It is over when this is dropped, by a panic, too: the next one would wait
/// for ever.
struct Running<'e>(&'e Engine);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.maintenance_state().running = false;
        self.0.environment.tasks.signal(&self.0.progress, usize::MAX);
        // It has left alone what is due.
        self.0.wake_maintenance();
    }
}

impl Engine {
    pub(crate) fn maintenance_state(&self) -> MutexGuard<'_, State> {
        // default: a panic leaves what is locked as it was, or whole
        self.maintenance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the numbers of index files that go with the next checkpoint.
    pub(crate) fn add_old_index_files(&self, numbers: &mut Vec<u64>) {
        numbers.extend(&self.maintenance_state().old_index_files);
    }

    /// Starts the background tasks.
    pub(crate) fn start_tasks(self: &Arc<Self>) {
        if self.options.background && !self.options.read_only {
            let task = Box::new(Maintenance { engine: Arc::downgrade(self) });
            let handle = self.environment.tasks.spawn("maintenance", task);
            let _ = self.maintenance_task.set(handle);
        }
        flusher::start(self);
    }

    /// Does the most urgent job, if there is one. False when there is nothing to do, or another
    /// thread is at it. A caller that is not `patient` tries what has just failed once more.
    pub(crate) fn maintain(self: &Arc<Self>, patient: bool) -> Result<bool> {
        let mut state = self.maintenance_state();
        if state.running || state.waiting > 0 {
            return Ok(false);
        }
        state.running = true;
        drop(state);
        let result = self.do_one_job(patient);
        self.maintenance_state().running = false;
        self.environment.tasks.signal(&self.progress, usize::MAX);
        result
    }

    fn do_one_job(self: &Arc<Self>, patient: bool) -> Result<bool> {
        if self.journal.log().is_some_and(esker_log::Log::is_poisoned) {
            let message = "a write or a sync of the log failed; open the database again";
            return Err(Error::new(ErrorKind::Poisoned, message));
        }
        self.look_after_reserve();
        self.finish_moving()?;
        self.expire_held_snapshots();
        let settled = self.settle();
        if self.do_urgent_job()? {
            return Ok(true);
        }
        // One that fails holds back nothing else.
        let erased = self.erase_one(patient);
        if matches!(erased, Ok(true)) {
            return Ok(true);
        }
        match (self.do_usual_job(patient, settled), erased) {
            (Ok(false), Err(failed)) => Err(failed),
            // It has noted why, and writers that wait for memory do not wait for it.
            (done, _) => done,
        }
    }

    /// Merges, builds runs, and does what is less urgent; or says whether anything was done before.
    fn do_usual_job(self: &Arc<Self>, patient: bool, settled: bool) -> Result<bool> {
        if self.merge_one(patient)? {
            return Ok(true);
        }
        let built = self.build_one_run(patient);
        if matches!(built, Ok(true)) {
            return Ok(true);
        }
        match (self.do_less_urgent_job(), built) {
            (Ok(false), Err(failed)) => Err(failed),
            (done, built) => {
                // Nothing else reports it then.
                built.err().iter().for_each(|e| self.note_error(e));
                Ok(done? || settled)
            }
        }
    }

    /// Fills the log's reserve. A failure keeps nothing else from being done.
    fn look_after_reserve(&self) {
        let filled = self.fill_log_reserve();
        self.maintenance_state().is_reserve_short = !matches!(filled, Ok(true));
        filled.err().iter().for_each(|e| self.note_error(e));
    }

    /// What writers wait for, sooner or later.
    fn do_urgent_job(self: &Arc<Self>) -> Result<bool> {
        let is_moved = match self.move_date_if_due() {
            // The date moves once there is space again; until then, files may go.
            Err(e) if e.kind() == ErrorKind::NoSpace => {
                self.note_error(&e);
                false
            }
            moved => moved?,
        };
        if is_moved || self.end_old_events()? || self.seal_frozen()? {
            return Ok(true);
        }
        // default: a database in memory has no log
        let log_bytes = self.journal.log().map_or(0, esker_log::Log::bytes);
        if log_bytes > self.options.log_limit_bytes {
            self.make_checkpoint()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// What is left to do when nothing is to be sealed, merged or built.
    fn do_less_urgent_job(self: &Arc<Self>) -> Result<bool> {
        if self.remove_unused_values()? || self.empty_value_file(CollectionThreshold::Usual)? {
            return Ok(true);
        }
        // Opening would have to read the keys of many rows.
        if self.is_durable()
            && self.uncovered_rows() >= UNCOVERED_FACTOR * self.options.index_rows_min
        {
            self.make_checkpoint()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Runs a job when no other is running; waits for it otherwise, and is the next then.
    pub(crate) fn exclusively<R>(
        self: &Arc<Self>,
        job: impl FnOnce(&Arc<Self>) -> Result<R>,
    ) -> Result<R> {
        self.maintenance_state().waiting += 1;
        loop {
            let seen = self.progress.generation();
            {
                let mut state = self.maintenance_state();
                if !state.running {
                    state.running = true;
                    state.waiting -= 1;
                    break;
                }
            }
            self.environment.tasks.wait(&self.progress, seen);
        }
        let _running = Running(self);
        job(self)
    }

    /// Is somebody at a job just now, or about to be?
    pub(crate) fn is_maintaining(&self) -> bool {
        let state = self.maintenance_state();
        state.running || state.waiting > 0
    }

    /// Forgets what only snapshots ask for that are older than all there are. True when there was
    /// something that may have waited for that.
    fn settle(&self) -> bool {
        let oldest = self.oldest();
        // A tail tells what is on the disk only, which it knows by when rows were created.
        let settled = oldest.min(self.watermarks.durable());
        let catalogue = self.lock();
        for entry in catalogue.tables.values() {
            entry.writer.table().settle(settled);
        }
        // The files of dropped tables go with the last that knows of them.
        if let Some(names) = self.names.load().settled(oldest) {
            self.names.store(Arc::new(names));
        }
        let mut state = self.maintenance_state();
        let settled = state.settles_at.take_if(|commit| *commit <= oldest);
        settled.is_some()
    }

    /// A snapshot ended: dead rows that it saw may go, and what only it needed.
    pub(crate) fn wake_for_reclaim(&self) {
        let mut state = self.maintenance_state();
        state.erasures.look_soon();
        let has_past = self.names.load().has_past();
        let settles = state.settles_at.is_some() || !state.skip_cache.is_empty();
        let erases = !state.erasures.is_empty() || self.has_new_erasures(&state.erasures);
        if has_past || settles || erases {
            drop(state);
            self.wake_maintenance();
        }
    }

    pub(crate) fn note_error(&self, error: &Error) {
        let mut state = self.maintenance_state();
        state.last_error = Some(error.to_string());
        state.failures += 1;
        state.failure = Some(error.repeated());
        drop(state);
        self.environment.tasks.signal(&self.progress, usize::MAX);
    }
}

struct Maintenance {
    engine: Weak<Engine>,
}

impl Task for Maintenance {
    fn step(&mut self) -> Step {
        let Some(engine) = self.engine.upgrade() else { return Step::Done };
        if engine.stopping.load(Ordering::Acquire) {
            return Step::Done;
        }
        match engine.maintain(true) {
            Ok(true) => Step::Again,
            Ok(false) => {
                let is_short = engine.maintenance_state().is_reserve_short;
                let refill = is_short.then_some(RESERVE_RETRY);
                let next = engine.until_next_try().into_iter().chain(engine.until_expiry());
                let next = next.chain(engine.until_look()).chain(engine.until_events_end());
                let next = next.chain(engine.until_erasures());
                let next = next.chain(refill).min();
                // default: nothing is due at a known time
                next.map_or(Step::Idle, Step::After)
            }
            Err(e) => {
                engine.note_error(&e);
                Step::After(Duration::from_secs(1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use esker_vfs::sim::{Options as SimOptions, Simulation};

    use crate::{DataType, Options, Result, Schema};

    /// Nobody could do anything afterwards: all waited for the one that had panicked.
    #[test]
    fn a_job_that_panics_is_over() {
        let db = Options::new().background(false).memory().unwrap();
        let engine = db.engine();
        let job = || engine.exclusively(|_| -> Result<()> { panic!("a job that fails") });
        assert!(catch_unwind(AssertUnwindSafe(job)).is_err());
        assert!(!engine.is_maintaining());
        engine.exclusively(|_| Ok(())).unwrap();
    }

    /// Beside writers whose groups are sealed all the time, whoever built an index waited for ever.
    #[test]
    fn who_waits_for_a_turn_is_the_next() {
        let options = Options::new().background(false).group_limit(2, 1 << 20);
        let db = options.environment(Simulation::new(1, SimOptions::default()).environment());
        let db = db.small_group_limit(0).open("db").unwrap();
        let schema = Schema::builder().field("n", DataType::I64).build().unwrap();
        let table = db.create_table("t", schema).unwrap();
        for n in 0..10 {
            table.insert(&[crate::Value::Int(n)]).unwrap();
        }
        let engine = db.engine();
        engine.maintenance_state().waiting = 1;
        assert!(engine.is_maintaining() && !engine.maintain(true).unwrap());
        assert_eq!(table.core().view().segments().count(), 0);
        engine.exclusively(|_| Ok(())).unwrap();
        engine.maintenance_state().waiting = 0;
        assert!(engine.maintain(true).unwrap());
        assert_eq!(table.core().view().segments().count(), 1);
    }

    /// Where rows of rewritten row groups went was known for as long as any older snapshot was
    /// held.
    #[test]
    fn forwarding_goes_though_snapshots_are_held() {
        let db = Options::new().background(false).group_limit(8, 1 << 20).memory().unwrap();
        let schema = Schema::builder().field("id", DataType::U64).field("v", DataType::U64);
        let table = db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap();
        let mut held = Vec::new();
        for v in 0..40u64 {
            table.upsert(&[(v % 4).into(), v.into()]).unwrap();
            if v % 12 == 3 {
                held.push((db.snapshot().unwrap(), v - 3));
            }
        }
        db.wait_idle().unwrap();
        assert!(db.info().merges.bytes > 0);
        assert_eq!(table.core().view().retired.len(), 0);
        for (snapshot, least) in &held {
            for id in 0..4u64 {
                let row = snapshot.table("t").unwrap().get(&[id.into()]).unwrap().unwrap();
                assert_eq!(row.get("v"), Some(&(least + id).into()));
            }
        }
        let settles = || db.engine().maintenance_state().settles_at.is_some();
        assert!(settles(), "older snapshots ask when rows were created");
        drop(held);
        db.wait_idle().unwrap();
        assert!(!settles());
    }
}
