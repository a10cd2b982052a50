//! Statements that change rows.
//!
//! An update or delete reads the rows that match as of a snapshot, without a lock. Then, under the
//! commit lock, it finds each row's newest version by its key; if that is still the one it read,
//! its new version (or its end) is staged, and all of them become one commit. If some row has
//! changed meanwhile, nothing is done and the statement begins again at a newer snapshot. Rows that
//! others add between the two parts are not among those that match: that is snapshot isolation.
//! Other writers wait only for the second part.

mod apply;
mod assignment;
mod beside;
pub(crate) mod conditional;
mod conflict;
mod copy;
pub(crate) mod delete_many;
mod erase;
mod insert;
mod matched;
mod merge;
pub(crate) mod options;
mod returning;
pub(crate) mod update_many;
mod within;

pub(crate) use apply::{apply_to_matching, apply_within};
pub(crate) use matched::answer_with_row_ids;
use returning::Shown;
use std::sync::Arc;
pub(crate) use within::{change_within, fill_within};

use esker_format::{Field, Schema, Value, ValueRef};
use esker_query::model::{Change, Delete, Expr, Query, SelectItem};
use esker_query::{QueryResult, Semantics};

use super::{Database, Error, Limits, QueryOptions, Result, Snapshot, Transaction};
use crate::commit::fit::fit_value;
use crate::commit::staged::Staged;
use crate::engine_handle::EngineHandle;
use crate::limits::ROWS_PER_LOOK;
use crate::read::tables::OtherTables;

/// What a statement is run with.
#[derive(Clone, Debug, Default)]
pub struct ChangeOptions {
    /// The values of its parameters, by position.
    pub parameters: Arc<[Value]>,
    /// Whether to say only what would change, and change nothing.
    pub dry_run: bool,
    /// How long it may take and how much memory it may have.
    pub limits: Limits,
    /// As for [`QueryOptions::semantics`].
    pub semantics: Semantics,
    /// Whether rows that are added are whole ones, as a file or another program has them: then what
    /// is computed of a row may stand in its place, and an identity has the value that is given.
    /// Without it such a field takes DEFAULT alone.
    pub takes_whole_rows: bool,
    /// Tables of another database that it reads by names with their schema before them: those of
    /// the session that runs it, or of all where it changes one of the session's.
    #[doc(hidden)]
    pub others: Option<OtherTables>,
}

impl ChangeOptions {
    /// The same for a query.
    #[must_use]
    pub fn for_query(&self) -> QueryOptions {
        QueryOptions {
            parameters: Arc::clone(&self.parameters),
            limits: self.limits.clone(),
            semantics: self.semantics,
        }
    }
}

/// What a statement changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// How many rows it added, changed or removed.
    pub rows: u64,
    /// What it returns of each of them, where that is wanted.
    pub returning: Option<QueryResult>,
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
    /// let filter = Some(Expr::field("n").binary(Operator::Gt, Expr::literal(1i64)));
    /// let delete = Delete { table: "t".into(), filter, ..Delete::default() };
    /// assert_eq!(db.change(&Change::Delete(delete))?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for an unknown table; `InvalidInput` for an unknown field, or a value that does
    /// not fit; `AlreadyExists` for a key that does; `OverBudget` for more new rows than there is
    /// memory for; `Conflict` when other writers kept changing the
    /// same rows: try again. Nothing is changed then.
    pub fn change(&self, change: &Change) -> Result<u64> {
        self.change_with(change, &ChangeOptions::default()).map(|changed| changed.rows)
    }

    /// Runs a statement that changes rows, with parameters or only to see what it would do, and
    /// answers what it is to return of the rows.
    ///
    /// # Errors
    /// As for [`Database::change`]; and what computing the answer fails with. Nothing is changed
    /// then.
    pub fn change_with(&self, change: &Change, options: &ChangeOptions) -> Result<Changed> {
        let query = self.engine().statement_options(&options.for_query());
        let on = On::Database(self);
        StatementRun::new(on, query, options).change(change)
    }
}

/// What a statement changes.
#[derive(Clone, Copy)]
enum On<'a> {
    /// The database, in a commit of its own.
    Database(&'a Database),
    /// What a transaction sees.
    Transaction(&'a Transaction),
}

/// A statement under way.
struct StatementRun<'a> {
    on: On<'a>,
    options: esker_query::Options,
    dry_run: bool,
    takes_whole_rows: bool,
    /// What it reads of another database.
    others: Option<OtherTables>,
}

impl<'a> StatementRun<'a> {
    fn new(on: On<'a>, options: esker_query::Options, given: &ChangeOptions) -> Self {
        let (dry_run, takes_whole_rows) = (given.dry_run, given.takes_whole_rows);
        Self { on, options, dry_run, takes_whole_rows, others: given.others.clone() }
    }

    /// A part of a statement, or what a program does by functions.
    fn alone(on: On<'a>, options: esker_query::Options) -> Self {
        Self::new(on, options, &ChangeOptions::default())
    }
}

impl StatementRun<'_> {
    fn change(&self, change: &Change) -> Result<Changed> {
        let of_history = match change {
            Change::Delete(delete) => self.of_history(delete)?,
            _ => None,
        };
        // default: it is of a table
        match of_history.as_ref().unwrap_or(change) {
            Change::Insert(insert) => self.insert(insert),
            Change::Update(update) => self.update(update),
            Change::Delete(delete) if delete.erase => self.erase(delete),
            Change::Delete(delete) => self.delete_rows(delete),
            Change::Merge(merge) => self.merge(merge),
        }
    }

    /// A delete from a rollup that has a history, as one from that.
    fn of_history(&self, delete: &Delete) -> Result<Option<Change>> {
        let names = match self.on {
            On::Database(database) => Arc::clone(database.engine().names.load().newest()),
            On::Transaction(transaction) => transaction.names()?,
        };
        let table = &delete.table;
        let view = names.views.get(table);
        let Some(history) = view.and_then(|view| names.history_of(table, view)) else {
            return Ok(None);
        };
        let alias = delete.alias.clone().or_else(|| Some(table.clone()));
        Ok(Some(Change::Delete(Delete { table: history, alias, ..delete.clone() })))
    }

    fn engine(&self) -> &EngineHandle {
        match self.on {
            On::Database(database) => database.engine(),
            On::Transaction(transaction) => transaction.engine(),
        }
    }

    fn query(&self, query: &Query) -> Result<QueryResult> {
        let snapshot = match self.on {
            On::Database(database) => database.snapshot()?.with_others(self.others.as_ref()),
            On::Transaction(transaction) => self.snapshot_for(transaction, query)?,
        };
        snapshot.query_by(query, self.options.clone())
    }

    /// What a transaction sees, for a query.
    fn snapshot_for(&self, transaction: &Transaction, query: &Query) -> Result<Snapshot> {
        transaction.snapshot_beside(query, self.others.as_ref())
    }

    /// Runs a statement of the database in a transaction of its own.
    fn in_transaction(
        &self,
        database: &Database,
        run: impl Fn(&StatementRun<'_>, &Transaction) -> Result<Changed>,
    ) -> Result<Changed> {
        if self.dry_run {
            // What is not committed is rolled back.
            let transaction = database.begin()?;
            return run(&self.within(&transaction), &transaction);
        }
        database.transact(|transaction| run(&self.within(transaction), transaction))
    }

    fn within<'t>(&self, transaction: &'t Transaction) -> StatementRun<'t> {
        let on = On::Transaction(transaction);
        StatementRun {
            others: self.others.clone(),
            dry_run: self.dry_run,
            takes_whole_rows: self.takes_whole_rows,
            ..StatementRun::alone(on, self.options.clone())
        }
    }

    /// Sees, every some hundred rows, whether the statement is to end.
    fn expect_time_left(&self, row: usize) -> Result<()> {
        match row.is_multiple_of(ROWS_PER_LOOK) {
            true => Ok(self.options.expect_time_left()?),
            false => Ok(()),
        }
    }

    /// What is answered once rows are staged: how many, and what is returned of them. A dry run
    /// forgets them.
    fn finish(
        &self,
        schema: &Schema,
        staged: &mut Staged<'_>,
        (rows, shown): (u64, Shown),
        returning: Option<&[SelectItem]>,
    ) -> Result<Changed> {
        let returning = self.returned(schema, &shown, returning)?;
        staged.is_dry_run = self.dry_run;
        Ok(Changed { rows, returning })
    }
}

/// Refuses to set a field to what is of many rows.
fn refuse_aggregates(set: &[(String, Expr)]) -> Result<()> {
    for (field, expr) in set {
        if expr.has_aggregate() {
            return Err(Error::invalid(format!(
                "SET {field}: {expr}: an aggregate is not allowed here: write it in a subquery"
            )));
        }
    }
    Ok(())
}

/// The positions of the fields that are set; none of them twice.
fn set_positions(schema: &Schema, set: &[(String, Expr)]) -> Result<Vec<usize>> {
    let mut positions = Vec::with_capacity(set.len());
    for (name, expr) in set {
        let position = schema.resolve(name)?;
        if *expr != Expr::Default {
            schema.fields().get(position).into_iter().try_for_each(Field::refuse_given)?;
        }
        let set = schema.fields().get(position);
        set.into_iter().try_for_each(|field| schema.refuse_fixed(field))?;
        if positions.contains(&position) {
            return Err(Error::invalid(format!("field {name:?} is set twice")));
        }
        positions.push(position);
    }
    Ok(positions)
}

/// A value of a statement as its field takes it.
pub(crate) fn fit_assigned(schema: &Schema, position: usize, value: &Value) -> Result<Value> {
    let field = schema.fields().get(position);
    let field = field.ok_or_else(|| Error::invalid("unknown field"))?;
    let assigned = match value.as_ref() {
        ValueRef::Null => Value::Null,
        _ => esker_query::assign(value.clone(), field.data_type)
            .map_err(|e| Error::from(e).at(format_args!("field {:?}", field.name)))?,
    };
    fit_value(field, &assigned)
}

/// The error of a value that does not fit, with the parameter it came from.
fn naming_parameter(error: Error, expr: Option<&Expr>) -> Error {
    match expr {
        Some(Expr::Parameter(parameter)) => error.at(format_args!("parameter {}", parameter.name)),
        _ => error,
    }
}
