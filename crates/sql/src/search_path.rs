//! `search_path`: the schemas in which a session looks for names that say none.
//!
//! A temporary table comes first, as always. Then the first schema of the path counts that has such
//! a table or view, or such a sequence; what is new comes into the first that there is. Names that
//! say a schema, files and tables about tables stay as they are.

use std::sync::Arc;

use esker::{
    Alteration, Error, ErrorKind, MAIN_SCHEMA, Result, Schema, Scope, TEMPORARY_SCHEMA,
    is_made_table,
};
use esker_format::schema::DefaultValue;
use esker_query::Query;
use esker_query::model::Searched;

use crate::comment::{CommentStatement, Commented};
use crate::copy::CopyStatement;
use crate::cursor::CursorStatement;
use crate::looked_up;
use crate::maintenance::MaintenanceStatement;
use crate::named_statement::NamedStatement;
use crate::placed::{Home, OwnNames};
use crate::sequence::RestartStatement;
use crate::statement::Statement;

/// The schemas, in order.
pub(crate) type SearchPath = Arc<[String]>;

/// Where names of a statement are looked for.
pub(crate) struct InPath<'p> {
    pub(crate) path: &'p [String],
    pub(crate) scope: &'p dyn Scope,
    pub(crate) own: &'p OwnNames,
    /// Whether there is a sequence of a name, for all or for the session alone.
    pub(crate) has_sequence: &'p dyn Fn(Home, &str) -> bool,
}

impl InPath<'_> {
    fn whole(schema: &str, name: &str) -> String {
        match schema.eq_ignore_ascii_case(MAIN_SCHEMA) {
            true => name.to_owned(),
            false => format!("{schema}.{name}"),
        }
    }

    /// The schemas of the path that tables of all are in, and that there are.
    fn schemas(&self) -> Result<Vec<&str>> {
        let known = self.scope.namespaces()?;
        let is_there = |schema: &&str| {
            schema.eq_ignore_ascii_case(MAIN_SCHEMA) || known.iter().any(|one| one.name == **schema)
        };
        Ok(self.path.iter().map(String::as_str).filter(is_there).collect())
    }

    /// The schema of what is new.
    pub(crate) fn current(&self) -> Result<Option<&str>> {
        Ok(self.schemas()?.into_iter().next())
    }

    /// The whole name of a table or view that a name means.
    fn find(&self, name: &str) -> Result<String> {
        let is_said = name.contains('.') || is_made_table(name) || self.own.has(name);
        if is_said {
            return Ok(name.to_owned());
        }
        let schemas = self.schemas()?;
        for schema in &schemas {
            let whole = Self::whole(schema, name);
            if self.scope.has_name(&whole)? {
                return Ok(whole);
            }
        }
        // It is not there: the error names it where it was looked for first.
        Ok(match schemas.first() {
            Some(schema) => Self::whole(schema, name),
            // default: an empty path has no schema that could be named
            None => format!("{}.{name}", self.path.first().map_or("", String::as_str)),
        })
    }

    fn new_name(&self, name: &str) -> Result<String> {
        if name.contains('.') || is_made_table(name) {
            return Ok(name.to_owned());
        }
        match self.current()? {
            Some(schema) => Ok(Self::whole(schema, name)),
            None => {
                let message = format!(
                    "{name:?}: search_path names no schema that there is: write the schema before \
                     the name"
                );
                Err(Error::new(ErrorKind::InvalidInput, message))
            }
        }
    }

    fn rename(&self, name: &mut String) -> Result<()> {
        *name = self.find(name)?;
        Ok(())
    }

    fn rename_new(&self, name: &mut String) -> Result<()> {
        *name = self.new_name(name)?;
        Ok(())
    }

    /// Gives the tables that a query reads their whole names.
    pub(crate) fn query(&self, query: &mut Query) -> Result<()> {
        let mut failed = None;
        query.rename_tables(&mut |name| match self.find(name) {
            Ok(whole) => (whole != name).then_some(whole),
            Err(e) => {
                failed.get_or_insert(e);
                None
            }
        });
        failed.map_or(Ok(()), Err)?;
        self.searched(&mut |searched| query.search(searched))
    }

    /// Says where names are looked for that are no tables.
    fn searched(&self, say: &mut dyn FnMut(&mut Searched<'_>)) -> Result<()> {
        let schemas: Vec<String> = self.schemas()?.into_iter().map(str::to_owned).collect();
        // default: without a schema there is none
        let current = schemas.first().map_or("", String::as_str);
        let mut failed = None;
        say(&mut Searched {
            current,
            schemas: &schemas,
            sequence: &mut |name| match self.find_sequence(name) {
                Ok(whole) => (whole != name).then_some(whole),
                Err(e) => {
                    failed.get_or_insert(e);
                    None
                }
            },
        });
        failed.map_or(Ok(()), Err)
    }

    /// The whole name of a sequence that a name means.
    fn find_sequence(&self, name: &str) -> Result<String> {
        if name.contains('.') || (self.has_sequence)(Home::Own, name) {
            return Ok(name.to_owned());
        }
        let schemas = self.schemas()?;
        let whole = |schema: &&str| Self::whole(schema, name);
        let found = schemas.iter().map(whole).find(|name| (self.has_sequence)(Home::Main, name));
        // It is not there: the error names it where it was looked for first.
        Ok(found.or_else(|| schemas.first().map(whole)).unwrap_or_else(|| name.to_owned()))
    }

    /// The sequence of a default.
    fn default(&self, default: &mut Option<DefaultValue>) -> Result<()> {
        if let Some(DefaultValue::NextValue(name)) = default {
            *name = self.find_sequence(name)?;
        }
        Ok(())
    }

    /// The sequences of the defaults of a new table.
    fn defaults(&self, schema: &mut Schema) -> Result<()> {
        let mut steps = Vec::new();
        for field in schema.fields().iter().filter(|field| field.identity.is_none()) {
            let mut default = field.default.clone();
            self.default(&mut default)?;
            if default != field.default {
                steps.push(Alteration::SetDefault { field: field.name.clone(), default });
            }
        }
        if !steps.is_empty() {
            *schema = schema.alter(&steps)?.with_version(schema.version());
        }
        Ok(())
    }

    /// The tables that a new table refers to, which may be itself.
    fn references(&self, schema: &mut Schema, (itself, whole): (&str, &str)) -> Result<()> {
        let mut references = schema.references().to_vec();
        for reference in &mut references {
            match reference.table == itself {
                true => whole.clone_into(&mut reference.table),
                false => self.rename(&mut reference.table)?,
            }
        }
        *schema = schema.bound_anew(references, schema.referrers().to_vec())?;
        Ok(())
    }

    /// Gives the tables of a statement their whole names.
    pub(crate) fn statement(&self, statement: &mut Statement) -> Result<()> {
        match statement {
            Statement::Qualified(said) => self.statement(said),
            Statement::Temporary { statement, .. } => self.temporary(statement),
            Statement::Named(NamedStatement::Prepare { statement, .. }) => {
                self.statement(statement)
            }
            Statement::Query(query)
            | Statement::Summarize(query)
            | Statement::QueryForUpdate(query) => self.query(query),
            Statement::Explain(explain) => self.query(&mut explain.query),
            Statement::Watch(watch) => self.query(&mut watch.query),
            Statement::Cursor(CursorStatement::Declare { query, .. })
            | Statement::Copy(CopyStatement::To { query, .. }) => self.query(query),
            Statement::Change(change) => {
                let mut failed = None;
                change.rename_sources(&mut |name| match self.find(name) {
                    Ok(whole) => (whole != name).then_some(whole),
                    Err(e) => {
                        failed.get_or_insert(e);
                        None
                    }
                });
                let target = self.find(change.table())?;
                if target != change.table() {
                    change.rename_target(target);
                }
                failed.map_or(Ok(()), Err)?;
                self.searched(&mut |searched| change.search(searched))
            }
            Statement::CreateTable { name, schema, .. } => {
                let itself = name.clone();
                self.rename_new(name)?;
                self.defaults(schema)?;
                looked_up::rename_in(schema, &mut |table| self.rename(table))?;
                self.references(schema, (&itself, name))
            }
            Statement::CreateTableAs { name, query, .. }
            | Statement::CreateView { name, query, .. } => {
                self.rename_new(name)?;
                self.query(query)
            }
            other => self.about_tables(other),
        }
    }

    /// A table or view of the session's own: what it reads.
    fn temporary(&self, statement: &mut Statement) -> Result<()> {
        match statement {
            Statement::CreateTableAs { query, .. } | Statement::CreateView { query, .. } => {
                self.query(query)
            }
            _ => Ok(()),
        }
    }

    /// A statement about tables that are there, by their names.
    fn about_tables(&self, statement: &mut Statement) -> Result<()> {
        match statement {
            Statement::AlterTable { name, alterations, .. } => {
                for alteration in alterations {
                    looked_up::rename_in_change(alteration, &mut |table| self.rename(table))?;
                    match alteration {
                        Alteration::AddReference(reference) => self.rename(&mut reference.table)?,
                        Alteration::SetDefault { default, .. } => self.default(default)?,
                        Alteration::AddField(field) if field.identity.is_none() => {
                            self.default(&mut field.default)?;
                        }
                        _ => {}
                    }
                }
                self.rename(name)
            }
            Statement::RenameTable { name, .. }
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
            | Statement::Copy(CopyStatement::From { table: name, .. }) => self.rename(name),
            Statement::CreateSequence { name, .. } => self.rename_new(name),
            Statement::DropSequence { name, .. }
            | Statement::Comment(CommentStatement { about: Commented::Sequence, name, .. }) => {
                *name = self.find_sequence(name)?;
                Ok(())
            }
            Statement::DropTable { names, .. }
            | Statement::DropView { names, .. }
            | Statement::Truncate { names, .. }
            | Statement::LockTable { tables: names, .. }
            | Statement::Maintenance(
                MaintenanceStatement::Vacuum(names) | MaintenanceStatement::Analyze(names),
            ) => names.iter_mut().try_for_each(|name| self.rename(name)),
            _ => Ok(()),
        }
    }
}

/// A path as it is shown.
pub(crate) fn shown(path: Option<&SearchPath>) -> String {
    // default: without a choice it is main
    path.map_or_else(|| MAIN_SCHEMA.to_owned(), |path| path.join(", "))
}

/// Refuses schemas of which none is looked in by a path.
pub(crate) fn expect_lookable(schemas: &[String]) -> Result<()> {
    let is_odd = |schema: &&String| {
        schema.contains('.') || schema.eq_ignore_ascii_case(esker::INFORMATION_SCHEMA)
    };
    match schemas.iter().find(is_odd) {
        None => Ok(()),
        Some(schema) => Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "search_path: expected {MAIN_SCHEMA}, {TEMPORARY_SCHEMA} and schemas that users \
                 make, found {schema:?}"
            ),
        )),
    }
}
