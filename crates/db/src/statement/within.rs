//! Statements within a transaction: the rows that they change become changes of the transaction.

use std::sync::Arc;

use esker_format::json::{Json, steps_of};
use esker_format::schema::{Index, ROW_ID_NAME};
use esker_format::{Schema, Value, ValueRef};
use esker_query::index_expression;
use esker_query::model::{Change, Expr, Function, Insert, Operator, Query};

use super::insert::{Conflicts, Values};
use super::matched::{Found, Wanted};
use super::returning::Shown;
use super::{ChangeOptions, Changed, On, StatementRun};
use crate::catalog::computed_index;
use crate::commit::fit::{fit_key, fit_value};
use crate::read::source::SnapshotSource;
use crate::statement::conflict::Target;
use crate::transaction::{Seen, State, TransactionTable};
use crate::{QueryOptions, Result, Transaction};

/// Runs a statement within a transaction, all of it or nothing.
pub(crate) fn change_within(
    transaction: &Transaction,
    change: &Change,
    options: &ChangeOptions,
) -> Result<Changed> {
    let query = transaction.engine().statement_options(&options.for_query());
    let on = On::Transaction(transaction);
    let run = StatementRun::new(on, query, options);
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
    let on = On::Transaction(transaction);
    let run = StatementRun::alone(on, options);
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
    let wanted = Wanted { set: fields.to_vec(), ..Wanted::all(table, None) };
    run.change_matched(&wanted, &make).map(drop)
}

impl StatementRun<'_> {
    pub(super) fn insert_within(
        &self,
        transaction: &Transaction,
        insert: &Insert,
    ) -> Result<Changed> {
        let rows = self.rows_of(insert)?;
        self.put_within(transaction, insert, rows)
    }

    /// Puts rows that have been computed.
    pub(super) fn put_within(
        &self,
        transaction: &Transaction,
        insert: &Insert,
        rows: Vec<Values>,
    ) -> Result<Changed> {
        let table = transaction.table(&insert.table)?;
        let schema = Arc::clone(table.schema());
        let placed = self.place(&table.current, insert, &rows)?;
        let conflicts = Conflicts::new(self, &schema, &insert.on_conflict)?;
        let target = Target::of(&schema, insert)?;
        let put = Puts { run: self, table: &table, conflicts: &conflicts, target };
        let mut state = transaction.state();
        let (mut count, mut shown) = (0, Shown::new(&schema, insert.returning.as_deref()));
        let returning = table.done(&mut state, |state| {
            for (i, row) in placed.into_iter().enumerate() {
                self.expect_time_left(i)?;
                let put = put.put(state, row).map_err(|e| e.in_row(i as u64))?;
                count += u64::from(put.is_some());
                if let Some((old, new)) = put {
                    shown.add(old.as_deref(), Some(&new));
                }
            }
            self.returned(&schema, &shown, insert.returning.as_deref())
        })?;
        Ok(Changed { rows: count, returning })
    }
}

/// The key, which may be the row id, and the values of a row that was found.
fn split<'r>(schema: &Schema, found: &'r [Value]) -> Result<(&'r [Value], &'r [Value])> {
    let Found { key, values, .. } = Found::of(found, schema.key_positions().len())?;
    Ok((key, values))
}

/// One more condition that rows have to meet.
fn add(query: &mut Query, condition: Expr) {
    query.filter = Some(match query.filter.take() {
        Some(filter) => filter.and(condition),
        None => condition,
    });
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

/// The row that was there, if there was one, and the row now.
type Versions = (Option<Vec<Value>>, Vec<Value>);

/// Where rows are put.
struct Puts<'a> {
    run: &'a StatementRun<'a>,
    table: &'a TransactionTable<'a>,
    conflicts: &'a Conflicts,
    target: Target,
}

impl Puts<'_> {
    /// Puts one row; the row that was there and the row as it is then, unless it was left out.
    fn put(&self, state: &mut State, row: Vec<Value>) -> Result<Option<Versions>> {
        let schema = self.table.schema();
        for index in schema.unique_indexes() {
            let is_asked = match &self.target {
                Target::Any => matches!(self.conflicts, Conflicts::Skip),
                Target::Key => false,
                Target::Unique(meant, _) => meant.contains(&index.id),
            };
            if is_asked && let Some(key) = self.holder(state, index, &row)? {
                return self.put_upon(state, &key, row);
            }
        }
        if schema.key_positions().is_empty() {
            self.table.put(state, row.clone(), true)?;
            return Ok(Some((None, row)));
        }
        let positions = schema.key_positions().iter();
        let key: Vec<Value> = positions.filter_map(|p| row.get(*p)).cloned().collect();
        if matches!(self.conflicts, Conflicts::Fail) || self.target.leaves_out_key() {
            self.table.put(state, row.clone(), true)?;
            return Ok(Some((None, row)));
        }
        self.put_upon(state, &key, row)
    }

    /// Puts a row where there may be one.
    fn put_upon(
        &self,
        state: &mut State,
        key: &[Value],
        row: Vec<Value>,
    ) -> Result<Option<Versions>> {
        let schema = self.table.schema();
        let key = fit_key(schema, key)?;
        let seen = self.table.see(state, &key)?;
        let Some(old) = seen.row else {
            self.table.put(state, row.clone(), true)?;
            return Ok(Some((None, row)));
        };
        let Some(row) = self.conflicts.resolve(schema, &old, row.into())? else {
            return Ok(None);
        };
        let mut row = row.into_owned();
        let before = self.table.before_change(&old)?;
        self.table.recompute(state, (&mut row, &before))?;
        if self.table.has_key(&key, &row) {
            self.table.replace(state, &key, (row.clone(), seen.base, seen.new_row_id))?;
        } else {
            // The rows behind it see it there.
            let seen = Seen { row: None, ..seen };
            let lifted = self.table.lift(state, &key, &seen, row.clone())?;
            self.table.land(state, lifted)?;
        }
        Ok(Some((Some(old), row)))
    }

    /// The key of the row that has the values of a new one in a unique index.
    fn holder(
        &self,
        state: &mut State,
        index: &Index,
        row: &[Value],
    ) -> Result<Option<Vec<Value>>> {
        let schema = self.table.schema();
        let mut query = Query::table(self.table.name());
        query.select(Expr::field(ROW_ID_NAME));
        for field in schema.key_fields() {
            query.select(Expr::field(&field.name));
        }
        let computed = computed_index::compiler(schema, index)?;
        let mut values = None;
        if let Some(computed) = &computed {
            let made = esker_table::index_values::of_values(&**computed, schema, row)?;
            if !made.has(0) {
                return Ok(None);
            }
            values = Some(made);
        }
        if let Some(filter) = &index.filter {
            query.filter = Some(index_expression::with_names(filter, schema)?);
        }
        for (number, part) in index.fields.iter().enumerate() {
            let made = values.as_ref().and_then(|made| made.columns.get(number)?.as_ref());
            if let (Some(expression), Some(column)) = (&part.expression, made) {
                let value = column.value(0).to_owned();
                if value == Value::Null {
                    return Ok(None);
                }
                let expr = index_expression::with_names(expression, schema)?;
                add(&mut query, expr.binary(Operator::Eq, Expr::Literal(value)));
                continue;
            }
            let position = schema.fields().iter().position(|field| field.id == part.field);
            let Some(value) = position.and_then(|p| row.get(p)) else { return Ok(None) };
            let value = part.compared(value.as_ref());
            if value == ValueRef::Null {
                return Ok(None);
            }
            let name = position.and_then(|p| schema.fields().get(p)).map(|field| &field.name);
            // default: a field that is not there has no name, and no row matches
            let is = has_value(name.map_or("", String::as_str), &part.path, value);
            add(&mut query, is);
        }
        let snapshot = self.table.transaction.with_changes(state, [&self.table.current.core])?;
        let rows = snapshot.table_core(&self.table.current.core)?;
        let source = SnapshotSource::with_row_id(rows.rows_as_of());
        let found = esker_query::execute(&query, &source, &self.run.options)?.to_rows();
        let key = found.first().map(|found| split(schema, found)).transpose()?;
        Ok(key.map(|(key, _)| key.to_vec()))
    }
}
