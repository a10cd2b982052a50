//! Changing rows. The writer belongs to the holder of the commit lock.
//!
//! A change is prepared (validated against the newest versions, nothing touched), numbered by the
//! log, then applied. Applying cannot fail for a reason of the caller's.
//!
//! # Invariants
//!
//! 1. A row group is in the view before a row of it is appended: `group` and `add_row_group`.
//! 2. A row is published before an index entry names it: `put` and those who call `link`; asserted
//!    by `link_found`.
//! 3. Of the entries of a key the one of the newest version moves to the next: `link_found`;
//!    asserted there.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_format::{Batch, Moment, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;

use super::Table;
use super::{UniqueEntry, UniqueKeys};
use crate::delete_stamp::DeleteStamp;
use crate::group::GroupWriter;
use crate::location::{Location, ROW_GROUP_ROWS_MAX};
use crate::lookup::{generated_key, versions};
use crate::value_file::StoredValue;
use crate::view::{RowGroup, View};
use crate::{Error, ErrorKind, Result};

/// The newest version of a key, before a change.
#[derive(Clone, Copy, Debug)]
pub struct Existing {
    /// Where it is now.
    pub location: Location,
    /// What the index entry says, when there is one.
    pub entry: Option<Location>,
    /// Its row id.
    pub row_id: u64,
    /// The commit that created it.
    pub created: u64,
    /// The commit that killed it, 0 while it lives.
    pub deleted: u64,
    /// It has expired: it is to be taken for absent, and its place is taken as in an update.
    pub expired: bool,
    /// It is dead because it had expired and was deleted for that, which changed nothing.
    pub ended: bool,
}

impl Existing {
    /// The version at a place of a row group, as one that has not expired and that no index entry
    /// names.
    #[must_use]
    pub fn at(row_group: &RowGroup, row: usize, row_id: u64) -> Self {
        Self {
            location: Location::new(row_group.id(), row),
            entry: None,
            row_id,
            created: row_group.created(row),
            deleted: row_group.deleted(row),
            expired: false,
            ended: row_group.has_ended(row),
        }
    }

    /// True when the row is there for new readers.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.deleted == 0 && !self.expired
    }

    /// True when it came after a commit, or went after it though it had not expired.
    #[must_use]
    pub fn has_changed_since(&self, commit: u64) -> bool {
        self.created > commit || (self.deleted > commit && !self.ended)
    }

    /// True when the row was not deleted yet at a commit, and has expired.
    #[must_use]
    pub fn has_expired_since(&self, commit: u64) -> bool {
        if self.deleted == 0 { self.expired } else { self.ended && self.deleted > commit }
    }
}

/// A validated put.
#[derive(Clone, Debug)]
pub struct PreparedPut {
    /// The hash of the key.
    pub hash: u64,
    /// The newest version, dead or alive, when there is one.
    pub existing: Option<Existing>,
    /// The row id: that of a living predecessor, or a new one.
    pub row_id: u64,
    /// What it does to the unique indexes, once these were searched.
    pub uniques: Vec<UniqueEntry>,
}

impl PreparedPut {
    /// A put in the place of a living version.
    #[must_use]
    pub fn update(hash: u64, existing: Existing) -> Self {
        let row_id = existing.row_id;
        Self { hash, existing: Some(existing), row_id, uniques: Vec::new() }
    }

    /// True when a living version is replaced.
    #[must_use]
    pub fn is_update(&self) -> bool {
        self.existing.is_some_and(|e| e.deleted == 0)
    }
}

/// Of two versions of a key that no reader sees any more, the one that tells what a transaction has
/// to find unchanged: an expired one, which is to be ended, or the one that died last.
fn later(one: Option<Existing>, other: Option<Existing>) -> Option<Existing> {
    match (one, other) {
        (Some(one), Some(other)) if other.deleted == 0 => {
            Some(if one.deleted == 0 { one } else { other })
        }
        (Some(one), Some(other)) if one.deleted != 0 && one.deleted < other.deleted => Some(other),
        (one, other) => one.or(other),
    }
}

/// The writing end of a table.
pub struct TableWriter {
    table: Arc<Table>,
    group: Option<GroupWriter>,
    next_row_id: u64,
    /// The moment at which rows have expired.
    now: Moment,
}

impl TableWriter {
    /// The writer of a table whose next row id is known.
    #[must_use]
    pub fn new(table: Arc<Table>, next_row_id: u64) -> Self {
        let writer = Self { table, group: None, next_row_id, now: Moment::FIRST };
        writer.tell_given();
        writer
    }

    /// Sets the moment at which rows have expired.
    pub fn set_time(&mut self, now: Moment) {
        self.now = now;
    }

    /// The time by which rows have expired, as it was set last.
    #[must_use]
    pub fn now_us(&self) -> i64 {
        self.now.of(&self.table.schema())
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The next row id.
    #[must_use]
    pub fn next_row_id(&self) -> u64 {
        self.next_row_id
    }

    /// Sets row ids aside: the first of `count` consecutive ones.
    pub fn reserve_row_ids(&mut self, count: u64) -> u64 {
        let first = self.next_row_id;
        self.next_row_id += count;
        self.tell_given();
        first
    }

    /// Row ids up to `row_id` have been used.
    pub fn note_row_id(&mut self, row_id: u64) {
        self.next_row_id = self.next_row_id.max(row_id + 1);
        self.tell_given();
    }

    fn tell_given(&self) {
        // No row has row id 0.
        self.table.given_row_id.store(self.next_row_id.saturating_sub(1), Ordering::Release);
    }

    /// The open group, when there is one.
    #[must_use]
    pub fn open_group(&self) -> Option<&GroupWriter> {
        self.group.as_ref()
    }

    /// Brings near what looking up keys with some hashes will read: a hint. Who looks up many keys
    /// does it for some dozens of them at a time, before it comes to these.
    pub fn touch(&self, hashes: &[u64]) {
        let view = self.table.view.load();
        for (row_group, row) in self.table.prefetch_hashes(&view, hashes) {
            // What a change needs to know besides; an error of reading it comes when it is used.
            let _ = std::hint::black_box(row_group.row_id(row));
            std::hint::black_box(row_group.created(row));
        }
    }

    /// The newest version of a key.
    ///
    /// # Errors
    /// `Conflict` when a load that has not committed holds the key, `Corrupt` for damage.
    pub fn existing(&self, key: &[ValueRef<'_>], hash: u64) -> Result<Option<Existing>> {
        self.existing_beside(&[], key, hash)
    }

    /// The same as if some row groups were not there: those whose rows are about to be linked.
    ///
    /// # Errors
    /// As for [`TableWriter::existing`].
    pub fn existing_beside(
        &self,
        row_groups: &[u64],
        key: &[ValueRef<'_>],
        hash: u64,
    ) -> Result<Option<Existing>> {
        self.existing_in((&self.table.view.load(), row_groups), key, hash)
    }

    fn existing_in(
        &self,
        (view, left_out): (&View, &[u64]),
        key: &[ValueRef<'_>],
        hash: u64,
    ) -> Result<Option<Existing>> {
        let mut indexed = None;
        // Where the newest version has just been dropped, what it had taken the place of.
        let resolve = |entry| view.link_previous(entry);
        versions::<(), Error>(&self.table.index, hash, resolve, |(row_group, row), entry| {
            if left_out.contains(&row_group.id()) || !row_group.has_key(row, &view.schema, key)? {
                return Ok(ControlFlow::Continue(()));
            }
            let found = self.describe(&view.schema, (row_group, row), Some(entry))?;
            // A dead or expired entry may stand beside the living one, or one of a load.
            if found.is_alive() {
                indexed = Some(found);
                return Ok(ControlFlow::Break(()));
            }
            indexed = later(indexed, Some(found));
            Ok(ControlFlow::Continue(()))
        })?;
        match generated_key(&view.schema, key) {
            // A commit that spilled, replayed, leaves the entry of the version that it replaced.
            Some(id) if indexed.is_none_or(|found| found.deleted != 0) => {
                Ok(later(self.existing_by_row_id((view, left_out), id)?, indexed))
            }
            _ => Ok(indexed),
        }
    }

    fn existing_by_row_id(
        &self,
        (view, left_out): (&View, &[u64]),
        row_id: u64,
    ) -> Result<Option<Existing>> {
        let mut newest = None;
        let is_looked_at = |row_group: &&RowGroup| !left_out.contains(&row_group.id());
        for row_group in view.row_groups.iter().filter(is_looked_at) {
            for row in row_group.rows_with_id(row_id)? {
                let found = self.describe(&view.schema, (row_group, row), None)?;
                if found.deleted == 0 {
                    return Ok(Some(found));
                }
                newest = later(newest, Some(found));
            }
        }
        Ok(newest)
    }

    fn describe(
        &self,
        schema: &Schema,
        (row_group, row): (&RowGroup, usize),
        entry: Option<Location>,
    ) -> Result<Existing> {
        if row_group.is_loading() {
            let message = "a load that has not committed holds the key; try again later";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let now_us = self.now.of(schema);
        let expired = match schema.expiry_field() {
            Some(field) if row_group.least_expiry(field) <= now_us => {
                row_group.has_expired(row, field, now_us)?
            }
            _ => false,
        };
        let existing = Existing::at(row_group, row, row_group.row_id(row)?);
        Ok(Existing { entry, expired, ..existing })
    }

    /// Validates a put of a row whose values fit the schema. `must_be_new` for an insert.
    ///
    /// # Errors
    /// `AlreadyExists` naming the key when it must be new, `Conflict` when a load holds it.
    pub fn prepare_put(&mut self, row: &[Value], must_be_new: bool) -> Result<PreparedPut> {
        let table = Arc::clone(&self.table);
        let view = table.view.load();
        let positions = view.schema.key_positions();
        if positions.is_empty() {
            let row_id = self.reserve_row_ids(1);
            let hash = self.table.hasher.hash_row_id(row_id);
            return Ok(PreparedPut { hash, existing: None, row_id, uniques: Vec::new() });
        }
        let key: Vec<ValueRef<'_>> =
            positions.iter().filter_map(|p| row.get(*p)).map(Value::as_ref).collect();
        let hash = self.table.hasher.hash_key(key.iter().copied());
        let existing = self.existing_in((&view, &[]), &key, hash)?;
        let keeps = Bug::ExpiredKeyNotReplaced.is_planted();
        let existing = existing.filter(|e| !(keeps && e.expired));
        let alive = existing.filter(|e| e.deleted == 0);
        if alive.is_some_and(|e| !e.expired) && must_be_new {
            let message = format!("{} exists already", describe_key(&view.schema, &key));
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        let row_id = match alive {
            Some(existing) => existing.row_id,
            None => self.reserve_row_ids(1),
        };
        Ok(PreparedPut { hash, existing, row_id, uniques: Vec::new() })
    }

    /// Applies a put as part of `commit`; some values, by rising field, lie in value files.
    /// `new_row_group` gives a number for a group, when one must be opened.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full.
    pub fn put(
        &mut self,
        row: (&[Value], &[(usize, StoredValue)]),
        put: &PreparedPut,
        commit: u64,
        new_row_group: &mut dyn FnMut() -> u64,
    ) -> Result<()> {
        let predecessor = put.existing.map(|e| e.location);
        let group = self.group(new_row_group)?;
        // A transaction may have taken its row ids long before others.
        let fresh = !put.is_update() && group.takes_fresh(put.row_id);
        let location = group.push(row, put.row_id, fresh, commit, predecessor)?;
        self.link_found(put, (location, fresh), commit)
    }

    /// Makes the new version of a put, which lies at a location already, the newest one.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full.
    pub fn link(&mut self, put: &PreparedPut, location: Location, commit: u64) -> Result<()> {
        self.link_found(put, (location, !put.is_update()), commit)
    }

    /// The same; a fresh row is found by its row id where that is its key.
    fn link_found(
        &mut self,
        put: &PreparedPut,
        (location, fresh): (Location, bool),
        commit: u64,
    ) -> Result<()> {
        let alive = put.existing.filter(|e| e.deleted == 0);
        let indexed = !self.table.has_generated_key() || !fresh;
        let table = &self.table;
        let view = table.view.load();
        debug_assert!(
            is_published(&view, location),
            "table {}: an index entry of {location:?}, which is not published",
            table.id.0
        );
        if let Some(existing) = alive {
            mark_deleted(&view, existing.location, DeleteStamp::replaced(commit))?;
        } else {
            table.add_live_rows(1);
            // From here on the new version tells when the key was changed last.
            if let Some(existing) = put.existing
                && let Some((row_group, row)) = view.row(existing.location)
            {
                row_group.supersede(row)?;
            }
        }
        if indexed {
            let moved = put
                .existing
                .and_then(|e| e.entry)
                .is_some_and(|entry| table.index.replace(put.hash, entry.word(), location.word()));
            if !moved {
                table.index.insert(put.hash, location.word())?;
            }
            debug_assert!(
                table.index.contains(put.hash, location.word()),
                "table {}: no index entry of {location:?}",
                table.id.0
            );
        }
        let mut uniques = put.uniques.iter();
        uniques.try_for_each(|entry| entry.keys.enter(entry.hash, entry.old, location))
    }

    /// Adds a row group to the view. Under the commit lock.
    ///
    /// # Errors
    /// `Corrupt` when the view has one of its number.
    pub fn add_row_group(&mut self, row_group: RowGroup) -> Result<()> {
        let mut view = (*self.table.view()).clone();
        view.insert(row_group);
        self.table.set_view(view)
    }

    /// Applies the delete of a living version as part of `commit`.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full.
    pub fn delete(&mut self, existing: &Existing, commit: u64) -> Result<()> {
        let delete_stamp = match existing.expired {
            true => DeleteStamp::ended(commit),
            false => DeleteStamp::deleted(commit),
        };
        mark_deleted(&self.table.view(), existing.location, delete_stamp)?;
        self.table.add_live_rows(-1);
        Ok(())
    }

    /// Applies a batch of inserted rows with a generated key, as part of `commit`. Some values of
    /// each column, by rising row, lie in value files.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full.
    pub fn push_batch(
        &mut self,
        (batch, long): (&Batch, &[Vec<(usize, StoredValue)>]),
        first_row_id: u64,
        commit: u64,
        new_row_group: &mut dyn FnMut() -> u64,
    ) -> Result<()> {
        debug_assert!(!self.table.schema().has_unique_values(), "batches have nothing to index");
        let group = self.group(new_row_group)?;
        group.push_batch((batch, long), first_row_id, commit)?;
        self.table.add_live_rows((batch.len() as u64).cast_signed());
        Ok(())
    }

    /// Freezes the open group when it has no room for `rows` more. Before a commit is applied: all
    /// rows of one commit go to one group, so that sealing "through commit g" is exact.
    pub fn make_room(&mut self, rows: usize) {
        if self.group.as_ref().is_some_and(|g| g.rows() + rows > ROW_GROUP_ROWS_MAX) {
            self.freeze();
        }
    }

    /// The open group.
    fn group(&mut self, new_row_group: &mut dyn FnMut() -> u64) -> Result<&mut GroupWriter> {
        if self.group.is_none() {
            let mut view = (*self.table.view()).clone();
            let group = GroupWriter::create(&self.table.arena, new_row_group(), &view.schema)?;
            if !Bug::GroupNotRegistered.is_planted() {
                view.insert(RowGroup::Group(Arc::clone(group.group())));
            }
            self.table.set_view(view)?;
            self.group = Some(group);
        }
        self.group.as_mut().ok_or_else(|| Error::corrupt("no open group"))
    }

    /// From `commit`, which comes at some time, on, the table has another schema: where its rows
    /// are others, too, they go to a new group from here on. `new` are the entries of unique
    /// indexes that it has in addition. Under the commit lock; where rows expire by another field,
    /// no reader may get a later time meanwhile.
    ///
    /// # Errors
    /// `Corrupt` when the entries of a unique index are unknown; nothing is changed then.
    pub fn alter(
        &mut self,
        schema: Arc<Schema>,
        new: &[Arc<UniqueKeys>],
        (commit, now): (u64, Moment),
    ) -> Result<()> {
        self.table.set_uniques(&schema, new)?;
        let mut view = (*self.table.view()).clone();
        let same_rows = view.schema.has_same_rows_as(&schema);
        if !same_rows && !Bug::AlterKeepsGroupOpen.is_planted() {
            self.freeze();
        }
        let is_wanted = |id| schema.indexes().iter().any(|index| index.id == id);
        view.segments().for_each(|segment| segment.retain_runs(is_wanted));
        view.alter(schema, commit, now);
        self.table.set_view(view)
    }

    /// Ends the open group: it stays in the view, and the next row opens another.
    pub fn freeze(&mut self) {
        self.group = None;
    }
}

/// True when a row group of the view has the row.
fn is_published(view: &View, location: Location) -> bool {
    let row_group = view.row_group(location.row_group());
    row_group.is_some_and(|row_group| location.row() < row_group.row_count())
}

/// Marks the version at a location dead, wherever merges have taken it.
fn mark_deleted(view: &View, location: Location, delete_stamp: DeleteStamp) -> Result<()> {
    match view.row(location) {
        Some((row_group, row)) => row_group.delete(row, delete_stamp),
        None => Err(Error::corrupt(format!("{location:?} leads nowhere"))),
    }
}

/// A key as errors write it: `key id = 7`.
#[must_use]
pub fn describe_key(schema: &Schema, key: &[ValueRef<'_>]) -> String {
    let fields = schema.key_positions().iter().filter_map(|p| schema.fields().get(*p));
    let pairs: Vec<String> = fields.zip(key).map(|(f, v)| format!("{} = {v}", f.name)).collect();
    if pairs.is_empty() {
        // default: an error that was given no key says NULL
        return format!("row id {}", key.first().copied().unwrap_or_default());
    }
    format!("key {}", pairs.join(", "))
}
