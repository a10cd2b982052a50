//! A partition put together in ordinary memory before it is stored.
//!
//! Building is most of what an insert costs, so it does not go through atomic words: the lines are
//! filled in a buffer that stays in the cache, and stored once, in order.

use crate::error::ArenaError;
use crate::partitioned_hash::line::LineBuffer;
use crate::partitioned_hash::partition::Partition;
use crate::words::Words;

/// The lines of a partition that is not yet stored.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    partition: Partition,
    lines: &'a mut Vec<LineBuffer>,
    entries: u64,
}

impl<'a> Draft<'a> {
    /// An empty partition, in a buffer that keeps its memory.
    pub(super) fn new(lines: &'a mut Vec<LineBuffer>, partition: Partition) -> Self {
        lines.clear();
        lines.resize(usize::try_from(partition.lines()).unwrap_or(0), LineBuffer::default());
        Self { partition, lines, entries: 0 }
    }

    /// Adds an entry to the first line with room, from its home on. The partition has room for it.
    #[inline]
    pub(super) fn push(&mut self, tag: u32, value: u64) {
        let mut number = self.partition.home(tag);
        for _ in 0..self.partition.lines() {
            let line = usize::try_from(number).ok().and_then(|number| self.lines.get_mut(number));
            let Some(line) = line else { return };
            if !line.is_full() {
                line.push(tag, value);
                self.entries += 1;
                return;
            }
            line.set_overflow();
            number = self.partition.after(number);
        }
    }

    /// Stores the lines and the header; every word of both is new afterwards.
    ///
    /// # Errors
    /// `Corrupt` when it has not as many entries as it should: nothing is stored then, and the
    /// pages are lost.
    pub(super) fn write(
        self,
        words: impl Words,
        pages: &[u32],
        entries: u64,
    ) -> Result<(), ArenaError> {
        if self.entries != entries {
            let built = self.entries;
            let message = format!("index: a partition of {entries} entries is built with {built}");
            return Err(ArenaError::corrupt(message));
        }
        let partition = self.partition;
        partition.write(words, pages, entries);
        for (number, line) in (0..).zip(self.lines.iter()) {
            line.store(words, partition.line(words, number));
        }
        Ok(())
    }
}
