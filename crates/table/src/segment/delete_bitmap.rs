//! Which rows of a segment are dead, one bit each.
//!
//! The commit that killed a row lies in a word of its own, three loads away. Most rows live, and a
//! bit says so: those of a segment fit a cache where the words do not.
//!
//! Invariants
//! 1. A bit is set after the commit is noted and before the commit is published: a reader that may
//!    know of a delete finds its bit.
//! 2. A bit that is set says only that there is a commit to look at.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Segment;

/// Rows of a word.
const WORD_ROWS: usize = 64;

/// The bits of the rows that were killed; nothing while all live.
#[derive(Debug, Default)]
pub(crate) struct DeleteBitmap(OnceLock<Box<[AtomicU64]>>);

impl DeleteBitmap {
    /// Notes a delete among `row_count` rows.
    pub(crate) fn mark(&self, row: usize, row_count: usize) {
        let zeroed = || (0..row_count.div_ceil(WORD_ROWS)).map(|_| AtomicU64::new(0)).collect();
        if let Some(word) = self.0.get_or_init(zeroed).get(row / WORD_ROWS) {
            word.fetch_or(1 << (row % WORD_ROWS), Ordering::Release);
        }
    }

    /// True when a row may be dead.
    #[inline]
    pub(crate) fn has(&self, row: usize) -> bool {
        self.word(row / WORD_ROWS) >> (row % WORD_ROWS) & 1 == 1
    }

    /// The bits of 64 rows from any row on, the first at the least significant bit.
    #[inline]
    pub(crate) fn from(&self, row: usize) -> u64 {
        let (at, shift) = (row / WORD_ROWS, row % WORD_ROWS);
        match shift {
            0 => self.word(at),
            _ => self.word(at) >> shift | self.word(at + 1) << (WORD_ROWS - shift),
        }
    }

    #[inline]
    fn word(&self, at: usize) -> u64 {
        let words = self.0.get().and_then(|words| words.get(at));
        // default: no bit was set while all rows live, and there is none behind the last
        words.map_or(0, |word| word.load(Ordering::Acquire))
    }
}

impl Segment {
    /// Which of some rows, all of them created by commit `at`, had not died by then: `None` when
    /// that is so of each, else one bit a row.
    pub(crate) fn alive(&self, rows: Range<usize>, at: u64) -> Option<Vec<u64>> {
        let mut words: Option<Vec<u64>> = None;
        for (i, first) in rows.clone().step_by(WORD_ROWS).enumerate() {
            let mut dead = self.delete_bitmap.from(first);
            while dead != 0 {
                let row = first + dead.trailing_zeros() as usize;
                dead &= dead - 1;
                let commit = if row < rows.end { self.deleted(row) } else { 0 };
                if commit == 0 || commit > at {
                    continue;
                }
                let words = words.get_or_insert_with(|| all(rows.len()));
                if let Some(word) = words.get_mut(i) {
                    *word &= !(1 << (row - first));
                }
            }
        }
        words
    }
}

/// One bit for each of so many rows.
fn all(rows: usize) -> Vec<u64> {
    let mut words = vec![u64::MAX; rows.div_ceil(WORD_ROWS)];
    let past = (WORD_ROWS - rows % WORD_ROWS) % WORD_ROWS;
    words.last_mut().into_iter().for_each(|word| *word >>= past);
    words
}

#[cfg(test)]
mod tests {
    use super::DeleteBitmap;

    #[test]
    fn bits_are_found_from_any_row_on() {
        let dead = DeleteBitmap::default();
        assert!(!dead.has(5) && dead.from(3) == 0);
        let rows = [0, 5, 63, 64, 130, 199];
        rows.iter().for_each(|row| dead.mark(*row, 200));
        for row in 0..200 {
            assert_eq!(dead.has(row), rows.contains(&row), "{row}");
            let bits = (0..64).filter(|i| rows.contains(&(row + i)));
            assert_eq!(dead.from(row), bits.fold(0, |word, i| word | 1 << i), "{row}");
        }
    }
}
