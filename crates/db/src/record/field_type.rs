//! Rust types as fields.

use std::net::{Ipv4Addr, Ipv6Addr};

use esker_format::decimal::DIGITS_MAX;
use esker_format::json::Json;
use esker_format::list::Item;
use esker_format::{DataType, Decimal, Interval, List, ListElement, Value, ValueRef, labels};

use crate::{Error, Result};

/// A Rust type that a field of a [`Record`](crate::Record) may have. An enum without fields derives
/// it, and its variants are the labels of an `enum`:
///
/// ```
/// use esker::{FieldType, Options, Record};
///
/// #[derive(Clone, Copy, Debug, PartialEq, FieldType)]
/// enum Size {
///     Small,
///     #[esker(rename = "very large")]
///     VeryLarge,
/// }
///
/// #[derive(Debug, PartialEq, Record)]
/// struct Shirt {
///     #[esker(key)]
///     id: i64,
///     size: Option<Size>,
/// }
///
/// let db = Options::new().memory()?;
/// let shirts = db.create_table_of::<Shirt>("shirts")?;
/// shirts.insert(&Shirt { id: 1, size: Some(Size::VeryLarge) })?;
/// let row = shirts.table().get(&[1i64.into()])?.expect("row 1");
/// assert_eq!(row.get("size").map(ToString::to_string).as_deref(), Some("very large"));
/// assert_eq!(shirts.get(1)?, Some(Shirt { id: 1, size: Some(Size::VeryLarge) }));
/// # Ok::<(), esker::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of a field",
    note = "`#[esker(json)]` stores what serde can write, `#[esker(skip)]` leaves a field out, and \
            an enum without fields derives `esker::FieldType`",
    note = "a type of jiff, chrono, uuid or rust_decimal needs the feature of esker of that name"
)]
pub trait FieldType: Sized {
    /// The type of a field that has no other declared; `None` for decimals, which need their
    /// digits.
    const DATA_TYPE: Option<DataType>;

    /// The labels of an enum, in their order.
    const LABELS: &'static [&'static str] = &[];

    /// True where NULL is a value: for `Option`.
    const TAKES_NULL: bool = false;

    /// The value to store; of an enum its label as text.
    ///
    /// # Errors
    /// `InvalidInput` when no value says the same.
    fn to_value(&self) -> Result<Value>;

    /// The value that was stored; `None` when this type has none like it.
    fn from_value(value: ValueRef<'_>) -> Option<Self>;
}

/// The label or text that a value is.
#[must_use]
pub fn label_of(value: ValueRef<'_>) -> Option<&str> {
    match value {
        ValueRef::Enum(value) => Some(labels::label(value)),
        ValueRef::Text(text) => Some(text),
        _ => None,
    }
}

macro_rules! integers {
    ($($rust:ty => $data_type:ident),* $(,)?) => {
        $(impl FieldType for $rust {
            const DATA_TYPE: Option<DataType> = Some(DataType::$data_type);

            fn to_value(&self) -> Result<Value> {
                Ok(Value::from(*self))
            }

            fn from_value(value: ValueRef<'_>) -> Option<Self> {
                match value {
                    ValueRef::Uint(v) => v.try_into().ok(),
                    ValueRef::Int(v) | ValueRef::Timestamp(v) | ValueRef::Time(v) => {
                        v.try_into().ok()
                    }
                    ValueRef::Date(v) => v.try_into().ok(),
                    _ => None,
                }
            }
        })*
    };
}

integers! {
    i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
}

/// Types with one kind of values each.
macro_rules! others {
    ($(
        $rust:ty: $data_type:expr, |$this:ident| $to:expr, { $($value:pat => $from:expr),* $(,)? };
    )*) => {
        $(impl FieldType for $rust {
            const DATA_TYPE: Option<DataType> = $data_type;

            fn to_value(&self) -> Result<Value> {
                let $this = self;
                Ok($to)
            }

            fn from_value(value: ValueRef<'_>) -> Option<Self> {
                match value {
                    $($value => Some($from),)*
                    _ => None,
                }
            }
        })*
    };
}

others! {
    bool: Some(DataType::Bool), |v| Value::Bool(*v), { ValueRef::Bool(v) => v };
    f32: Some(DataType::F32), |v| Value::Float32(*v), { ValueRef::Float32(v) => v };
    f64: Some(DataType::F64), |v| Value::Float(*v), {
        ValueRef::Float(v) => v,
        ValueRef::Float32(v) => v.into(),
    };
    String: Some(DataType::Text), |v| Value::Text(v.clone()), {
        ValueRef::Text(v) => v.to_owned(),
        ValueRef::Enum(v) => labels::label(v).to_owned(),
        ValueRef::Json(v) => Json::document(v).to_string(),
    };
    Vec<u8>: Some(DataType::Bytes), |v| Value::Bytes(v.clone()), {
        ValueRef::Bytes(v) => v.to_vec(),
    };
    [u8; 16]: Some(DataType::Uuid), |v| Value::Uuid(*v), { ValueRef::Uuid(v) => *v };
    Ipv4Addr: Some(DataType::Ipv4), |v| Value::Ipv4(v.to_bits()), {
        ValueRef::Ipv4(v) => Self::from_bits(v),
    };
    Ipv6Addr: Some(DataType::Ipv6), |v| Value::Ipv6(v.octets()), {
        ValueRef::Ipv6(v) => Self::from(*v),
    };
    Interval: Some(DataType::Interval), |v| Value::Interval(*v), {
        ValueRef::Interval(v) => Self::of_bytes(v),
    };
    Decimal: None, |v| Value::Decimal(*v), { ValueRef::Decimal(v) => v };
}

impl FieldType for serde_json::Value {
    const DATA_TYPE: Option<DataType> = Some(DataType::Json);

    fn to_value(&self) -> Result<Value> {
        json_value(self)
    }

    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        from_json(value).ok()
    }
}

/// A Rust type of which a `Vec` is a list: any that is a field, but `u8`, of which a `Vec` is
/// bytes. `Vec<Option<T>>` has NULL in it.
pub trait ListItem: FieldType {}

macro_rules! list_items {
    ($($rust:ty),* $(,)?) => {
        $(impl ListItem for $rust {})*
    };
}

list_items! {
    bool, i8, i16, i32, i64, u16, u32, u64, f32, f64, String, Vec<u8>, [u8; 16], Ipv4Addr, Ipv6Addr,
    Interval, Decimal,
}

impl<T: FieldType> ListItem for Option<T> {}

impl<T: ListItem> FieldType for Vec<T> {
    const DATA_TYPE: Option<DataType> = match T::DATA_TYPE {
        Some(item) => match ListElement::find(item) {
            Some(element) => Some(DataType::List(element)),
            None => {
                panic!("a list has no enums, JSON or lists in it: `#[esker(json)]` stores those")
            }
        },
        None => None,
    };

    fn to_value(&self) -> Result<Value> {
        let items = self.iter().map(FieldType::to_value).collect::<Result<Vec<_>>>()?;
        let scale = |value: &Value| match value {
            Value::Decimal(v) => v.scale(),
            _ => 0,
        };
        // Its field has the digits that it is to have.
        let decimal = || ListElement::Decimal {
            precision: DIGITS_MAX,
            scale: items.iter().map(scale).max().unwrap_or(0), // default: there is none
        };
        let element = Self::DATA_TYPE.and_then(DataType::element);
        // default: decimals alone have no type of their own
        Ok(Value::list(element.unwrap_or_else(decimal), items.iter().map(Value::as_ref))?)
    }

    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        let ValueRef::List(bytes) = value else { return None };
        let list = List::of(bytes).ok()?;
        let item = |item: esker_format::Result<Item<'_>>| {
            T::from_value(item.ok()?.value(list.element()).ok()?.as_ref())
        };
        list.items().map(item).collect()
    }
}

impl<T: FieldType> FieldType for Option<T> {
    const DATA_TYPE: Option<DataType> = {
        assert!(!T::TAKES_NULL, "an Option of an Option: a field has one NULL only");
        T::DATA_TYPE
    };
    const LABELS: &'static [&'static str] = T::LABELS;
    const TAKES_NULL: bool = true;

    fn to_value(&self) -> Result<Value> {
        // default: None is NULL
        self.as_ref().map_or(Ok(Value::Null), FieldType::to_value)
    }

    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::from_value(value).map(Some) }
    }
}

/// Anything that serde can write, as a JSON document.
pub(crate) fn json_value<T: serde::Serialize + ?Sized>(value: &T) -> Result<Value> {
    let text = serde_json::to_string(value).map_err(|e| Error::invalid(format!("json: {e}")))?;
    Ok(Value::json(&text)?)
}

/// What serde reads from a JSON document; NULL is `null`.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(value: ValueRef<'_>) -> Result<T> {
    let text = match value {
        ValueRef::Json(document) => Json::document(document).to_string(),
        ValueRef::Null => "null".to_owned(),
        other => {
            let found = other.kind_name();
            return Err(Error::invalid(format!("expected json, found {found} {other}")));
        }
    };
    serde_json::from_str(&text).map_err(|e| Error::invalid(format!("json: {e}")))
}
