//! What is known of time: the clock of the database, and the moments that snapshots have fixed.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use esker_format::{ClockRecord, Moment};
use esker_vfs::Clock;
use esker_vfs::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard};

use crate::clock::{DatabaseClock, Reading};

/// A record is logged at least this often while there are commits: it is less than a
/// second older than a commit.
const LOGGED_EVERY_US: i64 = 900_000;

/// What the engine knows of times.
pub(crate) struct Times {
    state: Mutex<State>,
    /// Some row has an end.
    pub(super) is_needed: AtomicBool,
    /// How often the date was taken back.
    pub(super) moved_back: AtomicU64,
}

pub(super) struct State {
    pub clock: DatabaseClock,
    /// The elapsed time of the last record in the log, since the database was opened.
    logged_us: Option<i64>,
    /// Snapshots by the times that they have fixed.
    pub live: Live,
    /// How many want that time stands still.
    pub standing: usize,
}

/// How many snapshots have fixed which times.
#[derive(Default)]
pub(super) struct Live {
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
    times: Option<Arc<Times>>,
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

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // default: a panic leaves what is locked as it was, or whole
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The moment by what the machine's clocks say.
    pub fn told(&mut self, clock: &dyn Clock) -> Moment {
        if self.standing == 0 {
            self.clock.advance(clock.boottime_us());
            if self.clock.is_look_due() {
                self.clock.look(clock.wall_us());
            }
        }
        self.clock.moment()
    }

    /// The same, with a look at the wall clock.
    pub fn looked(&mut self, clock: &dyn Clock) -> Moment {
        if self.standing == 0 {
            self.clock.advance(clock.boottime_us());
            self.clock.look(clock.wall_us());
        }
        self.clock.moment()
    }

    /// The moment for a commit, and the clock as the log is to have it before that, where this is
    /// due: until it is [logged](Self::logged).
    pub fn told_to_commit(&mut self, clock: &dyn Clock) -> (Moment, Option<DatabaseClock>) {
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
        if !is_due {
            return (self.clock.moment(), None);
        }
        let mut drawn = self.clock.clone();
        if goes_on {
            drawn.draw();
        }
        // Back goes the date at once, as far as it was not read yet.
        if drawn.moment().date_us < self.clock.moment().date_us {
            self.clock = drawn.clone();
        }
        (self.clock.moment(), Some(drawn))
    }

    /// The log has the clock as it was drawn. Forward goes the date only now: a record that was
    /// refused must not leave it ahead of the one before. Returns the moment.
    pub fn logged(&mut self, drawn: &DatabaseClock) -> Moment {
        self.logged_us = Some(drawn.elapsed_us());
        self.clock.go_on_from(drawn);
        self.clock.moment()
    }
}

impl Live {
    pub fn add(&mut self, now: Moment) {
        *self.elapsed.entry(now.elapsed_us).or_default() += 1;
        *self.date.entry(now.date_us).or_default() += 1;
    }

    pub fn remove(&mut self, now: Moment) {
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

    pub fn least(&self) -> Option<Moment> {
        let (elapsed_us, date_us) = (self.elapsed.keys().next()?, self.date.keys().next()?);
        Some(Moment { elapsed_us: *elapsed_us, date_us: *date_us })
    }
}

impl FixedTime {
    /// What is fixed where no row has an end.
    pub fn none() -> Self {
        Self { times: None, now: Moment::FIRST }
    }

    /// Fixes the moment that it is.
    pub fn fix(times: &Arc<Times>, clock: &dyn Clock) -> Self {
        let mut state = times.state();
        let now = state.told(clock);
        state.live.add(now);
        Self { times: Some(Arc::clone(times)), now }
    }

    /// False when there was no need to.
    pub fn is_fixed(&self) -> bool {
        self.times.is_some()
    }

    /// The moment.
    pub fn now(&self) -> Moment {
        self.now
    }
}

impl StandingTime {
    /// Lets time stand still at the moment that it is.
    pub fn start(times: &Arc<Times>, clock: &dyn Clock) -> Self {
        let mut state = times.state();
        let now = state.told(clock);
        state.standing += 1;
        Self { times: Arc::clone(times), now }
    }

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
        if let Some(times) = &self.times {
            times.state().live.remove(self.now);
        }
    }
}
