//! Statements within a transaction: the rows that they change become changes of the transaction.

use std::borrow::Cow;
use std::sync::Arc;

use esker_format::json::{Json, steps_of};
use esker_format::schema::{Index, ROW_ID_NAME};
use esker_format::{Schema, Value, ValueRef};
use esker_query::model::{Change, Expr, Function, Operator, Query};

use super::matched::{Found, Wanted};
use super::put_rows::{Occupant, PutSink, key_values};
use super::{ChangeOptions, Changed, On, StatementRun};
use crate::commit::fit::{fit_key, fit_value};
use crate::read::source::SnapshotSource;
use crate::statement::conflict::Target;
use crate::transaction::{Seen, TransactionRows};
use crate::{Error, QueryOptions, Result, Transaction};

/// Runs a statement within a transaction, all of it or nothing.
pub(crate) fn change_within(
    transaction: &Transaction,
    change: &Change,
    options: &ChangeOptions,
) -> Result<Changed> {
    let query = transaction.engine().statement_options(&options.for_query());
    let on = On::Transaction(transaction);
    let run = StatementRun { on, options: query, dry_run: options.dry_run };
    if !run.dry_run {
        return run.change(change);
    }
    let before = transaction.savepoint();
    let outcome = run.change(change);
    transaction.rollback_to(before)?;
    transaction.release(before)?;
    outcome
}

/// Gives every row of a table the defaults of some fields.
pub(crate) fn fill_within(transaction: &Transaction, table: &str, fields: &[String]) -> Result<()> {
    let engine = transaction.engine();
    let options = engine.statement_options(&QueryOptions::default());
    let run = StatementRun { on: On::Transaction(transaction), options, dry_run: false };
    let make = |schema: &Schema, mut row: Vec<Value>, _: &[Value]| {
        for name in fields {
            let position = schema.expect_position(name)?;
            let (Some(field), Some(slot)) = (schema.fields().get(position), row.get_mut(position))
            else {
                continue;
            };
            *slot = fit_value(field, &engine.default_of(schema, field)?)?;
        }
        Ok(Some(row))
    };
    run.change_matched(&Wanted::all(table, None), &make).map(drop)
}

/// The condition that a field, or what is at a path in it, has a value as an index compares it.
fn has_value(field: &str, path: &[String], value: ValueRef<'_>) -> Expr {
    if path.is_empty() {
        return Expr::field(field).binary(Operator::Eq, Expr::literal(value.to_owned()));
    }
    let part = |function: Function| {
        let steps = steps_of(path).into_iter().map(Expr::literal);
        Expr::call(function, std::iter::once(Expr::field(field)).chain(steps).collect::<Vec<_>>())
    };
    // What has parts is never the same as a string that says the same.
    let (text, is_kind) = match value {
        ValueRef::Bytes(stored) => (Json::document(stored).to_string(), Operator::In),
        other => (other.to_string(), Operator::NotIn),
    };
    let kinds = [part(Function::JsonType), Expr::literal("array"), Expr::literal("object")];
    let is_text = part(Function::JsonText).binary(Operator::Eq, Expr::literal(text.as_str()));
    is_text.and(Expr::Apply(is_kind, kinds.into()))
}

/// Rows that are put within a transaction.
pub(super) struct TransactionPuts<'a, 'w, 't> {
    pub rows: &'a mut TransactionRows<'w, 't>,
    pub target: Target,
    /// Whether rows are left out that a unique index finds.
    pub skips: bool,
    pub options: &'a esker_query::Options,
}

impl<'r> PutSink<'r> for TransactionPuts<'_, '_, '_> {
    /// The key, and what there is.
    type Slot = (Vec<Value>, Seen);

    fn schema(&self) -> &Arc<Schema> {
        self.rows.table.schema()
    }

    fn prefetch(&self, _rows: &[(usize, Cow<'r, [Value]>)]) {}

    fn conflicting(&mut self, row: &[Value]) -> Result<Option<Self::Slot>> {
        let schema = Arc::clone(self.schema());
        for index in schema.unique_indexes() {
            let is_asked = match self.target {
                Target::Any => self.skips,
                Target::Key => false,
                Target::Unique(id) => index.id == id,
            };
            if is_asked && let Some(key) = self.holder(index, row)? {
                return self.see(key).map(Some);
            }
        }
        Ok(None)
    }

    fn slot_of(&mut self, row: &[Value]) -> Result<Self::Slot> {
        let key = key_values(self.schema(), row).into_iter().map(ValueRef::to_owned);
        self.see(key.collect())
    }

    fn occupant(&self, (_, seen): &Self::Slot) -> Occupant {
        if seen.row.is_some() { Occupant::Stored } else { Occupant::Nobody }
    }

    fn old_row(&self, (_, seen): &Self::Slot) -> Result<Vec<Value>> {
        seen.row.clone().ok_or_else(|| Error::corrupt("a row that is not there"))
    }

    fn put(
        &mut self,
        (key, seen): Self::Slot,
        _old: Option<&[Value]>,
        row: Cow<'r, [Value]>,
    ) -> Result<()> {
        let key: Vec<_> = key.iter().map(Value::as_ref).collect();
        let TransactionRows { table, state } = &mut *self.rows;
        table.put_over(state, &key, &seen, row.into_owned()).map(drop)
    }

    fn add(&mut self, row: Cow<'r, [Value]>) -> Result<()> {
        let TransactionRows { table, state } = &mut *self.rows;
        table.put(state, row.into_owned(), true).map(drop)
    }
}

impl TransactionPuts<'_, '_, '_> {
    fn see(&mut self, key: Vec<Value>) -> Result<(Vec<Value>, Seen)> {
        let TransactionRows { table, state } = &mut *self.rows;
        let seen = table.see(state, &fit_key(table.schema(), &key)?)?;
        Ok((key, seen))
    }

    /// The key of the row that has the values of a new one in a unique index.
    fn holder(&mut self, index: &Index, row: &[Value]) -> Result<Option<Vec<Value>>> {
        let TransactionRows { table, state } = &mut *self.rows;
        let schema = table.schema();
        let mut query = Query::table(table.name());
        query.select(Expr::field(ROW_ID_NAME));
        for field in schema.key_fields() {
            query.select(Expr::field(&field.name));
        }
        for part in &index.fields {
            let position = schema.fields().iter().position(|field| field.id == part.field);
            let Some(value) = position.and_then(|p| row.get(p)) else { return Ok(None) };
            let value = part.compared(value.as_ref());
            if value == ValueRef::Null {
                return Ok(None);
            }
            let name = position.and_then(|p| schema.fields().get(p)).map(|field| &field.name);
            // default: a field that is not there has no name, and no row matches
            let is = has_value(name.map_or("", String::as_str), &part.path, value);
            query.filter = Some(match query.filter.take() {
                Some(filter) => filter.and(is),
                None => is,
            });
        }
        let core = &table.current.core;
        let rows = table.transaction.with_changes(state, [core])?.table_core(core)?;
        let source = SnapshotSource::with_row_id(rows.rows_as_of());
        let found = esker_query::execute(&query, &source, self.options)?.to_rows();
        let key_of = |found: &Vec<Value>| {
            Found::of(found, schema.key_positions().len()).map(|found| found.key.to_vec())
        };
        found.first().map(key_of).transpose()
    }
}
