//! Values: as JSON has them, or as text where the field's type is written so.

use esker_format::text::parse_value;
use esker_format::{DataType, Decimal, Value};
use serde_json::Value as Json;

use super::member::Place;
use crate::Result;

/// The value to compare a field of a type with; of `None`, whatever it is.
pub(super) fn read(json: &Json, data_type: Option<DataType>, place: &Place<'_>) -> Result<Value> {
    match json {
        Json::Bool(value) => Ok(Value::Bool(*value)),
        Json::Number(number) => {
            let text = number.to_string();
            numeric(&text).ok_or_else(|| place.expected("a number", json))
        }
        Json::String(text) => match data_type {
            Some(wanted) if wanted.is_numeric() => {
                let expected = || place.expected(&format!("{wanted}"), json);
                numeric(text.trim()).ok_or_else(expected)
            }
            Some(DataType::Bool) => {
                parse_value(text, DataType::Bool).map_err(|_| place.expected("bool", json))
            }
            // What is written as text is read where it is compared.
            _ => Ok(Value::Text(text.clone())),
        },
        Json::Null => Err(place.error(
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
    let value = text.parse::<f64>().ok()?;
    Some(Value::Float(value))
}
