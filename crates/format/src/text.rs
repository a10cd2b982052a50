//! Values as people write them, in files, on command lines and between quotes in SQL. Printing is
//! `Display` of [`ValueRef`](crate::ValueRef); what it prints, this reads.
//!
//! Every function answers `None` for a text that is not of its type; [`expected`] puts that into
//! words.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::{DataType, Decimal, Error, Interval, Result, Value, calendar, list};

/// True or false: `true`, `false`, `t`, `f` in any case, `1`, `0`.
#[must_use]
pub fn parse_bool(field: &[u8]) -> Option<u8> {
    match field {
        b"1" | b"t" | b"T" => Some(1),
        b"0" | b"f" | b"F" => Some(0),
        _ if field.eq_ignore_ascii_case(b"true") => Some(1),
        _ if field.eq_ignore_ascii_case(b"false") => Some(0),
        _ => None,
    }
}

/// The number that up to 18 digits make; these fit every 64-bit integer.
#[inline]
fn parse_digits(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

/// A signed integer of any width.
#[must_use]
#[inline]
pub fn parse_signed<T: TryFrom<i64>>(field: &[u8]) -> Option<T> {
    let (negative, digits) = match field {
        [b'-', digits @ ..] => (true, digits),
        _ => (false, field),
    };
    let value = match parse_digits(digits) {
        Some(value) => {
            let value = value.cast_signed();
            if negative { -value } else { value }
        }
        None => std::str::from_utf8(field).ok()?.parse().ok()?,
    };
    T::try_from(value).ok()
}

/// An unsigned integer of any width.
#[must_use]
#[inline]
pub fn parse_unsigned<T: TryFrom<u64>>(field: &[u8]) -> Option<T> {
    let value = match parse_digits(field) {
        Some(value) => value,
        None => std::str::from_utf8(field).ok()?.parse().ok()?,
    };
    T::try_from(value).ok()
}

/// A decimal with at most 15 digits: its digits and the power of ten below them are both exact
/// doubles, so that one division rounds correctly.
#[inline]
#[allow(clippy::cast_precision_loss, reason = "at most 15 digits")]
fn parse_short_decimal(field: &[u8]) -> Option<f64> {
    const POWERS: [f64; 16] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (negative, digits) = match field {
        [b'-', digits @ ..] => (true, digits),
        _ => (false, field),
    };
    if digits.len() > 16 {
        return None;
    }
    let (mut value, mut count, mut point) = (0u64, 0usize, None);
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            value = value * 10 + u64::from(digit);
            count += 1;
        } else if *byte == b'.' && point.is_none() {
            point = Some(count);
        } else {
            return None;
        }
    }
    if count == 0 || count > 15 {
        return None;
    }
    let decimals = point.map_or(0, |at| count - at); // default: without a point there are none.
    let magnitude = value as f64 / POWERS.get(decimals)?;
    Some(if negative { -magnitude } else { magnitude })
}

/// True for the spellings of the values that are no numbers: they are taken as written, while a
/// number too large to be finite is refused.
fn is_special_float(text: &str) -> bool {
    let text = text.trim_start_matches(['-', '+']);
    ["inf", "infinity", "nan"].iter().any(|s| text.eq_ignore_ascii_case(s))
}

/// A 64-bit floating-point number.
#[must_use]
#[inline]
pub fn parse_f64(field: &[u8]) -> Option<f64> {
    if let Some(value) = parse_short_decimal(field) {
        return Some(value);
    }
    let text = std::str::from_utf8(field).ok()?;
    let value: f64 = text.parse().ok()?;
    (value.is_finite() || is_special_float(text)).then_some(value)
}

/// A 32-bit floating-point number.
#[must_use]
pub fn parse_f32(field: &[u8]) -> Option<f32> {
    let text = std::str::from_utf8(field).ok()?;
    let value: f32 = text.parse().ok()?;
    (value.is_finite() || is_special_float(text)).then_some(value)
}

/// Bytes as pairs of hexadecimal digits, with or without `\x` in front.
#[must_use]
pub fn parse_hex(field: &[u8]) -> Option<Vec<u8>> {
    let digits = field.strip_prefix(b"\\x").unwrap_or(field); // default: it may be left out.
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// A time in microseconds since midnight: hours and minutes, then seconds and a fraction if any.
#[must_use]
pub fn parse_time(field: &[u8]) -> Option<i64> {
    calendar::parse_time_of_day(std::str::from_utf8(field).ok()?)
}

/// A UUID: 32 hexadecimal digits, with the four hyphens or without any.
#[must_use]
pub fn parse_uuid(field: &[u8]) -> Option<[u8; 16]> {
    let hyphenated = field.len() == 36;
    let mut digits = [0; 32];
    let mut count = 0;
    for (i, byte) in field.iter().enumerate() {
        if hyphenated && matches!(i, 8 | 13 | 18 | 23) {
            if *byte != b'-' {
                return None;
            }
            continue;
        }
        *digits.get_mut(count)? = *byte;
        count += 1;
    }
    let bytes = if count == 32 { parse_hex(&digits)? } else { return None };
    bytes.try_into().ok()
}

/// An IPv4 address as four numbers with points.
#[must_use]
pub fn parse_ipv4(field: &[u8]) -> Option<u32> {
    let address: Ipv4Addr = std::str::from_utf8(field).ok()?.parse().ok()?;
    Some(address.to_bits())
}

/// An IPv6 address in any of its usual spellings.
#[must_use]
pub fn parse_ipv6(field: &[u8]) -> Option<[u8; 16]> {
    let address: Ipv6Addr = std::str::from_utf8(field).ok()?.parse().ok()?;
    Some(address.octets())
}

/// Reads a value of a type. The label of an enum stays a text, which its field turns into the
/// value: see [`Field::coerce`](crate::Field::coerce).
///
/// ```
/// use esker_format::{DataType, Value, text};
///
/// assert_eq!(text::parse_value("42", DataType::I64)?, Value::Int(42));
/// let error = text::parse_value("x", DataType::U8).unwrap_err();
/// assert_eq!(error.to_string(), "expected u8 (0 to 255), found \"x\"");
/// # Ok::<(), esker_format::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` saying what was expected.
pub fn parse_value(text: &str, data_type: DataType) -> Result<Value> {
    let bytes = text.as_bytes();
    let value = match data_type {
        DataType::Bool => parse_bool(bytes).map(|v| Value::Bool(v == 1)),
        DataType::I8 | DataType::I16 | DataType::I32 | DataType::I64 => {
            parse_signed(bytes).map(Value::Int)
        }
        DataType::U8 | DataType::U16 | DataType::U32 | DataType::U64 => {
            parse_unsigned(bytes).map(Value::Uint)
        }
        DataType::F32 => parse_f32(bytes).map(Value::Float32),
        DataType::F64 => parse_f64(bytes).map(Value::Float),
        DataType::Text => Some(Value::Text(text.to_owned())),
        DataType::Bytes => parse_hex(bytes).map(Value::Bytes),
        DataType::Date => parse_date(bytes).map(Value::Date),
        DataType::Timestamp => TimestampParser::default().parse(bytes).map(Value::Timestamp),
        DataType::Time => parse_time(bytes).map(Value::Time),
        DataType::Uuid => parse_uuid(bytes).map(Value::Uuid),
        DataType::Ipv4 => parse_ipv4(bytes).map(Value::Ipv4),
        DataType::Ipv6 => parse_ipv6(bytes).map(Value::Ipv6),
        DataType::Json => return Value::json(text),
        DataType::Interval => Interval::parse(text, None).map(Value::Interval),
        DataType::List(element) => return list::parse(text, element),
        // Which label it is, its field knows.
        DataType::Enum => return Ok(Value::Text(text.to_owned())),
        DataType::Decimal { precision, scale } => {
            let mantissa = Decimal::parse_mantissa(bytes, precision, scale);
            mantissa.and_then(|m| Decimal::new(m, scale)).map(Value::Decimal)
        }
    };
    let fitting = value.filter(|v| v.as_ref().coerce(data_type).is_ok());
    fitting.ok_or_else(|| {
        let expected = expected(data_type);
        Error::invalid(format!("expected {expected}, found {}", shown(bytes)))
    })
}

/// A date as a day number.
#[must_use]
pub fn parse_date(field: &[u8]) -> Option<i32> {
    if let Some(date) = parse_plain_date(field) {
        return Some(date);
    }
    calendar::parse_date(std::str::from_utf8(field).ok()?).ok()
}

/// The commonest form, `2013-01-28`, of a day that every month has.
#[inline]
fn parse_plain_date(field: &[u8]) -> Option<i32> {
    let [y, y1, y2, y3, b'-', m, m1, b'-', d, d1] = field else { return None };
    let number = |digits: &[&u8]| {
        digits.iter().try_fold(0, |value, byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit <= 9).then_some(value * 10 + i64::from(digit))
        })
    };
    let (year, month, day) = (number(&[y, y1, y2, y3])?, number(&[m, m1])?, number(&[d, d1])?);
    let fits = (1..=12).contains(&month) && (1..=28).contains(&day);
    if fits { i32::try_from(calendar::days_from_civil(year, month, day)).ok() } else { None }
}

/// Timestamps in microseconds. Neighbours often fall on the same day, so the last day is kept.
#[derive(Clone, Copy, Debug)]
pub struct TimestampParser {
    date: [u8; 10],
    day_us: i64,
}

impl Default for TimestampParser {
    fn default() -> Self {
        Self { date: *b"1970-01-01", day_us: 0 }
    }
}

impl TimestampParser {
    /// A timestamp: a date alone, or date and time.
    #[inline]
    pub fn parse(&mut self, field: &[u8]) -> Option<i64> {
        if let Some((date, time)) = field.split_first_chunk::<10>()
            && let Some(of_day) = parse_full_time(time)
        {
            if *date != self.date {
                let days = parse_date(date)?;
                self.day_us = i64::from(days).checked_mul(calendar::DAY_US)?;
                self.date = *date;
            }
            return Some(self.day_us + of_day);
        }
        calendar::parse_timestamp(std::str::from_utf8(field).ok()?).ok()
    }
}

/// The commonest form, `T05:17:00Z` (or with a space, or without `Z`), in microseconds of the day.
#[inline]
fn parse_full_time(time: &[u8]) -> Option<i64> {
    let (b'T' | b' ', h, h1, b':', m, m1, b':', s, s1) = (match time {
        [t, h, h1, c, m, m1, d, s, s1] | [t, h, h1, c, m, m1, d, s, s1, b'Z'] => {
            (*t, *h, *h1, *c, *m, *m1, *d, *s, *s1)
        }
        _ => return None,
    }) else {
        return None;
    };
    let pair = |tens: u8, ones: u8, below: i64| -> Option<i64> {
        let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
        let value = i64::from(tens) * 10 + i64::from(ones);
        (tens <= 9 && ones <= 9 && value < below).then_some(value)
    };
    let (hour, minute, second) = (pair(h, h1, 24)?, pair(m, m1, 60)?, pair(s, s1, 60)?);
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000)
}

/// What a value of a type looks like, for errors.
#[must_use]
pub fn expected(data_type: DataType) -> String {
    let range = |least: i64, most: i64| format!("{data_type} ({least} to {most})");
    match data_type {
        DataType::Bool => "bool (true or false)".into(),
        DataType::I8 => range(i8::MIN.into(), i8::MAX.into()),
        DataType::I16 => range(i16::MIN.into(), i16::MAX.into()),
        DataType::I32 => range(i32::MIN.into(), i32::MAX.into()),
        DataType::I64 => range(i64::MIN, i64::MAX),
        DataType::U8 => range(0, u8::MAX.into()),
        DataType::U16 => range(0, u16::MAX.into()),
        DataType::U32 => range(0, u32::MAX.into()),
        DataType::U64 => format!("u64 (0 to {})", u64::MAX),
        DataType::F32 | DataType::F64 => format!("{data_type} (a number like 1.5 or 2e-3)"),
        DataType::Text => "text in UTF-8".into(),
        DataType::Bytes => "bytes (pairs of hexadecimal digits)".into(),
        DataType::Date => "date (like 2013-01-31)".into(),
        DataType::Timestamp => "timestamp (UTC, like 2013-01-31 05:17:00)".into(),
        DataType::Time => "time (like 05:17:00 or 05:17:00.25)".into(),
        DataType::Uuid => "uuid (like 67e55044-10b1-426f-9247-bb680e5fe0c8)".into(),
        DataType::Ipv4 => "ipv4 (an address like 192.0.2.1)".into(),
        DataType::Ipv6 => "ipv6 (an address like 2001:db8::1)".into(),
        DataType::Enum => "a label of the enum".into(),
        DataType::Json => "json".into(),
        DataType::List(element) => {
            format!("{data_type} (like {{…}} or […], each item a {})", element.data_type())
        }
        DataType::Interval => "interval (like 1 year 2 months 3 days 04:05:06)".into(),
        DataType::Decimal { precision, scale } => {
            let whole = precision - scale;
            format!("{data_type} (at most {whole} digits before the point and {scale} behind it)")
        }
    }
}

/// A text as errors show it: quoted, and cut when long.
#[must_use]
pub fn shown(value: &[u8]) -> String {
    const SHOWN_CHARS: usize = 60;
    let text = String::from_utf8_lossy(value);
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(SHOWN_CHARS).collect();
    if chars.next().is_none() {
        return format!("{head:?}");
    }
    format!("{head:?}… ({} bytes)", value.len())
}

#[cfg(test)]
mod tests;
