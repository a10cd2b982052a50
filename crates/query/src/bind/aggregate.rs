//! Aggregates: what each keeps of a row, and how; some are made of others.

use std::sync::Arc;

use esker_format::decimal::DIGITS_MAX;
use esker_format::{DataType, Labels, ListElement, Value};

use super::expression::{as_text, expect, label_as_text};
use super::interval::{by_length, is_interval};
use super::typing::{convert, typed};
use crate::bound::{Bound, BoundAggregate, Node, OrderKey};
use crate::model::{Aggregate, Function};
use crate::{Error, Limits, Result};

/// An aggregate of an operand, over rows in the order of some keys, and the labels of its values.
///
/// # Errors
/// `InvalidQuery` with what it takes.
pub(super) fn bound_aggregate(
    function: Aggregate,
    operand: Option<Bound>,
    keys: Vec<OrderKey>,
    distinct: bool,
    limits: &Limits,
) -> Result<(BoundAggregate, Option<Arc<Labels>>)> {
    let labels = operand.as_ref().and_then(|operand| operand.labels.clone());
    let aggregate = match operand {
        None if is_made(function) => Err(needs_operand(function)),
        Some(operand) if is_made(function) => made(function, operand, keys, distinct, limits),
        operand => plain(function, operand, keys, distinct),
    }?;
    let labels = labels.filter(|_| aggregate.data_type == DataType::Enum);
    Ok((aggregate, labels))
}

fn needs_operand(function: Aggregate) -> Error {
    Error::invalid(format!("{} needs an operand", function.name()))
}

/// One that is made of no other.
fn plain(
    function: Aggregate,
    operand: Option<Bound>,
    keys: Vec<OrderKey>,
    distinct: bool,
) -> Result<BoundAggregate> {
    let data_type = aggregate_type(function, operand.as_ref())?;
    // An equal value more or less changes neither of the ends.
    let has_ends = {
        use Aggregate::{First, Last, Max, Min};
        matches!(function, Min | Max | First | Last)
    };
    let distinct = distinct && !has_ends && operand.is_some();
    let operand = match function {
        Aggregate::Count if distinct => operand.map(by_length),
        _ => operand,
    };
    if distinct && operand.as_ref().is_some_and(is_interval) {
        let name = function.name();
        return Err(Error::invalid(format!("DISTINCT is not supported in {name} of intervals")));
    }
    let operand = match (function, operand) {
        (Aggregate::First | Aggregate::Last, Some(operand)) => {
            Some(Bound::new(Node::Ranked(keys, Box::new(operand)), DataType::Bytes))
        }
        (_, operand) if keys.is_empty() => operand,
        _ => {
            let name = function.name();
            let message = format!("ORDER BY works in first(x) and last(x), not in {name}");
            return Err(Error::invalid(message));
        }
    };
    Ok(BoundAggregate { function, operand, distinct, data_type })
}

fn aggregate_type(function: Aggregate, operand: Option<&Bound>) -> Result<DataType> {
    use DataType::{F64, I64, U8, U16, U32, U64};
    let Some(operand) = operand else {
        return match function {
            Aggregate::Count => Ok(I64),
            _ => Err(needs_operand(function)),
        };
    };
    let data_type = operand.data_type();
    match function {
        Aggregate::Count => Ok(I64),
        Aggregate::Min | Aggregate::Max | Aggregate::First | Aggregate::Last => Ok(data_type),
        Aggregate::Sum | Aggregate::Avg if data_type == DataType::Interval => Ok(data_type),
        _ if !data_type.is_numeric() => {
            let name = function.name();
            Err(Error::invalid(format!("{name} expects numbers, found {data_type}")))
        }
        Aggregate::Sum => Ok(match data_type {
            U8 | U16 | U32 | U64 => U64,
            t if t.is_float() => F64,
            DataType::Decimal { scale, .. } => DataType::Decimal { precision: DIGITS_MAX, scale },
            _ => I64,
        }),
        _ => Ok(F64),
    }
}

/// Whether [`made`] is what binds it.
fn is_made(function: Aggregate) -> bool {
    use Aggregate as A;
    !matches!(
        function,
        A::Count
            | A::Sum
            | A::Avg
            | A::Min
            | A::Max
            | A::StddevSamp
            | A::StddevPop
            | A::VarSamp
            | A::VarPop
            | A::Quantile { .. }
            | A::First
            | A::Last
    )
}

/// An aggregate of an operand; what it takes beside that is in front of the keys of its order.
fn made(
    function: Aggregate,
    operand: Bound,
    mut keys: Vec<OrderKey>,
    distinct: bool,
    limits: &Limits,
) -> Result<BoundAggregate> {
    use Aggregate as A;
    let second = match function.takes_second() {
        true if keys.is_empty() => {
            let name = function.name();
            return Err(Error::invalid(format!("{name} takes 2 operands, found 1")));
        }
        true => Some(keys.remove(0)),
        false => None,
    };
    if matches!(function, A::ArrayAgg | A::ArrayConcatAgg) {
        return array_agg(function, operand, keys, distinct);
    }
    if !keys.is_empty() && function != A::StringAgg {
        let name = function.name();
        let message = format!(
            "ORDER BY works in first(x), last(x), string_agg(x), \
                               array_agg(x), not in {name}"
        );
        return Err(Error::invalid(message));
    }
    let sees_equal_ones_once = matches!(
        function,
        A::BoolAnd
            | A::BoolOr
            | A::AnyValue
            | A::ArgMin
            | A::ArgMax
            | A::BitAnd
            | A::BitOr
            | A::ApproxCountDistinct
    );
    let made = match second {
        Some(second) => of_two(function, operand, second, keys, limits),
        None => of_one(function, operand),
    };
    made.map(|made| BoundAggregate { distinct: distinct && !sees_equal_ones_once, ..made })
}

fn bound(function: Aggregate, operand: Bound, data_type: DataType) -> Result<BoundAggregate> {
    Ok(BoundAggregate { function, operand: Some(operand), distinct: false, data_type })
}

fn of_one(function: Aggregate, operand: Bound) -> Result<BoundAggregate> {
    use Aggregate as A;
    let own_type = operand.data_type();
    match function {
        A::BoolAnd | A::BoolOr | A::CountIf => {
            expect(&operand, "a bool", |t| t == DataType::Bool)?;
            let operand = typed(operand, DataType::Bool);
            match function {
                A::BoolAnd => bound(A::Min, operand, DataType::Bool),
                A::BoolOr => bound(A::Max, operand, DataType::Bool),
                _ => bound(A::Count, where_true(operand), DataType::I64),
            }
        }
        A::AnyValue => bound(A::First, ranked(Vec::new(), operand), own_type),
        A::Mode | A::PercentileDisc { .. } => {
            let bound_key = by_length(operand.clone());
            let key = OrderKey { bound: bound_key, descending: false, nulls_first: true };
            bound(function, ranked(vec![key], operand), own_type)
        }
        A::BitAnd | A::BitOr | A::BitXor => {
            expect(&operand, "an integer", DataType::is_integer)?;
            let to = match own_type {
                DataType::U64 => DataType::U64,
                _ => DataType::I64,
            };
            bound(function, convert(operand, to)?, to)
        }
        A::Product => bound(function, number(operand)?, DataType::F64),
        A::ApproxCountDistinct => bound(function, by_length(operand), DataType::I64),
        _ => Err(Error::invalid(format!("{} takes another operand", function.name()))),
    }
}

/// Lists, or values as lists of one item each, which become one list. With DISTINCT each comes
/// once, and they are sorted unless ORDER BY says otherwise, as in PostgreSQL.
fn array_agg(
    function: Aggregate,
    operand: Bound,
    mut keys: Vec<OrderKey>,
    distinct: bool,
) -> Result<BoundAggregate> {
    let operand = match function {
        Aggregate::ArrayAgg => {
            let operand = label_as_text(typed(operand, DataType::Text))?;
            let data_type = DataType::list(operand.data_type())?;
            Bound::new(Node::Call(Function::ListValue, vec![operand]), data_type)
        }
        _ => {
            expect(&operand, "a list", |t| t.element().is_some())?;
            typed(operand, DataType::List(ListElement::Text))
        }
    };
    let data_type = operand.data_type();
    if distinct && keys.is_empty() {
        let bound = operand.clone();
        keys.push(OrderKey { bound, descending: false, nulls_first: false });
    }
    let is_null = is_null(operand.clone());
    let ranked = Bound::new(Node::Ranked(keys, Box::new(operand)), DataType::Bytes);
    let made = bound(Aggregate::ArrayConcatAgg, null_where(is_null, ranked), data_type)?;
    Ok(BoundAggregate { distinct, ..made })
}

fn of_two(
    function: Aggregate,
    operand: Bound,
    mut second: OrderKey,
    keys: Vec<OrderKey>,
    limits: &Limits,
) -> Result<BoundAggregate> {
    use Aggregate as A;
    let own_type = operand.data_type();
    match function {
        A::ArgMin | A::ArgMax => {
            second.descending = function == A::ArgMax;
            let is_null = is_null(second.bound.clone());
            let ranked = ranked(vec![second], operand);
            bound(A::First, null_where(is_null, ranked), own_type)
        }
        A::StringAgg => {
            let operand = as_text(operand, DataType::Text, limits)?;
            second.bound = as_text(second.bound, DataType::Text, limits)?;
            // It is read, and nothing is in its order.
            second.nulls_first = true;
            let is_null = is_null(operand.clone());
            let beside = Node::Ranked(vec![second], Box::new(operand));
            let beside = Bound::new(beside, DataType::Bytes);
            let all = Bound::new(Node::Ranked(keys, Box::new(beside)), DataType::Bytes);
            bound(function, null_where(is_null, all), DataType::Text)
        }
        _ => {
            let (y, x) = (number(operand)?, number(second.bound)?);
            let pair = Bound::new(Node::Pair(Box::new(y), Box::new(x)), DataType::Bytes);
            let data_type = match function {
                A::RegrCount => DataType::I64,
                _ => DataType::F64,
            };
            bound(function, pair, data_type)
        }
    }
}

fn number(operand: Bound) -> Result<Bound> {
    expect(&operand, "a number", DataType::is_numeric)?;
    convert(operand, DataType::F64)
}

fn is_null(operand: Bound) -> Bound {
    Bound::new(Node::IsNull(Box::new(operand)), DataType::Bool)
}

fn null_where(condition: Bound, otherwise: Bound) -> Bound {
    let data_type = otherwise.data_type();
    let null = Bound::new(Node::Literal(Value::Null), data_type);
    Bound::new(Node::Case(vec![(condition, null)], Box::new(otherwise)), data_type)
}

/// A value with its keys; NULL where the value is.
fn ranked(keys: Vec<OrderKey>, operand: Bound) -> Bound {
    let is_null = is_null(operand.clone());
    null_where(is_null, Bound::new(Node::Ranked(keys, Box::new(operand)), DataType::Bytes))
}

/// True, or NULL.
fn where_true(condition: Bound) -> Bound {
    let [yes, null] = [Value::Bool(true), Value::Null]
        .map(|value| Bound::new(Node::Literal(value), DataType::Bool));
    Bound::new(Node::Case(vec![(condition, yes)], Box::new(null)), DataType::Bool)
}
