//! Sorting more than there is memory for: sorted runs in files, merged at the end.
//!
//! What comes is kept until it takes its part of the budget, sorted, and written as a run. As soon
//! as there are more than [`RUNS_MAX`] runs of a level, they are merged into one of the next level,
//! and what is left is merged at the end. Keys are all different: a caller with equal ones appends
//! where they come from.
//!
//! ```text
//! level 0    ▪▪▪▪ … ▪   written as they come: 33 become one below
//! level 1    ■■ …       of 33 runs each: 33 become one below
//! level 2    █          of 1,089 runs
//! ```
//!
//! A run is an open file: there are at most 32 of each level but for the moment of a merge, so
//! that a million runs take some 130 files.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use esker_format::key::first_word;

use crate::temporary_file::{SpillReader, SpillWriter, TemporaryFiles};
use crate::{Error, ErrorKind, Options, Result, ZONE_ROWS};

/// The most runs that are read at once, and the most of one level.
const RUNS_MAX: usize = 32;

/// The fewest bytes of a run.
const RUN_BYTES_MIN: usize = 4 << 10;

/// A key and what goes with it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) key: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

/// Takes records in any order.
#[derive(Debug)]
pub(crate) struct ExternalSorter<'a> {
    options: &'a Options,
    files: &'a TemporaryFiles,
    records: Vec<Record>,
    bytes: usize,
    run_bytes: usize,
    /// By level.
    runs: Vec<Vec<SpillReader>>,
    len: u64,
}

impl<'a> ExternalSorter<'a> {
    pub(crate) fn new(options: &'a Options, files: &'a TemporaryFiles) -> Self {
        let run_bytes = (options.memory().left() / 4).max(RUN_BYTES_MIN);
        let (records, runs) = (Vec::new(), Vec::new());
        Self { options, files, records, bytes: 0, run_bytes, runs, len: 0 }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// `NoSpace` or `Io` when a run cannot be written.
    pub(crate) fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        self.bytes += key.len() + payload.len() + size_of::<Record>();
        self.len += 1;
        self.records.push(Record { key: key.to_vec(), payload: payload.to_vec() });
        if self.bytes >= self.run_bytes { self.write_run() } else { Ok(()) }
    }

    /// How many records were added.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    fn write_run(&mut self) -> Result<()> {
        self.options.expect_time_left()?;
        self.records.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let mut run = self.files.create()?;
        for (i, record) in self.records.drain(..).enumerate() {
            if i.is_multiple_of(ZONE_ROWS) {
                self.options.expect_time_left()?;
            }
            write(&mut run, &record)?;
        }
        self.bytes = 0;
        self.add_run(run.finish()?)
    }

    /// Adds a run to the first level, and merges what has become too many.
    fn add_run(&mut self, mut run: SpillReader) -> Result<()> {
        for level in 0.. {
            if self.runs.len() == level {
                self.runs.push(Vec::new());
            }
            let Some(runs) = self.runs.get_mut(level) else { break };
            runs.push(run);
            if runs.len() <= RUNS_MAX {
                break;
            }
            let full = std::mem::take(runs);
            run = self.merged(full)?;
        }
        Ok(())
    }

    /// Adds so many records that lie in a file in the order of their keys: see [`write_record`].
    pub(crate) fn add_sorted(&mut self, run: SpillReader, len: u64) -> Result<()> {
        self.len += len;
        self.add_run(run)
    }

    /// Some runs as one.
    fn merged(&self, runs: Vec<SpillReader>) -> Result<SpillReader> {
        let mut merge = Merge::new(self.options, runs)?;
        let mut merged = self.files.create()?;
        while let Some(record) = merge.next()? {
            write(&mut merged, &record)?;
        }
        merged.finish()
    }

    /// How many runs are open.
    #[cfg(test)]
    fn open_runs(&self) -> usize {
        self.runs.iter().map(Vec::len).sum()
    }

    /// The records in the order of their keys.
    ///
    /// # Errors
    /// As [`ExternalSorter::push`].
    pub(crate) fn finish(mut self) -> Result<Merge<'a>> {
        if !self.records.is_empty() {
            self.write_run()?;
        }
        // The short ones first.
        let mut runs: Vec<_> = std::mem::take(&mut self.runs).into_iter().flatten().collect();
        while runs.len() > RUNS_MAX {
            let rest = runs.split_off(RUNS_MAX);
            let merged = self.merged(runs)?;
            runs = rest;
            runs.push(merged);
        }
        Merge::new(self.options, runs)
    }
}

fn write(run: &mut SpillWriter, record: &Record) -> Result<()> {
    write_record(run, &record.key, &record.payload)
}

/// Adds a record to a run.
pub(super) fn write_record(run: &mut SpillWriter, key: &[u8], payload: &[u8]) -> Result<()> {
    // default: keys are below 4 GiB
    let len = u32::try_from(key.len()).unwrap_or(u32::MAX);
    run.push_parts(&[&len.to_le_bytes(), key, payload])
}

fn read(run: &mut SpillReader) -> Result<Option<Record>> {
    let Some(record) = run.next()? else { return Ok(None) };
    let bytes = record.len();
    let damaged = || Error::new(ErrorKind::Corrupt, format!("a sorted record of {bytes} bytes"));
    let (len, rest) = record.split_first_chunk::<4>().ok_or_else(damaged)?;
    let (key, payload) =
        rest.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(damaged)?;
    Ok(Some(Record { key: key.to_vec(), payload: payload.to_vec() }))
}

/// Sorted runs as one.
#[derive(Debug)]
pub(crate) struct Merge<'a> {
    options: &'a Options,
    runs: Vec<SpillReader>,
    heads: BinaryHeap<Head>,
    taken: usize,
}

#[derive(Debug, PartialEq, Eq)]
struct Head {
    /// The first bytes of the key as a number, which mostly decide.
    prefix: u64,
    record: Record,
    run: usize,
}

impl Head {
    fn new(record: Record, run: usize) -> Self {
        Self { prefix: first_word(&record.key), record, run }
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap gives the greatest first.
        let by_key = || other.record.key.cmp(&self.record.key);
        let by_prefix = other.prefix.cmp(&self.prefix);
        by_prefix.then_with(by_key).then_with(|| other.run.cmp(&self.run))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> Merge<'a> {
    fn new(options: &'a Options, runs: Vec<SpillReader>) -> Result<Self> {
        let mut merge = Self { options, runs, heads: BinaryHeap::new(), taken: 0 };
        for (run, reader) in merge.runs.iter_mut().enumerate() {
            if let Some(record) = read(reader)? {
                merge.heads.push(Head::new(record, run));
            }
        }
        Ok(merge)
    }

    /// The next record; `None` after the last.
    ///
    /// # Errors
    /// When a run cannot be read, or the query is to end.
    pub(crate) fn next(&mut self) -> Result<Option<Record>> {
        if self.taken.is_multiple_of(ZONE_ROWS) {
            self.options.expect_time_left()?;
        }
        self.taken += 1;
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let run = head.run;
        let next = self.runs.get_mut(run).map(read).transpose()?.flatten();
        Ok(Some(match next {
            Some(next) => std::mem::replace(&mut *head, Head::new(next, run)).record,
            None => PeekMut::pop(head).record,
        }))
    }
}

#[cfg(test)]
mod tests {
    use esker_vfs::Environment;

    use super::*;

    #[test]
    fn many_runs_are_few_files() {
        let environment = Environment::os();
        let files = TemporaryFiles::new(&environment, std::env::temp_dir());
        let options = Options::new(&environment).with_memory(1);
        let mut sorter = ExternalSorter::new(&options, &files);
        let (count, mut most) = (120_000u64, 0);
        for i in 0..count {
            // Each number once, in no order.
            let number = i * 7_919 % count;
            sorter.push(&super::super::row::rising(number), &number.to_le_bytes()).unwrap();
            most = most.max(sorter.open_runs());
        }
        assert!((32..=2 * RUNS_MAX).contains(&most), "{most}");
        let mut merge = sorter.finish().unwrap();
        for number in 0..count {
            let record = merge.next().unwrap().unwrap();
            assert_eq!(record.payload, number.to_le_bytes());
        }
        assert_eq!(merge.next().unwrap(), None);
    }
}
