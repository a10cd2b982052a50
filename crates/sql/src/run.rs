//! Running statements.

use std::borrow::Cow;
use std::sync::Arc;

use esker::record::records;
use esker::{
    ChangeOptions, Changed, Database, Error, ErrorKind, FromRow, QueryResult, Result, Rows, Scope,
    Semantics, Transaction, Value,
};
use esker_query::model::{Change, Query, RowCount};

use crate::channel;
use crate::comment::{self, CommentStatement, Commented};
use crate::copy::{self, Standard};
use crate::definition::define;
use crate::maintenance;
use crate::parameters::Parameters;
use crate::placed::{in_main, no_session};
use crate::prepared::Prepared;
use crate::schema;
use crate::sequence;
use crate::statement::{Statement, parse_with_parameters};
use crate::summary::summarize;
use crate::watch;

/// What a statement came to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// A query was answered.
    Rows(QueryResult),
    /// The steps of a query, and what they met where it ran.
    Plan(String),
    /// Rows were added.
    Added(Changed),
    /// Rows were changed.
    Changed(Changed),
    /// Rows were removed.
    Removed(Changed),
    /// A table was made, or something done to it, in words.
    Done(String),
}

impl Outcome {
    /// How many rows were added, changed or removed; 0 for what changes none.
    #[must_use]
    pub fn rows_changed(&self) -> u64 {
        match self {
            Self::Added(changed) | Self::Changed(changed) | Self::Removed(changed) => changed.rows,
            _ => 0,
        }
    }

    /// The rows of the answer: of a query, or what a change returns.
    #[must_use]
    pub fn into_rows(self) -> Option<QueryResult> {
        match self {
            Self::Rows(result) => Some(result),
            Self::Added(changed) | Self::Changed(changed) | Self::Removed(changed) => {
                changed.returning
            }
            _ => None,
        }
    }

    /// The rows of the answer.
    ///
    /// # Errors
    /// `InvalidInput` when the statement answers none.
    pub fn answer(self) -> Result<QueryResult> {
        self.into_rows().ok_or_else(no_rows)
    }

    /// The rows of the answer as structs, tuples or single values: see [`FromRow`].
    ///
    /// # Errors
    /// `InvalidInput` when the statement answers none, or naming the column that does not fit.
    pub fn records<T: FromRow>(self) -> Result<Vec<T>> {
        records(&self.answer()?)
    }

    /// The first row of the answer, if there is one.
    ///
    /// # Errors
    /// As for [`Outcome::records`].
    pub fn first<T: FromRow>(self) -> Result<Option<T>> {
        Rows::from(self.answer()?).records()?.next().transpose()
    }
}

fn no_rows() -> Error {
    Error::new(ErrorKind::InvalidInput, "the statement answers no rows")
}

/// Refuses a statement that answers no rows where rows are asked for: before it is run, so that it
/// changes nothing.
pub(crate) fn expect_rows(statement: &Statement) -> Result<()> {
    if statement.answers_rows() { Ok(()) } else { Err(no_rows()) }
}

/// A statement that answers rows, for the first of them: a query then finds no more.
pub(crate) fn first_of(statement: &Statement) -> Result<Cow<'_, Statement>> {
    expect_rows(statement)?;
    Ok(match statement {
        Statement::Query(query) if matches!(query.limit, None | Some(RowCount::Number(2..))) => {
            let limit = Some(RowCount::Number(1));
            Cow::Owned(Statement::Query(Query { limit, ..query.clone() }))
        }
        other => Cow::Borrowed(other),
    })
}

/// SQL for a [`Database`], and within a [`Transaction`].
///
/// ```
/// use esker::Options;
/// use esker_sql::Sql;
///
/// # fn main() -> esker::Result<()> {
/// let db = Options::new().memory()?;
/// db.sql("CREATE TABLE people (name text PRIMARY KEY, age u8)", ())?;
/// let insert = db.prepare("INSERT INTO people VALUES (?, ?)")?;
/// insert.execute(("Ada", 36))?;
/// insert.execute(("Alan", 41))?;
/// let older = db.prepare("SELECT name FROM people WHERE age > :age")?;
/// assert_eq!(older.query_as::<String>((40,))?, ["Alan"]);
/// assert_eq!(db.sql_first::<u64>("SELECT count(*) FROM people", ())?, Some(2));
///
/// db.transact(|transaction| {
///     transaction.sql("UPDATE people SET age = age + ?", (1,))?;
///     transaction.run_prepared(&insert, ("Grace", 85)).map(drop)
/// })?;
/// let all = db.sql_as::<(String, u8)>("SELECT name, age FROM people ORDER BY age", ())?;
/// assert_eq!(all, [("Ada".into(), 37), ("Alan".into(), 42), ("Grace".into(), 85)]);
///
/// let error = insert.execute(("Eva", 300)).unwrap_err();
/// let wanted = "parameter ?2: field \"age\": expected u8, found integer 300";
/// assert!(error.to_string().ends_with(wanted), "{error}");
/// # Ok(())
/// # }
/// ```
pub trait Sql: Scope + Sized {
    /// Runs a statement that has been read, or says with [`ChangeOptions::dry_run`] what it would
    /// change.
    ///
    /// # Errors
    /// As the operations of [`Database`].
    fn run_statement(&self, statement: &Statement, options: &ChangeOptions) -> Result<Outcome>;

    /// Prepares one statement, to be run often, with values for its parameters. What is prepared
    /// within a transaction is run there, by [`Sql::run_prepared`].
    ///
    /// # Errors
    /// `InvalidInput` with the place of what is wrong, `NotFound` for an unknown table.
    fn prepare(&self, text: &str) -> Result<Prepared>;

    /// Runs one statement with values for its parameters: see [`Parameters`].
    ///
    /// # Errors
    /// `InvalidInput` with the place of what is wrong; else as the operations of [`Database`].
    fn sql(&self, text: &str, parameters: impl Parameters) -> Result<Outcome> {
        let (statement, names) = parse_with_parameters(text)?;
        parameters.bind(&names, |values| self.run_statement(&statement, &with_parameters(values)))
    }

    /// Runs one statement that answers rows, as structs that derive [`Record`], tuples or single
    /// values: see [`FromRow`].
    ///
    /// # Errors
    /// As for [`Sql::sql`]; `InvalidInput` when the statement answers no rows, which is not run
    /// then, or naming the column that is missing or does not fit. A change with `RETURNING` is
    /// committed before its rows are read, so that the latter does not undo it.
    ///
    /// [`Record`]: esker::Record
    fn sql_as<T: FromRow>(&self, text: &str, parameters: impl Parameters) -> Result<Vec<T>> {
        let (statement, names) = parse_with_parameters(text)?;
        expect_rows(&statement)?;
        parameters
            .bind(&names, |values| self.run_statement(&statement, &with_parameters(values)))?
            .records()
    }

    /// The same for the first row, if there is one.
    ///
    /// # Errors
    /// As for [`Sql::sql_as`].
    fn sql_first<T: FromRow>(&self, text: &str, parameters: impl Parameters) -> Result<Option<T>> {
        let (statement, names) = parse_with_parameters(text)?;
        let statement = first_of(&statement)?;
        parameters
            .bind(&names, |values| self.run_statement(&statement, &with_parameters(values)))?
            .first()
    }

    /// Runs one statement that answers rows, row by row: an answer of any size takes little
    /// memory. See [`Rows`], of which [`Rows::records`] makes structs.
    ///
    /// # Errors
    /// As for [`Sql::sql`] and [`Database::query_rows`].
    fn sql_rows(&self, text: &str, parameters: impl Parameters) -> Result<Rows> {
        let (statement, names) = parse_with_parameters(text)?;
        parameters.bind(&names, |values| self.statement_rows(&statement, &with_parameters(values)))
    }

    /// Runs a statement that has been read, row by row.
    ///
    /// # Errors
    /// As for [`Sql::sql_rows`].
    fn statement_rows(&self, statement: &Statement, options: &ChangeOptions) -> Result<Rows> {
        match statement {
            Statement::Query(query) => {
                self.snapshot_for(query)?.query_rows_with(query, &options.for_query())
            }
            Statement::Qualified(_) => self.statement_rows(&in_main(statement.clone())?, options),
            _ => {
                expect_rows(statement)?;
                Ok(self.run_statement(statement, options)?.answer()?.into())
            }
        }
    }

    /// Runs a prepared statement here. What has become of its table since it was prepared counts.
    ///
    /// # Errors
    /// As for [`Sql::sql`].
    fn run_prepared(&self, prepared: &Prepared, parameters: impl Parameters) -> Result<Outcome> {
        parameters.bind(prepared.parameters(), |values| {
            match prepared.run_straight(self, values)? {
                Some(outcome) => Ok(outcome),
                None => self.run_statement(prepared.statement(), &prepared.options(values)),
            }
        })
    }

    /// Runs a prepared statement here, row by row: see [`Sql::sql_rows`].
    ///
    /// # Errors
    /// As for [`Sql::sql_rows`].
    fn prepared_rows(&self, prepared: &Prepared, parameters: impl Parameters) -> Result<Rows> {
        expect_rows(prepared.statement())?;
        parameters.bind(prepared.parameters(), |values| {
            match prepared.run_straight(self, values)? {
                Some(outcome) => Ok(outcome.answer()?.into()),
                None => self.statement_rows(prepared.statement(), &prepared.options(values)),
            }
        })
    }
}

impl Sql for Database {
    fn run_statement(&self, statement: &Statement, options: &ChangeOptions) -> Result<Outcome> {
        run(self, statement, options)
    }

    fn prepare(&self, text: &str) -> Result<Prepared> {
        Prepared::new(Some(self), self, text, Semantics::default())
    }
}

impl Sql for Transaction {
    fn run_statement(&self, statement: &Statement, options: &ChangeOptions) -> Result<Outcome> {
        let refused = |message| Err(Error::new(ErrorKind::InvalidInput, message));
        match statement {
            Statement::QueryForUpdate(query) => {
                Ok(Outcome::Rows(self.query_for_update_with(query, &options.for_query())?))
            }
            Statement::CreateSequence { .. }
            | Statement::DropSequence { .. }
            | Statement::Restart(_)
            | Statement::Comment(CommentStatement { about: Commented::Sequence, .. }) => refused(
                "within a transaction: expected a statement about rows, tables or indexes; \
                 sequences are changed outside: COMMIT or ROLLBACK first",
            ),
            Statement::Transaction(_) => refused(
                "a transaction in SQL needs a session; this one is committed by its own calls",
            ),
            Statement::Setting(_) => refused(NO_SESSION),
            Statement::Channel(_) => refused(channel::OUTSIDE_ONLY),
            Statement::Named(_) | Statement::Cursor(_) => refused(NAMES_NO_SESSION),
            Statement::Maintenance(_) => Err(maintenance::outside_only()),
            Statement::Watch(_) => Err(watch::refused()),
            Statement::Temporary { .. } => Err(no_session()),
            Statement::Qualified(_) => self.run_statement(&in_main(statement.clone())?, options),
            Statement::LockTable { tables, holds } => {
                maintenance::lock_tables(self, tables, *holds)
            }
            _ => run_in(self, statement, options),
        }
    }

    fn prepare(&self, text: &str) -> Result<Prepared> {
        Prepared::new(None, self, text, Semantics::default())
    }
}

/// What a setting without a session is refused with.
const NO_SESSION: &str = "SET and RESET are about a session, which runs statements one after \
                          another; a database has settings by Options::semantics";

/// What names of a session are refused with where there is none.
const NAMES_NO_SESSION: &str = "PREPARE, EXECUTE, DEALLOCATE and cursors are about a session, \
                                which runs statements one after another";

/// Runs a statement, or says with [`ChangeOptions::dry_run`] what it would change.
///
/// # Errors
/// As the operations of [`Database`].
pub fn run(db: &Database, statement: &Statement, options: &ChangeOptions) -> Result<Outcome> {
    let dry_run = options.dry_run;
    match statement {
        Statement::QueryForUpdate(_) => Err(Error::new(
            ErrorKind::InvalidInput,
            "FOR UPDATE holds rows until the end of a transaction: expected BEGIN before",
        )),
        Statement::Transaction(_) => Err(Error::new(
            ErrorKind::InvalidInput,
            "a transaction in SQL needs a session, which runs statements one after another",
        )),
        Statement::Setting(_) => Err(Error::new(ErrorKind::InvalidInput, NO_SESSION)),
        Statement::Channel(statement) => channel::run(db, statement),
        Statement::Named(_) | Statement::Cursor(_) => {
            Err(Error::new(ErrorKind::InvalidInput, NAMES_NO_SESSION))
        }
        Statement::Maintenance(statement) => maintenance::run(db, statement, dry_run),
        Statement::Watch(_) => Err(watch::refused()),
        Statement::Temporary { .. } => Err(no_session()),
        Statement::Qualified(_) => run(db, &in_main(statement.clone())?, options),
        Statement::LockTable { .. } => Err(maintenance::inside_only()),
        Statement::CreateSequence { name, start, increment, if_not_exists } => {
            let exists = sequence::is_there(db, name);
            if exists && *if_not_exists {
                return Ok(Outcome::Done(format!("sequence {name} exists already")));
            }
            schema::expect_there(db, name)?;
            if dry_run && !exists {
                return Ok(Outcome::Done(format!("would create sequence {name}")));
            }
            db.create_sequence_in_place(name, *start, *increment)?;
            Ok(Outcome::Done(format!("created sequence {name}")))
        }
        Statement::DropSequence { name, if_exists } => drop_sequence(db, name, *if_exists, dry_run),
        Statement::Restart(restart) => sequence::restart(db, restart, dry_run),
        Statement::Comment(said) if said.about == Commented::Sequence => {
            comment::on_sequence(db, said, dry_run)
        }
        _ => run_in(db, statement, options),
    }
}

/// Runs a statement that is the same on a database and within a transaction.
pub(crate) fn run_in(
    scope: &dyn Scope,
    statement: &Statement,
    options: &ChangeOptions,
) -> Result<Outcome> {
    let for_query = || options.for_query();
    Ok(match statement {
        Statement::Query(query) => {
            Outcome::Rows(scope.snapshot_for(query)?.query_with(query, &for_query())?)
        }
        Statement::Summarize(query) => Outcome::Rows(summarize(scope, query, &for_query())?),
        Statement::Explain(explain) => {
            let (query, options) = (&explain.query, for_query());
            let snapshot = scope.snapshot_for(query)?;
            let explanation = match explain.analyze {
                true => snapshot.explain_with(query, &options)?,
                false => snapshot.plan_with(query, &options)?,
            };
            Outcome::Plan(explain.shown(&explanation)?)
        }
        Statement::Copy(copy) => return copy::run(scope, copy, Standard::None, options),
        Statement::Change(change) => changed(change, scope.change_with(change, options)?),
        _ => return define(scope, statement, options),
    })
}

/// What a change of rows came to.
fn changed(change: &Change, changed: Changed) -> Outcome {
    match change {
        Change::Insert(_) => Outcome::Added(changed),
        Change::Update(_) | Change::Merge(_) => Outcome::Changed(changed),
        Change::Delete(_) => Outcome::Removed(changed),
    }
}

fn drop_sequence(db: &Database, name: &str, if_exists: bool, dry_run: bool) -> Result<Outcome> {
    let exists = sequence::is_there(db, name);
    if if_exists && !exists {
        return Ok(Outcome::Done(format!("no sequence {name}")));
    }
    if dry_run && exists {
        return Ok(Outcome::Done(format!("would drop sequence {name}")));
    }
    db.drop_sequence(name)?;
    Ok(Outcome::Done(format!("dropped sequence {name}")))
}

/// Options with values for parameters.
pub(crate) fn with_parameters(parameters: &[Value]) -> ChangeOptions {
    ChangeOptions { parameters: Arc::from(parameters), ..ChangeOptions::default() }
}
