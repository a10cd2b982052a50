//! A word that threads can wait on.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::sync::switch;

/// A counter that waiters sleep on until it moves.
///
/// Read [`Event::generation`], check the condition, then call [`Tasks::wait`] with the generation
/// read: a signal between the two is never lost, because the counter has moved by then.
///
/// [`Tasks::wait`]: crate::Tasks::wait
#[derive(Debug, Default)]
pub struct Event {
    generation: AtomicU32,
    waiters: AtomicU32,
}

impl Event {
    /// An event at generation zero.
    #[must_use]
    pub const fn new() -> Self {
        Self { generation: AtomicU32::new(0), waiters: AtomicU32::new(0) }
    }

    /// How often the event has been signalled, modulo 2³².
    #[must_use]
    pub fn generation(&self) -> u32 {
        switch();
        self.generation.load(Ordering::Acquire)
    }

    /// Moves the counter. Only implementations of [`Tasks`](crate::Tasks) call this.
    pub fn advance(&self) {
        switch();
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The word itself, for a futex.
    #[must_use]
    pub fn word(&self) -> &AtomicU32 {
        &self.generation
    }

    /// How many threads are asleep, or about to be: lets a waker skip the system call.
    pub(crate) fn waiters(&self) -> &AtomicU32 {
        &self.waiters
    }
}
