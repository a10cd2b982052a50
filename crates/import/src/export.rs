//! Rows as files have them: what [`ImportReader`](crate::ImportReader) reads back.

use std::borrow::Cow;
use std::io::Write;

use esker_format::{
    Batch, Column, ColumnSlice, DataType, ShortText, ValueRef, Values, VariableValues,
};
use memchr::{memchr, memchr2, memchr3};

use crate::Format;

/// Writes rows of some columns.
#[derive(Clone, Debug)]
pub struct RowWriter {
    format: Format,
    delimiter: u8,
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
        let name = |name: &str| {
            let mut text = Vec::new();
            match format {
                Format::Csv => csv_text(&mut text, name, delimiter),
                Format::Ndjson | Format::Json => {
                    json_text(&mut text, name.as_bytes());
                    text.push(b':');
                }
            }
            text
        };
        Self { format, delimiter, names: names.into_iter().map(name).collect() }
    }

    /// What stands before all rows.
    #[must_use]
    pub fn start(&self) -> Vec<u8> {
        match self.format {
            Format::Csv => [self.names.join(&self.delimiter), b"\n".to_vec()].concat(),
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
            Format::Csv => memchr3(b'"', b'\n', b'\r', text).or(memchr(self.delimiter, text)),
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
                    out.push(self.delimiter);
                }
                match cell {
                    Cell::Plain([]) => out.extend_from_slice(b"\"\""),
                    Cell::Plain(text) => out.extend_from_slice(text),
                    Cell::Value(value) => csv_value(out, value, self.delimiter),
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
fn write_plain(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match (ShortText::of(value), value) {
        (Some(text), _) => out.extend_from_slice(text.as_bytes()),
        (None, ValueRef::Bool(v)) => out.extend_from_slice(if v { b"true" } else { b"false" }),
        (None, other) => {
            let _ = write!(out, "{other}");
        }
    }
}

fn csv_value(out: &mut Vec<u8>, value: ValueRef<'_>, delimiter: u8) {
    match value {
        ValueRef::Null => {}
        ValueRef::Text(text) => csv_text(out, text, delimiter),
        ValueRef::Bytes([]) => out.extend_from_slice(b"\"\""),
        value => {
            let start = out.len();
            write_plain(out, value);
            let text = out.get(start..).unwrap_or_default();
            if text.iter().any(|byte| is_special(*byte, delimiter)) {
                let text = String::from_utf8_lossy(text).into_owned();
                out.truncate(start);
                csv_text(out, &text, delimiter);
            }
        }
    }
}

fn is_special(byte: u8, delimiter: u8) -> bool {
    matches!(byte, b'"' | b'\n' | b'\r') || byte == delimiter
}

/// A text as a field of CSV: in quotes where it needs them. An empty one does: it is not NULL.
fn csv_text(out: &mut Vec<u8>, text: &str, delimiter: u8) {
    if !text.is_empty() && !text.bytes().any(|byte| is_special(byte, delimiter)) {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    let text = if text.contains('"') { Cow::Owned(text.replace('"', "\"\"")) } else { text.into() };
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// A value as JSON. Numbers are written in full; what is none of a number, true and false is a
/// string, as are floating-point values that are no numbers.
fn json_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => out.extend_from_slice(b"null"),
        ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Uint(_) | ValueRef::Decimal(_) => {
            write_plain(out, value);
        }
        ValueRef::Float(v) if v.is_finite() => write_plain(out, value),
        ValueRef::Float32(v) if v.is_finite() => write_plain(out, value),
        ValueRef::Json(_) => write_plain(out, value),
        ValueRef::Text(text) => json_text(out, text.as_bytes()),
        // Nothing else that is printed needs an escape.
        other => {
            out.push(b'"');
            write_plain(out, other);
            out.push(b'"');
        }
    }
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
