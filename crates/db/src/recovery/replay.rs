//! Replaying the log over a checkpoint (protocol rules 4 and 5).
//!
//! Frames are applied in order, by the same function as when they were committed. What is beside
//! that here is what an older state has to know of later frames ([`Lookahead`]):
//!
//! * An input of a merge that is in the log is never opened, since its file may be gone; nor is
//!   anything of a table that goes later.
//! * The segments that are left are linked before the rows of any frame: a delete may be of a row
//!   that a seal or a merge has taken into a segment already, though its frame comes later. Such a
//!   segment says which commits it holds.
//! * Rows that a later frame has sealed are not put.
//!
//! Entries of unique indexes are made at the end, of the rows that are left.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use esker_format::checkpoint::{Checkpoint, GroupState, SegmentState, TableState};
use esker_format::edit::{Edit, ROWS_FRAME, SegmentEntry};
use esker_format::frame::kind;
use esker_format::schema::Stream;
use esker_format::{ClockRecord, Schema, TableId, invariant};
use esker_log::sabotage::Bug;
use esker_log::{RecoveredFrame, Scan};
use esker_table::segment::Segment;
use esker_table::view::RowGroup;
use esker_table::{Table as TableCore, TableWriter};

use super::index;
use crate::catalog::defined_view::DefinedView;
use crate::catalog::names::NameHistory;
use crate::catalog::shared_sequence::SharedSequence;
use crate::catalogue::{Catalogue, TableEntry};
use crate::commit::apply::Source;
use crate::commit::stored_rows::{LoggedRows, RowLocators};
use crate::engine::Engine;
use crate::{Error, Result};

/// What the log says further on, of one table.
#[derive(Default)]
struct TableAhead {
    /// The segments that are there in the end.
    segments: Vec<SegmentState>,
    /// Rows are in segments, or dead, up to this commit; all of them where the table goes.
    sealed_through: u64,
    /// The last schema, where the bug is planted that all rows are decoded by it.
    newest: Option<Schema>,
}

/// What the log says further on.
pub(super) struct Lookahead {
    tables: BTreeMap<TableId, TableAhead>,
    /// The number of the checkpoint that is replayed over.
    checkpoint: u64,
    next_row_group: u64,
    /// What is known of time.
    pub clock: Option<ClockRecord>,
    /// The elapsed time of the last record of the log.
    elapsed_us: Option<i64>,
}

impl Lookahead {
    /// Reads the edits of a log above a checkpoint.
    pub fn read(checkpoint: &mut Checkpoint, scan: &Scan) -> Result<Self> {
        let ahead = |state: &mut TableState| {
            let segments = std::mem::take(&mut state.segments);
            let sealed_through = state.sealed_through;
            (state.table, TableAhead { segments, sealed_through, newest: None })
        };
        let mut this = Self {
            tables: checkpoint.tables.iter_mut().map(ahead).collect(),
            checkpoint: checkpoint.number,
            next_row_group: checkpoint.next_segment.max(1),
            clock: checkpoint.clock,
            elapsed_us: None,
        };
        for frame in scan.edits() {
            let frame = frame?;
            if let (Some(edit), _) = contents(&frame)? {
                let at = |e: Error| e.at(format_args!("log frame {}", frame.commit));
                this.note(&edit, frame.commit).map_err(at)?;
            }
        }
        Ok(this)
    }

    fn note(&mut self, edit: &Edit, commit: u64) -> Result<()> {
        edit.check_commit(commit)?;
        match edit {
            Edit::DropTable { table } | Edit::TruncateTable { table, .. } => {
                let gone = TableAhead { sealed_through: u64::MAX, ..TableAhead::default() };
                self.tables.insert(*table, gone);
            }
            Edit::Load { table, segments, .. } => {
                let stamped = |s: &SegmentEntry| SegmentEntry { holds_through: commit, ..*s };
                self.add_segments(*table, segments.iter().map(stamped));
            }
            Edit::Seal { table, through, segments } => {
                let ahead = self.tables.entry(*table).or_default();
                ahead.sealed_through = ahead.sealed_through.max(*through);
                self.add_segments(*table, segments.iter().copied());
            }
            Edit::Merge { table, inputs, segments } => {
                let ahead = self.tables.entry(*table).or_default();
                ahead.segments.retain(|s| !inputs.contains(&s.entry.id));
                self.add_segments(*table, segments.iter().copied());
            }
            Edit::EndSegments { table, segments, .. }
                if !Bug::EndedSegmentsNotReplayed.is_planted() =>
            {
                let ahead = self.tables.entry(*table).or_default();
                ahead.segments.retain(|s| !segments.contains(&s.entry.id));
            }
            Edit::Checkpoint { number, .. } if *number > self.checkpoint => {
                let message = format!("it names checkpoint {number}, which is damaged or missing");
                return Err(Error::corrupt(message));
            }
            Edit::Clock(record) => {
                let (now, before) = (record.elapsed_us, self.elapsed_us.replace(record.elapsed_us));
                let falls = before.is_some_and(|before| now < before);
                invariant!(!falls, "the clock", "it has run from {before:?} us back to {now}");
                self.clock = Some(*record);
            }
            Edit::AlterTable { table, schema, .. }
                if Bug::RowsReplayedByNewestSchema.is_planted() =>
            {
                self.tables.entry(*table).or_default().newest = Some(schema.clone());
            }
            Edit::Atomic { edits, .. } => {
                edits.iter().try_for_each(|edit| self.note(edit, commit))?;
            }
            Edit::CreateTable { .. }
            | Edit::AlterTable { .. }
            | Edit::SetSequence { .. }
            | Edit::DropSequence { .. }
            | Edit::SetView { .. }
            | Edit::DropView { .. }
            | Edit::SetNamespace { .. }
            | Edit::DropNamespace { .. }
            | Edit::EndSegments { .. }
            | Edit::Checkpoint { .. } => {}
        }
        Ok(())
    }

    fn add_segments(&mut self, table: TableId, entries: impl Iterator<Item = SegmentEntry>) {
        let ahead = self.tables.entry(table).or_default();
        for entry in entries {
            self.next_row_group = self.next_row_group.max(entry.id + 1);
            if ahead.sealed_through < u64::MAX {
                ahead.segments.push(SegmentState { entry, dead: Vec::new() });
            }
        }
    }
}

/// The edit and the rows of a frame.
fn contents<'f>(frame: &RecoveredFrame<'f>) -> Result<(Option<Edit>, Cow<'f, [u8]>)> {
    let none = Cow::Borrowed([].as_slice());
    if frame.kind == ROWS_FRAME {
        return Ok((None, Cow::Borrowed(frame.payload)));
    }
    if !Edit::is_edit(frame.kind) {
        let is_known = matches!(frame.kind, kind::EPOCH_START | kind::CLOSE);
        let place = format_args!("log frame {}", frame.commit);
        invariant!(is_known, place, "it is of kind {}, which is none", frame.kind);
        return Ok((None, none));
    }
    let edit = Edit::decode(frame.kind, frame.payload)
        .map_err(|e| e.at(format_args!("log frame {}", frame.commit)))?;
    Ok(match edit {
        Edit::TruncateTable { .. } if Bug::TruncationNotReplayed.is_planted() => (None, none),
        Edit::Atomic { mut edits, mut rows } => {
            let ignores = |edit: &Edit| match edit {
                Edit::DropTable { .. } => Bug::DropWithinCommitNotReplayed.is_planted(),
                Edit::TruncateTable { .. } => Bug::TruncationNotReplayed.is_planted(),
                _ => false,
            };
            edits.truncate(if Bug::LargeCommitReplaysOneTable.is_planted() {
                1
            } else {
                usize::MAX
            });
            edits.retain(|edit| !ignores(edit));
            if Bug::LargeCommitReplaysNoRows.is_planted() {
                rows.clear();
            }
            (Some(Edit::Atomic { edits, rows: Vec::new() }), Cow::Owned(rows))
        }
        edit => (Some(edit), none),
    })
}

/// A log that is applied to an engine before its first reader.
pub(super) struct Replay<'e> {
    engine: &'e Engine,
    ahead: Lookahead,
    locators: RowLocators,
}

impl<'e> Replay<'e> {
    /// Begins with the state that a checkpoint has, seen from later on.
    pub fn start(engine: &'e Engine, checkpoint: Checkpoint, ahead: Lookahead) -> Result<Self> {
        engine.note_row_group(ahead.next_row_group - 1);
        let sequences = checkpoint.sequences.into_iter();
        let sequences = sequences.map(|(name, logged)| (name, SharedSequence::new(logged)));
        engine.sequences.store(Arc::new(sequences.collect()));
        let this = Self { engine, ahead, locators: RowLocators::new() };
        let mut catalogue = engine.lock();
        catalogue.next_table = checkpoint.next_table;
        catalogue.checkpoint_number = checkpoint.number;
        catalogue.checkpoint_commit = checkpoint.commit;
        catalogue.namespaces = checkpoint.namespaces.into_iter().collect();
        for (name, view) in checkpoint.views {
            let defined = DefinedView::of_stored(view);
            let defined = defined.map_err(|e| e.at(format_args!("view {name:?}")))?;
            catalogue.views.insert(name, Arc::new(defined));
        }
        for state in checkpoint.tables {
            this.restore(&mut catalogue, state, checkpoint.commit)?;
        }
        drop(catalogue);
        Ok(this)
    }

    /// Applies a frame.
    pub fn apply(&mut self, frame: &RecoveredFrame<'_>) -> Result<()> {
        let (mut edit, rows) = contents(frame)?;
        let Self { engine, ahead, locators } = self;
        let mut catalogue = engine.lock();
        if let Some(edit) = &mut edit {
            plant(&catalogue, ahead, edit, false);
        }
        let on_created = &mut |entry: &mut TableEntry| link_ahead(engine, ahead, entry);
        let logged = LoggedRows { rows: &rows, locators, on_created };
        let applied =
            engine.apply(&mut catalogue, frame.commit, edit.as_ref(), Source::Log(logged));
        applied.map(drop).map_err(|e| e.at(format_args!("log frame {}", frame.commit)))
    }

    /// Makes of what there is now what takes commits.
    pub fn finish(self) -> Result<()> {
        let Self { engine, .. } = self;
        let catalogue = engine.lock();
        for entry in catalogue.tables.values() {
            let table = entry.writer.table();
            expect_known_row_ids(entry)?;
            index::fill_uniques(engine, table)?;
            let mut view = (*table.view()).clone();
            view.segments().for_each(|segment| segment.forget_row_order());
            view.forget_schemas(u64::MAX);
            let expires = |field| view.row_groups.iter().any(|g| g.least_expiry(field) < i64::MAX);
            let ends = view.schema.stream().is_some_and(Stream::ends_events);
            if ends || view.schema.expiry_field().is_some_and(expires) {
                engine.note_expiring();
            }
            table.set_view(view)?;
            count_live(table);
        }
        engine.names.store(Arc::new(NameHistory::new(catalogue.names())));
        engine.recount_frozen(&catalogue);
        Ok(())
    }

    /// Opens a table of a checkpoint as later frames have it, and restores its open rows.
    fn restore(&self, catalogue: &mut Catalogue, state: TableState, commit: u64) -> Result<()> {
        let TableState { table, name, schema, next_row_id, index_file, groups, .. } = state;
        let ended_row_id = state.ended_row_id;
        let newest = self.ahead.tables.get(&table).and_then(|ahead| ahead.newest.clone());
        // default: rows are of the schema of their commit
        let schema = newest.unwrap_or(schema);
        let core = self.engine.new_table(table, &name, schema)?;
        core.note_ended_row_id(ended_row_id);
        let writer = TableWriter::new(Arc::clone(&core), next_row_id);
        let mut entry =
            TableEntry { index_file, defined_at: commit, ..TableEntry::new(name, writer) };
        link_ahead(self.engine, &self.ahead, &mut entry)?;
        let sealed_through = entry.sealed_through;
        catalogue.tables.insert(table, entry);
        let is_open = |group: &&GroupState| group.newest_commit > sealed_through;
        let open: Vec<_> = groups.iter().filter(is_open).collect();
        for group in &open {
            let rows = (group.rows.as_slice(), group.newest_commit);
            self.engine.restore_group(catalogue, &core, rows)?;
            // Group by group, so that sealing through a group's newest commit stays exact.
            if open.len() > 1 {
                catalogue.entry(table)?.writer.freeze();
            }
        }
        Ok(())
    }
}

/// Gives a table what later frames say of it: its segments, with their rows in its index, and
/// through which commit it is sealed.
fn link_ahead(engine: &Engine, ahead: &Lookahead, entry: &mut TableEntry) -> Result<()> {
    let core = Arc::clone(entry.writer.table());
    let Some(ahead) = ahead.tables.get(&core.id()) else { return Ok(()) };
    entry.sealed_through = ahead.sealed_through;
    if ahead.sealed_through == u64::MAX {
        // It goes: the files are gone perhaps.
        entry.index_file = 0;
        return Ok(());
    }
    let mut view = (*core.view()).clone();
    for SegmentState { entry, dead } in &ahead.segments {
        let segment = Segment::open(&engine.segment_files, entry, &engine.arena)?;
        let (of, own) = (segment.table().0, core.id().0);
        let place = format_args!("table {own}, segment {}", entry.id);
        invariant!(of == own, place, "it has rows of table {of}");
        segment.mark_initially_dead()?;
        for row in dead {
            let row = *row as usize;
            if segment.deleted(row) == 0 {
                segment.mark_deleted(row, 1)?;
            }
        }
        segment.value_files().iter().for_each(|file| engine.note_row_group(file.id()));
        view.insert(RowGroup::Segment(Arc::new(segment)));
    }
    core.set_view(view)?;
    entry.index_covers = index::fill(engine, &core, entry.index_file)?;
    Ok(())
}

/// Asserts that no row of a segment has an id that is still to be given out.
fn expect_known_row_ids(entry: &TableEntry) -> Result<()> {
    let (table, next) = (entry.writer.table(), entry.writer.next_row_id());
    let view = table.view();
    for segment in view.segments().filter(|segment| segment.row_count() > 0) {
        let (_, last) = segment.row_id_bounds();
        let place = format_args!("table {:?}, segment {}", table.name(), segment.id());
        invariant!(last < next, place, "it has row {last}, though {next} is the next");
    }
    Ok(())
}

/// Bugs to plant in edits.
fn plant(catalogue: &Catalogue, ahead: &Lookahead, edit: &mut Edit, is_within: bool) {
    if let Edit::CreateTable { table, schema, .. } | Edit::AlterTable { table, schema, .. } = edit {
        let newest = ahead.tables.get(table).and_then(|ahead| ahead.newest.as_ref());
        newest.inspect(|newest| schema.clone_from(newest));
    }
    match edit {
        Edit::AlterTable { table, name, schema } => {
            let Some(entry) = catalogue.tables.get(table) else { return };
            let now = entry.writer.table().schema();
            let same_rows = schema.has_same_rows_as(&now);
            let is_lost = same_rows && *schema != *now && Bug::IndexChangeNotReplayed.is_planted();
            if is_lost {
                (*now).clone_into(schema);
            }
            if is_lost || (is_within && Bug::RenameWithinCommitNotReplayed.is_planted()) {
                name.clone_from(&entry.name);
            }
        }
        Edit::Atomic { edits, .. } => {
            edits.iter_mut().for_each(|edit| plant(catalogue, ahead, edit, true));
        }
        _ => {}
    }
}

fn count_live(table: &TableCore) {
    let living = |row_group: &RowGroup| row_group.row_count() as u64 - row_group.dead_count();
    let live: u64 = table.view().row_groups.iter().map(living).sum();
    // What was put was counted, whatever became of it.
    table.add_live_rows(live.wrapping_sub(table.live_rows()).cast_signed());
}

#[cfg(test)]
mod tests;
