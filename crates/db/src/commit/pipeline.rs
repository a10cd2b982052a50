//! Committing changes of rows.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_format::codec::Writer;
use esker_format::edit::{ROWS_FRAME, RowChange};
use esker_format::frame::PAYLOAD_BYTES_MAX;
use esker_format::row::{Cell, KEY_BYTES_MAX, encode_cells, encode_row};
use esker_format::schema::Index;
use esker_format::value_file::REFERENCE_BYTES;
use esker_format::{Batch, Schema, TableId, Value, ValueRef};
use esker_log::Purpose;
use esker_log::sabotage::planted;
use esker_table::table::{Existing, PreparedPut};
use esker_table::value_file::StoredValue;
use esker_table::{PinnedLocations, Table as TableCore, TableWriter};

use crate::commit::journal::Ticket;
use crate::commit::staged_keys::StagedKeys;
use crate::commit::write_set::{CommitOptions, TableWrites};
use crate::commit::{overflow as spill, unique_check as unique};
use crate::engine::{Catalogue, Engine};
use crate::table::TableVersion;
use crate::{Error, ErrorKind, Result};

/// Frames from here on are weighed against the memory that is left.
const LARGE_FRAME_BYTES: usize = 1 << 20;
/// Rows that die before maintenance looks whether a row group is worth rewriting.
const KILLED_WAKE: u64 = 4_096;
/// An open group is full when its long values take this many times what its other values may.
const LONG_BYTES_FACTOR: u64 = 16;
/// The same where the rows may have long values.
const LONG_KILLED_WAKE: u64 = 64;
/// Bytes of a put in the log beside its values and the bits that say which of these are missing, at
/// the most: its kind, table, row id and length.
const PUT_BYTES: usize = 20;
/// Bytes of a text's length in the log, or of what says that a value lies in a value file.
const LENGTH_BYTES: usize = 5;
/// Bytes of a value of the widest type of a fixed length.
const FIXED_BYTES: usize = 16;
/// Bytes of a value in a key beside those of texts and bytes, about.
const KEY_VALUE_BYTES: usize = 9;
/// Commits between two looks at the length of the log, which is a limit for its order of magnitude.
const LOG_LENGTH_EVERY: u64 = 32;

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

/// Validated changes of one table, waiting for their number.
#[derive(Default)]
pub(crate) struct Staged<'r> {
    pub(crate) puts: Vec<Put<'r>>,
    pub(crate) deletes: Vec<Existing>,
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
        self.puts.len()
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
            places.keep(existing.location).ok_or_else(spill::changed)?;
        }
        self.places = Some(places);
        Ok(())
    }

    /// Adds a delete.
    pub fn delete(&mut self, existing: Existing) {
        self.deletes.push(existing);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.deletes.is_empty()
    }

    pub(crate) fn encode(&self, out: &mut Writer, table: TableId, schema: &Schema) {
        out.clear();
        for existing in &self.deletes {
            RowChange::encode_delete(out, table, existing.row_id);
        }
        for put in &self.puts {
            RowChange::encode_put(out, table, put.prepared.row_id, |out| {
                if put.long.is_empty() {
                    let value = |i| put.row.get(i).map_or(ValueRef::Null, Value::as_ref);
                    encode_row(out, schema, value);
                } else {
                    encode_cells(out, schema, |i| put.cell(i));
                }
            });
        }
    }
}

impl Staged<'_> {
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
        self.puts.iter().try_for_each(put)
    }
}

/// True when the staged row at a place has this row id.
fn has_row_id(puts: &[Put<'_>], at: usize, row_id: u64) -> bool {
    puts.get(at).is_some_and(|put| put.prepared.row_id == row_id)
}

/// The commit has a number, so recovery will apply it whole; this process no longer can.
pub(crate) fn half_applied(e: esker_table::Error) -> Error {
    let message = format!("the commit is in the log but could not be applied: {e}");
    Error::new(ErrorKind::OutcomeUnknown, message)
}

impl Engine {
    /// One atomic commit of changes to one table: `stage` validates them under the commit lock.
    /// They were prepared for a version of its schema.
    pub fn commit_rows<'r, R>(
        self: &Arc<Self>,
        current: &TableVersion,
        stage: impl FnOnce(&mut Catalogue, &mut Staged<'r>) -> Result<R>,
    ) -> Result<R> {
        self.wait_for_memory()?;
        let table = current.core.id();
        let (result, ticket, sync) = {
            let mut catalogue = self.lock_for_change()?;
            let mut staged = Staged::default();
            let result = refuse_other_schema(&mut catalogue, table, &current.schema)
                .and_then(|()| self.on_time(&mut catalogue, current))
                .and_then(|()| stage(&mut catalogue, &mut staged))
                .and_then(|result| {
                    self.end_expired_holders(&mut catalogue, current, &staged)?;
                    let writer = &entry(&mut catalogue, table)?.writer;
                    unique::expect_unique(writer, &current.schema, &mut staged).map(|()| result)
                });
            if staged.is_dry_run {
                staged.clear();
            }
            let result =
                result.and_then(|result| self.note_ends(&current.schema, &staged).map(|()| result));
            if result.is_err() || staged.is_empty() {
                drop(catalogue);
                self.acknowledge_published()?;
                return result;
            }
            let has_long = self.has_long(&current.schema, &staged);
            if has_long || spill::is_large(&staged, self.options.commit_bytes_max) {
                // So that it is known which versions came since.
                let guard = self.registry.register(|| self.watermarks.published())?;
                staged.remember_deleted(&current.core)?;
                drop(catalogue);
                let commit_options =
                    CommitOptions { sync: staged.sync, ..CommitOptions::default() };
                let part = TableWrites { staged, ..TableWrites::new(current.clone()) };
                self.commit_with_files(vec![part], commit_options, &guard)?;
                return result;
            }
            (result, self.apply(&mut catalogue, table, &staged)?, staged.sync)
        };
        self.acknowledge_as(ticket, sync)?;
        result
    }

    /// Tells a test which number a commit got.
    pub(crate) fn on_commit(&self, ticket: Ticket) {
        if let Some(tell) = self.options.on_commit {
            tell(ticket.commit());
        }
    }

    /// Tells the writer of a table whose rows expire what time it is.
    pub fn on_time(&self, catalogue: &mut Catalogue, current: &TableVersion) -> Result<()> {
        if self.has_expiring()
            && current.schema.expiry_field().is_some()
            && let Some(entry) = catalogue.tables.get_mut(&current.core.id())
        {
            let now = match self.time_of_commit() {
                // On a full disk a commit that adds data is refused by itself. One that frees space
                // logs the time before.
                Err(e) if e.kind() == ErrorKind::NoSpace => {
                    self.time_is_owed.store(true, Ordering::Relaxed);
                    self.now()
                }
                logged => logged?,
            };
            entry.writer.set_time(now);
        }
        Ok(())
    }

    pub(crate) fn apply(
        &self,
        catalogue: &mut Catalogue,
        id: TableId,
        staged: &Staged<'_>,
    ) -> Result<Ticket> {
        let mut scratch = std::mem::take(&mut catalogue.scratch);
        let entry = entry(catalogue, id)?;
        if self.is_durable() {
            let schema = entry.writer.table().schema();
            staged.encode(&mut scratch, id, &schema);
        }
        self.refuse_large_frame(scratch.len())?;
        let before = self.freeze_if_full(entry, staged.puts.len());
        let ticket = self.append(staged.purpose(), ROWS_FRAME, scratch.as_bytes())?;
        scratch.clear();
        let commit = ticket.commit();
        self.on_commit(ticket);
        if planted("published_before_applied") {
            self.watermarks.publish(commit);
        }
        if let Err(e) = staged.apply(&mut entry.writer, commit, &mut || self.new_row_group()) {
            catalogue.broken = true;
            return Err(half_applied(e));
        }
        entry.changed_at = commit;
        let after = self.freeze_if_full(entry, 0);
        catalogue.scratch = scratch;
        self.watermarks.publish(commit);
        let many_dead = self.note_deleted(catalogue, staged);
        if before || after || many_dead || self.log_is_long(commit) {
            self.wake_maintenance();
        }
        Ok(ticket)
    }

    /// Applies deletes of rows that have expired: no thread waits for that, and a transaction that
    /// has read the table finds it unchanged. Under the commit lock.
    pub fn apply_deletes(
        &self,
        catalogue: &mut Catalogue,
        core: &TableCore,
        staged: &Staged<'_>,
    ) -> Result<()> {
        let changed_at = catalogue.tables.get(&core.id()).map(|entry| entry.changed_at);
        let Some(changed_at) = changed_at.filter(|_| !staged.is_empty()) else { return Ok(()) };
        self.apply(catalogue, core.id(), staged)?;
        entry(catalogue, core.id())?.changed_at = changed_at;
        Ok(())
    }

    /// Counts what died; true when maintenance is to look at it.
    pub(crate) fn note_deleted(&self, catalogue: &mut Catalogue, staged: &Staged<'_>) -> bool {
        let killed =
            staged.deletes.len() + staged.puts.iter().filter(|p| p.prepared.is_update()).count();
        catalogue.killed += killed as u64;
        let is_costly = self.segment_files.values().is_used();
        let wake = if is_costly { LONG_KILLED_WAKE } else { KILLED_WAKE };
        let many_dead = catalogue.killed >= wake;
        if many_dead {
            catalogue.killed = 0;
        }
        many_dead
    }

    /// Refuses a frame that is too long, or that the memory that is left may not hold.
    pub(crate) fn refuse_large_frame(&self, bytes: usize) -> Result<()> {
        if bytes > PAYLOAD_BYTES_MAX {
            let most = PAYLOAD_BYTES_MAX;
            let message = format!("one commit of {bytes} bytes, at most {most}; use a bulk load");
            return Err(Error::new(ErrorKind::OverBudget, message));
        }
        if bytes >= LARGE_FRAME_BYTES { self.refuse_too_large(bytes) } else { Ok(()) }
    }

    /// One commit of a batch of inserted rows of a table with a generated key, without unique
    /// indexes.
    pub fn commit_batch(&self, current: &TableVersion, batch: &Batch) -> Result<()> {
        let (id, schema) = (current.core.id(), &current.schema);
        if let Some(checks) = self.checks(current)? {
            checks.test(batch, 0, &self.limits())?;
        }
        self.wait_for_memory()?;
        let long = self.store_long_columns(schema, batch)?;
        let ticket = {
            let mut catalogue = self.lock_for_change()?;
            refuse_other_schema(&mut catalogue, id, schema)?;
            self.note_ends_of(schema, batch)?;
            let mut scratch = std::mem::take(&mut catalogue.scratch);
            let entry = entry(&mut catalogue, id)?;
            let first = entry.writer.reserve_row_ids(batch.len() as u64);
            if self.is_durable() {
                scratch.clear();
                encode_batch(&mut scratch, (id, schema), first, batch, &long);
            }
            self.refuse_large_frame(scratch.len())?;
            let before = self.freeze_if_full(entry, batch.len());
            let ticket = self.append(Purpose::Adds, ROWS_FRAME, scratch.as_bytes())?;
            scratch.clear();
            self.on_commit(ticket);
            let new_row_group = &mut || self.new_row_group();
            if let Err(e) =
                entry.writer.push_batch((batch, &long), first, ticket.commit(), new_row_group)
            {
                catalogue.broken = true;
                return Err(half_applied(e));
            }
            entry.changed_at = ticket.commit();
            let after = self.freeze_if_full(entry, 0);
            catalogue.scratch = scratch;
            self.watermarks.publish(ticket.commit());
            if before || after || self.log_is_long(ticket.commit()) {
                self.wake_maintenance();
            }
            ticket
        };
        self.acknowledge(ticket)
    }

    /// Freezes the open group when it is full, or has no room for `rows` more.
    pub(crate) fn freeze_if_full(
        &self,
        entry: &mut crate::engine::TableEntry,
        rows: usize,
    ) -> bool {
        let Some(group) = entry.writer.open_group() else { return false };
        let bytes = group.group().byte_count();
        // Versions that are dead give their value files back when the group is sealed only.
        let long_bytes_max = self.options.group_bytes_max.saturating_mul(LONG_BYTES_FACTOR);
        let full = group.rows() >= self.options.group_rows_max
            || bytes >= self.options.group_bytes_max
            || group.group().long_bytes() >= long_bytes_max;
        let writer = &mut entry.writer;
        if full {
            writer.freeze();
        } else {
            writer.make_room(rows);
        }
        let frozen = entry.writer.open_group().is_none();
        if frozen && self.is_durable() {
            self.frozen_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        frozen
    }

    /// Looked at now and then only: it is a lock to take.
    pub(crate) fn log_is_long(&self, commit: u64) -> bool {
        commit.is_multiple_of(LOG_LENGTH_EVERY)
            && self.journal.log().is_some_and(|log| log.bytes() > self.options.log_limit_bytes)
    }
}

/// Appends the puts of a batch of inserted rows; `long` has the values of each column that lie in
/// value files, by rising row.
fn encode_batch(
    out: &mut Writer,
    (id, schema): (TableId, &Schema),
    first: u64,
    batch: &Batch,
    long: &[Vec<(usize, StoredValue)>],
) {
    let value = |p: usize, i| batch.columns.get(p).map_or(ValueRef::Null, |c| c.value(i));
    let has_long = long.iter().any(|column| !column.is_empty());
    for i in 0..batch.len() {
        RowChange::encode_put(out, id, first + i as u64, |out| {
            if !has_long {
                return encode_row(out, schema, |p| value(p, i));
            }
            encode_cells(out, schema, |p| {
                let column = long.get(p).map(Vec::as_slice).unwrap_or_default();
                match column.binary_search_by_key(&i, |(row, _)| *row) {
                    Ok(at) => column.get(at).map_or(Cell::Value(ValueRef::Null), |(_, stored)| {
                        Cell::Long(stored.reference)
                    }),
                    Err(_) => Cell::Value(value(p, i)),
                }
            });
        });
    }
}

/// Refuses rows that were prepared for another version of a table's schema, unless only indexes
/// have changed since.
pub(crate) fn refuse_other_schema(
    catalogue: &mut Catalogue,
    id: TableId,
    schema: &Schema,
) -> Result<()> {
    let entry = entry(catalogue, id)?;
    let core = entry.writer.table();
    let is_known = |id| schema.indexes().iter().any(|index| index.id == id);
    // A unique index that came since was not searched for the rows.
    let is_newest = core.view().schema.has_same_rows_as(schema)
        && core.uniques().iter().all(|keys| is_known(keys.index().id));
    if is_newest || planted("old_schema_accepted") {
        return Ok(());
    }
    let name = &entry.name;
    let message = format!("the schema of table {name:?} was changed meanwhile; begin again");
    Err(Error::new(ErrorKind::Conflict, message))
}

/// A table's entry, or an error saying that it has been dropped.
pub(crate) fn entry(
    catalogue: &mut Catalogue,
    id: TableId,
) -> Result<&mut crate::engine::TableEntry> {
    catalogue
        .tables
        .get_mut(&id)
        .ok_or_else(|| Error::new(ErrorKind::NotFound, "the table has been dropped or truncated"))
}

/// Checks a row against the schema and fits every value to its field.
pub(crate) fn fit_row<'r>(schema: &Schema, row: &'r [Value]) -> Result<Cow<'r, [Value]>> {
    if row.len() != schema.fields().len() {
        let (want, got) = (schema.fields().len(), row.len());
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name.as_str()).collect();
        return Err(Error::invalid(format!(
            "expected {want} values ({}), found {got}",
            names.join(", ")
        )));
    }
    let mut row = Cow::Borrowed(row);
    for (position, field) in schema.fields().iter().enumerate() {
        let Some(value) = row.get(position) else { continue };
        if let Some(fitted) = fit_changed(field, value)?
            && let Some(slot) = row.to_mut().get_mut(position)
        {
            *slot = fitted;
        }
    }
    refuse_long_key(schema.key_positions().iter().filter_map(|p| row.get(*p)).map(Value::as_ref))?;
    Ok(row)
}

/// Refuses a row whose key, or values of a unique index, have more bytes than keys may have.
pub(crate) fn refuse_long_values<'a>(
    schema: &Schema,
    value: impl Fn(usize) -> Option<ValueRef<'a>>,
) -> Result<()> {
    refuse_long_key(schema.key_positions().iter().filter_map(|p| value(*p)))?;
    for index in schema.unique_indexes() {
        let compared = index.fields.iter().filter_map(|part| {
            let at = schema.fields().iter().position(|field| field.id == part.field)?;
            value(at).map(|value| part.compared(value))
        });
        refuse_long_unique(index, compared)?;
    }
    Ok(())
}

/// Refuses values of a unique index with more bytes than keys may have.
pub(crate) fn refuse_long_unique<'a>(
    index: &Index,
    values: impl Iterator<Item = ValueRef<'a>>,
) -> Result<()> {
    refuse_long_key(values).map_err(|e| e.at(format_args!("unique index {:?}", index.name)))
}

/// Refuses a key with more bytes than keys may have.
pub(crate) fn refuse_long_key<'a>(key: impl Iterator<Item = ValueRef<'a>>) -> Result<()> {
    let bytes: usize = key.map(|value| value.as_bytes().map_or(0, <[u8]>::len)).sum();
    if bytes > KEY_BYTES_MAX {
        let message = format!("a key of {bytes} bytes, at most {KEY_BYTES_MAX}");
        return Err(Error::invalid(message));
    }
    Ok(())
}

/// Checks a value and fits it to its field.
pub(crate) fn fit_value(field: &esker_format::Field, value: &Value) -> Result<Value> {
    Ok(fit_reference(field, value.as_ref())?.to_owned())
}

/// What a value becomes in its field, where it is not kept as it is.
fn fit_changed(field: &esker_format::Field, value: &Value) -> Result<Option<Value>> {
    let fitted = fit_reference(field, value.as_ref())?;
    Ok((!fitted.is_identical(value.as_ref())).then(|| fitted.to_owned()))
}

pub(crate) fn fit_reference<'a>(
    field: &'a esker_format::Field,
    value: ValueRef<'a>,
) -> Result<ValueRef<'a>> {
    Ok(esker_format::batch::fit_value(field, value)?)
}

/// Fits a key to the key fields.
pub(crate) fn fit_key<'a>(schema: &'a Schema, key: &'a [Value]) -> Result<Vec<ValueRef<'a>>> {
    fit_key_of(schema, key.len(), key.iter().map(Value::as_ref))
}

/// The same of borrowed values.
pub(crate) fn fit_key_of<'a>(
    schema: &'a Schema,
    len: usize,
    mut key: impl Iterator<Item = ValueRef<'a>>,
) -> Result<Vec<ValueRef<'a>>> {
    let positions = schema.key_positions();
    if positions.is_empty() {
        return match key.next().filter(|_| len == 1) {
            Some(one) => Ok(vec![one.coerce(esker_format::DataType::U64)?]),
            None => Err(Error::invalid(format!("expected one row id, found {len} values"))),
        };
    }
    if positions.len() != len {
        let names: Vec<&str> = positions
            .iter()
            .filter_map(|p| schema.fields().get(*p))
            .map(|f| f.name.as_str())
            .collect();
        return Err(Error::invalid(format!(
            "expected a key of {} values ({}), found {len}",
            positions.len(),
            names.join(", "),
        )));
    }
    let mut fitted = Vec::with_capacity(len);
    for (field, value) in schema.key_fields().zip(key) {
        fitted.push(fit_reference(field, value)?);
    }
    Ok(fitted)
}

/// Refuses a key whose newest version came after a commit, or went though it had not expired.
pub(crate) fn expect_snapshot(
    current: &TableVersion,
    key: &[ValueRef<'_>],
    existing: Option<&Existing>,
    read_at: u64,
) -> Result<()> {
    let is_younger = |e: &Existing| e.created > read_at || (e.deleted > read_at && !e.ended);
    if existing.is_some_and(is_younger) && !planted("first_committer_loses") {
        let name = current.core.name();
        let key = esker_table::table::describe_key(&current.schema, key);
        let message = format!(
            "table {name:?}: {key} was changed by another commit since the transaction began; \
             begin again"
        );
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    Ok(())
}

/// True when a staged row has the key of a row.
fn has_key_of(schema: &Schema, puts: &[Put<'_>], at: usize, row: &[Value]) -> bool {
    puts.get(at).is_some_and(|put| key_bytes(schema, &put.row) == key_bytes(schema, row))
}

/// The order-preserving bytes of a row's key.
pub(crate) fn key_bytes(schema: &Schema, row: &[Value]) -> Vec<u8> {
    let bytes = |p: &usize| row.get(*p).and_then(|v| v.as_ref().as_bytes()).map_or(0, <[u8]>::len);
    let most: usize = schema.key_positions().iter().map(|p| bytes(p) + KEY_VALUE_BYTES).sum();
    let mut out = Vec::with_capacity(most);
    for position in schema.key_positions() {
        if let (Some(field), Some(value)) = (schema.fields().get(*position), row.get(*position)) {
            esker_format::key::encode_key(&mut out, field.data_type, value.as_ref());
        }
    }
    out
}
