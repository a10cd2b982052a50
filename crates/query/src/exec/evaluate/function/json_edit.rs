//! Functions that make documents: of values, and of other documents.

use std::borrow::Cow;

use esker_format::ValueRef;
use esker_format::json::{
    Json, Kind, Replacement, Step, array, edit, expect_depth, from_value, is_path, merge, object,
    parse_path,
};

use super::Call;
use crate::Result;
use crate::exec::vector::{Lanes, Vector};
use crate::model::Function as F;

pub(super) fn call<'a>(call: &Call<'a>, len: usize) -> Result<Vector<'a>> {
    let failed = |e: esker_format::Error| call.error(e);
    let lanes = |values: Vec<Vec<u8>>| Lanes::Bytes(values.into_iter().map(Cow::Owned).collect());
    match call.function {
        F::JsonContains => call.map(len, Lanes::Bools, |row| {
            let (Some(whole), Some(part)) = (call.document(0, row)?, call.document(1, row)?) else {
                return Ok(None);
            };
            Ok(Some(whole.contains(part)))
        }),
        F::JsonMerge => call.map(len, lanes, |row| {
            let (document, patch) = (call.document(0, row)?, call.document(1, row)?);
            patch.map(|patch| merge(document, patch).map_err(failed)).transpose()
        }),
        F::JsonRemove => call.map(len, lanes, |row| {
            let document = call.document(0, row)?;
            let path = call.path(1..call.vectors.len(), row)?;
            if document.and_then(|document| document.at(&path)).is_none() {
                return Ok(document.map(Json::to_document));
            }
            let removed = edit(document, &path, &mut |found| {
                Ok(if found.is_some() { Replacement::Remove } else { Replacement::Keep })
            });
            Ok(replaced(document, removed.map_err(failed)?))
        }),
        F::JsonSet | F::JsonPush => call.map_all(len, lanes, |row| {
            let last = call.vectors.len().saturating_sub(1);
            let document = call.document(0, row)?;
            let path = call.path(1..last, row)?;
            let value = from_value(call.value(last, row)?).map_err(failed)?;
            let edited = edit(document, &path, &mut |found| match call.function {
                F::JsonSet => Ok(Replacement::Put(value.clone())),
                _ => pushed(found, &value),
            });
            Ok(replaced(document, edited.map_err(failed)?))
        }),
        F::JsonArray => call.map_all(len, lanes, |row| {
            let values = call.values(row, 0, 1)?;
            let array = array(values.iter().map(|value| Json::document(value)));
            expect_depth(&array).map_err(failed)?;
            Ok(Some(array))
        }),
        _ => call.map_all(len, lanes, |row| {
            let values = call.values(row, 1, 2)?;
            let name = |i: usize| match call.value(i * 2, row)? {
                ValueRef::Text(name) => Ok(name.to_owned()),
                _ => Err(call.error("expected a name, found NULL")),
            };
            let names = (0..values.len()).map(name).collect::<Result<Vec<_>>>()?;
            let values = values.iter().map(|value| Json::document(value));
            let members = names.iter().map(String::as_str).zip(values);
            object(members).map(Some).map_err(failed)
        }),
    }
}

/// What becomes of an array with one more element.
fn pushed(found: Option<Json<'_>>, value: &[u8]) -> esker_format::Result<Replacement> {
    let value = Json::document(value);
    Ok(Replacement::Put(match found.map(|found| (found, found.kind())) {
        None => array([value].into_iter()),
        Some((_, Kind::Array(items))) => array(items.iter().chain([value])),
        Some((found, _)) => {
            let found = found.kind_name();
            let message = format!("expected an array, found {found}");
            return Err(esker_format::Error::invalid(message));
        }
    }))
}

fn replaced(document: Option<Json<'_>>, replacement: Replacement) -> Option<Vec<u8>> {
    match replacement {
        Replacement::Keep => document.map(Json::to_document),
        Replacement::Remove => None,
        Replacement::Put(document) => Some(document),
    }
}

impl Call<'_> {
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
        at.map(|i| from_value(self.value(i, row)?).map_err(|e| self.error(e))).collect()
    }

    /// Names of members and places of elements.
    fn path(&self, operands: std::ops::Range<usize>, row: usize) -> Result<Vec<String>> {
        let mut steps = Vec::with_capacity(operands.len());
        for i in operands {
            match self.value(i, row)? {
                ValueRef::Int(place) => steps.push(place.to_string()),
                ValueRef::Text(path) if is_path(path) => {
                    let path = parse_path(path).map_err(|e| self.error(e))?;
                    steps.extend(path.into_iter().map(|step| match step {
                        Step::Name(name) => name,
                        Step::Place(place) => place.to_string(),
                    }));
                }
                ValueRef::Text(name) => steps.push(name.to_owned()),
                _ => return Err(self.error("expected a name or a place, found NULL")),
            }
        }
        Ok(steps)
    }

    /// One value for each row, whatever its operands are.
    fn map_all<'v, T: Default>(
        &self,
        len: usize,
        lanes: impl FnOnce(Vec<T>) -> Lanes<'v>,
        one: impl FnMut(usize) -> Result<Option<T>>,
    ) -> Result<Vector<'v>> {
        let found = (0..len).map(one).collect::<Result<Vec<_>>>()?;
        let nulls: Vec<bool> = found.iter().map(Option::is_none).collect();
        let values = found.into_iter().map(Option::unwrap_or_default).collect();
        let nulls = nulls.contains(&true).then_some(nulls);
        Ok(Vector::new(self.data_type, lanes(values), nulls))
    }
}
