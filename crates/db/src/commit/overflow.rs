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
//! Rows keep the row ids that they were staged with. When another commit changed one of the rows
//! first, nothing is done and the writer gets a `Conflict`, to try again; the files go.

use std::borrow::Cow;
use std::sync::Arc;

use esker_arena::{Category, ReaderGuard, Reservation};
use esker_format::codec::Writer;
use esker_format::edit::Edit;
use esker_format::schema::Stream;
use esker_format::{Batch, List, ListBuilder, Value};
use esker_log::Purpose;
use esker_log::sabotage::Bug;
use esker_table::segment::{CreateStamp, Segment};
use esker_table::table::{Existing, UniqueEntry};
use esker_table::value_file::StoredValue;
use esker_table::view::RowGroup;
use esker_table::{Location, PinnedLocations, ROW_GROUP_ROWS_MAX, TableWriter};

use crate::Result;
use crate::catalogue::Catalogue;
use crate::commit::apply::{LinkSegments, Own, Source};
use crate::commit::conflict::{as_changed, refuse_other_schema};
use crate::commit::definitions::{NewDefinitions, together};
use crate::commit::journal::Ticket;
use crate::commit::options::CommitOptions;
use crate::commit::private_rows::PrivateRows;
use crate::commit::restaged::{expect_alive, expect_as_staged, expect_same};
use crate::commit::segment_rows::{SegmentRows, shift_to_commit};
use crate::commit::staged::{Put, key_bytes};
use crate::commit::unique_check as unique;
use crate::commit::write_set::TableWrites;
use crate::engine::Engine;
use crate::engine_handle::EngineHandle;
use crate::maintenance::FileSink;
use crate::table_version::TableVersion;

/// Bytes of values of one segment, about.
const SEGMENT_BYTES: usize = 256 << 20;

/// Rows that were written as a segment, in the order of their row ids.
struct Written<'r> {
    segment: Arc<Segment>,
    puts: Vec<Put<'r>>,
}

/// The changes of a table that go by way of segments.
struct Spilled<'r> {
    current: Cow<'r, TableVersion>,
    written: Vec<Written<'r>>,
    deletes: Vec<Existing>,
    /// Where the rows that are deleted lie, in their order.
    places: Option<Arc<PinnedLocations>>,
    /// What a transaction had put into segments before.
    private: Option<PrivateRows>,
    /// What the rows of those do to unique indexes, by segment and row.
    uniques: Vec<Vec<Vec<UniqueEntry>>>,
}

impl EngineHandle {
    /// Commits what has been staged for some tables by way of segments, together with changes that
    /// the log holds; `staged_at` has been held since they were staged.
    pub(crate) fn spill(
        &self,
        large: Vec<TableWrites<'_>>,
        small: Vec<TableWrites<'_>>,
        commit_options: CommitOptions<'_>,
        staged_at: &ReaderGuard,
    ) -> Result<Ticket> {
        // default: no changes take nothing
        let bytes = large.iter().map(|part| part.staged.byte_count()).max().unwrap_or(0);
        let mut held = Reservation::new(&self.arena, Category::Load);
        let linked = |part: &TableWrites<'_>| {
            // default: without files of its own nothing is linked
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
            private
                .as_mut()
                // default: without files of its own nothing is opened
                .map_or(Ok(()), |private| private.open(&self.segment_files, &self.arena))?;
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
}

impl Engine {
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
        // New rows of a stream, which get their ids by the commit, lie apart from others.
        let is_stream = current.schema.stream().is_some();
        if is_stream {
            puts.sort_by_key(|put| !put.prepared.is_update());
        }
        let rows_max = self.options.segment_rows_max.min(ROW_GROUP_ROWS_MAX);
        let (mut written, mut part, mut bytes) = (Vec::new(), Vec::new(), 0);
        for put in puts {
            let more = put.byte_count();
            let is_other = |last: &Put<'_>| last.prepared.is_update() != put.prepared.is_update();
            if part.len() >= rows_max
                || (!part.is_empty() && bytes + more > SEGMENT_BYTES)
                || (is_stream && part.last().is_some_and(is_other))
            {
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
                    *value = empty_of(value)?;
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
            small.iter().try_for_each(|part| self.expect_looked_up(&part.current))?;
            expect_as_staged(catalogue, &mut small, commit_options, staged_at)?;
            let mut rows = Writer::new();
            self.encode_rows(&mut rows, &small, commit_options)?;
            let rows = rows.into_bytes();
            // default: rows alone define nothing
            let mut edits = commit_options.definitions.map_or_else(Vec::new, NewDefinitions::edits);
            edits.extend(loads);
            let edit = together(edits, rows);
            let only_deletes = spilled.iter().all(|s| s.written.is_empty() && s.private.is_none());
            let purpose = match only_deletes {
                true => commit_options.purpose(&small),
                false => Purpose::Adds,
            };
            self.commit_edit(catalogue, purpose, &edit, |catalogue, commit| {
                self.on_commit(commit);
                sink.keep();
                spilled.iter().filter_map(|s| s.private.as_ref()).for_each(PrivateRows::keep);
                // What is linked takes its place.
                drop(held);
                let link: &mut LinkSegments<'_> = &mut |catalogue, load, commit| {
                    let mut of_load = spilled.iter_mut().filter(|spilled| spilled.is_of(load));
                    of_load.try_for_each(|spilled| spilled.apply(catalogue, commit))
                };
                let definitions = commit_options.definitions;
                let own = Own { writes: &small, definitions, link: Some(link) };
                self.apply(catalogue, commit, Some(&edit), Source::Own(own)).map(drop)
            })
        })
    }
}

impl Engine {
    /// As for rows that are staged: another commit may be the first with a row that expires.
    fn note_ends_of_private(&self, spilled: &Spilled<'_>) -> Result<()> {
        let schema = &spilled.current.schema;
        let ends = schema.stream().is_some_and(Stream::ends_events);
        let expires = |private: &PrivateRows| private.expires(schema);
        let expires = spilled.private.as_ref().is_some_and(expires);
        if !self.has_expiring() && (ends || expires) {
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
        engine.expect_looked_up(current)?;
        let writer = &mut catalogue.entry(table)?.writer;
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
            _ if !current.core.has_uniques() || Bug::UniqueNotCheckedInSpill.is_planted() => {}
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
                let writer = &catalogue.entry(table)?.writer;
                let commit_options = (replaced.as_slice(), private.read_at);
                *uniques = unique::of_segments((writer, &current.schema), &own, commit_options)?;
                let of_puts = uniques.split_off(private.segments().count());
                let puts = written.iter_mut().flat_map(|w| &mut w.puts);
                for (put, uniques) in puts.zip(of_puts.into_iter().flatten()) {
                    put.prepared.uniques = uniques;
                }
            }
        }
        if current.schema.stream().is_some() {
            renumber(&mut catalogue.entry(table)?.writer, current, written, private.as_ref())?;
        }
        let private = private.iter().flat_map(PrivateRows::segments);
        let segments = written.iter().map(|w| &w.segment).chain(private);
        let segments = segments.map(|segment| segment.entry()).collect();
        let next_row_id = catalogue.entry(table)?.writer.next_row_id();
        let superseded = Vec::new();
        Ok(Edit::Load { table, segments, next_row_id, replaced, superseded })
    }
}

impl Spilled<'_> {
    /// True when a load names the segments.
    fn is_of(&self, load: &Edit) -> bool {
        matches!(load, Edit::Load { table, .. } if *table == self.current.core.id())
    }

    /// Makes the rows those of a commit.
    fn apply(&mut self, catalogue: &mut Catalogue, commit: u64) -> Result<()> {
        let Self { current, written, deletes, private, uniques, .. } = self;
        let entry = catalogue.entry(current.core.id())?;
        if let Some(private) = private {
            private.apply(&mut entry.writer, current, uniques, commit)?;
        }
        Ok(apply(&mut entry.writer, written, deletes, commit)?)
    }
}

/// Gives the new rows of segments of a stream the row ids of this commit.
fn renumber(
    writer: &mut TableWriter,
    current: &TableVersion,
    written: &mut [Written<'_>],
    private: Option<&PrivateRows>,
) -> Result<()> {
    let is_new = |w: &&mut Written<'_>| w.puts.iter().all(|put| !put.prepared.is_update());
    let mut new: Vec<_> = written.iter_mut().filter(is_new).collect();
    let mut segments = match private {
        Some(private) => private.new_segments(writer, current)?,
        None => Vec::new(),
    };
    segments.extend(new.iter().map(|w| Arc::clone(&w.segment)));
    let shift = shift_to_commit(writer, &segments)?;
    for put in new.iter_mut().flat_map(|w| &mut w.puts) {
        put.prepared.row_id += shift;
        put.prepared.hash = writer.table().hasher().hash_row_id(put.prepared.row_id);
    }
    Ok(())
}

/// The empty value of the type of a long one.
fn empty_of(value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Text(_) => Value::Text(String::new()),
        Value::Bytes(_) => Value::Bytes(Vec::new()),
        // The type is at the end of its bytes.
        Value::List(v) => ListBuilder::new(List::of(v)?.element()).finish(),
        other => other.clone(),
    })
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
        writer.add_row_group(RowGroup::Segment(Arc::clone(segment)))?;
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
