//! Sums and extremes of encoded columns, without decoding them first.
#![allow(clippy::cast_possible_truncation, reason = "halves of a 64-bit number are cut on purpose")]

use esker_format::{Codes, ColumnSlice, Data, DataType, ValueRef};

use crate::evaluate::Mask;
use crate::filter::with_numbers;

/// The exact sum of a column of integers over the rows of a mask, none of them NULL. `None` when
/// the column is not one of integers.
pub(crate) fn sum_integers(column: &ColumnSlice<'_>, mask: &Mask) -> Option<i128> {
    let rows = mask.count() as i128;
    match column.data {
        Data::Constant(ValueRef::Int(v)) => Some(i128::from(v) * rows),
        Data::Constant(ValueRef::Uint(v)) => Some(i128::from(v) * rows),
        Data::Constant(v) if !column.data_type.is_wide() => Some(v.mantissa()? * rows),
        Data::Narrowed { base, codes } => {
            let base = match column.data_type {
                DataType::U8 | DataType::U16 | DataType::U32 | DataType::U64 => i128::from(base),
                _ => i128::from(base.cast_signed()),
            };
            let codes = match codes {
                Codes::U8(v) => sum(v, mask),
                Codes::U16(v) => sum(v, mask),
                Codes::U32(v) => sum(v, mask),
            };
            Some(base * rows + codes)
        }
        data => with_numbers!(data, values => Some(sum(values, mask)), _ => None),
    }
}

/// Numbers whose sum over a batch is exact in 64 bits, or in two halves.
trait Summand: Copy {
    /// The exact sum of at most 8,192 values.
    fn sum(values: &[Self]) -> i128;
    fn widen(self) -> i128;
}

macro_rules! small_summand {
    ($($type:ty),*) => {
        $(impl Summand for $type {
            fn sum(values: &[Self]) -> i128 {
                values.iter().map(|v| i64::from(*v)).sum::<i64>().into()
            }

            fn widen(self) -> i128 {
                self.into()
            }
        })*
    };
}

small_summand! { i8, i16, i32, u8, u16, u32 }

impl Summand for u64 {
    /// The halves are summed apart: neither sum can overflow, and both loops become vector code.
    fn sum(values: &[Self]) -> i128 {
        let (mut low, mut high) = (0u64, 0u64);
        for value in values {
            low += value & 0xffff_ffff;
            high += value >> 32;
        }
        (i128::from(high) << 32) + i128::from(low)
    }

    fn widen(self) -> i128 {
        self.into()
    }
}

impl Summand for i64 {
    /// As for `u64`, after moving the values up by 2^63.
    fn sum(values: &[Self]) -> i128 {
        let (mut low, mut high) = (0u64, 0u64);
        for value in values {
            let moved = value.cast_unsigned() ^ (1 << 63);
            low += moved & 0xffff_ffff;
            high += moved >> 32;
        }
        let sum = (i128::from(high) << 32) + i128::from(low);
        sum - ((values.len() as i128) << 63)
    }

    fn widen(self) -> i128 {
        self.into()
    }
}

fn sum<T: Summand>(values: &[T], mask: &Mask) -> i128 {
    if mask.is_all() {
        return T::sum(values);
    }
    let mut total = 0;
    for (word, chunk) in mask.words().iter().zip(values.chunks(64)) {
        if *word == u64::MAX {
            total += T::sum(chunk);
        } else {
            for_each_bit(*word, |i| total += chunk.get(i).map_or(0, |v| v.widen()));
        }
    }
    total
}

fn for_each_bit(mut word: u64, mut visit: impl FnMut(usize)) {
    while word != 0 {
        visit(word.trailing_zeros() as usize);
        word &= word - 1;
    }
}

/// The least or greatest value of a column over the rows of a mask, none of them NULL. `None`
/// when the mask is empty; `Err(())` when the column's encoding has no kernel.
pub(crate) fn extreme<'a>(
    column: &ColumnSlice<'a>,
    mask: &Mask,
    greatest: bool,
) -> Result<Option<ValueRef<'a>>, ()> {
    if mask.is_empty() {
        return Ok(None);
    }
    match column.data {
        Data::Constant(value) => Ok(Some(value)),
        Data::Narrowed { base, codes } => {
            let code = extreme_code(codes, mask, greatest).unwrap_or_default();
            let word = base.wrapping_add(code.into()).cast_signed();
            Ok(Some(ValueRef::from_word(column.data_type, word)))
        }
        Data::Dictionary { codes, dictionary } => {
            let code = extreme_code(codes, mask, greatest).unwrap_or_default();
            let bytes = dictionary.get(code as usize);
            Ok(Some(ValueRef::from_bytes(column.data_type, bytes)))
        }
        data => with_numbers!(data, values => {
            let row = extreme_row(values, mask, greatest);
            Ok(row.map(|row| column.value(row)))
        }, _ => Err(())),
    }
}

/// The least or greatest float, by the order of values: NaN is the greatest. Floats are compared
/// as integers that sort as they do, which leaves the two zeros apart; they are shown as one.
pub(super) fn extreme_float(values: &[f64], greatest: bool) -> Option<f64> {
    const CHUNK: usize = 1_024;
    let mask = Mask::all(CHUNK);
    let mut best: Option<i64> = None;
    for chunk in values.chunks(CHUNK) {
        let mut keys = [0i64; CHUNK];
        for (key, value) in keys.iter_mut().zip(chunk) {
            let bits = value.to_bits().cast_signed();
            let ordered = bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed();
            *key = if value.is_nan() { i64::MAX } else { ordered };
        }
        let keys = keys.get(..chunk.len()).unwrap_or_default();
        let found = if chunk.len() == CHUNK {
            extreme_number(keys, &mask, greatest)
        } else {
            extreme_number(keys, &Mask::all(chunk.len()), greatest)
        };
        best = match (best, found) {
            (Some(a), Some(b)) if greatest => Some(a.max(b)),
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    best.map(|key| {
        let bits = key ^ ((key >> 63).cast_unsigned() >> 1).cast_signed();
        f64::from_bits(bits.cast_unsigned())
    })
}

fn extreme_code(codes: Codes<'_>, mask: &Mask, greatest: bool) -> Option<u32> {
    match codes {
        Codes::U8(v) => extreme_number(v, mask, greatest).map(u32::from),
        Codes::U16(v) => extreme_number(v, mask, greatest).map(u32::from),
        Codes::U32(v) => extreme_number(v, mask, greatest),
    }
}

/// A row that holds the extreme.
fn extreme_row<T: Copy + Ord>(values: &[T], mask: &Mask, greatest: bool) -> Option<usize> {
    let wanted = extreme_number(values, mask, greatest)?;
    let mut found = None;
    for (i, (word, chunk)) in mask.words().iter().zip(values.chunks(64)).enumerate() {
        if *word != 0 && chunk.contains(&wanted) {
            for_each_bit(*word, |bit| {
                if chunk.get(bit) == Some(&wanted) {
                    found = Some(i * 64 + bit);
                }
            });
        }
        if found.is_some() {
            break;
        }
    }
    found
}

fn extreme_number<T: Copy + Ord>(values: &[T], mask: &Mask, greatest: bool) -> Option<T> {
    if greatest {
        reduce(values, mask, |a, b| if b > a { b } else { a })
    } else {
        reduce(values, mask, |a, b| if b < a { b } else { a })
    }
}

fn reduce<T: Copy>(values: &[T], mask: &Mask, better: impl Fn(T, T) -> T + Copy) -> Option<T> {
    if mask.is_all() {
        let first = *values.first()?;
        // Eight lanes, so that comparisons do not wait for each other.
        let (chunks, rest) = values.as_chunks::<8>();
        let mut best = [first; 8];
        for chunk in chunks {
            for (best, value) in best.iter_mut().zip(chunk) {
                *best = better(*best, *value);
            }
        }
        return Some(best.iter().chain(rest).copied().fold(first, better));
    }
    let mut best = None;
    for (word, chunk) in mask.words().iter().zip(values.chunks(64)) {
        for_each_bit(*word, |bit| {
            if let Some(value) = chunk.get(bit) {
                best = Some(best.map_or(*value, |best| better(best, *value)));
            }
        });
    }
    best
}
