//! The tables that a statement reads, all as of one commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_query::{Error, Query, Source, Tables, View};

use crate::catalog::defined_view::DefinedView;
use crate::catalog::names::ReadNames;
use crate::read::source::SnapshotSource;
use crate::{Result, Snapshot, SnapshotTable};

/// Tables by their names.
pub(crate) struct OpenTables {
    tables: Vec<(String, SnapshotTable)>,
    views: Vec<(String, Arc<View>)>,
}

/// Their rows, as queries read them.
pub(crate) struct TableSources<'a> {
    sources: Vec<(&'a str, SnapshotSource<'a>)>,
    views: &'a [(String, Arc<View>)],
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

    /// Tables by their names; of views those that they read.
    ///
    /// # Errors
    /// As [`OpenTables::new`].
    pub fn of(snapshot: &Snapshot, names: BTreeSet<String>) -> Result<Self> {
        let ReadNames { tables, views } = snapshot.names_read(names);
        let open = |name: String| snapshot.table(&name).map(|table| (name, table));
        let view = |(name, view): (String, Arc<DefinedView>)| (name, Arc::clone(&view.view));
        Ok(Self {
            tables: tables.into_iter().map(open).collect::<Result<_>>()?,
            views: views.into_iter().map(view).collect(),
        })
    }

    pub fn sources(&self) -> TableSources<'_> {
        let sources = self.tables.iter();
        let sources =
            sources.map(|(name, table)| (name.as_str(), SnapshotSource::new(table.rows_as_of())));
        TableSources { sources: sources.collect(), views: &self.views }
    }
}

impl Tables for TableSources<'_> {
    fn table(&self, name: &str) -> esker_query::Result<&dyn Source> {
        let found = self.sources.iter().find(|(known, _)| *known == name);
        found.map(|(_, source)| source as &dyn Source).ok_or_else(|| {
            Error::invalid(format!("no table {name:?} was opened for this statement"))
        })
    }

    fn view(&self, name: &str) -> Option<&Arc<View>> {
        let found = self.views.iter().find(|(known, _)| known == name);
        found.map(|(_, view)| view)
    }

    fn has_views(&self) -> bool {
        !self.views.is_empty()
    }
}
