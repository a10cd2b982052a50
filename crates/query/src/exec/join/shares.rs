//! Rows by shares of what they are looked up by: all threads fill an index at once, each a share.
//!
//! ```text
//! rows    0  1  2  3 | 4  5  6  7        each chunk sorts its rows by share, on its own thread
//! share   a  b  b  a | a  b  a  b
//!                                        share a    0 3 | 4 6
//!                                        share b    1 2 | 5 7
//! ```
//!
//! The rows of a share ascend, so that what is made of them does not depend on how many there are.
//! Where there is one share it has all rows, and nothing is sorted.

use std::ops::Range;

use esker_vfs::parallel_map;
use esker_vfs::sabotage::Bug;

use crate::budget::Charge;
use crate::{IndexUse, Options, Result, ZONE_ROWS};

/// Of fewer rows all are one share.
const SHARED_MIN: usize = 8 * ZONE_ROWS;

/// How many shares there are for each thread: they are not of equal size.
const SHARES_OF_THREAD: usize = 8;

/// The most shares.
const SHARES_MAX: usize = 256;

/// How many rows are sorted at once.
const CHUNK_ROWS: usize = 8 * ZONE_ROWS;

/// The numbers of rows by shares.
#[derive(Debug)]
pub(super) struct Shares<'b> {
    rows: usize,
    count: usize,
    /// None where there is one share.
    chunks: Vec<Chunk>,
    _charge: Charge<'b>,
}

/// Some rows: those of share `s` are from `starts[s]` on, ascending.
#[derive(Debug)]
struct Chunk {
    starts: Vec<usize>,
    rows: Vec<u32>,
}

/// How many shares are worth making for so many rows: a power of two.
pub(super) fn worth(rows: usize, options: &Options) -> usize {
    let threads = options.tasks.parallelism();
    match options.indexes {
        // To test them.
        IndexUse::Always => SHARES_OF_THREAD,
        _ if rows < SHARED_MIN || threads < 2 => 1,
        _ => (threads.next_power_of_two() * SHARES_OF_THREAD).min(SHARES_MAX),
    }
}

impl<'b> Shares<'b> {
    /// All rows as one share.
    pub(super) fn one(rows: usize, options: &'b Options) -> Self {
        Self { rows, count: 1, chunks: Vec::new(), _charge: options.memory().charge() }
    }

    /// Sorts rows by the share that `share_of` gives each, which is below `count`; into one share
    /// where memory does not hold their numbers.
    ///
    /// # Errors
    /// When the query is to end.
    pub(super) fn new(
        rows: usize,
        count: usize,
        options: &'b Options,
        share_of: impl Fn(usize) -> usize + Sync,
    ) -> Result<Self> {
        let mut this = Self::one(rows, options);
        let has_room = this._charge.set(rows.saturating_mul(size_of::<u32>())).is_ok();
        if count < 2 || !has_room {
            return Ok(Self::one(rows, options));
        }
        let starts = (0..rows).step_by(CHUNK_ROWS);
        let ranges: Vec<_> = starts.map(|start| start..rows.min(start + CHUNK_ROWS)).collect();
        let chunks = parallel_map(&*options.tasks, &ranges, |range| {
            options.expect_time_left()?;
            Ok(Chunk::new(range.clone(), count, &share_of))
        });
        this.chunks = chunks.into_iter().collect::<Result<_>>()?;
        this.count = count;
        Ok(this)
    }

    /// How many shares there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// How many rows a share has.
    pub(super) fn len(&self, share: usize) -> usize {
        match self.count {
            1 => self.rows,
            _ => self.chunks.iter().map(|chunk| chunk.of(share).len()).sum(),
        }
    }

    /// The rows of a share, ascending.
    pub(super) fn rows(&self, share: usize) -> impl DoubleEndedIterator<Item = usize> {
        let all = if self.count == 1 { 0..self.rows } else { 0..0 };
        let is_dropped = Bug::JoinShareDropped.is_planted() && self.is_last(share);
        let chunks = self.chunks.iter().filter(move |_| !is_dropped);
        all.chain(chunks.flat_map(move |chunk| chunk.of(share)).map(|row| *row as usize))
    }

    /// Whether it is the last of several shares that have rows.
    fn is_last(&self, share: usize) -> bool {
        self.count > 1 && (share + 1..self.count).all(|later| self.len(later) == 0)
    }
}

impl Chunk {
    fn new(rows: Range<usize>, count: usize, share_of: &impl Fn(usize) -> usize) -> Self {
        let shares: Vec<usize> = rows.clone().map(share_of).collect();
        let mut starts = vec![0usize; count + 1];
        for share in &shares {
            starts.get_mut(share + 1).into_iter().for_each(|start| *start += 1);
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let (mut next, mut sorted) = (starts.clone(), vec![0; shares.len()]);
        for (row, share) in rows.zip(shares) {
            let Some(at) = next.get_mut(share) else { continue };
            let number = u32::try_from(row).unwrap_or(super::NONE);
            sorted.get_mut(*at).into_iter().for_each(|to| *to = number);
            *at += 1;
        }
        Self { starts, rows: sorted }
    }

    fn of(&self, share: usize) -> &[u32] {
        let at = |share: usize| self.starts.get(share).copied().unwrap_or_default();
        self.rows.get(at(share)..at(share + 1)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use esker_vfs::Environment;

    use super::*;

    #[test]
    fn shares_have_all_rows_once_and_ascending() {
        let options = Options::new(&Environment::os());
        let rows = 2 * CHUNK_ROWS + 7;
        for count in [1, 2, 8] {
            let share_of = |row: usize| row * 7 / 3 % count;
            let shares = Shares::new(rows, count, &options, share_of).unwrap();
            assert_eq!(shares.count(), count);
            let mut all = Vec::new();
            for share in 0..count {
                let own: Vec<usize> = shares.rows(share).collect();
                assert!(own.is_sorted() && own.iter().all(|row| share_of(*row) == share));
                assert_eq!(own.len(), shares.len(share));
                assert!(shares.rows(share).rev().eq(own.iter().rev().copied()));
                all.extend(own);
            }
            all.sort_unstable();
            assert!(all.into_iter().eq(0..rows));
        }
    }

    #[test]
    fn rows_without_room_for_lists_are_one_share() {
        let options = Options::new(&Environment::os()).with_memory(1_000);
        let shares = Shares::new(10_000, 8, &options, |row| row % 8).unwrap();
        assert_eq!((shares.count(), shares.len(0)), (1, 10_000));
        assert_eq!(options.memory().left(), 1_000);
    }
}
