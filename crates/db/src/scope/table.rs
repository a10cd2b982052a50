//! Rows of a table, of a database or within a transaction.

use std::sync::Arc;

use esker_format::{Schema, Value};

use crate::commit::by_key::RowUpdate;
use crate::limits::CancellationCheck;
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

/// The same of a table as it is, and as a transaction sees it.
macro_rules! either {
    ($scoped:expr, $table:ident => $done:expr) => {
        match $scoped {
            Self::Database($table) => $done,
            Self::Transaction($table) => $done,
        }
    };
}

impl ScopedTable<'_> {
    /// The name, as it is now.
    #[must_use]
    pub fn name(&self) -> String {
        either!(self, table => table.name())
    }

    /// The fields and the key.
    #[must_use]
    pub fn schema(&self) -> Arc<Schema> {
        match self {
            Self::Database(table) => table.schema(),
            Self::Transaction(table) => Arc::clone(table.schema()),
        }
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// As for [`Table::count`] and [`TransactionTable::count`].
    pub fn count(&self) -> Result<u64> {
        match self {
            Self::Database(table) => table.count(),
            Self::Transaction(table) => table.count(),
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
        either!(self, table => table.insert(row))
    }

    /// Adds a row or replaces the one with its key; returns its row id.
    ///
    /// # Errors
    /// As for [`Table::upsert`] and [`TransactionTable::upsert`].
    pub fn upsert(&self, row: &[Value]) -> Result<u64> {
        either!(self, table => table.upsert(row))
    }

    /// Adds a row that was put together for a schema, or replaces the one with its key; `Conflict`
    /// when that is not the newest one. Returns its row id.
    #[doc(hidden)]
    pub fn put_for(&self, schema: &Arc<Schema>, row: &[Value], must_be_new: bool) -> Result<u64> {
        match self {
            Self::Database(table) => table.put_for(schema, row, must_be_new),
            Self::Transaction(table) if must_be_new => table.insert(row),
            Self::Transaction(table) => table.upsert(row),
        }
    }

    /// Adds rows, all or none.
    ///
    /// # Errors
    /// As for [`Table::insert_many_with`].
    pub fn insert_many(&self, rows: &[Vec<Value>], limits: &Limits) -> Result<()> {
        let direct = |table: &Table| table.insert_many_with(rows, limits).map(|()| 0);
        let done = self.change_many(rows, limits, direct, |table, first, part, check| {
            table.put_part(first, part, true, check).map(|()| 0)
        });
        done.map(drop)
    }

    /// Adds or replaces rows, all or none; of two with one key the last wins.
    ///
    /// # Errors
    /// As for [`Table::upsert_many_with`].
    pub fn upsert_many(&self, rows: &[Vec<Value>], limits: &Limits) -> Result<()> {
        let direct = |table: &Table| table.upsert_many_with(rows, limits).map(|()| 0);
        let done = self.change_many(rows, limits, direct, |table, first, part, check| {
            table.put_part(first, part, false, check).map(|()| 0)
        });
        done.map(drop)
    }

    /// Changes some fields of the row with a key; false when there is none.
    ///
    /// # Errors
    /// As for [`Table::update`].
    pub fn update(&self, key: &[Value], changes: &[(&str, Value)]) -> Result<bool> {
        either!(self, table => table.update(key, changes))
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
        let direct = |table: &Table| table.update_many_with(updates, limits);
        self.change_many(updates, limits, direct, |table, first, part, check| {
            table.update_part(first, part, check)
        })
    }

    /// Removes the row with a key; false when there is none.
    ///
    /// # Errors
    /// As for [`Table::delete`].
    pub fn delete(&self, key: &[Value]) -> Result<bool> {
        either!(self, table => table.delete(key))
    }

    /// Removes rows by their keys, all or none; returns how many there were.
    ///
    /// # Errors
    /// As for [`Table::delete_many_with`].
    pub fn delete_many(&self, keys: &[Vec<Value>], limits: &Limits) -> Result<u64> {
        let direct = |table: &Table| table.delete_many_with(keys, limits);
        self.change_many(keys, limits, direct, |table, first, part, check| {
            table.delete_part(first, part, check)
        })
    }

    /// Changes many rows: of a database `direct`ly in one commit, or, where they are too many, part
    /// by part in a transaction of their own, so that what leads back from a part is forgotten
    /// after it. `change` gets the number of the first row of each part.
    fn change_many<T>(
        &self,
        rows: &[T],
        limits: &Limits,
        direct: impl FnOnce(&Table) -> Result<u64>,
        change: impl Fn(&TransactionTable<'_>, usize, &[T], CancellationCheck<'_>) -> Result<u64>,
    ) -> Result<u64> {
        let table = match self {
            Self::Database(table) if rows.len() <= COMMIT_ROWS_MAX => return direct(table),
            Self::Database(table) => table,
            Self::Transaction(table) => {
                return table.within_limits(limits, |check| change(table, 0, rows, check));
            }
        };
        Transaction::run(&table.engine, |transaction| {
            let within = transaction.table_by_handle(table)?;
            within.within_limits(limits, |check_cancelled| {
                let parts = rows.chunks(PART_ROWS).enumerate();
                let done = parts.map(|(number, part)| {
                    change(&within, number * PART_ROWS, part, check_cancelled)
                });
                done.sum()
            })
        })
    }
}
