//! `format`, which is `printf`: a text with operands in place of its parts.

use std::borrow::Cow;

use esker_format::{Decimal, ValueRef};

use super::call::Call;
use super::letters::{quoted, quoted_name, text};
use super::text::TEXT_BYTES_MAX;
use crate::evaluate::Vector;
use crate::meter::Reservation;
use crate::{Error, Result};

/// The most digits that a number is asked to have.
const DIGITS_MAX: usize = 400;

pub(super) fn call<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    let template = call.operand(0)?;
    call.map_bytes(len, |row, room| {
        if template.is_null(row) {
            return Ok(None);
        }
        let mut out = Out { call, text: String::new(), room, taken: call.made_max(row)? };
        let mut formatted = Formatted { call, row, next: 1 };
        formatted.write(text(call, 0, row)?, &mut out)?;
        Ok(Some(Cow::Owned(out.text.into_bytes())))
    })
}

/// The text on the way: it asks for room as it grows.
struct Out<'o, 'c, 'a> {
    call: &'o Call<'c, 'a>,
    text: String,
    room: &'o mut Reservation<'a>,
    taken: usize,
}

impl Out<'_, '_, '_> {
    fn push(&mut self, text: &str) -> Result<()> {
        self.grow(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    fn fill(&mut self, with: char, count: usize) -> Result<()> {
        self.grow(count)?;
        self.text.extend(std::iter::repeat_n(with, count));
        Ok(())
    }

    fn grow(&mut self, by: usize) -> Result<()> {
        self.call.meter.work(by)?;
        let needed = self.text.len().saturating_add(by);
        if needed > self.taken {
            if needed > TEXT_BYTES_MAX {
                let message = format!("{needed} bytes, at most {TEXT_BYTES_MAX}");
                return Err(self.call.error(message));
            }
            let more = needed.max(self.taken.saturating_mul(2)) - self.taken;
            self.room.take(more)?;
            self.taken += more;
        }
        Ok(())
    }
}

/// A part of the format: what stands between `%` and its letter.
#[derive(Default)]
struct Part {
    is_left: bool,
    has_plus: bool,
    has_space: bool,
    has_zeros: bool,
    has_commas: bool,
    is_alternate: bool,
    width: usize,
    precision: Option<usize>,
}

struct Formatted<'o, 'c, 'a> {
    call: &'o Call<'c, 'a>,
    row: usize,
    /// The operand that comes next.
    next: usize,
}

impl<'o> Formatted<'o, '_, '_> {
    fn write(&mut self, template: &str, out: &mut Out<'_, '_, '_>) -> Result<()> {
        let mut rest = template;
        while let Some((before, behind)) = rest.split_once('%') {
            out.push(before)?;
            rest = match behind.strip_prefix('%') {
                Some(behind) => {
                    out.push("%")?;
                    behind
                }
                None => self.part(behind, out)?,
            };
        }
        out.push(rest)
    }

    /// Writes a part, and gives what stands behind it.
    fn part<'t>(&mut self, text: &'t str, out: &mut Out<'_, '_, '_>) -> Result<&'t str> {
        let mut part = Part::default();
        let mut rest = text;
        let position = match number(rest) {
            (Some(place), behind) if behind.starts_with('$') => {
                rest = behind.get(1..).unwrap_or_default();
                Some(place)
            }
            _ => None,
        };
        while let Some(flag) = rest.chars().next() {
            match flag {
                '-' => part.is_left = true,
                '+' => part.has_plus = true,
                ' ' => part.has_space = true,
                '0' => part.has_zeros = true,
                ',' => part.has_commas = true,
                '#' => part.is_alternate = true,
                '!' => {}
                _ => break,
            }
            rest = rest.get(1..).unwrap_or_default();
        }
        let (width, behind) = self.size(rest)?;
        rest = behind;
        let width = width.unwrap_or(0);
        part.is_left |= width < 0;
        part.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        if let Some(behind) = rest.strip_prefix('.') {
            let (precision, behind) = self.size(behind)?;
            // As C has it: none is 0, and a negative one is none.
            part.precision = usize::try_from(precision.unwrap_or(0)).ok();
            rest = behind;
        }
        rest = rest.trim_start_matches(['l', 'h']);
        let letter = rest.chars().next();
        let letter = letter.ok_or_else(|| self.error("expected a letter behind the last %"))?;
        let written = self.written(letter, position, &part)?;
        part.pad(&written, letter, out)?;
        Ok(rest.get(letter.len_utf8()..).unwrap_or_default())
    }

    /// A number of the format, or `*` for that of an operand.
    fn size<'t>(&mut self, text: &'t str) -> Result<(Option<i64>, &'t str)> {
        if let Some(behind) = text.strip_prefix('*') {
            let ValueRef::Int(size) = self.operand(None)?.1 else {
                return Err(self.error("expected an integer for *"));
            };
            return Ok((Some(size), behind));
        }
        let (size, behind) = number(text);
        Ok((size.and_then(|size| i64::try_from(size).ok()), behind))
    }

    fn error(&self, message: impl std::fmt::Display) -> Error {
        self.call.error(message)
    }

    /// An operand of the format and its place.
    fn operand(&mut self, place: Option<usize>) -> Result<(usize, ValueRef<'o>)> {
        let call = self.call;
        let at = place.unwrap_or(self.next);
        self.next = at.saturating_add(1);
        match call.vectors.get(at).filter(|_| at > 0) {
            Some(vector) => Ok((at, vector.value(self.row))),
            None => {
                let given = call.vectors.len() - 1;
                Err(self.error(format!("the format wants operand {at}, found {given}")))
            }
        }
    }

    /// An operand as a letter writes it, without what it is padded with.
    fn written(&mut self, letter: char, place: Option<usize>, part: &Part) -> Result<String> {
        let (at, value) = self.operand(place)?;
        let as_text = |value: ValueRef<'_>| match value {
            ValueRef::Null => String::new(),
            value => value.to_string(),
        };
        Ok(match letter {
            's' | 'z' => cut(as_text(value), part.precision),
            'c' => as_text(value).chars().take(1).collect(),
            'q' => as_text(value).replace('\'', "''"),
            'w' => as_text(value).replace('"', "\"\""),
            'Q' | 'L' if value.is_null() => "NULL".to_owned(),
            'Q' | 'L' => quoted(&as_text(value), '\''),
            'I' if !value.is_null() => quoted_name(&as_text(value)),
            'd' | 'i' | 'u' => {
                let number = integer(value).ok_or_else(|| self.unfit(at, "an integer", letter))?;
                let number = if letter == 'u' { unsigned(number) } else { number };
                let digits = number.unsigned_abs().to_string();
                let digits = zeros(digits, part.precision, DIGITS_MAX);
                signed(if part.has_commas { commas(&digits) } else { digits }, number < 0, part)
            }
            'x' | 'X' | 'o' => {
                let number = integer(value).ok_or_else(|| self.unfit(at, "an integer", letter))?;
                let number = unsigned(number);
                let (prefix, digits) = match letter {
                    'x' => ("0x", format!("{number:x}")),
                    'X' => ("0X", format!("{number:X}")),
                    _ => ("0", format!("{number:o}")),
                };
                let digits = zeros(digits, part.precision, DIGITS_MAX);
                let prefix = if part.is_alternate && number != 0 { prefix } else { "" };
                format!("{prefix}{digits}")
            }
            'f' | 'F' | 'e' | 'E' | 'g' | 'G' => {
                let precision = part.precision.unwrap_or(6).min(DIGITS_MAX);
                match (value, letter) {
                    (ValueRef::Decimal(v), 'f' | 'F') => decimal(v, precision, part),
                    _ => {
                        let number = float(value);
                        let number = number.ok_or_else(|| self.unfit(at, "a number", letter))?;
                        of_float(number, letter, precision, part)
                    }
                }
            }
            other => {
                let known = "s, d, i, u, f, e, g, x, X, o, c, q, Q, L, w, I, %";
                return Err(self.error(format!("unknown letter '{other}' of %; known: {known}")));
            }
        })
    }

    fn unfit(&self, at: usize, wanted: &str, letter: char) -> Error {
        let value = self.call.vectors.get(at).map(|v| v.value(self.row)).unwrap_or_default();
        let shown: String = value.to_string().chars().take(40).collect();
        self.error(format!("%{letter}: expected {wanted}, found {} '{shown}'", value.kind_name()))
    }
}

impl Part {
    /// Writes a text with what it is padded with.
    fn pad(&self, written: &str, letter: char, out: &mut Out<'_, '_, '_>) -> Result<()> {
        let missing = self.width.saturating_sub(written.chars().count());
        let is_number =
            matches!(letter, 'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 'f' | 'F' | 'e' | 'E' | 'g' | 'G');
        if self.is_left {
            out.push(written)?;
            return out.fill(' ', missing);
        }
        // As in C: a precision of an integer says how many zeros there are.
        let is_whole = matches!(letter, 'd' | 'i' | 'u' | 'x' | 'X' | 'o');
        let is_finite = written.ends_with(|c: char| c.is_ascii_hexdigit() || c == '.');
        if self.has_zeros && is_number && is_finite && !(is_whole && self.precision.is_some()) {
            let sign = if written.starts_with(['+', '-', ' ']) { 1 } else { 0 };
            let (sign, digits) = written.split_at_checked(sign).unwrap_or(("", written));
            out.push(sign)?;
            out.fill('0', missing)?;
            return out.push(digits);
        }
        out.fill(' ', missing)?;
        out.push(written)
    }
}

/// The number that a text begins with, and what stands behind it.
fn number(text: &str) -> (Option<usize>, &str) {
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.strip_suffix(behind).unwrap_or_default();
    (digits.parse().ok(), behind)
}

fn cut(text: String, characters: Option<usize>) -> String {
    match characters {
        Some(characters) => text.chars().take(characters).collect(),
        None => text,
    }
}

/// The whole part of a number. Of NULL it is 0, as in SQLite.
fn integer(value: ValueRef<'_>) -> Option<i128> {
    Some(match value {
        ValueRef::Null => 0,
        ValueRef::Int(v) => v.into(),
        ValueRef::Uint(v) => v.into(),
        ValueRef::Bool(v) => i128::from(v),
        ValueRef::Decimal(v) => v.truncate(),
        ValueRef::Float(v) => whole(v)?,
        ValueRef::Float32(v) => whole(v.into())?,
        ValueRef::Text(text) => text.trim().parse().ok()?,
        _ => return None,
    })
}

#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole(v: f64) -> Option<i128> {
    (v.abs() < 1e38).then_some(v as i128)
}

/// The 64 bits of a number.
fn unsigned(number: i128) -> i128 {
    number & i128::from(u64::MAX)
}

fn float(value: ValueRef<'_>) -> Option<f64> {
    Some(match value {
        ValueRef::Float(v) => v,
        ValueRef::Float32(v) => v.into(),
        ValueRef::Decimal(v) => v.to_f64(),
        ValueRef::Text(text) => text.trim().parse().ok()?,
        other => integer(other)? as f64,
    })
}

fn zeros(digits: String, least: Option<usize>, most: usize) -> String {
    let least = least.unwrap_or(0).min(most);
    format!("{digits:0>least$}")
}

/// Digits with a comma between thousands.
fn commas(digits: &str) -> String {
    let (whole, rest) =
        digits.split_at_checked(digits.find('.').unwrap_or(digits.len())).unwrap_or((digits, ""));
    let mut out = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

fn signed(digits: String, is_negative: bool, part: &Part) -> String {
    match (is_negative, part.has_plus, part.has_space) {
        (true, ..) => format!("-{digits}"),
        (false, true, _) => format!("+{digits}"),
        (false, false, true) => format!(" {digits}"),
        _ => digits,
    }
}

/// A decimal, exactly: halves go away from zero.
fn decimal(v: Decimal, precision: usize, part: &Part) -> String {
    let rounded = v.round(i32::try_from(precision).unwrap_or(i32::MAX)).unwrap_or(v);
    let text = rounded.to_string();
    let text = text.trim_start_matches('-');
    let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
    let digits = match precision {
        0 => whole.to_owned(),
        _ => format!("{whole}.{behind:0<precision$}"),
    };
    let digits = if part.has_commas { commas(&digits) } else { digits };
    signed(digits, rounded.mantissa() < 0, part)
}

fn of_float(v: f64, letter: char, precision: usize, part: &Part) -> String {
    let is_negative = v.is_sign_negative() && !v.is_nan();
    let size = v.abs();
    if !v.is_finite() {
        let word = if v.is_nan() { "NaN" } else { "Inf" };
        return signed(word.to_owned(), is_negative, part);
    }
    let digits = match letter {
        'f' | 'F' => format!("{size:.precision$}"),
        'e' | 'E' => scientific(size, precision),
        _ => shortest(size, precision.max(1), part.is_alternate),
    };
    let digits = if part.has_commas { commas(&digits) } else { digits };
    let digits = if letter.is_ascii_uppercase() { digits.to_uppercase() } else { digits };
    signed(digits, is_negative, part)
}

/// As `%e`: one digit before the point, the exponent with two digits at least.
fn scientific(v: f64, precision: usize) -> String {
    let text = format!("{v:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// As `%g`: so many digits, in the form that is shorter, without zeros at the end.
fn shortest(v: f64, precision: usize, keeps_zeros: bool) -> String {
    let text = scientific(v, precision - 1);
    let exponent = text.split_once('e').and_then(|(_, e)| e.parse::<i64>().ok()).unwrap_or(0);
    let precision = i64::try_from(precision).unwrap_or(i64::MAX);
    let without = |digits: &str| match digits.contains('.') && !keeps_zeros {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if (-4..precision).contains(&exponent) {
        let behind = usize::try_from(precision - 1 - exponent).unwrap_or(0);
        return without(&format!("{v:.behind$}"));
    }
    match text.split_once('e') {
        Some((digits, exponent)) => format!("{}e{exponent}", without(digits)),
        None => text,
    }
}
