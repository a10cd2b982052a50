//! Runs of rows that share something: each starts at a row and lasts until the next one starts.
//!
//! Commits of a few rows make long lists, and a search through one is a miss of the cache a step.
//! So the list notes, for each 32 rows, which run the first of them is of: a few bytes for
//! thousands of rows, which stay in the cache. The run of a row lies between two notes, in one or
//! two cache lines.
//!
//! ```text
//! rows    0 ──────────────── 32 ──────────────── 64 ───
//! notes   0                  1                   4
//! runs    0 (0, #41) │ 1 (30, #42) │ 2 (40, #43) │ 3 (41, #44) │ 4 (60, #45)
//! ```
//!
//! Runs are published before the notes that name them, and notes before the rows that they are of.

use std::sync::Arc;

use esker_arena::{AppendReader, AppendVec, Appender, Arena, Category};

use crate::{Error, Result};

/// Rows of a note.
const NOTE_ROWS: usize = 32;

/// The reading end: pairs of a first row and what its run is of.
pub(super) struct RunList {
    runs: AppendReader<[u64; 2]>,
    notes: AppendReader<u32>,
}

/// The writing end.
pub(super) struct RunListWriter {
    runs: Appender<[u64; 2]>,
    notes: Appender<u32>,
}

impl RunListWriter {
    /// A list without runs.
    pub fn create(arena: &Arc<Arena>) -> Result<(Self, RunList)> {
        let (runs_writer, runs) = AppendVec::new(arena, Category::Visibility)?;
        let (notes_writer, notes) = AppendVec::new(arena, Category::Visibility)?;
        let writer = Self { runs: runs_writer, notes: notes_writer };
        Ok((writer, RunList { runs, notes }))
    }

    /// Starts a run at a row, behind those of all others.
    pub fn start(&mut self, row: u64, value: u64) -> Result<()> {
        Ok(self.runs.push([row, value])?)
    }

    /// Notes that the last run goes on up to a row, before which it has started.
    pub fn extend_to(&mut self, rows: usize) -> Result<()> {
        let missing = rows.div_ceil(NOTE_ROWS).saturating_sub(self.notes.len());
        if missing == 0 {
            return Ok(());
        }
        let last = self.runs.len().checked_sub(1).and_then(|last| u32::try_from(last).ok());
        let last = last.ok_or_else(|| {
            Error::corrupt(format!("{} runs for {rows} rows of a group", self.runs.len()))
        })?;
        Ok(self.notes.extend_with(missing, |notes| notes.fill(last))?)
    }
}

impl RunList {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// A run by its position.
    pub fn get(&self, position: usize) -> Option<[u64; 2]> {
        self.runs.get(position)
    }

    /// The last run that starts at or before `row`, which has been published.
    ///
    /// Commits of one kind make runs of one length: between two rows, a run is about where it would
    /// be if those between were equally long. After some guesses the rest is halved.
    pub fn run_of(&self, row: usize) -> Option<[u64; 2]> {
        let note = row / NOTE_ROWS;
        let position = |note| self.notes.get(note).and_then(|run| usize::try_from(run).ok());
        // default: without a note the search begins with the first run
        let mut low = position(note).unwrap_or(0);
        let mut high = self.runs.len();
        if let Some(next) = position(note + 1) {
            high = high.min(next.saturating_add(1));
        }
        let (mut begin, mut end) = ((note * NOTE_ROWS) as u64, ((note + 1) * NOTE_ROWS) as u64);
        let row = row as u64;
        let mut run = self.runs.get(low).filter(|run| run[0] <= row)?;
        let mut guesses = 0..GUESSES_MAX;
        while high - low > 1 {
            let middle = match guesses.next() {
                Some(_) => {
                    let share = (row - begin) * (high - low) as u64 / (end - begin);
                    // default: a guess, which is clamped
                    low.saturating_add(usize::try_from(share).unwrap_or(usize::MAX))
                }
                None => low.midpoint(high),
            };
            let middle = middle.clamp(low + 1, high - 1);
            match self.runs.get(middle) {
                Some(found) if found[0] <= row => {
                    (low, run, begin) = (middle, found, begin.max(found[0]));
                }
                Some(found) => (high, end) = (middle, found[0]),
                None => high = middle,
            }
        }
        Some(run)
    }
}

/// So often the place of a run is guessed.
const GUESSES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use esker_arena::{Arena, ArenaOptions};

    use super::*;

    #[test]
    fn each_row_is_found_in_its_run_whatever_their_lengths() {
        let arena = Arena::new(ArenaOptions::default()).unwrap();
        for lengths in [&[1][..], &[16], &[1, 2, 3], &[31, 1], &[33], &[1, 200, 1, 1, 64], &[5000]]
        {
            let (mut writer, list) = RunListWriter::create(&arena).unwrap();
            let (mut rows, mut expected) = (0, Vec::new());
            for (run, length) in lengths.iter().cycle().take(700).enumerate() {
                writer.start(rows as u64, run as u64 * 3).unwrap();
                let first = rows;
                rows += length;
                writer.extend_to(rows).unwrap();
                expected.extend((first..rows).map(|_| [first as u64, run as u64 * 3]));
                // What has just been published is found before anything follows.
                for row in [first, rows - 1] {
                    assert_eq!(list.run_of(row), Some(expected[row]), "{row} of {lengths:?}");
                }
            }
            for (row, expected) in expected.iter().enumerate() {
                assert_eq!(list.run_of(row), Some(*expected), "{row} of {lengths:?}");
            }
        }
    }

    #[test]
    fn a_run_goes_on_over_rows_of_later_appends() {
        let arena = Arena::new(ArenaOptions::default()).unwrap();
        let (mut writer, list) = RunListWriter::create(&arena).unwrap();
        assert_eq!(list.run_of(0), None);
        writer.start(0, 7).unwrap();
        for rows in 1..=100 {
            writer.extend_to(rows).unwrap();
            assert_eq!(list.run_of(rows - 1), Some([0, 7]));
        }
        writer.start(100, 8).unwrap();
        writer.extend_to(101).unwrap();
        assert_eq!((list.run_of(99), list.run_of(100)), (Some([0, 7]), Some([100, 8])));
    }
}
