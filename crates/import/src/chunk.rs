//! A chunk of the file as a batch.
//!
//! A block of rows is tokenized, then read column by column: one loop per type, no decision per
//! value but its own. The first fault in file order is the one reported.

use std::borrow::Cow;

use esker_format::batch::check_value;
use esker_format::row::VALUE_BYTES_MAX;
use esker_format::text::{self, TimestampParser, shown};
use esker_format::{
    Batch, Column, DataType, Decimal, Field, Interval, Schema, Values, VariableValues, list,
};

use crate::dialect::Dialect;
use crate::fault::fault_error;
use crate::fields::{CsvFields, FieldReader, FieldText, JsonFields};
use crate::json::{self, Beside, Names, Rest};
use crate::kinds::Notation;
use crate::nulls::Nulls;
use crate::options::Unknown;
use crate::places::Lines;
use crate::splitter::Chunk;
use crate::tokenizer::{self, Fault, Span};
use crate::{Error, ErrorKind, Result};

mod written;

/// What every chunk of a file is read by.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) dialect: Dialect,
    pub(crate) nulls: Nulls,
    /// The fields by name, for JSON.
    pub(crate) names: Names,
    /// The field that the names of rows are, in an object of rows.
    pub(crate) key: Option<usize>,
    pub(crate) schema: Schema,
    /// For every field of the schema, the position of its column in the file, if it has one.
    pub(crate) sources: Vec<Option<usize>>,
    /// The names of the columns of the file.
    pub(crate) columns: Vec<String>,
    /// Where the types come from, to be added to errors about values, when some rows only were
    /// looked at. A value then has to be written as those were.
    pub(crate) note: String,
    pub(crate) notation: Notation,
    /// Whether text takes numbers, and true and false, of JSON as they are written.
    pub(crate) spellings: bool,
    pub(crate) unknown: Unknown,
    /// The field that takes the members which no other does.
    pub(crate) rest: Option<usize>,
    /// The column that no row has a value in, and no field is read from.
    pub(crate) blank: Option<usize>,
    /// The fields that no row which was looked at has a value in, where some only were.
    pub(crate) untyped: Vec<usize>,
    /// The columns of CSV that become members of the field `rest`.
    pub(crate) rest_columns: Vec<usize>,
}

impl Layout {
    /// Whether types were inferred from some rows only.
    fn is_sampled(&self) -> bool {
        !self.note.is_empty()
    }

    /// Whether a field takes what no other field of a stream does.
    fn is_rest(&self, field: &Field) -> bool {
        let rest = self.schema.rest_position().and_then(|at| self.schema.fields().get(at));
        rest.is_some_and(|rest| rest.id == field.id)
    }

    fn beside(&self) -> Beside {
        match (&self.unknown, self.rest) {
            (Unknown::Ignore, _) => Beside::LeftOut,
            (Unknown::Field(_), Some(field)) => Beside::Kept(field),
            _ => Beside::Refused,
        }
    }

    fn json_fields(&self, position: usize, data_type: DataType) -> JsonFields {
        let fields = JsonFields::of(data_type);
        if self.key == Some(position) {
            return fields.of_names();
        }
        let fields = if self.spellings { fields.with_spellings(data_type) } else { fields };
        if self.is_sampled() { fields.with_inference() } else { fields }
    }
}

/// A row that is not one of the table.
#[derive(Debug)]
pub struct Reject {
    /// What is wrong, and where.
    pub error: Error,
    /// The row as it stands in the file.
    pub text: String,
}

/// The rows of a chunk.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) batch: Batch,
    /// How many lines they stand on.
    pub(crate) lines: u64,
    /// How many lines stand before each of them.
    pub(crate) places: Lines,
    /// Those left out.
    pub(crate) rejects: Vec<Reject>,
}

/// A chunk, read.
pub(crate) struct Parsed {
    /// The rows; or what is wrong. Lines are counted from the start of the chunk.
    pub(crate) rows: Result<Rows>,
    /// The chunk's memory.
    pub(crate) buffer: Vec<u8>,
}

/// Reads a chunk; leaves rows out that do not fit on request.
pub(crate) fn parse(layout: &Layout, chunk: Chunk, skips: bool) -> Parsed {
    let rows = parse_rows(layout, &chunk, skips, usize::MAX);
    Parsed { rows, buffer: chunk.into_buffer() }
}

/// Reads a chunk, and stops soon after `most` rows. More rows in the answer mean too many.
pub(crate) fn parse_some(layout: &Layout, chunk: Chunk, most: usize) -> Parsed {
    let rows = parse_rows(layout, &chunk, false, most);
    Parsed { rows, buffer: chunk.into_buffer() }
}

/// Finds the fields of a chunk, by its dialect.
enum Tokenizer<'a> {
    Csv(tokenizer::Tokenizer<'a>),
    Json(json::Tokenizer<'a>),
}

impl<'a> Tokenizer<'a> {
    fn new(layout: &'a Layout, chunk: &'a Chunk) -> Self {
        let columns = layout.columns.len();
        match layout.dialect {
            Dialect::Csv(csv) => {
                let bytes = chunk.bytes();
                Self::Csv(tokenizer::Tokenizer::new(bytes, csv, columns, chunk.has_quotes))
            }
            dialect => {
                let (names, key, beside) = (&layout.names, layout.key, layout.beside());
                Self::Json(json::Tokenizer::new(chunk, dialect, names, columns, key, beside))
            }
        }
    }

    fn next_block(&mut self, spans: &mut Vec<Span>) -> std::result::Result<(), Fault> {
        match self {
            Self::Csv(csv) => csv.next_block(spans),
            Self::Json(json) => json.next_block(spans),
        }
    }

    fn skip(&mut self, fault: Fault) -> Option<Span> {
        match self {
            Self::Csv(csv) => csv.skip(fault),
            Self::Json(json) => json.skip(),
        }
    }

    /// What no field has of the rows of the last block.
    fn rest(&self) -> Option<&Rest> {
        match self {
            Self::Csv(_) => None,
            Self::Json(json) => Some(json.rest()),
        }
    }

    fn position(&self) -> usize {
        match self {
            Self::Csv(csv) => csv.position(),
            Self::Json(json) => json.position(),
        }
    }

    fn lines(&self) -> u64 {
        match self {
            Self::Csv(csv) => csv.lines(),
            Self::Json(json) => json.lines(),
        }
    }
}

fn parse_rows(layout: &Layout, chunk: &Chunk, skips: bool, most: usize) -> Result<Rows> {
    let bytes = chunk.bytes();
    let valid_text = bytes.is_ascii() || std::str::from_utf8(bytes).is_ok();
    let columns = layout.columns.len();
    let mut batch = Batch::empty(&layout.schema);
    let mut tokenizer = Tokenizer::new(layout, chunk);
    let (mut spans, mut rejects, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let first = batch.is_empty();
        let fault = tokenizer.next_block(&mut spans).err();
        let has_quotes = chunk.has_quotes;
        let (spans, rest) = (&spans, tokenizer.rest());
        let block =
            Block { layout, bytes, has_quotes, valid_text, spans, columns, rest, first_row: 0 };
        if skips {
            block.salvage_into(&mut batch, &mut starts, &mut rejects)?;
        } else {
            block.read_into(&mut batch)?;
            starts.extend(spans.chunks(columns.max(1)).map(|row| block.start_of(row)));
        }
        if let Some(fault) = fault {
            let error = fault_error(layout, bytes, fault);
            let stops = !skips || error.kind() == ErrorKind::Contradicted;
            match tokenizer.skip(fault).filter(|_| !stops) {
                Some(row) => rejects.push(Reject { error, text: row_text(row.of(bytes)) }),
                None => return Err(error),
            }
        } else if spans.is_empty() || batch.len() > most {
            let lines = tokenizer.lines();
            let wanted = if rejects.is_empty() { lines } else { u64::MAX };
            let places = Lines::of(bytes, &starts, wanted);
            return Ok(Rows { batch, lines, places, rejects });
        }
        if first && most == usize::MAX {
            reserve(&mut batch, tokenizer.position(), bytes.len());
        }
    }
}

/// A row for people to look at, without its line end.
fn row_text(row: &[u8]) -> String {
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    String::from_utf8_lossy(row.strip_suffix(b"\r").unwrap_or(row)).into_owned()
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
#[derive(Clone, Copy)]
struct Block<'a> {
    layout: &'a Layout,
    bytes: &'a [u8],
    has_quotes: bool,
    /// Whether all of `bytes` is UTF-8.
    valid_text: bool,
    spans: &'a [Span],
    columns: usize,
    /// What no field has of the rows of a block, of which the first is `first_row`.
    rest: Option<&'a Rest>,
    first_row: usize,
}

impl Block<'_> {
    fn read_into(&self, batch: &mut Batch) -> Result<()> {
        self.check_blank()?;
        let mut first: Option<(usize, usize, Misfit)> = None;
        let fields = self.layout.schema.fields().iter().zip(&self.layout.sources);
        for ((position, (field, source)), column) in fields.enumerate().zip(&mut batch.columns) {
            let Some(source) = source else {
                self.leave_out(field, column);
                continue;
            };
            let read = match self.layout.dialect {
                _ if self.layout.rest == Some(position) => self.read_rest(field, column),
                Dialect::Csv(csv) => {
                    let (has_quotes, nulls) = (self.has_quotes, &self.layout.nulls);
                    let reader = CsvFields { csv, has_quotes, nulls };
                    self.read_column(&reader, *source, field, column)
                }
                _ => {
                    let reader = self.layout.json_fields(position, field.data_type);
                    self.read_column(&reader, *source, field, column)
                }
            };
            let read = read.and_then(|()| self.check_lengths(field, column));
            let read = read.and_then(|()| self.check_untyped(position, column));
            let Err(misfit) = read else { continue };
            let place = (misfit.row, *source);
            if first.as_ref().is_none_or(|(_, source, m)| place < (m.row, *source)) {
                first = Some((position, *source, misfit));
            }
        }
        first.map_or(Ok(()), |(position, source, m)| Err(self.misfit_error(position, source, &m)))
    }

    /// Reads the rows that fit; the others are reported.
    ///
    /// # Errors
    /// When one shows that the types, inferred from others, are not those of all.
    fn salvage_into(
        &self,
        batch: &mut Batch,
        starts: &mut Vec<u32>,
        rejects: &mut Vec<Reject>,
    ) -> Result<()> {
        let rows = batch.len();
        let truncate = |batch: &mut Batch, rows| {
            batch.columns.iter_mut().for_each(|column| column.truncate(rows));
        };
        if self.read_into(batch).is_ok() {
            starts.extend(self.spans.chunks(self.columns.max(1)).map(|row| self.start_of(row)));
            return Ok(());
        }
        truncate(batch, rows);
        for (row, spans) in self.spans.chunks(self.columns.max(1)).enumerate() {
            let rows = batch.len();
            if let Err(error) = (Block { spans, first_row: row, ..*self }).read_into(batch) {
                if error.kind() == ErrorKind::Contradicted {
                    return Err(error);
                }
                truncate(batch, rows);
                rejects.push(Reject { error, text: self.text_of(spans) });
            } else {
                starts.push(self.start_of(spans));
            }
        }
        Ok(())
    }

    /// Where a row starts: the first of its fields, which in JSON may be any.
    fn start_of(&self, row: &[Span]) -> u32 {
        let start = match self.layout.dialect {
            Dialect::Csv(_) | Dialect::Lines => row.first().map(|span| span.start()),
            _ => row.iter().map(|span| span.start()).min(),
        };
        u32::try_from(start.unwrap_or_default()).unwrap_or(u32::MAX)
    }

    /// A row as it stands in the file.
    fn text_of(&self, spans: &[Span]) -> String {
        let start = spans.iter().map(|span| span.start()).min().unwrap_or_default();
        let end = spans.iter().map(|span| span.end()).max().unwrap_or_default();
        if self.layout.dialect != Dialect::Lines {
            return row_text(self.bytes.get(start..end).unwrap_or_default());
        }
        let start = tokenizer::line_start(self.bytes, start);
        let rest = self.bytes.get(start..).unwrap_or_default();
        row_text(rest.split(|byte| *byte == b'\n').next().unwrap_or_default())
    }

    /// Adds rows without a value in a column that the file does not have.
    fn leave_out(&self, field: &Field, column: &mut Column) {
        let before = column.len();
        column.append_nulls(self.spans.len() / self.columns.max(1));
        let marks = column.nulls.iter_mut().flatten();
        marks.skip(before).for_each(|mark| *mark = missing_mark(field));
    }

    fn read_column<R: FieldReader>(
        &self,
        reader: &R,
        source: usize,
        field: &Field,
        column: &mut Column,
    ) -> std::result::Result<(), Misfit> {
        let labels = field.labels.as_deref();
        let data_type = column.data_type;
        let takes_nulls = field.nullable && field.default.is_none();
        if takes_nulls && reader.empty_is_null() && self.is_blank(source) {
            column.append_nulls(self.spans.len() / self.columns.max(1));
            return Ok(());
        }
        let nulls = &mut column.nulls;
        let fixed = Fixed { block: self, reader, source, field, nulls };
        if self.is_read_as_written(data_type) {
            return fixed.read_as_written(&mut column.values, data_type);
        }
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
            Values::I64(v) => match data_type {
                DataType::Decimal { precision, scale } => fixed.read(v, |field| {
                    Decimal::parse_mantissa(field, precision, scale)?.try_into().ok()
                }),
                _ => fixed.read(v, text::parse_signed),
            },
            Values::I128(v) => {
                let DataType::Decimal { precision, scale } = data_type else { return Ok(()) };
                fixed.read(v, |field| Decimal::parse_mantissa(field, precision, scale))
            }
            Values::F32(v) => fixed.read(v, text::parse_f32),
            Values::F64(v) => fixed.read(v, text::parse_f64),
            Values::Variable(v) if let Some(parse) = parser_of_bytes(data_type) => {
                fixed.read_variable(v, |field| parse(field).map(Cow::Owned))
            }
            Values::Variable(v) if let Some(labels) = labels => fixed.read_variable(v, |f| {
                let value = labels.find(std::str::from_utf8(f).ok()?)?;
                Some(Cow::Owned(value.as_bytes()?.to_vec()))
            }),
            Values::Variable(v) if data_type == DataType::Json => fixed.read_json(v),
            Values::Variable(v) if let DataType::List(element) = data_type => {
                fixed.read_variable(v, |f| {
                    let list = list::parse(std::str::from_utf8(f).ok()?, element).ok()?;
                    list.as_ref().as_bytes().map(|bytes| Cow::Owned(bytes.to_vec()))
                })
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
        // Nothing has more characters than bytes.
        let most = field.length_max.map_or(VALUE_BYTES_MAX, |most| most as usize);
        if values.longest_from(first) <= most.min(VALUE_BYTES_MAX) {
            return Ok(());
        }
        let misfit = |row| Misfit { row: row - first, is_null: false };
        let too_long = |row: &usize| {
            values.get(*row).len() > VALUE_BYTES_MAX
                || field.length_max.is_some() && field.check_length(column.value(*row)).is_err()
        };
        (first..column.len()).find(too_long).map_or(Ok(()), |row| Err(misfit(row)))
    }

    /// Whether a field is empty in all rows, as many of wide tables are.
    fn is_blank(&self, source: usize) -> bool {
        let mut fields = self.spans.iter().skip(source).step_by(self.columns);
        fields.all(|span| span.is_empty())
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
        let plain = self.plain(raw, position, data_type);
        let found = if self.layout.rest == Some(position) {
            self.rest_fault(misfit.row)
        } else if self.layout.is_sampled() && (misfit.is_null || self.is_untyped(position)) {
            let found = if misfit.is_null { "no value" } else { "a value" };
            format!("found {found}, otherwise than in the rows before it")
        } else if misfit.is_null && self.layout.dialect.is_json() {
            let found = if raw.is_empty() { "no such field in the row" } else { "null" };
            format!("the field is declared not null, found {found}")
        } else if misfit.is_null {
            let spelling = shown(raw);
            format!("the field is declared not null, found NULL (spelled {spelling})")
        } else {
            let value = plain.as_deref().map(std::str::from_utf8);
            // What is wrong with JSON or a list is said with its place.
            let malformed = match (data_type, value) {
                (DataType::Json | DataType::List(_), Some(Ok(text))) => {
                    Some(text::parse_value(text, data_type))
                }
                _ => None,
            };
            let value = value.and_then(|text| text::parse_value(text.ok()?, data_type).ok());
            // What reads as a value is one that the field refuses: it is too long.
            match (value, field) {
                (Some(value), Some(field)) => match check_value(field, value.as_ref()) {
                    Err(e) => e.to_string(),
                    Ok(()) => {
                        let found = shown(raw);
                        format!("{found} is written otherwise than the {data_type} before it")
                    }
                },
                (None, _) if let Some(Err(e)) = malformed => e.to_string(),
                _ => {
                    let found = plain.map_or_else(|| json_shown(raw), |plain| shown(&plain));
                    let expected = field.map_or_else(String::new, Field::expected);
                    format!("expected {expected}, found {found}")
                }
            }
        };
        let place = span.map_or(0, |s| s.start());
        let name = self.layout.columns.get(source).map_or("", String::as_str);
        let error = match self.layout.dialect {
            Dialect::Csv(_) => {
                let line = tokenizer::lines_before(self.bytes, place) + 1;
                Error::data(found).on_line(line).in_column(source, name)
            }
            _ => Error::data(found).at(self.bytes, place, raw.len()).in_field(name),
        };
        error.against_types(&self.layout.note)
    }

    /// A field as its column reads it; `None` when it takes no such value.
    fn plain<'a>(
        &self,
        raw: &'a [u8],
        position: usize,
        data_type: DataType,
    ) -> Option<Cow<'a, [u8]>> {
        match self.layout.dialect {
            Dialect::Csv(csv) if self.has_quotes => Some(csv.unquoted(raw)),
            Dialect::Csv(_) => Some(Cow::Borrowed(raw)),
            _ => match self.layout.json_fields(position, data_type).read(raw) {
                FieldText::Text(text) => Some(text),
                FieldText::Null | FieldText::Missing | FieldText::Misfit => None,
            },
        }
    }
}

/// A value of JSON as errors show it: as it stands in the file, cut when long.
fn json_shown(raw: &[u8]) -> String {
    const SHOWN_CHARS: usize = 60;
    let text = String::from_utf8_lossy(raw);
    match text.char_indices().nth(SHOWN_CHARS) {
        None => text.into_owned(),
        Some((at, _)) => {
            format!("{}… ({} bytes)", text.get(..at).unwrap_or_default(), raw.len())
        }
    }
}

/// One column of one block on its way into a column of the batch.
struct Fixed<'a, R> {
    block: &'a Block<'a>,
    reader: &'a R,
    source: usize,
    field: &'a Field,
    nulls: &'a mut Option<Vec<u8>>,
}

impl<R: FieldReader> Fixed<'_, R> {
    fn read<T: Default>(
        self,
        values: &mut Vec<T>,
        mut parse: impl FnMut(&[u8]) -> Option<T>,
    ) -> std::result::Result<(), Misfit> {
        let (block, source) = (self.block, self.source);
        let base = values.len();
        let mut nulls = NullMarks { marks: self.nulls, field: self.field };
        for (row, raw) in block.raw_fields(source).enumerate() {
            let value = match self.reader.read(raw) {
                FieldText::Text(text) => parse(&text),
                FieldText::Null => {
                    nulls.mark(base, row)?;
                    Some(T::default())
                }
                FieldText::Missing => {
                    nulls.mark_missing(base, row)?;
                    Some(T::default())
                }
                FieldText::Misfit => None,
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
        let mut nulls = NullMarks { marks: self.nulls, field: self.field };
        for (row, raw) in block.raw_fields(source).enumerate() {
            let misfit = Misfit { row, is_null: false };
            let fits = match self.reader.read(raw) {
                FieldText::Text(text) => values.push(&parse(&text).ok_or(misfit)?),
                FieldText::Null => {
                    nulls.mark(base, row)?;
                    values.push(&[])
                }
                FieldText::Missing => {
                    nulls.mark_missing(base, row)?;
                    values.push(&[])
                }
                FieldText::Misfit => return Err(misfit),
            };
            debug_assert!(fits, "a chunk is far below 4 GiB");
        }
        nulls.finish(values.len());
        Ok(())
    }
}

/// Reads the stored bytes of a value from its text.
type BytesParser = fn(&[u8]) -> Option<Vec<u8>>;

/// How a type that is stored as bytes of its own is read; `None` for other types.
fn parser_of_bytes(data_type: DataType) -> Option<BytesParser> {
    Some(match data_type {
        DataType::Uuid => |field| text::parse_uuid(field).map(|value| value.to_vec()),
        DataType::Ipv6 => |field| text::parse_ipv6(field).map(|value| value.to_vec()),
        DataType::Bytes => text::parse_hex,
        DataType::Interval => |field| {
            let interval = Interval::parse(std::str::from_utf8(field).ok()?, None)?;
            Some(interval.stored().to_vec())
        },
        _ => return None,
    })
}

/// The null marks of a column: nothing until the first NULL, caught up at the end of a block.
struct NullMarks<'a> {
    marks: &'a mut Option<Vec<u8>>,
    field: &'a Field,
}

/// How a row is marked that has no value for a field at all.
fn missing_mark(field: &Field) -> u8 {
    if field.default.is_some() { Column::DEFAULT_MARK } else { Column::NULL_MARK }
}

impl NullMarks<'_> {
    fn mark(&mut self, base: usize, row: usize) -> std::result::Result<(), Misfit> {
        if !self.field.nullable && self.field.generated.is_none() {
            return Err(Misfit { row, is_null: true });
        }
        self.push(base + row, Column::NULL_MARK);
        Ok(())
    }

    fn mark_missing(&mut self, base: usize, row: usize) -> std::result::Result<(), Misfit> {
        if self.field.default.is_none() {
            return self.mark(base, row);
        }
        self.push(base + row, Column::DEFAULT_MARK);
        Ok(())
    }

    fn push(&mut self, row: usize, mark: u8) {
        let marks = self.marks.get_or_insert_with(Vec::new);
        marks.resize(row, 0);
        marks.push(mark);
    }

    fn finish(self, rows: usize) {
        if let Some(marks) = self.marks {
            marks.resize(rows, 0);
        }
    }
}

#[cfg(test)]
mod tests;
