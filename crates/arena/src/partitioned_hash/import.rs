//! Filling an empty index from sorted entries, by several threads at a time.
//!
//! The tags are cut into parts of equal width, about a partition each. Threads build parts in any
//! order, in pages that no reader can reach; the writer's lock is held only while pages are taken.
//! When every part is there, one word publishes the directory. An import that is dropped before
//! gives its pages back, and the index stays empty.

use crate::error::ArenaError;
use crate::partitioned_hash::builder::{Limits, lines_to_build};
use crate::partitioned_hash::directory::{Leaf, MOST_BITS};
use crate::partitioned_hash::index::Index;
use crate::partitioned_hash::writer::zero_value;
use crate::sync::Mutex;
use crate::words::ArenaWords;
use std::sync::PoisonError;

/// An empty index that is being filled: see [`crate::PartitionedHash::start_import`].
#[derive(Debug)]
pub struct Import<'a> {
    index: &'a Index<ArenaWords>,
    limits: Limits,
    depth: u32,
    built: Mutex<Built>,
}

#[derive(Debug, Default)]
struct Built {
    /// A bit a part.
    parts: Vec<u64>,
    entries: u64,
    leaves: Vec<Leaf>,
}

impl<'a> Import<'a> {
    pub(super) fn new(index: &'a Index<ArenaWords>, expected: u64) -> Result<Self, ArenaError> {
        let mut pages = index.write();
        if index.directory().is_some() {
            return Err(not_empty());
        }
        let limits = Limits::of(pages.shape, expected);
        let parts = expected.div_ceil(limits.entries).max(1).next_power_of_two();
        let depth = parts.ilog2().min(MOST_BITS);
        pages.expect(lines_to_build(expected));
        drop(pages);
        let words = usize::try_from((1u64 << depth).div_ceil(64)).unwrap_or(0);
        let built = Built { parts: vec![0; words], ..Built::default() };
        Ok(Self { index, limits, depth, built: Mutex::new(built) })
    }

    /// How many parts there are; a power of two.
    #[must_use]
    pub fn parts(&self) -> u64 {
        1 << self.depth
    }

    /// The part that holds a tag. Rises with the tag.
    #[must_use]
    #[inline]
    pub fn part_of(&self, tag: u32) -> u64 {
        (u64::from(tag) << self.depth) >> 32
    }

    /// Builds a part from all of its entries, sorted by tag. Any thread, any order, each part once.
    ///
    /// # Errors
    /// `InvalidInput` for the value 0, a tag out of order or of another part, and a part that was
    /// built before; `OutOfMemory` at the arena's limit.
    pub fn build(&self, part: u64, entries: &[(u32, u64)]) -> Result<(), ArenaError> {
        self.check(part, entries)?;
        let lowest = u32::try_from((part << 32) >> self.depth).unwrap_or(u32::MAX);
        let (mut leaves, mut draft) = (Vec::new(), Vec::new());
        let mut take = |lines, depth| self.index.write().take(self.index.heap(), lines, depth);
        let place = (lowest, self.depth);
        let done =
            self.index.build(&mut take, &mut draft, entries, place, self.limits, &mut leaves);
        let done = done.and_then(|()| self.note(part, entries.len() as u64, &mut leaves));
        self.index.give_back(&mut self.index.write(), &leaves);
        done
    }

    /// Takes what was built of a part, unless it was there before.
    fn note(&self, part: u64, entries: u64, leaves: &mut Vec<Leaf>) -> Result<(), ArenaError> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let word = usize::try_from(part / 64).ok().and_then(|word| built.parts.get_mut(word));
        match word {
            Some(word) if *word >> (part % 64) & 1 == 0 => *word |= 1 << (part % 64),
            _ => return Err(ArenaError::invalid_input(format!("part {part} was built before"))),
        }
        built.entries += entries;
        built.leaves.append(leaves);
        Ok(())
    }

    fn check(&self, part: u64, entries: &[(u32, u64)]) -> Result<(), ArenaError> {
        if entries.iter().any(|entry| entry.1 == 0) {
            return Err(zero_value());
        }
        if let Some(pair) = entries.windows(2).find(|pair| !pair.is_sorted_by_key(|e| e.0)) {
            let message = format!("tags out of order in an import: {pair:x?}");
            return Err(ArenaError::invalid_input(message));
        }
        let ends = entries.first().into_iter().chain(entries.last());
        for (tag, _) in ends {
            if self.part_of(*tag) != part {
                let message = format!("tag {tag:#x} in part {part} of {}", self.parts());
                return Err(ArenaError::invalid_input(message));
            }
        }
        Ok(())
    }

    /// Makes the entries visible, once every part was built.
    ///
    /// # Errors
    /// `InvalidInput` when a part is missing or the index is no longer empty, `OutOfMemory` at the
    /// arena's limit. The index is as before then.
    pub fn finish(self) -> Result<(), ArenaError> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let done: u64 = built.parts.iter().map(|word| u64::from(word.count_ones())).sum();
        if done != self.parts() {
            let message = format!("{done} of {} parts were built", self.parts());
            return Err(ArenaError::invalid_input(message));
        }
        let mut pages = self.index.write();
        if self.index.directory().is_some() {
            return Err(not_empty());
        }
        let mut leaves = std::mem::take(&mut built.leaves);
        leaves.sort_unstable_by_key(|leaf| leaf.tag);
        self.index.publish(&mut pages, &leaves, None)?;
        self.index.set_len(built.entries);
        Ok(())
    }
}

impl Drop for Import<'_> {
    fn drop(&mut self) {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let leaves = std::mem::take(&mut built.leaves);
        self.index.give_back(&mut self.index.write(), &leaves);
    }
}

fn not_empty() -> ArenaError {
    ArenaError::invalid_input("an import into an index that is not empty")
}
