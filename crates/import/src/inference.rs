//! Which types a file holds.
//!
//! Every field that is not NULL is one of a few *kinds*; the kinds seen in a column decide its
//! type. The rules never pick a type that would lose what is written:
//!
//! | kinds seen | type |
//! |---|---|
//! | only `true` and `false` | bool |
//! | integers that fit | i64 |
//! | integers without sign, some beyond i64 | u64 |
//! | decimals, and integers up to 2⁵³ | f64 |
//! | `2013-01-31` | date |
//! | the same and `2013-01-31 05:17:00` | timestamp |
//! | anything else, or mixed | text |
//!
//! Numbers with leading zeros or a plus sign (postal codes, telephone numbers) are text.

use esker_format::{DataType, calendar, text};

use crate::Result;
use crate::chunk::{Layout, record_error};
use crate::splitter::Chunk;
use crate::tokenizer::{Span, Tokenizer};

/// How a schema was inferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inference {
    /// How many rows were looked at.
    pub rows: u64,
    /// Whether these are all rows of the file.
    pub whole: bool,
}

/// What was seen in one column, one bit per kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds(u16);

impl Kinds {
    const NULL: Self = Self(1);
    const BOOL: Self = Self(1 << 1);
    /// Up to 2⁵³ either side of zero, so that a double holds it.
    const INTEGER: Self = Self(1 << 2);
    const NEGATIVE: Self = Self(1 << 3);
    /// Fits an i64, but not a double.
    const WIDE_INTEGER: Self = Self(1 << 4);
    /// Fits a u64, but not an i64.
    const UNSIGNED_INTEGER: Self = Self(1 << 5);
    const DECIMAL: Self = Self(1 << 6);
    const DATE: Self = Self(1 << 7);
    const TIMESTAMP: Self = Self(1 << 8);
    const TEXT: Self = Self(1 << 9);

    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// True when everything seen but NULL is among `kinds`.
    fn within(self, kinds: &[Self]) -> bool {
        let allowed = kinds.iter().fold(Self::NULL, |a, b| a.union(*b));
        self.0 & !allowed.0 == 0
    }

    /// Whether NULL was seen.
    pub(crate) fn has_null(self) -> bool {
        self.has(Self::NULL)
    }

    /// The type that holds everything seen.
    pub(crate) fn data_type(self) -> DataType {
        let signed = [Self::INTEGER, Self::NEGATIVE, Self::WIDE_INTEGER];
        if self.within(&[]) {
            DataType::Text
        } else if self.within(&[Self::BOOL]) {
            DataType::Bool
        } else if self.within(&signed) {
            DataType::I64
        } else if self.within(&[Self::INTEGER, Self::WIDE_INTEGER, Self::UNSIGNED_INTEGER]) {
            DataType::U64
        } else if self.within(&[Self::INTEGER, Self::NEGATIVE, Self::DECIMAL]) {
            DataType::F64
        } else if self.within(&[Self::DATE]) {
            DataType::Date
        } else if self.within(&[Self::DATE, Self::TIMESTAMP]) {
            DataType::Timestamp
        } else {
            DataType::Text
        }
    }

    /// The kinds of one field.
    fn of(field: &[u8]) -> Self {
        let first = field.iter().copied().find(|b| *b != b'-').unwrap_or(0);
        if field.eq_ignore_ascii_case(b"true") || field.eq_ignore_ascii_case(b"false") {
            return Self::BOOL;
        }
        if !(first.is_ascii_digit() || matches!(first, b'.' | b'i' | b'n' | b'I' | b'N')) {
            return Self::TEXT;
        }
        let digits = field.strip_prefix(b"-").unwrap_or(field);
        if digits.iter().all(u8::is_ascii_digit) {
            return Self::of_integer(field, digits);
        }
        let leading_zero = matches!(digits, [b'0', b'0'..=b'9', ..]);
        if !leading_zero && text::parse_f64(field).is_some() {
            return Self::DECIMAL;
        }
        let text = std::str::from_utf8(field).unwrap_or_default();
        if calendar::parse_date(text).is_ok() {
            return Self::DATE;
        }
        if calendar::parse_timestamp(text).is_ok() { Self::TIMESTAMP } else { Self::TEXT }
    }

    fn of_integer(field: &[u8], digits: &[u8]) -> Self {
        const EXACT: i64 = 1 << 53;
        if matches!(digits, [b'0', _, ..]) {
            return Self::TEXT;
        }
        let negative = if digits.len() < field.len() { Self::NEGATIVE } else { Self::default() };
        let size = match text::parse_signed::<i64>(field) {
            Some(value) if (-EXACT..=EXACT).contains(&value) => Self::INTEGER,
            Some(_) => Self::WIDE_INTEGER,
            None if text::parse_unsigned::<u64>(field).is_some() => Self::UNSIGNED_INTEGER,
            None => Self::TEXT,
        };
        size.union(negative)
    }
}

/// What was seen in the columns of some rows.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    pub(crate) rows: u64,
    pub(crate) columns: Vec<Kinds>,
}

impl Survey {
    pub(crate) fn new(columns: usize) -> Self {
        Self { rows: 0, columns: vec![Kinds::default(); columns] }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        for (kinds, more) in self.columns.iter_mut().zip(&other.columns) {
            *kinds = kinds.union(*more);
        }
    }

    /// Surveys a chunk.
    ///
    /// # Errors
    /// When a record has too few or too many fields; lines count from the start of the chunk.
    pub(crate) fn of(layout: &Layout, chunk: &Chunk) -> Result<Self> {
        let bytes = chunk.bytes();
        let columns = layout.columns.len();
        let mut survey = Self::new(columns);
        let mut tokenizer = Tokenizer::new(bytes, layout.delimiter, columns, chunk.has_quotes);
        let mut spans = Vec::new();
        loop {
            let block = tokenizer.next_block(&mut spans);
            block.map_err(|fault| record_error(&layout.columns, bytes, fault))?;
            if spans.is_empty() {
                return Ok(survey);
            }
            survey.rows += (spans.len() / columns.max(1)) as u64;
            for (position, kinds) in survey.columns.iter_mut().enumerate() {
                let column = spans.iter().skip(position).step_by(columns.max(1));
                *kinds = survey_column(layout, bytes, column, *kinds);
            }
        }
    }
}

/// Adds one column of a block to what was seen of it before.
fn survey_column<'a>(
    layout: &Layout,
    bytes: &[u8],
    spans: impl Iterator<Item = &'a Span>,
    mut seen: Kinds,
) -> Kinds {
    let mut timestamps = text::TimestampParser::default();
    for span in spans {
        let raw = span.of(bytes);
        if layout.nulls.contains(raw) {
            seen = seen.union(Kinds::NULL);
        } else if !seen.has(Kinds::TEXT) {
            let field = match raw {
                [b'"', inner @ .., b'"'] => inner,
                _ => raw,
            };
            seen = seen.union(match field {
                [b'1'..=b'9', rest @ ..] if is_short_number(rest) => Kinds::INTEGER,
                _ if seen.has(Kinds::TIMESTAMP) && timestamps.parse(field).is_some() => {
                    // A date alone reads as a timestamp too, and changes nothing here.
                    Kinds::TIMESTAMP
                }
                _ => Kinds::of(field),
            });
        }
    }
    seen
}

/// True for digits after a first one that make an integer a double holds for sure.
#[inline]
fn is_short_number(rest: &[u8]) -> bool {
    rest.len() < 15 && rest.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests;
