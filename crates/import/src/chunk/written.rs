//! Columns that are read in another way than the usual: with other notations, or as inference from
//! some rows has it, and those that take what no other does.

use std::borrow::Cow;

use esker_format::text;
use esker_format::{Column, DataType, Decimal, Field, ValueRef, Values, VariableValues};

use super::{Block, Fixed, Misfit, NullMarks};
use crate::dialect::{Csv, Dialect};
use crate::export::json_text;
use crate::fields::{CsvFields, FieldReader, FieldText};
use crate::kinds::{Notation, is_spelled_as};
use crate::{Error, Result};

impl Block<'_> {
    /// Whether a column is read by [`Fixed::read_as_written`].
    pub(super) fn is_read_as_written(&self, data_type: DataType) -> bool {
        let notation = &self.layout.notation;
        let is_date = matches!(data_type, DataType::Date | DataType::Timestamp);
        let is_exact = matches!(
            data_type,
            DataType::Bool
                | DataType::I64
                | DataType::U64
                | DataType::F64
                | DataType::Decimal { .. }
                | DataType::Uuid
        );
        let has_point = matches!(data_type, DataType::F32 | DataType::F64)
            || matches!(data_type, DataType::Decimal { .. });
        notation.decimal_comma && has_point
            || notation.dates.is_given() && is_date
            || self.layout.is_sampled() && is_exact
    }

    /// Checks the column that has no name and no field.
    pub(super) fn check_blank(&self) -> Result<()> {
        let Some(blank) = self.layout.blank else { return Ok(()) };
        let nulls = &self.layout.nulls;
        let mut spans = self.spans.iter().skip(blank).step_by(self.columns.max(1));
        let found = spans.find(|span| !span.is_empty() && !nulls.contains(span.of(self.bytes)));
        let Some(span) = found else { return Ok(()) };
        let (number, found) = (blank + 1, text::shown(span.of(self.bytes)));
        let line = crate::tokenizer::lines_before(self.bytes, span.start()) + 1;
        let message = format!("column {number} has no name; expected nothing in it, found {found}");
        Err(Error::data(message).on_line(line).against_types(&self.layout.note))
    }

    pub(super) fn is_untyped(&self, position: usize) -> bool {
        self.layout.untyped.contains(&position)
    }

    /// Checks that the rows that were read last have no value in a field whose type is not known,
    /// as no row before them has one.
    pub(super) fn check_untyped(
        &self,
        position: usize,
        column: &Column,
    ) -> std::result::Result<(), Misfit> {
        if !self.is_untyped(position) {
            return Ok(());
        }
        let first = column.len() - self.spans.len() / self.columns.max(1);
        let found = (first..column.len()).find(|row| column.value(*row) != ValueRef::Null);
        found.map_or(Ok(()), |row| Err(Misfit { row: row - first, is_null: false }))
    }

    /// Reads what no other field has, as an object.
    pub(super) fn read_rest(
        &self,
        field: &Field,
        column: &mut Column,
    ) -> std::result::Result<(), Misfit> {
        let Values::Variable(values) = &mut column.values else { return Ok(()) };
        let base = values.len();
        let mut nulls = NullMarks { marks: &mut column.nulls, field };
        for row in 0..self.spans.len() / self.columns.max(1) {
            let Some(text) = self.rest_text(row) else {
                nulls.mark_missing(base, row)?;
                values.push(&[]);
                continue;
            };
            let text = std::str::from_utf8(&text).ok();
            let document = text.and_then(|text| esker_format::json::parse(text).ok());
            values.push(&document.ok_or(Misfit { row, is_null: false })?);
        }
        nulls.finish(values.len());
        Ok(())
    }

    /// What no other field has of a row, as JSON writes it; `None` when that is nothing.
    fn rest_text(&self, row: usize) -> Option<Vec<u8>> {
        if let Dialect::Csv(csv) = self.layout.dialect {
            return self.rest_of_csv(csv, row);
        }
        let members = self.rest?.of(self.first_row + row);
        if members.is_empty() {
            return None;
        }
        let members: Vec<&[u8]> = members.iter().map(|span| span.of(self.bytes)).collect();
        Some([&b"{"[..], &members.join(&b","[..]), b"}"].concat())
    }

    /// The same of CSV: strings by the names of their columns, without those that are NULL.
    fn rest_of_csv(&self, csv: Csv, row: usize) -> Option<Vec<u8>> {
        let layout = self.layout;
        let reader = CsvFields { csv, has_quotes: self.has_quotes, nulls: &layout.nulls };
        let mut object = Vec::new();
        for column in &layout.rest_columns {
            let raw = self.spans.get(row * self.columns + column)?.of(self.bytes);
            let FieldText::Text(text) = reader.read(raw) else { continue };
            object.push(if object.is_empty() { b'{' } else { b',' });
            json_text(&mut object, layout.columns.get(*column)?.as_bytes());
            object.push(b':');
            json_text(&mut object, &text);
        }
        object.push(b'}');
        (object.len() > 1).then_some(object)
    }

    /// What is wrong with what no other field has of a row.
    pub(super) fn rest_fault(&self, row: usize) -> String {
        let text = self.rest_text(row);
        let text = text.as_deref().map(std::str::from_utf8);
        match text {
            None => "the field is declared not null, and nothing is left for it".to_owned(),
            Some(Err(_)) => "expected text in UTF-8".to_owned(),
            Some(Ok(text)) => match esker_format::json::parse(text) {
                Err(e) => e.to_string(),
                Ok(_) => format!("refused {}", text::shown(text.as_bytes())),
            },
        }
    }
}

/// A document of a column. In the one that is called after the field of the rest, what is no object
/// becomes a member of one, as in a row of JSON.
fn json_of(raw: &[u8], (field, is_rest): (&Field, bool)) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(raw).ok()?;
    let document = esker_format::json::parse(text).ok()?;
    let text = text.trim();
    if !is_rest || text.starts_with('{') || text == "null" {
        return Some(document);
    }
    let mut object = vec![b'{'];
    json_text(&mut object, field.name.as_bytes());
    object.push(b':');
    object.extend_from_slice(text.as_bytes());
    object.push(b'}');
    esker_format::json::parse(std::str::from_utf8(&object).ok()?).ok()
}

impl<R: FieldReader> Fixed<'_, R> {
    /// Reads documents.
    pub(super) fn read_json(self, values: &mut VariableValues) -> std::result::Result<(), Misfit> {
        let field = (self.field, self.block.layout.is_rest(self.field));
        self.read_variable(values, |raw| json_of(raw, field).map(Cow::Owned))
    }

    /// Reads a column in the notation of the file; as inference has it, where some rows only were
    /// looked at.
    pub(super) fn read_as_written(
        self,
        values: &mut Values,
        data_type: DataType,
    ) -> std::result::Result<(), Misfit> {
        let layout = self.block.layout;
        let notation = &layout.notation;
        let sampled = layout.is_sampled();
        let fits = |field: &[u8]| !sampled || is_spelled_as(field, data_type, notation);
        match values {
            Values::U8(v) => self.read(v, |f| text::parse_bool(f).filter(|_| fits(f))),
            Values::U64(v) => self.read(v, |f| text::parse_unsigned(f).filter(|_| fits(f))),
            Values::I32(v) => self.read(v, |f| notation.dates.date(f)),
            Values::I64(v) if data_type == DataType::Timestamp => {
                self.read(v, |f| notation.dates.timestamp(f))
            }
            Values::I64(v) if let DataType::Decimal { precision, scale } = data_type => {
                self.read(v, |f| {
                    let mantissa = Decimal::parse_mantissa(&notation.number(f)?, precision, scale)?;
                    mantissa.try_into().ok().filter(|_| fits(f))
                })
            }
            Values::I64(v) => self.read(v, |f| text::parse_signed(f).filter(|_| fits(f))),
            Values::I128(v) => {
                let DataType::Decimal { precision, scale } = data_type else { return Ok(()) };
                self.read(v, |f| {
                    let mantissa = Decimal::parse_mantissa(&notation.number(f)?, precision, scale);
                    mantissa.filter(|_| fits(f))
                })
            }
            Values::F32(v) => self.read(v, |f| text::parse_f32(&notation.number(f)?)),
            Values::F64(v) => {
                self.read(v, |f| text::parse_f64(&notation.number(f)?).filter(|_| fits(f)))
            }
            Values::Variable(v) => self.read_uuid(v, fits),
            // No other type is read so.
            _ => Err(Misfit { row: 0, is_null: false }),
        }
    }

    fn read_uuid(
        self,
        values: &mut VariableValues,
        fits: impl Fn(&[u8]) -> bool,
    ) -> std::result::Result<(), Misfit> {
        self.read_variable(values, |f| {
            let uuid = text::parse_uuid(f).filter(|_| fits(f));
            uuid.map(|uuid| Cow::Owned(uuid.to_vec()))
        })
    }
}

impl Notation {
    /// A number with a point before its fraction, as others write it; `None` when a comma should
    /// be there.
    fn number<'a>(&self, field: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if !self.decimal_comma {
            return Some(Cow::Borrowed(field));
        }
        if field.contains(&b'.') {
            return None;
        }
        let comma = field.iter().position(|byte| *byte == b',');
        let Some(comma) = comma else { return Some(Cow::Borrowed(field)) };
        let mut pointed = field.to_vec();
        *pointed.get_mut(comma)? = b'.';
        Some(Cow::Owned(pointed))
    }
}
