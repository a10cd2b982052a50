//! Blocks of rows that are wholly dead, so that a reader passes over all of them at once.
//!
//! A queue leaves many dead rows before the first that lives. Each delete counts in the block of
//! its row; once all rows of a block are dead, the commit of the last delete says who still sees
//! any of them.
//!
//! # Invariants
//!
//! 1. A row dies once, and stays dead: a block whose count is full never changes again.
//! 2. `newest` is noted before the count: a reader that finds the count full finds the newest.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::location::ROW_GROUP_ROWS_MAX;
use crate::visibility::is_deleted_at;

/// Rows of a block.
pub(crate) const BLOCK_ROWS: usize = 1 << 10;

/// Blocks that are made together, when the first of their rows dies.
const CHUNK_BLOCKS: usize = 1 << 6;

/// How many rows of each block are dead; nothing while all live.
#[derive(Debug, Default)]
pub(crate) struct DeadBlocks(OnceLock<Box<[OnceLock<Chunk>]>>);

type Chunk = Box<[Block; CHUNK_BLOCKS]>;

/// What is known of the rows of a block.
#[derive(Debug, Default)]
struct Block {
    dead: AtomicU64,
    /// The newest commit that killed one of them.
    newest: AtomicU64,
}

impl DeadBlocks {
    /// Notes that a row died at a commit. Under the commit lock, or at recovery.
    pub(crate) fn note(&self, row: usize, commit: u64) {
        let block = row / BLOCK_ROWS;
        let chunks = ROW_GROUP_ROWS_MAX.div_ceil(BLOCK_ROWS * CHUNK_BLOCKS);
        let empty = || std::iter::repeat_with(OnceLock::new).take(chunks).collect();
        let chunk = self.0.get_or_init(empty).get(block / CHUNK_BLOCKS);
        let alive = || Box::new(std::array::from_fn(|_| Block::default()));
        let chunk = chunk.map(|chunk| chunk.get_or_init(alive));
        if let Some(block) = chunk.and_then(|chunk| chunk.get(block % CHUNK_BLOCKS)) {
            block.newest.fetch_max(commit, Ordering::Relaxed);
            block.dead.fetch_add(1, Ordering::Release);
        }
    }

    /// True when a reader at commit `at` sees no row of the block of a row.
    #[inline]
    pub(crate) fn hides(&self, row: usize, at: u64) -> bool {
        let block = row / BLOCK_ROWS;
        let chunk = self.0.get().and_then(|chunks| chunks.get(block / CHUNK_BLOCKS)?.get());
        // default: no row of a block has died before the chunk is made
        chunk.and_then(|chunk| chunk.get(block % CHUNK_BLOCKS)).is_some_and(|block| {
            block.dead.load(Ordering::Acquire) >= BLOCK_ROWS as u64
                && is_deleted_at(block.newest.load(Ordering::Relaxed), at)
        })
    }

    /// The first row, from one on, whose block is not known to be hidden; `end` where all are.
    pub(crate) fn first_shown(&self, row: usize, end: usize, at: u64) -> usize {
        let mut row = row;
        while row < end && self.hides(row, at) {
            row = (row / BLOCK_ROWS + 1) * BLOCK_ROWS;
        }
        row.min(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_blocks_are_hidden_from_the_last_delete_on() {
        let dead = DeadBlocks::default();
        let end = 5 * BLOCK_ROWS;
        assert_eq!(dead.first_shown(7, end, u64::MAX), 7);
        for row in (0..2 * BLOCK_ROWS).rev() {
            dead.note(row, 10 + row as u64 / 100);
        }
        // All but one of the third.
        (2 * BLOCK_ROWS + 1..3 * BLOCK_ROWS).for_each(|row| dead.note(row, 5));
        assert_eq!(dead.first_shown(3, end, 30), 2 * BLOCK_ROWS);
        assert_eq!(dead.first_shown(3, 1_500, 30), 1_500);
        // The last row of the first block died at commit 20, of the second at 30.
        assert_eq!(dead.first_shown(0, end, 20), BLOCK_ROWS);
        assert_eq!(dead.first_shown(0, end, 19), 0);
        dead.note(2 * BLOCK_ROWS, 40);
        assert_eq!(dead.first_shown(0, end, 39), 2 * BLOCK_ROWS);
        assert_eq!(dead.first_shown(0, end, 40), 3 * BLOCK_ROWS);
    }
}
