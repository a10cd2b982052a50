//! The stored form of one row, as log frames hold it: a NULL bitmap, then the values that are not
//! NULL, in the order of the fields. A long value is a reference into a value file.

use crate::codec::{Reader, Writer};
use crate::interval::{INTERVAL_BYTES, Interval};
use crate::list::List;
use crate::{
    DataType, Error, Result, Schema, ValueRef, ValueReference, calendar, decimal, json, labels,
};

/// The most bytes of one text or bytes value.
pub const VALUE_BYTES_MAX: usize = 1 << 30;

/// The most bytes of the texts and bytes of one key, together.
pub const KEY_BYTES_MAX: usize = 64 << 10;

/// Appends one value that has the type of its field.
#[allow(clippy::cast_possible_truncation, reason = "coerce has checked the range")]
pub fn encode_value(out: &mut Writer, data_type: DataType, value: ValueRef<'_>) {
    match (data_type.width(), value) {
        (_, ValueRef::Null) => {}
        (_, ValueRef::Bool(v)) => out.u8(u8::from(v)),
        (_, ValueRef::Float32(v)) => out.u32(v.to_bits()),
        (_, ValueRef::Float(v)) => out.u64(v.to_bits()),
        (_, ValueRef::Text(v)) => out.text(v),
        (_, ValueRef::Bytes(v) | ValueRef::Enum(v) | ValueRef::Json(v) | ValueRef::List(v)) => {
            out.bytes(v);
        }
        (_, ValueRef::Date(v)) => out.u32(v.cast_unsigned()),
        (width, ValueRef::Int(v) | ValueRef::Timestamp(v) | ValueRef::Time(v)) => {
            fixed(out, width, v.cast_unsigned());
        }
        (Some(16), ValueRef::Decimal(v)) => out.raw(&v.mantissa().to_le_bytes()),
        (width, ValueRef::Decimal(v)) => fixed(out, width, (v.mantissa() as i64).cast_unsigned()),
        (width, ValueRef::Uint(v)) => fixed(out, width, v),
        (_, ValueRef::Ipv4(v)) => out.u32(v),
        (_, ValueRef::Uuid(v) | ValueRef::Ipv6(v)) => out.raw(v),
        (_, ValueRef::Interval(v)) => out.raw(v),
    }
}

#[allow(clippy::cast_possible_truncation, reason = "coerce has checked the range")]
fn fixed(out: &mut Writer, width: Option<usize>, v: u64) {
    match width {
        Some(1) => out.u8(v as u8),
        Some(2) => out.u16(v as u16),
        Some(4) => out.u32(v as u32),
        _ => out.u64(v),
    }
}

/// Reads one value of a type.
///
/// # Errors
/// `Corrupt` when the bytes are not such a value.
pub fn decode_value<'a>(input: &mut Reader<'a>, data_type: DataType) -> Result<ValueRef<'a>> {
    Ok(match data_type {
        DataType::Bool => match input.u8()? {
            0 => ValueRef::Bool(false),
            1 => ValueRef::Bool(true),
            other => return Err(Error::corrupt(format!("bool is {other}"))),
        },
        DataType::I8 => ValueRef::Int(input.u8()?.cast_signed().into()),
        DataType::I16 => ValueRef::Int(input.u16()?.cast_signed().into()),
        DataType::I32 => ValueRef::Int(input.u32()?.cast_signed().into()),
        DataType::I64 => ValueRef::Int(input.i64()?),
        DataType::U8 => ValueRef::Uint(input.u8()?.into()),
        DataType::U16 => ValueRef::Uint(input.u16()?.into()),
        DataType::U32 => ValueRef::Uint(input.u32()?.into()),
        DataType::U64 => ValueRef::Uint(input.u64()?),
        DataType::F32 => ValueRef::Float32(f32::from_bits(input.u32()?)),
        DataType::F64 => ValueRef::Float(f64::from_bits(input.u64()?)),
        DataType::Text => ValueRef::Text(input.text()?),
        DataType::Bytes => ValueRef::Bytes(input.bytes()?),
        DataType::Date => ValueRef::Date(input.u32()?.cast_signed()),
        DataType::Timestamp => ValueRef::Timestamp(input.i64()?),
        DataType::Time => match input.i64()? {
            us @ 0..calendar::DAY_US => ValueRef::Time(us),
            us => return Err(Error::corrupt(format!("time is {us} microseconds of a day"))),
        },
        DataType::Ipv4 => ValueRef::Ipv4(input.u32()?),
        DataType::Decimal { precision, .. } => {
            let mantissa =
                if data_type.is_wide() { input.i128()? } else { i128::from(input.i64()?) };
            if mantissa.unsigned_abs() >= decimal::limit(precision).unsigned_abs() {
                return Err(Error::corrupt(format!("{data_type} is {mantissa} of its last place")));
            }
            ValueRef::from_mantissa(data_type, mantissa)
        }
        DataType::Enum => {
            let bytes = input.bytes()?;
            labels::check_value(bytes)?;
            ValueRef::Enum(bytes)
        }
        DataType::Json => {
            let bytes = input.bytes()?;
            json::check(bytes)?;
            ValueRef::Json(bytes)
        }
        DataType::List(element) => {
            let bytes = input.bytes()?;
            List::check(bytes, element)?;
            ValueRef::List(bytes)
        }
        DataType::Uuid | DataType::Ipv6 => ValueRef::from_bytes(data_type, input.raw(16)?),
        DataType::Interval => {
            let bytes = input.raw(INTERVAL_BYTES)?;
            let bytes_of = bytes.as_array().ok_or_else(|| Error::corrupt("a short interval"))?;
            Interval::from_stored(bytes_of)?;
            ValueRef::from_bytes(data_type, bytes)
        }
    })
}

/// The count that says that a reference follows, not the bytes of a value.
const LONG_COUNT: u64 = 1 << 32;

/// What a row has for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// A value, or NULL.
    Value(ValueRef<'a>),
    /// A value that lies in a value file.
    Long(ValueReference),
}

/// Appends a row whose values have the types of their fields.
pub fn encode_row<'a>(
    out: &mut Writer,
    schema: &Schema,
    mut value: impl FnMut(usize) -> ValueRef<'a>,
) {
    encode_cells(out, schema, |i| Cell::Value(value(i)));
}

/// The same, where some values lie in value files.
pub fn encode_cells<'a>(
    out: &mut Writer,
    schema: &Schema,
    mut cell: impl FnMut(usize) -> Cell<'a>,
) {
    let fields = schema.fields();
    for first in (0..fields.len()).step_by(8) {
        let bits = (first..fields.len().min(first + 8)).fold(0u8, |bits, i| {
            let null = matches!(cell(i), Cell::Value(value) if value.is_null());
            bits | u8::from(null) << (i - first)
        });
        out.u8(bits);
    }
    for (i, field) in fields.iter().enumerate() {
        match cell(i) {
            Cell::Value(value) => encode_value(out, field.data_type, value),
            Cell::Long(reference) => {
                out.varint(LONG_COUNT);
                reference.encode(out);
            }
        }
    }
}

/// Reads a row into `values`, which is cleared first.
///
/// # Errors
/// `Corrupt` when the bytes are not a row of this schema, or a value lies in a value file.
pub fn decode_row<'a>(
    input: &mut Reader<'a>,
    schema: &Schema,
    values: &mut Vec<ValueRef<'a>>,
) -> Result<()> {
    let mut cells = Vec::new();
    decode_cells(input, schema, &mut cells)?;
    values.clear();
    for cell in cells {
        match cell {
            Cell::Value(value) => values.push(value),
            Cell::Long(reference) => {
                return Err(Error::corrupt(format!("expected a value, found {reference}")));
            }
        }
    }
    Ok(())
}

/// Reads a row, some of whose values may lie in value files, into `cells`, which is cleared first.
///
/// # Errors
/// `Corrupt` when the bytes are not a row of this schema.
pub fn decode_cells<'a>(
    input: &mut Reader<'a>,
    schema: &Schema,
    cells: &mut Vec<Cell<'a>>,
) -> Result<()> {
    let fields = schema.fields();
    let nulls = input.raw(fields.len().div_ceil(8))?;
    cells.clear();
    for (i, field) in fields.iter().enumerate() {
        let null = nulls.get(i / 8).is_some_and(|b| b >> (i % 8) & 1 == 1);
        if null && !field.nullable {
            return Err(Error::corrupt(format!("field {:?} must not be null", field.name)));
        }
        if !null && let Some(reference) = decode_reference(input, field.data_type)? {
            cells.push(Cell::Long(reference));
            continue;
        }
        let value = if null { ValueRef::Null } else { decode_value(input, field.data_type)? };
        field.check_label(value)?;
        let too_long = |e: Error| Error::corrupt(format!("field {:?}: {e}", field.name));
        field.check_length(value).map_err(too_long)?;
        cells.push(Cell::Value(value));
    }
    Ok(())
}

/// A reference, if that is what comes next.
fn decode_reference(input: &mut Reader<'_>, data_type: DataType) -> Result<Option<ValueReference>> {
    if !data_type.may_be_long() {
        return Ok(None);
    }
    let mut ahead = input.clone();
    if !matches!(ahead.varint(), Ok(LONG_COUNT)) {
        return Ok(None);
    }
    let reference = ValueReference::decode(&mut ahead)?;
    *input = ahead;
    Ok(Some(reference))
}
