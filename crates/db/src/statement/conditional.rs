//! Writes of one row that depend on what the row is, decided and done as one.

use std::sync::Arc;

use esker_format::{Schema, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_query::model::Expr;
use esker_query::{Computed, Inputs};
use esker_table::table::Existing;

use crate::commit::by_key::assign;
use crate::commit::fit::{fit_changes, fit_key, has_key_field};
use crate::commit::row_sink::{RowSink, StagedRows};
use crate::engine::Engine;
use crate::table_version::TableVersion;
use crate::transaction::TransactionTable;
use crate::{Error, ErrorKind, Result, Row, Table, Transaction};

/// From a row to the new one, or `None` to remove it.
pub(crate) type MakeRow<'a> = dyn Fn(&[Value]) -> Result<Option<Vec<Value>>> + 'a;

/// What came of a conditional write.
#[derive(Clone, Debug, PartialEq)]
pub enum Modified {
    /// There is no row with the key.
    Absent,
    /// The condition is not true for this row, which stays.
    Kept(Row),
    /// The row was this one and is now that one, or gone.
    Changed {
        /// The row before.
        old: Row,
        /// The row now; `None` when it was removed.
        new: Option<Row>,
    },
}

impl Table {
    /// Adds a row unless its key exists; returns the row that is in the way.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    /// let table = db.create_table("t", schema.primary_key(["id"]).build()?)?;
    /// assert!(table.insert_if_absent(&[1i64.into(), 10i64.into()])?.is_none());
    /// let there = table.insert_if_absent(&[1i64.into(), 20i64.into()])?.expect("key 1 exists");
    /// assert_eq!(there.get("n"), Some(&10i64.into()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` when a value does not fit its field; `Conflict` as for [`Table::insert`].
    pub fn insert_if_absent(&self, row: &[Value]) -> Result<Option<Row>> {
        self.attempt(|current| {
            let schema = &current.schema;
            let row = self.engine.complete_row(current, row)?;
            self.engine.test_rows(current, std::slice::from_ref(&row))?;
            let key = schema.key_positions().iter().filter_map(|p| row.get(*p));
            let key: Vec<_> = key.map(Value::as_ref).collect();
            self.change(current, |writer, staged| {
                if !key.is_empty() {
                    let existing = writer.existing(&key, current.hash(&key))?;
                    if let Some(existing) = existing.filter(Existing::is_alive) {
                        let there = current.core.row_at(existing.location)?;
                        return Ok(Some(Row::new(Arc::clone(schema), there)));
                    }
                }
                let prepared = writer.prepare_put(&row, true)?;
                staged.put(row.clone(), prepared);
                Ok(None)
            })
        })
    }

    /// Changes some fields of the row with a key if a condition is true for it.
    ///
    /// ```
    /// use esker::{DataType, Modified, Options, Schema};
    /// use esker_query::model::{Expr, Operator};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    /// let table = db.create_table("t", schema.primary_key(["id"]).build()?)?;
    /// table.insert(&[1i64.into(), 10i64.into()])?;
    /// let is_ten = Expr::field("n").binary(Operator::Eq, Expr::literal(10i64));
    /// let first = table.update_if(&[1i64.into()], &[("n", 11i64.into())], &is_ten)?;
    /// assert!(matches!(first, Modified::Changed { .. }));
    /// let second = table.update_if(&[1i64.into()], &[("n", 12i64.into())], &is_ten)?;
    /// assert!(matches!(second, Modified::Kept(row) if row.get("n") == Some(&11i64.into())));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Table::update`]; `InvalidInput` when the condition does not fit the schema or is
    /// none.
    pub fn update_if(
        &self,
        key: &[Value],
        changes: &[(&str, Value)],
        condition: &Expr,
    ) -> Result<Modified> {
        self.attempt(|current| {
            let fitted = fit_changes(&current.schema, changes)?;
            if has_key_field(&current.schema, fitted.iter().map(|(position, _)| *position)) {
                return self.transacted(|table| table.update_if(key, changes, condition));
            }
            self.modify_once(current, key, Some(condition), &|row| {
                let mut row = row.to_vec();
                assign(&mut row, fitted.clone());
                Ok(Some(row))
            })
        })
    }

    /// Removes the row with a key if a condition is true for it.
    ///
    /// # Errors
    /// As for [`Table::update_if`].
    pub fn delete_if(&self, key: &[Value], condition: &Expr) -> Result<Modified> {
        self.attempt(|current| self.modify_once(current, key, Some(condition), &|_| Ok(None)))
    }

    /// Makes a new row, or none, of the one with a key, unless a condition is not true for it.
    pub(crate) fn modify_once(
        &self,
        current: &TableVersion,
        key: &[Value],
        condition: Option<&Expr>,
        make: &MakeRow<'_>,
    ) -> Result<Modified> {
        let key = fit_key(&current.schema, key)?;
        let condition = condition.map(|expr| Condition::new(&self.engine, &current.schema, expr));
        let condition = condition.transpose()?;
        self.change(current, |writer, staged| {
            let mut rows = StagedRows::new(&self.engine, current, (writer, staged));
            rows.is_tested = !Bug::OperatorsWithoutChecks.is_planted();
            modify_row(&mut rows, &key, condition.as_ref(), make)
        })
    }
}

impl Table {
    /// Does a change in a transaction of its own.
    pub(crate) fn transacted<R>(
        &self,
        change: impl Fn(&TransactionTable<'_>) -> Result<R>,
    ) -> Result<R> {
        Transaction::run(&self.engine, |transaction| change(&transaction.table_by_handle(self)?))
    }
}

impl TransactionTable<'_> {
    /// As [`Table::update_if`].
    fn update_if(
        &self,
        key: &[Value],
        changes: &[(&str, Value)],
        condition: &Expr,
    ) -> Result<Modified> {
        let fitted = fit_changes(self.schema(), changes)?;
        self.modify(key, Some(condition), &|row| {
            let mut row = row.to_vec();
            assign(&mut row, fitted.clone());
            Ok(Some(row))
        })
    }

    /// Makes a new row, or none, of the one with a key, unless a condition is not true for it.
    pub(crate) fn modify(
        &self,
        key: &[Value],
        condition: Option<&Expr>,
        make: &MakeRow<'_>,
    ) -> Result<Modified> {
        let key = fit_key(self.schema(), key)?;
        let engine = self.transaction.engine();
        let condition = condition.map(|expr| Condition::new(engine, self.schema(), expr));
        let condition = condition.transpose()?;
        self.change_rows(|rows| modify_row(rows, &key, condition.as_ref(), make))
    }
}

/// What has to be true for a row that is changed.
pub(crate) struct Condition<'e> {
    expr: &'e Expr,
    computed: Computed,
}

impl<'e> Condition<'e> {
    fn new(engine: &Engine, schema: &Schema, expr: &'e Expr) -> Result<Self> {
        let inputs = Inputs { limits: engine.limits(), ..Inputs::default() };
        let computed = Computed::new(std::slice::from_ref(expr), schema, &inputs)?;
        Ok(Self { expr, computed })
    }

    fn holds(&self, row: &[Value]) -> Result<bool> {
        match self.computed.of(row)?.as_slice() {
            [Value::Bool(true)] => Ok(true),
            [Value::Bool(false) | Value::Null] => Ok(false),
            _ => {
                let message = format!("{}: expected a condition", self.expr);
                Err(Error::new(ErrorKind::InvalidInput, message))
            }
        }
    }
}

/// Makes a new row, or none, of the one with a key, unless a condition is not true for it.
pub(crate) fn modify_row<S: RowSink>(
    sink: &mut S,
    key: &[ValueRef<'_>],
    condition: Option<&Condition<'_>>,
    make: &MakeRow<'_>,
) -> Result<Modified> {
    let schema = Arc::clone(sink.schema());
    let row = |values| Row::new(Arc::clone(&schema), values);
    let mut slot = sink.look(key, sink.hash(key))?;
    let Some(old) = sink.take_row(&mut slot)? else { return Ok(Modified::Absent) };
    if let Some(condition) = condition
        && !condition.holds(&old)?
    {
        return Ok(Modified::Kept(row(old)));
    }
    let before = sink.before_change(&old)?;
    let mut new = make(&old)?;
    new.iter_mut().try_for_each(|new| sink.recompute(new, &before))?;
    match &new {
        None => sink.remove(key, slot)?,
        Some(new) => sink.put(key, slot, new.clone())?,
    }
    Ok(Modified::Changed { old: row(old), new: new.map(row) })
}
