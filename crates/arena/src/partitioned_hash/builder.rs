//! Building partitions: growing, splitting, bulk building, and publishing what was built.
//!
//! Everything is built in pages that no reader can reach and published with one word a directory
//! slot. When memory runs out half way, what was built goes back to the free lists and the index is
//! as before.

use crate::error::ArenaError;
use crate::partitioned_hash::directory::{Directory, Leaf, MOST_BITS};
use crate::partitioned_hash::draft::Draft;
use crate::partitioned_hash::index::Index;
use crate::partitioned_hash::line::{LINE_SLOTS, LineBuffer, Tags};
use crate::partitioned_hash::pages::{Pages, Shape};
use crate::partitioned_hash::partition::Partition;
use crate::partitioned_hash::tag_of;
use crate::partitioned_hash::tag_order::sort_by_tag;
use crate::words::{WordHeap, Words};
use esker_vfs::sabotage::Bug;

/// An entry to be built, from a caller's hash or from a stored tag.
pub(super) trait Entry {
    fn tag(&self) -> u32;
    fn value(&self) -> u64;
}

impl Entry for (u64, u64) {
    #[inline]
    fn tag(&self) -> u32 {
        tag_of(self.0)
    }

    #[inline]
    fn value(&self) -> u64 {
        self.1
    }
}

impl Entry for (u32, u64) {
    #[inline]
    fn tag(&self) -> u32 {
        self.0
    }

    #[inline]
    fn value(&self) -> u64 {
        self.1
    }
}

/// A part of the tags, to become a partition of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// Its lowest tag.
    pub(super) tag: u32,
    pub(super) depth: u32,
    pub(super) entries: u64,
}

/// Lines of a partition that was full and grows: three quarters are taken afterwards.
fn lines_to_grow(entries: u64) -> u64 {
    ((entries + 1) * 4).div_ceil(3 * LINE_SLOTS)
}

/// Lines of a partition built at once: 25 of 32 slots are taken.
pub(super) fn lines_to_build(entries: u64) -> u64 {
    ((entries + 1) * 32).div_ceil(25 * LINE_SLOTS)
}

/// What bounds a split, from the number of entries in the whole index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Entries above which a partition is split.
    pub(super) entries: u64,
    /// The deepest partition. Bounds the directory when hashes are not well mixed: a slot for at
    /// least every 64 entries.
    depth: u32,
}

impl Limits {
    pub(super) fn of(shape: Shape, len: u64) -> Self {
        let slots = (len.saturating_mul(16) / shape.least_split).max(8);
        Self {
            entries: (len / 16).clamp(shape.least_split, shape.most_split),
            depth: slots.ilog2().min(MOST_BITS),
        }
    }

    /// Whether splitting helps: the smaller half gets at least an eighth.
    fn allow(self, depth: u32, lower: u64, upper: u64) -> bool {
        let entries = lower + upper;
        entries > self.entries && depth < self.depth && lower.min(upper) >= entries / 8
    }
}

/// Refuses partitions that have not the tags of `old`, or without it all tags, each once.
fn expect_tags(leaves: &[Leaf], old: Option<Partition>) -> Result<(), ArenaError> {
    let tags = leaves.first().map(|first| match old {
        Some(old) => old.tags(first.tag),
        None => (0, u32::MAX),
    });
    let mut next = tags.map(|(lowest, _)| u64::from(lowest));
    for leaf in leaves {
        next = next.filter(|next| *next == u64::from(leaf.tag));
        next = next.map(|next| next + (1 << (32 - leaf.depth)));
    }
    match tags {
        Some((_, highest)) if next == Some(u64::from(highest) + 1) => Ok(()),
        _ => Err(ArenaError::corrupt(format!("index: {leaves:x?} in the place of {old:x?}"))),
    }
}

impl<W: WordHeap> Index<W> {
    /// Rebuilds a full partition larger, or as two; the partition that now holds `tag`.
    pub(super) fn make_room(
        &self,
        pages: &mut Pages,
        tag: u32,
        old: Partition,
    ) -> Result<Partition, ArenaError> {
        let entries = old.counts(self.words()).entries;
        let (lowest, highest) = old.tags(tag);
        let limits = Limits::of(pages.shape, self.len());
        let middle = lowest + (highest - lowest) / 2;
        let mut lower = 0;
        if entries > limits.entries {
            self.each_entry(old, |tag, _| lower += u64::from(tag <= middle));
        }
        let upper = entries - lower;
        if limits.allow(old.depth, lower, upper) {
            let depth = old.depth + 1;
            let lower = Part { tag: lowest, depth, entries: lower };
            self.rebuild(pages, old, &[lower, Part { tag: middle + 1, depth, entries: upper }])?;
        } else {
            self.rebuild(pages, old, &[Part { tag: lowest, depth: old.depth, entries }])?;
        }
        self.partition(tag).ok_or_else(|| ArenaError::invalid_input("the index lost a partition"))
    }

    /// Replaces a partition by `parts`, which share its entries out between them.
    pub(super) fn rebuild(
        &self,
        pages: &mut Pages,
        old: Partition,
        parts: &[Part],
    ) -> Result<(), ArenaError> {
        let mut leaves = Vec::with_capacity(parts.len());
        for part in parts {
            match self.copy(pages, old, *part) {
                Ok(leaf) => leaves.push(leaf),
                Err(error) => {
                    self.give_back(pages, &leaves);
                    return Err(error);
                }
            }
        }
        self.publish(pages, &leaves, Some(old))
    }

    /// Builds one part of a partition.
    fn copy(&self, pages: &mut Pages, old: Partition, part: Part) -> Result<Leaf, ArenaError> {
        let lines = lines_to_grow(part.entries);
        let (new, names) = pages.take(self.heap(), lines, part.depth)?;
        let (lowest, highest) = new.tags(part.tag);
        let mut draft = Draft::new(&mut pages.draft, new);
        let mut is_lost = Bug::RebuildLosesEntry.is_planted();
        self.each_entry(old, |tag, value| {
            if lowest <= tag && tag <= highest && !std::mem::take(&mut is_lost) {
                draft.push(tag, value);
            }
        });
        draft.write(self.words(), &names, part.entries)?;
        Ok(Leaf { tag: part.tag, depth: part.depth, header: new.header })
    }

    /// Builds the partitions of one part of the tags from its sorted entries.
    pub(super) fn build_locked<E: Entry>(
        &self,
        pages: &mut Pages,
        entries: &[E],
        part: (u32, u32),
        limits: Limits,
        leaves: &mut Vec<Leaf>,
    ) -> Result<(), ArenaError> {
        let mut draft = std::mem::take(&mut pages.draft);
        let mut take = |lines, depth| pages.take(self.heap(), lines, depth);
        let done = self.build(&mut take, &mut draft, entries, part, limits, leaves);
        pages.draft = draft;
        done
    }

    /// As [`Index::build_locked`], with memory that `take` has.
    pub(super) fn build<E: Entry>(
        &self,
        take: &mut impl FnMut(u64, u32) -> Result<(Partition, Vec<u32>), ArenaError>,
        draft: &mut Vec<LineBuffer>,
        entries: &[E],
        part: (u32, u32),
        limits: Limits,
        leaves: &mut Vec<Leaf>,
    ) -> Result<(), ArenaError> {
        let (tag, depth) = part;
        let middle = tag | (u32::MAX >> depth >> 1);
        let split = entries.partition_point(|entry| entry.tag() <= middle);
        if let Some((lower, upper)) = entries.split_at_checked(split)
            && limits.allow(depth, lower.len() as u64, upper.len() as u64)
        {
            self.build(take, draft, lower, (tag, depth + 1), limits, leaves)?;
            return self.build(take, draft, upper, (middle + 1, depth + 1), limits, leaves);
        }
        let count = entries.len() as u64;
        let (new, names) = take(lines_to_build(count), depth)?;
        let mut draft = Draft::new(draft, new);
        for entry in entries {
            draft.push(entry.tag(), entry.value());
        }
        draft.write(self.words(), &names, count)?;
        leaves.push(Leaf { tag, depth, header: new.header });
        Ok(())
    }

    /// Makes the directory name `leaves`, which cover the tags of `old` or, without it, of an index
    /// that has no directory yet; then takes the memory of `old` back.
    pub(super) fn publish(
        &self,
        pages: &mut Pages,
        leaves: &[Leaf],
        old: Option<Partition>,
    ) -> Result<(), ArenaError> {
        expect_tags(leaves, old)?;
        let words = self.words();
        let bits = leaves.iter().map(|leaf| leaf.depth).max().unwrap_or(0);
        let made = match self.directory() {
            None => Directory::allocate(self.heap(), bits),
            Some(directory) if directory.bits() < bits => directory.grown(self.heap(), bits),
            Some(directory) => Ok(directory),
        };
        let directory = match made {
            Ok(directory) => directory,
            Err(error) => {
                self.give_back(pages, leaves);
                return Err(error);
            }
        };
        // A larger directory goes first: it says the same, and readers that are still in the old
        // one learn from the root that they must look again.
        if old.is_some() {
            self.set_directory(directory);
        }
        for leaf in leaves {
            directory.publish(words, *leaf);
        }
        self.set_directory(directory);
        if let Some(old) = old {
            pages.give(self.heap(), old);
        }
        Ok(())
    }

    /// Takes back partitions that were never published.
    pub(super) fn give_back(&self, pages: &mut Pages, leaves: &[Leaf]) {
        for leaf in leaves {
            pages.give(self.heap(), Partition::read(self.words(), leaf.header));
        }
    }

    /// Every entry of a partition, in line order. Writer only.
    pub(super) fn each_entry(&self, partition: Partition, mut visit: impl FnMut(u32, u64)) {
        let words = self.words();
        for number in 0..partition.lines() {
            let line = partition.line(words, number);
            let tags = Tags::read(words, line);
            for slot in 0..LINE_SLOTS {
                let value = words.load(line + slot);
                if value != 0 {
                    visit(tags.tag(slot), value);
                }
            }
        }
    }

    /// The entries of a partition, sorted by tag. Writer only.
    pub(super) fn sorted_entries(&self, partition: Partition) -> Vec<(u32, u64)> {
        let count = partition.counts(self.words()).entries;
        let mut entries = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        self.each_entry(partition, |tag, value| entries.push((tag, value)));
        sort_by_tag(&mut entries);
        entries
    }
}
