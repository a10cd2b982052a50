//! Values: as JSON has them, or as text where the field's type is written so.

use esker_format::json::{Json, Kind};
use esker_format::text::{parse_f64, parse_value};
use esker_format::{DataType, Decimal, Value};

use super::member::Place;
use crate::Result;

/// The value to compare a field of a type with; of `None`, whatever it is.
pub(super) fn read(
    json: Json<'_>,
    data_type: Option<DataType>,
    place: &Place<'_>,
) -> Result<Value> {
    match json.kind() {
        Kind::Bool(value) => Ok(Value::Bool(value)),
        Kind::Number(written) => numeric(written).ok_or_else(|| place.expected("a number", json)),
        Kind::String(text) => match data_type {
            Some(wanted) if wanted.is_numeric() => {
                let expected = || place.expected(&format!("{wanted}"), json);
                numeric(text.trim()).ok_or_else(expected)
            }
            Some(DataType::Bool) => {
                parse_value(text, DataType::Bool).map_err(|_| place.expected("bool", json))
            }
            // What is written as text is read where it is compared.
            _ => Ok(Value::Text(text.to_owned())),
        },
        Kind::Null => Err(place.error(
            "null compares with nothing; \"exists\" and \"not_exists\" ask whether there is a \
             value",
        )),
        _ => {
            let wanted = data_type.map_or_else(|| "a value".to_owned(), |t| t.to_string());
            Err(place.expected(&wanted, json))
        }
    }
}

/// A number with all its digits.
fn numeric(text: &str) -> Option<Value> {
    if let Ok(value) = text.parse::<i64>() {
        return Some(Value::Int(value));
    }
    if let Ok(value) = text.parse::<u64>() {
        return Some(Value::Uint(value));
    }
    if let Ok(value) = text.parse::<Decimal>() {
        return Some(Value::Decimal(value));
    }
    parse_f64(text.as_bytes()).map(Value::Float)
}
