//! The database within an asynchronous program.
//!
//! The engine blocks: a commit waits for the disk, a query runs until it is answered. Here each
//! call runs on a thread of tokio's pool for such work (`spawn_blocking`), which is the program's
//! own, so that the threads of its runtime stay free. Rows come from the thread of [`Rows`]; a
//! thread of the pool waits for them, some thousand rows each time.

use std::future::poll_fn;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use esker::{
    CancelRows, ChangeOptions, Database, Error, ErrorKind, FromRow, Options, Result, ResultRow,
    Rows, Value,
};
use esker_query::ResultColumn;
use futures_core::Stream;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use crate::parameters::Parameters;
use crate::prepared::Prepared;
use crate::run::{Outcome, Sql, expect_rows, first_of, with_parameters};
use crate::statement::{Statement, parse_with_parameters};

/// A database in an asynchronous program on tokio. Cheap to clone.
///
/// A future that is dropped stops waiting; what it has begun is not undone. A statement that was
/// started runs to its end, and commits. To end one early, give it a
/// [timeout](Options::statement_timeout) or a [flag](Options::cancel).
///
/// The last handle of a database that is dropped closes it, and the thread that drops it waits for
/// the disk: [`AsyncDatabase::close`] does so apart from the threads of the runtime.
///
/// ```
/// use esker::Options;
/// use esker_sql::AsyncDatabase;
///
/// # fn main() -> esker::Result<()> {
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
/// # runtime.block_on(async {
/// let db = AsyncDatabase::new(Options::new().memory()?); // or AsyncDatabase::open("db").await?
/// db.sql("CREATE TABLE people (name text PRIMARY KEY, age u8)", ()).await?;
/// let insert = db.prepare("INSERT INTO people VALUES (?, ?)").await?;
/// insert.execute(("Ada", 36)).await?;
/// insert.execute(("Alan", 41)).await?;
///
/// let older = "SELECT name FROM people WHERE age > ?";
/// assert_eq!(db.sql_as::<String>(older, (40,)).await?, ["Alan"]);
///
/// let mut rows = db.sql_rows("SELECT name, age FROM people", ()).await?.records()?;
/// while let Some(row) = rows.next().await {
///     let (name, age): (String, u8) = row?;
///     println!("{name} {age}");
/// }
/// // Whatever else a database does, with all its calls in one go.
/// let count = db.run(|db| db.table("people")?.count()).await?;
/// assert_eq!(count, 2);
/// # Ok(())
/// # })
/// # }
/// ```
///
/// # Panics
/// Each call has to be made within a runtime of tokio, as tokio's own calls.
#[derive(Clone, Debug)]
pub struct AsyncDatabase {
    database: Database,
}

impl AsyncDatabase {
    /// A database that is open.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Opens the database in a directory, creating it when there is none.
    ///
    /// # Errors
    /// As for [`Database::open`].
    pub async fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(Options::new(), dir).await
    }

    /// The same with options.
    ///
    /// # Errors
    /// As for [`Options::open`].
    pub async fn open_with(options: Options, dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref().to_owned();
        Ok(Self::new(blocking(move || options.open(dir)).await?))
    }

    /// The database itself, for calls that do not wait.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Runs a function that may block: reads, changes, and transactions by
    /// [`Database::transact`].
    ///
    /// # Errors
    /// Those of the function.
    pub async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Database) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let database = self.database.clone();
        blocking(move || work(&database)).await
    }

    /// Runs one statement with values for its parameters: see [`Sql::sql`].
    ///
    /// # Errors
    /// As for [`Sql::sql`].
    pub async fn sql(&self, text: &str, parameters: impl Parameters) -> Result<Outcome> {
        let (statement, options) = read(text, parameters)?;
        self.run(move |db| db.run_statement(&statement, &options)).await
    }

    /// Runs one statement that answers rows, as structs, tuples or single values: see [`FromRow`].
    ///
    /// # Errors
    /// As for [`Sql::sql_as`].
    pub async fn sql_as<T: FromRow + Send + 'static>(
        &self,
        text: &str,
        parameters: impl Parameters,
    ) -> Result<Vec<T>> {
        let (statement, options) = read(text, parameters)?;
        expect_rows(&statement)?;
        self.run(move |db| db.run_statement(&statement, &options)?.records()).await
    }

    /// The same for the first row, if there is one.
    ///
    /// # Errors
    /// As for [`Sql::sql_as`].
    pub async fn sql_first<T: FromRow + Send + 'static>(
        &self,
        text: &str,
        parameters: impl Parameters,
    ) -> Result<Option<T>> {
        let (statement, options) = read(text, parameters)?;
        let statement = first_of(&statement)?.into_owned();
        self.run(move |db| db.run_statement(&statement, &options)?.first()).await
    }

    /// Runs one statement that answers rows, row by row: see [`Sql::sql_rows`].
    ///
    /// # Errors
    /// As for [`Sql::sql_rows`].
    pub async fn sql_rows(&self, text: &str, parameters: impl Parameters) -> Result<AsyncRows> {
        let (statement, options) = read(text, parameters)?;
        self.run(move |db| db.statement_rows(&statement, &options).map(AsyncRows::new)).await
    }

    /// Prepares one statement: see [`Sql::prepare`].
    ///
    /// # Errors
    /// As for [`Sql::prepare`].
    pub async fn prepare(&self, text: &str) -> Result<AsyncPrepared> {
        let text = text.to_owned();
        let prepared = self.run(move |db| db.prepare(&text)).await?;
        Ok(AsyncPrepared { prepared: Arc::new(prepared) })
    }

    /// Closes the database for all handles: see [`Database::close`].
    ///
    /// # Errors
    /// As for [`Database::close`].
    pub async fn close(self) -> Result<()> {
        blocking(move || self.database.close()).await
    }
}

/// A statement of an [`AsyncDatabase`] that has been read once. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AsyncPrepared {
    prepared: Arc<Prepared>,
}

impl AsyncPrepared {
    /// The statement itself, as for [`Sql::run_prepared`] within [`AsyncDatabase::run`].
    #[must_use]
    pub fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }

    /// Runs it with values for its parameters.
    ///
    /// # Errors
    /// As for [`Prepared::run`].
    pub async fn run(&self, parameters: impl Parameters) -> Result<Outcome> {
        self.with(parameters, |prepared, values| prepared.run(values)).await
    }

    /// Runs a statement that changes rows; returns how many it added, changed or removed.
    ///
    /// # Errors
    /// As for [`Prepared::run`].
    pub async fn execute(&self, parameters: impl Parameters) -> Result<u64> {
        self.with(parameters, |prepared, values| prepared.execute(values)).await
    }

    /// Runs a statement that answers rows, as structs, tuples or single values: see [`FromRow`].
    ///
    /// # Errors
    /// As for [`Prepared::query_as`].
    pub async fn query_as<T: FromRow + Send + 'static>(
        &self,
        parameters: impl Parameters,
    ) -> Result<Vec<T>> {
        self.with(parameters, |prepared, values| prepared.query_as(values)).await
    }

    /// The same for the first row, if there is one.
    ///
    /// # Errors
    /// As for [`Prepared::query_as`].
    pub async fn first_as<T: FromRow + Send + 'static>(
        &self,
        parameters: impl Parameters,
    ) -> Result<Option<T>> {
        self.with(parameters, |prepared, values| prepared.first_as(values)).await
    }

    /// Runs a statement that answers rows, row by row.
    ///
    /// # Errors
    /// As for [`Prepared::rows`].
    pub async fn rows(&self, parameters: impl Parameters) -> Result<AsyncRows> {
        self.with(parameters, |prepared, values| prepared.rows(values).map(AsyncRows::new)).await
    }

    async fn with<R: Send + 'static>(
        &self,
        parameters: impl Parameters,
        run: impl FnOnce(&Prepared, Vec<Value>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let values = parameters.bind(self.prepared.parameters(), |values| Ok(values.to_vec()))?;
        let prepared = Arc::clone(&self.prepared);
        blocking(move || run(&prepared, values)).await
    }
}

/// The rows of an answer in an asynchronous program: see [`Rows`]. The query runs ahead by a few
/// batches of rows and then waits for its rows to be taken. Dropping this ends it, while rows are
/// waited for, too.
///
/// Rows are waited for on the runtime on which the query was begun; they can be taken anywhere.
/// Once that runtime shuts down, they end with `Cancelled`.
///
/// It is a [`Stream`], too, for what combines streams:
///
/// ```
/// use esker::Options;
/// use esker_sql::AsyncDatabase;
/// use futures_util::TryStreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> esker::Result<()> {
/// let db = AsyncDatabase::new(Options::new().memory()?);
/// db.sql("CREATE TABLE numbers (n i64 PRIMARY KEY)", ()).await?;
/// db.sql("INSERT INTO numbers VALUES (1), (2), (3)", ()).await?;
/// let rows = db.sql_rows("SELECT n FROM numbers", ()).await?.records::<i64>()?;
/// let sum = rows.try_fold(0, async |sum, n| Ok(sum + n)).await?;
/// assert_eq!(sum, 6);
/// # Ok(())
/// # }
/// ```
pub struct AsyncRows<T: 'static = ResultRow> {
    columns: Arc<[ResultColumn]>,
    state: State<T>,
    cancel: CancelRows,
    runtime: Handle,
}

enum State<T: 'static> {
    /// Rows are at hand, or have not been asked for.
    Here(Rows<T>),
    /// A thread waits until rows are at hand, or the query is cancelled; a future that is dropped
    /// leaves it waiting.
    Waiting(JoinHandle<(Rows<T>, Result<bool>)>),
    Ended,
}

impl AsyncRows {
    /// The rows of a query that was begun on a thread of a runtime.
    fn new(rows: Rows) -> Self {
        let (columns, cancel) = (rows.columns().into(), rows.cancel_handle());
        Self { columns, state: State::Here(rows), cancel, runtime: Handle::current() }
    }

    /// The same rows as structs, tuples or single values: see [`FromRow`].
    ///
    /// # Errors
    /// As for [`Rows::records`]; `InvalidInput` at the end, and while rows are waited for.
    pub fn records<R: FromRow + 'static>(mut self) -> Result<AsyncRows<R>> {
        // Before the rows are taken: where they are dropped here, their query is waited for.
        R::places(&self.columns)?;
        let (columns, cancel) = (Arc::clone(&self.columns), self.cancel.clone());
        let runtime = self.runtime.clone();
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Here(rows) => {
                Ok(AsyncRows { columns, state: State::Here(rows.records()?), cancel, runtime })
            }
            State::Waiting(_) | State::Ended => Err(Error::new(
                ErrorKind::InvalidInput,
                "expected rows that are neither waited for nor at their end",
            )),
        }
    }
}

impl<T: 'static> AsyncRows<T> {
    /// The columns of the answer.
    #[must_use]
    pub fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }
}

impl<T: FromRow + 'static> AsyncRows<T> {
    /// The next row; `None` at the end. A future of it that is dropped loses no row.
    ///
    /// # Errors
    /// As for [`Database::query`]; it is the last that comes then.
    pub async fn next(&mut self) -> Option<Result<T>> {
        poll_fn(|context| self.poll_row(context)).await
    }

    fn poll_row(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        loop {
            if let State::Here(rows) = &mut self.state
                && let Some(row) = rows.next_at_hand()
            {
                return Poll::Ready(Some(row));
            }
            self.state = match std::mem::replace(&mut self.state, State::Ended) {
                State::Here(mut rows) => State::Waiting(self.runtime.spawn_blocking(move || {
                    let loaded = rows.load();
                    (rows, loaded)
                })),
                State::Waiting(mut waiting) => {
                    let Poll::Ready(done) = Pin::new(&mut waiting).poll(context) else {
                        self.state = State::Waiting(waiting);
                        return Poll::Pending;
                    };
                    match done.map_err(ended_early) {
                        Ok((rows, Ok(true))) => State::Here(rows),
                        Ok((_, Ok(false))) => State::Ended,
                        Ok((_, Err(e))) | Err(e) => return Poll::Ready(Some(Err(e))),
                    }
                }
                State::Ended => return Poll::Ready(None),
            };
        }
    }
}

impl<T: FromRow + 'static> Stream for AsyncRows<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_row(context)
    }
}

impl<T: 'static> Drop for AsyncRows<T> {
    /// The end of the query is waited for elsewhere: by the thread that waits for rows where there
    /// is one.
    fn drop(&mut self) {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Here(rows) => drop(self.runtime.spawn_blocking(move || drop(rows))),
            State::Waiting(_) => self.cancel.cancel(),
            State::Ended => {}
        }
    }
}

impl<T: 'static> std::fmt::Debug for AsyncRows<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AsyncRows").field("columns", &self.columns).finish_non_exhaustive()
    }
}

/// Reads a statement, and places the values of its parameters.
fn read(text: &str, parameters: impl Parameters) -> Result<(Statement, ChangeOptions)> {
    let (statement, names) = parse_with_parameters(text)?;
    let options = parameters.bind(&names, |values| Ok(with_parameters(values)))?;
    Ok((statement, options))
}

/// Runs what may block apart from the threads of the runtime.
async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R> + Send + 'static,
) -> Result<R> {
    spawn_blocking(work).await.map_err(ended_early)?
}

/// The error of work that did not end; a panic goes on where it is waited for.
fn ended_early(e: JoinError) -> Error {
    match e.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(e) => Error::new(ErrorKind::Cancelled, format!("the runtime is shutting down: {e}")),
    }
}
