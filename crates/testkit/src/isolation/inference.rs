//! From operations to dependencies: operations are sorted by key, and each key is looked at alone.

use super::graph::{Edge, Graph};
use super::{Cell, Dependency, History, Key, Operation, Outcome, Verdict};
use super::{list, predicate, real_time, register};

/// Where a key is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Touch {
    /// The key.
    pub key: Key,
    /// The transaction.
    pub transaction: u32,
    /// Its operation.
    pub operation: u32,
}

/// A version of a register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    /// The commit that made it.
    pub commit: u64,
    /// Its transaction.
    pub transaction: u32,
    /// What the register held.
    pub cell: Option<Cell>,
}

/// The versions of all registers, in order, by key.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// Where the versions of a key end.
    pub ends: Vec<usize>,
    /// The versions.
    pub all: Vec<Version>,
}

impl Versions {
    /// Those of a key, by its place in the list of all keys.
    pub fn of(&self, key: usize) -> &[Version] {
        let start = key.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(key).copied().unwrap_or_default();
        self.all.get(start.unwrap_or(0)..end).unwrap_or_default()
    }
}

/// What is gathered key by key.
pub(super) struct Gathered<'a> {
    /// The history.
    pub history: &'a History,
    /// The place of the key that is looked at, in the list of all keys.
    pub key: u32,
    /// Dependencies.
    pub edges: Vec<Edge>,
    /// What single keys show.
    pub verdict: Verdict,
    /// Which transactions were seen to have committed, since another read what they wrote.
    pub observed: Vec<bool>,
    /// The versions of registers.
    pub versions: Versions,
}

impl Gathered<'_> {
    /// Adds a dependency, unless a transaction would depend on itself.
    pub fn depend(&mut self, from: u32, dependency: Dependency, to: u32) {
        if from != to {
            self.edges.push(Edge { from, to, dependency, key: self.key });
        }
    }

    /// How a transaction ended.
    pub fn outcome(&self, transaction: u32) -> Outcome {
        self.history.get(transaction).map_or(Outcome::Aborted, |t| t.outcome)
    }

    /// The number of its commit.
    pub fn commit(&self, transaction: u32) -> Option<u64> {
        self.history.get(transaction).and_then(|t| t.commit)
    }

    /// A write of the transaction was seen.
    pub fn observe(&mut self, transaction: u32) {
        if let Some(observed) = self.observed.get_mut(transaction as usize) {
            *observed = true;
        }
    }
}

/// What a history says.
pub(super) struct Inference {
    /// The dependencies.
    pub graph: Graph,
    /// What single keys show.
    pub verdict: Verdict,
    /// All keys, in order.
    pub keys: Vec<Key>,
}

impl Inference {
    /// Infers it.
    pub fn of(history: &History) -> Self {
        let touches = touches(history);
        let mut gathered = Gathered {
            history,
            key: 0,
            edges: Vec::new(),
            verdict: Verdict::default(),
            observed: vec![false; history.transactions.len()],
            versions: Versions::default(),
        };
        let mut keys = Vec::new();
        for of_key in touches.chunk_by(|one, other| one.key == other.key) {
            let Some(first) = of_key.first() else { continue };
            gathered.key = u32::try_from(keys.len()).unwrap_or(u32::MAX);
            keys.push(first.key);
            if of_key.iter().any(|touch| is_list(history, touch)) {
                list::infer(of_key, &mut gathered);
            } else {
                register::infer(of_key, &mut gathered);
            }
            gathered.versions.ends.push(gathered.versions.all.len());
        }
        drop(touches);
        predicate::infer(&keys, &mut gathered);
        let transactions = u32::try_from(history.transactions.len()).unwrap_or(u32::MAX);
        let is_in = |number: u32| match history.get(number).map(|t| t.outcome) {
            Some(Outcome::Committed) => true,
            Some(Outcome::Unknown) => gathered.observed.get(number as usize) == Some(&true),
            _ => false,
        };
        gathered.edges.retain(|edge| is_in(edge.from) && is_in(edge.to));
        let nodes = real_time::infer(history, &mut gathered.edges);
        let graph = Graph::new(transactions, nodes, gathered.edges);
        Self { graph, verdict: gathered.verdict, keys }
    }
}

fn is_list(history: &History, touch: &Touch) -> bool {
    let operation = operation(history, touch);
    matches!(operation, Some(Operation::Append { .. } | Operation::ReadList { .. }))
}

/// The operation of a touch.
pub(super) fn operation<'a>(history: &'a History, touch: &Touch) -> Option<&'a Operation> {
    history.get(touch.transaction)?.operations.get(touch.operation as usize)
}

/// Every touch of a key, by key, then transaction, then operation.
fn touches(history: &History) -> Vec<Touch> {
    let mut touches = Vec::new();
    for (transaction, made) in history.numbered() {
        for (operation, done) in (0..).zip(&made.operations) {
            let mut touch = |key| touches.push(Touch { key, transaction, operation });
            match done {
                Operation::Append { key, .. }
                | Operation::ReadList { key, .. }
                | Operation::Write { key, .. }
                | Operation::Read { key, .. } => touch(*key),
                Operation::ReadWhere { rows, .. } => rows.iter().for_each(|(key, _)| touch(*key)),
            }
        }
    }
    touches.sort_unstable();
    touches
}
