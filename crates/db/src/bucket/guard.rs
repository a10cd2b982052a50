//! A value of a bucket, where it lies.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use esker_format::{Field, Room, Schema, ValueRef};
use esker_table::value_location::ValueLocation;
use esker_table::view::RowGroup;

use super::{VALUE, VALUE_POSITION};
use esker_table::{Error, Found, Result};

/// A value that was read: not copied, and the same for as long as it is held, whatever is written,
/// merged or removed meanwhile. It keeps the segment or the group that it lies in alive.
pub struct BucketValue {
    held: Held,
}

enum Held {
    /// In a row group, whose bytes have been verified.
    Near { row_group: RowGroup, place: ValueLocation },
    /// In a row group, among values that have another form there.
    Row { row_group: RowGroup, schema: Arc<Schema>, row: usize, room: Room },
    /// A value in a file of its own.
    Copied(Vec<u8>),
}

/// The field that values are in.
pub(super) fn value_field(schema: &Schema) -> Result<&Field> {
    let field = schema.fields().get(VALUE_POSITION);
    field.ok_or_else(|| Error::corrupt(format!("no field {VALUE:?}")))
}

/// The bytes of a key or a value.
pub(super) fn stored_bytes(value: ValueRef<'_>) -> Result<&[u8]> {
    let kind = value.kind_name();
    value.as_bytes().ok_or_else(|| Error::corrupt(format!("{kind} in a bucket, expected bytes")))
}

/// Hands the value of an entry to `take`, where it lies; its bytes are verified here.
#[inline]
pub(super) fn read<R>(found: &Found<'_>, take: impl FnOnce(&[u8]) -> R) -> Result<R> {
    let field = value_field(found.schema)?;
    if let Some(bytes) = found.row_group.cell(field, found.row) {
        return Ok(take(bytes));
    }
    Ok(match found.row_group.in_place_bytes(field, found.row)? {
        Some((_, bytes)) => take(bytes),
        None => {
            let room = Room::default();
            take(stored_bytes(found.row_group.value(field, found.row, &room)?)?)
        }
    })
}

/// The elapsed time at which an entry ends, if it does.
pub(super) fn end_of(found: &Found<'_>) -> Result<Option<i64>> {
    let (field, room) = (found.schema.expiry_field(), Room::default());
    let value = |field| found.row_group.value(field, found.row, &room);
    Ok(match field.map(value).transpose()? {
        Some(ValueRef::Timestamp(at_us)) => Some(at_us),
        _ => None,
    })
}

/// A copy of the value of an entry, and when it ends.
pub(crate) fn with_end(found: &Found<'_>) -> Result<(Vec<u8>, Option<i64>)> {
    let value = BucketValue::new(found.row_group, found.schema, found.row)?;
    Ok((value.into_vec(), end_of(found)?))
}

impl BucketValue {
    /// The value of an entry; its bytes are verified here.
    pub(crate) fn new(row_group: &RowGroup, schema: &Arc<Schema>, row: usize) -> Result<Self> {
        let field = value_field(schema)?;
        if let Some(place) = row_group.value_location(field, row)? {
            return Ok(Self::near(row_group, place));
        }
        let room = Room::default();
        let value = row_group.value(field, row, &room)?;
        Ok(match row_group.has_long(field) && row_group.long_value(field, row)?.is_some() {
            true => Self::copied(stored_bytes(value)?.to_vec()),
            false => Self::lying(row_group, schema, row),
        })
    }

    /// Bytes that were copied.
    pub(crate) fn copied(bytes: Vec<u8>) -> Self {
        Self { held: Held::Copied(bytes) }
    }

    /// A value at a place in a row group, verified.
    pub(super) fn near(row_group: &RowGroup, place: ValueLocation) -> Self {
        Self { held: Held::Near { row_group: row_group.clone(), place } }
    }

    /// A value that lies in a row group and has been verified.
    pub(super) fn lying(row_group: &RowGroup, schema: &Arc<Schema>, row: usize) -> Self {
        let (row_group, schema, room) = (row_group.clone(), Arc::clone(schema), Room::default());
        Self { held: Held::Row { row_group, schema, row, room } }
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match &self.held {
            Held::Near { row_group, place } => row_group.bytes_at(place),
            Held::Copied(bytes) => bytes,
            Held::Row { row_group, schema, row, room } => {
                let field = schema.fields().get(VALUE_POSITION);
                let column =
                    field.and_then(|field| row_group.column(field, *row..row + 1, room).ok());
                debug_assert!(column.is_some(), "a value that was verified can be read");
                // default: what was verified can be read
                column.map_or(&[], |column| column.bytes(0))
            }
        }
    }

    /// A copy of the bytes.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        match self.held {
            Held::Copied(bytes) => bytes,
            Held::Near { .. } | Held::Row { .. } => self.as_slice().to_vec(),
        }
    }
}

impl Deref for BucketValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for BucketValue {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for BucketValue {
    fn eq(&self, other: &T) -> bool {
        self.as_slice() == other.as_ref()
    }
}

impl fmt::Debug for BucketValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BucketValue").field(&self.as_slice().escape_ascii().to_string()).finish()
    }
}
