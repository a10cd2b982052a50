//! SQLite's functions of times: `date`, `time`, `datetime`, `julianday`, `unixepoch`, with their
//! modifiers. What is no time, or no modifier, makes NULL.

use esker_format::DataType;
use esker_format::calendar::{DAY_US, civil_from_days, days_from_civil, parse_timestamp};

use super::call::Call;
use super::moment::{JULIAN_1970, moment, split};
use super::strftime::{Read, digits, fraction};
use crate::Result;
use crate::evaluate::{Lanes, Vector};
use crate::model::Function as F;

/// A day and the microseconds since its start.
type Time = (i64, i64);

/// Julian days of times that SQLite knows: the years -4713 to 9999.
const JULIAN: std::ops::Range<f64> = 0.0..5_373_484.5;

pub(super) fn call<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    if call.function == F::Julianday {
        let one = |row| Ok(time_of(call, 0, row)?.map(julian));
        return call.map(len, |v| Lanes::Floats(v.into()), one);
    }
    call.map(
        len,
        |v| Lanes::Ints(v.into()),
        |row| {
            let Some((days, us)) = time_of(call, 0, row)? else { return Ok(None) };
            let second = us - us % 1_000_000;
            let us = if has_fractions(call, row) { us } else { second };
            Ok(match call.function {
                F::SqliteDate => Some(days),
                F::SqliteTime => Some(us),
                F::SqliteDatetime => moment(days, us.into()),
                F::Unixepoch => Some(days * 86_400 + us / 1_000_000),
                _ => return Err(call.undefined()),
            })
        },
    )
}

/// Whether a modifier asks for fractions of seconds.
fn has_fractions(call: &Call<'_, '_>, row: usize) -> bool {
    let is_asked = |bytes: &[u8]| {
        bytes.eq_ignore_ascii_case(b"subsec") || bytes.eq_ignore_ascii_case(b"subsecond")
    };
    call.vectors.iter().skip(1).any(|v| is_asked(v.lanes.bytes(row)))
}

/// The Julian day of a time.
pub(super) fn julian((days, us): Time) -> f64 {
    // Of whole milliseconds, as SQLite has it.
    let ms = (days + JULIAN_1970) * 86_400_000 - 43_200_000 + us / 1_000;
    ms as f64 / 86_400_000.0
}

#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
fn from_julian(julian: f64) -> Option<Time> {
    // To the millisecond, as SQLite has it.
    let ms = JULIAN.contains(&julian).then(|| (julian * 86_400_000.0).round() as i64)?;
    let since_1970 = ms - (JULIAN_1970 * 86_400_000 - 43_200_000);
    Some((since_1970.div_euclid(86_400_000), since_1970.rem_euclid(86_400_000) * 1_000))
}

#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
fn from_epoch(seconds: f64) -> Option<Time> {
    let ms = (seconds.abs() < 4e11).then(|| (seconds * 1e3).round() as i64)?;
    let days = ms.div_euclid(86_400_000);
    let time = (days, ms.rem_euclid(86_400_000) * 1_000);
    JULIAN.contains(&julian(time)).then_some(time)
}

/// The time that operand `first` is, changed by those behind it; `None` where one is none.
pub(super) fn time_of(call: &Call<'_, '_>, first: usize, row: usize) -> Result<Option<Time>> {
    let modifiers = call.vectors.get(first + 1..).unwrap_or_default();
    changed_time(call, call.operand(first)?, row, modifiers)
}

/// The time that an operand is, unchanged; `None` where it is none.
pub(super) fn one_time_of(call: &Call<'_, '_>, at: usize, row: usize) -> Result<Option<Time>> {
    changed_time(call, call.operand(at)?, row, &[])
}

fn changed_time(
    call: &Call<'_, '_>,
    operand: &Vector<'_>,
    row: usize,
    modifiers: &[Vector<'_>],
) -> Result<Option<Time>> {
    let modifiers = modifiers.iter();
    let modifiers = modifiers.map(|v| std::str::from_utf8(v.lanes.bytes(row)).unwrap_or_default());
    let mut modifiers = modifiers.peekable();
    let number = match &operand.lanes {
        Lanes::Floats(values) => values.get(row).copied(),
        Lanes::Bytes(_) => {
            let text = std::str::from_utf8(operand.lanes.bytes(row)).unwrap_or_default().trim();
            text.parse::<f64>().ok().filter(|v| v.is_finite())
        }
        _ => None,
    };
    let start = match (&operand.lanes, number) {
        (_, Some(number)) => {
            let unit = modifiers.peek().map(|m| m.to_ascii_lowercase()).unwrap_or_default();
            if matches!(unit.as_str(), "unixepoch" | "julianday" | "auto") {
                modifiers.next();
            }
            match unit.as_str() {
                "unixepoch" => from_epoch(number),
                "auto" if !JULIAN.contains(&number) => from_epoch(number),
                _ => from_julian(number),
            }
        }
        (Lanes::Bytes(_), None) => {
            read(std::str::from_utf8(operand.lanes.bytes(row)).unwrap_or_default().trim())
        }
        (Lanes::Ints(words), None) => words.get(row).map(|word| split(operand.data_type, *word)),
        _ => return Err(call.undefined()),
    };
    let start = match operand.data_type {
        // Times of day are those of 2000-01-01.
        DataType::Time => start.map(|(_, us)| (days_from_civil(2000, 1, 1), us)),
        _ => start,
    };
    Ok(modifiers.fold(start, |time, modifier| changed(time?, &modifier.to_ascii_lowercase())))
}

/// A text as a time.
fn read(text: &str) -> Option<Time> {
    if let Some((day, us)) = clock(text) {
        // A time of day alone is that of 2000-01-01.
        return Some((days_from_civil(2000, 1, 1) + day, us));
    }
    let us = parse_timestamp(text).ok()?;
    Some((us.div_euclid(DAY_US), us.rem_euclid(DAY_US)))
}

/// `HH:MM[:SS[.SSS]]` and perhaps how far that is from UTC.
fn clock(text: &str) -> Option<Time> {
    let (hour, rest) = digits(text, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = match rest.strip_prefix(':') {
        Some(rest) => digits(rest, 2)?,
        None => (0, rest),
    };
    let (us, rest) = match rest.strip_prefix('.') {
        Some(rest) => fraction(rest)?,
        None => (0, rest),
    };
    let mut read = Read::default();
    let rest = match rest.trim_start() {
        "" => "",
        zone => super::strftime::offset(zone, &mut read)?,
    };
    let is_clock = rest.trim().is_empty() && hour < 25 && minute < 60 && second < 60;
    let us = (hour * 3_600 + minute * 60 + second) * 1_000_000 + us - read.offset_us;
    is_clock.then(|| (us.div_euclid(DAY_US), us.rem_euclid(DAY_US)))
}

/// A time with a modifier.
fn changed((days, us): Time, modifier: &str) -> Option<Time> {
    let (year, month, _) = civil_from_days(days);
    let modifier = modifier.trim();
    match modifier {
        "start of day" => return Some((days, 0)),
        "start of month" => return Some((days_from_civil(year, month, 1), 0)),
        "start of year" => return Some((days_from_civil(year, 1, 1), 0)),
        // Times are UTC here. These two say how a month is added, and the first is what happens.
        "utc" | "ceiling" | "subsec" | "subsecond" => return Some((days, us)),
        _ => {}
    }
    if let Some(day) = modifier.strip_prefix("weekday ") {
        let day: f64 = day.trim().parse().ok()?;
        let wanted = (0..7).find(|known| f64::from(*known) == day)?;
        let own = (days + 4).rem_euclid(7);
        return Some((days + (i64::from(wanted) - own).rem_euclid(7), us));
    }
    let sign = match modifier.chars().next()? {
        '-' => -1,
        _ => 1,
    };
    let size = modifier.strip_prefix(['+', '-']).unwrap_or(modifier);
    if let Some((more_days, more_us)) = clock(size) {
        return moved((days, us), sign * (more_days * DAY_US + more_us));
    }
    let (number, unit) = size.split_once(char::is_whitespace)?;
    let number: f64 = number.parse().ok().filter(|v: &f64| v.is_finite())?;
    let unit = unit.trim();
    let unit = unit.strip_suffix('s').unwrap_or(unit);
    let each_us = match unit {
        "second" => 1_000_000,
        "minute" => 60_000_000,
        "hour" => 3_600_000_000,
        "day" => DAY_US,
        "month" | "year" => return later_months((days, us), sign, number, unit == "year"),
        _ => return None,
    };
    moved((days, us), sign * whole(number * f64::from(1_000_000) * (each_us / 1_000_000) as f64)?)
}

/// A number that is not too large for a time, rounded to the millisecond of microseconds.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole(us: f64) -> Option<i64> {
    (us.abs() < 5e17).then(|| (us / 1e3).round() as i64 * 1_000)
}

fn moved((days, us): Time, more: i64) -> Option<Time> {
    let us = us.checked_add(more)?;
    let time = (days.checked_add(us.div_euclid(DAY_US))?, us.rem_euclid(DAY_US));
    JULIAN.contains(&julian(time)).then_some(time)
}

/// So many months or years later: a day that the month has not is one of the next.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
fn later_months((days, us): Time, sign: i64, number: f64, is_years: bool) -> Option<Time> {
    let (year, month, day) = civil_from_days(days);
    let (whole_part, rest) = (number.trunc(), number.fract());
    let count = (whole_part.abs() < 200_000.0).then_some(whole_part as i64)? * sign;
    let months = year * 12 + month - 1 + if is_years { count * 12 } else { count };
    let first = days_from_civil(months.div_euclid(12), months.rem_euclid(12) + 1, 1);
    // A part of a month is so much of 30 days, of a year of 365.
    let part_days = rest * if is_years { 365.0 } else { 30.0 };
    moved((first + day - 1, us), sign * whole(part_days * DAY_US as f64)?)
}
