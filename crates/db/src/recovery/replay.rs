//! Replaying the log over a checkpoint (protocol rules 4 and 5).
//!
//! Pass 1 reads catalogue edits only, so that the final set of segments is known: an input of a
//! merge that is in the log is never opened, since its file may be gone. Pass 2 reads changes of
//! rows. A change numbered `n`
//!
//! * kills the older version of its row wherever it is: in the open rows, and in each segment that
//!   holds the effects of commits below `n` only;
//! * appends the new version to the open rows, unless a seal through `n` or later has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_arena::Arena;
use esker_format::checkpoint::{Checkpoint, TableState};
use esker_format::codec::Reader;
use esker_format::edit::{Edit, ROWS_FRAME, RowChange, SegmentEntry};
use esker_format::row::{Cell, decode_cells};
use esker_format::{ClockRecord, Schema, Sequence, TableId, Value};
use esker_log::Scan;
use esker_log::sabotage::planted;
use esker_table::segment::{Segment, SegmentFiles};
use esker_table::value_file::{StoredValue, ValueFiles};
use esker_table::view::RowGroup;
use esker_table::{KeyHasher, Location, Table as TableCore, TableWriter};
use esker_vfs::Environment;

use crate::catalog::names::Names;
use crate::catalogue::{Catalogue, TableEntry};
use crate::{Error, Result};

/// A planted bug.
const INDEX_CHANGE_LOST: &str = "index_change_not_replayed";

/// What recovery found.
pub(crate) struct Recovered {
    pub arena: Arc<Arena>,
    pub hash_key: [u64; 2],
    pub catalogue: Catalogue,
    pub names: Names,
    pub sequences: BTreeMap<String, Sequence>,
    pub next_row_group: u64,
    /// What is known of time.
    pub clock: Option<ClockRecord>,
    pub segment_files: BTreeSet<u64>,
    pub files: Arc<SegmentFiles>,
}

impl Recovered {
    /// A database without tables.
    pub fn empty(files: Arc<SegmentFiles>, arena: Arc<Arena>, hash_key: [u64; 2]) -> Self {
        let catalogue = Catalogue {
            tables: BTreeMap::new(),
            next_table: 1,
            checkpoint_number: 0,
            checkpoint_commit: 0,
            killed: 0,
            closed: false,
            broken: false,
            scratch: esker_format::codec::Writer::new(),
        };
        let segment_files = BTreeSet::new();
        let names = Names::new();
        Self {
            arena,
            hash_key,
            catalogue,
            names,
            sequences: BTreeMap::new(),
            next_row_group: 1,
            clock: None,
            segment_files,
            files,
        }
    }
}

/// A row of the log or of a checkpoint.
#[derive(Default)]
struct StoredRow {
    /// Its values, NULL where they lie in value files.
    values: Vec<Value>,
    /// Those that do, by rising field.
    long: Vec<(usize, StoredValue)>,
}

impl StoredRow {
    /// The value files that it refers to have had numbers.
    fn note_files(&self, next_row_group: &mut u64) {
        for (_, stored) in &self.long {
            *next_row_group = (*next_row_group).max(stored.reference.file + 1);
        }
    }
}

/// One table while it is being put together.
struct Table {
    state: TableState,
    /// The schemas whose rows the log changed, each with the commit that did, by rising commit.
    past_schemas: Vec<(u64, Arc<Schema>)>,
    /// Where the open version of a row is.
    open: BTreeMap<u64, Location>,
}

impl Table {
    fn new(state: TableState) -> Self {
        Self { state, past_schemas: Vec::new(), open: BTreeMap::new() }
    }

    /// From a commit on it has this name and this schema.
    fn alter(&mut self, name: String, schema: Schema, commit: u64) {
        let same_rows = schema.has_same_rows_as(&self.state.schema);
        if same_rows && schema != self.state.schema && planted(INDEX_CHANGE_LOST) {
            return;
        }
        let past = std::mem::replace(&mut self.state.schema, schema);
        if !same_rows {
            self.past_schemas.push((commit, Arc::new(past)));
        }
        self.state.name = name;
    }

    /// The row of a commit, and its schema when that is not the newest.
    fn row_of(
        &self,
        values: &ValueFiles,
        bytes: &[u8],
        commit: u64,
    ) -> Result<(StoredRow, Option<&Arc<Schema>>)> {
        let newest = &self.state.schema;
        let by_newest = planted("rows_replayed_by_newest_schema");
        let past = self.past_schemas.iter().find(|(until, _)| commit < *until && !by_newest);
        let past = past.map(|(_, schema)| schema);
        let mut cells: Vec<Cell<'_>> = Vec::new();
        let mut input = Reader::new(bytes);
        // default: a row of the newest schema
        decode_cells(&mut input, past.map_or(newest, |schema| schema), &mut cells)?;
        input.finish()?;
        let mut row = StoredRow::default();
        for (field, cell) in cells.into_iter().enumerate() {
            row.values.push(match cell {
                Cell::Value(value) => value.to_owned(),
                Cell::Long(reference) => {
                    let file = values.open(reference.file)?;
                    file.expect_inside(&reference)?;
                    row.long.push((field, StoredValue::durable(reference, file)));
                    Value::Null
                }
            });
        }
        Ok((row, past))
    }
}

/// Applies checkpoint and log.
pub(super) fn replay(
    environment: &Environment,
    files: Arc<SegmentFiles>,
    arena: Arc<Arena>,
    checkpoint: Checkpoint,
    scan: &Scan,
) -> Result<Recovered> {
    let mut recovered = Recovered::empty(files, arena, checkpoint.hash_key);
    recovered.next_row_group = checkpoint.next_segment.max(1);
    recovered.clock = checkpoint.clock;
    recovered.catalogue.next_table = checkpoint.next_table;
    recovered.catalogue.checkpoint_number = checkpoint.number;
    recovered.catalogue.checkpoint_commit = checkpoint.commit;
    recovered.sequences = checkpoint.sequences.into_iter().collect();
    let number = checkpoint.number;
    let tables = checkpoint.tables.into_iter();
    let mut tables: BTreeMap<TableId, Table> =
        tables.map(|state| (state.table, Table::new(state))).collect();
    for frame in scan.edits() {
        let frame = frame?;
        if Edit::is_edit(frame.kind) {
            let edit = Edit::decode(frame.kind, frame.payload)
                .map_err(|e| e.at(format_args!("log frame {}", frame.commit)))?;
            apply_edit(&mut recovered, &mut tables, edit, frame.commit, number)?;
        }
    }
    for table in tables.values_mut() {
        assemble(environment, &mut recovered, table)?;
    }
    for frame in scan.frames() {
        let frame = frame?;
        let outcome = if frame.kind == ROWS_FRAME {
            apply_rows(&mut recovered, &mut tables, frame.payload, frame.commit)
        } else if Edit::is_edit(frame.kind) {
            let edit = Edit::decode(frame.kind, frame.payload)?;
            apply_rows_of(&mut recovered, &mut tables, edit, frame.commit)
        } else {
            Ok(())
        };
        outcome.map_err(|e| e.at(format_args!("log frame {}", frame.commit)))?;
    }
    for entry in recovered.catalogue.tables.values_mut() {
        entry.writer.restore_as(None);
        let table = entry.writer.table();
        table.view().segments().for_each(|segment| segment.forget_row_order());
        count_live(table);
    }
    Ok(recovered)
}

/// Applies the changes of rows of one commit.
fn apply_rows(
    recovered: &mut Recovered,
    tables: &mut BTreeMap<TableId, Table>,
    rows: &[u8],
    commit: u64,
) -> Result<()> {
    let changes = RowChange::decode_all(rows)?;
    // All rows of one commit go to one group, as when they were written.
    for entry in recovered.catalogue.tables.values_mut() {
        entry.writer.make_room(changes.len());
    }
    changes.into_iter().try_for_each(|change| apply_change(recovered, tables, change, commit))
}

/// Applies what an edit says of rows, once its segments are there.
fn apply_rows_of(
    recovered: &mut Recovered,
    tables: &mut BTreeMap<TableId, Table>,
    edit: Edit,
    commit: u64,
) -> Result<()> {
    match edit {
        Edit::Load { table, segments, replaced, superseded, .. } => {
            delete_superseded(recovered, table, &segments, &superseded, commit)?;
            replaced.into_iter().try_for_each(|row_id| {
                let gone = RowChange::Delete { table, row_id };
                apply_change(recovered, tables, gone, commit)
            })
        }
        Edit::Atomic { edits, rows } => {
            for edit in edits {
                apply_rows_of(recovered, tables, edit, commit)?;
            }
            match planted("large_commit_replays_no_rows") {
                true => Ok(()),
                false => apply_rows(recovered, tables, &rows, commit),
            }
        }
        _ => Ok(()),
    }
}

fn apply_edit(
    recovered: &mut Recovered,
    tables: &mut BTreeMap<TableId, Table>,
    edit: Edit,
    commit: u64,
    checkpoint: u64,
) -> Result<()> {
    match edit {
        Edit::CreateTable { table, name, schema } => {
            create_table(recovered, tables, table, name, schema);
        }
        Edit::AlterTable { table, name, schema } => {
            if let Some(table) = tables.get_mut(&table) {
                table.alter(name, schema, commit);
            }
        }
        Edit::TruncateTable { .. } if planted("truncation_not_replayed") => {}
        Edit::TruncateTable { table, replacement } => {
            if let Some(Table { state, .. }) = tables.remove(&table) {
                create_table(recovered, tables, replacement, state.name, state.schema);
            }
        }
        Edit::DropTable { table } => drop(tables.remove(&table)),
        Edit::SetSequence { name, sequence } => drop(recovered.sequences.insert(name, sequence)),
        Edit::DropSequence { name } => drop(recovered.sequences.remove(&name)),
        Edit::Clock(record) => recovered.clock = Some(record),
        Edit::Load { table, segments, next_row_id, .. } => {
            if let Some(table) = tables.get_mut(&table) {
                let stamped = |s| SegmentEntry { holds_through: commit, ..s };
                let segments = segments.into_iter().map(stamped);
                add_segments(recovered, &mut table.state, segments.collect());
                table.state.next_row_id = table.state.next_row_id.max(next_row_id);
            }
        }
        Edit::Seal { table, through, segments } => {
            if let Some(table) = tables.get_mut(&table) {
                table.state.sealed_through = table.state.sealed_through.max(through);
                // What the checkpoint kept of the open rows is in the segments, or dead.
                table.state.groups.retain(|group| group.newest_commit > through);
                add_segments(recovered, &mut table.state, segments);
            }
        }
        Edit::Merge { table, inputs, segments } => {
            if let Some(table) = tables.get_mut(&table) {
                table.state.segments.retain(|s| !inputs.contains(&s.entry.id));
                add_segments(recovered, &mut table.state, segments);
            }
        }
        Edit::Checkpoint { number, .. } if number > checkpoint => {
            return Err(Error::corrupt(format!(
                "log frame {commit} names checkpoint {number}, which is damaged or missing"
            )));
        }
        Edit::Checkpoint { .. } => {}
        Edit::Atomic { mut edits, .. } => {
            edits.truncate(if planted("large_commit_replays_one_table") { 1 } else { usize::MAX });
            let ignores_drops = planted("drop_within_commit_not_replayed");
            edits.retain(|edit| !ignores_drops || !matches!(edit, Edit::DropTable { .. }));
            if planted("rename_within_commit_not_replayed") {
                keep_names(&mut edits, tables);
            }
            let mut edits = edits.into_iter();
            edits.try_for_each(|edit| apply_edit(recovered, tables, edit, commit, checkpoint))?;
        }
    }
    Ok(())
}

/// Tables that are altered keep the names that they have.
fn keep_names(edits: &mut [Edit], tables: &BTreeMap<TableId, Table>) {
    for edit in edits {
        if let Edit::AlterTable { table, name, .. } = edit
            && let Some(table) = tables.get(table)
        {
            name.clone_from(&table.state.name);
        }
    }
}

fn create_table(
    recovered: &mut Recovered,
    tables: &mut BTreeMap<TableId, Table>,
    table: TableId,
    name: String,
    schema: Schema,
) {
    let catalogue = &mut recovered.catalogue;
    catalogue.next_table = catalogue.next_table.max(table.0 + 1);
    let state = TableState {
        table,
        name,
        schema,
        next_row_id: 1,
        sealed_through: 0,
        segments: Vec::new(),
        index_file: 0,
        groups: Vec::new(),
    };
    tables.insert(table, Table::new(state));
}

fn add_segments(recovered: &mut Recovered, state: &mut TableState, entries: Vec<SegmentEntry>) {
    for entry in entries {
        recovered.next_row_group = recovered.next_row_group.max(entry.id + 1);
        let dead = Vec::new();
        state.segments.push(esker_format::checkpoint::SegmentState { entry, dead });
    }
}

/// Opens a table's segments, fills its index, and restores its open rows.
fn assemble(environment: &Environment, recovered: &mut Recovered, table: &mut Table) -> Result<()> {
    let state = &table.state;
    let schema = Arc::new(state.schema.clone());
    let hasher = KeyHasher::new(recovered.hash_key);
    let arena = Arc::clone(&recovered.arena);
    let core = TableCore::new(state.table, state.name.clone(), Arc::clone(&schema), arena, hasher)?;
    let core = Arc::new(core);
    let mut view = (*core.view()).clone();
    for segment in &state.segments {
        let opened = Segment::open(&recovered.files, &segment.entry, &recovered.arena)?;
        opened.mark_initially_dead()?;
        for row in &segment.dead {
            let row = *row as usize;
            if opened.deleted(row) == 0 {
                opened.mark_deleted(row, 1)?;
            }
        }
        recovered.segment_files.insert(segment.entry.id);
        for file in opened.value_files() {
            recovered.next_row_group = recovered.next_row_group.max(file.id() + 1);
        }
        view.insert(RowGroup::Segment(Arc::new(opened)));
    }
    core.set_view(view);
    let index_covers = super::index::fill(environment, &recovered.files, &core, state.index_file)?;
    super::index::fill_uniques(environment, &core)?;
    let mut writer = TableWriter::new(Arc::clone(&core), state.next_row_id);
    for group in &state.groups {
        for change in RowChange::decode_all(&group.rows)? {
            if let RowChange::Put { row_id, row, .. } = change {
                // A checkpoint is older than all changes that the log makes.
                let (row, past) = table.row_of(recovered.files.values(), row, 0)?;
                writer.restore_as(past);
                let new_row_group = &mut recovered.next_row_group;
                let created = group.newest_commit;
                let location = restore(&mut writer, &row, row_id, None, created, new_row_group)?;
                table.open.insert(row_id, location);
            }
        }
        // Group by group, so that sealing through a group's newest commit stays exact.
        if state.groups.len() > 1 {
            writer.freeze();
        }
    }
    let entry = TableEntry {
        name: state.name.clone(),
        writer,
        sealed_through: state.sealed_through,
        changed_at: 0,
        index_file: state.index_file,
        index_covers,
    };
    recovered.names.insert(state.name.clone(), core);
    recovered.catalogue.tables.insert(state.table, entry);
    table.state.groups = Vec::new();
    Ok(())
}

/// Appends a version to the open rows and indexes it. `older` is where its predecessor was.
fn restore(
    writer: &mut TableWriter,
    row: &StoredRow,
    row_id: u64,
    older: Option<Location>,
    commit: u64,
    next_row_group: &mut u64,
) -> Result<Location> {
    writer.note_row_id(row_id);
    row.note_files(next_row_group);
    let mut new_row_group = || {
        *next_row_group += 1;
        *next_row_group - 1
    };
    let cells = (row.values.as_slice(), row.long.as_slice());
    let (location, fresh) = writer.restore(cells, row_id, older, commit, &mut new_row_group)?;
    let table = writer.table();
    let schema = writer.restores_as();
    let positions = schema.key_positions();
    let hash = if positions.is_empty() {
        table.hasher().hash_row_id(row_id)
    } else {
        let key = positions.iter().filter_map(|p| row.values.get(*p));
        table.hasher().hash_key(key.map(Value::as_ref))
    };
    let moved = older.is_some_and(|old| table.index().replace(hash, old.word(), location.word()));
    let needed = !positions.is_empty() || !fresh;
    if !moved && needed {
        table.index().insert(hash, location.word())?;
    }
    Ok(location)
}

fn apply_change(
    recovered: &mut Recovered,
    tables: &mut BTreeMap<TableId, Table>,
    change: RowChange<'_>,
    commit: u64,
) -> Result<()> {
    let (RowChange::Put { table: id, row_id, .. } | RowChange::Delete { table: id, row_id }) =
        change;
    // A table that was dropped later.
    let Some(table) = tables.get_mut(&id) else { return Ok(()) };
    let Some(entry) = recovered.catalogue.tables.get_mut(&id) else { return Ok(()) };
    let older = if row_id < entry.writer.next_row_id() {
        delete_older(entry.writer.table(), &mut table.open, row_id, commit)?
    } else {
        None
    };
    if let RowChange::Put { row, .. } = change {
        if commit <= entry.sealed_through && !planted("sealed_rows_replayed") {
            entry.writer.note_row_id(row_id);
            return Ok(());
        }
        let (row, past) = table.row_of(recovered.files.values(), row, commit)?;
        entry.writer.restore_as(past);
        let next_row_group = &mut recovered.next_row_group;
        let location = restore(&mut entry.writer, &row, row_id, older, commit, next_row_group)?;
        table.open.insert(row_id, location);
    }
    Ok(())
}

/// Marks the living version of a row dead, where a commit numbered `commit` has to: returns where
/// it was.
fn delete_older(
    table: &Arc<TableCore>,
    open: &mut BTreeMap<u64, Location>,
    row_id: u64,
    commit: u64,
) -> Result<Option<Location>> {
    let view = table.view();
    if let Some(location) = open.remove(&row_id) {
        if let Some(row_group) = view.row_group(location.row_group()) {
            row_group.mark_deleted(location.row(), commit)?;
        }
        return Ok(Some(location));
    }
    if planted("lost_tombstone") {
        return Ok(None);
    }
    let mut older = None;
    for segment in view.segments().filter(|s| s.holds_through() < commit) {
        for row in segment.find_row_id(row_id)? {
            if segment.deleted(row) == 0 {
                segment.mark_deleted(row, commit)?;
                older = Some(Location::new(segment.id(), row));
            }
        }
    }
    Ok(older)
}

/// Marks rows of a load dead that later ones of it replaced. Once merged they are gone.
fn delete_superseded(
    recovered: &Recovered,
    table: TableId,
    segments: &[SegmentEntry],
    row_ids: &[u64],
    commit: u64,
) -> Result<()> {
    // A table that was dropped later.
    let Some(entry) = recovered.catalogue.tables.get(&table) else { return Ok(()) };
    let view = entry.writer.table().view();
    let own = view.segments().filter(|s| segments.iter().any(|entry| entry.id == s.id()));
    for segment in own {
        for row_id in row_ids {
            for row in segment.find_row_id(*row_id)? {
                if segment.deleted(row) == 0 {
                    segment.mark_deleted(row, commit)?;
                }
            }
        }
    }
    Ok(())
}

fn count_live(table: &Arc<TableCore>) {
    let view = table.view();
    let live: u64 = view
        .row_groups
        .iter()
        .map(|row_group| row_group.row_count() as u64 - row_group.dead_count())
        .sum();
    // default: no table has 2^63 rows
    table.add_live_rows(i64::try_from(live).unwrap_or_default());
}
