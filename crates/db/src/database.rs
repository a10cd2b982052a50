//! A handle to a database.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};

use esker_query::json::JsonQuery;
use esker_query::{Explanation, Query, QueryResult};
use esker_vfs::Environment;

use crate::commit::journal::Journal;
use crate::engine::{Engine, ExpiringSnapshots};
use crate::engine_handle::EngineHandle;
use crate::read::held_snapshots::HeldSnapshots;
use crate::{Error, Limits, LockHolder, Options, QueryOptions, Result, Snapshot, Table};

/// A longer log is checkpointed when the database is closed, in bytes.
const CLOSING_LOG_BYTES: u64 = 16 << 20;

/// An open database. Cheap to clone; usable from any number of threads. The last handle that is
/// dropped closes it; [`Database::close`] does so and returns errors.
#[derive(Clone)]
pub struct Database {
    handle: Arc<Handle>,
    engine: EngineHandle,
}

impl Options {
    /// Opens the database in a directory.
    ///
    /// # Errors
    /// `Locked` when another process has it open, `NotFound` when there is none and it must not
    /// be created, `Corrupt` when it is damaged (nothing is modified then), `Io`.
    pub fn open(self, dir: impl AsRef<Path>) -> Result<Database> {
        Database::open_with(self, dir.as_ref())
    }

    /// A database in memory: the same engine without files, gone when the last handle is dropped.
    ///
    /// # Errors
    /// `OverBudget` when the system gives no memory.
    pub fn memory(self) -> Result<Database> {
        match is_on_disk() {
            true => self.on_simulated_disk(),
            false => Database::memory_with(self),
        }
    }

    /// A new database on a disk of its own that is simulated in memory, faults apart.
    fn on_simulated_disk(self) -> Result<Database> {
        use esker_vfs::sim;
        let disk = sim::Simulation::new(0, sim::Options::default()).environment();
        // default: the machine, unless a test has another
        let own = self.environment.clone().unwrap_or_else(Environment::os);
        let environment = Environment { files: disk.files, ..own };
        self.environment(environment).open("database")
    }

    /// A database in memory that begins with what a directory holds, which is only read: what
    /// [`Database::save`] wrote, a backup, or any database without a writer.
    ///
    /// # Errors
    /// As for [`Options::open`] of a database to be read, and `OverBudget` when it does not fit.
    pub fn memory_from(self, dir: impl AsRef<Path>) -> Result<Database> {
        let environment = self.environment.clone();
        let saved = Self { environment, ..Self::new() }.memory_limit(self.memory_limit_bytes);
        let saved = saved.read_only(true).open(dir)?;
        let database = self.memory()?;
        database.copy_from(&saved)?;
        Ok(database)
    }
}

/// True when tests of databases in memory are to run on a simulated disk: both stores do the same.
/// Optimised programs do not ask.
fn is_on_disk() -> bool {
    cfg!(debug_assertions) && std::env::var_os("ESKER_TEST_MEMORY_ON_DISK").is_some()
}

/// Closes the engine when the last user handle goes; background tasks do not keep it open.
struct Handle {
    engine: Arc<Engine>,
    /// Not the engine's, which they keep alive.
    held_snapshots: Arc<HeldSnapshots>,
}

impl Handle {
    fn new(engine: Arc<Engine>) -> Arc<Self> {
        let (environment, hold) = (&engine.environment, engine.options.cursor_hold);
        let held_snapshots = Arc::new(HeldSnapshots::new(environment, hold));
        let held: Weak<dyn ExpiringSnapshots> = Arc::<HeldSnapshots>::downgrade(&held_snapshots);
        // An engine has one handle.
        let _ = engine.held_snapshots.set(held);
        Arc::new(Self { engine, held_snapshots })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.held_snapshots.clear();
        // A caller that wants the errors calls close.
        let _ = self.engine.shut_down();
    }
}

impl Database {
    /// Opens the database in a directory, creating it when there is none.
    ///
    /// # Errors
    /// As for [`Options::open`].
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(dir)
    }

    pub(crate) fn open_with(options: Options, dir: &Path) -> Result<Self> {
        Ok(Self::of(Engine::open(options, dir)?))
    }

    /// A handle to an engine which has none.
    pub(crate) fn of(engine: Arc<Engine>) -> Self {
        Self { engine: EngineHandle::new(&engine), handle: Handle::new(engine) }
    }

    pub(crate) fn memory_with(options: Options) -> Result<Self> {
        Ok(Self::of(Engine::in_memory(options)?))
    }

    pub(crate) fn engine(&self) -> &EngineHandle {
        &self.engine
    }

    /// The same database by another handle of its engine.
    pub(crate) fn with_engine(&self, engine: EngineHandle) -> Self {
        Self { handle: Arc::clone(&self.handle), engine }
    }

    pub(crate) fn held_snapshots(&self) -> &HeldSnapshots {
        &self.handle.held_snapshots
    }

    /// The table of a name.
    ///
    /// # Errors
    /// `NotFound` naming the tables there are.
    pub fn table(&self, name: &str) -> Result<Table> {
        let core = self.engine().table(name)?;
        Ok(Table::new(self.engine().clone(), core))
    }

    /// The names of all tables, sorted.
    #[must_use]
    pub fn tables(&self) -> Vec<String> {
        self.engine().table_names()
    }

    /// The database as of the newest commit, for as long as the snapshot lives.
    ///
    /// # Errors
    /// `OverBudget` when there is no memory for another snapshot.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::take(self.engine())
    }

    /// Answers a query as of the newest commit.
    ///
    /// # Errors
    /// `NotFound` for an unknown table, `InvalidInput` for an unknown field or a type that does
    /// not fit, `OverBudget` when the answer needs more memory than it may take, `TimedOut` and
    /// `Cancelled` when it was ended ([`Options::statement_timeout`], [`Options::cancel`]).
    pub fn query(&self, query: &Query) -> Result<QueryResult> {
        self.snapshot()?.query(query)
    }

    /// Answers a query with parameters, or within limits of its own.
    ///
    /// # Errors
    /// As for [`Database::query`]; `TimedOut` and `Cancelled` when it was ended.
    pub fn query_with(&self, query: &Query, options: &QueryOptions) -> Result<QueryResult> {
        self.snapshot()?.query_with(query, options)
    }

    /// Answers a query written as JSON (`docs/reference/query-json.md`).
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let db = esker::Options::new().memory()?;
    /// # let schema = esker::Schema::builder().field("age", esker::DataType::U8).build()?;
    /// db.create_table("people", schema)?.insert(&[36u8.into()])?;
    /// let query = r#"{"table": "people", "where": [{"field": "age", "op": "gt", "value": 30}]}"#;
    /// assert_eq!(db.query_json(query)?.row_count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Database::query`]; messages name the place in the JSON.
    pub fn query_json(&self, text: &str) -> Result<QueryResult> {
        let query = JsonQuery::parse(text)?;
        if query.is_page() {
            let message = "\"cursor\", \"total\" and \"snapshot\" are for pages: see page_json";
            return Err(Error::invalid(message));
        }
        let snapshot = self.snapshot()?;
        let (timeout, memory_bytes) = (query.timeout()?, query.memory_limit_bytes()?);
        let limits = Limits { timeout, memory_bytes, ..Limits::default() };
        let semantics = query.semantics()?;
        let options = QueryOptions { limits, semantics, ..QueryOptions::default() };
        snapshot.query_with(&snapshot.bind_json(&query)?, &options)
    }

    /// How a query is answered, and what came of running it.
    ///
    /// # Errors
    /// As for [`Database::query`].
    pub fn explain(&self, query: &Query) -> Result<Explanation> {
        self.snapshot()?.explain(query)
    }

    /// How a query would be answered. It is not run.
    ///
    /// # Errors
    /// As for [`Database::query`].
    pub fn plan(&self, query: &Query) -> Result<Explanation> {
        self.snapshot()?.plan(query)
    }

    /// As [`Database::plan`], with parameters or limits.
    ///
    /// # Errors
    /// As for [`Database::query_with`].
    pub fn plan_with(&self, query: &Query, options: &QueryOptions) -> Result<Explanation> {
        self.snapshot()?.plan_with(query, options)
    }

    /// As [`Database::explain`], with parameters or limits.
    ///
    /// # Errors
    /// As for [`Database::query_with`].
    pub fn explain_with(&self, query: &Query, options: &QueryOptions) -> Result<Explanation> {
        self.snapshot()?.explain_with(query, options)
    }

    /// Waits until everything committed so far is on the disk.
    ///
    /// # Errors
    /// `OutcomeUnknown` after a failed sync: what was not on the disk before may be lost.
    pub fn sync(&self) -> Result<()> {
        self.engine().sync()
    }

    /// Makes a checkpoint, so that the log can be dropped and the next open is fast.
    ///
    /// # Errors
    /// `ReadOnly`, `NoSpace`, `Io`.
    pub fn checkpoint(&self) -> Result<()> {
        let engine = self.engine();
        drop(engine.lock_for_change()?);
        engine.exclusively(Engine::make_requested_checkpoint)
    }

    /// Waits until sealing and merging have nothing left to do.
    ///
    /// # Errors
    /// What the last background job met.
    pub fn wait_idle(&self) -> Result<()> {
        let engine = self.engine();
        if engine.options.read_only {
            return Ok(());
        }
        loop {
            let seen = engine.progress.generation();
            if engine.maintain(false)? {
                continue;
            }
            if !engine.is_maintaining() {
                return Ok(());
            }
            engine.environment.tasks.wait(&engine.progress, seen);
        }
    }

    /// Says in the lock file where this process serves the database: see
    /// [`LockHolder::address`](crate::LockHolder). Nothing for a database in memory, for one that
    /// is open for reading, and on a full disk.
    ///
    /// # Errors
    /// `Io`.
    pub fn announce(&self, address: &str) -> Result<()> {
        let engine = self.engine();
        // default: a panic leaves what is locked as it was, or whole
        let lock = engine.lock_file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lock) = lock.as_ref().filter(|_| !engine.options.read_only) else {
            return Ok(());
        };
        let mut holder = LockHolder::this(&engine.environment, engine.options.program.as_deref());
        if let Some(known) = LockHolder::read(&engine.environment, &engine.dir) {
            holder.since_us = known.since_us;
        }
        holder.address = Some(address.to_owned());
        Ok(lock.describe(&holder.text())?)
    }

    /// Ends background work, makes everything durable, and closes the database for all handles.
    /// Tables and snapshots that still live can be read, and change nothing any more; the
    /// directory is free for the next open. A load that has not finished is lost.
    ///
    /// # Errors
    /// `Poisoned` or `Io` when the last commits may not be durable.
    pub fn close(self) -> Result<()> {
        self.held_snapshots().clear();
        self.engine().shut_down()
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("dir", &self.engine().dir).finish_non_exhaustive()
    }
}

impl Engine {
    /// Stops background work and closes the log. The second call does nothing.
    pub(crate) fn shut_down(self: &Arc<Self>) -> Result<()> {
        self.stopping.store(true, Ordering::Release);
        for task in [&self.maintenance_task, &self.flusher_task] {
            if let Some(task) = task.get() {
                task.wake();
                task.join();
            }
        }
        self.checkpoint_before_closing();
        {
            let mut catalogue = self.lock();
            if catalogue.closed {
                return Ok(());
            }
            self.return_values(&mut catalogue);
            self.log_clock_at_close();
            catalogue.closed = true;
        }
        let result = match &self.journal {
            Journal::Log(log) => log.close(),
            Journal::Memory(..) => Ok(()),
        };
        self.segment_files.give_up();
        // Handles that are left may still read; another process may open the database.
        // default: a panic leaves what is locked as it was, or whole
        drop(self.lock_file.lock().unwrap_or_else(PoisonError::into_inner).take());
        Ok(result?)
    }

    /// A long log or a large unsaved index would make the next open slow.
    fn checkpoint_before_closing(self: &Arc<Self>) {
        let Some(log) = self.journal.log() else { return };
        let closed = self.lock().closed;
        let slow = log.bytes() > CLOSING_LOG_BYTES || self.are_index_files_stale();
        if slow
            && !closed
            && !log.is_poisoned()
            && let Err(e) = self.exclusively(Self::make_checkpoint)
        {
            self.note_error(&e);
        }
    }
}
