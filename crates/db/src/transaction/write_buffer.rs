//! One change of a transaction: what it has made of a key, and what its snapshot has under it. All
//! changes of a table are its [`delta`](super::delta).

use esker_format::{Schema, Value, ValueRef};
use esker_table::Location;

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

    /// True when a value is longer than some bytes.
    pub fn has_longer(&self, bytes: usize) -> bool {
        let is_longer = |value: &Value| value.as_ref().as_bytes().is_some_and(|v| v.len() > bytes);
        self.row().is_some_and(|row| row.iter().any(is_longer))
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

/// A row of one of the segments that a transaction has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpilledRow {
    pub segment: usize,
    pub row: usize,
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
    Spilled(SpilledRow),
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
