//! Memory of one index: pages and headers, recycled within it.
//!
//! Pages of both sizes and headers of each size have their own free lists and never change their
//! use, because a reader that was overtaken may still look at them: it must find names of pages in
//! a header and entries in a page, however old. One page size per use also means that memory never
//! fragments: whatever a partition gives back, any other can take.

use crate::error::ArenaError;
use crate::partitioned_hash::line::{LINE_WORDS, LineBuffer};
use crate::partitioned_hash::partition::Partition;
use crate::words::WordHeap;
use std::collections::BTreeMap;

/// Lines in the largest block taken at a time: 2 MiB.
const MOST_SLAB_LINES: u64 = 1 << 15;

/// Sizes that depend on how many entries there are; the models use small ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// log2 of the lines in a page of a small partition.
    pub(crate) small_page_shift: u32,
    /// log2 of the lines in a page of any other partition.
    pub(crate) page_shift: u32,
    /// Partitions of at most this many lines have small pages.
    pub(crate) small_lines: u64,
    /// A partition is not split below `least_split` entries and always above `most_split`; between
    /// them, when it holds more than a sixteenth of the index.
    pub(crate) least_split: u64,
    pub(crate) most_split: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            small_page_shift: 2,
            page_shift: 4,
            small_lines: 48,
            least_split: 1024,
            most_split: 4096,
        }
    }
}

/// Free lists and the block being cut into pages. Writer only.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) shape: Shape,
    small: Vec<u32>,
    large: Vec<u32>,
    /// Lines of the current block not yet cut.
    slab: std::ops::Range<u64>,
    /// Large pages made so far.
    made: u64,
    /// Large pages known to be needed on top, by a bulk build.
    expected: u64,
    /// Lines of the partition being built.
    pub(super) draft: Vec<LineBuffer>,
    /// By page size and words.
    headers: BTreeMap<(u32, u64), Vec<u32>>,
}

impl Pages {
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            shape,
            small: Vec::new(),
            large: Vec::new(),
            slab: 0..0,
            made: 0,
            expected: 0,
            draft: Vec::new(),
            headers: BTreeMap::new(),
        }
    }

    /// Tells that about `lines` lines will be requested, so that blocks are large from the start.
    pub(crate) fn expect(&mut self, lines: u64) {
        self.expected = (lines >> self.shape.page_shift).saturating_sub(self.large.len() as u64);
    }

    /// A header and pages for a partition of at least `lines` lines. Their contents are old.
    pub(crate) fn take(
        &mut self,
        heap: &impl WordHeap,
        lines: u64,
        depth: u32,
    ) -> Result<(Partition, Vec<u32>), ArenaError> {
        let page_shift = if lines <= self.shape.small_lines {
            self.shape.small_page_shift
        } else {
            self.shape.page_shift
        };
        let pages = lines.div_ceil(1 << page_shift).max(1);
        let mut names = Vec::with_capacity(usize::try_from(pages).unwrap_or(0));
        for _ in 0..pages {
            match self.take_page(heap, page_shift) {
                Ok(page) => names.push(page),
                Err(error) => {
                    self.give_pages(page_shift, &names);
                    return Err(error);
                }
            }
        }
        match self.take_header(heap, page_shift, pages) {
            Ok(header) => Ok((Partition { header, depth, page_shift, pages }, names)),
            Err(error) => {
                self.give_pages(page_shift, &names);
                Err(error)
            }
        }
    }

    /// Takes a partition back that no directory names any more.
    pub(crate) fn give(&mut self, heap: &impl WordHeap, partition: Partition) {
        self.give_pages(partition.page_shift, &partition.page_names(heap.view()));
        let size = Partition::header_words(partition.pages);
        if let Ok(line) = line_number(partition.header) {
            self.headers.entry((partition.page_shift, size)).or_default().push(line);
        }
    }

    fn give_pages(&mut self, page_shift: u32, names: &[u32]) {
        if page_shift == self.shape.page_shift {
            self.large.extend_from_slice(names);
        } else {
            self.small.extend_from_slice(names);
        }
    }

    fn take_header(
        &mut self,
        heap: &impl WordHeap,
        page_shift: u32,
        pages: u64,
    ) -> Result<u64, ArenaError> {
        let size = Partition::header_words(pages);
        match self.headers.get_mut(&(page_shift, size)).and_then(Vec::pop) {
            Some(line) => Ok(u64::from(line) * LINE_WORDS),
            None => heap.allocate(size),
        }
    }

    fn take_page(&mut self, heap: &impl WordHeap, page_shift: u32) -> Result<u32, ArenaError> {
        if page_shift != self.shape.page_shift {
            return match self.small.pop() {
                Some(page) => Ok(page),
                None => line_number(heap.allocate(LINE_WORDS << page_shift)?),
            };
        }
        if let Some(page) = self.large.pop() {
            return Ok(page);
        }
        if self.slab.is_empty() {
            self.take_slab(heap)?;
        }
        let line = self.slab.start;
        self.slab.start += 1 << page_shift;
        self.made += 1;
        self.expected = self.expected.saturating_sub(1);
        u32::try_from(line).map_err(|_| beyond_reach(line))
    }

    /// A block of pages: one 64th of what there is, or what is expected.
    fn take_slab(&mut self, heap: &impl WordHeap) -> Result<(), ArenaError> {
        let pages = (self.made / 64).max(self.expected).max(1);
        let pages = 1 << pages.ilog2();
        let lines = (pages << self.shape.page_shift).min(MOST_SLAB_LINES);
        let first = heap.allocate(lines * LINE_WORDS)? / LINE_WORDS;
        self.slab = first..first + lines;
        Ok(())
    }
}

fn line_number(word: u64) -> Result<u32, ArenaError> {
    u32::try_from(word / LINE_WORDS).map_err(|_| beyond_reach(word / LINE_WORDS))
}

fn beyond_reach(line: u64) -> ArenaError {
    ArenaError::invalid_input(format!("line {line} of the arena is beyond the index's reach"))
}
