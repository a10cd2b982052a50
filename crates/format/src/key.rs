//! Keys as bytes that sort as the values do.
//!
//! * integers, decimals, dates, timestamps, times: big-endian with the sign bit flipped;
//! * floats: big-endian bits, all flipped when negative, else the sign flipped; `-0.0` becomes
//!   `0.0` and every NaN the same one, greatest of all, so that equal values are equal keys;
//! * UUIDs and addresses: as they are;
//! * text, bytes, enums and JSON: `00` becomes `00 ff`, and `00 00` ends the value, so that a
//!   prefix sorts first and the fields of a composite key do not run into each other.

use crate::{DataType, ValueRef};

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
        ValueRef::Float32(v) => {
            let v = if v.is_nan() { f32::NAN } else { v + 0.0 };
            let bits = v.to_bits();
            let flip = if bits >> 31 == 1 { u32::MAX } else { 1 << 31 };
            push_big_endian(out, u64::from(bits ^ flip), 4);
        }
        ValueRef::Float(v) => {
            let v = if v.is_nan() { f64::NAN } else { v + 0.0 };
            let bits = v.to_bits();
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
