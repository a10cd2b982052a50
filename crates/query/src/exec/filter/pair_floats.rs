//! Floats beside whole numbers or decimals, exactly, 64 at a time.
//!
//! Nearly all pairs are further apart than rounding can be off, and are told apart by floats; the
//! others by all their digits.

use std::cmp::Ordering;

use esker_format::{ColumnSlice, Data, DataType};

use super::pair::{TAKEN, has_words, take};
use crate::bind::Comparison;
use crate::exec::mask::Mask;

/// Powers of ten up to this are exact as floats.
const EXACT_SCALE_MAX: u8 = 22;

/// Further apart than rounding can be off, as a share of both.
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
            let is_apart = (value - number).abs() > (value.abs() + number.abs()) * APART;
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
    if let Data::I128(v) = column.data {
        let from = v.get(first..).unwrap_or_default();
        let from = from.get(..TAKEN).unwrap_or(from);
        #[allow(clippy::cast_possible_truncation, reason = "it is seen whether anything is lost")]
        let short = |number: &i128| *number as i64;
        // Nearly all are short, and these are converted faster.
        if from.iter().fold(true, |all, number| all & (i128::from(short(number)) == *number)) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = short(from) as f64);
        } else {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as f64);
        }
        return;
    }
    let mut words = [0; TAKEN];
    take(column, first, &mut words);
    to.iter_mut().zip(&words).for_each(|(to, from)| *to = *from as f64);
}
