//! Reading the whole index in tag order, for a checkpoint.

use crate::partitioned_hash::index::Index;
use crate::words::{ArenaWords, WordHeap};
use std::ops::RangeInclusive;

/// The entries of a range of tags, sorted by tag: see [`crate::PartitionedHash::export`].
#[derive(Debug)]
pub struct Export<'a> {
    index: &'a Index<ArenaWords>,
    /// The next partition's lowest tag and the range's highest; `None` when done.
    rest: Option<(u32, u32)>,
    entries: std::vec::IntoIter<(u32, u64)>,
}

impl<'a> Export<'a> {
    pub(super) fn new(index: &'a Index<ArenaWords>, tags: RangeInclusive<u32>) -> Self {
        let (first, last) = tags.into_inner();
        let rest = (first <= last).then_some((first, last));
        Self { index, rest, entries: Vec::new().into_iter() }
    }
}

impl Iterator for Export<'_> {
    type Item = (u32, u64);

    #[inline]
    fn next(&mut self) -> Option<(u32, u64)> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Some(entry);
            }
            let (first, last) = self.rest?;
            let (entries, highest) = self.index.entries_from(first)?;
            let end = entries.partition_point(|entry| entry.0 <= last);
            let start = entries.partition_point(|entry| entry.0 < first);
            self.rest =
                highest.checked_add(1).filter(|next| *next <= last).map(|next| (next, last));
            let mut entries = entries;
            entries.truncate(end);
            self.entries = entries.into_iter();
            if start > 0 {
                self.entries.nth(start - 1);
            }
        }
    }
}

impl<W: WordHeap> Index<W> {
    /// The sorted entries of the partition that holds `tag`, and its highest tag.
    pub(super) fn entries_from(&self, tag: u32) -> Option<(Vec<(u32, u64)>, u32)> {
        let _writing = self.write();
        let partition = self.partition(tag)?;
        let (_, highest) = partition.tags(tag);
        Some((self.sorted_entries(partition), highest))
    }
}
