//! Queries whose rows no other commit may change before this one.

use esker_format::schema::ROW_ID_NAME;
use esker_format::{Schema, Value, ValueRef};
use esker_query::model::{Expr, SelectItem};
use esker_query::{Query, QueryResult};

use super::{Transaction, TransactionTable};
use crate::commit::fit::fit_key;
use crate::limits::ROWS_PER_LOOK;
use crate::statement::answer_with_row_ids;
use crate::{Error, QueryOptions, Result};

impl Transaction {
    /// Answers a query of the rows of one table, and holds each row that it answers as
    /// [`TransactionTable::get_for_update`] does: when another commit changes or removes one before
    /// this transaction commits, the commit fails with a `Conflict` that names table and key. No
    /// thread waits, and rows that come meanwhile are not held. Beyond some hundred thousand rows
    /// the whole table is held.
    ///
    /// A filter may have subqueries; what these read is not held. Going back to a savepoint does
    /// not let go.
    ///
    /// ```
    /// use esker::{DataType, ErrorKind, Options, Query, Schema};
    /// use esker_query::model::{Expr, Operator};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("id", DataType::I64).field("free", DataType::Bool);
    /// let seats = db.create_table("seats", schema.primary_key(["id"]).build()?)?;
    /// seats.insert_many(&[vec![1i64.into(), true.into()], vec![2i64.into(), true.into()]])?;
    /// db.bucket("tickets")?;
    ///
    /// let transaction = db.begin()?;
    /// let mut free = Query::table("seats");
    /// free.filter = Some(Expr::field("free").binary(Operator::Eq, Expr::literal(true)));
    /// let found = transaction.query_for_update(&free)?.row_count();
    /// transaction.bucket("tickets")?.put(b"offered", found.to_string().as_bytes())?;
    /// // Somebody else takes one of them.
    /// seats.update(&[2i64.into()], &[("free", false.into())])?;
    /// let error = transaction.commit().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Conflict);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Transaction::query`]; `InvalidInput` for a query that joins, groups, or answers
    /// anything else than rows of one table; `ReadOnly` in a transaction that only reads;
    /// `OverBudget` when the keys take too much memory (some of them may be held all the same).
    pub fn query_for_update(&self, query: &Query) -> Result<QueryResult> {
        self.query_for_update_with(query, &QueryOptions::default())
    }

    /// The same with parameters, or within limits of its own.
    ///
    /// # Errors
    /// As for [`Transaction::query_for_update`] and [`crate::Database::query_with`].
    pub fn query_for_update_with(
        &self,
        query: &Query,
        options: &QueryOptions,
    ) -> Result<QueryResult> {
        self.expect_writes()?;
        expect_rows_of_one_table(query)?;
        let options = self.engine.statement_options(options);
        let table = self.table(&query.table)?;
        let keyed = with_keys(query, table.schema());
        let rows = self.snapshot_for(query)?.table(&query.table)?;
        let mut result = answer_with_row_ids(&rows, &keyed, &options)?;
        let shown = keyed.select.len() - key_names(table.schema()).len();
        self.hold_found(&table, &result, shown, &options)?;
        result.columns.truncate(shown);
        result.batches.iter_mut().for_each(|batch| batch.columns.truncate(shown));
        Ok(result)
    }

    /// Holds a table: when another commit changes rows of it, or the table itself, before this
    /// transaction commits, the commit fails with a `Conflict` that names it. No thread waits.
    ///
    /// Going back to a savepoint does not let go.
    ///
    /// ```
    /// use esker::{DataType, ErrorKind, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]).build()?;
    /// let numbers = db.create_table("numbers", schema)?;
    /// let transaction = db.begin()?;
    /// transaction.hold_table("numbers")?;
    /// numbers.insert(&[1i64.into()])?;
    /// assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for an unknown table; `ReadOnly` in a transaction that only reads.
    pub fn hold_table(&self, name: &str) -> Result<()> {
        self.expect_writes()?;
        self.settle()?;
        let mut state = self.state();
        let core = self.current(&state, name)?.core;
        let definition = state.definitions.as_ref().and_then(|new| new.get(core.id()));
        if !definition.is_some_and(|table| table.is_new()) {
            state.reads.note_table(&core);
            state.holds = true;
        }
        Ok(())
    }

    /// Holds the rows of an answer, whose keys stand behind what is shown.
    fn hold_found(
        &self,
        table: &TransactionTable<'_>,
        found: &QueryResult,
        shown: usize,
        options: &esker_query::Options,
    ) -> Result<()> {
        let mut state = self.state();
        for (i, row) in found.rows().enumerate() {
            if i.is_multiple_of(ROWS_PER_LOOK) {
                options.expect_time_left()?;
            }
            let missing = || Error::corrupt(format!("{} columns of a row to hold", row.len()));
            let key = row.get(shown..).ok_or_else(missing)?;
            let key: Vec<Value> = key.iter().map(|value| ValueRef::to_owned(*value)).collect();
            table.hold(&mut state, &fit_key(table.schema(), &key)?)?;
        }
        self.reserve(&mut state)
    }
}

fn expect_rows_of_one_table(query: &Query) -> Result<()> {
    let found = if query.derived.is_some() {
        "a subquery in FROM"
    } else if query.set.is_some() {
        "several queries"
    } else if !query.values.is_empty() {
        "VALUES"
    } else if !query.with.is_empty() {
        "WITH"
    } else if !query.columns.is_empty() {
        "other names for columns"
    } else if !query.joins.is_empty() {
        "a join"
    } else if query.is_grouped() {
        "groups or aggregates"
    } else if query.has_windows() {
        "a window function"
    } else if query.distinct || !query.distinct_on.is_empty() {
        "DISTINCT"
    } else if query.table.is_empty() {
        "no table"
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("for update: expected a query of rows of one table, found {found}")))
}

/// What a row is found by.
fn key_names(schema: &Schema) -> Vec<&str> {
    let names: Vec<&str> = schema.key_fields().map(|field| field.name.as_str()).collect();
    if names.is_empty() { vec![ROW_ID_NAME] } else { names }
}

/// The query with all that it shows written out, and the key behind it.
fn with_keys(query: &Query, schema: &Schema) -> Query {
    let item = |name: &str| SelectItem { expr: Expr::field(name), alias: None };
    let all = || schema.fields().iter().map(|field| item(&field.name));
    let mut keyed = query.clone();
    keyed.select.clear();
    for shown in &query.select {
        match &shown.expr {
            Expr::AllFields(_) => keyed.select.extend(all()),
            _ => keyed.select.push(shown.clone()),
        }
    }
    if query.select.is_empty() {
        keyed.select.extend(all());
    }
    keyed.select.extend(key_names(schema).into_iter().map(item));
    keyed
}
