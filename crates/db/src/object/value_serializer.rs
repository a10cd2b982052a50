//! What serde writes as a value of a field.

use esker_format::{DataType, Decimal, Value, text};
use serde::ser::{Impossible, Serialize, Serializer};

use super::error::ObjectError;
use super::list::ItemList;
use crate::Error;

type Result<T> = std::result::Result<T, ObjectError>;

/// How many digits every float keeps: a number of so many is known from the float next to it.
const DIGITS_KEPT: u8 = 15;
/// The same of 32 bits.
const DIGITS_KEPT_SHORT: u8 = 6;

/// Makes a value for a field of a type. Whether it fits, the field decides.
#[derive(Clone, Copy)]
pub(super) struct ValueSerializer {
    pub data_type: DataType,
}

impl ValueSerializer {
    fn expected(self, found: impl std::fmt::Display) -> ObjectError {
        let expected = text::expected(self.data_type);
        Error::invalid(format!("expected {expected}, found {found}")).into()
    }

    /// The decimal that was written as a float, when so few digits were that no other can have
    /// been.
    fn decimal(self, written: &str, kept: u8) -> Result<Value> {
        // default: splitting gives one part at least
        let digits = written.split('e').next().unwrap_or_default();
        let digits = digits.trim_start_matches(['-', '0', '.']).trim_end_matches(['0', '.']);
        if digits.bytes().filter(u8::is_ascii_digit).count() > usize::from(kept) {
            return Err(self.expected(format_args!(
                "the float {written}, of more than {kept} digits: write it as text"
            )));
        }
        Ok(text::parse_value(written, self.data_type)?)
    }

    /// Bytes as what the field stores so.
    pub fn bytes(self, bytes: Vec<u8>) -> Result<Value> {
        Ok(match self.data_type {
            DataType::Uuid | DataType::Ipv6 | DataType::Ipv4 => {
                let sixteen = |bytes: &[u8]| bytes.as_array::<16>().copied();
                let four = |bytes: &[u8]| bytes.as_array::<4>().copied();
                let value = match self.data_type {
                    DataType::Uuid => sixteen(&bytes).map(Value::Uuid),
                    DataType::Ipv6 => sixteen(&bytes).map(Value::Ipv6),
                    _ => four(&bytes).map(|b| Value::Ipv4(std::net::Ipv4Addr::from(b).to_bits())),
                };
                value.ok_or_else(|| self.expected(format_args!("{} bytes", bytes.len())))?
            }
            _ => Value::Bytes(bytes),
        })
    }
}

macro_rules! numbers {
    ($($name:ident($type:ty);)*) => {
        $(fn $name(self, v: $type) -> Result<Value> {
            Ok(Value::from(v))
        })*
    };
}

impl Serializer for ValueSerializer {
    type Ok = Value;
    type Error = ObjectError;
    type SerializeSeq = ItemList;
    type SerializeTuple = ItemList;
    type SerializeTupleStruct = ItemList;
    type SerializeTupleVariant = Impossible<Value, ObjectError>;
    type SerializeMap = Impossible<Value, ObjectError>;
    type SerializeStruct = Impossible<Value, ObjectError>;
    type SerializeStructVariant = Impossible<Value, ObjectError>;

    numbers! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
    }

    fn serialize_i128(self, v: i128) -> Result<Value> {
        Decimal::whole(v).map(Value::Decimal).ok_or_else(|| self.expected(v))
    }

    fn serialize_u128(self, v: u128) -> Result<Value> {
        let decimal = i128::try_from(v).ok().and_then(Decimal::whole);
        decimal.map(Value::Decimal).ok_or_else(|| self.expected(v))
    }

    fn serialize_f32(self, v: f32) -> Result<Value> {
        if self.data_type.is_decimal() {
            return self.decimal(&format!("{v:?}"), DIGITS_KEPT_SHORT);
        }
        Ok(Value::Float32(v))
    }

    fn serialize_f64(self, v: f64) -> Result<Value> {
        if self.data_type.is_decimal() {
            return self.decimal(&format!("{v:?}"), DIGITS_KEPT);
        }
        Ok(Value::Float(v))
    }

    fn serialize_char(self, v: char) -> Result<Value> {
        self.serialize_str(v.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, v: &str) -> Result<Value> {
        match self.data_type {
            DataType::Bool => Err(self.expected(text::shown(v.as_bytes()))),
            data_type => Ok(text::parse_value(v, data_type)?),
        }
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<Value> {
        self.bytes(v.to_vec())
    }

    fn serialize_none(self) -> Result<Value> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<Value> {
        Err(self.expected(name))
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: &T,
    ) -> Result<Value> {
        Err(self.expected(format_args!("{name}::{variant} with a value")))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<ItemList> {
        match self.data_type {
            DataType::Bytes
            | DataType::Uuid
            | DataType::Ipv4
            | DataType::Ipv6
            | DataType::List(_) => Ok(ItemList::new(self)),
            _ => Err(self.expected("a list")),
        }
    }

    fn serialize_tuple(self, len: usize) -> Result<ItemList> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<ItemList> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant> {
        Err(self.expected(format_args!("{name}::{variant} with values")))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap> {
        Err(self.expected("an object"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Self::SerializeStruct> {
        Err(self.expected(format_args!("an object ({name})")))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant> {
        Err(self.expected(format_args!("{name}::{variant} with values")))
    }
}
