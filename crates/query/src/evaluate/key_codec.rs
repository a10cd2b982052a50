//! Tuples of values as bytes that are equal exactly when the values are.
//!
//! Per value: 0 for NULL, or 1 and the value: 8 or 16 bytes for numbers (floats with one zero and
//! one NaN), 1 byte for bools, a 4-byte length and the bytes for what is stored as bytes. NULLs are
//! equal to each other.

use esker_format::key::one_spelling;
use esker_format::{Column, DataType, ValueRef, Values};

use crate::evaluate::{Lanes, Vector};
use crate::{Error, Result};

/// Appends the value of row `i` of a vector.
pub(crate) fn encode(out: &mut Vec<u8>, vector: &Vector<'_>, i: usize) {
    if vector.is_null(i) {
        encode_null(out);
        return;
    }
    out.push(1);
    match &vector.lanes {
        Lanes::Ints(v) => {
            let v = v.get(i).copied().unwrap_or_default();
            out.extend_from_slice(&v.to_le_bytes());
        }
        Lanes::Wides(v) => {
            let v = v.get(i).copied().unwrap_or_default();
            out.extend_from_slice(&v.to_le_bytes());
        }
        Lanes::Uints(v) => {
            let v = v.get(i).copied().unwrap_or_default();
            out.extend_from_slice(&v.to_le_bytes());
        }
        Lanes::Floats(v) => {
            let v = one_spelling(v.get(i).copied().unwrap_or_default());
            out.extend_from_slice(&v.to_bits().to_le_bytes());
        }
        Lanes::Bools(v) => out.push(u8::from(v.get(i).copied().unwrap_or_default())),
        Lanes::Bytes(v) => {
            let v = v.get(i).map(|v| v.as_ref()).unwrap_or_default();
            let len = u32::try_from(v.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(v);
        }
    }
}

/// Appends a NULL.
pub(crate) fn encode_null(out: &mut Vec<u8>) {
    out.push(0);
}

/// Appends an integer.
pub(crate) fn encode_integer(out: &mut Vec<u8>, value: i64) {
    out.push(1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Takes a value off the front of a key.
#[allow(clippy::cast_possible_truncation, reason = "the value was of this type when encoded")]
pub(crate) fn decode<'k>(key: &mut &'k [u8], data_type: DataType) -> ValueRef<'k> {
    let [tag] = take::<1>(key);
    if tag == 0 {
        return ValueRef::Null;
    }
    match data_type {
        DataType::Bool => ValueRef::Bool(take::<1>(key) == [1]),
        other if other.is_variable() => {
            let len = u32::from_le_bytes(take(key)) as usize;
            let (bytes, rest) = key.split_at_checked(len).unwrap_or((key, &[]));
            *key = rest;
            ValueRef::from_bytes(data_type, bytes)
        }
        other if other.is_wide() => {
            ValueRef::from_mantissa(data_type, i128::from_le_bytes(take(key)))
        }
        DataType::F32 => ValueRef::Float32(f64::from_bits(u64::from_le_bytes(take(key))) as f32),
        DataType::F64 => ValueRef::Float(f64::from_bits(u64::from_le_bytes(take(key)))),
        _ => ValueRef::from_word(data_type, i64::from_le_bytes(take(key))),
    }
}

/// Takes a value off the front of a key and appends it to a column of its type.
///
/// # Errors
/// When the column's texts would pass 4 GiB.
pub(crate) fn decode_into(column: &mut Column, key: &mut &[u8]) -> Result<()> {
    let [tag, rest @ ..] = *key else { return Ok(column.push(ValueRef::Null)?) };
    if let (1, Values::Variable(texts)) = (*tag, &mut column.values) {
        let mut rest = rest;
        let len = u32::from_le_bytes(take(&mut rest)) as usize;
        let (bytes, rest) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        *key = rest;
        if !texts.push(bytes) {
            return Err(Error::out_of_range("a batch of results would pass 4 GiB"));
        }
        column.nulls.iter_mut().for_each(|nulls| nulls.push(0));
        return Ok(());
    }
    Ok(column.push(decode(key, column.data_type))?)
}

fn take<const N: usize>(key: &mut &[u8]) -> [u8; N] {
    let Some((head, rest)) = key.split_first_chunk::<N>() else { return [0; N] };
    *key = rest;
    *head
}
