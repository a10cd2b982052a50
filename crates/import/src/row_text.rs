//! One row as people write it: a JSON object.

use std::collections::BTreeSet;

use esker_format::suggest::near_or_all;
use esker_format::text::{self, shown};
use esker_format::{Excerpt, Field, Schema, Value};

use crate::export::{json_text, json_value};
use crate::fault::record_error;
use crate::fields::{FieldReader, FieldText, JsonFields};
use crate::json::{Object, own_members, unescaped};
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
    parse(row, schema, RestMembers::refused())
}

/// The same of a new row: what no field of a stream is called after goes to the field of its
/// `rest`, where it has one.
///
/// ```
/// use esker_format::schema::StreamOption;
/// use esker_format::{DataType, Schema};
///
/// let schema = Schema::builder()
///     .field("t", DataType::Timestamp)
///     .nullable("more", DataType::Json)
///     .stream("t", [StreamOption::Rest(Some("more".into()))])
///     .build()?;
/// let event = "{\"t\": \"2026-01-02 03:04:05\", \"run\": 7, \"more\": {\"of\": [1]}}";
/// let row = esker_import::parse_new_json_row(event, &schema).unwrap();
/// assert_eq!(row[1].1.to_string(), r#"{"of":[1],"run":7}"#);
/// # Ok::<(), esker_format::Error>(())
/// ```
///
/// # Errors
/// As for [`parse_json_row`].
pub fn parse_new_json_row(row: &str, schema: &Schema) -> Result<Vec<(String, Value)>> {
    parse(row, schema, RestMembers::of(schema))
}

/// A new row by the names of its values: those of names that no field of a stream has go to the
/// field of its `rest`, where it has one, as members of a JSON object.
///
/// # Errors
/// `BadData` when two of them have one name.
pub fn with_rest(row: Vec<(String, Value)>, schema: &Schema) -> Result<Vec<(String, Value)>> {
    let Some(rest) = schema.rest_position().and_then(|at| schema.fields().get(at)) else {
        return Ok(row);
    };
    let (mut values, mut object) = (Vec::with_capacity(row.len()), vec![b'{']);
    for (name, value) in row {
        let field = schema.resolve(&name).ok().and_then(|at| schema.fields().get(at));
        if field.is_some_and(|field| field.id != rest.id) {
            values.push((name, value));
            continue;
        }
        let start = object.len();
        json_text(&mut object, name.as_bytes());
        let name = Span::new(start, object.len());
        object.push(b':');
        let value_start = object.len();
        json_value(&mut object, value.as_ref());
        let end = object.len();
        let taken = match field {
            Some(_) => own_members(&object, name, Span::new(value_start, end)),
            None => Some(Span::new(start, end)),
        };
        let taken = taken.map(|member| member.of(&object).to_vec());
        object.truncate(start);
        if let Some(member) = taken {
            object.extend(member);
            object.push(b',');
        }
    }
    if object.len() == 1 {
        return Ok(values);
    }
    object.pop();
    object.push(b'}');
    let value = value_of(rest, &object);
    let value = value.map_err(|message| Error::data(message).in_field(&rest.name))?;
    values.push((rest.name.clone(), value));
    Ok(values)
}

fn parse(row: &str, schema: &Schema, mut rest: RestMembers<'_>) -> Result<Vec<(String, Value)>> {
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
        let field = match field(schema, bytes, name) {
            Ok(field) if rest.is_own(field) => {
                if !seen.insert(&field.name) {
                    return Err(at(format!("the row has field {:?} twice", field.name)));
                }
                rest.take_own(bytes, name, value);
                continue;
            }
            Ok(field) => field,
            Err(_) if rest.take(bytes, Span::new(name.start(), value.end())) => continue,
            Err(message) => return Err(at(message)),
        };
        if !seen.insert(&field.name) {
            return Err(at(format!("the row has field {:?} twice", field.name)));
        }
        let value = value_of(field, value.of(bytes)).map_err(|message| {
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
    rest.put(&mut values, bytes)?;
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

fn value_of(field: &Field, raw: &[u8]) -> std::result::Result<Value, String> {
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

/// The members of a new row that no field is called after.
struct RestMembers<'s> {
    /// The field that takes them.
    field: Option<&'s Field>,
    /// Names and values.
    members: Vec<Span>,
}

impl<'s> RestMembers<'s> {
    fn refused() -> Self {
        Self { field: None, members: Vec::new() }
    }

    fn of(schema: &'s Schema) -> Self {
        let field = schema.rest_position().and_then(|at| schema.fields().get(at));
        Self { field, ..Self::refused() }
    }

    /// Whether they go to a field.
    fn is_own(&self, field: &Field) -> bool {
        self.field.is_some_and(|rest| rest.id == field.id)
    }

    /// Takes a member; false where none is taken.
    fn take(&mut self, bytes: &[u8], member: Span) -> bool {
        if !member.of(bytes).is_empty() && self.field.is_some() {
            self.members.push(member);
        }
        self.field.is_some()
    }

    /// Takes the member of the field's own name.
    fn take_own(&mut self, bytes: &[u8], name: Span, value: Span) {
        self.members.extend(own_members(bytes, name, value));
    }

    /// Adds the value of the field to those of the row.
    fn put(&self, values: &mut Vec<(String, Value)>, bytes: &[u8]) -> Result<()> {
        let Some(field) = self.field.filter(|_| !self.members.is_empty()) else { return Ok(()) };
        let members: Vec<&[u8]> = self.members.iter().map(|member| member.of(bytes)).collect();
        let object = [b"{", members.join(&b',').as_slice(), b"}"].concat();
        let value = value_of(field, &object);
        let value = value.map_err(|message| Error::data(message).in_field(&field.name))?;
        values.push((field.name.clone(), value));
        Ok(())
    }
}
