//! An anomaly that was found, and the transactions that show it.

use std::fmt;

use super::{Anomaly, History, Key, Level};

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependency {
    /// It wrote the version that the other replaced.
    Write,
    /// It wrote the version that the other read.
    Read,
    /// It made the row such that the other did not find it.
    PredicateRead,
    /// It read the version that the other replaced.
    Anti,
    /// It did not find the row that the other made match.
    PredicateAnti,
    /// It had returned before the other began.
    RealTime,
}

impl Dependency {
    /// Whether it is an anti-dependency.
    #[must_use]
    pub fn is_anti(self) -> bool {
        matches!(self, Self::Anti | Self::PredicateAnti)
    }

    /// Its short name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "ww",
            Self::Read => "wr",
            Self::PredicateRead => "predicate wr",
            Self::Anti => "rw",
            Self::PredicateAnti => "predicate rw",
            Self::RealTime => "real time",
        }
    }
}

/// From one transaction of a cycle to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The transaction, by its number.
    pub from: u32,
    /// Why it comes before the next.
    pub dependency: Dependency,
    /// Of which key; real time has none.
    pub key: Option<Key>,
}

/// An anomaly in a history.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it is.
    pub anomaly: Anomaly,
    /// The transactions that show it, by number; in a cycle, in its order.
    pub transactions: Vec<u32>,
    /// The cycle; empty when one key shows it.
    pub cycle: Vec<Step>,
    /// What is seen, in words.
    pub what: String,
}

impl Finding {
    /// The weakest level that its transactions were promised.
    #[must_use]
    pub fn level(&self, history: &History) -> Option<Level> {
        let transactions = self.transactions.iter().filter_map(|&number| history.get(number));
        transactions.map(|transaction| transaction.isolation).min()
    }

    /// The finding with its transactions, on several lines.
    #[must_use]
    pub fn shown(&self, history: &History) -> String {
        let mut text = format!("{}: {}\n", self.anomaly, self.what);
        if let Some(first) = self.cycle.first() {
            text.push_str("  ");
            for step in &self.cycle {
                let key = step.key.map_or(String::new(), |key| format!(" {key}"));
                let name = step.dependency.name();
                text.push_str(&format!("T{} -({name}{key})-> ", step.from));
            }
            text.push_str(&format!("T{}\n", first.from));
        }
        for &number in &self.transactions {
            if let Some(transaction) = history.get(number) {
                text.push_str(&format!("  T{number} {transaction}\n"));
            }
        }
        text
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.anomaly, self.what)
    }
}
