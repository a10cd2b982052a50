//! The tables that a statement reads, all as of one commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_query::{CollectedRows, Error, Options, Query, Source, Tables, View};

use crate::catalog::defined_view::DefinedView;
use crate::catalog::names::ReadNames;
use crate::files::{FileTable, reading};
use crate::introspection::SystemTable;
use crate::read::source::SnapshotSource;
use crate::{Result, Snapshot, SnapshotTable};

/// Tables by their names.
pub(crate) struct OpenTables {
    tables: Vec<(String, OpenTable)>,
    views: Vec<(String, Arc<View>)>,
}

/// What a name means.
enum OpenTable {
    Rows(SnapshotTable),
    /// Rows about tables, or of a file.
    Collected(CollectedRows),
}

/// Their rows, as queries read them.
pub(crate) struct TableSources<'a> {
    sources: Vec<(&'a str, TableSource<'a>)>,
    views: &'a [(String, Arc<View>)],
}

#[allow(clippy::large_enum_variant, reason = "there is one of each table of a query")]
enum TableSource<'a> {
    Rows(SnapshotSource<'a>),
    Collected(&'a CollectedRows),
}

impl OpenTables {
    /// The tables that a query names anywhere, as of a snapshot.
    ///
    /// # Errors
    /// `NotFound` when one is not there.
    pub fn new(snapshot: &Snapshot, query: &Query, options: &Options) -> Result<Self> {
        let mut names = BTreeSet::new();
        query.collect_tables(&mut names);
        Self::of(snapshot, names, options)
    }

    /// Tables by their names; of views those that they read.
    ///
    /// # Errors
    /// As [`OpenTables::new`].
    pub fn of(snapshot: &Snapshot, names: BTreeSet<String>, options: &Options) -> Result<Self> {
        let Some(others) = snapshot.others() else {
            return Self::read(snapshot, snapshot.names_read(names), options);
        };
        let said: Vec<String> =
            names.iter().filter(|name| others.name_at_home(name).is_some()).cloned().collect();
        let (ours, theirs) = others.names_read(snapshot, names);
        let mut open = Self::read(snapshot, ours, options)?;
        for name in said {
            let Some(bare) = others.name_at_home(&name) else { continue };
            match open.views.iter().find(|(known, _)| known == bare) {
                Some((_, view)) => open.views.push((name, Arc::clone(view))),
                None => {
                    let table = OpenTable::Rows(snapshot.table(bare)?);
                    open.tables.push((name, table));
                }
            }
        }
        for name in theirs.tables {
            let table = others.snapshot().table(&name)?;
            open.tables.push((others.name_here(&name), OpenTable::Rows(table)));
        }
        for (name, view) in theirs.views {
            open.views.push((others.name_here(&name), others.view_here(&view)));
        }
        Ok(open)
    }

    /// Tables and views of one database.
    fn read(snapshot: &Snapshot, names: ReadNames, options: &Options) -> Result<Self> {
        let ReadNames { tables, views } = names;
        let open = |name: String| {
            let is_stored = snapshot.has_name(&name);
            let (system, file) = match is_stored {
                true => (None, None),
                false => (SystemTable::named(&name), FileTable::named(&name)),
            };
            let table = if let Some(system) = system {
                OpenTable::Collected(system.read(snapshot, options)?)
            } else if let Some(file) = file {
                let files = snapshot.engine().file_access()?;
                OpenTable::Collected(reading::read(&*files, &file, options)?)
            } else {
                OpenTable::Rows(snapshot.table(&name)?)
            };
            Ok((name, table))
        };
        let view = |(name, view): (String, Arc<DefinedView>)| (name, Arc::clone(&view.view));
        Ok(Self {
            tables: tables.into_iter().map(open).collect::<Result<_>>()?,
            views: views.into_iter().map(view).collect(),
        })
    }

    pub fn sources(&self) -> TableSources<'_> {
        let sources = self.tables.iter();
        let sources = sources.map(|(name, table)| {
            let source = match table {
                OpenTable::Rows(table) => {
                    TableSource::Rows(SnapshotSource::new(table.rows_as_of()))
                }
                OpenTable::Collected(rows) => TableSource::Collected(rows),
            };
            (name.as_str(), source)
        });
        TableSources { sources: sources.collect(), views: &self.views }
    }
}

impl Tables for TableSources<'_> {
    fn table(&self, name: &str) -> esker_query::Result<&dyn Source> {
        let found = self.sources.iter().find(|(known, _)| *known == name);
        match found {
            Some((_, TableSource::Rows(source))) => Ok(source),
            Some((_, TableSource::Collected(rows))) => Ok(*rows),
            None => Err(Error::invalid(format!("no table {name:?} was opened for this statement"))),
        }
    }

    fn view(&self, name: &str) -> Option<&Arc<View>> {
        let found = self.views.iter().find(|(known, _)| known == name);
        found.map(|(_, view)| view)
    }

    fn has_views(&self) -> bool {
        !self.views.is_empty()
    }
}
