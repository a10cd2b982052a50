//! What the workloads of YCSB do, one operation after another, from a seed.

use super::distribution::{Distribution, Random, Zipfian, fnv};
use crate::data::{TEXT_BYTES, Texts, mix};

/// Fields of a record, each a text of [`TEXT_BYTES`].
pub(super) const FIELDS: usize = 10;
/// The records that a scan reads: 1 to so many, each alike.
const SCAN_MAX: u64 = 100;

/// Which records are asked for most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Popular {
    Scattered,
    Latest,
}

/// What is done, in percent; the rest is reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mix {
    pub updates: u64,
    pub inserts: u64,
    pub scans: u64,
    pub modifies: u64,
    pub popular: Popular,
}

const READS: Mix =
    Mix { updates: 0, inserts: 0, scans: 0, modifies: 0, popular: Popular::Scattered };

pub(super) const A: Mix = Mix { updates: 50, ..READS };
pub(super) const B: Mix = Mix { updates: 5, ..READS };
pub(super) const C: Mix = READS;
pub(super) const D: Mix = Mix { inserts: 5, popular: Popular::Latest, ..READS };
pub(super) const E: Mix = Mix { inserts: 5, scans: 95, ..READS };
pub(super) const F: Mix = Mix { modifies: 50, ..READS };

/// One of them, by the number of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read(u64),
    /// A field gets a new text, which the last number gives.
    Update(u64, usize, u64),
    Insert(u64),
    /// So many records from one on, in the order of their keys.
    Scan(u64, u64),
    /// The record is read, then a field gets a new text.
    Modify(u64, usize, u64),
}

impl Operation {
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read(_) | Self::Scan(..))
    }
}

/// The operations of a workload.
pub(super) struct Operations {
    mix: Mix,
    random: Random,
    distribution: Distribution,
    /// Records that there are.
    records: u64,
    left: u64,
}

impl Operations {
    /// So many, beside so many records that are there before.
    pub fn new(mix: Mix, records: u64, count: u64, seed: u64) -> Self {
        let distribution = match mix.popular {
            // Twice as many inserts as are expected, as in YCSB.
            Popular::Scattered => Distribution::scrambled(records + count * mix.inserts / 50),
            Popular::Latest => Distribution::Latest(Zipfian::new(records)),
        };
        Self { mix, random: Random::new(seed), distribution, records, left: count }
    }
}

impl Iterator for Operations {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        self.left = self.left.checked_sub(1)?;
        let Mix { updates, inserts, scans, modifies, .. } = self.mix;
        let turn = self.random.below(100);
        let is_insert = turn < inserts;
        let is_update = turn < inserts + updates;
        let is_scan = turn < inserts + updates + scans;
        let is_modify = turn < inserts + updates + scans + modifies;
        if is_insert {
            self.records += 1;
            return Some(Operation::Insert(self.records - 1));
        }
        let record = self.distribution.next(&mut self.random, self.records);
        let change = self.random.number();
        let field = usize::try_from(change % FIELDS as u64).unwrap_or(0);
        Some(match (is_update, is_scan, is_modify) {
            (true, ..) => Operation::Update(record, field, change),
            (_, true, _) => Operation::Scan(record, 1 + self.random.below(SCAN_MAX)),
            (.., true) => Operation::Modify(record, field, change),
            _ => Operation::Read(record),
        })
    }
}

/// The key of a record: hashed, so that records inserted one after another lie apart.
pub(super) fn key(record: u64) -> String {
    format!("user{:019}", fnv(record))
}

/// The text that a field of a record begins with.
pub(super) fn text(texts: &Texts, record: u64, field: usize) -> &str {
    texts.text(mix(record) ^ field as u64)
}

/// All fields of a record, one behind the other.
pub(super) fn record(texts: &Texts, number: u64) -> String {
    (0..FIELDS).map(|field| text(texts, number, field)).collect()
}

/// Where a field lies within them.
pub(super) fn place(field: usize) -> std::ops::Range<usize> {
    field * TEXT_BYTES..(field + 1) * TEXT_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u64 = 20_000;

    fn percent(mix: Mix, is: impl Fn(&Operation) -> bool) -> u64 {
        let found = Operations::new(mix, 1_000, COUNT, 3).filter(is).count() as u64;
        (found * 100 + COUNT / 2) / COUNT
    }

    #[test]
    fn the_mixes_are_those_of_the_paper() {
        let near = |found: u64, wanted: u64| found.abs_diff(wanted) <= 1;
        for (mix, reads, updates, inserts, scans, modifies) in [
            (A, 50, 50, 0, 0, 0),
            (B, 95, 5, 0, 0, 0),
            (C, 100, 0, 0, 0, 0),
            (D, 95, 0, 5, 0, 0),
            (E, 0, 0, 5, 95, 0),
            (F, 50, 0, 0, 0, 50),
        ] {
            assert!(near(percent(mix, |o| matches!(o, Operation::Read(_))), reads), "{mix:?}");
            assert!(near(percent(mix, |o| matches!(o, Operation::Update(..))), updates));
            assert!(near(percent(mix, |o| matches!(o, Operation::Insert(_))), inserts));
            assert!(near(percent(mix, |o| matches!(o, Operation::Scan(..))), scans));
            assert!(near(percent(mix, |o| matches!(o, Operation::Modify(..))), modifies));
        }
    }

    #[test]
    fn only_records_that_are_there_are_asked_for() {
        for mix in [D, E] {
            let mut records = 100;
            for operation in Operations::new(mix, records, COUNT, 5) {
                match operation {
                    Operation::Insert(record) => {
                        assert_eq!(record, records);
                        records += 1;
                    }
                    Operation::Read(record) | Operation::Scan(record, _) => {
                        assert!(record < records);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}
