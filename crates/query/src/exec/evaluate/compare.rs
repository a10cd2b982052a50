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
            (0..left.len()).map(|i| comparison.holds(ordering(i))).collect()
        }
    };
    Vector::bools(values, nulls)
}

fn zip<T>(
    comparison: Comparison,
    left: &[T],
    right: &[T],
    compare: impl Fn(&T, &T) -> Ordering,
) -> Vec<bool> {
    left.iter().zip(right).map(|(a, b)| comparison.holds(compare(a, b))).collect()
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

pub(super) fn like<'a>(operand: Vector<'a>, pattern: &Pattern) -> Vector<'a> {
    let values = match &operand.lanes {
        Lanes::Bytes(texts) => texts.iter().map(|text| pattern.matches(text)).collect(),
        _ => vec![false; operand.len()],
    };
    Vector::bools(values, operand.nulls)
}
