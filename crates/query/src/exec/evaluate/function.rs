//! Scalar functions.

use std::borrow::Cow;

use esker_format::{DataType, Value};

use super::{choose, evaluate};
use crate::bind::Bound;
use crate::exec::rows::Rows;
use crate::exec::vector::{Lanes, Selection, Vector};
use crate::model::Operator;
use crate::{Error, Result};

pub(super) fn apply<'a>(
    operator: Operator,
    operands: &'a [Bound],
    data_type: DataType,
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vector<'a>> {
    if operator == Operator::Coalesce {
        return choose::coalesce(operands, data_type, rows, selection);
    }
    let Some(first) = operands.first() else {
        return Err(Error::invalid(format!("{} needs an operand", operator.entry().symbol)));
    };
    let operand = evaluate(first, rows, selection)?;
    let digits = match operands.get(1).and_then(Bound::as_literal) {
        Some(Value::Int(digits)) => i32::try_from(*digits).unwrap_or(0),
        _ => 0,
    };
    let lanes = match (operator, &operand.lanes) {
        (Operator::Negate, Lanes::Ints(v)) => {
            Lanes::Ints(checked("-", v, &operand, i64::checked_neg)?.into())
        }
        (Operator::Abs, Lanes::Ints(v)) => {
            Lanes::Ints(checked("abs ", v, &operand, i64::checked_abs)?.into())
        }
        (Operator::Negate, Lanes::Floats(v)) => Lanes::Floats(v.iter().map(|v| -v).collect()),
        (Operator::Abs, Lanes::Floats(v)) => Lanes::Floats(v.iter().map(|v| v.abs()).collect()),
        (Operator::Round, Lanes::Floats(v)) => {
            Lanes::Floats(v.iter().map(|v| round(*v, digits)).collect())
        }
        (Operator::Length, Lanes::Bytes(v)) => {
            let is_text = operand.data_type == DataType::Text;
            Lanes::Ints(v.iter().map(|v| length(v, is_text)).collect())
        }
        (Operator::Lower, Lanes::Bytes(v)) => Lanes::Bytes(map_text(v, str::to_lowercase)),
        (Operator::Upper, Lanes::Bytes(v)) => Lanes::Bytes(map_text(v, str::to_uppercase)),
        _ => {
            let (name, found) = (operator.entry().symbol, operand.data_type);
            return Err(Error::invalid(format!("{name} is not defined for {found}")));
        }
    };
    Ok(Vector::new(data_type, lanes, operand.nulls))
}

fn checked(
    name: &str,
    values: &[i64],
    operand: &Vector<'_>,
    operation: impl Fn(i64) -> Option<i64>,
) -> Result<Vec<i64>> {
    let one = |(i, v): (usize, &i64)| match operation(*v) {
        Some(value) => Ok(value),
        None if operand.is_null(i) => Ok(0),
        None => Err(Error::out_of_range(format!("{name}{v} does not fit i64"))),
    };
    values.iter().enumerate().map(one).collect()
}

fn round(v: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    let scaled = v * scale;
    if digits == 0 {
        v.round()
    } else if scaled.is_finite() && scale > 0.0 {
        scaled.round() / scale
    } else {
        v
    }
}

fn length(bytes: &[u8], is_text: bool) -> i64 {
    // Every character has one byte that is not a continuation byte.
    let counts = |b: &&u8| !is_text || **b & 0xc0 != 0x80;
    i64::try_from(bytes.iter().filter(counts).count()).unwrap_or(i64::MAX)
}

fn map_text<'a>(texts: &[Cow<'a, [u8]>], map: impl Fn(&str) -> String) -> Vec<Cow<'a, [u8]>> {
    let one = |text: &Cow<'a, [u8]>| {
        Cow::Owned(map(std::str::from_utf8(text).unwrap_or_default()).into_bytes())
    };
    texts.iter().map(one).collect()
}
