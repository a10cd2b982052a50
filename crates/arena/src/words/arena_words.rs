//! Words and data blocks of the arena, owned by one container.
#![allow(unsafe_code, reason = "frees the blocks of a container that has no handle left")]

use crate::arena::{Arena, Block, Category, Kind};
use crate::error::ArenaError;
use crate::sync::switch;
use crate::words::{WordHeap, Words};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

/// The blocks of one container: freed together when it is dropped.
#[derive(Debug)]
pub(crate) struct ArenaWords {
    arena: Arc<Arena>,
    category: Category,
    blocks: Mutex<Vec<Block>>,
    bytes: AtomicU64,
}

impl ArenaWords {
    pub(crate) fn new(arena: &Arc<Arena>, category: Category) -> Self {
        let (blocks, bytes) = (Mutex::new(Vec::new()), AtomicU64::new(0));
        Self { arena: Arc::clone(arena), category, blocks, bytes }
    }

    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The offset of `bytes` bytes of data, aligned to 64.
    pub(crate) fn allocate_data(&self, bytes: u64) -> Result<u64, ArenaError> {
        self.take(bytes, Kind::Data)
    }

    /// `count` words from `word`, as a slice; `None` beyond the arena's word part.
    pub(crate) fn slice(&self, word: u64, count: usize) -> Option<&[AtomicU64]> {
        let start = usize::try_from(word).ok()?;
        switch();
        self.arena.words().get(start..start.checked_add(count)?)
    }

    fn take(&self, bytes: u64, kind: Kind) -> Result<u64, ArenaError> {
        let block = self.arena.allocate(bytes, kind, self.category)?;
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(block);
        self.bytes.fetch_add(block.bytes, Ordering::Relaxed);
        Ok(block.offset)
    }
}

/// Every word of the arena, as address and length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArenaView<'a>(&'a [AtomicU64]);

impl<'a> ArenaView<'a> {
    #[inline]
    fn word(self, word: u64) -> Option<&'a AtomicU64> {
        usize::try_from(word).ok().and_then(|index| self.0.get(index))
    }
}

impl Words for ArenaView<'_> {
    #[inline]
    fn load(self, word: u64) -> u64 {
        switch();
        self.word(word).map_or(0, |word| word.load(Ordering::Acquire))
    }

    #[inline]
    fn peek(self, word: u64) -> u64 {
        self.word(word).map_or(0, |word| word.load(Ordering::Acquire))
    }

    #[inline]
    fn store(self, word: u64, value: u64) {
        switch();
        debug_assert!(self.word(word).is_some(), "word {word} is outside the arena");
        if let Some(word) = self.word(word) {
            word.store(value, Ordering::Release);
        }
    }

    #[inline]
    fn compare_exchange(self, word: u64, current: u64, new: u64) -> Result<u64, u64> {
        switch();
        self.word(word).map_or(Err(0), |word| {
            word.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
        })
    }

    #[inline]
    fn fence(self) {
        fence(Ordering::SeqCst);
    }
}

impl WordHeap for ArenaWords {
    type View<'a> = ArenaView<'a>;

    #[inline]
    fn view(&self) -> ArenaView<'_> {
        ArenaView(self.arena.words())
    }

    fn allocate(&self, count: u64) -> Result<u64, ArenaError> {
        Ok(self.take(count.saturating_mul(8), Kind::Words)? / 8)
    }

    fn allocated_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for ArenaWords {
    fn drop(&mut self) {
        let blocks = self.blocks.get_mut().unwrap_or_else(PoisonError::into_inner);
        for block in blocks.drain(..) {
            // SAFETY: the block came from this arena and is listed once. References into it borrow
            // the container that holds `self`, which is being dropped.
            unsafe { self.arena.free(block) };
        }
    }
}
