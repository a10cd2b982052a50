//! Which blocks are free: size classes, free lists and a bump pointer per part of the range.
//!
//! Classes are the powers of two and one and a half times them: 64, 128, 192, 256, 384, 512, 768 …
//! (96 is left out, so that every block is aligned to a cache line). A block goes back to the list
//! of its class and is never split or joined: the containers ask for few sizes, and doubling chunks
//! are exact.

use crate::arena::category::Category;
use crate::error::ArenaError;

/// Smallest block and alignment of every block, in bytes.
pub(crate) const LEAST_BLOCK: u64 = 64;
/// Blocks of this size and more come from the part with huge pages.
const LARGE_BLOCK: u64 = 256 << 10;
/// Freed blocks of this size and more may be given back to the system.
const RETURNABLE_BLOCK: u64 = 1 << 20;
/// How many bytes of returnable blocks may wait, resident, on the free lists.
const RESIDENT_FREE_LIMIT: u64 = 64 << 20;
/// Two classes per power of two up to 2^47.
const CLASS_COUNT: usize = 2 * 48;

/// How a block is accessed: as atomic words, or as plain bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Words,
    Data,
}

/// An allocated block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) offset: u64,
    /// The size of its class, which may be more than was requested.
    pub(crate) bytes: u64,
    pub(crate) kind: Kind,
    pub(crate) category: Category,
    /// Whether it reads as zeros.
    pub(crate) zeroed: bool,
}

/// A part of the range, used up from `next`.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) next: u64,
    pub(crate) end: u64,
}

impl Part {
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let offset = self.next;
        let next = offset.checked_add(bytes)?;
        if next > self.end {
            return None;
        }
        self.next = next;
        Some(offset)
    }
}

/// The free blocks of one class. Resident ones go first: clearing them, where that is needed at
/// all, costs less than new pages.
#[derive(Debug, Clone, Default)]
struct Free {
    resident: Vec<u64>,
    returned: Vec<u64>,
}

/// The parts and free lists of one [`Kind`].
#[derive(Debug)]
struct Pool {
    small: Part,
    large: Part,
    free: Vec<Free>,
}

impl Pool {
    fn new(small: Part, large: Part) -> Self {
        Self { small, large, free: vec![Free::default(); CLASS_COUNT] }
    }

    /// A full small part overflows into the large one; the reverse would defeat huge pages.
    fn bump(&mut self, bytes: u64) -> Option<u64> {
        if bytes < LARGE_BLOCK {
            self.small.take(bytes).or_else(|| self.large.take(bytes))
        } else {
            self.large.take(bytes)
        }
    }
}

#[derive(Debug)]
pub(crate) struct Allocator {
    words: Pool,
    data: Pool,
    used: [u64; Category::ALL.len()],
    limit: u64,
    /// Bytes on free lists in returnable blocks that still have their pages.
    resident_free: u64,
}

impl Allocator {
    /// `words` and `data` are (small part, large part).
    pub(crate) fn new(words: (Part, Part), data: (Part, Part), limit: u64) -> Self {
        Self {
            words: Pool::new(words.0, words.1),
            data: Pool::new(data.0, data.1),
            used: [0; Category::ALL.len()],
            limit,
            resident_free: 0,
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.iter().sum()
    }

    pub(crate) fn used_by(&self, category: Category) -> u64 {
        self.used.get(category.index()).copied().unwrap_or(0)
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Counts bytes without a block; false when a part or the whole would pass its most.
    pub(crate) fn count(
        &mut self,
        bytes: u64,
        category: Category,
        category_most: u64,
        most: u64,
    ) -> bool {
        let all = self.used().checked_add(bytes);
        let fits = all.is_some_and(|all| all <= most.min(self.limit));
        let Some(total) = self.used.get_mut(category.index()) else { return false };
        let fits = fits && total.saturating_add(bytes) <= category_most;
        if fits {
            *total += bytes;
        }
        fits
    }

    /// Takes counted bytes off again.
    pub(crate) fn discount(&mut self, bytes: u64, category: Category) {
        if let Some(total) = self.used.get_mut(category.index()) {
            *total = total.saturating_sub(bytes);
        }
    }

    pub(crate) fn allocate(
        &mut self,
        bytes: u64,
        kind: Kind,
        category: Category,
    ) -> Result<Block, ArenaError> {
        let used = self.used();
        let refused = || ArenaError::out_of_memory(bytes, used, self.limit);
        let (class, size) = class_of(bytes).ok_or_else(refused)?;
        if used.checked_add(size).is_none_or(|after| after > self.limit) {
            return Err(refused());
        }
        let pool = match kind {
            Kind::Words => &mut self.words,
            Kind::Data => &mut self.data,
        };
        let mut free = pool.free.get_mut(class);
        let resident = free.as_mut().and_then(|free| free.resident.pop());
        let (offset, zeroed) = if let Some(offset) = resident {
            if size >= RETURNABLE_BLOCK {
                self.resident_free = self.resident_free.saturating_sub(size);
            }
            (offset, false)
        } else if let Some(offset) =
            free.and_then(|free| free.returned.pop()).or_else(|| pool.bump(size))
        {
            (offset, true)
        } else {
            return Err(ArenaError::out_of_memory(bytes, used, self.limit));
        };
        if let Some(total) = self.used.get_mut(category.index()) {
            *total += size;
        }
        Ok(Block { offset, bytes: size, kind, category, zeroed })
    }

    /// Whether freeing `block` should give its pages back first.
    pub(crate) fn wants_discard(&self, block: &Block) -> bool {
        block.bytes >= RETURNABLE_BLOCK
            && self.resident_free.saturating_add(block.bytes) > RESIDENT_FREE_LIMIT
    }

    /// Puts a block on its free list; `zeroed` tells that its pages went back to the system.
    pub(crate) fn free(&mut self, block: Block, zeroed: bool) {
        if let Some(total) = self.used.get_mut(block.category.index()) {
            *total = total.saturating_sub(block.bytes);
        }
        if block.bytes >= RETURNABLE_BLOCK && !zeroed {
            self.resident_free += block.bytes;
        }
        let pool = match block.kind {
            Kind::Words => &mut self.words,
            Kind::Data => &mut self.data,
        };
        if let Some((class, _)) = class_of(block.bytes)
            && let Some(list) = pool.free.get_mut(class)
        {
            let list = if zeroed { &mut list.returned } else { &mut list.resident };
            list.push(block.offset);
        }
    }
}

/// The class that holds `bytes`, as its number and its size.
fn class_of(bytes: u64) -> Option<(usize, u64)> {
    let bytes = bytes.max(LEAST_BLOCK);
    let power = bytes.checked_next_power_of_two()?;
    let three_quarters = power / 4 * 3;
    let class = 2 * power.trailing_zeros() as usize;
    let (class, size) = if bytes <= three_quarters && three_quarters >= 2 * LEAST_BLOCK {
        (class - 1, three_quarters)
    } else {
        (class, power)
    };
    (class < CLASS_COUNT).then_some((class, size))
}
