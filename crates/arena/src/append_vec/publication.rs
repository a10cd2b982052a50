//! Where the chunks of an append-only vector are, and how much of them may be read.
//!
//! ```text
//! word 0        1         2         3        …  31
//!   | length | chunk 0 | chunk 1 | chunk 2 | … |      chunk k holds 32 << k elements
//! ```
//!
//! # Invariants
//!
//! 1. The length never falls. Only the writer, the one `Appender`, stores it; asserted by
//!    `publish`.
//! 2. A chunk is in its word before the length reaches into it: `ensure` puts it there; asserted by
//!    `publish`.
//! 3. A chunk's word is stored once: `ensure` stores where it finds 0.
//! 4. An element is written before the length covers it: `Appender::extend_with`. Stores release
//!    and loads acquire, so a reader that sees a length sees the chunks and the elements below it.

use crate::doubling::Place;
use crate::error::ArenaError;
use crate::words::{WordHeap, Words};
use esker_vfs::sabotage::Bug;

/// Elements in chunk 0.
const FIRST_CHUNK: usize = 32;
/// Chunks a vector can have.
const CHUNK_COUNT: usize = 31;
/// What fits in them.
const MOST_ELEMENTS: usize = FIRST_CHUNK * ((1 << CHUNK_COUNT) - 1);
/// Words of the table: the length and the chunks.
const TABLE_WORDS: u64 = 1 + CHUNK_COUNT as u64;

/// The place of element `index`.
#[inline]
pub(crate) const fn place_of(index: usize) -> Place {
    Place::of::<FIRST_CHUNK>(index)
}

#[derive(Debug)]
pub(crate) struct Publication<W> {
    words: W,
    table: u64,
}

impl<W: WordHeap> Publication<W> {
    pub(crate) fn new(words: W) -> Result<Self, ArenaError> {
        let table = words.allocate(TABLE_WORDS)?;
        Ok(Self { words, table })
    }

    pub(crate) fn words(&self) -> &W {
        &self.words
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.words.view().load(self.table)).unwrap_or(0)
    }

    /// The offset of a chunk; 0 when it is not there.
    #[inline]
    pub(crate) fn chunk(&self, chunk: u32) -> u64 {
        self.words.view().load(self.table + 1 + u64::from(chunk))
    }

    /// Makes room for elements `len..end`. Writer only.
    pub(crate) fn ensure(
        &self,
        len: usize,
        end: usize,
        allocate: impl Fn(usize) -> Result<u64, ArenaError>,
    ) -> Result<(), ArenaError> {
        if end > MOST_ELEMENTS {
            return Err(ArenaError::invalid_input(format!(
                "{end} elements in an append-only vector; the most is {MOST_ELEMENTS}"
            )));
        }
        let mut at = len;
        while at < end {
            let place = place_of(at);
            if self.chunk(place.chunk) == 0 {
                let offset = allocate(place.capacity)?;
                self.words.view().store(self.table + 1 + u64::from(place.chunk), offset);
            }
            at = place.end();
        }
        Ok(())
    }

    /// Lets readers see everything below `len`. Writer only.
    #[inline]
    pub(crate) fn publish(&self, len: usize) {
        let falls = Bug::AppendVecLengthFalls.is_planted() && self.peek_len() > 2;
        let len = if falls { 1 } else { len };
        debug_assert!(
            self.peek_len() <= len,
            "append-only vector: the length falls from {} to {len}",
            self.peek_len()
        );
        debug_assert!(
            len == 0 || self.chunk(place_of(len - 1).chunk) != 0,
            "append-only vector: length {len} without its chunk"
        );
        self.words.view().store(self.table, len as u64);
    }

    /// The length, for the writer, which no other thread changes.
    fn peek_len(&self) -> usize {
        // default: it was stored from a usize, so it always fits
        usize::try_from(self.words.view().peek(self.table)).unwrap_or_default()
    }
}
