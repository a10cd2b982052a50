//! What lies between two moments, and moments made of numbers.

use esker_format::DataType;
use esker_format::calendar::{DAY_US, civil_from_days, days_from_civil};
use esker_format::event_id::{event_id_ms, event_id_text};

use super::call::Call;
use super::moment::{add_months, moment, split};
use crate::Result;
use crate::evaluate::{Lanes, Vector};
use crate::model::Function as F;
use crate::model::date_unit::Unit;

/// Years beyond these have no date.
const YEARS_MAX: i64 = 6_000_000;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The names of months from January, and of days from Sunday.
pub(super) fn month_name(month: i64) -> &'static str {
    usize::try_from(month - 1).ok().and_then(|i| MONTHS.get(i)).copied().unwrap_or_default()
}

/// The name of a day of the week, 0 for Sunday.
pub(super) fn day_name(day: i64) -> &'static str {
    usize::try_from(day).ok().and_then(|i| DAYS.get(i)).copied().unwrap_or_default()
}

/// The number of the name that a text begins with, in full or its first three letters, in any case,
/// from 0, and what stands behind it.
pub(super) fn name_at(text: &str, is_month: bool) -> Option<(i64, &str)> {
    let names: &[&str] = if is_month { &MONTHS } else { &DAYS };
    let find = |len: fn(&str) -> usize| {
        names.iter().zip(0i64..).find_map(|(name, i)| {
            let name = name.get(..len(name))?;
            let (start, rest) = text.split_at_checked(name.len())?;
            start.eq_ignore_ascii_case(name).then_some((i, rest))
        })
    };
    find(str::len).or_else(|| find(|_| 3))
}

/// `clock_timestamp`.
pub(super) fn clock_timestamp<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    let clock = call.meter.limits().clock.as_ref();
    let clock = clock.ok_or_else(|| {
        call.error("a constant is expected here, which is the same each time it is read")
    })?;
    call.map(len, |v| Lanes::Ints(v.into()), |_| Ok(Some(clock.wall_us())))
}

/// The days since 1970 of a date, where there is one.
pub(super) fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_near = (-YEARS_MAX..=YEARS_MAX).contains(&year);
    if !is_near || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_from_civil(year, month, day);
    let is_date = civil_from_days(days) == (year, month, day) && i32::try_from(days).is_ok();
    is_date.then_some(days)
}

/// `date_diff` and `date_sub`.
pub(super) fn between<'a>(call: &Call<'_, 'a>, unit: Unit) -> Result<Vector<'a>> {
    let (from, to) = (call.operand(1)?, call.operand(2)?);
    let (starts, ends) = (call.ints(1)?, call.ints(2)?);
    let at = |words: &[i64], i: usize| words.get(i).copied().unwrap_or_default();
    let one = |i: usize| {
        let a = split(from.data_type, at(starts, i));
        let b = split(to.data_type, at(ends, i));
        Ok(Some(match call.function {
            F::DateDiff => starts_between(unit, a, b),
            _ => whole_between(unit, a, b),
        }))
    };
    call.map(from.len(), |v| Lanes::Ints(v.into()), one)
}

/// Microseconds of a unit of the clock or of days; months of another one.
fn size(unit: Unit) -> std::result::Result<i64, i64> {
    Ok(match unit {
        Unit::Microsecond => 1,
        Unit::Millisecond => 1_000,
        Unit::Second => 1_000_000,
        Unit::Minute => 60_000_000,
        Unit::Hour => 3_600_000_000,
        Unit::Week => 7 * DAY_US,
        Unit::Month => return Err(1),
        Unit::Quarter => return Err(3),
        Unit::Year | Unit::Isoyear => return Err(12),
        Unit::Decade => return Err(120),
        Unit::Century => return Err(1_200),
        Unit::Millennium => return Err(12_000),
        _ => DAY_US,
    })
}

fn microseconds((days, us): (i64, i64)) -> i128 {
    i128::from(days) * i128::from(DAY_US) + i128::from(us)
}

fn fitting(count: i128) -> i64 {
    i64::try_from(count).unwrap_or(if count < 0 { i64::MIN } else { i64::MAX })
}

/// How many starts of a unit lie behind the first moment and not behind the second.
fn starts_between(unit: Unit, a: (i64, i64), b: (i64, i64)) -> i64 {
    let months = |(days, _): (i64, i64)| {
        let (year, month, _) = civil_from_days(days);
        year * 12 + month - 1
    };
    match (unit, size(unit)) {
        (Unit::Isoyear, _) => {
            let year = |(days, us)| super::moment::part_of(Unit::Isoyear, days, us);
            year(b) - year(a)
        }
        // Weeks begin on Monday, and 1970-01-01 was a Thursday.
        (Unit::Week, _) => (b.0 + 3).div_euclid(7) - (a.0 + 3).div_euclid(7),
        (_, Ok(size)) => {
            let size = i128::from(size);
            fitting(microseconds(b).div_euclid(size) - microseconds(a).div_euclid(size))
        }
        (_, Err(size)) => months(b).div_euclid(size) - months(a).div_euclid(size),
    }
}

/// How many whole units lie between two moments.
fn whole_between(unit: Unit, a: (i64, i64), b: (i64, i64)) -> i64 {
    match size(unit) {
        Ok(size) => fitting((microseconds(b) - microseconds(a)) / i128::from(size)),
        Err(size) if microseconds(a) > microseconds(b) => -whole_months(b, a) / size,
        Err(size) => whole_months(a, b) / size,
    }
}

/// How many months a moment can be moved and is not behind another one.
fn whole_months(a: (i64, i64), b: (i64, i64)) -> i64 {
    let ((year_a, month_a, _), (year_b, month_b, _)) = (civil_from_days(a.0), civil_from_days(b.0));
    let months = (year_b - year_a) * 12 + month_b - month_a;
    let moved = add_months(a.0, months).map(|days| microseconds((days, a.1)));
    months - i64::from(moved.is_some_and(|moved| moved > microseconds(b)))
}

/// `last_day`, `make_date`, `make_time`, `make_timestamp`, and `to_timestamp` of seconds.
pub(super) fn made<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    call.map(
        len,
        |v| Lanes::Ints(v.into()),
        |i| {
            let at = |operand: usize| call.int(operand, i, 0);
            let value = match call.function {
                F::LastDay => {
                    let (days, _) = split(call.operand(0)?.data_type, at(0)?);
                    let (year, month, _) = civil_from_days(days);
                    let first = days_from_civil(year, month, 1);
                    let next = add_months(first, 1).map(|next| next - 1);
                    next.filter(|days| i32::try_from(*days).is_ok())
                }
                F::MakeDate => days_of(at(0)?, at(1)?, at(2)?),
                F::MakeTime => clock(at(0)?, at(1)?, seconds(call, 2, i)?),
                F::MakeTimestamp => {
                    let days = days_of(at(0)?, at(1)?, at(2)?);
                    let us = clock(at(3)?, at(4)?, seconds(call, 5, i)?);
                    days.zip(us).and_then(|(days, us)| moment(days, us.into()))
                }
                F::ToTimestamp => microseconds_of(seconds(call, 0, i)?),
                _ => return Err(call.undefined()),
            };
            value.map(Some).ok_or_else(|| {
                let made = DataType::to_string(&call.data_type);
                call.error(format!("there is no such {made}"))
            })
        },
    )
}

fn seconds(call: &Call<'_, '_>, operand: usize, row: usize) -> Result<f64> {
    Ok(call.floats(operand)?.get(row).copied().unwrap_or_default())
}

/// Microseconds of seconds, where there are that many.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(super) fn microseconds_of(seconds: f64) -> Option<i64> {
    // Whole seconds apart, so that large ones lose no digit of the fraction.
    let (whole, fraction) = (seconds.floor(), seconds - seconds.floor());
    if whole.is_nan() || whole.abs() >= 9.3e12 {
        return None;
    }
    (whole as i64).checked_mul(1_000_000)?.checked_add((fraction * 1e6).round() as i64)
}

/// The microseconds of a time of day.
fn clock(hour: i64, minute: i64, second: f64) -> Option<i64> {
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0.0..60.0).contains(&second) {
        return None;
    }
    let us = hour * 3_600_000_000 + minute * 60_000_000 + microseconds_of(second)?;
    (us < DAY_US).then_some(us)
}

/// `dayname` and `monthname`.
pub(super) fn named<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    let operand = call.operand(0)?;
    let words = call.ints(0)?;
    call.map_bytes(len, |i, _| {
        let (days, _) = split(operand.data_type, words.get(i).copied().unwrap_or_default());
        let name = match call.function {
            F::DayName => day_name((days + 4).rem_euclid(7)),
            _ => month_name(civil_from_days(days).1),
        };
        Ok(Some(name.as_bytes().into()))
    })
}

/// `event_id`.
pub(super) fn event_id<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    let data_type = call.operand(0)?.data_type;
    let (words, row_ids) = (call.ints(0)?, call.ints(1)?);
    call.map_bytes(len, |i, _| {
        let (days, us) = split(data_type, words.get(i).copied().unwrap_or_default());
        let row_id = row_ids.get(i).copied().unwrap_or_default();
        let row_id = u64::try_from(row_id)
            .map_err(|_| call.error(format_args!("expected a row id, found {row_id}")))?;
        let time_us = days.saturating_mul(DAY_US).saturating_add(us);
        Ok(Some(event_id_text(event_id_ms(time_us), row_id).into_bytes().into()))
    })
}
