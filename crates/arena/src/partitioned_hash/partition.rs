//! The header of a partition, and where its lines are.
//!
//! ```text
//! word 0                            1                     2           3
//! | pages · page shift · depth | removed · entries | page 0, 1 | page 2, 3 | …
//! ```
//!
//! A page is `1 << page shift` lines and is named by the number of its first line in the arena. The
//! first word and the page names are written before the header is published and not changed until
//! it is retired; the second word belongs to the writer.
#![allow(clippy::cast_possible_truncation, reason = "a word of page names is two 32-bit halves")]

use crate::partitioned_hash::line::{LINE_SLOTS, LINE_WORDS};
use crate::words::Words;

/// Words before the page names.
const NAMES: u64 = 2;

/// A partition as its header describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Partition {
    /// The header's first word.
    pub(crate) header: u64,
    /// How many leading tag bits all its entries share.
    pub(crate) depth: u32,
    pub(crate) page_shift: u32,
    pub(crate) pages: u64,
}

impl Partition {
    #[inline]
    pub(crate) fn read(words: impl Words, header: u64) -> Self {
        let word = words.load(header);
        Self {
            header,
            depth: (word & 31) as u32,
            page_shift: (word >> 8 & 31) as u32,
            pages: word >> 16,
        }
    }

    /// Words of a header that names `pages` pages.
    pub(crate) fn header_words(pages: u64) -> u64 {
        (NAMES + pages.div_ceil(2)).next_multiple_of(LINE_WORDS)
    }

    /// Writes a header that is not yet published.
    pub(crate) fn write(&self, words: impl Words, pages: &[u32], entries: u64) {
        for (index, pair) in pages.chunks(2).enumerate() {
            let first = pair.first().copied().unwrap_or(0);
            let second = pair.get(1).copied().unwrap_or(first);
            let names = u64::from(first) | u64::from(second) << 32;
            words.store(self.header + NAMES + index as u64, names);
        }
        words.store(self.header + 1, entries);
        let depth = u64::from(self.depth);
        words.store(self.header, self.pages << 16 | u64::from(self.page_shift) << 8 | depth);
    }

    #[inline]
    pub(crate) fn lines(&self) -> u64 {
        self.pages << self.page_shift
    }

    #[inline]
    pub(crate) fn slots(&self) -> u64 {
        self.lines() * LINE_SLOTS
    }

    /// The line at which the probe for `tag` begins. Rises with the tag.
    #[inline]
    pub(crate) fn home(&self, tag: u32) -> u64 {
        (u64::from(tag << self.depth) * self.lines()) >> 32
    }

    #[inline]
    pub(crate) fn after(&self, line: u64) -> u64 {
        if line + 1 == self.lines() { 0 } else { line + 1 }
    }

    /// The first word of a line.
    #[inline]
    pub(crate) fn line(&self, words: impl Words, line: u64) -> u64 {
        let (page, within) = (line >> self.page_shift, line & ((1 << self.page_shift) - 1));
        (u64::from(self.page(words, page)) + within) * LINE_WORDS
    }

    #[inline]
    pub(crate) fn page(&self, words: impl Words, page: u64) -> u32 {
        (words.load(self.header + NAMES + page / 2) >> (32 * (page % 2))) as u32
    }

    pub(crate) fn page_names(&self, words: impl Words) -> Vec<u32> {
        (0..self.pages).map(|page| self.page(words, page)).collect()
    }

    /// Entries now, and entries removed since the partition was built. Writer only.
    #[inline]
    pub(crate) fn counts(&self, words: impl Words) -> Counts {
        let word = words.load(self.header + 1);
        Counts { entries: word & u64::from(u32::MAX), removed: word >> 32 }
    }

    #[inline]
    pub(crate) fn set_counts(&self, words: impl Words, counts: Counts) {
        words.store(self.header + 1, counts.entries | counts.removed << 32);
    }

    /// The lowest and highest tag of the partition that holds `tag`.
    pub(crate) fn tags(&self, tag: u32) -> (u32, u32) {
        let rest = u32::MAX >> self.depth;
        (tag & !rest, tag | rest)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) entries: u64,
    pub(crate) removed: u64,
}
