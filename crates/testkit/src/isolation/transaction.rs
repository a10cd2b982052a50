//! What clients saw of their transactions.

use std::fmt;

use super::Level;

/// What is read and written: a row of a table, or a list of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The table: that of which a condition asks.
    pub table: u32,
    /// The row in it.
    pub row: u32,
}

impl Key {
    /// The row of a table.
    #[must_use]
    pub fn new(table: u32, row: u32) -> Self {
        Self { table, row }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.table, self.row)
    }
}

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Tells the write from all others of its key.
    pub stamp: u64,
    /// What conditions ask for.
    pub value: i64,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.value, self.stamp)
    }
}

/// Which rows of a table a predicate read asks for: those with a value in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The table.
    pub table: u32,
    /// The least value.
    pub least: i64,
    /// The greatest.
    pub greatest: i64,
}

impl Condition {
    /// Whether a register, or its absence, is asked for.
    #[must_use]
    pub fn matches(&self, cell: Option<Cell>) -> bool {
        cell.is_some_and(|cell| (self.least..=self.greatest).contains(&cell.value))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/* in {}..={}", self.table, self.least, self.greatest)
    }
}

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A list has one more value at its end.
    Append {
        /// The list.
        key: Key,
        /// The value, which nobody else appends to it.
        value: u64,
    },
    /// What a list holds.
    ReadList {
        /// The list.
        key: Key,
        /// Its values; none of a list that is not there.
        values: Box<[u64]>,
    },
    /// A register holds something else, or is gone.
    Write {
        /// The register.
        key: Key,
        /// What it holds from now on.
        cell: Option<Cell>,
    },
    /// What a register holds.
    Read {
        /// The register.
        key: Key,
        /// What it holds, if it is there.
        cell: Option<Cell>,
    },
    /// The rows of a table that meet a condition.
    ReadWhere {
        /// The condition.
        condition: Condition,
        /// All rows that meet it, by key.
        rows: Box<[(Key, Cell)]>,
    },
}

impl Operation {
    /// A predicate read; the rows may come in any order.
    #[must_use]
    pub fn read_where(condition: Condition, mut rows: Vec<(Key, Cell)>) -> Self {
        rows.sort_unstable();
        Self::ReadWhere { condition, rows: rows.into() }
    }

    /// Whether it changes anything.
    #[must_use]
    pub fn writes(&self) -> bool {
        matches!(self, Self::Append { .. } | Self::Write { .. })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = |cell: &Option<Cell>| cell.map_or("nothing".to_owned(), |c| c.to_string());
        match self {
            Self::Append { key, value } => write!(f, "append {key} {value}"),
            Self::ReadList { key, values } => write!(f, "read {key} {values:?}"),
            Self::Write { key, cell: written } => write!(f, "write {key} {}", cell(written)),
            Self::Read { key, cell: found } => write!(f, "read {key} {}", cell(found)),
            Self::ReadWhere { condition, rows } => {
                write!(f, "read {condition} [")?;
                for (at, (key, found)) in rows.iter().enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    write!(f, "{comma}{key} {found}")?;
                }
                write!(f, "]")
            }
        }
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It counts.
    Committed,
    /// It never was.
    Aborted,
    /// Nobody was told: the machine stopped while it committed.
    Unknown,
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// The instant before it began, of a counter that all clients share.
    pub begin: u64,
    /// The instant after its end had returned.
    pub end: u64,
    /// The commit that it reads at, if the engine tells.
    pub snapshot: Option<u64>,
    /// The number that the engine gave to its commit; none of one that changed nothing.
    pub commit: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// What it was promised.
    pub isolation: Level,
    /// What it did, in order.
    pub operations: Vec<Operation>,
}

impl Transaction {
    /// One that committed and changed something.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.operations.iter().any(Operation::writes)
    }
}

impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |n: Option<u64>| n.map_or("?".to_owned(), |n| n.to_string());
        match self.outcome {
            Outcome::Committed if self.commit.is_none() => write!(f, "committed")?,
            Outcome::Committed => write!(f, "commit {}", number(self.commit))?,
            Outcome::Aborted => write!(f, "aborted")?,
            Outcome::Unknown => write!(f, "of unknown outcome")?,
        }
        write!(f, ", reads at {}, {}..{}: ", number(self.snapshot), self.begin, self.end)?;
        for (at, operation) in self.operations.iter().enumerate() {
            write!(f, "{}{operation}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// What happened, transaction by transaction, in any order.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The transactions. A finding names them by their place here.
    pub transactions: Vec<Transaction>,
}

impl History {
    /// The transaction of a number, if there is one.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Transaction> {
        self.transactions.get(number as usize)
    }

    /// Each transaction with its number.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (u32, &Transaction)> {
        (0..).zip(&self.transactions)
    }
}
