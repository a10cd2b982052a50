//! Functions of intervals, and those that make them.

use std::borrow::Cow;

use esker_format::calendar::{DAY_US, civil_from_days, days_from_civil};
use esker_format::{DataType, Interval};

use super::call::Call;
use super::moment::split;
use super::sqlite_time::one_time_of;
use crate::evaluate::{Lanes, Vector};
use crate::model::Function as F;
use crate::model::date_unit::Unit;
use crate::{Error, Result};

/// Days of a year that the epoch of an interval counts, times four.
const FOUR_YEARS_DAYS: i64 = 1_461;

pub(super) fn call<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    match call.function {
        F::Isfinite => call.map(len, Lanes::Bools, |_| Ok(Some(true))),
        F::Timediff => call.map_bytes(len, |row, _| {
            let times = (one_time_of(call, 0, row)?, one_time_of(call, 1, row)?);
            let (Some(later), Some(earlier)) = times else { return Ok(None) };
            Ok(Some(Cow::Owned(timediff(later, earlier).into_bytes())))
        }),
        _ => intervals(call, len, |row| match call.function {
            F::MakeInterval => made(call, row),
            F::Age => {
                let word = |i| call.ints(i).map(|v| v.get(row).copied().unwrap_or_default());
                Ok(age(word(0)?, word(1)?))
            }
            _ => {
                let interval = Interval::of_bytes(call.operand(0)?.lanes.bytes(row));
                Ok(match call.function {
                    F::JustifyHours => interval.justify_hours(),
                    F::JustifyDays => interval.justify_days(),
                    F::JustifyInterval => interval.justify_interval(),
                    _ => return Err(call.undefined()),
                })
            }
        }),
    }
}

/// An interval of each row; one that is none is an error.
fn intervals<'a>(
    call: &Call<'_, 'a>,
    len: usize,
    mut one: impl FnMut(usize) -> Result<Option<Interval>>,
) -> Result<Vector<'a>> {
    call.map_bytes(len, |row, _| match one(row)? {
        Some(interval) => Ok(Some(Cow::Owned(interval.stored().to_vec()))),
        None => Err(call.error("the outcome is out of the range of interval")),
    })
}

/// `make_interval`.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
fn made(call: &Call<'_, '_>, row: usize) -> Result<Option<Interval>> {
    let part = |i, each: i64| Ok::<_, Error>(call.int(i, row, 0)?.checked_mul(each));
    let parts = |units: [(usize, i64); 2]| {
        let [(a, each_a), (b, each_b)] = units;
        let (a, b) = (part(a, each_a)?, part(b, each_b)?);
        Ok::<_, Error>(a.and_then(|a| a.checked_add(b?)))
    };
    let (months, days) = (parts([(0, 12), (1, 1)])?, parts([(2, 7), (3, 1)])?);
    let clock = parts([(4, 3_600_000_000), (5, 60_000_000)])?;
    let seconds = match call.has(6) {
        true => call.floats(6)?.get(row).copied().unwrap_or_default(),
        false => 0.0,
    };
    let seconds_us = (seconds * 1e6).round_ties_even();
    let fits = seconds_us.abs() < 2f64.powi(63);
    let made = || {
        let us = clock?.checked_add(fits.then_some(seconds_us as i64)?)?;
        Some(Interval::new(i32::try_from(months?).ok()?, i32::try_from(days?).ok()?, us))
    };
    Ok(made())
}

/// Years, months, days and time between two timestamps, as a calendar counts them: what is less
/// than a month counts in days of the month in which the earlier is.
fn age(to: i64, from: i64) -> Option<Interval> {
    let (later, earlier) = (to.max(from), to.min(from));
    let (days, us) = split(DataType::Timestamp, later);
    let (days_before, us_before) = split(DataType::Timestamp, earlier);
    let (a, b) = (civil_from_days(days), civil_from_days(days_before));
    let mut months = (a.0 - b.0) * 12 + (a.1 - b.1);
    let (mut days, mut us) = (a.2 - b.2, us - us_before);
    if us < 0 {
        (days, us) = (days - 1, us + DAY_US);
    }
    if days < 0 {
        let next = b.0 * 12 + b.1;
        let first = days_from_civil(b.0, b.1, 1);
        let length = days_from_civil(next.div_euclid(12), next.rem_euclid(12) + 1, 1) - first;
        (months, days) = (months - 1, days + length);
    }
    let age = Interval::new(i32::try_from(months).ok()?, i32::try_from(days).ok()?, us);
    if to < from { age.checked_neg() } else { Some(age) }
}

/// SQLite's difference: what, added to the earlier, gives the later.
fn timediff(later: (i64, i64), earlier: (i64, i64)) -> String {
    const MONTHS: i64 = 12;
    let ms = |(days, us): (i64, i64)| days * 86_400_000 + us / 1_000;
    let (to, from) = (ms(later), ms(earlier));
    let is_back = to < from;
    let (to_month, (from_month, day)) = {
        let ((a, b, _), (c, d, day)) = (civil_from_days(later.0), civil_from_days(earlier.0));
        (a * MONTHS + b - 1, (c * MONTHS + d - 1, day))
    };
    // Whole months from the earlier; its day may be one that a month has not.
    let after = |months: i64| {
        let month = from_month + months;
        let first = days_from_civil(month.div_euclid(MONTHS), month.rem_euclid(MONTHS) + 1, 1);
        ms((first + day - 1, earlier.1))
    };
    let mut months = to_month - from_month;
    let is_past = |at: i64| if is_back { at < to } else { at > to };
    while is_past(after(months)) {
        months += if is_back { 1 } else { -1 };
    }
    let rest = (to - after(months)).abs();
    let (sign, months) = (if is_back { '-' } else { '+' }, months.abs());
    let (days, rest) = (rest / 86_400_000, rest % 86_400_000);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, ms) = (rest / 1_000 % 60, rest % 1_000);
    let (year, month) = (months / MONTHS, months % MONTHS);
    format!("{sign}{year:04}-{month:02}-{days:02} {hour:02}:{minute:02}:{second:02}.{ms:03}")
}

/// `date_part` of an interval.
pub(super) fn part<'a>(call: &Call<'_, 'a>, unit: Unit) -> Result<Vector<'a>> {
    let operand = call.operand(1)?;
    call.map(
        operand.len(),
        |v| Lanes::Ints(v.into()),
        |row| {
            part_of(unit, Interval::of_bytes(operand.lanes.bytes(row)))
                .map_or_else(|| Err(call.undefined()), |part| Ok(Some(part)))
        },
    )
}

fn part_of(unit: Unit, interval: Interval) -> Option<i64> {
    let (months, us) = (i64::from(interval.months()), interval.microseconds());
    let days = i64::from(interval.days());
    Some(match unit {
        Unit::Microsecond => us % 60_000_000,
        Unit::Millisecond => us % 60_000_000 / 1_000,
        Unit::Second => us / 1_000_000 % 60,
        Unit::Minute => us / 60_000_000 % 60,
        Unit::Hour => us / 3_600_000_000,
        Unit::Day => days,
        Unit::Month => months % 12,
        Unit::Quarter => months % 12 / 3 + 1,
        Unit::Year => months / 12,
        Unit::Decade => months / 120,
        Unit::Century => months / 1_200,
        Unit::Millennium => months / 12_000,
        Unit::Epoch => {
            let of_years = months / 12 * FOUR_YEARS_DAYS * 86_400 / 4;
            of_years + (months % 12 * 30 + days) * 86_400 + us / 1_000_000
        }
        _ => return None,
    })
}

/// `date_trunc` of an interval: towards no time.
pub(super) fn truncate<'a>(call: &Call<'_, 'a>, unit: Unit) -> Result<Vector<'a>> {
    let operand = call.operand(1)?;
    intervals(call, operand.len(), |row| {
        let interval = Interval::of_bytes(operand.lanes.bytes(row));
        let months = |step: i32| Interval::new(interval.months() / step * step, 0, 0);
        let clock = |step: i64| {
            let us = interval.microseconds();
            Interval::new(interval.months(), interval.days(), us / step * step)
        };
        Ok(Some(match unit {
            Unit::Microsecond => interval,
            Unit::Millisecond => clock(1_000),
            Unit::Second => clock(1_000_000),
            Unit::Minute => clock(60_000_000),
            Unit::Hour => clock(3_600_000_000),
            Unit::Day => Interval::new(interval.months(), interval.days(), 0),
            Unit::Month => months(1),
            Unit::Quarter => months(3),
            Unit::Year => months(12),
            Unit::Decade => months(120),
            Unit::Century => months(1_200),
            Unit::Millennium => months(12_000),
            _ => return Err(call.undefined()),
        }))
    })
}
