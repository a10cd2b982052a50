//! Functions that make documents: of values, and of other documents.

use std::borrow::Cow;

use esker_format::ValueRef;
use esker_format::json::{
    Json, Kind, Replacement, Step, Steps, array, edit_in_steps, expect_depth, from_value, merge,
    object, parse_path,
};

use super::call::Call;
use crate::Result;
use crate::evaluate::{Lanes, Vector};
use crate::model::{Function as F, is_path};

pub(super) fn call<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    let failed = |e: esker_format::Error| call.error(e);
    let owned = |document: Option<Vec<u8>>| Ok(document.map(Cow::Owned));
    match call.function {
        F::JsonContains => call.map(len, Lanes::Bools, |row| {
            let (Some(whole), Some(part)) = (call.document(0, row)?, call.document(1, row)?) else {
                return Ok(None);
            };
            call.meter.in_steps(|steps| whole.contains(part, steps))?.map(Some).map_err(failed)
        }),
        F::JsonMerge => call.map_bytes(len, |row, _| {
            let (document, patch) = (call.document(0, row)?, call.document(1, row)?);
            let Some(patch) = patch else { return Ok(None) };
            let merged = call.meter.in_steps(|steps| merge(document, patch, steps))?;
            owned(Some(merged.map_err(failed)?))
        }),
        F::JsonRemove => call.map_bytes(len, |row, _| {
            let removed = removed(call, row)?;
            Ok(removed.map(Cow::Owned))
        }),
        F::JsonSet | F::JsonPush => call.map_bytes(len, |row, _| {
            let last = call.vectors.len().saturating_sub(1);
            let document = call.document(0, row)?;
            let mut path = call.path(1..last, row)?;
            let mut value = from_value(call.value(last, row)?).map_err(failed)?;
            if call.function == F::JsonPush {
                let found = document.and_then(|document| document.at(&path));
                match end_of(found).map_err(failed)? {
                    Some(end) => path.push(Step::Place(end)),
                    None => {
                        let items = [Json::document(&value)].into_iter();
                        value =
                            call.meter.in_steps(|steps| array(items, steps))?.map_err(failed)?;
                    }
                }
            }
            let put = &mut |_: Option<Json<'_>>| Ok(Replacement::Put(value.clone()));
            let steps = |steps: Steps<'_>| edit_in_steps(document, &path, put, steps);
            let edited = call.meter.in_steps(steps)?;
            owned(replaced(document, edited.map_err(failed)?))
        }),
        F::JsonArray => call.map_bytes(len, |row, _| {
            let values = call.values(row, 0, 1)?;
            let array = call.meter.in_steps(|steps| {
                let array = array(values.iter().map(|value| Json::document(value)), steps)?;
                expect_depth(&array, steps)?;
                Ok(array)
            });
            owned(Some(array?.map_err(failed)?))
        }),
        _ => call.map_bytes(len, |row, _| {
            let values = call.values(row, 1, 2)?;
            let name = |i: usize| match call.value(i * 2, row)? {
                ValueRef::Text(name) => Ok(name.to_owned()),
                _ => Err(call.error("expected a name, found NULL")),
            };
            let names = (0..values.len()).map(name).collect::<Result<Vec<_>>>()?;
            let values = values.iter().map(|value| Json::document(value));
            let members = names.iter().map(String::as_str).zip(values);
            let object = call.meter.in_steps(|steps| object(members, steps))?;
            owned(Some(object.map_err(failed)?))
        }),
    }
}

/// The document of a row without what is at the end of its path.
fn removed(call: &Call<'_, '_>, row: usize) -> Result<Option<Vec<u8>>> {
    let document = call.document(0, row)?;
    let path = call.path(1..call.vectors.len(), row)?;
    if document.and_then(|document| document.at(&path)).is_none() {
        return Ok(document.map(Json::to_document));
    }
    let remove = &mut |found: Option<Json<'_>>| {
        Ok(if found.is_some() { Replacement::Remove } else { Replacement::Keep })
    };
    let edit = |steps: Steps<'_>| edit_in_steps(document, &path, remove, steps);
    let removed = call.meter.in_steps(edit)?.map_err(|e| call.error(e))?;
    Ok(replaced(document, removed))
}

/// The place behind the elements of an array; none where nothing is found.
fn end_of(found: Option<Json<'_>>) -> esker_format::Result<Option<i64>> {
    let Some(found) = found else { return Ok(None) };
    match found.kind() {
        Kind::Array(items) => {
            let end = i64::try_from(items.len());
            end.map(Some).map_err(|_| esker_format::Error::invalid("the array is too long"))
        }
        _ => {
            let found = found.kind_name();
            Err(esker_format::Error::invalid(format!("expected an array, found {found}")))
        }
    }
}

fn replaced(document: Option<Json<'_>>, replacement: Replacement) -> Option<Vec<u8>> {
    match replacement {
        Replacement::Keep => document.map(Json::to_document),
        Replacement::Remove => None,
        Replacement::Put(document) => Some(document),
    }
}

impl Call<'_, '_> {
    /// The document of a row; `None` for NULL.
    fn document(&self, i: usize, row: usize) -> Result<Option<Json<'_>>> {
        if self.operand(i)?.is_null(row) {
            return Ok(None);
        }
        Ok(self.texts(i)?.get(row).map(|document| Json::document(document)))
    }

    fn value(&self, i: usize, row: usize) -> Result<ValueRef<'_>> {
        Ok(self.operand(i)?.value(row))
    }

    /// Every `step`th operand from `first` on, as documents.
    fn values(&self, row: usize, first: usize, step: usize) -> Result<Vec<Vec<u8>>> {
        let at = (first..self.vectors.len()).step_by(step);
        let document = |i| {
            let value = self.value(i, row)?;
            self.meter.work(value.as_bytes().map_or(0, <[u8]>::len))?;
            from_value(value).map_err(|e| self.error(e))
        };
        at.map(document).collect()
    }

    /// Names of members and places of elements.
    fn path(&self, operands: std::ops::Range<usize>, row: usize) -> Result<Vec<Step>> {
        let mut steps = Vec::with_capacity(operands.len());
        for i in operands {
            match self.value(i, row)? {
                ValueRef::Int(place) => steps.push(Step::Place(place)),
                ValueRef::Text(path) if is_path(path) => {
                    steps.extend(parse_path(path).map_err(|e| self.error(e))?);
                }
                ValueRef::Text(name) => steps.push(Step::Part(name.to_owned())),
                _ => return Err(self.error("expected a name or a place, found NULL")),
            }
        }
        Ok(steps)
    }
}
