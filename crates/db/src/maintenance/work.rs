//! What maintenance has done since the database was opened.

use std::sync::atomic::{AtomicU64, Ordering};

use esker_table::rewrite::Rewritten;
use esker_vfs::{Clock, DurationCounts, Durations};

use crate::Result;

/// Work in the background, since the database was opened.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WorkInfo {
    /// How often it was done, and how long it took.
    pub durations: DurationCounts,
    /// Bytes of the segments that it wrote.
    pub bytes: u64,
}

/// Seals or merges.
#[derive(Debug, Default)]
pub(crate) struct Work {
    durations: Durations,
    bytes: AtomicU64,
}

impl Work {
    /// Does one, and counts it when it comes to its end: how long it took, and the bytes of the
    /// segments that it wrote.
    pub fn count<R>(
        &self,
        clock: &dyn Clock,
        work: impl FnOnce(&mut u64) -> Result<R>,
    ) -> Result<R> {
        let (started, mut bytes) = (clock.monotonic_ns(), 0);
        let done = work(&mut bytes)?;
        self.durations.add(clock.monotonic_ns().saturating_sub(started));
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(done)
    }

    /// What was counted so far.
    pub fn info(&self) -> WorkInfo {
        WorkInfo { durations: self.durations.counts(), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}

/// Bytes of the segments that were written.
pub(super) fn bytes_of(rewritten: &Rewritten) -> u64 {
    rewritten.entries().iter().map(|entry| entry.file_bytes).sum()
}
