//! A commit of its own after which rows are gone that others name: it goes on as a transaction,
//! which was begun where the changes were staged. See `commit/reference_check`.

use std::sync::Arc;

use esker_format::{Value, ValueRef};

use super::rows::TransactionTable;
use super::{State, Transaction, TransactionOptions};
use crate::commit::bound_commits::{BoundChanges, BoundCommit, BoundCommits};
use crate::commit::by_key::remove_row;
use crate::commit::fit::fit_key;
use crate::commit::row_sink::RowSink;
use crate::engine_handle::EngineHandle;
use crate::{Error, ErrorKind, Result};

/// Begins transactions.
pub(crate) struct TransactionCommits;

struct BegunCommit {
    transaction: Transaction,
    engine: EngineHandle,
}

impl BoundCommits for TransactionCommits {
    fn begin(&self, engine: &EngineHandle, sync: Option<bool>) -> Result<Box<dyn BoundCommit>> {
        let options = TransactionOptions { sync, ..TransactionOptions::new() };
        let transaction = Transaction::begin(engine, options, true)?;
        Ok(Box::new(BegunCommit { transaction, engine: engine.clone() }))
    }
}

impl BoundCommit for BegunCommit {
    fn run(self: Box<Self>, changes: Vec<BoundChanges>) -> Result<u64> {
        let Self { transaction, engine } = *self;
        let read_at = transaction.read_at();
        let done = apply_all(&transaction, changes);
        if let Err(e) = done {
            drop(transaction);
            engine.acknowledge_through(read_at)?;
            return Err(e);
        }
        transaction.commit()
    }
}

/// Does the changes of some tables; they are one statement.
fn apply_all(transaction: &Transaction, changes: Vec<BoundChanges>) -> Result<()> {
    let tables: Vec<_> = changes
        .iter()
        .map(|changes| TransactionTable { transaction, current: changes.current.clone() })
        .collect();
    let Some(first) = tables.first() else { return Ok(()) };
    first.done(&mut transaction.state(), |state| {
        tables.iter().zip(changes).try_for_each(|(table, changes)| apply(table, state, changes))
    })
}

fn apply(table: &TransactionTable<'_>, state: &mut State, changes: BoundChanges) -> Result<()> {
    let schema = Arc::clone(table.schema());
    let mut rows = table.rows_in(state);
    for key in &changes.removed {
        remove_row(&mut rows, &fit_key(&schema, key)?, 0)?;
    }
    for (row_id, row) in changes.put {
        let row_id = row_id.map(Value::Uint);
        let key: Vec<Value> = match schema.key_positions() {
            [] => row_id.iter().cloned().collect(),
            positions => positions.iter().filter_map(|at| row.get(*at)).cloned().collect(),
        };
        let key: Vec<ValueRef<'_>> = key.iter().map(Value::as_ref).collect();
        if key.is_empty() {
            rows.add(row)?;
            continue;
        }
        let slot = rows.look(&key, 0)?;
        match slot.row {
            Some(_) => rows.put(&key, slot, row)?,
            None if row_id.is_none() => drop(rows.add(row)?),
            None => {
                let message = "a row was changed by another commit meanwhile";
                return Err(Error::new(ErrorKind::Conflict, message));
            }
        }
    }
    Ok(())
}
