//! Changing single entries.

use crate::error::ArenaError;
use crate::partitioned_hash::builder::{Limits, Part};
use crate::partitioned_hash::index::Index;
use crate::partitioned_hash::line::{self, Tags};
use crate::partitioned_hash::pages::Pages;
use crate::partitioned_hash::partition::{Counts, Partition};
use crate::words::{WordHeap, Words};

/// Where an entry is: its partition, and the first word of its line and its slot there.
#[derive(Debug, Clone, Copy)]
struct Entry {
    partition: Partition,
    line: u64,
    slot: u64,
}

impl<W: WordHeap> Index<W> {
    pub(crate) fn insert(&self, tag: u32, value: u64) -> Result<(), ArenaError> {
        if value == 0 {
            return Err(zero_value());
        }
        self.insert_locked(&mut self.write(), tag, value)
    }

    pub(super) fn insert_locked(
        &self,
        pages: &mut Pages,
        tag: u32,
        value: u64,
    ) -> Result<(), ArenaError> {
        let partition = match self.partition(tag) {
            Some(partition) if !is_full(self.words(), partition) => partition,
            Some(partition) => self.make_room(pages, tag, partition)?,
            None => {
                let limits = Limits::of(pages.shape, 1);
                return self.build_first(pages, &[(u64::from(tag) << 32, value)], limits);
            }
        };
        let counts = partition.counts(self.words());
        self.place(partition, tag, value)?;
        partition.set_counts(self.words(), Counts { entries: counts.entries + 1, ..counts });
        self.set_len(self.len() + 1);
        Ok(())
    }

    /// Puts an entry into the first free slot from its home on. There is one: see [`is_full`].
    #[inline]
    pub(super) fn place(
        &self,
        partition: Partition,
        tag: u32,
        value: u64,
    ) -> Result<(), ArenaError> {
        let words = self.words();
        let mut number = partition.home(tag);
        for _ in 0..partition.lines() {
            let place = partition.line(words, number);
            if let Some(slot) = line::free_slot(words, place) {
                line::fill(words, place, slot, tag, value);
                return Ok(());
            }
            line::set_overflow(words, place);
            number = partition.after(number);
        }
        Err(ArenaError::corrupt("index: a partition is full and was not rebuilt"))
    }

    pub(crate) fn replace(&self, tag: u32, old: u64, new: u64) -> bool {
        let _writing = self.write();
        match self.find(tag, old) {
            Some(entry) if new != 0 => {
                let word = entry.line + entry.slot;
                self.words().compare_exchange(word, old, new).is_ok()
            }
            _ => false,
        }
    }

    pub(crate) fn remove(&self, tag: u32, value: u64) -> bool {
        self.remove_locked(&mut self.write(), tag, value)
    }

    pub(super) fn remove_locked(&self, pages: &mut Pages, tag: u32, value: u64) -> bool {
        let Some(Entry { partition, line, slot }) = self.find(tag, value) else { return false };
        self.words().store(line + slot, 0);
        let mut counts = partition.counts(self.words());
        counts = Counts { entries: counts.entries - 1, removed: counts.removed + 1 };
        partition.set_counts(self.words(), counts);
        self.set_len(self.len() - 1);
        // Rebuilding drops overflow bits that lead nowhere, and the memory of a partition that
        // shrank. Both can wait, so running out of memory here is no error.
        if counts.removed > partition.slots() / 2 {
            let (lowest, _) = partition.tags(tag);
            let part = Part { tag: lowest, depth: partition.depth, entries: counts.entries };
            let _ = self.rebuild(pages, partition, &[part]);
        }
        true
    }

    fn find(&self, tag: u32, value: u64) -> Option<Entry> {
        if value == 0 {
            return None;
        }
        let (words, partition) = (self.words(), self.partition(tag)?);
        let mut number = partition.home(tag);
        for _ in 0..partition.lines() {
            let line = partition.line(words, number);
            let tags = Tags::read(words, line);
            let mut slots = tags.matches(tag);
            if let Some(slot) = slots.find(|slot| words.load(line + slot) == value) {
                return Some(Entry { partition, line, slot });
            }
            if !tags.overflowed() {
                return None;
            }
            number = partition.after(number);
        }
        None
    }
}

/// Whether a partition must be rebuilt before it takes another entry: seven eighths are taken.
fn is_full(words: impl Words, partition: Partition) -> bool {
    partition.counts(words).entries * 8 >= partition.slots() * 7
}

pub(super) fn zero_value() -> ArenaError {
    ArenaError::invalid_input("the value 0 in an index; values are not zero")
}
