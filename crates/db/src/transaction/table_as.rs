//! `CREATE TABLE … AS`: a table of the rows that a query answers.
//!
//! The table and its rows are one commit, however many rows there are: what takes much memory lies
//! in segments of the transaction until then, which no other reader sees, and a crash before the
//! commit leaves nothing.

use std::ops::ControlFlow;

use esker_format::{Batch, Field, Schema, Value};
use esker_query::Query;

use super::Transaction;
use super::rows::TransactionTable;
use crate::catalog::view_needs::refuse_read;
use crate::limits::without_limits;
use crate::{ChangeOptions, Database, Error, ErrorKind, QueryOptions, Result, Snapshot};

/// What a table is made like whose rows a query answers.
#[derive(Clone, Debug, Default)]
pub struct TableAs {
    /// What its first fields are called; the others as the query calls them.
    pub columns: Vec<String>,
    /// The fields of its primary key; without any it is generated.
    pub primary_key: Vec<String>,
    /// Whether it takes the place of a table of its name, with its rows.
    pub or_replace: bool,
    /// Whether it has no rows.
    pub is_empty: bool,
}

impl Database {
    /// Creates a table with the rows that a query answers, in one commit; returns how many. Its
    /// fields have the types of the query's columns and may be NULL, but for those of its key.
    ///
    /// ```
    /// use esker::{ChangeOptions, DataType, Options, Query, Schema, TableAs};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("n", DataType::I64).build()?;
    /// db.create_table("t", schema)?.insert(&[7i64.into()])?;
    /// let copy = TableAs { columns: vec!["m".into()], ..TableAs::default() };
    /// let rows = db.create_table_as("u", &Query::table("t"), &copy, &ChangeOptions::default())?;
    /// assert_eq!((rows, db.table("u")?.count()?), (1, 1));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Database::create_table`], [`Database::query_with`] and [`crate::Table::insert`];
    /// nothing is changed then.
    pub fn create_table_as(
        &self,
        name: &str,
        query: &Query,
        table: &TableAs,
        options: &ChangeOptions,
    ) -> Result<u64> {
        Transaction::run(self.engine(), |within| within.make_table(name, query, table, options))
    }
}

impl Transaction {
    /// Creates a table with the rows that a query answers: see [`Database::create_table_as`].
    ///
    /// # Errors
    /// As for [`Database::create_table_as`].
    pub fn create_table_as(
        &self,
        name: &str,
        query: &Query,
        table: &TableAs,
        options: &ChangeOptions,
    ) -> Result<u64> {
        self.all_or_nothing(|within| within.make_table(name, query, table, options))
    }

    /// The same, without taking back what it has done when it fails.
    fn make_table(
        &self,
        name: &str,
        query: &Query,
        table: &TableAs,
        options: &ChangeOptions,
    ) -> Result<u64> {
        // As it is before: the query may read the table that is replaced.
        let snapshot = self.snapshot_beside(query, options.others.as_ref())?;
        let given = options.for_query();
        let schema = schema_of(&snapshot, query, &given, table)?;
        let names = self.names()?;
        match names.taken(name) {
            Some(_) if table.or_replace && names.contains_key(name) => {
                refuse_read(&names, "table", name, true)?;
                self.drop_table(name)?;
            }
            Some(message) => return Err(Error::new(ErrorKind::AlreadyExists, message)),
            None => {}
        }
        let created = self.create_table(name, schema)?;
        if table.is_empty {
            return Ok(0);
        }
        fill(&created, &snapshot, query, &given)
    }
}

/// Puts the rows that a query answers into a table, as they are found.
fn fill(
    table: &TransactionTable<'_>,
    snapshot: &Snapshot,
    query: &Query,
    options: &QueryOptions,
) -> Result<u64> {
    let (mut count, mut failed) = (0, None);
    snapshot.stream_with(query, options, |batch: Batch| {
        let row = |row: usize| -> Vec<Value> {
            batch.columns.iter().map(|column| column.value(row).to_owned()).collect()
        };
        let rows: Vec<Vec<Value>> = (0..batch.len()).map(row).collect();
        match table.put_part(count, &rows, true, &without_limits) {
            Ok(()) => {
                count += rows.len();
                ControlFlow::Continue(())
            }
            Err(e) => {
                failed = Some(e);
                ControlFlow::Break(())
            }
        }
    })?;
    match failed {
        Some(e) => Err(e),
        None => Ok(count as u64),
    }
}

/// The schema of a table that takes the rows of a query.
fn schema_of(
    snapshot: &Snapshot,
    query: &Query,
    options: &QueryOptions,
    table: &TableAs,
) -> Result<Schema> {
    let mut fields = snapshot.fields_with(query, options)?;
    let (count, wanted) = (fields.len(), table.columns.len());
    if wanted > count {
        let message = format!("names for {wanted} fields, where the query has {count} columns");
        return Err(Error::invalid(message));
    }
    fields.iter_mut().zip(&table.columns).for_each(|(field, name)| field.name.clone_from(name));
    let mut builder = Schema::builder();
    for field in fields {
        let nullable = !table.primary_key.contains(&field.name);
        builder = builder.add(Field { nullable, ..field });
    }
    Ok(builder.primary_key(&table.primary_key).build()?)
}
