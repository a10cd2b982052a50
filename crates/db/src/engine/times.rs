//! The time by which rows expire (protocol rule 9).
//!
//! * It never runs backwards, whatever the wall clock does, and stands still rather than that.
//! * A snapshot fixes it once. Merges drop rows that had expired before the earliest time that a
//!   live snapshot has fixed, and so does no merge that a snapshot might notice: both look under
//!   one lock.
//! * While no row has an end, nothing is locked or kept.
//! * It stands still while a table gets another field by which its rows expire: who is told a later
//!   time finds that change in the table's view, and what it ended at which time.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use esker_vfs::sync::{AtomicBool, Mutex, MutexGuard};

use esker_format::edit::Edit;
use esker_format::{Batch, Schema, Value};
use esker_log::sabotage::planted;

use super::{Engine, Staged};
use crate::Result;

/// The log is told the time at most this often.
const LOGGED_EVERY_US: i64 = 1_000_000;

/// What the engine knows of times.
pub(crate) struct Times {
    state: Mutex<State>,
    /// Some row has an end.
    is_needed: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The latest time that anybody was told.
    latest_us: i64,
    /// The latest that the log was told.
    logged_us: i64,
    /// Snapshots by the time that they have fixed.
    live: BTreeMap<i64, usize>,
    /// Nobody is told a later time.
    stands: bool,
}

/// Time that stands still until this is dropped.
pub(crate) struct StandingTime<'e> {
    engine: &'e Engine,
    now_us: i64,
}

/// A time that is fixed until this is dropped.
pub(crate) struct FixedTime {
    engine: Option<Arc<Engine>>,
    now_us: i64,
}

impl Times {
    /// With what opening found: whether rows of some table expire, and the latest time that
    /// somebody was told.
    pub fn new(is_needed: bool, told_us: i64) -> Self {
        let state = State { latest_us: told_us, logged_us: told_us, ..State::default() };
        Self { state: Mutex::new(state), is_needed: AtomicBool::new(is_needed) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The time by what the wall clock says.
    fn told(&mut self, wall_us: i64) -> i64 {
        if !self.stands {
            self.latest_us = self.latest_us.max(wall_us);
        }
        self.latest_us
    }
}

impl Engine {
    /// Notes that rows which are about to be put expire at some time, and tells the log the time
    /// when they are the first. Before anybody sees them: snapshots that were taken until now have
    /// no row that expires. Under the commit lock.
    pub fn note_ends(&self, schema: &Schema, staged: &Staged<'_>) -> Result<()> {
        let Some(position) = schema.expiry_position() else { return Ok(()) };
        let ends = |row: &[Value]| matches!(row.get(position), Some(Value::Timestamp(_)));
        if !self.has_expiring() && staged.rows().any(ends) {
            self.note_expiring();
            self.time_of_commit()?;
        }
        Ok(())
    }

    /// Likewise, for a batch of rows. Under the commit lock.
    pub fn note_ends_of(&self, schema: &Schema, batch: &Batch) -> Result<()> {
        let column = schema.expiry_position().and_then(|at| batch.columns.get(at));
        let Some(column) = column else { return Ok(()) };
        if (0..column.len()).any(|row| !column.is_null(row)) {
            self.note_expiring();
            self.time_of_commit()?;
        }
        Ok(())
    }

    /// From now on some row expires at some time.
    pub fn note_expiring(&self) {
        self.times.is_needed.store(true, Ordering::SeqCst);
    }

    /// True when some row may have an end.
    pub fn has_expiring(&self) -> bool {
        self.times.is_needed.load(Ordering::SeqCst)
    }

    /// The time, in microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        let wall_us = self.environment.clock.wall_us();
        self.times.state().told(wall_us)
    }

    /// Lets the time stand still. Under the commit lock.
    pub fn let_time_stand(&self) -> StandingTime<'_> {
        let wall_us = self.environment.clock.wall_us();
        let mut state = self.times.state();
        let now_us = state.told(wall_us);
        state.stands = true;
        StandingTime { engine: self, now_us }
    }

    /// The latest time that somebody was told, for a checkpoint.
    pub fn told_us(&self) -> i64 {
        self.times.state().latest_us
    }

    /// The time for a commit, which the log is told now and then: a row that has expired does not
    /// come back when the clock has gone back while the database was closed. Under the commit lock.
    pub fn time_of_commit(&self) -> Result<i64> {
        let now_us = self.now_us();
        let is_due = {
            let mut state = self.times.state();
            let is_due = now_us.saturating_sub(state.logged_us) >= LOGGED_EVERY_US;
            if is_due {
                state.logged_us = now_us;
            }
            is_due
        };
        if is_due && self.is_durable() && !planted("time_not_logged") {
            let ticket = self.append_edit(&Edit::Time { now_us })?;
            self.watermarks.publish(ticket.commit());
        }
        Ok(now_us)
    }

    /// Fixes the time for a snapshot.
    pub fn fix_time(self: &Arc<Self>) -> FixedTime {
        if !self.has_expiring() {
            return FixedTime { engine: None, now_us: i64::MIN };
        }
        let wall_us = self.environment.clock.wall_us();
        let mut state = self.times.state();
        let now_us = state.told(wall_us);
        *state.live.entry(now_us).or_default() += 1;
        FixedTime { engine: Some(Arc::clone(self)), now_us }
    }

    /// The earliest time that a snapshot has fixed or may yet fix.
    pub fn oldest_time_us(&self) -> i64 {
        if !self.has_expiring() {
            return i64::MIN;
        }
        let wall_us = self.environment.clock.wall_us();
        let mut state = self.times.state();
        let now_us = state.told(wall_us);
        let least_us = state.live.keys().next().filter(|_| !planted("purge_ignores_snapshots"));
        least_us.copied().unwrap_or(now_us)
    }
}

impl FixedTime {
    /// False when there was no need to.
    pub fn is_fixed(&self) -> bool {
        self.engine.is_some()
    }

    /// Microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.now_us
    }
}

impl StandingTime<'_> {
    /// Microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.now_us
    }
}

impl Drop for StandingTime<'_> {
    fn drop(&mut self) {
        self.engine.times.state().stands = false;
    }
}

impl Drop for FixedTime {
    fn drop(&mut self) {
        let Some(engine) = &self.engine else { return };
        let mut state = engine.times.state();
        if let Some(count) = state.live.get_mut(&self.now_us) {
            *count -= 1;
            if *count == 0 {
                state.live.remove(&self.now_us);
            }
        }
    }
}
