//! Series at equal distances: numbers, and moments.

use esker_format::calendar::DAY_US;
use esker_format::{DataType, Interval, ValueRef};

use super::MadeRows;
use crate::bind::interval::span_of;
use crate::bind::table_function::{BoundCall, RowKind};
use crate::source::series::Steps;
use crate::{Error, Result};

/// For the sign of an interval, a month has so many days.
const MONTH_DAYS: i128 = 30;

/// Values at equal distances. Those of a decimal are its mantissas, in the scale of the type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    data_type: DataType,
    first: i128,
    step: i128,
    pub(super) count: u128,
}

/// Whether a step of months and microseconds leads to later moments.
///
/// # Errors
/// `InvalidQuery` for a step of zero.
pub(super) fn direction(months: i64, us: i64) -> Result<bool> {
    match i128::from(months) * MONTH_DAYS * i128::from(DAY_US) + i128::from(us) {
        0 => Err(no_step()),
        sum => Ok(sum > 0),
    }
}

/// The months and the microseconds of a step of moments, days of 24 hours.
pub(super) fn step_of(operands: &[ValueRef<'_>]) -> Result<(i64, i64)> {
    match operands {
        [ValueRef::Int(months), ValueRef::Int(us)] => Ok((*months, *us)),
        [ValueRef::Interval(step)] => span_of(Interval::from_stored(step)?),
        _ => Err(Error::invalid("a series of other operands than its types say")),
    }
}

fn no_step() -> Error {
    Error::invalid("expected a step other than zero")
}

impl Numbers {
    /// The series of a call; `None` for moments some months from each other.
    pub(super) fn of(call: &BoundCall, operands: &[ValueRef<'_>]) -> Result<Option<Self>> {
        let (data_type, [start, stop, step]) = match (call.rows, operands) {
            (RowKind::Numbers(data_type), [start, stop, step]) => {
                let number = |value: &ValueRef<'_>| mantissa(*value, data_type);
                (data_type, [number(start)?, number(stop)?, number(step)?])
            }
            (
                RowKind::Moments,
                [ValueRef::Timestamp(start), ValueRef::Timestamp(stop), step @ ..],
            ) => match step_of(step)? {
                (0, us) => (DataType::Timestamp, [*start, *stop, us].map(i128::from)),
                _ => return Ok(None),
            },
            _ => return Err(Error::invalid("a series of other operands than its types say")),
        };
        if step == 0 {
            return Err(no_step());
        }
        let is_empty = if step > 0 { start > stop } else { start < stop };
        let distance = stop.abs_diff(start);
        let count = match (is_empty, call.excludes_stop()) {
            (true, _) => 0,
            (false, true) => distance.div_ceil(step.unsigned_abs()),
            (false, false) => distance / step.unsigned_abs() + 1,
        };
        Ok(Some(Self { data_type, first: start, step, count }))
    }

    /// The first so many of the values, where they are stored as 64 bits each.
    pub(super) fn steps(&self, count: u128) -> Option<Steps> {
        let last = self.value(count.saturating_sub(1))?;
        let word = |value: i128| match self.data_type {
            DataType::U64 => u64::try_from(value).ok().map(u64::cast_signed),
            _ => i64::try_from(value).ok(),
        };
        let step = i64::try_from(self.step).ok();
        word(last)?;
        Some(Steps {
            first: word(self.first)?,
            // Of one value there is no step.
            step: if count <= 1 { 1 } else { step? },
            is_descending: count > 1 && self.step < 0,
            count: usize::try_from(count).ok()?,
        })
    }

    fn value(&self, number: u128) -> Option<i128> {
        self.first.checked_add(i128::try_from(number).ok()?.checked_mul(self.step)?)
    }

    pub(super) fn add_rows(&self, rows: &mut MadeRows<'_>) -> Result<()> {
        let mut value = self.first;
        for number in 0..self.count {
            if rows.is_full() {
                break;
            }
            let shown = match self.data_type {
                DataType::U64 => u64::try_from(value).ok().map(ValueRef::Uint),
                DataType::Timestamp => i64::try_from(value).ok().map(ValueRef::Timestamp),
                DataType::I64 => i64::try_from(value).ok().map(ValueRef::Int),
                decimal => Some(ValueRef::from_mantissa(decimal, value)),
            };
            let shown = shown.ok_or_else(|| Error::invalid("a series beyond its stop"))?;
            rows.push(&[shown])?;
            if number + 1 < self.count {
                let next = value.checked_add(self.step);
                value = next.ok_or_else(|| Error::invalid("a series beyond its stop"))?;
            }
        }
        Ok(())
    }
}

/// A number as a whole one: of a decimal, its mantissa in the scale of the type.
fn mantissa(value: ValueRef<'_>, data_type: DataType) -> Result<i128> {
    let found = match (value, data_type) {
        (ValueRef::Int(value), _) => Some(value.into()),
        (ValueRef::Uint(value), _) => Some(value.into()),
        (ValueRef::Decimal(value), DataType::Decimal { scale, .. }) => {
            value.rescale(scale).map(esker_format::Decimal::mantissa)
        }
        _ => None,
    };
    found.ok_or_else(|| Error::invalid(format!("expected {data_type}, found {value}")))
}
