//! A table within a transaction whose rows are structs.

use std::marker::PhantomData;
use std::sync::Arc;

use esker_format::Value;

use super::typed_table::{bind, key_of};
use super::{Binding, Record, ToKey};
use crate::{Result, Row, Transaction, TransactionTable};

/// A [`TransactionTable`] whose rows are structs of one type, as [`super::TypedTable`] has them.
///
/// ```
/// use esker::{Options, Record};
///
/// #[derive(Debug, PartialEq, Record)]
/// struct Account {
///     #[esker(key)]
///     owner: String,
///     cents: i64,
/// }
///
/// let db = Options::new().memory()?;
/// let accounts = db.create_table_of::<Account>("accounts")?;
/// accounts.insert(&Account { owner: "ada".into(), cents: 100 })?;
/// db.transact(|transaction| {
///     let accounts = transaction.table_of::<Account>("accounts")?;
///     let mut ada = accounts.get("ada")?.expect("inserted above");
///     ada.cents -= 30;
///     accounts.upsert(&ada)?;
///     accounts.insert(&Account { owner: "bob".into(), cents: 30 }).map(drop)
/// })?;
/// assert_eq!(accounts.get("bob")?.expect("inserted above").cents, 30);
/// # Ok::<(), esker::Error>(())
/// ```
pub struct TypedTransactionTable<'t, T> {
    table: TransactionTable<'t>,
    binding: Binding,
    rows: PhantomData<fn() -> T>,
}

impl Transaction {
    /// Creates a table for rows of a type, as part of the transaction.
    ///
    /// # Errors
    /// As for [`Transaction::create_table`] and [`Record::schema`].
    pub fn create_table_of<T: Record>(&self, name: &str) -> Result<TypedTransactionTable<'_, T>> {
        self.create_table(name, T::schema()?)?.typed()
    }

    /// A table as of the transaction's snapshot, as one of rows of a type.
    ///
    /// # Errors
    /// As for [`Transaction::table`] and [`crate::Table::typed`].
    pub fn table_of<T: Record>(&self, name: &str) -> Result<TypedTransactionTable<'_, T>> {
        self.table(name)?.typed()
    }
}

impl<'t> TransactionTable<'t> {
    /// This table, as one of rows of a type.
    ///
    /// # Errors
    /// As for [`crate::Table::typed`].
    pub fn typed<T: Record>(self) -> Result<TypedTransactionTable<'t, T>> {
        let binding = bind::<T>(&self.name(), Arc::clone(self.schema()))?;
        Ok(TypedTransactionTable { table: self, binding, rows: PhantomData })
    }
}

impl<'t, T: Record> TypedTransactionTable<'t, T> {
    /// The table, for all that needs no struct.
    #[must_use]
    pub fn table(&self) -> &TransactionTable<'t> {
        &self.table
    }

    /// Adds a row; returns its row id.
    ///
    /// # Errors
    /// As for [`TransactionTable::insert`].
    pub fn insert(&self, record: &T) -> Result<u64> {
        self.table.insert(&self.row(record)?)
    }

    /// Adds a row or replaces the one with its key; returns its row id.
    ///
    /// # Errors
    /// As for [`TransactionTable::upsert`].
    pub fn upsert(&self, record: &T) -> Result<u64> {
        self.table.upsert(&self.row(record)?)
    }

    /// Adds rows, all or none.
    ///
    /// # Errors
    /// As for [`TransactionTable::insert_many`].
    pub fn insert_many(&self, records: &[T]) -> Result<()> {
        self.table.insert_many(&self.rows(records)?)
    }

    /// Adds or replaces rows, all or none; of two with one key the last wins.
    ///
    /// # Errors
    /// As for [`TransactionTable::upsert_many`].
    pub fn upsert_many(&self, records: &[T]) -> Result<()> {
        self.table.upsert_many(&self.rows(records)?)
    }

    /// The row with a key.
    ///
    /// # Errors
    /// As for [`TransactionTable::get`].
    pub fn get(&self, key: impl ToKey) -> Result<Option<T>> {
        self.record(self.table.get(&key_of::<T>(&key)?)?)
    }

    /// The row with a key, which no other transaction may change before this one commits.
    ///
    /// # Errors
    /// As for [`TransactionTable::get_for_update`].
    pub fn get_for_update(&self, key: impl ToKey) -> Result<Option<T>> {
        self.record(self.table.get_for_update(&key_of::<T>(&key)?)?)
    }

    /// True when there is a row with this key.
    ///
    /// # Errors
    /// As for [`TransactionTable::exists`].
    pub fn exists(&self, key: impl ToKey) -> Result<bool> {
        self.table.exists(&key_of::<T>(&key)?)
    }

    /// Removes the row with a key; false when there is none.
    ///
    /// # Errors
    /// As for [`TransactionTable::delete`].
    pub fn delete(&self, key: impl ToKey) -> Result<bool> {
        self.table.delete(&key_of::<T>(&key)?)
    }

    fn row(&self, record: &T) -> Result<Vec<Value>> {
        self.binding.row(self.table.transaction.engine(), record)
    }

    fn rows(&self, records: &[T]) -> Result<Vec<Vec<Value>>> {
        let row = |(i, record)| self.row(record).map_err(|e| e.in_row(i as u64));
        records.iter().enumerate().map(row).collect()
    }

    fn record(&self, row: Option<Row>) -> Result<Option<T>> {
        row.map(|row| self.binding.record(&row.references())).transpose()
    }
}

impl<T> std::fmt::Debug for TypedTransactionTable<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypedTransactionTable").field("table", &self.table).finish_non_exhaustive()
    }
}
