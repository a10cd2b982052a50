//! What lists are of.

use crate::interval::INTERVAL_BYTES;
use crate::{DataType, Error, Result};

macro_rules! elements {
    ($($name:ident => $list:literal,)*) => {
        /// The type of the items of a list: any but enums, JSON and lists.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "they are those of `DataType`")]
        pub enum ListElement {
            $($name,)*
            Decimal { precision: u8, scale: u8 },
        }

        impl ListElement {
            /// The type of an item.
            #[must_use]
            pub const fn data_type(self) -> DataType {
                match self {
                    $(Self::$name => DataType::$name,)*
                    Self::Decimal { precision, scale } => DataType::Decimal { precision, scale },
                }
            }

            /// Lists of this type; `None` where there are none.
            #[must_use]
            pub const fn find(data_type: DataType) -> Option<Self> {
                match data_type {
                    $(DataType::$name => Some(Self::$name),)*
                    DataType::Decimal { precision, scale } => {
                        Some(Self::Decimal { precision, scale })
                    }
                    DataType::Enum | DataType::Json | DataType::List(_) => None,
                }
            }

            /// The name of the lists.
            pub(crate) const fn list_name(self) -> &'static str {
                match self {
                    $(Self::$name => $list,)*
                    Self::Decimal { .. } => "decimal[]",
                }
            }
        }
    };
}

elements! {
    Bool => "bool[]",
    I8 => "i8[]",
    I16 => "i16[]",
    I32 => "i32[]",
    I64 => "i64[]",
    U8 => "u8[]",
    U16 => "u16[]",
    U32 => "u32[]",
    U64 => "u64[]",
    F32 => "f32[]",
    F64 => "f64[]",
    Text => "text[]",
    Bytes => "bytes[]",
    Date => "date[]",
    Timestamp => "timestamp[]",
    Time => "time[]",
    Uuid => "uuid[]",
    Ipv4 => "ipv4[]",
    Ipv6 => "ipv6[]",
    Interval => "interval[]",
}

impl ListElement {
    /// Lists of this type.
    ///
    /// # Errors
    /// `InvalidInput` when there are none.
    pub fn of(data_type: DataType) -> Result<Self> {
        Self::find(data_type).ok_or_else(|| {
            Error::invalid(match data_type {
                DataType::Enum => {
                    "expected a list of another type than enum: its labels are texts in a list, \
                     text[]"
                }
                DataType::List(_) => "expected a list of values, found one of lists: use json",
                _ => {
                    "expected a list of another type than json: an array of any values is json \
                     itself; use json"
                }
            })
        })
    }

    /// How many bytes an item has in a list behind its marker; `None` where it ends with an end.
    pub(super) const fn item_width(self) -> Option<usize> {
        match self {
            Self::Interval => Some(INTERVAL_BYTES),
            Self::Uuid | Self::Ipv6 => Some(16),
            Self::Text | Self::Bytes => None,
            _ => self.data_type().width(),
        }
    }
}
