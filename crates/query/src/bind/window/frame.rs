//! Frames: their bounds resolved, and refused where they make no sense.

use esker_format::calendar::DAY_US;
use esker_format::{DataType, Value};

use crate::bind::expression::bind as bind_expr;
use crate::bind::interval::{span_of, without_length};
use crate::bind::scope::NoScope;
use crate::bind::typing::convert;
use crate::bound::{Bound, Node, OrderKey};
use crate::model::{Expr, Frame as Written, FrameBound, FrameExclusion, FrameOffset, FrameUnits};
use crate::{Error, Inputs, Result};

/// The length of a month, where lengths compare.
const MONTH_US: i64 = 30 * DAY_US;

/// Which rows of its partition a row looks at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) units: FrameUnits,
    pub(crate) start: Edge,
    pub(crate) end: Edge,
    pub(crate) exclude: FrameExclusion,
}

/// Where a frame begins or ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edge {
    /// At the first row of the partition.
    First,
    Before(Distance),
    /// At the row, or at its peers.
    Current,
    After(Distance),
    /// At the last row of the partition.
    Last,
}

/// How far away.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Distance {
    /// So many rows or groups.
    Count(u64),
    /// A difference of whole keys, each taken so many times.
    Exact { amount: i128, factor: i128 },
    /// A difference of keys that are floats.
    Float(f64),
    /// A span between keys that are moments: months, then microseconds.
    Span { months: i64, us: i64 },
}

/// The frame of a window in some order.
///
/// # Errors
/// `InvalidQuery` for bounds that make no frame.
pub(super) fn bind(frame: Option<&Written>, order: &[OrderKey], inputs: &Inputs) -> Result<Frame> {
    let Some(Written { units, start, end, exclude }) = frame else {
        let (units, exclude) = (FrameUnits::Range, FrameExclusion::NoOthers);
        return Ok(Frame { units, start: Edge::First, end: Edge::Current, exclude });
    };
    expect_rising(start, end)?;
    if *units == FrameUnits::Groups && order.is_empty() {
        return Err(Error::invalid("GROUPS: expected ORDER BY in the window"));
    }
    let edge = |bound: &FrameBound| {
        let distance = |offset| {
            let distance = match units {
                FrameUnits::Rows | FrameUnits::Groups => count(offset, inputs),
                FrameUnits::Range => difference(offset, order, inputs),
            };
            distance.map_err(|e| e.at(bound))
        };
        Ok::<_, Error>(match bound {
            FrameBound::UnboundedPreceding => Edge::First,
            FrameBound::Preceding(offset) => Edge::Before(distance(offset)?),
            FrameBound::CurrentRow => Edge::Current,
            FrameBound::Following(offset) => Edge::After(distance(offset)?),
            FrameBound::UnboundedFollowing => Edge::Last,
        })
    };
    Ok(Frame { units: *units, start: edge(start)?, end: edge(end)?, exclude: *exclude })
}

/// Refuses a frame that would end before it begins, whatever the offsets.
fn expect_rising(start: &FrameBound, end: &FrameBound) -> Result<()> {
    let place = |bound: &FrameBound| match bound {
        FrameBound::UnboundedPreceding => 0,
        FrameBound::Preceding(_) => 1,
        FrameBound::CurrentRow => 2,
        FrameBound::Following(_) => 3,
        FrameBound::UnboundedFollowing => 4,
    };
    match (place(start), place(end)) {
        (4, _) => Err(Error::invalid("a frame cannot start at UNBOUNDED FOLLOWING")),
        (_, 0) => Err(Error::invalid("a frame cannot end at UNBOUNDED PRECEDING")),
        (first, last) if first > last => {
            Err(Error::invalid(format!("a frame that starts at {start} cannot end at {end}")))
        }
        _ => Ok(()),
    }
}

/// The value of a constant offset.
fn constant(expr: &Expr, inputs: &Inputs) -> Result<Bound> {
    let bound = bind_expr(expr, &mut NoScope(inputs))?;
    match bound.as_literal() {
        Some(Value::Null) => Err(Error::invalid("the offset of a frame cannot be NULL")),
        Some(_) => Ok(bound),
        None => Err(Error::invalid("the offset of a frame is a constant")),
    }
}

fn negative() -> Error {
    Error::invalid("the offset of a frame cannot be negative")
}

/// A number of rows or groups.
fn count(offset: &FrameOffset, inputs: &Inputs) -> Result<Distance> {
    let expected = || Error::invalid("expected a number of rows or groups");
    let FrameOffset::Value(expr) = offset else { return Err(expected()) };
    match constant(expr, inputs)?.as_literal() {
        Some(Value::Int(number)) => {
            Ok(Distance::Count(u64::try_from(*number).map_err(|_| negative())?))
        }
        Some(Value::Uint(number)) => Ok(Distance::Count(*number)),
        _ => Err(expected()),
    }
}

/// A difference of the one key of the order.
fn difference(offset: &FrameOffset, order: &[OrderKey], inputs: &Inputs) -> Result<Distance> {
    let [OrderKey { bound: key, .. }] = order else {
        return Err(Error::invalid(format!(
            "RANGE with an offset: expected one key in ORDER BY of the window, found {}",
            order.len()
        )));
    };
    let data_type = without_length(key).data_type();
    let goes_by_intervals = matches!(
        data_type,
        DataType::Date | DataType::Timestamp | DataType::Time | DataType::Interval
    );
    let offset = match offset {
        FrameOffset::Interval { months, microseconds } => (*months, *microseconds),
        FrameOffset::Value(expr) => {
            let offset = constant(expr, inputs)?;
            let is_text = offset.data_type == Some(DataType::Text);
            let offset = match goes_by_intervals && is_text {
                true => convert(offset, DataType::Interval)?,
                false => offset,
            };
            match offset.as_literal() {
                Some(Value::Interval(v)) => span_of(*v)?,
                _ => return number(&offset, data_type),
            }
        }
    };
    span(offset, data_type)
}

/// A difference of moments, of times of a day, or of intervals.
fn span((months, us): (i64, i64), data_type: DataType) -> Result<Distance> {
    let length = i128::from(months) * i128::from(MONTH_US) + i128::from(us);
    if length < 0 {
        return Err(negative());
    }
    match data_type {
        DataType::Date | DataType::Timestamp => Ok(Distance::Span { months, us }),
        DataType::Interval => Ok(Distance::Exact { amount: length, factor: 1 }),
        DataType::Time if months == 0 => Ok(Distance::Exact { amount: length, factor: 1 }),
        DataType::Time => Err(Error::invalid("expected hours, minutes or seconds between times")),
        _ => Err(Error::invalid(format!(
            "RANGE with an interval: expected dates, timestamps, times or intervals in ORDER BY, \
             found {data_type}"
        ))),
    }
}

/// A difference of numbers, or of days.
fn number(offset: &Bound, data_type: DataType) -> Result<Distance> {
    let found = offset.data_type();
    let is_number = data_type.is_numeric() && found.is_numeric();
    let are_days = data_type == DataType::Date && found.is_integer();
    if !(is_number || are_days) {
        let expected = match data_type {
            DataType::Date => "an INTERVAL or a number of days",
            DataType::Timestamp | DataType::Time | DataType::Interval => "an INTERVAL",
            data_type if data_type.is_numeric() => "a number",
            _ => {
                return Err(Error::invalid(format!(
                    "RANGE with an offset: expected numbers, dates, timestamps, times or intervals \
                     in ORDER BY, found {data_type}"
                )));
            }
        };
        return Err(Error::invalid(format!("expected {expected}, found {found}")));
    }
    if data_type.is_float() || found.is_float() {
        let amount = match convert(offset.clone(), DataType::F64)?.node {
            Node::Literal(Value::Float(amount)) => amount,
            _ => return Err(Error::invalid("expected a number")),
        };
        if amount.is_nan() || amount < 0.0 {
            return Err(negative());
        }
        return Ok(Distance::Float(amount));
    }
    let (amount, scale) = match offset.as_literal() {
        Some(Value::Int(v)) => (i128::from(*v), 0),
        Some(Value::Uint(v)) => (i128::from(*v), 0),
        Some(Value::Decimal(v)) => (v.mantissa(), v.scale()),
        _ => return Err(Error::invalid("expected a number")),
    };
    if amount < 0 {
        return Err(negative());
    }
    let own = match data_type {
        DataType::Decimal { scale, .. } => scale,
        _ => 0,
    };
    let times = |by: u8| esker_format::decimal::limit(by);
    let factor = times(scale.saturating_sub(own));
    let amount = amount.saturating_mul(times(own.saturating_sub(scale)));
    Ok(Distance::Exact { amount, factor })
}
