//! Operators on places inside JSON documents, or on whole ones.

use esker_format::json::{
    Items, Json, Kind, Replacement, Step, add_numbers, array, compare_numbers, edit, from_value,
    multiply_numbers,
};
use esker_format::{Error, Field, Result, Value, ValueRef};

use super::Operator;

/// What comes of a field's value.
pub(super) fn apply(
    old: &Value,
    path: &[String],
    operator: Operator,
    operand: &[u8],
) -> crate::Result<Value> {
    let replacement =
        edit(document(old), &parts(path), &mut |found| change(operator, found, operand))?;
    Ok(replaced(old, replacement))
}

/// The steps of a path of names alone.
fn parts(path: &[String]) -> Vec<Step> {
    path.iter().cloned().map(Step::Part).collect()
}

/// Moves what is at one path to another.
pub(super) fn rename(old: &Value, from: &[String], to: &[String]) -> crate::Result<Value> {
    // What both paths lead through is written once.
    let shared = from.iter().zip(to).take_while(|(from, to)| from == to).count();
    let shared = shared.min(from.len().saturating_sub(1)).min(to.len().saturating_sub(1));
    let (from, to) = (parts(from), parts(to));
    let (way, from) = from.split_at(shared);
    // default: the way is shared by both
    let to = to.get(shared..).unwrap_or_default();
    let replacement = match way {
        [] => moved(document(old), from, to)?,
        way => edit(document(old), way, &mut |found| moved(found, from, to))?,
    };
    Ok(replaced(old, replacement))
}

fn moved(found: Option<Json<'_>>, from: &[Step], to: &[Step]) -> Result<Replacement> {
    let mut value = None;
    let removed = edit(found, from, &mut |found| {
        value = found.map(Json::to_document);
        Ok(if found.is_some() { Replacement::Remove } else { Replacement::Keep })
    })?;
    let Some(value) = value else { return Ok(Replacement::Keep) };
    let rest = match &removed {
        Replacement::Put(rest) => Some(Json::document(rest)),
        Replacement::Keep | Replacement::Remove => None,
    };
    let mut value = Some(value);
    // default: it is put once
    edit(rest, to, &mut |_| Ok(value.take().map_or(Replacement::Keep, Replacement::Put)))
}

/// Refuses a document that is longer than a value can be.
pub(super) fn expect_length(field: &Field, document: &[u8]) -> crate::Result<()> {
    let (len, most) = (document.len(), esker_format::row::VALUE_BYTES_MAX);
    if len <= most {
        return Ok(());
    }
    let name = &field.name;
    Err(crate::Error::invalid(format!("field {name:?}: {len} bytes, at most {most}")))
}

fn document(value: &Value) -> Option<Json<'_>> {
    match value {
        Value::Json(document) => Some(Json::document(document)),
        _ => None,
    }
}

fn replaced(old: &Value, replacement: Replacement) -> Value {
    match replacement {
        Replacement::Keep => old.clone(),
        Replacement::Remove => Value::Null,
        Replacement::Put(document) => Value::Json(document),
    }
}

fn change(operator: Operator, found: Option<Json<'_>>, operand: &[u8]) -> Result<Replacement> {
    let value = Json::document(operand);
    Ok(match operator {
        Operator::Set | Operator::CurrentTime => Replacement::Put(operand.to_vec()),
        Operator::Unset => Replacement::Remove,
        Operator::Increment | Operator::Multiply => calculate(operator, found, value)?,
        Operator::Min | Operator::Max => match found {
            Some(found) if !is_better(operator, found, value)? => Replacement::Keep,
            _ => Replacement::Put(operand.to_vec()),
        },
        Operator::Push | Operator::PushFront | Operator::AddToSet => add(operator, found, value)?,
        Operator::Pop | Operator::PopFront | Operator::Pull => remove(operator, found, value)?,
        // It has two places: see `rename`.
        Operator::Rename => Replacement::Keep,
    })
}

fn expected(expected: &str, found: Json<'_>) -> Error {
    Error::invalid(format!("expected {expected}, found {}", found.kind_name()))
}

fn calculate(
    operator: Operator,
    found: Option<Json<'_>>,
    operand: Json<'_>,
) -> Result<Replacement> {
    let Kind::Number(operand) = operand.kind() else {
        return Err(expected("a number", operand));
    };
    let number = match found {
        None => "0",
        Some(found) => match found.kind() {
            Kind::Number(written) => written,
            _ => return Err(expected("a number", found)),
        },
    };
    let is_sum = operator == Operator::Increment;
    let whole = number.parse::<i64>().ok().zip(operand.parse::<i64>().ok());
    let whole = whole.and_then(|(a, b)| if is_sum { a.checked_add(b) } else { a.checked_mul(b) });
    if let Some(whole) = whole {
        return Ok(Replacement::Put(from_value(ValueRef::Int(whole))?));
    }
    let result = match is_sum {
        true => add_numbers(number, operand)?,
        false => multiply_numbers(number, operand)?,
    };
    Ok(Replacement::Put(esker_format::json::parse(&result)?))
}

/// Whether a value is to take the place of what was found: both are numbers, or both strings.
fn is_better(operator: Operator, found: Json<'_>, value: Json<'_>) -> Result<bool> {
    let order = match (value.kind(), found.kind()) {
        (Kind::Number(a), Kind::Number(b)) => compare_numbers(a, b),
        (Kind::String(a), Kind::String(b)) => a.cmp(b),
        (Kind::Number(_), _) => return Err(expected("a number", found)),
        (Kind::String(_), _) => return Err(expected("a string", found)),
        _ => return Err(expected("a number or a string to compare with", value)),
    };
    Ok(if operator == Operator::Min { order.is_lt() } else { order.is_gt() })
}

fn items(found: Json<'_>) -> Result<Items<'_>> {
    match found.kind() {
        Kind::Array(items) => Ok(items),
        _ => Err(expected("an array", found)),
    }
}

fn add(operator: Operator, found: Option<Json<'_>>, value: Json<'_>) -> Result<Replacement> {
    let Some(found) = found else {
        return list([value].into_iter());
    };
    let items = items(found)?;
    if operator == Operator::AddToSet && items.iter().any(|item| item.is_same(value)) {
        return Ok(Replacement::Keep);
    }
    let (before, after) = match operator {
        Operator::PushFront => (Some(value), None),
        _ => (None, Some(value)),
    };
    list(before.into_iter().chain(items.iter()).chain(after))
}

fn remove(operator: Operator, found: Option<Json<'_>>, value: Json<'_>) -> Result<Replacement> {
    let Some(found) = found else { return Ok(Replacement::Keep) };
    let items = items(found)?;
    if items.is_empty() {
        return Ok(Replacement::Keep);
    }
    match operator {
        Operator::Pop => list(items.iter().take(items.len() - 1)),
        Operator::PopFront => list(items.iter().skip(1)),
        _ => list(items.iter().filter(|item| !item.is_same(value))),
    }
}

/// These elements take the place of what is there.
fn list<'a>(items: impl Iterator<Item = Json<'a>>) -> Result<Replacement> {
    Ok(Replacement::Put(array(items, &mut |_| Ok(()))?))
}
