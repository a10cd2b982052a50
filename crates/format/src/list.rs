//! Lists of values of one type, in a canonical form that sorts as the lists do.
//!
//! ```text
//! list      items, 0, type
//! item      1, key form of the value     or     2, for NULL
//! type      the digits of a decimal, then the number of the type
//! ```
//!
//! A value has the bytes that [`encode_key`](crate::key::encode_key) makes of it, so that lists of
//! one type compare as bytes: item by item, NULL behind every value, and a list before one that it
//! begins. The type is at the end, where it does not disturb this. An interval has its stored form,
//! which is in the order of its length; intervals of one length that are written differently are
//! different items.
//!
//! # Invariants
//! * Equal lists have equal bytes: one spelling of each item. [`List::check`] asserts it of what is
//!   read from a disk, [`ListBuilder`] upholds it.
//! * The type is that of the field. [`List::check`] asserts it.
//!
//! Items are compared and copied as bytes; what needs their values calls [`Item::value`].

mod builder;
mod element;
#[cfg(test)]
mod tests;
mod text;

pub use builder::{ListBuilder, OwnedItem};
pub use element::ListElement;
pub(crate) use text::write;
pub use text::{from_json, parse};

use crate::codec::Reader;
use crate::interval::{INTERVAL_BYTES, Interval};
use crate::key::decode_key;
use crate::{DataType, Error, Result, Value};

const END: u8 = 0;
const VALUE: u8 = 1;
const NULL: u8 = 2;

/// A list, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List<'a> {
    element: ListElement,
    items: &'a [u8],
}

/// One item of a list, in its stored form: items of lists of one type compare as the values do,
/// NULL greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item<'a>(&'a [u8]);

impl<'a> List<'a> {
    /// The list that has this stored form. Its items are looked at when they are asked for.
    ///
    /// # Errors
    /// `Corrupt` when no type is at the end.
    pub fn of(bytes: &'a [u8]) -> Result<Self> {
        let missing = || Error::corrupt(format!("a list of {} bytes has no end", bytes.len()));
        let (code, before) = bytes.split_last().ok_or_else(missing)?;
        let decimal = DataType::Decimal { precision: 1, scale: 0 };
        let digits = if *code == decimal.code() { 2 } else { 0 };
        let (before, digits) =
            before.split_at_checked(before.len().wrapping_sub(digits)).ok_or_else(missing)?;
        let stored = [&[*code], digits].concat();
        let element = ListElement::of(DataType::decode(&mut Reader::new(&stored))?)
            .map_err(|e| Error::corrupt(e.to_string()))?;
        match before.split_last() {
            Some((&END, items)) => Ok(Self { element, items }),
            _ => Err(missing()),
        }
    }

    /// The same, with each item looked at.
    ///
    /// # Errors
    /// `Corrupt` when these are not the bytes of a list of such elements.
    pub fn check(bytes: &'a [u8], element: ListElement) -> Result<Self> {
        let list = Self::of(bytes)?;
        if list.element != element {
            let (expected, found) = (DataType::List(element), DataType::List(list.element));
            return Err(Error::corrupt(format!("expected {expected}, found {found}")));
        }
        for (i, item) in list.items().enumerate() {
            let item = item.and_then(|item| item.value(element));
            item.map_err(|e| Error::corrupt(format!("item {} of a list: {e}", i + 1)))?;
        }
        Ok(list)
    }

    /// The type of the items.
    #[must_use]
    pub fn element(self) -> ListElement {
        self.element
    }

    /// True for `{}`.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.items.is_empty()
    }

    /// The items in their order. Behind an error nothing follows.
    #[must_use]
    pub fn items(self) -> Items<'a> {
        Items { element: self.element, rest: self.items }
    }

    /// The number of items.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not those of a list.
    pub fn len(self) -> Result<usize> {
        self.items().try_fold(0, |count, item| item.map(|_| count + 1))
    }

    /// The same items as those of another type.
    ///
    /// # Errors
    /// `InvalidInput` when one of them is none of that type.
    pub fn to(self, element: ListElement) -> Result<Value> {
        let mut list = ListBuilder::new(element);
        for (i, item) in self.items().enumerate() {
            let value = item?.value(self.element)?;
            list.push(value.as_ref()).map_err(|e| e.at(format_args!("item {}", i + 1)))?;
        }
        Ok(list.finish())
    }

    /// The items as values.
    ///
    /// # Errors
    /// The same.
    pub fn values(self) -> Result<Vec<Value>> {
        self.items().map(|item| item?.value(self.element)).collect()
    }
}

/// The items of a list: see [`List::items`].
#[derive(Clone, Debug)]
pub struct Items<'a> {
    element: ListElement,
    rest: &'a [u8],
}

impl<'a> Items<'a> {
    /// How many bytes the next item has.
    fn next_len(&self) -> Result<usize> {
        let cut = || Error::corrupt("an item of a list is cut off");
        let (marker, rest) = self.rest.split_first().ok_or_else(cut)?;
        let len = match (*marker, self.element.item_width()) {
            (NULL, _) => 0,
            (VALUE, Some(width)) => width,
            (VALUE, None) => escaped_len(rest).ok_or_else(cut)?,
            (marker, _) => {
                return Err(Error::corrupt(format!("marker {marker} in front of an item")));
            }
        };
        if len > rest.len() { Err(cut()) } else { Ok(len + 1) }
    }
}

/// How many bytes a text has up to its end, with that: `00 ff` is within it, `00 00` ends it.
fn escaped_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        at += rest.iter().position(|byte| *byte == 0)? + 2;
        match bytes.get(at - 1)? {
            0 => return Some(at),
            _ => continue,
        }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let len = self.next_len();
        let (item, rest) = match &len {
            // The length is one that is there.
            Ok(len) => self.rest.split_at_checked(*len)?,
            Err(_) => self.rest.split_at(self.rest.len()),
        };
        self.rest = rest;
        Some(len.map(|_| Item(item)))
    }
}

impl<'a> Item<'a> {
    /// NULL.
    pub const NULL: Item<'static> = Item(&[NULL]);

    /// True for NULL.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.first() == Some(&NULL)
    }

    /// The stored form.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The value.
    ///
    /// # Errors
    /// `Corrupt` when it is none of the type, or not written in the one way.
    pub fn value(self, element: ListElement) -> Result<Value> {
        let mut rest = match self.0.split_first() {
            Some((&NULL, [])) => return Ok(Value::Null),
            Some((&VALUE, rest)) => rest,
            _ => return Err(Error::corrupt("an item of a list has no marker")),
        };
        let value = match element {
            ListElement::Interval => {
                let stored = rest.split_first_chunk::<INTERVAL_BYTES>();
                let (stored, behind) = stored.ok_or_else(|| Error::corrupt("a short interval"))?;
                rest = behind;
                Value::Interval(Interval::from_stored(stored)?)
            }
            _ => decode_key(&mut rest, element.data_type())?,
        };
        match rest.len() {
            0 => Ok(value),
            more => Err(Error::corrupt(format!("{more} bytes behind an item of a list"))),
        }
    }
}
