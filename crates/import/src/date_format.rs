//! Dates and times that are written in another order than year, month, day.

use esker_format::calendar::{DAY_US, civil_from_days, days_from_civil};
use esker_format::text;

use crate::{Error, Result};

/// The names of months, by their first three letters.
const MONTHS: [&[u8]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];

/// How dates or timestamps are written, such as `%d/%m/%Y %H:%M`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateFormat {
    parts: Vec<Part>,
    has_time: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A byte that stands for itself.
    Byte(u8),
    /// A number, or a word, by its letter.
    Value(u8),
}

/// What a text said so far.
#[derive(Clone, Copy)]
struct Moment {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    us: i64,
    is_afternoon: Option<bool>,
    offset_minutes: i64,
}

impl DateFormat {
    /// Reads a format: `%Y` a year, `%y` its last two digits (1969 to 2068), `%m` a month, `%b` its
    /// name or the first letters of it in English, `%d` a day, `%H` an hour, `%I` one of twelve with
    /// `%p` (AM or PM), `%M` minutes, `%S` seconds, `%f` the digits of a fraction, `%z` an offset
    /// from UTC, `%%` a percent sign; anything else stands for itself. Numbers may lack their
    /// leading zeros.
    ///
    /// # Errors
    /// `InvalidOptions` for another letter, or when year, month and day are not all there.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = |what: String| Error::options(format!("date format {text:?}: {what}"));
        let mut parts = Vec::new();
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            parts.push(match byte {
                b'%' => match bytes.next() {
                    Some(b'%') => Part::Byte(b'%'),
                    Some(letter) if b"YymbdHIpMSfz".contains(&letter) => Part::Value(letter),
                    Some(b'B') => Part::Value(b'b'),
                    Some(b'e') => Part::Value(b'd'),
                    other => {
                        let found =
                            other.map_or("the end".to_owned(), |b| format!("%{}", char::from(b)));
                        let known = "%Y %y %m %b %d %H %I %p %M %S %f %z or %%";
                        return Err(bad(format!("expected {known}, found {found}")));
                    }
                },
                other => Part::Byte(other),
            });
        }
        let has = |letters: &[u8]| {
            parts.iter().any(|part| matches!(part, Part::Value(v) if letters.contains(v)))
        };
        if !(has(b"Yy") && has(b"mb") && has(b"d")) {
            return Err(bad("expected a year (%Y), a month (%m) and a day (%d)".to_owned()));
        }
        let has_time = has(b"HIMSf");
        Ok(Self { parts, has_time })
    }

    /// The day, and the microseconds of the day in UTC; `None` when the text is written otherwise.
    fn read(&self, text: &[u8]) -> Option<(i32, i64)> {
        let mut moment = Moment {
            year: 0,
            month: 0,
            day: 0,
            hour: 0,
            minute: 0,
            second: 0,
            us: 0,
            is_afternoon: None,
            offset_minutes: 0,
        };
        let mut rest = text;
        for part in &self.parts {
            rest = match part {
                Part::Byte(byte) => rest.strip_prefix(&[*byte])?,
                Part::Value(letter) => moment.take(*letter, rest)?,
            };
        }
        if rest.is_empty() { moment.finish() } else { None }
    }
}

/// A number of up to so many digits at the start of a text, and what follows it.
fn number(text: &[u8], digits: usize) -> Option<(i64, &[u8])> {
    let count = text.iter().take(digits).take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at_checked(count)?;
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, rest))
}

impl Moment {
    /// Takes a part from the start of a text; what follows it.
    fn take<'t>(&mut self, letter: u8, text: &'t [u8]) -> Option<&'t [u8]> {
        let mut two = |slot: fn(&mut Self) -> &mut i64| {
            let (value, rest) = number(text, 2)?;
            *slot(self) = value;
            Some(rest)
        };
        match letter {
            b'Y' => {
                let (year, rest) = number(text, 4)?;
                self.year = year;
                (text.len() - rest.len() == 4).then_some(rest)
            }
            b'y' => {
                let (year, rest) = number(text, 2)?;
                self.year = year + if year < 69 { 2000 } else { 1900 };
                Some(rest)
            }
            b'm' => two(|moment| &mut moment.month),
            b'd' => two(|moment| &mut moment.day),
            b'H' | b'I' => two(|moment| &mut moment.hour),
            b'M' => two(|moment| &mut moment.minute),
            b'S' => two(|moment| &mut moment.second),
            b'b' => {
                let letters = text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
                let (word, rest) = text.split_at_checked(letters)?;
                let start = word.get(..3)?.to_ascii_lowercase();
                let month = MONTHS.iter().position(|month| **month == start)?;
                self.month = i64::try_from(month).ok()? + 1;
                Some(rest)
            }
            b'p' => {
                let (word, rest) = text.split_at_checked(2)?;
                self.is_afternoon = match word.to_ascii_lowercase().as_slice() {
                    b"am" => Some(false),
                    b"pm" => Some(true),
                    _ => return None,
                };
                Some(rest)
            }
            b'f' => {
                let (us, rest) = number(text, 6)?;
                let digits = text.len() - rest.len();
                self.us = us * 10i64.pow(u32::try_from(6 - digits).ok()?);
                // Nanoseconds are taken where that loses none.
                let zeros = rest.iter().take_while(|byte| **byte == b'0').count();
                rest.get(zeros..)
            }
            _ => self.take_offset(text),
        }
    }

    fn take_offset<'t>(&mut self, text: &'t [u8]) -> Option<&'t [u8]> {
        let (sign, rest) = match text {
            [b'Z' | b'z', rest @ ..] => return Some(rest),
            [b'+', rest @ ..] => (1, rest),
            [b'-', rest @ ..] => (-1, rest),
            _ => return None,
        };
        let (hours, rest) = number(rest, 2)?;
        let rest = rest.strip_prefix(b":").unwrap_or(rest); // default: the colon may be left out.
        let (minutes, rest) = number(rest, 2).unwrap_or((0, rest)); // default: whole hours.
        self.offset_minutes = sign * (hours * 60 + minutes);
        (hours <= 18 && minutes < 60).then_some(rest)
    }

    fn finish(mut self) -> Option<(i32, i64)> {
        if let Some(is_afternoon) = self.is_afternoon {
            if !(1..=12).contains(&self.hour) {
                return None;
            }
            self.hour = self.hour % 12 + if is_afternoon { 12 } else { 0 };
        }
        let days = days_from_civil(self.year, self.month.clamp(1, 12), self.day);
        let is_date = civil_from_days(days) == (self.year, self.month, self.day);
        if !is_date || self.hour > 23 || self.minute > 59 || self.second > 59 {
            return None;
        }
        let minutes = self.hour * 60 + self.minute - self.offset_minutes;
        Some((i32::try_from(days).ok()?, (minutes * 60 + self.second) * 1_000_000 + self.us))
    }
}

/// The formats that are tried, one after the other, before the usual one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dates(pub(crate) Vec<DateFormat>);

impl Dates {
    pub(crate) fn is_given(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether a format reads a text, and whether it has a time.
    pub(crate) fn matches(&self, text: &[u8]) -> Option<bool> {
        self.0.iter().find(|format| format.read(text).is_some()).map(|format| format.has_time)
    }

    pub(crate) fn date(&self, text: &[u8]) -> Option<i32> {
        let mut formats = self.0.iter().filter(|format| !format.has_time);
        let found = formats.find_map(|format| format.read(text));
        found.map(|(days, _)| days).or_else(|| text::parse_date(text))
    }

    pub(crate) fn timestamp(&self, text: &[u8]) -> Option<i64> {
        let found = self.0.iter().find_map(|format| format.read(text));
        match found {
            Some((days, us)) => i64::from(days).checked_mul(DAY_US)?.checked_add(us),
            None => text::TimestampParser::default().parse(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: &str, text: &str) -> Option<String> {
        let dates = Dates(vec![DateFormat::parse(format).unwrap()]);
        let us = dates.timestamp(text.as_bytes())?;
        Some(esker_format::Value::Timestamp(us).to_string())
    }

    #[test]
    fn dates_in_other_orders() {
        for (format, text, wanted) in [
            ("%d/%m/%Y", "31/12/2013", "2013-12-31 00:00:00"),
            ("%m/%d/%Y", "1/2/2013", "2013-01-02 00:00:00"),
            ("%d.%m.%y", "01.02.68", "2068-02-01 00:00:00"),
            ("%d.%m.%y", "01.02.69", "1969-02-01 00:00:00"),
            ("%d-%b-%Y", "07-Feb-1999", "1999-02-07 00:00:00"),
            ("%B %e, %Y", "February 7, 1999", "1999-02-07 00:00:00"),
            ("%m/%d/%Y %I:%M %p", "12/31/2013 12:05 AM", "2013-12-31 00:05:00"),
            ("%m/%d/%Y %I:%M:%S %p", "12/31/2013 1:05:09 pm", "2013-12-31 13:05:09"),
            ("%Y%m%d%H%M%S", "20131231235958", "2013-12-31 23:59:58"),
            ("%d/%m/%Y %H:%M:%S.%f%z", "31/12/2013 01:00:00.25+0200", "2013-12-30 23:00:00.250000"),
        ] {
            assert_eq!(read(format, text).as_deref(), Some(wanted), "{format} {text}");
        }
        for (format, text) in [
            ("%d/%m/%Y", "12/31/2013"),
            ("%d/%m/%Y", "31/12/13"),
            ("%d/%m/%Y", "31/12/2013 "),
            ("%d/%m/%Y", "29/02/2013"),
            ("%d/%m/%Y %I:%M %p", "01/02/2013 13:00 PM"),
            ("%d %b %Y", "1 Foo 2013"),
        ] {
            assert_eq!(read(format, text), None, "{format} {text}");
        }
        assert_eq!(read("%d/%m/%Y", "2013-12-31").as_deref(), Some("2013-12-31 00:00:00"));
    }

    #[test]
    fn formats_that_are_none() {
        let error = |text: &str| DateFormat::parse(text).unwrap_err().to_string();
        assert!(error("%d/%m").contains("a year (%Y)"));
        assert!(error("%d/%m/%Q").contains("found %Q"), "{}", error("%d/%m/%Q"));
        assert!(error("%d/%m/%Y%").contains("found the end"));
    }
}
