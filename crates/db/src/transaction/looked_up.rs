//! Rows of other tables that fields are computed from, as a transaction sees them.

use std::sync::Arc;

use esker_query::FindRows;

use super::{State, Transaction};
use crate::Result;
use crate::read::looked_up::RowsOf;

impl Transaction {
    /// Runs what looks up rows of other tables: in the snapshot, with what the transaction has
    /// changed. No other commit may change these tables before this one.
    pub(crate) fn looking_up<R>(
        &self,
        state: &mut State,
        run: impl FnOnce(&dyn FindRows) -> Result<R>,
    ) -> Result<R> {
        let mut table = |name: &str| {
            let core = Arc::clone(&self.current(state, name)?.core);
            let definition = state.definitions.as_ref().and_then(|new| new.get(core.id()));
            if !definition.is_some_and(|table| table.is_new()) {
                state.holds = true;
                state.reads.note_table(&core);
            }
            self.with_changes(state, [&core])?.table_core(&core)
        };
        run(&RowsOf::new(&mut table))
    }
}
