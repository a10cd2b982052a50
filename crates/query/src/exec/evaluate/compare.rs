//! Comparisons, lists and patterns, row by row.

use std::borrow::Cow;
use std::cmp::Ordering;

use esker_format::value::compare_floats;
use esker_format::{DataType, Value};

use crate::bind::Comparison;
use crate::exec::vector::{Lanes, Vector, either_null};
use crate::predicate::Pattern;

pub(super) fn compare<'a>(
    comparison: Comparison,
    left: &Vector<'a>,
    right: &Vector<'a>,
) -> Vector<'a> {
    let nulls = either_null(left.nulls.as_ref(), right.nulls.as_ref());
    // Mantissas of one scale compare as the numbers do.
    let scale = |v: &Vector<'_>| match v.data_type {
        DataType::Decimal { scale, .. } => scale,
        _ => 0,
    };
    let alike = scale(left) == scale(right);
    let values = match (&left.lanes, &right.lanes) {
        (Lanes::Ints(a), Lanes::Ints(b)) if alike => zip(comparison, a, b, i64::cmp),
        (Lanes::Wides(a), Lanes::Wides(b)) if alike => zip(comparison, a, b, i128::cmp),
        (Lanes::Uints(a), Lanes::Uints(b)) => zip(comparison, a, b, u64::cmp),
        (Lanes::Bools(a), Lanes::Bools(b)) => zip(comparison, a, b, bool::cmp),
        (Lanes::Bytes(a), Lanes::Bytes(b)) => zip(comparison, a, b, Cow::cmp),
        (Lanes::Floats(a), Lanes::Floats(b)) => {
            zip(comparison, a, b, |a, b| compare_floats(*a, *b))
        }
        _ => {
            let ordering = |i| left.value(i).compare(right.value(i));
            let all = || (0..left.len()).map(|i| comparison.holds(ordering(i))).collect();
            floats_and_numbers(comparison, (left, right), scale(right))
                .or_else(|| floats_and_numbers(comparison.mirrored(), (right, left), scale(left)))
                .unwrap_or_else(all)
        }
    };
    Vector::bools(values, nulls)
}

/// One loop for each comparison, so that the compiler makes vector code of those of numbers.
fn zip<T>(
    comparison: Comparison,
    left: &[T],
    right: &[T],
    compare: impl Fn(&T, &T) -> Ordering + Copy,
) -> Vec<bool> {
    fn each<T>(left: &[T], right: &[T], holds: impl Fn(&T, &T) -> bool) -> Vec<bool> {
        left.iter().zip(right).map(|(a, b)| holds(a, b)).collect()
    }
    match comparison {
        Comparison::Eq => each(left, right, |a, b| compare(a, b).is_eq()),
        Comparison::Neq => each(left, right, |a, b| compare(a, b).is_ne()),
        Comparison::Lt => each(left, right, |a, b| compare(a, b).is_lt()),
        Comparison::Lte => each(left, right, |a, b| compare(a, b).is_le()),
        Comparison::Gt => each(left, right, |a, b| compare(a, b).is_gt()),
        Comparison::Gte => each(left, right, |a, b| compare(a, b).is_ge()),
    }
}

/// Floats beside integers or decimals, exactly. Nearly all pairs are further apart than rounding
/// can be off, and are told apart by floats; the others by all their digits.
fn floats_and_numbers(
    comparison: Comparison,
    (floats, numbers): (&Vector<'_>, &Vector<'_>),
    scale: u8,
) -> Option<Vec<bool>> {
    // Powers of ten up to this are exact as floats.
    const EXACT_SCALE_MAX: u8 = 22;
    let (Lanes::Floats(values), Lanes::Ints(words)) = (&floats.lanes, &numbers.lanes) else {
        return None;
    };
    if scale > EXACT_SCALE_MAX {
        return None;
    }
    let unit = 10f64.powi(scale.into());
    let one = |(i, (value, word)): (usize, (&f64, &i64))| {
        let (value, word) = (value * unit, *word as f64);
        let apart = (value - word).abs() > (value.abs() + word.abs()) * 1e-15;
        let ordering = if !apart {
            floats.value(i).compare(numbers.value(i))
        } else if value < word {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        comparison.holds(ordering)
    };
    Some(values.iter().zip(words.iter()).enumerate().map(one).collect())
}

/// `values` are sorted.
pub(super) fn in_list<'a>(operand: Vector<'a>, values: &[Value]) -> Vector<'a> {
    let found = |i: usize| {
        let value = operand.value(i);
        values.binary_search_by(|v| v.as_ref().compare(value)).is_ok()
    };
    let found = (0..operand.len()).map(found).collect();
    Vector::bools(found, operand.nulls)
}

pub(super) fn matches<'a>(operand: Vector<'a>, pattern: &Pattern) -> Vector<'a> {
    let values = match &operand.lanes {
        Lanes::Bytes(texts) => texts.iter().map(|text| pattern.matches(text)).collect(),
        _ => vec![false; operand.len()],
    };
    Vector::bools(values, operand.nulls)
}
