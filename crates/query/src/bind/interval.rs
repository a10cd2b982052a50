//! Intervals: what is computed with them, and how they compare.
//!
//! Equal ones need not be the same: `1 mon` is as long as `30 days`. So what compares, orders and
//! groups them is their length in microseconds, a decimal. A group shows the value with the most
//! months, and of these with the most days: that does not depend on the order of its rows.

use esker_format::calendar::DAY_US;
use esker_format::{DataType, Decimal, Interval, Value};

use super::expression::expect;
use super::typing::{convert, typed};
use super::{Program, Projection, Stage};
use crate::bound::{Bound, BoundAggregate, Node};
use crate::model::{Aggregate, Operator};
use crate::{Error, Result};

/// The type of a length.
const LENGTH: DataType = DataType::Decimal { precision: 38, scale: 0 };

pub(super) fn is_interval(operand: &Bound) -> bool {
    operand.data_type == Some(DataType::Interval)
}

/// What an operand compares by: of an interval its length, of anything else itself.
pub(crate) fn by_length(operand: Bound) -> Bound {
    if !is_interval(&operand) {
        return operand;
    }
    let Bound { node, is_typed, .. } = operand;
    let node = match node {
        Node::Literal(value) => Node::Literal(length_of(&value)),
        Node::Unanswered => Node::Unanswered,
        node => Node::Cast(Box::new(Bound::new(node, DataType::Interval))),
    };
    Bound { is_typed, ..Bound::new(node, LENGTH) }
}

/// The length of an interval; any other value as it is.
pub(super) fn length_of(value: &Value) -> Value {
    match value {
        // default: no length has so many digits that it is no decimal.
        Value::Interval(v) => Decimal::whole(v.length_us()).map_or(Value::Null, Value::Decimal),
        other => other.clone(),
    }
}

/// The interval of which an operand is the length, or the operand.
pub(super) fn without_length(operand: &Bound) -> &Bound {
    match &operand.node {
        Node::Cast(interval) if is_interval(interval) && operand.data_type == Some(LENGTH) => {
            interval
        }
        _ => operand,
    }
}

/// The months and the microseconds of an interval, days of 24 hours.
///
/// # Errors
/// `OutOfRange` for one of more days than there are microseconds for.
pub(crate) fn span_of(interval: Interval) -> Result<(i64, i64)> {
    let days = i64::from(interval.days()).checked_mul(DAY_US);
    let us = days.and_then(|days| days.checked_add(interval.microseconds()));
    let too_long = || Error::out_of_range(format!("INTERVAL '{interval}' is too long"));
    Ok((interval.months().into(), us.ok_or_else(too_long)?))
}

/// Arithmetic with an interval at least on one side.
pub(super) fn arithmetic(operator: Operator, left: Bound, right: Bound) -> Result<Bound> {
    use DataType::{Date, F64, Interval, Time, Timestamp};
    use Operator::{Add, Multiply, Subtract};
    let make = |left, right, data_type| {
        let node = Node::Arithmetic(operator, Box::new(left), Box::new(right));
        Ok(Bound::new(node, data_type))
    };
    let left = as_interval(left, operator)?;
    let right = as_interval(right, operator)?;
    match (operator, left.data_type, right.data_type) {
        (Add | Subtract, Some(Interval) | None, Some(Interval) | None) => {
            make(typed(left, Interval), typed(right, Interval), Interval)
        }
        (Add | Subtract, Some(Date | Timestamp), _) => {
            make(convert(left, Timestamp)?, right, Timestamp)
        }
        (Add, _, Some(Date | Timestamp)) => make(convert(right, Timestamp)?, left, Timestamp),
        (Add | Subtract, Some(Time), _) => make(left, right, Time),
        (Add, _, Some(Time)) => make(right, left, Time),
        (operator, Some(Interval), _) if operator == Multiply || operator.is_quotient() => {
            expect(&right, "a number", DataType::is_numeric)?;
            make(left, convert(right, F64)?, Interval)
        }
        (Multiply, _, Some(Interval)) => {
            expect(&left, "a number", DataType::is_numeric)?;
            make(right, convert(left, F64)?, Interval)
        }
        (_, a, b) => {
            let name = |t: Option<DataType>| t.map_or("NULL".to_owned(), |t| t.to_string());
            let symbol = operator.entry().symbol;
            let (a, b) = (name(a), name(b));
            Err(Error::invalid(format!("{symbol} is not defined for {a} and {b}")))
        }
    }
}

/// A text constant beside an interval is one, where both may be.
fn as_interval(operand: Bound, operator: Operator) -> Result<Bound> {
    let is_sum = matches!(operator, Operator::Add | Operator::Subtract);
    let is_text = operand.data_type == Some(DataType::Text) && operand.as_written().is_some();
    if is_sum && is_text { convert(operand, DataType::Interval) } else { Ok(operand) }
}

/// A text constant beside a date, timestamp or time is what makes sense there: with `+` an
/// interval, with `-` another one of its type. A number alone beside a date is neither
/// seconds nor days.
pub(super) fn beside_moment(
    operator: Operator,
    left: &Bound,
    right: &Bound,
) -> Result<Option<(Bound, Bound)>> {
    use DataType::{Date, Text, Time, Timestamp};
    let moment = |bound: &Bound| bound.data_type.filter(|t| matches!(t, Date | Timestamp | Time));
    let text = |bound: &Bound| match bound.as_written() {
        Some(Value::Text(text)) if bound.data_type == Some(Text) => Some(text.clone()),
        _ => None,
    };
    let (moment, text) = match (moment(left), text(right), text(left), moment(right)) {
        (Some(moment), Some(text), ..) | (.., Some(text), Some(moment)) => (moment, text),
        _ => return Ok(None),
    };
    let to = match operator {
        Operator::Add if moment == Date && text.trim().parse::<f64>().is_ok() => {
            return Err(Error::invalid(format!(
                "expected a number of days, or an interval like '1 day', found '{text}'"
            )));
        }
        Operator::Add => DataType::Interval,
        Operator::Subtract => moment,
        _ => return Ok(None),
    };
    let fit = |bound: &Bound| match bound.data_type {
        Some(Text) => convert(bound.clone(), to),
        _ => Ok(bound.clone()),
    };
    Ok(Some((fit(left)?, fit(right)?)))
}

impl Stage {
    /// Groups by lengths where keys are intervals. An aggregate behind the others takes what a
    /// group shows of each such key, the greatest by its stored form; returns where it is.
    pub(crate) fn group_by_length(&mut self) -> Vec<Replaced> {
        let types: Vec<DataType> = self.keys.iter().map(Bound::data_type).collect();
        let replaced = shown_keys(&types, self.aggregates.len());
        for key in self.keys.iter_mut().filter(|key| is_interval(key)) {
            self.aggregates.push(BoundAggregate {
                function: Aggregate::Max,
                operand: Some(key.clone()),
                distinct: false,
                data_type: DataType::Interval,
            });
            *key = by_length(key.clone());
        }
        replaced
    }

    fn replace(&mut self, replaced: &[Replaced]) {
        self.filter.iter_mut().for_each(|filter| replace(filter, replaced));
        self.keys.iter_mut().for_each(|key| replace(key, replaced));
        let operands = self.aggregates.iter_mut().filter_map(|a| a.operand.as_mut());
        operands.for_each(|operand| replace(operand, replaced));
    }
}

/// Where the intervals are by which rows are grouped, of keys of some types and so many aggregates.
pub(crate) fn shown_keys(types: &[DataType], aggregates: usize) -> Vec<Replaced> {
    let intervals = types.iter().enumerate().filter(|(_, t)| **t == DataType::Interval);
    let behind = types.len() + aggregates..;
    behind.zip(intervals).map(|(by, (position, _))| Replaced { position, by }).collect()
}

/// A field that is in another place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replaced {
    position: usize,
    by: usize,
}

impl Projection {
    /// Reads fields in other places.
    pub(crate) fn replace(&mut self, replaced: &[Replaced]) {
        self.filter.iter_mut().for_each(|filter| replace(filter, replaced));
        self.outputs.iter_mut().for_each(|output| replace(output, replaced));
        self.order.iter_mut().for_each(|key| replace(&mut key.bound, replaced));
    }
}

/// A grouping set that leaves out a key has NULL for it.
fn replace(bound: &mut Bound, replaced: &[Replaced]) {
    bound.replace_fields(&|position| {
        let found = replaced.iter().find(|replaced| replaced.position == position)?;
        let key = Bound::field(position, LENGTH);
        let is_null = Bound::new(Node::IsNull(Box::new(key)), DataType::Bool);
        let null = Bound::new(Node::Literal(Value::Null), DataType::Interval);
        let value = Bound::field(found.by, DataType::Interval);
        let shown = Node::Case(vec![(is_null, null)], Box::new(value));
        Some(Bound::new(shown, DataType::Interval))
    });
}

/// Groups intervals by their lengths in all steps.
pub(super) fn grouped_by_length(mut program: Program) -> Program {
    for step in 0..program.stages.len() {
        let replaced = program.stages.get_mut(step).map(Stage::group_by_length);
        let replaced = replaced.unwrap_or_default();
        if replaced.is_empty() {
            continue;
        }
        let windows = program.windows.as_mut().filter(|windows| windows.after == step + 1);
        match (windows, program.stages.get_mut(step + 1)) {
            (Some(windows), _) => windows.rows.replace(&replaced),
            (None, Some(stage)) => stage.replace(&replaced),
            (None, None) => program.projection.replace(&replaced),
        }
    }
    program
}
