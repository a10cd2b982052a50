//! Changing and removing the rows that match.

use std::sync::Arc;

use esker_format::Schema;
use esker_format::Value;
use esker_format::schema::ROW_ID_NAME;
use esker_query::model::{Delete, Expr, OrderBy, Query, RowCount, SelectItem, Update};
use esker_query::{QueryResult, Resolved};
use esker_table::table::{Existing, PreparedPut};

use super::assignment::whole_fields;
use super::returning::Shown;
use super::row_ids::RowIdSource;
use super::{Changed, On, StatementRun, fit_assigned, naming_parameter, set_positions};
use crate::commit::fit::fit_key;
use crate::read::tables::OpenTables;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result, SnapshotTable, Table};

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
}

/// Which rows a statement changes, and what it needs of them.
pub(super) struct Wanted<'a> {
    pub table: &'a str,
    alias: Option<&'a String>,
    filter: Option<&'a Expr>,
    order_by: &'a [OrderBy],
    limit: Option<&'a RowCount>,
    exprs: Vec<Expr>,
    removes: bool,
    pub returning: Option<&'a [SelectItem]>,
}

impl<'a> Wanted<'a> {
    /// All rows of a table that pass a filter, and nothing but their keys.
    pub(super) fn all(table: &'a str, filter: Option<&'a Expr>) -> Self {
        Wanted {
            table,
            alias: None,
            filter,
            order_by: &[],
            limit: None,
            exprs: Vec::new(),
            removes: false,
            returning: None,
        }
    }

    /// The query that finds the rows.
    pub(super) fn query(&self, schema: &Schema) -> Query {
        let mut query = Query::table(self.table);
        query.select(Expr::field(ROW_ID_NAME));
        for position in schema.key_positions() {
            if let Some(field) = schema.fields().get(*position) {
                query.select(Expr::field(&field.name));
            }
        }
        let exprs = self.exprs.iter().map(|expr| SelectItem { expr: expr.clone(), alias: None });
        query.select.extend(exprs);
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
    let source = RowIdSource::new(snapshot.rows_as_of());
    if query.is_plain() {
        return Ok(esker_query::execute(query, &source, options)?);
    }
    let tables = OpenTables::new(snapshot.whole(), query)?;
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

impl StatementRun<'_> {
    pub(super) fn update(&self, update: &Update) -> Result<Changed> {
        let schema = self.schema(&update.table)?;
        let set = whole_fields(&schema, &update.set)?;
        let wanted = Wanted {
            table: &update.table,
            alias: update.alias.as_ref(),
            filter: update.filter.as_ref(),
            order_by: &update.order_by,
            limit: update.limit.as_ref(),
            exprs: set.iter().map(|(_, expr)| expr.clone()).collect(),
            removes: false,
            returning: update.returning.as_deref(),
        };
        set_positions(&schema, &set)?;
        let changed = self.change_matched(&wanted, &|schema, mut row, values| {
            let positions = set_positions(schema, &set)?;
            for (i, (position, value)) in positions.iter().zip(values).enumerate() {
                let fitted = fit_assigned(schema, *position, value);
                let expr = set.get(i).map(|(_, expr)| expr);
                let fitted = fitted.map_err(|e| naming_parameter(e, expr))?;
                if let Some(slot) = row.get_mut(*position) {
                    *slot = fitted;
                }
            }
            Ok(Some(row))
        });
        changed.map_err(|e| e.in_clause("SET", &wanted.exprs))
    }

    pub(super) fn delete(&self, delete: &Delete) -> Result<Changed> {
        let wanted = Wanted {
            table: &delete.table,
            alias: delete.alias.as_ref(),
            filter: delete.filter.as_ref(),
            order_by: &delete.order_by,
            limit: delete.limit.as_ref(),
            exprs: Vec::new(),
            removes: true,
            returning: delete.returning.as_deref(),
        };
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
        let database = match self.on {
            On::Database(database) => database,
            On::Transaction(transaction) => {
                return self.change_matched_within(transaction, wanted, make);
            }
        };
        let table = database.table(wanted.table)?;
        let mut last = None;
        for _ in 0..ATTEMPTS_MAX {
            let matched = self.matched(table.snapshot()?, wanted)?;
            let current = table.current();
            let found = if current.schema.has_same_rows_as(matched.snapshot.schema()) {
                self.change_found(&table, &current, &matched, wanted, make)
            } else {
                Err(Error::new(ErrorKind::Conflict, "the schema has changed meanwhile"))
            };
            match found {
                Err(e) if e.kind() == ErrorKind::Conflict => {
                    // What is not yet durable is not yet visible: read again when it is.
                    database.engine().acknowledge_published()?;
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

    /// The rows of a table that are wanted, as of a snapshot.
    pub(super) fn matched(&self, snapshot: SnapshotTable, wanted: &Wanted<'_>) -> Result<Matched> {
        let query = wanted.query(snapshot.schema());
        let rows = answer_with_row_ids(&snapshot, &query, &self.options)?.to_rows();
        Ok(Matched { snapshot, rows })
    }

    /// Changes rows that a snapshot found, in one commit.
    fn change_found(
        &self,
        table: &Table,
        current: &TableVersion,
        matched: &Matched,
        wanted: &Wanted<'_>,
        make: &MakeRow<'_>,
    ) -> Result<Changed> {
        let schema = &current.schema;
        let key_fields = schema.key_positions().len();
        table.change(current, |writer, staged| {
            let (mut rows, mut shown) = (0, Shown::new(schema, wanted.returning));
            for (i, found) in matched.rows.iter().enumerate() {
                self.expect_time_left(i)?;
                let Found { row_id, key, values } = Found::of(found, key_fields)?;
                let key = fit_key(schema, key)?;
                let hash = current.hash(&key);
                let existing = writer.existing(&key, hash)?;
                let is_same = |e: &Existing| {
                    e.is_alive()
                        && Value::Uint(e.row_id) == *row_id
                        && e.created <= matched.snapshot.commit()
                };
                let Some(existing) = existing.filter(is_same) else {
                    return Err(Error::new(ErrorKind::Conflict, "a row has changed meanwhile"));
                };
                rows += 1;
                if !shown.is_asked() && wanted.removes {
                    staged.delete(existing);
                    continue;
                }
                let old = current.core.row_at(existing.location)?;
                match make(schema, old.clone(), values)? {
                    None => {
                        staged.delete(existing);
                        shown.add(Some(&old), None);
                    }
                    Some(row) => {
                        let (one, limits) =
                            (std::slice::from_ref(&row), &self.options.inputs.limits);
                        table.engine.test_rows_within(current, one, limits)?;
                        shown.add(Some(&old), Some(&row));
                        staged.put(row, PreparedPut::update(hash, existing));
                    }
                }
            }
            self.finish(schema, staged, (rows, shown), wanted.returning)
        })
    }
}

#[cfg(test)]
mod tests;
