//! The tables as the engine knows them, behind the commit lock.

use std::collections::BTreeMap;

use esker_format::TableId;
use esker_table::TableWriter;

use crate::{Error, ErrorKind, Result};

/// One table, as the catalogue knows it.
pub(crate) struct TableEntry {
    pub name: String,
    pub writer: TableWriter,
    /// Versions created up to this commit are in segments, or dead.
    pub sealed_through: u64,
    /// The newest commit of rows since the database was opened; 0 for none.
    pub changed_at: u64,
    /// The number of the table's index checkpoint file, 0 for none.
    pub index_file: u64,
    /// The segments that the file covers.
    pub index_covers: Vec<u64>,
}

impl TableEntry {
    /// A table of which no file says anything yet.
    pub fn new(name: String, writer: TableWriter) -> Self {
        let (sealed_through, changed_at, index_file, index_covers) = (0, 0, 0, Vec::new());
        Self { name, writer, sealed_through, changed_at, index_file, index_covers }
    }
}

/// What the commit lock guards.
pub(crate) struct Catalogue {
    pub tables: BTreeMap<TableId, TableEntry>,
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
    /// A table's entry, or an error saying that it has been dropped.
    pub fn entry(&mut self, id: TableId) -> Result<&mut TableEntry> {
        let gone = || Error::new(ErrorKind::NotFound, "the table has been dropped or truncated");
        self.tables.get_mut(&id).ok_or_else(gone)
    }

    /// Takes out a table that is there.
    pub fn remove(&mut self, id: TableId) -> Result<TableEntry> {
        let unknown = || Error::corrupt(format!("table {} is in no catalogue", id.0));
        self.tables.remove(&id).ok_or_else(unknown)
    }
}
