//! The engine as the handles of the API have it.
//!
//! ```text
//! Database ─► Table, Bucket ─► WriteBatch        each has an EngineHandle, cloned from the one
//!         ├─► Transaction ─► its tables          before: an engine, and who waits until a commit
//!         └─► Snapshot                           that is reported is on the disk
//! ```

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_table::Table as TableCore;
use esker_vfs::sync::AtomicU64;

use crate::Result;
use crate::catalog::names::Names;
use crate::engine::{Engine, no_table};

/// An engine, and who waits for the commits that calls by this handle report.
#[derive(Clone)]
pub(crate) struct EngineHandle {
    engine: Arc<Engine>,
    /// The newest commit, or 0, that the caller waits for before what calls return is reported;
    /// `None`: calls wait themselves, where their durability demands it.
    deferred: Option<Arc<AtomicU64>>,
}

impl EngineHandle {
    /// A handle whose calls wait themselves.
    pub fn new(engine: &Arc<Engine>) -> Self {
        Self { engine: Arc::clone(engine), deferred: None }
    }

    /// A handle of the same engine whose calls leave the waiting to the caller.
    pub fn deferred(&self) -> Self {
        Self { deferred: Some(Arc::new(AtomicU64::new(0))), ..Self::new(self) }
    }

    /// Notes a commit for the caller to wait for; false when the call has to do so.
    pub fn defer(&self, commit: u64) -> bool {
        let noted = self.deferred.as_ref().map(|newest| newest.fetch_max(commit, Ordering::SeqCst));
        noted.is_some()
    }

    /// The newest commit that was noted.
    pub fn deferred_commit(&self) -> Option<u64> {
        let newest = self.deferred.as_ref()?.load(Ordering::SeqCst);
        (newest > 0).then_some(newest)
    }

    /// The same; it is forgotten.
    pub fn take_deferred_commit(&self) -> Option<u64> {
        let newest = self.deferred.as_ref()?.swap(0, Ordering::SeqCst);
        (newest > 0).then_some(newest)
    }

    /// A table by name. The answer waits until what it says is durable.
    pub fn table(&self, name: &str) -> Result<Arc<TableCore>> {
        let history = self.names.load();
        let (names, visible) = (history.newest(), self.visible());
        let found = names.get(name);
        let is_shown = |table: &&Arc<TableCore>| table.created_at() <= visible;
        let shown = match history.at(visible) {
            same if Arc::ptr_eq(same, names) => found,
            before => before.get(name),
        };
        let shown = shown.filter(is_shown);
        let is_same = found.map(Arc::as_ptr) == shown.map(Arc::as_ptr);
        if found.is_none() || !is_same {
            // Once the log has failed, nothing becomes durable: the tables are those that are read.
            let acknowledged = self.acknowledge_through(self.watermarks.published());
            if let Err(e) = acknowledged {
                return shown.cloned().ok_or(e);
            }
        }
        found.cloned().ok_or_else(|| no_table(name, names))
    }

    /// The names of the tables, sorted. As for [`EngineHandle::table`].
    pub fn table_names(&self) -> Vec<String> {
        self.names_now().keys().cloned().collect()
    }

    /// The tables and views there are. As for [`EngineHandle::table`].
    pub fn names_now(&self) -> Arc<Names> {
        let history = self.names.load();
        match self.acknowledge_through(self.watermarks.published()) {
            Ok(()) => Arc::clone(history.newest()),
            Err(_) => Arc::clone(history.at(self.visible())),
        }
    }
}

impl Deref for EngineHandle {
    type Target = Arc<Engine>;

    fn deref(&self) -> &Arc<Engine> {
        &self.engine
    }
}
