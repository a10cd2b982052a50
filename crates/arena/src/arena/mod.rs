//! The arena: one reserved address range from which every container takes its blocks.

mod allocator;
mod category;
mod mapping;
mod reservation;
#[cfg(test)]
mod tests;

use crate::error::ArenaError;
use allocator::{Allocator, LEAST_BLOCK, Part};
pub use category::Category;
use mapping::{HUGE_PAGE, Mapping, PageSize};
pub use reservation::Reservation;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use allocator::{Block, Kind};

/// How much address space and memory an [`Arena`] may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaOptions {
    /// Address space to reserve, in bytes. Costs no memory until used. When the system refuses,
    /// half of it is tried, and so on down to 1 GiB.
    pub reserve_bytes: u64,
    /// The most memory that blocks may use together, in bytes. The reservation bounds it as well.
    pub limit_bytes: u64,
}

impl Default for ArenaOptions {
    /// 64 GiB reserved, all of it usable.
    fn default() -> Self {
        Self { reserve_bytes: 64 << 30, limit_bytes: u64::MAX }
    }
}

/// One reserved address range, and the allocator of its blocks.
///
/// Blocks are named by their offset in the range and belong to a container, which frees them when
/// its last handle goes. The first blocks below 256 KiB lie on 4 KiB pages, later and larger ones
/// on huge pages.
///
/// ```
/// use esker_arena::{AppendVec, Arena, ArenaOptions, Category};
///
/// # fn main() -> Result<(), esker_arena::ArenaError> {
/// let arena = Arena::new(ArenaOptions::default())?;
/// let (mut prices, reader) = AppendVec::<u64>::new(&arena, Category::Group)?;
/// prices.append(&[120, 80, 95])?;
/// assert_eq!(reader.slice(0, 3), &[120, 80, 95]);
/// assert!(arena.used_by(Category::Group) > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Arena {
    mapping: Mapping,
    allocator: Mutex<Allocator>,
}

impl Arena {
    /// Reserves the address range.
    ///
    /// # Errors
    /// `Unavailable` when the system refuses even the smallest reservation.
    pub fn new(options: ArenaOptions) -> Result<Arc<Self>, ArenaError> {
        let wanted =
            usize::try_from(options.reserve_bytes.min(MOST_RESERVED)).unwrap_or(usize::MAX);
        let mapping = Mapping::reserve(wanted)?;
        let (len, words_end) = (mapping.len(), mapping.words_end());
        let (words_split, data_split) = (len / 8, len / 8 * 7);
        // Small blocks lie close together: past the first of them, huge pages fill up as well.
        mapping.prefer(0..SMALL_PAGES_BYTES, PageSize::Small);
        mapping.prefer(SMALL_PAGES_BYTES..data_split, PageSize::Huge);
        mapping.prefer(data_split..data_split + SMALL_PAGES_BYTES, PageSize::Small);
        mapping.prefer(data_split + SMALL_PAGES_BYTES..len, PageSize::Huge);
        let part = |start: usize, end: usize| Part { next: start as u64, end: end as u64 };
        // Offset 0 means "none" everywhere, so the first line is never handed out.
        let mut small_words = part(0, words_split);
        small_words.next = LEAST_BLOCK;
        let allocator = Allocator::new(
            (small_words, part(words_split, words_end)),
            (part(data_split, len), part(words_end, data_split)),
            options.limit_bytes.min(len as u64),
        );
        Ok(Arc::new(Self { mapping, allocator: Mutex::new(allocator) }))
    }

    /// Bytes in use by all containers.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.lock().used()
    }

    /// Bytes in use by one part of the engine.
    #[must_use]
    pub fn used_by(&self, category: Category) -> u64 {
        self.lock().used_by(category)
    }

    /// The most bytes that may be in use.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.lock().limit()
    }

    /// Bytes of address space reserved.
    #[must_use]
    pub fn reserved_bytes(&self) -> u64 {
        self.mapping.len() as u64
    }

    fn lock(&self) -> MutexGuard<'_, Allocator> {
        // Every change of the allocator is complete before anything could panic.
        self.allocator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every word of the range's word part; a word's index is its offset over 8.
    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        self.mapping.words()
    }

    /// The address of `len` bytes of data at `offset`.
    #[inline]
    pub(crate) fn data(&self, offset: u64, len: usize) -> Option<NonNull<u8>> {
        self.mapping.data(offset, len)
    }

    /// Counts bytes that are taken elsewhere, unless a part or the whole would pass its most.
    fn count(&self, bytes: u64, category: Category, category_most: u64, most: u64) -> bool {
        self.lock().count(bytes, category, category_most, most)
    }

    /// Takes counted bytes off again.
    fn discount(&self, bytes: u64, category: Category) {
        self.lock().discount(bytes, category);
    }

    /// A block of at least `bytes` bytes. Words read as zero; data may hold old bytes.
    pub(crate) fn allocate(
        &self,
        bytes: u64,
        kind: Kind,
        category: Category,
    ) -> Result<Block, ArenaError> {
        let mut block = self.lock().allocate(bytes, kind, category)?;
        if block.kind == Kind::Words && !block.zeroed {
            self.zero(&block);
            block.zeroed = true;
        }
        Ok(block)
    }

    fn zero(&self, block: &Block) {
        let bounds = usize::try_from(block.offset / 8)
            .ok()
            .zip(usize::try_from((block.offset + block.bytes) / 8).ok());
        let words = bounds.and_then(|(start, end)| self.words().get(start..end));
        for word in words.unwrap_or(&[]) {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Takes a block back.
    ///
    /// # Safety
    /// `block` came from this arena's `allocate`, is freed once, and no reference into it lives.
    #[allow(unsafe_code, reason = "freed memory must have no reader, which only its owner knows")]
    pub(crate) unsafe fn free(&self, block: Block) {
        let discard = self.lock().wants_discard(&block);
        let bounds = usize::try_from(block.offset)
            .ok()
            .zip(usize::try_from(block.offset + block.bytes).ok());
        let zeroed = match bounds {
            // SAFETY: the caller has no reference into the block, and it is not yet on a free list.
            Some((start, end)) if discard => unsafe { self.mapping.discard(start..end) },
            _ => false,
        };
        self.lock().free(block, zeroed);
    }
}

/// Bytes of small blocks, words and data each, that lie on 4 KiB pages: a small database takes
/// little memory.
const SMALL_PAGES_BYTES: usize = 2 * HUGE_PAGE;

/// The partitioned hash names a line of 64 bytes of the word part with 32 bits.
const MOST_RESERVED: u64 = 512 << 30;

const _: () = assert!(HUGE_PAGE.is_multiple_of(4096) && usize::BITS == 64);
