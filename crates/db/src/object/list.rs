//! A list of numbers as bytes.

use esker_format::{DataType, Value};
use serde::ser::{Serialize, SerializeSeq, SerializeTuple, SerializeTupleStruct};

use super::error::ObjectError;
use super::value_serializer::ValueSerializer;
use crate::Error;

type Result<T> = std::result::Result<T, ObjectError>;

/// Takes the bytes of a value one by one.
pub(super) struct ByteList {
    field: ValueSerializer,
    bytes: Vec<u8>,
}

impl ByteList {
    pub fn new(field: ValueSerializer) -> Self {
        Self { field, bytes: Vec::new() }
    }

    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let value = value.serialize(ValueSerializer { data_type: DataType::U8 })?;
        let byte = match &value {
            Value::Uint(v) => u8::try_from(*v).ok(),
            Value::Int(v) => u8::try_from(*v).ok(),
            _ => None,
        };
        self.bytes.push(byte.ok_or_else(|| {
            Error::invalid(format!("expected a list of bytes (0 to 255), found {value} in it"))
        })?);
        Ok(())
    }
}

macro_rules! lists {
    ($($name:ident: $push:ident;)*) => {
        $(impl $name for ByteList {
            type Ok = Value;
            type Error = ObjectError;

            fn $push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.push(value)
            }

            fn end(self) -> Result<Value> {
                self.field.bytes(self.bytes)
            }
        })*
    };
}

lists! {
    SerializeSeq: serialize_element;
    SerializeTuple: serialize_element;
    SerializeTupleStruct: serialize_field;
}
