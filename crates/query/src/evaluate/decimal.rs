//! Arithmetic of decimals, exact: what has too many digits is an error.

use std::borrow::Cow;

use esker_format::decimal::limit;
use esker_format::{DataType, Decimal, ValueRef};

use crate::evaluate::arithmetic::division_by_zero;
use crate::evaluate::decimal_words::{self, Side};
use crate::evaluate::{Lanes, Vector, either_null};
use crate::model::Operator;
use crate::{Error, Result};

/// Adds, subtracts, multiplies or takes the remainder of integers and decimals.
pub(super) fn apply<'a>(
    operator: Operator,
    data_type: DataType,
    left: &Vector<'a>,
    right: &Vector<'a>,
) -> Result<Vector<'a>> {
    // Sums need one scale, products have both.
    let (scale, most) = (scale(data_type), precision(data_type));
    let unit = |v: &Vector<'_>| limit(scale.saturating_sub(self::scale(v.data_type)));
    let (unit_a, unit_b) = match operator {
        Operator::Multiply => (1, 1),
        _ => (unit(left), unit(right)),
    };
    let sides = (Side { vector: left, unit: unit_a }, Side { vector: right, unit: unit_b });
    if let Some(lanes) = decimal_words::compute(operator, (data_type, most), &sides.0, &sides.1) {
        let nulls = either_null(left.nulls.as_ref(), right.nulls.as_ref());
        return Ok(Vector::new(data_type, lanes, nulls));
    }
    let symbol = operator.entry().symbol;
    let (Some(a), Some(b)) = (mantissas(left), mantissas(right)) else {
        let (a, b) = (left.data_type, right.data_type);
        return Err(Error::invalid(format!("{symbol} is not defined for {a} and {b}")));
    };
    let mut nulls = either_null(left.nulls.as_ref(), right.nulls.as_ref());
    if operator.is_remainder() && b.contains(&0) {
        let nulls = nulls.get_or_insert_with(|| vec![false; b.len()]);
        let failing = || nulls.iter().zip(b.iter()).position(|(null, b)| *b == 0 && !null);
        if let Some(row) = operator.fails_by_zero().then(failing).flatten() {
            return Err(division_by_zero(operator, left.value(row), right.value(row)));
        }
        nulls.iter_mut().zip(b.iter()).for_each(|(null, b)| *null |= *b == 0);
    }
    let (first_refused, is_plain) = (limit(most).unsigned_abs(), unit_a == 1 && unit_b == 1);
    let compute = |a: i128, b: i128| {
        let (a, b) = match is_plain {
            true => (a, b),
            false => (a.checked_mul(unit_a)?, b.checked_mul(unit_b)?),
        };
        let value = match operator {
            Operator::Add => a.checked_add(b),
            Operator::Subtract => a.checked_sub(b),
            Operator::Multiply => a.checked_mul(b),
            _ => a.checked_rem(b),
        };
        value.filter(|v| v.unsigned_abs() < first_refused)
    };
    let mut values = Vec::with_capacity(a.len());
    for (i, (x, y)) in a.iter().zip(b.iter()).enumerate() {
        values.push(match compute(*x, *y) {
            Some(value) => value,
            None if nulls.as_ref().is_some_and(|n| n.get(i).copied().unwrap_or(true)) => 0,
            None => {
                let (x, y) = (left.value(i), right.value(i));
                return Err(Error::out_of_range(format!(
                    "{x} {symbol} {y} does not fit {data_type}"
                )));
            }
        });
    }
    Ok(Vector::new(data_type, lanes(data_type, values), nulls))
}

/// Decimals from one value each; rows without one are NULL.
pub(super) fn map<'a>(
    data_type: DataType,
    values: impl Iterator<Item = Result<Option<Decimal>>>,
) -> Result<Vector<'a>> {
    let (mut mantissas, mut nulls) = (Vec::new(), Vec::new());
    for value in values {
        let value = value?;
        let fitted = value.map(|v| {
            let fitted = ValueRef::Decimal(v).coerce(data_type).ok().and_then(ValueRef::mantissa);
            fitted.ok_or_else(|| Error::out_of_range(format!("{v} does not fit {data_type}")))
        });
        nulls.push(value.is_none());
        mantissas.push(fitted.transpose()?.unwrap_or_default());
    }
    let nulls = nulls.contains(&true).then_some(nulls);
    Ok(Vector::new(data_type, lanes(data_type, mantissas), nulls))
}

fn mantissas<'v>(vector: &'v Vector<'_>) -> Option<Cow<'v, [i128]>> {
    match &vector.lanes {
        Lanes::Ints(v) => Some(v.iter().map(|v| i128::from(*v)).collect()),
        Lanes::Uints(v) => Some(v.iter().map(|v| i128::from(*v)).collect()),
        Lanes::Wides(v) => Some(Cow::Borrowed(v)),
        _ => None,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the values have as many digits as the type")]
fn lanes<'a>(data_type: DataType, values: Vec<i128>) -> Lanes<'a> {
    if data_type.is_wide() {
        Lanes::Wides(values.into())
    } else {
        Lanes::Ints(values.into_iter().map(|v| v as i64).collect())
    }
}

fn scale(data_type: DataType) -> u8 {
    match data_type {
        DataType::Decimal { scale, .. } => scale,
        _ => 0,
    }
}

fn precision(data_type: DataType) -> u8 {
    match data_type {
        DataType::Decimal { precision, .. } => precision,
        _ => 0,
    }
}
