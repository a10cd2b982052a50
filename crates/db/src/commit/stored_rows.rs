//! Changes of rows as the log and checkpoints have them, staged to be applied again.
//!
//! The log names rows by their row ids, which open rows are not looked up by: a [`RowLocator`] has
//! them in addition. A change numbered `n`
//!
//! * ends the version of its row that is older, wherever it is: in the open rows, and in each
//!   segment that holds the effects of commits below `n` only;
//! * puts the new version into the open rows, unless a seal through `n` or later has it, or the row
//!   has a version of commit `n` or later already.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_format::codec::Reader;
use esker_format::edit::{Edit, RowChange};
use esker_format::row::{Cell, decode_cells};
use esker_format::{Schema, TableId, Value};
use esker_log::sabotage::Bug;
use esker_table::segment::SegmentFiles;
use esker_table::table::{Existing, PreparedPut};
use esker_table::value_file::StoredValue;
use esker_table::view::{RowGroup, View};
use esker_table::{Location, Table as TableCore};

use crate::Result;
use crate::catalogue::{Catalogue, TableEntry};
use crate::commit::staged::Put;
use crate::commit::write_set::TableWrites;
use crate::engine::Engine;
use crate::table_version::TableVersion;

/// Changes that are staged at a time: a narrow row takes many times as much memory then as it does
/// in the log.
const PIECE_CHANGES: usize = 4_096;

/// The values of a row that lie in value files, by their fields.
type LongValues = Vec<(usize, StoredValue)>;

/// Rows of a frame as the log has them.
pub(crate) struct LoggedRows<'a> {
    pub rows: &'a [u8],
    pub locators: &'a mut RowLocators,
    /// Gives a table that comes what is known of it ahead of later frames.
    pub on_created: &'a mut dyn FnMut(&mut TableEntry) -> Result<()>,
}

/// Where open rows are, by table.
pub(crate) type RowLocators = BTreeMap<TableId, RowLocator>;

/// Where the newest version of each open row is.
#[derive(Default)]
pub(crate) struct RowLocator {
    open: BTreeMap<u64, Location>,
    /// How many rows of each group are known.
    known: BTreeMap<u64, usize>,
}

/// What there is of a row that a commit changes.
enum Found {
    /// Nothing, or rows that such a commit does not change.
    Nothing,
    /// The version that the change ends, or that died before.
    Older(Existing),
    /// The change has been applied, or a later one.
    Changed,
}

impl RowLocator {
    /// Knows the open rows that a view has. Only the last group grows, and a new one comes behind
    /// it: the groups before one whose rows are all known have been seen.
    fn catch_up(&mut self, view: &View) {
        let mut unknown = Vec::new();
        for row_group in view.row_groups.iter().rev() {
            let RowGroup::Group(group) = row_group else { continue };
            let (id, known) = (row_group.id(), self.known.get(&row_group.id()).copied());
            if known.is_some_and(|known| known == group.row_count()) {
                break;
            }
            // default: a group that is new
            unknown.push((id, group, known.unwrap_or_default()));
        }
        // From the oldest on, so that the newest version of a row is what stays.
        for (id, group, known) in unknown.into_iter().rev() {
            for row in known..group.row_count() {
                self.open.insert(group.row_id(row), Location::new(id, row));
            }
            self.known.insert(id, group.row_count());
        }
    }

    /// What there is of a row; further versions that the change ends, which there should not be,
    /// are added to `also`.
    fn find(
        &self,
        view: &View,
        row_id: u64,
        commit: u64,
        also: &mut Vec<Existing>,
    ) -> Result<Found> {
        let open =
            self.open.get(&row_id).and_then(|at| Some((at, view.row_group(at.row_group())?)));
        let open = open.map(|(at, row_group)| existing(row_group, at.row(), row_id));
        match open {
            Some(open) if open.created >= commit || open.deleted >= commit => {
                return Ok(Found::Changed);
            }
            Some(open) if open.deleted == 0 => return Ok(Found::Older(open)),
            // It was deleted, or a load has put a version of it into a segment.
            _ if Bug::LostTombstone.is_planted() => return Ok(Found::Nothing),
            _ => {}
        }
        let mut older = None;
        for segment in view.segments().filter(|s| s.holds_through() < commit) {
            for row in segment.find_row_id(row_id)? {
                if segment.deleted(row) == 0 {
                    let found = existing(&RowGroup::Segment(Arc::clone(segment)), row, row_id);
                    also.extend(older.replace(found));
                }
            }
        }
        Ok(match older.or(open) {
            Some(older) => Found::Older(older),
            None => Found::Nothing,
        })
    }
}

fn existing(row_group: &RowGroup, row: usize, row_id: u64) -> Existing {
    let existing = Existing::at(row_group, row, row_id);
    Existing { entry: Some(existing.location), ..existing }
}

/// One table while changes of its rows are staged.
struct Stage<'a> {
    entry: &'a mut TableEntry,
    view: Arc<View>,
    locator: &'a mut RowLocator,
    writes: TableWrites<'static>,
    commit: u64,
}

impl<'a> Stage<'a> {
    /// `None` for a table that is gone, or that a later commit has defined.
    fn start(
        catalogue: &'a mut Catalogue,
        table: TableId,
        commit: u64,
        locators: &'a mut RowLocators,
    ) -> Option<Self> {
        let entry = catalogue.tables.get_mut(&table).filter(|entry| entry.defined_at <= commit)?;
        let locator = locators.entry(table).or_default();
        let core = entry.writer.table();
        let view = core.view();
        locator.catch_up(&view);
        let writes = TableWrites::new(TableVersion::newest(core));
        Some(Self { entry, view, locator, writes, commit })
    }

    fn find(&mut self, row_id: u64) -> Result<Found> {
        // It is new, as most are.
        if row_id >= self.entry.writer.next_row_id() {
            return Ok(Found::Nothing);
        }
        self.locator.find(&self.view, row_id, self.commit, &mut self.writes.staged.deletes)
    }

    fn delete(&mut self, row_id: u64) -> Result<()> {
        if let Found::Older(existing) = self.find(row_id)?
            && existing.deleted == 0
        {
            self.writes.staged.delete(existing);
        }
        Ok(())
    }

    fn put(&mut self, engine: &Engine, row_id: u64, bytes: &[u8]) -> Result<()> {
        let found = self.find(row_id)?;
        self.entry.writer.note_row_id(row_id);
        let existing = match found {
            Found::Changed => return Ok(()),
            Found::Older(existing) => Some(existing),
            Found::Nothing => None,
        };
        if self.commit <= self.entry.sealed_through && !Bug::SealedRowsReplayed.is_planted() {
            let alive = existing.filter(|existing| existing.deleted == 0);
            alive.into_iter().for_each(|existing| self.writes.staged.delete(existing));
            return Ok(());
        }
        put_stored(engine, &mut self.writes, (row_id, bytes), existing)
    }
}

impl Engine {
    /// Stages and applies the changes of rows that a frame has; true when maintenance has work.
    pub(super) fn apply_logged(
        &self,
        catalogue: &mut Catalogue,
        commit: u64,
        LoggedRows { rows, locators, .. }: LoggedRows<'_>,
    ) -> Result<bool> {
        self.apply_pieces((catalogue, commit), rows, |catalogue, table, changes| {
            let stage = Stage::start(catalogue, table, commit, locators);
            let Some(mut stage) = stage else { return Ok(None) };
            for change in changes {
                match change {
                    RowChange::Put { row_id, row, .. } => stage.put(self, *row_id, row)?,
                    RowChange::Delete { row_id, .. } => stage.delete(*row_id)?,
                }
            }
            Ok(Some(stage.writes))
        })
    }

    /// Stages and applies changes piece by piece. The rows of one table go to one group, so that
    /// sealing "through this commit" is exact.
    fn apply_pieces(
        &self,
        (catalogue, commit): (&mut Catalogue, u64),
        rows: &[u8],
        mut stage: impl FnMut(
            &mut Catalogue,
            TableId,
            &[RowChange<'_>],
        ) -> Result<Option<TableWrites<'static>>>,
    ) -> Result<bool> {
        let mut puts = put_counts(rows)?;
        let (mut applied, mut has_frozen) = (BTreeSet::new(), false);
        for piece in pieces(rows) {
            let (table, changes) = piece?;
            let writes = stage(catalogue, table, &changes)?;
            let Some(writes) = writes.filter(|writes| !writes.is_empty()) else { continue };
            let entry = catalogue.entry(table)?;
            if let Some(puts) = puts.remove(&table) {
                has_frozen |= self.freeze_if_full(entry, puts);
            }
            self.apply_writes(entry, commit, &writes)?;
            applied.insert(table);
        }
        for table in applied {
            has_frozen |= self.freeze_if_full(catalogue.entry(table)?, 0);
        }
        Ok(has_frozen)
    }

    /// Stages the ends of the rows that an edit says are dead.
    pub(super) fn stage_ended(
        &self,
        catalogue: &mut Catalogue,
        commit: u64,
        edit: &Edit,
        logged: &mut LoggedRows<'_>,
    ) -> Result<Option<TableWrites<'static>>> {
        let Edit::Load { table, segments, replaced, superseded, .. } = edit else {
            return Ok(None);
        };
        let stage = Stage::start(catalogue, *table, commit, logged.locators);
        let Some(mut stage) = stage else { return Ok(None) };
        // Its own rows that later ones of it replaced. Once merged they are gone.
        let is_own = |id| segments.iter().any(|entry| entry.id == id);
        for segment in stage.view.segments().filter(|s| is_own(s.id())) {
            for row_id in superseded {
                let rows = segment.find_row_id(*row_id)?.into_iter();
                let alive = rows.filter(|row| segment.deleted(*row) == 0);
                let row_group = RowGroup::Segment(Arc::clone(segment));
                let ended = alive.map(|row| existing(&row_group, row, *row_id));
                stage.writes.staged.deletes.extend(ended);
            }
        }
        // They are in order; a row that a transaction has removed and put again comes twice.
        for same in replaced.chunk_by(|one, other| one == other) {
            same.first().into_iter().try_for_each(|row_id| stage.delete(*row_id))?;
        }
        Ok(Some(stage.writes))
    }

    /// Puts the rows that a checkpoint has of one open group.
    pub(crate) fn restore_group(
        &self,
        catalogue: &mut Catalogue,
        core: &Arc<TableCore>,
        (rows, commit): (&[u8], u64),
    ) -> Result<()> {
        let applied = self.apply_pieces((catalogue, commit), rows, |catalogue, table, changes| {
            let mut writes = TableWrites::new(TableVersion::newest(core));
            let writer = &mut catalogue.entry(table)?.writer;
            for change in changes {
                if let RowChange::Put { row_id, row, .. } = change {
                    put_stored(self, &mut writes, (*row_id, row), None)?;
                    writer.note_row_id(*row_id);
                }
            }
            Ok(Some(writes))
        });
        applied.map(drop)
    }
}

/// How many rows of each table a frame puts, at the most: some may have been applied.
fn put_counts(rows: &[u8]) -> Result<BTreeMap<TableId, usize>> {
    let mut counts = BTreeMap::new();
    for change in RowChange::decode(rows) {
        if let RowChange::Put { table, .. } = change? {
            *counts.entry(table).or_default() += 1;
        }
    }
    Ok(counts)
}

/// The changes of a frame, some thousands at a time, with the table that they are of.
fn pieces(rows: &[u8]) -> impl Iterator<Item = Result<(TableId, Vec<RowChange<'_>>)>> {
    let mut changes = RowChange::decode(rows).peekable();
    std::iter::from_fn(move || {
        let first = match changes.next()? {
            Ok(first) => first,
            Err(e) => return Some(Err(e.into())),
        };
        let (table, mut piece) = (first.table(), vec![first]);
        while piece.len() < PIECE_CHANGES
            && let Some(Ok(change)) =
                changes.next_if(|next| next.as_ref().is_ok_and(|next| next.table() == table))
        {
            piece.push(change);
        }
        Some(Ok((table, piece)))
    })
}

/// Stages a put of a stored row. Recovery enters it in unique indexes once all frames are applied.
fn put_stored(
    engine: &Engine,
    writes: &mut TableWrites<'_>,
    (row_id, bytes): (u64, &[u8]),
    existing: Option<Existing>,
) -> Result<()> {
    let TableWrites { current, staged, .. } = writes;
    let (row, long) = decode_row(&engine.segment_files, &current.schema, bytes)?;
    for (_, stored) in &long {
        engine.note_row_group(stored.reference.file);
    }
    let hash = match current.core.has_generated_key() {
        true => current.core.hasher().hash_row_id(row_id),
        false => current.hash_of_row(&row),
    };
    let prepared = PreparedPut { hash, existing, row_id, uniques: Vec::new() };
    staged.puts.push(Put { row: Cow::Owned(row), prepared, long });
    Ok(())
}

/// The values of a stored row, NULL where they lie in value files; and those that do, by rising
/// field.
fn decode_row(
    files: &SegmentFiles,
    schema: &Schema,
    bytes: &[u8],
) -> Result<(Vec<Value>, LongValues)> {
    let mut cells: Vec<Cell<'_>> = Vec::new();
    let mut input = Reader::new(bytes);
    decode_cells(&mut input, schema, &mut cells)?;
    input.finish()?;
    let (mut row, mut long) = (Vec::with_capacity(cells.len()), Vec::new());
    for (field, cell) in cells.into_iter().enumerate() {
        row.push(match cell {
            Cell::Value(value) => value.to_owned(),
            Cell::Long(reference) => {
                let file = files.values().open(reference.file)?;
                file.expect_inside(&reference)?;
                long.push((field, StoredValue::durable(reference, file)));
                Value::Null
            }
        });
    }
    Ok((row, long))
}

#[cfg(test)]
mod tests {
    use esker_format::codec::Writer;

    use super::*;

    #[test]
    fn a_frame_is_staged_in_pieces_of_one_table() {
        let mut out = Writer::new();
        let tables = [(1, PIECE_CHANGES + 3), (2, 1), (3, 2 * PIECE_CHANGES)];
        for (table, count) in tables {
            for row_id in 0..count as u64 {
                RowChange::encode_delete(&mut out, TableId(table), row_id);
            }
        }
        let sizes = |bytes: &[u8]| {
            let size = |(table, changes): (TableId, Vec<_>)| (table.0, changes.len());
            pieces(bytes).map(|piece| piece.map(size)).collect::<Result<Vec<_>>>()
        };
        let full = PIECE_CHANGES;
        assert_eq!(
            sizes(out.as_bytes()).unwrap(),
            [(1, full), (1, 3), (2, 1), (3, full), (3, full)]
        );
        out.u8(9);
        assert!(sizes(out.as_bytes()).is_err(), "damage is an error");
    }
}
