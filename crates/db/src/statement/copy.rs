//! Rows of a file into a table: all of them or none.
//!
//! Into a database they are a bulk load; within a transaction they are changes of it, as `INSERT`
//! makes them.

use esker_format::{Batch, Schema};
use esker_query::model::{Change, Expr, Insert, InsertRows, OnConflict};

use crate::files::FileRows;
use crate::{ChangeOptions, Database, Error, Result, Transaction};

impl Database {
    /// Adds the rows of a file to a table; returns how many. A dry run only counts.
    ///
    /// # Errors
    /// As for [`FileRows::read`] and [`crate::Load::finish`]; nothing is changed then.
    pub fn copy_rows(
        &self,
        table: &str,
        rows: Box<dyn FileRows>,
        options: &ChangeOptions,
    ) -> Result<u64> {
        if options.dry_run {
            let transaction = self.begin()?;
            return transaction.copy_rows(table, rows, options);
        }
        let table = self.table(table)?;
        let limits = self.engine().statement_options(&options.for_query());
        let mut load = table.load()?;
        load.reserve_input(rows.memory_bytes())?;
        let in_file = rows.places();
        let read = rows.read(&mut |batch| {
            limits.expect_time_left()?;
            load.push(batch)
        });
        read.and_then(|_| Ok(load.finish()?.rows)).map_err(in_file)
    }
}

impl Transaction {
    /// The same within a transaction.
    ///
    /// # Errors
    /// As for [`FileRows::read`] and [`Transaction::change_with`]; nothing is changed then.
    pub fn copy_rows(
        &self,
        table: &str,
        rows: Box<dyn FileRows>,
        options: &ChangeOptions,
    ) -> Result<u64> {
        let schema = std::sync::Arc::clone(self.table(table)?.schema());
        let limits = self.engine().statement_options(&options.for_query());
        let in_file = rows.places();
        let before = self.savepoint();
        let real = ChangeOptions { dry_run: false, ..options.clone() };
        let mut added = 0;
        let read = rows.read(&mut |batch| {
            limits.expect_time_left()?;
            for insert in inserts(table, &schema, &batch) {
                let done = self.change_with(&Change::Insert(insert), &real);
                added += done.map_err(|e| after_rows(e, added))?.rows;
            }
            Ok(())
        });
        if read.is_err() || options.dry_run {
            self.rollback_to(before)?;
        }
        self.release(before)?;
        read.map(|_| added).map_err(in_file)
    }
}

/// Statements that add the rows of a batch, in their order. Rows beside each other that say nothing
/// about the same fields are added by one.
fn inserts(table: &str, schema: &Schema, batch: &Batch) -> Vec<Insert> {
    let mut inserts: Vec<Insert> = Vec::new();
    for row in 0..batch.len() {
        let given = || {
            let columns = schema.fields().iter().zip(&batch.columns);
            columns.filter(|(_, column)| !column.is_missing(row))
        };
        let values: Vec<Expr> =
            given().map(|(_, column)| Expr::Literal(column.value(row).to_owned())).collect();
        let fields: Vec<String> = given().map(|(field, _)| field.name.clone()).collect();
        match inserts.last_mut() {
            Some(Insert { fields: known, rows: InsertRows::Values(rows), .. })
                if *known == fields =>
            {
                rows.push(values);
            }
            _ => inserts.push(Insert {
                table: table.to_owned(),
                fields,
                overriding: None,
                rows: InsertRows::Values(vec![values]),
                on_conflict: OnConflict::Fail,
                conflict_key: Vec::new(),
                conflict_expressions: Vec::new(),
                conflict_filter: None,
                returning: None,
            }),
        }
    }
    inserts
}

/// The error of a row of a statement with others before it.
fn after_rows(error: Error, before: u64) -> Error {
    let message = error.to_string();
    let row = message.strip_prefix("row ").and_then(|rest| rest.split_once(": "));
    match row.and_then(|(row, rest)| Some((row.parse::<u64>().ok()?, rest))) {
        Some((row, rest)) => Error::new(error.kind(), format!("row {}: {rest}", row + before)),
        None => error,
    }
}
