//! Values of fields.
//!
//! What MessagePack has no form for is an extension, by the number of its type: a date is an `i32`
//! (days), times are `i64` (microseconds), a UUID and an IPv6 address their 16 bytes, an IPv4
//! address 4 bytes, all most significant byte first; decimals, JSON and intervals are their text; a
//! list is the name of the type of its items and an array of them.
#![allow(clippy::big_endian_bytes, reason = "MessagePack's numbers are")]

use esker_format::{
    DataType, Decimal, Interval, List, ListBuilder, ListElement, Value, ValueRef, json,
};

use crate::pack::{self, Token};
use crate::{Error, Reader, Result};

/// The numbers of extension types.
const DATE: u8 = 1;
const TIMESTAMP: u8 = 2;
const TIME: u8 = 3;
const UUID: u8 = 4;
const IPV4: u8 = 5;
const IPV6: u8 = 6;
const DECIMAL: u8 = 7;
const JSON: u8 = 8;
const INTERVAL: u8 = 9;
const LIST: u8 = 10;

/// Appends a value.
#[inline]
pub fn write(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => pack::nil(out),
        ValueRef::Bool(v) => pack::bool(out, v),
        ValueRef::Int(v) => pack::int(out, v),
        ValueRef::Uint(v) => pack::uint(out, v),
        ValueRef::Float32(v) => pack::f32(out, v),
        ValueRef::Float(v) => pack::f64(out, v),
        ValueRef::Text(v) => pack::text(out, v),
        ValueRef::Bytes(v) => pack::bytes(out, v),
        other => write_other(out, other),
    }
}

fn write_other(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Date(v) => pack::extension(out, DATE, &v.to_be_bytes()),
        ValueRef::Timestamp(v) => pack::extension(out, TIMESTAMP, &v.to_be_bytes()),
        ValueRef::Time(v) => pack::extension(out, TIME, &v.to_be_bytes()),
        ValueRef::Uuid(v) => pack::extension(out, UUID, v),
        ValueRef::Ipv4(v) => pack::extension(out, IPV4, &v.to_be_bytes()),
        ValueRef::Ipv6(v) => pack::extension(out, IPV6, v),
        ValueRef::Decimal(v) => pack::extension(out, DECIMAL, v.to_string().as_bytes()),
        ValueRef::Json(_) => pack::extension(out, JSON, value.to_string().as_bytes()),
        ValueRef::Interval(_) => pack::extension(out, INTERVAL, value.to_string().as_bytes()),
        ValueRef::List(bytes) => write_list(out, bytes),
        other => pack::text(out, &other.to_string()),
    }
}

fn write_list(out: &mut Vec<u8>, bytes: &[u8]) {
    let Ok((list, items)) = List::of(bytes).and_then(|list| Ok((list, list.values()?))) else {
        // A checksum would have to miss such bytes first: it is shown, not taken for NULL.
        return pack::text(out, &ValueRef::List(bytes).to_string());
    };
    let mut payload = Vec::new();
    pack::text(&mut payload, &list.element().data_type().to_string());
    write_values(&mut payload, items.iter().map(Value::as_ref));
    pack::extension(out, LIST, &payload);
}

fn read_list(payload: &[u8]) -> Result<Vec<u8>> {
    let wrong = |e: &dyn std::fmt::Display| Error::new(format!("list: {e}"));
    let mut reader = Reader::new(payload);
    let data_type: DataType = reader.text()?.parse().map_err(|e: esker_format::Error| wrong(&e))?;
    let mut list = ListBuilder::new(ListElement::of(data_type).map_err(|e| wrong(&e))?);
    let mut held = Vec::new();
    for _ in 0..reader.array()? {
        // Before it is read: a payload has room for many levels.
        if matches!({ reader }.token()?, Token::Extension(LIST, _)) {
            return Err(Error::new("list: expected values that are no lists"));
        }
        let item = read(&mut reader, &mut held)?;
        list.push(item).map_err(|e| wrong(&e))?;
    }
    reader.finish()?;
    Ok(list.into_bytes())
}

/// A value where it lies in the buffer; JSON, an interval or a list has been read, and is held by
/// `held`.
///
/// # Errors
/// When the next value is none that a field may have.
#[inline]
pub fn read<'v, 'b: 'v>(reader: &mut Reader<'b>, held: &'v mut Vec<u8>) -> Result<ValueRef<'v>> {
    Ok(match reader.token()? {
        Token::Nil => ValueRef::Null,
        Token::Bool(v) => ValueRef::Bool(v),
        Token::Uint(v) => ValueRef::Uint(v),
        Token::Int(v) => ValueRef::Int(v),
        Token::F32(v) => ValueRef::Float32(v),
        Token::F64(v) => ValueRef::Float(v),
        Token::Text(v) => ValueRef::Text(v),
        Token::Bytes(v) => ValueRef::Bytes(v),
        Token::Extension(code, bytes) => return read_extension(code, bytes, held),
        other @ (Token::Array(_) | Token::Map(_)) => {
            let (at, found) = (reader.position(), other.name());
            let message =
                format!("before byte {at} of the payload: expected a value, found {found}");
            return Err(Error::new(message));
        }
    })
}

/// A value of a type that MessagePack has no form for.
fn read_extension<'v>(code: u8, bytes: &'v [u8], held: &'v mut Vec<u8>) -> Result<ValueRef<'v>> {
    if code == LIST {
        *held = read_list(bytes)?;
        return Ok(ValueRef::List(held));
    }
    let name = match code {
        JSON => "JSON",
        INTERVAL => "interval",
        _ => return plain_extension(code, bytes),
    };
    let wrong = |e: &dyn std::fmt::Display| Error::new(format!("{name}: {e}"));
    let text = std::str::from_utf8(bytes).map_err(|_| wrong(&"expected a text"))?;
    if code == JSON {
        *held = json::parse(text).map_err(|e| wrong(&e))?;
        return Ok(ValueRef::Json(held));
    }
    let interval: Interval = text.parse().map_err(|e: esker_format::Error| wrong(&e))?;
    *held = interval.stored().to_vec();
    Ok(ValueRef::from_bytes(DataType::Interval, held))
}

/// The same, of those that need no room.
fn plain_extension(code: u8, bytes: &[u8]) -> Result<ValueRef<'_>> {
    let wrong = |wanted: &str| {
        Error::new(format!("extension {code} of {} bytes: expected {wanted}", bytes.len()))
    };
    let word = || bytes.try_into().map(i64::from_be_bytes).map_err(|_| wrong("8 bytes"));
    let four = || bytes.try_into().map_err(|_| wrong("4 bytes"));
    let sixteen = || bytes.try_into().map_err(|_| wrong("16 bytes"));
    let text = || std::str::from_utf8(bytes).map_err(|_| wrong("a text"));
    Ok(match code {
        DATE => ValueRef::Date(i32::from_be_bytes(four()?)),
        TIMESTAMP => ValueRef::Timestamp(word()?),
        TIME => ValueRef::Time(word()?),
        UUID => ValueRef::Uuid(sixteen()?),
        IPV4 => ValueRef::Ipv4(u32::from_be_bytes(four()?)),
        IPV6 => ValueRef::Ipv6(sixteen()?),
        DECIMAL => {
            let decimal: std::result::Result<Decimal, _> = text()?.parse();
            ValueRef::Decimal(decimal.map_err(|e| Error::new(format!("decimal: {e}")))?)
        }
        _ => return Err(wrong("a code from 1 to 10")),
    })
}

/// A value of a key, where it lies in the buffer. JSON is none.
///
/// # Errors
/// As for [`read`].
#[inline]
pub fn read_key_part<'b>(reader: &mut Reader<'b>) -> Result<ValueRef<'b>> {
    Ok(match reader.token()? {
        Token::Uint(v) => ValueRef::Uint(v),
        Token::Int(v) => ValueRef::Int(v),
        Token::Text(v) => ValueRef::Text(v),
        Token::Bytes(v) => ValueRef::Bytes(v),
        Token::Nil => ValueRef::Null,
        Token::Bool(v) => ValueRef::Bool(v),
        Token::F32(v) => ValueRef::Float32(v),
        Token::F64(v) => ValueRef::Float(v),
        Token::Extension(code, bytes) if code != JSON => plain_extension(code, bytes)?,
        other => {
            let (at, found) = (reader.position(), other.name());
            let message = format!("before byte {at} of the payload: expected a key, found {found}");
            return Err(Error::new(message));
        }
    })
}

/// Reads a key into `key`: an array of values, or the only one by itself.
///
/// # Errors
/// As for [`read`].
#[inline]
pub fn read_key_into<'b>(reader: &mut Reader<'b>, key: &mut Vec<ValueRef<'b>>) -> Result<()> {
    key.clear();
    let mut ahead = *reader;
    match ahead.token()? {
        Token::Array(n) => {
            *reader = ahead;
            for _ in 0..n {
                key.push(read_key_part(reader)?);
            }
        }
        _ => key.push(read_key_part(reader)?),
    }
    Ok(())
}

/// A value of its own.
///
/// # Errors
/// As for [`read`].
pub fn read_owned(reader: &mut Reader<'_>) -> Result<Value> {
    let mut held = Vec::new();
    Ok(read(reader, &mut held)?.to_owned())
}

/// An array of values.
///
/// # Errors
/// As for [`read`].
pub fn read_values(reader: &mut Reader<'_>) -> Result<Vec<Value>> {
    (0..reader.array()?).map(|_| read_owned(reader)).collect()
}

/// A key: an array of values, or the only one by itself.
///
/// # Errors
/// As for [`read`].
pub fn read_key(reader: &mut Reader<'_>) -> Result<Vec<Value>> {
    let mut ahead = *reader;
    match ahead.token()? {
        Token::Array(_) => read_values(reader),
        _ => Ok(vec![read_owned(reader)?]),
    }
}

/// Appends a key: the only value by itself, or an array.
pub fn write_key(out: &mut Vec<u8>, key: &[Value]) {
    if let [one] = key {
        return write(out, one.as_ref());
    }
    write_values(out, key.iter().map(Value::as_ref));
}

/// Appends an array of values.
#[inline]
pub fn write_values<'v>(out: &mut Vec<u8>, values: impl ExactSizeIterator<Item = ValueRef<'v>>) {
    pack::array(out, values.len());
    values.for_each(|value| write(out, value));
}
