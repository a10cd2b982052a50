//! A list of numbers as bytes, and one of values as a list.

use esker_format::{DataType, ListBuilder, Value};
use serde::ser::{Serialize, SerializeSeq, SerializeTuple, SerializeTupleStruct};

use super::error::ObjectError;
use super::value_serializer::ValueSerializer;
use crate::Error;

type Result<T> = std::result::Result<T, ObjectError>;

/// Takes the bytes, or the items, of a value one by one.
pub(super) struct ItemList {
    field: ValueSerializer,
    bytes: Vec<u8>,
    list: Option<ListBuilder>,
    count: usize,
}

impl ItemList {
    pub fn new(field: ValueSerializer) -> Self {
        let list = field.data_type.element().map(ListBuilder::new);
        Self { field, bytes: Vec::new(), list, count: 0 }
    }

    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if let (Some(list), Some(element)) = (&mut self.list, self.field.data_type.element()) {
            self.count += 1;
            let at = format_args!("item {}", self.count).to_string();
            let item = value.serialize(ValueSerializer { data_type: element.data_type() });
            let pushed = item.and_then(|item| Ok(list.push(item.as_ref())?));
            return pushed.map_err(|e| e.at(at));
        }
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
        $(impl $name for ItemList {
            type Ok = Value;
            type Error = ObjectError;

            fn $push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.push(value)
            }

            fn end(self) -> Result<Value> {
                match self.list {
                    Some(list) => Ok(list.finish()),
                    None => self.field.bytes(self.bytes),
                }
            }
        })*
    };
}

lists! {
    SerializeSeq: serialize_element;
    SerializeTuple: serialize_element;
    SerializeTupleStruct: serialize_field;
}
