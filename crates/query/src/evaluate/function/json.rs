//! Functions of JSON: parts of documents, without decoding the rest.

use std::borrow::Cow;

use esker_format::json::{Json, Kind, Step, array, parse_path, string};

use super::super::written::written;
use super::call::Call;
use crate::Result;
use crate::evaluate::{Lanes, Vector};
use crate::meter::{Meter, Reservation};
use crate::model::{Function as F, is_path};

pub(super) fn call<'a>(call: &Call<'_, 'a>) -> Result<Vector<'a>> {
    let documents = call.texts(0)?;
    let steps = call.vectors.get(1..).unwrap_or_default();
    let part = |row: usize| {
        let mut part = documents.get(row).map(|document| Json::document(document));
        for step in steps {
            part = match &step.lanes {
                Lanes::Ints(places) => {
                    let place = places.get(row).copied().unwrap_or_default();
                    part.and_then(|part| part.index(place))
                }
                Lanes::Bytes(names) => {
                    let name = names.get(row).map(Cow::as_ref).unwrap_or_default();
                    let name = std::str::from_utf8(name).unwrap_or_default();
                    match is_path(name) {
                        true => at_path(call, part, name)?,
                        false => part.and_then(|part| part.get(name)),
                    }
                }
                _ => return Err(call.undefined()),
            };
        }
        Ok::<_, crate::Error>(part)
    };
    if call.function == F::JsonNumber {
        let number = |row| {
            Ok(part(row)?.and_then(|part| match part.kind() {
                Kind::Number(written) => written.parse().ok(),
                _ => None,
            }))
        };
        return call.map(documents.len(), |v: Vec<f64>| Lanes::Floats(v.into()), number);
    }
    if call.function == F::JsonLength {
        let length = |row| {
            let length = part(row)?.and_then(|part| match part.kind() {
                Kind::Array(items) => Some(items.len()),
                Kind::Object(members) => Some(members.len()),
                _ => None,
            });
            Ok(length.and_then(|length| i64::try_from(length).ok()))
        };
        return call.map(documents.len(), |v: Vec<i64>| Lanes::Ints(v.into()), length);
    }
    call.map_bytes(documents.len(), |row, room| {
        let Some(part) = part(row)? else { return Ok(None) };
        Ok(match call.function {
            F::JsonText => text(part, room, call.meter)?.map(String::into_bytes),
            F::JsonType => Some(type_name(part).as_bytes().to_vec()),
            F::JsonKeys => keys(part, call.meter)?,
            _ => Some(part.to_document()),
        }
        .map(Cow::Owned))
    })
}

/// The value as text: a string as it is, anything else as JSON; `None` for null.
fn text<'a>(
    part: Json<'_>,
    room: &mut Reservation<'a>,
    meter: &Meter<'a>,
) -> Result<Option<String>> {
    Ok(match part.kind() {
        Kind::Null => None,
        Kind::String(text) => Some(text.to_owned()),
        _ => Some(written(&part, room, meter)?),
    })
}

/// What is at the end of a path as text.
fn at_path<'d>(
    call: &Call<'_, '_>,
    from: Option<Json<'d>>,
    path: &str,
) -> Result<Option<Json<'d>>> {
    let steps = parse_path(path).map_err(|e| call.error(e))?;
    Ok(steps.into_iter().fold(from, |part, step| match step {
        Step::Name(name) | Step::Part(name) => part.and_then(|part| part.get(&name)),
        Step::Place(place) => part.and_then(|part| part.index(place)),
    }))
}

fn type_name(part: Json<'_>) -> &'static str {
    match part.kind() {
        Kind::Null => "null",
        Kind::Bool(_) => "bool",
        Kind::Number(_) => "number",
        Kind::String(_) => "string",
        Kind::Array(_) => "array",
        Kind::Object(_) => "object",
    }
}

/// The names of an object's members as an array.
fn keys(part: Json<'_>, meter: &Meter<'_>) -> Result<Option<Vec<u8>>> {
    let Kind::Object(members) = part.kind() else { return Ok(None) };
    let mut names = Vec::with_capacity(members.len());
    for (name, _) in members.iter() {
        meter.work(name.len() + 1)?;
        names.push(string(name));
    }
    let names = names.iter().map(|name| Json::document(name));
    Ok(meter.in_steps(|steps| array(names, steps))?.map(Some)?)
}
