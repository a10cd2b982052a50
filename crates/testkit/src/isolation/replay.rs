//! Commit-order replay: what the engine says of itself is held against a map.
//!
//! The transactions that changed something are applied to the map in the order of their commit
//! numbers, and each reads at the commit that it says it began at. A snapshot reads what that
//! commit leaves, and its own changes; so does one that aborted. Two that were at work at the same
//! time did not both change one key. One that is serializable, and changed something, would have
//! read the same right before its own commit.

use std::collections::BTreeMap;

use super::{Anomaly, Cell, History, Key, Level, Operation, Outcome, Transaction, Verdict};

/// A row of the map: the list or the register, and the commit that changed it last.
#[derive(Clone, Debug, Default)]
struct Row {
    values: Vec<u64>,
    cell: Option<Cell>,
    commit: u64,
}

/// When something happens to the map: reads of a commit come after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// What would be read right before a commit.
    Validate,
    /// A commit changes the map.
    Apply,
    /// What is read at a commit.
    Read,
}

impl History {
    /// Applies the transactions in the order of their commits, and compares every read of those
    /// that say which commit they read at.
    #[must_use]
    pub fn replay(&self) -> Verdict {
        let mut events = Vec::new();
        for (number, made) in self.numbered() {
            let changed = made.commit.filter(|_| made.outcome != Outcome::Aborted);
            if let Some(commit) = changed {
                events.push((commit, Event::Apply, number));
                if made.isolation >= Level::Serializable && made.snapshot.is_some() {
                    events.push((commit, Event::Validate, number));
                }
            }
            if let Some(snapshot) = made.snapshot {
                events.push((snapshot, Event::Read, number));
            }
        }
        events.sort_unstable();
        let mut replay = Replay { map: BTreeMap::new(), last: 0, verdict: Verdict::default() };
        for (commit, event, number) in events {
            let Some(made) = self.get(number) else { continue };
            match event {
                Event::Apply => replay.apply(number, made, commit),
                Event::Read | Event::Validate => replay.read(number, made, event),
            }
        }
        replay.verdict
    }
}

struct Replay {
    map: BTreeMap<Key, Row>,
    /// The newest commit that was applied.
    last: u64,
    verdict: Verdict,
}

impl Replay {
    fn fail(&mut self, number: u32, what: impl FnOnce() -> String) {
        self.verdict.add_plain(Anomaly::Replay, &[number], what);
    }

    fn apply(&mut self, number: u32, made: &Transaction, commit: u64) {
        if commit == self.last {
            self.fail(number, || format!("commit {commit} has two transactions"));
        }
        self.last = commit;
        let began = made.snapshot.unwrap_or(u64::MAX);
        if made.snapshot.is_some_and(|snapshot| snapshot >= commit) {
            self.fail(number, || format!("commit {commit} reads at {began}"));
        }
        let mut changed: BTreeMap<Key, Row> = BTreeMap::new();
        for operation in &made.operations {
            let (Operation::Append { key, .. } | Operation::Write { key, .. }) = operation else {
                continue;
            };
            let row = self.map.entry(*key).or_default();
            changed.entry(*key).or_insert(Row { values: Vec::new(), ..*row });
            match operation {
                Operation::Append { value, .. } => row.values.push(*value),
                Operation::Write { cell, .. } => row.cell = *cell,
                _ => {}
            }
            row.commit = commit;
        }
        for (key, before) in changed {
            let Some(row) = self.map.get_mut(&key) else { continue };
            // What was not there, was written and deleted again has not changed.
            if row.cell.is_none() && before.cell.is_none() && row.values.is_empty() {
                row.commit = before.commit;
            } else if before.commit > began && made.isolation >= Level::Snapshot {
                let rival = before.commit;
                self.fail(number, || {
                    format!("{key} was changed by commit {rival} after the transaction began")
                });
            }
        }
    }

    fn read(&mut self, number: u32, made: &Transaction, event: Event) {
        let when = match event {
            Event::Validate => "right before its commit",
            _ => "at its snapshot",
        };
        for (at, operation) in made.operations.iter().enumerate() {
            let own = made.operations.get(..at).unwrap_or_default();
            let expected = match operation {
                Operation::ReadList { key, values } => {
                    let expected = self.list(*key, own);
                    (*expected != **values).then(|| format!("{expected:?}"))
                }
                Operation::Read { key, cell } => {
                    let expected = self.cell(*key, own);
                    (expected != *cell).then(|| format!("{expected:?}"))
                }
                Operation::ReadWhere { condition, rows } => {
                    let expected = self.rows(condition, own);
                    (*expected != **rows).then(|| format!("{expected:?}"))
                }
                _ => None,
            };
            if let Some(expected) = expected {
                self.fail(number, || format!("{operation}, and {when} it was {expected}"));
            }
        }
    }

    fn list(&self, of: Key, own: &[Operation]) -> Vec<u64> {
        let mut values = self.map.get(&of).map_or(Vec::new(), |row| row.values.clone());
        values.extend(own.iter().filter_map(|operation| match operation {
            Operation::Append { key, value } if *key == of => Some(*value),
            _ => None,
        }));
        values
    }

    fn cell(&self, of: Key, own: &[Operation]) -> Option<Cell> {
        let written = own.iter().rev().find_map(|operation| match operation {
            Operation::Write { key, cell } if *key == of => Some(*cell),
            _ => None,
        });
        written.unwrap_or_else(|| self.map.get(&of).and_then(|row| row.cell))
    }

    fn rows(&self, condition: &super::Condition, own: &[Operation]) -> Vec<(Key, Cell)> {
        let of_table = Key::new(condition.table, 0)..=Key::new(condition.table, u32::MAX);
        let stored = self.map.range(of_table);
        let mut rows: BTreeMap<Key, Option<Cell>> =
            stored.map(|(key, row)| (*key, row.cell)).collect();
        for operation in own {
            if let Operation::Write { key, cell } = operation
                && key.table == condition.table
            {
                rows.insert(*key, *cell);
            }
        }
        let matching = rows.into_iter().filter(|(_, cell)| condition.matches(*cell));
        matching.filter_map(|(key, cell)| Some((key, cell?))).collect()
    }
}
