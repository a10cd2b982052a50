//! Functions of JSON: parts of documents, without decoding the rest.

use std::borrow::Cow;

use esker_format::json::{Json, Kind};

use super::Call;
use crate::Result;
use crate::exec::vector::{Lanes, Vector};
use crate::model::Function as F;

pub(super) fn call<'a>(call: &Call<'a>) -> Result<Vector<'a>> {
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
                    part.and_then(|part| part.get(name))
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
    let one = |row: usize| {
        Ok(part(row)?.and_then(|part| match call.function {
            F::JsonText => part.to_text().map(String::into_bytes),
            _ => Some(part.to_document()),
        }))
    };
    let lanes = |values: Vec<Vec<u8>>| Lanes::Bytes(values.into_iter().map(Cow::Owned).collect());
    call.map(documents.len(), lanes, one)
}
