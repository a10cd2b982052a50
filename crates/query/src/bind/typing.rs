//! Types of operands: which go together, and how one becomes another.

use std::sync::Arc;

use esker_format::calendar::DAY_US;
use esker_format::json::Json;
use esker_format::{DataType, Labels, List, ListBuilder, ListElement, Value, list};

use super::day::{self, Day};
use super::decimal;
use super::expression::label_as_text;
use super::interval::{by_length, length_of};
use crate::bound::{Bound, Node};
use crate::model::Function;
use crate::time_zone::parse_value;
use crate::{Error, Result};

/// The type that values of both types can take, if there is one.
pub(crate) fn common_type(a: Option<DataType>, b: Option<DataType>) -> Result<Option<DataType>> {
    use DataType::{Date, F64, I64, Text, Timestamp, U8, U16, U32, U64};
    let (Some(left), Some(right)) = (a, b) else { return Ok(a.or(b)) };
    let unsigned = |t| matches!(t, U8 | U16 | U32 | U64);
    Ok(Some(match (left, right) {
        _ if left == right => left,
        _ if unsigned(left) && unsigned(right) => U64,
        _ if left.is_integer() && right.is_integer() => I64,
        _ if left.is_numeric() && right.is_numeric() => {
            match (decimal::digits(left), decimal::digits(right)) {
                (Some(a), Some(b)) => decimal::common(a, b),
                _ => F64,
            }
        }
        (Date, Timestamp) | (Timestamp, Date) => Timestamp,
        (DataType::Enum, Text) | (Text, DataType::Enum) => Text,
        (DataType::List(a), DataType::List(b)) => {
            let common = common_type(Some(a.data_type()), Some(b.data_type()))?;
            DataType::list(common.unwrap_or(left))?
        }
        _ => return Err(Error::invalid(format!("{left} and {right} have no common type"))),
    }))
}

/// The expression as a value of `to`: a literal at once, the rest by a cast.
pub(crate) fn convert(bound: Bound, to: DataType) -> Result<Bound> {
    if bound.data_type == Some(to) {
        return Ok(bound);
    }
    let Bound { node, is_typed, .. } = bound;
    match node {
        Node::Literal(Value::Null) => Ok(Bound { is_typed, ..literal(Value::Null, to) }),
        Node::Literal(value) => Ok(Bound { is_typed, ..literal(convert_literal(value, to)?, to) }),
        Node::Unanswered => Ok(Bound { is_typed, ..Bound::new(Node::Unanswered, to) }),
        node => Ok(Bound::new(Node::Cast(Box::new(Bound { node, ..bound })), to)),
    }
}

fn literal(value: Value, data_type: DataType) -> Bound {
    Bound::new(Node::Literal(value), data_type)
}

/// Types whose constants are written as text: beside one, a text constant is taken for one.
pub(crate) fn is_written_as_text(data_type: DataType) -> bool {
    use DataType::{Bytes, Date, Interval, Ipv4, Ipv6, Json, List, Time, Timestamp, Uuid};
    matches!(
        data_type,
        List(_) | Bytes | Date | Timestamp | Time | Interval | Uuid | Ipv4 | Ipv6 | Json
    )
}

/// A constant as a value of `to`, where that says the same thing.
fn convert_literal(value: Value, to: DataType) -> Result<Value> {
    match (value, to) {
        (value @ Value::Enum(_), DataType::Text) => Ok(Value::Text(value.to_string())),
        (Value::Text(text), to) if is_written_as_text(to) => parse_value(&text, to),
        (Value::Date(days), DataType::Timestamp) => {
            Ok(Value::Timestamp(i64::from(days).saturating_mul(DAY_US)))
        }
        (Value::Int(v), DataType::F64) => Ok(Value::Float(v as f64)),
        (Value::Uint(v), DataType::F64) => Ok(Value::Float(v as f64)),
        (Value::Float32(v), DataType::F64) => Ok(Value::Float(v.into())),
        (Value::List(list), DataType::List(element)) => list_as(&list, element, convert_literal),
        (Value::Json(document), DataType::List(element)) => {
            Ok(list::from_json(Json::document(&document), element)?)
        }
        (value, to) => Ok(value.as_ref().coerce(to)?.to_owned()),
    }
}

/// A list with each item as one of another type.
fn list_as(
    list: &[u8],
    element: ListElement,
    convert: fn(Value, DataType) -> Result<Value>,
) -> Result<Value> {
    let list = List::of(list)?;
    if list.element() == element {
        return Ok(Value::list(element, list.values()?.iter().map(Value::as_ref))?);
    }
    let mut made = ListBuilder::new(element);
    for item in list.values()? {
        let item = if item.is_null() { item } else { convert(item, element.data_type())? };
        made.push(item.as_ref())?;
    }
    Ok(made.finish())
}

/// A value for a field of type `to`: what was written stays what it is, or is refused.
pub(crate) fn assign_literal(value: Value, to: DataType) -> Result<Value> {
    match value {
        // Its field finds the label.
        Value::Text(text) if to == DataType::Enum => Ok(Value::Text(text)),
        Value::Text(text) if is_written_as_text(to) => parse_value(&text, to),
        Value::Date(_) if to == DataType::Timestamp => convert_literal(value, to),
        Value::Json(_) if matches!(to, DataType::List(_)) => convert_literal(value, to),
        Value::List(list) if let DataType::List(element) = to => {
            list_as(&list, element, assign_literal)
        }
        value => Ok(value.as_ref().coerce(to)?.to_owned()),
    }
}

/// Prepares two operands for a comparison: numbers stay as they are (they compare exactly), but for
/// a decimal constant, which becomes the nearest float beside one; a text constant becomes a date
/// (timestamp, UUID, address, …) beside one, a date a timestamp beside one. What a subquery has
/// answered is no such constant: it compares as a field of its type does.
pub(crate) fn make_comparable(left: Bound, right: Bound) -> Result<(Bound, Bound)> {
    use DataType::{Date, Text, Timestamp};
    let (Some(a), Some(b)) = (left.data_type, right.data_type) else {
        let known = left.data_type.or(right.data_type).unwrap_or(DataType::I64);
        return Ok((typed(left, known), typed(right, known)));
    };
    let constant = (left.as_written().is_some(), right.as_written().is_some());
    let (left, right) = (part_beside(left, b), part_beside(right, a));
    let (a, b) = (left.data_type(), right.data_type());
    match (a, b) {
        (DataType::Enum, _) | (_, DataType::Enum) => comparable_labels(left, right, constant),
        (a, b) if a.is_decimal() && b.is_float() && constant.0 => {
            Ok((convert(left, DataType::F64)?, right))
        }
        (a, b) if a.is_float() && b.is_decimal() && constant.1 => {
            Ok((left, convert(right, DataType::F64)?))
        }
        (DataType::Interval, DataType::Interval) => Ok((by_length(left), by_length(right))),
        _ if a == b || (a.is_numeric() && b.is_numeric()) => Ok((left, right)),
        (DataType::List(_), DataType::List(_))
            if let (true, Ok(right)) = (constant.1, convert(right.clone(), a)) =>
        {
            Ok((left, right))
        }
        (DataType::List(_), DataType::List(_))
            if let (true, Ok(left)) = (constant.0, convert(left.clone(), b)) =>
        {
            Ok((left, right))
        }
        (DataType::List(_), DataType::List(_)) => match common_type(Some(a), Some(b))? {
            Some(common) => Ok((convert(left, common)?, convert(right, common)?)),
            None => Ok((left, right)),
        },
        (DataType::Json, DataType::List(_)) if constant.0 => Ok((convert(left, b)?, right)),
        (DataType::List(_), DataType::Json) if constant.1 => Ok((left, convert(right, a)?)),
        (Text, b) if constant.0 && is_written_as_text(b) => {
            Ok((by_length(convert(left, b)?), by_length(right)))
        }
        (a, Text) if constant.1 && is_written_as_text(a) => {
            Ok((by_length(left), by_length(convert(right, a)?)))
        }
        (Date, Timestamp) => match Day::of(&right).and_then(Day::date) {
            Some(day) => Ok((left, literal(day, Date))),
            None => Ok((convert(left, b)?, right)),
        },
        (Timestamp, Date) => match Day::of(&left).and_then(Day::date) {
            Some(day) => Ok((literal(day, Date), right)),
            None => Ok((left, convert(right, a)?)),
        },
        _ => Err(Error::invalid(format!("cannot compare {a} with {b}"))),
    }
}

/// Prepares an operand and the values of a column for a comparison: as with a field of its type.
pub(crate) fn comparable_values(
    operand: Bound,
    (values, data_type): (&[Value], DataType),
    labels: Option<&Arc<Labels>>,
) -> Result<(Bound, Vec<Value>)> {
    if day::is_date(&operand)
        && data_type == DataType::Timestamp
        && let Some(dates) = day::dates_of(values)
    {
        return Ok((operand, dates));
    }
    let field = Bound::field(usize::MAX, data_type).with_labels(labels);
    let (operand, field) = make_comparable(operand, field)?;
    let to = field.data_type();
    let value = |value: &Value| match value {
        Value::Null => Ok(Value::Null),
        value if to == data_type => Ok(value.clone()),
        value if data_type == DataType::Interval => Ok(length_of(value)),
        value => convert_literal(value.clone(), to),
    };
    Ok((operand, values.iter().map(value).collect::<Result<_>>()?))
}

/// The text of a part of JSON is the number that it is beside a number.
fn part_beside(part: Bound, other: DataType) -> Bound {
    match part.node {
        Node::Call(Function::JsonText, operands) if other.is_numeric() => {
            Bound::new(Node::Call(Function::JsonNumber, operands), DataType::F64)
        }
        _ => part,
    }
}

/// Labels of one field compare in their order with each other and with constants; others as text.
fn comparable_labels(
    left: Bound,
    right: Bound,
    (left_is_constant, right_is_constant): (bool, bool),
) -> Result<(Bound, Bound)> {
    let as_label = |constant: Bound, labels: &Labels| match constant.as_literal() {
        Some(Value::Text(text)) => Ok(Bound::literal(labels.expect(text)?.to_owned())),
        _ => Ok::<_, Error>(constant),
    };
    match (&left.labels, &right.labels) {
        (Some(labels), None) if right_is_constant => {
            let right = as_label(right, labels)?;
            same_type(left, right)
        }
        (None, Some(labels)) if left_is_constant => {
            let left = as_label(left, labels)?;
            same_type(left, right)
        }
        (a, b) if left.data_type == right.data_type && a == b => Ok((left, right)),
        _ => same_type(label_as_text(left)?, label_as_text(right)?),
    }
}

fn same_type(left: Bound, right: Bound) -> Result<(Bound, Bound)> {
    if left.data_type == right.data_type {
        return Ok((left, right));
    }
    let (a, b) = (left.data_type(), right.data_type());
    Err(Error::invalid(format!("cannot compare {a} with {b}")))
}

/// Gives an untyped NULL a type.
pub(crate) fn typed(bound: Bound, data_type: DataType) -> Bound {
    match bound.data_type {
        Some(_) => bound,
        None => Bound { data_type: Some(data_type), ..bound },
    }
}
