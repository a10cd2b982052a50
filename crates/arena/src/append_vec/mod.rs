//! An append-only vector: one writer, any number of readers, elements that never move.
//!
//! Chunk `k` holds `32 << k` elements whatever their width, so columns of one table have their
//! chunk boundaries at the same rows, and a loop over rows can take equal pieces of all of them.
//!
//! ```text
//! rows   0      32           96                         224
//!        | 32   | 64         | 128                      | 256 …
//! ```
//!
//! An append writes the elements behind the published length, allocating chunks as needed, and then
//! publishes the new length with one store. Readers load the length first and never look beyond it.
//!
//! Differences from a plain vector: `new` and `append` can fail (memory), and `slice` returns only
//! the part of the range that lies in one chunk.
#![allow(unsafe_code, reason = "turns published arena memory into slices")]

#[cfg(all(test, loom))]
mod models;
mod publication;
#[cfg(test)]
mod tests;

use crate::arena::{Arena, Category};
use crate::doubling::Place;
use crate::error::ArenaError;
use crate::words::ArenaWords;
use bytemuck::Pod;
use publication::{Publication, place_of};
use std::marker::PhantomData;
use std::sync::Arc;

/// An append-only vector of plain values, made as a pair: one [`Appender`] and one
/// [`AppendReader`] that can be cloned.
#[derive(Debug)]
pub struct AppendVec<T>(PhantomData<T>);

impl<T: Pod> AppendVec<T> {
    /// An empty vector. It takes 256 bytes until the first append.
    ///
    /// # Errors
    /// `OutOfMemory` at the arena's limit.
    #[allow(clippy::new_ret_no_self, reason = "the vector is used through its two handles")]
    pub fn new(
        arena: &Arc<Arena>,
        category: Category,
    ) -> Result<(Appender<T>, AppendReader<T>), ArenaError> {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= 64, "unsuitable element type") };
        let publication = Publication::new(ArenaWords::new(arena, category))?;
        let shared = Arc::new(Shared { publication, element: PhantomData });
        let writer = Appender {
            shared: Arc::clone(&shared),
            len: 0,
            allocated: 0,
            chunk: place_of(0),
            chunk_offset: 0,
        };
        Ok((writer, AppendReader { shared }))
    }
}

/// The index at which the chunk that holds element `start` ends, in every [`AppendVec`].
#[must_use]
#[inline]
pub const fn chunk_end(start: usize) -> usize {
    place_of(start).end()
}

#[derive(Debug)]
struct Shared<T> {
    publication: Publication<ArenaWords>,
    element: PhantomData<T>,
}

impl<T: Pod> Shared<T> {
    /// The address of element `index`, in a chunk that exists.
    #[inline]
    fn address(&self, index: usize, place: Place) -> Option<std::ptr::NonNull<T>> {
        let offset = self.publication.chunk(place.chunk);
        let bytes = place.capacity * size_of::<T>();
        let base = self.publication.words().arena().data(offset, bytes)?.cast::<T>();
        // SAFETY: `index` lies in the chunk, whose bytes are all inside the arena's data part.
        Some(unsafe { base.add(index - place.start) })
    }

    /// Published elements from `start` to `stop`, both within `place`.
    #[inline]
    fn published(&self, start: usize, stop: usize, place: Place) -> &[T] {
        match self.address(start, place) {
            // SAFETY: the chunk belongs to this vector until its last handle goes, and `self` is
            // borrowed from one. Everything below the published length was written before it was
            // published and is never written again; the writer's slices begin at the length. The
            // chunk is aligned to 64 and T accepts any initialised bytes.
            Some(address) => unsafe { std::slice::from_raw_parts(address.as_ptr(), stop - start) },
            None => &[],
        }
    }
}

/// The one writer of an [`AppendVec`].
#[derive(Debug)]
pub struct Appender<T> {
    shared: Arc<Shared<T>>,
    len: usize,
    /// Elements that the chunks have room for.
    allocated: usize,
    /// The chunk last written to, and where in the arena it is; 0 before the first.
    chunk: Place,
    chunk_offset: u64,
}

impl<T: Pod> Appender<T> {
    /// Elements appended so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was appended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Another reader.
    #[must_use]
    pub fn reader(&self) -> AppendReader<T> {
        AppendReader { shared: Arc::clone(&self.shared) }
    }

    /// Allocates room for `count` more elements, so that appending them cannot fail.
    ///
    /// # Errors
    /// `OutOfMemory` at the arena's limit, `InvalidInput` beyond 2^36 elements.
    #[inline]
    pub fn reserve(&mut self, count: usize) -> Result<(), ArenaError> {
        let end = self.end_of(count)?;
        if end <= self.allocated { Ok(()) } else { self.allocate(end) }
    }

    #[cold]
    fn allocate(&mut self, end: usize) -> Result<(), ArenaError> {
        let publication = &self.shared.publication;
        publication.ensure(self.len, end, |capacity| {
            let bytes = (capacity as u64).saturating_mul(size_of::<T>() as u64);
            publication.words().allocate_data(bytes)
        })?;
        self.allocated = place_of(end - 1).end();
        Ok(())
    }

    /// Appends one element and publishes it.
    ///
    /// # Errors
    /// As [`Appender::reserve`]; nothing is appended then.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), ArenaError> {
        self.append(&[value])
    }

    /// Appends `values` and publishes them together.
    ///
    /// # Errors
    /// As [`Appender::reserve`]; nothing is appended then.
    #[inline]
    pub fn append(&mut self, values: &[T]) -> Result<(), ArenaError> {
        let mut rest = values;
        self.extend_with(values.len(), |piece| {
            if let Some((now, later)) = rest.split_at_checked(piece.len()) {
                piece.copy_from_slice(now);
                rest = later;
            }
        })
    }

    /// Appends `count` elements that `fill` writes, piece by piece in order, and publishes them
    /// together. Pieces hold unspecified values before they are filled and end at chunk boundaries.
    ///
    /// # Errors
    /// As [`Appender::reserve`]; nothing is appended then.
    #[inline]
    pub fn extend_with(
        &mut self,
        count: usize,
        mut fill: impl FnMut(&mut [T]),
    ) -> Result<(), ArenaError> {
        self.reserve(count)?;
        let end = self.end_of(count)?;
        let mut at = self.len;
        while at < end {
            if at >= self.chunk.end() || self.chunk_offset == 0 {
                self.chunk = place_of(at);
                self.chunk_offset = self.shared.publication.chunk(self.chunk.chunk);
            }
            let stop = end.min(self.chunk.end());
            let offset = self.chunk_offset + ((at - self.chunk.start) * size_of::<T>()) as u64;
            let arena = self.shared.publication.words().arena();
            let Some(address) = arena.data(offset, (stop - at) * size_of::<T>()) else {
                return Err(ArenaError::invalid_input("a chunk lies outside the arena"));
            };
            let address = address.cast::<T>();
            // SAFETY: the elements from `self.len` on are unpublished, so no reader has a slice of
            // them; `self` is the only writer and is borrowed exclusively for this piece's life.
            // The piece lies in one chunk of this vector, which `reserve` made. The memory is
            // initialised, aligned to 64, and T accepts any bytes.
            fill(unsafe { std::slice::from_raw_parts_mut(address.as_ptr(), stop - at) });
            at = stop;
        }
        self.len = end;
        self.shared.publication.publish(end);
        Ok(())
    }

    #[inline]
    fn end_of(&self, count: usize) -> Result<usize, ArenaError> {
        self.len
            .checked_add(count)
            .ok_or_else(|| ArenaError::invalid_input(format!("{count} elements to append")))
    }
}

/// A reader of an [`AppendVec`]: sees every element whose append returned.
#[derive(Debug)]
pub struct AppendReader<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Clone for AppendReader<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Pod> AppendReader<T> {
    /// Elements published so far.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.shared.publication.len()
    }

    /// Whether nothing is published.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `index`, if it is published.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<T> {
        if index >= self.len() {
            return None;
        }
        self.shared.published(index, index + 1, place_of(index)).first().copied()
    }

    /// The published elements from `start` that lie in one piece: up to `end`, the end of the chunk
    /// or the published length, whichever comes first. Empty when `start` is at or beyond `end` or
    /// the length.
    #[must_use]
    #[inline]
    pub fn slice(&self, start: usize, end: usize) -> &[T] {
        let end = end.min(self.len());
        if start >= end {
            return &[];
        }
        let place = place_of(start);
        self.shared.published(start, end.min(place.end()), place)
    }

    /// The index at which the chunk that holds element `start` ends. The same for every vector.
    #[must_use]
    #[inline]
    pub fn chunk_end(&self, start: usize) -> usize {
        chunk_end(start)
    }
}
