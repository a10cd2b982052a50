//! The entries of a run whose rows are dead, so that a count need not look at every row.

use std::ops::Range;

use super::run::IndexRun;
use crate::segment::Segment;
use crate::visibility::is_deleted_at;
use crate::{Error, Result};

/// Ranges of at most one entry in this many are counted row by row instead.
pub(super) const TEST_SHARE: usize = 64;

/// Dead entries in the order of the run, as of some number of deaths.
pub(super) struct DeadEntries {
    /// How many rows had died.
    delete_stamps: u64,
    /// The newest commit among those that killed them.
    newest: u64,
    entries: Vec<u32>,
    commits: Vec<u64>,
}

/// A list that misses no more deaths is looked at before a new one is made.
pub(super) const FEW_DEAD: u64 = 1 << 10;

/// How many of the first of so many entries are those that are expected.
fn lead(
    count: usize,
    entry: impl Fn(usize) -> Option<u32>,
    expected: impl Fn(usize) -> usize,
) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        match entry(middle) {
            Some(entry) if entry as usize == expected(middle) => low = middle + 1,
            _ => high = middle,
        }
    }
    low
}

impl DeadEntries {
    pub fn of(run: &IndexRun, owner: &Segment) -> Result<Self> {
        // Rows that die while this looks make the number larger: then it is done again.
        let delete_stamps = owner.dead_count();
        let mut dead = Self { delete_stamps, newest: 0, entries: Vec::new(), commits: Vec::new() };
        for (entry, row) in (0u32..).zip(run.rows(0..run.len())?.iter()) {
            let commit = owner.deleted(*row as usize);
            if commit != 0 {
                dead.newest = dead.newest.max(commit);
                dead.entries.push(entry);
                dead.commits.push(commit);
            }
        }
        Ok(dead)
    }

    /// True when no row has died since.
    pub fn is_of(&self, owner: &Segment) -> bool {
        self.delete_stamps == owner.dead_count()
    }

    /// True when few rows have died since: most of what is dead is known.
    pub fn is_nearly_of(&self, owner: &Segment) -> bool {
        let since = owner.dead_count().saturating_sub(self.delete_stamps);
        since <= (self.delete_stamps / 16).max(FEW_DEAD)
    }

    /// Some entries without those at both ends that are known to be dead for a reader at commit
    /// `at`. What is dead stays so, whatever has died since.
    pub fn without(&self, entries: Range<usize>, at: u64) -> Range<usize> {
        if self.newest > at {
            return entries;
        }
        // Dead entries that follow each other are as far apart as their places in the list.
        let from = self.entries.partition_point(|e| (*e as usize) < entries.start);
        let to = self.entries.partition_point(|e| (*e as usize) < entries.end);
        let Some(dead) = self.entries.get(from..to) else { return entries };
        let first = lead(dead.len(), |i| dead.get(i).copied(), |i| entries.start + i);
        if first == entries.len() {
            return entries.end..entries.end;
        }
        let from_end = |i: usize| dead.get(dead.len().checked_sub(i + 1)?).copied();
        let last = lead(dead.len(), from_end, |i| entries.end - 1 - i);
        entries.start + first..entries.end - last
    }

    /// How many of some entries are dead for a reader at commit `at`.
    pub fn count(&self, entries: Range<usize>, at: u64) -> Result<usize> {
        let start = self.entries.partition_point(|e| (*e as usize) < entries.start);
        let end = self.entries.partition_point(|e| (*e as usize) < entries.end);
        if self.newest <= at {
            return Ok(end - start);
        }
        let Some(commits) = self.commits.get(start..end) else {
            return Err(Error::corrupt(format!("no commits of dead entries {start}..{end}")));
        };
        Ok(commits.iter().filter(|commit| is_deleted_at(**commit, at)).count())
    }
}
