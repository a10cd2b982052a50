//! Writing the changes of a transaction to files once they take too much memory: which tables,
//! and when. How is said in [`delta`](super::delta) and [`spilled`](super::spilled).
//!
//! What leads back to a savepoint, or to the beginning of the statement that is under way, stays in
//! memory. A database in memory spills nothing.

use esker_arena::{Category, Reservation};
use esker_format::TableId;

use super::delta::Delta;
use super::undo::Step;
use super::{State, Transaction};
use crate::Result;

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
            state.changes.iter().map(|(id, delta)| (delta.bytes(), *id)).collect();
        tables.sort_unstable_by(|a, b| b.cmp(a));
        for (_, table) in tables {
            if state.changed_bytes() < most / 4 {
                break;
            }
            let Some(mut delta) = state.changes.remove(&table) else { continue };
            let outcome = self.spill(state, &mut delta);
            state.changes.insert(table, delta);
            outcome?;
        }
        // What cannot be written is not looked at again with each change.
        state.unspilled_bytes = state.changed_bytes();
        state.held.shrink(state.counted_bytes() + state.linked_bytes());
        Ok(())
    }

    /// Writes the changes of a table to files, all of them or none.
    fn spill(&self, state: &mut State, delta: &mut Delta) -> Result<()> {
        let mut held = Reservation::new(&self.engine.arena, Category::Load);
        let needed = delta.bytes() as u64;
        if !self.engine.seal_for_load(&mut held, needed)? {
            return Err(self.engine.refuse_load(&held, needed));
        }
        delta.prepare_spill(self.base(state))?;
        for step in &mut state.undo {
            match step {
                Step::Row(table, undo) if *table == delta.current.core.id() => {
                    delta.resolve_undo(undo);
                }
                _ => {}
            }
        }
        delta.spill(self.base(state))
    }
}

impl State {
    /// Bytes of the changes in memory.
    pub(super) fn changed_bytes(&self) -> usize {
        self.changes.values().map(Delta::bytes).sum()
    }

    /// Bytes of all that is counted but the groups, which the arena counts.
    pub(super) fn counted_bytes(&self) -> u64 {
        let kept: usize = self.changes.values().map(Delta::kept_bytes).sum();
        let bytes = self.changed_bytes() + kept + self.undo_bytes + self.reads.byte_count();
        let bytes = bytes + self.bound.byte_count();
        bytes as u64
    }

    /// Bytes that what is in files will take once it is committed: they are to be had then, and are
    /// none of the transaction's own.
    pub(super) fn linked_bytes(&self) -> u64 {
        self.changes.values().map(Delta::linked_bytes).sum()
    }
}
