//! Writing the changes of a transaction to files once they take too much memory: see
//! [`spilled`](super::spilled).
//!
//! What stays in memory then: rows with values that are long enough for value files, which only a
//! commit may write; what leads back to a savepoint, or to the beginning of the statement that is
//! under way; and a few bytes for each change. A database in memory spills nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_arena::{Category, Reservation};
use esker_format::{TableId, ValueRef};
use esker_table::PinnedLocations;

use super::undo::Step;
use super::{State, Transaction};
use crate::commit::private_rows::PrivateRows;
use crate::table_version::TableVersion;
use crate::transaction::write_buffer::{
    BaseVersion, Change, Changes, PendingVersion, UndoRecord, VersionRef,
};
use crate::{Error, Result};

/// Of what bulk loads may take, the part that the changes of one transaction take in memory.
const SHARE: u64 = 8;
/// The same of a limit of its own.
const OWN_SHARE: u64 = 4;

impl Transaction {
    /// Bytes of changes from which on they are written to files.
    fn spills_from(&self) -> usize {
        // default: without a limit of its own the database has one
        let own = self.options.memory_bytes.map_or(u64::MAX, |bytes| bytes / OWN_SHARE);
        let all = own.min(self.engine.load_share() / SHARE);
        // default: a limit beyond all memory
        let all = usize::try_from(all).unwrap_or(usize::MAX);
        all.min(self.engine.options.transaction_bytes_max)
    }

    /// Writes changes to files when they take much memory, those of the largest tables first.
    pub(super) fn spill_if_large(&self, state: &mut State) -> Result<()> {
        let bytes = state.changed_bytes();
        let most = self.spills_from();
        state.unspilled_bytes = state.unspilled_bytes.min(bytes);
        if bytes < state.unspilled_bytes.saturating_add(most) || !self.engine.is_durable() {
            return Ok(());
        }
        let mut tables: Vec<(usize, TableId)> =
            state.changes.iter().map(|(id, changes)| (changes.bytes, *id)).collect();
        tables.sort_unstable_by(|a, b| b.cmp(a));
        for (_, table) in tables {
            if state.changed_bytes() < most / 4 {
                break;
            }
            let Some(mut changes) = state.changes.remove(&table) else { continue };
            let outcome = self.spill(state, &mut changes);
            state.changes.insert(table, changes);
            outcome?;
        }
        // What cannot be written is not looked at again with each change.
        state.unspilled_bytes = state.changed_bytes();
        state.held.shrink(state.counted_bytes() + state.linked_bytes());
        Ok(())
    }

    /// Writes the changes of a table to files, all of them or none.
    fn spill(&self, state: &mut State, changes: &mut Changes) -> Result<()> {
        let mut held = Reservation::new(&self.engine.arena, Category::Load);
        let needed = changes.bytes as u64;
        if !self.engine.seal_for_load(&mut held, needed)? {
            return Err(self.engine.refuse_load(&held, needed));
        }
        let long_bytes = self.engine.options.values.long_bytes;
        let Changes { current, by_key, spilled, places, .. } = changes;
        for change in by_key.values_mut() {
            self.keep_place(current, places, change)?;
            if change.row_id() == 0 && change.row().is_some() {
                change.new_row_id = self.reserve_row_id(state, current)?;
            }
        }
        state.resolve_undo(current.core.id(), by_key);
        let goes = |change: &Change| !has_long(change, long_bytes);
        let going: Vec<_> = by_key.iter().filter(|(_, change)| goes(change)).collect();
        spilled.add(&self.engine, current, &going)?;
        by_key.retain(|_, change| !goes(change));
        changes.bytes = by_key.iter().map(|(key, change)| change.byte_count(key)).sum();
        changes.own = None;
        Ok(())
    }

    /// Looks for what the snapshot has under the key of a change.
    fn resolve(&self, current: &TableVersion, change: &mut Change) -> Result<()> {
        if change.base == BaseVersion::Unknown {
            change.base = self.look_for(current, change)?;
        }
        Ok(())
    }

    fn look_for(&self, current: &TableVersion, change: &Change) -> Result<BaseVersion> {
        let row_id = [ValueRef::Uint(change.row_id())];
        let key = match current.schema.key_positions() {
            [] => row_id.to_vec(),
            _ => change.key(&current.schema),
        };
        let found = self.find(current, &key, |_| Ok(()))?;
        // default: no row was found
        Ok(found.map_or(BaseVersion::Absent, |(_, base)| base))
    }

    /// Remembers where the row of the snapshot is that a change hides; returns the number of the
    /// place, `None` when there is no such row.
    pub(super) fn keep_place(
        &self,
        current: &TableVersion,
        places: &mut Option<Arc<PinnedLocations>>,
        change: &mut Change,
    ) -> Result<Option<usize>> {
        loop {
            match change.base {
                BaseVersion::Absent => return Ok(None),
                BaseVersion::At(VersionRef::Pinned(place), _) => return Ok(Some(place)),
                BaseVersion::At(VersionRef::Physical(location), row_id) => {
                    let places = places.get_or_insert_with(|| PinnedLocations::new(&current.core));
                    if let Some(place) = places.keep(location) {
                        change.base = BaseVersion::At(VersionRef::Pinned(place), row_id);
                        return Ok(Some(place));
                    }
                }
                BaseVersion::Unknown => {}
            }
            // It was not looked up, or so long ago that it is forgotten where it went.
            let found = self.look_for(current, change)?;
            if found == change.base {
                return Err(Error::corrupt("a row that a transaction hides leads nowhere"));
            }
            change.base = found;
        }
    }

    /// What has been written to files of the changes of a table, for the commit.
    pub(super) fn private_rows(&self, changes: &mut Changes) -> Result<Option<PrivateRows>> {
        if changes.spilled.is_empty() {
            return Ok(None);
        }
        let Changes { current, by_key, spilled, places, .. } = changes;
        let mut changed = BTreeSet::new();
        for change in by_key.values_mut() {
            self.resolve(current, change)?;
            if let BaseVersion::At(_, row_id) = change.base {
                changed.insert(row_id);
            }
        }
        let mut rows = spilled.to_commit(&self.engine, current, (self.read_at(), &changed))?;
        rows.places = places.clone();
        Ok(Some(rows).filter(|rows| !rows.is_empty()))
    }
}

fn has_long(change: &Change, long_bytes: usize) -> bool {
    let PendingVersion::Row(row) = &change.now else { return false };
    row.iter().any(|value| value.as_ref().as_bytes().is_some_and(|bytes| bytes.len() > long_bytes))
}

impl State {
    /// Bytes of the changes in memory.
    pub(super) fn changed_bytes(&self) -> usize {
        self.changes.values().map(|changes| changes.bytes).sum()
    }

    /// Bytes of all that is counted but the groups, which the arena counts.
    pub(super) fn counted_bytes(&self) -> u64 {
        let of_table = |changes: &Changes| {
            // default: no places take nothing
            let places = changes.places.as_ref().map_or(0, |places| places.byte_count());
            changes.spilled.byte_count() + places
        };
        let kept: usize = self.changes.values().map(of_table).sum();
        let bytes = self.changed_bytes() + kept + self.undo_bytes + self.reads.byte_count();
        bytes as u64
    }

    /// Bytes that what is in files will take once it is committed: they are to be had then, and are
    /// none of the transaction's own.
    pub(super) fn linked_bytes(&self) -> u64 {
        let linked = |changes: &Changes| changes.spilled.linked_bytes(&changes.current.core);
        self.changes.values().map(linked).sum()
    }

    /// Tells the steps back what the snapshot has under their keys.
    fn resolve_undo(&mut self, table: TableId, by_key: &BTreeMap<Vec<u8>, Change>) {
        for step in &mut self.undo {
            let Step::Row(of_table, undo) = step else { continue };
            if *of_table != table {
                continue;
            }
            let Some(change) = by_key.get(&undo.key) else { continue };
            if undo.base == BaseVersion::Unknown {
                undo.base = change.base;
            }
            if let UndoRecord::Change(previous) = &mut undo.previous
                && previous.base == BaseVersion::Unknown
            {
                previous.base = change.base;
            }
        }
    }
}
