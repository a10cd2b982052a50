//! Which block of the arena holds which positions of a byte heap.

use crate::doubling::Place;
use crate::error::ArenaError;
use crate::words::{WordHeap, Words};
use esker_vfs::sabotage::Bug;

/// Bytes in the smallest chunk.
const FIRST_CHUNK: usize = 256;
/// Chunks of doubling size; the last has `SLOT_BYTES`.
const CHUNK_COUNT: u64 = 15;
/// Positions in chunks of doubling size.
const DOUBLING_END: u64 = FIRST_CHUNK as u64 * ((1 << CHUNK_COUNT) - 1);
/// Bytes in a slot.
pub(crate) const SLOT_BYTES: u64 = 4 << 20;
/// Slots that the first slot table names.
const FIRST_TABLE: usize = 64;
const TABLE_COUNT: u64 = 16;

/// Positions whose bytes lie in one piece, and where in the arena.
pub(crate) struct Run {
    pub(crate) start: u64,
    pub(crate) capacity: u64,
    pub(crate) offset: u64,
}

#[derive(Debug)]
pub(crate) struct Chunks<W> {
    words: W,
    root: u64,
}

/// The first position from `start`, a chunk's start, at which `len` bytes fit in one piece.
pub(crate) fn first_fit(start: u64, len: usize) -> u64 {
    let mut position = start;
    while position < DOUBLING_END && capacity_at(position, len) < len as u64 {
        position += capacity_at(position, len);
    }
    position
}

/// Bytes of the run that begins at `position`, a chunk's start, for a string of `len` bytes.
pub(crate) fn capacity_at(position: u64, len: usize) -> u64 {
    match doubling_place(position) {
        Some(place) => place.capacity as u64,
        None => (len as u64).next_multiple_of(SLOT_BYTES).max(SLOT_BYTES),
    }
}

fn doubling_place(position: u64) -> Option<Place> {
    let index = usize::try_from(position).ok()?;
    (position < DOUBLING_END).then(|| Place::of::<FIRST_CHUNK>(index))
}

fn slot_place(slot: u64) -> Place {
    Place::of::<FIRST_TABLE>(usize::try_from(slot).unwrap_or(0))
}

impl<W: WordHeap> Chunks<W> {
    pub(crate) fn new(words: W) -> Result<Self, ArenaError> {
        let root = words.allocate(1 + CHUNK_COUNT + TABLE_COUNT)?;
        Ok(Self { words, root })
    }

    pub(crate) fn words(&self) -> &W {
        &self.words
    }

    /// The position behind the last published string.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.words.view().load(self.root)
    }

    #[inline]
    pub(crate) fn publish(&self, end: u64) {
        let before = self.words.view().peek(self.root);
        let falls = Bug::ByteHeapEndFalls.is_planted() && before > 64;
        let end = if falls { 32 } else { end };
        debug_assert!(before <= end, "byte heap: the end falls from {before} to {end}");
        self.words.view().store(self.root, end);
    }

    fn table_word(&self, place: Place) -> u64 {
        self.root + 1 + CHUNK_COUNT + u64::from(place.chunk)
    }

    /// The word that names a slot's block; `None` while its table does not exist.
    fn slot_word(&self, slot: u64) -> Option<u64> {
        let place = slot_place(slot);
        let table = self.words.view().load(self.table_word(place));
        (table != 0).then(|| table + (slot - place.start as u64))
    }

    fn slot_offset(&self, slot: u64) -> Option<u64> {
        let offset = self.words.view().load(self.slot_word(slot)?);
        (offset != 0).then_some(offset)
    }

    /// Where in the arena `len` bytes at `position` are, if blocks of this heap hold them in one
    /// piece.
    #[inline]
    pub(crate) fn locate(&self, position: u64, len: u64) -> Option<u64> {
        if let Some(place) = doubling_place(position) {
            let within = position - place.start as u64;
            let offset = self.words.view().load(self.root + 1 + u64::from(place.chunk));
            return (offset != 0 && within + len <= place.capacity as u64).then(|| offset + within);
        }
        let (first, within) =
            ((position - DOUBLING_END) / SLOT_BYTES, (position - DOUBLING_END) % SLOT_BYTES);
        let offset = self.slot_offset(first)?;
        for more in 1..(within + len).div_ceil(SLOT_BYTES) {
            if self.slot_offset(first + more)? != offset + more * SLOT_BYTES {
                return None;
            }
        }
        Some(offset + within)
    }

    /// The chunk or slot of a position; two slots that lie side by side are reported one by one.
    pub(crate) fn run_of(&self, position: u64) -> Option<Run> {
        let (start, capacity) = match doubling_place(position) {
            Some(place) => (place.start as u64, place.capacity as u64),
            None => (position - (position - DOUBLING_END) % SLOT_BYTES, SLOT_BYTES),
        };
        let offset = self.locate(start, 1)?;
        Some(Run { start, capacity, offset })
    }

    /// Allocates the slot tables for a run. Writer only.
    pub(crate) fn prepare(&self, start: u64, capacity: u64) -> Result<(), ArenaError> {
        for slot in slots(start, capacity) {
            let place = slot_place(slot);
            let word = self.table_word(place);
            if self.words.view().load(word) == 0 {
                self.words.view().store(word, self.words.allocate(place.capacity as u64)?);
            }
        }
        Ok(())
    }

    /// Names the block of a run whose tables are there. Writer only.
    pub(crate) fn set(&self, start: u64, capacity: u64, offset: u64) {
        if let Some(place) = doubling_place(start) {
            self.store_once(self.root + 1 + u64::from(place.chunk), offset);
        }
        for (index, slot) in slots(start, capacity).enumerate() {
            if let Some(word) = self.slot_word(slot) {
                self.store_once(word, offset + index as u64 * SLOT_BYTES);
            }
        }
    }

    fn store_once(&self, word: u64, offset: u64) {
        let before = self.words.view().peek(word);
        debug_assert!(before == 0, "byte heap: word {word} names {before} and then {offset}");
        self.words.view().store(word, offset);
    }
}

/// The slots of a run; none when it is a chunk of doubling size.
fn slots(start: u64, capacity: u64) -> std::ops::Range<u64> {
    match start.checked_sub(DOUBLING_END) {
        Some(distance) => distance / SLOT_BYTES..(distance + capacity) / SLOT_BYTES,
        None => 0..0,
    }
}
