//! Moments as text by templates of PostgreSQL, as `to_char` writes them and `to_date` and
//! `to_timestamp` read them.

use std::borrow::Cow;

use esker_format::DataType;
use esker_format::calendar::DAY_US;

use super::between::{day_name, month_name, name_at};
use super::call::Call;
use super::letters::text;
use super::moment::{JULIAN_1970, century, split};
use super::strftime::{Moment, Read, digits, fraction, offset};
use crate::Result;
use crate::evaluate::{Lanes, Vector};
use crate::model::Function as F;
use crate::model::date_unit::Unit;

/// The letters of a template, the longer of those that begin alike first.
const PARTS: [(&str, Part); 49] = [
    ("Y,YYY", Part::YearComma),
    ("YYYY", Part::Year(4)),
    ("YYY", Part::Year(3)),
    ("YY", Part::Year(2)),
    ("Y", Part::Year(1)),
    ("IYYY", Part::IsoYear(4)),
    ("IYY", Part::IsoYear(3)),
    ("IY", Part::IsoYear(2)),
    ("IDDD", Part::IsoDayOfYear),
    ("ID", Part::IsoDay),
    ("IW", Part::IsoWeek),
    ("I", Part::IsoYear(1)),
    ("MONTH", Part::Month(true)),
    ("MON", Part::Month(false)),
    ("MM", Part::MonthNumber),
    ("MI", Part::Minute),
    ("MS", Part::Fraction(3)),
    ("US", Part::Fraction(6)),
    ("FF1", Part::Fraction(1)),
    ("FF2", Part::Fraction(2)),
    ("FF3", Part::Fraction(3)),
    ("FF4", Part::Fraction(4)),
    ("FF5", Part::Fraction(5)),
    ("FF6", Part::Fraction(6)),
    ("DAY", Part::DayName(true)),
    ("DY", Part::DayName(false)),
    ("DDD", Part::DayOfYear),
    ("DD", Part::Day),
    ("D", Part::WeekDay),
    ("HH24", Part::Hour),
    ("HH12", Part::Hour12),
    ("HH", Part::Hour12),
    ("SSSSS", Part::SecondOfDay),
    ("SSSS", Part::SecondOfDay),
    ("SS", Part::Second),
    ("WW", Part::Week),
    ("W", Part::WeekOfMonth),
    ("Q", Part::Quarter),
    ("J", Part::Julian),
    ("CC", Part::Century),
    ("A.M.", Part::Half(true)),
    ("P.M.", Part::Half(true)),
    ("AM", Part::Half(false)),
    ("PM", Part::Half(false)),
    ("B.C.", Part::Era(true)),
    ("A.D.", Part::Era(true)),
    ("BC", Part::Era(false)),
    ("AD", Part::Era(false)),
    ("TZ", Part::Zone),
];

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Year(usize),
    YearComma,
    IsoYear(usize),
    IsoDayOfYear,
    IsoDay,
    IsoWeek,
    Month(bool),
    MonthNumber,
    Minute,
    Fraction(usize),
    DayName(bool),
    DayOfYear,
    Day,
    WeekDay,
    Hour,
    Hour12,
    SecondOfDay,
    Second,
    Week,
    WeekOfMonth,
    Quarter,
    Julian,
    Century,
    Half(bool),
    Era(bool),
    Zone,
    Offset,
}

/// A piece of a template.
enum Piece<'t> {
    Text(&'t str),
    Part {
        part: Part,
        /// The letters as they are written: their case is that of names.
        letters: &'t str,
        /// Without zeros and spaces that fill.
        is_bare: bool,
        /// `th`, in this case.
        ending: Option<&'t str>,
    },
}

/// The piece at the start of a template, and what stands behind.
fn next_piece(template: &str) -> Option<(Piece<'_>, &str)> {
    if let Some(quoted) = template.strip_prefix('"') {
        let (text, rest) = quoted.split_once('"').unwrap_or((quoted, ""));
        return Some((Piece::Text(text), rest));
    }
    let starts = |text: &str, known: &str| {
        text.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known))
    };
    let is_bare = starts(template, "FM");
    let from = if is_bare { template.get(2..)? } else { template };
    let found = PARTS.iter().find(|(known, _)| starts(from, known));
    let found = found.copied().or_else(|| starts(from, "OF").then_some(("OF", Part::Offset)));
    let Some((known, part)) = found else {
        let first = template.chars().next()?;
        return Some((
            Piece::Text(template.get(..first.len_utf8())?),
            template.get(first.len_utf8()..)?,
        ));
    };
    let (letters, mut rest) = from.split_at_checked(known.len())?;
    let ending = rest.get(..2).filter(|ending| ending.eq_ignore_ascii_case("TH"));
    if ending.is_some() {
        rest = rest.get(2..)?;
    }
    Some((Piece::Part { part, letters, is_bare, ending }, rest))
}

pub(super) fn call<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    if call.function != F::ToChar {
        return read(call, len);
    }
    let data_type = call.operand(0)?.data_type;
    call.map_bytes(len, |row, _| {
        let moment = Moment::new(split(data_type, call.int(0, row, 0)?));
        let (mut rest, mut out) = (text(call, 1, row)?, String::new());
        while let Some((piece, behind)) = next_piece(rest) {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Part { part, letters, is_bare, ending } => {
                    let written = written(part, letters, is_bare, &moment);
                    out.push_str(&written);
                    if let Some(ending) = ending {
                        let letters = ending_of(&written);
                        match ending.starts_with('T') {
                            true => out.push_str(&letters.to_uppercase()),
                            false => out.push_str(letters),
                        }
                    }
                }
            }
            rest = behind;
        }
        Ok(Some(Cow::Owned(out.into_bytes())))
    })
}

/// What makes a number an ordinal.
fn ending_of(number: &str) -> &'static str {
    let mut digits = number.chars().rev();
    match (digits.next(), digits.next()) {
        (_, Some('1')) => "th",
        (Some('1'), _) => "st",
        (Some('2'), _) => "nd",
        (Some('3'), _) => "rd",
        _ => "th",
    }
}

/// A name in the case of the letters that stand for it, with spaces up to nine.
fn name(name: &str, letters: &str, fills: bool) -> String {
    let second = letters.chars().nth(1).is_some_and(char::is_uppercase);
    let name = match (letters.starts_with(char::is_uppercase), second) {
        (true, true) => name.to_uppercase(),
        (true, false) => name.to_owned(),
        _ => name.to_lowercase(),
    };
    if fills { format!("{name:<9}") } else { name }
}

/// The last digits of a year.
fn last_digits(year: i64, count: usize, is_bare: bool) -> String {
    let size = match year {
        ..=0 => 1 - year,
        _ => year,
    };
    let power = 10i64.pow(u32::try_from(count.min(4)).unwrap_or(4));
    let number = if count < 4 { size % power } else { size };
    if is_bare { number.to_string() } else { format!("{number:0count$}") }
}

fn written(part: Part, letters: &str, is_bare: bool, m: &Moment) -> String {
    let number = |number: i64, width: usize| match is_bare {
        true => number.to_string(),
        false => format!("{number:0width$}"),
    };
    let of = |unit| m.unit(unit);
    let by_case = |text: &str| match letters.starts_with(char::is_uppercase) {
        true => text.to_uppercase(),
        false => text.to_lowercase(),
    };
    match part {
        Part::Year(count) => last_digits(m.year, count, is_bare),
        Part::YearComma => {
            let year = last_digits(m.year, 4, false);
            let (thousands, rest) = year.split_at_checked(year.len() - 3).unwrap_or(("", &year));
            format!("{thousands},{rest}")
        }
        Part::IsoYear(count) => last_digits(of(Unit::Isoyear), count, is_bare),
        Part::IsoDayOfYear => number((of(Unit::Week) - 1) * 7 + of(Unit::Isodow), 3),
        Part::IsoDay => of(Unit::Isodow).to_string(),
        Part::IsoWeek => number(of(Unit::Week), 2),
        Part::Month(true) => name(month_name(m.month), letters, !is_bare),
        Part::Month(false) => {
            name(month_name(m.month).get(..3).unwrap_or_default(), letters, false)
        }
        Part::MonthNumber => number(m.month, 2),
        Part::Minute => number(of(Unit::Minute), 2),
        Part::Fraction(count) => {
            let six = format!("{:06}", m.us % 1_000_000);
            six.get(..count).unwrap_or_default().to_owned()
        }
        Part::DayName(true) => name(day_name(of(Unit::Dow)), letters, !is_bare),
        Part::DayName(false) => {
            name(day_name(of(Unit::Dow)).get(..3).unwrap_or_default(), letters, false)
        }
        Part::DayOfYear => number(of(Unit::Doy), 3),
        Part::Day => number(m.day, 2),
        Part::WeekDay => (of(Unit::Dow) + 1).to_string(),
        Part::Hour => number(of(Unit::Hour), 2),
        Part::Hour12 => number(m.hour12(), 2),
        Part::SecondOfDay => (m.us / 1_000_000).to_string(),
        Part::Second => number(of(Unit::Second), 2),
        Part::Week => number((of(Unit::Doy) - 1) / 7 + 1, 2),
        Part::WeekOfMonth => ((m.day - 1) / 7 + 1).to_string(),
        Part::Quarter => of(Unit::Quarter).to_string(),
        Part::Julian => (m.days + JULIAN_1970).to_string(),
        Part::Century => number(century(m.year, 100), 2),
        Part::Half(has_points) => {
            let half = match (m.us < DAY_US / 2, has_points) {
                (true, true) => "a.m.",
                (true, false) => "am",
                (false, true) => "p.m.",
                (false, false) => "pm",
            };
            by_case(half)
        }
        Part::Era(has_points) => {
            let era = match (m.year > 0, has_points) {
                (true, true) => "a.d.",
                (true, false) => "ad",
                (false, true) => "b.c.",
                (false, false) => "bc",
            };
            by_case(era)
        }
        Part::Zone => by_case("utc"),
        Part::Offset => "+00".to_owned(),
    }
}

/// `to_date`, and `to_timestamp` of a text.
fn read<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    call.map(
        len,
        |v| Lanes::Ints(v.into()),
        |row| {
            let (text, template) = (text(call, 0, row)?, text(call, 1, row)?);
            let found = read_by(template, text).and_then(|read| read.moment(1));
            let found = found.map(|us| match call.data_type {
                DataType::Date => us.div_euclid(DAY_US),
                _ => us,
            });
            found.map(Some).ok_or_else(|| {
                let text: String = text.chars().take(80).collect();
                let template: String = template.chars().take(80).collect();
                call.error(format!("'{text}' is no moment of the template '{template}'"))
            })
        },
    )
}

/// Reads by a template. Where it has a space or a sign, the text may have any, or none.
fn read_by(template: &str, text: &str) -> Option<Read> {
    let mut read = Read::default();
    let (mut is_before, mut rest, mut text) = (false, template, text.trim_start());
    let is_sign = |c: char| !c.is_alphanumeric();
    while let Some((piece, behind)) = next_piece(rest) {
        text = match piece {
            Piece::Text(wanted) if wanted.chars().all(is_sign) => {
                let text = text.trim_start();
                match text.strip_prefix(is_sign) {
                    Some(behind) if !wanted.trim().is_empty() => behind.trim_start(),
                    _ => text,
                }
            }
            Piece::Text(wanted) => {
                // As many characters are passed over, whatever they are.
                let passed = text.char_indices().nth(wanted.chars().count());
                passed.map_or("", |(at, _)| text.get(at..).unwrap_or_default())
            }
            Piece::Part { part, ending, .. } => {
                let is_alone = next_piece(behind).is_none_or(|(p, _)| matches!(p, Piece::Text(_)));
                let after =
                    read_part(part, text.trim_start(), is_alone, &mut read, &mut is_before)?;
                match ending {
                    Some(_) => after.get(2..).unwrap_or_default(),
                    None => after,
                }
            }
        };
        rest = behind;
    }
    if is_before {
        read.year = read.year.map(|year| 1 - year);
    }
    text.trim().is_empty().then_some(read)
}

fn read_part<'t>(
    part: Part,
    text: &'t str,
    is_alone: bool,
    read: &mut Read,
    is_before: &mut bool,
) -> Option<&'t str> {
    // A number that no other follows at once may have more digits.
    let number = |most: usize| digits(text, if is_alone { most.max(6) } else { most });
    let (place, most) = match part {
        Part::Year(count) => {
            let (year, rest) = number(count)?;
            let is_short = count < 4 && text.len() - rest.len() < 4;
            read.year = Some(match year {
                // The year nearest to 2020.
                year @ 0..70 if is_short => year + 2000,
                year @ 70..100 if is_short => year + 1900,
                year @ 100..1000 if is_short && count == 3 => {
                    if year < 520 {
                        year + 2000
                    } else {
                        year + 1000
                    }
                }
                year => year,
            });
            return Some(rest);
        }
        Part::Month(_) => {
            let (month, rest) = name_at(text, true)?;
            read.month = Some(month + 1);
            return Some(rest);
        }
        Part::DayName(_) => return name_at(text, false).map(|(_, rest)| rest),
        Part::Fraction(_) => {
            let (us, rest) = fraction(text)?;
            read.us = Some(us);
            return Some(rest);
        }
        Part::Half(has_points) | Part::Era(has_points) => {
            let (word, rest) = text.split_at_checked(if has_points { 4 } else { 2 })?;
            let first = word.chars().next()?.to_ascii_lowercase();
            match part {
                Part::Half(_) => read.is_afternoon = Some(first == 'p'),
                _ => *is_before = first == 'b',
            }
            return Some(rest);
        }
        Part::SecondOfDay => {
            let (second, rest) = digits(text, 5)?;
            (read.hour, read.minute) = (Some(second / 3_600), Some(second / 60 % 60));
            read.second = Some(second % 60);
            return Some(rest);
        }
        Part::Zone => return ["UTC", "GMT", "Z"].iter().find_map(|zone| text.strip_prefix(zone)),
        Part::Offset => return offset(text, read),
        Part::MonthNumber => (&mut read.month, 2),
        Part::Day => (&mut read.day, 2),
        Part::DayOfYear => (&mut read.day_of_year, 3),
        Part::Hour | Part::Hour12 => (&mut read.hour, 2),
        Part::Minute => (&mut read.minute, 2),
        Part::Second => (&mut read.second, 2),
        Part::Julian => (&mut read.julian, 7),
        _ => return None,
    };
    let (found, rest) = number(most)?;
    *place = Some(found);
    Some(rest)
}
