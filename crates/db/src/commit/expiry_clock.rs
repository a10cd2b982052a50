//! The moment by which rows expire (protocol rule 9).
//!
//! * Elapsed time never falls, nor does the date, but where it is taken back: `admin/date_move.rs`.
//! * A snapshot fixes both once. Merges drop rows that had expired before the earliest moment that
//!   a live snapshot has fixed, and so does no merge that a snapshot might notice: both look under
//!   one lock.
//! * While no row has an end, nothing is locked or kept.
//! * Both stand still while a table gets another field by which its rows expire: a reader at a
//!   later moment finds that change in the table's view, and what it ended at which time.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use esker_format::edit::Edit;
use esker_format::{ClockRecord, Moment, Schema, Value};
use esker_log::sabotage::planted;
use esker_vfs::Clock;
use esker_vfs::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard};

use crate::clock::{DatabaseClock, Reading};
use crate::commit::staged::Staged;
use crate::engine::{Catalogue, Engine};
use crate::table_version::TableVersion;
use crate::{ErrorKind, Result};

/// A record is logged at least this often while there are commits: it is less than a
/// second older than a commit.
const LOGGED_EVERY_US: i64 = 900_000;

/// What the engine knows of times.
pub(crate) struct Times {
    state: Mutex<State>,
    /// Some row has an end.
    is_needed: AtomicBool,
    /// How often the date was taken back.
    moved_back: AtomicU64,
}

struct State {
    clock: DatabaseClock,
    /// The elapsed time of the last record in the log, since the database was opened.
    logged_us: Option<i64>,
    /// Snapshots by the times that they have fixed.
    live: Live,
    /// How many want that time stands still.
    standing: usize,
}

/// How many snapshots have fixed which times.
#[derive(Default)]
struct Live {
    elapsed: BTreeMap<i64, usize>,
    date: BTreeMap<i64, usize>,
}

/// Time that stands still until this is dropped.
pub(crate) struct StandingTime {
    times: Arc<Times>,
    now: Moment,
}

/// A moment that is fixed until this is dropped.
pub(crate) struct FixedTime {
    engine: Option<Arc<Engine>>,
    now: Moment,
}

impl Times {
    /// With what opening found: whether rows of some table expire, and the last record.
    pub fn new(is_needed: bool, record: Option<ClockRecord>, clock: &dyn Clock) -> Self {
        let reading = Reading::take(clock);
        let clock = match record {
            Some(record) => DatabaseClock::open(&record, reading),
            None => DatabaseClock::start(reading),
        };
        let state = State { clock, logged_us: None, live: Live::default(), standing: 0 };
        Self {
            state: Mutex::new(state),
            is_needed: AtomicBool::new(is_needed),
            moved_back: AtomicU64::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The moment by what the machine's clocks say.
    fn told(&mut self, clock: &dyn Clock) -> Moment {
        if self.standing == 0 {
            self.clock.advance(clock.boottime_us());
            if self.clock.is_look_due() {
                self.clock.look(clock.wall_us());
            }
        }
        self.clock.moment()
    }

    /// The same, with a look at the wall clock.
    fn looked(&mut self, clock: &dyn Clock) -> Moment {
        if self.standing == 0 {
            self.clock.advance(clock.boottime_us());
            self.clock.look(clock.wall_us());
        }
        self.clock.moment()
    }

    /// The moment for a commit, and what is to be logged, where that is due.
    fn told_to_commit(&mut self, clock: &dyn Clock) -> (Moment, Option<ClockRecord>) {
        let goes_on = self.standing == 0;
        if goes_on {
            self.clock.advance(clock.boottime_us());
        }
        let elapsed_us = self.clock.elapsed_us();
        let is_old = |logged_us| elapsed_us.saturating_sub(logged_us) >= LOGGED_EVERY_US;
        let is_due = self.logged_us.is_none_or(is_old);
        if goes_on && (is_due || self.clock.is_look_due()) {
            self.clock.look(clock.wall_us());
        }
        if is_due {
            self.logged_us = Some(elapsed_us);
            if goes_on {
                self.clock.draw();
            }
        }
        (self.clock.moment(), is_due.then(|| self.clock.record()))
    }
}

impl Live {
    fn add(&mut self, now: Moment) {
        *self.elapsed.entry(now.elapsed_us).or_default() += 1;
        *self.date.entry(now.date_us).or_default() += 1;
    }

    fn remove(&mut self, now: Moment) {
        for (times, time_us) in [(&mut self.elapsed, now.elapsed_us), (&mut self.date, now.date_us)]
        {
            if let Some(count) = times.get_mut(&time_us) {
                *count -= 1;
                if *count == 0 {
                    times.remove(&time_us);
                }
            }
        }
    }

    fn least(&self) -> Option<Moment> {
        let (elapsed_us, date_us) = (self.elapsed.keys().next()?, self.date.keys().next()?);
        Some(Moment { elapsed_us: *elapsed_us, date_us: *date_us })
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
        let column = staged.batch.as_ref().and_then(|batch| batch.columns.columns.get(position));
        if column.is_some_and(|column| (0..column.len()).any(|row| !column.is_null(row))) {
            self.note_expiring();
            self.time_of_commit()?;
        }
        Ok(())
    }

    /// Tells the writer of a table whose rows expire what time it is.
    pub fn on_time(&self, catalogue: &mut Catalogue, current: &TableVersion) -> Result<()> {
        if self.has_expiring()
            && current.schema.expiry_field().is_some()
            && let Some(entry) = catalogue.tables.get_mut(&current.core.id())
        {
            let now = match self.time_of_commit() {
                // On a full disk a commit that adds data is refused by itself. One that frees space
                // logs the time before.
                Err(e) if e.kind() == ErrorKind::NoSpace => {
                    self.time_is_owed.store(true, Ordering::Relaxed);
                    self.now()
                }
                logged => logged?,
            };
            entry.writer.set_time(now);
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

    /// The moment at which rows have expired.
    pub fn now(&self) -> Moment {
        self.times.state().told(&*self.environment.clock)
    }

    /// The clock, with a look at the wall clock.
    pub fn clock(&self) -> DatabaseClock {
        let mut state = self.times.state();
        state.looked(&*self.environment.clock);
        state.clock.clone()
    }

    /// The clock as it is, without a look.
    pub fn last_clock(&self) -> DatabaseClock {
        self.times.state().clock.clone()
    }

    /// How often the date was taken back: who has read by a date asks before and after.
    pub fn date_moves_back(&self) -> u64 {
        self.times.moved_back.load(Ordering::SeqCst)
    }

    /// Goes by another date from now on. Under the commit lock, while time stands still.
    pub fn go_by_date(&self, date_us: i64) {
        let mut state = self.times.state();
        if date_us < state.clock.moment().date_us {
            self.times.moved_back.fetch_add(1, Ordering::SeqCst);
        }
        state.clock.move_to(date_us);
    }

    /// Goes by the clock of another database on this machine, of which this one is to be a copy.
    pub fn go_by_clock_of(&self, other: &Self) {
        let clock = other.clock();
        self.times.state().clock = clock;
    }

    /// Lets the time stand still. Under the commit lock.
    pub fn let_time_stand(&self) -> StandingTime {
        let mut state = self.times.state();
        let now = state.told(&*self.environment.clock);
        state.standing += 1;
        StandingTime { times: Arc::clone(&self.times), now }
    }

    /// What is known of time, for a checkpoint.
    pub fn clock_record(&self) -> ClockRecord {
        self.clock().record()
    }

    /// The moment for a commit, which is logged now and then: a row that has expired does
    /// not come back, whatever the clocks of the machine show when the database is opened again.
    /// Under the commit lock.
    pub fn time_of_commit(&self) -> Result<Moment> {
        let (now, record) = self.times.state().told_to_commit(&*self.environment.clock);
        if let Some(record) = record {
            self.log_clock(record)?;
        }
        Ok(now)
    }

    /// Tells the log what is known of time. Under the commit lock.
    pub fn log_clock(&self, record: ClockRecord) -> Result<()> {
        if self.is_durable() && !planted("time_not_logged") {
            self.log_edit(&Edit::Clock(record))?;
        }
        Ok(())
    }

    /// Tells the log what is known of time when the database is closed. That this fails is no loss:
    /// the record before tells as much, but of what the wall clock has shown since. Under the
    /// commit lock.
    pub fn log_clock_at_close(&self) {
        if self.has_expiring() {
            let _ = self.log_clock(self.clock_record());
        }
    }

    /// The time by which rows of a table may be destroyed that only readers to come see as expired.
    pub fn destroying_us(&self, schema: &Schema) -> i64 {
        let mut state = self.times.state();
        let now = state.told(&*self.environment.clock);
        Moment { date_us: state.clock.destroying_date_us(), ..now }.of(schema)
    }

    /// Fixes the moment for a snapshot.
    pub fn fix_time(self: &Arc<Self>) -> FixedTime {
        if !self.has_expiring() {
            return FixedTime { engine: None, now: Moment::FIRST };
        }
        let mut state = self.times.state();
        let now = state.told(&*self.environment.clock);
        state.live.add(now);
        FixedTime { engine: Some(Arc::clone(self)), now }
    }

    /// The earliest moment that a snapshot has fixed or may yet fix, and by which rows may be
    /// destroyed.
    pub fn oldest_moment(&self) -> Moment {
        if !self.has_expiring() {
            return Moment::FIRST;
        }
        let mut state = self.times.state();
        let elapsed_us = state.told(&*self.environment.clock).elapsed_us;
        let now = Moment { elapsed_us, date_us: state.clock.destroying_date_us() };
        let least = state.live.least().filter(|_| !planted("purge_ignores_snapshots"));
        least.map_or(now, |least| least.least(now))
    }
}

impl FixedTime {
    /// False when there was no need to.
    pub fn is_fixed(&self) -> bool {
        self.engine.is_some()
    }

    /// The moment.
    pub fn now(&self) -> Moment {
        self.now
    }
}

impl StandingTime {
    /// The moment.
    pub fn now(&self) -> Moment {
        self.now
    }
}

impl Drop for StandingTime {
    fn drop(&mut self) {
        self.times.state().standing -= 1;
    }
}

impl Drop for FixedTime {
    fn drop(&mut self) {
        if let Some(engine) = &self.engine {
            engine.times.state().live.remove(self.now);
        }
    }
}
