//! Spans of time: months, days and microseconds, each of its own sign, as months differ in days,
//! and days in hours where clocks change.
//!
//! SQL takes a month for 30 days and a day for 24 hours: `1 mon` equals `30 days` there. They are
//! not the same, though, and `==` of Rust tells them apart. The stored form has that length first,
//! so that bytes are in the order of lengths, and of months among equal ones:
//!
//! ```text
//! ┌────────────────────────────┬────────────┬────────────┐
//! │ length in microseconds     │ months     │ days       │   big-endian, the sign bit flipped
//! │ 10 bytes                   │ 4 bytes    │ 4 bytes    │
//! └────────────────────────────┴────────────┴────────────┘
//! ```

#![allow(clippy::big_endian_bytes, reason = "stored bytes are in the order of intervals")]

mod arithmetic;
mod parse;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;

use crate::calendar::DAY_US;
use crate::{Error, Result};

pub use parse::IntervalUnit;

/// Bytes of the stored form.
pub const INTERVAL_BYTES: usize = 18;

/// Bytes of the length in it, in front.
pub const INTERVAL_LENGTH_BYTES: usize = 10;

/// What the order takes for the days of a month.
pub const MONTH_DAYS: i64 = 30;

/// The sign bit of the length.
const LENGTH_SIGN: i128 = 1 << (INTERVAL_LENGTH_BYTES * 8 - 1);

const SIGN: u32 = 1 << 31;

/// The stored form of no time.
pub(crate) const NO_TIME: [u8; INTERVAL_BYTES] =
    [128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 128, 0, 0, 0];

/// A span of time.
///
/// ```
/// use esker_format::Interval;
///
/// let interval: Interval = "1 year 2 months -3 days 04:05:06.7".parse()?;
/// assert_eq!((interval.months(), interval.days()), (14, -3));
/// assert_eq!(interval.to_string(), "1 year 2 mons -3 days +04:05:06.7");
/// assert_eq!(Interval::new(1, 0, 0).length_us(), Interval::new(0, 30, 0).length_us());
/// # Ok::<(), esker_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    stored: [u8; INTERVAL_BYTES],
}

impl Interval {
    /// So many months, days and microseconds.
    #[must_use]
    pub fn new(months: i32, days: i32, microseconds: i64) -> Self {
        let length = whole_days_us(months, days) + i128::from(microseconds);
        let mut stored = [0; INTERVAL_BYTES];
        let length = (length + LENGTH_SIGN).cast_unsigned().to_be_bytes();
        if let (Some(to), Some(from)) = (stored.first_chunk_mut(), length.last_chunk()) {
            let to: &mut [u8; INTERVAL_LENGTH_BYTES] = to;
            *to = *from;
        }
        let flipped = |v: i32| u64::from(v.cast_unsigned() ^ SIGN);
        if let Some(to) = stored.last_chunk_mut() {
            *to = (flipped(months) << 32 | flipped(days)).to_be_bytes();
        }
        Self { stored }
    }

    /// The interval of a stored form.
    ///
    /// # Errors
    /// `Corrupt` where the bytes are none.
    pub fn from_stored(stored: &[u8; INTERVAL_BYTES]) -> Result<Self> {
        let interval = Self { stored: *stored };
        match interval.rest() {
            Some(_) => Ok(interval),
            None => Err(Error::corrupt("an interval whose length is not that of its parts")),
        }
    }

    /// The interval of bytes that were stored. Bytes that are none (which a checksum would have to
    /// miss first) read as no time.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        // default: other bytes read so, as said above.
        bytes.as_array().map_or(Self::default(), |stored| Self { stored: *stored })
    }

    /// The stored form.
    #[must_use]
    pub fn stored(&self) -> &[u8; INTERVAL_BYTES] {
        &self.stored
    }

    /// The months; years are 12 of them.
    #[must_use]
    pub fn months(self) -> i32 {
        self.parts().0
    }

    /// The days that are in no month.
    #[must_use]
    pub fn days(self) -> i32 {
        self.parts().1
    }

    /// The microseconds that are in no day.
    #[must_use]
    pub fn microseconds(self) -> i64 {
        self.rest().unwrap_or_default() // default: bytes that are no interval read so.
    }

    /// The microseconds that the order goes by: a month has 30 days, and a day 24 hours.
    #[must_use]
    pub fn length_us(self) -> i128 {
        let mut wide = [0; 16];
        if let (Some(to), Some(from)) = (wide.last_chunk_mut(), self.stored.first_chunk()) {
            let to: &mut [u8; INTERVAL_LENGTH_BYTES] = to;
            *to = *from;
        }
        i128::from_be_bytes(wide) - LENGTH_SIGN
    }

    #[allow(clippy::cast_possible_truncation, reason = "the halves of a word")]
    fn parts(self) -> (i32, i32) {
        // default: 8 bytes are always there.
        let word = self.stored.last_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let part = |v: u64| (v as u32 ^ SIGN).cast_signed();
        (part(word >> 32), part(word))
    }

    /// The length without that of months and days, if it is one.
    fn rest(self) -> Option<i64> {
        let (months, days) = self.parts();
        i64::try_from(self.length_us() - whole_days_us(months, days)).ok()
    }
}

fn whole_days_us(months: i32, days: i32) -> i128 {
    i128::from(i64::from(months) * MONTH_DAYS + i64::from(days)) * i128::from(DAY_US)
}

impl Default for Interval {
    fn default() -> Self {
        Self { stored: NO_TIME }
    }
}

impl PartialOrd for Interval {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Interval {
    fn cmp(&self, other: &Self) -> Ordering {
        self.stored.cmp(&other.stored)
    }
}

impl fmt::Display for Interval {
    /// Writes it as PostgreSQL does: `1 year 2 mons 3 days 04:05:06.7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (months, days) = self.parts();
        let microseconds = self.microseconds();
        let (mut is_first, mut was_negative) = (true, false);
        for (value, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
            if value == 0 {
                continue;
            }
            let space = if is_first { "" } else { " " };
            let plus = if was_negative && value > 0 { "+" } else { "" };
            let plural = if value == 1 { "" } else { "s" };
            write!(f, "{space}{plus}{value} {unit}{plural}")?;
            (is_first, was_negative) = (false, value < 0);
        }
        if microseconds == 0 && !is_first {
            return Ok(());
        }
        let space = if is_first { "" } else { " " };
        let sign = match microseconds < 0 {
            true => "-",
            false if was_negative => "+",
            false => "",
        };
        let us = microseconds.unsigned_abs();
        let (seconds, fraction) = (us / 1_000_000, us % 1_000_000);
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        write!(f, "{space}{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60)?;
        if fraction > 0 {
            write!(f, ".{}", format!("{fraction:06}").trim_end_matches('0'))?;
        }
        Ok(())
    }
}
