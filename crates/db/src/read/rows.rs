//! Answers of any size, row by row.
//!
//! A query hands its rows to a sink; an iterator is asked for them. Between the two is a thread
//! that runs the query, and a queue of a few batches:
//!
//! ```text
//! thread:  Snapshot::stream ─► Queue::rows ─┐ waits while the queue is full
//!                                           ▼
//!                              [batch] [batch]
//!                                           │
//! caller:  Rows::next ◄── Rows::load ◄──────┘ waits while it is empty
//! ```
//!
//! 1. The thread ends before [`Rows`] is gone: dropping it sets a flag that ends the query, wakes
//!    the thread and joins it. A [`CancelRows`] sets the flag and wakes the thread, too.
//! 2. Whatever becomes of the thread, the end of its rows is in the queue: a guard puts it there.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use esker_format::{Batch, ValueRef};
use esker_query::{AnswerSink, Deadline, Query, QueryResult, ResultColumn};
use esker_vfs::sync::{Mutex, MutexGuard};
use esker_vfs::{Clock, Event, TaskHandle, Tasks};

use crate::record::FromRow;
use crate::{Database, Error, ErrorKind, QueryOptions, Result, ResultRow, Snapshot, Transaction};

/// How often a reader that waits for rows looks at its deadline.
const PATIENCE: Duration = Duration::from_millis(20);

/// So many batches lie between the query and who takes its rows.
const QUEUED_MAX: usize = 2;

/// The rows of an answer, as they are found: an iterator that holds a part of them at a time.
///
/// A query without an order hands over its rows while it reads its table, so that an answer of any
/// size takes the memory of up to 262,144 rows for each processor, or fewer long ones. What has to
/// be known before the first row is held: groups, sort keys and sides of joins, within
/// [`Options::query_memory_limit`] and beyond it in temporary files.
///
/// The answer is as of the commit at which the query began, however long it takes. A statement
/// timeout counts meanwhile. Dropping the iterator ends the query.
///
/// A thread of its own runs the query. Where the system gives none, the whole answer is held.
///
/// ```
/// use esker::{DataType, Options, Query, Schema, Value};
///
/// let db = Options::new().memory()?;
/// let schema = Schema::builder().field("n", DataType::I64).field("word", DataType::Text);
/// let table = db.create_table("t", schema.primary_key(["n"]).build()?)?;
/// table.insert_many(&[vec![1i64.into(), "one".into()], vec![2i64.into(), "two".into()]])?;
///
/// for row in db.query_rows(&Query::table("t"))? {
///     let row = row?;
///     println!("{:?} {:?}", row.get("n"), row.get("word"));
/// }
/// let mut sum = 0;
/// for row in db.query_rows(&Query::table("t"))?.records::<(i64, String)>()? {
///     sum += row?.0;
/// }
/// assert_eq!(sum, 3);
/// # Ok::<(), esker::Error>(())
/// ```
///
/// [`Options::query_memory_limit`]: crate::Options::query_memory_limit
pub struct Rows<T = ResultRow> {
    columns: Arc<[ResultColumn]>,
    /// Where the values of a `T` are among them.
    places: Vec<usize>,
    batches: Batches,
    /// The rows at hand, of which those from `next` on are wanted.
    batch: Batch,
    next: usize,
    read_as: PhantomData<fn() -> T>,
}

/// Where the rest of the rows comes from.
enum Batches {
    Held(std::vec::IntoIter<Batch>),
    Found(Running),
}

/// A query under way.
struct Running {
    queue: Arc<Queue>,
    thread: Arc<dyn TaskHandle>,
    /// How long the reader waits for rows.
    limits: Option<esker_query::Limits>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.queue.leave();
        self.thread.join();
    }
}

/// Ends the query of some [`Rows`] from another place than the one that takes them: see
/// [`Rows::cancel_handle`].
#[derive(Clone)]
pub struct CancelRows {
    /// Of a query under way.
    queue: Weak<Queue>,
}

impl CancelRows {
    /// Ends the query soon: the rows end with `Cancelled`, for the one that waits for them, too.
    /// Does nothing once the query has ended.
    pub fn cancel(&self) {
        if let Some(queue) = self.queue.upgrade() {
            queue.leave();
        }
    }
}

impl std::fmt::Debug for CancelRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CancelRows").finish_non_exhaustive()
    }
}

/// What the query and who takes its rows share.
struct Queue {
    tasks: Arc<dyn Tasks>,
    limits: esker_query::Limits,
    state: Mutex<State>,
    moved: Event,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct State {
    columns: Option<Arc<[ResultColumn]>>,
    batches: VecDeque<Batch>,
    ended: Option<Result<()>>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // default: a panic leaves what is locked as it was, or whole
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self) {
        self.tasks.signal(&self.moved, usize::MAX);
    }

    /// Ends the query soon: its rows are no longer wanted.
    fn leave(&self) {
        self.limits.left.store(true, Ordering::Relaxed);
        self.signal();
    }

    /// Waits until there is something to take, or something can be put; tells the other side.
    fn wait<R>(&self, mut take: impl FnMut(&mut State) -> Option<R>) -> R {
        loop {
            let seen = self.moved.generation();
            let taken = take(&mut self.lock());
            if let Some(taken) = taken {
                self.signal();
                return taken;
            }
            self.tasks.wait(&self.moved, seen);
        }
    }

    /// The columns, as soon as the query has them.
    fn columns(&self) -> Result<Arc<[ResultColumn]>> {
        self.wait(|state| match (&state.columns, &mut state.ended) {
            (Some(columns), _) => Some(Ok(Arc::clone(columns))),
            (None, Some(ended)) => Some(std::mem::replace(ended, Ok(())).and_then(|()| {
                Err(Error::from(esker_format::Error::broken("answer", "columns come before rows")))
            })),
            (None, None) => None,
        })
    }

    /// The next batch; none at the end. Past the deadline of these limits the query ends.
    fn next(&self, limits: Option<&esker_query::Limits>) -> Result<Option<Batch>> {
        let next = |state: &mut State| match (state.batches.pop_front(), &mut state.ended) {
            (Some(batch), _) => Some(Ok(Some(batch))),
            (None, Some(ended)) => Some(std::mem::replace(ended, Ok(())).map(|()| None)),
            (None, None) => None,
        };
        let Some(limits) = limits else { return self.wait(next) };
        loop {
            let seen = self.moved.generation();
            let taken = next(&mut self.lock());
            if let Some(taken) = taken {
                self.signal();
                return taken;
            }
            if let Err(e) = limits.expect_time_left() {
                self.leave();
                return Err(e.into());
            }
            self.tasks.wait_timeout(&self.moved, seen, PATIENCE);
        }
    }
}

/// The side of the query.
struct Filling(Arc<Queue>);

impl AnswerSink for Filling {
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()> {
        self.0.lock().columns = Some(columns.into());
        self.0.signal();
        ControlFlow::Continue(())
    }

    fn rows(&mut self, batch: Batch) -> esker_query::Result<ControlFlow<()>> {
        let mut batch = Some(batch);
        self.0.wait(|state| {
            // What is cancelled ends with an error: it is not the end of the rows.
            if let Err(e) = self.0.limits.expect_time_left() {
                return Some(Err(e));
            }
            let has_room = state.batches.len() < QUEUED_MAX;
            has_room.then(|| {
                state.batches.extend(batch.take());
                Ok(ControlFlow::Continue(()))
            })
        })
    }
}

/// Puts the end into the queue when it goes.
struct Ending {
    queue: Arc<Queue>,
    result: Result<()>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let result = std::mem::replace(&mut self.result, Ok(()));
        self.queue.lock().ended = Some(result);
        self.queue.signal();
    }
}

impl<T> Rows<T> {
    /// The columns of the answer.
    #[must_use]
    pub fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    /// The same rows as a struct that derives [`Record`](crate::Record), as tuples, or as single
    /// values: see [`FromRow`].
    ///
    /// # Errors
    /// `InvalidInput` naming the column that is missing, or which such a struct cannot hold.
    pub fn records<R: FromRow>(self) -> Result<Rows<R>> {
        let places = R::places(&self.columns)?;
        let Self { columns, batches, batch, next, .. } = self;
        Ok(Rows { columns, places, batches, batch, next, read_as: PhantomData })
    }

    /// What ends the query from another thread, while this one waits for rows.
    ///
    /// ```
    /// use esker::{DataType, ErrorKind, Options, Query, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("n", DataType::I64).build()?;
    /// let table = db.create_table("t", schema)?;
    /// table.insert_many(&vec![vec![1i64.into()]; 100_000])?;
    /// let rows = db.query_rows(&Query::table("t"))?;
    /// let cancel = rows.cancel_handle();
    /// std::thread::spawn(move || cancel.cancel()).join().expect("no panic");
    /// let error = rows.last().expect("an error at least").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Cancelled);
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn cancel_handle(&self) -> CancelRows {
        let queue = match &self.batches {
            Batches::Held(_) => Weak::new(),
            Batches::Found(running) => Arc::downgrade(&running.queue),
        };
        CancelRows { queue }
    }

    /// From now on, and until it is called again, waiting for rows takes so long at the most: past
    /// it the query ends, and the rows with `TimedOut`.
    pub fn wait_at_most(&mut self, timeout: Option<Duration>) {
        let Batches::Found(running) = &mut self.batches else { return };
        let queue = &running.queue;
        running.limits = timeout.map(|timeout| esker_query::Limits {
            deadline: Some(Deadline::new(&queue.clock, timeout)),
            ..queue.limits.clone()
        });
    }

    /// Waits until rows are at hand: then [`Rows::next_at_hand`] has one. False at the end.
    ///
    /// # Errors
    /// As for [`Database::query`]; it is the last that comes then.
    pub fn load(&mut self) -> Result<bool> {
        while self.next >= self.batch.len() {
            let batch = match &mut self.batches {
                Batches::Held(batches) => Ok(batches.next()),
                Batches::Found(running) => running.queue.next(running.limits.as_ref()),
            };
            if !matches!(batch, Ok(Some(_))) {
                self.batches = Batches::Held(Vec::new().into_iter());
            }
            let Some(batch) = batch? else { return Ok(false) };
            (self.batch, self.next) = (batch, 0);
        }
        Ok(true)
    }
}

impl<T: FromRow> Rows<T> {
    /// The next row, where that needs no waiting; `None` where only [`Rows::load`] can tell.
    pub fn next_at_hand(&mut self) -> Option<Result<T>> {
        if self.next >= self.batch.len() {
            return None;
        }
        let (batch, place) = (&self.batch, self.next);
        let row: Vec<ValueRef<'_>> = batch.columns.iter().map(|c| c.value(place)).collect();
        self.next += 1;
        Some(T::from_row(&self.columns, &self.places, &row))
    }
}

impl<T: FromRow> Iterator for Rows<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        match self.load() {
            Ok(true) => self.next_at_hand(),
            Ok(false) => None,
            Err(e) => Some(Err(e)),
        }
    }
}

impl From<QueryResult> for Rows {
    fn from(answer: QueryResult) -> Self {
        let batches = Batches::Held(answer.batches.into_iter());
        Self::new(answer.columns.into(), batches)
    }
}

impl Rows {
    fn new(columns: Arc<[ResultColumn]>, batches: Batches) -> Self {
        let (places, batch) = (Vec::new(), Batch::default());
        Self { columns, places, batches, batch, next: 0, read_as: PhantomData }
    }
}

impl<T> std::fmt::Debug for Rows<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Answers a query row by row as of this commit, which it keeps alive: see [`Rows`].
    ///
    /// # Errors
    /// As for [`Database::query_rows`].
    pub fn query_rows(&self, query: &Query) -> Result<Rows> {
        self.query_rows_with(query, &QueryOptions::default())
    }

    /// As [`Snapshot::query_rows`], with parameters or limits.
    ///
    /// # Errors
    /// As for [`Database::query_rows_with`].
    pub fn query_rows_with(&self, query: &Query, options: &QueryOptions) -> Result<Rows> {
        let options = self.engine().statement_options(options);
        let queue = Arc::new(Queue {
            tasks: Arc::clone(&options.tasks),
            limits: options.inputs.limits.clone(),
            state: Mutex::default(),
            moved: Event::new(),
            clock: Arc::clone(&self.engine().environment.clock),
        });
        let (asked, snapshot, filled) = (query.clone(), self.clone(), Arc::clone(&queue));
        let given = options.clone();
        let job = move || {
            let early = Error::new(ErrorKind::Io, "the thread of the query ended too early");
            let mut ending = Ending { queue: Arc::clone(&filled), result: Err(early) };
            ending.result = snapshot.stream_by(&asked, given, &mut Filling(filled)).map(drop);
            drop(snapshot);
        };
        match options.tasks.spawn_thread("rows", Box::new(job)) {
            Some(thread) => {
                let running = Running { queue, thread, limits: None };
                Ok(Rows::new(running.queue.columns()?, Batches::Found(running)))
            }
            None => Ok(self.query_by(query, options)?.into()),
        }
    }
}

impl Database {
    /// Answers a query as of the newest commit, row by row: an answer of any size takes little
    /// memory. See [`Rows`].
    ///
    /// # Errors
    /// As for [`Database::query`], as far as it is known before the first row; the rest comes in
    /// place of a row.
    pub fn query_rows(&self, query: &Query) -> Result<Rows> {
        self.snapshot()?.query_rows(query)
    }

    /// As [`Database::query_rows`], with parameters or limits.
    ///
    /// # Errors
    /// As for [`Database::query_rows`].
    pub fn query_rows_with(&self, query: &Query, options: &QueryOptions) -> Result<Rows> {
        self.snapshot()?.query_rows_with(query, options)
    }
}

impl Transaction {
    /// Answers a query row by row, as the transaction is now: later changes do not show. See
    /// [`Rows`].
    ///
    /// # Errors
    /// As for [`Database::query_rows`].
    pub fn query_rows(&self, query: &Query) -> Result<Rows> {
        self.snapshot_for(query)?.query_rows(query)
    }

    /// As [`Transaction::query_rows`], with parameters or limits.
    ///
    /// # Errors
    /// As for [`Database::query_rows`].
    pub fn query_rows_with(&self, query: &Query, options: &QueryOptions) -> Result<Rows> {
        self.snapshot_for(query)?.query_rows_with(query, options)
    }
}
