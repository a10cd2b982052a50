//! Rows of other tables that fields are computed from, as a transaction sees them.

use std::sync::Arc;

use esker_format::Schema;
use esker_format::schema::Alteration;
use esker_query::FindRows;

use super::{State, Transaction};
use crate::Result;
use crate::catalog::{checked_rows, looked_up, references};
use crate::read::looked_up::RowsOf;
use crate::table_version::TableVersion;

impl Transaction {
    /// Changes of a table as they are meant, with the tables looked at in which rows are looked up.
    pub(super) fn settled_changes(
        &self,
        state: &State,
        current: &TableVersion,
        alterations: &[Alteration],
    ) -> Result<Vec<Alteration>> {
        let meant = references::meant(&current.schema, alterations);
        let mut find = |table: &str| Ok(self.current(state, table)?.schema);
        looked_up::settled_changes(&meant, &mut find)
    }

    /// The schema of a table after some changes.
    pub(super) fn altered_schema(
        &self,
        state: &State,
        (name, current): (&str, &TableVersion),
        alterations: &[Alteration],
    ) -> Result<Arc<Schema>> {
        let schema = checked_rows::alter(&self.engine, name, &current.schema, alterations)?;
        let mut find = |table: &str| Ok(self.current(state, table)?.schema);
        looked_up::expect_fits(name, &schema, &mut find)?;
        Ok(schema)
    }

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
