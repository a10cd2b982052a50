//! Adding many entries at once: a partition at a time, each built once.

use crate::error::ArenaError;
use crate::partitioned_hash::builder::{Limits, lines_to_build};
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
            self.build_locked(pages, &merged, (lowest, partition.depth), limits, &mut leaves)
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
        if let Err(error) = self.build_locked(pages, entries, (0, 0), limits, &mut leaves) {
            self.give_back(pages, &leaves);
            return Err(error);
        }
        self.publish(pages, &leaves, None)?;
        self.set_len(entries.len() as u64);
        Ok(())
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
