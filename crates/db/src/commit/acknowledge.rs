//! Changes that somebody else waits for.
//!
//! A server has many clients and few threads. Were each change to wait for the disk on the thread
//! that makes it, no more changes could share a sync than there are threads. Within
//! [`Database::without_waiting`] a change is applied and numbered, and the thread that answers the
//! client waits for it, with all others, by one [`Database::sync`].

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_log::sabotage::planted;

use crate::commit::journal::{Journal, Ticket};
use crate::engine::Engine;
use crate::{Database, Durability, Error, ErrorKind, Result};

thread_local! {
    /// The engine whose changes do not wait on this thread, and the newest one that should have.
    static DEFERRED: Cell<Option<(usize, u64)>> = const { Cell::new(None) };
}

/// Ends the scope, panic or not.
struct Scope(Option<(usize, u64)>);

impl Drop for Scope {
    fn drop(&mut self) {
        DEFERRED.set(self.0);
    }
}

impl Database {
    /// Runs changes of rows and entries without waiting for the disk. Returns the commit up to
    /// which the database has to be durable before what `run` returned is reported, errors
    /// included: see [`Database::is_durable`] and [`Database::sync`]. `None`: it may be reported
    /// now.
    ///
    /// No reader sees the changes before they are durable, so `run` does not either. New tables and
    /// indexes are part of what is deferred; bulk loads and the removal of files wait for the disk.
    ///
    /// ```
    /// use esker::Options;
    ///
    /// let db = Options::new().memory()?;
    /// let bucket = db.bucket("b")?;
    /// let (done, commit) = db.without_waiting(|| bucket.put(b"k", b"v"));
    /// if commit.is_some_and(|commit| !db.is_durable(commit)) {
    ///     db.sync()?;
    /// }
    /// done?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn without_waiting<R>(&self, run: impl FnOnce() -> R) -> (R, Option<u64>) {
        let engine = identity(self.engine());
        let scope = Scope(DEFERRED.replace(Some((engine, 0))));
        let result = run();
        // default: the scope was there until now
        let waiting = DEFERRED.get().map_or(0, |(_, commit)| commit);
        drop(scope);
        (result, (waiting > 0).then_some(waiting))
    }

    /// True once everything up to a commit is on the disk; of a database in memory, and of one
    /// whose commits do not wait for the disk, always.
    #[must_use]
    pub fn is_durable(&self, commit: u64) -> bool {
        let engine = self.engine();
        let waits = engine.options.durability == Durability::Sync;
        !waits || engine.journal.log().is_none_or(|log| log.durable() >= commit)
    }
}

fn identity(engine: &Engine) -> usize {
    std::ptr::from_ref(engine).addr()
}

impl Engine {
    /// Notes a commit for the caller that waits in this thread's place; false when there is none.
    pub(crate) fn defer(&self, commit: u64) -> bool {
        match DEFERRED.get() {
            Some((engine, newest)) if engine == identity(self) => {
                DEFERRED.set(Some((engine, newest.max(commit))));
                true
            }
            _ => false,
        }
    }

    /// Waits until a commit may be acknowledged.
    pub fn acknowledge(&self, ticket: Ticket) -> Result<()> {
        self.wait_until(ticket, self.options.durability == Durability::Sync)
    }

    /// Waits until a commit may be acknowledged: once it is on the disk, or at once, or as the
    /// database says.
    pub fn acknowledge_as(self: &Arc<Self>, ticket: Ticket, sync: Option<bool>) -> Result<()> {
        if sync == Some(false) && self.is_durable() {
            crate::maintenance::flusher_of(self);
        }
        let sync = sync.filter(|_| !planted("durability_of_a_write_ignored"));
        // default: what a write does not say the database does
        let sync = sync.unwrap_or(self.options.durability == Durability::Sync);
        // A write that needs more than there is waits here, where maintenance sees it.
        let is_usual = self.options.durability == Durability::Sync && self.journal.log().is_some();
        if sync && is_usual && self.defer(ticket.commit()) {
            return Ok(());
        }
        self.wait_until(ticket, sync)
    }

    fn wait_until(&self, ticket: Ticket, sync: bool) -> Result<()> {
        match &self.journal {
            Journal::Memory(..) => {}
            Journal::Log(log) if !sync => {
                // What may be lost is not shown any more.
                if log.is_poisoned() {
                    return Err(in_doubt(ticket.commit()));
                }
                self.watermarks.reveal(ticket.commit());
                self.schedule_flush();
            }
            Journal::Log(log) => {
                if let Ticket::Log(ticket) = ticket {
                    log.wait_durable(ticket)?;
                }
            }
        }
        debug_assert!(self.visible() >= ticket.commit(), "an acknowledged commit is visible");
        Ok(())
    }

    /// Waits until everything that is applied may be acknowledged: an answer such as "exists
    /// already" reports commits that a power loss must not take back.
    pub fn acknowledge_published(&self) -> Result<()> {
        let waits =
            self.options.durability == Durability::Sync && !planted("refusal_before_durable");
        let published = self.watermarks.published();
        if !waits || self.visible() >= published || self.defer(published) {
            return Ok(());
        }
        self.sync().map_err(|e| Error::new(ErrorKind::Poisoned, e.to_string()))
    }

    /// The same for what was committed up to a number. Where no commit waits for the disk, what is
    /// reported is from now on seen by all: no reader reads, after that, what was before it.
    pub fn acknowledge_through(&self, commit: u64) -> Result<()> {
        if self.visible() >= commit {
            return Ok(());
        }
        if let (Journal::Log(log), Durability::Async { .. }) =
            (&self.journal, self.options.durability)
        {
            if log.is_poisoned() {
                return Err(in_doubt(commit));
            }
            self.watermarks.reveal(commit);
            return Ok(());
        }
        self.acknowledge_published()
    }

    /// Waits until everything committed so far is on the disk.
    pub fn sync(&self) -> Result<()> {
        match &self.journal {
            Journal::Memory(..) => Ok(()),
            Journal::Log(log) => Ok(log.flush()?),
        }
    }

    fn schedule_flush(&self) {
        if !self.dirty.swap(true, Ordering::AcqRel)
            && let Some(task) = self.flusher_task.get()
        {
            task.wake();
        }
    }
}

fn in_doubt(commit: u64) -> Error {
    let message = format!(
        "whether commit {commit} survives is unknown until the database is opened again: \
         a write or a sync of the log failed"
    );
    Error::new(ErrorKind::OutcomeUnknown, message)
}
