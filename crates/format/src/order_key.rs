//! Values of fixed width as whole numbers in the same order, so that every comparison with a
//! constant becomes one range of numbers, whatever the types on either side.
//!
//! Integers, dates, timestamps and bools are their own keys, decimals have their mantissas. A
//! float's key is its bits, flipped so that they sort as the floats do; `-0.0` has the key of `0.0`
//! and every NaN the greatest.

use std::ops::Bound;

use crate::calendar::DAY_US;
use crate::decimal::limit;
use crate::key::one_spelling;
use crate::{DataType, Decimal, ValueRef};

/// A key. Wide enough for `i64`, `u64` and the mantissas of decimals.
pub type Key = i128;

/// A range of values of one field.
#[derive(Clone, Copy, Debug)]
pub enum KeyRange<'a> {
    /// NULL.
    Null,
    /// Any value but NULL.
    NotNull,
    /// A type of fixed width: keys of this range, ends included.
    Keys(Key, Key),
    /// A type of variable length: bytes between these ends.
    Bytes(Bound<&'a [u8]>, Bound<&'a [u8]>),
}

/// The least and the greatest key of a type.
#[must_use]
pub fn bounds(data_type: DataType) -> (Key, Key) {
    use DataType as T;
    match data_type {
        T::Bool => (0, 1),
        T::I8 => (i8::MIN.into(), i8::MAX.into()),
        T::I16 => (i16::MIN.into(), i16::MAX.into()),
        T::I32 | T::Date => (i32::MIN.into(), i32::MAX.into()),
        T::I64 | T::Timestamp => (i64::MIN.into(), i64::MAX.into()),
        T::U8 => (0, u8::MAX.into()),
        T::U16 => (0, u16::MAX.into()),
        T::U32 | T::Ipv4 => (0, u32::MAX.into()),
        T::U64 => (0, u64::MAX.into()),
        T::F32 | T::F64 => (float_key(f64::NEG_INFINITY), float_key(f64::NAN)),
        T::Time => (0, Key::from(DAY_US) - 1),
        T::Decimal { precision, .. } => (1 - limit(precision), limit(precision) - 1),
        T::Text | T::Enum | T::Json | T::Bytes | T::Uuid | T::Ipv6 => (0, 0),
        T::Interval | T::List(_) => (0, 0),
    }
}

/// The key of a value that is not NULL and has the type of its field.
#[must_use]
pub fn key(value: ValueRef<'_>) -> Key {
    match value {
        ValueRef::Uint(v) => v.into(),
        ValueRef::Float32(v) => float_key(v.into()),
        ValueRef::Float(v) => float_key(v),
        ValueRef::Decimal(v) => v.mantissa(),
        other => other.as_word().map_or(0, Key::from), // default: texts have one key: see `bounds`.
    }
}

/// The value of a type of fixed width that has a key; `None` for floats, of which several may have
/// one, and for a key outside the type's bounds.
#[must_use]
pub fn value_of(data_type: DataType, key: Key) -> Option<ValueRef<'static>> {
    let (least, greatest) = bounds(data_type);
    if data_type.is_float() || !(least..=greatest).contains(&key) {
        return None;
    }
    if let DataType::Decimal { .. } = data_type {
        return Some(ValueRef::from_mantissa(data_type, key));
    }
    let word = match data_type {
        DataType::U64 => u64::try_from(key).ok()?.cast_signed(),
        _ => i64::try_from(key).ok()?,
    };
    Some(ValueRef::from_word(data_type, word))
}

/// The key of a float.
#[must_use]
pub fn float_key(v: f64) -> Key {
    let bits = one_spelling(v).to_bits().cast_signed();
    let flipped = if bits < 0 { bits ^ i64::MAX } else { bits };
    flipped.into()
}

/// The float of a key. The key between the negative floats and zero, which would be `-0.0`'s, is
/// taken for the negative float next to it: what is at most that key is below zero.
#[must_use]
pub fn float_at_most(key: Key) -> f64 {
    let key = if key == -1 { -2 } else { key };
    float_of(key)
}

/// The float of a key.
#[must_use]
pub fn float_of(key: Key) -> f64 {
    // default: a key beyond the least or the greatest is that one.
    let key = i64::try_from(key).unwrap_or(if key < 0 { i64::MIN } else { i64::MAX });
    let bits = if key < 0 { key ^ i64::MAX } else { key };
    f64::from_bits(bits.cast_unsigned())
}

/// The greatest key of type `data_type` whose value is at most `value`, and the least whose value
/// is at least `value`: equal when the type has this value, else next to each other. They may lie
/// one outside the type's bounds. `None` when the two do not compare.
#[must_use]
pub fn around(data_type: DataType, value: ValueRef<'_>) -> Option<(Key, Key)> {
    let exact = |k: Key| Some((k, k));
    match (data_type, value) {
        (DataType::Bool, ValueRef::Bool(_))
        | (DataType::Date, ValueRef::Date(_))
        | (DataType::Timestamp, ValueRef::Timestamp(_))
        | (DataType::Time, ValueRef::Time(_))
        | (DataType::Ipv4, ValueRef::Ipv4(_)) => exact(key(value)),
        (t, ValueRef::Int(_) | ValueRef::Uint(_)) if t.is_integer() => exact(key(value)),
        (t, ValueRef::Float(v)) if t.is_integer() => Some(around_float(v)),
        (t, ValueRef::Float32(v)) if t.is_integer() => Some(around_float(v.into())),
        (t, ValueRef::Float(_) | ValueRef::Float32(_)) if t.is_float() => exact(key(value)),
        (t, ValueRef::Int(_) | ValueRef::Uint(_) | ValueRef::Decimal(_)) if t.is_float() => {
            Some(around_exact(value))
        }
        (t, ValueRef::Decimal(v)) if t.is_integer() => Some((v.floor(), v.ceil())),
        (DataType::Decimal { precision, scale }, number) => around_number(precision, scale, number),
        _ => None,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "casts saturate, beyond every integer type")]
fn around_float(v: f64) -> (Key, Key) {
    const BEYOND: Key = 1 << 100;
    if v.is_nan() {
        return (BEYOND, BEYOND + 1);
    }
    ((v.floor() as Key).clamp(-BEYOND - 1, BEYOND), (v.ceil() as Key).clamp(-BEYOND, BEYOND + 1))
}

/// The keys of decimals next to a number of any type, found by halving.
fn around_number(precision: u8, scale: u8, value: ValueRef<'_>) -> Option<(Key, Key)> {
    let most = limit(precision);
    let compare = |key| Decimal::new(key, scale).map(|v| ValueRef::Decimal(v).compare(value));
    let is_float = matches!(value, ValueRef::Float32(_) | ValueRef::Float(_));
    if !is_float && !matches!(value, ValueRef::Int(_) | ValueRef::Uint(_) | ValueRef::Decimal(_)) {
        return None;
    }
    let (mut floor, mut next) = (-most, most);
    while floor + 1 < next {
        let middle = floor.midpoint(next);
        if compare(middle)?.is_gt() {
            next = middle;
        } else {
            floor = middle;
        }
    }
    let is_exact = floor > -most && compare(floor)?.is_eq();
    Some((floor, if is_exact { floor } else { next }))
}

fn around_exact(value: ValueRef<'_>) -> (Key, Key) {
    let nearest = match value {
        ValueRef::Int(v) => v as f64,
        ValueRef::Uint(v) => v as f64,
        ValueRef::Decimal(v) => v.to_f64(),
        _ => f64::NAN,
    };
    let nearest_key = float_key(nearest);
    match ValueRef::Float(nearest).compare(value) {
        std::cmp::Ordering::Equal => (nearest_key, nearest_key),
        std::cmp::Ordering::Less => (nearest_key, nearest_key + 1),
        std::cmp::Ordering::Greater => (nearest_key - 1, nearest_key),
    }
}
