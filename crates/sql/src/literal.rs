//! Constants.

use esker_format::decimal::DIGITS_MAX;
use esker_format::{DataType, Decimal, Value};
use esker_query::parse_value;
use sqlparser::ast;

use crate::statement::unsupported;
use crate::{Error, Result, type_name};

/// A constant as it is written, with the sign before it.
pub(crate) fn convert(value: &ast::Value, negative: bool) -> Result<Value> {
    Ok(match value {
        ast::Value::Number(digits, _) => number(digits, negative)?,
        other if negative => return Err(unsupported("a minus sign", other)),
        // `E'a\n'` and `U&'\0041'` have been read: what they stand for is there.
        ast::Value::SingleQuotedString(text)
        | ast::Value::EscapedStringLiteral(text)
        | ast::Value::UnicodeStringLiteral(text)
        | ast::Value::NationalStringLiteral(text) => Value::Text(text.clone()),
        ast::Value::DollarQuotedString(quoted) => Value::Text(quoted.value.clone()),
        ast::Value::Boolean(truth) => Value::Bool(*truth),
        ast::Value::Null => Value::Null,
        ast::Value::HexStringLiteral(digits) => Value::Bytes(hex(digits)?),
        other => return Err(unsupported("this kind of constant", other)),
    })
}

/// `DATE '…'`, `TIMESTAMP '…'`, or any other type's name before its text.
pub(crate) fn typed(string: &ast::TypedString) -> Result<Value> {
    let ast::Value::SingleQuotedString(text) = &string.value.value else {
        return Err(unsupported("this kind of constant", string));
    };
    let data_type = type_name::convert(&string.data_type)?;
    if type_name::length(&string.data_type, data_type)?.is_some() || data_type == DataType::Bytes {
        return Err(unsupported("this kind of constant", string));
    }
    parse_value(text, data_type)
}

/// Whole numbers are integers, or decimals where they fit no integer; with a point they are
/// decimals, exact; with an exponent, or more digits than a decimal has, they are floats.
fn number(digits: &str, negative: bool) -> Result<Value> {
    let signed = if negative { format!("-{digits}") } else { digits.to_owned() };
    let is_float = digits.contains(['e', 'E']);
    if !is_float
        && digits.contains('.')
        && let Some(decimal) = Decimal::parse(signed.as_bytes())
    {
        return Ok(Value::Decimal(decimal));
    }
    if is_float || digits.contains('.') {
        let value: f64 = signed.parse().map_err(|e: std::num::ParseFloatError| {
            Error::invalid(format!("{signed} is not a number: {e}"))
        })?;
        if value.is_infinite() {
            return Err(Error::invalid(format!("{signed} does not fit a 64-bit float")));
        }
        return Ok(Value::Float(value));
    }
    let value = signed.parse().map(Value::Int).or_else(|_| signed.parse().map(Value::Uint)).ok();
    let value = value.or_else(|| Decimal::parse(signed.as_bytes()).map(Value::Decimal));
    value.ok_or_else(|| {
        Error::invalid(format!("{signed} is a whole number of more than {DIGITS_MAX} digits"))
    })
}

fn hex(digits: &str) -> Result<Vec<u8>> {
    let bad = || Error::invalid(format!("X'{digits}': expected pairs of hexadecimal digits"));
    let nibble = |c: char| c.to_digit(16).and_then(|d| u8::try_from(d).ok());
    let nibbles: Option<Vec<u8>> = digits.chars().map(nibble).collect();
    let nibbles = nibbles.ok_or_else(bad)?;
    let (pairs, rest) = nibbles.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(bad());
    }
    Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
