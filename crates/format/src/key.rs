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
//! * text, bytes, enums, JSON and lists: `00` becomes `00 ff`, and `00 00` ends the value, so that
//!   a prefix sorts first and the fields of a composite key do not run into each other.

use crate::interval::INTERVAL_LENGTH_BYTES;
use crate::{DataType, Decimal, Error, Result, Schema, Value, ValueRef, calendar, decimal};

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
        ValueRef::Bytes(v) | ValueRef::Enum(v) | ValueRef::Json(v) | ValueRef::List(v) => {
            escaped(out, v);
        }
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

/// Reads the key form of a value of a type, of which the input may have more behind it: what
/// [`encode_key`] appends, and nothing else. Of intervals, enums, JSON and lists there is none.
///
/// # Errors
/// `Corrupt` when the input begins with no such form.
#[allow(clippy::big_endian_bytes, reason = "bytes are in the order of values")]
pub fn decode_key(input: &mut &[u8], data_type: DataType) -> Result<Value> {
    let wrong = || Error::corrupt(format!("expected the key form of {data_type}"));
    Ok(match data_type {
        DataType::Text => Value::Text(
            String::from_utf8(unescaped(input).ok_or_else(wrong)?).map_err(|_| wrong())?,
        ),
        DataType::Bytes => Value::Bytes(unescaped(input).ok_or_else(wrong)?),
        DataType::Uuid => Value::Uuid(first_bytes(input).ok_or_else(wrong)?),
        DataType::Ipv6 => Value::Ipv6(first_bytes(input).ok_or_else(wrong)?),
        DataType::F32 => {
            let bits = u32::from_be_bytes(first_bytes(input).ok_or_else(wrong)?);
            let flip = if bits >> 31 == 1 { 1 << 31 } else { u32::MAX };
            let v = f32::from_bits(bits ^ flip);
            let spelling = if v.is_nan() { f32::NAN } else { v + 0.0 };
            (spelling.to_bits() == v.to_bits()).then_some(Value::Float32(v)).ok_or_else(wrong)?
        }
        DataType::F64 => {
            let bits = u64::from_be_bytes(first_bytes(input).ok_or_else(wrong)?);
            let flip = if bits >> 63 == 1 { 1 << 63 } else { u64::MAX };
            let v = f64::from_bits(bits ^ flip);
            (one_spelling(v).to_bits() == v.to_bits())
                .then_some(Value::Float(v))
                .ok_or_else(wrong)?
        }
        DataType::Decimal { precision, scale } => {
            let mantissa = match data_type.is_wide() {
                true => {
                    let ordered = u128::from_be_bytes(first_bytes(input).ok_or_else(wrong)?);
                    (ordered ^ (1 << 127)).cast_signed()
                }
                false => number(input, data_type).ok_or_else(wrong)?.into(),
            };
            let fits = mantissa.unsigned_abs() < decimal::limit(precision).unsigned_abs();
            let value = Decimal::new(mantissa, scale).filter(|_| fits);
            value.map(Value::Decimal).ok_or_else(wrong)?
        }
        DataType::Interval | DataType::Enum | DataType::Json | DataType::List(_) => {
            return Err(wrong());
        }
        _ => {
            let word = number(input, data_type).ok_or_else(wrong)?;
            let value = ValueRef::from_word(data_type, word);
            let fits = match value {
                ValueRef::Bool(_) => matches!(word, 0 | 1),
                ValueRef::Time(us) => (0..calendar::DAY_US).contains(&us),
                _ => true,
            };
            if fits { value.to_owned() } else { return Err(wrong()) }
        }
    })
}

/// A number of the width of its type, most significant byte first, its sign flipped.
fn number(input: &mut &[u8], data_type: DataType) -> Option<i64> {
    let (bytes, rest) = input.split_at_checked(data_type.width()?)?;
    *input = rest;
    let word = bytes.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    if data_type.is_unsigned() {
        return Some(word.cast_signed());
    }
    let unused = u32::try_from(64 - bytes.len() * 8).ok()?;
    // The flipped sign, and all bits above it as it is.
    Some(((word << unused) ^ (1 << 63)).cast_signed() >> unused)
}

fn first_bytes<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(*first)
}

/// The bytes up to their end: `00 ff` is a zero, `00 00` the end.
fn unescaped(input: &mut &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let zero = input.iter().position(|byte| *byte == 0)?;
        let (plain, rest) = input.split_at_checked(zero)?;
        let (mark, rest) = rest.split_first_chunk::<2>()?;
        bytes.extend_from_slice(plain);
        *input = rest;
        match mark {
            [_, 0] => return Some(bytes),
            [_, 0xff] => bytes.push(0),
            _ => return None,
        }
    }
}
