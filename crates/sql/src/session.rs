//! Statements one after another, with a transaction between `BEGIN` and `COMMIT`.

use esker::{
    ChangeOptions, Database, Error, ErrorKind, FromRow, QueryOptions, QueryResult, Result, Rows,
    Savepoint, Scope, Transaction, Value,
};
use esker_query::{Explanation, Query};

use crate::parameters::Parameters;
use crate::prepared::Prepared;
use crate::run::{Outcome, Sql, expect_rows, first_of, run, with_parameters};
use crate::statement::{Statement, parse_with_parameters};
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
    open: Option<Open>,
}

/// A transaction under way.
#[derive(Debug)]
struct Open {
    transaction: Transaction,
    savepoints: Vec<(String, Savepoint)>,
}

impl Open {
    /// The newest savepoint of a name, and how many there are before it.
    fn find(&self, name: &str) -> Result<(usize, Savepoint)> {
        let mut known = self.savepoints.iter().enumerate().rev();
        let found = known.find(|(_, (known, _))| known.eq_ignore_ascii_case(name));
        found.map(|(at, (_, savepoint))| (at, *savepoint)).ok_or_else(|| {
            let names: Vec<&str> =
                self.savepoints.iter().map(|(known, _)| known.as_str()).collect();
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
        Self { database: database.clone(), open: None }
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
        expect_rows(&statement)?;
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
        let statement = first_of(&statement)?;
        parameters.bind(&names, |values| self.run(&statement, &with_parameters(values)))?.first()
    }

    /// Runs one statement that answers rows, row by row, as the transaction is now where there is
    /// one: see [`Rows`].
    ///
    /// # Errors
    /// As for [`Sql::sql_rows`].
    pub fn sql_rows(&mut self, text: &str, parameters: impl Parameters) -> Result<Rows> {
        let (statement, names) = parse_with_parameters(text)?;
        parameters.bind(&names, |values| {
            let options = with_parameters(values);
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
        Prepared::new(Some(&self.database), self.scope(), text)
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
            (Some(open), _) => open.transaction.run_prepared(prepared, parameters),
            (None, _) => self.database.run_prepared(prepared, parameters),
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
        match (statement, &self.open) {
            (Statement::Transaction(statement), _) => self.transact(statement),
            (_, None) => run(&self.database, statement, options),
            (_, Some(open)) => open.transaction.run_statement(statement, options),
        }
    }

    fn transact(&mut self, statement: &TransactionStatement) -> Result<Outcome> {
        let done = |what: &str| Ok(Outcome::Done(what.to_owned()));
        if let TransactionStatement::Begin(options) = statement {
            if self.open.is_some() {
                let message = "BEGIN within a transaction: COMMIT or ROLLBACK first, or SAVEPOINT";
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            let transaction = self.database.begin_with(*options)?;
            self.open = Some(Open { transaction, savepoints: Vec::new() });
            return done("began a transaction");
        }
        let Some(open) = &mut self.open else {
            let message = "there is no transaction: expected BEGIN before";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        };
        match statement {
            TransactionStatement::Begin(_) => {}
            TransactionStatement::Commit => {
                if let Some(open) = self.open.take() {
                    open.transaction.commit()?;
                }
                return done("committed");
            }
            TransactionStatement::Rollback => {
                self.open = None;
                return done("rolled back");
            }
            TransactionStatement::Savepoint(name) => {
                open.savepoints.push((name.clone(), open.transaction.savepoint()));
                return done(&format!("savepoint {name}"));
            }
            TransactionStatement::RollbackTo(name) => {
                let (at, savepoint) = open.find(name)?;
                open.transaction.rollback_to(savepoint)?;
                open.savepoints.truncate(at + 1);
                return done(&format!("rolled back to {name}"));
            }
            TransactionStatement::Release(name) => {
                let (at, savepoint) = open.find(name)?;
                open.transaction.release(savepoint)?;
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
        self.scope().snapshot_for(query)?.query_with(query, options)
    }

    /// How a query is answered, and what came of running it.
    ///
    /// # Errors
    /// As for [`Database::explain_with`].
    pub fn explain_with(&self, query: &Query, options: &QueryOptions) -> Result<Explanation> {
        self.scope().snapshot_for(query)?.explain_with(query, options)
    }

    /// How a query would be answered. It is not run.
    ///
    /// # Errors
    /// As for [`Database::plan_with`].
    pub fn plan_with(&self, query: &Query, options: &QueryOptions) -> Result<Explanation> {
        self.scope().snapshot_for(query)?.plan_with(query, options)
    }

    /// Ends the session; a transaction that was not committed is rolled back. Returns the
    /// database, and whether there was one.
    #[must_use]
    pub fn into_database(self) -> (Database, bool) {
        (self.database, self.open.is_some())
    }
}
