//! A table whose rows are structs.

use std::marker::PhantomData;
use std::sync::Arc;

use esker_format::{Schema, Value};
use esker_query::model::OnConflict;
use esker_vfs::sync::ArcSwap;

use super::writer::declared;
use super::{Binding, Record, ToKey, TypedRows, TypedTransactionTable};
use crate::catalog::table_or_create::open_or_create;
use crate::limits::without_limits;
use crate::{Database, Result, Table, Transaction};

/// A [`Table`] whose rows are structs of one type. Cheap to clone; usable from any number of
/// threads.
///
/// The table may have more fields than the struct. They get their defaults in rows that are
/// written, those that replace others included.
pub struct TypedTable<T> {
    table: Table,
    /// For the schema that was seen last.
    binding: Arc<ArcSwap<Binding>>,
    rows: PhantomData<fn() -> T>,
}

impl<T> Clone for TypedTable<T> {
    fn clone(&self) -> Self {
        let (table, binding) = (self.table.clone(), Arc::clone(&self.binding));
        Self { table, binding, rows: PhantomData }
    }
}

impl Database {
    /// Creates a table for rows of a type.
    ///
    /// # Errors
    /// As for [`Database::create_table`] and [`Record::schema`].
    pub fn create_table_of<T: Record>(&self, name: &str) -> Result<TypedTable<T>> {
        self.create_table(name, T::schema()?)?.typed()
    }

    /// A table, as one of rows of a type. An index that the struct names and the table does not
    /// have is not made: answers are the same without it, and [`Database::create_index`] makes it.
    ///
    /// # Errors
    /// `NotFound` when there is no such table, and as for [`Table::typed`].
    pub fn table_of<T: Record>(&self, name: &str) -> Result<TypedTable<T>> {
        self.table(name)?.typed()
    }

    /// A table for rows of a type, which is created with its indexes when there is none: of threads
    /// that ask at the same time one creates it, and all get it.
    ///
    /// ```
    /// use esker::{Options, Record};
    ///
    /// #[derive(Record)]
    /// struct Visit {
    ///     #[esker(key)]
    ///     page: String,
    ///     count: u64,
    /// }
    ///
    /// #[derive(Debug, Record)]
    /// struct Numbered {
    ///     #[esker(key)]
    ///     page: u32,
    ///     count: u64,
    /// }
    ///
    /// let db = Options::new().memory()?;
    /// db.table_or_create_of::<Visit>("visits")?.insert(&Visit { page: "/".into(), count: 1 })?;
    /// let visits = db.table_or_create_of::<Visit>("visits")?;
    /// assert_eq!(visits.get("/")?.expect("inserted above").count, 1);
    /// let differs = db.table_or_create_of::<Numbered>("visits").unwrap_err();
    /// assert_eq!(
    ///     differs.to_string(),
    ///     r#"table "visits": record Numbered: field "page": expected u32, found text"#
    /// );
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` naming the field about which a table that is there and the struct disagree,
    /// or both keys: see [`Table::typed`]; as for [`Database::create_table_of`], but
    /// `AlreadyExists`.
    pub fn table_or_create_of<T: Record>(&self, name: &str) -> Result<TypedTable<T>> {
        let open = || {
            let table = self.table_of::<T>(name)?;
            expect_key::<T>(name, &table.binding.load())?;
            Ok(table)
        };
        open_or_create(open, || self.create_table_of(name))
    }
}

impl Table {
    /// This table, as one of rows of a type.
    ///
    /// ```
    /// use esker::{DataType, Options, Record, Schema};
    ///
    /// #[derive(Record)]
    /// struct Person {
    ///     name: String,
    ///     born: i16,
    /// }
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("name", DataType::Text).field("born", DataType::I64);
    /// let table = db.create_table("people", schema.primary_key(["name"]).build()?)?;
    /// let error = table.typed::<Person>().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     r#"table "people": record Person: field "born": expected i16, found i64"#
    /// );
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` naming the field about which the two disagree: one that the table does not
    /// have, that the struct cannot hold, without which there can be no row, or that is unique in
    /// the struct and not in the table.
    pub fn typed<T: Record>(&self) -> Result<TypedTable<T>> {
        let binding = bind::<T>(&self.name(), self.schema())?;
        let binding = Arc::new(ArcSwap::new(Arc::new(binding)));
        Ok(TypedTable { table: self.clone(), binding, rows: PhantomData })
    }
}

/// Where the fields of the struct are in a table of this name.
pub(super) fn bind<T: Record>(name: &str, schema: Arc<Schema>) -> Result<Binding> {
    let binding = Binding::new::<T>(schema).and_then(|binding| {
        binding.check_writable::<T>()?;
        binding.check_unique::<T>()?;
        binding.check_references::<T>()?;
        Ok(binding)
    });
    binding.map_err(|e| e.at(format_args!("table {name:?}")))
}

/// Refuses a table of this name that has another key than the struct.
pub(super) fn expect_key<T: Record>(name: &str, binding: &Binding) -> Result<()> {
    binding.check_key::<T>().map_err(|e| e.at(format_args!("table {name:?}")))
}

impl<T: Record> TypedTable<T> {
    /// The table, for all that needs no struct.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The binding for a schema: the newest one, but for the moment of a change.
    fn binding(&self, schema: &Arc<Schema>) -> Result<Arc<Binding>> {
        let known = self.binding.load_full();
        if known.is_of(schema) {
            return Ok(known);
        }
        let binding = Arc::new(bind::<T>(&self.table.name(), Arc::clone(schema))?);
        self.binding.store(Arc::clone(&binding));
        Ok(binding)
    }

    /// Adds a row; returns its row id.
    ///
    /// # Errors
    /// As for [`Table::insert`]; `InvalidInput` when the table was changed and the struct no longer
    /// agrees with it. The same below.
    pub fn insert(&self, record: &T) -> Result<u64> {
        self.put(record, true)
    }

    /// Adds a row or replaces the one with its key; returns its row id.
    ///
    /// # Errors
    /// As for [`Table::upsert`].
    pub fn upsert(&self, record: &T) -> Result<u64> {
        self.put(record, false)
    }

    fn put(&self, record: &T, must_be_new: bool) -> Result<u64> {
        self.table.attempt(|current| {
            let row = self.binding(&current.schema)?.row(&self.table.engine, record)?;
            self.table.put_once(current, &row, must_be_new)
        })
    }

    /// Adds rows, all or none.
    ///
    /// # Errors
    /// As for [`Table::insert_many`].
    pub fn insert_many(&self, records: &[T]) -> Result<()> {
        self.put_many(records, &OnConflict::Fail)
    }

    /// Adds or replaces rows, all or none; of two with one key the last wins.
    ///
    /// # Errors
    /// As for [`Table::upsert_many`].
    pub fn upsert_many(&self, records: &[T]) -> Result<()> {
        self.put_many(records, &OnConflict::Replace)
    }

    fn put_many(&self, records: &[T], on_conflict: &OnConflict) -> Result<()> {
        self.table.attempt(|current| {
            let binding = self.binding(&current.schema)?;
            let row = |(i, record)| {
                let row = binding.row(&self.table.engine, record);
                row.map_err(|e| e.in_row(i as u64))
            };
            let rows = records.iter().enumerate().map(row).collect::<Result<Vec<_>>>()?;
            self.table.put_batch(current, &rows, on_conflict, &without_limits).map(drop)
        })
    }

    /// The row with a key.
    ///
    /// # Errors
    /// As for [`Table::get`].
    pub fn get(&self, key: impl ToKey) -> Result<Option<T>> {
        let Some(row) = self.table.get(&key_of::<T>(&key)?)? else { return Ok(None) };
        self.binding(row.shared_schema())?.record(&row.references()).map(Some)
    }

    /// True when there is a row with this key.
    ///
    /// # Errors
    /// As for [`Table::exists`].
    pub fn exists(&self, key: impl ToKey) -> Result<bool> {
        self.table.exists(&key_of::<T>(&key)?)
    }

    /// Removes the row with a key; false when there is none.
    ///
    /// # Errors
    /// As for [`Table::delete`].
    pub fn delete(&self, key: impl ToKey) -> Result<bool> {
        self.table.delete(&key_of::<T>(&key)?)
    }

    /// Removes the rows with some keys, all in one commit; returns how many there were.
    ///
    /// ```
    /// # use esker::{Options, Record};
    /// #[derive(Record)]
    /// struct Name {
    ///     #[esker(key)]
    ///     name: String,
    /// }
    ///
    /// let db = Options::new().memory()?;
    /// let names = db.create_table_of::<Name>("names")?;
    /// names.insert_many(&["Ada", "Alan", "Grace"].map(|name| Name { name: name.into() }))?;
    /// assert_eq!(names.delete_many(["Ada", "Grace", "Kurt"])?, 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Table::delete_many`].
    pub fn delete_many<K: ToKey>(&self, keys: impl IntoIterator<Item = K>) -> Result<u64> {
        self.table.delete_many(&keys_of::<T, K>(keys)?)
    }

    /// Removes all rows at once, however many there are: see [`Table::clear`].
    ///
    /// # Errors
    /// As for [`Table::clear`].
    pub fn clear(&self) -> Result<()> {
        self.table.clear()
    }

    /// Changes the row with a key by a function; false when there is none. No commit changes the
    /// row between its reading and its writing: where one comes first, the function is called again
    /// with the row as it is then. What the struct does not have stays as it is, and a row that the
    /// function leaves as it was is not written.
    ///
    /// ```
    /// # use esker::{Options, Record};
    /// #[derive(Record)]
    /// struct Account {
    ///     #[esker(key)]
    ///     owner: String,
    ///     cents: i64,
    /// }
    ///
    /// let db = Options::new().memory()?;
    /// let accounts = db.create_table_of::<Account>("accounts")?;
    /// accounts.insert(&Account { owner: "ada".into(), cents: 100 })?;
    /// assert!(accounts.update("ada", |account| account.cents += 20)?);
    /// assert_eq!(accounts.get("ada")?.expect("inserted above").cents, 120);
    /// assert!(!accounts.update("bob", |account| account.cents += 20)?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` naming a field of the key that was changed, or a value that does not fit;
    /// `AlreadyExists` for a unique value that another row has; as for [`Database::transact`].
    /// Nothing is changed then.
    pub fn update(&self, key: impl ToKey, mut change: impl FnMut(&mut T)) -> Result<bool> {
        let key = key_of::<T>(&key)?;
        Transaction::run(&self.table.engine, |transaction| {
            let table = transaction.table_by_handle(&self.table)?;
            let binding = self.binding(table.schema())?;
            TypedTransactionTable::new(table, binding).update(key.as_slice(), &mut change)
        })
    }

    /// All rows as of the newest commit, in storage order: see [`Table::iter`].
    ///
    /// ```
    /// # use esker::{Options, Record};
    /// #[derive(Record)]
    /// struct Reading {
    ///     celsius: f64,
    /// }
    ///
    /// let db = Options::new().memory()?;
    /// let readings = db.create_table_of::<Reading>("readings")?;
    /// readings.insert_many(&[Reading { celsius: 19.5 }, Reading { celsius: 21.0 }])?;
    /// let mut warmest = f64::MIN;
    /// for reading in readings.iter()? {
    ///     warmest = warmest.max(reading?.celsius);
    /// }
    /// assert_eq!(warmest, 21.0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Table::iter`].
    pub fn iter(&self) -> Result<TypedRows<T>> {
        let snapshot = self.table.snapshot()?;
        let binding = self.binding(snapshot.schema())?;
        Ok(TypedRows::new(snapshot, binding))
    }

    /// Hands every row, with its row id, to `visit`, in storage order, all as of one commit.
    ///
    /// ```
    /// # use esker::{Options, Record};
    /// #[derive(Record)]
    /// struct Reading {
    ///     celsius: f64,
    /// }
    ///
    /// let db = Options::new().memory()?;
    /// let readings = db.create_table_of::<Reading>("readings")?;
    /// readings.insert_many(&[Reading { celsius: 19.5 }, Reading { celsius: 21.0 }])?;
    /// let mut warmest = f64::MIN;
    /// readings.for_each(|_, reading| {
    ///     warmest = warmest.max(reading.celsius);
    ///     Ok(())
    /// })?;
    /// assert_eq!(warmest, 21.0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; whatever `visit` returns.
    pub fn for_each(&self, mut visit: impl FnMut(u64, T) -> Result<()>) -> Result<()> {
        let snapshot = self.table.snapshot()?;
        let binding = self.binding(snapshot.schema())?;
        snapshot.for_each(|row_id, row| visit(row_id, binding.record(row)?))
    }
}

/// A key as the fields of the struct store it.
pub(super) fn key_of<T: Record>(key: &impl ToKey) -> Result<Vec<Value>> {
    let mut key = key.to_key()?;
    let fields = T::FIELDS.iter().filter(|field| field.is_key);
    for (value, field) in key.iter_mut().zip(fields) {
        *value = declared(std::mem::take(value), field.data_type)
            .map_err(|e| e.at(format_args!("field {:?}", field.name)))?;
    }
    Ok(key)
}

/// Keys as the fields of the struct store them.
pub(super) fn keys_of<T: Record, K: ToKey>(
    keys: impl IntoIterator<Item = K>,
) -> Result<Vec<Vec<Value>>> {
    let keys = keys.into_iter().enumerate();
    keys.map(|(i, key)| key_of::<T>(&key).map_err(|e| e.at(format_args!("key {i}")))).collect()
}

impl<T> std::fmt::Debug for TypedTable<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypedTable").field("table", &self.table).finish_non_exhaustive()
    }
}
