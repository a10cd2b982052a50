//! Intervals: `INTERVAL '1 month 3 days'`, `INTERVAL '3' DAY`, `INTERVAL 3 DAY`.

use esker_format::calendar::DAY_US;
use sqlparser::ast;

use crate::statement::shorten;
use crate::{Error, Result};

/// What a unit is: months, or microseconds.
const UNITS: [(&str, i64, i64); 12] = [
    ("microsecond", 0, 1),
    ("millisecond", 0, 1_000),
    ("second", 0, 1_000_000),
    ("minute", 0, 60_000_000),
    ("hour", 0, 3_600_000_000),
    ("day", 0, DAY_US),
    ("week", 0, 7 * DAY_US),
    ("month", 1, 0),
    ("quarter", 3, 0),
    ("year", 12, 0),
    ("decade", 120, 0),
    ("century", 1_200, 0),
];

/// The months and the microseconds of an interval.
pub(crate) fn parse(interval: &ast::Interval) -> Result<(i64, i64)> {
    let text = match &*interval.value {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => text.clone(),
            ast::Value::Number(digits, _) => digits.clone(),
            _ => return Err(bad(interval)),
        },
        _ => return Err(bad(interval)),
    };
    let is_plain = interval.leading_precision.is_none()
        && interval.last_field.is_none()
        && interval.fractional_seconds_precision.is_none();
    if !is_plain {
        return Err(bad(interval));
    }
    let text = match &interval.leading_field {
        Some(unit) => format!("{text} {unit}"),
        None => text,
    };
    read(&text).ok_or_else(|| bad(interval))
}

/// The months and the microseconds of an interval that is written as an operand: `INTERVAL '1 day'`,
/// `- INTERVAL '1 day'`, `'1 day'`, `CAST('1 day' AS interval)`; `None` for what is none.
///
/// # Errors
/// `InvalidInput` for an interval that is wrong.
pub(crate) fn of_operand(operand: &ast::Expr) -> Result<Option<(i64, i64)>> {
    use ast::Expr as E;
    let text = |operand: &E| match operand {
        E::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    Ok(match operand {
        E::Nested(inner) => of_operand(inner)?,
        E::Interval(interval) => Some(parse(interval)?),
        E::UnaryOp { op: ast::UnaryOperator::Minus, expr } => match of_operand(expr)? {
            None => None,
            Some((months, us)) => months.checked_neg().zip(us.checked_neg()),
        },
        E::Cast { expr, data_type: ast::DataType::Interval { .. }, .. } => {
            text(expr).and_then(|text| read(&text))
        }
        other => text(other).and_then(|text| read(&text)),
    })
}

/// Numbers, each with a unit behind it.
fn read(text: &str) -> Option<(i64, i64)> {
    let (mut months, mut us) = (0i64, 0i64);
    let mut words = text.split_whitespace();
    let mut any = false;
    while let Some(number) = words.next() {
        let number: i64 = number.parse().ok()?;
        let unit = words.next()?.to_ascii_lowercase();
        let single = unit.strip_suffix('s').unwrap_or(&unit);
        let known = |(name, ..): &&(&str, i64, i64)| *name == unit || *name == single;
        let (_, unit_months, unit_us) = UNITS.iter().find(known)?;
        months = months.checked_add(number.checked_mul(*unit_months)?)?;
        us = us.checked_add(number.checked_mul(*unit_us)?)?;
        any = true;
    }
    any.then_some((months, us))
}

/// The error for an interval that is none.
pub(crate) fn bad(interval: &ast::Interval) -> Error {
    let text = shorten(&interval.to_string());
    Error::invalid(format!("expected an interval like INTERVAL '1 month 3 days', found `{text}`"))
}
