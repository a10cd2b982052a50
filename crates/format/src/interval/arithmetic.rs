//! Sums, multiples and other intervals made of intervals, as PostgreSQL makes them.

use super::{Interval, MONTH_DAYS};
use crate::calendar::DAY_US;

const DAY_SECONDS: f64 = 86_400.0;

#[allow(clippy::cast_possible_truncation, reason = "constant, and small")]
const MONTH: i32 = MONTH_DAYS as i32;

impl Interval {
    /// Part by part; `None` where a part does not fit.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self::new(
            self.months().checked_add(other.months())?,
            self.days().checked_add(other.days())?,
            self.microseconds().checked_add(other.microseconds())?,
        ))
    }

    /// Part by part; `None` where a part does not fit.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        Some(Self::new(
            self.months().checked_sub(other.months())?,
            self.days().checked_sub(other.days())?,
            self.microseconds().checked_sub(other.microseconds())?,
        ))
    }

    /// Each part with the other sign; `None` where one does not fit.
    #[must_use]
    pub fn checked_neg(self) -> Option<Self> {
        Self::default().checked_sub(self)
    }

    /// So many times as long. What is no whole month becomes days, and what is no whole day
    /// microseconds; `None` where a part does not fit.
    #[must_use]
    pub fn checked_mul(self, factor: f64) -> Option<Self> {
        self.scaled(&|part| part * factor)
    }

    /// That part of it, as [`Interval::checked_mul`]; `None` where a part does not fit, and of a
    /// division by zero.
    #[must_use]
    pub fn checked_div(self, divisor: f64) -> Option<Self> {
        self.scaled(&|part| part / divisor)
    }

    #[allow(clippy::cast_precision_loss, reason = "as PostgreSQL does")]
    fn scaled(self, scale: &dyn Fn(f64) -> f64) -> Option<Self> {
        let (months, days) = (scale(self.months().into()), scale(self.days().into()));
        let of_month = rounded((months - months.trunc()) * f64::from(MONTH));
        let rest = days - days.trunc() + (of_month - of_month.trunc());
        let mut seconds = rounded(rest * DAY_SECONDS);
        let mut whole_days = whole(days)?;
        if seconds.abs() >= DAY_SECONDS {
            let more = (seconds / DAY_SECONDS).trunc();
            whole_days = whole_days.checked_add(whole(more)?)?;
            seconds -= more * DAY_SECONDS;
        }
        whole_days = whole_days.checked_add(whole(of_month)?)?;
        let microseconds = (scale(self.microseconds() as f64) + seconds * 1e6).round_ties_even();
        Some(Self::new(
            i32::try_from(whole(months)?).ok()?,
            i32::try_from(whole_days).ok()?,
            whole(microseconds)?,
        ))
    }

    /// With days of 24 hours each taken out of the time.
    #[must_use]
    pub fn justify_hours(self) -> Option<Self> {
        let (mut days, mut us) = (i64::from(self.days()), self.microseconds());
        (days, us) = (days + us / DAY_US, us % DAY_US);
        if days > 0 && us < 0 {
            (days, us) = (days - 1, us + DAY_US);
        } else if days < 0 && us > 0 {
            (days, us) = (days + 1, us - DAY_US);
        }
        Some(Self::new(self.months(), i32::try_from(days).ok()?, us))
    }

    /// With months of 30 days each taken out of the days.
    #[must_use]
    pub fn justify_days(self) -> Option<Self> {
        let (mut months, mut days) = (self.months(), self.days());
        (months, days) = (months.checked_add(days / MONTH)?, days % MONTH);
        if months > 0 && days < 0 {
            (months, days) = (months - 1, days + MONTH);
        } else if months < 0 && days > 0 {
            (months, days) = (months + 1, days - MONTH);
        }
        Some(Self::new(months, days, self.microseconds()))
    }

    /// With both, and all parts of one sign.
    #[must_use]
    pub fn justify_interval(self) -> Option<Self> {
        let (mut months, mut us) = (i64::from(self.months()), self.microseconds());
        let mut days = i64::from(self.days()) + us / DAY_US;
        us %= DAY_US;
        (months, days) = (months + days / MONTH_DAYS, days % MONTH_DAYS);
        if months > 0 && (days < 0 || (days == 0 && us < 0)) {
            (months, days) = (months - 1, days + MONTH_DAYS);
        } else if months < 0 && (days > 0 || (days == 0 && us > 0)) {
            (months, days) = (months + 1, days - MONTH_DAYS);
        }
        if days > 0 && us < 0 {
            (days, us) = (days - 1, us + DAY_US);
        } else if days < 0 && us > 0 {
            (days, us) = (days + 1, us - DAY_US);
        }
        Some(Self::new(i32::try_from(months).ok()?, i32::try_from(days).ok()?, us))
    }
}

/// To whole microseconds, of seconds.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round_ties_even() / 1e6
}

/// The whole part, where it fits.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole(v: f64) -> Option<i64> {
    let end = 2f64.powi(63);
    (-end..end).contains(&v).then_some(v.trunc() as i64)
}
