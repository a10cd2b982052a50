//! Look-ups: lock-free and optimistic.

use crate::partitioned_hash::directory::Directory;
use crate::partitioned_hash::index::Index;
use crate::partitioned_hash::line::Tags;
use crate::partitioned_hash::partition::Partition;
use crate::partitioned_hash::tag_of;
use crate::words::Words;
use std::ops::ControlFlow;

/// Look-ups whose cache misses overlap in `candidates_many`.
const BATCH: usize = 16;

/// What a probe starts from, to be compared when it ends.
#[derive(Debug, Clone, Copy)]
struct Start {
    directory: Directory,
    slot: u64,
    partition: Partition,
    home: u64,
}

impl<W: Words> Index<W> {
    #[inline]
    pub(crate) fn candidates<B>(
        &self,
        tag: u32,
        mut visit: impl FnMut(u64) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        while let Some(start) = self.start(tag) {
            let line = start.partition.line(self.words(), start.home);
            let tags = Tags::read(self.words(), line);
            self.probe(tag, start, line, tags, &mut visit)?;
            if self.unchanged(tag, start) {
                break;
            }
        }
        ControlFlow::Continue(())
    }

    pub(crate) fn candidates_many(
        &self,
        hashes: &[u64],
        mut visit: impl FnMut(usize, u64) -> ControlFlow<()>,
    ) {
        for (batch, hashes) in hashes.chunks(BATCH).enumerate() {
            // The loads of one loop do not depend on each other, so they wait together.
            let mut starts = [None; BATCH];
            for (start, hash) in starts.iter_mut().zip(hashes) {
                *start = self.start(tag_of(*hash)).map(|start| {
                    let line = start.partition.line(self.words(), start.home);
                    (start, line)
                });
            }
            let lines = starts.map(|start| {
                start.map(|(start, line)| (start, line, Tags::read(self.words(), line)))
            });
            for (index, (found, hash)) in lines.into_iter().zip(hashes).enumerate() {
                let Some((start, line, tags)) = found else { continue };
                let (tag, position) = (tag_of(*hash), batch * BATCH + index);
                let mut visit = |value| visit(position, value);
                let ended = self.probe(tag, start, line, tags, &mut visit).is_break();
                if !ended && !self.unchanged(tag, start) {
                    let _ = self.candidates(tag, visit);
                }
            }
        }
    }

    #[inline]
    fn start(&self, tag: u32) -> Option<Start> {
        let directory = self.directory()?;
        let slot = self.words().load(directory.slot(tag));
        let partition = Partition::read(self.words(), Directory::header(slot));
        Some(Start { directory, slot, partition, home: partition.home(tag) })
    }

    /// Whether the partition read is still the one that holds `tag`.
    ///
    /// Every load acquires and every store releases. So if the probe read one word that was stored
    /// after the partition, or the directory, was replaced, this sees the replacement.
    #[inline]
    fn unchanged(&self, tag: u32, start: Start) -> bool {
        self.words().load(start.directory.slot(tag)) == start.slot
            && self.directory() == Some(start.directory)
    }

    /// Walks the lines from the home line, whose place and tags are given, while they overflowed.
    #[inline]
    fn probe<B>(
        &self,
        tag: u32,
        start: Start,
        mut line: u64,
        mut tags: Tags,
        visit: &mut impl FnMut(u64) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let partition = start.partition;
        let mut number = start.home;
        // Recycled lines may all have the overflow bit, hence the bound.
        for _ in 0..partition.lines() {
            for slot in tags.matches(tag) {
                let value = self.words().load(line + slot);
                if value != 0 {
                    visit(value)?;
                }
            }
            if !tags.overflowed() {
                break;
            }
            number = partition.after(number);
            line = partition.line(self.words(), number);
            tags = Tags::read(self.words(), line);
        }
        ControlFlow::Continue(())
    }
}
