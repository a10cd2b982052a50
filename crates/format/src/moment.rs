//! The two times by which rows expire.

use crate::Schema;

/// By which time the rows of a table expire (protocol rule 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ExpiryClock {
    /// By the date that the database goes by: a field says on which date a row expires.
    #[default]
    Date,
    /// By the elapsed time of the database: a field says when a time to live is over, whatever the
    /// wall clock shows.
    Elapsed,
}

/// The two times of a database at one moment, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Elapsed time, by which times to live end. It equals the date in a new database, and no step
    /// of the wall clock touches it.
    pub elapsed_us: i64,
    /// The date that the database goes by, since 1970.
    pub date_us: i64,
}

impl Default for Moment {
    fn default() -> Self {
        Self::FIRST
    }
}

impl Moment {
    /// Before anything has expired.
    pub const FIRST: Self = Self { elapsed_us: i64::MIN, date_us: i64::MIN };
    /// After everything has expired.
    pub const LAST: Self = Self { elapsed_us: i64::MAX, date_us: i64::MAX };

    /// The time by which rows of a table expire.
    #[must_use]
    #[inline]
    pub fn of(self, schema: &Schema) -> i64 {
        match schema.expiry_clock() {
            ExpiryClock::Date => self.date_us,
            ExpiryClock::Elapsed => self.elapsed_us,
        }
    }

    /// The earlier one of each time.
    #[must_use]
    #[inline]
    pub fn least(self, other: Self) -> Self {
        Self {
            elapsed_us: self.elapsed_us.min(other.elapsed_us),
            date_us: self.date_us.min(other.date_us),
        }
    }

    /// The one that came first. Elapsed time tells: the date may have been taken back between them.
    #[must_use]
    #[inline]
    pub fn first(self, other: Self) -> Self {
        if other.elapsed_us < self.elapsed_us { other } else { self }
    }

    /// The elapsed time at which a time is reached by which rows of a table expire, as far as can
    /// be said now.
    #[must_use]
    pub fn elapsed_of(self, schema: &Schema, time_us: i64) -> i64 {
        match schema.expiry_clock() {
            ExpiryClock::Date => self.elapsed_of_date(time_us),
            ExpiryClock::Elapsed => time_us,
        }
    }

    /// The date at which an elapsed time is reached, as far as can be said now.
    #[must_use]
    pub fn date_of_elapsed(self, elapsed_us: i64) -> i64 {
        moved(elapsed_us, self.elapsed_us, self.date_us)
    }

    /// The elapsed time at which a date is reached, as far as can be said now.
    #[must_use]
    pub fn elapsed_of_date(self, date_us: i64) -> i64 {
        moved(date_us, self.date_us, self.elapsed_us)
    }
}

/// A time that is as far from `to_us` as it was from `from_us`.
fn moved(time_us: i64, from_us: i64, to_us: i64) -> i64 {
    let moved = i128::from(time_us) - i128::from(from_us) + i128::from(to_us);
    // default: a time beyond the first or the last one is that one.
    i64::try_from(moved).unwrap_or(if moved < 0 { i64::MIN } else { i64::MAX })
}
