//! Entering the keys of a loaded segment into the primary index, and its values into unique ones.
//!
//! Keys are hashed and sorted by hash, so that the index is walked in memory order and equal keys
//! of the segment stand side by side. Every batch is checked and inserted under one hold of the
//! commit lock, so that no writer can slip a key in between.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use esker_arena::PartitionedHash;
use esker_format::{Batch, Column, ColumnSlice, Field, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_table::lookup::versions;
use esker_table::segment::Segment;
use esker_table::table::{UniqueKeys, describe_key};
use esker_table::view::{Resolved, RowGroup, View};
use esker_table::{Location, RowHasher, Table as TableCore};

use super::refused;
use super::worker::{Numbers, Shared};
use crate::commit::conflict::refuse_other_schema;
use crate::commit::fit::refuse_long_unique;
use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

/// Entries per hold of the commit lock, about.
const LOCKED_BATCH: usize = 4_096;

/// How far a hash is shifted to get the number of its batch. Batches are whole ranges of leading
/// bits, as the index's partitions are: half a partition's range at a time would crowd its lines.
fn batch_shift(entries: usize) -> u32 {
    // default: few entries are one batch
    let bits = (entries / LOCKED_BATCH).checked_ilog2().unwrap_or(0);
    64 - bits
}

/// Indexes the rows of segment `id`, which `batch` holds.
pub(super) fn index_segment(
    shared: &Shared,
    batch: &Batch,
    id: u64,
    numbers: &Numbers,
) -> Result<()> {
    let all = BatchKeys::all(shared, batch)?;
    // Rows that were left out before these are not counted, so that none is named then.
    let at = |e: Error, row: usize| match shared.skips || shared.replacing.is_some() {
        true => e,
        false => match numbers.row_of_load(row) {
            Ok(row) => e.in_row(row),
            Err(unsorted) => unsorted,
        },
    };
    all.iter().try_for_each(|keys| keys.enter(id, batch.len(), &at))
}

/// Takes the rows out of a batch whose keys, or values of a unique index, somebody has, or an
/// earlier row of the load that stays; returns how many. Who gets a key afterwards stands in the
/// way of the load, as always.
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
            // default: behind the last, or before the first, there is none
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
    let all = BatchKeys::all(shared, batch)?;
    let mut known = vec![false; batch.len()];
    // default: rows of the batch only are marked
    let mut mark = |row: usize| known.get_mut(row).map_or((), |known| *known = true);
    for keys in &all {
        for chunk in keys.by_hash(batch.len()).chunks(LOCKED_BATCH) {
            let mut catalogue = engine.lock_for_change()?;
            refuse_other_schema(&mut catalogue, shared.core.id(), &shared.schema)?;
            let (view, own) = (shared.core.view(), shared.segments());
            for (hash, row) in chunk {
                // The rows are in no row group yet.
                match keys.check_free(&view, &own, *hash, *row, u64::MAX) {
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => mark(*row),
                    other => other?,
                }
            }
        }
    }
    match all.as_slice() {
        [keys] => keys.mark_repeated(batch.len(), &mut known),
        all => mark_later(all, batch.len(), &mut known),
    }
    Ok(known)
}

/// Marks rows that have something of an earlier one that is not marked. Rows are taken one by one:
/// one that is left out by its key leaves its other values to the next.
fn mark_later(all: &[BatchKeys<'_>], rows: usize, known: &mut [bool]) {
    let mut kept: Vec<BTreeMap<u64, Vec<usize>>> = all.iter().map(|_| BTreeMap::new()).collect();
    for row in 0..rows {
        let Some(known) = known.get_mut(row).filter(|known| !**known) else { continue };
        let hashes: Vec<_> = all.iter().map(|keys| keys.hash(row)).collect();
        let taken = all.iter().zip(&kept).zip(&hashes).any(|((keys, kept), hash)| {
            let same = hash.and_then(|hash| kept.get(&hash)).map(Vec::as_slice);
            // default: no row has this hash
            same.unwrap_or_default().iter().any(|other| keys.key(*other) == keys.key(row))
        });
        if taken {
            *known = true;
            continue;
        }
        for (kept, hash) in kept.iter_mut().zip(hashes) {
            if let Some(hash) = hash {
                kept.entry(hash).or_default().push(row);
            }
        }
    }
}

fn row_of(word: u64) -> usize {
    // default: the word is an entry that was made here
    Location::from_word(word).map_or(0, Location::row)
}

/// What the rows of a batch are looked up by: their keys, or their values of a unique index.
struct BatchKeys<'a> {
    shared: &'a Shared,
    /// The unique index; `None` for the key.
    unique: Option<Arc<UniqueKeys>>,
    /// The columns of the fields.
    columns: Vec<&'a Column>,
    /// The index has a path into documents: what is compared is not what the columns have.
    has_path: bool,
    /// The column of a key that is one text or byte string.
    single: Option<&'a Column>,
    /// The values of each row in an index of which something is computed; `None` where one is NULL,
    /// or the index has not the row.
    computed: Option<Vec<Option<Vec<Value>>>>,
    /// The columns of the primary key.
    primary: Vec<&'a Column>,
}

/// The values of the rows of a batch in an index of which something is computed.
fn computed(shared: &Shared, batch: &Batch, keys: &UniqueKeys) -> Result<Vec<Option<Vec<Value>>>> {
    let schema = &shared.schema;
    let column = |field: &Field| {
        let position = schema.fields().iter().position(|known| known.id == field.id);
        let missing = || esker_table::Error::corrupt(format!("no column {:?}", field.name));
        let column = position.and_then(|at| batch.columns.get(at)).ok_or_else(missing)?;
        Ok(ColumnSlice::from(column))
    };
    let columns = keys.columns(schema, batch.len(), &column)?;
    let mut all = Vec::with_capacity(batch.len());
    for row in 0..batch.len() {
        let key = columns.key(row);
        refuse_long_unique(keys.index(), key.iter().flatten().copied())?;
        all.push(key.map(|key| key.into_iter().map(ValueRef::to_owned).collect()));
    }
    Ok(all)
}

impl<'a> BatchKeys<'a> {
    /// The keys.
    fn new(shared: &'a Shared, batch: &'a Batch) -> Self {
        Self::of(shared, batch, None, shared.schema.key_positions())
    }

    /// All that rows are looked up by; the keys come first.
    fn all(shared: &'a Shared, batch: &'a Batch) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        if !shared.schema.key_positions().is_empty() {
            all.push(Self::new(shared, batch));
        }
        if Bug::UniqueNotCheckedInLoads.is_planted() {
            return Ok(all);
        }
        for keys in shared.core.uniques().iter() {
            let positions = keys.positions(&shared.schema);
            let computed = match keys.is_computed() {
                true => Some(computed(shared, batch, keys)?),
                false => None,
            };
            let of = Self::of(shared, batch, Some(Arc::clone(keys)), &positions);
            all.push(Self { computed, ..of });
        }
        Ok(all)
    }

    fn of(
        shared: &'a Shared,
        batch: &'a Batch,
        unique: Option<Arc<UniqueKeys>>,
        positions: &[usize],
    ) -> Self {
        let columns: Vec<&Column> =
            positions.iter().filter_map(|p| batch.columns.get(*p)).collect();
        let has_path = unique.as_ref().is_some_and(|keys| keys.has_path());
        let single = match columns.as_slice() {
            [one] if one.bytes(0).is_some() && !has_path => Some(*one),
            _ => None,
        };
        let primary = shared.schema.key_positions();
        let primary = primary.iter().filter_map(|p| batch.columns.get(*p)).collect();
        Self { shared, unique, columns, has_path, single, computed: None, primary }
    }

    /// The index of these keys.
    fn index(&self) -> &PartitionedHash {
        // default: without a unique index it is that of the key
        self.unique.as_ref().map_or_else(|| self.shared.core.index(), |keys| keys.entries())
    }

    /// Hashes and rows, by hash, then by row.
    fn by_hash(&self, rows: usize) -> Vec<(u64, usize)> {
        let hash = |row| Some((self.hash(row)?, row));
        let mut entries: Vec<_> = (0..rows).filter_map(hash).collect();
        entries.sort_unstable();
        entries
    }

    fn key(&self, row: usize) -> Vec<ValueRef<'_>> {
        if let Some(computed) = &self.computed {
            let key = computed.get(row).and_then(Option::as_ref);
            return key.into_iter().flatten().map(Value::as_ref).collect();
        }
        let values = self.columns.iter().map(|c| c.value(row));
        match self.unique.as_ref().filter(|_| self.has_path) {
            Some(keys) => keys.compared(values).collect(),
            None => values.collect(),
        }
    }

    /// The hash of a row's key; `None` where a value of a unique index is NULL.
    fn hash(&self, row: usize) -> Option<u64> {
        if let Some(computed) = &self.computed {
            let key = computed.get(row)?.as_ref()?;
            return Some(self.shared.core.hasher().hash_key(key.iter().map(Value::as_ref)));
        }
        if self.unique.is_some() && self.columns.iter().any(|column| column.is_null(row)) {
            return None;
        }
        let hasher = self.shared.core.hasher();
        if self.has_path {
            let key = self.key(row);
            return key.iter().all(|value| !value.is_null()).then(|| hasher.hash_key(key));
        }
        Some(match self.single.and_then(|column| column.bytes(row)) {
            Some(bytes) => hasher.hash_key([ValueRef::Bytes(bytes)]),
            None => hasher.hash_key(self.columns.iter().map(|c| c.value(row))),
        })
    }

    /// The key of a row as errors write it.
    fn describe(&self, row: usize) -> String {
        let (schema, key) = (&self.shared.schema, self.key(row));
        match &self.unique {
            Some(keys) => keys.describe(schema, &key),
            None => describe_key(schema, &key),
        }
    }

    /// Enters the keys of the rows of a segment.
    fn enter(&self, id: u64, rows: usize, at: &dyn Fn(Error, usize) -> Error) -> Result<()> {
        let shared = self.shared;
        let (core, engine) = (&shared.core, &shared.table.engine);
        let entries = self.by_hash(rows).into_iter();
        let entries: Vec<(u64, u64)> =
            entries.map(|(hash, row)| (hash, Location::new(id, row).word())).collect();
        self.refuse_repeated(&entries).map_err(|(e, row)| at(e, row))?;
        // A young index splits its partitions by how much it holds, too coarsely for small ranges:
        // it takes all entries at once.
        let is_young = self.index().len() < entries.len();
        let shift = if is_young { u64::BITS } else { batch_shift(entries.len()) };
        // default: all entries are one batch
        let batch_of = |entry: &(u64, u64)| entry.0.checked_shr(shift).unwrap_or(0);
        for chunk in entries.chunk_by(|a, b| batch_of(a) == batch_of(b)) {
            let own = {
                let mut catalogue = engine.lock_for_change()?;
                refuse_other_schema(&mut catalogue, core.id(), &shared.schema)?;
                let view = core.view();
                let own = shared.segments();
                let blind = Bug::LoadWithoutConflictCheck.is_planted();
                if !self.index().is_empty() && !blind {
                    for (hash, word) in chunk {
                        let row = row_of(*word);
                        self.check_free(&view, &own, *hash, row, id).map_err(|e| at(e, row))?;
                    }
                }
                self.index().insert_many(chunk)?;
                own
            };
            // Keys that were compared lie all over what has been loaded: together with the pages
            // around them, they would be all of it in the end.
            own.iter().for_each(|segment| segment.release());
            engine.environment.tasks.pause();
        }
        Ok(())
    }

    /// Marks every row that has the key of an earlier one.
    fn mark_repeated(&self, rows: usize, known: &mut [bool]) {
        for run in self.by_hash(rows).chunk_by(|a, b| a.0 == b.0) {
            for (position, (_, row)) in run.iter().enumerate() {
                // default: behind the last, or before the first, there is none
                let earlier = run.get(..position).unwrap_or_default();
                if earlier.iter().any(|(_, other)| self.key(*other) == self.key(*row))
                    && let Some(known) = known.get_mut(*row)
                {
                    *known = true;
                }
            }
        }
    }

    /// Refuses a key that stands twice among entries sorted by hash; tells the row, too.
    fn refuse_repeated(&self, entries: &[(u64, u64)]) -> std::result::Result<(), (Error, usize)> {
        for pair in entries.windows(2) {
            if let [(a, first), (b, second)] = pair
                && a == b
                && self.key(row_of(*first)) == self.key(row_of(*second))
            {
                let (key, row) = (self.describe(row_of(*first)), row_of(*second));
                let why = "comes twice in the load";
                let both = [*first, *second].map(Location::from_word);
                if let (Some(_), Some(mut replacing), [Some(first), Some(second)]) =
                    (&self.unique, self.shared.replacing(), both)
                {
                    let both = [(first, true), (second, true)];
                    let noted = replacing.note_rivals(both, format!("{key} {why}"));
                    noted.map_err(|e| (e, row))?;
                    continue;
                }
                return Err((refused(ErrorKind::AlreadyExists, &key, why), row));
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
        let resolve = |entry: Location| match entry.row_group() == id {
            true => Resolved::Gone,
            false => view.resolve(entry),
        };
        versions::<(), Error>(self.index(), hash, resolve, |found, _| {
            if self.equals(view, found, row)? {
                self.meet(view, found, own, (id, row)).map_err(|e| match e {
                    Met::InTheWay(kind, why) => refused(kind, &self.describe(row), why),
                    Met::Failed(e) => e,
                })?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(())
    }

    /// Does a stored row have the key of a row of the batch?
    fn equals(
        &self,
        view: &View,
        (row_group, there): (&RowGroup, usize),
        row: usize,
    ) -> esker_table::Result<bool> {
        let key = self.key(row);
        match &self.unique {
            // Older versions may have had the values.
            Some(_) if !row_group.is_alive(there) => Ok(false),
            Some(keys) => keys.equals(&view.schema, (row_group, there), &key),
            None => row_group.key_equals(there, &view.schema, &key),
        }
    }

    /// A version with the same key: in the way of the load, or replaced by it.
    fn meet(
        &self,
        view: &View,
        (row_group, row): (&RowGroup, usize),
        own: &[Arc<Segment>],
        (id, own_row): (u64, usize),
    ) -> std::result::Result<(), Met> {
        let shared = self.shared;
        let is_own = own.iter().any(|segment| segment.id() == row_group.id());
        if !is_own && row_group.is_loading() {
            let why = "is being loaded by somebody else; try again";
            return Err(Met::InTheWay(ErrorKind::Conflict, why));
        }
        if !is_own && !row_group.is_alive(row) {
            return Ok(());
        }
        let expired = !is_own
            && shared
                .expired
                .note(&shared.table.engine, view, (row_group, row))
                .map_err(Met::Failed)?;
        if expired {
            return Ok(());
        }
        if !is_own && !row_group.is_created_at(row, shared.started_at) {
            let why = "was added after the load began; try again";
            return Err(Met::InTheWay(ErrorKind::Conflict, why));
        }
        if self.unique.is_some()
            && let Some(mut replacing) = shared.replacing()
        {
            let key: Vec<_> = self.primary.iter().map(|column| column.value(own_row)).collect();
            let is_same = !key.is_empty()
                && row_group
                    .key_equals(row, &view.schema, &key)
                    .map_err(|e| Met::Failed(e.into()))?;
            if is_same {
                // It is the row that is replaced, as its key has shown already.
                return Ok(());
            }
            let both =
                [(Location::new(row_group.id(), row), is_own), (Location::new(id, own_row), true)];
            let why = format!("{} exists already", self.describe(own_row));
            return replacing.note_rivals(both, why).map_err(Met::Failed);
        }
        if let Some(mut replacing) = shared.replacing() {
            let row_id = row_group.row_id(row).map_err(|e| Met::Failed(e.into()))?;
            let found = (row_id, Location::new(row_group.id(), row));
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
    let (schema, uniques) = (table.schema(), table.uniques());
    let row_group = RowGroup::Segment(Arc::clone(segment));
    let hasher = RowHasher::new(table, &schema);
    for start in (0..segment.row_count()).step_by(LOCKED_BATCH) {
        let end = segment.row_count().min(start + LOCKED_BATCH);
        let (mut entries, mut unique_entries) = (Vec::new(), Vec::new());
        for row in start..end {
            let word = Location::new(segment.id(), row).word();
            if !schema.key_positions().is_empty() {
                entries.push((hasher.hash(&row_group, row)?, word));
            }
            for keys in uniques.iter() {
                if let Some(hash) = keys.hash_at(table, &schema, &row_group, row)? {
                    unique_entries.push((keys, hash, word));
                }
            }
        }
        let _catalogue = engine.lock();
        for (hash, word) in entries {
            table.index().remove(hash, word);
        }
        for (keys, hash, word) in unique_entries {
            keys.entries().remove(hash, word);
        }
    }
    segment.release();
    Ok(())
}
