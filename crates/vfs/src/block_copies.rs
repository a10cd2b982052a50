//! Memory as long as a file, into which its blocks are copied one by one.
//!
//! Invariants
//! - The bytes of a block are written once: by the holder of `filling`, before the block's bit is
//!   set.
//! - A reference into a block is made only after its bit has been seen set.
#![allow(unsafe_code, reason = "bytes that are read by some while others beside them are written")]

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Copies of the blocks of a file that is never written again, aligned to 8 bytes. Blocks that are
/// not filled take no memory, but for the address space.
///
/// ```
/// use esker_vfs::BlockCopies;
///
/// let copies = BlockCopies::new(10, 8);
/// assert_eq!(copies.get(0..4), None);
/// assert!(copies.fill(0, &[7; 8]));
/// assert_eq!(copies.get(6..8), Some(&[7, 7][..]));
/// assert_eq!(copies.get(6..9), None);
/// ```
pub struct BlockCopies {
    words: Box<[UnsafeCell<u64>]>,
    len: usize,
    block_bytes: usize,
    /// One bit for each block.
    filled: Box<[AtomicU64]>,
    filling: Mutex<()>,
}

// SAFETY: by the invariants of this module no byte is written while a reference to it exists, and
// the release store of a block's bit, which readers acquire, comes after the writes.
unsafe impl Sync for BlockCopies {}

impl BlockCopies {
    /// No block filled yet. The last one may be shorter than `block_bytes`, which is not 0.
    #[must_use]
    pub fn new(len: usize, block_bytes: usize) -> Self {
        let block_bytes = block_bytes.max(1);
        let zeros = vec![0u64; len.div_ceil(8)].into_boxed_slice();
        // SAFETY: `UnsafeCell<u64>` has the layout of `u64`, and the box is the only owner.
        let words = unsafe { Box::from_raw(Box::into_raw(zeros) as *mut [UnsafeCell<u64>]) };
        let blocks = len.div_ceil(block_bytes);
        let filled = std::iter::repeat_with(AtomicU64::default).take(blocks.div_ceil(64));
        Self { words, len, block_bytes, filled: filled.collect(), filling: Mutex::new(()) }
    }

    /// Copies a block, unless that has been done. False, and nothing done, when there is no such
    /// block, or it is not as long as `bytes`.
    #[must_use]
    pub fn fill(&self, block: usize, bytes: &[u8]) -> bool {
        let Some(start) = block.checked_mul(self.block_bytes) else { return false };
        let (index, bit) = (block / 64, 1 << (block % 64));
        let Some(filled) = self.filled.get(index).filter(|_| start < self.len) else {
            return false;
        };
        if bytes.len() != self.block_bytes.min(self.len - start) {
            return false;
        }
        let _filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        if filled.load(Ordering::Relaxed) & bit == 0 {
            // SAFETY: `start + bytes.len() <= self.len`, which the words hold. No other thread
            // writes, since the lock is held; none reads, since the block's bit is not set.
            unsafe {
                self.start().add(start).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
            filled.fetch_or(bit, Ordering::Release);
        }
        true
    }

    /// Bytes of blocks that have been filled; `None` when some have not, or there are no such
    /// bytes.
    #[inline]
    #[must_use]
    pub fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        let len = range.end.checked_sub(range.start)?;
        if range.end > self.len {
            return None;
        }
        if len == 0 {
            return Some(&[]);
        }
        let (first, last) = (range.start / self.block_bytes, (range.end - 1) / self.block_bytes);
        if !(first..=last).all(|block| self.is_filled(block)) {
            return None;
        }
        // SAFETY: the range lies within the words, all its blocks are filled, and by the first
        // invariant they are never written again.
        Some(unsafe { std::slice::from_raw_parts(self.start().add(range.start), len) })
    }

    #[inline]
    fn is_filled(&self, block: usize) -> bool {
        let word = self.filled.get(block / 64).map_or(0, |word| word.load(Ordering::Acquire));
        word >> (block % 64) & 1 == 1
    }

    #[inline]
    fn start(&self) -> *mut u8 {
        UnsafeCell::raw_get(self.words.as_ptr()).cast()
    }
}

impl fmt::Debug for BlockCopies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockCopies({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::BlockCopies;

    #[test]
    fn only_what_was_filled_is_read_and_only_once_filled() {
        let copies = BlockCopies::new(20, 8);
        assert!(!copies.fill(0, &[1; 7]), "too short");
        assert!(!copies.fill(2, &[1; 8]), "too long for the last block");
        assert!(!copies.fill(3, &[]), "no such block");
        assert_eq!(copies.get(0..1), None);
        assert!(copies.fill(0, &[1; 8]) && copies.fill(2, &[3; 4]));
        assert!(copies.fill(0, &[9; 8]), "it has been filled");
        assert_eq!(copies.get(0..8), Some(&[1; 8][..]));
        assert_eq!(copies.get(18..20), Some(&[3; 2][..]));
        assert_eq!((copies.get(7..9), copies.get(18..21)), (None, None));
        assert_eq!((copies.get(9..9), copies.get(0..usize::MAX)), (Some(&[][..]), None));
        assert!(copies.fill(1, &[2; 8]));
        assert_eq!(copies.get(7..17), Some(&[1, 2, 2, 2, 2, 2, 2, 2, 2, 3][..]));
    }

    #[test]
    fn threads_fill_and_read_side_by_side() {
        let copies = BlockCopies::new(64 * 64, 64);
        let block_of = |n: usize| [u8::try_from(n).unwrap(); 64];
        crate::Environment::os().tasks.parallel(4, &|start| {
            for n in (0..64).map(|i| (i + start * 16) % 64) {
                assert!(copies.fill(n, &block_of(n)));
                for seen in 0..64 {
                    let found = copies.get(seen * 64..seen * 64 + 64);
                    assert!(found.is_none_or(|found| found == block_of(seen)));
                }
            }
        });
    }
}
