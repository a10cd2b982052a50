//! Casts: what does not fit is an error, never cut or wrapped.

use std::borrow::Cow;

use esker_format::calendar::DAY_US;
use esker_format::json::{Json, from_value, parse_in_steps};
use esker_format::{
    DataType, Decimal, Interval, List, ListBuilder, ListElement, Value, ValueRef, list,
};

use super::written::written;
use crate::evaluate::{Lanes, Vector};
use crate::meter::Meter;
use crate::time_zone::parse_value;
use crate::{Error, Result};

/// Errors do not show a longer value.
const SHOWN_BYTES_MAX: usize = 200;

/// The values as values of another type. Floats and decimals lose their fraction on the way to an
/// integer and are rounded to the digits of a decimal, halves away from zero;
/// timestamps lose the time of day on the way to a date.
pub(super) fn cast<'a>(vector: Vector<'a>, to: DataType, meter: &Meter<'a>) -> Result<Vector<'a>> {
    cast_or(vector, to, meter, true)
}

/// The same, and NULL for what does not fit.
pub(super) fn try_cast<'a>(
    vector: Vector<'a>,
    to: DataType,
    meter: &Meter<'a>,
) -> Result<Vector<'a>> {
    cast_or(vector, to, meter, false)
}

fn cast_or<'a>(
    mut vector: Vector<'a>,
    to: DataType,
    meter: &Meter<'a>,
    may_fail: bool,
) -> Result<Vector<'a>> {
    let room = vector.take_room();
    let lanes = match (&vector.lanes, to) {
        (Lanes::Ints(v), DataType::F64) if vector.data_type.is_integer() => {
            Lanes::Floats(v.iter().map(|v| *v as f64).collect())
        }
        (Lanes::Uints(v), DataType::F64) => Lanes::Floats(v.iter().map(|v| *v as f64).collect()),
        (Lanes::Ints(_), DataType::I64) if vector.data_type.is_integer() => vector.lanes,
        (Lanes::Floats(_), DataType::F64) => vector.lanes,
        (Lanes::Ints(days), DataType::Timestamp)
            if vector.data_type == DataType::Date && days.iter().all(|day| is_near(*day)) =>
        {
            Lanes::Ints(days.iter().map(|day| day * DAY_US).collect())
        }
        (Lanes::Bytes(v), to) if vector.data_type == DataType::Interval && to.is_wide() => {
            Lanes::Wides(v.iter().map(|v| Interval::of_bytes(v).length_us()).collect())
        }
        (Lanes::Bytes(_), DataType::Bytes) => vector.lanes,
        _ => return one_by_one(&vector, to, meter, may_fail),
    };
    let cast = Vector::new(to, lanes, vector.nulls);
    // The values are those that were there before.
    Ok(match room {
        Some(room) => cast.within(room),
        None => cast,
    })
}

/// Days whose moments fit in a word without a check, NULLs' too.
fn is_near(day: i64) -> bool {
    day.unsigned_abs() < 1 << 26
}

fn one_by_one<'a>(
    vector: &Vector<'_>,
    to: DataType,
    meter: &Meter<'a>,
    may_fail: bool,
) -> Result<Vector<'a>> {
    let mut room = meter.room("a cast");
    let mut cast = Vector::nulls(to, vector.len());
    cast.nulls.clone_from(&vector.nulls);
    for i in 0..vector.len() {
        let value = vector.value(i);
        if !value.is_null() {
            meter.work(vector.lanes.bytes(i).len())?;
            if to == DataType::Text {
                let text = written(&value, &mut room, meter)?;
                put(&mut cast.lanes, i, Value::Text(text));
                continue;
            }
            let most = made_max(vector.lanes.bytes(i).len(), to);
            room.take(most)?;
            let converted = match value {
                ValueRef::Text(text) if to == DataType::Json => {
                    let document = meter.in_steps(|steps| parse_in_steps(text.trim(), steps))?;
                    document.ok().map(Value::Json)
                }
                ValueRef::Text(text) if let DataType::List(element) = to => {
                    read_list(value, to, may_fail, list::parse(text, element))?
                }
                ValueRef::Json(document) if let DataType::List(element) = to => read_list(
                    value,
                    to,
                    may_fail,
                    list::from_json(Json::document(document), element),
                )?,
                value => convert(value, to),
            };
            match converted {
                Some(converted) => put(&mut cast.lanes, i, converted),
                None if may_fail => return Err(cannot(value, to)),
                None => {
                    let nulls = cast.nulls.get_or_insert_with(|| vec![false; vector.len()]);
                    nulls.get_mut(i).into_iter().for_each(|null| *null = true);
                }
            }
            room.give_back(most.saturating_sub(cast.lanes.bytes(i).len()));
        }
    }
    Ok(cast.within(room))
}

/// A list that was read, or what is wrong with it.
fn read_list(
    from: ValueRef<'_>,
    to: DataType,
    may_fail: bool,
    read: esker_format::Result<Value>,
) -> Result<Option<Value>> {
    match read {
        Ok(list) => Ok(Some(list)),
        Err(e) if may_fail => Err(Error::out_of_range(format!("{}: {e}", cannot(from, to)))),
        Err(_) => Ok(None),
    }
}

fn cannot(value: ValueRef<'_>, to: DataType) -> Error {
    let (kind, bytes) = (value.kind_name(), value.as_bytes().unwrap_or_default());
    match bytes.len() > SHOWN_BYTES_MAX {
        true => Error::out_of_range(format!("cannot cast {kind} of {} bytes to {to}", bytes.len())),
        false => Error::out_of_range(format!("cannot cast {kind} '{value}' to {to}")),
    }
}

/// The most bytes that making a value of a type takes, from so many bytes.
fn made_max(bytes: usize, to: DataType) -> usize {
    // While an object is read, each of its members is a name and a value of its own.
    const JSON_TIMES: usize = 12;
    const LIST_TIMES: usize = 12;
    match to {
        DataType::Json => bytes.saturating_mul(JSON_TIMES).saturating_add(512),
        // An item has one character and what separates it from the next.
        DataType::List(_) => bytes.saturating_mul(LIST_TIMES).saturating_add(64),
        to if to.is_variable() => bytes.saturating_add(64),
        _ => 0,
    }
}

pub(super) fn put(lanes: &mut Lanes<'_>, i: usize, value: Value) {
    fn one<T>(into: Option<&mut T>, value: T) {
        if let Some(into) = into {
            *into = value;
        }
    }
    match (lanes, value) {
        (Lanes::Ints(l), value) => {
            one(l.to_mut().get_mut(i), value.as_ref().as_word().unwrap_or_default());
        }
        (Lanes::Wides(l), value) => {
            one(l.to_mut().get_mut(i), value.as_ref().mantissa().unwrap_or_default());
        }
        (Lanes::Uints(l), Value::Uint(v)) => one(l.to_mut().get_mut(i), v),
        (Lanes::Floats(l), Value::Float(v)) => one(l.to_mut().get_mut(i), v),
        (Lanes::Floats(l), Value::Float32(v)) => one(l.to_mut().get_mut(i), v.into()),
        (Lanes::Bools(l), Value::Bool(v)) => one(l.get_mut(i), v),
        (Lanes::Bytes(l), Value::Text(v)) => one(l.get_mut(i), Cow::Owned(v.into_bytes())),
        (Lanes::Bytes(l), value) => {
            let bytes = value.as_ref().as_bytes().unwrap_or_default().to_vec();
            one(l.get_mut(i), Cow::Owned(bytes));
        }
        _ => {}
    }
}

fn convert(value: ValueRef<'_>, to: DataType) -> Option<Value> {
    let as_target = |value: ValueRef<'_>| value.coerce(to).ok().map(ValueRef::to_owned);
    match (value, to) {
        (ValueRef::List(list), DataType::List(element)) => {
            let mut made = ListBuilder::new(element);
            for item in List::of(list).ok()?.values().ok()? {
                let item = match item {
                    Value::Null => item,
                    Value::Text(text) if element == ListElement::Text => Value::Text(text),
                    item if element == ListElement::Text => Value::Text(item.to_string()),
                    item => convert(item.as_ref(), element.data_type())?,
                };
                made.push(item.as_ref()).ok()?;
            }
            Some(made.finish())
        }
        (ValueRef::List(_), DataType::Json) => from_value(value).ok().map(Value::Json),
        (ValueRef::Text(text), _) => parse_value(text.trim(), to).ok(),
        (ValueRef::Int(v), DataType::Bool) => Some(Value::Bool(v != 0)),
        (ValueRef::Uint(v), DataType::Bool) => Some(Value::Bool(v != 0)),
        (ValueRef::Bool(v), t) if t.is_integer() => as_target(ValueRef::Int(v.into())),
        (ValueRef::Date(days), DataType::Timestamp) => {
            Some(Value::Timestamp(i64::from(days).checked_mul(DAY_US)?))
        }
        (ValueRef::Timestamp(us), DataType::Date) => {
            Some(Value::Date(i32::try_from(us.div_euclid(DAY_US)).ok()?))
        }
        (ValueRef::Time(us), DataType::Interval) => Some(Value::Interval(Interval::new(0, 0, us))),
        (ValueRef::Interval(v), DataType::Time) => {
            Some(Value::Time(Interval::of_bytes(v).microseconds().rem_euclid(DAY_US)))
        }
        (ValueRef::Timestamp(us), DataType::Time) => Some(Value::Time(us.rem_euclid(DAY_US))),
        (ValueRef::Bytes(bytes), DataType::Uuid | DataType::Ipv6) if bytes.len() == 16 => {
            Some(ValueRef::from_bytes(to, bytes).to_owned())
        }
        (ValueRef::Decimal(v), DataType::Decimal { scale, .. }) => {
            as_target(ValueRef::Decimal(v.round(scale.into())?))
        }
        (ValueRef::Decimal(v), t) if t.is_integer() => {
            as_target(ValueRef::Decimal(Decimal::whole(v.truncate())?))
        }
        (ValueRef::Float(v), DataType::Decimal { scale, .. }) => {
            as_target(ValueRef::Decimal(Decimal::round_float(v, scale)?))
        }
        (ValueRef::Float32(v), DataType::Decimal { scale, .. }) => {
            as_target(ValueRef::Decimal(Decimal::round_float32(v, scale)?))
        }
        (ValueRef::Float(v), t) if t.is_integer() => as_target(whole(v)?.as_ref()),
        (ValueRef::Float32(v), t) if t.is_integer() => as_target(whole(v.into())?.as_ref()),
        (_, DataType::F64) => float(value).map(Value::Float),
        (_, DataType::F32) => single(float(value)?),
        (value, _) => as_target(value),
    }
}

/// The whole part of a float as an integer, if one is that large.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
#[allow(clippy::cast_sign_loss, reason = "the range is checked")]
fn whole(v: f64) -> Option<Value> {
    let whole = v.trunc();
    let (low, high) = (-(2f64.powi(63)), 2f64.powi(63));
    if (low..high).contains(&whole) {
        Some(Value::Int(whole as i64))
    } else if (0.0..2f64.powi(64)).contains(&whole) {
        Some(Value::Uint(whole as u64))
    } else {
        None
    }
}

fn float(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Int(v) => Some(v as f64),
        ValueRef::Uint(v) => Some(v as f64),
        ValueRef::Float(v) => Some(v),
        ValueRef::Float32(v) => Some(v.into()),
        ValueRef::Decimal(v) => Some(v.to_f64()),
        _ => None,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "rounding to f32 is what was asked for")]
fn single(v: f64) -> Option<Value> {
    let narrow = v as f32;
    (narrow.is_finite() || !v.is_finite()).then_some(Value::Float32(narrow))
}
