//! Which long values a row group refers to.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_arena::ReadCommits;
use esker_format::{Field, ValueReference};

use super::{StoredValue, ValueFile};
use crate::view::RowGroup;
use crate::{Error, Result};

impl RowGroup {
    /// Has some row a long value?
    #[must_use]
    pub fn refers_to_files(&self) -> bool {
        match self {
            Self::Group(group) => group.long_bytes() > 0,
            Self::Segment(segment) => !segment.value_files().is_empty(),
        }
    }

    /// Has some row a long value for a field?
    #[must_use]
    pub fn has_long(&self, field: &Field) -> bool {
        match self {
            Self::Group(group) => group.column_of(field).is_some_and(|column| column.has_long()),
            Self::Segment(segment) => segment.has_long(field),
        }
    }

    /// Where the value of a row lies, when it is long.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; the same below.
    pub fn long_value(&self, field: &Field, row: usize) -> Result<Option<ValueReference>> {
        match self {
            Self::Group(group) => {
                Ok(group.column_of(field).and_then(|column| column.long_value(row)))
            }
            Self::Segment(segment) => segment.long_value(field, row),
        }
    }

    /// The long value of a row, with its file.
    ///
    /// # Errors
    /// `Corrupt` also when the row group does not name the file.
    pub fn stored_value(&self, field: &Field, row: usize) -> Result<Option<StoredValue>> {
        let Some(reference) = self.long_value(field, row)? else { return Ok(None) };
        let file = match self {
            Self::Group(group) => group.files.get(reference.file).cloned(),
            Self::Segment(_) => {
                self.value_files().into_iter().find(|file| file.id() == reference.file)
            }
        };
        let missing = || Error::corrupt(format!("unit {}: no file for {reference}", self.id()));
        Ok(Some(StoredValue::durable(reference, file.ok_or_else(missing)?)))
    }

    /// The value files that rows refer to.
    #[must_use]
    pub fn value_files(&self) -> Vec<Arc<ValueFile>> {
        match self {
            Self::Group(group) => group.files.iter().cloned().collect(),
            Self::Segment(segment) => segment.value_files().to_vec(),
        }
    }

    /// Bytes of value files that the long values of rows take, but for the dead rows that a rewrite
    /// would drop.
    pub fn long_bytes_kept(
        &self,
        fields: &[Field],
        readers: &ReadCommits,
    ) -> Result<BTreeMap<u64, u64>> {
        let mut bytes = BTreeMap::new();
        for field in fields.iter().filter(|field| self.has_long(field)) {
            for row in 0..self.row_count() {
                if self.is_droppable(row, readers) {
                    continue;
                }
                if let Some(reference) = self.long_value(field, row)? {
                    *bytes.entry(reference.file).or_default() += reference.space();
                }
            }
        }
        Ok(bytes)
    }

    /// The value files that the rows of a group refer to which a commit sees.
    pub fn value_files_at(&self, fields: &[Field], at: u64) -> Result<Vec<Arc<ValueFile>>> {
        let mut files: Vec<Arc<ValueFile>> = Vec::new();
        for field in fields.iter().filter(|field| self.has_long(field)) {
            for row in (0..self.row_count()).filter(|row| self.is_visible(*row, at)) {
                let stored = self.stored_value(field, row)?;
                files.extend(stored.map(|stored| stored.file));
                files.sort_by_key(|file| file.id());
                files.dedup_by_key(|file| file.id());
            }
        }
        Ok(files)
    }

    /// Reads and verifies every long value of a group again; a segment does so by itself.
    pub fn verify_long(&self, fields: &[Field]) -> Result<()> {
        for field in fields.iter().filter(|field| self.has_long(field)) {
            for row in 0..self.row_count() {
                if let Some(stored) = self.stored_value(field, row)? {
                    stored.file.verify(&stored.reference)?;
                }
            }
        }
        Ok(())
    }
}
