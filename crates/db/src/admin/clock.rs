//! What a database knows of time, and what an administrator may do about it.

use std::time::Duration;

use esker_format::Moment;
use serde::{Deserialize, Serialize};

use crate::admin::date_move::DateMove;
use crate::clock::{DatabaseClock, HOLD_US, KEPT_US};
use crate::{Database, Error, ErrorKind, Result};

/// What a database knows of time. Elapsed time decides when times to live are over, the date when
/// rows expire that have a date.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockInfo {
    /// The elapsed time of the database in microseconds. It equals the date in a new database.
    pub elapsed_us: i64,
    /// The date that the database goes by, in microseconds since 1970.
    pub date_us: i64,
    /// What the wall clock of the machine shows, in microseconds since 1970.
    pub wall_us: i64,
    /// Wall clock and date differ, and the wall clock is not believed yet.
    pub is_suspect: bool,
    /// For how long the wall clock has been seen to keep that difference.
    pub kept: Duration,
    /// For how long it has to keep it until the date follows.
    pub needed: Duration,
    /// The date has moved forward: for so long nothing is destroyed that expired by that.
    pub held: Duration,
    /// How far it moved.
    pub held_by: Duration,
}

impl ClockInfo {
    fn of(clock: &DatabaseClock) -> Self {
        let Moment { elapsed_us, date_us } = clock.moment();
        let (suspicion, hold) = (clock.suspicion(), clock.hold());
        // default: without a suspicion nothing is kept
        let kept_us = suspicion.map_or(0, |suspicion| suspicion.kept_us);
        // default: without a suspicion nothing is kept
        let held_us = hold.map_or(0, |hold| hold.until_us.saturating_sub(elapsed_us).min(HOLD_US));
        Self {
            elapsed_us,
            date_us,
            wall_us: clock.wall_us(),
            is_suspect: suspicion.is_some(),
            kept: duration(kept_us),
            needed: duration(KEPT_US),
            held: duration(held_us),
            // default: without a hold nothing is held
            held_by: duration(hold.map_or(0, |hold| hold.back_us)),
        }
    }

    /// The wall clock less the date, in microseconds.
    #[must_use]
    pub fn offset_us(&self) -> i64 {
        self.wall_us.saturating_sub(self.date_us)
    }

    /// In words, what is wrong: the wall clock is suspect.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let offset_us = self.offset_us();
        let side = if offset_us < 0 { "behind" } else { "ahead of" };
        let by = duration(offset_us.saturating_abs()).as_secs_f64();
        self.is_suspect.then(|| {
            format!(
                "the machine's clock is {by:.1} s {side} the date that the database goes by, and \
                 has been seen so for {} of {} s; see esker clock",
                self.kept.as_secs(),
                self.needed.as_secs()
            )
        })
    }
}

fn duration(us: i64) -> Duration {
    Duration::from_micros(us.max(0).unsigned_abs())
}

impl Database {
    /// What the database knows of time.
    ///
    /// ```
    /// # let db = esker::Options::new().memory()?;
    /// let clock = db.clock();
    /// assert!(!clock.is_suspect && clock.warning().is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn clock(&self) -> ClockInfo {
        ClockInfo::of(&self.engine().clock())
    }

    /// The moment at which rows have expired now: the elapsed time of the database, and the date
    /// that it goes by.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.engine().now()
    }

    /// The wall clock of the machine is right: the database goes by it from now on. Where that is
    /// behind the date, rows that had expired by the date are ended with that, in one step for
    /// readers: what has expired does not come back. Returns how many rows that were.
    ///
    /// # Errors
    /// `ReadOnly`, and those of a commit.
    pub fn confirm_clock(&self) -> Result<u64> {
        let to = self.date_by_wall()?;
        let count = self.engine().count_ended_by(to)?;
        self.engine().move_date(to)?;
        self.engine().acknowledge_published()?;
        Ok(count)
    }

    /// Takes a date back that is ahead of the wall clock, which is right: as
    /// [`Database::confirm_clock`] does. Nothing is done where the date is not ahead.
    ///
    /// # Errors
    /// As for [`Database::confirm_clock`]; `InvalidInput` when the wall clock is ahead of the date.
    pub fn reset_clock(&self) -> Result<u64> {
        self.expect_behind()?;
        self.confirm_clock()
    }

    /// How many rows [`Database::confirm_clock`] and [`Database::reset_clock`] would end.
    ///
    /// # Errors
    /// `Corrupt` when the times at which rows expire cannot be read.
    pub fn rows_ended_by_clock(&self) -> Result<u64> {
        let wall_us = self.engine().clock().wall_us();
        self.engine().count_ended_by(DateMove { to_us: wall_us, ended_until_us: i64::MAX })
    }

    /// Takes the last move of the date forward back, while nothing has been destroyed by it: the
    /// database goes by the wall clock, which is right, and rows that had expired only by that move
    /// are there again, unless something took their place. Rows that had expired before it are
    /// ended where the wall clock would bring them back. This is the one way in which what has
    /// expired comes back.
    ///
    /// # Errors
    /// As for [`Database::reset_clock`]; `InvalidInput` when the date has not moved forward within
    /// the last hour.
    pub fn restore_clock(&self) -> Result<u64> {
        self.expect_behind()?;
        let clock = self.engine().clock();
        if clock.hold().is_none() {
            let message = "the date has not moved forward within the last hour: rows that expired \
                           by it may be gone";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let to = DateMove { ended_until_us: clock.destroying_date_us(), ..self.date_by_wall()? };
        let count = self.engine().count_ended_by(to)?;
        self.engine().move_date(to)?;
        self.engine().acknowledge_published()?;
        Ok(count)
    }

    fn expect_behind(&self) -> Result<()> {
        let offset_us = ClockInfo::of(&self.engine().clock()).offset_us();
        if offset_us > 0 {
            let by = duration(offset_us).as_secs_f64();
            let message = format!(
                "the machine's clock is {by:.1} s ahead of the date: there is nothing to take \
                 back; esker clock confirm moves the date forward"
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        Ok(())
    }

    fn date_by_wall(&self) -> Result<DateMove> {
        if self.engine().options.read_only {
            let message = "the database is opened for reading, and its date cannot be moved";
            return Err(Error::new(ErrorKind::ReadOnly, message));
        }
        let to_us = self.engine().clock().wall_us();
        Ok(DateMove { to_us, ended_until_us: i64::MAX })
    }
}
