//! Commits that are too large for a frame of the log: their rows become segments first, and the
//! frame names these and the rows that they replace. Of a commit of several tables the largest
//! become segments; the changes of the others are in the same frame, so that one number makes all
//! of them real.
//!
//! ```text
//! stage (commit lock) ─► too large ─► unlock ─► write and sync segments, their directory
//!   ─► lock ─► still as staged? ─► number the frame ─► register segments, move index entries,
//!   kill what is replaced ─► publish ─► unlock
//! ```
//!
//! From staging to publishing the commit is registered like a snapshot: else a seal would make a
//! version that came meanwhile look as old as the one that was staged.
//!
//! Rows keep the row ids that they were staged with. When somebody was quicker nothing is done and
//! the writer gets a `Conflict`, to try again; the files go.

use std::sync::Arc;

use esker_arena::{Category, ReaderGuard, Reservation};
use esker_format::edit::Edit;
use esker_format::{Batch, Schema, Value, ValueRef};
use esker_log::Purpose;
use esker_log::sabotage::planted;
use esker_table::segment::{CreateStamp, Segment};
use esker_table::table::{Existing, UniqueEntry};
use esker_table::value_file::StoredValue;
use esker_table::view::{Resolved, RowGroup};
use esker_table::{Location, PinnedLocations, ROW_GROUP_ROWS_MAX, Table as TableCore, TableWriter};

use crate::commit::definitions::NewDefinitions;
use crate::commit::journal::Ticket;
use crate::commit::pipeline::{Put, Staged, entry, half_applied, key_bytes, refuse_other_schema};
use crate::commit::private_rows::PrivateRows;
use crate::commit::private_rows::SegmentRows;
use crate::commit::unique_check as unique;
use crate::commit::write_set::{CommitOptions, TableWrites};
use crate::commit::write_set::{expect_as_staged, purpose_of_parts};
use crate::engine::{Catalogue, Engine};
use crate::maintenance::FileSink;
use crate::table::TableVersion;
use crate::{Error, ErrorKind, Result};

/// The longest value that an open group takes.
const VALUE_BYTES: usize = 4 << 20;
/// Bytes of values of one segment, about.
const SEGMENT_BYTES: usize = 256 << 20;

/// Bytes of a delete in a frame, at the most.
const DELETE_BYTES: usize = 16;

/// Rows that were written as a segment, in the order of their row ids.
struct Written<'r> {
    segment: Arc<Segment>,
    puts: Vec<Put<'r>>,
}

/// The changes of a table that go by way of segments.
struct Spilled<'r> {
    current: TableVersion,
    written: Vec<Written<'r>>,
    deletes: Vec<Existing>,
    /// Where the rows that are deleted lie, in their order.
    places: Option<Arc<PinnedLocations>>,
    /// What a transaction had put into segments before.
    private: Option<PrivateRows>,
    /// What the rows of those do to unique indexes, by segment and row.
    uniques: Vec<Vec<Vec<UniqueEntry>>>,
}

/// Bytes that changes take in the log, at the most: else a commit of many short rows would be no
/// large one, and no frame either.
pub(crate) fn byte_count(staged: &Staged<'_>) -> usize {
    let deletes = staged.deletes.len() * DELETE_BYTES;
    deletes + staged.puts.iter().map(Put::byte_count).sum::<usize>()
}

/// True when a commit is too large for the log, or a value for an open group.
pub(crate) fn is_large(staged: &Staged<'_>, commit_bytes_max: usize) -> bool {
    let puts = &staged.puts;
    let is_long = |put: &Put<'_>, field: usize| put.long.iter().any(|(at, _)| *at == field);
    for put in puts {
        for (field, value) in put.row.iter().enumerate() {
            let len = value.as_ref().as_bytes().map_or(8, <[u8]>::len);
            if len > VALUE_BYTES && !is_long(put, field) {
                return true;
            }
        }
    }
    byte_count(staged) > commit_bytes_max || puts.len() > ROW_GROUP_ROWS_MAX
}

impl Engine {
    /// Commits what has been staged for some tables by way of segments, together with changes that
    /// the log holds; `staged_at` has been held since they were staged.
    pub(crate) fn spill(
        self: &Arc<Self>,
        large: Vec<TableWrites<'_>>,
        small: Vec<TableWrites<'_>>,
        commit_options: CommitOptions<'_>,
        staged_at: &ReaderGuard,
    ) -> Result<Ticket> {
        let bytes = large.iter().map(|part| byte_count(&part.staged)).max().unwrap_or(0);
        let mut held = Reservation::new(&self.arena, Category::Load);
        let linked = |part: &TableWrites<'_>| {
            part.private.as_ref().map_or(0, |private| private.linked_bytes(&part.current.core))
        };
        let linked: u64 = large.iter().map(linked).sum();
        let needed = 2 * bytes.min(SEGMENT_BYTES) as u64 + linked;
        if !self.seal_for_load(&mut held, needed)? {
            return Err(self.refuse_load(&held, needed));
        }
        let mut sink = FileSink::new(self);
        let mut spilled = Vec::new();
        for TableWrites { current, staged, mut private } in large {
            let (puts, deletes, places) = staged.into_parts();
            let written = self.write_segments(&current, puts, &mut sink)?;
            private.as_mut().map_or(Ok(()), |private| private.open(self))?;
            let uniques = Vec::new();
            spilled.push(Spilled { current, written, deletes, places, private, uniques });
        }
        self.sync_segment_dir()?;
        // Others commit while segments are written; a simulation shows what comes of that.
        if self.options.pauses_large_commits {
            self.environment.tasks.pause();
        }
        let ticket =
            self.install_spilled((spilled, small), commit_options, staged_at, (&mut sink, held))?;
        self.wake_maintenance();
        self.acknowledge_as(ticket, commit_options.sync)?;
        Ok(ticket)
    }

    fn write_segments<'r>(
        &self,
        current: &TableVersion,
        mut puts: Vec<Put<'r>>,
        sink: &mut FileSink<'_>,
    ) -> Result<Vec<Written<'r>>> {
        match current.schema.is_ordered_by_key() {
            true => puts.sort_by_cached_key(|put| key_bytes(&current.schema, &put.row)),
            false => puts.sort_by_key(|put| put.prepared.row_id),
        }
        let rows_max = self.options.segment_rows_max.min(ROW_GROUP_ROWS_MAX);
        let (mut written, mut part, mut bytes) = (Vec::new(), Vec::new(), 0);
        for put in puts {
            let more = put.byte_count();
            if part.len() >= rows_max || (!part.is_empty() && bytes + more > SEGMENT_BYTES) {
                written.push(self.write_segment(current, std::mem::take(&mut part), sink)?);
                bytes = 0;
            }
            bytes += more;
            part.push(put);
        }
        if !part.is_empty() {
            written.push(self.write_segment(current, part, sink)?);
        }
        Ok(written)
    }

    fn write_segment<'r>(
        &self,
        current: &TableVersion,
        mut puts: Vec<Put<'r>>,
        sink: &mut FileSink<'_>,
    ) -> Result<Written<'r>> {
        let schema = &current.schema;
        let mut batch = Batch::empty(schema);
        let mut long: Vec<Vec<(usize, StoredValue)>> = vec![Vec::new(); schema.fields().len()];
        for (row, put) in puts.iter_mut().enumerate() {
            for (field, stored) in std::mem::take(&mut put.long) {
                if let (Some(value), Some(long)) =
                    (put.row.to_mut().get_mut(field), long.get_mut(field))
                {
                    *value = empty_of(value);
                    long.push((row, stored));
                }
            }
            batch.push_row(schema, &put.row)?;
        }
        let row_ids: Vec<u64> = puts.iter().map(|put| put.prepared.row_id).collect();
        let rows = SegmentRows { batch: &batch, long, row_ids: &row_ids };
        Ok(Written { segment: Arc::new(self.write_rows(current, rows, sink)?), puts })
    }

    fn install_spilled(
        &self,
        (mut spilled, mut small): (Vec<Spilled<'_>>, Vec<TableWrites<'_>>),
        commit_options: CommitOptions<'_>,
        staged_at: &ReaderGuard,
        (sink, held): (&mut FileSink<'_>, Reservation),
    ) -> Result<Ticket> {
        let mut catalogue = self.lock_for_change()?;
        (commit_options.validate)(&mut catalogue)?;
        self.defining(&mut catalogue, commit_options, |catalogue| {
            spilled.iter().try_for_each(|spilled| self.note_ends_of_private(spilled))?;
            let load = |spilled: &mut Spilled<'_>| {
                spilled.load((self, catalogue), commit_options, staged_at)
            };
            let loads = spilled.iter_mut().map(load).collect::<Result<Vec<_>>>()?;
            expect_as_staged(catalogue, &mut small, commit_options, staged_at)?;
            let rows = self.encode_parts(&small, commit_options).into_bytes();
            let mut edits = commit_options.definitions.map_or_else(Vec::new, NewDefinitions::edits);
            edits.extend(loads);
            let edit = match edits.pop() {
                Some(only) if edits.is_empty() && rows.is_empty() => only,
                last => {
                    edits.extend(last);
                    Edit::Together { edits, rows }
                }
            };
            self.refuse_large_frame(edit.encode().len())?;
            self.make_room_for(catalogue, &small)?;
            let only_deletes = spilled.iter().all(|s| s.written.is_empty() && s.private.is_none());
            let purpose = match only_deletes {
                true => purpose_of_parts(&small, commit_options),
                false => Purpose::Adds,
            };
            let ticket = self.append_edit_for(purpose, &edit)?;
            self.on_commit(ticket);
            sink.keep();
            spilled.iter().filter_map(|s| s.private.as_ref()).for_each(PrivateRows::keep);
            // What is linked takes its place.
            drop(held);
            self.apply_definitions(catalogue, commit_options, ticket)?;
            for spilled in &mut spilled {
                spilled.apply(catalogue, ticket.commit())?;
            }
            self.apply_rows(catalogue, &small, ticket)?;
            self.watermarks.publish(ticket.commit());
            Ok(ticket)
        })
    }
}

impl Engine {
    /// As for rows that are staged: somebody may be the first to put a row that expires.
    fn note_ends_of_private(&self, spilled: &Spilled<'_>) -> Result<()> {
        let expires = |private: &PrivateRows| private.expires(&spilled.current.schema);
        if !self.has_expiring() && spilled.private.as_ref().is_some_and(expires) {
            self.note_expiring();
            self.time_of_commit()?;
        }
        Ok(())
    }
}

impl Spilled<'_> {
    /// The edit that makes the segments real, when all is still as it was staged.
    fn load(
        &mut self,
        (engine, catalogue): (&Engine, &mut Catalogue),
        commit_options: CommitOptions<'_>,
        staged_at: &ReaderGuard,
    ) -> Result<Edit> {
        let Self { current, written, deletes, places, private, uniques } = self;
        let table = current.core.id();
        refuse_other_schema(catalogue, table, commit_options.schema_before(current))?;
        let writer = &mut entry(catalogue, table)?.writer;
        // The writer of a table that comes with this commit has not given them out itself.
        let puts = written.iter().flat_map(|w| &w.puts);
        puts.for_each(|put| writer.note_row_id(put.prepared.row_id));
        let writer = &*writer;
        let mut replaced = match private {
            Some(private) => private.validate(writer, current)?,
            None => Vec::new(),
        };
        expect_alive(&current.core, deletes, places.as_deref())?;
        replaced.extend(deletes.iter().map(|existing| existing.row_id));
        for put in written.iter_mut().flat_map(|w| &mut w.puts) {
            expect_same(writer, &current.schema, put, staged_at.commit())?;
            if put.prepared.is_update() {
                replaced.push(put.prepared.row_id);
            }
        }
        match private {
            _ if !current.core.has_uniques() || planted("unique_not_checked_in_spill") => {}
            None => {
                let puts = written.iter_mut().flat_map(|w| &mut w.puts);
                let rows = &mut puts.collect::<Vec<_>>();
                unique::expect_unique_rows((writer, &current.schema), rows, deletes, None)
                    .map_err(as_changed)?;
            }
            Some(private) => {
                replaced.sort_unstable();
                let own = private.segments().chain(written.iter().map(|w| &w.segment));
                let own: Vec<_> = own.collect();
                engine.end_expired_holders_of(catalogue, current, &own, &replaced)?;
                let writer = &entry(catalogue, table)?.writer;
                let commit_options = (replaced.as_slice(), private.read_at);
                *uniques = unique::of_segments((writer, &current.schema), &own, commit_options)?;
                let of_puts = uniques.split_off(private.segments().count());
                let puts = written.iter_mut().flat_map(|w| &mut w.puts);
                for (put, uniques) in puts.zip(of_puts.into_iter().flatten()) {
                    put.prepared.uniques = uniques;
                }
            }
        }
        let private = private.iter().flat_map(PrivateRows::segments);
        let segments = written.iter().map(|w| &w.segment).chain(private);
        let segments = segments.map(|segment| segment.entry()).collect();
        let next_row_id = entry(catalogue, table)?.writer.next_row_id();
        let superseded = Vec::new();
        Ok(Edit::Load { table, segments, next_row_id, replaced, superseded })
    }
}

impl Spilled<'_> {
    /// Makes the rows those of a commit.
    fn apply(&mut self, catalogue: &mut Catalogue, commit: u64) -> Result<()> {
        let Self { current, written, deletes, private, uniques, .. } = self;
        let entry = entry(catalogue, current.core.id())?;
        let writer = &mut entry.writer;
        let applied = private
            .as_ref()
            .map_or(Ok(()), |private| private.apply(writer, current, uniques, commit))
            .and_then(|()| apply(writer, written, deletes, commit));
        entry.changed_at = commit;
        applied.map_err(|e| {
            catalogue.broken = true;
            half_applied(e)
        })
    }
}

pub(crate) fn changed() -> Error {
    Error::new(ErrorKind::Conflict, "a row was changed while a large commit was written; try again")
}

/// Refuses what was staged when somebody was quicker, and finds anew where the versions are that
/// it replaces.
pub(crate) fn expect_unchanged(
    writer: &TableWriter,
    current: &TableVersion,
    staged: &mut Staged<'_>,
    staged_at: u64,
) -> Result<()> {
    expect_alive(&current.core, &mut staged.deletes, staged.places.as_deref())?;
    let puts = &mut staged.puts;
    puts.iter_mut().try_for_each(|put| expect_same(writer, &current.schema, put, staged_at))?;
    unique::expect_unique(writer, &current.schema, staged).map_err(as_changed)
}

/// Somebody has a value of a unique index meanwhile: who begins again hears which.
fn as_changed(error: Error) -> Error {
    if error.kind() == ErrorKind::AlreadyExists { changed() } else { error }
}

/// The empty value of the type of a long one.
fn empty_of(value: &Value) -> Value {
    match value {
        Value::Text(_) => Value::Text(String::new()),
        Value::Bytes(_) => Value::Bytes(Vec::new()),
        other => other.clone(),
    }
}

/// Refuses versions that died since they were staged to be deleted, and finds where the others are
/// now.
fn expect_alive(
    core: &TableCore,
    deletes: &mut [Existing],
    places: Option<&PinnedLocations>,
) -> Result<()> {
    let (view, located) = (core.view(), places.map(PinnedLocations::locate));
    for (number, existing) in deletes.iter_mut().enumerate() {
        let found = match (&located, view.resolve(existing.location)) {
            (Some(located), _) => located.get(number),
            (None, Resolved::Row(row_group, row)) => Some((row_group, row)),
            (None, Resolved::Gone | Resolved::Unknown) => None,
        };
        match found {
            Some((row_group, row)) if row_group.deleted(row) == 0 => {
                existing.location = Location::new(row_group.id(), row);
            }
            _ => return Err(changed()),
        }
    }
    Ok(())
}

/// Finds the version that a put replaces, wherever it is now; it has to be the one that was staged.
fn expect_same(
    writer: &TableWriter,
    schema: &Schema,
    put: &mut Put<'_>,
    staged_at: u64,
) -> Result<()> {
    let prepared = &mut put.prepared;
    let key: Vec<ValueRef<'_>> = match schema.key_positions() {
        [] if prepared.existing.is_none() => return Ok(()),
        [] => vec![ValueRef::Uint(prepared.row_id)],
        positions => positions.iter().filter_map(|p| put.row.get(*p)).map(Value::as_ref).collect(),
    };
    let now = writer.existing(&key, prepared.hash)?;
    // One that came since has a commit above: the reader held keeps it known.
    let is_same = match now.filter(|e| e.deleted == 0) {
        Some(now) => {
            prepared.is_update() && now.row_id == prepared.row_id && now.created <= staged_at
        }
        None => !prepared.is_update(),
    };
    prepared.existing = now;
    if is_same { Ok(()) } else { Err(changed()) }
}

fn apply(
    writer: &mut TableWriter,
    written: &[Written<'_>],
    deletes: &[Existing],
    commit: u64,
) -> esker_table::Result<()> {
    for Written { segment, puts } in written {
        segment.set_create_stamp(CreateStamp::Runs(vec![(0, commit)]));
        for (i, put) in puts.iter().enumerate() {
            if let Some(older) = put.prepared.existing {
                segment.set_replaced(i, older.location)?;
            }
        }
        writer.add_row_group(RowGroup::Segment(Arc::clone(segment)));
    }
    for existing in deletes {
        writer.delete(existing, commit)?;
    }
    for Written { segment, puts } in written {
        for (i, put) in puts.iter().enumerate() {
            writer.link(&put.prepared, Location::new(segment.id(), i), commit)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
