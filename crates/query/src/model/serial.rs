//! How values and types are written inside a serialised query.

use esker_format::Value;
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
}

/// Types by their names.
pub(super) mod type_name {
    use esker_format::DataType;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(v: &DataType, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(v.name())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<DataType, D::Error> {
        let name = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        name.parse().map_err(D::Error::custom)
    }
}
