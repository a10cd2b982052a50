//! Intervals as people write them: `1 year 2 mons 3 days 04:05:06.7`, `1-2 3 4:05`, `2 weeks ago`,
//! and ISO 8601's `P1Y2M3DT4H5M6.7S`.

use std::str::FromStr;

use super::{Interval, MONTH_DAYS};
use crate::calendar::DAY_US;
use crate::{Error, Result, text};

/// A unit that a number of an interval has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalUnit {
    /// So many months each.
    Months(i64),
    /// So many days each.
    Days(i64),
    /// So many microseconds each.
    Microseconds(i64),
}

const SECOND_US: i64 = 1_000_000;
const MINUTE_US: i64 = 60 * SECOND_US;
const HOUR_US: i64 = 60 * MINUTE_US;

const UNITS: &[(IntervalUnit, &[&str])] = {
    use IntervalUnit::{Days, Microseconds, Months};
    &[
        (Microseconds(1), &["microsecond", "us", "usec", "usecond"]),
        (Microseconds(1_000), &["millisecond", "ms", "msec", "msecond"]),
        (Microseconds(SECOND_US), &["second", "s", "sec"]),
        (Microseconds(MINUTE_US), &["minute", "m", "min"]),
        (Microseconds(HOUR_US), &["hour", "h", "hr"]),
        (Days(1), &["day", "d"]),
        (Days(7), &["week", "w"]),
        (Months(1), &["month", "mon"]),
        (Months(3), &["quarter", "qtr"]),
        (Months(12), &["year", "y", "yr"]),
        (Months(120), &["decade", "dec"]),
        (Months(1_200), &["century", "centuries", "c", "cent"]),
        (Months(12_000), &["millennium", "millennia", "mil"]),
    ]
};

impl IntervalUnit {
    /// The unit of a name in any case, in the singular or plural, or short.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        // default: a name without an s is singular.
        let single = name.strip_suffix('s').unwrap_or(&name);
        let is_it = |known: &&str| *known == name || *known == single;
        UNITS.iter().find(|(_, names)| names.iter().any(is_it)).map(|(unit, _)| *unit)
    }

    /// One of it.
    #[must_use]
    pub fn one(self) -> Option<Interval> {
        let mut parts = Parts::default();
        parts.add(Number { whole: 1, fraction: 0.0 }, self)?;
        parts.interval()
    }
}

impl FromStr for Interval {
    type Err = Error;

    /// Reads an interval: numbers, each with a unit, of which seconds are the last one's without,
    /// and a time; `ago` at the end turns the signs; or ISO 8601's form.
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text, None).ok_or_else(|| {
            let expected = text::expected(crate::DataType::Interval);
            Error::invalid(format!("expected {expected}, found {}", text::shown(text.as_bytes())))
        })
    }
}

impl Interval {
    /// Reads an interval; a number without a unit at its end has that of `last`, or seconds.
    #[must_use]
    pub fn parse(text: &str, last: Option<IntervalUnit>) -> Option<Self> {
        let text = text.trim();
        if let Some(iso) = text.strip_prefix(['P', 'p']) {
            return parse_iso(iso);
        }
        let tokens = tokens(text)?;
        let mut words = tokens.as_slice();
        if let [Token::Word("@"), rest @ ..] = words {
            words = rest;
        }
        let is_ago = match words {
            [rest @ .., Token::Word(ago)] if ago.eq_ignore_ascii_case("ago") => {
                words = rest;
                true
            }
            _ => false,
        };
        if words.is_empty() {
            return None;
        }
        let mut parts = Parts::default();
        while let Some((first, rest)) = words.split_first() {
            words = rest;
            match (first, rest) {
                (Token::Time(us), _) => parts.microseconds += us,
                (Token::YearMonth(months), _) => parts.months += i128::from(*months),
                (Token::Number(number), [Token::Word(unit), rest @ ..]) => {
                    parts.add(*number, IntervalUnit::from_name(unit)?)?;
                    words = rest;
                }
                // Days stand in front of a time.
                (Token::Number(number), [Token::Time(_), ..]) => {
                    parts.add(*number, IntervalUnit::Days(1))?;
                }
                (Token::Number(number), []) => {
                    // default: a number alone is seconds
                    parts.add(*number, last.unwrap_or(IntervalUnit::Microseconds(SECOND_US)))?;
                }
                _ => return None,
            }
        }
        let interval = parts.interval()?;
        if is_ago { interval.checked_neg() } else { Some(interval) }
    }
}

/// A number as its whole part and the rest, of the same sign.
#[derive(Clone, Copy, Debug)]
struct Number {
    whole: i128,
    fraction: f64,
}

#[derive(Clone, Copy, Debug)]
enum Token<'t> {
    Number(Number),
    Word(&'t str),
    /// `4:05:06.7`, in microseconds.
    Time(i128),
    /// `1-2`, in months.
    YearMonth(i64),
}

/// What is added up of each part.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    months: i128,
    days: i128,
    microseconds: i128,
}

impl Parts {
    /// Adds so many of a unit: parts of a month as days, parts of a day as microseconds.
    fn add(&mut self, number: Number, unit: IntervalUnit) -> Option<()> {
        let Number { whole: count, fraction } = number;
        let times = |each: i64| count * i128::from(each);
        match unit {
            IntervalUnit::Months(each) => {
                self.months += times(each);
                let more = fraction * each as f64;
                // Parts of a year are whole months, as PostgreSQL has them.
                let more = if each == 1 { more } else { more.round_ties_even() };
                self.months += i128::from(whole(more.trunc())?);
                self.add_days(more.fract() * MONTH_DAYS as f64)?;
            }
            IntervalUnit::Days(each) => {
                self.days += times(each);
                self.add_days(fraction * each as f64)?;
            }
            IntervalUnit::Microseconds(each) => {
                self.microseconds += times(each);
                self.microseconds += i128::from(whole((fraction * each as f64).round_ties_even())?);
            }
        }
        Some(())
    }

    fn add_days(&mut self, days: f64) -> Option<()> {
        self.days += i128::from(whole(days.trunc())?);
        let us = (days.fract() * DAY_US as f64).round_ties_even();
        self.microseconds += i128::from(whole(us)?);
        Some(())
    }

    fn interval(self) -> Option<Interval> {
        Some(Interval::new(
            self.months.try_into().ok()?,
            self.days.try_into().ok()?,
            self.microseconds.try_into().ok()?,
        ))
    }
}

/// A float that is whole, where it fits.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole(v: f64) -> Option<i64> {
    let end = 2f64.powi(63);
    (-end..end).contains(&v).then_some(v as i64)
}

/// Numbers, words and times, with or without spaces between a number and its unit, and with or
/// without commas behind units.
fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    for word in text.split(|c: char| c.is_whitespace() || c == ',') {
        let mut rest = word;
        while !rest.is_empty() {
            let is_number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | ':');
            let starts_number = rest.starts_with(is_number);
            // default: all of the word is of one kind
            let end = rest.find(|c| is_number(c) != starts_number).unwrap_or(rest.len());
            let (token, behind) = rest.split_at_checked(end)?;
            tokens.push(if starts_number { figures(token)? } else { Token::Word(token) });
            rest = behind;
        }
    }
    Some(tokens)
}

/// A number, a time, or years and months.
fn figures(token: &str) -> Option<Token<'_>> {
    let (is_negative, digits) = match token.strip_prefix('-') {
        Some(digits) => (true, digits),
        // default: a sign may be missing.
        None => (false, token.strip_prefix('+').unwrap_or(token)),
    };
    let sign = if is_negative { -1 } else { 1 };
    if digits.contains(':') {
        return Some(Token::Time(i128::from(sign) * clock(digits)?));
    }
    if let Some((years, months)) = digits.split_once('-') {
        let (years, months) = (natural(years)?, natural(months)?);
        let months = years.checked_mul(12)?.checked_add(months).filter(|_| months < 12)?;
        return Some(Token::YearMonth(sign * months));
    }
    let Number { whole, fraction } = number(digits)?;
    Some(Token::Number(Number {
        whole: i128::from(sign) * whole,
        fraction: fraction * sign as f64,
    }))
}

/// Digits alone.
fn natural(digits: &str) -> Option<i64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

/// A number without a sign, which may have a point.
fn number(digits: &str) -> Option<Number> {
    // default: a number without a point is whole.
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_any = digits.bytes().any(|b| b.is_ascii_digit());
    let is_natural = whole.bytes().all(|b| b.is_ascii_digit());
    if !is_natural || !fraction.bytes().all(|b| b.is_ascii_digit()) || !is_any {
        return None;
    }
    // The number of the least interval has no positive one: its sign comes later.
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    Some(Number { whole: whole.into(), fraction: format!("0.{fraction}0").parse().ok()? })
}

/// `4:05:06.7` or `4:05`, and `5:06.7` of minutes, in microseconds.
fn clock(digits: &str) -> Option<i128> {
    let parts: Vec<&str> = digits.split(':').collect();
    let (hours, minutes, seconds) = match parts.as_slice() {
        [minutes, seconds] if seconds.contains('.') => ("0", *minutes, *seconds),
        [hours, minutes] => (*hours, *minutes, "0"),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return None,
    };
    let Number { whole: seconds, fraction } = number(seconds)?;
    let seconds = i64::try_from(seconds).ok().filter(|seconds| *seconds <= 60)?;
    let minutes = natural(minutes).filter(|minutes| *minutes < 60)?;
    let us = whole((fraction * SECOND_US as f64).round_ties_even())?;
    let hours = i128::from(natural(hours)?) * i128::from(HOUR_US);
    Some(hours + i128::from(minutes * MINUTE_US + seconds * SECOND_US + us))
}

/// What is behind the P of ISO 8601: `1Y2M3DT4H5M6.7S`, or `0001-02-03T04:05:06`.
fn parse_iso(text: &str) -> Option<Interval> {
    let (date, time) = match text.split_once(['T', 't']) {
        Some((_, "")) => return None,
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = Parts::default();
    let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b":-.".contains(&b));
    match date.split('-').collect::<Vec<_>>().as_slice() {
        [years, months, days] if is_plain(date) => {
            parts.months += i128::from(natural(years)?) * 12 + i128::from(natural(months)?);
            parts.days += i128::from(natural(days)?);
        }
        _ => lettered(date, &mut parts, |letter| {
            Some(match letter {
                'Y' => IntervalUnit::Months(12),
                'M' => IntervalUnit::Months(1),
                'W' => IntervalUnit::Days(7),
                'D' => IntervalUnit::Days(1),
                _ => return None,
            })
        })?,
    }
    match time {
        Some(time) if is_plain(time) => parts.microseconds += clock(time)?,
        Some(time) => lettered(time, &mut parts, |letter| {
            Some(IntervalUnit::Microseconds(match letter {
                'H' => HOUR_US,
                'M' => MINUTE_US,
                'S' => SECOND_US,
                _ => return None,
            }))
        })?,
        None if date.is_empty() => return None,
        None => {}
    }
    parts.interval()
}

/// Numbers with a letter behind each.
fn lettered(
    text: &str,
    parts: &mut Parts,
    unit: impl Fn(char) -> Option<IntervalUnit>,
) -> Option<()> {
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let (digits, behind) = rest.split_at_checked(at)?;
        let letter = behind.chars().next()?;
        let Token::Number(number) = figures(digits)? else { return None };
        parts.add(number, unit(letter.to_ascii_uppercase())?)?;
        rest = behind.get(1..)?;
    }
    Some(())
}
