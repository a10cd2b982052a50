//! Changes that somebody else waits for.
//!
//! A server has many clients and few threads. Were each change to wait for the disk on the thread
//! that makes it, no more changes could share a sync than there are threads. Within
//! [`Database::without_waiting`] a change is applied and numbered, and the thread that answers the
//! client waits for it, with all others, by one [`Database::sync`].

use std::cell::Cell;

use crate::engine::Engine;
use crate::{Database, Durability};

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
    /// No reader sees the changes before they are durable, so `run` does not either. What is not a
    /// change of rows (tables, indexes, loads) waits as ever.
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
}
