//! What a transaction has changed of one table. No other reader sees it before the commit.
//!
//! ```text
//! by_key: key ─► before: which row of the snapshot has the key, if there is one
//!                now:    the row as it is, or that it is gone
//! ```
//!
//! Look-ups ask here first, then the snapshot. Queries read the snapshot without the rows that are
//! changed, and beside it groups of the transaction's own, which have its rows in columns: see
//! [`OwnRows`], made when the first query needs it and brought up to date by later ones.
//!
//! Invariants:
//! 1. A key that is here decides: whatever the snapshot has under it is hidden.
//! 2. `base` never changes once it is known: it is of the snapshot.
//! 3. What is undone is put back as it was, so that a savepoint costs nothing until it is used.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_format::{Schema, Value, ValueRef};
use esker_log::sabotage::planted;
use esker_table::table::PreparedPut;
use esker_table::{Location, PinnedLocations};

use super::own_rows::OwnRows;
use super::spilled::{Place, Spilled};
use crate::Result;
use crate::commit::conflict::expect_snapshot;
use crate::commit::staged::Staged;
use crate::table_version::TableVersion;

/// Bytes that a changed row takes beside its values, about.
const ROW_BYTES: usize = 160;
/// Bytes that a step back takes beside its key and what was under it, about.
const UNDO_BYTES: usize = 96;

/// The row of a key in the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BaseVersion {
    /// It was not looked up.
    Unknown,
    /// There is none.
    Absent,
    /// Here, with this row id.
    At(VersionRef, u64),
}

/// Where a version of the snapshot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionRef {
    /// It was here when it was found; merges may have taken it elsewhere.
    Physical(Location),
    /// Its number among the places of the table that the transaction remembers.
    Pinned(usize),
}

/// A changed row as it is now.
#[derive(Clone, Debug)]
pub(super) enum PendingVersion {
    Row(Vec<Value>),
    /// Removed; its key.
    Tombstone(Vec<Value>),
}

/// What a transaction has made of a key.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub base: BaseVersion,
    pub now: PendingVersion,
    /// The row id of a row that is new in the transaction, once it has one; else 0.
    pub new_row_id: u64,
}

impl Change {
    pub fn row(&self) -> Option<&[Value]> {
        match &self.now {
            PendingVersion::Row(row) => Some(row),
            PendingVersion::Tombstone(_) => None,
        }
    }

    /// The values of its key; a row id is not among them.
    pub fn key(&self, schema: &Schema) -> Vec<ValueRef<'_>> {
        match &self.now {
            PendingVersion::Tombstone(key) => key.iter().map(Value::as_ref).collect(),
            PendingVersion::Row(row) => {
                let positions = schema.key_positions().iter();
                positions.filter_map(|p| row.get(*p)).map(Value::as_ref).collect()
            }
        }
    }

    /// The row id, when there is one already.
    pub fn row_id(&self) -> u64 {
        match self.base {
            BaseVersion::At(_, row_id) => row_id,
            BaseVersion::Unknown | BaseVersion::Absent => self.new_row_id,
        }
    }

    pub fn byte_count(&self, key: &[u8]) -> usize {
        let (PendingVersion::Row(values) | PendingVersion::Tombstone(values)) = &self.now;
        // default: what is no text or bytes has none
        let bytes = |value: &Value| value.as_ref().as_bytes().map_or(0, <[u8]>::len);
        let values_bytes: usize =
            values.iter().map(|value| size_of::<Value>() + bytes(value)).sum();
        ROW_BYTES + key.len() + values_bytes
    }
}

/// What was changed of a table.
pub(super) struct Changes {
    pub current: TableVersion,
    pub by_key: BTreeMap<Vec<u8>, Change>,
    pub own: Option<OwnRows>,
    /// What has been written to files.
    pub spilled: Spilled,
    /// Where the versions of the snapshot are that do not show, as far as they were looked up.
    pub places: Option<Arc<PinnedLocations>>,
    /// Bytes of the changes, about.
    pub bytes: usize,
}

/// How a key was before a change of it.
pub(super) struct Undo {
    pub key: Vec<u8>,
    pub previous: UndoRecord,
    /// What the snapshot has under the key.
    pub base: BaseVersion,
}

/// What a key was changed to so far.
pub(super) enum UndoRecord {
    /// It was not changed.
    Nothing,
    Change(Box<Change>),
    /// To a row that lies in a file.
    Spilled(Place),
    /// It was removed, which is no longer known in memory.
    Tombstone,
}

impl Undo {
    /// Bytes that it keeps, about.
    pub fn byte_count(&self) -> usize {
        UNDO_BYTES
            + self.key.len()
            + match &self.previous {
                UndoRecord::Change(change) => change.byte_count(&self.key),
                UndoRecord::Nothing | UndoRecord::Spilled(_) | UndoRecord::Tombstone => 0,
            }
    }
}

impl Changes {
    pub fn new(current: TableVersion) -> Self {
        let (by_key, spilled) = (BTreeMap::new(), Spilled::default());
        Self { current, by_key, own: None, spilled, places: None, bytes: 0 }
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
        if let Some(own) = self.own.as_mut().filter(|_| !planted("undone_rows_stay_in_queries")) {
            own.note(&undo.key);
        }
        match self.by_key.remove(&undo.key) {
            Some(now) => self.bytes -= now.byte_count(&undo.key),
            None if planted("undone_rows_stay_in_files") => {}
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
            let (row_id, uniques) = (change.new_row_id, Vec::new());
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
            (PendingVersion::Tombstone(_), Some(_)) if planted("transaction_forgets_deletes") => {}
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
