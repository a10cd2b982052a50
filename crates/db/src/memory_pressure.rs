//! Holding writers back while memory is short.
//!
//! ```text
//! used > the limit less some headroom, or frozen groups > 1/2 ?
//!    frozen groups wait ─► wake the sealer, wait for its progress
//!    none waits         ─► freeze the largest open group, and so on
//!    nothing to freeze  ─► refuse: the limit is too small for what must stay in memory
//! ```
//!
//! Bulk loads count what they hold with the rest, but may take part of the limit only, and stop
//! short of where writers are held back: commits beside a load go on.

use std::sync::atomic::Ordering;
use std::time::Duration;

use esker_arena::{Category, Reservation};

use super::{Error, ErrorKind, Result};
use crate::catalogue::Catalogue;
use crate::engine::Engine;
use crate::maintenance::frozen_groups;

/// How long a writer waits before it looks again by itself.
const PATIENCE: Duration = Duration::from_millis(50);
/// Memory kept free for commits under way, unless it is half of the limit.
const HEADROOM_BYTES_MIN: u64 = 8 << 20;
/// What one container may ask for at a time when it grows.
const GROWTH_BYTES_MAX: u64 = 4 << 20;
/// What a deleted row may take on average, where few rows of a row group are deleted.
const DELETED_BYTES: u64 = 512;
/// Open groups below this are not worth freezing.
const FREEZE_BYTES_MIN: u64 = 64 << 10;

impl Engine {
    /// Waits while memory is short and sealing can help.
    ///
    /// # Errors
    /// `OverBudget` when nothing can be sealed; what sealing met when it fails; `Poisoned` when the
    /// database takes no changes any more.
    pub(crate) fn wait_for_memory(&self) -> Result<()> {
        self.expect_temporary_room(0)?;
        let mut failures = None;
        if self.is_short_of_memory() {
            self.segment_files.forget_heap_blocks();
            self.forget_recent_events();
        }
        while self.is_short_of_memory() {
            if !self.seal_for_memory(&mut failures)? {
                return self.refuse_over_budget();
            }
        }
        Ok(())
    }

    /// Has a group sealed, and waits a little for that. False when there is nothing to seal, or
    /// no task that would.
    fn seal_for_memory(&self, failures: &mut Option<u64>) -> Result<bool> {
        if let Some(other) = &self.memory_of {
            // What one session has stays in memory; the rows of all need not.
            return other.seal_for_memory(failures);
        }
        if !self.is_durable() || !self.options.background {
            return Ok(false);
        }
        if self.frozen_bytes.load(Ordering::Relaxed) == 0 {
            let mut catalogue = self.lock_for_change()?;
            if !self.freeze_largest(&mut catalogue) {
                return Ok(false);
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
        Ok(true)
    }

    /// What loads may take together.
    pub(crate) fn load_share(&self) -> u64 {
        self.memory_limit_bytes / 8 * 5
    }

    /// What may be in use when a load takes memory.
    fn load_mark(&self) -> u64 {
        self.memory_mark().saturating_sub(self.memory_limit_bytes / 8)
    }

    /// Makes a load's reservation at least so large, if there is as much.
    pub(crate) fn reserve_for_load(&self, held: &mut Reservation, bytes: u64) -> bool {
        let share = self.load_share();
        if bytes > share {
            return false;
        }
        if held.grow(bytes, share, self.load_mark()) {
            return true;
        }
        // What was read lately may be read again.
        self.segment_files.forget_heap_blocks();
        held.grow(bytes, share, self.load_mark())
    }

    /// The same, once sealing has made as much room as it can.
    ///
    /// # Errors
    /// As for [`Engine::wait_for_memory`], but for `OverBudget`.
    pub(crate) fn seal_for_load(&self, held: &mut Reservation, bytes: u64) -> Result<bool> {
        let mut failures = None;
        while !self.reserve_for_load(held, bytes) {
            let loads = self.arena.used_by(Category::Load) - held.bytes();
            if loads.saturating_add(bytes) > self.load_share()
                || !self.seal_for_memory(&mut failures)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Why a load cannot have so many bytes, and what would help.
    pub(crate) fn refuse_load(&self, held: &Reservation, bytes: u64) -> Error {
        let loads = self.arena.used_by(Category::Load).saturating_sub(held.bytes());
        let others = self.arena.used_bytes().saturating_sub(held.bytes());
        let (limit, share) = (self.memory_limit_bytes, self.load_share());
        let (of_loads, of_all) = (loads.saturating_add(bytes), others.saturating_add(bytes));
        let by_share = of_loads.div_ceil(5).saturating_mul(8).saturating_add(8);
        let by_mark = of_all.saturating_mul(40).div_ceil(31).max((of_all / 7).saturating_mul(8));
        let by_mark = by_mark.saturating_add(2 * HEADROOM_BYTES_MIN);
        let enough = by_share.max(by_mark);
        let message = format!(
            "a bulk load or appender needs {bytes} bytes of memory for its next rows; {others} \
             bytes are in use otherwise, {loads} of them by loads, which may have {share} of the \
             {limit} bytes of the memory limit; a limit of {enough} is enough"
        );
        Error::new(ErrorKind::OverBudget, message)
    }

    pub(crate) fn is_short_of_memory(&self) -> bool {
        self.arena.used_bytes() > self.memory_mark()
            || self.frozen_bytes.load(Ordering::Relaxed) > self.memory_limit_bytes / 2
    }

    /// Memory is short from here on: what is left is for the commits under way.
    pub(crate) fn memory_mark(&self) -> u64 {
        self.memory_limit_bytes - self.headroom()
    }

    /// Memory kept free for commits under way.
    fn headroom(&self) -> u64 {
        let limit = self.memory_limit_bytes;
        (limit / 10).max(HEADROOM_BYTES_MIN).min(limit / 2)
    }

    /// False when the memory that is left may not hold what deleting rows takes, all of them in
    /// different places, and commits under way besides.
    pub(crate) fn has_room_for_deletes(&self, rows: usize) -> bool {
        let needed = rows as u64 * DELETED_BYTES + FREEZE_BYTES_MIN;
        let limit = self.memory_limit_bytes;
        self.arena.used_bytes().saturating_add(needed) <= limit - self.headroom() / 2
    }

    /// Refuses a commit that the memory that is left may not hold, while that is still possible.
    pub(crate) fn refuse_too_large(&self, frame_bytes: usize) -> Result<()> {
        self.expect_temporary_room(frame_bytes as u64)?;
        let (used, limit) = (self.arena.used_bytes(), self.memory_limit_bytes);
        let needed = frame_bytes as u64 * 2 + GROWTH_BYTES_MAX;
        if used + needed <= limit {
            return Ok(());
        }
        let way = match self.memory_of {
            Some(_) => "temporary tables are part of it: drop some",
            None => "use a bulk load",
        };
        let message = format!(
            "a commit of {frame_bytes} bytes may need {needed} bytes of memory; {used} are in \
             use, the limit is {limit}: {way}, or open with a higher memory limit"
        );
        Err(Error::new(ErrorKind::OverBudget, message))
    }

    /// Refuses more rows of temporary tables than one session may have.
    fn expect_temporary_room(&self, more: u64) -> Result<()> {
        if self.memory_of.is_none() {
            return Ok(());
        }
        // default: a quarter, as the option says
        let limit = self.options.temporary_limit_bytes.unwrap_or(self.memory_limit_bytes / 4);
        let names = self.names.load();
        let groups = names.newest().values().map(|table| {
            let view = table.view();
            let groups: u64 = view.groups().map(|group| group.byte_count()).sum();
            groups + table.index().memory_bytes()
        });
        let bytes = groups.sum::<u64>().saturating_add(more);
        if bytes <= limit {
            return Ok(());
        }
        let message = format!(
            "temporary tables of one session take {bytes} bytes of memory, the limit is {limit}: \
             drop or truncate some, or raise Options::temporary_memory_limit, which is a quarter \
             of the memory limit unless it is set"
        );
        Err(Error::new(ErrorKind::OverBudget, message))
    }

    fn refuse_over_budget(&self) -> Result<()> {
        let (used, limit) = (self.arena.used_bytes(), self.memory_limit_bytes);
        if used <= self.memory_mark() {
            return Ok(());
        }
        let way = match self.memory_of {
            Some(_) => "temporary tables are part of it: drop some, or open with a higher",
            None => "open with a higher",
        };
        let message =
            format!("{used} bytes of memory are in use, the limit is {limit}; {way} memory limit");
        Err(Error::new(ErrorKind::OverBudget, message))
    }

    /// Freezes the largest open group, so that it can be sealed. False when all are small.
    pub(crate) fn freeze_largest(&self, catalogue: &mut Catalogue) -> bool {
        let bytes_of = |entry: &crate::catalogue::TableEntry| {
            // default: without an open group there is nothing to freeze
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
        let bytes = frozen.map(|row_group| row_group.byte_count()).sum();
        self.frozen_bytes.store(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
