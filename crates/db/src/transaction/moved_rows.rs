//! Rows that go to another key, within a change: all are taken from their keys before the first
//! comes to its new one, so that the end decides whether a key is free.
//!
//! ```text
//! SET id = id + 1     1 ─ lift ─► ·        · ─ land ─► 2
//!                     2 ─ lift ─► ·        · ─ land ─► 3
//! ```
//!
//! The row of the old key ends and a new one comes, in one commit. What refers to the row knows
//! that it is the same one: see [`references`](super::references).

use esker_format::{Value, ValueRef};
use esker_log::sabotage::Bug;

use super::State;
use super::rows::{Seen, TransactionTable};
use crate::Result;
use crate::commit::fit::has_key;
use crate::transaction::references::MovedValues;

/// A row on the way from its key to another one.
pub(crate) struct Lifted {
    row: Vec<Value>,
    given: Vec<MovedValues>,
}

impl TransactionTable<'_> {
    /// Whether a row has a key, which may be a row id: that stays.
    pub(crate) fn has_key(&self, key: &[ValueRef<'_>], row: &[Value]) -> bool {
        has_key(self.schema(), key, row)
    }

    /// Takes a row from its key; what it is to be has another one.
    pub(crate) fn lift(
        &self,
        state: &mut State,
        key: &[ValueRef<'_>],
        seen: &Seen,
        row: Vec<Value>,
    ) -> Result<Lifted> {
        let given = self.note_moved(state, key, &row)?;
        if !Bug::KeyUpdateKeepsOldRow.is_planted() {
            self.end(state, key, seen)?;
        }
        Ok(Lifted { row, given })
    }

    /// Puts a row under its new key, which no row may have.
    pub(crate) fn land(&self, state: &mut State, lifted: Lifted) -> Result<()> {
        let positions = self.schema().key_positions().iter();
        let key: Vec<Value> = positions.filter_map(|at| lifted.row.get(*at)).cloned().collect();
        self.put(state, lifted.row, true)?;
        let key: Vec<ValueRef<'_>> = key.iter().map(Value::as_ref).collect();
        self.note_landed(state, &key, &lifted.given);
        Ok(())
    }
}
