//! Keys and values of other types than bytes.
//!
//! Keys become bytes that sort as they do: numbers as in [`esker_format::key`], a text or byte
//! string as it is where it ends the key, and with an end mark before other parts of a tuple.

use std::fmt::Display;

use esker_format::key::encode_key;
use esker_format::{DataType, ValueRef, with_article};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result};

/// A type of keys. The bytes of two keys compare as the keys do.
///
/// ```
/// # let db = esker::Options::new().memory()?;
/// let visits = db.bucket("visits")?.typed::<(String, i64), u32>();
/// visits.put(&("ada".to_owned(), 20), &1)?;
/// visits.put(&("ada".to_owned(), -3), &2)?;
/// let first = visits.first()?.expect("two entries");
/// assert_eq!(first, (("ada".to_owned(), -3), 2));
/// # Ok::<(), esker::Error>(())
/// ```
pub trait KeyCodec: Sized {
    /// Appends the bytes of the key; `is_last` where nothing follows them.
    fn encode_key(&self, out: &mut Vec<u8>, is_last: bool);

    /// Takes a key from the front of some bytes; `is_last` where nothing may follow it.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are none.
    fn decode_key(input: &mut &[u8], is_last: bool) -> Result<Self>;
}

/// A type of values.
pub trait ValueCodec: Sized {
    /// Appends the bytes of the value.
    ///
    /// # Errors
    /// `InvalidInput` when the value has no such form.
    fn encode_value(&self, out: &mut Vec<u8>) -> Result<()>;

    /// Reads a value.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are none.
    fn decode_value(input: &[u8]) -> Result<Self>;
}

/// A value of any type that serde knows, stored as JSON.
///
/// ```
/// use esker::Serde;
///
/// # let db = esker::Options::new().memory()?;
/// let points = db.bucket("points")?.typed::<u32, Serde<(f64, f64)>>();
/// points.put(&7, &Serde((1.5, -2.0)))?;
/// assert_eq!(points.get(&7)?, Some(Serde((1.5, -2.0))));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serde<T>(pub T);

fn wrong(what: impl Display) -> Error {
    Error::new(crate::ErrorKind::Corrupt, format!("expected {what}"))
}

fn part<'a>(input: &mut &'a [u8], len: usize, what: impl Display) -> Result<&'a [u8]> {
    let (part, rest) = input.split_at_checked(len).ok_or_else(|| wrong(what))?;
    *input = rest;
    Ok(part)
}

/// The bytes of a key.
pub(super) fn key_bytes<K: KeyCodec>(key: &K) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode_key(&mut out, true);
    out
}

/// The bytes of a value.
pub(super) fn value_bytes<V: ValueCodec>(value: &V) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    value.encode_value(&mut out)?;
    Ok(out)
}

macro_rules! integers {
    ($($type:ty, $flip:expr, $encode:expr;)*) => {$(
        impl KeyCodec for $type {
            fn encode_key(&self, out: &mut Vec<u8>, _is_last: bool) {
                let encode: fn(Self, &mut Vec<u8>) = $encode;
                encode(*self, out);
            }

            fn decode_key(input: &mut &[u8], _is_last: bool) -> Result<Self> {
                let len = size_of::<$type>();
                let mut bytes = [0; size_of::<$type>()];
                let own = with_article(stringify!($type));
                let part = part(input, len, format_args!("the bytes of {own}"))?;
                bytes.copy_from_slice(part);
                bytes.reverse();
                Ok(<$type>::from_le_bytes(bytes) ^ $flip)
            }
        }

        impl ValueCodec for $type {
            fn encode_value(&self, out: &mut Vec<u8>) -> Result<()> {
                self.encode_key(out, true);
                Ok(())
            }

            fn decode_value(mut input: &[u8]) -> Result<Self> {
                let value = Self::decode_key(&mut input, true)?;
                ended(input)?;
                Ok(value)
            }
        }
    )*};
}

integers! {
    u8, 0, |n, out| encode_key(out, DataType::U8, ValueRef::Uint(n.into()));
    u16, 0, |n, out| encode_key(out, DataType::U16, ValueRef::Uint(n.into()));
    u32, 0, |n, out| encode_key(out, DataType::U32, ValueRef::Uint(n.into()));
    u64, 0, |n, out| encode_key(out, DataType::U64, ValueRef::Uint(n));
    u128, 0, wide;
    i8, i8::MIN, |n, out| encode_key(out, DataType::I8, ValueRef::Int(n.into()));
    i16, i16::MIN, |n, out| encode_key(out, DataType::I16, ValueRef::Int(n.into()));
    i32, i32::MIN, |n, out| encode_key(out, DataType::I32, ValueRef::Int(n.into()));
    i64, i64::MIN, |n, out| encode_key(out, DataType::I64, ValueRef::Int(n));
    i128, i128::MIN, |n, out| wide((n ^ i128::MIN).cast_unsigned(), out);
}

/// As [`esker_format::key`] has it for narrower ones: the highest byte first.
fn wide(n: u128, out: &mut Vec<u8>) {
    let mut bytes = n.to_le_bytes();
    bytes.reverse();
    out.extend_from_slice(&bytes);
}

fn ended(input: &[u8]) -> Result<()> {
    if input.is_empty() {
        Ok(())
    } else {
        Err(wrong(format_args!("an end, found {} bytes", input.len())))
    }
}

/// A number as [`crate::Bucket::increment`] stores it.
pub(super) fn encode_i64(value: i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(8);
    value.encode_key(&mut out, true);
    out
}

/// Reads a number that [`crate::Bucket::increment`] stored.
pub(super) fn decode_i64(value: &[u8]) -> Result<i64> {
    i64::decode_value(value).map_err(|_| {
        let len = value.len();
        Error::invalid(format!("increment: expected a value of 8 bytes, found {len}"))
    })
}

impl KeyCodec for Vec<u8> {
    fn encode_key(&self, out: &mut Vec<u8>, is_last: bool) {
        encode_bytes(self, out, is_last);
    }

    fn decode_key(input: &mut &[u8], is_last: bool) -> Result<Self> {
        decode_bytes(input, is_last)
    }
}

impl KeyCodec for String {
    fn encode_key(&self, out: &mut Vec<u8>, is_last: bool) {
        encode_bytes(self.as_bytes(), out, is_last);
    }

    fn decode_key(input: &mut &[u8], is_last: bool) -> Result<Self> {
        Self::from_utf8(decode_bytes(input, is_last)?).map_err(|_| wrong("a text in UTF-8"))
    }
}

fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>, is_last: bool) {
    if is_last {
        out.extend_from_slice(bytes);
    } else {
        encode_key(out, DataType::Bytes, ValueRef::Bytes(bytes));
    }
}

/// `00 ff` is a zero byte, `00 00` the end.
fn decode_bytes(input: &mut &[u8], is_last: bool) -> Result<Vec<u8>> {
    if is_last {
        return Ok(std::mem::take(input).to_vec());
    }
    let mut bytes = Vec::new();
    loop {
        match part(input, 1, "the end of a text")? {
            [0] => match part(input, 1, "the end of a text")? {
                [0] => return Ok(bytes),
                [0xff] => bytes.push(0),
                _ => return Err(wrong("00 or ff behind 00 in a key")),
            },
            other => bytes.extend_from_slice(other),
        }
    }
}

macro_rules! tuples {
    ($(($($part:ident),+; $last:ident);)*) => {$(
        impl<$($part: KeyCodec,)+ $last: KeyCodec> KeyCodec for ($($part,)+ $last) {
            #[allow(non_snake_case, reason = "parts are named after their types")]
            fn encode_key(&self, out: &mut Vec<u8>, is_last: bool) {
                let ($($part,)+ $last) = self;
                $($part.encode_key(out, false);)+
                $last.encode_key(out, is_last);
            }

            fn decode_key(input: &mut &[u8], is_last: bool) -> Result<Self> {
                Ok(($($part::decode_key(input, false)?,)+ $last::decode_key(input, is_last)?))
            }
        }
    )*};
}

tuples! {
    (A; B);
    (A, B; C);
    (A, B, C; D);
    (A, B, C, D; E);
    (A, B, C, D, E; F);
}

/// What keys of a type begin with: the first part or parts of a tuple, or the beginning of a text
/// or byte string.
///
/// ```
/// # let db = esker::Options::new().memory()?;
/// let visits = db.bucket("visits")?.typed::<(String, u32, u32), i64>();
/// visits.put(&("ada".to_owned(), 2026, 1), &5)?;
/// visits.put(&("ada".to_owned(), 2027, 1), &6)?;
/// visits.put(&("adam".to_owned(), 2026, 1), &7)?;
/// assert_eq!(visits.prefix(&"ada".to_owned())?.count(), 2);
/// assert_eq!(visits.prefix(&("ada".to_owned(), 2027))?.count(), 1);
/// # Ok::<(), esker::Error>(())
/// ```
pub trait KeyPrefix<K> {
    /// Appends the bytes that such keys begin with.
    fn encode_prefix(&self, out: &mut Vec<u8>);
}

macro_rules! prefixes {
    ($($prefix:ty: $($part:ident)+, $($rest:ident)+;)*) => {$(
        impl<$($part: KeyCodec,)+ $($rest: KeyCodec),+> KeyPrefix<($($part,)+ $($rest,)+)>
            for $prefix
        {
            fn encode_prefix(&self, out: &mut Vec<u8>) {
                self.encode_key(out, false);
            }
        }
    )*};
}

prefixes! {
    A: A, B;
    A: A, B C;
    A: A, B C D;
    A: A, B C D E;
    A: A, B C D E F;
    (A, B): A B, C;
    (A, B): A B, C D;
    (A, B): A B, C D E;
    (A, B): A B, C D E F;
    (A, B, C): A B C, D;
    (A, B, C): A B C, D E;
    (A, B, C): A B C, D E F;
    (A, B, C, D): A B C D, E;
    (A, B, C, D): A B C D, E F;
    (A, B, C, D, E): A B C D E, F;
}

impl KeyPrefix<String> for str {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

impl KeyPrefix<Vec<u8>> for [u8] {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl ValueCodec for Vec<u8> {
    fn encode_value(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self);
        Ok(())
    }

    fn decode_value(input: &[u8]) -> Result<Self> {
        Ok(input.to_vec())
    }
}

impl ValueCodec for String {
    fn encode_value(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.as_bytes());
        Ok(())
    }

    fn decode_value(input: &[u8]) -> Result<Self> {
        Self::from_utf8(input.to_vec()).map_err(|_| wrong("a text in UTF-8"))
    }
}

impl<T: Serialize + DeserializeOwned> ValueCodec for Serde<T> {
    fn encode_value(&self, out: &mut Vec<u8>) -> Result<()> {
        serde_json::to_writer(out, &self.0).map_err(|e| Error::invalid(e.to_string()))
    }

    fn decode_value(input: &[u8]) -> Result<Self> {
        let value = serde_json::from_slice(input);
        Ok(Self(value.map_err(|e| wrong(format_args!("the JSON of a value: {e}")))?))
    }
}
