//! A clock that tells how often it is looked at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use esker_vfs::Clock;

/// Moves on by a microsecond with each look.
#[derive(Debug, Default)]
pub struct Looks {
    ns: AtomicU64,
    /// After so many looks in all, the flag is set.
    cancel: Option<(u64, Arc<AtomicBool>)>,
}

impl Looks {
    /// One that sets a flag after so many looks.
    pub fn cancelling(after: u64, flag: &Arc<AtomicBool>) -> Self {
        Self { cancel: Some((after, Arc::clone(flag))), ..Self::default() }
    }

    /// How often it was looked at.
    pub fn count(&self) -> u64 {
        self.ns.load(Ordering::Relaxed) / 1_000
    }
}

impl Clock for Looks {
    fn wall_us(&self) -> i64 {
        0
    }

    fn monotonic_ns(&self) -> u64 {
        if let Some((after, cancel)) = &self.cancel
            && self.count() >= *after
        {
            cancel.store(true, Ordering::Relaxed);
        }
        self.ns.fetch_add(1_000, Ordering::Relaxed)
    }

    fn boottime_us(&self) -> i64 {
        0
    }

    fn boot_id(&self) -> Option<u128> {
        None
    }
}
