//! A table within a transaction whose rows are structs.

use std::marker::PhantomData;
use std::sync::Arc;

use esker_format::Value;

use super::typed_table::{bind, expect_key, key_of, keys_of};
use super::{Binding, Record, ToKey, TypedRows};
use crate::catalog::table_or_create::open_or_create;
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
    binding: Arc<Binding>,
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

    /// A table for rows of a type, which is created as a part of the transaction when it sees none:
    /// see [`Transaction::table_or_create`] and [`crate::Database::table_or_create_of`].
    ///
    /// # Errors
    /// As for these.
    pub fn table_or_create_of<T: Record>(
        &self,
        name: &str,
    ) -> Result<TypedTransactionTable<'_, T>> {
        let open = || {
            let table = self.table_of::<T>(name)?;
            expect_key::<T>(name, &table.binding)?;
            Ok(table)
        };
        open_or_create(open, || self.create_table_of(name))
    }
}

impl<'t> TransactionTable<'t> {
    /// This table, as one of rows of a type.
    ///
    /// # Errors
    /// As for [`crate::Table::typed`].
    pub fn typed<T: Record>(self) -> Result<TypedTransactionTable<'t, T>> {
        let binding = bind::<T>(&self.name(), Arc::clone(self.schema()))?;
        Ok(TypedTransactionTable::new(self, Arc::new(binding)))
    }
}

impl<'t, T: Record> TypedTransactionTable<'t, T> {
    pub(super) fn new(table: TransactionTable<'t>, binding: Arc<Binding>) -> Self {
        Self { table, binding, rows: PhantomData }
    }

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

    /// Removes the rows with some keys, all or none; returns how many there were.
    ///
    /// # Errors
    /// As for [`TransactionTable::delete_many`].
    pub fn delete_many<K: ToKey>(&self, keys: impl IntoIterator<Item = K>) -> Result<u64> {
        self.table.delete_many(&keys_of::<T, K>(keys)?)
    }

    /// Removes all rows that the transaction sees; returns how many.
    ///
    /// # Errors
    /// As for [`TransactionTable::clear`].
    pub fn clear(&self) -> Result<u64> {
        self.table.clear()
    }

    /// Changes the row with a key by a function; false when there is none. What the struct does not
    /// have stays as it is.
    ///
    /// # Errors
    /// `InvalidInput` naming a field of the key that was changed, or a value that does not fit; as
    /// for [`TransactionTable::update`]; `Conflict` when another thread changes the row in the same
    /// transaction meanwhile.
    pub fn update(&self, key: impl ToKey, change: impl FnOnce(&mut T)) -> Result<bool> {
        let key = key_of::<T>(&key)?;
        let Some(row) = self.table.get(&key)? else { return Ok(false) };
        let changes = self.binding.changes(self.table.transaction.engine(), &row, change)?;
        match changes.as_slice() {
            [] => Ok(true),
            changes => self.table.update_seen(&key, &row, changes),
        }
    }

    /// All rows as the transaction has them now, in storage order.
    ///
    /// # Errors
    /// As for [`TransactionTable::iter`].
    pub fn iter(&self) -> Result<TypedRows<T>> {
        Ok(TypedRows::new(self.table.as_it_is()?, Arc::clone(&self.binding)))
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
