//! Rows by their keys, read where they lie.

use esker_format::{Room, Schema, ValueRef};
use esker_table::Found;

use crate::commit::fit::fit_key_of;
use crate::{Result, SnapshotTable, Table};

/// A row where it lies: nothing of it is copied.
pub struct RowRef<'r> {
    found: &'r Found<'r>,
    room: Room,
}

impl RowRef<'_> {
    /// The fields.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        self.found.schema
    }

    /// The value of a field by its position; NULL where there is none.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    #[inline]
    pub fn value(&self, position: usize) -> Result<ValueRef<'_>> {
        match self.found.schema.fields().get(position) {
            Some(field) => Ok(self.found.row_group.value(field, self.found.row, &self.room)?),
            None => Ok(ValueRef::Null),
        }
    }
}

impl std::fmt::Debug for RowRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowRef").finish_non_exhaustive()
    }
}

impl Table {
    /// Hands the row with a key to `visit`, where it lies; `None` when there is none.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema, ValueRef};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("name", DataType::Text).field("n", DataType::U8);
    /// let table = db.create_table("t", schema.primary_key(["name"]).build()?)?;
    /// table.insert(&["a".into(), 5u8.into()])?;
    /// let is_five = table.visit(&[ValueRef::Text("a")], |row| {
    ///     Ok(row.value(1)?.is_identical(ValueRef::Uint(5)))
    /// })?;
    /// assert_eq!(is_five, Some(true));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Table::get`], and those of `visit`.
    pub fn visit<R>(
        &self,
        key: &[ValueRef<'_>],
        mut visit: impl FnMut(&RowRef<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        let key = fit_key_of(self.first_schema(), key.len(), key.iter().copied())?;
        self.find(&key, |found| Ok(visit(&RowRef { found, room: Room::default() })))?.transpose()
    }
}

impl SnapshotTable {
    /// Hands the row with a key to `visit`, where it lies: see [`Table::visit`].
    ///
    /// # Errors
    /// As for [`Table::get`], and those of `visit`.
    pub fn visit<R>(
        &self,
        key: &[ValueRef<'_>],
        mut visit: impl FnMut(&RowRef<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        let key = fit_key_of(self.schema(), key.len(), key.iter().copied())?;
        self.find(&key, |found| Ok(visit(&RowRef { found: &found, room: Room::default() })))?
            .transpose()
    }
}
