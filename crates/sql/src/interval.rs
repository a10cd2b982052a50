//! Intervals: `INTERVAL '1 month 3 days'`, `INTERVAL '3' DAY`, `INTERVAL '1-2' YEAR TO MONTH`,
//! `INTERVAL 3 DAY`.

use esker_format::calendar::DAY_US;
use esker_format::{Interval, IntervalUnit};
use esker_query::model::{Expr, Operator};
use sqlparser::ast;

use crate::expression::Names;
use crate::statement::shorten;
use crate::{Error, Result};

impl Names {
    /// An interval: a constant, or a multiple of a unit.
    pub(crate) fn interval(&self, interval: &ast::Interval) -> Result<Expr> {
        if let Some(constant) = constant(interval)? {
            return Ok(Expr::literal(constant));
        }
        let unit = interval.leading_field.as_ref().filter(|_| interval.last_field.is_none());
        let one =
            unit.and_then(unit_of).and_then(IntervalUnit::one).ok_or_else(|| bad(interval))?;
        let count = self.convert(&interval.value)?;
        Ok(Expr::literal(one).binary(Operator::Multiply, count))
    }
}

/// An interval that is constant.
fn parse(interval: &ast::Interval) -> Result<Interval> {
    constant(interval)?.ok_or_else(|| bad(interval))
}

/// An interval of a text or a number, if it is of one.
fn constant(interval: &ast::Interval) -> Result<Option<Interval>> {
    let (text, is_number) = match &*interval.value {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => (text.clone(), false),
            ast::Value::Number(digits, _) => (digits.clone(), true),
            _ => return Ok(None),
        },
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => match &**expr {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Number(digits, _) => (format!("-{digits}"), true),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let has_precision =
        interval.leading_precision.is_some() || interval.fractional_seconds_precision.is_some();
    if has_precision {
        return Err(bad(interval));
    }
    let found = match (&interval.leading_field, &interval.last_field) {
        (None, _) => Interval::parse(&text, None),
        // A number of units is not cut; what is no plain one is a multiple.
        (Some(unit), None) if is_number => match unit_of(unit) {
            Some(unit) => match Interval::parse(&text, Some(unit)) {
                None => return Ok(None),
                found => found,
            },
            None => None,
        },
        (Some(first), last) => {
            let last = last.as_ref().unwrap_or(first);
            let unit = unit_of(last).ok_or_else(|| bad(interval))?;
            of_fields(&text, first, unit)
        }
    };
    found.map(Some).ok_or_else(|| bad(interval))
}

/// The months and the microseconds of an interval that is written as an operand: `INTERVAL '1
/// day'`, `- INTERVAL '1 day'`, `'1 day'`, `CAST('1 day' AS interval)`; `None` for what is none.
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
        E::Interval(interval) => Some(months_and_us(interval)?),
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

/// The same of a text; a number alone is none, since it may be the step of numbers.
fn read(text: &str) -> Option<(i64, i64)> {
    let is_number = text.trim().parse::<f64>().is_ok();
    Interval::parse(text, None).filter(|_| !is_number).and_then(whole_days)
}

fn unit_of(field: &ast::DateTimeField) -> Option<IntervalUnit> {
    IntervalUnit::from_name(&field.to_string())
}

/// An interval of units from one down to another: what is less is cut off.
fn of_fields(text: &str, first: &ast::DateTimeField, last: IntervalUnit) -> Option<Interval> {
    const MINUTE_US: i64 = 60_000_000;
    const HOUR_US: i64 = 60 * MINUTE_US;
    let starts_with_minutes = unit_of(first) == Some(IntervalUnit::Microseconds(MINUTE_US));
    let is_clock = text.matches(':').count() == 1 && !text.contains('.');
    let minutes = (starts_with_minutes && is_clock).then(|| format!("{}.0", text.trim()));
    // `'1 2' DAY TO HOUR`
    let starts_with_days = unit_of(first) == Some(IntervalUnit::Days(1));
    let ends_with_hours = last == IntervalUnit::Microseconds(HOUR_US);
    let is_digits = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    let are_two = text.split_whitespace().count() == 2;
    let is_hours = text.split_whitespace().last().is_some_and(is_digits);
    let hours = (starts_with_days && ends_with_hours && are_two && is_hours)
        .then(|| format!("{}:00", text.trim()));
    // default: nothing is left out at an end
    let text = minutes.as_deref().or(hours.as_deref()).unwrap_or(text);
    let interval = Interval::parse(text, Some(last))?;
    Some(match last {
        IntervalUnit::Months(each) if each >= 12 => {
            Interval::new(interval.months() / 12 * 12, 0, 0)
        }
        IntervalUnit::Months(_) => Interval::new(interval.months(), 0, 0),
        IntervalUnit::Days(_) => Interval::new(interval.months(), interval.days(), 0),
        // Parts of a second, too, are of seconds.
        IntervalUnit::Microseconds(each) => {
            let step = if each < MINUTE_US { 1 } else { each };
            let us = interval.microseconds();
            Interval::new(interval.months(), interval.days(), us / step * step)
        }
    })
}

/// The months and the microseconds of an interval that is constant, days of 24 hours.
pub(crate) fn whole_days_of(interval: &ast::Interval) -> Result<Option<(i64, i64)>> {
    let found = constant(interval)?;
    found.map(|found| whole_days(found).ok_or_else(|| bad(interval))).transpose()
}

/// The months and the microseconds of an interval, days of 24 hours.
pub(crate) fn months_and_us(interval: &ast::Interval) -> Result<(i64, i64)> {
    whole_days(parse(interval)?).ok_or_else(|| bad(interval))
}

fn whole_days(interval: Interval) -> Option<(i64, i64)> {
    let us = i64::from(interval.days()).checked_mul(DAY_US)?;
    Some((interval.months().into(), us.checked_add(interval.microseconds())?))
}

/// The error for an interval that is none.
pub(crate) fn bad(interval: &ast::Interval) -> Error {
    let text = shorten(&interval.to_string());
    Error::invalid(format!("expected an interval like INTERVAL '1 month 3 days', found `{text}`"))
}
