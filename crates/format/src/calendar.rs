//! Dates and timestamps as text, and back: `2013-01-31`, `2013-01-31 05:17:00.123456`; read are
//! `2013/01/31` and times with an offset, `05:17:00+02:00`, too.
//!
//! Days and civil dates convert by the era method of Howard Hinnant's *chrono-compatible
//! low-level date algorithms*: 400-year eras of 146,097 days, years starting in March.

use crate::{Error, Result};

/// Microseconds in a day.
pub const DAY_US: i64 = 86_400_000_000;

/// The civil date of a day number: year, month, day.
#[must_use]
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The day number of a civil date; the date must exist.
#[must_use]
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Reads `year-month-day`, or `year/month/day`.
///
/// # Errors
/// `InvalidInput` when the text has another form or the date does not exist.
pub fn parse_date(text: &str) -> Result<i32> {
    let bad = || Error::invalid(format!("expected a date like 2013-01-31, found {text:?}"));
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    // A year has four digits at least; what follows it divides the rest, too.
    let divider = if digits.as_bytes().get(4) == Some(&b'/') { '/' } else { '-' };
    let mut parts = digits.split(divider);
    let mut part = |least: usize, most: usize| -> Option<i64> {
        let part = parts.next()?;
        let right =
            (least..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        if right { part.parse().ok() } else { None }
    };
    let (year, month, day) =
        (part(4, 7).ok_or_else(bad)?, part(2, 2).ok_or_else(bad)?, part(2, 2).ok_or_else(bad)?);
    if parts.next().is_some() {
        return Err(bad());
    }
    let year = if negative { -year } else { year };
    let days = days_from_civil(year, month, day);
    if !(1..=12).contains(&month) || civil_from_days(days) != (year, month, day) {
        return Err(bad());
    }
    i32::try_from(days).map_err(|_| bad())
}

/// Reads a date as [`parse_date`] does, optionally followed by a space or `T`,
/// `hour:minute[:second[.fraction]]` and how far that is from UTC: `Z`, ` UTC`, `+02`, `+0200` or
/// `+02:00`. Without that, times are UTC. What comes out is UTC.
///
/// # Errors
/// `InvalidInput` when the text has another form or the time does not exist.
pub fn parse_timestamp(text: &str) -> Result<i64> {
    let bad =
        || Error::invalid(format!("expected a timestamp like 2013-01-31 05:17:00, found {text:?}"));
    // default: a date alone is its midnight.
    let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, "00:00"));
    let days = i64::from(parse_date(date).map_err(|_| bad())?);
    let (time, offset_us) = split_offset(time).ok_or_else(bad)?;
    let of_day = parse_time_of_day(time).ok_or_else(bad)?;
    // The earliest timestamps lie in a day whose start is too early to be one.
    let us = i128::from(days) * i128::from(DAY_US) + i128::from(of_day) - i128::from(offset_us);
    i64::try_from(us).map_err(|_| bad())
}

/// How far an offset such as `Z`, `+02`, `+0200` or `-05:30` is from UTC, in microseconds east of
/// it; `None` for what is none.
#[must_use]
pub fn parse_offset(text: &str) -> Option<i64> {
    let (rest, offset_us) = split_offset(text)?;
    (rest.is_empty() && !text.is_empty()).then_some(offset_us)
}

/// A time without its offset, and the offset in microseconds east of UTC; `None` when that is no
/// offset. At most 18 hours, as ISO 8601 has it in use.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    const MINUTE_US: i64 = 60_000_000;
    if let Some(time) = time.strip_suffix(['Z', 'z']).or_else(|| time.strip_suffix(" UTC")) {
        return Some((time, 0));
    }
    // default: without an offset, the time is UTC.
    let Some(sign) = time.find(['+', '-']) else { return Some((time, 0)) };
    let (clock, offset) = time.split_at(sign);
    let (hours, minutes) = match offset.as_bytes() {
        [_, h @ ..] if h.len() == 2 => (offset.get(1..3)?, "00"),
        [_, _, _, b':', _, _] => (offset.get(1..3)?, offset.get(4..6)?),
        [_, h @ ..] if h.len() == 4 => (offset.get(1..3)?, offset.get(3..5)?),
        _ => return None,
    };
    let number = |digits: &str| -> Option<i64> {
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if minutes > 59 || hours * 60 + minutes > 18 * 60 {
        return None;
    }
    let offset_us = (hours * 60 + minutes) * MINUTE_US;
    // A space may stand before the offset, as PostgreSQL and others write it.
    let clock = clock.strip_suffix(' ').unwrap_or(clock); // default: most write none.
    Some((clock, if offset.starts_with('-') { -offset_us } else { offset_us }))
}

/// Microseconds since midnight from `hour:minute[:second[.fraction]]`.
pub(crate) fn parse_time_of_day(time: &str) -> Option<i64> {
    let (clock, fraction) = match time.split_once('.') {
        Some((clock, fraction)) if clock.len() == 8 && !fraction.is_empty() => (clock, fraction),
        Some(_) => return None,
        None => (time, ""),
    };
    let mut parts = clock.split(':');
    let mut part = |below: i64| -> Option<i64> {
        let part = parts.next()?;
        let right = part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
        let number: i64 = if right { part.parse().ok()? } else { return None };
        (number < below).then_some(number)
    };
    let (hour, minute) = (part(24)?, part(60)?);
    let second = if clock.len() > 5 { part(60)? } else { 0 };
    if clock.len() != 5 && clock.len() != 8 {
        return None;
    }
    // Nanoseconds are taken where that loses none.
    let fraction = match fraction.split_at_checked(6) {
        Some((fraction, rest)) if rest.bytes().all(|b| b == b'0') => fraction,
        Some(_) => return None,
        None => fraction,
    };
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let padded = format!("{fraction:0<6}");
    let fraction_us: i64 = padded.parse().ok()?;
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    #[test]
    fn every_timestamp_is_read_back_from_its_text() {
        let ends = [i64::MIN, i64::MIN + 1, -DAY_US - 1, -1, 0, 1, DAY_US, i64::MAX];
        for us in ends {
            let text = Value::Timestamp(us).to_string();
            assert_eq!(parse_timestamp(&text).unwrap(), us, "{text}");
        }
    }

    #[test]
    fn times_are_refused_that_are_spelled_otherwise() {
        let good = ["05:17", "05:17Z", "05:17:09", "05:17:09.5", "05:17:09.123456z", "05:17 UTC"];
        for good in good {
            assert!(parse_timestamp(&format!("2013-01-31 {good}")).is_ok(), "{good}");
        }
        for bad in ["05:17.5", "05:17:09.", "05:17ZZ", "05:17:09.1234567", "24:00", "5:17", "05"] {
            let error = parse_timestamp(&format!("2013-01-31 {bad}")).unwrap_err();
            assert!(error.to_string().contains("expected a timestamp"), "{bad}: {error}");
        }
    }
    /// Only `Z` was read, so that what most libraries write became text or was refused.
    #[test]
    fn an_offset_counts_from_utc() {
        let utc = parse_timestamp("2021-02-28 12:30:00").unwrap();
        for same in [
            "2021-02-28T12:30:00+00:00",
            "2021-02-28T12:30:00-00:00",
            "2021-02-28 14:30:00+02:00",
            "2021-02-28 14:30+0200",
            "2021-02-28 14:30:00+02",
            "2021-02-28T14:30:00 +02:00",
            "2021-02-28T07:00:00-05:30",
            "2021-03-01T02:30:00.000000000+14:00",
            "2021/02/28 12:30:00",
        ] {
            assert_eq!(parse_timestamp(same).unwrap(), utc, "{same}");
        }
        for bad in ["+1", "+24:00", "+02:60", "+02:0", "+-2:00", "+ 2:00", "Z+02", "+02:00Z", "+"] {
            let text = format!("2021-02-28 12:30:00{bad}");
            assert!(parse_timestamp(&text).is_err(), "{bad}");
        }
        let earliest = "-290308-12-21 19:59:05.224192";
        assert_eq!(parse_timestamp(&format!("{earliest}+00:00")).unwrap(), i64::MIN);
        assert!(parse_timestamp(&format!("{earliest}+00:01")).is_err());
    }

    #[test]
    fn dates_are_divided_by_hyphens_or_slashes() {
        assert_eq!(parse_date("2015/01/31").unwrap(), parse_date("2015-01-31").unwrap());
        for bad in ["2015/01-31", "2015-01/31", "15/01/31", "2015/1/31", "31/01/2015"] {
            assert!(parse_date(bad).is_err(), "{bad}");
        }
    }
}
