//! The moment by which rows expire (protocol rule 9).
//!
//! * Elapsed time never falls, nor does the date, but where it is taken back: `admin/date_move.rs`.
//! * A snapshot fixes both once. Merges drop rows that had expired before the earliest moment that
//!   a live snapshot has fixed, and so does no merge that a snapshot might notice: both look under
//!   one lock.
//! * While no row has an end, nothing is locked or kept.
//! * Both stand still while a table gets another field by which its rows expire: a reader at a
//!   later moment finds that change in the table's view, and what it ended at which time.

use std::sync::atomic::Ordering;

use esker_format::edit::Edit;
use esker_format::schema::Stream;
use esker_format::{ClockRecord, Moment, Schema, Value};
use esker_log::Purpose;
use esker_log::sabotage::Bug;

use crate::catalogue::Catalogue;
use crate::clock::DatabaseClock;
use crate::commit::staged::Staged;
use crate::commit::times::{FixedTime, StandingTime};
use crate::engine::Engine;
use crate::table_version::TableVersion;
use crate::{ErrorKind, Result};

impl Engine {
    /// Notes that rows which are about to be put expire at some time, and tells the log the time
    /// when they are the first. Before anybody sees them: snapshots that were taken until now have
    /// no row that expires. Under the commit lock.
    pub fn note_ends(&self, schema: &Schema, staged: &Staged<'_>) -> Result<()> {
        if !self.has_expiring() && schema.stream().is_some_and(Stream::ends_events) {
            self.note_expiring();
            self.time_of_commit()?;
        }
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
        let ends = || current.schema.stream().is_some_and(Stream::ends_events);
        if self.has_expiring()
            && (current.schema.expiry_field().is_some() || ends())
            && let Some(entry) = catalogue.tables.get_mut(&current.core.id())
        {
            let now = match self.time_of_commit() {
                // The disk is full: the frame of the commit is numbered after this one, or not.
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
        StandingTime::start(&self.times, &*self.environment.clock)
    }

    /// What is known of time, for a checkpoint.
    pub fn clock_record(&self) -> ClockRecord {
        self.clock().record()
    }

    /// The moment for a commit, which is logged now and then: a row that has expired does
    /// not come back, whatever the clocks of the machine show when the database is opened again.
    /// Under the commit lock.
    pub fn time_of_commit(&self) -> Result<Moment> {
        self.time_before(Purpose::Adds)
    }

    /// The same before a frame that is for something.
    pub fn time_before(&self, purpose: Purpose) -> Result<Moment> {
        let (now, due) = self.times.state().told_to_commit(&*self.environment.clock);
        let Some(drawn) = due else { return Ok(now) };
        self.log_clock(purpose, drawn.record())?;
        self.time_is_owed.store(false, Ordering::Relaxed);
        Ok(self.times.state().logged(&drawn))
    }

    /// Tells the log what is known of time. Under the commit lock.
    pub fn log_clock(&self, purpose: Purpose, record: ClockRecord) -> Result<()> {
        if self.is_durable() && !Bug::TimeNotLogged.is_planted() {
            self.log_before(purpose, &Edit::Clock(record))?;
        }
        Ok(())
    }

    /// Tells the log what is known of time when the database is closed. That this fails is no loss:
    /// the record before tells as much, but of what the wall clock has shown since. Under the
    /// commit lock.
    pub fn log_clock_at_close(&self) {
        if self.has_expiring() {
            let _ = self.log_clock(Purpose::Adds, self.clock_record());
        }
    }

    /// The time by which rows of a table may be destroyed that only readers to come see as expired.
    pub fn destroying_us(&self, schema: &Schema) -> i64 {
        let mut state = self.times.state();
        let now = state.told(&*self.environment.clock);
        Moment { date_us: state.clock.destroying_date_us(), ..now }.of(schema)
    }

    /// Fixes the moment for a snapshot.
    pub fn fix_time(&self) -> FixedTime {
        match self.has_expiring() {
            true => FixedTime::fix(&self.times, &*self.environment.clock),
            false => FixedTime::none(),
        }
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
        let least = state.live.least().filter(|_| !Bug::PurgeIgnoresSnapshots.is_planted());
        // default: no snapshot has fixed a moment
        least.map_or(now, |least| least.least(now))
    }
}
