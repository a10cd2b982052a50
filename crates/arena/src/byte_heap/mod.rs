//! An append-only heap of byte strings, each named by a 64-bit reference.
//!
//! A reference packs where the string is and how long it is, so that reading it is one look-up:
//!
//! ```text
//! 63                      24 23         0
//! | position (40 bits)      | length    |
//! ```
//!
//! Positions are logical. The first 8 MiB of them lie in 15 chunks of doubling size, 256 bytes to
//! 4 MiB, and all others in slots of 4 MiB. A string lies in one piece: when the rest of the chunk
//! is too short the writer skips it (and any smaller chunks), and a string above 4 MiB gets two
//! slots whose memory is contiguous.
//!
//! ```text
//! word 0      1 … 15           16 … 31
//!   | end   | chunk 0 … 14   | slot table 0 … 15 |     slot table j names 64 << j slots
//! ```
//!
//! # Invariants
//!
//! 1. `end` never falls. Only the one [`ByteWriter`] stores it; asserted by `Chunks::publish`.
//! 2. A chunk or slot word is stored once, since runs follow each other; asserted by `Chunks::set`.
//! 3. Bytes below `end` are never written again: `push` writes behind them. A reader checks a
//!    reference against `end`, so that a made-up reference reads other strings or nothing, but
//!    never memory being written.
#![allow(unsafe_code, reason = "turns published arena memory into slices")]

mod chunks;
#[cfg(test)]
mod tests;

use crate::arena::{Arena, Category};
use crate::error::ArenaError;
use crate::words::ArenaWords;
use chunks::{Chunks, SLOT_BYTES};
use std::sync::Arc;

/// Bits of a reference that hold the length.
const LENGTH_BITS: u32 = 24;
/// Positions that a reference can hold.
const MOST_POSITIONS: u64 = 1 << 40;

/// An append-only heap of byte strings, made as a pair: one [`ByteWriter`] and one [`ByteReader`]
/// that can be cloned.
#[derive(Debug)]
pub struct ByteHeap;

impl ByteHeap {
    /// The longest string, in bytes.
    pub const MOST_BYTES: usize = 8 << 20;

    /// An empty heap. It takes 256 bytes until the first string.
    ///
    /// # Errors
    /// `OutOfMemory` at the arena's limit.
    #[allow(clippy::new_ret_no_self, reason = "the heap is used through its two handles")]
    pub fn new(
        arena: &Arc<Arena>,
        category: Category,
    ) -> Result<(ByteWriter, ByteReader), ArenaError> {
        let chunks = Arc::new(Chunks::new(ArenaWords::new(arena, category))?);
        let writer =
            ByteWriter { chunks: Arc::clone(&chunks), end: 0, run_start: 0, run_end: 0, run: 0 };
        Ok((writer, ByteReader { chunks }))
    }
}

/// The one writer of a [`ByteHeap`].
#[derive(Debug)]
pub struct ByteWriter {
    chunks: Arc<Chunks<ArenaWords>>,
    /// The position behind the last string.
    end: u64,
    /// The contiguous positions being filled, and where in the arena they begin.
    run_start: u64,
    run_end: u64,
    run: u64,
}

impl ByteWriter {
    /// Another reader.
    #[must_use]
    pub fn reader(&self) -> ByteReader {
        ByteReader { chunks: Arc::clone(&self.chunks) }
    }

    /// Positions used so far: the lengths of all strings and the gaps between them, in bytes.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Copies `value` into the heap and returns its reference.
    ///
    /// # Errors
    /// `InvalidInput` for more than [`ByteHeap::MOST_BYTES`] or when the heap's 2^40 positions are
    /// used up, `OutOfMemory` at the arena's limit. Nothing is added then.
    #[inline]
    pub fn push(&mut self, value: &[u8]) -> Result<u64, ArenaError> {
        if value.is_empty() {
            return Ok(self.end << LENGTH_BITS);
        }
        let len = value.len() as u64;
        if self.end + len > self.run_end {
            self.start_run(value.len())?;
        }
        let offset = self.run + (self.end - self.run_start);
        let Some(address) = self.chunks.words().arena().data(offset, value.len()) else {
            return Err(ArenaError::invalid_input("a chunk lies outside the arena"));
        };
        // SAFETY: `offset` and the next `len` bytes lie in the current run, a block of this heap,
        // at or behind `end`, where no reader looks; `self` is the only writer. The source cannot
        // overlap: the only slices into the heap end below `end`.
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), address.as_ptr(), value.len()) };
        let reference = self.end << LENGTH_BITS | len;
        self.end += len;
        self.chunks.publish(self.end);
        Ok(reference)
    }

    /// Moves to a chunk or to slots with room for `len` bytes.
    #[cold]
    fn start_run(&mut self, len: usize) -> Result<(), ArenaError> {
        if len > ByteHeap::MOST_BYTES {
            let most = ByteHeap::MOST_BYTES;
            let message = format!("a string of {len} bytes; the most is {most} bytes");
            return Err(ArenaError::invalid_input(message));
        }
        let start = chunks::first_fit(self.run_end, len);
        let capacity = chunks::capacity_at(start, len);
        if start + capacity > MOST_POSITIONS {
            let message = format!("a byte heap holds at most {MOST_POSITIONS} bytes");
            return Err(ArenaError::invalid_input(message));
        }
        let words = self.chunks.words();
        self.chunks.prepare(start, capacity)?;
        let run = words.allocate_data(capacity)?;
        self.chunks.set(start, capacity, run);
        (self.run_start, self.run_end, self.run, self.end) = (start, start + capacity, run, start);
        Ok(())
    }
}

/// A reader of a [`ByteHeap`].
#[derive(Debug, Clone)]
pub struct ByteReader {
    chunks: Arc<Chunks<ArenaWords>>,
}

impl ByteReader {
    /// The string that `reference` names, or nothing when no such bytes were pushed.
    #[must_use]
    #[inline]
    pub fn get(&self, reference: u64) -> Option<&[u8]> {
        let len = reference & ((1 << LENGTH_BITS) - 1);
        let position = reference >> LENGTH_BITS;
        if position + len > self.chunks.end() {
            return None;
        }
        if len == 0 {
            return Some(&[]);
        }
        let offset = self.chunks.locate(position, len)?;
        let len = usize::try_from(len).ok()?;
        let address = self.chunks.words().arena().data(offset, len)?;
        // SAFETY: `locate` found the range in blocks of this heap that are contiguous; they stay
        // until the last handle goes, and `self` is borrowed. Everything below `end` was written
        // before `end` was published, or is a skipped rest that no one writes.
        Some(unsafe { std::slice::from_raw_parts(address.as_ptr(), len) })
    }

    /// The string that `reference` names; empty for a reference that this heap did not give.
    #[must_use]
    #[inline]
    pub fn bytes(&self, reference: u64) -> &[u8] {
        self.get(reference).unwrap_or(&[])
    }

    /// The strings in the chunk of the one that `reference` names, as far as they are published,
    /// in one piece, and the position of its first byte: who reads neighbours finds them there.
    #[must_use]
    pub fn window(&self, reference: u64) -> Option<(u64, &[u8])> {
        let (position, end) = (reference >> LENGTH_BITS, self.chunks.end());
        if position >= end {
            return None;
        }
        let run = self.chunks.run_of(position)?;
        let len = usize::try_from(run.capacity.min(end - run.start)).ok()?;
        let address = self.chunks.words().arena().data(run.offset, len)?;
        // SAFETY: the run is one block of this heap, and it stays until the last handle goes, while
        // `self` is borrowed. Its bytes below `end` were written before `end` was published, or
        // are a skipped rest, which is zero; no one writes either.
        Some((run.start, unsafe { std::slice::from_raw_parts(address.as_ptr(), len) }))
    }

    /// Positions used so far, in bytes.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.chunks.end()
    }
}

const _: () = assert!(ByteHeap::MOST_BYTES < 1 << LENGTH_BITS && 2 * SLOT_BYTES >= 8 << 20);
