//! Moments as text by formats of C, as `strftime` writes them and `strptime` reads them.

use std::borrow::Cow;
use std::fmt::Write;

use esker_format::DataType;
use esker_format::calendar::civil_from_days;

use super::between::{day_name, days_of, month_name, name_at};
use super::call::Call;
use super::letters::text;
use super::moment::{JULIAN_1970, moment, part_of, split};
use super::sqlite_time;
use crate::Result;
use crate::evaluate::{Lanes, Vector};
use crate::model::Function as F;
use crate::model::date_unit::Unit;

pub(super) fn call<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    if call.function != F::Strftime {
        return read(call, len);
    }
    // With a moment in front the format follows; else it is SQLite's function.
    let first = call.operand(0)?.data_type;
    let is_sqlite = first == DataType::Text;
    call.map_bytes(len, |row, _| {
        let (format, time) = if is_sqlite {
            let Some(time) = sqlite_time::time_of(call, 1, row)? else { return Ok(None) };
            (text(call, 0, row)?, time)
        } else {
            let word = call.int(0, row, 0)?;
            (text(call, 1, row)?, split(first, word))
        };
        let mut out = String::new();
        let written = write(format, Moment::new(time), is_sqlite, &mut out);
        match written {
            Ok(()) => Ok(Some(Cow::Owned(out.into_bytes()))),
            // SQLite answers NULL.
            Err(_) if is_sqlite => Ok(None),
            Err(letter) => Err(call.error(format!("unknown %{letter} in the format"))),
        }
    })
}

/// The parts of a moment.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub days: i64,
    pub us: i64,
    pub year: i64,
    pub month: i64,
    pub day: i64,
}

impl Moment {
    pub fn new((days, us): (i64, i64)) -> Self {
        let (year, month, day) = civil_from_days(days);
        Self { days, us, year, month, day }
    }

    pub fn unit(&self, unit: Unit) -> i64 {
        part_of(unit, self.days, self.us)
    }

    /// The hour of twelve.
    pub fn hour12(&self) -> i64 {
        match self.unit(Unit::Hour) % 12 {
            0 => 12,
            hour => hour,
        }
    }

    /// The number of the week of the year, weeks beginning so many days behind Sunday.
    fn week(&self, begin: i64) -> i64 {
        let of_week = (self.unit(Unit::Dow) - begin).rem_euclid(7);
        (self.unit(Unit::Doy) + 6 - of_week) / 7
    }
}

/// Writes a moment; the letter that is none, where there is one.
fn write(
    format: &str,
    moment: Moment,
    is_sqlite: bool,
    out: &mut String,
) -> std::result::Result<(), char> {
    let mut rest = format;
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        let (is_bare, behind) = match behind.strip_prefix('-') {
            Some(behind) => (true, behind),
            None => (false, behind),
        };
        let letter = behind.chars().next().ok_or('%')?;
        let start = out.len();
        // Writing to a text does not fail.
        part(letter, moment, is_sqlite, out).map_err(|_| letter)?;
        if is_bare {
            let bare = out.get(start..).unwrap_or_default().trim_start_matches(['0', ' ']);
            let bare = if bare.is_empty() { "0".to_owned() } else { bare.to_owned() };
            out.truncate(start);
            out.push_str(&bare);
        }
        rest = behind.get(letter.len_utf8()..).unwrap_or_default();
    }
    out.push_str(rest);
    Ok(())
}

fn part(letter: char, m: Moment, is_sqlite: bool, out: &mut String) -> std::fmt::Result {
    let of = |unit| m.unit(unit);
    let (hour, minute, second) = (of(Unit::Hour), of(Unit::Minute), of(Unit::Second));
    let short = |name: &'static str| name.get(..3).unwrap_or(name);
    let half = if hour < 12 { "AM" } else { "PM" };
    let behind = m.us % 1_000_000;
    match letter {
        'Y' => year(m.year, out),
        'y' => write!(out, "{:02}", m.year.rem_euclid(100)),
        'C' => write!(out, "{:02}", m.year.div_euclid(100)),
        'm' => write!(out, "{:02}", m.month),
        'd' => write!(out, "{:02}", m.day),
        'e' => write!(out, "{:2}", m.day),
        'j' => write!(out, "{:03}", of(Unit::Doy)),
        'H' => write!(out, "{hour:02}"),
        'k' => write!(out, "{hour:2}"),
        'I' => write!(out, "{:02}", m.hour12()),
        'l' => write!(out, "{:2}", m.hour12()),
        'M' => write!(out, "{minute:02}"),
        'S' => write!(out, "{second:02}"),
        'f' if is_sqlite => write!(out, "{second:02}.{:03}", behind / 1_000),
        'f' => write!(out, "{behind:06}"),
        'g' if !is_sqlite => write!(out, "{:03}", behind / 1_000),
        'n' if !is_sqlite => write!(out, "{:09}", behind * 1_000),
        'g' => write!(out, "{:02}", of(Unit::Isoyear).rem_euclid(100)),
        'G' => year(of(Unit::Isoyear), out),
        'V' => write!(out, "{:02}", of(Unit::Week)),
        'U' => write!(out, "{:02}", m.week(0)),
        'W' => write!(out, "{:02}", m.week(1)),
        'u' => write!(out, "{}", of(Unit::Isodow)),
        'w' => write!(out, "{}", of(Unit::Dow)),
        's' => write!(out, "{}", of(Unit::Epoch)),
        'J' => write!(out, "{}", sqlite_time::julian((m.days, m.us))),
        'p' => out.write_str(half),
        'P' => out.write_str(if hour < 12 { "am" } else { "pm" }),
        'a' => out.write_str(short(day_name(of(Unit::Dow)))),
        'A' => out.write_str(day_name(of(Unit::Dow))),
        'b' | 'h' => out.write_str(short(month_name(m.month))),
        'B' => out.write_str(month_name(m.month)),
        'z' => out.write_str("+00"),
        'Z' => out.write_str("UTC"),
        't' => out.write_str("\t"),
        'n' => out.write_str("\n"),
        '%' => out.write_str("%"),
        _ => match compound(letter) {
            Some(format) => {
                for piece in format.split_inclusive(|c: char| c.is_ascii_alphabetic()) {
                    let letter = piece.chars().next_back().unwrap_or('%');
                    out.write_str(piece.trim_end_matches(|c: char| c.is_ascii_alphabetic()))?;
                    part(letter, m, is_sqlite, out)?;
                }
                Ok(())
            }
            None => Err(std::fmt::Error),
        },
    }
}

/// What a letter is short for, without the percent signs.
fn compound(letter: char) -> Option<&'static str> {
    Some(match letter {
        'F' => "Y-m-d",
        'T' | 'X' => "H:M:S",
        'R' => "H:M",
        'D' => "m/d/y",
        'x' => "Y-m-d",
        'c' => "Y-m-d H:M:S",
        'r' => "I:M:S p",
        _ => return None,
    })
}

/// A year with four digits at least.
fn year(year: i64, out: &mut String) -> std::fmt::Result {
    let sign = if year < 0 { "-" } else { "" };
    write!(out, "{sign}{:04}", year.unsigned_abs())
}

/// What a text that is read has said.
#[derive(Default)]
pub(super) struct Read {
    pub year: Option<i64>,
    pub month: Option<i64>,
    pub day: Option<i64>,
    pub day_of_year: Option<i64>,
    pub hour: Option<i64>,
    pub minute: Option<i64>,
    pub second: Option<i64>,
    pub us: Option<i64>,
    /// Whether an hour of twelve is one after noon.
    pub is_afternoon: Option<bool>,
    /// Seconds since 1970.
    pub epoch: Option<i64>,
    /// A day by its Julian number.
    pub julian: Option<i64>,
    /// Microseconds east of UTC.
    pub offset_us: i64,
}

impl Read {
    /// The moment that was read; what was not said is the start: the first of January 1900, or of
    /// the year.
    pub fn moment(&self, first_year: i64) -> Option<i64> {
        if let Some(epoch) = self.epoch {
            return epoch.checked_mul(1_000_000);
        }
        let year = self.year.unwrap_or(first_year);
        let days = match (self.julian, self.day_of_year) {
            (Some(julian), _) => julian.checked_sub(JULIAN_1970)?,
            (None, Some(day)) => {
                let first = days_of(year, 1, 1)?;
                let days = first.checked_add(day - 1)?;
                Some(days).filter(|days| civil_from_days(*days).0 == year)?
            }
            (None, None) => days_of(year, self.month.unwrap_or(1), self.day.unwrap_or(1))?,
        };
        let hour = match (self.hour.unwrap_or(0), self.is_afternoon) {
            (hour @ 1..=12, Some(is_afternoon)) => hour % 12 + if is_afternoon { 12 } else { 0 },
            (_, Some(_)) => return None,
            (hour, None) => hour,
        };
        let (minute, second) = (self.minute.unwrap_or(0), self.second.unwrap_or(0));
        if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
            return None;
        }
        let seconds = hour * 3_600 + minute * 60 + second;
        let us = seconds * 1_000_000 + self.us.unwrap_or(0) - self.offset_us;
        moment(days, us.into())
    }
}

/// Up to so many digits at the start of a text.
pub(super) fn digits(text: &str, most: usize) -> Option<(i64, &str)> {
    let len = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(len)?;
    Some((digits.parse().ok()?, rest))
}

/// A fraction of a second as microseconds, further digits cut.
pub(super) fn fraction(text: &str) -> Option<(i64, &str)> {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(len).filter(|(digits, _)| !digits.is_empty())?;
    let six = digits.get(..6).unwrap_or(digits);
    Some((format!("{six:0<6}").parse().ok()?, rest))
}

/// `strptime`, `try_strptime`.
fn read<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    call.map(
        len,
        |v| Lanes::Ints(v.into()),
        |row| {
            let (text, format) = (text(call, 0, row)?, text(call, 1, row)?);
            let mut read = Read::default();
            let behind = read_by(format, text.trim(), &mut read);
            let is_whole = behind.is_some_and(|behind| behind.trim().is_empty());
            let found = if is_whole { read.moment(1900) } else { None };
            if found.is_none() && call.function == F::Strptime {
                let shown: String = text.chars().take(80).collect();
                let format: String = format.chars().take(80).collect();
                return Err(call.error(format!("'{shown}' is no moment of the format '{format}'")));
            }
            Ok(found)
        },
    )
}

/// Reads by a format; what stands behind.
fn read_by<'t>(format: &str, text: &'t str, read: &mut Read) -> Option<&'t str> {
    let mut text = text;
    let mut format = format.trim().chars();
    while let Some(c) = format.next() {
        if c.is_whitespace() {
            text = text.trim_start();
            continue;
        }
        if c != '%' {
            text = text.strip_prefix(c)?;
            continue;
        }
        let letter = match format.next()? {
            '-' => format.next()?,
            letter => letter,
        };
        text = match compound(letter) {
            Some(parts) => {
                let parts: String = parts
                    .chars()
                    .flat_map(|c| c.is_ascii_alphabetic().then_some('%').into_iter().chain([c]))
                    .collect();
                read_by(&parts, text, read)?
            }
            None => read_part(letter, text, read)?,
        };
    }
    Some(text)
}

fn read_part<'t>(letter: char, text: &'t str, read: &mut Read) -> Option<&'t str> {
    let into = |place: &mut Option<i64>, most: usize| {
        let (number, rest) = digits(text.trim_start(), most)?;
        *place = Some(number);
        Some(rest)
    };
    match letter {
        'Y' => {
            let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
            let (number, rest) = digits(rest, 6)?;
            read.year = Some(sign * number);
            Some(rest)
        }
        'y' => {
            let rest = into(&mut read.year, 2)?;
            read.year = read.year.map(|y| if y < 69 { 2000 + y } else { 1900 + y });
            Some(rest)
        }
        'm' => into(&mut read.month, 2),
        'd' | 'e' => into(&mut read.day, 2),
        'j' => into(&mut read.day_of_year, 3),
        'H' | 'k' | 'I' | 'l' => into(&mut read.hour, 2),
        'M' => into(&mut read.minute, 2),
        'S' => into(&mut read.second, 2),
        'f' | 'n' | 'g' => {
            let (us, rest) = fraction(text)?;
            read.us = Some(us);
            Some(rest)
        }
        's' => into(&mut read.epoch, 18),
        'p' | 'P' => {
            let (half, rest) = text.split_at_checked(2)?;
            let is_afternoon = half.eq_ignore_ascii_case("pm");
            read.is_afternoon = Some(is_afternoon);
            (is_afternoon || half.eq_ignore_ascii_case("am")).then_some(rest)
        }
        'a' | 'A' => name_at(text, false).map(|(_, rest)| rest),
        'b' | 'B' | 'h' => {
            let (month, rest) = name_at(text, true)?;
            read.month = Some(month + 1);
            Some(rest)
        }
        'z' => offset(text, read),
        'Z' => ["UTC", "GMT", "Z"].iter().find_map(|zone| text.strip_prefix(zone)),
        '%' => text.strip_prefix('%'),
        _ => None,
    }
}

/// How far a time is from UTC: `Z`, `+02`, `+0200` or `+02:00`.
pub(super) fn offset<'t>(text: &'t str, read: &mut Read) -> Option<&'t str> {
    if let Some(rest) = text.strip_prefix('Z') {
        return Some(rest);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let rest = text.strip_prefix(['+', '-'])?;
    let (hours, rest) = digits(rest, 2)?;
    let (minutes, rest) = digits(rest.strip_prefix(':').unwrap_or(rest), 2).unwrap_or((0, rest));
    if hours > 18 || minutes > 59 {
        return None;
    }
    read.offset_us = sign * (hours * 60 + minutes) * 60_000_000;
    Some(rest)
}
