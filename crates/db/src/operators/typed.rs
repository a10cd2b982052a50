//! Operators on fields of other types than JSON.

use std::cmp::Ordering;

use esker_format::json::{add_decimals, multiply_decimals};
use esker_format::{DataType, Decimal, Field, Value, ValueRef};

use super::Operator;
use crate::{Error, Result};

/// Refuses an operator that fields of this type do not have.
pub(super) fn expect_defined(operator: Operator, field: &Field) -> Result<()> {
    let expected = match operator {
        Operator::Set | Operator::Unset | Operator::Min | Operator::Max => return Ok(()),
        Operator::Increment | Operator::Multiply if field.data_type.is_numeric() => return Ok(()),
        Operator::Increment | Operator::Multiply => "a number, or a number in json",
        Operator::CurrentTime
            if matches!(field.data_type, DataType::Timestamp | DataType::Date | DataType::Time) =>
        {
            return Ok(());
        }
        Operator::CurrentTime => "a timestamp, a date, a time or json",
        Operator::Rename => "a path inside a json field",
        _ => "an array in json",
    };
    let (name, found) = (&field.name, field.type_text());
    Err(Error::invalid(format!("field {name:?}: expected {expected}, found {found}")))
}

/// What comes of a value, not yet fitted to the field.
pub(super) fn apply(
    field: &Field,
    operator: Operator,
    old: &Value,
    operand: &Value,
) -> Result<Value> {
    let stays = match operator {
        Operator::Min => Some(Ordering::Less),
        Operator::Max => Some(Ordering::Greater),
        _ => None,
    };
    if let Some(stays) = stays {
        let is_better = operand.as_ref().compare(old.as_ref()) == stays;
        return Ok(if old.is_null() || is_better { operand.clone() } else { old.clone() });
    }
    let zero = Value::Int(0);
    let old = if old.is_null() { &zero } else { old };
    let is_sum = operator == Operator::Increment;
    if matches!(field.data_type, DataType::F32 | DataType::F64) {
        let (a, b) = (float(old), float(operand));
        let result = if is_sum { a + b } else { a * b };
        if result.is_infinite() && a.is_finite() {
            return Err(overflow(field, is_sum, old, operand));
        }
        return Ok(Value::Float(result));
    }
    let operands = decimal(old).zip(decimal(operand));
    let result = operands
        .and_then(|(a, b)| if is_sum { add_decimals(a, b) } else { multiply_decimals(a, b) });
    let exact = result.filter(|(_, is_exact)| *is_exact);
    let result = exact.map(|(result, _)| ValueRef::Decimal(result));
    match result.and_then(|result| result.coerce(field.data_type).ok()) {
        Some(value) => Ok(value.to_owned()),
        None => Err(overflow(field, is_sum, old, operand)),
    }
}

fn overflow(field: &Field, is_sum: bool, old: &Value, operand: &Value) -> Error {
    let symbol = if is_sum { '+' } else { '*' };
    let data_type = field.type_text();
    Error::invalid(format!("{old} {symbol} {operand} does not fit {data_type}"))
}

/// A number as a decimal: a float as the digits that it is written with.
fn decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::Int(v) => Decimal::whole(*v),
        Value::Uint(v) => Decimal::whole(*v),
        Value::Decimal(v) => Some(*v),
        Value::Float(v) => Decimal::parse(v.to_string().as_bytes()),
        Value::Float32(v) => Decimal::parse(v.to_string().as_bytes()),
        _ => None,
    }
}

#[allow(clippy::cast_precision_loss, reason = "the field holds no more")]
fn float(value: &Value) -> f64 {
    match value {
        Value::Int(v) => *v as f64,
        Value::Uint(v) => *v as f64,
        Value::Decimal(v) => v.to_f64(),
        Value::Float(v) => *v,
        Value::Float32(v) => (*v).into(),
        _ => f64::NAN,
    }
}
