//! One 64-bit word a row, present only where one was set.
//!
//! Rows are below 2^22. Two levels of 64 words each lead to chunks of 1,024 words, so an untouched
//! group costs 512 bytes and the first set row 8.5 KiB more.
//!
//! ```text
//! root[row >> 16] ─► table[row >> 10 & 63] ─► chunk[row & 1023]
//! ```
//!
//! # Invariants
//!
//! 1. A root or table word is stored once, by the holder of the growth lock, after what it names is
//!    zeroed; readers see 0 (absent) or the finished table. `named_by` refuses a second time.
//! 2. A word is set, or replaced, with release, so a reader that sees it sees what was done before.
//!    Writers of one row do not race: the table's commit lock sees to that.

#[cfg(all(test, loom))]
mod models;
#[cfg(test)]
mod tests;

use crate::arena::{Arena, Category};
use crate::error::ArenaError;
use crate::sync::Mutex;
use crate::words::{ArenaWords, WordHeap, Words};
use esker_vfs::sabotage::Bug;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError};

/// Rows are below this.
const MOST_ROWS: u32 = 1 << 22;
/// Words in a root or table.
const FAN_OUT: u64 = 64;
/// Words in a chunk.
const CHUNK_WORDS: u64 = SparseWords::CHUNK_ROWS as u64;

/// One word a row, present per 1,024 rows; 0 where nothing was set.
///
/// Readers take no locks. Writers of the same row must not race each other; the table's write lock
/// sees to that.
#[derive(Debug)]
pub struct SparseWords {
    inner: Inner<ArenaWords>,
}

impl SparseWords {
    /// The number of rows in a chunk.
    pub const CHUNK_ROWS: usize = 1024;

    /// No word set. It takes 512 bytes.
    ///
    /// # Errors
    /// `OutOfMemory` at the arena's limit.
    pub fn new(arena: &Arc<Arena>, category: Category) -> Result<Self, ArenaError> {
        Ok(Self { inner: Inner::new(ArenaWords::new(arena, category))? })
    }

    /// The row's word; 0 when it was never set.
    #[must_use]
    #[inline]
    pub fn get(&self, row: u32) -> u64 {
        self.inner.get(row)
    }

    /// Sets the row's word, with everything the caller wrote before visible to each reader of it.
    ///
    /// # Errors
    /// `InvalidInput` for a row of 2^22 or more, `OutOfMemory` when the row's chunk cannot be made.
    #[inline]
    pub fn set(&self, row: u32, value: u64) -> Result<(), ArenaError> {
        self.inner.set(row, value)
    }

    /// The words of rows `index * 1024 .. (index + 1) * 1024`; `None` when none of them was set.
    #[must_use]
    #[inline]
    pub fn chunk(&self, index: usize) -> Option<&[AtomicU64]> {
        let row = u32::try_from(index.checked_mul(Self::CHUNK_ROWS)?).ok()?;
        self.inner.words.slice(self.inner.chunk_of(row)?, Self::CHUNK_ROWS)
    }

    /// Puts what `change` says in the place of words that were set; `None` leaves one as it is. A
    /// word that somebody sets meanwhile stays as that has set it.
    pub fn replace_each(&self, change: impl FnMut(u64) -> Option<u64>) {
        self.inner.replace_each(change);
    }

    /// Bytes of arena memory taken.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.inner.words.allocated_bytes()
    }
}

/// The algorithm, over any words.
#[derive(Debug)]
pub(crate) struct Inner<W> {
    words: W,
    root: u64,
    growth: Mutex<()>,
}

impl<W: WordHeap> Inner<W> {
    pub(crate) fn new(words: W) -> Result<Self, ArenaError> {
        let root = words.allocate(FAN_OUT)?;
        Ok(Self { words, root, growth: Mutex::new(()) })
    }

    #[inline]
    pub(crate) fn get(&self, row: u32) -> u64 {
        match self.chunk_of(row) {
            Some(chunk) => self.words.view().load(chunk + u64::from(row) % CHUNK_WORDS),
            None => 0,
        }
    }

    #[inline]
    pub(crate) fn set(&self, row: u32, value: u64) -> Result<(), ArenaError> {
        let chunk = match self.chunk_of(row) {
            Some(chunk) => chunk,
            None => self.grow(row)?,
        };
        self.words.view().store(chunk + u64::from(row) % CHUNK_WORDS, value);
        Ok(())
    }

    pub(crate) fn replace_each(&self, mut change: impl FnMut(u64) -> Option<u64>) {
        let named = |word: u64, count: u64| {
            let all = word..word + count;
            all.map(|word| self.words.view().peek(word)).filter(|named| *named != 0)
        };
        for chunk in named(self.root, FAN_OUT).flat_map(|table| named(table, FAN_OUT)) {
            for word in chunk..chunk + CHUNK_WORDS {
                let old = self.words.view().peek(word);
                if old != 0
                    && let Some(new) = change(old)
                {
                    let _ = self.words.view().compare_exchange(word, old, new);
                }
            }
        }
    }

    /// The first word of the row's chunk, if there is one.
    #[inline]
    fn chunk_of(&self, row: u32) -> Option<u64> {
        if row >= MOST_ROWS {
            return None;
        }
        let table = self.words.view().load(self.root + u64::from(row >> 16));
        if table == 0 {
            return None;
        }
        let chunk = self.words.view().load(table + u64::from(row >> 10) % FAN_OUT);
        (chunk != 0).then_some(chunk)
    }

    #[cold]
    fn grow(&self, row: u32) -> Result<u64, ArenaError> {
        if row >= MOST_ROWS {
            let message = format!("row {row} of a group; rows are below {MOST_ROWS}");
            return Err(ArenaError::invalid_input(message));
        }
        let _growing = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.named_by(self.root + u64::from(row >> 16), FAN_OUT)?;
        self.named_by(table + u64::from(row >> 10) % FAN_OUT, CHUNK_WORDS)
    }

    /// What `word` names, made of `count` zeroed words if it names nothing yet.
    fn named_by(&self, word: u64, count: u64) -> Result<u64, ArenaError> {
        let found = self.words.view().load(word);
        if found != 0 && !Bug::SparseChunkReplaced.is_planted() {
            return Ok(found);
        }
        let made = self.words.allocate(count)?;
        match self.words.view().compare_exchange(word, 0, made) {
            Ok(_) => Ok(made),
            Err(found) => {
                let message = format!("sparse words: word {word} names {found} and then {made}");
                Err(ArenaError::corrupt(message))
            }
        }
    }
}
