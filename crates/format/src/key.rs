//! Keys as bytes that sort as the values do: the one encoder of whatever is sorted or compared as
//! bytes, in memory and on disk.
//!
//! Keys are needed in four forms, each of which is made in one place:
//!
//! | form | made by | for |
//! |---|---|---|
//! | bytes in the order of the values | [`encode_key`] | primary keys, orders, typed buckets |
//! | numbers in their order | [`order_key`](crate::order_key) | ranges, zones, sorted runs |
//! | a hash under a secret key | `KeyHasher` in `table` | the primary index, unique indexes |
//! | bytes that are equal as the values are, readable | `key_codec` in `query` | groups, joins |
//!
//! In all of them equal floats have [`one_spelling`]. The bytes are:
//!
//! * integers, decimals, dates, timestamps, times: big-endian with the sign bit flipped;
//! * floats: big-endian bits, all flipped when negative, else the sign flipped; `-0.0` becomes
//!   `0.0` and every NaN the same one, greatest of all, so that equal values are equal keys;
//! * UUIDs and addresses: as they are; intervals: the length in their stored form;
//! * text, bytes, enums and JSON: `00` becomes `00 ff`, and `00 00` ends the value, so that a
//!   prefix sorts first and the fields of a composite key do not run into each other.

use crate::interval::INTERVAL_LENGTH_BYTES;
use crate::{DataType, Schema, ValueRef};

/// What most values of a primary key take beside their bytes.
const VALUE_BYTES: usize = 9;

/// One float for all that are equal: of the two zeros the positive, of all NaNs the usual.
#[must_use]
#[inline]
pub fn one_spelling(v: f64) -> f64 {
    if v.is_nan() { f64::NAN.abs() } else { v + 0.0 }
}

/// The key form of a primary key, by its values in the order of the key fields; a row id where the
/// key is generated.
#[must_use]
pub fn primary_key<'a, V>(schema: &Schema, key: V) -> Vec<u8>
where
    V: Iterator<Item = ValueRef<'a>> + Clone,
{
    // default: what is no text or bytes has none
    let bytes = |value: ValueRef<'_>| value.as_bytes().map_or(0, <[u8]>::len) + VALUE_BYTES;
    let mut out = Vec::with_capacity(key.clone().map(bytes).sum());
    if schema.key_positions().is_empty() {
        key.take(1).for_each(|row_id| encode_key(&mut out, DataType::U64, row_id));
        return out;
    }
    for (field, value) in schema.key_fields().zip(key) {
        encode_key(&mut out, field.data_type, value);
    }
    out
}

/// The first eight bytes of a key as a number in their order; zeros stand behind a shorter one.
#[must_use]
#[inline]
pub fn first_word(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(eight) => u64::from_le_bytes(*eight).swap_bytes(),
        None => {
            let mut eight = [0; 8];
            eight.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
            u64::from_le_bytes(eight).swap_bytes()
        }
    }
}

/// The first sixteen bytes of a key.
#[must_use]
#[inline]
pub fn first_words(key: &[u8]) -> [u64; 2] {
    [first_word(key), key.get(8..).map_or(0, first_word)] // default: zeros behind a shorter one.
}

/// Appends the key form of a value that has the type of its field. Keys are never NULL.
#[allow(clippy::cast_possible_truncation, reason = "coerce has checked the range")]
pub fn encode_key(out: &mut Vec<u8>, data_type: DataType, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => {}
        ValueRef::Bool(v) => out.push(u8::from(v)),
        ValueRef::Int(v) | ValueRef::Timestamp(v) | ValueRef::Time(v) => {
            big_endian(out, data_type, v.cast_unsigned(), true);
        }
        ValueRef::Date(v) => {
            big_endian(out, data_type, i64::from(v).cast_unsigned(), true);
        }
        ValueRef::Uint(v) => big_endian(out, data_type, v, false),
        ValueRef::Decimal(v) if data_type.is_wide() => {
            let ordered = v.mantissa().cast_unsigned() ^ (1 << 127);
            push_big_endian(out, (ordered >> 64) as u64, 8);
            push_big_endian(out, ordered as u64, 8);
        }
        ValueRef::Decimal(v) => {
            big_endian(out, data_type, (v.mantissa() as i64).cast_unsigned(), true);
        }
        ValueRef::Ipv4(v) => push_big_endian(out, v.into(), 4),
        ValueRef::Uuid(v) | ValueRef::Ipv6(v) => out.extend_from_slice(v),
        ValueRef::Interval(v) => {
            // Equal ones have equal keys.
            let (length, _) = v.split_at(INTERVAL_LENGTH_BYTES);
            out.extend_from_slice(length);
        }
        ValueRef::Float32(v) => {
            let v = if v.is_nan() { f32::NAN } else { v + 0.0 };
            let bits = v.to_bits();
            let flip = if bits >> 31 == 1 { u32::MAX } else { 1 << 31 };
            push_big_endian(out, u64::from(bits ^ flip), 4);
        }
        ValueRef::Float(v) => {
            let bits = one_spelling(v).to_bits();
            let flip = if bits >> 63 == 1 { u64::MAX } else { 1 << 63 };
            push_big_endian(out, bits ^ flip, 8);
        }
        ValueRef::Text(v) => escaped(out, v.as_bytes()),
        ValueRef::Bytes(v) | ValueRef::Enum(v) | ValueRef::Json(v) => escaped(out, v),
    }
}

fn big_endian(out: &mut Vec<u8>, data_type: DataType, v: u64, signed: bool) {
    debug_assert!(data_type.width().is_some(), "a number in a field of {data_type}");
    let width = data_type.width().unwrap_or(8); // default: types of numbers have a width.
    let sign = if signed { 1u64 << (width * 8 - 1) } else { 0 };
    push_big_endian(out, v ^ sign, width);
}

fn push_big_endian(out: &mut Vec<u8>, v: u64, width: usize) {
    let bytes = v.swap_bytes().to_le_bytes();
    let (_, last) = bytes.split_at(bytes.len().saturating_sub(width));
    out.extend_from_slice(last);
}

fn escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}
