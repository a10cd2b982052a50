//! Running a transaction again until none conflicts with it.

use std::time::Duration;

use super::{Transaction, TransactionOptions};
use crate::engine::Engine;
use crate::engine_handle::EngineHandle;
use crate::{Database, Error, ErrorKind, Result};

/// How often a transaction is begun before its conflict is returned.
const ATTEMPTS_MAX: u32 = 1_000;
/// Attempts that follow at once.
const ATTEMPTS_AT_ONCE: u32 = 3;
/// The longest rest between two attempts.
const REST_US_MAX: u64 = 5_000;

impl Database {
    /// Begins a transaction under snapshot isolation.
    ///
    /// # Errors
    /// `ReadOnly` when the database is opened for reading, `OverBudget` when there are too many
    /// snapshots.
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::new())
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// As for [`Database::begin`]; one that only reads may begin on a database that is opened for
    /// reading.
    pub fn begin_with(&self, options: TransactionOptions) -> Result<Transaction> {
        Transaction::begin(self.engine(), options, false)
    }

    /// Runs a function in a transaction and commits it; again, from the beginning and after a short
    /// rest, as long as other commits change the same rows first (`Conflict`). What the function
    /// returns is returned once the commit is durable. An error of the function rolls back.
    ///
    /// The function may be called several times, and may see commits that a power loss could still
    /// take back: it should change nothing but the database.
    ///
    /// ```
    /// # let db = esker::Options::new().memory()?;
    /// let hits = db.bucket("hits")?;
    /// let count = db.transact(|transaction| transaction.bucket("hits")?.increment(b"page", 1))?;
    /// assert_eq!((count, hits.len()?), (1, 1));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the function fails with, and what [`Transaction::commit`] does; `Conflict` after a
    /// thousand attempts.
    pub fn transact<R>(&self, run: impl FnMut(&Transaction) -> Result<R>) -> Result<R> {
        self.transact_with(TransactionOptions::new(), run)
    }

    /// The same in a transaction with options.
    ///
    /// # Errors
    /// As for [`Database::transact`].
    pub fn transact_with<R>(
        &self,
        options: TransactionOptions,
        run: impl FnMut(&Transaction) -> Result<R>,
    ) -> Result<R> {
        Transaction::run_with(self.engine(), options, run).map(|(result, _)| result)
    }
}

impl Transaction {
    /// As [`Database::transact`].
    pub(crate) fn run<R>(
        engine: &EngineHandle,
        run: impl FnMut(&Transaction) -> Result<R>,
    ) -> Result<R> {
        Self::run_as_of(engine, run).map(|(result, _)| result)
    }

    /// The same; returns the number of the commit, too.
    pub(crate) fn run_as_of<R>(
        engine: &EngineHandle,
        run: impl FnMut(&Transaction) -> Result<R>,
    ) -> Result<(R, u64)> {
        Self::run_with(engine, TransactionOptions::new(), run)
    }

    fn run_with<R>(
        engine: &EngineHandle,
        options: TransactionOptions,
        mut run: impl FnMut(&Transaction) -> Result<R>,
    ) -> Result<(R, u64)> {
        for attempt in 0.. {
            let transaction = Transaction::begin(engine, options, true)?;
            let read_at = transaction.read_at();
            let outcome = match run(&transaction) {
                Ok(result) => transaction.commit().map(|commit| (result, commit)),
                Err(e) => {
                    drop(transaction);
                    engine.acknowledge_through(read_at)?;
                    Err(e)
                }
            };
            match outcome {
                Err(e) if e.kind() == ErrorKind::Conflict && attempt < ATTEMPTS_MAX => {
                    rest(engine, attempt);
                }
                other => return other,
            }
        }
        Err(Error::new(ErrorKind::Conflict, "other commits changed the same rows first, each time"))
    }
}

/// Rests for a random while, which is longer after more attempts.
fn rest(engine: &Engine, attempt: u32) {
    let environment = &engine.environment;
    let Some(doublings) = attempt.checked_sub(ATTEMPTS_AT_ONCE) else {
        environment.tasks.pause();
        return;
    };
    let most_us = (10u64 << doublings.min(20)).min(REST_US_MAX);
    let rest_us = environment.random.next_u64() % most_us + 1;
    let event = esker_vfs::Event::new();
    let seen = event.generation();
    environment.tasks.wait_timeout(&event, seen, Duration::from_micros(rest_us));
}
