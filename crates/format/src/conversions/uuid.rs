//! UUIDs of `uuid`.

use ::uuid::Uuid;

use super::read;
use crate::{Value, ValueRef};

impl From<Uuid> for Value {
    fn from(v: Uuid) -> Self {
        Self::Uuid(v.into_bytes())
    }
}

read! {
    Uuid: "a uuid", |value| match value {
        ValueRef::Uuid(bytes) => Some(Self::from_bytes(*bytes)),
        _ => None,
    };
}
