//! What is remembered of a token that a connection has shown.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A token that was shown, and until when it holds as far as was looked: looking again costs
/// something only after tokens have changed.
#[derive(Debug)]
pub struct Standing {
    id: String,
    /// The generation of tokens that was looked at.
    generation: AtomicU64,
    end_us: AtomicI64,
}

impl Standing {
    /// Of the token with an id.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), generation: AtomicU64::new(0), end_us: AtomicI64::new(0) }
    }

    /// When it ends, in microseconds since 1970; long ago when there is no such token.
    pub(super) fn end_us(&self, generation: u64, look: impl Fn(&str) -> Option<i64>) -> i64 {
        if self.generation.load(Ordering::Acquire) != generation {
            let end_us = look(&self.id).unwrap_or(i64::MIN);
            self.end_us.store(end_us, Ordering::Relaxed);
            self.generation.store(generation, Ordering::Release);
        }
        self.end_us.load(Ordering::Relaxed)
    }
}
