//! The tables as the engine knows them, behind the commit lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_format::{Namespace, TableId};
use esker_table::TableWriter;

use crate::catalog::defined_view::DefinedView;
use crate::catalog::names::Names;
use crate::{Error, ErrorKind, Result};

/// One table, as the catalogue knows it.
pub(crate) struct TableEntry {
    pub name: String,
    pub writer: TableWriter,
    /// Versions created up to this commit are in segments, or dead.
    pub sealed_through: u64,
    /// The newest commit of rows since the database was opened; 0 for none.
    pub changed_at: u64,
    /// The newest commit that is known to have defined the table: its rows are of that schema.
    pub defined_at: u64,
    /// The number of the table's index checkpoint file, 0 for none.
    pub index_file: u64,
    /// The segments that the file covers.
    pub index_covers: Vec<u64>,
}

impl TableEntry {
    /// A table of which no file says anything yet.
    pub fn new(name: String, writer: TableWriter) -> Self {
        let (sealed_through, changed_at, defined_at, index_file) = (0, 0, 0, 0);
        let index_covers = Vec::new();
        Self { name, writer, sealed_through, changed_at, defined_at, index_file, index_covers }
    }

    /// Notes a commit of its rows, before it is published.
    pub fn note_changed(&mut self, commit: u64) {
        self.changed_at = commit;
        self.writer.table().note_changed(commit);
    }
}

/// What the commit lock guards.
pub(crate) struct Catalogue {
    pub tables: BTreeMap<TableId, TableEntry>,
    /// The views, by name.
    pub views: BTreeMap<String, Arc<DefinedView>>,
    /// The namespaces, by name.
    pub namespaces: BTreeMap<String, Namespace>,
    pub next_table: u32,
    pub checkpoint_number: u64,
    pub checkpoint_commit: u64,
    /// Rows that were deleted since maintenance last counted.
    pub killed: u64,
    pub closed: bool,
    /// A numbered commit could not be applied: memory and log differ until the next open.
    pub broken: bool,
    pub scratch: esker_format::codec::Writer,
}

impl Catalogue {
    /// Without tables.
    pub fn empty() -> Self {
        Self {
            tables: BTreeMap::new(),
            views: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            next_table: 1,
            checkpoint_number: 0,
            checkpoint_commit: 0,
            killed: 0,
            closed: false,
            broken: false,
            scratch: esker_format::codec::Writer::new(),
        }
    }

    /// The tables, views and namespaces by name.
    pub fn names(&self) -> Names {
        let named = |entry: &TableEntry| (entry.name.clone(), Arc::clone(entry.writer.table()));
        let tables = self.tables.values().map(named).collect::<Names>();
        tables.with_others(self.views.clone(), self.namespaces.clone())
    }

    /// A table's entry, or an error saying that it has been dropped.
    pub fn entry(&mut self, id: TableId) -> Result<&mut TableEntry> {
        let gone = || Error::new(ErrorKind::NotFound, "the table has been dropped or truncated");
        self.tables.get_mut(&id).ok_or_else(gone)
    }
}
