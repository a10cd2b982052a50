//! What predicate reads did not find. The rows that they found are read like any other; of each
//! other row of the table they saw a version that does not match.
//!
//! ```text
//! versions of a row   (none)  5   12   7      condition: 0..=9
//! matches                -    ✓    -   ✓
//! not found: before 5, or between 12 and 7; the commit at which the reader reads tells which
//! ```
//!
//! Whoever makes the row match next comes after the reader (`predicate rw`), whoever made it not
//! match comes before (`predicate wr`).

use super::inference::{Gathered, Version};
use super::{Anomaly, Cell, Condition, Dependency, Key, Operation, Outcome, Transaction};

/// Adds the dependencies of all predicate reads.
pub(super) fn infer(keys: &[Key], gathered: &mut Gathered<'_>) {
    for (reader, made) in gathered.history.numbered() {
        for (at, operation) in made.operations.iter().enumerate() {
            if let Operation::ReadWhere { condition, rows } = operation {
                let own = made.operations.get(..at).unwrap_or_default();
                let read = PredicateRead { reader, made, own, condition, rows };
                read.infer(keys, gathered);
            }
        }
    }
}

struct PredicateRead<'a> {
    reader: u32,
    made: &'a Transaction,
    /// The operations before it.
    own: &'a [Operation],
    condition: &'a Condition,
    rows: &'a [(Key, Cell)],
}

impl PredicateRead<'_> {
    fn infer(&self, keys: &[Key], gathered: &mut Gathered<'_>) {
        let table = self.condition.table;
        let first = keys.partition_point(|key| key.table < table);
        let mut rows = self.rows.iter().peekable();
        self.check_rows(gathered);
        for (place, key) in keys.iter().enumerate().skip(first) {
            if key.table != table {
                break;
            }
            let mut found = false;
            while let Some((row, _)) = rows.next_if(|(row, _)| row <= key) {
                found |= row == key;
            }
            if found {
                continue;
            }
            gathered.key = u32::try_from(place).unwrap_or(u32::MAX);
            match self.written(*key) {
                Some(own) if self.condition.matches(own) => {
                    gathered.verdict.add_plain(Anomaly::Internal, &[self.reader], || {
                        format!("{} did not find {key}, which had been written", self.condition)
                    });
                }
                Some(_) => {}
                None if self.made.outcome != Outcome::Aborted => self.miss(place, gathered),
                None => {}
            }
        }
    }

    /// What is found is of the table, meets the condition, and is there once.
    fn check_rows(&self, gathered: &mut Gathered<'_>) {
        let twice = self.rows.windows(2).any(|pair| match pair {
            [(one, _), (other, _)] => one == other,
            _ => false,
        });
        let wrong = self.rows.iter().any(|(key, cell)| {
            key.table != self.condition.table || !self.condition.matches(Some(*cell))
        });
        if twice || wrong {
            gathered.verdict.add_plain(Anomaly::Garbage, &[self.reader], || {
                format!("{} found {:?}", self.condition, self.rows)
            });
        }
    }

    /// What the transaction itself had last written to a row.
    fn written(&self, of: Key) -> Option<Option<Cell>> {
        self.own.iter().rev().find_map(|operation| match operation {
            Operation::Write { key, cell } if *key == of => Some(*cell),
            _ => None,
        })
    }

    /// A row that was not found.
    fn miss(&self, place: usize, gathered: &mut Gathered<'_>) {
        let versions = gathered.versions.of(place);
        let matches = |at: usize| {
            let before = at.checked_sub(1).and_then(|at| versions.get(at));
            self.condition.matches(before.and_then(|version: &Version| version.cell))
        };
        // The state after so many versions is what was seen.
        let seen = self
            .made
            .snapshot
            .map(|snapshot| versions.partition_point(|version| version.commit <= snapshot));
        let seen = seen.filter(|&seen| !matches(seen)).or_else(|| {
            // Otherwise the last state that does not match, which all earlier ones precede.
            (0..versions.len()).rev().find(|&at| !matches(at) && matches(at + 1))
        });
        let Some(seen) = seen else { return };
        let made = (seen + 1..=versions.len()).find(|&at| matches(at));
        let unmade = (0..seen).rev().find(|&at| matches(at)).map(|at| at + 1);
        let writer = |state: Option<usize>| {
            versions.get(state?.checked_sub(1)?).map(|version| version.transaction)
        };
        let (made, unmade) = (writer(made), writer(unmade));
        if let Some(made) = made {
            gathered.depend(self.reader, Dependency::PredicateAnti, made);
        }
        // Which deletion or change was seen is known from the commit number alone.
        if let Some(unmade) = unmade.filter(|_| self.made.snapshot.is_some()) {
            gathered.depend(unmade, Dependency::PredicateRead, self.reader);
        }
    }
}
