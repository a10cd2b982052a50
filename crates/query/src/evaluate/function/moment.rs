//! Parts of dates and times, in the proleptic Gregorian calendar and UTC.

use esker_format::DataType;
use esker_format::calendar::{DAY_US, civil_from_days, days_from_civil};

use super::call::Call;
use super::interval;
use crate::Result;
use crate::evaluate::{Lanes, Vector};
use crate::model::date_unit::Unit;

/// The day, and the microseconds since its start.
pub(super) fn split(data_type: DataType, word: i64) -> (i64, i64) {
    match data_type {
        DataType::Date => (word, 0),
        DataType::Time => (0, word),
        _ => (word.div_euclid(DAY_US), word.rem_euclid(DAY_US)),
    }
}

/// `date_part`.
pub(super) fn part<'a>(call: &Call<'_, 'a>, unit: Unit) -> Result<Vector<'a>> {
    let operand = call.operand(1)?;
    if operand.data_type == DataType::Interval {
        return interval::part(call, unit);
    }
    let words = call.ints(1)?;
    let one = |i: usize| {
        let (days, us) = split(operand.data_type, words.get(i).copied().unwrap_or_default());
        Ok(Some(part_of(unit, days, us)))
    };
    call.map(operand.len(), |v| Lanes::Ints(v.into()), one)
}

pub(super) fn part_of(unit: Unit, days: i64, us: i64) -> i64 {
    let (year, month, day) = civil_from_days(days);
    match unit {
        Unit::Microsecond => us % 60_000_000,
        Unit::Millisecond => us % 60_000_000 / 1_000,
        Unit::Second => us / 1_000_000 % 60,
        Unit::Minute => us / 60_000_000 % 60,
        Unit::Hour => us / 3_600_000_000,
        Unit::Day => day,
        Unit::Week => {
            let thursday = thursday_of(days);
            (thursday - days_from_civil(civil_from_days(thursday).0, 1, 1)) / 7 + 1
        }
        Unit::Month => month,
        Unit::Quarter => (month + 2) / 3,
        Unit::Year => year,
        Unit::Isoyear => civil_from_days(thursday_of(days)).0,
        Unit::Doy => days - days_from_civil(year, 1, 1) + 1,
        Unit::Dow => (days + 4).rem_euclid(7),
        Unit::Isodow => days_since_monday(days) + 1,
        Unit::Epoch => days * 86_400 + us / 1_000_000,
        // As PostgreSQL has them: the first century begins in the year 1, the first before it in 0.
        Unit::Decade => year.div_euclid(10),
        Unit::Century => century(year, 100),
        Unit::Millennium => century(year, 1_000),
        Unit::Julian => days + JULIAN_1970,
    }
}

/// The Julian day of 1970-01-01.
pub(super) const JULIAN_1970: i64 = 2_440_588;

/// The number of so many years that a year lies in; there is no number 0.
pub(super) fn century(year: i64, years: i64) -> i64 {
    if year > 0 { (year - 1) / years + 1 } else { -((-year) / years + 1) }
}

/// 1970-01-01 was a Thursday.
fn days_since_monday(days: i64) -> i64 {
    (days + 3).rem_euclid(7)
}

/// The Thursday of the week, whose year and number are the week's.
fn thursday_of(days: i64) -> i64 {
    days - days_since_monday(days) + 3
}

/// `date_trunc`.
pub(super) fn truncate<'a>(call: &Call<'_, 'a>, unit: Unit) -> Result<Vector<'a>> {
    let operand = call.operand(1)?;
    if operand.data_type == DataType::Interval {
        return interval::truncate(call, unit);
    }
    let words = call.ints(1)?;
    let is_date = operand.data_type == DataType::Date;
    let one = |i: usize| {
        let word = words.get(i).copied().unwrap_or_default();
        let (days, us) = start_of(unit, split(operand.data_type, word));
        let start =
            if is_date { i32::try_from(days).ok().map(i64::from) } else { moment(days, us.into()) };
        start.map(Some).ok_or_else(|| call.error("the start lies before the first timestamp"))
    };
    call.map(operand.len(), |v| Lanes::Ints(v.into()), one)
}

pub(super) fn start_of(unit: Unit, (days, us): (i64, i64)) -> (i64, i64) {
    let (year, month, _) = civil_from_days(days);
    let clock = |step: i64| (days, us - us % step);
    match unit {
        Unit::Microsecond => (days, us),
        Unit::Millisecond => clock(1_000),
        Unit::Second => clock(1_000_000),
        Unit::Minute => clock(60_000_000),
        Unit::Hour => clock(3_600_000_000),
        Unit::Week => (days - days_since_monday(days), 0),
        Unit::Month => (days_from_civil(year, month, 1), 0),
        Unit::Quarter => (days_from_civil(year, (month - 1) / 3 * 3 + 1, 1), 0),
        Unit::Year => (days_from_civil(year, 1, 1), 0),
        Unit::Isoyear => {
            let first = days_from_civil(civil_from_days(thursday_of(days)).0, 1, 4);
            (first - days_since_monday(first), 0)
        }
        Unit::Decade => (days_from_civil(year.div_euclid(10) * 10, 1, 1), 0),
        // Years 1 to 100 are the first.
        Unit::Century => (days_from_civil((year - 1).div_euclid(100) * 100 + 1, 1, 1), 0),
        Unit::Millennium => (days_from_civil((year - 1).div_euclid(1_000) * 1_000 + 1, 1, 1), 0),
        _ => (days, 0),
    }
}

pub(crate) fn moment(days: i64, us: i128) -> Option<i64> {
    i64::try_from(i128::from(days) * i128::from(DAY_US) + us).ok()
}

/// `date_add`.
pub(super) fn add<'a>(call: &Call<'_, 'a>) -> Result<Vector<'a>> {
    let words = call.ints(0)?;
    let one = |i: usize| {
        let word = words.get(i).copied().unwrap_or_default();
        let moved = shifted(word, call.int(1, i, 0)?, call.int(2, i, 0)?);
        moved.map(Some).ok_or_else(|| call.error("the outcome is no timestamp"))
    };
    call.map(words.len(), |v| Lanes::Ints(v.into()), one)
}

/// A moment some months and then some microseconds later; `None` where that is no timestamp.
pub(crate) fn shifted(moment_us: i64, months: i64, us: i64) -> Option<i64> {
    i64::try_from(moved(moment_us.into(), months.into(), us.into())?).ok()
}

/// The same of microseconds that need be no timestamp, as those of a date; `None` beyond what the
/// calendar can count.
pub(crate) fn moved(moment_us: i128, months: i128, us: i128) -> Option<i128> {
    let day_us = i128::from(DAY_US);
    let days = i64::try_from(moment_us.div_euclid(day_us)).ok()?;
    let days = add_months(days, i64::try_from(months).ok()?)?;
    Some(i128::from(days) * day_us + moment_us.rem_euclid(day_us) + us)
}

/// The same day some months later, or the last day of that month.
pub(crate) fn add_months(days: i64, months: i64) -> Option<i64> {
    /// More than there are between any two timestamps.
    const MONTHS_MAX: i64 = 12_000_000;
    if months == 0 {
        return Some(days);
    }
    if !(-MONTHS_MAX..=MONTHS_MAX).contains(&months) {
        return None;
    }
    let (year, month, day) = civil_from_days(days);
    let total = year * 12 + month - 1 + months;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    let next = total + 1;
    let first = days_from_civil(year, month, 1);
    let length = days_from_civil(next.div_euclid(12), next.rem_euclid(12) + 1, 1) - first;
    Some(first + day.min(length) - 1)
}
