//! The primary index: a multimap from 64-bit hashes to locations, near 17 bytes an entry at any
//! size.
//!
//! The top 32 bits of the hash are the entry's *tag*. Leading tag bits pick a partition through a
//! directory; the tag's remaining bits pick a home line in the partition, by multiply and shift, so
//! that homes rise with tags and a partition in line order is nearly in tag order. A line is one
//! cache line of five entries; an entry that finds it full goes to the next one.
//!
//! ```text
//!  hash: | tag (32 bits)                 | not stored |
//!        | directory slot | home line    |
//!
//!  root ─► directory ─► header {depth, pages} ─► page ─► line of 5 values and 5 tags
//!  1 word  8 B a slot    2 words + names          1 KiB   64 B
//! ```
//!
//! A partition grows by a sixth when it is seven eighths full, and splits in two past 4,096 entries
//! (1,024 while the index is small). Both build new pages from the partition's own tags, without
//! touching a row, and publish them with one directory word. A partition is a list of pages of one
//! size rather than one block, so that what a small partition gives back serves a larger one: with
//! a well-mixed hash all partitions grow at the same time, and blocks of their sizes would pile up.
//!
//! # Invariants
//!
//! 1. One writer at a time (a mutex); readers take no lock.
//! 2. A partition that is rebuilt has all entries of the old one: `Draft::write` refuses another
//!    number.
//! 3. The partitions that take the place of one have its tags, each once: `publish` refuses others.
//! 4. A partition that takes an entry has room for it, since a full one is rebuilt before: `place`
//!    refuses one without room.
//! 5. A reader reads root, slot, header, lines, then slot and root again; when both are as before,
//!    nothing it read was recycled meanwhile, and a miss is a miss. Otherwise it starts over.
//! 6. An entry never moves within a published partition. It is filled tag first, value last, after
//!    the overflow bits on its way; `replace` stores one word, `remove` stores 0.
//! 7. Memory serves one purpose until the index goes (see `pages`), so an overtaken reader meets
//!    entries, old or of another hash, but never anything that is not an entry.
//!
//! What a caller must know: `visit` may see a location twice, or one whose hash differs, or one
//! that was replaced or removed while it looked. It checks the stored key, and treats the location
//! as of some moment between the call and now. With the hash keyed by a secret no one can aim at a
//! partition; equal hashes by the thousand still work, at a cost linear in their number.

mod builder;
mod bulk;
mod directory;
mod draft;
mod export;
mod import;
mod index;
mod line;
mod lookup;
#[cfg(all(test, loom))]
mod models;
mod pages;
mod partition;
mod tag_order;
#[cfg(test)]
mod tests;
mod writer;

pub use export::Export;
pub use import::Import;

use crate::arena::{Arena, Category};
use crate::error::ArenaError;
use crate::words::{ArenaWords, WordHeap};
use index::Index;
use pages::Shape;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

/// A multimap from 64-bit hashes to non-zero words, read without locks.
///
/// ```
/// use esker_arena::{Arena, ArenaOptions, Category, PartitionedHash};
/// use std::ops::ControlFlow;
///
/// # fn main() -> Result<(), esker_arena::ArenaError> {
/// let arena = Arena::new(ArenaOptions::default())?;
/// let index = PartitionedHash::new(&arena, Category::Index)?;
/// index.insert(0x9e37_79b9_7f4a_7c15, 42)?;
/// let found = index.candidates(0x9e37_79b9_7f4a_7c15, |location| match location {
///     42 => ControlFlow::Break(location), // here the stored key would be compared
///     _ => ControlFlow::Continue(()),
/// });
/// assert_eq!(found, ControlFlow::Break(42));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PartitionedHash {
    index: Index<ArenaWords>,
}

impl PartitionedHash {
    /// An empty index. It takes 128 bytes.
    ///
    /// # Errors
    /// `OutOfMemory` at the arena's limit.
    pub fn new(arena: &Arc<Arena>, category: Category) -> Result<Self, ArenaError> {
        Ok(Self { index: Index::new(ArenaWords::new(arena, category), Shape::default())? })
    }

    /// Shows `visit` every value whose hash has the same top 32 bits, until it breaks.
    ///
    /// Values whose `insert` returned before the call, and that were not removed, are all shown.
    /// See the module's notes for what else may be.
    #[inline]
    pub fn candidates<B>(
        &self,
        hash: u64,
        visit: impl FnMut(u64) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.index.candidates(tag_of(hash), visit)
    }

    /// As [`PartitionedHash::candidates`] for each of `hashes`, with their cache misses overlapped.
    /// `visit` gets the position in `hashes` and the value; breaking ends the look-up of that hash.
    pub fn candidates_many(
        &self,
        hashes: &[u64],
        visit: impl FnMut(usize, u64) -> ControlFlow<()>,
    ) {
        self.index.candidates_many(hashes, visit);
    }

    /// True when an entry under a hash is `value`.
    #[must_use]
    pub fn contains(&self, hash: u64, value: u64) -> bool {
        let found = self.candidates(hash, |candidate| match candidate == value {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        found.is_break()
    }

    /// Loads the entries under some hashes, which are to be read or changed soon: a hint.
    pub fn touch(&self, hashes: &[u64]) {
        self.candidates_many(hashes, |_, value| {
            std::hint::black_box(value);
            ControlFlow::Break(())
        });
    }

    /// Adds an entry, even when an equal one exists.
    ///
    /// # Errors
    /// `InvalidInput` for the value 0, `OutOfMemory` at the arena's limit. Nothing is added then.
    pub fn insert(&self, hash: u64, value: u64) -> Result<(), ArenaError> {
        self.index.insert(tag_of(hash), value)
    }

    /// Adds entries sorted by hash, partition by partition, building each partition once.
    ///
    /// # Errors
    /// `InvalidInput` for the value 0 or a hash out of order, `OutOfMemory` at the arena's limit.
    /// Nothing is added then, though readers may have seen some entries meanwhile.
    pub fn insert_many(&self, entries: &[(u64, u64)]) -> Result<(), ArenaError> {
        self.index.insert_many(entries)
    }

    /// Makes one entry that names `old` name `new`; false when there is none (or `new` is 0).
    /// Concurrent readers see one or the other.
    pub fn replace(&self, hash: u64, old: u64, new: u64) -> bool {
        self.index.replace(tag_of(hash), old, new)
    }

    /// Removes one entry; false when there is none.
    pub fn remove(&self, hash: u64, value: u64) -> bool {
        self.index.remove(tag_of(hash), value)
    }

    /// Starts to fill an empty index with about `expected` entries, at the speed of memory and by
    /// as many threads as the caller has.
    ///
    /// ```
    /// # use esker_arena::{Arena, ArenaOptions, Category, PartitionedHash};
    /// # fn main() -> Result<(), esker_arena::ArenaError> {
    /// # let arena = Arena::new(ArenaOptions::default())?;
    /// # let index = PartitionedHash::new(&arena, Category::Index)?;
    /// let import = index.start_import(1)?;
    /// for part in 0..import.parts() {
    ///     let entries = if part == import.part_of(7) { vec![(7, 42)] } else { Vec::new() };
    ///     import.build(part, &entries)?; // any thread, any order
    /// }
    /// import.finish()?;
    /// assert_eq!(index.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` when the index is not empty.
    pub fn start_import(&self, expected: u64) -> Result<Import<'_>, ArenaError> {
        Import::new(&self.index, expected)
    }

    /// The entries whose tags lie in `tags`, sorted by tag. Each partition is read at one moment;
    /// entries written meanwhile are in or not. `export(0..=u32::MAX)` is everything.
    pub fn export(&self, tags: RangeInclusive<u32>) -> Export<'_> {
        Export::new(&self.index, tags)
    }

    /// Entries in the index.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.index.len()).unwrap_or(usize::MAX)
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of arena memory taken, free lists included.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.index.heap().allocated_bytes()
    }
}

/// The part of a hash that an entry stores: its top 32 bits.
#[must_use]
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "what is left are 32 bits")]
pub const fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}
