//! One thread with several open transactions.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use esker::{Database, ErrorKind, Isolation, Result, TransactionOptions};
use esker_vfs::sim::Generator;

use super::workload::{ACCOUNT_COUNT, AUDIT, Intent, TOTAL};
use super::{Workload, said, store};
use crate::isolation::{Cell, Key, Level, Operation, Outcome, Transaction};

/// How many failures are kept.
const FAILURES_MAX: usize = 5;

/// What all threads share.
#[derive(Debug)]
pub(super) struct Shared {
    pub workload: Workload,
    pub level: Level,
    /// How many transactions begin in all.
    pub transactions: u64,
    /// The instants.
    pub clock: AtomicU64,
    /// How many transactions have begun.
    pub begun: AtomicU64,
    /// The last stamp that was given.
    pub stamp: AtomicU64,
    pub failures: Mutex<Vec<String>>,
}

impl Shared {
    pub fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn stamp(&self) -> u64 {
        self.stamp.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn fail(&self, why: String) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() < FAILURES_MAX {
            failures.push(why);
        }
    }
}

/// An open transaction.
struct Lane {
    transaction: esker::Transaction,
    made: Transaction,
    intents: VecDeque<Intent>,
}

/// One thread, or the only one.
pub(super) struct Client<'a> {
    pub shared: &'a Shared,
    pub db: &'a Database,
    /// Whether the power has failed: then errors are none of the database's.
    pub has_crashed: &'a dyn Fn() -> bool,
    pub generator: Generator,
    pub made: Vec<Transaction>,
}

impl Client<'_> {
    /// Works with so many open transactions until all have ended, or a crash.
    pub fn work(&mut self, lanes: usize) {
        let mut lanes: Vec<Option<Lane>> = (0..lanes).map(|_| None).collect();
        while !(self.has_crashed)() {
            let at = self.generator.index(lanes.len());
            let Some(slot) = lanes.get_mut(at) else { return };
            *slot = match slot.take() {
                Some(lane) => self.step(lane),
                None => {
                    let number = self.shared.begun.fetch_add(1, Ordering::Relaxed);
                    if number < self.shared.transactions {
                        let intents = self.shared.workload.draw(number, &mut self.generator);
                        self.begin(intents)
                    } else {
                        None
                    }
                }
            };
            let ended = self.shared.begun.load(Ordering::Relaxed) >= self.shared.transactions;
            if ended && lanes.iter().all(Option::is_none) {
                return;
            }
        }
        // The process dies with what was under way.
        for lane in lanes.into_iter().flatten() {
            self.end(lane.made, Outcome::Aborted);
        }
    }

    /// One transaction from its beginning to its end.
    pub fn run(&mut self, intents: VecDeque<Intent>) {
        let mut lane = self.begin(intents);
        while let Some(open) = lane {
            lane = self.step(open);
        }
    }

    fn begin(&mut self, intents: VecDeque<Intent>) -> Option<Lane> {
        let only_reads = intents.iter().all(|intent| {
            matches!(
                intent,
                Intent::Read(_) | Intent::ReadList(_) | Intent::Look(_) | Intent::Audit
            )
        });
        let isolation = match self.shared.level {
            Level::Snapshot => Isolation::Snapshot,
            _ => Isolation::Serializable,
        };
        let read_only = only_reads && self.generator.chance(700_000);
        let options = TransactionOptions::new().isolation(isolation).read_only(read_only);
        let begin = self.shared.tick();
        let transaction = match self.db.begin_with(options) {
            Ok(transaction) => transaction,
            Err(error) => {
                self.fail("begin", &error);
                return None;
            }
        };
        let made = Transaction {
            begin,
            end: begin,
            snapshot: Some(transaction.read_at()),
            commit: None,
            outcome: Outcome::Aborted,
            isolation: self.shared.level,
            operations: Vec::with_capacity(intents.len()),
        };
        Some(Lane { transaction, made, intents })
    }

    fn fail(&self, what: &str, error: &esker::Error) {
        if !(self.has_crashed)() {
            self.shared.fail(said(what, error));
        }
    }

    /// The next thing of a transaction, or its end.
    fn step(&mut self, mut lane: Lane) -> Option<Lane> {
        let Some(intent) = lane.intents.pop_front() else {
            self.commit(lane);
            return None;
        };
        match self.act(&lane.transaction, intent, &mut lane.made.operations) {
            Ok(()) => Some(lane),
            Err(error) => {
                if error.kind() != ErrorKind::Conflict {
                    self.fail(&format!("{intent:?}"), &error);
                }
                self.end(lane.made, Outcome::Aborted);
                None
            }
        }
    }

    fn act(
        &mut self,
        transaction: &esker::Transaction,
        intent: Intent,
        done: &mut Vec<Operation>,
    ) -> Result<()> {
        match intent {
            Intent::ReadList(key) => {
                let values = store::read_list(transaction, key)?.into();
                done.push(Operation::ReadList { key, values });
            }
            Intent::Append(key) => {
                let values = store::read_list(transaction, key)?;
                let value = self.shared.stamp();
                store::append(transaction, key, &values, value)?;
                done.push(Operation::ReadList { key, values: values.into() });
                done.push(Operation::Append { key, value });
            }
            Intent::Read(key) => {
                let cell = store::read(transaction, key)?;
                done.push(Operation::Read { key, cell });
            }
            Intent::Hold(key) => {
                let cell = store::hold(transaction, key)?;
                done.push(Operation::Read { key, cell });
            }
            Intent::Write(key, value) => self.write(transaction, key, value, done)?,
            Intent::Delete(key) => {
                let cell = store::read(transaction, key)?;
                done.push(Operation::Read { key, cell });
                let was_there = store::delete(transaction, key)?;
                if was_there != cell.is_some() {
                    self.shared.fail(format!("{key} was {cell:?}, deleted: {was_there}\n"));
                }
                if was_there {
                    done.push(Operation::Write { key, cell: None });
                }
            }
            Intent::Add(key, by) => {
                let cell = store::read(transaction, key)?;
                done.push(Operation::Read { key, cell });
                let value = cell.map_or(0, |cell| cell.value) + by;
                self.write(transaction, key, value, done)?;
            }
            Intent::Look(condition) => {
                let rows = store::look(transaction, condition)?;
                done.push(Operation::read_where(condition, rows));
            }
            Intent::Audit => {
                let rows = store::look(transaction, AUDIT)?;
                let sum: i64 = rows.iter().map(|(_, cell)| cell.value).sum();
                if sum != TOTAL || rows.len() != ACCOUNT_COUNT {
                    let at = transaction.read_at();
                    self.shared.fail(format!("{} accounts have {sum} at {at}\n", rows.len()));
                }
                done.push(Operation::read_where(AUDIT, rows));
            }
            Intent::Scratch(key) => {
                let savepoint = transaction.savepoint();
                let mut forgotten = Vec::new();
                self.write(transaction, key, -1, &mut forgotten)?;
                transaction.rollback_to(savepoint)?;
            }
        }
        Ok(())
    }

    fn write(
        &self,
        transaction: &esker::Transaction,
        key: Key,
        value: i64,
        done: &mut Vec<Operation>,
    ) -> Result<()> {
        let cell = Cell { stamp: self.shared.stamp(), value };
        store::write(transaction, key, cell)?;
        done.push(Operation::Write { key, cell: Some(cell) });
        Ok(())
    }

    fn commit(&mut self, lane: Lane) {
        let Lane { transaction, mut made, .. } = lane;
        if self.generator.chance(30_000) {
            transaction.rollback();
            self.end(made, Outcome::Aborted);
            return;
        }
        let is_write = made.is_write();
        let outcome = match transaction.commit() {
            Ok(commit) => {
                let is_new = made.snapshot.is_some_and(|snapshot| commit > snapshot);
                if is_new != is_write && (is_new || leaves_something(&made)) {
                    self.shared.fail(format!("the commit was {commit}: {made}\n"));
                }
                made.commit = (is_write && is_new).then_some(commit);
                Outcome::Committed
            }
            Err(error) if error.kind() == ErrorKind::Conflict => Outcome::Aborted,
            Err(error) => {
                self.fail("commit", &error);
                if is_write { Outcome::Unknown } else { Outcome::Aborted }
            }
        };
        self.end(made, outcome);
    }

    fn end(&mut self, mut made: Transaction, outcome: Outcome) {
        made.end = self.shared.tick();
        made.outcome = outcome;
        self.made.push(made);
    }
}

/// Whether a transaction certainly has changed something: what is written and then deleted, or
/// deleted and was not there, comes to nothing.
fn leaves_something(made: &Transaction) -> bool {
    let mut left = std::collections::BTreeMap::new();
    for operation in &made.operations {
        match operation {
            Operation::Append { key, .. } => left.insert(*key, true),
            Operation::Write { key, cell } => left.insert(*key, cell.is_some()),
            _ => None,
        };
    }
    left.into_values().any(|is_there| is_there)
}
