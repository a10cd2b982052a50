//! Rows by column: what requests to append have, and what answers may have.
//!
//! ```text
//!  columns = [ column, … ]                 all with the same count of rows, said before them
//!  column  = [ name, type, nulls, values ]
//!  nulls   = nil, or bytes: a bit a row, the lowest first; 1 is NULL
//!  values  = by type:
//!    numbers, times      bytes: one value behind the other, little-endian
//!    texts, bytes, json  [ends, bytes], or [ends, bytes, codes] of distinct ones
//!    any type            an array of values, as rows have them
//! ```
//!
//! They are read column by column, into the form that tables take: no value is allocated alone.

use std::fmt::Write;

use esker_format::json;
use esker_format::{
    Column, ColumnSlice, DataType, Interval, Value, Values, VariableValues, with_values,
};

use crate::pack::{self, Token};
use crate::value;
use crate::{Error, Reader, Result};

/// The most bytes that the texts of one request have once their codes are replaced by them.
pub const TEXT_BYTES_MAX: usize = 128 << 20;
/// The same of a request of few bytes: so many times these, and so many at least.
const TEXT_FACTOR: usize = 8;
const TEXT_BYTES_MIN: usize = 1 << 20;

/// A column with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedColumn<'b> {
    /// The name.
    pub name: &'b str,
    /// The rows.
    pub column: Column,
}

/// Reads columns of so many rows.
///
/// # Errors
/// When one is none, or has more or fewer rows; with its name, and the row, from 1.
pub fn read<'b>(reader: &mut Reader<'b>, rows: usize) -> Result<Vec<NamedColumn<'b>>> {
    let count = reader.array()?;
    // A row takes a byte at least.
    let bytes = reader.remaining();
    if rows > bytes {
        return Err(Error::new(format!("expected at most {bytes} rows, found {rows}")));
    }
    let mut room = bytes.saturating_mul(TEXT_FACTOR).clamp(TEXT_BYTES_MIN, TEXT_BYTES_MAX);
    (0..count).map(|_| read_column(reader, rows, &mut room)).collect()
}

fn read_column<'b>(
    reader: &mut Reader<'b>,
    rows: usize,
    room: &mut usize,
) -> Result<NamedColumn<'b>> {
    reader.array_of(4)?;
    let name = reader.text()?;
    let at = |e: Error| Error::new(format!("column {name:?}: {e}"));
    let data_type = reader.text()?.parse().map_err(|e| at(Error::new(format!("{e}"))))?;
    if data_type == DataType::Enum {
        return Err(at(Error::new("labels of an enum are sent as type text")));
    }
    let nulls = reader.optional_bytes()?.map(|bits| marks(bits, rows)).transpose().map_err(at)?;
    let nulls = nulls.flatten();
    let mut column = Column { data_type, values: Values::empty(data_type), nulls };
    read_values(reader, rows, &mut column, room).map_err(at)?;
    Ok(NamedColumn { name, column })
}

/// A byte a row, from a bit a row; `None` when no row is NULL.
fn marks(bits: &[u8], rows: usize) -> Result<Option<Vec<u8>>> {
    let wanted = rows.div_ceil(8);
    if bits.len() != wanted {
        let found = bits.len();
        let message = format!("nulls: expected {wanted} bytes for {rows} rows, found {found}");
        return Err(Error::new(message));
    }
    if bits.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let mut marks: Vec<u8> = Vec::with_capacity(wanted * 8);
    for byte in bits {
        marks.extend((0..8).map(|bit| byte >> bit & 1));
    }
    if marks.iter().skip(rows).any(|mark| *mark != 0) {
        return Err(Error::new(format!("nulls: expected zeros behind the bits of {rows} rows")));
    }
    marks.truncate(rows);
    Ok(Some(marks))
}

fn read_values(
    reader: &mut Reader<'_>,
    rows: usize,
    column: &mut Column,
    room: &mut usize,
) -> Result<()> {
    let mut ahead = *reader;
    match (ahead.token()?, &mut column.values) {
        (Token::Bytes(bytes), values) if !matches!(values, Values::Variable(_)) => {
            *reader = ahead;
            read_fixed(values, bytes, rows)?;
        }
        (Token::Bytes(bytes), Values::Variable(values))
            if matches!(column.data_type, DataType::Uuid | DataType::Ipv6) =>
        {
            *reader = ahead;
            *values = read_sixteens(bytes, rows)?;
        }
        (Token::Array(2 | 3), Values::Variable(_)) if is_by_ends(&ahead) => {
            let found = read_texts(reader, rows, room)?;
            column.values = Values::Variable(stored(column, found)?);
        }
        (Token::Array(_), _) => return read_each(reader, rows, column),
        (other, _) => {
            let (expected, found) = (expected(column.data_type), other.name());
            return Err(Error::new(format!("expected {expected}, found {found}")));
        }
    }
    blank_nulls(column);
    Ok(())
}

fn expected(data_type: DataType) -> &'static str {
    match Values::empty(data_type) {
        Values::Variable(_) => "ends and bytes, or an array of values",
        _ => "bytes, or an array of values",
    }
}

/// True where ends of texts follow, and not the first of some values.
fn is_by_ends(reader: &Reader<'_>) -> bool {
    matches!({ *reader }.token(), Ok(Token::Extension(ENDS, _)))
}

/// The extension that ends of texts are: 4 bytes each, little-endian.
const ENDS: u8 = 16;

/// Replaces the values of a fixed width.
fn read_fixed(values: &mut Values, bytes: &[u8], rows: usize) -> Result<()> {
    fn all<const N: usize, T>(
        bytes: &[u8],
        rows: usize,
        of: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>> {
        let (chunks, rest) = bytes.as_chunks::<N>();
        if chunks.len() != rows || !rest.is_empty() {
            let found = bytes.len();
            let message = format!("expected {rows} values of {N} bytes, found {found} bytes");
            return Err(Error::new(message));
        }
        Ok(chunks.iter().map(|chunk| of(*chunk)).collect())
    }
    match values {
        Values::U8(v) => *v = all(bytes, rows, u8::from_le_bytes)?,
        Values::U16(v) => *v = all(bytes, rows, u16::from_le_bytes)?,
        Values::U32(v) => *v = all(bytes, rows, u32::from_le_bytes)?,
        Values::U64(v) => *v = all(bytes, rows, u64::from_le_bytes)?,
        Values::I8(v) => *v = all(bytes, rows, i8::from_le_bytes)?,
        Values::I16(v) => *v = all(bytes, rows, i16::from_le_bytes)?,
        Values::I32(v) => *v = all(bytes, rows, i32::from_le_bytes)?,
        Values::I64(v) => *v = all(bytes, rows, i64::from_le_bytes)?,
        Values::I128(v) => *v = all(bytes, rows, i128::from_le_bytes)?,
        Values::F32(v) => *v = all(bytes, rows, f32::from_le_bytes)?,
        Values::F64(v) => *v = all(bytes, rows, f64::from_le_bytes)?,
        Values::Variable(_) => return Err(Error::new("expected texts")),
    }
    Ok(())
}

/// Values of 16 bytes each.
fn read_sixteens(bytes: &[u8], rows: usize) -> Result<VariableValues> {
    if rows.checked_mul(16) != Some(bytes.len()) {
        let found = bytes.len();
        return Err(Error::new(format!("expected {rows} values of 16 bytes, found {found} bytes")));
    }
    let end = u32::try_from(bytes.len()).map_err(|_| Error::new("more than 4 GiB"))?;
    Ok(VariableValues { offsets: (0..=end).step_by(16).collect(), heap: bytes.to_vec() })
}

/// Texts by their ends, or by the codes of distinct ones.
fn read_texts(reader: &mut Reader<'_>, rows: usize, room: &mut usize) -> Result<VariableValues> {
    let parts = reader.array()?;
    let ends = match reader.token()? {
        Token::Extension(ENDS, ends) => ends,
        other => return Err(Error::new(format!("expected ends, found {}", other.name()))),
    };
    let bytes = reader.bytes()?;
    let codes = if parts == 3 { Some(reader.bytes()?) } else { None };
    let (ends, rest) = ends.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Error::new("ends: expected 4 bytes each"));
    }
    let mut offsets = Vec::with_capacity(ends.len() + 1);
    offsets.push(0);
    offsets.extend(ends.iter().map(|end| u32::from_le_bytes(*end)));
    if !offsets.is_sorted() || offsets.last().map(|end| *end as usize) != Some(bytes.len()) {
        let found = bytes.len();
        let message = format!("ends: expected numbers that rise, up to the {found} bytes behind");
        return Err(Error::new(message));
    }
    let distinct = VariableValues { offsets, heap: bytes.to_vec() };
    let all = match codes {
        None => distinct,
        Some(codes) => by_codes(&distinct, codes, rows, room)?,
    };
    if all.len() != rows {
        return Err(Error::new(format!("expected {rows} values, found {}", all.len())));
    }
    Ok(all)
}

/// The value of each row by its code, of 1, 2 or 4 bytes.
fn by_codes(
    distinct: &VariableValues,
    codes: &[u8],
    rows: usize,
    room: &mut usize,
) -> Result<VariableValues> {
    // default: without rows any will do
    let code_bytes = codes.len().checked_div(rows).unwrap_or(1);
    let (twos, fours) = (codes.as_chunks::<2>().0, codes.as_chunks::<4>().0);
    if code_bytes * rows != codes.len() || !matches!(code_bytes, 1 | 2 | 4) {
        let found = codes.len();
        let message = format!("codes: expected 1, 2 or 4 bytes a row of {rows}, found {found}");
        return Err(Error::new(message));
    }
    let code = |row: usize| match code_bytes {
        1 => codes.get(row).map(|code| usize::from(*code)),
        2 => twos.get(row).map(|code| usize::from(u16::from_le_bytes(*code))),
        _ => fours.get(row).map(|code| u32::from_le_bytes(*code) as usize),
    };
    let mut all = VariableValues::default();
    all.offsets.reserve_exact(rows);
    for row in 0..rows {
        let code = code(row).filter(|code| *code < distinct.len()).ok_or_else(|| {
            let (row, most) = (row + 1, distinct.len());
            Error::new(format!("row {row}: expected a code below {most}"))
        })?;
        let value = distinct.get(code);
        let left = room.checked_sub(value.len());
        *room = left.filter(|_| all.push(value)).ok_or_else(|| {
            Error::new("the texts of the codes take more than 8 times the bytes of the request")
        })?;
    }
    Ok(all)
}

/// Texts as columns store values of their type.
fn stored(column: &Column, texts: VariableValues) -> Result<VariableValues> {
    let data_type = column.data_type;
    if data_type == DataType::Bytes {
        return Ok(texts);
    }
    let heap = std::str::from_utf8(&texts.heap);
    let is_text =
        heap.is_ok_and(|heap| texts.offsets.iter().all(|at| heap.is_char_boundary(*at as usize)));
    if !is_text {
        let is_wrong = |row: &usize| std::str::from_utf8(texts.get(*row)).is_err();
        // default: the value of no row alone is wrong, so the first is named
        let row = (0..texts.len()).find(is_wrong).unwrap_or_default() + 1;
        return Err(Error::new(format!("row {row}: expected UTF-8")));
    }
    if data_type == DataType::Text {
        return Ok(texts);
    }
    let mut all = VariableValues::default();
    for row in 0..texts.len() {
        if column.is_null(row) {
            all.push(&[]);
            continue;
        }
        let at = |e: &dyn std::fmt::Display| Error::new(format!("row {}: {e}", row + 1));
        let text = std::str::from_utf8(texts.get(row)).map_err(|e| at(&e))?;
        let is_pushed = match data_type {
            DataType::Json => all.push(&json::parse(text).map_err(|e| at(&e))?),
            DataType::Interval => {
                let interval: Interval = text.parse().map_err(|e| at(&e))?;
                all.push(interval.stored())
            }
            _ => return Err(Error::new(format!("{data_type} expects an array of values"))),
        };
        if !is_pushed {
            return Err(at(&"the values have more than 4 GiB"));
        }
    }
    Ok(all)
}

/// Values as rows have them, each of the type.
fn read_each(reader: &mut Reader<'_>, rows: usize, column: &mut Column) -> Result<()> {
    let found = reader.array()?;
    if found != rows {
        return Err(Error::new(format!("expected {rows} values, found {found}")));
    }
    let marks = column.nulls.take();
    let mut held = Vec::new();
    for row in 0..rows {
        let at = |e: &dyn std::fmt::Display| Error::new(format!("row {}: {e}", row + 1));
        let value = value::read(reader, &mut held).map_err(|e| at(&e))?;
        let is_null = marks.as_ref().is_some_and(|marks| marks.get(row) == Some(&1));
        if is_null || value.is_null() {
            column.push_null();
            continue;
        }
        let fitted = value.coerce(column.data_type).map_err(|e| at(&e))?;
        column.push(fitted).map_err(|e| at(&e))?;
    }
    Ok(())
}

/// What is said of NULLs beside is of no account.
fn blank_nulls(column: &mut Column) {
    let Some(marks) = &column.nulls else { return };
    let mut nulls = marks.iter().enumerate().filter(|(_, mark)| **mark != 0).map(|(row, _)| row);
    with_values!(&mut column.values, values => {
        for row in nulls {
            if let Some(value) = values.get_mut(row) {
                *value = Default::default();
            }
        }
    }, texts => {
        if nulls.any(|row| !texts.get(row).is_empty()) {
            let mut all = VariableValues::default();
            for (row, mark) in marks.iter().enumerate() {
                all.push(if *mark == 0 { texts.get(row) } else { &[] });
            }
            *texts = all;
        }
    });
}

/// Appends columns of so many rows, as [`read`] takes them.
pub fn write<'c>(out: &mut Vec<u8>, columns: impl ExactSizeIterator<Item = (&'c str, &'c Column)>) {
    pack::array(out, columns.len());
    for (name, column) in columns {
        pack::array(out, 4);
        pack::text(out, name);
        // The labels of enums are told as texts.
        let is_enum = column.data_type == DataType::Enum;
        let data_type = if is_enum { DataType::Text } else { column.data_type };
        pack::text(out, &data_type.to_string());
        match &column.nulls {
            Some(marks) if marks.iter().any(|mark| *mark != 0) => pack::bytes(out, &bits(marks)),
            _ => pack::nil(out),
        }
        write_values(out, column);
    }
}

/// A bit a row.
fn bits(marks: &[u8]) -> Vec<u8> {
    let byte = |eight: &[u8]| {
        let bits = eight.iter().enumerate();
        bits.fold(0u8, |byte, (bit, mark)| byte | u8::from(*mark != 0) << bit)
    };
    marks.chunks(8).map(byte).collect()
}

fn write_values(out: &mut Vec<u8>, column: &Column) {
    let slice = ColumnSlice::from(column);
    let each = |out: &mut Vec<u8>| {
        value::write_values(out, (0..column.len()).map(|row| slice.value(row)));
    };
    let bytes: Vec<u8> = match &column.values {
        Values::Variable(texts) => match column.data_type {
            DataType::Text | DataType::Bytes => return write_texts(out, texts),
            DataType::Json | DataType::Interval => return write_texts(out, &shown(column)),
            _ => return each(out),
        },
        values => with_values!(values,
            v => v.iter().flat_map(|value| value.to_le_bytes()).collect(),
            _v => Vec::new()),
    };
    pack::bytes(out, &bytes);
}

/// Values as texts; of NULLs there is nothing.
fn shown(column: &Column) -> VariableValues {
    let mut text = String::new();
    let mut all = VariableValues::default();
    for row in 0..column.len() {
        text.clear();
        let value = column.value(row);
        if !value.is_null() {
            // Writing to memory does not fail.
            let _ = write!(text, "{value}");
        }
        all.push(text.as_bytes());
    }
    all
}

/// Texts by their ends, without what lies before the first.
fn write_texts(out: &mut Vec<u8>, texts: &VariableValues) {
    // default: there is an offset before each value
    let first = texts.offsets.first().copied().unwrap_or_default();
    let ends = texts.offsets.iter().skip(1).flat_map(|end| (end - first).to_le_bytes());
    let ends: Vec<u8> = ends.collect();
    // default: as above
    let last = texts.offsets.last().copied().unwrap_or_default();
    // default: the offsets are within the heap
    let heap = texts.heap.get(first as usize..last as usize).unwrap_or_default();
    pack::array(out, 2);
    pack::extension(out, ENDS, &ends);
    pack::bytes(out, heap);
}

/// A column of values of one type.
///
/// # Errors
/// The first that does not fit the type, with its row, from 1.
pub fn column_of(data_type: DataType, values: &[Value]) -> Result<Column> {
    let mut column = Column::empty(data_type);
    for (row, value) in values.iter().enumerate() {
        let at = |e: &dyn std::fmt::Display| Error::new(format!("row {}: {e}", row + 1));
        let fitted = value.as_ref().coerce(data_type).map_err(|e| at(&e))?;
        column.push(fitted).map_err(|e| at(&e))?;
    }
    Ok(column)
}

#[cfg(test)]
mod tests;
