//! A row as an object.

use esker_format::list::Items;
use esker_format::{List, ListElement, ValueRef, labels};
use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
    value::MapAccessDeserializer,
};
use serde::forward_to_deserialize_any;

use super::error::ObjectError;
use crate::record::from_json;

type Result<T> = std::result::Result<T, ObjectError>;

/// Gives names and values.
pub(super) struct RowDeserializer<'a> {
    names: std::slice::Iter<'a, &'a str>,
    values: std::slice::Iter<'a, ValueRef<'a>>,
    /// The name whose value comes next.
    name: &'a str,
}

impl<'a> RowDeserializer<'a> {
    pub fn new(names: &'a [&'a str], row: &'a [ValueRef<'a>]) -> Self {
        Self { names: names.iter(), values: row.iter(), name: "" }
    }
}

impl<'de> MapAccess<'de> for RowDeserializer<'_> {
    type Error = ObjectError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some(name) = self.names.next() else { return Ok(None) };
        self.name = name;
        let name: StrDeserializer<'_, ObjectError> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let missing =
            || ObjectError(crate::Error::corrupt(format!("field {:?} has no value", self.name)));
        let value = self.values.next().copied().ok_or_else(missing)?;
        let read = seed.deserialize(ValueDeserializer(value));
        read.map_err(|e| e.at(format_args!("field {:?}", self.name)))
    }
}

impl<'de> Deserializer<'de> for RowDeserializer<'_> {
    type Error = ObjectError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_map(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        MapAccessDeserializer::new(self).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// Gives one value.
struct ValueDeserializer<'a>(ValueRef<'a>);

/// Gives the items of a list.
struct ListItems<'a> {
    element: ListElement,
    items: Items<'a>,
}

impl<'a> ListItems<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self> {
        let list = List::of(bytes).map_err(crate::Error::from)?;
        Ok(Self { element: list.element(), items: list.items() })
    }
}

impl<'de> SeqAccess<'de> for ListItems<'_> {
    type Error = ObjectError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let value = item.and_then(|item| item.value(self.element)).map_err(crate::Error::from)?;
        seed.deserialize(ValueDeserializer(value.as_ref())).map(Some)
    }
}

/// A JSON document, which reads itself.
fn document(value: ValueRef<'_>) -> Result<serde_json::Value> {
    Ok(from_json(value)?)
}

fn misread(error: serde_json::Error) -> ObjectError {
    serde::de::Error::custom(error)
}

impl<'de> Deserializer<'de> for ValueDeserializer<'_> {
    type Error = ObjectError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.0 {
            ValueRef::Null => visitor.visit_unit(),
            ValueRef::Bool(v) => visitor.visit_bool(v),
            ValueRef::Int(v) => visitor.visit_i64(v),
            ValueRef::Uint(v) => visitor.visit_u64(v),
            ValueRef::Float32(v) if v.is_finite() => visitor.visit_f32(v),
            ValueRef::Float(v) if v.is_finite() => visitor.visit_f64(v),
            ValueRef::Text(v) => visitor.visit_str(v),
            ValueRef::Enum(v) => visitor.visit_str(labels::label(v)),
            ValueRef::Json(_) => document(self.0)?.deserialize_any(visitor).map_err(misread),
            ValueRef::List(bytes) => visitor.visit_seq(ListItems::of(bytes)?),
            other => visitor.visit_string(other.to_string()),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.0 {
            ValueRef::Float32(v) => visitor.visit_f32(v),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.0 {
            ValueRef::Float32(v) => visitor.visit_f32(v),
            ValueRef::Float(v) => visitor.visit_f64(v),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.0 {
            ValueRef::Bytes(v) => visitor.visit_bytes(v),
            ValueRef::Uuid(v) | ValueRef::Ipv6(v) => visitor.visit_bytes(v),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let bytes = match self.0 {
            ValueRef::Bytes(v) => v,
            ValueRef::Uuid(v) | ValueRef::Ipv6(v) => v.as_slice(),
            _ => return self.deserialize_any(visitor),
        };
        visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied()))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.0 {
            ValueRef::Json(_) => {
                let document = document(self.0)?;
                document.deserialize_enum(name, variants, visitor).map_err(misread)
            }
            ValueRef::Text(v) => visitor.visit_enum(v.into_deserializer()),
            ValueRef::Enum(v) => visitor.visit_enum(labels::label(v).into_deserializer()),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 char str string unit unit_struct map struct
        identifier ignored_any
    }
}
