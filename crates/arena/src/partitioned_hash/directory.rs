//! The directory: which partition holds which tags.
//!
//! ```text
//! root word   | line number of the directory (58 bits) | bits (6) |    0 while empty
//! slot word   | line number of the header (34 bits) | version (30) |
//! ```
//!
//! The directory has `1 << bits` slots, indexed by the leading bits of the tag. A partition of
//! depth `d` fills `1 << (bits - d)` neighbouring slots. A slot's version rises with every
//! publication, so a slot word never comes back, even when a header's memory does. A directory that
//! was doubled is kept, unchanged, until the index goes: readers may still be in it, and learn from
//! the root.

use crate::error::ArenaError;
use crate::partitioned_hash::line::LINE_WORDS;
use crate::words::{WordHeap, Words};

/// Bits of a slot word that hold the version.
const VERSION_BITS: u32 = 30;
/// Bits a directory may have.
pub(crate) const MOST_BITS: u32 = 24;

/// A directory as its root word describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Directory {
    pub(crate) root: u64,
}

/// A partition to be published: its lowest tag, its depth and its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) tag: u32,
    pub(crate) depth: u32,
    pub(crate) header: u64,
}

impl Directory {
    pub(crate) fn allocate(heap: &impl WordHeap, bits: u32) -> Result<Self, ArenaError> {
        let first = heap.allocate(1 << bits)?;
        Ok(Self { root: ((first / LINE_WORDS) << 6) | u64::from(bits) })
    }

    #[inline]
    pub(crate) fn bits(self) -> u32 {
        (self.root & 63) as u32
    }

    /// The word of the slot for `tag`.
    #[inline]
    pub(crate) fn slot(self, tag: u32) -> u64 {
        (self.root >> 6) * LINE_WORDS + ((u64::from(tag) << self.bits()) >> 32)
    }

    /// The header that a slot word names.
    #[inline]
    pub(crate) fn header(slot: u64) -> u64 {
        (slot >> VERSION_BITS) * LINE_WORDS
    }

    /// Makes every slot of `leaf` name it. The directory must have enough bits.
    pub(crate) fn publish(self, words: impl Words, leaf: Leaf) {
        let first = self.slot(leaf.tag);
        for slot in first..first + (1 << (self.bits() - leaf.depth)) {
            let version = words.load(slot).wrapping_add(1) & ((1 << VERSION_BITS) - 1);
            words.store(slot, ((leaf.header / LINE_WORDS) << VERSION_BITS) | version);
        }
    }

    /// A directory of `bits` bits that says what this one says.
    pub(crate) fn grown(self, heap: &impl WordHeap, bits: u32) -> Result<Self, ArenaError> {
        let grown = Self::allocate(heap, bits)?;
        let words = heap.view();
        let (from, to) = (self.slot(0), grown.slot(0));
        for slot in 0..1 << bits {
            let old = words.load(from + (slot >> (bits - self.bits())));
            words.store(to + slot, old);
        }
        Ok(grown)
    }
}
