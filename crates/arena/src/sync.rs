//! The mutex of the containers' writers, and the point before each look at a word: loom's or
//! shuttle's in the models, the standard mutex and nothing otherwise.

#[cfg(shuttle)]
pub(crate) use esker_vfs::sync::{Mutex, MutexGuard, switch};
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// A point at which a model may let another thread run. Loom's atomics are such points themselves.
#[cfg(not(shuttle))]
#[inline(always)]
pub(crate) const fn switch() {}
