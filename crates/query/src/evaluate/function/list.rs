//! Functions of lists. Items are compared and copied in their stored form; only what is computed of
//! them is read.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use esker_format::list::{Item, OwnedItem};
use esker_format::{Decimal, List, ListBuilder, ListElement, Value};

use super::super::cast::put;
use super::call::Call;
use super::list_text;
use crate::Result;
use crate::bound::Comparison;
use crate::evaluate::{Lanes, Vector};
use crate::model::Function as F;

type Bytes<'a> = Cow<'a, [u8]>;

/// Bytes that an item takes, in a vector and in a set.
const ITEM_BYTES: usize = 3 * size_of::<Item<'_>>();

pub(super) fn call<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    match call.function {
        F::Cardinality | F::ArrayLength | F::ArrayLower | F::ArrayNdims | F::ListPosition => {
            call.map(len, |v: Vec<i64>| Lanes::Ints(v.into()), |row| number(call, row))
        }
        F::ListContains | F::ListHasAll | F::ListHasAny | F::ListAny | F::ListAll => {
            call.map(len, Lanes::Bools, |row| truth(call, row))
        }
        F::ListExtract | F::ListMin | F::ListMax | F::ListSum | F::ListAvg => values(call, len),
        F::ArrayToString => call.map_bytes(len, |row, _| list_text::joined(call, row)),
        F::StringToArray => call.map_bytes(len, |row, _| list_text::split(call, row)),
        _ => call.map_bytes(len, |row, _| made(call, row)),
    }
}

/// How many bytes those that count them make of a row.
pub(super) fn made_len(call: &Call<'_, '_>, row: usize) -> Result<usize> {
    // A number of so many bytes is at most so many characters for each of them.
    const CHARACTERS: usize = 8;
    let Some(list) = list(call, 0, row)? else { return Ok(0) };
    let count = list.len()?;
    let bytes = call.operand(0)?.lanes.bytes(row).len();
    let each = |operands: std::ops::Range<usize>| {
        let len = |i| call.operand(i).map_or(0, |v| v.lanes.bytes(row).len());
        operands.filter(|i| call.has(*i)).map(len).fold(0, usize::saturating_add)
    };
    Ok(match call.function {
        F::ArrayToString => {
            bytes.saturating_mul(CHARACTERS).saturating_add(count.saturating_mul(each(1..3)))
        }
        // An item takes the place of another.
        _ => {
            let item = each(2..3).saturating_mul(2).saturating_add(32);
            bytes.saturating_add(count.saturating_mul(item))
        }
    })
}

/// The list of a row; `None` for NULL.
pub(super) fn list<'v>(
    call: &'v Call<'_, '_>,
    operand: usize,
    row: usize,
) -> Result<Option<List<'v>>> {
    let vector = call.operand(operand)?;
    match vector.is_null(row) {
        true => Ok(None),
        false => Ok(Some(List::of(vector.lanes.bytes(row))?)),
    }
}

/// The items of a list, with a look at the time now and then.
pub(super) fn items<'l>(
    call: &Call<'_, '_>,
    list: List<'l>,
) -> impl Iterator<Item = Result<Item<'l>>> {
    list.items().map(|item| {
        let item = item?;
        call.meter.work(item.as_bytes().len())?;
        Ok(item)
    })
}

/// What an operand is a list of.
fn element_of(call: &Call<'_, '_>, operand: usize) -> Result<ListElement> {
    call.operand(operand)?.data_type.element().ok_or_else(|| call.undefined())
}

/// An operand as an item.
fn item(call: &Call<'_, '_>, operand: usize, row: usize, of: ListElement) -> Result<OwnedItem> {
    Ok(OwnedItem::new(of, call.operand(operand)?.value(row))?)
}

fn number(call: &Call<'_, '_>, row: usize) -> Result<Option<i64>> {
    let Some(list) = list(call, 0, row)? else { return Ok(None) };
    let count = || Ok::<_, crate::Error>(i64::try_from(list.len()?).ok());
    if call.function == F::Cardinality {
        return count();
    }
    if call.function == F::ListPosition {
        return position(call, list, row);
    }
    if list.is_empty() || call.int(1, row, 1)? != 1 {
        return Ok(None);
    }
    match call.function {
        F::ArrayLength => count(),
        _ => Ok(Some(1)),
    }
}

fn position(call: &Call<'_, '_>, list: List<'_>, row: usize) -> Result<Option<i64>> {
    if call.has(2) && call.operand(2)?.is_null(row) {
        return Err(call.error("expected a place to begin at, found NULL"));
    }
    let wanted = item(call, 1, row, list.element())?;
    let start = call.int(2, row, 1)?;
    for (place, item) in (1i64..).zip(items(call, list)) {
        if place >= start && item? == wanted.as_item() {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

fn truth(call: &Call<'_, '_>, row: usize) -> Result<Option<bool>> {
    if matches!(call.function, F::ListAny | F::ListAll) {
        return compared(call, row);
    }
    let Some(first) = list(call, 0, row)? else { return Ok(None) };
    if call.function == F::ListContains {
        let wanted = item(call, 1, row, first.element())?;
        return found(call, first, wanted.as_item()).map(Some);
    }
    let Some(second) = list(call, 1, row)? else { return Ok(None) };
    let mut room = call.meter.room(call.entry.name);
    room.take(first.len()?.saturating_mul(ITEM_BYTES))?;
    let all = items(call, first).collect::<Result<BTreeSet<_>>>()?;
    let is_all = call.function == F::ListHasAll;
    for item in items(call, second) {
        let item = item?;
        if (!item.is_null() && all.contains(&item)) != is_all {
            return Ok(Some(!is_all));
        }
    }
    Ok(Some(is_all))
}

fn found(call: &Call<'_, '_>, list: List<'_>, wanted: Item<'_>) -> Result<bool> {
    for item in items(call, list) {
        if item? == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a comparison holds of an item, or of all: where NULL leaves it open, it is NULL.
fn compared(call: &Call<'_, '_>, row: usize) -> Result<Option<bool>> {
    let Some(list) = list(call, 2, row)? else { return Ok(None) };
    let symbol = call.operand(1)?.lanes.bytes(row);
    let comparison = Comparison::from_symbol(&String::from_utf8_lossy(symbol))?;
    let wanted = item(call, 0, row, list.element())?;
    let decides = call.function == F::ListAny;
    let mut is_open = false;
    for item in items(call, list) {
        let item = item?;
        if item.is_null() || wanted.as_item().is_null() {
            is_open = true;
        } else if comparison.holds(wanted.as_item().cmp(&item)) == decides {
            return Ok(Some(decides));
        }
    }
    Ok((!is_open).then_some(!decides))
}

/// A value of each list.
fn values<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    let element = element_of(call, 0)?;
    let mut made = Vector::nulls(call.data_type, len);
    let mut room = call.meter.room(call.entry.name);
    let mut nulls = vec![true; len];
    for (row, null) in nulls.iter_mut().enumerate() {
        if !call.is_known(row) {
            continue;
        }
        let Some(list) = list(call, 0, row)? else { continue };
        let value = match call.function {
            F::ListExtract => extracted(call, list, row)?,
            F::ListMin => end(call, list, Ordering::Less)?,
            F::ListMax => end(call, list, Ordering::Greater)?,
            _ => total(call, list, element)?,
        };
        if value.is_null() {
            continue;
        }
        *null = false;
        if call.data_type.is_variable() {
            room.take(value.as_ref().as_bytes().map_or(0, <[u8]>::len))?;
        }
        put(&mut made.lanes, row, value);
    }
    let nulls = nulls.contains(&true).then_some(nulls);
    Ok(Vector::new(call.data_type, made.lanes, nulls).within(room))
}

fn extracted(call: &Call<'_, '_>, list: List<'_>, row: usize) -> Result<Value> {
    let place = call.int(1, row, 0)?.checked_sub(1).and_then(|at| usize::try_from(at).ok());
    let found = place.and_then(|place| items(call, list).nth(place));
    found.map_or(Ok(Value::Null), |item| Ok(item?.value(list.element())?))
}

/// The least or the greatest item that is not NULL.
fn end(call: &Call<'_, '_>, list: List<'_>, wanted: Ordering) -> Result<Value> {
    let mut best = None;
    for item in items(call, list) {
        let item = item?;
        if !item.is_null() && best.is_none_or(|best| item.cmp(&best) == wanted) {
            best = Some(item);
        }
    }
    best.map_or(Ok(Value::Null), |item| Ok(item.value(list.element())?))
}

/// The sum or the mean of the items that are not NULL.
fn total(call: &Call<'_, '_>, list: List<'_>, element: ListElement) -> Result<Value> {
    let (mut whole, mut float, mut scale, mut count) = (0i128, 0f64, 0u8, 0u32);
    let too_large = || call.error("the sum is too large for its type");
    for item in items(call, list) {
        let value = item?.value(element)?;
        let part = match value {
            Value::Null => continue,
            Value::Int(v) => v.into(),
            Value::Uint(v) => v.into(),
            Value::Decimal(v) => {
                scale = v.scale();
                v.mantissa()
            }
            Value::Float(v) => {
                float += v;
                0
            }
            Value::Float32(v) => {
                float += f64::from(v);
                0
            }
            _ => return Err(call.undefined()),
        };
        whole = whole.checked_add(part).ok_or_else(too_large)?;
        count = count.saturating_add(1);
    }
    if count == 0 {
        return Ok(Value::Null);
    }
    let is_float = element.data_type().is_float();
    if call.function == F::ListAvg {
        let sum = match Decimal::new(whole, scale) {
            _ if is_float => float,
            Some(sum) => sum.to_f64(),
            None => return Err(too_large()),
        };
        return Ok(Value::Float(sum / f64::from(count)));
    }
    if is_float {
        return Ok(Value::Float(float));
    }
    let sum = Decimal::new(whole, scale).map(Value::Decimal).ok_or_else(too_large)?;
    let fitted = sum.as_ref().coerce(call.data_type).map_err(|_| too_large())?;
    Ok(fitted.to_owned())
}

/// The list that a function makes of a row.
fn made<'a>(call: &Call<'_, 'a>, row: usize) -> Result<Option<Bytes<'a>>> {
    let Some(element) = call.data_type.element() else { return Err(call.undefined()) };
    let mut made = ListBuilder::new(element);
    match call.function {
        F::ListValue => {
            for operand in &call.vectors {
                made.push(operand.value(row))?;
            }
        }
        F::ListAppend | F::ListPrepend | F::ListConcat => {
            let is_known = joined(call, row, &mut made)?;
            if !is_known {
                return Ok(None);
            }
        }
        F::ListPositions => {
            let Some(list) = list(call, 0, row)? else { return Ok(None) };
            let wanted = item(call, 1, row, list.element())?;
            for (place, item) in (1i64..).zip(items(call, list)) {
                if item? == wanted.as_item() {
                    made.push(Value::Int(place).as_ref())?;
                }
            }
        }
        _ => {
            let Some(list) = list(call, 0, row)? else { return Ok(None) };
            changed(call, row, list, &mut made)?;
        }
    }
    Ok(Some(Cow::Owned(made.into_bytes())))
}

/// Lists, and items, one behind the other; false where all of them are NULL.
fn joined(call: &Call<'_, '_>, row: usize, made: &mut ListBuilder) -> Result<bool> {
    let is_both = call.function == F::ListConcat;
    let mut is_known = !is_both;
    for operand in 0..2 {
        if is_both || (operand == 0) == (call.function == F::ListAppend) {
            let Some(list) = list(call, operand, row)? else { continue };
            is_known = true;
            for item in items(call, list) {
                made.push_item(item?)?;
            }
        } else {
            made.push(call.operand(operand)?.value(row))?;
        }
    }
    Ok(is_known)
}

/// Adds the items of a list that a function keeps, in its order.
fn changed(call: &Call<'_, '_>, row: usize, list: List<'_>, made: &mut ListBuilder) -> Result<()> {
    match call.function {
        F::ListRemove | F::ListReplace => {
            let wanted = item(call, 1, row, list.element())?;
            let by = match call.function {
                F::ListReplace => Some(item(call, 2, row, list.element())?),
                _ => None,
            };
            for item in items(call, list) {
                match (item?, &by) {
                    (item, _) if item != wanted.as_item() => made.push_item(item)?,
                    (_, Some(by)) => made.push_item(by.as_item())?,
                    (_, None) => {}
                }
            }
            Ok(())
        }
        F::ListSlice => part(call, list, (call.int(1, row, 1)?, call.int(2, row, i64::MAX)?), made),
        F::TrimArray => {
            // default: no list has so many items
            let count = i64::try_from(list.len()?).unwrap_or(i64::MAX);
            let less = call.int(1, row, 0)?;
            if !(0..=count).contains(&less) {
                return Err(call.error(format_args!(
                    "expected a number of items from 0 to {count}, found {less}"
                )));
            }
            part(call, list, (1, count - less), made)
        }
        _ => ordered(call, row, list, made),
    }
}

/// Adds the items from one place to another, with both.
fn part(
    call: &Call<'_, '_>,
    list: List<'_>,
    (from, to): (i64, i64),
    made: &mut ListBuilder,
) -> Result<()> {
    for (place, item) in (1..=to).zip(items(call, list)) {
        let item = item?;
        if place >= from {
            made.push_item(item)?;
        }
    }
    Ok(())
}

fn ordered(call: &Call<'_, '_>, row: usize, list: List<'_>, made: &mut ListBuilder) -> Result<()> {
    let mut room = call.meter.room(call.entry.name);
    room.take(list.len()?.saturating_mul(ITEM_BYTES))?;
    let mut items = items(call, list).collect::<Result<Vec<_>>>()?;
    match call.function {
        F::ListSort => {
            items.sort_unstable();
            let descending = call.vectors.get(1).map(|vector| vector.value(row));
            if matches!(descending, Some(esker_format::ValueRef::Bool(true))) {
                items.reverse();
            }
        }
        F::ListReverse => items.reverse(),
        F::ListDistinct => {
            let mut met = BTreeSet::new();
            items.retain(|item| !item.is_null() && met.insert(*item));
        }
        _ => return Err(call.undefined()),
    }
    items.into_iter().try_for_each(|item| Ok(made.push_item(item)?))
}
