//! Field types.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ErrorKind};

/// The type of a field. The numbers are stored and never change meaning; numbers from 20 on are
/// left for types to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DataType {
    /// True or false.
    Bool = 1,
    /// Signed, 8 bits.
    I8 = 2,
    /// Signed, 16 bits.
    I16 = 3,
    /// Signed, 32 bits.
    I32 = 4,
    /// Signed, 64 bits.
    I64 = 5,
    /// Unsigned, 8 bits.
    U8 = 6,
    /// Unsigned, 16 bits.
    U16 = 7,
    /// Unsigned, 32 bits.
    U32 = 8,
    /// Unsigned, 64 bits.
    U64 = 9,
    /// IEEE 754, 32 bits.
    F32 = 10,
    /// IEEE 754, 64 bits.
    F64 = 11,
    /// UTF-8 text.
    Text = 12,
    /// Any bytes.
    Bytes = 13,
    /// Days since 1970-01-01.
    Date = 14,
    /// Microseconds since 1970-01-01 00:00 UTC.
    Timestamp = 15,
    /// Microseconds since midnight, below 24 hours.
    Time = 16,
    /// A UUID, 16 bytes.
    Uuid = 17,
    /// An IPv4 address.
    Ipv4 = 18,
    /// An IPv6 address.
    Ipv6 = 19,
}

impl DataType {
    /// Every type, in the order of its number.
    pub const ALL: [Self; 19] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F32,
        Self::F64,
        Self::Text,
        Self::Bytes,
        Self::Date,
        Self::Timestamp,
        Self::Time,
        Self::Uuid,
        Self::Ipv4,
        Self::Ipv6,
    ];

    /// The stored number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The type with a stored number, if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.code() == code)
    }

    /// Bytes per value in a plain column; `None` for what is stored as byte strings: text, bytes,
    /// UUIDs and IPv6 addresses.
    #[must_use]
    pub const fn width(self) -> Option<usize> {
        match self {
            Self::Bool | Self::I8 | Self::U8 => Some(1),
            Self::I16 | Self::U16 => Some(2),
            Self::I32 | Self::U32 | Self::F32 | Self::Date | Self::Ipv4 => Some(4),
            Self::I64 | Self::U64 | Self::F64 | Self::Timestamp | Self::Time => Some(8),
            Self::Text | Self::Bytes | Self::Uuid | Self::Ipv6 => None,
        }
    }

    /// True for signed and unsigned integers.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::I8
                | Self::I16
                | Self::I32
                | Self::I64
                | Self::U8
                | Self::U16
                | Self::U32
                | Self::U64
        )
    }

    /// True where values are stored as byte strings, and compare as these do.
    #[must_use]
    pub const fn is_variable(self) -> bool {
        self.width().is_none()
    }

    /// True where values are stored as unsigned numbers.
    #[must_use]
    pub const fn is_unsigned(self) -> bool {
        matches!(self, Self::Bool | Self::U8 | Self::U16 | Self::U32 | Self::U64 | Self::Ipv4)
    }

    /// True for integers and floating-point numbers.
    #[must_use]
    pub const fn is_numeric(self) -> bool {
        self.is_integer() || self.is_float()
    }

    /// True for `f32` and `f64`.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// The type that other systems call by a name (in lower case). None of them loses by it: where
    /// they differ about a width, it is the widest.
    fn from_alias(name: &str) -> Option<Self> {
        Some(match name {
            "tinyint" => Self::I8,
            "smallint" | "int2" | "short" => Self::I16,
            "int" | "integer" | "bigint" | "int4" | "int8" | "long" => Self::I64,
            "utinyint" | "byte" => Self::U8,
            "usmallint" => Self::U16,
            "uinteger" => Self::U32,
            "ubigint" => Self::U64,
            "real" | "float4" => Self::F32,
            "float" | "float8" | "double" | "double precision" => Self::F64,
            "boolean" => Self::Bool,
            "varchar" | "char" | "character" | "character varying" | "string" | "clob" => {
                Self::Text
            }
            "blob" | "bytea" | "binary" | "varbinary" => Self::Bytes,
            "datetime" | "datetimems" => Self::Timestamp,
            _ => return None,
        })
    }

    /// The name, as schemas and errors write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::Time => "time",
            Self::Uuid => "uuid",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DataType {
    type Err = Error;

    /// Reads a name in any case, or the usual name of another system: `int`, `varchar`, ….
    fn from_str(name: &str) -> Result<Self, Error> {
        let own = Self::ALL.into_iter().find(|t| t.name().eq_ignore_ascii_case(name));
        own.or_else(|| Self::from_alias(&name.to_ascii_lowercase())).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|t| t.name()).collect();
            let known = names.join(", ");
            Error::new(ErrorKind::InvalidInput, format!("unknown type {name:?}; known: {known}"))
        })
    }
}
