//! Entering the keys of a loaded segment into the primary index.
//!
//! Keys are hashed and sorted by hash, so that the index is walked in memory order and equal keys
//! of the segment stand side by side. Every batch is checked and inserted under one hold of the
//! commit lock, so that no writer can slip a key in between.

use std::ops::ControlFlow;
use std::sync::Arc;

use esker_format::{Batch, Column, ColumnSlice, ValueRef};
use esker_table::Location;
use esker_table::Table as TableCore;
use esker_table::segment::Segment;
use esker_table::table::describe_key;
use esker_table::view::{Resolved, Unit, View};

use super::refused;
use super::worker::Shared;
use crate::engine::{Engine, entry};
use crate::{Error, ErrorKind, Result};

/// Entries per hold of the commit lock, about.
const LOCKED_BATCH: usize = 4_096;

/// How far a hash is shifted to get the number of its batch. Batches are whole ranges of leading
/// bits, as the index's partitions are: half a partition's range at a time would crowd its lines.
fn batch_shift(entries: usize) -> u32 {
    let bits = (entries / LOCKED_BATCH).checked_ilog2().unwrap_or(0);
    64 - bits
}

/// Indexes the rows of segment `id`, which `batch` holds; `first_row` rows of the load came before.
pub(super) fn index_segment(shared: &Shared, batch: &Batch, id: u64, first_row: u64) -> Result<()> {
    let core = &shared.core;
    let engine = &shared.table.engine;
    let keys = BatchKeys::new(shared, batch);
    let mut entries: Vec<(u64, u64)> =
        (0..batch.len()).map(|row| (keys.hash(row), Location::new(id, row).word())).collect();
    entries.sort_unstable();
    // Rows that were left out before these are not counted, so that none is named then.
    let at = |e: Error, row: usize| match shared.skips || shared.replacing.is_some() {
        true => e,
        false => e.at(format_args!("row {}", first_row + row as u64)),
    };
    keys.refuse_repeated(&entries).map_err(|(e, row)| at(e, row))?;
    // A young index splits its partitions by how much it holds, too coarsely for small ranges:
    // it takes all entries at once.
    let is_young = core.index().len() < entries.len();
    let shift = if is_young { u64::BITS } else { batch_shift(entries.len()) };
    let batch_of = |entry: &(u64, u64)| entry.0.checked_shr(shift).unwrap_or(0);
    for chunk in entries.chunk_by(|a, b| batch_of(a) == batch_of(b)) {
        let own = {
            let mut catalogue = engine.lock_for_change()?;
            entry(&mut catalogue, core.id())?;
            let view = core.view();
            let own = shared.segments();
            let blind = esker_log::sabotage::planted("load_without_conflict_check");
            if !core.index().is_empty() && !blind {
                for (hash, word) in chunk {
                    let row = row_of(*word);
                    keys.check_free(&view, &own, *hash, row, id).map_err(|e| at(e, row))?;
                }
            }
            core.index().insert_many(chunk)?;
            own
        };
        // Keys that were compared lie all over what has been loaded: together with the pages around
        // them, they would be all of it in the end.
        own.iter().for_each(|segment| segment.release());
        engine.environment.tasks.pause();
    }
    Ok(())
}

/// Takes the rows out of a batch whose keys somebody has, or that an earlier row of the load has;
/// returns how many. Who gets a key afterwards stands in the way of the load, as always.
pub(super) fn leave_out_known(shared: &Shared, batch: &mut Batch) -> Result<u64> {
    let known = known_rows(shared, batch)?;
    leave_out(batch, &known)
}

/// Takes the rows out of a batch that a later one of it replaces; returns how many.
pub(super) fn leave_out_replaced(shared: &Shared, batch: &mut Batch) -> Result<u64> {
    let keys = BatchKeys::new(shared, batch);
    let mut replaced = vec![false; batch.len()];
    let entries = keys.by_hash(batch.len());
    for run in entries.chunk_by(|a, b| a.0 == b.0) {
        for (position, (_, row)) in run.iter().enumerate() {
            let later = run.get(position + 1..).unwrap_or_default();
            if later.iter().any(|(_, other)| keys.key(*other) == keys.key(*row))
                && let Some(replaced) = replaced.get_mut(*row)
            {
                *replaced = true;
            }
        }
    }
    leave_out(batch, &replaced)
}

/// Takes marked rows out; returns how many.
fn leave_out(batch: &mut Batch, marked: &[bool]) -> Result<u64> {
    let left_out = marked.iter().filter(|marked| **marked).count();
    if left_out == 0 {
        return Ok(0);
    }
    for column in &mut batch.columns {
        let mut kept = Column::empty(column.data_type);
        let mut row = 0;
        for run in marked.chunk_by(|a, b| a == b) {
            if run.first() == Some(&false) {
                kept.append(&ColumnSlice::from(&*column).rows(row, row + run.len()))?;
            }
            row += run.len();
        }
        *column = kept;
    }
    Ok(left_out as u64)
}

fn known_rows(shared: &Shared, batch: &Batch) -> Result<Vec<bool>> {
    let engine = &shared.table.engine;
    let keys = BatchKeys::new(shared, batch);
    let entries = keys.by_hash(batch.len());
    let mut known = vec![false; batch.len()];
    let mut mark = |row: usize| known.get_mut(row).map_or((), |known| *known = true);
    for run in entries.chunk_by(|a, b| a.0 == b.0) {
        for (position, (_, row)) in run.iter().enumerate() {
            let earlier = run.get(..position).unwrap_or_default();
            if earlier.iter().any(|(_, other)| keys.key(*other) == keys.key(*row)) {
                mark(*row);
            }
        }
    }
    for chunk in entries.chunks(LOCKED_BATCH) {
        let mut catalogue = engine.lock_for_change()?;
        entry(&mut catalogue, shared.core.id())?;
        let (view, own) = (shared.core.view(), shared.segments());
        for (hash, row) in chunk {
            // The rows are in no unit yet.
            match keys.check_free(&view, &own, *hash, *row, u64::MAX) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => mark(*row),
                other => other?,
            }
        }
    }
    Ok(known)
}

fn row_of(word: u64) -> usize {
    Location::from_word(word).map_or(0, Location::row)
}

/// The keys of the rows of a batch.
struct BatchKeys<'a> {
    shared: &'a Shared,
    /// The columns of the key fields.
    columns: Vec<&'a Column>,
    /// The column of a key that is one text or byte string.
    single: Option<&'a Column>,
}

impl<'a> BatchKeys<'a> {
    fn new(shared: &'a Shared, batch: &'a Batch) -> Self {
        let positions = shared.schema.key_positions();
        let columns: Vec<&Column> =
            positions.iter().filter_map(|p| batch.columns.get(*p)).collect();
        let single = match columns.as_slice() {
            [one] if one.bytes(0).is_some() => Some(*one),
            _ => None,
        };
        Self { shared, columns, single }
    }

    /// Hashes and rows, by hash, then by row.
    fn by_hash(&self, rows: usize) -> Vec<(u64, usize)> {
        let mut entries: Vec<_> = (0..rows).map(|row| (self.hash(row), row)).collect();
        entries.sort_unstable();
        entries
    }

    fn key(&self, row: usize) -> Vec<ValueRef<'a>> {
        self.columns.iter().map(|c| c.value(row)).collect()
    }

    fn hash(&self, row: usize) -> u64 {
        let hasher = self.shared.core.hasher();
        match self.single.and_then(|column| column.bytes(row)) {
            Some(bytes) => hasher.hash_key([ValueRef::Bytes(bytes)]),
            None => hasher.hash_key(self.columns.iter().map(|c| c.value(row))),
        }
    }

    /// Refuses a key that stands twice among entries sorted by hash; tells the row, too.
    fn refuse_repeated(&self, entries: &[(u64, u64)]) -> std::result::Result<(), (Error, usize)> {
        for pair in entries.windows(2) {
            if let [(a, first), (b, second)] = pair
                && a == b
                && self.key(row_of(*first)) == self.key(row_of(*second))
            {
                let key = describe_key(&self.shared.schema, &self.key(row_of(*first)));
                let e = refused(ErrorKind::AlreadyExists, &key, "comes twice in the load");
                return Err((e, row_of(*second)));
            }
        }
        Ok(())
    }

    /// Refuses a key that somebody has already; where rows are replaced, notes who.
    fn check_free(
        &self,
        view: &View,
        own: &[Arc<Segment>],
        hash: u64,
        row: usize,
        id: u64,
    ) -> Result<()> {
        let mut outcome = Ok(());
        let _ = self.shared.core.index().candidates(hash, |word| {
            let Some(location) = Location::from_word(word).filter(|l| l.unit() != id) else {
                return ControlFlow::Continue(());
            };
            let key = self.key(row);
            outcome = match view.resolve(location) {
                Resolved::Row(unit, row) => match unit.key_equals(row, &view.schema, &key) {
                    Ok(true) => self.meet(unit, row, own).map_err(|e| match e {
                        Met::InTheWay(kind, why) => {
                            refused(kind, &describe_key(&view.schema, &key), why)
                        }
                        Met::Failed(e) => e,
                    }),
                    Ok(false) => Ok(()),
                    Err(e) => Err(e.into()),
                },
                Resolved::Gone => Ok(()),
                Resolved::Unknown => Err(Error::corrupt(format!("{location:?} leads nowhere"))),
            };
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        outcome
    }

    /// A version with the same key: in the way of the load, or replaced by it.
    fn meet(&self, unit: &Unit, row: usize, own: &[Arc<Segment>]) -> std::result::Result<(), Met> {
        let shared = self.shared;
        let is_own = own.iter().any(|segment| segment.id() == unit.id());
        if !is_own && unit.is_loading() {
            let why = "is being loaded by somebody else; try again";
            return Err(Met::InTheWay(ErrorKind::Conflict, why));
        }
        if !is_own && unit.deleted(row) != 0 {
            return Ok(());
        }
        if !is_own && unit.created(row) > shared.started_at {
            let why = "was added after the load began; try again";
            return Err(Met::InTheWay(ErrorKind::Conflict, why));
        }
        if let Some(mut replacing) = shared.replacing() {
            let row_id = unit.row_id(row).map_err(|e| Met::Failed(e.into()))?;
            let found = (row_id, Location::new(unit.id(), row));
            return replacing.note(&shared.table.engine, found, is_own).map_err(Met::Failed);
        }
        let why = if is_own { "comes twice in the load" } else { "exists already" };
        Err(Met::InTheWay(ErrorKind::AlreadyExists, why))
    }
}

/// Why a version that was met ends a load.
enum Met {
    InTheWay(ErrorKind, &'static str),
    Failed(Error),
}

/// Takes the entries of a segment out again.
pub(super) fn unindex_segment(
    engine: &Arc<Engine>,
    table: &TableCore,
    segment: &Arc<Segment>,
) -> Result<()> {
    let schema = table.schema();
    let unit = Unit::Segment(Arc::clone(segment));
    for start in (0..segment.row_count()).step_by(LOCKED_BATCH) {
        let end = segment.row_count().min(start + LOCKED_BATCH);
        let mut entries = Vec::with_capacity(end - start);
        for row in start..end {
            let hash = esker_table::rewrite::key_hash(table, &schema, &unit, row)?;
            entries.push((hash, Location::new(segment.id(), row).word()));
        }
        let _catalogue = engine.lock();
        for (hash, word) in entries {
            table.index().remove(hash, word);
        }
    }
    segment.release();
    Ok(())
}
