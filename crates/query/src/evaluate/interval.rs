//! Arithmetic with intervals.

use std::borrow::Cow;

use esker_format::calendar::DAY_US;
use esker_format::interval::INTERVAL_BYTES;
use esker_format::{DataType, Interval, ValueRef};

use super::function::moment::{add_months, moment};
use crate::bound::Bound;
use crate::evaluate::arithmetic::division_by_zero;
use crate::evaluate::{Lanes, Vector, either_null};
use crate::meter::Meter;
use crate::model::Operator;
use crate::{Error, Result};

/// True for what [`apply`] computes.
pub(super) fn is_of_intervals(outcome: &Bound, left: &Bound, right: &Bound) -> bool {
    [outcome, left, right].iter().any(|bound| bound.data_type() == DataType::Interval)
}

/// Applies an operator to operands of which one is an interval, or of which one comes.
pub(super) fn apply<'a>(
    operator: Operator,
    data_type: DataType,
    left: &Vector<'a>,
    right: &Vector<'a>,
    meter: &Meter<'a>,
) -> Result<Vector<'a>> {
    let nulls = either_null(left.nulls.as_ref(), right.nulls.as_ref());
    let failed = |i: usize| {
        let symbol = operator.entry().symbol;
        let (a, b) = (left.value(i), right.value(i));
        Error::out_of_range(format!("{a} {symbol} {b} is out of the range of {data_type}"))
    };
    if data_type == DataType::Interval {
        return each(left.len(), nulls, meter, |i| {
            match made(operator, left.value(i), right.value(i)) {
                Made::Interval(interval) => Ok(Some(interval)),
                Made::Null => Ok(None),
                Made::ByZero => Err(division_by_zero(operator, left.value(i), right.value(i))),
                Made::TooLarge => Err(failed(i)),
            }
        });
    }
    let is_known = |i: usize| nulls.as_ref().is_none_or(|nulls| nulls.get(i) == Some(&false));
    let one = |i: usize| match is_known(i) {
        false => Ok(0),
        true => shifted(operator, left.value(i), right.value(i)).ok_or_else(|| failed(i)),
    };
    let words: Vec<i64> = (0..left.len()).map(one).collect::<Result<_>>()?;
    Ok(Vector::new(data_type, Lanes::Ints(words.into()), nulls))
}

/// The intervals with the other sign.
pub(super) fn negate<'a>(operand: &Vector<'a>, meter: &Meter<'a>) -> Result<Vector<'a>> {
    each(operand.len(), operand.nulls.clone(), meter, |i| {
        let interval = Interval::of_bytes(operand.lanes.bytes(i));
        let turned = interval.checked_neg();
        let failed =
            || Error::out_of_range(format!("-({interval}) is out of the range of interval"));
        turned.map(Some).ok_or_else(failed)
    })
}

/// An interval for each row that is not NULL.
fn each<'a>(
    len: usize,
    mut nulls: Option<Vec<bool>>,
    meter: &Meter<'a>,
    mut one: impl FnMut(usize) -> Result<Option<Interval>>,
) -> Result<Vector<'a>> {
    let mut room = meter.room("an expression");
    room.take(len.saturating_mul(INTERVAL_BYTES))?;
    let mut values = Vec::with_capacity(len);
    for i in 0..len {
        let is_null = nulls.as_ref().is_some_and(|nulls| nulls.get(i) == Some(&true));
        let made = if is_null { None } else { one(i)? };
        values.push(match made {
            Some(interval) => Cow::Owned(interval.stored().to_vec()),
            None => {
                let nulls = nulls.get_or_insert_with(|| vec![false; len]);
                nulls.get_mut(i).into_iter().for_each(|null| *null = true);
                Cow::Borrowed(&[] as &[u8])
            }
        });
    }
    Ok(Vector::new(DataType::Interval, Lanes::Bytes(values), nulls).within(room))
}

enum Made {
    Interval(Interval),
    Null,
    ByZero,
    TooLarge,
}

fn made(operator: Operator, left: ValueRef<'_>, right: ValueRef<'_>) -> Made {
    use ValueRef::{Float, Interval as Span, Time, Timestamp};
    let found = match (operator, left, right) {
        (Operator::Add, Span(a), Span(b)) => {
            Interval::of_bytes(a).checked_add(Interval::of_bytes(b))
        }
        (Operator::Subtract, Span(a), Span(b)) => {
            Interval::of_bytes(a).checked_sub(Interval::of_bytes(b))
        }
        (Operator::Subtract, Timestamp(a), Timestamp(b)) => between(a, b),
        (Operator::Subtract, Time(a), Time(b)) => Some(Interval::new(0, 0, a - b)),
        (Operator::Multiply, Span(a), Float(factor)) => Interval::of_bytes(a).checked_mul(factor),
        (operator, Span(_), Float(0.0)) if operator.is_quotient() => {
            return if operator.fails_by_zero() { Made::ByZero } else { Made::Null };
        }
        (operator, Span(a), Float(divisor)) if operator.is_quotient() => {
            Interval::of_bytes(a).checked_div(divisor)
        }
        _ => None,
    };
    found.map_or(Made::TooLarge, Made::Interval)
}

/// The days and the time between two timestamps.
fn between(later_us: i64, earlier_us: i64) -> Option<Interval> {
    let us = later_us.checked_sub(earlier_us)?;
    Some(Interval::new(0, i32::try_from(us / DAY_US).ok()?, us % DAY_US))
}

/// A timestamp or a time moved by an interval: first months, then days, then the rest.
fn shifted(operator: Operator, from: ValueRef<'_>, by: ValueRef<'_>) -> Option<i64> {
    let ValueRef::Interval(by) = by else { return None };
    let by = Interval::of_bytes(by);
    let sign: i64 = if operator == Operator::Subtract { -1 } else { 1 };
    let us = i128::from(sign) * i128::from(by.microseconds());
    match from {
        ValueRef::Timestamp(start) => {
            let days = add_months(start.div_euclid(DAY_US), sign * i64::from(by.months()))?;
            let days = days + sign * i64::from(by.days());
            moment(days, i128::from(start.rem_euclid(DAY_US)) + us)
        }
        ValueRef::Time(start) => {
            i64::try_from((i128::from(start) + us).rem_euclid(DAY_US.into())).ok()
        }
        _ => None,
    }
}
