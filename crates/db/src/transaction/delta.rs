//! What a transaction has changed of one table: one interface over rows in memory, rows that it has
//! written to files, and the columns in which its queries read the former. No other reader sees it
//! before the commit.
//!
//! ```text
//! set, undo ─► by_key: key ─► base: which version of the snapshot has the key, if there is one
//!              │  │           now:  the row as it is, or that it is gone
//!              │  └─ spill ─► spilled: rows in segments of its own, found by the hash of their key
//!              └─ overlay ──► own: rows in columns; with the segments what a query sees
//! ```
//!
//! Look-ups ask here first, then the snapshot. Queries read the snapshot without the versions that
//! are hidden, and beside it [`OwnRows`], made when the first query needs them and brought up to
//! date by later ones, and the segments of [`Spilled`]. A commit stages what is in memory and names
//! the segments.
//!
//! What stays in memory when changes are spilled: rows with values that are long enough for value
//! files, which only a commit may write, and a few bytes for each change.
//!
//! Invariants:
//! 1. A key that is here decides: whatever the snapshot has under it is hidden.
//! 2. `base` never changes once it is known: it is of the snapshot.
//! 3. A key is in memory or in a segment; where it is in both, that in memory decides.
//! 4. What is undone is put back as it was, so that a savepoint costs nothing until it is used.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_format::{Field, Moment, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_table::PinnedLocations;
use esker_table::table::{Overlay, PreparedPut};

use super::base::Base;
use super::own_rows::OwnRows;
use super::spilled::Spilled;
use super::write_buffer::{BaseVersion, Change, PendingVersion, Undo, UndoRecord};
use crate::Result;
use crate::commit::conflict::expect_snapshot;
use crate::commit::fit::fit_reference;
use crate::commit::private_rows::PrivateRows;
use crate::commit::staged::Staged;
use crate::table_version::TableVersion;

/// What was changed of a table.
pub(super) struct Delta {
    pub current: TableVersion,
    by_key: BTreeMap<Vec<u8>, Change>,
    own: Option<OwnRows>,
    /// What has been written to files.
    spilled: Spilled,
    /// Where the versions of the snapshot are that do not show, as far as they were looked up.
    places: Option<Arc<PinnedLocations>>,
    /// Bytes of the changes in memory, about.
    bytes: usize,
}

/// What is known of a key.
pub(super) struct KnownKey<'d> {
    /// What it was changed to.
    pub change: Option<Cow<'d, Change>>,
    /// What the snapshot has under it.
    pub base: BaseVersion,
}

impl Delta {
    pub fn new(current: TableVersion) -> Self {
        let (by_key, spilled) = (BTreeMap::new(), Spilled::default());
        Self { current, by_key, own: None, spilled, places: None, bytes: 0 }
    }

    /// Bytes of the changes in memory, about, which can be spilled.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that what is spilled keeps in memory, about.
    pub fn spilled_bytes(&self) -> usize {
        self.spilled.byte_count()
    }

    /// The same with the places of hidden versions.
    pub fn kept_bytes(&self) -> usize {
        // default: no places take nothing
        let places = self.places.as_ref().map_or(0, |places| places.byte_count());
        self.spilled_bytes() + places
    }

    /// Bytes of its columns, about, which the arena counts.
    pub fn column_bytes(&self) -> u64 {
        // default: no columns take nothing
        self.own.as_ref().map_or(0, OwnRows::byte_count)
    }

    /// Bytes that what is spilled will take once it is committed, about.
    pub fn linked_bytes(&self) -> u64 {
        self.spilled.linked_bytes(&self.current.core)
    }

    /// True when nothing was changed, or all of it was taken back.
    pub fn is_untouched(&self) -> bool {
        self.by_key.is_empty() && self.own.is_none() && self.spilled.is_empty()
    }

    /// What is known of a key, without a look at the snapshot unless rows were spilled: whether one
    /// counts depends on the version that it replaces.
    pub fn known(
        &self,
        base: Base<'_>,
        (bytes, key): (&[u8], &[ValueRef<'_>]),
    ) -> Result<KnownKey<'_>> {
        if let Some(change) = self.by_key.get(bytes) {
            return Ok(KnownKey { change: Some(Cow::Borrowed(change)), base: change.base });
        }
        if self.spilled.is_empty() {
            return Ok(KnownKey { change: None, base: BaseVersion::Unknown });
        }
        let base = base.version(&self.current, key)?;
        let change = self.spilled.change_of(&self.current, (bytes, key), base)?;
        Ok(KnownKey { change: change.map(Cow::Owned), base })
    }

    /// What a query sees at a moment.
    pub fn overlay(&mut self, base: Base<'_>, now: Moment) -> Result<Overlay> {
        let Self { current, by_key, own, spilled, places, .. } = self;
        if own.as_ref().is_some_and(OwnRows::is_mostly_dead) {
            *own = None;
        }
        let rows = own.get_or_insert_with(|| OwnRows::new(by_key.keys()));
        if let Err(e) = rows.bring_up_to_date(base, current, places, by_key) {
            // Half of a row may be there: they are made anew.
            *own = None;
            return Err(e);
        }
        let mut overlay = rows.overlay(places.as_ref(), now);
        spilled.expect_whole()?;
        overlay.hidden.extend(spilled.hidden());
        overlay.segments.extend(spilled.parts());
        Ok(overlay)
    }

    /// Finds out what spilling needs to know of each change: which version it hides, and its row
    /// id.
    pub fn prepare_spill(&mut self, base: Base<'_>) -> Result<()> {
        for change in self.by_key.values_mut() {
            base.pin(&self.current, &mut self.places, change)?;
            if change.row_id() == 0 && change.row().is_some() {
                change.new_row_id = base.new_row_id(&self.current)?;
            }
        }
        Ok(())
    }

    /// Writes the changes to files, but for those with long values; all of them or none.
    pub fn spill(&mut self, base: Base<'_>) -> Result<()> {
        let long_bytes = base.engine.options.values.long_bytes;
        let goes = |change: &Change| !change.has_longer(long_bytes);
        let going: Vec<_> = self.by_key.iter().filter(|(_, change)| goes(change)).collect();
        self.spilled.add(base.engine, &self.current, &going)?;
        self.by_key.retain(|_, change| !goes(change));
        self.bytes = self.by_key.iter().map(|(key, change)| change.byte_count(key)).sum();
        self.own = None;
        Ok(())
    }

    /// Tells a step back what the snapshot has under its key.
    pub fn resolve_undo(&self, undo: &mut Undo) {
        let Some(change) = self.by_key.get(&undo.key) else { return };
        if undo.base == BaseVersion::Unknown {
            undo.base = change.base;
        }
        if let UndoRecord::Change(previous) = &mut undo.previous
            && previous.base == BaseVersion::Unknown
        {
            previous.base = change.base;
        }
    }

    /// What is spilled, for the commit.
    pub fn private_rows(&mut self, base: Base<'_>) -> Result<Option<PrivateRows>> {
        if self.spilled.is_empty() {
            return Ok(None);
        }
        let mut changed = BTreeSet::new();
        for change in self.by_key.values_mut() {
            base.resolve(&self.current, change)?;
            if let BaseVersion::At(_, row_id) = change.base {
                changed.insert(row_id);
            }
        }
        let at = (base.snapshot.commit(), &changed);
        let mut rows = self.spilled.to_commit(base.engine, &self.current, at)?;
        rows.places = self.places.clone();
        Ok(Some(rows).filter(|rows| !rows.is_empty()))
    }

    /// True when nothing is in memory, so that there is nothing to stage.
    pub fn is_all_spilled(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The same changes where rows have another schema from now on; it stays as it was.
    pub fn converted(&mut self, schema: &Arc<Schema>) -> Result<Self> {
        // One list for both: a place that is remembered from here on is one of those before, too,
        // where this is taken back.
        self.places.get_or_insert_with(|| PinnedLocations::new(&self.current.core));
        let TableVersion { core, schema: old, .. } = &self.current;
        let place = |field: &Field| old.fields().iter().position(|f| f.id == field.id);
        let fields = schema.fields().iter().map(|field| (field, place(field)));
        let fields: Vec<_> = fields.collect();
        let row = |row: &[Value]| -> Result<Vec<Value>> {
            let value = |(field, place): &(&Field, Option<usize>)| {
                // default: a field that is new has its initial value
                let value = place.and_then(|at| row.get(at)).unwrap_or(&field.initial);
                Ok(fit_reference(field, value.as_ref())?.to_owned())
            };
            fields.iter().map(value).collect()
        };
        let current = TableVersion::new(Arc::clone(core), Arc::clone(schema));
        let mut new = Self::new(current);
        for (key, change) in &self.by_key {
            let now = match &change.now {
                PendingVersion::Row(values) => PendingVersion::Row(row(values)?),
                gone @ PendingVersion::Tombstone(_) => gone.clone(),
            };
            let (base, new_row_id) = (change.base, change.new_row_id);
            new.set(key.clone(), Change { base, now, new_row_id })?;
        }
        // Their columns are found by the numbers of fields, as those of the table are.
        new.spilled = self.spilled.clone();
        new.places = self.places.clone();
        Ok(new)
    }

    /// Changes a key.
    pub fn set(&mut self, key: Vec<u8>, change: Change) -> Result<Undo> {
        let base = change.base;
        let spilled = match self.spilled.is_empty() || self.by_key.contains_key(&key) {
            true => UndoRecord::Nothing,
            false => self.spilled.take(&self.current, &key, base)?,
        };
        if let Some(own) = &mut self.own {
            own.note(&key);
        }
        self.bytes += change.byte_count(&key);
        let previous = self.by_key.insert(key.clone(), change);
        // default: no change was there before
        self.bytes -= previous.as_ref().map_or(0, |change| change.byte_count(&key));
        // default: no change was there before
        let previous = previous.map_or(spilled, |change| UndoRecord::Change(Box::new(change)));
        Ok(Undo { key, previous, base })
    }

    /// Takes a change back.
    pub fn undo(&mut self, undo: Undo) {
        if let Some(own) = self.own.as_mut().filter(|_| !Bug::UndoneRowsStayInQueries.is_planted())
        {
            own.note(&undo.key);
        }
        match self.by_key.remove(&undo.key) {
            Some(now) => self.bytes -= now.byte_count(&undo.key),
            None if Bug::UndoneRowsStayInFiles.is_planted() => {}
            None => self.spilled.forget(&self.current, &undo.key),
        }
        match (undo.previous, undo.base) {
            (UndoRecord::Change(previous), _) => {
                self.bytes += previous.byte_count(&undo.key);
                self.by_key.insert(undo.key, *previous);
            }
            (UndoRecord::Spilled(place), base) => self.spilled.restore(Some(place), base),
            (UndoRecord::Tombstone, base) => self.spilled.restore(None, base),
            (UndoRecord::Nothing, BaseVersion::At(_, row_id)) => self.spilled.show(row_id),
            (UndoRecord::Nothing, BaseVersion::Absent | BaseVersion::Unknown) => {}
        }
    }

    /// True when the table is as it was.
    pub fn is_empty(&self) -> bool {
        let is_nothing = |change: &Change| {
            matches!(
                (&change.now, change.base),
                (PendingVersion::Tombstone(_), BaseVersion::Absent)
            )
        };
        self.spilled.is_without_effect() && self.by_key.values().all(is_nothing)
    }

    /// Stages all changes for a commit, under the commit lock; `Conflict` when another commit
    /// changed one of the rows first.
    pub fn stage<'r>(
        &'r self,
        writer: &mut esker_table::TableWriter,
        staged: &mut Staged<'r>,
        read_at: u64,
    ) -> Result<()> {
        staged.read_at = Some(read_at);
        for change in self.by_key.values() {
            self.stage_one(writer, staged, change, read_at)?;
        }
        Ok(())
    }

    fn stage_one<'r>(
        &self,
        writer: &mut esker_table::TableWriter,
        staged: &mut Staged<'r>,
        change: &'r Change,
        read_at: u64,
    ) -> Result<()> {
        let schema = &self.current.schema;
        let is_generated = schema.key_positions().is_empty();
        if is_generated && change.base == BaseVersion::Absent {
            // No other row has its key.
            let PendingVersion::Row(row) = &change.now else { return Ok(()) };
            let row_id = match schema.stream() {
                // Until now its row id was one for the transaction alone.
                Some(_) if !Bug::RowIdBeforeCommit.is_planted() => writer.reserve_row_ids(1),
                _ => change.new_row_id,
            };
            let uniques = Vec::new();
            let hash = writer.table().hasher().hash_row_id(row_id);
            staged.put(row.as_slice(), PreparedPut { hash, existing: None, row_id, uniques });
            return Ok(());
        }
        // Of a row that came and went within the transaction it is left that there was none.
        let row_id = [ValueRef::Uint(change.row_id())];
        let key = if is_generated { row_id.to_vec() } else { change.key(schema) };
        let hash = self.current.hash(&key);
        let existing = writer.existing(&key, hash)?;
        expect_snapshot(&self.current, &key, existing.as_ref(), read_at)?;
        let there = existing.filter(|existing| existing.deleted == 0);
        let has_expired = existing.is_some_and(|existing| existing.has_expired_since(read_at));
        if let (PendingVersion::Row(_), BaseVersion::At(..), true) =
            (&change.now, change.base, has_expired)
        {
            return Err(super::gone::row_gone(&self.current, &key));
        }
        match (&change.now, there) {
            (PendingVersion::Tombstone(_), Some(_))
                if Bug::TransactionForgetsDeletes.is_planted() => {}
            (PendingVersion::Tombstone(_), Some(existing)) => staged.delete(existing),
            (PendingVersion::Tombstone(_), None) => {}
            (PendingVersion::Row(row), Some(existing)) => {
                staged.put(row.as_slice(), PreparedPut::update(hash, existing));
            }
            (PendingVersion::Row(row), None) => {
                let row_id = match change.new_row_id {
                    0 => writer.reserve_row_ids(1),
                    given => given,
                };
                let uniques = Vec::new();
                staged.put(row.as_slice(), PreparedPut { hash, existing, row_id, uniques });
            }
        }
        Ok(())
    }
}
