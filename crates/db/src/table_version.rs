//! A table with the schema that rows are prepared for.

use std::borrow::Cow;
use std::sync::Arc;

use esker_format::{Schema, Value, ValueRef};
use esker_table::Table as TableCore;

/// What a change of rows was prepared for.
#[derive(Clone)]
pub(crate) struct TableVersion {
    pub core: Arc<TableCore>,
    pub schema: Arc<Schema>,
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
    /// As it is now.
    pub fn newest(core: &Arc<TableCore>) -> Self {
        Self { core: Arc::clone(core), schema: core.schema() }
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
