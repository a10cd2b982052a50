//! The members of objects of JSON, and the elements of arrays.

use esker_format::ValueRef;
use esker_format::json::{Items, Json, Kind, Members};

use super::MadeRows;
use crate::model::TableFunction;
use crate::{Error, Result};

/// What a function makes rows of.
enum Parts<'d> {
    Members(Members<'d>),
    Elements(Items<'d>),
}

impl<'d> Parts<'d> {
    fn of(function: TableFunction, document: Json<'d>) -> Result<Self> {
        use TableFunction as F;
        let takes_array = matches!(function, F::JsonArrayElements | F::JsonArrayElementsText);
        let found = match document.kind() {
            Kind::Object(members) if !takes_array => return Ok(Self::Members(members)),
            Kind::Array(items) if takes_array => return Ok(Self::Elements(items)),
            Kind::Object(_) => "an object",
            Kind::Array(_) => "an array",
            Kind::String(_) => "a string",
            Kind::Number(_) => "a number",
            Kind::Bool(_) => "a bool",
            Kind::Null => "null",
        };
        let wanted = if takes_array { "an array" } else { "an object" };
        let name = function.name();
        Err(Error::out_of_range(format!("{name}: expected {wanted} of JSON, found {found}")))
    }
}

/// How many rows a document makes.
pub(super) fn count(function: TableFunction, document: Json<'_>) -> Result<u128> {
    Ok(match Parts::of(function, document)? {
        Parts::Members(members) => members.len() as u128,
        Parts::Elements(items) => items.len() as u128,
    })
}

/// Adds the rows of a document: members in the order of their names, elements in their own.
pub(super) fn add_rows(
    function: TableFunction,
    document: Json<'_>,
    rows: &mut MadeRows<'_>,
) -> Result<()> {
    use TableFunction as F;
    let is_text = matches!(function, F::JsonEachText | F::JsonArrayElementsText);
    match Parts::of(function, document)? {
        Parts::Members(members) => {
            for (name, value) in members.iter() {
                if rows.is_full() {
                    break;
                }
                let name = ValueRef::Text(name);
                match function {
                    F::JsonObjectKeys => rows.push(&[name])?,
                    _ => with_value(value, is_text, &mut |value| rows.push(&[name, value]))?,
                }
            }
        }
        Parts::Elements(items) => {
            for value in items.iter() {
                if rows.is_full() {
                    break;
                }
                with_value(value, is_text, &mut |value| rows.push(&[value]))?;
            }
        }
    }
    Ok(())
}

/// Does something with a value, as a document of its own or as text.
fn with_value(
    value: Json<'_>,
    is_text: bool,
    run: &mut dyn FnMut(ValueRef<'_>) -> Result<()>,
) -> Result<()> {
    if !is_text {
        return run(ValueRef::Json(&value.to_document()));
    }
    match value.to_text() {
        Some(text) => run(ValueRef::Text(&text)),
        None => run(ValueRef::Null),
    }
}
