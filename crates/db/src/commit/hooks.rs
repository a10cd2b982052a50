//! What else takes part in commits: change feeds, producers, acknowledgements.
//!
//! ```text
//! stage ─► extend_write_set ─► number ─► apply ─► publish ─► … visible ─► after_visible
//!          (commit lock)                                 └─► … durable ─► after_durable
//! ```
//!
//! [`CommitHook::extend_write_set`] adds changes of rows that must be in the same frame: after a
//! crash both are there, or neither. Those who only wait for commits are observers of the
//! [watermarks](super::watermarks). Hooks stay for as long as the engine lives; without one, a
//! commit reads one flag.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_vfs::sync::{ArcSwap, AtomicBool};

use crate::Result;
use crate::catalogue::Catalogue;
use crate::commit::write_set::WriteSet;

/// Adds changes to commits of others.
pub(crate) trait CommitHook: Send + Sync {
    /// Adds changes of further tables to a set that is staged and not empty. Under the commit lock.
    ///
    /// # Errors
    /// Then nothing is committed.
    fn extend_write_set(&self, catalogue: &mut Catalogue, set: &mut WriteSet<'_>) -> Result<()>;
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

    /// Lets all of them add to a set.
    pub fn extend_write_set(
        &self,
        catalogue: &mut Catalogue,
        set: &mut WriteSet<'_>,
    ) -> Result<()> {
        if !self.are_there.load(Ordering::Acquire) {
            return Ok(());
        }
        self.all.load().iter().try_for_each(|hook| hook.extend_write_set(catalogue, set))
    }
}

#[cfg(test)]
mod tests;
