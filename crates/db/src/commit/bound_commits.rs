//! Commits that go on as a transaction: after them rows are gone that others may refer to, so that
//! rows of other tables may have to go or change, too. See `reference_check`.

use esker_format::Value;

use crate::Result;
use crate::engine_handle::EngineHandle;
use crate::table_version::TableVersion;

/// Begins transactions for commits that touch what others refer to.
pub(crate) trait BoundCommits: Send + Sync {
    /// Begins one at what is published. Under the commit lock.
    ///
    /// # Errors
    /// `OverBudget` when there are too many snapshots.
    fn begin(&self, engine: &EngineHandle, sync: Option<bool>) -> Result<Box<dyn BoundCommit>>;
}

/// A transaction that was begun for a commit.
pub(crate) trait BoundCommit {
    /// Does the changes and what references make of them; returns the number of the commit.
    ///
    /// # Errors
    /// `ConstraintViolated` when a reference refuses them, `Conflict` when others came first.
    fn run(self: Box<Self>, changes: Vec<BoundChanges>) -> Result<u64>;
}

/// The changes of a table, by key.
pub(crate) struct BoundChanges {
    pub current: TableVersion,
    /// The keys of the rows that go.
    pub removed: Vec<Vec<Value>>,
    /// Rows that come, or take the place of others: the row id of these where keys are generated.
    pub put: Vec<(Option<u64>, Vec<Value>)>,
}
