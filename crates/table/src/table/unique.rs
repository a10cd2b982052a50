//! The values of a unique index: where each living row has them.
//!
//! ```text
//!   values ─hash─► entries ─► location ─► view ─► row group, row ─► alive, and equal? ─► taken
//! ```
//!
//! The structure is that of the primary index, and so are the rules by which it is published: an
//! entry is inserted under the commit lock after its row, moved by the rewrite of the row's row
//! group, and removed when the row is dropped. It differs in what a row may do: rows with a NULL
//! among the values have no entry, nor those that the filter of the index leaves out, and an update
//! may change the values.
//!
//! # Invariants
//!
//! 1. Every living row of the index without a NULL has one entry under the hash of its values: the
//!    table's writer enters it; asserted by `enter`.
//! 2. Other entries lead to dead rows, to rows of a load that has not committed, or to nothing. One
//!    of a dead row is taken by the next row of its hash: a value that comes and goes has one
//!    entry, not one for each time, all of which would be looked at.
//! 3. No two living rows have equal values: a commit is refused before, by `held`.
//!
//! Readers of rows do not look here: an old version may have lost its entry to the one that
//! took its place. The entries are in memory only, and are put together anew when a database is
//! opened.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use esker_arena::{Arena, Category, PartitionedHash};
use esker_format::json::Json;
use esker_format::schema::{Index, IndexField};
use esker_format::{ColumnSlice, DataType, Field, Room, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;

use super::Table;
use crate::index_values::{
    ComputedValues, Failing, IndexCompiler, IndexValues, KeyColumns, of_row, of_values, type_of,
};
use crate::location::Location;
use crate::lookup::{Visited, versions};
use crate::segment::Segment;
use crate::view::{RowGroup, View};
use crate::{Error, ErrorKind, Result};

/// The entries of one unique index.
pub struct UniqueKeys {
    index: Index,
    entries: PartitionedHash,
    /// What computes parts of the index, and which rows it has.
    values: Option<Arc<dyn IndexValues>>,
}

/// The place of values that are computed of a row, while they are looked up.
#[derive(Default)]
pub struct ComputedRow {
    computed: ComputedValues,
    room: Room,
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
    /// The entries of an index of a table without rows, which has a schema.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full, and what the compiler says.
    pub fn new(
        schema: &Schema,
        index: &Index,
        arena: &Arc<Arena>,
        compiler: IndexCompiler,
    ) -> Result<Self> {
        let values = compiler(schema, index)?;
        let entries = PartitionedHash::new(arena, Category::Index)?;
        Ok(Self { index: index.clone(), entries, values })
    }

    /// Those of all unique indexes of a schema.
    pub(super) fn of_schema(
        schema: &Schema,
        arena: &Arc<Arena>,
        compiler: IndexCompiler,
    ) -> Result<Vec<Arc<Self>>> {
        let new = |index: &Index| Self::new(schema, index, arena, compiler).map(Arc::new);
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

    /// Whether a part is computed, or rows are left out: [`UniqueKeys::columns`] has the values.
    #[must_use]
    pub fn is_computed(&self) -> bool {
        self.values.is_some()
    }

    /// The values of rows whose columns `column` gives by field.
    ///
    /// # Errors
    /// What `column` says; `InvalidInput` when a value cannot be computed.
    pub fn columns<'a>(
        &'a self,
        schema: &'a Schema,
        rows: usize,
        column: &dyn Fn(&'a Field) -> Result<ColumnSlice<'a>>,
    ) -> Result<KeyColumns<'a>> {
        let values = self.values.as_deref();
        KeyColumns::new(&self.index, values, schema, rows, column, Failing::Refused)
    }

    /// The values of some rows of a segment.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn columns_of<'a>(
        &'a self,
        schema: &'a Schema,
        segment: (&'a Segment, Range<usize>, &'a Room),
    ) -> Result<KeyColumns<'a>> {
        KeyColumns::of_segment(&self.index, self.values.as_deref(), schema, segment)
    }

    /// The types of its parts.
    #[must_use]
    pub fn types(&self, schema: &Schema) -> Vec<DataType> {
        let parts = 0..self.index.fields.len();
        parts.filter_map(|part| type_of(&self.index, part, schema)).collect()
    }

    /// The fields of the index, as a schema has them; none of a part that is computed.
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

    /// The values that a row has in the index; `None` when one is NULL, or the index has not the
    /// row. `room` is for what is computed.
    ///
    /// # Errors
    /// `InvalidInput` when a value cannot be computed.
    pub fn values_of<'a>(
        &self,
        schema: &Schema,
        row: &'a [Value],
        room: &'a mut ComputedRow,
    ) -> Result<Option<Vec<ValueRef<'a>>>> {
        let position = |id| schema.fields().iter().position(|field| field.id == id);
        if let Some(values) = &self.values {
            room.computed = of_values(&**values, schema, row)?;
            let of_part = |part: &IndexField| {
                let value = position(part.field).and_then(|at| row.get(at));
                // default: a row that fits has a value for each field
                Ok(value.map_or(ValueRef::Null, Value::as_ref))
            };
            return self.with_computed(&room.computed, of_part);
        }
        let positions = self.positions(schema);
        let values = positions.iter().filter_map(|at| row.get(*at)).map(Value::as_ref);
        Ok(without_null(self.compared(values).collect()))
    }

    /// What was computed of one row, with the values of the fields between.
    fn with_computed<'a>(
        &self,
        computed: &'a ComputedValues,
        value: impl Fn(&IndexField) -> Result<ValueRef<'a>>,
    ) -> Result<Option<Vec<ValueRef<'a>>>> {
        if !computed.has(0) {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(self.index.fields.len());
        for (number, part) in self.index.fields.iter().enumerate() {
            values.push(match computed.columns.get(number) {
                Some(Some(column)) => column.value(0),
                _ => part.compared(value(part)?),
            });
        }
        Ok(without_null(values))
    }

    /// The values of a stored row; `None` when one is NULL, or the index has not the row.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; the same below.
    pub fn values_at<'a>(
        &'a self,
        schema: &'a Schema,
        (row_group, row): (&'a RowGroup, usize),
        room: &'a mut ComputedRow,
    ) -> Result<Option<Vec<ValueRef<'a>>>> {
        if let Some(values) = &self.values {
            let computed = {
                let value = |field: &'a Field| row_group.value(field, row, &room.room);
                of_row(&**values, schema, value, Failing::LeftOut)?
            };
            room.computed = computed;
            let room = &*room;
            let of_part = |part: &IndexField| match schema.field_of(part.field) {
                Some(field) => row_group.value(field, row, &room.room),
                None => Ok(ValueRef::Null),
            };
            return self.with_computed(&room.computed, of_part);
        }
        let value = |field: &'a Field| row_group.value(field, row, &room.room);
        let values: Result<Vec<_>> = self.fields(schema).map(value).collect();
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
        let mut room = ComputedRow::default();
        let values = self.values_at(schema, (row_group, row), &mut room)?;
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
        if self.is_computed() {
            let mut room = ComputedRow::default();
            let found = self.values_at(schema, (row_group, row), &mut room)?;
            return Ok(found.as_deref() == Some(values));
        }
        let parts = self.index.fields.iter().zip(self.fields(schema));
        for ((part, field), value) in parts.zip(values) {
            let room = Room::default();
            if part.compared(row_group.value(field, row, &room)?) != *value {
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
        let written = |(number, part): (usize, &IndexField)| match &self.values {
            Some(values) if part.expression.is_some() => values.written(number, schema),
            _ => schema.place_of(part),
        };
        let names = self.index.fields.iter().enumerate().map(written);
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

    /// The entries of an index that the table gets, which has none yet.
    ///
    /// # Errors
    /// As [`UniqueKeys::new`].
    pub fn new_unique(&self, schema: &Schema, index: &Index) -> Result<UniqueKeys> {
        UniqueKeys::new(schema, index, &self.arena, self.compiler)
    }

    /// What computes the values of one of its indexes.
    ///
    /// # Errors
    /// What the compiler says.
    pub fn index_values(
        &self,
        schema: &Schema,
        index: &Index,
    ) -> Result<Option<Arc<dyn IndexValues>>> {
        (self.compiler)(schema, index)
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
    use esker_format::schema::{Alteration, NewIndex};
    use esker_format::{DataType, Moment, TableId};

    use super::*;
    use crate::{ErrorKind, KeyHasher, TableWriter};

    /// It was dropped: the table went on without it, and took equal values.
    #[test]
    fn a_unique_index_without_entries_is_an_error() {
        let schema = Schema::builder().field("mail", DataType::Text).build().unwrap();
        let new = NewIndex::new("by_mail", ["mail"]).unique();
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
