//! A handle to one table.

use std::sync::Arc;

use esker_format::{Batch, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_query::model::OnConflict;
use esker_table::{Table as TableCore, TableWriter};

use crate::commit::by_key::{FittedUpdate, remove_row};
use crate::commit::fit::{fit_key, fit_row};
use crate::commit::row_sink::StagedRows;
use crate::commit::staged::Staged;
use crate::engine_handle::EngineHandle;
use crate::limits::{CancellationCheck, within_limits, without_limits};
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Limits, Result, Row, SnapshotTable};

/// How often a change of a row with long values begins anew when another commit changes it first.
const ATTEMPTS_MAX: usize = 16;

/// A table of a database. Cheap to clone; usable from any number of threads.
#[derive(Clone)]
pub struct Table {
    pub(crate) engine: EngineHandle,
    /// The table when the handle was made; see [`Table::core`].
    core: Arc<TableCore>,
    /// The schema when the handle was made; its key is that of every later one.
    first_schema: Arc<Schema>,
}

/// How often a row that has expired is looked up again, while others commit.
const LOOKS_MAX: usize = 4;

/// Keys that are brought near at a time.
const KEYS_AT_ONCE: usize = 64;

/// Does something for each of many changes, whose keys are brought near some dozens at a time: the
/// look-ups of these then wait for memory together.
pub(crate) fn for_each_prefetched<C>(
    writer: &mut TableWriter,
    changes: impl IntoIterator<Item = C>,
    hash_of: impl Fn(&C) -> u64,
    mut make: impl FnMut(&mut TableWriter, C) -> Result<()>,
) -> Result<()> {
    let mut changes = changes.into_iter();
    loop {
        let some: Vec<C> = changes.by_ref().take(KEYS_AT_ONCE).collect();
        if some.is_empty() {
            return Ok(());
        }
        if some.len() > 1 {
            let hashes: Vec<u64> = some.iter().map(&hash_of).collect();
            writer.touch(&hashes);
        }
        some.into_iter().try_for_each(|change| make(writer, change))?;
    }
}

impl Table {
    pub(crate) fn new(engine: EngineHandle, core: Arc<TableCore>) -> Self {
        let first_schema = core.schema();
        Self { engine, core, first_schema }
    }

    /// The table that the handle stands for: another one once it was truncated.
    pub(crate) fn core(&self) -> &Arc<TableCore> {
        let mut core = &self.core;
        while let Some(next) = core.successor() {
            core = next;
        }
        core
    }

    /// The table as a reader at a commit sees it.
    ///
    /// # Errors
    /// `NotFound` when that commit or an earlier one has dropped it.
    pub(crate) fn core_as_of(&self, at: u64) -> Result<&Arc<TableCore>> {
        self.refuse_dropped(|| at)?;
        Ok(self.core_at(at))
    }

    /// The table as readers at a commit see it.
    fn core_at(&self, at: u64) -> &Arc<TableCore> {
        let mut core = &self.core;
        while let Some(next) = core.successor().filter(|next| next.created_at() <= at) {
            core = next;
        }
        core
    }

    pub(crate) fn current(&self) -> TableVersion {
        TableVersion::newest(self.core())
    }

    /// Runs a change, again when the schema was changed meanwhile, or another commit changed the
    /// row first while long values were written.
    pub(crate) fn attempt<R>(&self, mut run: impl FnMut(&TableVersion) -> Result<R>) -> Result<R> {
        let mut attempts = 0;
        loop {
            let current = self.current();
            match run(&current) {
                Err(e) if e.kind() != ErrorKind::OutcomeUnknown && current.is_outdated() => {}
                Err(e) if e.kind() == ErrorKind::Conflict && attempts < ATTEMPTS_MAX => {
                    attempts += 1;
                }
                result => return result,
            }
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> String {
        self.core().name().to_string()
    }

    /// The fields and the key.
    #[must_use]
    pub fn schema(&self) -> Arc<Schema> {
        self.core().schema()
    }

    /// Adds a row; returns its row id, which is its key when the key is generated.
    ///
    /// # Errors
    /// `AlreadyExists` when the key does, `InvalidInput` when a value does not fit its field,
    /// `Conflict` when others kept changing the row while values of more than 64 KiB were written.
    /// Nothing is changed then; the same below.
    pub fn insert(&self, row: &[Value]) -> Result<u64> {
        self.put(row, true)
    }

    fn put(&self, row: &[Value], must_be_new: bool) -> Result<u64> {
        self.attempt(|current| self.put_once(current, row, must_be_new))
    }

    /// Adds a row that was put together for a schema; `Conflict` when that is not the newest one.
    #[doc(hidden)]
    pub fn put_for(&self, schema: &Arc<Schema>, row: &[Value], must_be_new: bool) -> Result<u64> {
        let current = self.current();
        if !current.schema.has_same_rows_as(schema) {
            let message = "the schema has changed meanwhile";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        self.put_once(&current, row, must_be_new)
    }

    /// The same for a row of one schema.
    pub(crate) fn put_once(
        &self,
        current: &TableVersion,
        row: &[Value],
        must_be_new: bool,
    ) -> Result<u64> {
        if current.schema.stream().is_some() {
            // The row id that is told is that of the commit, whatever has to be written before.
            let mut batch = Batch::empty(&current.schema);
            batch.push_row(&current.schema, &fit_row(&current.schema, row)?)?;
            return self.engine.commit_batch(current, &batch);
        }
        let row = self.engine.complete_row(current, row)?;
        if must_be_new || !Bug::UpsertWithoutChecks.is_planted() {
            self.engine.test_rows(current, std::slice::from_ref(&row))?;
        }
        self.change(current, |writer, staged| {
            let prepared = writer.prepare_put(&row, must_be_new)?;
            let row_id = prepared.row_id;
            staged.put(row, prepared);
            Ok(row_id)
        })
    }

    /// Adds rows, all or none.
    ///
    /// # Errors
    /// As for [`Table::insert`]; the message says which row. Large ones need memory: `OverBudget`
    /// when there is too little, where [`Table::load`] may do with less.
    pub fn insert_many(&self, rows: &[Vec<Value>]) -> Result<()> {
        self.put_many(rows, &OnConflict::Fail, &without_limits).map(drop)
    }

    /// The same within limits: what takes longer than it may, or is cancelled, has added nothing.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use esker::{DataType, ErrorKind, Limits, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("id", DataType::I64).primary_key(["id"]).build()?;
    /// let table = db.create_table("t", schema)?;
    /// let limits = Limits { timeout: Some(Duration::ZERO), ..Limits::default() };
    /// let late = table.insert_many_with(&[vec![1i64.into()], vec![2i64.into()]], &limits);
    /// assert_eq!(late.unwrap_err().kind(), ErrorKind::TimedOut);
    /// assert_eq!(table.count()?, 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Table::insert_many`]; `TimedOut`, `Cancelled`.
    pub fn insert_many_with(&self, rows: &[Vec<Value>], limits: &Limits) -> Result<()> {
        let put = |check_cancelled: CancellationCheck<'_>| {
            self.put_many(rows, &OnConflict::Fail, check_cancelled)
        };
        within_limits(&self.engine, limits, put).map(drop)
    }

    /// Adds a row or replaces the one with its key; returns its row id.
    ///
    /// # Errors
    /// `InvalidInput` when a value does not fit its field.
    pub fn upsert(&self, row: &[Value]) -> Result<u64> {
        self.put(row, false)
    }

    /// Adds or replaces rows, all or none; of two with one key the last wins.
    ///
    /// # Errors
    /// As for [`Table::insert_many`].
    pub fn upsert_many(&self, rows: &[Vec<Value>]) -> Result<()> {
        self.put_many(rows, &OnConflict::Replace, &without_limits).map(drop)
    }

    /// The same within limits, as [`Table::insert_many_with`].
    ///
    /// # Errors
    /// As for [`Table::upsert_many`]; `TimedOut`, `Cancelled`.
    pub fn upsert_many_with(&self, rows: &[Vec<Value>], limits: &Limits) -> Result<()> {
        let put = |check_cancelled: CancellationCheck<'_>| {
            self.put_many(rows, &OnConflict::Replace, check_cancelled)
        };
        within_limits(&self.engine, limits, put).map(drop)
    }

    /// Changes some fields of the row with a key; false when there is none.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown field, or a value that does not fit; `AlreadyExists` when
    /// another row has the key that it gets.
    pub fn update(&self, key: &[Value], changes: &[(&str, Value)]) -> Result<bool> {
        self.attempt(|current| self.update_once(current, key, changes))
    }

    fn update_once(
        &self,
        current: &TableVersion,
        key: &[Value],
        changes: &[(&str, Value)],
    ) -> Result<bool> {
        let update = FittedUpdate::of(&current.schema, key, changes)?;
        if update.changes_key(&current.schema) {
            return self.transacted(|table| table.update(key, changes));
        }
        let hash = current.hash(&update.key);
        self.change(current, |writer, staged| {
            update.apply(&mut StagedRows::new(&self.engine, current, (writer, staged)), hash)
        })
    }

    /// Removes the row with a key; false when there is none.
    ///
    /// # Errors
    /// `InvalidInput` when the key does not fit the schema.
    pub fn delete(&self, key: &[Value]) -> Result<bool> {
        let key = fit_key(&self.first_schema, key)?;
        self.attempt(|current| {
            let hash = current.hash(&key);
            self.change(current, |writer, staged| {
                let mut rows = StagedRows::new(&self.engine, current, (writer, staged));
                remove_row(&mut rows, &key, hash)
            })
        })
    }

    pub(crate) fn change<'r, R>(
        &self,
        current: &'r TableVersion,
        stage: impl FnOnce(&mut TableWriter, &mut Staged<'r>) -> Result<R>,
    ) -> Result<R> {
        self.engine.commit_rows(current, stage)
    }

    /// The row with a key.
    ///
    /// # Errors
    /// `InvalidInput` when the key does not fit the schema, `Corrupt` when the row is damaged.
    pub fn get(&self, key: &[Value]) -> Result<Option<Row>> {
        let key = fit_key(&self.first_schema, key)?;
        let row = self.find(&key, |found| Ok((Arc::clone(found.schema), found.values()?)))?;
        Ok(row.map(|(schema, values)| Row::new(schema, values)))
    }

    /// The rows with some keys, in the order of the keys, all as of one commit.
    ///
    /// # Errors
    /// As for [`Table::get`].
    pub fn get_many(&self, keys: &[Vec<Value>]) -> Result<Vec<Option<Row>>> {
        let snapshot = self.snapshot()?;
        keys.iter().map(|key| snapshot.get(key)).collect()
    }

    pub(crate) fn first_schema(&self) -> &Schema {
        &self.first_schema
    }

    /// True when there is a row with this key.
    ///
    /// # Errors
    /// As for [`Table::get`].
    pub fn exists(&self, key: &[Value]) -> Result<bool> {
        let key = fit_key(&self.first_schema, key)?;
        Ok(self.find(&key, |_| Ok(()))?.is_some())
    }

    pub(crate) fn find<R>(
        &self,
        key: &[ValueRef<'_>],
        mut take: impl FnMut(&esker_table::Found<'_>) -> esker_table::Result<R>,
    ) -> Result<Option<R>> {
        self.refuse_dropped(|| self.engine.visible())?;
        let mut looks = 0;
        loop {
            let moves_back = self.engine.date_moves_back();
            let mut at = self.engine.visible();
            let core = self.core_at(at);
            let mut has_changed = false;
            let mut may_expire = false;
            let read_at = || {
                at = self.engine.visible();
                at
            };
            let found = core.find(key, read_at, |found| {
                // The time is read after the row: it has not been dropped for it yet.
                may_expire = found.may_expire();
                let gone = may_expire && found.has_expired(self.engine.now())?;
                has_changed = gone && !std::ptr::eq(&**found.schema, &*core.schema());
                if gone { Ok(None) } else { take(&found).map(Some) }
            })?;
            // The date was taken back meanwhile, and what it had ended may have been there at `at`.
            if may_expire && moves_back != self.engine.date_moves_back() {
                continue;
            }
            // It may have got a later end after `at`, and before the time was read; so may the
            // table, which another field says then.
            let is_over = has_changed || self.engine.visible() > at;
            if matches!(found, Some(None)) && looks < LOOKS_MAX && is_over {
                looks += 1;
                continue;
            }
            // A merge may have dropped what commit `at` saw, since it was not registered.
            if found.is_some() || core.drop_horizon() <= at {
                return Ok(found.flatten());
            }
        }
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// None today.
    pub fn count(&self) -> Result<u64> {
        self.snapshot()?.count()
    }

    /// This table as of the newest commit.
    ///
    /// # Errors
    /// `OverBudget` when too many snapshots are open.
    pub fn snapshot(&self) -> Result<SnapshotTable> {
        let snapshot = crate::Snapshot::take(&self.engine)?;
        snapshot.table_core(self.core_as_of(snapshot.commit())?)
    }

    /// Refuses a table that a reader does not see any more. A drop that is not visible yet may
    /// never be.
    fn refuse_dropped(&self, read_at: impl FnOnce() -> u64) -> Result<()> {
        let dropped_at = self.core().dropped_at();
        if dropped_at.is_none_or(|commit| commit > read_at()) {
            return Ok(());
        }
        self.engine.acknowledge_published()?;
        Err(Error::new(ErrorKind::NotFound, "the table has been dropped"))
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("name", &self.name()).finish_non_exhaustive()
    }
}
