//! Where a statement runs: on the tables of all, or on those of its session.
//!
//! A name that says no schema is that of a temporary table or view where the session has one. Names
//! of the database that a statement runs on are left as they are there, and those of the other get
//! their schema: `temp.t` or `main.t`. So has a table of all that a temporary one hides. Then no
//! name means two things, also where it is looked up again.

use std::collections::BTreeSet;

use esker::{
    Alteration, Error, ErrorKind, MAIN_SCHEMA, Result, Schema, TEMPORARY_SCHEMA, is_made_table,
};
use esker_query::Query;

use crate::comment::{CommentStatement, Commented};
use crate::copy::CopyStatement;
use crate::cursor::CursorStatement;
use crate::explain::Explain;
use crate::looked_up;
use crate::maintenance::MaintenanceStatement;
use crate::named_statement::NamedStatement;
use crate::sequence::RestartStatement;
use crate::statement::Statement;
use crate::watch::WatchStatement;

/// Which tables a statement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Those of all; of a session's it may read.
    Main,
    /// Those of the session; of the others it may read.
    Own,
}

/// A statement with its names as they are where it runs.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) home: Home,
    pub(crate) statement: Statement,
    /// The tables that it reads, by these names.
    pub(crate) reads: BTreeSet<String>,
    /// The same statement about other tables, which are not of its home.
    pub(crate) rest: Option<Box<Statement>>,
}

/// The names of a session's own tables and views.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnNames(BTreeSet<String>);

/// What a statement without a session says of tables: `main.t` is `t`.
///
/// # Errors
/// `InvalidInput` for a temporary table.
pub(crate) fn in_main(statement: Statement) -> crate::Result<Statement> {
    let Statement::Qualified(statement) = statement else { return Ok(statement) };
    let placed = OwnNames::default().place(&statement);
    match placed.and_then(|placed| placed.expect_main()) {
        Ok(statement) => Ok(statement),
        Err(e) => Err(crate::Error::invalid(e.to_string())),
    }
}

impl Placed {
    fn expect_main(self) -> Result<Statement> {
        match self.home {
            Home::Main => Ok(self.statement),
            Home::Own => Err(no_session()),
        }
    }
}

/// What temporary tables are refused with where there is no session.
pub(crate) fn no_session() -> Error {
    let message = "temporary tables and views are a session's own, which runs statements one after \
                   another: in Rust a Session, in the shell the shell, of a server a connection of \
                   the wire protocol, or a transaction of HTTP";
    Error::new(ErrorKind::InvalidInput, message)
}

/// A name without the schema before it, where it is this one.
fn within<'n>(schema: &str, name: &'n str) -> Option<&'n str> {
    name.strip_prefix(schema)?.strip_prefix('.')
}

impl Home {
    /// The name of a table that is here or there, as a statement that runs here has it.
    fn named(self, is: Self, is_hidden: bool, bare: &str) -> String {
        match is {
            // What a temporary table hides says where it is.
            same if same == self && !is_hidden => bare.to_owned(),
            Self::Main => format!("{MAIN_SCHEMA}.{bare}"),
            Self::Own => format!("{TEMPORARY_SCHEMA}.{bare}"),
        }
    }
}

impl OwnNames {
    pub(crate) fn new(names: BTreeSet<String>) -> Self {
        Self(names)
    }

    /// Whether the session has a table or view of a name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Where a table is, and its name there.
    pub(crate) fn find<'n>(&self, name: &'n str) -> (Home, &'n str) {
        if let Some(bare) = within(TEMPORARY_SCHEMA, name) {
            return (Home::Own, bare);
        }
        if let Some(bare) = within(MAIN_SCHEMA, name) {
            return (Home::Main, bare);
        }
        (if self.0.contains(name) { Home::Own } else { Home::Main }, name)
    }

    /// Gives the tables that a query reads the names by which a statement finds them that runs on
    /// some tables.
    pub(crate) fn place_query(&self, home: Home, query: &mut Query, reads: &mut BTreeSet<String>) {
        query.rename_tables(&mut |name| self.name_from(home, name, reads));
    }

    fn name_from(&self, home: Home, name: &str, reads: &mut BTreeSet<String>) -> Option<String> {
        if is_made_table(name) && !self.0.contains(name) {
            return None;
        }
        let (is, bare) = self.find(name);
        let is_hidden = is == Home::Main && self.0.contains(bare);
        let new = home.named(is, is_hidden, bare);
        reads.insert(new.clone());
        (new != name).then_some(new)
    }

    /// Finds out where a statement runs.
    ///
    /// # Errors
    /// `InvalidInput` for a definition of all that names a temporary table.
    pub(crate) fn place(&self, statement: &Statement) -> Result<Placed> {
        let mut reads = BTreeSet::new();
        let main = |statement| Placed::new(Home::Main, statement, BTreeSet::new());
        Ok(match statement {
            Statement::Qualified(statement) => match &**statement {
                // It is placed whenever it runs.
                Statement::Named(NamedStatement::Prepare {
                    name,
                    types,
                    statement,
                    parameters,
                    bytes,
                }) => main(Statement::Named(NamedStatement::Prepare {
                    name: name.clone(),
                    types: types.clone(),
                    statement: Box::new(Statement::Qualified(statement.clone())),
                    parameters: parameters.clone(),
                    bytes: *bytes,
                })),
                statement => self.place(statement)?,
            },
            Statement::Change(change) => {
                let (home, bare) = self.find(change.table());
                let mut placed = change.clone();
                placed.rename_sources(&mut |name| self.name_from(home, name, &mut reads));
                placed.rename_target(bare.to_owned());
                Placed::new(home, Statement::Change(placed), reads)
            }
            Statement::CreateTable { name, schema, or_replace, if_not_exists } => {
                self.refuse_own(name, schema.references().iter().map(|r| &r.table))?;
                let (name, schema) = (self.bare(name), self.bare_references(schema)?);
                let (or_replace, if_not_exists) = (*or_replace, *if_not_exists);
                main(Statement::CreateTable { name, schema, or_replace, if_not_exists })
            }
            Statement::AlterTable { name, alterations, .. } if self.find(name).0 == Home::Main => {
                self.refuse_own(name, alterations.iter().filter_map(referenced))?;
                self.place_alone(statement)?
            }
            Statement::CreateTableAs { .. } | Statement::CreateView { .. } => {
                self.place_definition(Home::Main, statement)?
            }
            Statement::DropTable { .. }
            | Statement::DropView { .. }
            | Statement::Truncate { .. }
            | Statement::LockTable { .. }
            | Statement::Maintenance(_) => self.place_list(statement)?,
            other => match self.place_read(other, &mut reads) {
                Some(statement) => Placed::new(Home::Main, statement, reads),
                None => self.place_alone(other)?,
            },
        })
    }

    /// A statement that only reads.
    fn place_read(&self, statement: &Statement, reads: &mut BTreeSet<String>) -> Option<Statement> {
        let mut placed = |query: &Query| {
            let mut query = query.clone();
            self.place_query(Home::Main, &mut query, reads);
            query
        };
        Some(match statement {
            Statement::Query(query) => Statement::Query(placed(query)),
            Statement::Summarize(query) => Statement::Summarize(placed(query)),
            Statement::Watch(watch) => {
                Statement::Watch(WatchStatement { query: placed(&watch.query), ..watch.clone() })
            }
            Statement::QueryForUpdate(query) => match self.find(&query.table).0 {
                Home::Main => Statement::QueryForUpdate(placed(query)),
                // Only this session can change them.
                Home::Own => Statement::Query(placed(query)),
            },
            Statement::Explain(explain) => {
                let query = placed(&explain.query);
                Statement::Explain(Explain { query, ..explain.clone() })
            }
            Statement::Copy(CopyStatement::To { query, file }) => {
                let (query, file) = (Box::new(placed(query)), file.clone());
                Statement::Copy(CopyStatement::To { query, file })
            }
            Statement::Cursor(CursorStatement::Declare { name, query }) => {
                let (name, query) = (name.clone(), Box::new(placed(query)));
                Statement::Cursor(CursorStatement::Declare { name, query })
            }
            _ => return None,
        })
    }

    /// A definition with a query: of all, or of the session.
    ///
    /// # Errors
    /// As for [`OwnNames::place`].
    pub(crate) fn place_definition(&self, home: Home, statement: &Statement) -> Result<Placed> {
        let (mut reads, mut placed) = (BTreeSet::new(), statement.clone());
        match &mut placed {
            Statement::CreateTableAs { name, query, .. } => {
                *name = self.bare(name);
                self.place_query(home, query, &mut reads);
            }
            Statement::CreateView { name, query, .. } => {
                *name = self.bare(name);
                self.place_query(home, query, &mut reads);
                let named = reads.iter().find_map(|name| within(TEMPORARY_SCHEMA, name));
                if let Some(table) = named.filter(|_| home == Home::Main) {
                    return Err(refused(&format!("view {name:?}"), table));
                }
                if home == Home::Main {
                    // For all there is nothing that hides a table.
                    let bare = |name: &str| within(MAIN_SCHEMA, name).map(str::to_owned);
                    query.rename_tables(&mut |name| bare(name));
                    reads = reads.into_iter().map(|name| bare(&name).unwrap_or(name)).collect();
                }
            }
            Statement::CreateTable { name, schema, .. } => {
                *name = self.bare(name);
                let mut referenced = schema.references().iter().map(|reference| &reference.table);
                let is_main = |table: &&String| {
                    *table != name && home == Home::Own && self.find(table).0 == Home::Main
                };
                if let Some(table) = referenced.find(is_main) {
                    let message = format!(
                        "temporary table {name:?}: a reference of it names another temporary \
                         table, and {table:?} is none"
                    );
                    return Err(Error::new(ErrorKind::InvalidInput, message));
                }
                *schema = self.bare_references(schema)?;
            }
            _ => {}
        }
        Ok(Placed::new(home, placed, reads))
    }

    /// A statement about several tables, some of which may be the session's.
    fn place_list(&self, statement: &Statement) -> Result<Placed> {
        let mut placed = statement.clone();
        let Some(names) = placed.names_mut() else {
            return Ok(Placed::new(Home::Main, placed, BTreeSet::new()));
        };
        let found = names.iter().map(|name| self.find(name));
        let (own, main): (Vec<_>, Vec<_>) = found.partition(|(home, _)| *home == Home::Own);
        let bare = |found: &[(Home, &str)]| -> Vec<String> {
            found.iter().map(|(_, bare)| (*bare).to_owned()).collect()
        };
        let (own, main) = (bare(&own), bare(&main));
        let home = if own.is_empty() { Home::Main } else { Home::Own };
        let (here, there) = if own.is_empty() { (main, own) } else { (own, main) };
        *names = here;
        let mut rest = None;
        if !there.is_empty() {
            let mut other = statement.clone();
            other.names_mut().into_iter().for_each(|names| names.clone_from(&there));
            rest = Some(Box::new(other));
        }
        Ok(Placed { rest, ..Placed::new(home, placed, BTreeSet::new()) })
    }

    /// A statement about one table; any other one is about those of all.
    fn place_alone(&self, statement: &Statement) -> Result<Placed> {
        let mut placed = statement.clone();
        if let Statement::AlterTable { alterations, .. } = &mut placed {
            for alteration in alterations {
                let bare = &mut |table: &mut String| {
                    *table = self.bare(table);
                    Ok(())
                };
                looked_up::rename_in_change(alteration, bare)?;
                if let Alteration::AddReference(reference) = alteration {
                    reference.table = self.bare(&reference.table);
                }
            }
        }
        let name = match &mut placed {
            Statement::AlterTable { name, .. }
            | Statement::RenameTable { name, .. }
            | Statement::RenameView { name, .. }
            | Statement::SetViewRetention { name, .. }
            | Statement::SetSchema { name, .. }
            | Statement::Restart(RestartStatement { table: name, .. })
            | Statement::Comment(
                CommentStatement { about: Commented::View, name, .. }
                | CommentStatement { about: Commented::Index(Some(name)), .. },
            )
            | Statement::CreateIndex { table: name, .. }
            | Statement::DropIndex { table: Some(name), .. }
            | Statement::Copy(CopyStatement::From { table: name, .. }) => name,
            _ => return Ok(Placed::new(Home::Main, placed, BTreeSet::new())),
        };
        let (home, bare) = self.find(name);
        *name = bare.to_owned();
        Ok(Placed::new(home, placed, BTreeSet::new()))
    }

    /// A schema with the names that tables have where they are.
    fn bare_references(&self, schema: &Schema) -> Result<Schema> {
        let mut schema = schema.clone();
        looked_up::rename_in(&mut schema, &mut |table| {
            *table = self.bare(table);
            Ok(())
        })?;
        let mut references = schema.references().to_vec();
        if references.iter().all(|reference| self.bare(&reference.table) == reference.table) {
            return Ok(schema);
        }
        for reference in &mut references {
            reference.table = self.bare(&reference.table);
        }
        Ok(schema.bound_anew(references, schema.referrers().to_vec())?)
    }

    fn bare(&self, name: &str) -> String {
        self.find(name).1.to_owned()
    }

    /// Refuses references to temporary tables.
    fn refuse_own<'n>(
        &self,
        name: &str,
        mut referenced: impl Iterator<Item = &'n String>,
    ) -> Result<()> {
        let is_own = |table: &&String| *table != name && self.find(table).0 == Home::Own;
        match referenced.find(is_own) {
            None => Ok(()),
            Some(table) => Err(refused(&format!("table {name:?}"), table)),
        }
    }
}

/// The table that a new reference names.
fn referenced(alteration: &Alteration) -> Option<&String> {
    match alteration {
        Alteration::AddReference(reference) => Some(&reference.table),
        _ => None,
    }
}

fn refused(what: &str, table: &str) -> Error {
    let message = format!(
        "{what} is there for all, and cannot name temporary table {table:?}, which is one \
         session's own: CREATE TEMP makes another of the session's"
    );
    Error::new(ErrorKind::InvalidInput, message)
}

impl Placed {
    fn new(home: Home, statement: Statement, reads: BTreeSet<String>) -> Self {
        Self { home, statement, reads, rest: None }
    }
}

impl Statement {
    /// The tables that it is about, where they may be several.
    fn names_mut(&mut self) -> Option<&mut Vec<String>> {
        match self {
            Self::DropTable { names, .. }
            | Self::DropView { names, .. }
            | Self::Truncate { names, .. }
            | Self::LockTable { tables: names, .. }
            | Self::Maintenance(
                MaintenanceStatement::Vacuum(names) | MaintenanceStatement::Analyze(names),
            ) => Some(names),
            _ => None,
        }
    }
}
