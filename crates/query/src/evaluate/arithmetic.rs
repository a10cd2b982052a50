//! Arithmetic: of integers checked, of floats as IEEE 754 says. Division by zero is NULL, or an
//! error where the operator says so.

use std::fmt::Display;

use esker_format::DataType;

use crate::evaluate::{Lanes, Vector, either_null};
use crate::model::Operator;
use crate::{Error, Result};

/// Applies one of the five operators to operands that binding has brought to one type.
pub(super) fn apply<'a>(
    operator: Operator,
    data_type: DataType,
    left: Vector<'a>,
    right: Vector<'a>,
) -> Result<Vector<'a>> {
    let mut nulls = either_null(left.nulls.as_ref(), right.nulls.as_ref());
    let lanes = match (&left.lanes, &right.lanes) {
        (Lanes::Floats(a), Lanes::Floats(b)) => {
            Lanes::Floats(floats(operator, a, b, &mut nulls)?.into())
        }
        (Lanes::Ints(a), Lanes::Ints(b)) => {
            let values = integers(operator, a, b, &mut nulls)?;
            if data_type == DataType::Date {
                check_dates(&values, nulls.as_deref())?;
            }
            Lanes::Ints(values.into())
        }
        _ => {
            let (a, b) = (left.data_type, right.data_type);
            let symbol = operator.entry().symbol;
            return Err(Error::invalid(format!("{symbol} is not defined for {a} and {b}")));
        }
    };
    Ok(Vector::new(data_type, lanes, nulls))
}

/// Minus the values.
pub(super) fn negate(operand: Vector<'_>) -> Result<Vector<'_>> {
    let lanes = match &operand.lanes {
        Lanes::Ints(v) => {
            let one = |(i, v): (usize, &i64)| match v.checked_neg() {
                Some(value) => Ok(value),
                None if operand.is_null(i) => Ok(0),
                None => Err(Error::out_of_range(format!("-{v} does not fit i64"))),
            };
            Lanes::Ints(v.iter().enumerate().map(one).collect::<Result<Vec<_>>>()?.into())
        }
        Lanes::Wides(v) => Lanes::Wides(v.iter().map(|v| -v).collect()),
        Lanes::Floats(v) => Lanes::Floats(v.iter().map(|v| -v).collect()),
        _ => {
            let found = operand.data_type;
            return Err(Error::invalid(format!("- is not defined for {found}")));
        }
    };
    Ok(Vector::new(operand.data_type, lanes, operand.nulls))
}

fn floats(
    operator: Operator,
    left: &[f64],
    right: &[f64],
    nulls: &mut Option<Vec<bool>>,
) -> Result<Vec<f64>> {
    let pairs = left.iter().zip(right);
    Ok(match operator {
        Operator::Add => pairs.map(|(a, b)| a + b).collect(),
        Operator::Subtract => pairs.map(|(a, b)| a - b).collect(),
        Operator::Multiply => pairs.map(|(a, b)| a * b).collect(),
        operator => {
            by_zero(operator, left, right, nulls)?;
            match operator.is_quotient() {
                true => pairs.map(|(a, b)| a / b).collect(),
                false => pairs.map(|(a, b)| a % b).collect(),
            }
        }
    })
}

fn integers(
    operator: Operator,
    left: &[i64],
    right: &[i64],
    nulls: &mut Option<Vec<bool>>,
) -> Result<Vec<i64>> {
    match operator {
        Operator::Add => checked(operator, left, right, nulls, i64::overflowing_add),
        Operator::Subtract => checked(operator, left, right, nulls, i64::overflowing_sub),
        Operator::Multiply => checked(operator, left, right, nulls, i64::overflowing_mul),
        Operator::Divide | Operator::DivideOrFail => {
            by_zero(operator, left, right, nulls)?;
            let divide = |a: i64, b: i64| if b == 0 { (0, false) } else { a.overflowing_div(b) };
            checked(operator, left, right, nulls, divide)
        }
        _ => {
            by_zero(operator, left, right, nulls)?;
            let remainder = |a: i64, b| if b == 0 { 0 } else { a.wrapping_rem(b) };
            Ok(left.iter().zip(right).map(|(a, b)| remainder(*a, *b)).collect())
        }
    }
}

/// Applies `operation` to all rows and looks afterwards whether one that counts overflowed.
fn checked(
    operator: Operator,
    left: &[i64],
    right: &[i64],
    nulls: &Option<Vec<bool>>,
    operation: impl Fn(i64, i64) -> (i64, bool),
) -> Result<Vec<i64>> {
    let mut any = false;
    let pairs = left.iter().zip(right);
    let values = pairs.map(|(a, b)| {
        let (value, overflowed) = operation(*a, *b);
        any |= overflowed;
        value
    });
    let values = values.collect();
    if any {
        let is_null = |i| nulls.as_ref().is_some_and(|n| n.get(i).copied().unwrap_or(true));
        let mut pairs = left.iter().zip(right).enumerate();
        if let Some((_, (a, b))) = pairs.find(|(i, (a, b))| operation(**a, **b).1 && !is_null(*i)) {
            let symbol = operator.entry().symbol;
            return Err(Error::out_of_range(format!("{a} {symbol} {b} does not fit i64")));
        }
    }
    Ok(values)
}

/// Makes rows NULL whose right side is zero; what is no number stays so where the operator fails.
///
/// # Errors
/// `OutOfRange` for the first of them that has no NULL, where the operator fails by zero.
fn by_zero<T: Copy + Default + PartialOrd + Display>(
    operator: Operator,
    left: &[T],
    right: &[T],
    nulls: &mut Option<Vec<bool>>,
) -> Result<()> {
    let is_zero = |value: &T| *value == T::default();
    if !right.iter().any(is_zero) {
        return Ok(());
    }
    let nulls = nulls.get_or_insert_with(|| vec![false; right.len()]);
    if operator.fails_by_zero() {
        let is_number = |value: &T| value.partial_cmp(value).is_some();
        let mut rows = left.iter().zip(right).zip(nulls.iter());
        let fails = |a: &T, b: &T, null: bool| is_zero(b) && is_number(a) && !null;
        if let Some(((a, b), _)) = rows.find(|((a, b), null)| fails(a, b, **null)) {
            return Err(division_by_zero(operator, a, b));
        }
        return Ok(());
    }
    nulls.iter_mut().zip(right).for_each(|(null, value)| *null |= is_zero(value));
    Ok(())
}

/// The error of a division by zero that is one.
pub(super) fn division_by_zero(operator: Operator, a: impl Display, b: impl Display) -> Error {
    let symbol = operator.entry().symbol;
    Error::out_of_range(format!("division by zero: {a} {symbol} {b}"))
}

fn check_dates(days: &[i64], nulls: Option<&[bool]>) -> Result<()> {
    for (i, day) in days.iter().enumerate() {
        let is_null = nulls.is_some_and(|n| n.get(i).copied().unwrap_or(true));
        if !is_null && i32::try_from(*day).is_err() {
            return Err(Error::out_of_range(format!("day {day} since 1970-01-01 is not a date")));
        }
    }
    Ok(())
}
