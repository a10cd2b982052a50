//! How values and types are written inside a serialised query.

use esker_format::{Decimal, Interval, Value};
use serde::{Deserialize, Serialize};

/// Mirrors [`Value`] for serde.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Value", rename_all = "snake_case")]
pub(super) enum ValueForm {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float32(f32),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Date(i32),
    Timestamp(i64),
    Time(i64),
    Uuid([u8; 16]),
    Ipv4(u32),
    Ipv6([u8; 16]),
    Enum(Vec<u8>),
    Json(#[serde(with = "json_text")] Vec<u8>),
    Decimal(#[serde(with = "text")] Decimal),
    Interval(#[serde(with = "text")] Interval),
    List(#[serde(with = "list_text")] Vec<u8>),
}

/// What is written and read as text, as it is written.
pub(super) mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(v: &impl Display, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(v)
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// The same of what may be absent, which is left out then.
pub(super) mod optional_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        v: &Option<impl Display>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match v {
            Some(v) => to.collect_str(v),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        super::text::deserialize(from).map(Some)
    }
}

/// A list as its type and text: `i64[]{1,2}`.
mod list_text {
    use esker_format::{DataType, List, Value, ValueRef};
    use serde::de::Error;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(v: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let element = List::of(v).map_err(S::Error::custom)?.element();
        to.collect_str(&format_args!("{}{}", DataType::List(element), ValueRef::List(v)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        let (data_type, items) = text.split_at(text.find('{').unwrap_or(text.len()));
        let data_type = data_type.parse().map_err(D::Error::custom)?;
        match esker_format::text::parse_value(items, data_type).map_err(D::Error::custom)? {
            Value::List(bytes) => Ok(bytes),
            other => Err(D::Error::custom(format_args!("expected a list, found {other}"))),
        }
    }
}

/// JSON as its text.
mod json_text {
    use esker_format::json::{Json, parse};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(v: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&Json::document(v))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        parse(&text).map_err(D::Error::custom)
    }
}
