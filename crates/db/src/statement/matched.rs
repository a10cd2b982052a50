//! Changing and removing the rows that match.

use std::sync::Arc;

use esker_format::Schema;
use esker_format::Value;
use esker_format::schema::ROW_ID_NAME;
use esker_query::model::{Delete, Expr, Join, OrderBy, Query, RowCount, SelectItem, Update};
use esker_query::{QueryResult, Resolved};

use super::assignment::whole_fields;
use super::beside::{self, Beside};
use super::returning::Shown;
use super::{
    Changed, On, StatementRun, fit_assigned, naming_parameter, refuse_aggregates, set_positions,
};
use crate::commit::fit::{fit_key, fit_value, has_key_field};
use crate::commit::row_sink::{RowSink, StagedRows};
use crate::read::source::SnapshotSource;
use crate::read::tables::OpenTables;
use crate::{Database, Error, ErrorKind, Result, SnapshotTable, Table};

/// How often a statement begins anew when others change its rows under it.
const ATTEMPTS_MAX: usize = 64;

/// From a row and the values that a statement computed for it to the new row, or `None` to remove
/// it.
pub(super) type MakeRow<'a> =
    dyn Fn(&Schema, Vec<Value>, &[Value]) -> Result<Option<Vec<Value>>> + 'a;

/// Rows that a statement found: by row id, with the values of some expressions.
pub(super) struct Matched {
    /// Held until they are changed: else a seal would make a version that came meanwhile look as
    /// old as the one that was found.
    pub(super) snapshot: SnapshotTable,
    /// The row id, the key fields, then the values.
    pub(super) rows: Vec<Vec<Value>>,
    /// Which of the values are of other tables.
    beside: Beside,
}

/// Which rows a statement changes, and what it needs of them.
pub(super) struct Wanted<'a> {
    pub table: &'a str,
    pub alias: Option<&'a String>,
    pub joins: &'a [Join],
    pub filter: Option<&'a Expr>,
    pub order_by: &'a [OrderBy],
    pub limit: Option<&'a RowCount>,
    /// The fields that are set, and what to.
    pub set: Vec<String>,
    pub exprs: Vec<Expr>,
    /// Whether a row that matches several others is refused; nothing of these is shown.
    pub is_once: bool,
    pub removes: bool,
    pub returning: Option<&'a [SelectItem]>,
}

impl<'a> Wanted<'a> {
    /// All rows of a table that pass a filter, and nothing but their keys.
    pub(super) fn all(table: &'a str, filter: Option<&'a Expr>) -> Self {
        Wanted {
            table,
            alias: None,
            joins: &[],
            filter,
            order_by: &[],
            limit: None,
            set: Vec::new(),
            exprs: Vec::new(),
            is_once: false,
            removes: false,
            returning: None,
        }
    }

    /// What the table is called.
    fn name(&self) -> &str {
        // default: without another name it goes by its own
        self.alias.map_or(self.table, String::as_str)
    }

    fn field(&self, name: &str) -> Expr {
        beside::field_of(self.name(), self.joins, name)
    }

    /// Of several matches there is no first.
    fn expect_no_range(&self, clause: &str) -> Result<()> {
        if self.joins.is_empty() || self.order_by.is_empty() && self.limit.is_none() {
            return Ok(());
        }
        let message = format!("ORDER BY and LIMIT do not go with {clause}: choose rows in WHERE");
        Err(Error::invalid(message))
    }

    /// The query that finds the rows.
    pub(super) fn query(&self, schema: &Schema) -> Query {
        let mut query = Query::table(self.table);
        query.select(self.field(ROW_ID_NAME));
        schema.key_fields().for_each(|field| {
            query.select(self.field(&field.name));
        });
        let exprs = self.exprs.iter().map(|expr| SelectItem { expr: expr.clone(), alias: None });
        query.select.extend(exprs);
        if self.returning.is_some() && !self.is_once {
            query.select.extend(beside::items(self.joins));
        }
        query.joins = self.joins.to_vec();
        query.filter = self.filter.cloned();
        query.order_by = self.order_by.to_vec();
        query.limit = self.limit.cloned();
        if !query.is_plain() {
            query.alias = self.alias.cloned();
        }
        query
    }
}

/// Answers a query of one table that may ask for the row ids.
pub(crate) fn answer_with_row_ids(
    snapshot: &SnapshotTable,
    query: &Query,
    options: &esker_query::Options,
) -> Result<QueryResult> {
    if query.has_windows() {
        return Err(Error::invalid(
            "a window function is not allowed here: window functions stand in SELECT, ORDER BY \
             and QUALIFY only",
        ));
    }
    let source = SnapshotSource::with_row_id(snapshot.rows_as_of());
    if query.is_plain() {
        return Ok(esker_query::execute(query, &source, options)?);
    }
    let tables = OpenTables::new(snapshot.whole(), query, options)?;
    let read = tables.sources();
    Ok(Resolved::run_on(query, &source, &read, options)?.execute()?)
}

/// A row that a statement has found: its row id, its key, which may be that, and its values.
pub(super) struct Found<'r> {
    pub row_id: &'r Value,
    pub key: &'r [Value],
    pub values: &'r [Value],
}

impl<'r> Found<'r> {
    /// Of what the query answered: the row id, the fields of the key, and the values.
    pub fn of(found: &'r [Value], key_fields: usize) -> Result<Self> {
        let missing = || Error::corrupt(format!("{} columns of a row that was found", found.len()));
        let (row_id, rest) = found.split_first().ok_or_else(missing)?;
        let (key, values) = rest.split_at_checked(key_fields).ok_or_else(missing)?;
        let key = if key_fields == 0 { std::slice::from_ref(row_id) } else { key };
        Ok(Self { row_id, key, values })
    }
}

/// What is asked of a row for a value that it gets: nothing for a default.
fn asked(expr: &Expr) -> Expr {
    match expr {
        Expr::Default => Expr::literal(Value::Null),
        expr => expr.clone(),
    }
}

impl StatementRun<'_> {
    pub(super) fn update(&self, update: &Update) -> Result<Changed> {
        let schema = self.schema(&update.table)?;
        // default: without another name it goes by its own
        let name = update.alias.as_ref().unwrap_or(&update.table);
        let field_of = |field: &str| beside::field_of(name, &update.joins, field);
        refuse_aggregates(&update.set)?;
        let set = whole_fields(&schema, &update.set, &field_of)?;
        let wanted = Wanted {
            table: &update.table,
            alias: update.alias.as_ref(),
            joins: &update.joins,
            filter: update.filter.as_ref(),
            order_by: &update.order_by,
            limit: update.limit.as_ref(),
            set: set.iter().map(|(field, _)| field.clone()).collect(),
            exprs: set.iter().map(|(_, expr)| asked(expr)).collect(),
            is_once: false,
            removes: false,
            returning: update.returning.as_deref(),
        };
        wanted.expect_no_range("FROM")?;
        let positions = set_positions(&schema, &set)?;
        if let On::Database(database) = self.on
            && has_key_field(&schema, positions.into_iter())
        {
            return self.in_transaction(database, |run, _| run.update(update));
        }
        let changed = self.change_matched(&wanted, &|schema, mut row, values| {
            let positions = set_positions(schema, &set)?;
            for (i, (position, value)) in positions.iter().zip(values).enumerate() {
                let expr = set.get(i).map(|(_, expr)| expr);
                let fitted = match (expr, schema.fields().get(*position)) {
                    // What is generated is computed below.
                    (Some(Expr::Default), Some(field)) => {
                        fit_value(field, &self.engine().default_of(schema, field)?)
                    }
                    _ => fit_assigned(schema, *position, value),
                };
                let fitted = fitted.map_err(|e| naming_parameter(e, expr))?;
                if let Some(slot) = row.get_mut(*position) {
                    *slot = fitted;
                }
            }
            Ok(Some(row))
        });
        changed.map_err(|e| e.in_clause("SET", &wanted.exprs))
    }

    pub(super) fn delete_rows(&self, delete: &Delete) -> Result<Changed> {
        let wanted = Wanted {
            table: &delete.table,
            alias: delete.alias.as_ref(),
            joins: &delete.joins,
            filter: delete.filter.as_ref(),
            order_by: &delete.order_by,
            limit: delete.limit.as_ref(),
            set: Vec::new(),
            exprs: Vec::new(),
            is_once: false,
            removes: true,
            returning: delete.returning.as_deref(),
        };
        wanted.expect_no_range("USING")?;
        self.change_matched(&wanted, &|_, _, _| Ok(None))
    }

    pub(super) fn schema(&self, table: &str) -> Result<Arc<Schema>> {
        match self.on {
            On::Database(database) => Ok(database.table(table)?.schema()),
            On::Transaction(transaction) => Ok(Arc::clone(transaction.table(table)?.schema())),
        }
    }

    /// Changes every row that is wanted.
    pub(super) fn change_matched(
        &self,
        wanted: &Wanted<'_>,
        make: &MakeRow<'_>,
    ) -> Result<Changed> {
        match self.on {
            On::Database(database) => self.commit_matched(database, wanted, make),
            On::Transaction(transaction) => {
                let table = transaction.table(wanted.table)?;
                let snapshot = self.snapshot_for(transaction, &wanted.query(table.schema()))?;
                let matched = self.matched(snapshot.table(wanted.table)?, wanted)?;
                table.change_rows(|rows| self.change_found(rows, &matched, wanted, make))
            }
        }
    }

    /// Changes them in a commit of its own, again when others have changed some of them meanwhile.
    fn commit_matched(
        &self,
        database: &Database,
        wanted: &Wanted<'_>,
        make: &MakeRow<'_>,
    ) -> Result<Changed> {
        let table = database.table(wanted.table)?;
        let mut last = None;
        for _ in 0..ATTEMPTS_MAX {
            let matched = self.matched(table.snapshot()?, wanted)?;
            match self.commit_found(&table, &matched, wanted, make) {
                Err(e) if e.kind() == ErrorKind::Conflict => {
                    // What is not yet durable is not yet visible: read again when it is.
                    database.engine().wait_for_published()?;
                    last = Some(e);
                }
                result => return result,
            }
        }
        // default: no attempt was made
        let why = last.map_or(String::new(), |e| e.to_string());
        let message = format!("tried {ATTEMPTS_MAX} times beside other writers: {why}");
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// Changes rows that a snapshot found, in one commit.
    fn commit_found(
        &self,
        table: &Table,
        matched: &Matched,
        wanted: &Wanted<'_>,
        make: &MakeRow<'_>,
    ) -> Result<Changed> {
        let current = table.current();
        if !current.schema.has_same_rows_as(matched.snapshot.schema()) {
            return Err(Error::new(ErrorKind::Conflict, "the schema has changed meanwhile"));
        }
        table.change(&current, |writer, staged| {
            let mut rows = StagedRows::new(&table.engine, &current, (writer, &mut *staged));
            rows.read_at = matched.snapshot.commit();
            rows.limits = Some(&self.options.inputs.limits);
            let changed = self.change_found(&mut rows, matched, wanted, make);
            staged.is_dry_run = self.dry_run;
            changed
        })
    }

    /// The rows of a table that are wanted, as of a snapshot.
    pub(super) fn matched(&self, snapshot: SnapshotTable, wanted: &Wanted<'_>) -> Result<Matched> {
        let snapshot = snapshot.with_others(self.others.as_ref());
        let query = wanted.query(snapshot.schema());
        let answer = answer_with_row_ids(&snapshot, &query, &self.options)?;
        let key: Vec<_> = snapshot.schema().key_fields().map(|f| f.name.as_str()).collect();
        // default: an answer without columns has none of other tables
        let values = answer.columns.get(1 + key.len()..).unwrap_or_default();
        let beside = Beside::of(wanted.name(), values);
        let rows = match wanted.joins {
            [] => answer.to_rows(),
            _ if wanted.is_once => beside::expect_once(answer.to_rows(), &key)?,
            _ => beside::one_a_row(answer.to_rows(), &key, &wanted.set)?,
        };
        Ok(Matched { snapshot, rows, beside })
    }

    /// Changes rows that a snapshot found.
    pub(super) fn change_found<S: RowSink>(
        &self,
        sink: &mut S,
        matched: &Matched,
        wanted: &Wanted<'_>,
        make: &MakeRow<'_>,
    ) -> Result<Changed> {
        let schema = Arc::clone(sink.schema());
        let key_fields = schema.key_positions().len();
        let mut shown = Shown::beside(&schema, wanted.returning, &matched.beside);
        let asked: Vec<usize> =
            wanted.set.iter().filter_map(|name| schema.resolve(name).ok()).collect();
        for (i, found) in matched.rows.iter().enumerate() {
            self.expect_time_left(i)?;
            let Found { row_id, key, values } = Found::of(found, key_fields)?;
            let key = fit_key(&schema, key)?;
            let mut slot = sink.look_again(&key, row_id)?;
            if !shown.is_asked() && wanted.removes {
                sink.remove(&key, slot)?;
                continue;
            }
            let gone = || Error::corrupt("a row that a statement has found is not there");
            let row = sink.take_row(&mut slot)?.ok_or_else(gone)?;
            let old = shown.is_asked().then(|| row.clone());
            let before = sink.before_change(&row)?.asking(asked.clone());
            let mut new = make(&schema, row, values)?;
            new.iter_mut().try_for_each(|new| sink.recompute(new, &before))?;
            shown.add_beside(old.as_deref(), new.as_deref(), values);
            match new {
                None => sink.remove(&key, slot)?,
                Some(new) => sink.put(&key, slot, new)?,
            }
        }
        let returning = self.returned(&schema, &shown, wanted.returning)?;
        Ok(Changed { rows: matched.rows.len() as u64, returning })
    }
}

#[cfg(test)]
mod tests;
