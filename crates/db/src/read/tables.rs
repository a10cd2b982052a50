//! The tables that a statement reads, all as of one commit.
//!
//! A session has temporary tables in a database of its own. A statement that reads both runs on one
//! of them, its home; what is of the other goes by names with the schema before them:
//!
//! ```text
//! home is the database       t                temp.u
//! home is the session's      u                main.t
//! ```
//!
//! A view means what it meant where it is defined. Where one of the other database is read, the
//! names in it change sides.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_query::{CollectedRows, Error, Options, Query, Source, Tables, View};

use crate::catalog::defined_view::DefinedView;
use crate::catalog::names::{
    MAIN_PREFIX, MAIN_SCHEMA, ReadNames, TEMPORARY_PREFIX, TEMPORARY_SCHEMA, history_name,
};
use crate::feed::changes_table::ChangesTable;
use crate::feed::collected;
use crate::feed::place::no_changes;
use crate::feed::shape::name_of;
use crate::files::{FileTable, reading};
use crate::introspection::SystemTable;
use crate::read::history_source::{HistoryShape, HistorySource};
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
    /// Rows about tables, of a file, or changes of a table.
    Collected(CollectedRows),
    /// A stream with the history of a rollup.
    WithHistory {
        rows: SnapshotTable,
        history: SnapshotTable,
        shape: HistoryShape,
    },
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
    WithHistory(HistorySource<'a>),
}

impl OpenTable {
    /// The table of a name that is no view's.
    fn named(snapshot: &Snapshot, name: &str, options: &Options) -> Result<Self> {
        let is_stored = snapshot.has_name(name);
        let (system, file, changes) = match is_stored {
            true => (None, None, None),
            false => (SystemTable::named(name), FileTable::named(name), ChangesTable::named(name)),
        };
        Ok(if let Some(system) = system {
            Self::Collected(system.read(snapshot, options)?)
        } else if let Some(file) = file {
            let files = snapshot.engine().file_access()?;
            Self::Collected(reading::read(&*files, &file, options)?)
        } else if let Some(changes) = changes {
            let feed = feed(snapshot, &changes.table)?;
            let at = (&***snapshot.engine(), snapshot.commit());
            Self::Collected(collected::read(&changes, at, feed.rows_as_of(), options)?)
        } else {
            Self::Rows(snapshot.table(name)?)
        })
    }
}

/// The feed of a table that keeps its changes.
fn feed(snapshot: &Snapshot, table: &str) -> Result<SnapshotTable> {
    let schema = snapshot.schema_of(snapshot.core(table)?)?;
    let feed = schema.feed().ok_or_else(|| no_changes(table))?;
    let core = snapshot.core(&name_of(table))?;
    if core.id() != feed {
        return Err(crate::Error::corrupt(format!("table {table:?} has another feed")));
    }
    snapshot.table_core(core)
}

impl OpenTables {
    /// The tables that a query names anywhere, as of a snapshot.
    ///
    /// # Errors
    /// `NotFound` when one is not there.
    pub fn new(snapshot: &Snapshot, query: &Query, options: &Options) -> Result<Self> {
        let name = &query.table;
        if snapshot.others().is_none()
            && query.is_plain()
            && !name.is_empty()
            && !snapshot.has_view(name)
        {
            let table = OpenTable::named(snapshot, name, options)?;
            return Ok(Self { tables: vec![(name.clone(), table)], views: Vec::new() });
        }
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
            let own = open.add_history(others.snapshot(), (&name, &view))?;
            let view = match own {
                None => others.view_here(&view),
                Some(view) => view,
            };
            open.views.push((others.name_here(&name), view));
        }
        Ok(open)
    }

    /// Opens the history of a view, where it has one; that is then a view of a stream with it.
    fn add_history(
        &mut self,
        snapshot: &Snapshot,
        (name, view): (&str, &DefinedView),
    ) -> Result<Option<Arc<View>>> {
        let history = history_name(name);
        if !view.stored.is_rollup || !snapshot.has_name(&history) {
            return Ok(None);
        }
        let history_core = snapshot.core(&history)?;
        if !snapshot.schema_of(history_core)?.is_history() {
            return Ok(None);
        }
        let table = &view.view.query.table;
        let of_both = format!("{table} and {history}");
        let (rows, history) = (snapshot.table(table)?, snapshot.table_core(history_core)?);
        let shape = HistoryShape::new(name, rows.schema(), history.schema())?;
        let open = OpenTable::WithHistory { rows, history, shape };
        let view = view.view.renamed(&mut |_| Some(of_both.clone()));
        self.tables.push((of_both, open));
        Ok(Some(Arc::new(view)))
    }

    /// Tables and views of one database.
    fn read(snapshot: &Snapshot, names: ReadNames, options: &Options) -> Result<Self> {
        let ReadNames { tables, views } = names;
        let open = |name: String| {
            let table = OpenTable::named(snapshot, &name, options)?;
            Ok((name, table))
        };
        let tables = tables.into_iter().map(open).collect::<Result<_>>()?;
        let mut open = Self { tables, views: Vec::with_capacity(views.len()) };
        for (name, view) in views {
            let with_history = open.add_history(snapshot, (&name, &view))?;
            // default: most have none
            let view = with_history.unwrap_or_else(|| Arc::clone(&view.view));
            open.views.push((name, view));
        }
        Ok(open)
    }

    pub fn sources(&self) -> TableSources<'_> {
        let sources = self.tables.iter();
        let sources = sources.map(|(name, table)| {
            let source = match table {
                OpenTable::Rows(table) => {
                    TableSource::Rows(SnapshotSource::new(table.rows_as_of()))
                }
                OpenTable::Collected(rows) => TableSource::Collected(rows),
                OpenTable::WithHistory { rows, history, shape } => {
                    let source = shape.source(rows.rows_as_of(), history.rows_as_of());
                    TableSource::WithHistory(source)
                }
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
            Some((_, TableSource::WithHistory(source))) => Ok(source),
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

/// Tables and views of another database, as of one moment.
#[derive(Clone, Debug)]
pub struct OtherTables {
    is_temporary: bool,
    snapshot: Snapshot,
    /// What views of the other database read of this one.
    back: BTreeSet<String>,
}

/// True for a name of a table in another database, where none of this one has it.
pub(crate) fn is_elsewhere(name: &str) -> bool {
    name.starts_with(TEMPORARY_PREFIX) || name.starts_with(MAIN_PREFIX)
}

impl OtherTables {
    /// Some tables, of which a view reads these of the database that they are read beside.
    pub(crate) fn of(snapshot: Snapshot, is_temporary: bool, back: BTreeSet<String>) -> Self {
        Self { is_temporary, snapshot, back }
    }

    /// What views among them read of the database that they are read beside.
    pub(crate) fn back(&self) -> impl Iterator<Item = &String> {
        self.back.iter()
    }

    /// Some names, and what views among these tables read of the database beside them.
    #[must_use]
    pub fn with_back(&self, names: BTreeSet<String>) -> BTreeSet<String> {
        names.into_iter().chain(self.back.iter().cloned()).collect()
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The schema that they are in.
    pub(crate) fn schema(&self) -> &'static str {
        if self.is_temporary { TEMPORARY_SCHEMA } else { MAIN_SCHEMA }
    }

    /// The schema of the tables beside which they are read.
    pub(crate) fn home_schema(&self) -> &'static str {
        if self.is_temporary { MAIN_SCHEMA } else { TEMPORARY_SCHEMA }
    }

    /// The name by which they know a table that goes by another one here.
    pub(crate) fn own_name<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_prefix(prefixes(self.is_temporary).0)
    }

    /// What is read where some names are: here, and of these tables by their own names.
    pub(crate) fn names_read(
        &self,
        home: &Snapshot,
        names: BTreeSet<String>,
    ) -> (ReadNames, ReadNames) {
        // Those that say that they are here.
        let said = names.iter().filter_map(|name| self.name_at_home(name));
        let said = home.names_read(said.map(str::to_owned).collect());
        let mut ours = home.names_read(names);
        ours.tables.extend(said.tables);
        ours.views.extend(said.views);
        let theirs = ours.tables.iter().filter_map(|name| self.own_name(name));
        let theirs = theirs.map(str::to_owned).collect();
        let mut theirs = self.snapshot.names_read(theirs);
        let home_prefix = prefixes(self.is_temporary).1;
        let back = theirs.tables.iter().filter_map(|name| name.strip_prefix(home_prefix));
        let back = home.names_read(back.map(str::to_owned).collect());
        ours.tables.extend(back.tables);
        ours.views.extend(back.views);
        let is_ours =
            |name: &String| self.own_name(name).is_none() && self.name_at_home(name).is_none();
        ours.tables.retain(is_ours);
        theirs.tables.retain(|name| !name.starts_with(home_prefix));
        (ours, theirs)
    }

    /// The name at home of a table that says that it is there.
    pub(crate) fn name_at_home<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_prefix(prefixes(self.is_temporary).1)
    }

    /// The name by which a table of theirs goes here.
    pub(crate) fn name_here(&self, name: &str) -> String {
        let (prefix, home_prefix) = prefixes(self.is_temporary);
        match name.strip_prefix(home_prefix) {
            Some(own) => own.to_owned(),
            None => format!("{prefix}{name}"),
        }
    }

    /// A view of theirs, as it is read here.
    pub(crate) fn view_here(&self, view: &DefinedView) -> Arc<View> {
        Arc::new(view.view.renamed(&mut |name| Some(self.name_here(name))))
    }
}

/// What stands before names of the other tables, and of those of the home.
pub(crate) fn prefixes(is_temporary: bool) -> (&'static str, &'static str) {
    if is_temporary { (TEMPORARY_PREFIX, MAIN_PREFIX) } else { (MAIN_PREFIX, TEMPORARY_PREFIX) }
}
