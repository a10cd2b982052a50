//! Look-ups: lock-free and optimistic.

use crate::partitioned_hash::directory::Directory;
use crate::partitioned_hash::index::Index;
use crate::partitioned_hash::line::Tags;
use crate::partitioned_hash::partition::Partition;
use crate::partitioned_hash::tag_of;
use crate::words::{WordHeap, Words};
use std::ops::ControlFlow;

/// Look-ups whose cache misses overlap in `candidates_many`.
const BATCH: usize = 16;

/// What a probe starts from, to be compared when it ends.
#[derive(Debug, Clone, Copy, Default)]
struct Start {
    directory: Directory,
    slot: u64,
    partition: Partition,
    home: u64,
}

impl Start {
    /// The home line.
    #[inline]
    fn first(&self, words: impl Words) -> Probe {
        let line = self.partition.line(words, self.home);
        Probe { line, tags: Tags::read(words, line) }
    }
}

/// A line that was read: its first word and its tags.
#[derive(Debug, Clone, Copy, Default)]
struct Probe {
    line: u64,
    tags: Tags,
}

impl<W: WordHeap> Index<W> {
    #[inline]
    pub(crate) fn candidates<B>(
        &self,
        tag: u32,
        mut visit: impl FnMut(u64) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let words = self.words();
        while let Some(directory) = self.directory_in(words) {
            let start = start(words, directory, tag);
            probe(words, tag, start, start.first(words), &mut visit)?;
            if self.unchanged(words, tag, start) {
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
            let words = self.words();
            let Some(directory) = self.directory_in(words) else { return };
            // The loads of one loop do not depend on each other, so they wait together.
            let (mut starts, mut probes) = ([Start::default(); BATCH], [Probe::default(); BATCH]);
            for (start, hash) in starts.iter_mut().zip(hashes) {
                *start = self::start(words, directory, tag_of(*hash));
            }
            for (probe, start) in probes.iter_mut().zip(&starts) {
                *probe = start.first(words);
            }
            for (index, ((hash, start), probe)) in hashes.iter().zip(starts).zip(probes).enumerate()
            {
                let (tag, position) = (tag_of(*hash), batch * BATCH + index);
                let mut visit = |value| visit(position, value);
                let ended = self::probe(words, tag, start, probe, &mut visit).is_break();
                if !ended && !self.unchanged(words, tag, start) {
                    let _ = self.candidates(tag, visit);
                }
            }
        }
    }

    /// Whether the partition read is still the one that holds `tag`.
    ///
    /// Every load acquires and every store releases. So if the probe read one word that was stored
    /// after the partition, or the directory, was replaced, this sees the replacement.
    #[inline]
    fn unchanged(&self, words: W::View<'_>, tag: u32, start: Start) -> bool {
        words.load(start.directory.slot(tag)) == start.slot
            && self.directory_in(words) == Some(start.directory)
    }
}

#[inline]
fn start(words: impl Words, directory: Directory, tag: u32) -> Start {
    let slot = words.load(directory.slot(tag));
    let partition = Partition::read(words, Directory::header(slot));
    Start { directory, slot, partition, home: partition.home(tag) }
}

/// Walks the lines from the home line, which was read, while they overflowed.
#[inline]
fn probe<B>(
    words: impl Words,
    tag: u32,
    start: Start,
    mut probe: Probe,
    visit: &mut impl FnMut(u64) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let partition = start.partition;
    let mut number = start.home;
    // Recycled lines may all have the overflow bit, which is why there is a bound.
    for _ in 0..partition.lines() {
        for slot in probe.tags.matches(tag) {
            let value = words.load(probe.line + slot);
            if value != 0 {
                visit(value)?;
            }
        }
        if !probe.tags.overflowed() {
            break;
        }
        number = partition.after(number);
        let line = partition.line(words, number);
        probe = Probe { line, tags: Tags::read(words, line) };
    }
    ControlFlow::Continue(())
}
