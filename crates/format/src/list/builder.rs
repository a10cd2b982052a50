//! Making lists.

use super::{END, Item, ListElement, NULL, VALUE};
use crate::codec::Writer;
use crate::key::encode_key;
use crate::row::VALUE_BYTES_MAX;
use crate::{Error, Result, Value, ValueRef};

/// A list that is being made.
///
/// ```
/// use esker_format::list::{ListBuilder, ListElement};
/// use esker_format::ValueRef;
///
/// let mut list = ListBuilder::new(ListElement::Text);
/// list.push(ValueRef::Text("a b"))?;
/// list.push(ValueRef::Null)?;
/// assert_eq!(list.finish().to_string(), r#"{"a b",NULL}"#);
/// # Ok::<(), esker_format::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ListBuilder {
    element: ListElement,
    bytes: Vec<u8>,
}

impl ListBuilder {
    /// An empty list.
    #[must_use]
    pub const fn new(element: ListElement) -> Self {
        Self { element, bytes: Vec::new() }
    }

    /// The bytes so far.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a value, or NULL.
    ///
    /// # Errors
    /// `InvalidInput` when it is not of the type of the items, or the list becomes too long.
    pub fn push(&mut self, value: ValueRef<'_>) -> Result<()> {
        let value = value.coerce(self.element.data_type())?;
        match value {
            ValueRef::Null => self.bytes.push(NULL),
            ValueRef::Interval(stored) => {
                self.bytes.push(VALUE);
                self.bytes.extend_from_slice(stored);
            }
            value => {
                self.bytes.push(VALUE);
                encode_key(&mut self.bytes, self.element.data_type(), value);
            }
        }
        self.check_length()
    }

    /// Appends an item of a list of the same type.
    ///
    /// # Errors
    /// `InvalidInput` when the list becomes too long.
    pub fn push_item(&mut self, item: Item<'_>) -> Result<()> {
        self.bytes.extend_from_slice(item.as_bytes());
        self.check_length()
    }

    fn check_length(&self) -> Result<()> {
        // The end has at most four bytes.
        if self.bytes.len() > VALUE_BYTES_MAX - 4 {
            return Err(Error::invalid(format!(
                "a list of more than {VALUE_BYTES_MAX} bytes, at most {VALUE_BYTES_MAX}"
            )));
        }
        Ok(())
    }

    /// The list.
    #[must_use]
    pub fn finish(self) -> Value {
        Value::List(self.into_bytes())
    }

    /// The stored form of the list.
    #[must_use]
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.push(END);
        let mut stored = Writer::new();
        self.element.data_type().encode(&mut stored);
        if let Some((code, digits)) = stored.as_bytes().split_first() {
            self.bytes.extend_from_slice(digits);
            self.bytes.push(*code);
        }
        self.bytes
    }
}

/// An item of a list, or what could be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedItem(Vec<u8>);

impl OwnedItem {
    /// A value, or NULL, as an item of a list of a type.
    ///
    /// # Errors
    /// `InvalidInput` when it is not of this type.
    pub fn new(element: ListElement, value: ValueRef<'_>) -> Result<Self> {
        let mut alone = ListBuilder::new(element);
        alone.push(value)?;
        Ok(Self(alone.bytes))
    }

    /// Borrows the item.
    #[must_use]
    pub fn as_item(&self) -> Item<'_> {
        Item(&self.0)
    }
}

impl Value {
    /// A list of values.
    ///
    /// # Errors
    /// `InvalidInput` when one of them is not of the type, or the list is too long.
    pub fn list<'a>(
        element: ListElement,
        values: impl IntoIterator<Item = ValueRef<'a>>,
    ) -> Result<Self> {
        let mut list = ListBuilder::new(element);
        for (i, value) in values.into_iter().enumerate() {
            list.push(value).map_err(|e| e.at(format_args!("item {}", i + 1)))?;
        }
        Ok(list.finish())
    }
}
