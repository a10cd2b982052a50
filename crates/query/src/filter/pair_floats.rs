//! Floats beside whole numbers or decimals, exactly, 64 at a time.
//!
//! Nearly all pairs are further apart than rounding can be off, and are distinguished by floats;
//! the others by all their digits.

use std::cmp::Ordering;

use esker_format::{ColumnSlice, Data, DataType};

use super::pair::{TAKEN, has_words, take};
use crate::bound::Comparison;
use crate::evaluate::Mask;

/// Powers of ten up to this are exact as floats.
const EXACT_SCALE_MAX: u8 = 22;

/// Further apart than rounding can be off, as a share of the number: the number and the product of
/// float and unit are each off by at most 2^-53 of what they are.
const APART: f64 = 1e-15;

/// Whether values of these types are compared here: floats on the left, numbers on the right.
pub(super) fn are_floats_and_numbers(floats: DataType, numbers: DataType) -> bool {
    let is_number = match numbers {
        DataType::Decimal { scale, .. } => scale <= EXACT_SCALE_MAX,
        other => other.is_integer() && other != DataType::U64,
    };
    floats.is_float() && is_number
}

/// Removes the rows for which a comparison does not hold; false, and nothing is removed, where the
/// values lie in another form.
pub(super) fn keep(
    comparison: Comparison,
    floats: &ColumnSlice<'_>,
    numbers: &ColumnSlice<'_>,
    mask: &mut Mask,
) -> bool {
    let is_plain = match floats.data {
        Data::F64(_) => floats.data_type == DataType::F64,
        Data::F32(_) => true,
        _ => false,
    };
    if !is_plain || !(has_words(numbers) || matches!(numbers.data, Data::I128(_))) {
        return false;
    }
    let unit = match numbers.data_type {
        DataType::Decimal { scale, .. } => 10f64.powi(scale.into()),
        _ => 1.0,
    };
    let (less, greater) = (comparison.holds(Ordering::Less), comparison.holds(Ordering::Greater));
    let mut values = [0.0; TAKEN];
    let mut whole = [0.0; TAKEN];
    let mut results = [false; TAKEN];
    mask.retain_words(|word, kept| {
        take_floats(floats, word * TAKEN, unit, &mut values);
        take_numbers(numbers, word * TAKEN, &mut whole);
        let is_near = |value: f64, number: f64| {
            let is_apart = (value - number).abs() > number.abs() * APART;
            !is_apart
        };
        let mut some_near = false;
        for ((result, value), number) in results.iter_mut().zip(&values).zip(&whole) {
            *result = value < number;
            some_near |= is_near(*value, *number);
        }
        let lesser = Mask::word(&results);
        let mut near = 0;
        if some_near {
            for ((result, value), number) in results.iter_mut().zip(&values).zip(&whole) {
                *result = is_near(*value, *number);
            }
            near = Mask::word(&results) & kept;
        }
        let mut passed = if less { lesser } else { 0 } | if greater { !lesser } else { 0 };
        while near != 0 {
            let bit = near & near.wrapping_neg();
            let row = word * TAKEN + near.trailing_zeros() as usize;
            let holds = comparison.holds(floats.value(row).compare(numbers.value(row)));
            passed = if holds { passed | bit } else { passed & !bit };
            near ^= bit;
        }
        passed
    });
    true
}

/// Takes some floats in units of the numbers; past the end anything.
fn take_floats(column: &ColumnSlice<'_>, first: usize, unit: f64, to: &mut [f64; TAKEN]) {
    fn widened<T: Copy + Into<f64>>(from: &[T], first: usize, unit: f64, to: &mut [f64; TAKEN]) {
        let from = from.get(first..).unwrap_or_default();
        to.iter_mut().zip(from).for_each(|(to, from)| *to = (*from).into() * unit);
    }
    match column.data {
        Data::F64(v) => widened(v, first, unit, to),
        Data::F32(v) => widened(v, first, unit, to),
        _ => {}
    }
}

/// Takes some numbers, rounded to floats; past the end anything.
fn take_numbers(column: &ColumnSlice<'_>, first: usize, to: &mut [f64; TAKEN]) {
    let mut words = [0; TAKEN];
    if let Data::I128(v) = column.data {
        let from = v.get(first..).unwrap_or_default();
        let from = from.get(..TAKEN).unwrap_or(from);
        #[allow(clippy::cast_possible_truncation, reason = "it is seen whether anything is lost")]
        let short = |number: &i128| *number as i64;
        // Nearly all are short, and these are converted faster.
        if !from.iter().fold(true, |all, number| all & (i128::from(short(number)) == *number)) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as f64);
            return;
        }
        words.iter_mut().zip(from).for_each(|(word, from)| *word = short(from));
    } else {
        take(column, first, &mut words);
    }
    convert(&words, to);
}

/// Half of the numbers that [`convert`] takes without an instruction for each.
const SHORT: i64 = 1 << 51;
/// The bits of the float 1.5 × 2^52, whose last bit is worth 1: what is added to the bits is added
/// to the number.
const WHOLE_BITS: i64 = 0x4338_0000_0000_0000;
const WHOLE: f64 = 6_755_399_441_055_744.0;

/// The numbers as floats. Older processors have no instruction that converts several at a time;
/// numbers of 52 bits become floats by an addition to the bits of one.
fn convert(words: &[i64; TAKEN], to: &mut [f64; TAKEN]) {
    let beyond = |word: i64| word.wrapping_add(SHORT).cast_unsigned() >> 52;
    if words.iter().fold(0, |all, word| all | beyond(*word)) != 0 {
        to.iter_mut().zip(words).for_each(|(to, word)| *to = *word as f64);
        return;
    }
    for (to, word) in to.iter_mut().zip(words) {
        *to = f64::from_bits(word.wrapping_add(WHOLE_BITS).cast_unsigned()) - WHOLE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_the_floats_that_they_are() {
        let edges = [0, 1, -1, SHORT - 1, -SHORT, SHORT, -SHORT - 1, i64::MAX, i64::MIN, 12_345];
        for (i, edge) in edges.into_iter().enumerate() {
            for other in edges.into_iter().take(5) {
                let mut words = [other; TAKEN];
                words[i] = edge;
                let mut floats = [0.0; TAKEN];
                convert(&words, &mut floats);
                for (float, word) in floats.iter().zip(&words) {
                    assert_eq!(float.to_bits(), (*word as f64).to_bits(), "{word}");
                }
            }
        }
    }
}
