//! Adding many entries at once: a partition at a time, each built once.

use crate::error::ArenaError;
use crate::partitioned_hash::builder::{Limits, lines_to_build};
use crate::partitioned_hash::directory::{Leaf, MOST_BITS};
use crate::partitioned_hash::index::Index;
use crate::partitioned_hash::pages::Pages;
use crate::partitioned_hash::tag_of;
use crate::partitioned_hash::writer::zero_value;
use crate::words::WordHeap;

impl<W: WordHeap> Index<W> {
    pub(crate) fn insert_many(&self, entries: &[(u64, u64)]) -> Result<(), ArenaError> {
        if entries.iter().any(|entry| entry.1 == 0) {
            return Err(zero_value());
        }
        if !entries.is_sorted_by_key(|entry| entry.0) {
            return Err(ArenaError::invalid_input("entries to insert that are not sorted by hash"));
        }
        let mut rest = entries;
        while !rest.is_empty() {
            let done = self.insert_run(&mut self.write(), rest);
            match done {
                Ok(later) => rest = later,
                Err(error) => {
                    self.undo(entries, rest.len());
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Adds the entries that fall into the first one's partition; the others are left.
    fn insert_run<'a>(
        &self,
        pages: &mut Pages,
        entries: &'a [(u64, u64)],
    ) -> Result<&'a [(u64, u64)], ArenaError> {
        let Some(tag) = entries.first().map(|entry| tag_of(entry.0)) else { return Ok(&[]) };
        let len = self.len() + entries.len() as u64;
        let limits = Limits::of(pages.shape, len);
        let Some(partition) = self.partition(tag) else {
            pages.expect(lines_to_build(len));
            self.build_first(pages, entries, limits)?;
            return Ok(&[]);
        };
        let (lowest, highest) = partition.tags(tag);
        let run = entries.partition_point(|entry| tag_of(entry.0) <= highest);
        let (run, rest) = entries.split_at_checked(run).unwrap_or((entries, &[]));
        let present = partition.counts(self.words()).entries;
        if (run.len() as u64) < present / 8 {
            for (index, (hash, value)) in run.iter().enumerate() {
                if let Err(error) = self.insert_locked(pages, tag_of(*hash), *value) {
                    self.remove_all(pages, run.get(..index).unwrap_or(&[]));
                    return Err(error);
                }
            }
            return Ok(rest);
        }
        let merged = merge(&self.sorted_entries(partition), run);
        let mut leaves = Vec::new();
        if let Err(error) =
            self.build(pages, &merged, (lowest, partition.depth), limits, &mut leaves)
        {
            self.give_back(pages, &leaves);
            return Err(error);
        }
        self.publish(pages, &leaves, Some(partition))?;
        self.set_len(self.len() + run.len() as u64);
        Ok(rest)
    }

    /// Removes the entries before the last `left`.
    fn undo(&self, entries: &[(u64, u64)], left: usize) {
        let done = entries.len().saturating_sub(left);
        self.remove_all(&mut self.write(), entries.get(..done).unwrap_or(&[]));
    }

    fn remove_all(&self, pages: &mut Pages, entries: &[(u64, u64)]) {
        for (hash, value) in entries {
            self.remove_locked(pages, tag_of(*hash), *value);
        }
    }

    /// Builds the partitions of an index that has none.
    pub(super) fn build_first(
        &self,
        pages: &mut Pages,
        entries: &[(u64, u64)],
        limits: Limits,
    ) -> Result<(), ArenaError> {
        let mut leaves = Vec::new();
        if let Err(error) = self.build(pages, entries, (0, 0), limits, &mut leaves) {
            self.give_back(pages, &leaves);
            return Err(error);
        }
        self.publish(pages, &leaves, None)?;
        self.set_len(entries.len() as u64);
        Ok(())
    }

    pub(crate) fn import(
        &self,
        entries: impl IntoIterator<Item = (u32, u64)>,
        expected: usize,
    ) -> Result<(), ArenaError> {
        let mut pages = self.write();
        if self.directory().is_some() {
            return Err(ArenaError::invalid_input("an import into an index that is not empty"));
        }
        let mut leaves = Vec::new();
        match self.import_leaves(&mut pages, entries, expected as u64, &mut leaves) {
            Ok(count) => {
                self.publish(&mut pages, &leaves, None)?;
                self.set_len(count);
                Ok(())
            }
            Err(error) => {
                self.give_back(&mut pages, &leaves);
                Err(error)
            }
        }
    }

    fn import_leaves(
        &self,
        pages: &mut Pages,
        entries: impl IntoIterator<Item = (u32, u64)>,
        expected: u64,
        leaves: &mut Vec<Leaf>,
    ) -> Result<u64, ArenaError> {
        let limits = Limits::of(pages.shape, expected);
        let parts = expected.div_ceil(limits.entries).max(1).next_power_of_two();
        let depth = parts.ilog2().min(MOST_BITS);
        pages.expect(lines_to_build(expected));
        let mut entries = entries.into_iter().peekable();
        let (mut last, mut count, mut part) = (0, 0, Vec::new());
        for number in 0..1u64 << depth {
            let lowest = u32::try_from((number << 32) >> depth).unwrap_or(u32::MAX);
            let highest = lowest | (u32::MAX >> depth);
            part.clear();
            while let Some((tag, value)) = entries.next_if(|entry| entry.0 <= highest) {
                if tag < last {
                    let message = format!("tag {tag:#x} after tag {last:#x} in an import");
                    return Err(ArenaError::invalid_input(message));
                }
                if value == 0 {
                    return Err(zero_value());
                }
                last = tag;
                part.push((tag, value));
            }
            count += part.len() as u64;
            self.build(pages, &part, (lowest, depth), limits, leaves)?;
        }
        Ok(count)
    }
}

/// Both sorted by tag; so is the result.
fn merge(present: &[(u32, u64)], added: &[(u64, u64)]) -> Vec<(u32, u64)> {
    let mut merged = Vec::with_capacity(present.len() + added.len());
    let mut present = present.iter().copied().peekable();
    for (hash, value) in added {
        let tag = tag_of(*hash);
        while let Some(entry) = present.next_if(|entry| entry.0 <= tag) {
            merged.push(entry);
        }
        merged.push((tag, *value));
    }
    merged.extend(present);
    merged
}
