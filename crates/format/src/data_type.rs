//! Field types.

use std::fmt;
use std::str::FromStr;

use crate::codec::{Reader, Writer};
use crate::decimal::{DIGITS_MAX, WORD_DIGITS_MAX};
use crate::list::ListElement;
use crate::suggest::near_or_all;
use crate::{Error, ErrorKind, Result};

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataType {
    /// True or false.
    Bool,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// IEEE 754, 32 bits.
    F32,
    /// IEEE 754, 64 bits.
    F64,
    /// UTF-8 text.
    Text,
    /// Any bytes.
    Bytes,
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since 1970-01-01 00:00 UTC.
    Timestamp,
    /// Microseconds since midnight, below 24 hours.
    Time,
    /// A UUID, 16 bytes.
    Uuid,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A decimal number, exact.
    Decimal {
        /// How many digits, up to [`DIGITS_MAX`].
        precision: u8,
        /// How many of them behind the point.
        scale: u8,
    },
    /// One of the labels of the field.
    Enum,
    /// JSON: see [`json`](crate::json).
    Json,
    /// A span of time: see [`Interval`](crate::Interval).
    Interval,
    /// Values of one type, each of which may be NULL: see [`list`](crate::list).
    List(ListElement),
}

impl DataType {
    /// Every type, in the order of its number; of decimals, one that is stored in 8 bytes and one
    /// in 16; of lists, those of integers and of texts.
    pub const ALL: [Self; 26] = [
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
        Self::Decimal { precision: 18, scale: 4 },
        Self::Decimal { precision: 38, scale: 10 },
        Self::Enum,
        Self::Json,
        Self::Interval,
        Self::List(ListElement::I64),
        Self::List(ListElement::Text),
    ];

    /// Decimals of up to `precision` digits, `scale` of them behind the point.
    ///
    /// # Errors
    /// `InvalidInput` when there is no such type.
    pub fn decimal(precision: u8, scale: u8) -> Result<Self> {
        if precision == 0 || precision > DIGITS_MAX || scale > precision {
            return Err(Error::invalid(format!(
                "decimal({precision},{scale}): expected 1 to {DIGITS_MAX} digits, and no more of \
                 them behind the point"
            )));
        }
        Ok(Self::Decimal { precision, scale })
    }

    /// Lists of values of a type.
    ///
    /// ```
    /// use esker_format::DataType;
    ///
    /// assert_eq!(DataType::list(DataType::Text)?.to_string(), "text[]");
    /// assert!(DataType::list(DataType::Json).is_err());
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for enums, JSON and lists.
    pub fn list(element: Self) -> Result<Self> {
        ListElement::of(element).map(Self::List)
    }

    /// What a list is of; `None` for what is no list.
    #[must_use]
    pub const fn element(self) -> Option<ListElement> {
        match self {
            Self::List(element) => Some(element),
            _ => None,
        }
    }

    /// The stored number. It never changes meaning.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Bool => 1,
            Self::I8 => 2,
            Self::I16 => 3,
            Self::I32 => 4,
            Self::I64 => 5,
            Self::U8 => 6,
            Self::U16 => 7,
            Self::U32 => 8,
            Self::U64 => 9,
            Self::F32 => 10,
            Self::F64 => 11,
            Self::Text => 12,
            Self::Bytes => 13,
            Self::Date => 14,
            Self::Timestamp => 15,
            Self::Time => 16,
            Self::Uuid => 17,
            Self::Ipv4 => 18,
            Self::Ipv6 => 19,
            Self::Decimal { .. } => 20,
            Self::Enum => 21,
            Self::Json => 22,
            Self::Interval => 23,
            Self::List(_) => 24,
        }
    }

    /// Appends the stored form: the number, and the digits of a decimal or the type of the items of
    /// a list.
    pub fn encode(self, out: &mut Writer) {
        out.u8(self.code());
        match self {
            Self::Decimal { precision, scale } => {
                out.u8(precision);
                out.u8(scale);
            }
            Self::List(element) => element.data_type().encode(out),
            _ => {}
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a type.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let code = input.u8()?;
        match Self::ALL.into_iter().find(|t| t.code() == code) {
            Some(Self::Decimal { .. }) => {
                let (precision, scale) = (input.u8()?, input.u8()?);
                Self::decimal(precision, scale).map_err(|e| Error::corrupt(e.to_string()))
            }
            Some(Self::List(_)) => {
                // Asked first, so that this goes one level deep.
                if input.clone().u8()? == code {
                    return Err(Error::corrupt("a list of lists"));
                }
                Self::list(Self::decode(input)?).map_err(|e| Error::corrupt(e.to_string()))
            }
            Some(data_type) => Ok(data_type),
            None => Err(Error::corrupt(format!("unknown field type {code}"))),
        }
    }

    /// Bytes per value in a plain column; `None` for what is stored as byte strings: text, bytes,
    /// UUIDs, IPv6 addresses, enums, JSON, intervals and lists.
    #[must_use]
    pub const fn width(self) -> Option<usize> {
        match self {
            Self::Bool | Self::I8 | Self::U8 => Some(1),
            Self::I16 | Self::U16 => Some(2),
            Self::I32 | Self::U32 | Self::F32 | Self::Date | Self::Ipv4 => Some(4),
            Self::I64 | Self::U64 | Self::F64 | Self::Timestamp | Self::Time => Some(8),
            Self::Decimal { .. } => Some(if self.is_wide() { 16 } else { 8 }),
            Self::Text | Self::Bytes | Self::Uuid | Self::Ipv6 | Self::Enum | Self::Json => None,
            Self::Interval | Self::List(_) => None,
        }
    }

    /// True for decimals that are stored in 16 bytes.
    #[must_use]
    pub const fn is_wide(self) -> bool {
        matches!(self, Self::Decimal { precision, .. } if precision > WORD_DIGITS_MAX)
    }

    /// True for the names of decimals, behind which their digits stand.
    #[must_use]
    pub fn is_decimal_name(name: &str) -> bool {
        ["decimal", "numeric", "dec"].iter().any(|known| name.eq_ignore_ascii_case(known))
    }

    /// True for decimals.
    #[must_use]
    pub const fn is_decimal(self) -> bool {
        matches!(self, Self::Decimal { .. })
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

    /// True where a value may be so long that it lies in a value file (see
    /// [`crate::value_file`]).
    #[must_use]
    pub const fn may_be_long(self) -> bool {
        matches!(self, Self::Text | Self::Bytes | Self::Json | Self::List(_))
    }

    /// True where values are stored as unsigned numbers.
    #[must_use]
    pub const fn is_unsigned(self) -> bool {
        matches!(self, Self::Bool | Self::U8 | Self::U16 | Self::U32 | Self::U64 | Self::Ipv4)
    }

    /// True for integers, decimals and floating-point numbers.
    #[must_use]
    pub const fn is_numeric(self) -> bool {
        self.is_integer() || self.is_float() || self.is_decimal()
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
            "jsonb" => Self::Json,
            "currency" => Self::Decimal { precision: 19, scale: 4 },
            _ => return None,
        })
    }

    /// The name, as schemas and errors write it; of a decimal, and of a list of them, without the
    /// digits.
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
            Self::Decimal { .. } => "decimal",
            Self::Enum => "enum",
            Self::Json => "json",
            Self::Interval => "interval",
            Self::List(element) => element.list_name(),
        }
    }
}

/// The digits behind the name of a decimal: `(12,2)`, `(12)` or `:12,2`.
fn parse_decimal_type(text: &str) -> Result<DataType> {
    let digits = match text.strip_prefix('(') {
        Some(digits) => digits.strip_suffix(')'),
        None => text.strip_prefix(':'),
    };
    let numbers = digits.and_then(|digits| {
        // default: decimal(12) is decimal(12,0).
        let (precision, scale) = digits.split_once(',').unwrap_or((digits, "0"));
        Some((precision.trim().parse().ok()?, scale.trim().parse().ok()?))
    });
    let (precision, scale) = numbers.ok_or_else(|| {
        Error::invalid(format!(
            "expected how many digits a decimal has, and how many of them behind the point, like \
             decimal(12,2), found decimal{text}"
        ))
    })?;
    DataType::decimal(precision, scale)
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(element) => write!(f, "{}[]", element.data_type()),
            Self::Decimal { precision, scale } => {
                write!(f, "{}({precision},{scale})", self.name())
            }
            _ => f.write_str(self.name()),
        }
    }
}

impl FromStr for DataType {
    type Err = Error;

    /// Reads a name in any case, or the usual name of another system: `int`, `varchar`, …. The
    /// digits of a decimal stand behind it: `decimal(12,2)`, `numeric:12,2`; `[]` behind a type
    /// makes a list of it.
    fn from_str(name: &str) -> Result<Self> {
        if let Some(element) = name.trim_end().strip_suffix("[]") {
            return Self::list(element.trim_end().parse()?);
        }
        let (word, behind) = match name.find([' ', '(', ':']) {
            Some(end) => name.split_at(end),
            None => (name, ""),
        };
        if Self::is_decimal_name(word) {
            return parse_decimal_type(behind.trim());
        }
        let own = Self::ALL.into_iter().find(|t| t.name().eq_ignore_ascii_case(name));
        own.or_else(|| Self::from_alias(&name.to_ascii_lowercase())).ok_or_else(|| {
            let mut names: Vec<_> = Self::ALL.iter().map(|t| t.name()).collect();
            names.dedup();
            let known = near_or_all(name, "known", names);
            Error::new(ErrorKind::InvalidInput, format!("unknown type {name:?}{known}"))
        })
    }
}
