//! Rows of a table, of a database or within a transaction.

use std::sync::Arc;

use esker_format::{Schema, Value};

use crate::limits::CancellationCheck;
use crate::statement::update_many::RowUpdate;
use crate::{Limits, Result, Row, SnapshotTable, Table, Transaction, TransactionTable};

/// The most rows that a change of a database puts together in one commit in memory; with more it
/// is a transaction, which writes to files what takes much memory.
pub(super) const COMMIT_ROWS_MAX: usize = 100_000;
/// Rows of one part of such a transaction.
const PART_ROWS: usize = 1_000;

/// A table of a [`Scope`](super::Scope).
pub enum ScopedTable<'s> {
    /// Each change is a commit.
    Database(Table),
    /// Changes become part of the transaction.
    Transaction(TransactionTable<'s>),
}

/// Reads several rows of a table as of one commit.
pub enum ScopedReader<'t> {
    /// One row alone is of one commit anyway.
    Table(&'t Table),
    /// As of the newest commit when it was made.
    Snapshot(Box<SnapshotTable>),
    /// As the transaction sees them.
    Transaction(&'t TransactionTable<'t>),
}

impl ScopedReader<'_> {
    /// The row with a key.
    ///
    /// # Errors
    /// As for [`Table::get`].
    pub fn get(&self, key: &[Value]) -> Result<Option<Row>> {
        match self {
            Self::Table(table) => table.get(key),
            Self::Snapshot(table) => table.get(key),
            Self::Transaction(table) => table.get(key),
        }
    }

    /// True when there is a row with this key.
    ///
    /// # Errors
    /// As for [`Table::exists`].
    pub fn exists(&self, key: &[Value]) -> Result<bool> {
        match self {
            Self::Table(table) => table.exists(key),
            Self::Snapshot(table) => table.exists(key),
            Self::Transaction(table) => table.exists(key),
        }
    }
}

impl ScopedTable<'_> {
    /// The name, as it is now.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Database(table) => table.name(),
            Self::Transaction(table) => table.name(),
        }
    }

    /// The fields and the key.
    #[must_use]
    pub fn schema(&self) -> Arc<Schema> {
        match self {
            Self::Database(table) => table.schema(),
            Self::Transaction(table) => Arc::clone(table.schema()),
        }
    }

    /// What reads so many rows as of one commit.
    ///
    /// # Errors
    /// As for [`Table::snapshot`].
    pub fn reader(&self, rows: usize) -> Result<ScopedReader<'_>> {
        Ok(match self {
            Self::Database(table) if rows <= 1 => ScopedReader::Table(table),
            Self::Database(table) => ScopedReader::Snapshot(Box::new(table.snapshot()?)),
            Self::Transaction(table) => ScopedReader::Transaction(table),
        })
    }

    /// Adds a row; returns its row id, which is its key when the key is generated.
    ///
    /// # Errors
    /// As for [`Table::insert`] and [`TransactionTable::insert`].
    pub fn insert(&self, row: &[Value]) -> Result<u64> {
        match self {
            Self::Database(table) => table.insert(row),
            Self::Transaction(table) => table.insert(row),
        }
    }

    /// Adds a row or replaces the one with its key; returns its row id.
    ///
    /// # Errors
    /// As for [`Table::upsert`] and [`TransactionTable::upsert`].
    pub fn upsert(&self, row: &[Value]) -> Result<u64> {
        match self {
            Self::Database(table) => table.upsert(row),
            Self::Transaction(table) => table.upsert(row),
        }
    }

    /// Adds rows, all or none.
    ///
    /// # Errors
    /// As for [`Table::insert_many_with`].
    pub fn insert_many(&self, rows: &[Vec<Value>], limits: &Limits) -> Result<()> {
        match self {
            Self::Database(table) if rows.len() <= COMMIT_ROWS_MAX => {
                table.insert_many_with(rows, limits)
            }
            Self::Transaction(table) => table.insert_many_with(rows, limits),
            Self::Database(table) => {
                let change = |table: &TransactionTable<'_>,
                              first,
                              part: &[_],
                              check: CancellationCheck<'_>| {
                    table.put_part(first, part, true, check).map(|()| 0)
                };
                Self::in_parts(table, rows, limits, change).map(|_: u64| ())
            }
        }
    }

    /// Adds or replaces rows, all or none; of two with one key the last wins.
    ///
    /// # Errors
    /// As for [`Table::upsert_many_with`].
    pub fn upsert_many(&self, rows: &[Vec<Value>], limits: &Limits) -> Result<()> {
        match self {
            Self::Database(table) if rows.len() <= COMMIT_ROWS_MAX => {
                table.upsert_many_with(rows, limits)
            }
            Self::Transaction(table) => table.upsert_many_with(rows, limits),
            Self::Database(table) => {
                let change = |table: &TransactionTable<'_>,
                              first,
                              part: &[_],
                              check: CancellationCheck<'_>| {
                    table.put_part(first, part, false, check).map(|()| 0)
                };
                Self::in_parts(table, rows, limits, change).map(|_: u64| ())
            }
        }
    }

    /// Changes some fields of the row with a key; false when there is none.
    ///
    /// # Errors
    /// As for [`Table::update`].
    pub fn update(&self, key: &[Value], changes: &[(&str, Value)]) -> Result<bool> {
        match self {
            Self::Database(table) => table.update(key, changes),
            Self::Transaction(table) => table.update(key, changes),
        }
    }

    /// Changes rows by their keys, all or none; returns how many of the updates found a row.
    ///
    /// # Errors
    /// As for [`Table::update_many_with`].
    pub fn update_many<N: AsRef<str>>(
        &self,
        updates: &[RowUpdate<N>],
        limits: &Limits,
    ) -> Result<u64> {
        match self {
            Self::Database(table) if updates.len() <= COMMIT_ROWS_MAX => {
                table.update_many_with(updates, limits)
            }
            Self::Transaction(table) => table.update_many_with(updates, limits),
            Self::Database(table) => {
                let change = |table: &TransactionTable<'_>,
                              first,
                              part: &[_],
                              check: CancellationCheck<'_>| {
                    table.update_part(first, part, check)
                };
                Self::in_parts(table, updates, limits, change)
            }
        }
    }

    /// Removes the row with a key; false when there is none.
    ///
    /// # Errors
    /// As for [`Table::delete`].
    pub fn delete(&self, key: &[Value]) -> Result<bool> {
        match self {
            Self::Database(table) => table.delete(key),
            Self::Transaction(table) => table.delete(key),
        }
    }

    /// Removes rows by their keys, all or none; returns how many there were.
    ///
    /// # Errors
    /// As for [`Table::delete_many_with`].
    pub fn delete_many(&self, keys: &[Vec<Value>], limits: &Limits) -> Result<u64> {
        match self {
            Self::Database(table) if keys.len() <= COMMIT_ROWS_MAX => {
                table.delete_many_with(keys, limits)
            }
            Self::Transaction(table) => table.delete_many_with(keys, limits),
            Self::Database(table) => {
                let change = |table: &TransactionTable<'_>,
                              first,
                              part: &[_],
                              check: CancellationCheck<'_>| {
                    table.delete_part(first, part, check)
                };
                Self::in_parts(table, keys, limits, change)
            }
        }
    }

    /// Changes rows of a database part by part, in a transaction of their own: what leads back
    /// from a part is forgotten after it. `change` gets the number of the first row of each part.
    fn in_parts<T, R: Default + std::ops::AddAssign>(
        table: &Table,
        rows: &[T],
        limits: &Limits,
        change: impl Fn(&TransactionTable<'_>, usize, &[T], CancellationCheck<'_>) -> Result<R>,
    ) -> Result<R> {
        Transaction::run(&table.engine, |transaction| {
            let within = transaction.table(&table.name())?;
            within.within_limits(limits, |check_cancelled| {
                let mut done = R::default();
                for (number, part) in rows.chunks(PART_ROWS).enumerate() {
                    done += change(&within, number * PART_ROWS, part, check_cancelled)?;
                }
                Ok(done)
            })
        })
    }
}
