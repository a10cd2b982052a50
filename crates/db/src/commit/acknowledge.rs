//! When a commit is acknowledged: once it is on the disk, at once, or by the caller.
//!
//! A server has many clients and few threads. Were each change to wait for the disk on the thread
//! that makes it, no more changes could share a sync than there are threads. A call by a
//! [`Deferred`] handle applies and numbers its change, and notes the commit. Who answers the client
//! waits for it, with all others, by one [`Database::sync`].
//!
//! # Invariants
//!
//! 1. A commit is acknowledged once it is visible: `wait_until` refuses it before.
//! 2. A commit that waits for the disk is acknowledged once it is durable: the same.
//! 3. What a deferred handle has returned is reported by its caller, once the database is durable
//!    up to [`Deferred::commit`].
//!
//! Two waits are never left to the caller. What begins anew after a conflict reads what it
//! conflicted with: [`Engine::wait_for_published`]. And no crash may bring back a value of a
//! sequence that is answered by itself: [`EngineHandle::next_value`] waits for the frame that made
//! it free.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_log::sabotage::Bug;

use crate::commit::journal::{Journal, Ticket};
use crate::engine::Engine;
use crate::engine_handle::EngineHandle;
use crate::{Database, Durability, Error, ErrorKind, Result};

/// Bytes of asynchronous commits that a crash may take, at the most, and those of one commit.
const UNSYNCED_BYTES_MAX: u64 = 8 << 20;

/// A handle of a database whose calls do not wait for the disk, nor do those of the tables,
/// buckets, batches and transactions that are made with it. What they return, errors included, may
/// be reported once the database is durable up to [`Deferred::commit`].
///
/// No reader sees the changes before they are durable, so that calls by this handle do not either.
/// New tables and indexes are part of what is deferred. Bulk loads and the removal of files wait
/// for the disk, and so do values of sequences, and statements and definitions that begin
/// anew after a conflict.
///
/// ```
/// use esker::Options;
///
/// let db = Options::new().memory()?;
/// let deferred = db.deferred();
/// let done = deferred.bucket("b").and_then(|bucket| bucket.put(b"k", b"v"));
/// // Others may go on meanwhile; one sync is enough for all of them.
/// deferred.wait()?;
/// done?;
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Deferred(Database);

impl Deref for Deferred {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.0
    }
}

impl Deferred {
    /// The newest commit that has to be durable before what calls have returned is reported: see
    /// [`Database::is_durable`]. `None`: it may be reported now.
    #[must_use]
    pub fn commit(&self) -> Option<u64> {
        self.0.engine().deferred_commit()
    }

    /// The same; later calls begin anew. For a handle that one thread uses at a time.
    #[must_use]
    pub fn take_commit(&self) -> Option<u64> {
        self.0.engine().take_deferred_commit()
    }

    /// Waits until what calls have returned so far may be reported.
    ///
    /// # Errors
    /// As for [`Database::sync`].
    pub fn wait(&self) -> Result<()> {
        match self.commit().filter(|commit| !self.is_durable(*commit)) {
            Some(_) => self.sync(),
            None => Ok(()),
        }
    }
}

impl Database {
    /// A handle whose calls leave it to the caller to wait for the disk.
    #[must_use]
    pub fn deferred(&self) -> Deferred {
        Deferred(self.with_engine(self.engine().deferred()))
    }

    /// A handle whose calls wait for the disk, as the durability of the database says.
    #[must_use]
    pub fn waiting(&self) -> Self {
        self.with_engine(EngineHandle::new(self.engine()))
    }

    /// True once everything up to a commit is on the disk, whatever the durability of the database
    /// says; of a database in memory, always.
    #[must_use]
    pub fn is_on_disk(&self, commit: u64) -> bool {
        self.engine().journal.log().is_none_or(|log| log.durable() >= commit)
    }

    /// True once everything up to a commit is on the disk; of a database in memory, and of one
    /// whose commits do not wait for the disk, always.
    #[must_use]
    pub fn is_durable(&self, commit: u64) -> bool {
        let engine = self.engine();
        let waits = engine.options.durability == Durability::Sync;
        !waits || self.is_on_disk(commit)
    }
}

impl EngineHandle {
    /// Waits until a commit may be acknowledged: once it is on the disk, or at once, or as the
    /// database says.
    pub fn acknowledge_as(&self, ticket: Ticket, sync: Option<bool>) -> Result<()> {
        if sync == Some(false) && self.is_durable() {
            crate::maintenance::flusher_of(self);
        }
        let sync = sync.filter(|_| !Bug::DurabilityOfAWriteIgnored.is_planted());
        // default: what a write does not say the database does
        let sync = sync.unwrap_or(self.options.durability == Durability::Sync);
        // A write that needs more than there is waits here, where maintenance sees it.
        let is_usual = self.options.durability == Durability::Sync && self.journal.log().is_some();
        if sync && is_usual && self.defer(ticket.commit()) {
            return Ok(());
        }
        self.wait_until(ticket, sync)
    }

    /// Waits until everything that is applied may be acknowledged: an answer such as "exists
    /// already" reports commits that a power loss must not take back.
    pub fn acknowledge_published(&self) -> Result<()> {
        let waits =
            self.options.durability == Durability::Sync && !Bug::RefusalBeforeDurable.is_planted();
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
}

impl Engine {
    /// Waits until everything that is applied is visible, by a deferred handle too: what is tried
    /// again after a conflict has to see what it conflicted with.
    pub fn wait_for_published(self: &Arc<Self>) -> Result<()> {
        EngineHandle::new(self).acknowledge_through(self.watermarks.published())
    }

    /// Waits until a commit may be acknowledged, as the database says.
    pub fn acknowledge(&self, ticket: Ticket) -> Result<()> {
        self.wait_until(ticket, self.options.durability == Durability::Sync)
    }

    fn wait_until(&self, ticket: Ticket, sync: bool) -> Result<()> {
        match &self.journal {
            Journal::Memory(..) => {}
            Journal::Log(_) if !sync => self.reveal(ticket.commit())?,
            Journal::Log(log) => {
                if let Ticket::Log(ticket) = ticket
                    && !Bug::AcknowledgedUnsynced.is_planted()
                {
                    log.wait_durable(ticket)?;
                }
                expect_covered(ticket, "durable", log.durable())?;
            }
        }
        expect_covered(ticket, "visible", self.visible())
    }

    /// Shows all readers what was committed up to a number, before it is on the disk, and has it
    /// synced soon.
    pub fn reveal(&self, commit: u64) -> Result<()> {
        let Journal::Log(log) = &self.journal else { return Ok(()) };
        // What may be lost is not shown any more.
        if log.is_poisoned() {
            return Err(in_doubt(commit));
        }
        self.watermarks.reveal(commit);
        if self.is_flush_due() {
            return self.sync();
        }
        self.schedule_flush();
        Ok(())
    }

    /// Whether as much waits for the disk as a crash may take.
    pub fn is_flush_due(&self) -> bool {
        // As much again may be on its way already.
        self.journal.log().is_some_and(|log| log.queued_bytes() > UNSYNCED_BYTES_MAX / 2)
    }

    /// Waits until everything committed so far is on the disk.
    pub fn sync(&self) -> Result<()> {
        match &self.journal {
            Journal::Memory(..) => Ok(()),
            Journal::Log(log) => Ok(log.flush()?),
        }
    }

    /// The commit up to which the disk has everything; `None` in memory, where all is as durable as
    /// it will be.
    ///
    /// # Errors
    /// `Poisoned` when the log has failed: nothing becomes durable any more.
    pub fn durable_through(&self) -> Result<Option<u64>> {
        let Some(log) = self.journal.log() else { return Ok(None) };
        // It moves before those who wait are woken.
        let durable = self.watermarks.durable();
        if log.is_poisoned() {
            let message = "a write or a sync of the log failed: no event becomes durable until \
                           the database is opened again";
            return Err(Error::new(ErrorKind::Poisoned, message));
        }
        Ok(Some(durable))
    }

    fn schedule_flush(&self) {
        if !self.dirty.swap(true, Ordering::AcqRel)
            && let Some(task) = self.flusher_task.get()
        {
            task.wake();
        }
    }
}

/// Refuses to acknowledge a commit that is not covered yet by what it has to be.
fn expect_covered(ticket: Ticket, what: &str, through: u64) -> Result<()> {
    let commit = ticket.commit();
    if commit <= through {
        return Ok(());
    }
    let message = format!("commit {commit} would be acknowledged, {what} is {through}");
    Err(Error::new(ErrorKind::OutcomeUnknown, message))
}

fn in_doubt(commit: u64) -> Error {
    let message = format!(
        "whether commit {commit} survives is unknown until the database is opened again: \
         a write or a sync of the log failed"
    );
    Error::new(ErrorKind::OutcomeUnknown, message)
}
