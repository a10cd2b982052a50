//! Types of other crates as fields, each behind the feature that is named after its crate.

use esker_format::{DataType, Value, ValueRef};

use super::field_type::{FieldType, ListItem};
use crate::Result;

macro_rules! foreign {
    ($($feature:literal: $($rust:ty => $data_type:expr),*;)*) => {
        $($(
            #[cfg(feature = $feature)]
            impl FieldType for $rust {
                const DATA_TYPE: Option<DataType> = $data_type;

                fn to_value(&self) -> Result<Value> {
                    Ok(Value::try_from(*self)?)
                }

                fn from_value(value: ValueRef<'_>) -> Option<Self> {
                    Self::try_from(value).ok()
                }
            }

            #[cfg(feature = $feature)]
            impl ListItem for $rust {}
        )*)*
    };
}

foreign! {
    "chrono":
        chrono::DateTime<chrono::Utc> => Some(DataType::Timestamp),
        chrono::NaiveDateTime => Some(DataType::Timestamp),
        chrono::NaiveDate => Some(DataType::Date),
        chrono::NaiveTime => Some(DataType::Time);
    "jiff":
        jiff::Timestamp => Some(DataType::Timestamp),
        jiff::civil::DateTime => Some(DataType::Timestamp),
        jiff::civil::Date => Some(DataType::Date),
        jiff::civil::Time => Some(DataType::Time);
    "rust_decimal":
        rust_decimal::Decimal => None;
}

#[cfg(feature = "uuid")]
impl FieldType for uuid::Uuid {
    const DATA_TYPE: Option<DataType> = Some(DataType::Uuid);

    fn to_value(&self) -> Result<Value> {
        Ok(Value::from(*self))
    }

    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        Self::try_from(value).ok()
    }
}

#[cfg(feature = "uuid")]
impl ListItem for uuid::Uuid {}
