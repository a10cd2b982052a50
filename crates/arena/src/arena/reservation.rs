//! Memory that is taken elsewhere and counted here, so that one limit holds for both.

use std::sync::Arc;

use super::{Arena, Category};

/// A number of bytes counted as one part of the engine's, until it is dropped.
///
/// ```
/// use esker_arena::{Arena, ArenaOptions, Category, Reservation};
///
/// # fn main() -> Result<(), esker_arena::ArenaError> {
/// let arena = Arena::new(ArenaOptions::default())?;
/// let mut buffers = Reservation::new(&arena, Category::Load);
/// assert!(buffers.grow(1_000, 1_500, u64::MAX));
/// assert!(!buffers.grow(2_000, 1_500, u64::MAX));
/// assert_eq!((buffers.bytes(), arena.used_by(Category::Load)), (1_000, 1_000));
/// drop(buffers);
/// assert_eq!(arena.used_bytes(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Reservation {
    arena: Arc<Arena>,
    category: Category,
    bytes: u64,
}

impl Reservation {
    /// Nothing reserved yet.
    #[must_use]
    pub fn new(arena: &Arc<Arena>, category: Category) -> Self {
        Self { arena: Arc::clone(arena), category, bytes: 0 }
    }

    /// How many bytes are reserved.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes the reservation at least `bytes` large. False, and nothing changed, when its category
    /// would pass `category_most`, or all that is in use `most` or the arena's limit.
    #[must_use]
    pub fn grow(&mut self, bytes: u64, category_most: u64, most: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let granted = more == 0 || self.arena.count(more, self.category, category_most, most);
        if granted {
            self.bytes += more;
        }
        granted
    }

    /// Makes the reservation at most `bytes` large.
    pub fn shrink(&mut self, bytes: u64) {
        let less = self.bytes.saturating_sub(bytes);
        self.bytes -= less;
        if less > 0 {
            self.arena.discount(less, self.category);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}
