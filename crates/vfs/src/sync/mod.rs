//! Locks, atomics and swapped pointers, in a form that a model checker can schedule.
//!
//! Ordinarily these are the standard ones and cost nothing. Under `--cfg shuttle` (`cargo xtask
//! model`) each operation is a point at which shuttle may let another thread run, so that the
//! models run the engine's real code. What the engine shares between threads is made of these, and
//! of the arena's words, which call [`switch`] themselves.

#[cfg(shuttle)]
mod scheduled;

#[cfg(not(shuttle))]
pub use arc_swap::{ArcSwap, ArcSwapOption};
#[cfg(shuttle)]
pub use scheduled::{ArcSwap, ArcSwapOption, AtomicBool, AtomicU64, Mutex, MutexGuard, switch};
#[cfg(not(shuttle))]
pub use std::sync::atomic::{AtomicBool, AtomicU64};
#[cfg(not(shuttle))]
pub use std::sync::{Mutex, MutexGuard};

/// A point at which a model may let another thread run; nothing otherwise.
#[cfg(not(shuttle))]
#[inline(always)]
pub const fn switch() {}
