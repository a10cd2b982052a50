//! A cache line of five entries.
//!
//! ```text
//! word 0        1        2        3        4        5            6            7
//! | value 0 | value 1 | value 2 | value 3 | value 4 | tags 0, 1 | tags 2, 3 | tag 4, overflow |
//! ```
//!
//! A slot is free while its value is 0. A slot is filled tag first, then value. The overflow bit
//! says that an entry whose probe came by this line went on to the next one; it is set before that
//! entry's value and stays until the partition is rebuilt, so a probe ends at the first line
//! without it, and removing an entry is storing a 0.
#![allow(clippy::cast_possible_truncation, reason = "a word of tags is two 32-bit halves")]

use crate::words::Words;

/// Entries in a line.
pub(crate) const LINE_SLOTS: u64 = 5;
/// Words in a line.
pub(crate) const LINE_WORDS: u64 = 8;

const TAGS: u64 = 5;
const OVERFLOW: u64 = 1 << 32;

/// The tags and the overflow bit of a line, as read at one time each.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tags([u64; 3]);

impl Tags {
    #[inline]
    pub(crate) fn read(words: impl Words, line: u64) -> Self {
        let tags = line + TAGS;
        Self([words.load(tags), words.load(tags + 1), words.load(tags + 2)])
    }

    /// A bit per slot whose tag is `tag`, whether the slot is filled or not.
    #[inline]
    pub(crate) fn matches(self, tag: u32) -> Slots {
        let [first, second, third] = self.0;
        let same = |word: u64| u32::from(word as u32 == tag);
        Slots(
            same(first)
                | same(first >> 32) << 1
                | same(second) << 2
                | same(second >> 32) << 3
                | same(third) << 4,
        )
    }

    #[inline]
    pub(crate) fn tag(self, slot: u64) -> u32 {
        let [first, second, third] = self.0;
        match slot {
            0 => first as u32,
            1 => (first >> 32) as u32,
            2 => second as u32,
            3 => (second >> 32) as u32,
            _ => third as u32,
        }
    }

    #[inline]
    pub(crate) fn overflowed(self) -> bool {
        self.0[2] & OVERFLOW != 0
    }
}

/// A set of slots of a line, as an iterator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slots(u32);

impl Iterator for Slots {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.0 == 0 {
            return None;
        }
        let slot = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(u64::from(slot))
    }
}

/// Fills a free slot.
#[inline]
pub(crate) fn fill(words: impl Words, line: u64, slot: u64, tag: u32, value: u64) {
    let (word, shift) = (line + TAGS + slot / 2, 32 * (slot % 2));
    let others = words.load(word) & !(u64::from(u32::MAX) << shift);
    words.store(word, others | u64::from(tag) << shift);
    words.store(line + slot, value);
}

/// The first free slot.
#[inline]
pub(crate) fn free_slot(words: impl Words, line: u64) -> Option<u64> {
    (0..LINE_SLOTS).find(|slot| words.load(line + slot) == 0)
}

/// Says that an entry goes on past this line.
#[inline]
pub(crate) fn set_overflow(words: impl Words, line: u64) {
    let word = line + TAGS + 2;
    let tags = words.load(word);
    if tags & OVERFLOW == 0 {
        words.store(word, tags | OVERFLOW);
    }
}

/// A line put together before it is stored.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LineBuffer {
    words: [u64; LINE_WORDS as usize],
    used: usize,
}

impl LineBuffer {
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.used as u64 == LINE_SLOTS
    }

    /// Adds an entry to a line that is not full.
    #[inline]
    pub(crate) fn push(&mut self, tag: u32, value: u64) {
        let slot = self.used;
        if let Some(word) = self.words.get_mut(TAGS as usize + slot / 2) {
            *word |= u64::from(tag) << (32 * (slot % 2));
        }
        if let Some(word) = self.words.get_mut(slot) {
            *word = value;
        }
        self.used += 1;
    }

    #[inline]
    pub(crate) fn set_overflow(&mut self) {
        self.words[7] |= OVERFLOW;
    }

    /// Stores the whole line.
    #[inline]
    pub(crate) fn store(&self, words: impl Words, line: u64) {
        for (index, word) in self.words.iter().enumerate() {
            words.store(line + index as u64, *word);
        }
    }
}
