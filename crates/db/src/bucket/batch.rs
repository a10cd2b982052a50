//! Changes of several buckets and tables in one commit.

use std::collections::BTreeMap;

use esker_format::key::primary_key;
use esker_format::{TableId, Value, ValueRef};
use esker_table::TableWriter;
use esker_table::table::Existing;

use super::{Bucket, KeyCodec, PutOptions, TypedBucket, ValueCodec, codec, row};
use crate::commit::fit::{fit_key, fit_row};
use crate::commit::options::CommitOptions;
use crate::commit::staged::key_bytes;
use crate::commit::write_set::{TableWrites, WriteSet};
use crate::engine_handle::EngineHandle;
use crate::limits::{CancellationCheck, within_limits, without_limits};
use crate::table::for_each_prefetched;
use crate::{Database, Error, ErrorKind, Limits, Result, Table};
use std::sync::Arc;

/// How often a batch begins anew when a schema is changed meanwhile.
const ATTEMPTS_MAX: usize = 16;

/// Changes of any number of buckets and tables of one database, which become visible and durable
/// together, or not at all. Of two changes of one key the last one counts. Nothing is read, and
/// nothing happens, before [`Batch::commit`]; a batch that is dropped did nothing.
///
/// ```
/// use esker::{DataType, Options, Schema};
///
/// let db = Options::new().memory()?;
/// let schema = Schema::builder().field("id", DataType::I64).field("text", DataType::Text);
/// let orders = db.create_table("orders", schema.primary_key(["id"]).build()?)?;
/// let (sessions, by_user) = (db.bucket("sessions")?, db.bucket("sessions by user")?);
/// let mut batch = db.batch();
/// batch.put(&sessions, b"s1", b"ada")?;
/// batch.put(&by_user, b"ada s1", b"")?;
/// batch.upsert(&orders, &[1i64.into(), "tea".into()])?;
/// batch.commit()?;
/// assert_eq!((sessions.len()?, by_user.len()?, orders.count()?), (1, 1, 1));
/// # Ok::<(), esker::Error>(())
/// ```
pub struct Batch {
    engine: EngineHandle,
    parts: BTreeMap<TableId, Changes>,
    /// How many changes were made.
    made: u64,
    sync: Option<bool>,
}

/// Changes of one table, by key, each with its number among all.
struct Changes {
    table: Table,
    by_key: BTreeMap<Vec<u8>, (u64, Change)>,
}

/// What is changed of one table as it is now. A table that was cleared meanwhile may have been two
/// when the batch was filled.
struct BatchTarget<'a> {
    table: &'a Table,
    /// By rising key.
    changes: Vec<&'a Change>,
}

enum Change {
    Put { row: Vec<Value>, must_be_new: bool },
    Delete { key: Vec<Value> },
}

impl Database {
    /// Starts a batch.
    #[must_use]
    pub fn batch(&self) -> Batch {
        Batch::new(self.engine().clone())
    }
}

impl Bucket {
    /// Starts a batch on the bucket's database, which is as durable as writes by this handle.
    #[must_use]
    pub fn batch(&self) -> Batch {
        Batch { sync: self.options.sync, ..Batch::new(self.table.engine.clone()) }
    }
}

impl Batch {
    fn new(engine: EngineHandle) -> Self {
        Self { engine, parts: BTreeMap::new(), made: 0, sync: None }
    }

    /// How many keys it changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.values().map(|part| part.by_key.len()).sum()
    }

    /// True when it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether [`Batch::commit`] returns only once all is on the disk (`true`), or at once
    /// (`false`), whatever the durability of the database is.
    pub fn sync(&mut self, sync: bool) -> &mut Self {
        self.sync = Some(sync);
        self
    }

    /// Puts an entry of a bucket.
    ///
    /// # Errors
    /// `InvalidInput` for a key that is too long, and for a bucket of another database.
    pub fn put(
        &mut self,
        bucket: &Bucket,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<&mut Self> {
        self.put_with(bucket, key, value, PutOptions::new())
    }

    /// Puts an entry of a bucket with a time to live of its own, which begins now.
    ///
    /// # Errors
    /// As for [`Batch::put`].
    pub fn put_with(
        &mut self,
        bucket: &Bucket,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: impl Into<PutOptions>,
    ) -> Result<&mut Self> {
        let (key, options) = (bucket.key(key.as_ref())?, options.into());
        let expires_at = bucket.expires_at(&bucket.table.current(), options.ttl)?;
        let row = row(key, bucket.value(value.as_ref())?, expires_at);
        self.note(&bucket.table, key.to_vec(), Change::Put { row, must_be_new: false })
    }

    /// Puts an entry of a bucket of types.
    ///
    /// ```
    /// # let db = esker::Options::new().memory()?;
    /// let ages = db.bucket("ages")?.typed::<String, u8>();
    /// let mut batch = db.batch();
    /// batch.put_typed(&ages, &"ada".to_owned(), &36)?;
    /// batch.commit()?;
    /// assert_eq!(ages.get(&"ada".to_owned())?, Some(36));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Batch::put`].
    pub fn put_typed<K: KeyCodec, V: ValueCodec>(
        &mut self,
        bucket: &TypedBucket<K, V>,
        key: &K,
        value: &V,
    ) -> Result<&mut Self> {
        self.put(bucket.as_bytes(), codec::key_bytes(key), codec::value_bytes(value)?)
    }

    /// Removes an entry of a bucket of types, if it is there.
    ///
    /// # Errors
    /// As for [`Batch::put`].
    pub fn remove_typed<K: KeyCodec, V: ValueCodec>(
        &mut self,
        bucket: &TypedBucket<K, V>,
        key: &K,
    ) -> Result<&mut Self> {
        self.remove(bucket.as_bytes(), codec::key_bytes(key))
    }

    /// Removes an entry of a bucket, if it is there.
    ///
    /// # Errors
    /// As for [`Batch::put`].
    pub fn remove(&mut self, bucket: &Bucket, key: impl AsRef<[u8]>) -> Result<&mut Self> {
        let key = bucket.key(key.as_ref())?;
        let change = Change::Delete { key: vec![Value::Bytes(key.to_vec())] };
        self.note(&bucket.table, key.to_vec(), change)
    }

    /// Adds a row of a table with key fields. [`Batch::commit`] fails when its key exists.
    ///
    /// # Errors
    /// `InvalidInput` for values that do not fit, for a table with a generated key, and for one of
    /// another database; `AlreadyExists` when the batch has a row with this key.
    pub fn insert(&mut self, table: &Table, row: &[Value]) -> Result<&mut Self> {
        self.put_row(table, row, true)
    }

    /// Adds a row of a table with key fields, or replaces the one with its key.
    ///
    /// # Errors
    /// `InvalidInput` as for [`Batch::insert`].
    pub fn upsert(&mut self, table: &Table, row: &[Value]) -> Result<&mut Self> {
        self.put_row(table, row, false)
    }

    fn put_row(&mut self, table: &Table, row: &[Value], must_be_new: bool) -> Result<&mut Self> {
        let schema = table.schema();
        let row = fit_row(&schema, row)?.into_owned();
        let key = table_key(table, key_bytes(&schema, &row))?;
        let before = self.changes(table)?.get(&key).map(|(_, change)| change);
        let must_be_new = match before {
            Some(Change::Put { .. }) if must_be_new => {
                let message = "the batch has a row with this key already";
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            // The row of the batch was to be a new one.
            Some(Change::Put { must_be_new, .. }) => *must_be_new,
            Some(Change::Delete { .. }) => false,
            None => must_be_new,
        };
        self.note(table, key, Change::Put { row, must_be_new })
    }

    /// Removes the row with a key, if it is there.
    ///
    /// # Errors
    /// `InvalidInput` when the key does not fit, and as for [`Batch::insert`].
    pub fn delete(&mut self, table: &Table, key: &[Value]) -> Result<&mut Self> {
        let schema = table.schema();
        let fitted: Vec<Value> =
            fit_key(&schema, key)?.into_iter().map(ValueRef::to_owned).collect();
        let bytes = primary_key(&schema, fitted.iter().map(Value::as_ref));
        let bytes = table_key(table, bytes)?;
        self.note(table, bytes, Change::Delete { key: fitted })
    }

    fn note(&mut self, table: &Table, key: Vec<u8>, change: Change) -> Result<&mut Self> {
        self.made += 1;
        let made = self.made;
        self.changes(table)?.insert(key, (made, change));
        Ok(self)
    }

    fn changes(&mut self, table: &Table) -> Result<&mut BTreeMap<Vec<u8>, (u64, Change)>> {
        if !Arc::ptr_eq(&table.engine, &self.engine) {
            let name = table.name();
            return Err(Error::invalid(format!("{name:?} is of another database than the batch")));
        }
        let empty = || Changes { table: table.clone(), by_key: BTreeMap::new() };
        Ok(&mut self.parts.entry(table.core().id()).or_insert_with(empty).by_key)
    }

    /// Makes all changes, in one commit.
    ///
    /// # Errors
    /// `AlreadyExists` naming a key that an inserted row has, `NotFound` when a table has been
    /// dropped, `ConstraintViolated` when a row does not meet a check, `OverBudget` when there is
    /// not enough memory to write it. Nothing is changed then.
    pub fn commit(self) -> Result<()> {
        self.commit_while(&without_limits)
    }

    /// The same within limits: what takes longer than it may, or is cancelled, has changed nothing.
    ///
    /// # Errors
    /// As for [`Batch::commit`]; `TimedOut`, `Cancelled`.
    pub fn commit_with(self, limits: &Limits) -> Result<()> {
        let engine = self.engine.clone();
        within_limits(&engine, limits, |check_cancelled| self.commit_while(check_cancelled))
    }

    fn commit_while(self, check_cancelled: CancellationCheck<'_>) -> Result<()> {
        let mut attempts = 0;
        loop {
            let now = self.by_table();
            let parts: Vec<TableWrites<'_>> =
                now.iter().map(|now| TableWrites::new(now.table.current())).collect();
            let tables: Vec<_> = parts.iter().map(|part| part.current.core.id()).collect();
            let commit_options = CommitOptions { sync: self.sync, ..CommitOptions::default() };
            let outcome = self.engine.commit_writes(
                WriteSet::Many(parts),
                commit_options,
                |at, writer, part| {
                    let Some(now) = now.get(at) else {
                        let message = format!("a batch of {} tables stages table {at}", now.len());
                        return Err(Error::corrupt(message));
                    };
                    now.stage(writer, part, check_cancelled)
                },
            );
            // A table that was cleared meanwhile is another one now.
            let has_moved = now.iter().zip(tables).any(|(now, id)| now.table.core().id() != id);
            match outcome {
                Err(e) if e.kind() == ErrorKind::Conflict && attempts < ATTEMPTS_MAX => {
                    attempts += 1;
                }
                Err(e) if has_moved && e.kind() == ErrorKind::NotFound => {}
                other => return other.map(drop),
            }
        }
    }

    /// The changes by the tables that there are now; of two of one key the later one.
    fn by_table(&self) -> Vec<BatchTarget<'_>> {
        let mut tables: BTreeMap<TableId, Vec<&Changes>> = BTreeMap::new();
        for changes in self.parts.values() {
            tables.entry(changes.table.core().id()).or_default().push(changes);
        }
        tables.values().filter_map(|parts| BatchTarget::of(parts)).collect()
    }
}

impl<'a> BatchTarget<'a> {
    fn of(parts: &[&'a Changes]) -> Option<Self> {
        let (first, others) = parts.split_first()?;
        let mut by_key: BTreeMap<&[u8], &(u64, Change)> = BTreeMap::new();
        if !others.is_empty() {
            for (key, change) in parts.iter().flat_map(|part| &part.by_key) {
                let known = by_key.entry(key).or_insert(change);
                if known.0 < change.0 {
                    *known = change;
                }
            }
        }
        let changes = match others {
            [] => first.by_key.values().map(|(_, change)| change).collect(),
            _ => by_key.values().map(|(_, change)| change).collect(),
        };
        Some(Self { table: &first.table, changes })
    }

    fn stage(
        &self,
        writer: &mut TableWriter,
        part: &mut TableWrites<'a>,
        check_cancelled: CancellationCheck<'_>,
    ) -> Result<()> {
        let current = part.current.clone();
        let hash_of = |change: &&Change| match change {
            Change::Put { row, .. } => current.hash_of_row(row),
            Change::Delete { key } => current.core.hasher().hash_key(key.iter().map(Value::as_ref)),
        };
        let changes = self.changes.iter().copied();
        let mut looked = 0;
        for_each_prefetched(writer, changes, hash_of, |writer, change| {
            check_cancelled(looked)?;
            looked += 1;
            self.stage_one(writer, part, change)
        })
    }

    fn stage_one(
        &self,
        writer: &mut TableWriter,
        part: &mut TableWrites<'a>,
        change: &'a Change,
    ) -> Result<()> {
        match change {
            Change::Put { row, must_be_new } => {
                let row = self.table.engine.complete_row(&part.current, row)?;
                self.table.engine.test_rows(&part.current, std::slice::from_ref(&row))?;
                let prepared = writer.prepare_put(&row, *must_be_new)?;
                part.staged.put(row, prepared);
            }
            Change::Delete { key } => {
                let key: Vec<_> = key.iter().map(Value::as_ref).collect();
                let existing = writer.existing(&key, part.current.hash(&key))?;
                let existing = existing.filter(Existing::is_alive);
                existing.into_iter().for_each(|existing| part.staged.delete(existing));
            }
        }
        Ok(())
    }
}

fn table_key(table: &Table, key: Vec<u8>) -> Result<Vec<u8>> {
    if table.schema().key_positions().is_empty() {
        let name = table.name();
        let message = format!("table {name:?} has a generated key: a batch needs key fields");
        return Err(Error::invalid(message));
    }
    Ok(key)
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteBatch").field("changes", &self.len()).finish_non_exhaustive()
    }
}
