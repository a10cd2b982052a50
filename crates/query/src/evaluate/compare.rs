//! Comparisons, lists and patterns, row by row.

use std::borrow::Cow;
use std::cmp::Ordering;

use esker_format::value::compare_floats;
use esker_format::{DataType, Value};

use crate::Result;
use crate::bound::Comparison;
use crate::evaluate::{Lanes, Vector, either_null};
use crate::meter::Meter;
use crate::pattern::Pattern;

pub(super) fn compare<'a>(
    comparison: Comparison,
    left: &Vector<'a>,
    right: &Vector<'a>,
    meter: &Meter<'_>,
) -> Result<Vector<'a>> {
    // Long texts are compared as far as they are equal.
    if let (Lanes::Bytes(a), Lanes::Bytes(_)) = (&left.lanes, &right.lanes) {
        a.iter().try_for_each(|a| meter.work(a.len()))?;
    }
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
    Ok(Vector::bools(values, nulls))
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
/// can be off, and are distinguished by floats; the others by all their digits.
fn floats_and_numbers(
    comparison: Comparison,
    (floats, numbers): (&Vector<'_>, &Vector<'_>),
    scale: u8,
) -> Option<Vec<bool>> {
    // Powers of ten up to this are exact as floats.
    const EXACT_SCALE_MAX: u8 = 22;
    let Lanes::Floats(values) = &floats.lanes else { return None };
    if scale > EXACT_SCALE_MAX {
        return None;
    }
    let unit = 10f64.powi(scale.into());
    let exactly = |i: usize| comparison.holds(floats.value(i).compare(numbers.value(i)));
    match &numbers.lanes {
        Lanes::Ints(words) => {
            Some(roughly(comparison, (values, unit), words, |w| w as f64, exactly))
        }
        Lanes::Wides(words) => {
            // Nearly all are short, and these are converted faster.
            let float = |w: i128| i64::try_from(w).map_or(w as f64, |w| w as f64);
            Some(roughly(comparison, (values, unit), words, float, exactly))
        }
        _ => None,
    }
}

/// Compares by floats where these are far enough apart, and `exactly` elsewhere.
fn roughly<T: Copy>(
    comparison: Comparison,
    (values, unit): (&[f64], f64),
    numbers: &[T],
    float: impl Fn(T) -> f64,
    exactly: impl Fn(usize) -> bool,
) -> Vec<bool> {
    let (less, greater) = (comparison.holds(Ordering::Less), comparison.holds(Ordering::Greater));
    let mut all_apart = true;
    let is_apart =
        |value: f64, number: f64| (value - number).abs() > (value.abs() + number.abs()) * 1e-15;
    let one = |(value, number): (&f64, &T)| {
        let (value, number) = (value * unit, float(*number));
        all_apart &= is_apart(value, number);
        if value < number { less } else { greater }
    };
    let mut found: Vec<bool> = values.iter().zip(numbers).map(one).collect();
    if !all_apart {
        let pairs = values.iter().zip(numbers).zip(&mut found).enumerate();
        for (i, ((value, number), found)) in pairs {
            if !is_apart(value * unit, float(*number)) {
                *found = exactly(i);
            }
        }
    }
    found
}

/// `values` are sorted.
pub(super) fn in_list<'a>(
    operand: Vector<'a>,
    values: &[Value],
    meter: &Meter<'_>,
) -> Result<Vector<'a>> {
    (0..operand.len()).try_for_each(|i| meter.work(operand.lanes.bytes(i).len()))?;
    let found = |i: usize| {
        let value = operand.value(i);
        values.binary_search_by(|v| v.as_ref().compare(value)).is_ok()
    };
    let found = (0..operand.len()).map(found).collect();
    Ok(Vector::bools(found, operand.nulls))
}

pub(super) fn matches<'a>(
    operand: Vector<'a>,
    pattern: &Pattern,
    meter: &Meter<'a>,
) -> Result<Vector<'a>> {
    let one = |row| {
        let is_null = operand.is_null(row);
        Ok(!is_null && pattern.matches_within(operand.lanes.bytes(row), meter)?)
    };
    let values = (0..operand.len()).map(one).collect::<Result<_>>()?;
    Ok(Vector::bools(values, operand.nulls))
}
