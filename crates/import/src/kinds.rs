//! What the fields of a column look like, and the type that holds all of them.
//!
//! Every field that is not NULL is one of a few *kinds*; the kinds seen in a column decide its
//! type. The rules never pick a type that would lose what is written. Types widen in one order,
//! bool, integer, decimal, float, text; what is none of these, arrays and objects, is json:
//!
//! | kinds seen | type |
//! |---|---|
//! | only `true` and `false` | bool |
//! | integers that fit | i64 |
//! | integers without sign, some beyond i64 | u64 |
//! | integers beyond both, or beyond 2⁵³ beside fractions, of 38 digits in all | decimal |
//! | numbers with a fraction or an exponent, and integers up to 2⁵³ | f64 |
//! | `2013-01-31` | date |
//! | the same and `2013-01-31 05:17:00` | timestamp |
//! | `67e55044-10b1-426f-9247-bb680e5fe0c8` | uuid |
//! | arrays and objects of JSON, alone or beside anything else | json |
//! | anything else, or mixed | text |
//!
//! Numbers with leading zeros or a plus sign (postal codes, telephone numbers) are text; so is what
//! JSON writes in quotes, unless it is a date, a timestamp or a UUID.

use esker_format::{DataType, text};

use crate::date_format::Dates;
use crate::json::unescaped;

/// Spellings that often mean that there is no value.
pub(crate) const NULL_LIKE: [&str; 10] =
    ["NA", "N/A", "n/a", "NULL", "null", "None", "\\N", "-", ".", "?"];
/// Where their bits begin.
const NULL_LIKE_SHIFT: u32 = 16;
/// The most digits of a decimal.
const DIGITS_MAX: u8 = 38;

/// What was seen in one column, one bit per kind, and how many digits its numbers need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Kinds {
    bits: u32,
    /// The most digits before the point and behind it, of numbers that a double may not hold.
    whole_digits: u8,
    scale: u8,
}

/// How the fields of a file are written, as far as kinds depend on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notation {
    /// Whether a comma stands before the fraction of a number.
    pub(crate) decimal_comma: bool,
    pub(crate) dates: Dates,
}

impl Kinds {
    pub(crate) const NULL: Self = Self::bit(0);
    const BOOL: Self = Self::bit(1);
    /// Up to 2⁵³ either side of zero, so that a double holds it.
    pub(crate) const INTEGER: Self = Self::bit(2);
    const NEGATIVE: Self = Self::bit(3);
    /// Fits an i64, but not a double.
    const WIDE_INTEGER: Self = Self::bit(4);
    /// Fits a u64, but not an i64.
    const UNSIGNED_INTEGER: Self = Self::bit(5);
    /// Fits neither, but a decimal of 38 digits.
    const LONG_INTEGER: Self = Self::bit(6);
    /// Has a fraction.
    const FRACTION: Self = Self::bit(7);
    /// Has an exponent, or is no number: a double alone holds it.
    const FLOAT: Self = Self::bit(8);
    const DATE: Self = Self::bit(9);
    pub(crate) const TIMESTAMP: Self = Self::bit(10);
    const UUID: Self = Self::bit(11);
    pub(crate) const TEXT: Self = Self::bit(12);
    /// An array or object of JSON.
    const NESTED: Self = Self::bit(13);
    /// A number whose fraction follows a comma.
    const COMMA: Self = Self::bit(14);
    /// A day, a month and a year, in an order that only their writer knows.
    const DAY_MONTH: Self = Self::bit(15);
    /// What reads as an array or object, and is none that a json field takes.
    const BROKEN: Self = Self::bit(26);
    const NULL_LIKE: Self = Self { bits: 0x3ff << NULL_LIKE_SHIFT, whole_digits: 0, scale: 0 };
    const WHOLE: [Self; 3] = [Self::INTEGER, Self::NEGATIVE, Self::WIDE_INTEGER];

    const fn bit(at: u32) -> Self {
        Self { bits: 1 << at, whole_digits: 0, scale: 0 }
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            bits: self.bits | other.bits,
            whole_digits: self.whole_digits.max(other.whole_digits),
            scale: self.scale.max(other.scale),
        }
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.bits & other.bits != 0
    }

    /// True when everything seen but NULL is among `kinds`.
    fn within(self, kinds: &[Self]) -> bool {
        let allowed = kinds.iter().fold(Self::NULL.bits, |bits, kind| bits | kind.bits);
        self.bits & !allowed == 0
    }

    /// Whether NULL was seen.
    pub(crate) fn has_null(self) -> bool {
        self.has(Self::NULL)
    }

    /// Whether there was nothing but NULL.
    pub(crate) fn is_blank(self) -> bool {
        self.within(&[])
    }

    /// The type that holds everything seen.
    pub(crate) fn data_type(self) -> DataType {
        let unsigned = [Self::INTEGER, Self::WIDE_INTEGER, Self::UNSIGNED_INTEGER];
        if self.is_blank() {
            DataType::Text
        } else if self.within(&[Self::BOOL]) {
            DataType::Bool
        } else if self.within(&Self::WHOLE) {
            DataType::I64
        } else if self.within(&unsigned) {
            DataType::U64
        } else if let Some(data_type) = self.decimal() {
            data_type
        } else if self.within(&[Self::INTEGER, Self::NEGATIVE, Self::FRACTION, Self::FLOAT]) {
            DataType::F64
        } else if self.within(&[Self::DATE]) {
            DataType::Date
        } else if self.within(&[Self::DATE, Self::TIMESTAMP]) {
            DataType::Timestamp
        } else if self.within(&[Self::UUID]) {
            DataType::Uuid
        } else if self.has(Self::NESTED) && !self.has(Self::BROKEN) {
            DataType::Json
        } else {
            DataType::Text
        }
    }

    /// The decimal that holds numbers which no double does.
    fn decimal(self) -> Option<DataType> {
        let wide = [Self::WIDE_INTEGER, Self::UNSIGNED_INTEGER, Self::LONG_INTEGER];
        let allowed = [&Self::WHOLE[..], &wide, &[Self::FRACTION]].concat();
        let precision = self.whole_digits + self.scale;
        let fits = self.within(&allowed) && wide.iter().any(|kind| self.has(*kind));
        let data_type = DataType::Decimal { precision, scale: self.scale };
        (fits && precision <= DIGITS_MAX).then_some(data_type)
    }

    /// Whether a column of a type has room for everything seen, as inference would have it: the
    /// type, or one that it widens.
    pub(crate) fn fits(self, data_type: DataType) -> bool {
        let whole = Self::WHOLE;
        match data_type {
            DataType::Bool => self.within(&[Self::BOOL]),
            DataType::I64 => self.within(&whole),
            DataType::U64 => {
                self.within(&[Self::INTEGER, Self::WIDE_INTEGER, Self::UNSIGNED_INTEGER])
            }
            DataType::F64 => {
                self.within(&[Self::INTEGER, Self::NEGATIVE, Self::FRACTION, Self::FLOAT])
            }
            DataType::Decimal { scale, .. } => {
                let long = [Self::UNSIGNED_INTEGER, Self::LONG_INTEGER, Self::FRACTION];
                self.within(&[&whole[..], &long].concat()) && self.scale <= scale
            }
            DataType::Date => self.within(&[Self::DATE]),
            DataType::Timestamp => self.within(&[Self::DATE, Self::TIMESTAMP]),
            DataType::Uuid => self.within(&[Self::UUID]),
            _ => true,
        }
    }

    /// The spelling that would be NULL, for a column that would then have another type than text;
    /// and that type.
    pub(crate) fn null_like(self) -> Option<(&'static str, DataType)> {
        let rest = Self { bits: self.bits & !Self::NULL_LIKE.bits, ..self };
        let mut found = NULL_LIKE.iter().zip(NULL_LIKE_SHIFT..);
        let (spelling, _) = found.find(|(_, bit)| self.bits & (1 << *bit) != 0)?;
        let data_type = rest.data_type();
        (data_type != DataType::Text && !rest.is_blank()).then_some((*spelling, data_type))
    }

    /// Whether a column would be numbers if a comma stood before their fractions.
    pub(crate) fn is_comma_number(self) -> bool {
        let numbers = [Self::INTEGER, Self::NEGATIVE, Self::COMMA];
        self.has(Self::COMMA) && self.within(&numbers)
    }

    /// Whether a column would be dates if their order were known.
    pub(crate) fn is_day_month(self) -> bool {
        self.has(Self::DAY_MONTH) && self.within(&[Self::DAY_MONTH])
    }

    /// Whether it is a value, rather than the name of a column.
    pub(crate) fn is_value(self) -> bool {
        let names = Self::NULL.bits | Self::TEXT.bits | Self::NULL_LIKE.bits;
        self.bits & !names != 0
    }

    /// The kinds of one field, as CSV has it.
    pub(crate) fn of(field: &[u8], notation: &Notation) -> Self {
        let first = field.iter().copied().find(|b| *b != b'-').unwrap_or(0); // default: no byte.
        if let Some(at) = null_like(field) {
            return Self::bit(NULL_LIKE_SHIFT + at);
        }
        if field.eq_ignore_ascii_case(b"true") || field.eq_ignore_ascii_case(b"false") {
            return Self::BOOL;
        }
        if notation.dates.is_given()
            && let Some(has_time) = notation.dates.matches(field)
        {
            return if has_time { Self::TIMESTAMP } else { Self::DATE };
        }
        if field.len() == 36 && text::parse_uuid(field).is_some() {
            return Self::UUID;
        }
        if !(first.is_ascii_digit() || matches!(first, b'.' | b',' | b'i' | b'n' | b'I' | b'N')) {
            return Self::TEXT;
        }
        if let Some(number) = Self::of_number(field, notation.decimal_comma) {
            return number;
        }
        if text::parse_date(field).is_some() {
            return Self::DATE;
        }
        if text::TimestampParser::default().parse(field).is_some() {
            return Self::TIMESTAMP;
        }
        if is_day_month(field) {
            return Self::DAY_MONTH;
        }
        Self::TEXT
    }

    /// The kind of a value of JSON.
    pub(crate) fn of_json(raw: &[u8], notation: &Notation) -> Self {
        match raw {
            [b'"', inner @ .., b'"'] => {
                let Some(plain) = unescaped(inner) else { return Self::TEXT };
                let kind = Self::of(&plain, notation);
                let typed = Self::DATE.union(Self::TIMESTAMP).union(Self::UUID);
                let hinted = Self::DAY_MONTH.union(Self::NULL_LIKE);
                if kind.has(typed.union(hinted)) { kind } else { Self::TEXT }
            }
            [b't' | b'f', ..] => Self::BOOL,
            [b'n', ..] => Self::NULL,
            [b'{' | b'[', ..] => {
                let document = std::str::from_utf8(raw).ok();
                let is_json = document.is_some_and(|d| esker_format::json::parse(d).is_ok());
                if is_json { Self::NESTED } else { Self::BROKEN }
            }
            number => Self::of_number(number, false).unwrap_or(Self::TEXT), // default: 1e999.
        }
    }

    /// The kind of a number; `None` when it is none, or one that no type holds.
    fn of_number(field: &[u8], decimal_comma: bool) -> Option<Self> {
        let digits = field.strip_prefix(b"-").unwrap_or(field); // default: a sign is rare.
        if digits.iter().all(u8::is_ascii_digit) {
            return Self::of_integer(field, digits);
        }
        if matches!(digits, [b'0', b'0'..=b'9', ..]) {
            return None;
        }
        let comma = field.iter().position(|byte| *byte == b',');
        if let Some(comma) = comma {
            let mut pointed = field.to_vec();
            pointed.get_mut(comma).into_iter().for_each(|byte| *byte = b'.');
            let is_number = !field.contains(&b'.') && text::parse_f64(&pointed).is_some();
            if !is_number {
                return None;
            }
            return if decimal_comma {
                Self::of_number(&pointed, false)
            } else {
                Some(Self::COMMA)
            };
        }
        // With a decimal comma, a point may divide thousands.
        if decimal_comma && field.contains(&b'.') {
            return None;
        }
        text::parse_f64(field)?;
        let is_plain = digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
        if !is_plain {
            return Some(Self::FLOAT);
        }
        let point = digits.iter().position(|byte| *byte == b'.')?;
        let count = |digits: usize| u8::try_from(digits).unwrap_or(u8::MAX / 2); // default: many
        let (whole_digits, scale) = (count(point).max(1), count(digits.len() - point - 1));
        let seen = Self { bits: Self::FRACTION.bits, whole_digits, scale };
        // More digits than a decimal has: only a float holds such numbers.
        Some(if whole_digits + scale > DIGITS_MAX { Self::FLOAT } else { seen })
    }

    fn of_integer(field: &[u8], digits: &[u8]) -> Option<Self> {
        const EXACT: i64 = 1 << 53;
        if digits.is_empty() || matches!(digits, [b'0', _, ..]) {
            return None;
        }
        let whole_digits = u8::try_from(digits.len()).ok().filter(|n| *n <= DIGITS_MAX)?;
        let negative = if digits.len() < field.len() { Self::NEGATIVE } else { Self::default() };
        let size = match text::parse_signed::<i64>(field) {
            Some(value) if (-EXACT..=EXACT).contains(&value) => Self::INTEGER,
            Some(_) => Self::WIDE_INTEGER,
            None if text::parse_unsigned::<u64>(field).is_some() => Self::UNSIGNED_INTEGER,
            None => Self::LONG_INTEGER,
        };
        Some(Self { whole_digits, ..size.union(negative) })
    }
}

/// Which of the spellings that mean nothing a field is.
#[inline]
fn null_like(field: &[u8]) -> Option<u32> {
    if field.len() > 4 || !matches!(field.first(), Some(b'N' | b'n' | b'\\' | b'-' | b'.' | b'?')) {
        return None;
    }
    let at = NULL_LIKE.iter().position(|spelling| spelling.as_bytes() == field)?;
    u32::try_from(at).ok()
}

/// True for `31/12/2013`, `12/31/13`, `31.12.2013`, with or without a time behind.
fn is_day_month(field: &[u8]) -> bool {
    let end = field.iter().position(|byte| *byte == b' ').unwrap_or(field.len()); // default: all
    let date = field.get(..end).unwrap_or(field); // default: all
    let Some(divider) = date.iter().find(|byte| !byte.is_ascii_digit()) else { return false };
    let parts: Vec<&[u8]> = date.split(|byte| byte == divider).collect();
    let digits = |part: &[u8], lengths: &[usize]| {
        lengths.contains(&part.len()) && part.iter().all(u8::is_ascii_digit)
    };
    let [first, second, year] = parts.as_slice() else { return false };
    matches!(divider, b'/' | b'.' | b'-')
        && digits(first, &[1, 2])
        && digits(second, &[1, 2])
        && digits(year, &[2, 4])
}

/// Whether a field is written so that a column of an inferred type holds it and nothing is lost:
/// `007` is an integer to a reader, and not to inference.
#[inline]
pub(crate) fn is_spelled_as(field: &[u8], data_type: DataType, notation: &Notation) -> bool {
    let digits = match field {
        [b'-', digits @ ..] => digits,
        digits => digits,
    };
    let is_short = digits.len() <= 15;
    let is_plain = matches!(digits, [b'1'..=b'9', ..] | [b'0'] | [b'0', b'.', ..]);
    let is_number = matches!(data_type, DataType::I64 | DataType::F64);
    // What the type does not read is refused there.
    is_short && is_plain && is_number || Kinds::of(field, notation).fits(data_type)
}

#[cfg(test)]
mod tests;
