//! Ranges over plain numbers, written so that the compiler makes vector code of them: one
//! subtraction and one unsigned comparison per value, without branches.
#![allow(clippy::cast_possible_truncation, reason = "keys are clamped to the type first")]
#![allow(clippy::cast_sign_loss, reason = "distances are taken modulo the width on purpose")]

use esker_format::Data;

use crate::evaluate::Mask;
use crate::predicate::{Key, float_at_most, float_key, float_of};

/// Integers whose ranges are checked by one subtraction.
pub(super) trait Whole: Copy + Ord {
    /// The unsigned type of this width.
    type Unsigned: Copy + Ord;
    const LEAST: Key;
    const GREATEST: Key;

    /// The value of a key within the type.
    fn from_key(key: Key) -> Self;

    fn key(self) -> Key;

    /// `self - from`, modulo the width.
    fn distance(self, from: Self) -> Self::Unsigned;
}

macro_rules! whole {
    ($($type:ty, $unsigned:ty);* $(;)?) => {
        $(impl Whole for $type {
            type Unsigned = $unsigned;
            const LEAST: Key = <$type>::MIN as Key;
            const GREATEST: Key = <$type>::MAX as Key;

            fn from_key(key: Key) -> Self {
                key as $type
            }

            fn key(self) -> Key {
                Key::from(self)
            }

            fn distance(self, from: Self) -> $unsigned {
                (self as $unsigned).wrapping_sub(from as $unsigned)
            }
        })*
    };
}

whole! { i8, u8; i16, u16; i32, u32; i64, u64; u8, u8; u16, u16; u32, u32; u64, u64; i128, u128 }

/// Removes the rows outside a range, or with `negated` those inside.
pub(super) fn keep(data: Data<'_>, (least, greatest): (Key, Key), negated: bool, mask: &mut Mask) {
    match data {
        Data::I128(v) => whole(v, least, greatest, negated, mask),
        Data::F32(v) => floats(v, least, greatest, negated, mask),
        Data::F64(v) => floats(v, least, greatest, negated, mask),
        data => {
            with_numbers!(data, v => whole(v, least, greatest, negated, mask), _ => mask.clear())
        }
    }
}

/// How many values of 64 bits lie in a range, or with `negated` outside; `None` for others, whose
/// masks are made as fast as memory is read.
pub(super) fn count(data: Data<'_>, (least, greatest): (Key, Key), negated: bool) -> Option<usize> {
    match data {
        Data::I64(v) => Some(count_whole(v, least, greatest, negated)),
        Data::U64(v) => Some(count_whole(v, least, greatest, negated)),
        _ => None,
    }
}

fn count_whole<T: Whole>(values: &[T], least: Key, greatest: Key, negated: bool) -> usize {
    let (least, greatest) = (least.max(T::LEAST), greatest.min(T::GREATEST));
    let (low, high) = (T::from_key(least), T::from_key(greatest));
    let span = high.distance(low);
    let inside = if least > greatest {
        0
    } else if low == high {
        values.iter().filter(|v| **v == low).count()
    } else {
        values.iter().filter(|v| v.distance(low) <= span).count()
    };
    if negated { values.len() - inside } else { inside }
}

fn whole<T: Whole>(values: &[T], least: Key, greatest: Key, negated: bool, mask: &mut Mask) {
    let (least, greatest) = (least.max(T::LEAST), greatest.min(T::GREATEST));
    if least > greatest {
        if !negated {
            mask.clear();
        }
        return;
    }
    if least == T::LEAST && greatest == T::GREATEST {
        if negated {
            mask.clear();
        }
        return;
    }
    let (low, high) = (T::from_key(least), T::from_key(greatest));
    let span = high.distance(low);
    match (low == high, negated) {
        (true, false) => mask.retain(values, |v| v == low),
        (true, true) => mask.retain(values, |v| v != low),
        (false, false) => mask.retain(values, |v| v.distance(low) <= span),
        (false, true) => mask.retain(values, |v| v.distance(low) > span),
    }
}

/// Floats compare as IEEE 754 says, but for NaN, which is the greatest.
fn floats<T: Copy + Into<f64>>(
    values: &[T],
    least: Key,
    greatest: Key,
    negated: bool,
    mask: &mut Mask,
) {
    if least > greatest {
        if !negated {
            mask.clear();
        }
        return;
    }
    let with_nan = greatest >= float_key(f64::NAN);
    let low = float_of(least);
    let infinite = greatest >= float_key(f64::INFINITY);
    let high = if infinite { f64::INFINITY } else { float_at_most(greatest) };
    if low.is_nan() {
        retain(values, negated, mask, f64::is_nan);
    } else if infinite && with_nan {
        // NaN is not below anything.
        retain(values, !negated, mask, |v| v < low);
    } else if low == f64::NEG_INFINITY {
        retain(values, negated, mask, |v| v <= high);
    } else {
        retain(values, negated, mask, |v| (v >= low) & (v <= high));
    }
}

fn retain<T: Copy + Into<f64>>(
    values: &[T],
    negated: bool,
    mask: &mut Mask,
    inside: impl Fn(f64) -> bool + Copy,
) {
    if negated {
        mask.retain(values, |v| !inside(v.into()));
    } else {
        mask.retain(values, |v| inside(v.into()));
    }
}
