//! Keys as bytes that sort as the keys do. What events of a stream are sorted by is their time and
//! their row id.

use std::cmp::Ordering;

use esker_format::key::encode_key;
use esker_format::{DataType, Field, Room, Schema, ValueRef};

use crate::Result;
use crate::view::RowGroup;

/// How the keys of a table become bytes: a key that is one text or byte string is its bytes, any
/// other the order-preserving form of its values, end to end.
#[derive(Clone, Debug)]
pub struct KeyForm {
    fields: Vec<Field>,
    is_plain: bool,
    /// The row id comes last, as it does in a stream.
    ends_with_row_id: bool,
}

impl KeyForm {
    /// The form of the keys of a table, or of what events of a stream are sorted by.
    #[must_use]
    pub fn of(schema: &Schema) -> Self {
        let fields: Vec<Field> = schema.sort_fields().cloned().collect();
        let is_plain = match fields.as_slice() {
            [one] => one.data_type.may_be_long() && one.data_type != DataType::Json,
            _ => false,
        };
        Self { fields, is_plain, ends_with_row_id: schema.stream().is_some() }
    }

    /// The only field of a key that is its own bytes.
    pub(crate) fn plain_field(&self) -> Option<&Field> {
        self.fields.first().filter(|_| self.is_plain)
    }

    /// The bytes of a key, or of its first values. Values have the types of their fields; a row id
    /// is a `Uint`.
    #[must_use]
    pub fn encode(&self, key: &[ValueRef<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_plain {
            // default: of no values there are no bytes
            out.extend(key.first().and_then(|value| value.as_bytes()).unwrap_or_default());
            return out;
        }
        for (field, value) in self.fields.iter().zip(key) {
            encode_key(&mut out, field.data_type, *value);
        }
        if let (true, Some(row_id)) = (self.ends_with_row_id, key.get(self.fields.len())) {
            encode_key(&mut out, DataType::U64, *row_id);
        }
        out
    }

    /// Reads the key of a row.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; the same below.
    pub fn read(&self, row_group: &RowGroup, row: usize, key: &mut Vec<u8>) -> Result<()> {
        key.clear();
        let room = Room::default();
        if let Some(field) = self.plain_field() {
            key.extend_from_slice(bytes_of(row_group, field, row, &room)?);
            return Ok(());
        }
        for field in &self.fields {
            encode_key(key, field.data_type, row_group.value(field, row, &room)?);
        }
        if self.ends_with_row_id {
            encode_key(key, DataType::U64, ValueRef::Uint(row_group.row_id(row)?));
        }
        Ok(())
    }

    /// How the key of a row compares with the bytes of a key; `scratch` is overwritten.
    pub(crate) fn compare(
        &self,
        row_group: &RowGroup,
        row: usize,
        key: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<Ordering> {
        if let Some(field) = self.plain_field() {
            let room = Room::default();
            return Ok(bytes_of(row_group, field, row, &room)?.cmp(key));
        }
        self.read(row_group, row, scratch)?;
        Ok(scratch.as_slice().cmp(key))
    }
}

/// The bytes of a key that is one field.
#[inline]
pub(super) fn bytes_of<'a>(
    row_group: &'a RowGroup,
    field: &'a Field,
    row: usize,
    room: &'a Room,
) -> Result<&'a [u8]> {
    if let Some(bytes) = row_group.cell(field, row) {
        return Ok(bytes);
    }
    Ok(match row_group.in_place_bytes(field, row)? {
        Some((_, bytes)) => bytes,
        None => row_group.column(field, row..row + 1, room)?.bytes(0),
    })
}
