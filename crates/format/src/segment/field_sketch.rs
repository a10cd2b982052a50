//! The sketch that a segment keeps of the values of a field.
//!
//! A value is hashed by its number of 64 bits, or 128 where it needs them, or by its bytes, so that
//! segments with other encodings have the same hash of it. Floats have one spelling of zero and of
//! what is no number. NULL is no value.

use super::encode::{Buffer, Encoded, EncodedColumn};
use crate::key::one_spelling;
use crate::{Codes, Column, ColumnSlice, Data, Dictionary, Sketch, Validity, ValueRef, hash};

/// The sketch of a field: 1,024 registers, so that a count is off by 3 % of it.
pub type FieldSketch = Sketch<10>;

/// Segments with fewer rows have no sketches: a sample says as much of them.
pub const SKETCH_ROWS_MIN: u32 = 8_192;

/// The sketch of a column that has been encoded. Of a dictionary its entries are hashed, among
/// which may be the empty one of rows that are NULL.
#[must_use]
pub fn sketch_of_column(column: &Column, encoded: &EncodedColumn<'_>) -> FieldSketch {
    let mut sketch = FieldSketch::default();
    match &encoded.values {
        Encoded::Constant(value) => sketch.extend(hash_of_value(value.as_ref())),
        Encoded::Dictionary { offsets: Buffer::U32(offsets), heap: Buffer::U8(heap), .. } => {
            add_entries(&mut sketch, Dictionary { offsets, heap })
        }
        Encoded::Narrowed { base, codes: Buffer::U8(codes), .. } => {
            add_codes(&mut sketch, column, *base, codes);
        }
        Encoded::Narrowed { base, codes: Buffer::U16(codes), .. } => {
            add_codes(&mut sketch, column, *base, codes);
        }
        _ => add_values(&mut sketch, &ColumnSlice::from(column)),
    }
    sketch
}

/// Codes of at most 16 bits are marked, and each is hashed once.
fn add_codes<T: Copy + Into<u16>>(
    sketch: &mut FieldSketch,
    column: &Column,
    base: u64,
    codes: &[T],
) {
    let mut seen = vec![false; 1 << 16];
    let mut mark = |code: T| {
        if let Some(seen) = seen.get_mut(usize::from(code.into())) {
            *seen = true;
        }
    };
    match &column.nulls {
        None => codes.iter().for_each(|code| mark(*code)),
        Some(nulls) => {
            let rows = codes.iter().zip(nulls).filter(|(_, null)| **null == 0);
            rows.for_each(|(code, _)| mark(*code));
        }
    }
    let codes = (0..).zip(seen).filter(|(_, seen)| *seen);
    sketch.extend(codes.map(|(code, _)| hash_of_word(base.wrapping_add(code))));
}

/// Takes the values of some rows into a sketch.
pub fn add_values(sketch: &mut FieldSketch, column: &ColumnSlice<'_>) {
    match column.data {
        Data::Constant(value) => sketch.extend(hash_of_value(value)),
        Data::U8(v) => add_words(sketch, column, v, |v| u64::from(*v)),
        Data::U16(v) => add_words(sketch, column, v, |v| u64::from(*v)),
        Data::U32(v) => add_words(sketch, column, v, |v| u64::from(*v)),
        Data::U64(v) => add_words(sketch, column, v, |v| *v),
        Data::I8(v) => add_words(sketch, column, v, |v| i64::from(*v).cast_unsigned()),
        Data::I16(v) => add_words(sketch, column, v, |v| i64::from(*v).cast_unsigned()),
        Data::I32(v) => add_words(sketch, column, v, |v| i64::from(*v).cast_unsigned()),
        Data::I64(v) => add_words(sketch, column, v, |v| v.cast_unsigned()),
        Data::I128(v) => add(sketch, column, v, |v| hash_of_wide(*v)),
        Data::F32(v) => add_words(sketch, column, v, |v| one_spelling(f64::from(*v)).to_bits()),
        Data::F64(v) => add_words(sketch, column, v, |v| one_spelling(*v).to_bits()),
        Data::Narrowed { base, codes } => {
            let word = |code: u64| base.wrapping_add(code);
            match codes {
                Codes::U8(v) => add_words(sketch, column, v, |v| word(u64::from(*v))),
                Codes::U16(v) => add_words(sketch, column, v, |v| word(u64::from(*v))),
                Codes::U32(v) => add_words(sketch, column, v, |v| word(u64::from(*v))),
            }
        }
        Data::Dictionary { dictionary, .. } => add_entries(sketch, dictionary),
        Data::Variable { offsets, start, heap }
            if matches!(column.validity, Validity::AllValid) =>
        {
            let bytes = |ends: &[u32]| match ends {
                [from, to] => {
                    let at = |offset: &u32| offset.wrapping_sub(start) as usize;
                    // default: as a column slice reads them
                    heap.get(at(from)..at(to)).unwrap_or_default()
                }
                _ => &[],
            };
            sketch.extend(offsets.windows(2).map(|ends| hash::of_bytes(bytes(ends))));
        }
        Data::Variable { .. }
        | Data::FixedWidth { .. }
        | Data::Interleaved { .. }
        | Data::Lined { .. }
        | Data::Scattered { .. } => {
            let rows = (0..column.len).filter(|row| !column.is_null(*row));
            sketch.extend(rows.map(|row| hash::of_bytes(column.bytes(row))));
        }
    }
}

fn add_entries(sketch: &mut FieldSketch, dictionary: Dictionary<'_>) {
    sketch.extend((0..dictionary.len()).map(|code| hash::of_bytes(dictionary.get(code))));
}

fn add_words<T>(
    sketch: &mut FieldSketch,
    column: &ColumnSlice<'_>,
    values: &[T],
    word: impl Fn(&T) -> u64,
) {
    add(sketch, column, values, |value| hash_of_word(word(value)));
}

fn add<T>(
    sketch: &mut FieldSketch,
    column: &ColumnSlice<'_>,
    values: &[T],
    hash: impl Fn(&T) -> u64,
) {
    match column.validity {
        Validity::AllValid => sketch.extend(values.iter().map(hash)),
        _ => {
            let rows = values.iter().enumerate().filter(|(row, _)| !column.is_null(*row));
            sketch.extend(rows.map(|(_, value)| hash(value)));
        }
    }
}

/// Of 0 the hash of a word is 0, which no register can tell from a very long one.
#[inline]
fn hash_of_word(word: u64) -> u64 {
    hash::of_word(word ^ 0x9e37_79b9_7f4a_7c15)
}

/// A number that has 64 bits is hashed as such.
fn hash_of_wide(number: i128) -> u64 {
    match i64::try_from(number) {
        Ok(word) => hash_of_word(word.cast_unsigned()),
        Err(_) => hash::of_bytes(&number.to_le_bytes()),
    }
}

/// The hash of a value; none of NULL.
fn hash_of_value(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Null => None,
        ValueRef::Float(v) => Some(hash_of_word(one_spelling(v).to_bits())),
        ValueRef::Float32(v) => Some(hash_of_word(one_spelling(v.into()).to_bits())),
        value => match (value.as_bytes(), value.mantissa(), value.as_word()) {
            (Some(bytes), ..) => Some(hash::of_bytes(bytes)),
            (None, Some(number), _) => Some(hash_of_wide(number)),
            (None, None, word) => word.map(|word| hash_of_word(word.cast_unsigned())),
        },
    }
}
