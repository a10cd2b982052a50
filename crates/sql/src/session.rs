//! Statements one after another, with a transaction between `BEGIN` and `COMMIT`.

use std::borrow::Cow;
use std::io::{Read, Write};
use std::sync::Arc;

use esker::{
    ChangeOptions, Database, Error, ErrorKind, FromRow, Limits, Listener, MAIN_SCHEMA,
    QueryOptions, QueryResult, Result, Rows, Savepoint, Scope, Semantics, Transaction, Value,
};
use esker_query::model::{Expr, SelectItem};
use esker_query::{Explanation, Query};

use crate::copy::{self, CopyStatement, Standard};
use crate::cursor::{self, CursorStatement, Cursors};
use crate::named_statement::{NamedStatement, NamedStatements};
use crate::parameters::Parameters;
use crate::prepared::Prepared;
use crate::run::{Outcome, Sql, expect_rows, first_of, run, with_parameters};
use crate::search_path::{self, SearchPath};
use crate::setting::SettingStatement;
use crate::statement::{Statement, parse_with_parameters};
use crate::temporary::{Mark, Own};
use crate::transaction::TransactionStatement;

/// Runs statements one after another. Between `BEGIN` and `COMMIT` they are one transaction, which
/// sees its own changes; a session that is dropped before rolls it back. A statement that fails
/// changes nothing, and the transaction goes on.
///
/// ```
/// use esker::Options;
/// use esker_sql::Session;
///
/// # fn main() -> esker::Result<()> {
/// let db = Options::new().memory()?;
/// let mut session = Session::new(&db);
/// session.sql("CREATE TABLE stock (item text PRIMARY KEY, n i64)", ())?;
/// session.sql("BEGIN", ())?;
/// session.sql("INSERT INTO stock VALUES ('tea', 3)", ())?;
/// session.sql("SAVEPOINT before", ())?;
/// session.sql("UPDATE stock SET n = n - 5", ())?;
/// session.sql("ROLLBACK TO before", ())?;
/// session.sql("COMMIT", ())?;
/// assert_eq!(session.sql_as::<i64>("SELECT n FROM stock", ())?, [3]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Session {
    database: Database,
    pub(crate) open: Option<Open>,
    settings: Settings,
    named: NamedStatements,
    /// Its temporary tables and views, once there are any.
    pub(crate) own: Option<Own>,
    /// What it listens to.
    pub(crate) listener: Option<Listener>,
}

/// What a session chooses.
#[derive(Clone, Debug, Default)]
struct Settings {
    /// Until it chooses otherwise.
    session: Semantics,
    /// Until the end of the transaction.
    local: Semantics,
    /// Where names are looked for, until it chooses otherwise.
    path: Option<SearchPath>,
    /// The same until the end of the transaction.
    local_path: Option<SearchPath>,
}

impl Settings {
    fn chosen(&self) -> Semantics {
        self.local.or(self.session)
    }
}

/// A transaction under way.
#[derive(Debug)]
pub(crate) struct Open {
    transaction: Transaction,
    pub(crate) savepoints: Vec<Saved>,
    cursors: Cursors,
    /// What the session chose before it began.
    settings: Settings,
    /// How its temporary tables were.
    own: Mark,
    /// Channels and what is said there once it is committed.
    pub(crate) said: Vec<(String, String)>,
}

/// A savepoint, with what the session chose there.
#[derive(Debug)]
pub(crate) struct Saved {
    name: String,
    savepoint: Savepoint,
    settings: Settings,
    /// How many cursors had been opened, and notifications said.
    cursors: usize,
    said: usize,
    /// How its temporary tables were.
    pub(crate) own: Mark,
}

impl Open {
    /// The newest savepoint of a name, and how many there are before it.
    fn find(&self, name: &str) -> Result<(usize, &Saved)> {
        let mut known = self.savepoints.iter().enumerate().rev();
        let found = known.find(|(_, saved)| saved.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names: Vec<&str> = self.savepoints.iter().map(|s| s.name.as_str()).collect();
            let known = match names.is_empty() {
                true => "there is none".to_owned(),
                false => format!("there are {}", names.join(", ")),
            };
            Error::new(ErrorKind::NotFound, format!("no savepoint {name:?}; {known}"))
        })
    }
}

impl Session {
    /// A session without a transaction.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        let (settings, named) = (Settings::default(), NamedStatements::default());
        Self { database: database.clone(), open: None, settings, named, own: None, listener: None }
    }

    /// The same with what it chooses: where NULLs go in orders and what a division by zero is, as
    /// by `SET`.
    #[must_use]
    pub fn with_semantics(mut self, semantics: Semantics) -> Self {
        self.settings.session = semantics;
        self
    }

    /// What it chooses at the moment; for what it does not choose, the database has a choice.
    #[must_use]
    pub fn semantics(&self) -> Semantics {
        self.settings.chosen()
    }

    fn for_change(&self, options: &ChangeOptions) -> ChangeOptions {
        ChangeOptions { semantics: options.semantics.or(self.semantics()), ..options.clone() }
    }

    fn for_query(&self, options: &QueryOptions) -> QueryOptions {
        QueryOptions { semantics: options.semantics.or(self.semantics()), ..options.clone() }
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The transaction under way, for what is not written in SQL.
    #[must_use]
    pub fn transaction(&self) -> Option<&Transaction> {
        self.open.as_ref().map(|open| &open.transaction)
    }

    /// What names mean, and where changes go: the transaction, or the database where there is none.
    #[must_use]
    pub fn scope(&self) -> &dyn Scope {
        match &self.open {
            _ if self.own.is_some() => self,
            Some(open) => &open.transaction,
            None => &self.database,
        }
    }

    /// True between `BEGIN` and `COMMIT` or `ROLLBACK`.
    #[must_use]
    pub fn is_in_transaction(&self) -> bool {
        self.open.is_some()
    }

    /// Runs one statement with values for its parameters: see [`Parameters`].
    ///
    /// # Errors
    /// As for [`Sql::sql`]; `Conflict` for a `COMMIT` after a conflicting one, which
    /// ends the transaction.
    pub fn sql(&mut self, text: &str, parameters: impl Parameters) -> Result<Outcome> {
        let (statement, names) = parse_with_parameters(text)?;
        parameters.bind(&names, |values| self.run(&statement, &with_parameters(values)))
    }

    /// Runs one statement that answers rows, as structs, tuples or single values: see [`FromRow`].
    ///
    /// # Errors
    /// As for [`Sql::sql_as`].
    pub fn sql_as<T: FromRow>(
        &mut self,
        text: &str,
        parameters: impl Parameters,
    ) -> Result<Vec<T>> {
        let (statement, names) = parse_with_parameters(text)?;
        expect_rows(self.meant(&statement)?)?;
        parameters.bind(&names, |values| self.run(&statement, &with_parameters(values)))?.records()
    }

    /// The same for the first row, if there is one.
    ///
    /// # Errors
    /// As for [`Sql::sql_as`].
    pub fn sql_first<T: FromRow>(
        &mut self,
        text: &str,
        parameters: impl Parameters,
    ) -> Result<Option<T>> {
        let (statement, names) = parse_with_parameters(text)?;
        expect_rows(self.meant(&statement)?)?;
        let first = first_of(&statement).unwrap_or(Cow::Borrowed(&statement));
        parameters.bind(&names, |values| self.run(&first, &with_parameters(values)))?.first()
    }

    /// Runs one statement that answers rows, row by row, as the transaction is now where there is
    /// one: see [`Rows`].
    ///
    /// # Errors
    /// As for [`Sql::sql_rows`].
    pub fn sql_rows(&mut self, text: &str, parameters: impl Parameters) -> Result<Rows> {
        let (statement, names) = parse_with_parameters(text)?;
        expect_rows(self.meant(&statement)?)?;
        parameters.bind(&names, |values| {
            let options = self.for_change(&with_parameters(values));
            if let Statement::Named(_) | Statement::Cursor(_) | Statement::Setting(_) = statement {
                return Ok(self.run(&statement, &options)?.answer()?.into());
            }
            if self.is_placed(&statement) {
                return self.placed_rows(&statement, &options);
            }
            match &self.open {
                Some(open) => open.transaction.statement_rows(&statement, &options),
                None => self.database.statement_rows(&statement, &options),
            }
        })
    }

    /// Prepares one statement, for tables as the transaction sees them where there is one.
    ///
    /// # Errors
    /// As for [`Sql::prepare`].
    pub fn prepare(&self, text: &str) -> Result<Prepared> {
        let (statement, parameters) = parse_with_parameters(text)?;
        let read = (self.in_path(&statement)?.into_owned(), parameters);
        Prepared::of(Some(&self.database), self.scope(), read, self.semantics())
    }

    /// Runs a prepared statement, in the transaction where there is one. What has become of its
    /// table since it was prepared, in the transaction or before, counts.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let db = esker::Options::new().memory()?;
    /// let mut session = esker_sql::Session::new(&db);
    /// session.sql("BEGIN", ())?;
    /// session.sql("CREATE TABLE stock (item text PRIMARY KEY, n i64)", ())?;
    /// let insert = session.prepare("INSERT INTO stock VALUES (?, ?)")?;
    /// session.run_prepared(&insert, ("tea", 3))?;
    /// session.sql("COMMIT", ())?;
    /// assert_eq!(db.table("stock")?.count()?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Prepared::run`] and [`Session::sql`].
    pub fn run_prepared(
        &mut self,
        prepared: &Prepared,
        parameters: impl Parameters,
    ) -> Result<Outcome> {
        match (&self.open, prepared.statement()) {
            (_, Statement::Transaction(statement)) => {
                let transact = |_: &[Value]| self.transact(statement);
                parameters.bind(prepared.parameters(), transact)
            }
            (_, Statement::Setting(setting)) => {
                parameters.bind(prepared.parameters(), |_: &[Value]| self.set(setting))
            }
            (_, statement @ (Statement::Named(_) | Statement::Cursor(_))) => {
                let run = |values: &[Value]| self.run(statement, &prepared.options(values));
                parameters.bind(prepared.parameters(), run)
            }
            (_, statement) if self.is_placed(statement) => {
                let run = |values: &[Value]| {
                    if self.search_path().is_none()
                        && let Some(done) = prepared.run_straight(self.scope(), values)?
                    {
                        self.own.iter_mut().try_for_each(Own::end_statement)?;
                        return Ok(done);
                    }
                    self.run(statement, &prepared.options(values))
                };
                parameters.bind(prepared.parameters(), run)
            }
            (Some(open), _) => open.transaction.run_prepared(prepared, parameters),
            (None, _) => self.database.run_prepared(prepared, parameters),
        }
    }

    /// Runs `COPY … FROM STDIN` with bytes that stand for standard input.
    ///
    /// # Errors
    /// As for [`Session::sql`].
    pub fn copy_in(
        &mut self,
        copy: &CopyStatement,
        bytes: Box<dyn Read + Send>,
        options: &ChangeOptions,
    ) -> Result<Outcome> {
        let options = self.for_change(options);
        let statement = Statement::Copy(copy.clone());
        let in_path = self.in_path(&statement)?;
        let copy = match &*in_path {
            Statement::Copy(copy) => copy,
            _ => copy,
        };
        let done = copy::run(self.scope(), copy, Standard::In(bytes), &options)?;
        self.own.iter_mut().try_for_each(Own::end_statement)?;
        Ok(done)
    }

    /// Runs `COPY … TO STDOUT`, where a writer stands for standard output.
    ///
    /// # Errors
    /// As for [`Session::sql`].
    pub fn copy_out(
        &mut self,
        copy: &CopyStatement,
        out: &mut dyn Write,
        options: &ChangeOptions,
    ) -> Result<Outcome> {
        let options = self.for_change(options);
        match self.resolved(&Statement::Copy(copy.clone()))?.as_ref() {
            Statement::Copy(copy) => copy::run(self.scope(), copy, Standard::Out(out), &options),
            _ => copy::run(self.scope(), copy, Standard::Out(out), &options),
        }
    }

    /// The statement that is run: of `EXECUTE` the one that the session keeps, else it itself.
    ///
    /// # Errors
    /// `NotFound` when the session keeps none of that name.
    pub fn meant<'s>(&'s self, statement: &'s Statement) -> Result<&'s Statement> {
        match statement {
            Statement::Qualified(inner) if matches!(**inner, Statement::Named(_)) => {
                self.meant(inner)
            }
            Statement::Named(NamedStatement::Execute { name, .. }) => {
                Ok(self.named.get(name)?.prepared.statement())
            }
            _ => Ok(statement),
        }
    }

    fn run_named(
        &mut self,
        statement: &NamedStatement,
        options: &ChangeOptions,
    ) -> Result<Outcome> {
        match statement {
            NamedStatement::Prepare { name, types, statement, parameters, bytes } => {
                let statement = self.in_path(statement)?.into_owned();
                let read = (statement, Arc::clone(parameters));
                let database = Some(&self.database);
                let prepared = Prepared::of(database, self.scope(), read, Semantics::default())?;
                self.named.keep(name, prepared, (types, *bytes))?;
                Ok(Outcome::Done(format!("prepared {name}")))
            }
            NamedStatement::Execute { name, values } => {
                self.named.get(name)?;
                let values = self.values_of(values, options)?;
                let kept = self.named.get(name)?;
                let parameters = kept.fitted(name, values)?;
                if !options.dry_run
                    && self.search_path().is_none()
                    && let Some(done) = kept.prepared.run_straight(self.scope(), &parameters)?
                {
                    self.own.iter_mut().try_for_each(Own::end_statement)?;
                    return Ok(done);
                }
                let statement = kept.prepared.statement().clone();
                let options = ChangeOptions { parameters: parameters.into(), ..options.clone() };
                self.run(&statement, &options)
            }
            NamedStatement::Deallocate(name) => {
                self.named.forget(name.as_deref())?;
                Ok(Outcome::Done(match name {
                    Some(name) => format!("deallocated {name}"),
                    None => "deallocated all prepared statements".to_owned(),
                }))
            }
        }
    }

    /// The values of expressions that name no field.
    fn values_of(&self, exprs: &[Expr], options: &ChangeOptions) -> Result<Vec<Value>> {
        let literal = |expr: &Expr| match expr {
            Expr::Literal(value) => Some(value.clone()),
            _ => None,
        };
        if let Some(values) = exprs.iter().map(literal).collect() {
            return Ok(values);
        }
        let mut query = Query::one_row();
        exprs.iter().for_each(|expr| {
            query.select(expr.clone());
        });
        let answer = self.query_with(&query, &options.for_query())?;
        // default: one row is answered
        Ok(answer.to_rows().pop().unwrap_or_default())
    }

    fn run_cursor(
        &mut self,
        statement: &CursorStatement,
        options: &ChangeOptions,
    ) -> Result<Outcome> {
        let Some(open) = &mut self.open else { return Err(cursor::inside_only()) };
        match statement {
            CursorStatement::Declare { name, query } => {
                open.cursors.expect_room(name)?;
                let query = &*self.resolved_query(query)?;
                let snapshot = self.scope().snapshot_for(query)?;
                let Some(open) = &mut self.open else { return Err(cursor::inside_only()) };
                // It is read for as long as the transaction goes on; each FETCH has its time.
                let limits = Limits { timeout: None, ..options.limits.clone() };
                let options = QueryOptions { limits, ..options.for_query() };
                open.cursors.add(name, snapshot.query_rows_with(query, &options)?);
                Ok(Outcome::Done(format!("declared cursor {name}")))
            }
            CursorStatement::Fetch { name, rows } => {
                open.cursors.fetch(name, *rows, &options.limits).map(Outcome::Rows)
            }
            CursorStatement::Close(name) => {
                open.cursors.close(name.as_deref())?;
                Ok(Outcome::Done("closed".to_owned()))
            }
        }
    }

    /// Runs a prepared statement row by row: see [`Session::sql_rows`].
    ///
    /// # Errors
    /// As for [`Sql::sql_rows`].
    pub fn prepared_rows(
        &mut self,
        prepared: &Prepared,
        parameters: impl Parameters,
    ) -> Result<Rows> {
        if self.is_placed(prepared.statement()) {
            return parameters.bind(prepared.parameters(), |values| {
                self.placed_rows(prepared.statement(), &prepared.options(values))
            });
        }
        match &self.open {
            Some(open) => open.transaction.prepared_rows(prepared, parameters),
            None => self.database.prepared_rows(prepared, parameters),
        }
    }

    /// Runs a statement, or says with [`ChangeOptions::dry_run`] what it would change.
    ///
    /// # Errors
    /// As for [`Session::sql`].
    pub fn run(&mut self, statement: &Statement, options: &ChangeOptions) -> Result<Outcome> {
        let options = &self.for_change(options);
        match self.is_placed(statement) {
            true => self.run_placed(statement, options),
            false => self.run_unplaced(statement, options),
        }
    }

    /// A statement whose names are looked up in what the session has for itself, row by row.
    fn placed_rows(&mut self, statement: &Statement, options: &ChangeOptions) -> Result<Rows> {
        let options = self.for_change(options);
        if let Statement::Query(query) = self.resolved(statement)?.as_ref() {
            return self.scope().snapshot_for(query)?.query_rows_with(query, &options.for_query());
        }
        Ok(self.run(statement, &options)?.answer()?.into())
    }

    /// Runs a statement whose names are those of all.
    pub(crate) fn run_unplaced(
        &mut self,
        statement: &Statement,
        options: &ChangeOptions,
    ) -> Result<Outcome> {
        match (statement, &self.open) {
            (Statement::Transaction(statement), _) => self.transact(statement),
            (Statement::Setting(statement), _) => self.set(statement),
            (Statement::Named(statement), _) => self.run_named(statement, options),
            (Statement::Cursor(statement), _) => self.run_cursor(statement, options),
            (Statement::Channel(statement), _) => self.run_channel(statement),
            (_, None) => run(&self.database, statement, options),
            (_, Some(open)) => open.transaction.run_statement(statement, options),
        }
    }

    /// Chooses a setting. A transaction that is rolled back takes choices back, too.
    fn set(&mut self, statement: &SettingStatement) -> Result<Outcome> {
        match statement {
            SettingStatement::ShowPath => return self.show_path(),
            SettingStatement::SetPath { schemas, is_local } => {
                return self.set_path(schemas.as_deref(), *is_local);
            }
            SettingStatement::Set { is_local: true, .. } if self.open.is_none() => {
                let message = "SET LOCAL is until the end of a transaction: expected BEGIN before";
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            SettingStatement::Set { name, value, is_local: true } => {
                let default = self.scope().semantics().value_of(name)?;
                let value = value.as_deref().unwrap_or(default);
                self.settings.local = self.settings.local.with(name, Some(value))?;
            }
            _ => {
                // What was local before is so no longer.
                self.settings.local = match statement {
                    SettingStatement::Set { name, .. } => self.settings.local.with(name, None)?,
                    other => other.applied(self.settings.local)?,
                };
                self.settings.session = statement.applied(self.settings.session)?;
                if *statement == SettingStatement::Reset(None) {
                    (self.settings.path, self.settings.local_path) = (None, None);
                }
            }
        }
        Ok(Outcome::Done(match statement {
            SettingStatement::Set { name, value: Some(value), .. } => format!("{name} is {value}"),
            SettingStatement::Set { name, .. } | SettingStatement::Reset(Some(name)) => {
                format!("{name} is as by default")
            }
            _ => "all settings are as by default".to_owned(),
        }))
    }

    /// Where names without a schema are looked for, where the session has chosen that.
    pub(crate) fn search_path(&self) -> Option<&SearchPath> {
        self.settings.local_path.as_ref().or(self.settings.path.as_ref())
    }

    fn set_path(&mut self, schemas: Option<&[String]>, is_local: bool) -> Result<Outcome> {
        if is_local && self.open.is_none() {
            let message = "SET LOCAL is until the end of a transaction: expected BEGIN before";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        schemas.map_or(Ok(()), search_path::expect_lookable)?;
        let path = schemas.map(SearchPath::from);
        match is_local {
            // What is as by default is said, where the session has chosen something.
            true => {
                let main = || SearchPath::from([MAIN_SCHEMA.to_owned()]);
                self.settings.local_path = Some(path.unwrap_or_else(main)); // default: main
            }
            false => (self.settings.path, self.settings.local_path) = (path, None),
        }
        Ok(Outcome::Done(format!("search_path is {}", search_path::shown(self.search_path()))))
    }

    fn show_path(&self) -> Result<Outcome> {
        let mut query = Query::one_row();
        let expr = Expr::literal(search_path::shown(self.search_path()).as_str());
        query.select.push(SelectItem { expr, alias: Some("search_path".to_owned()) });
        Ok(Outcome::Rows(self.database.query(&query)?))
    }

    fn own_mark(&self) -> Mark {
        // default: without temporary tables there is nothing to go back to
        self.own.as_ref().map(Own::mark).unwrap_or_default()
    }

    /// Commits what is for all, and then what is the session's own.
    fn commit(&mut self, open: Open) -> Result<()> {
        let chosen = std::mem::replace(&mut self.settings, open.settings);
        if let Err(e) = open.transaction.commit() {
            self.own.iter_mut().for_each(|own| own.roll_back(&open.own));
            return Err(e);
        }
        for (channel, payload) in open.said {
            self.database.notify(channel.as_bytes(), payload.as_bytes());
        }
        let Settings { session, path, .. } = chosen;
        self.settings = Settings { session, path, ..Settings::default() };
        self.own.iter_mut().try_for_each(Own::commit).map_err(|e| {
            let message = format!("the transaction was committed, but for temporary tables: {e}");
            Error::new(e.kind(), message)
        })
    }

    fn transact(&mut self, statement: &TransactionStatement) -> Result<Outcome> {
        let done = |what: &str| Ok(Outcome::Done(what.to_owned()));
        if let TransactionStatement::Begin(options) = statement {
            if self.open.is_some() {
                let message = "BEGIN within a transaction: COMMIT or ROLLBACK first, or SAVEPOINT";
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            let transaction = self.database.begin_with(*options)?;
            let (savepoints, cursors) = (Vec::new(), Cursors::default());
            let (settings, own) = (self.settings.clone(), self.own_mark());
            self.own.iter_mut().try_for_each(Own::begin)?;
            let said = Vec::new();
            self.open = Some(Open { transaction, savepoints, cursors, settings, own, said });
            return done("began a transaction");
        }
        let Some(open) = &mut self.open else {
            let message = "there is no transaction: expected BEGIN before";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        };
        match statement {
            TransactionStatement::Begin(_) => {}
            TransactionStatement::Commit => {
                self.open.take().map_or(Ok(()), |open| self.commit(open))?;
                return done("committed");
            }
            TransactionStatement::Rollback => {
                self.settings = open.settings.clone();
                self.own.iter_mut().for_each(|own| own.roll_back(&open.own));
                self.open = None;
                return done("rolled back");
            }
            TransactionStatement::Savepoint(name) => {
                let (savepoint, settings) = (open.transaction.savepoint(), self.settings.clone());
                let (kept, cursors) = (name.clone(), open.cursors.opened());
                // default: there is nothing to go back to
                let own = self.own.as_ref().map(Own::mark).unwrap_or_default();
                let said = open.said.len();
                open.savepoints.push(Saved { name: kept, savepoint, settings, cursors, said, own });
                return done(&format!("savepoint {name}"));
            }
            TransactionStatement::RollbackTo(name) => {
                let (at, saved) = open.find(name)?;
                open.transaction.rollback_to(saved.savepoint)?;
                self.own.iter_mut().try_for_each(|own| own.go_back(&saved.own))?;
                self.settings = saved.settings.clone();
                let (cursors, said) = (saved.cursors, saved.said);
                open.cursors.close_later(cursors);
                open.said.truncate(said);
                open.savepoints.truncate(at + 1);
                return done(&format!("rolled back to {name}"));
            }
            TransactionStatement::Release(name) => {
                let (at, saved) = open.find(name)?;
                open.transaction.release(saved.savepoint)?;
                self.own.iter().try_for_each(|own| own.forget(&saved.own))?;
                open.savepoints.truncate(at);
                return done(&format!("released {name}"));
            }
        }
        done("")
    }

    /// Answers a query, as the transaction sees the tables where there is one.
    ///
    /// # Errors
    /// As for [`Database::query_with`].
    pub fn query_with(&self, query: &Query, options: &QueryOptions) -> Result<QueryResult> {
        let query = &*self.resolved_query(query)?;
        self.scope().snapshot_for(query)?.query_with(query, &self.for_query(options))
    }

    /// How a query is answered, and what came of running it.
    ///
    /// # Errors
    /// As for [`Database::explain_with`].
    pub fn explain_with(&self, query: &Query, options: &QueryOptions) -> Result<Explanation> {
        let query = &*self.resolved_query(query)?;
        self.scope().snapshot_for(query)?.explain_with(query, &self.for_query(options))
    }

    /// How a query would be answered. It is not run.
    ///
    /// # Errors
    /// As for [`Database::plan_with`].
    pub fn plan_with(&self, query: &Query, options: &QueryOptions) -> Result<Explanation> {
        let query = &*self.resolved_query(query)?;
        self.scope().snapshot_for(query)?.plan_with(query, &self.for_query(options))
    }

    /// Ends the session; a transaction that was not committed is rolled back. Returns the
    /// database, and whether there was one.
    #[must_use]
    pub fn into_database(self) -> (Database, bool) {
        (self.database, self.open.is_some())
    }
}
