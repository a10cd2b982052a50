//! An object as the fields of a row.

use esker_format::{DataType, Schema, Value};
use serde::ser::{Impossible, SerializeMap, SerializeStruct, Serializer};
use serde::{Serialize, ser};

use super::error::ObjectError;
use super::value_serializer::ValueSerializer;
use crate::Error;
use crate::record::json_value;

type Result<T> = std::result::Result<T, ObjectError>;

/// Takes names and values.
pub(super) struct RowSerializer<'a> {
    schema: &'a Schema,
    fields: Vec<(usize, Value)>,
    /// The name whose value comes next.
    name: Option<String>,
}

impl<'a> RowSerializer<'a> {
    pub fn new(schema: &'a Schema) -> Self {
        Self { schema, fields: Vec::new(), name: None }
    }

    fn take<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        let position = self.schema.expect_position(name)?;
        if self.fields.iter().any(|(known, _)| *known == position) {
            return Err(Error::invalid(format!("the row has field {name:?} twice")).into());
        }
        let Some(field) = self.schema.fields().get(position) else { return Ok(()) };
        let value = match field.data_type {
            DataType::Json => match json_value(value) {
                Ok(v) if field.nullable && v == Value::json("null")? => Ok(Value::Null),
                value => value.map_err(ObjectError::from),
            },
            data_type => value.serialize(ValueSerializer { data_type }),
        };
        let value = value.map_err(|e| e.at(format_args!("field {name:?}")))?;
        self.fields.push((position, value));
        Ok(())
    }
}

impl SerializeMap for RowSerializer<'_> {
    type Ok = Vec<(usize, Value)>;
    type Error = ObjectError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        match key.serialize(ValueSerializer { data_type: DataType::Text })? {
            Value::Text(name) => self.name = Some(name),
            other => {
                let found = other.as_ref().kind_name();
                let message = format!("expected the name of a field, found {found} {other}");
                return Err(Error::invalid(message).into());
            }
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        match self.name.take() {
            Some(name) => self.take(&name, value),
            None => Err(ser::Error::custom("a value without a name")),
        }
    }

    fn end(self) -> Result<Self::Ok> {
        Ok(self.fields)
    }
}

impl SerializeStruct for RowSerializer<'_> {
    type Ok = Vec<(usize, Value)>;
    type Error = ObjectError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        self.take(name, value)
    }

    fn end(self) -> Result<Self::Ok> {
        Ok(self.fields)
    }
}

/// What is no object.
macro_rules! refuse {
    ($($name:ident($($type:ty),*) $(-> $answer:ident)?;)*) => {
        $(fn $name(self, $(_: $type),*) -> Result<refuse!(@ $($answer)?)> {
            Err(no_object())
        })*
    };
    (@) => { Self::Ok };
    (@ $answer:ident) => { Self::$answer };
}

fn no_object() -> ObjectError {
    let message = "a row is an object: names of fields with their values";
    Error::invalid(message).into()
}

impl Serializer for RowSerializer<'_> {
    type Ok = Vec<(usize, Value)>;
    type Error = ObjectError;
    type SerializeSeq = Impossible<Self::Ok, ObjectError>;
    type SerializeTuple = Impossible<Self::Ok, ObjectError>;
    type SerializeTupleStruct = Impossible<Self::Ok, ObjectError>;
    type SerializeTupleVariant = Impossible<Self::Ok, ObjectError>;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Impossible<Self::Ok, ObjectError>;

    refuse! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(&'static str);
        serialize_unit_variant(&'static str, u32, &'static str);
        serialize_seq(Option<usize>) -> SerializeSeq;
        serialize_tuple(usize) -> SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Self::Ok> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Self::Ok> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Self::Ok> {
        Err(no_object())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self> {
        Ok(self)
    }
}
