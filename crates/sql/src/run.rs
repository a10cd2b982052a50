//! Running statements.

use std::sync::Arc;

use esker::{
    ChangeOptions, Changed, Database, Error, ErrorKind, QueryResult, Result, Scope, Value,
};
use esker_query::model::Change;

use crate::definition::define;
use crate::prepared::Prepared;
use crate::statement::{Statement, parse_statement};

/// What a statement came to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// A query was answered.
    Rows(QueryResult),
    /// A query was run, and these are its steps.
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
}

/// SQL for a [`Database`].
///
/// ```
/// use esker::{Options, Value};
/// use esker_sql::Sql;
///
/// # fn main() -> esker::Result<()> {
/// let db = Options::new().memory()?;
/// db.sql("CREATE TABLE people (name text PRIMARY KEY, age u8)")?;
/// let insert = db.prepare("INSERT INTO people VALUES (?, ?)")?;
/// insert.execute(&["Ada".into(), 36u8.into()])?;
/// insert.execute(&["Alan".into(), 41u8.into()])?;
/// let older = db.prepare("SELECT name FROM people WHERE age > :age")?;
/// assert_eq!(older.query(&[40u8.into()])?.to_rows(), [["Alan".into()] as [Value; 1]]);
/// let error = insert.execute(&["Eva".into(), 300i64.into()]).unwrap_err();
/// let wanted = "parameter ?2: field \"age\": expected u8, found integer 300";
/// assert!(error.to_string().ends_with(wanted), "{error}");
/// # Ok(())
/// # }
/// ```
pub trait Sql {
    /// Runs one statement.
    ///
    /// # Errors
    /// `InvalidInput` with the place of what is wrong; else as the operations of [`Database`].
    fn sql(&self, text: &str) -> Result<Outcome>;

    /// Prepares one statement, to be run often, with values for its parameters.
    ///
    /// # Errors
    /// `InvalidInput` with the place of what is wrong, `NotFound` for an unknown table.
    fn prepare(&self, text: &str) -> Result<Prepared>;
}

impl Sql for Database {
    fn sql(&self, text: &str) -> Result<Outcome> {
        run(self, &parse_statement(text)?, &ChangeOptions::default())
    }

    fn prepare(&self, text: &str) -> Result<Prepared> {
        Prepared::new(self, self, text)
    }
}

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
        Statement::CreateSequence { name, start, increment, if_not_exists } => {
            let exists = has_sequence(db, name);
            if exists && *if_not_exists {
                return Ok(Outcome::Done(format!("sequence {name} exists already")));
            }
            if dry_run && !exists {
                return Ok(Outcome::Done(format!("would create sequence {name}")));
            }
            db.create_sequence(name, *start, *increment)?;
            Ok(Outcome::Done(format!("created sequence {name}")))
        }
        Statement::DropSequence { name, if_exists } => drop_sequence(db, name, *if_exists, dry_run),
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
        Statement::Explain(query) => {
            let explanation = scope.snapshot_for(query)?.explain_with(query, &for_query())?;
            Outcome::Plan(explanation.to_string())
        }
        Statement::Plan(query) => {
            let explanation = scope.snapshot_for(query)?.plan_with(query, &for_query())?;
            Outcome::Plan(explanation.to_string())
        }
        Statement::Change(change) => changed(change, scope.change_with(change, options)?),
        _ => return define(scope, statement, options.dry_run),
    })
}

/// What a change of rows came to.
fn changed(change: &Change, changed: Changed) -> Outcome {
    match change {
        Change::Insert(_) => Outcome::Added(changed),
        Change::Update(_) => Outcome::Changed(changed),
        Change::Delete(_) => Outcome::Removed(changed),
    }
}

fn drop_sequence(db: &Database, name: &str, if_exists: bool, dry_run: bool) -> Result<Outcome> {
    let exists = has_sequence(db, name);
    if if_exists && !exists {
        return Ok(Outcome::Done(format!("no sequence {name}")));
    }
    if dry_run && exists {
        return Ok(Outcome::Done(format!("would drop sequence {name}")));
    }
    db.drop_sequence(name)?;
    Ok(Outcome::Done(format!("dropped sequence {name}")))
}

fn has_sequence(db: &Database, name: &str) -> bool {
    db.sequences().iter().any(|sequence| sequence.name == name)
}

/// Options with values for parameters.
pub(crate) fn with_parameters(parameters: &[Value]) -> ChangeOptions {
    ChangeOptions { parameters: Arc::from(parameters), ..ChangeOptions::default() }
}
