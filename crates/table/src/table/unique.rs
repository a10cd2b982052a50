//! The values of a unique index: where each living row has them.
//!
//! ```text
//!   values ─hash─► entries ─► location ─► view ─► row group, row ─► alive, and equal? ─► taken
//! ```
//!
//! The structure is that of the primary index, and so are the rules by which it is published: an
//! entry is inserted under the commit lock after its row, moved by the rewrite of the row's row
//! group, and removed when the row is dropped. It differs in what a row may do: rows with a NULL
//! among the values have no entry, and an update may change the values.
//!
//! # Invariants
//!
//! 1. Every living row without a NULL has one entry under the hash of its values: the table's
//!    writer enters it; asserted by `enter`.
//! 2. Other entries lead to dead rows, to rows of a load that has not committed, or to nothing. One
//!    of a dead row is taken by the next row of its hash: a value that comes and goes has one
//!    entry, not one for each time, all of which would be looked at.
//! 3. No two living rows have equal values: a commit is refused before, by `held`.
//!
//! Readers of rows do not look here: an old version may have lost its entry to the one that
//! took its place. The entries are in memory only, and are put together anew when a database is
//! opened.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use esker_arena::{Arena, Category, PartitionedHash};
use esker_format::json::Json;
use esker_format::schema::{Index, IndexField};
use esker_format::{Field, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;

use super::Table;
use crate::location::Location;
use crate::lookup::{Visited, versions};
use crate::view::{RowGroup, View};
use crate::{Error, ErrorKind, Result};

/// The entries of one unique index.
pub struct UniqueKeys {
    index: Index,
    entries: PartitionedHash,
}

impl fmt::Debug for UniqueKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UniqueKeys").field("index", &self.index).finish_non_exhaustive()
    }
}

/// A living row that has some values of a unique index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its row id.
    pub row_id: u64,
    /// Where it is.
    pub location: Location,
    /// What its entry says.
    pub entry: Location,
}

/// What there is under the hash of some values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The living row that has them.
    pub holder: Option<Holder>,
    /// The entry of a dead row, which no reader needs any more.
    pub dead: Option<Location>,
}

/// What a put does to one unique index.
#[derive(Clone, Debug)]
pub struct UniqueEntry {
    /// The index.
    pub keys: Arc<UniqueKeys>,
    /// The hash of the row's values.
    pub hash: u64,
    /// The entry that it takes: that of the row's older version, when that has the same values, or
    /// that of a dead row.
    pub old: Option<Location>,
}

impl UniqueKeys {
    /// The entries of an index of a table without rows.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full.
    pub fn new(index: Index, arena: &Arc<Arena>) -> Result<Self> {
        Ok(Self { index, entries: PartitionedHash::new(arena, Category::Index)? })
    }

    /// Those of all unique indexes of a schema.
    pub(super) fn of_schema(schema: &Schema, arena: &Arc<Arena>) -> Result<Vec<Arc<Self>>> {
        let new = |index: &Index| Self::new(index.clone(), arena).map(Arc::new);
        schema.unique_indexes().map(new).collect()
    }

    /// The index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Hashes of values, and locations.
    #[must_use]
    pub fn entries(&self) -> &PartitionedHash {
        &self.entries
    }

    /// The fields of the index, as a schema has them.
    pub fn fields<'a>(&'a self, schema: &'a Schema) -> impl Iterator<Item = &'a Field> {
        self.index.fields.iter().filter_map(|part| schema.field_of(part.field))
    }

    /// The positions of the fields in a schema.
    #[must_use]
    pub fn positions(&self, schema: &Schema) -> Vec<usize> {
        let position = |id| schema.fields().iter().position(|field| field.id == id);
        self.index.fields.iter().filter_map(|part| position(part.field)).collect()
    }

    /// True when some part is a path into documents.
    #[must_use]
    pub fn has_path(&self) -> bool {
        self.index.fields.iter().any(|part| !part.path.is_empty())
    }

    /// What is compared of the values of the fields.
    pub fn compared<'a>(
        &self,
        values: impl Iterator<Item = ValueRef<'a>>,
    ) -> impl Iterator<Item = ValueRef<'a>> {
        self.index.fields.iter().zip(values).map(|(part, value)| part.compared(value))
    }

    /// The values that a row has in the index; `None` when one is NULL.
    #[must_use]
    pub fn values_of<'a>(&self, schema: &Schema, row: &'a [Value]) -> Option<Vec<ValueRef<'a>>> {
        let positions = self.positions(schema);
        let values = positions.iter().filter_map(|at| row.get(*at)).map(Value::as_ref);
        without_null(self.compared(values).collect())
    }

    /// The values of a stored row; `None` when one is NULL.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; the same below.
    pub fn values_at<'a>(
        &'a self,
        schema: &'a Schema,
        row_group: &'a RowGroup,
        row: usize,
    ) -> Result<Option<Vec<ValueRef<'a>>>> {
        let values: Result<Vec<_>> = self.fields(schema).map(|f| row_group.value(f, row)).collect();
        Ok(without_null(self.compared(values?.into_iter()).collect()))
    }

    /// The hash under which a row of a table is entered; `None` when a value is NULL.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn hash_at(
        &self,
        table: &Table,
        schema: &Schema,
        row_group: &RowGroup,
        row: usize,
    ) -> Result<Option<u64>> {
        let values = self.values_at(schema, row_group, row)?;
        Ok(values.map(|values| table.hasher().hash_key(values)))
    }

    /// Does a stored row have these values?
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn equals(
        &self,
        schema: &Schema,
        (row_group, row): (&RowGroup, usize),
        values: &[ValueRef<'_>],
    ) -> Result<bool> {
        let parts = self.index.fields.iter().zip(self.fields(schema));
        for ((part, field), value) in parts.zip(values) {
            if part.compared(row_group.value(field, row)?) != *value {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Shows every row, dead ones too, that may have some values by its hash, and what its entry
    /// says, until `visit` breaks.
    ///
    /// # Errors
    /// What `visit` says, or `Corrupt` when an entry leads nowhere.
    pub fn candidates<B, E: From<Error>>(
        &self,
        view: &View,
        hash: u64,
        visit: impl FnMut((&RowGroup, usize), Location) -> Visited<B, E>,
    ) -> std::result::Result<Option<B>, E> {
        versions(&self.entries, hash, |entry| view.resolve(entry), visit)
    }

    /// The living row that has some values. Under the commit lock.
    ///
    /// # Errors
    /// `Conflict` when a load that has not committed has them, `Corrupt` for damage.
    pub fn holder(
        &self,
        view: &View,
        hash: u64,
        values: &[ValueRef<'_>],
    ) -> Result<Option<Holder>> {
        self.held(view, hash, values).map(|held| held.holder)
    }

    /// The living row that has some values, and an entry that can be taken. Under the commit lock.
    ///
    /// # Errors
    /// As [`UniqueKeys::holder`].
    pub fn held(&self, view: &View, hash: u64, values: &[ValueRef<'_>]) -> Result<Held> {
        let schema = &view.schema;
        let mut held = Held::default();
        // All are looked at: behind the living row there may be one of a load, which is not counted
        // of what happens to this one.
        self.candidates::<(), Error>(view, hash, |(row_group, row), entry| {
            if !row_group.is_alive(row) {
                held.dead = Some(entry).filter(|_| !row_group.is_loading()).or(held.dead);
                return Ok(ControlFlow::Continue(()));
            }
            if !self.equals(schema, (row_group, row), values)? {
                return Ok(ControlFlow::Continue(()));
            }
            if row_group.is_loading() {
                let what = self.describe(schema, values);
                let message = format!("{what}: a load that has not committed has it; try again");
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            let (row_id, location) = (row_group.row_id(row)?, Location::new(row_group.id(), row));
            held.holder = Some(Holder { row_id, location, entry });
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(held)
    }

    /// The index and some values as errors write them: `unique index "by_mail": mail = "a@b"`.
    #[must_use]
    pub fn describe(&self, schema: &Schema, values: &[ValueRef<'_>]) -> String {
        let names = self.index.fields.iter().map(|part| schema.place_of(part));
        let written = |(part, value): (&IndexField, &ValueRef<'_>)| match value {
            // An array or an object.
            ValueRef::Bytes(document) if !part.path.is_empty() => {
                Json::document(document).to_string()
            }
            value => value.to_string(),
        };
        let values = self.index.fields.iter().zip(values).map(written);
        let pairs: Vec<String> =
            names.zip(values).map(|(name, value)| format!("{name} = {value}")).collect();
        format!("unique index {:?}: {}", self.index.name, pairs.join(", "))
    }

    /// Enters a row. Under the commit lock.
    pub(super) fn enter(&self, hash: u64, old: Option<Location>, location: Location) -> Result<()> {
        let moved = old.is_some_and(|old| self.entries.replace(hash, old.word(), location.word()));
        if !moved && !Bug::UniqueEntryNotEntered.is_planted() {
            self.entries.insert(hash, location.word())?;
        }
        debug_assert!(
            self.entries.contains(hash, location.word()),
            "unique index {:?}: no entry of {location:?}",
            self.index.name
        );
        Ok(())
    }
}

fn without_null(values: Vec<ValueRef<'_>>) -> Option<Vec<ValueRef<'_>>> {
    values.iter().all(|value| !value.is_null()).then_some(values)
}

impl Table {
    /// The entries of the unique indexes.
    #[must_use]
    pub fn uniques(&self) -> Arc<Vec<Arc<UniqueKeys>>> {
        self.uniques.load_full()
    }

    /// True when some index is unique.
    #[must_use]
    pub fn has_uniques(&self) -> bool {
        !self.uniques.load().is_empty()
    }

    /// From now on the unique indexes of a schema are entered: those that there were, and new ones,
    /// which have all rows already. Under the commit lock.
    ///
    /// # Errors
    /// `Corrupt` when the entries of a unique index are unknown; nothing is changed then.
    pub(super) fn set_uniques(&self, schema: &Schema, new: &[Arc<UniqueKeys>]) -> Result<()> {
        let before = self.uniques.load();
        let known = |index: &Index| {
            let mut all = before.iter().chain(new);
            all.find(|keys| keys.index.id == index.id).map(Arc::clone).ok_or_else(|| {
                let (table, name) = (self.id.0, &index.name);
                Error::corrupt(format!("table {table}: unique index {name:?} has no entries"))
            })
        };
        let uniques = schema.unique_indexes().map(known).collect::<Result<_>>()?;
        self.uniques.store(Arc::new(uniques));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use esker_arena::ArenaOptions;
    use esker_format::schema::{Alteration, IndexKind, NewIndex};
    use esker_format::{DataType, Moment, TableId};

    use super::*;
    use crate::{ErrorKind, KeyHasher, TableWriter};

    /// It was dropped: the table went on without it, and took equal values.
    #[test]
    fn a_unique_index_without_entries_is_an_error() {
        let schema = Schema::builder().field("mail", DataType::Text).build().unwrap();
        let new = NewIndex {
            name: "by_mail".into(),
            kind: IndexKind::Ordered,
            unique: true,
            fields: vec![("mail".into(), false)],
        };
        let after = Arc::new(schema.alter(&[Alteration::AddIndex(new)]).unwrap());
        let arena = Arena::new(ArenaOptions::default()).unwrap();
        let (name, hasher) = ("t".to_owned(), KeyHasher::new([1, 2]));
        let table = Table::new(TableId(1), name, Arc::new(schema), arena, hasher).unwrap();
        let table = Arc::new(table);
        let mut writer = TableWriter::new(Arc::clone(&table), 1);
        let error = writer.alter(after, &[], (1, Moment::FIRST)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("\"by_mail\" has no entries"), "{error}");
        assert!(table.schema().indexes().is_empty(), "nothing is changed");
    }
}
