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
//! Numbers with leading zeros or a plus sign (postal codes, telephone numbers) are text; so is what
//! JSON writes in quotes, unless it is a date or timestamp.

use std::collections::BTreeMap;

use esker_format::{DataType, calendar, text};

use crate::Result;
use crate::chunk::Layout;
use crate::dialect::{Csv, Dialect};
use crate::fault::record_error;
use crate::json::{Names, Object, Rows};
use crate::splitter::Chunk;
use crate::tokenizer::{Fault, FaultKind, Span, Tokenizer};

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
    /// An array or object of JSON.
    const NESTED: Self = Self(1 << 10);

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

    /// Whether arrays or objects were seen.
    pub(crate) fn has_nested(self) -> bool {
        self.has(Self::NESTED)
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

    /// The kind of a value of JSON.
    fn of_json(raw: &[u8]) -> Self {
        match raw {
            [b'"', inner @ .., b'"'] => {
                let kind = Self::of(inner);
                let is_calendar = kind.has(Self::DATE.union(Self::TIMESTAMP));
                if is_calendar { kind } else { Self::TEXT }
            }
            [b't' | b'f', ..] => Self::BOOL,
            [b'n', ..] => Self::NULL,
            [b'{' | b'[', ..] => Self::NESTED,
            number => Self::of(number),
        }
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

/// What was seen in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kinds: Kinds,
    /// How many rows have it.
    rows: u64,
}

/// What was seen in the columns of some rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    pub(crate) rows: u64,
    pub(crate) columns: Vec<Column>,
    /// The columns of `columns`, by name.
    positions: BTreeMap<String, usize>,
}

impl Survey {
    /// Adds rows that follow. Their columns, if new, come last.
    pub(crate) fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        for column in other.columns {
            match self.positions.get(&column.name).and_then(|at| self.columns.get_mut(*at)) {
                Some(known) => {
                    known.kinds = known.kinds.union(column.kinds);
                    known.rows += column.rows;
                }
                None => {
                    self.positions.insert(column.name.clone(), self.columns.len());
                    self.columns.push(column);
                }
            }
        }
    }

    /// The names of the columns, as they came.
    pub(crate) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.get(*self.positions.get(name)?)
    }

    /// Whether a row has NULL, or nothing, in a column.
    pub(crate) fn has_null(&self, column: &Column) -> bool {
        column.kinds.has_null() || column.rows < self.rows
    }

    fn new(rows: u64, columns: impl IntoIterator<Item = (String, Kinds, u64)>) -> Self {
        let columns = columns.into_iter().map(|(name, kinds, rows)| Column { name, kinds, rows });
        let mut survey = Self::default();
        survey.merge(Self { rows, columns: columns.collect(), ..Self::default() });
        survey
    }

    /// Surveys a chunk.
    ///
    /// # Errors
    /// When a record is none; lines count from the start of the chunk.
    pub(crate) fn of(layout: &Layout, chunk: &Chunk) -> Result<Self> {
        let surveyed = match layout.dialect {
            Dialect::Csv(csv) => Self::of_csv(layout, csv, chunk),
            dialect => Self::of_json(layout, dialect, chunk),
        };
        surveyed.map_err(|fault| record_error(&layout.columns, chunk.bytes(), fault))
    }

    fn of_csv(layout: &Layout, csv: Csv, chunk: &Chunk) -> std::result::Result<Self, Fault> {
        let (bytes, columns) = (chunk.bytes(), layout.columns.len());
        let mut rows = 0;
        let mut seen = vec![Kinds::default(); columns];
        let mut tokenizer = Tokenizer::new(bytes, csv, columns, chunk.has_quotes);
        let mut spans = Vec::new();
        loop {
            tokenizer.next_block(&mut spans)?;
            if spans.is_empty() {
                let columns = layout.columns.iter().cloned().zip(seen);
                return Ok(Self::new(rows, columns.map(|(name, kinds)| (name, kinds, rows))));
            }
            rows += (spans.len() / columns.max(1)) as u64;
            for (position, kinds) in seen.iter_mut().enumerate() {
                let column = spans.iter().skip(position).step_by(columns.max(1));
                *kinds = survey_column(layout, csv, bytes, column, *kinds);
            }
        }
    }

    fn of_json(
        layout: &Layout,
        dialect: Dialect,
        chunk: &Chunk,
    ) -> std::result::Result<Self, Fault> {
        let bytes = chunk.bytes();
        let mut names = Names::new(layout.columns.iter().map(String::as_str));
        let mut seen: Vec<(Kinds, u64)> = vec![Default::default(); layout.columns.len()];
        let (mut count, mut rows) = (0, Rows::new(chunk, dialect));
        while let Some(found) = rows.next_row()? {
            count += 1;
            if let (Some(key), Some((kinds, rows))) = (found.key, seen.first_mut()) {
                let key = key.of(bytes);
                let inner = key.get(1..key.len().saturating_sub(1)).unwrap_or_default();
                *kinds = kinds.union(Kinds::of(inner));
                *rows = count;
            }
            let mut object =
                Object::new(bytes.get(..found.limit).unwrap_or_default(), found.start)?;
            let mut guess = 0;
            while let Some((name, value)) = object.next_member()? {
                let position = names.find_or_add(name.of(bytes), guess).ok_or(Fault {
                    position: name.start(),
                    kind: FaultKind::Expected("a name of whole characters"),
                })?;
                guess = position + 1;
                if position >= seen.len() {
                    seen.resize(position + 1, Default::default());
                }
                if let Some((kinds, rows)) = seen.get_mut(position)
                    && (found.key.is_none() || position > 0)
                {
                    *kinds = kinds.union(Kinds::of_json(value.of(bytes)));
                    *rows += 1;
                }
            }
            rows.end_row(&found, object.end())?;
        }
        let columns = names.into_names().into_iter().zip(seen);
        Ok(Self::new(count, columns.map(|(name, (kinds, rows))| (name, kinds, rows))))
    }
}

/// Adds one column of a block to what was seen of it before.
fn survey_column<'a>(
    layout: &Layout,
    csv: Csv,
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
            let quoted = csv.opens(raw.first()) && raw.len() > 1;
            let field = if quoted { raw.get(1..raw.len() - 1).unwrap_or_default() } else { raw };
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
