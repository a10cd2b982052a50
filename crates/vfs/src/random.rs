//! Randomness, as the engine may draw it.

use std::fmt::Debug;

/// A source of random bits: operating system entropy in production, a seed in simulation.
pub trait Random: Send + Sync + Debug {
    /// The next 64 random bits.
    fn next_u64(&self) -> u64;
}
