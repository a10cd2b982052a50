//! The hashes of the keys of many rows.

use esker_format::{Field, Room, Schema};

use crate::view::RowGroup;
use crate::{KeyHasher, Result, Table};

/// Hashes the keys of many rows of a table where they lie.
pub struct RowHasher<'a> {
    hasher: &'a KeyHasher,
    /// The fields of the key; none where it is the row id.
    fields: Vec<&'a Field>,
}

impl<'a> RowHasher<'a> {
    /// Of rows that are read by a schema of the table.
    #[must_use]
    pub fn new(table: &'a Table, schema: &'a Schema) -> Self {
        Self { hasher: table.hasher(), fields: schema.key_fields().collect() }
    }

    /// The hash under which a row is indexed.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn hash(&self, row_group: &RowGroup, row: usize) -> Result<u64> {
        match self.fields.as_slice() {
            [] => Ok(self.hasher.hash_row_id(row_group.row_id(row)?)),
            fields => {
                let room = Room::default();
                self.hasher.hash_read(fields.iter().map(|f| row_group.value(f, row, &room)))
            }
        }
    }
}
