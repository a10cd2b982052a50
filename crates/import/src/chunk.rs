//! A chunk of the file as a batch.
//!
//! A block of rows is tokenized, then read column by column: one loop per type, no decision per
//! value but its own. The first fault in file order is the one reported.

use std::borrow::Cow;

use esker_format::batch::check_value;
use esker_format::row::VALUE_BYTES_MAX;
use esker_format::text::{self, TimestampParser, shown};
use esker_format::{Batch, Column, DataType, Field, Schema, Values, VariableValues};

use crate::nulls::Nulls;
use crate::splitter::Chunk;
use crate::tokenizer::{self, Fault, FaultKind, Span, Tokenizer};
use crate::{Error, Result};

/// What every chunk of a file is read by.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) delimiter: u8,
    pub(crate) nulls: Nulls,
    pub(crate) schema: Schema,
    /// For every field of the schema, the position of its column in the file.
    pub(crate) sources: Vec<usize>,
    /// The names of the columns of the file.
    pub(crate) columns: Vec<String>,
    /// What to add to errors about values, such as where the types come from.
    pub(crate) note: String,
}

/// A chunk, read.
pub(crate) struct Parsed {
    /// The rows and how many lines they stand on; or what is wrong, on a line counted from the
    /// start of the chunk.
    pub(crate) rows: Result<(Batch, u64)>,
    /// The chunk's memory.
    pub(crate) buffer: Vec<u8>,
}

/// Reads a chunk.
pub(crate) fn parse(layout: &Layout, chunk: Chunk) -> Parsed {
    let bytes = chunk.bytes();
    let rows = parse_rows(layout, bytes, chunk.has_quotes);
    Parsed { rows, buffer: chunk.into_buffer() }
}

/// The rows of a chunk, and how many lines they stand on.
fn parse_rows(layout: &Layout, bytes: &[u8], has_quotes: bool) -> Result<(Batch, u64)> {
    let valid_text = std::str::from_utf8(bytes).is_ok();
    let columns = layout.columns.len();
    let mut batch = Batch::empty(&layout.schema);
    let mut tokenizer = Tokenizer::new(bytes, layout.delimiter, columns, has_quotes);
    let mut spans = Vec::new();
    loop {
        let first = batch.is_empty();
        let fault = tokenizer.next_block(&mut spans).err();
        let block = Block { layout, bytes, has_quotes, valid_text, spans: &spans, columns };
        block.read_into(&mut batch)?;
        if let Some(fault) = fault {
            return Err(fault_error(layout, bytes, fault));
        }
        if spans.is_empty() {
            return Ok((batch, tokenizer.lines()));
        }
        if first {
            reserve(&mut batch, tokenizer.position(), bytes.len());
        }
    }
}

/// Makes room for all rows, going by the first block.
fn reserve(batch: &mut Batch, bytes_read: usize, bytes: usize) {
    let more = |have: usize| {
        let rest = bytes.saturating_sub(bytes_read);
        (have.saturating_mul(rest) / bytes_read.max(1)).saturating_mul(33) / 32
    };
    for column in &mut batch.columns {
        esker_format::with_values!(&mut column.values, v => v.reserve(more(v.len())), v => {
            v.offsets.reserve(more(v.offsets.len()));
            v.heap.reserve(more(v.heap.len()));
        });
    }
}

/// A value that does not fit, by its row in the block.
struct Misfit {
    row: usize,
    is_null: bool,
}

/// Some rows, tokenized.
struct Block<'a> {
    layout: &'a Layout,
    bytes: &'a [u8],
    has_quotes: bool,
    /// Whether all of `bytes` is UTF-8.
    valid_text: bool,
    spans: &'a [Span],
    columns: usize,
}

impl Block<'_> {
    fn read_into(&self, batch: &mut Batch) -> Result<()> {
        let mut first: Option<(usize, usize, Misfit)> = None;
        let fields = self.layout.schema.fields().iter().zip(&self.layout.sources);
        for ((position, (field, source)), column) in fields.enumerate().zip(&mut batch.columns) {
            let read = self.read_column(*source, field.nullable, column);
            let read = read.and_then(|()| self.check_lengths(field, column));
            let Err(misfit) = read else { continue };
            let place = (misfit.row, *source);
            if first.as_ref().is_none_or(|(_, source, m)| place < (m.row, *source)) {
                first = Some((position, *source, misfit));
            }
        }
        first.map_or(Ok(()), |(position, source, m)| Err(self.misfit_error(position, source, &m)))
    }

    fn read_column(
        &self,
        source: usize,
        nullable: bool,
        column: &mut Column,
    ) -> std::result::Result<(), Misfit> {
        let data_type = column.data_type;
        let fixed = Fixed { block: self, source, nullable, nulls: &mut column.nulls };
        match &mut column.values {
            Values::U8(v) if data_type == DataType::Bool => fixed.read(v, text::parse_bool),
            Values::U8(v) => fixed.read(v, text::parse_unsigned),
            Values::U16(v) => fixed.read(v, text::parse_unsigned),
            Values::U32(v) if data_type == DataType::Ipv4 => fixed.read(v, text::parse_ipv4),
            Values::U32(v) => fixed.read(v, text::parse_unsigned),
            Values::U64(v) => fixed.read(v, text::parse_unsigned),
            Values::I8(v) => fixed.read(v, text::parse_signed),
            Values::I16(v) => fixed.read(v, text::parse_signed),
            Values::I32(v) if data_type == DataType::Date => fixed.read(v, text::parse_date),
            Values::I32(v) => fixed.read(v, text::parse_signed),
            Values::I64(v) if data_type == DataType::Timestamp => {
                let mut parser = TimestampParser::default();
                fixed.read(v, |field| parser.parse(field))
            }
            Values::I64(v) if data_type == DataType::Time => fixed.read(v, text::parse_time),
            Values::I64(v) => fixed.read(v, text::parse_signed),
            Values::F32(v) => fixed.read(v, text::parse_f32),
            Values::F64(v) => fixed.read(v, text::parse_f64),
            Values::Variable(v) if data_type == DataType::Uuid => {
                fixed.read_variable(v, |f| text::parse_uuid(f).map(|v| Cow::Owned(v.to_vec())))
            }
            Values::Variable(v) if data_type == DataType::Ipv6 => {
                fixed.read_variable(v, |f| text::parse_ipv6(f).map(|v| Cow::Owned(v.to_vec())))
            }
            Values::Variable(v) if data_type == DataType::Bytes => {
                fixed.read_variable(v, |f| text::parse_hex(f).map(Cow::Owned))
            }
            Values::Variable(v) if self.valid_text => {
                fixed.read_variable(v, |f| Some(Cow::Borrowed(f)))
            }
            Values::Variable(v) => fixed
                .read_variable(v, |f| std::str::from_utf8(f).is_ok().then_some(Cow::Borrowed(f))),
        }
    }

    /// Checks the rows that were read last against the limit of their field.
    fn check_lengths(&self, field: &Field, column: &Column) -> std::result::Result<(), Misfit> {
        let Values::Variable(values) = &column.values else { return Ok(()) };
        let first = column.len() - self.spans.len() / self.columns.max(1);
        let misfit = |row| Misfit { row: row - first, is_null: false };
        let too_long = |row: &usize| {
            values.get(*row).len() > VALUE_BYTES_MAX
                || field.length_max.is_some() && field.check_length(column.value(*row)).is_err()
        };
        (first..column.len()).find(too_long).map_or(Ok(()), |row| Err(misfit(row)))
    }

    /// A field as it stands in the file, row after row.
    fn raw_fields(&self, source: usize) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().skip(source).step_by(self.columns).map(|span| span.of(self.bytes))
    }

    fn misfit_error(&self, position: usize, source: usize, misfit: &Misfit) -> Error {
        let span = self.spans.get(misfit.row * self.columns + source);
        let raw = span.map(|s| s.of(self.bytes)).unwrap_or_default();
        let field = self.layout.schema.fields().get(position);
        let data_type = field.map_or(DataType::Text, |f| f.data_type);
        let found = if misfit.is_null {
            let spelling = shown(raw);
            format!("the field is declared not null, found NULL (spelled {spelling})")
        } else {
            let plain = unquoted(raw, self.has_quotes);
            let value = std::str::from_utf8(&plain).map(|text| text::parse_value(text, data_type));
            // What reads as a value is one that the field refuses: it is too long.
            match (value, field) {
                (Ok(Ok(value)), Some(field)) => match check_value(field, value.as_ref()) {
                    Err(e) => e.to_string(),
                    Ok(()) => format!("refused {}", shown(&plain)),
                },
                _ => format!("expected {}, found {}", text::expected(data_type), shown(&plain)),
            }
        };
        let line = tokenizer::lines_before(self.bytes, span.map_or(0, |s| s.start())) + 1;
        let name = self.layout.columns.get(source).map_or("", String::as_str);
        Error::data(found).on_line(line).in_column(source, name).with_note(&self.layout.note)
    }
}

/// A field without the quotes around it and with quotes inside undoubled.
pub(crate) fn unquoted(raw: &[u8], has_quotes: bool) -> Cow<'_, [u8]> {
    let inner = match raw {
        [b'"', inner @ .., b'"'] if has_quotes => inner,
        _ => return Cow::Borrowed(raw),
    };
    if !inner.contains(&b'"') {
        return Cow::Borrowed(inner);
    }
    let mut plain = Vec::with_capacity(inner.len());
    let mut doubled = false;
    for byte in inner {
        doubled = *byte == b'"' && !doubled;
        if !doubled {
            plain.push(*byte);
        }
    }
    Cow::Owned(plain)
}

/// One column of one block on its way into a column of the batch.
struct Fixed<'a> {
    block: &'a Block<'a>,
    source: usize,
    nullable: bool,
    nulls: &'a mut Option<Vec<u8>>,
}

impl Fixed<'_> {
    fn read<T: Default>(
        self,
        values: &mut Vec<T>,
        mut parse: impl FnMut(&[u8]) -> Option<T>,
    ) -> std::result::Result<(), Misfit> {
        let (block, source) = (self.block, self.source);
        let base = values.len();
        let mut nulls = NullMarks { marks: self.nulls, nullable: self.nullable };
        for (row, raw) in block.raw_fields(source).enumerate() {
            let value = if block.has_quotes && raw.first() == Some(&b'"') {
                parse(&unquoted(raw, true))
            } else if block.layout.nulls.contains(raw) {
                nulls.mark(base, row)?;
                Some(T::default())
            } else {
                parse(raw)
            };
            values.push(value.ok_or(Misfit { row, is_null: false })?);
        }
        nulls.finish(values.len());
        Ok(())
    }

    fn read_variable(
        self,
        values: &mut VariableValues,
        parse: impl Fn(&[u8]) -> Option<Cow<'_, [u8]>>,
    ) -> std::result::Result<(), Misfit> {
        let (block, source) = (self.block, self.source);
        let base = values.len();
        let mut nulls = NullMarks { marks: self.nulls, nullable: self.nullable };
        for (row, raw) in block.raw_fields(source).enumerate() {
            let misfit = Misfit { row, is_null: false };
            let fits = if block.has_quotes && raw.first() == Some(&b'"') {
                let plain = unquoted(raw, true);
                values.push(&parse(&plain).ok_or(misfit)?)
            } else if block.layout.nulls.contains(raw) {
                nulls.mark(base, row)?;
                values.push(&[])
            } else {
                values.push(&parse(raw).ok_or(misfit)?)
            };
            debug_assert!(fits, "a chunk is far below 4 GiB");
        }
        nulls.finish(values.len());
        Ok(())
    }
}

/// The null marks of a column: nothing until the first NULL, caught up at the end of a block.
struct NullMarks<'a> {
    marks: &'a mut Option<Vec<u8>>,
    nullable: bool,
}

impl NullMarks<'_> {
    fn mark(&mut self, base: usize, row: usize) -> std::result::Result<(), Misfit> {
        if !self.nullable {
            return Err(Misfit { row, is_null: true });
        }
        let marks = self.marks.get_or_insert_with(Vec::new);
        marks.resize(base + row, 0);
        marks.push(1);
        Ok(())
    }

    fn finish(self, rows: usize) {
        if let Some(marks) = self.marks {
            marks.resize(rows, 0);
        }
    }
}

/// The error of a record that is not one.
pub(crate) fn fault_error(layout: &Layout, bytes: &[u8], fault: Fault) -> Error {
    record_error(&layout.columns, bytes, fault)
}

/// The same, for a file whose columns have the given names.
pub(crate) fn record_error(columns: &[String], bytes: &[u8], fault: Fault) -> Error {
    let line = tokenizer::lines_before(bytes, fault.position) + 1;
    let error = match fault.kind {
        FaultKind::FieldCount(found) => {
            let expected = columns.len();
            let fields = if expected == 1 { "field" } else { "fields" };
            let mut message = format!("expected {expected} {fields}, found {found}");
            if let Some(name) = columns.get(found) {
                message.push_str(&format!(": nothing for column {} {name:?}", found + 1));
            }
            Error::data(message)
        }
        FaultKind::Unclosed => Error::data("a quoted field starts here and is never closed"),
        FaultKind::AfterQuote => {
            let rest = bytes.get(fault.position..).unwrap_or_default();
            let start = tokenizer::line_start(bytes, fault.position);
            let column = fault.position - start + 1;
            let found = shown(rest.split(|b| *b == b'\n').next().unwrap_or_default());
            Error::data(format!(
                "expected a delimiter or the end of the line after a closing quote, \
                 found {found} at byte {column} of the line"
            ))
        }
    };
    error.on_line(line)
}

#[cfg(test)]
mod tests;
