//! One row as people write it: a JSON object.

use std::collections::BTreeSet;

use esker_format::suggest::near_or_all;
use esker_format::text::{self, shown};
use esker_format::{Excerpt, Field, Schema, Value};

use crate::fault::record_error;
use crate::fields::{FieldReader, FieldText, JsonFields};
use crate::json::{Object, unescaped};
use crate::tokenizer::{Fault, FaultKind, Span};
use crate::{Error, Result};

/// Reads a row from a JSON object: the fields that it has, with their values.
///
/// ```
/// let schema = esker_import::schema_text::parse("id i64 not null, name text")?;
/// let row = esker_import::parse_json_row("{\"id\": 9007199254740993}", &schema)?;
/// assert_eq!(row, [("id".to_owned(), 9007199254740993i64.into())]);
/// let error = esker_import::parse_json_row("{\"nmae\": \"x\"}", &schema).unwrap_err();
/// assert_eq!(error.to_string(), "unknown field \"nmae\"; did you mean \"name\"?");
/// # Ok::<(), esker_import::Error>(())
/// ```
///
/// # Errors
/// `BadData` with the place and what was expected there.
pub fn parse_json_row(row: &str, schema: &Schema) -> Result<Vec<(String, Value)>> {
    let bytes = row.trim_end().as_bytes();
    let start = bytes.len() - row.trim().len();
    let fault = |fault| record_error(&[], bytes, fault).without_line();
    let mut object = Object::new(bytes, start).map_err(fault)?;
    let (mut values, mut seen) = (Vec::new(), BTreeSet::new());
    while let Some((name, value)) = object.next_member().map_err(fault)? {
        let at = |message: String| {
            let length = name.end() - name.start();
            Error::data(message).with_excerpt(Excerpt::of(bytes, name.start(), length))
        };
        let field = field(schema, bytes, name).map_err(at)?;
        if !seen.insert(&field.name) {
            return Err(at(format!("the row has field {:?} twice", field.name)));
        }
        let value = json_value(field, value.of(bytes)).map_err(|message| {
            let length = value.end() - value.start();
            let error = Error::data(message).in_field(&field.name);
            error.with_excerpt(Excerpt::of(bytes, value.start(), length))
        })?;
        values.push((field.name.clone(), value));
    }
    if object.end() < bytes.len() {
        let kind = FaultKind::Expected("nothing behind the row");
        return Err(fault(Fault { position: object.end(), kind }));
    }
    Ok(values)
}

fn field<'a>(
    schema: &'a Schema,
    bytes: &[u8],
    name: Span,
) -> std::result::Result<&'a Field, String> {
    let quoted = name.of(bytes);
    let plain = unescaped(quoted.get(1..quoted.len() - 1).unwrap_or_default()).unwrap_or_default();
    let name = String::from_utf8_lossy(&plain);
    let fields = schema.fields();
    fields.iter().find(|field| field.name == name).ok_or_else(|| {
        let near = near_or_all(&name, "fields", fields.iter().map(|field| field.name.as_str()));
        format!("unknown field {name:?}{near}")
    })
}

fn json_value(field: &Field, raw: &[u8]) -> std::result::Result<Value, String> {
    let data_type = field.data_type;
    match JsonFields::of(data_type).read(raw) {
        FieldText::Null | FieldText::Missing => Ok(Value::Null),
        FieldText::Text(value) => match std::str::from_utf8(&value) {
            Ok(value) => text::parse_value(value, data_type).map_err(|e| e.to_string()),
            Err(_) => Err(format!("expected text in UTF-8, found {}", shown(&value))),
        },
        FieldText::Misfit => {
            let (expected, found) = (field.expected(), String::from_utf8_lossy(raw));
            Err(format!("expected {expected}, found {found}"))
        }
    }
}
