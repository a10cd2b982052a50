//! What a model checker can schedule. The values are the standard ones, since shuttle runs one
//! thread at a time: each operation lets the scheduler choose first.
//!
//! Shuttle knows no weaker order than sequential consistency. Weaker ones are loom's business,
//! which checks the containers of the arena.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arc_swap::Guard;
pub use shuttle::sync::{Mutex, MutexGuard};

/// A point at which another thread may run.
pub fn switch() {
    // A thread that fails has nothing more to show, and its memory is torn down outside of the
    // schedule. Sleeping is a plain switch; yielding would tell the scheduler to prefer the others.
    if !std::thread::panicking() {
        shuttle::thread::sleep(Duration::ZERO);
    }
}

/// As in the standard library.
#[derive(Debug, Default)]
pub struct AtomicBool(std::sync::atomic::AtomicBool);

impl AtomicBool {
    /// As in the standard library; the same below.
    #[must_use]
    pub const fn new(value: bool) -> Self {
        Self(std::sync::atomic::AtomicBool::new(value))
    }

    /// Loads the value.
    pub fn load(&self, order: Ordering) -> bool {
        switch();
        self.0.load(order)
    }

    /// Replaces the value.
    pub fn store(&self, value: bool, order: Ordering) {
        switch();
        self.0.store(value, order);
    }

    /// Replaces the value and returns the one before.
    pub fn swap(&self, value: bool, order: Ordering) -> bool {
        switch();
        self.0.swap(value, order)
    }
}

/// As in the standard library.
#[derive(Debug, Default)]
pub struct AtomicU64(std::sync::atomic::AtomicU64);

impl AtomicU64 {
    /// As in the standard library; the same below.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(std::sync::atomic::AtomicU64::new(value))
    }

    /// Loads the value.
    pub fn load(&self, order: Ordering) -> u64 {
        switch();
        self.0.load(order)
    }

    /// Replaces the value.
    pub fn store(&self, value: u64, order: Ordering) {
        switch();
        self.0.store(value, order);
    }

    /// Replaces the value and returns the one before.
    pub fn swap(&self, value: u64, order: Ordering) -> u64 {
        switch();
        self.0.swap(value, order)
    }

    /// Adds and returns the value before.
    pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        switch();
        self.0.fetch_add(value, order)
    }

    /// Subtracts and returns the value before.
    pub fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        switch();
        self.0.fetch_sub(value, order)
    }

    /// Stores the greater one and returns the value before.
    pub fn fetch_max(&self, value: u64, order: Ordering) -> u64 {
        switch();
        self.0.fetch_max(value, order)
    }

    /// Stores the lesser one and returns the value before.
    pub fn fetch_min(&self, value: u64, order: Ordering) -> u64 {
        switch();
        self.0.fetch_min(value, order)
    }

    /// Stores what a function makes of the value, unless that is nothing, and returns the value
    /// before.
    ///
    /// # Errors
    /// The value, when the function makes nothing of it.
    pub fn fetch_update(
        &self,
        set_order: Ordering,
        fetch_order: Ordering,
        change: impl FnMut(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        switch();
        self.0.fetch_update(set_order, fetch_order, change)
    }

    /// Sets bits and returns the value before.
    pub fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        switch();
        self.0.fetch_or(value, order)
    }
}

/// As in `arc_swap`.
#[derive(Debug)]
pub struct ArcSwap<T>(arc_swap::ArcSwap<T>);

impl<T> ArcSwap<T> {
    /// As in `arc_swap`; the same below.
    pub fn new(value: Arc<T>) -> Self {
        Self(arc_swap::ArcSwap::new(value))
    }

    /// A value of its own.
    pub fn from_pointee(value: T) -> Self {
        Self(arc_swap::ArcSwap::from_pointee(value))
    }

    /// The value, borrowed.
    pub fn load(&self) -> Guard<Arc<T>> {
        switch();
        self.0.load()
    }

    /// The value, owned.
    pub fn load_full(&self) -> Arc<T> {
        switch();
        self.0.load_full()
    }

    /// Replaces the value.
    pub fn store(&self, value: Arc<T>) {
        switch();
        self.0.store(value);
    }
}

impl<T: Default> Default for ArcSwap<T> {
    fn default() -> Self {
        Self::from_pointee(T::default())
    }
}

/// As in `arc_swap`.
#[derive(Debug)]
pub struct ArcSwapOption<T>(arc_swap::ArcSwapOption<T>);

impl<T> ArcSwapOption<T> {
    /// As in `arc_swap`; the same below.
    #[must_use]
    pub fn empty() -> Self {
        Self(arc_swap::ArcSwapOption::empty())
    }

    /// The value, borrowed.
    pub fn load(&self) -> Guard<Option<Arc<T>>> {
        switch();
        self.0.load()
    }

    /// Replaces the value.
    pub fn store(&self, value: Option<Arc<T>>) {
        switch();
        self.0.store(value);
    }
}

impl<T> Default for ArcSwapOption<T> {
    fn default() -> Self {
        Self::empty()
    }
}
