//! Ending rows that have expired: before their table forgets that they have, and where they are in
//! the way of others.
//!
//! When the field by which rows expire is changed:
//!
//! ```text
//! rows that have expired: deleted, in commits of their own ─► commit lock ─► those that have since
//!   ─► the change of the schema, with its number ─► unlock: from here on the new field tells
//! ```
//!
//! What has expired by the field so far must not come back when that tells no more, so that it is
//! deleted before. No reader can notice: from then on these rows are absent, and
//! snapshots see what is deleted after them. A crash between the deletes and the change is harmless
//! therefore, and they need not be one commit.
//!
//! What has expired by the *new* field stays where it is, for readers at older commits; merges drop
//! it once there are none (`View::expiry_since`).
//!
//! Maintenance does the same to rows that came after a snapshot which is held for long
//! (`maintenance/compaction/expired.rs`).
//!
//! A row that has expired has no value of a unique index any more, though its entry is there until
//! a merge drops it. Who puts a row with the value deletes the other one before, too.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_format::schema::{Alteration, Stream};
use esker_format::{Field, FieldId, Moment, Room, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_table::segment::Segment;
use esker_table::table::{ComputedRow, Existing};
use esker_table::view::RowGroup;
use esker_table::{Location, Table as TableCore};

use crate::Result;
use crate::catalogue::Catalogue;
use crate::commit::private_rows::row_of;
use crate::commit::staged::Staged;
use crate::engine::Engine;
use crate::table_version::TableVersion;

/// Rows that are deleted while the lock is held.
const BATCH_ROWS: usize = 16 << 10;
/// The same where no commit waits for it.
const ROW_GROUP_BATCH_ROWS: usize = 1 << 10;
/// The same where each is an event of a feed, which takes memory.
const FEED_BATCH_ROWS: usize = 64;

/// True when rows expire by another field afterwards, or not at all.
pub(crate) fn ends_expiry(before: &Schema, after: &Schema) -> bool {
    let id = |schema: &Schema| schema.expiry_field().map(|field| field.id);
    id(before).is_some() && id(before) != id(after)
}

/// True when rows expire by a field by which they have not before.
pub(crate) fn starts_expiry(before: &Schema, after: &Schema) -> bool {
    let id = |schema: &Schema| schema.expiry_field().map(|field| field.id);
    id(after).is_some() && id(after) != id(before)
}

/// True when some alteration sets by which field rows expire.
pub(crate) fn sets_expiry(alterations: &[Alteration]) -> bool {
    alterations.iter().any(|alteration| matches!(alteration, Alteration::SetExpiry(_)))
}

/// The expired rows of a table, on their way to be deleted.
pub(crate) struct EndingExpired {
    core: Arc<TableCore>,
    /// The field by which they have expired.
    field: Option<FieldId>,
    /// When the next row of a segment expires.
    next_us: BTreeMap<u64, i64>,
}

impl EndingExpired {
    /// Deletes what has expired, but for a few rows that do so meanwhile.
    pub fn start(engine: &Arc<Engine>, core: &Arc<TableCore>) -> Result<Self> {
        Self::start_until(engine.now(), engine, core)
    }

    /// Deletes what had expired at a moment.
    pub fn start_until(now: Moment, engine: &Arc<Engine>, core: &Arc<TableCore>) -> Result<Self> {
        let mut ending = Self::of(core);
        let found = ending.find(now)?;
        for rows in found.chunks(BATCH_ROWS) {
            engine.wait_for_memory()?;
            let mut catalogue = engine.lock_for_change()?;
            ending.delete(engine, &mut catalogue, rows)?;
        }
        Ok(ending)
    }

    /// Deletes what has expired of one row group; says how many rows.
    pub fn of_row_group(
        engine: &Arc<Engine>,
        core: &Arc<TableCore>,
        row_group: &RowGroup,
    ) -> Result<usize> {
        let ending = Self::of(core);
        let (view, mut found) = (core.view(), Vec::new());
        let Some(field) = view.schema.expiry_field() else { return Ok(0) };
        find_in(row_group, field, engine.destroying_us(&view.schema), &mut found)?;
        let mut ended = 0;
        let keeps_changes = view.schema.feed().is_some();
        let batch_rows = if keeps_changes { FEED_BATCH_ROWS } else { ROW_GROUP_BATCH_ROWS };
        for rows in found.chunks(batch_rows) {
            let mut catalogue = engine.lock_for_change()?;
            let same_field = core.schema().expiry_field().map(|f| f.id) == Some(field.id);
            // No commit waits for it: what memory is left is for commits.
            if !same_field || !engine.has_room_for_deletes(rows.len()) {
                break;
            }
            ending.delete(engine, &mut catalogue, rows)?;
            ended += rows.len();
        }
        Ok(ended)
    }

    /// True when its table has not been dropped. Under the commit lock.
    pub fn is_there(&self, catalogue: &Catalogue) -> bool {
        catalogue.tables.contains_key(&self.core.id())
    }

    /// True when it is about this table.
    pub fn is_of(&self, core: &Arc<TableCore>) -> bool {
        Arc::ptr_eq(&self.core, core)
    }

    /// Of a table whose expired rows are still to be found.
    pub fn of(core: &Arc<TableCore>) -> Self {
        Self { core: Arc::clone(core), field: None, next_us: BTreeMap::new() }
    }

    /// Deletes what has expired since. Under the commit lock.
    pub fn finish(mut self, engine: &Engine, catalogue: &mut Catalogue) -> Result<()> {
        let now = engine.time_of_commit()?;
        self.end_until(now, engine, catalogue).map(drop)
    }

    /// Deletes what had expired at a moment; says how many rows. Under the commit lock.
    pub fn end_until(
        &mut self,
        now: Moment,
        engine: &Engine,
        catalogue: &mut Catalogue,
    ) -> Result<usize> {
        let found = self.find(now)?;
        found.chunks(BATCH_ROWS).try_for_each(|rows| self.delete(engine, catalogue, rows))?;
        Ok(found.len())
    }

    /// How many rows had expired at a moment and are not deleted.
    pub fn count(core: &Arc<TableCore>, now: Moment) -> Result<u64> {
        Ok(Self::of(core).find(now)?.len() as u64)
    }

    /// The living rows that have expired.
    fn find(&mut self, now: Moment) -> Result<Vec<Location>> {
        let view = self.core.view();
        let now_us = now.of(&view.schema);
        let mut found = Vec::new();
        let Some(field) = view.schema.expiry_field() else { return Ok(found) };
        if Bug::ExpiredBackByAlteration.is_planted() {
            return Ok(found);
        }
        if self.field.replace(field.id) != Some(field.id) {
            self.next_us.clear();
        }
        for row_group in view.row_groups.iter().filter(|row_group| !row_group.is_loading()) {
            if self.next_us.get(&row_group.id()).is_some_and(|next_us| *next_us > now_us) {
                continue;
            }
            let next_us = find_in(row_group, field, now_us, &mut found)?;
            // The rows of a group may be more by then.
            if let RowGroup::Segment(_) = row_group {
                self.next_us.insert(row_group.id(), next_us);
            }
        }
        Ok(found)
    }

    /// Deletes rows that no other commit has deleted first.
    fn delete(&self, engine: &Engine, catalogue: &mut Catalogue, rows: &[Location]) -> Result<()> {
        let (view, mut staged) = (self.core.view(), Staged::default());
        for location in rows {
            let Some((row_group, row)) = view.row(*location) else { continue };
            if row_group.is_alive(row) {
                staged.delete(expired(row_group, row)?);
            }
        }
        engine.commit_deletes(catalogue, &TableVersion::newest(&self.core), staged)
    }
}

/// A living row that has expired.
fn expired(row_group: &RowGroup, row: usize) -> Result<Existing> {
    Ok(Existing { expired: true, ..Existing::at(row_group, row, row_group.row_id(row)?) })
}

/// Adds the living rows of a row group that have expired; returns when the next one does.
fn find_in(
    row_group: &RowGroup,
    field: &Field,
    now_us: i64,
    found: &mut Vec<Location>,
) -> Result<i64> {
    let least_us = row_group.least_expiry(field);
    if least_us > now_us {
        return Ok(least_us);
    }
    let mut next_us = i64::MAX;
    for row in 0..row_group.row_count() {
        if !row_group.is_alive(row) {
            continue;
        }
        match row_group.value(field, row, &Room::default())? {
            ValueRef::Timestamp(at_us) if at_us <= now_us => {
                found.push(Location::new(row_group.id(), row));
            }
            ValueRef::Timestamp(at_us) => next_us = next_us.min(at_us),
            _ => {}
        }
    }
    row_group.release();
    Ok(next_us)
}

impl Engine {
    /// Notes that rows expire by a field that they have had before. Under the commit lock, before
    /// anybody sees that.
    pub(crate) fn note_new_expiry(&self, before: &Schema, after: &Schema) -> Result<()> {
        let ends = |schema: &Schema| schema.stream().is_some_and(Stream::ends_events);
        if starts_expiry(before, after) || (ends(after) && !ends(before)) {
            self.note_expiring();
            self.time_of_commit()?;
        }
        Ok(())
    }

    /// Deletes the expired rows that hold values of a unique index which staged rows are to have,
    /// in a commit of their own before. Under the commit lock.
    pub(crate) fn end_expired_holders(
        &self,
        catalogue: &mut Catalogue,
        current: &TableVersion,
        staged: &Staged<'_>,
    ) -> Result<()> {
        let rows = staged.rows().map(|row| Ok(Cow::Borrowed(row)));
        self.end_holders_of(catalogue, current, rows, || staged.row_ids())
    }

    /// The same of rows in segments, where those with the numbers `replaced` go in the same commit.
    pub(crate) fn end_expired_holders_of(
        &self,
        catalogue: &mut Catalogue,
        current: &TableVersion,
        segments: &[&Arc<Segment>],
        replaced: &[u64],
    ) -> Result<()> {
        let rows = segments.iter().flat_map(|segment| {
            (0..segment.row_count())
                .map(|row| Ok(Cow::Owned(row_of(segment, &current.schema, row)?)))
        });
        self.end_holders_of(catalogue, current, rows, || replaced.iter().copied().collect())
    }

    fn end_holders_of<'r>(
        &self,
        catalogue: &mut Catalogue,
        current: &TableVersion,
        rows: impl Iterator<Item = Result<Cow<'r, [Value]>>>,
        known: impl FnOnce() -> BTreeSet<u64>,
    ) -> Result<()> {
        let (core, schema) = (&current.core, &current.schema);
        let Some(field) = schema.expiry_field() else { return Ok(()) };
        let (uniques, view) = (core.uniques(), core.view());
        let now_us = catalogue.entry(core.id())?.writer.now_us();
        let may_have_expired = |row_group: &RowGroup| row_group.least_expiry(field) <= now_us;
        if uniques.is_empty() || !view.row_groups.iter().any(may_have_expired) {
            return Ok(());
        }
        let (mut ended, mut known) = (Staged::default(), known());
        for row in rows {
            let row = row?;
            for keys in uniques.iter() {
                let mut room = ComputedRow::default();
                let Some(values) = keys.values_of(schema, &row, &mut room)? else { continue };
                let hash = core.hasher().hash_key(values.iter().copied());
                let Some(holder) = keys.holder(&view, hash, &values)? else { continue };
                if let Some((row_group, at)) = view.row(holder.location)
                    && row_group.has_expired(at, field, now_us)?
                    && known.insert(holder.row_id)
                {
                    ended.delete(expired(row_group, at)?);
                }
            }
        }
        self.commit_deletes(catalogue, current, ended)
    }
}
