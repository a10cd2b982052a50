//! Holding writers back while memory is short.
//!
//! ```text
//! used > the limit less some headroom, or frozen groups > 1/2 ?
//!    frozen groups wait ─► wake the sealer, wait for its progress
//!    none waits         ─► freeze the largest open group, and so on
//!    nothing to freeze  ─► refuse: the limit is too small for what must stay in memory
//! ```

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Catalogue, Engine};
use crate::maintenance::frozen_groups;
use crate::{Error, ErrorKind, Result};

/// How long a writer waits before it looks again by itself.
const PATIENCE: Duration = Duration::from_millis(50);
/// Memory kept free for commits under way, unless it is half of the limit.
const HEADROOM_BYTES_MIN: u64 = 8 << 20;
/// What one container may ask for at a time when it grows.
const GROWTH_BYTES_MAX: u64 = 4 << 20;
/// Open groups below this are not worth freezing.
const FREEZE_BYTES_MIN: u64 = 64 << 10;

impl Engine {
    /// Waits while memory is short and sealing can help.
    ///
    /// # Errors
    /// `OverBudget` when nothing can be sealed; what sealing met when it fails; `Poisoned` when the
    /// database takes no changes any more.
    pub(super) fn wait_for_memory(&self) -> Result<()> {
        let mut failures = None;
        while self.is_short_of_memory() {
            if !self.is_durable() || !self.options.background {
                return self.refuse_over_budget();
            }
            if self.frozen_bytes.load(Ordering::Relaxed) == 0 {
                let mut catalogue = self.lock_for_change()?;
                if !self.freeze_largest(&mut catalogue) {
                    drop(catalogue);
                    return self.refuse_over_budget();
                }
            }
            let seen = self.progress.generation();
            drop(self.lock_for_change()?);
            if self.journal.log().is_some_and(esker_log::Log::is_poisoned) {
                let message = "a write or a sync of the log failed; open the database again";
                return Err(Error::new(ErrorKind::Poisoned, message));
            }
            {
                let state = self.maintenance_state();
                let since = *failures.get_or_insert(state.failures);
                if let Some(failure) = state.failure.as_ref().filter(|_| state.failures > since) {
                    return Err(failure.repeated().at("writes wait for rows to be sealed"));
                }
            }
            self.wake_maintenance();
            self.environment.tasks.wait_timeout(&self.progress, seen, PATIENCE);
        }
        Ok(())
    }

    fn is_short_of_memory(&self) -> bool {
        self.arena.used_bytes() > self.memory_mark()
            || self.frozen_bytes.load(Ordering::Relaxed) > self.memory_limit_bytes / 2
    }

    /// Memory is short from here on: what is left is for the commits under way.
    fn memory_mark(&self) -> u64 {
        let limit = self.memory_limit_bytes;
        limit - (limit / 10).max(HEADROOM_BYTES_MIN).min(limit / 2)
    }

    /// Refuses a commit that the memory that is left may not hold, while that is still possible.
    pub(super) fn refuse_too_large(&self, frame_bytes: usize) -> Result<()> {
        let (used, limit) = (self.arena.used_bytes(), self.memory_limit_bytes);
        let needed = frame_bytes as u64 * 2 + GROWTH_BYTES_MAX;
        if used + needed <= limit {
            return Ok(());
        }
        let message = format!(
            "a commit of {frame_bytes} bytes may need {needed} bytes of memory; {used} are in \
             use, the limit is {limit}: use a bulk load, or open with a higher memory limit"
        );
        Err(Error::new(ErrorKind::OverBudget, message))
    }

    fn refuse_over_budget(&self) -> Result<()> {
        let (used, limit) = (self.arena.used_bytes(), self.memory_limit_bytes);
        if used <= self.memory_mark() {
            return Ok(());
        }
        let message = format!(
            "{used} bytes of memory are in use, the limit is {limit}; open with a higher memory \
             limit"
        );
        Err(Error::new(ErrorKind::OverBudget, message))
    }

    /// Freezes the largest open group, so that it can be sealed. False when all are small.
    fn freeze_largest(&self, catalogue: &mut Catalogue) -> bool {
        let bytes_of = |entry: &super::TableEntry| {
            entry.writer.open_group().map_or(0, |group| group.group().byte_count())
        };
        let largest = catalogue.tables.values_mut().max_by_key(|entry| bytes_of(entry));
        let Some(entry) = largest.filter(|entry| bytes_of(entry) >= FREEZE_BYTES_MIN) else {
            return false;
        };
        self.frozen_bytes.fetch_add(bytes_of(entry), Ordering::Relaxed);
        entry.writer.freeze();
        true
    }

    /// Counts what waits to be sealed anew: some of it was sealed, or went with its table, and a
    /// table that is dropped while it is sealed must not be taken off twice.
    pub(crate) fn recount_frozen(&self, catalogue: &Catalogue) {
        let frozen = catalogue.tables.values().flat_map(frozen_groups);
        let bytes = frozen.map(|unit| unit.byte_count()).sum();
        self.frozen_bytes.store(bytes, Ordering::Relaxed);
    }
}
