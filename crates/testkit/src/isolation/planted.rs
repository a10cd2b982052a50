//! Honest histories of thousands of transactions, each with one anomaly in its midst.

use super::simulator::Simulation;
use super::{
    Anomaly, Cell, Condition, History, Key, Level, Operation, Outcome, Transaction, Verdict,
};

/// The anomalies that are planted: the thirteen, and then others.
pub const PLANTED: [Anomaly; 20] = [
    Anomaly::G0,
    Anomaly::G1a,
    Anomaly::G1b,
    Anomaly::G1c,
    Anomaly::GSingle,
    Anomaly::G2Item,
    Anomaly::G2,
    Anomaly::LostUpdate,
    Anomaly::WriteSkew,
    Anomaly::LongFork,
    Anomaly::ReadOnly,
    Anomaly::DirtyUpdate,
    Anomaly::Internal,
    Anomaly::NonRepeatableRead,
    Anomaly::DuplicateAppend,
    Anomaly::LostAppend,
    Anomaly::IncompatibleOrder,
    Anomaly::Garbage,
    Anomaly::StaleRead,
    Anomaly::RealTimeSkew,
];

/// How many of them are the names of the literature.
pub const THIRTEEN: usize = 13;

/// Instants and commits of an honest history are so far apart once something is to be planted.
const GAP: u64 = 64;
/// The table of what is planted.
const TABLE: u32 = 900;

/// An honest history into which an anomaly is put. Nothing else is wrong with it.
#[must_use]
pub fn history(anomaly: Anomaly, transactions: u32, seed: u64) -> History {
    let simulation =
        Simulation { transactions, clients: 1, level: Level::StrictSerializable, seed };
    let mut history = simulation.run();
    for made in &mut history.transactions {
        made.begin *= GAP;
        made.end *= GAP;
        made.snapshot = made.snapshot.map(|snapshot| snapshot * GAP);
        made.commit = made.commit.map(|commit| commit * GAP);
    }
    let middle = history.transactions.len() / 2;
    let (before, after) = history.transactions.split_at(middle);
    let commit = before.iter().filter_map(|made| made.commit).max().unwrap_or_default();
    let begin = before.iter().map(|made| made.end).max().unwrap_or_default();
    let place = Place { begin, commit };
    let planted = place.plant(anomaly);
    history.transactions = [before, planted.as_slice(), after].concat();
    history
}

/// What is found of an anomaly that is planted: it, and what else comes with it.
#[must_use]
pub fn verdict(anomaly: Anomaly, transactions: u32, seed: u64) -> (History, Verdict) {
    let history = history(anomaly, transactions, seed);
    let verdict = history.judge();
    (history, verdict)
}

fn list(row: u32, values: &[u64]) -> Operation {
    Operation::ReadList { key: Key::new(TABLE + 1, row), values: values.into() }
}

fn append(row: u32, value: u64) -> Operation {
    Operation::Append { key: Key::new(TABLE + 1, row), value }
}

fn cell(stamp: u64) -> Option<Cell> {
    (stamp > 0).then(|| Cell { stamp, value: 10 * stamp.cast_signed() })
}

/// A register is read; 0 is the stamp of none.
fn read(row: u32, stamp: u64) -> Operation {
    Operation::Read { key: Key::new(TABLE, row), cell: cell(stamp) }
}

fn write(row: u32, stamp: u64) -> Operation {
    Operation::Write { key: Key::new(TABLE, row), cell: cell(stamp) }
}

/// Looks for a register with the value of a stamp, and finds none.
fn look(stamp: u64) -> Operation {
    let value = 10 * stamp.cast_signed();
    let condition = Condition { table: TABLE, least: value, greatest: value };
    Operation::read_where(condition, Vec::new())
}

/// Where something is planted.
struct Place {
    begin: u64,
    commit: u64,
}

impl Place {
    /// A transaction. It begins and ends at instants of its own, up to 30, has a commit number, up
    /// to 30, unless that is 0, and does not say which commit it reads at.
    fn put(&self, begin: u64, end: u64, commit: u64, operations: &[Operation]) -> Transaction {
        Transaction {
            begin: self.begin + begin,
            end: self.begin + end,
            snapshot: None,
            commit: (commit > 0).then_some(self.commit + commit),
            outcome: Outcome::Committed,
            isolation: Level::StrictSerializable,
            operations: operations.to_vec(),
        }
    }

    /// Transactions all at the same time, with commit numbers in their order.
    fn beside(&self, transactions: &[&[Operation]]) -> Vec<Transaction> {
        let numbered = (1..).zip(transactions);
        let put = |(number, operations): (u64, &&[Operation])| {
            let writes = operations.iter().any(Operation::writes);
            self.put(1, 20, if writes { number } else { 0 }, operations)
        };
        numbered.map(put).collect()
    }

    /// The same, of which the first aborts.
    fn first_aborts(&self, transactions: &[&[Operation]]) -> Vec<Transaction> {
        let mut made = self.beside(transactions);
        if let Some(first) = made.first_mut() {
            first.outcome = Outcome::Aborted;
            first.commit = None;
        }
        made
    }

    fn plant(&self, anomaly: Anomaly) -> Vec<Transaction> {
        match anomaly {
            Anomaly::G0 => self.without_commits(&[
                &[append(1, 1), append(2, 1)],
                &[append(1, 2), append(2, 2)],
                &[list(1, &[1, 2])],
                &[list(2, &[2, 1])],
            ]),
            Anomaly::G1a => self.first_aborts(&[&[write(1, 1)], &[read(1, 1), write(2, 1)]]),
            Anomaly::G1b => self.beside(&[&[append(1, 1), append(1, 2)], &[list(1, &[1])]]),
            Anomaly::G1c => self.beside(&[&[write(1, 1), read(2, 1)], &[write(2, 1), read(1, 1)]]),
            Anomaly::GSingle => {
                self.beside(&[&[write(1, 1), write(2, 1)], &[read(1, 0), read(2, 1)]])
            }
            Anomaly::G2Item => self.beside(&[
                &[read(1, 0), write(2, 1)],
                &[read(2, 0), write(3, 1)],
                &[read(3, 0), write(1, 1)],
            ]),
            Anomaly::G2 => self.beside(&[&[look(1), write(2, 2)], &[look(2), write(1, 1)]]),
            Anomaly::LostUpdate => {
                self.beside(&[&[read(1, 0), write(1, 1)], &[read(1, 0), write(1, 2)]])
            }
            Anomaly::WriteSkew => {
                self.beside(&[&[read(1, 0), write(2, 1)], &[read(2, 0), write(1, 1)]])
            }
            Anomaly::LongFork => self.beside(&[
                &[write(1, 1)],
                &[write(2, 1)],
                &[read(1, 1), read(2, 0)],
                &[read(1, 0), read(2, 1)],
            ]),
            Anomaly::ReadOnly => self.beside(&[
                &[write(1, 1)],
                &[read(1, 0), read(2, 0), write(2, 1)],
                &[read(1, 1), read(2, 0)],
            ]),
            _ => self.plant_other(anomaly),
        }
    }

    fn plant_other(&self, anomaly: Anomaly) -> Vec<Transaction> {
        match anomaly {
            Anomaly::DirtyUpdate => {
                self.first_aborts(&[&[append(1, 1)], &[append(1, 2)], &[list(1, &[1, 2])]])
            }
            Anomaly::Internal => self.beside(&[&[write(1, 1), read(1, 0)]]),
            Anomaly::NonRepeatableRead => self.beside(&[&[write(1, 1)], &[read(1, 0), read(1, 1)]]),
            Anomaly::DuplicateAppend => self.beside(&[&[append(1, 1)], &[list(1, &[1, 1])]]),
            Anomaly::LostAppend => {
                self.beside(&[&[append(1, 1)], &[append(1, 2)], &[list(1, &[2])]])
            }
            Anomaly::IncompatibleOrder => self.beside(&[
                &[append(1, 1)],
                &[append(1, 2)],
                &[list(1, &[1, 2])],
                &[list(1, &[2])],
            ]),
            Anomaly::Garbage => self.beside(&[&[write(1, 1)], &[read(1, 7)]]),
            Anomaly::StaleRead => {
                vec![self.put(1, 5, 1, &[write(1, 1)]), self.put(6, 9, 0, &[read(1, 0)])]
            }
            // The first had returned before the second began, which did not see the third, which
            // did not see the first.
            Anomaly::RealTimeSkew => vec![
                self.put(1, 5, 1, &[write(1, 1)]),
                self.put(6, 9, 0, &[read(3, 0)]),
                self.put(2, 20, 3, &[read(1, 0), write(3, 1)]),
            ],
            _ => Vec::new(),
        }
    }

    /// Transactions of which no commit number is known.
    fn without_commits(&self, transactions: &[&[Operation]]) -> Vec<Transaction> {
        let mut made = self.beside(transactions);
        made.iter_mut().for_each(|made| made.commit = None);
        made
    }
}
