//! Statements that change rows.
//!
//! An update or delete reads the rows that match as of a snapshot, without a lock. Then, under the
//! commit lock, it finds each row's newest version by its key; if that is still the one it read,
//! its new version (or its end) is staged, and all of them become one commit. If some row has
//! changed meanwhile, nothing is done and the statement begins again at a newer snapshot. Rows that
//! others add between the two parts are not among those that match: that is snapshot isolation.
//! Other writers wait only for the second part.

mod row_ids;

use esker_format::schema::ROW_ID_NAME;
use esker_format::{Schema, Value, ValueRef};
use esker_query::model::{Change, Expr, Insert, InsertRows, Query, SelectItem};
use esker_table::table::{Existing, PreparedPut};

use crate::engine::{Engine, fit_key, fit_value};
use crate::table::Current;
use crate::{Database, Error, ErrorKind, Result, Table};
use row_ids::RowIdSource;

/// How often a statement begins anew when others change its rows under it.
const ATTEMPTS_MAX: usize = 64;

/// From a row and the values that a statement computed for it to the new row, or `None` to remove
/// it.
type MakeRow<'a> = dyn Fn(&Schema, Vec<Value>, &[Value]) -> Result<Option<Vec<Value>>> + 'a;

/// Rows that a statement found: by row id, with the values of some expressions.
struct Matched {
    commit: u64,
    schema_version: u32,
    /// The row id, the key fields, then the values.
    rows: Vec<Vec<Value>>,
}

impl Database {
    /// Runs a statement that changes rows, all of it or nothing; returns how many rows it added,
    /// changed or removed.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    /// use esker_query::model::{Change, Delete, Expr, Operator};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]).build()?;
    /// let table = db.create_table("t", schema)?;
    /// table.insert_many(&[vec![1i64.into()], vec![2i64.into()]])?;
    /// let filter = Expr::field("n").binary(Operator::Gt, Expr::literal(1i64));
    /// let delete = Delete { table: "t".into(), filter: Some(filter) };
    /// assert_eq!(db.change(&Change::Delete(delete))?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for an unknown table; `InvalidInput` for an unknown field, a key field that is
    /// set, or a value that does not fit; `AlreadyExists` for a key that does; `OverBudget` for
    /// more than 16 MiB of new rows; `Conflict` when other writers kept changing the same rows:
    /// try again. Nothing is changed then.
    pub fn change(&self, change: &Change) -> Result<u64> {
        match change {
            Change::Insert(insert) => self.insert_rows(insert),
            Change::Update(update) => {
                let table = self.table(&update.table)?;
                set_positions(&table.schema(), &update.set)?;
                let exprs: Vec<Expr> = update.set.iter().map(|(_, expr)| expr.clone()).collect();
                let filter = update.filter.as_ref();
                self.change_matched(&table, filter, &exprs, &|schema, mut row, values| {
                    let positions = set_positions(schema, &update.set)?;
                    for (position, value) in positions.iter().zip(values) {
                        let fitted = fit_assigned(schema, *position, value)?;
                        if let Some(slot) = row.get_mut(*position) {
                            *slot = fitted;
                        }
                    }
                    Ok(Some(row))
                })
            }
            Change::Delete(delete) => {
                let table = self.table(&delete.table)?;
                let filter = delete.filter.as_ref();
                self.change_matched(&table, filter, &[], &|_, _, _| Ok(None))
            }
        }
    }

    fn insert_rows(&self, insert: &Insert) -> Result<u64> {
        let table = self.table(&insert.table)?;
        let schema = table.schema();
        let positions = insert_positions(&schema, &insert.fields)?;
        let rows: Vec<Vec<Value>> = match &insert.rows {
            InsertRows::Values(rows) => {
                let inputs = self.engine().query_options().inputs;
                let value = |expr: &Expr| esker_query::constant(expr, &inputs);
                let row = |row: &Vec<Expr>| row.iter().map(&value).collect();
                rows.iter().map(row).collect::<esker_query::Result<_>>()?
            }
            InsertRows::Query(query) => self.query(query)?.to_rows(),
        };
        let placed = rows.into_iter().enumerate().map(|(i, values)| {
            place(self.engine(), &schema, &positions, values)
                .map_err(|e| e.at(format_args!("row {i}")))
        });
        let placed: Vec<Vec<Value>> = placed.collect::<Result<_>>()?;
        table.put_many(&placed, insert.on_conflict)
    }

    /// Changes every row that passes the filter; `make` gets the values of `exprs`.
    fn change_matched(
        &self,
        table: &Table,
        filter: Option<&Expr>,
        exprs: &[Expr],
        make: &MakeRow<'_>,
    ) -> Result<u64> {
        let mut last = None;
        for _ in 0..ATTEMPTS_MAX {
            let matched = self.matched(table, filter, exprs)?;
            let current = table.current();
            let found = if current.schema.version() == matched.schema_version {
                table.change_found(&current, &matched, make)
            } else {
                Err(Error::new(ErrorKind::Conflict, "the schema has changed meanwhile"))
            };
            match found {
                Err(e) if e.kind() == ErrorKind::Conflict => {
                    // What is not yet durable is not yet visible: read again when it is.
                    self.engine().acknowledge_published()?;
                    last = Some(e);
                }
                result => return result,
            }
        }
        let why = last.map_or(String::new(), |e| e.to_string());
        let message = format!("tried {ATTEMPTS_MAX} times beside other writers: {why}");
        Err(Error::new(ErrorKind::Conflict, message))
    }

    fn matched(&self, table: &Table, filter: Option<&Expr>, exprs: &[Expr]) -> Result<Matched> {
        let snapshot = table.snapshot()?;
        let source = RowIdSource::new(snapshot.rows_as_of());
        let schema = snapshot.schema();
        let mut query = Query::table(table.name());
        query.select(Expr::field(ROW_ID_NAME));
        for position in schema.key_positions() {
            if let Some(field) = schema.fields().get(*position) {
                query.select(Expr::field(&field.name));
            }
        }
        let exprs = exprs.iter().map(|expr| SelectItem { expr: expr.clone(), alias: None });
        query.select.extend(exprs);
        query.filter = filter.cloned();
        let options = self.engine().query_options();
        let rows = esker_query::execute(&query, &source, &options)?.to_rows();
        let (commit, schema_version) = (snapshot.commit(), schema.version());
        Ok(Matched { commit, schema_version, rows })
    }
}

impl Table {
    /// Changes rows that a snapshot found, in one commit.
    fn change_found(
        &self,
        current: &Current,
        matched: &Matched,
        make: &MakeRow<'_>,
    ) -> Result<u64> {
        if matched.rows.is_empty() {
            return Ok(0);
        }
        let schema = &current.schema;
        let key_fields = schema.key_positions().len();
        self.change(current, |writer, staged| {
            for found in &matched.rows {
                let Some((row_id, rest)) = found.split_first() else { continue };
                let (key, values) = rest.split_at_checked(key_fields).unwrap_or((rest, &[]));
                let key = if key_fields == 0 { std::slice::from_ref(row_id) } else { key };
                let key = fit_key(schema, key)?;
                let hash = current.hash(&key);
                let existing = writer.existing(&key, hash)?;
                let is_same = |e: &Existing| {
                    e.deleted == 0
                        && Value::Uint(e.row_id) == *row_id
                        && e.created <= matched.commit
                };
                let Some(existing) = existing.filter(is_same) else {
                    return Err(Error::new(ErrorKind::Conflict, "a row has changed meanwhile"));
                };
                let row = current.core.row_at(existing.location)?;
                match make(schema, row, values)? {
                    None => staged.delete(existing),
                    Some(row) => {
                        self.engine.test_rows(current, std::slice::from_ref(&row))?;
                        let row_id = existing.row_id;
                        staged.put(row, PreparedPut { hash, existing: Some(existing), row_id });
                    }
                }
            }
            Ok(matched.rows.len() as u64)
        })
    }
}

/// The positions of the fields that are set; none of them twice, none of the key.
fn set_positions(schema: &Schema, set: &[(String, Expr)]) -> Result<Vec<usize>> {
    let mut positions = Vec::with_capacity(set.len());
    for (name, _) in set {
        let position = schema.resolve(name)?;
        if schema.key_positions().contains(&position) {
            let message = format!("field {name:?} is part of the key and cannot be updated");
            return Err(Error::invalid(message));
        }
        if positions.contains(&position) {
            return Err(Error::invalid(format!("field {name:?} is set twice")));
        }
        positions.push(position);
    }
    Ok(positions)
}

/// The positions of the fields that rows have values for.
fn insert_positions(schema: &Schema, names: &[String]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..schema.fields().len()).collect());
    }
    let mut positions = Vec::with_capacity(names.len());
    for name in names {
        let position = schema.resolve(name)?;
        if positions.contains(&position) {
            return Err(Error::invalid(format!("field {name:?} is named twice")));
        }
        positions.push(position);
    }
    Ok(positions)
}

/// A whole row from values for some fields; the others have their defaults.
fn place(
    engine: &Engine,
    schema: &Schema,
    positions: &[usize],
    values: Vec<Value>,
) -> Result<Vec<Value>> {
    let (want, got) = (positions.len(), values.len());
    if want != got {
        return Err(Error::invalid(format!("expected {want} values, found {got}")));
    }
    let mut placed = Vec::with_capacity(values.len());
    for (position, value) in positions.iter().zip(values) {
        placed.push((*position, fit_assigned(schema, *position, &value)?));
    }
    Ok(engine.fill_row(schema, placed))
}

/// A value of a statement as its field takes it.
fn fit_assigned(schema: &Schema, position: usize, value: &Value) -> Result<Value> {
    let field = schema.fields().get(position);
    let field = field.ok_or_else(|| Error::invalid("unknown field"))?;
    let assigned = match value.as_ref() {
        ValueRef::Null => Value::Null,
        _ => esker_query::assign(value.clone(), field.data_type)
            .map_err(|e| Error::from(e).at(format_args!("field {:?}", field.name)))?,
    };
    fit_value(field, &assigned)
}
