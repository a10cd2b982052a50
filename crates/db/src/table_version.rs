//! A table with the schema that rows are prepared for.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_format::{Schema, Value, ValueRef};
use esker_table::Table as TableCore;
use esker_vfs::sync::AtomicU64;

/// What a change of rows was prepared for.
#[derive(Clone)]
pub(crate) struct TableVersion {
    pub core: Arc<TableCore>,
    pub schema: Arc<Schema>,
    /// As of when rows of other tables were looked up for its rows.
    pub looked_up: LookedUpAsOf,
}

/// The earliest commit as of which rows of other tables were looked up for rows that wait for their
/// commit: no later one may have changed these tables when it comes.
pub(crate) struct LookedUpAsOf(AtomicU64);

impl LookedUpAsOf {
    /// Nothing was looked up.
    const NEVER: u64 = u64::MAX;

    pub fn note(&self, commit: u64) {
        self.0.fetch_min(commit, Ordering::AcqRel);
    }

    /// The same as for other rows.
    pub fn note_of(&self, other: &Self) {
        self.note(other.0.load(Ordering::Acquire));
    }

    /// The commit; `None` where nothing was looked up.
    pub fn commit(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|commit| *commit != Self::NEVER)
    }
}

impl Default for LookedUpAsOf {
    fn default() -> Self {
        Self(AtomicU64::new(Self::NEVER))
    }
}

impl Clone for LookedUpAsOf {
    fn clone(&self) -> Self {
        let copy = Self::default();
        copy.note_of(self);
        copy
    }
}

impl From<TableVersion> for Cow<'_, TableVersion> {
    fn from(version: TableVersion) -> Self {
        Self::Owned(version)
    }
}

impl<'r> From<&'r TableVersion> for Cow<'r, TableVersion> {
    fn from(version: &'r TableVersion) -> Self {
        Self::Borrowed(version)
    }
}

impl TableVersion {
    /// A table with a schema of it.
    pub fn new(core: Arc<TableCore>, schema: Arc<Schema>) -> Self {
        Self { core, schema, looked_up: LookedUpAsOf::default() }
    }

    /// As it is now.
    pub fn newest(core: &Arc<TableCore>) -> Self {
        Self::new(Arc::clone(core), core.schema())
    }

    /// The same, for rows for which nothing was looked up yet.
    pub fn anew(&self) -> Self {
        Self::new(Arc::clone(&self.core), Arc::clone(&self.schema))
    }

    /// True when rows that were prepared for it have to be prepared anew.
    pub fn is_outdated(&self) -> bool {
        self.core.successor().is_some() || !self.core.schema().has_same_rows_as(&self.schema)
    }

    pub fn hash(&self, key: &[ValueRef<'_>]) -> u64 {
        self.core.hash_of(key)
    }

    /// The hash of the key of a row, of a table whose keys are not generated.
    pub fn hash_of_row(&self, row: &[Value]) -> u64 {
        let key = self.schema.key_positions().iter().filter_map(|p| row.get(*p));
        self.core.hasher().hash_key(key.map(Value::as_ref))
    }
}
