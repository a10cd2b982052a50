//! Fitting the values of rows and keys to their fields.

use std::borrow::Cow;

use esker_format::row::KEY_BYTES_MAX;
use esker_format::schema::Index;
use esker_format::{Schema, Value, ValueRef};

use crate::{Error, Result};

/// Checks a row against the schema and fits every value to its field. NULL may stand in the place
/// of what is generated.
pub(crate) fn fit_row<'r>(schema: &Schema, row: &'r [Value]) -> Result<Cow<'r, [Value]>> {
    if row.len() != schema.fields().len() {
        let (want, got) = (schema.fields().len(), row.len());
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name.as_str()).collect();
        return Err(Error::invalid(format!(
            "expected {want} values ({}), found {got}",
            names.join(", ")
        )));
    }
    let mut row = Cow::Borrowed(row);
    for (position, field) in schema.fields().iter().enumerate() {
        let Some(value) = row.get(position) else { continue };
        if let Some(fitted) = fit_changed(field, value)?
            && let Some(slot) = row.to_mut().get_mut(position)
        {
            *slot = fitted;
        }
    }
    refuse_long_key(schema.key_positions().iter().filter_map(|p| row.get(*p)).map(Value::as_ref))?;
    Ok(row)
}

/// Values for fields by position, as the fields take them.
pub(crate) fn fit_changes<N: AsRef<str>>(
    schema: &Schema,
    changes: &[(N, Value)],
) -> Result<Vec<(usize, Value)>> {
    let mut fitted = Vec::with_capacity(changes.len());
    for (name, value) in changes {
        let name = name.as_ref();
        let position = schema.expect_position(name)?;
        let field = schema.fields().get(position);
        let field = field.ok_or_else(|| Error::invalid("unknown field"))?;
        field.refuse_given()?;
        schema.refuse_fixed(field)?;
        fitted.push((position, fit_value(field, value)?));
    }
    Ok(fitted)
}

/// Whether some fields are of the key: a row whose key changes goes to another place, in a
/// transaction.
pub(crate) fn has_key_field(schema: &Schema, mut positions: impl Iterator<Item = usize>) -> bool {
    positions.any(|position| schema.key_positions().contains(&position))
}

/// Whether a row has a key, which may be a row id: that stays.
pub(crate) fn has_key(schema: &Schema, key: &[ValueRef<'_>], row: &[Value]) -> bool {
    let mut parts = schema.key_positions().iter().zip(key);
    parts.all(|(at, value)| row.get(*at).is_some_and(|own| own.as_ref().is_identical(*value)))
}

/// Refuses a row whose key, or values of a unique index, have more bytes than keys may have.
pub(crate) fn refuse_long_values<'a>(
    schema: &Schema,
    value: impl Fn(usize) -> Option<ValueRef<'a>>,
) -> Result<()> {
    refuse_long_key(schema.key_positions().iter().filter_map(|p| value(*p)))?;
    for index in schema.unique_indexes() {
        let compared = index.fields.iter().filter_map(|part| {
            let at = schema.fields().iter().position(|field| field.id == part.field)?;
            value(at).map(|value| part.compared(value))
        });
        refuse_long_unique(index, compared)?;
    }
    Ok(())
}

/// Refuses values of a unique index with more bytes than keys may have.
pub(crate) fn refuse_long_unique<'a>(
    index: &Index,
    values: impl Iterator<Item = ValueRef<'a>>,
) -> Result<()> {
    refuse_long_key(values).map_err(|e| e.at(format_args!("unique index {:?}", index.name)))
}

/// Refuses a key with more bytes than keys may have.
pub(crate) fn refuse_long_key<'a>(key: impl Iterator<Item = ValueRef<'a>>) -> Result<()> {
    // default: what is no text or bytes has none
    let bytes: usize = key.map(|value| value.as_bytes().map_or(0, <[u8]>::len)).sum();
    if bytes > KEY_BYTES_MAX {
        let message = format!("a key of {bytes} bytes, at most {KEY_BYTES_MAX}");
        return Err(Error::invalid(message));
    }
    Ok(())
}

/// Checks a value and fits it to its field.
pub(crate) fn fit_value(field: &esker_format::Field, value: &Value) -> Result<Value> {
    Ok(field.fit(value)?)
}

/// What a value becomes in its field, where it is not kept as it is.
fn fit_changed(field: &esker_format::Field, value: &Value) -> Result<Option<Value>> {
    if let Some(list) = field.as_list(value.as_ref())? {
        return Ok(Some(fit_reference(field, list.as_ref())?.to_owned()));
    }
    let fitted = fit_reference(field, value.as_ref())?;
    Ok((!fitted.is_identical(value.as_ref())).then(|| fitted.to_owned()))
}

pub(crate) fn fit_reference<'a>(
    field: &'a esker_format::Field,
    value: ValueRef<'a>,
) -> Result<ValueRef<'a>> {
    Ok(esker_format::batch::fit_value(field, value)?)
}

/// Fits a key to the key fields.
pub(crate) fn fit_key<'a>(schema: &'a Schema, key: &'a [Value]) -> Result<Vec<ValueRef<'a>>> {
    fit_key_of(schema, key.len(), key.iter().map(Value::as_ref))
}

/// The same of borrowed values.
pub(crate) fn fit_key_of<'a>(
    schema: &'a Schema,
    len: usize,
    mut key: impl Iterator<Item = ValueRef<'a>>,
) -> Result<Vec<ValueRef<'a>>> {
    let positions = schema.key_positions();
    if positions.is_empty() {
        return match key.next().filter(|_| len == 1) {
            Some(one) => Ok(vec![one.coerce(esker_format::DataType::U64)?]),
            None => Err(Error::invalid(format!("expected one row id, found {len} values"))),
        };
    }
    if positions.len() != len {
        let names: Vec<&str> = positions
            .iter()
            .filter_map(|p| schema.fields().get(*p))
            .map(|f| f.name.as_str())
            .collect();
        return Err(Error::invalid(format!(
            "expected a key of {} values ({}), found {len}",
            positions.len(),
            names.join(", "),
        )));
    }
    let mut fitted = Vec::with_capacity(len);
    for (field, value) in schema.key_fields().zip(key) {
        fitted.push(fit_reference(field, value)?);
    }
    Ok(fitted)
}
