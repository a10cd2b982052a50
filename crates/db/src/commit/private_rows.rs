//! Rows that a transaction has put into segments before its commit, since they took too much
//! memory, and versions of its snapshot that it has removed beside them.
//!
//! ```text
//! rows in memory ─► segment, synced, private ─► its file goes with the transaction
//!                                         └─► commit (lock): still as the snapshot? ─► frame names
//!                                             it ─► rows linked ─► the file is the table's
//! ```
//!
//! Nothing is kept for each row between the two: what a row replaces is looked up when it is
//! validated, and once more when it is linked, under the same hold of the commit lock.
//!
//! Invariants:
//! 1. All rows of the segments live: one that the transaction has changed again is not in them.
//! 2. A row that replaces a version of the snapshot has its row id.
//! 3. In a stream such rows lie in other segments than new ones, which get the row ids of the
//!    commit.

use std::sync::Arc;

use esker_arena::Arena;
use esker_format::{Room, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_table::segment::{CreateStamp, Segment, SegmentFiles};
use esker_table::table::{Existing, PreparedPut, UniqueEntry, describe_key};
use esker_table::view::RowGroup;
use esker_table::{Location, PinnedLocations, Table as TableCore, TableWriter};

use crate::commit::conflict::expect_snapshot;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

/// Bytes of an index entry of a row, and of what is known of when it was made, about.
const LINKED_ROW_BYTES: u64 = 40;
/// Bytes of what is known of when a version was removed, about.
const REMOVED_BYTES: u64 = 16;
/// Bytes of what is known of a value of a unique index while it is entered, and of its entry.
const UNIQUE_BYTES: u64 = 96;

/// Rows of one table in segments that only one transaction knows.
#[derive(Default)]
pub(crate) struct PrivateRows {
    /// As the transaction has written them. Their files go with them unless a commit names them.
    pub written: Vec<Arc<Segment>>,
    /// The versions of its snapshot that it has removed: their numbers among its places.
    pub removed: Vec<usize>,
    /// Where they are.
    pub places: Option<Arc<PinnedLocations>>,
    /// The commit that it reads at.
    pub read_at: u64,
    /// The same segments, as the table is to have them.
    opened: Vec<Arc<Segment>>,
}

/// Bytes that rows of a transaction take in memory once they are their table's, and while they
/// become that, and those that versions take which are removed, about.
pub(crate) fn linked_bytes(core: &TableCore, rows: usize, removed: usize) -> u64 {
    let uniques = core.uniques().len() as u64 * UNIQUE_BYTES;
    rows as u64 * (LINKED_ROW_BYTES + uniques) + removed as u64 * REMOVED_BYTES
}

/// The values of a row of a segment.
pub(crate) fn row_of(
    segment: &Segment,
    schema: &Schema,
    row: usize,
) -> esker_table::Result<Vec<Value>> {
    let fields = schema.fields().iter();
    fields.map(|field| Ok(segment.value(field, row, &Room::default())?.to_owned())).collect()
}

/// The key of a row of a segment: its row id where that is the key.
pub(crate) fn key_of<'s>(
    segment: &'s Segment,
    schema: &'s Schema,
    (row, room): (usize, &'s Room),
) -> esker_table::Result<Vec<ValueRef<'s>>> {
    if schema.key_positions().is_empty() {
        return Ok(vec![ValueRef::Uint(segment.row_id(row)?)]);
    }
    schema.key_fields().map(|field| segment.value(field, row, room)).collect()
}

impl PrivateRows {
    /// None yet, of a transaction that reads at a commit.
    pub fn at(read_at: u64) -> Self {
        Self { read_at, ..Self::default() }
    }

    /// True when there is nothing.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty() && self.removed.is_empty()
    }

    /// How many rows there are.
    pub fn row_count(&self) -> usize {
        self.written.iter().map(|segment| segment.row_count()).sum()
    }

    /// Bytes that the rows will take in memory, once they are the table's, and while they become
    /// that, about.
    pub fn linked_bytes(&self, core: &TableCore) -> u64 {
        linked_bytes(core, self.row_count(), self.removed.len())
    }

    /// Opens the segments anew: open readers of the transaction's rows see them as they were.
    pub fn open(&mut self, files: &Arc<SegmentFiles>, arena: &Arc<Arena>) -> Result<()> {
        let open = |segment: &Arc<Segment>| Segment::open(files, &segment.entry(), arena);
        self.opened = self.written.iter().map(|s| Ok(Arc::new(open(s)?))).collect::<Result<_>>()?;
        Ok(())
    }

    /// The log names the segments: from here on their files are the table's.
    pub fn keep(&self) {
        self.written.iter().for_each(|segment| segment.keep_files());
    }

    /// The segments, as the table is to have them.
    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.opened.iter()
    }

    /// Those of a stream whose rows replace no others. Under the commit lock.
    pub fn new_segments(
        &self,
        writer: &TableWriter,
        current: &TableVersion,
    ) -> Result<Vec<Arc<Segment>>> {
        let mut new = Vec::new();
        for segment in &self.opened {
            let room = Room::default();
            let key = key_of(segment, &current.schema, (0, &room))?;
            if writer.existing(&key, current.hash(&key))?.is_none() {
                new.push(Arc::clone(segment));
            }
        }
        Ok(new)
    }

    /// Refuses to go on when somebody has changed a row since the snapshot; returns the row ids of
    /// the versions that die. Under the commit lock.
    pub fn validate(&self, writer: &TableWriter, current: &TableVersion) -> Result<Vec<u64>> {
        let mut replaced = Vec::new();
        let located = self.places.as_ref().map(|places| places.locate());
        for number in &self.removed {
            match located.as_ref().and_then(|located| located.get(*number)) {
                Some((row_group, row)) if row_group.is_alive(row) => {
                    replaced.push(row_group.row_id(row)?)
                }
                Some((row_group, row)) if row_group.has_ended(row) => {}
                _ => return Err(taken(current, "a row that it has removed")),
            }
        }
        let checks = !Bug::SpilledRowsNotValidated.is_planted();
        for segment in &self.opened {
            for row in 0..segment.row_count() {
                let room = Room::default();
                let key = key_of(segment, &current.schema, (row, &room))?;
                let existing = writer.existing(&key, current.hash(&key))?;
                if checks {
                    expect_snapshot(current, &key, existing.as_ref(), self.read_at)?;
                }
                let Some(existing) = existing else { continue };
                self.expect_not_expired((segment, row), current, &key, &existing)?;
                if existing.deleted == 0 {
                    replaced.push(existing.row_id);
                }
                segment.set_replaced(row, existing.location)?;
            }
        }
        Ok(replaced)
    }

    fn expect_not_expired(
        &self,
        (segment, row): (&Segment, usize),
        current: &TableVersion,
        key: &[ValueRef<'_>],
        existing: &Existing,
    ) -> Result<()> {
        let has_expired = existing.has_expired_since(self.read_at);
        if !has_expired || existing.row_id != segment.row_id(row)? {
            return Ok(());
        }
        let key = describe_key(&current.schema, key);
        let message = format!("{key} has expired since the transaction began; begin again");
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// True when some row expires at some time.
    pub fn expires(&self, schema: &Schema) -> bool {
        let Some(field) = schema.expiry_field() else { return false };
        let row_groups = self.opened.iter().map(|segment| RowGroup::Segment(Arc::clone(segment)));
        row_groups.into_iter().any(|row_group| row_group.least_expiry(field) < i64::MAX)
    }

    /// Makes the rows those of a commit, whose frame names the segments. `uniques` has what they do
    /// to unique indexes, by segment and row; it is empty where there are none.
    pub fn apply(
        &self,
        writer: &mut TableWriter,
        current: &TableVersion,
        uniques: &mut [Vec<Vec<UniqueEntry>>],
        commit: u64,
    ) -> esker_table::Result<()> {
        let ids: Vec<u64> = self.opened.iter().map(|segment| segment.id()).collect();
        for segment in &self.opened {
            segment.set_create_stamp(CreateStamp::Runs(vec![(0, commit)]));
            writer.add_row_group(RowGroup::Segment(Arc::clone(segment)))?;
        }
        self.remove(writer, commit)?;
        for (at, segment) in self.opened.iter().enumerate() {
            for row in 0..segment.row_count() {
                let room = Room::default();
                let key = key_of(segment, &current.schema, (row, &room))?;
                let hash = current.hash(&key);
                let existing = writer.existing_beside(&ids, &key, hash)?;
                let of_row = uniques.get_mut(at).and_then(|rows| rows.get_mut(row));
                let uniques = match of_row {
                    Some(of_row) => std::mem::take(of_row),
                    None if !writer.table().has_uniques() => Vec::new(),
                    None => {
                        let id = segment.id();
                        let message = format!("segment {id}: row {row} has no unique values");
                        return Err(esker_table::Error::corrupt(message));
                    }
                };
                let row_id = segment.row_id(row)?;
                let put = PreparedPut { hash, existing, row_id, uniques };
                writer.link(&put, Location::new(segment.id(), row), commit)?;
            }
        }
        Ok(())
    }

    fn remove(&self, writer: &mut TableWriter, commit: u64) -> esker_table::Result<()> {
        let located = self.places.as_ref().map(|places| places.locate());
        for number in &self.removed {
            let found = located.as_ref().and_then(|located| located.get(*number));
            let gone = || esker_table::Error::corrupt("a row to be removed is gone");
            let (row_group, row) = found.ok_or_else(gone)?;
            // It may have expired, and been deleted for that.
            if row_group.is_alive(row) {
                row_group.mark_deleted(row, commit)?;
                writer.table().add_live_rows(-1);
            }
        }
        Ok(())
    }
}

fn taken(current: &TableVersion, what: &str) -> Error {
    let name = current.core.name();
    let message = format!(
        "table {name:?}: {what} was changed by another commit since the transaction began; begin \
         again"
    );
    Error::new(ErrorKind::Conflict, message)
}
