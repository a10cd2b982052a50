//! The tables that a statement reads, all as of one commit.

use std::collections::BTreeSet;

use esker_query::{Error, Query, Source, Tables};

use crate::read::source::SnapshotSource;
use crate::{Result, Snapshot, SnapshotTable};

/// Tables by their names.
pub(crate) struct OpenTables {
    tables: Vec<(String, SnapshotTable)>,
}

/// Their rows, as queries read them.
pub(crate) struct TableSources<'a> {
    sources: Vec<(&'a str, SnapshotSource<'a>)>,
}

impl OpenTables {
    /// The tables that a query names anywhere, as of a snapshot.
    ///
    /// # Errors
    /// `NotFound` when one is not there.
    pub fn new(snapshot: &Snapshot, query: &Query) -> Result<Self> {
        let mut names = BTreeSet::new();
        query.collect_tables(&mut names);
        Self::of(snapshot, names)
    }

    /// Tables by their names.
    ///
    /// # Errors
    /// As [`OpenTables::new`].
    pub fn of(snapshot: &Snapshot, names: BTreeSet<String>) -> Result<Self> {
        let open = |name: String| snapshot.table(&name).map(|table| (name, table));
        Ok(Self { tables: names.into_iter().map(open).collect::<Result<_>>()? })
    }

    pub fn sources(&self) -> TableSources<'_> {
        let sources = self.tables.iter();
        let sources =
            sources.map(|(name, table)| (name.as_str(), SnapshotSource::new(table.rows_as_of())));
        TableSources { sources: sources.collect() }
    }
}

impl Tables for TableSources<'_> {
    fn table(&self, name: &str) -> esker_query::Result<&dyn Source> {
        let found = self.sources.iter().find(|(known, _)| *known == name);
        found.map(|(_, source)| source as &dyn Source).ok_or_else(|| {
            Error::invalid(format!("no table {name:?} was opened for this statement"))
        })
    }
}
