//! Write coalescing: many requests, one commit, one sync, and to each request its own result.
//!
//! ```text
//!          ┌─► at once: one call that stages all of them ──────────► results, in order
//! requests │         │ one of them is refused
//! in order │         └─► alone: the direct call for each ───────────►
//!          └─► together: one transaction, a savepoint for each ─────►
//!                    │ others change the same rows, or the commit is refused
//!                    └─► apart: a transaction for each, one wait ───►
//! ```
//!
//! Invariants:
//! 1. Each way that is given up has changed nothing, so that the next may begin.
//! 2. A request sees what those before it have made. One that fails has changed nothing, and the
//!    others go on.
//! 3. Where it is unknown whether a commit was made, nothing is done again: that is what is
//!    reported of all of its requests.
//! 4. Readers see all requests of a commit or none.
//! 5. What takes too much memory together is done apart.
//! 6. Requests that have a direct call are answered as if each had come alone.
//!
//! Whether a call waits for the disk is a matter of the handle of the database. Many threads that
//! wait share syncs in the log; those of deferred handles share them by a [`SharedSync`].

use std::sync::atomic::Ordering;

use esker_log::sabotage::Bug;
use esker_vfs::sync::AtomicU64;

use crate::{Database, Error, ErrorKind, Result, Transaction, TransactionOptions};

/// How often requests are done together before each is done apart.
const ATTEMPTS_MAX: usize = 2;

/// Requests that have come together and may share a commit.
pub trait Requests {
    /// What comes of a request.
    type Answer;

    /// How many there are.
    fn count(&self) -> usize;

    /// Does all of them by one call, which is a commit of its own, where there is a way that is
    /// quicker than a transaction. It may leave out the last ones.
    ///
    /// # Errors
    /// Nothing was changed then, unless its kind says that this is unknown.
    fn at_once(&mut self) -> Option<Result<Vec<Self::Answer>>> {
        None
    }

    /// Does a request by a call of its own, which waits for no other client: what has
    /// [`at_once`](Self::at_once) has this, too. As [`run`](Self::run) otherwise.
    ///
    /// # Errors
    /// Nothing was changed then, unless its kind says that this is unknown.
    fn alone(&mut self, at: usize) -> Option<Result<Option<Self::Answer>>> {
        let _ = at;
        None
    }

    /// Does a request; `None` where it and those behind it are not to be done. It may be called
    /// several times for a request, in the order of the requests, each time as if it had not been
    /// done before.
    ///
    /// # Errors
    /// What was changed within the call is taken back then, and where the answer is `None`.
    fn run(&mut self, at: usize, transaction: &Transaction) -> Result<Option<Self::Answer>>;
}

impl Database {
    /// Runs a function for each of many requests, in their order, and commits what they change
    /// together: the disk is waited for once. Returns the result of each. One that fails has
    /// changed nothing, and the others go on. Requests see what those before them have changed;
    /// readers see all of it at the same time.
    ///
    /// Where that is not possible, as others change the same rows or a unique value is taken, each
    /// request is a commit of its own. So the function may be called several times for a request,
    /// each time as if it had not been called before; it should change nothing but the database.
    ///
    /// ```
    /// # let db = esker::Options::new().memory()?;
    /// use esker::{DataType, ErrorKind, Schema};
    ///
    /// let schema = Schema::builder().field("item", DataType::Text).field("n", DataType::U8);
    /// db.create_table("stock", schema.primary_key(["item"]).build()?)?;
    /// let wanted = [("tea", 3u8), ("coffee", 5), ("tea", 9)];
    /// let results = db.coalesce(&wanted, |transaction, (item, n)| {
    ///     transaction.table("stock")?.insert(&[(*item).into(), (*n).into()])
    /// });
    /// let refused: Vec<_> = results.iter().map(|done| done.as_ref().err()).collect();
    /// assert!(refused[0].is_none() && refused[1].is_none());
    /// assert_eq!(refused[2].unwrap().kind(), ErrorKind::AlreadyExists);
    /// assert_eq!(db.table("stock")?.count()?, 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn coalesce<T, R>(
        &self,
        requests: &[T],
        run: impl FnMut(&Transaction, &T) -> Result<R>,
    ) -> Vec<Result<R>> {
        let unknown = |e: &Error| Error::new(e.kind(), e.to_string());
        match self.coalesce_requests(&mut Each { requests, run }) {
            Ok(results) => results,
            Err(e) => requests.iter().map(|_| Err(unknown(&e))).collect(),
        }
    }

    /// The same for requests that know a quicker way, or when to stop. There are fewer results
    /// than requests where the last were not to be done.
    ///
    /// # Errors
    /// Whether the requests were done is unknown.
    pub fn coalesce_requests<Q: Requests>(
        &self,
        requests: &mut Q,
    ) -> Result<Vec<Result<Q::Answer>>> {
        let mut may_share = requests.count() > 1;
        if may_share {
            match requests.at_once() {
                Some(Ok(answers)) => return Ok(answers.into_iter().map(Ok).collect()),
                Some(Err(e)) if is_unknown(&e) => return Err(e),
                Some(Err(_)) => may_share = false,
                None => {}
            }
        }
        for _ in 0..if may_share { ATTEMPTS_MAX } else { 0 } {
            match self.together(requests) {
                Ok(results) => return Ok(results),
                Err(e) if is_unknown(&e) => return Err(e),
                Err(e) if e.kind() == ErrorKind::Conflict => {}
                Err(_) => break,
            }
        }
        let apart = self.deferred();
        let results = apart.apart(requests);
        // All answers come at the same time, and so one wait is for all commits.
        match apart.commit().filter(|commit| !self.engine().defer(*commit)) {
            Some(_) => apart.wait().map(|()| results),
            None => Ok(results),
        }
    }

    /// Does each request in a commit of its own.
    fn apart<Q: Requests>(&self, requests: &mut Q) -> Vec<Result<Q::Answer>> {
        let (count, mut is_over) = (requests.count(), false);
        let apart = |at| {
            if let Some(done) = requests.alone(at) {
                return done.transpose();
            }
            let done = self.transact(|transaction| {
                let answer = requests.run(at, transaction)?;
                is_over = answer.is_none();
                answer.ok_or_else(|| Error::new(ErrorKind::Cancelled, "a request is left out"))
            });
            (!is_over).then_some(done)
        };
        (0..count).map_while(apart).collect()
    }

    /// Does requests in one commit. An error is one of all of them: nothing was changed, unless
    /// that is unknown.
    fn together<Q: Requests>(&self, requests: &mut Q) -> Result<Vec<Result<Q::Answer>>> {
        // Its end waits for what it has read.
        let transaction = Transaction::begin(self.engine(), TransactionOptions::new(), true)?;
        let mut results = Vec::with_capacity(requests.count());
        for at in 0..requests.count() {
            let run = |within: &_| requests.run(at, within).map_err(Some)?.ok_or(None);
            match transaction.all_or_nothing(run) {
                Ok(answer) => results.push(Ok(answer)),
                Err(None) => break,
                // The first of these is that of all; the second may be one of all.
                Err(Some(e)) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::OverBudget) => {
                    return Err(e);
                }
                Err(Some(e)) => results.push(Err(e)),
            }
        }
        transaction.commit()?;
        Ok(results)
    }
}

/// A function for each of some requests.
struct Each<'r, T, F> {
    requests: &'r [T],
    run: F,
}

impl<T, R, F: FnMut(&Transaction, &T) -> Result<R>> Requests for Each<'_, T, F> {
    type Answer = R;

    fn count(&self) -> usize {
        self.requests.len()
    }

    fn run(&mut self, at: usize, transaction: &Transaction) -> Result<Option<R>> {
        let request = self.requests.get(at);
        request.map(|request| (self.run)(transaction, request)).transpose()
    }
}

/// True for an error of a commit that may have been made.
fn is_unknown(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::OutcomeUnknown | ErrorKind::Poisoned | ErrorKind::Io)
}

/// One sync for all who wait for commits of [`Deferred`](crate::Deferred) handles. While one runs,
/// others gather, and the next is for all of them. There is no thread in it: who has one, or a
/// task, drives it by [`SharedSync::run`].
///
/// ```
/// use esker::{Options, SharedSync};
///
/// let db = Options::new().memory()?;
/// let (syncs, deferred) = (SharedSync::new(&db), db.deferred());
/// deferred.bucket("b")?.put(b"k", b"v")?;
/// if let Some(commit) = deferred.take_commit() {
///     syncs.want(commit);
/// }
/// let mut failed = None;
/// // On a thread that may wait.
/// syncs.run(|synced| match synced {
///     Ok(commit) => println!("all up to commit {commit} is stored: its clients are answered"),
///     Err(e) => failed = Some(e),
/// });
/// if let Some(e) = failed {
///     return Err(e); // Whether the last commits are stored is unknown.
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug)]
pub struct SharedSync {
    database: Database,
    wanted: AtomicU64,
    /// What has been synced, or could not be.
    done: AtomicU64,
}

impl SharedSync {
    /// Of a database.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        let (wanted, done) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { database: database.clone(), wanted, done }
    }

    /// A commit is to be made durable.
    pub fn want(&self, commit: u64) {
        self.wanted.fetch_max(commit, Ordering::SeqCst);
    }

    /// Nothing more is made durable.
    pub fn stop(&self) {
        self.want(u64::MAX);
    }

    /// True once it was stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) == u64::MAX
    }

    /// Syncs as long as more is wanted. Reports after each sync how far the disk is, or why that
    /// is unknown.
    pub fn run(&self, mut report: impl FnMut(Result<u64>)) {
        loop {
            let wanted = self.wanted.load(Ordering::SeqCst);
            if wanted == u64::MAX || wanted <= self.done.load(Ordering::Relaxed) {
                return;
            }
            if Bug::AnswerBeforeSync.is_planted() {
                report(Ok(wanted));
            }
            let synced = self.database.sync();
            self.done.store(wanted, Ordering::Relaxed);
            report(synced.map(|()| wanted));
        }
    }
}
