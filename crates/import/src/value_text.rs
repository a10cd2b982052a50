//! One value as people write it, read as a file's fields are.

use esker_format::{DataType, Value};

use crate::error::shown;
use crate::{Error, Result, field};

/// Reads a value of a type, written as in a CSV field without quotes.
///
/// ```
/// use esker_format::{DataType, Value};
///
/// assert_eq!(esker_import::parse_value("42", DataType::I64)?, Value::Int(42));
/// let error = esker_import::parse_value("x", DataType::U8).unwrap_err();
/// assert_eq!(error.to_string(), "expected u8 (0 to 255), found \"x\"");
/// # Ok::<(), esker_import::Error>(())
/// ```
///
/// # Errors
/// `BadData` saying what was expected.
pub fn parse_value(text: &str, data_type: DataType) -> Result<Value> {
    let bytes = text.as_bytes();
    let value = match data_type {
        DataType::Bool => field::parse_bool(bytes).map(|v| Value::Bool(v == 1)),
        DataType::I8 | DataType::I16 | DataType::I32 | DataType::I64 => {
            field::parse_signed(bytes).map(Value::Int)
        }
        DataType::U8 | DataType::U16 | DataType::U32 | DataType::U64 => {
            field::parse_unsigned(bytes).map(Value::Uint)
        }
        DataType::F32 => field::parse_f32(bytes).map(Value::Float32),
        DataType::F64 => field::parse_f64(bytes).map(Value::Float),
        DataType::Text => Some(Value::Text(text.to_owned())),
        DataType::Bytes => field::parse_hex(bytes).map(Value::Bytes),
        DataType::Date => field::parse_date(bytes).map(Value::Date),
        DataType::Timestamp => field::TimestampParser::default().parse(bytes).map(Value::Timestamp),
    };
    let fitting = value.filter(|v| v.as_ref().coerce(data_type).is_ok());
    fitting.ok_or_else(|| {
        let expected = field::expected(data_type);
        Error::data(format!("expected {expected}, found {}", shown(bytes)))
    })
}
