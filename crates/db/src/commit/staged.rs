//! Rows that are checked and wait for the number of their commit.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::codec::Writer;
use esker_format::edit::RowChange;
use esker_format::key::primary_key;
use esker_format::row::{Cell, encode_cells, encode_row};
use esker_format::value_file::REFERENCE_BYTES;
use esker_format::{Batch, Schema, TableId, Value, ValueRef};
use esker_log::Purpose;
use esker_table::table::{Existing, PreparedPut};
use esker_table::value_file::StoredValue;
use esker_table::{PinnedLocations, ROW_GROUP_ROWS_MAX, Table as TableCore, TableWriter};

use crate::commit::conflict::changed;
use crate::commit::staged_keys::StagedKeys;
use crate::{Error, Result};

/// The longest value that an open group takes.
const VALUE_BYTES: usize = 4 << 20;
/// Bytes of a delete in the log, at the most.
const DELETE_BYTES: usize = 16;
/// Bytes of a put in the log beside its values and the bits that say which of these are missing, at
/// the most: its kind, table, row id and length.
const PUT_BYTES: usize = 20;
/// Bytes of a text's length in the log, or of what says that a value lies in a value file.
const LENGTH_BYTES: usize = 5;
/// Bytes of a value of the widest type of a fixed length.
const FIXED_BYTES: usize = 16;

/// A row that is put; it may be the caller's.
pub(crate) struct Put<'r> {
    pub row: Cow<'r, [Value]>,
    pub prepared: PreparedPut,
    /// The values that lie in value files, by rising field.
    pub long: Vec<(usize, StoredValue)>,
}

impl<'r> Put<'r> {
    fn new(row: impl Into<Cow<'r, [Value]>>, prepared: PreparedPut) -> Self {
        Self { row: row.into(), prepared, long: Vec::new() }
    }

    fn cell(&self, field: usize) -> Cell<'_> {
        match self.long.iter().find(|(at, _)| *at == field) {
            Some((_, stored)) => Cell::Long(stored.reference),
            // default: the number of values was compared with the fields
            None => Cell::Value(self.row.get(field).map_or(ValueRef::Null, Value::as_ref)),
        }
    }

    /// Bytes that the log or a segment takes for it, at the most.
    pub fn byte_count(&self) -> usize {
        let bytes = |(field, value): (usize, &Value)| match self.cell(field) {
            Cell::Long(_) => REFERENCE_BYTES + LENGTH_BYTES,
            Cell::Value(_) => match value.as_ref().as_bytes() {
                Some(bytes) => bytes.len() + LENGTH_BYTES,
                None => FIXED_BYTES,
            },
        };
        let values: usize = self.row.iter().enumerate().map(bytes).sum();
        PUT_BYTES + self.row.len().div_ceil(8) + values
    }
}

/// New rows of a table with a generated key, by column.
pub(crate) struct StagedBatch<'r> {
    pub columns: &'r Batch,
    /// The values that lie in value files: by column, by rising row.
    pub long: Vec<Vec<(usize, StoredValue)>>,
    /// The first of their row ids.
    pub first_row_id: u64,
}

/// Validated changes of one table, waiting for their number.
#[derive(Default)]
pub(crate) struct Staged<'r> {
    pub(crate) puts: Vec<Put<'r>>,
    pub(crate) deletes: Vec<Existing>,
    /// New rows by column.
    pub(crate) batch: Option<StagedBatch<'r>>,
    /// Positions in `puts` by key, when there can be several.
    by_key: StagedKeys,
    /// Nothing is to be changed: the answer is only whether it could.
    pub is_dry_run: bool,
    /// Whether the commit is acknowledged only once it is on the disk; else as the database says.
    pub sync: Option<bool>,
    /// The commit as of which a transaction has read.
    pub read_at: Option<u64>,
    /// Where the rows that are deleted lie, in their order, while files are written.
    pub(crate) places: Option<Arc<PinnedLocations>>,
}

impl<'r> Staged<'r> {
    /// Adds a put.
    pub fn put(&mut self, row: impl Into<Cow<'r, [Value]>>, prepared: PreparedPut) {
        self.puts.push(Put::new(row, prepared));
    }

    /// Adds a put of a key that may be staged already; then the last one wins.
    pub fn put_keyed(
        &mut self,
        schema: &Schema,
        row: impl Into<Cow<'r, [Value]>>,
        prepared: PreparedPut,
    ) {
        let (put, puts) = (Put::new(row, prepared), &self.puts);
        let has_key = |at| has_key_of(schema, puts, at, &put.row);
        self.by_key.insert(put.prepared.hash, puts.len(), has_key);
        self.puts.push(put);
    }

    /// Adds a new version of a row that may be staged already, which has been looked for.
    pub fn put_again(&mut self, row: impl Into<Cow<'r, [Value]>>, prepared: PreparedPut) {
        let puts = &self.puts;
        let is_same = |at| has_row_id(puts, at, prepared.row_id);
        self.by_key.insert(prepared.hash, puts.len(), is_same);
        self.put(row, prepared);
    }

    /// Where the staged version of a row, with the hash of its key, is among all.
    pub fn position_of_row(&self, row_id: u64, hash: u64) -> Option<usize> {
        self.by_key.find(hash, |at| has_row_id(&self.puts, at, row_id))
    }

    /// Where the staged row that has the key of a row, with its hash, is among all.
    pub fn position_of(&self, schema: &Schema, row: &[Value], hash: u64) -> Option<usize> {
        self.by_key.find(hash, |at| has_key_of(schema, &self.puts, at, row))
    }

    /// A staged row.
    pub fn row_at(&self, at: usize) -> Option<&[Value]> {
        self.puts.get(at).map(|put| &*put.row)
    }

    /// Puts another row in the place of a staged one, whose key it has.
    pub fn replace(&mut self, at: usize, row: impl Into<Cow<'r, [Value]>>) {
        if let Some(put) = self.puts.get_mut(at) {
            put.row = row.into();
        }
    }

    /// Gives new rows with a generated key other row ids: others may have got theirs and have been
    /// committed since these were staged.
    pub(crate) fn renumber(&mut self, writer: &mut TableWriter) {
        for put in self.puts.iter_mut().filter(|put| put.prepared.existing.is_none()) {
            let row_id = writer.reserve_row_ids(1);
            put.prepared.row_id = row_id;
            put.prepared.hash = writer.table().hasher().hash_row_id(row_id);
        }
        if let Some(batch) = &mut self.batch {
            batch.first_row_id = writer.reserve_row_ids(batch.columns.len() as u64);
        }
    }

    /// The rows that are put.
    pub fn rows(&self) -> impl Iterator<Item = &[Value]> {
        self.puts.iter().map(|put| &*put.row)
    }

    /// The numbers of the rows that are put or deleted.
    pub fn row_ids(&self) -> BTreeSet<u64> {
        let put = self.puts.iter().map(|put| put.prepared.row_id);
        put.chain(self.deletes.iter().map(|existing| existing.row_id)).collect()
    }

    /// How many rows are put.
    pub fn put_count(&self) -> usize {
        // default: what is no text or bytes has none
        self.puts.len() + self.batch.as_ref().map_or(0, |batch| batch.columns.len())
    }

    /// How many versions end.
    pub fn ended_count(&self) -> usize {
        self.deletes.len() + self.puts.iter().filter(|put| put.prepared.is_update()).count()
    }

    /// What the changes are for: deletes alone free space.
    pub(crate) fn purpose(&self) -> Purpose {
        if self.put_count() == 0 { Purpose::Frees } else { Purpose::Adds }
    }

    /// Bytes that changes take in the log, at the most: else a commit of many short rows would be
    /// no large one, and no frame either.
    pub(crate) fn byte_count(&self) -> usize {
        let deletes = self.deletes.len() * DELETE_BYTES;
        deletes + self.puts.iter().map(Put::byte_count).sum::<usize>()
    }

    /// True when a commit is too large for the log, or a value for an open group.
    pub(crate) fn is_large(&self, commit_bytes_max: usize) -> bool {
        let has_long_value = |put: &Put<'_>| {
            let values = put.row.iter().enumerate();
            let mut in_place =
                values.filter(|(at, _)| !put.long.iter().any(|(long, _)| long == at));
            in_place.any(|(_, value)| {
                value.as_ref().as_bytes().is_some_and(|bytes| bytes.len() > VALUE_BYTES)
            })
        };
        self.puts.len() > ROW_GROUP_ROWS_MAX
            || self.byte_count() > commit_bytes_max
            || self.puts.iter().any(has_long_value)
    }

    /// Forgets everything: nothing is to be changed.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The puts, the deletes, and where the rows are that these end.
    pub(crate) fn into_parts(self) -> (Vec<Put<'r>>, Vec<Existing>, Option<Arc<PinnedLocations>>) {
        (self.puts, self.deletes, self.places)
    }

    /// Before the commit lock is given up: remembers where the rows are that are deleted. Those
    /// that are put are found by their keys again.
    pub(crate) fn remember_deleted(&mut self, core: &Arc<TableCore>) -> Result<()> {
        if self.deletes.is_empty() {
            return Ok(());
        }
        let places = PinnedLocations::new(core);
        for existing in &self.deletes {
            places.keep(existing.location).ok_or_else(changed)?;
        }
        self.places = Some(places);
        Ok(())
    }

    /// Adds a delete.
    pub fn delete(&mut self, existing: Existing) {
        self.deletes.push(existing);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.deletes.is_empty() && self.batch.is_none()
    }

    /// Appends what the log has of them.
    ///
    /// # Errors
    /// `Corrupt` when a row has not the fields of the schema: a value that is missing would be
    /// NULL in the log.
    pub(crate) fn encode(&self, out: &mut Writer, table: TableId, schema: &Schema) -> Result<()> {
        let expect_fields = |found: usize| match schema.fields().len() {
            fields if fields == found => Ok(()),
            fields => Err(Error::corrupt(format!(
                "table {}: a staged row has {found} values, expected {fields}",
                table.0
            ))),
        };
        for existing in &self.deletes {
            RowChange::encode_delete(out, table, existing.row_id);
        }
        for put in &self.puts {
            expect_fields(put.row.len())?;
            RowChange::encode_put(out, table, put.prepared.row_id, |out| {
                if put.long.is_empty() {
                    // default: the number of values was compared with the fields
                    let value = |i| put.row.get(i).map_or(ValueRef::Null, Value::as_ref);
                    encode_row(out, schema, value);
                } else {
                    encode_cells(out, schema, |i| put.cell(i));
                }
            });
        }
        if let Some(batch) = &self.batch {
            expect_fields(batch.columns.columns.len())?;
            batch.encode(out, table, schema);
        }
        Ok(())
    }

    /// Makes them rows of the table, once they have their number.
    pub(crate) fn apply(
        &self,
        writer: &mut TableWriter,
        commit: u64,
        new_row_group: &mut dyn FnMut() -> u64,
    ) -> esker_table::Result<()> {
        for existing in &self.deletes {
            writer.delete(existing, commit)?;
        }
        let put =
            |put: &Put<'_>| writer.put((&put.row, &put.long), &put.prepared, commit, new_row_group);
        self.puts.iter().try_for_each(put)?;
        match &self.batch {
            Some(StagedBatch { columns, long, first_row_id }) => {
                writer.push_batch((columns, long), *first_row_id, commit, new_row_group)
            }
            None => Ok(()),
        }
    }
}

impl StagedBatch<'_> {
    fn encode(&self, out: &mut Writer, table: TableId, schema: &Schema) {
        let Self { columns: batch, long, first_row_id } = self;
        // default: the number of values was compared with the fields
        let value = |p: usize, i| batch.columns.get(p).map_or(ValueRef::Null, |c| c.value(i));
        let has_long = long.iter().any(|column| !column.is_empty());
        for i in 0..batch.len() {
            RowChange::encode_put(out, table, first_row_id + i as u64, |out| {
                if !has_long {
                    return batch.encode_row(out, i);
                }
                encode_cells(out, schema, |p| {
                    let stored = long.get(p).and_then(|column| {
                        let at = column.binary_search_by_key(&i, |(row, _)| *row).ok()?;
                        column.get(at).map(|(_, stored)| Cell::Long(stored.reference))
                    });
                    // default: a value that is not in a file lies in the column
                    stored.unwrap_or(Cell::Value(value(p, i)))
                });
            });
        }
    }
}

/// True when the staged row at a place has this row id.
fn has_row_id(puts: &[Put<'_>], at: usize, row_id: u64) -> bool {
    puts.get(at).is_some_and(|put| put.prepared.row_id == row_id)
}

/// True when a staged row has the key of a row.
fn has_key_of(schema: &Schema, puts: &[Put<'_>], at: usize, row: &[Value]) -> bool {
    puts.get(at).is_some_and(|put| key_bytes(schema, &put.row) == key_bytes(schema, row))
}

/// The order-preserving bytes of a row's key.
pub(crate) fn key_bytes(schema: &Schema, row: &[Value]) -> Vec<u8> {
    let positions = schema.key_positions().iter();
    primary_key(schema, positions.filter_map(|p| row.get(*p)).map(Value::as_ref))
}
