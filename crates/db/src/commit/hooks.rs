//! What else takes part in commits: change feeds, producers, acknowledgements.
//!
//! ```text
//! stage ─► extend_write_set ─► number ─► apply ─► publish ─► … visible ─► after_visible
//!          (commit lock)                                 └─► … durable ─► after_durable
//! ```
//!
//! [`CommitHook::extend_write_set`] adds changes of rows that must be in the same frame: after a
//! crash both are there, or neither. They are staged as all others are, and the commit is as
//! durable as it is without them. Those who only wait for commits are observers of the
//! [watermarks](super::watermarks). Hooks stay for as long as the engine lives; without one, a
//! commit reads one flag.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_format::Moment;
use esker_table::TableWriter;
use esker_vfs::sync::{ArcSwap, AtomicBool};

use crate::Result;
use crate::commit::write_set::TableWrites;
use crate::table_version::TableVersion;

/// Adds changes to commits of others.
pub(crate) trait CommitHook: Send + Sync {
    /// Adds changes of further tables to a commit that is staged and not empty. Under the commit
    /// lock.
    ///
    /// # Errors
    /// Then nothing is committed.
    fn extend_write_set(&self, commit: &mut dyn StagedCommit<'_>) -> Result<()>;
}

/// A commit that hooks add to: one that is staged, under the commit lock.
pub(crate) trait StagedCommit<'r> {
    /// What is committed.
    #[cfg_attr(not(test), expect(dead_code, reason = "what feeds read"))]
    fn writes(&self) -> &[TableWrites<'r>];

    /// The moment by which rows expire.
    fn now(&self) -> Moment;

    /// Adds changes of a table that the commit does not change yet, which `stage` validates; it is
    /// called once.
    ///
    /// # Errors
    /// Those of `stage`; `Conflict` when rows of the table are others by now, or with this commit;
    /// `Corrupt` when the commit changes the table already.
    fn add(&mut self, current: TableVersion, stage: Stage<'_, 'r>) -> Result<()>;
}

/// What validates changes of a table, and adds them.
pub(crate) type Stage<'s, 'r> =
    &'s mut dyn FnMut(&mut TableWriter, &mut TableWrites<'r>) -> Result<()>;

/// The hooks of an engine.
pub(crate) struct CommitHooks {
    are_there: AtomicBool,
    all: ArcSwap<Vec<Arc<dyn CommitHook>>>,
}

impl Default for CommitHooks {
    fn default() -> Self {
        Self { are_there: AtomicBool::new(false), all: ArcSwap::new(Arc::new(Vec::new())) }
    }
}

impl CommitHooks {
    /// Adds a hook. Commits that are under way may not meet it yet.
    #[cfg_attr(not(test), expect(dead_code, reason = "feeds and streams register here"))]
    pub fn register(&self, hook: Arc<dyn CommitHook>) {
        let mut all = (**self.all.load()).clone();
        all.push(hook);
        self.all.store(Arc::new(all));
        self.are_there.store(true, Ordering::Release);
    }

    /// Lets all of them add to a commit.
    pub fn extend_write_set(&self, commit: &mut dyn StagedCommit<'_>) -> Result<()> {
        if !self.are_there.load(Ordering::Acquire) {
            return Ok(());
        }
        self.all.load().iter().try_for_each(|hook| hook.extend_write_set(&mut *commit))
    }
}

#[cfg(test)]
mod tests;
