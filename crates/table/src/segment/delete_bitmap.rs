//! Which rows of a segment are dead, one bit each.
//!
//! The commit that killed a row lies in a word of its own, three loads away. Most rows live, and a
//! bit says so: those of a segment fit a cache where the words do not.
//!
//! # Invariants
//!
//! 1. A bit is set after the commit is noted and before the commit is published: a reader that may
//!    know of a delete finds its bit. `Segment::delete` sets it, and is an error where it is not
//!    found.
//! 2. A bit that is set says only that there is a commit to look at.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of a word.
pub(super) const WORD_ROWS: usize = 64;

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
