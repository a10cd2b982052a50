//! Update operators for the rows that match.

use esker_query::model::Expr;

use super::matched::Wanted;
use super::{On, StatementRun};
use crate::operators::{Bound, Update};
use crate::{Database, QueryOptions, Result, Transaction};

/// Applies an update to the rows of a table that match, in a commit of its own.
pub(crate) fn apply_to_matching(
    database: &Database,
    table: &str,
    filter: Option<&Expr>,
    update: &Update,
) -> Result<u64> {
    apply(On::Database(database), table, filter, update)
}

/// The same within a transaction.
pub(crate) fn apply_within(
    transaction: &Transaction,
    table: &str,
    filter: Option<&Expr>,
    update: &Update,
) -> Result<u64> {
    apply(On::Transaction(transaction), table, filter, update)
}

fn apply(on: On<'_>, table: &str, filter: Option<&Expr>, update: &Update) -> Result<u64> {
    let engine = match on {
        On::Database(database) => database.engine(),
        On::Transaction(transaction) => transaction.engine(),
    };
    let options = engine.statement_options(&QueryOptions::default());
    let run = StatementRun::alone(on, options);
    let schema = run.schema(table)?;
    let changes_key = Bound::new(&schema, update, engine)?.changes_key(&schema);
    if let On::Database(database) = on
        && changes_key
    {
        return database.transact(|transaction| apply_within(transaction, table, filter, update));
    }
    let wanted = Wanted::all(table, filter);
    let changed = run.change_matched(&wanted, &|schema, row, _| {
        Bound::new(schema, update, engine)?.apply(&row).map(Some)
    })?;
    Ok(changed.rows)
}
