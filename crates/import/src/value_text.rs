//! One value as people write it, read as a file's fields are.

use esker_format::{DataType, Value, text};

use crate::{Error, Result};

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
    text::parse_value(text, data_type).map_err(|e| Error::data(e.to_string()))
}
