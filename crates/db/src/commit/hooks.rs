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

use esker_format::invariant;
use esker_table::TableWriter;
use esker_vfs::sync::{ArcSwap, AtomicBool};

use crate::Result;
use crate::catalogue::Catalogue;
use crate::commit::conflict::conflict;
use crate::commit::options::CommitOptions;
use crate::commit::write_set::{TableWrites, WriteSet};
use crate::engine::Engine;
use crate::table_version::TableVersion;

/// Adds changes to commits of others.
pub(crate) trait CommitHook: Send + Sync {
    /// Adds changes of further tables to a commit that is staged and not empty. Under the commit
    /// lock.
    ///
    /// # Errors
    /// Then nothing is committed.
    fn extend_write_set(&self, commit: &mut StagedCommit<'_, '_>) -> Result<()>;
}

/// A commit that hooks add to.
pub(crate) struct StagedCommit<'c, 'r> {
    pub engine: &'c Engine,
    pub catalogue: &'c mut Catalogue,
    pub set: &'c mut WriteSet<'r>,
    pub options: CommitOptions<'c>,
}

impl<'r> StagedCommit<'_, 'r> {
    /// Adds changes of a table that the commit does not change yet, which `stage` validates.
    ///
    /// # Errors
    /// Those of `stage`; `Conflict` when rows of the table are others by now, or with this commit;
    /// `Corrupt` when the commit changes the table already.
    #[cfg_attr(not(test), expect(dead_code, reason = "what feeds and streams add"))]
    pub fn add(
        &mut self,
        current: TableVersion,
        stage: impl FnOnce(&mut TableWriter, &mut TableWrites<'r>) -> Result<()>,
    ) -> Result<()> {
        let Self { engine, catalogue, set, options } = self;
        let id = current.core.id();
        let is_new = set.as_slice().iter().all(|writes| writes.current.core.id() != id);
        invariant!(is_new, format_args!("table {}", id.0), "a hook adds what is changed already");
        if options.definitions.is_some_and(|new| !new.leaves(&current)) {
            let name = current.core.name();
            return Err(conflict(format!("table {name:?} is another with this commit")));
        }
        let mut added = TableWrites::new(current);
        engine.stage(catalogue, &mut added, *options, stage)?;
        set.push(added);
        Ok(())
    }
}

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
    pub fn extend_write_set(&self, commit: &mut StagedCommit<'_, '_>) -> Result<()> {
        if !self.are_there.load(Ordering::Acquire) {
            return Ok(());
        }
        self.all.load().iter().try_for_each(|hook| hook.extend_write_set(commit))
    }
}

#[cfg(test)]
mod tests;
