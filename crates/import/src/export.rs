//! Rows as files have them: what [`ImportReader`](crate::ImportReader) reads back.

use std::io::Write;

use esker_format::{
    Batch, Column, ColumnSlice, DataType, List, ShortText, ValueRef, Values, VariableValues,
};
use memchr::{memchr, memchr2, memchr3};

use crate::{Error, Format, Result};

/// How CSV is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvForm {
    /// The byte between fields.
    pub delimiter: u8,
    /// What stands around fields that need it.
    pub quote: u8,
    /// What stands before a quote within them.
    pub escape: u8,
    /// What stands for NULL.
    pub null: String,
    /// Whether the first line has the names of the columns.
    pub header: bool,
}

impl CsvForm {
    /// The usual one, with a delimiter.
    #[must_use]
    pub fn delimited(delimiter: u8) -> Self {
        Self { delimiter, quote: b'"', escape: b'"', null: String::new(), header: true }
    }

    /// Refuses what could not be read back.
    ///
    /// # Errors
    /// `InvalidOptions` with what was expected.
    pub fn validate(&self) -> Result<()> {
        let Self { delimiter, quote, escape, null, .. } = self;
        let is_plain = |byte: &u8| byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | b'\0');
        if ![delimiter, quote, escape].into_iter().all(is_plain)
            || [quote, escape].contains(&delimiter)
        {
            return Err(Error::options(
                "delimiter, quote and escape are ASCII characters other than line ends and NUL, \
                 and the delimiter is none of the others",
            ));
        }
        let marks = [b'\n', b'\r', *quote, *delimiter];
        if null.bytes().any(|byte| marks.contains(&byte)) {
            return Err(Error::options(format!(
                "what stands for NULL has no quote, line end or delimiter, found {null:?}"
            )));
        }
        Ok(())
    }

    /// Whether an empty field is NULL and quotes are doubled ones.
    fn is_usual(&self) -> bool {
        self.null.is_empty() && self.quote == b'"' && self.escape == b'"'
    }

    fn is_special(&self, byte: u8) -> bool {
        byte == self.quote || byte == self.delimiter || matches!(byte, b'\n' | b'\r')
    }
}

/// Writes rows of some columns.
#[derive(Clone, Debug)]
pub struct RowWriter {
    format: Format,
    csv: CsvForm,
    /// The names, as they stand before values in JSON, or in the header of CSV.
    names: Vec<Vec<u8>>,
}

impl RowWriter {
    /// Writes rows of columns with some names; those of CSV with a delimiter between fields.
    #[must_use]
    pub fn new<'a>(
        format: Format,
        delimiter: u8,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self::written(format, CsvForm::delimited(delimiter), names)
    }

    /// Writes rows as CSV of some form.
    #[must_use]
    pub fn csv<'a>(form: CsvForm, names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::written(Format::Csv, form, names)
    }

    fn written<'a>(format: Format, csv: CsvForm, names: impl IntoIterator<Item = &'a str>) -> Self {
        let name = |name: &str| {
            let mut text = Vec::new();
            match format {
                Format::Csv => csv_text(&mut text, name, &csv),
                Format::Ndjson | Format::Json => {
                    json_text(&mut text, name.as_bytes());
                    text.push(b':');
                }
            }
            text
        };
        let names = names.into_iter().map(name).collect();
        Self { format, csv, names }
    }

    /// What stands before all rows.
    #[must_use]
    pub fn start(&self) -> Vec<u8> {
        match self.format {
            Format::Csv if !self.csv.header => Vec::new(),
            Format::Csv => [self.names.join(&self.csv.delimiter), b"\n".to_vec()].concat(),
            Format::Ndjson => Vec::new(),
            Format::Json => b"[\n".to_vec(),
        }
    }

    /// What stands between the texts of two batches.
    #[must_use]
    pub fn between(&self) -> &'static [u8] {
        if self.format == Format::Json { b",\n" } else { b"" }
    }

    /// What stands behind all rows.
    #[must_use]
    pub fn end(&self) -> &'static [u8] {
        if self.format == Format::Json { b"\n]\n" } else { b"" }
    }

    /// Appends the rows of a batch.
    pub fn write(&self, out: &mut Vec<u8>, batch: &Batch) {
        let columns: Vec<Cells<'_>> = batch.columns.iter().map(|c| self.cells(c)).collect();
        let names: usize = self.names.iter().map(|name| name.len() + 1).sum();
        let values: usize = batch.columns.iter().map(Column::byte_count).sum();
        out.reserve(values + batch.len() * (names + 2));
        for row in 0..batch.len() {
            self.write_cells(out, row > 0, columns.iter().map(|column| column.get(row)));
        }
    }

    /// Appends one row, which follows another or not.
    pub fn write_row<'v>(
        &self,
        out: &mut Vec<u8>,
        follows: bool,
        values: impl Iterator<Item = ValueRef<'v>>,
    ) {
        self.write_cells(out, follows, values.map(Cell::Value));
    }

    /// A column, looked at as a whole.
    fn cells<'a>(&self, column: &'a Column) -> Cells<'a> {
        match &column.values {
            Values::Variable(values)
                if column.data_type == DataType::Text && self.needs_no_marks(&values.heap) =>
            {
                Cells::Plain { values, nulls: column.nulls.as_deref() }
            }
            _ => Cells::Any(ColumnSlice::from(column)),
        }
    }

    /// Whether any part of a text stands for itself.
    fn needs_no_marks(&self, text: &[u8]) -> bool {
        let special = match self.format {
            Format::Csv if !self.csv.is_usual() => return false,
            Format::Csv => memchr3(b'"', b'\n', b'\r', text).or(memchr(self.csv.delimiter, text)),
            _ if text.iter().fold(false, |any, byte| any | (*byte < b' ')) => return false,
            _ => memchr2(b'"', b'\\', text),
        };
        special.is_none() && text.is_ascii()
    }

    #[inline]
    fn write_cells<'v>(
        &self,
        out: &mut Vec<u8>,
        follows: bool,
        cells: impl Iterator<Item = Cell<'v>>,
    ) {
        if self.format == Format::Csv {
            for (position, cell) in cells.enumerate() {
                if position > 0 {
                    out.push(self.csv.delimiter);
                }
                match cell {
                    Cell::Plain([]) => out.extend_from_slice(b"\"\""),
                    Cell::Plain(text) => out.extend_from_slice(text),
                    Cell::Value(value) => csv_value(out, value, &self.csv),
                }
            }
            out.push(b'\n');
            return;
        }
        if follows {
            out.extend_from_slice(self.between());
        }
        out.push(b'{');
        for (position, (name, cell)) in self.names.iter().zip(cells).enumerate() {
            if position > 0 {
                out.push(b',');
            }
            out.extend_from_slice(name);
            match cell {
                Cell::Plain(text) => {
                    out.push(b'"');
                    out.extend_from_slice(text);
                    out.push(b'"');
                }
                Cell::Value(value) => json_value(out, value),
            }
        }
        out.push(b'}');
        if self.format == Format::Ndjson {
            out.push(b'\n');
        }
    }
}

/// The values of a column on their way out.
enum Cells<'a> {
    /// Texts that stand for themselves.
    Plain {
        values: &'a VariableValues,
        nulls: Option<&'a [u8]>,
    },
    Any(ColumnSlice<'a>),
}

/// One of them.
enum Cell<'a> {
    Plain(&'a [u8]),
    Value(ValueRef<'a>),
}

impl Cells<'_> {
    #[inline]
    fn get(&self, row: usize) -> Cell<'_> {
        match self {
            Self::Plain { nulls: Some(nulls), .. } if nulls.get(row) != Some(&0) => {
                Cell::Value(ValueRef::Null)
            }
            Self::Plain { values, .. } => Cell::Plain(values.get(row)),
            Self::Any(column) => Cell::Value(column.value(row)),
        }
    }
}

/// Writes what cannot fail, since it goes to memory.
pub(crate) fn write_plain(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match (ShortText::of(value), value) {
        (Some(text), _) => out.extend_from_slice(text.as_bytes()),
        (None, ValueRef::Bool(v)) => out.extend_from_slice(if v { b"true" } else { b"false" }),
        (None, other) => {
            let _ = write!(out, "{other}");
        }
    }
}

fn csv_value(out: &mut Vec<u8>, value: ValueRef<'_>, form: &CsvForm) {
    match value {
        ValueRef::Null => out.extend_from_slice(form.null.as_bytes()),
        ValueRef::Text(text) => csv_text(out, text, form),
        ValueRef::Bytes([]) => out.extend_from_slice(&[form.quote, form.quote]),
        value => {
            let start = out.len();
            write_plain(out, value);
            let text = out.get(start..).unwrap_or_default();
            let is_null = !form.null.is_empty() && text == form.null.as_bytes();
            if is_null || text.iter().any(|byte| form.is_special(*byte)) {
                let text = String::from_utf8_lossy(text).into_owned();
                out.truncate(start);
                csv_text(out, &text, form);
            }
        }
    }
}

/// A text as a field of CSV: in quotes where it needs them. An empty one does, and one that is
/// written as NULL is: they are not NULL.
fn csv_text(out: &mut Vec<u8>, text: &str, form: &CsvForm) {
    let is_null = text.is_empty() || text == form.null;
    if !is_null && !text.bytes().any(|byte| form.is_special(byte)) {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(form.quote);
    for byte in text.bytes() {
        if byte == form.quote || byte == form.escape {
            out.push(form.escape);
        }
        out.push(byte);
    }
    out.push(form.quote);
}

/// A value as JSON. Numbers are written in full; what is none of a number, true and false is a
/// string, as are floating-point values that are no numbers.
pub(crate) fn json_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => out.extend_from_slice(b"null"),
        ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Uint(_) | ValueRef::Decimal(_) => {
            write_plain(out, value);
        }
        ValueRef::Float(v) if v.is_finite() => write_plain(out, value),
        ValueRef::Float32(v) if v.is_finite() => write_plain(out, value),
        ValueRef::Json(_) => write_plain(out, value),
        ValueRef::Text(text) => json_text(out, text.as_bytes()),
        ValueRef::List(bytes) => json_list(out, bytes),
        // Nothing else that is printed needs an escape.
        other => {
            out.push(b'"');
            write_plain(out, other);
            out.push(b'"');
        }
    }
}

/// A list as an array. Damage, which a checksum would have to miss first, is written as the text
/// that shows it.
fn json_list(out: &mut Vec<u8>, bytes: &[u8]) {
    let Ok(items) = List::of(bytes).and_then(|list| list.values()) else {
        return json_value(out, ValueRef::Text(&ValueRef::List(bytes).to_string()));
    };
    out.push(b'[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        json_value(out, item.as_ref());
    }
    out.push(b']');
}

/// A text as a string of JSON.
pub(crate) fn json_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..=0x1f)) {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        match special.first() {
            Some(b'\n') => out.extend_from_slice(b"\\n"),
            Some(b'\r') => out.extend_from_slice(b"\\r"),
            Some(b'\t') => out.extend_from_slice(b"\\t"),
            Some(byte @ (b'"' | b'\\')) => out.extend_from_slice(&[b'\\', *byte]),
            Some(byte) => {
                let _ = write!(out, "\\u{byte:04x}");
            }
            None => {}
        }
        rest = special.get(1..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Names of which none is another: the second column of a name is called `name_2`.
#[must_use]
pub fn distinct_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        let candidates = (2..).map(|number| format!("{name}_{number}"));
        let mut candidates = std::iter::once(name.to_owned()).chain(candidates);
        distinct.extend(candidates.find(|candidate| !distinct.contains(candidate)));
    }
    distinct
}

#[cfg(test)]
mod tests;
