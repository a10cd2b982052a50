//! Rows of a table within a transaction.

use std::borrow::Cow;
use std::sync::Arc;

use esker_format::key::primary_key;
use esker_format::{Batch, Schema, Value, ValueRef};

use super::delta::KnownKey;
use super::moved_rows::Lifted;
use super::{State, Transaction};
use crate::catalog::generated::RowBefore;
use crate::commit::by_key::{FittedUpdate, remove_row};
use crate::commit::fit::{fit_key, refuse_long_values};
use crate::commit::row_sink::RowSink;
use crate::limits::{CancellationCheck, within_limits, without_limits};
use crate::table_version::TableVersion;
use crate::transaction::write_buffer::{BaseVersion, Change, PendingVersion};
use crate::{Error, ErrorKind, KeyRange, Limits, Result, Row, SnapshotTable, Table, TableRows};

/// A table within a transaction: as of its snapshot, with its changes.
pub struct TransactionTable<'t> {
    pub(crate) transaction: &'t Transaction,
    pub(crate) current: TableVersion,
}

/// A row as a transaction sees it, with what its snapshot has under its key.
pub(crate) struct Seen {
    pub row: Option<Vec<Value>>,
    pub base: BaseVersion,
    pub new_row_id: u64,
}

impl Transaction {
    /// A table as of the transaction's snapshot.
    ///
    /// # Errors
    /// `NotFound` when there was no such table when it began.
    pub fn table(&self, name: &str) -> Result<TransactionTable<'_>> {
        self.settle()?;
        let current = self.current(&self.state(), name)?;
        Ok(TransactionTable { transaction: self, current })
    }

    /// The table that a handle stands for, whatever its name is now.
    ///
    /// # Errors
    /// `NotFound` when it had been dropped before the transaction began.
    pub(crate) fn table_by_handle(&self, table: &Table) -> Result<TransactionTable<'_>> {
        self.settle()?;
        let core = Arc::clone(table.core_as_of(self.read_at())?);
        let current = self.version_of(&self.state(), core)?;
        Ok(TransactionTable { transaction: self, current })
    }
}

impl<'t> TransactionTable<'t> {
    /// The name that others know it by; that of a table the transaction has created.
    #[must_use]
    pub fn name(&self) -> String {
        self.current.core.name().to_string()
    }

    /// The fields and the key.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.current.schema
    }

    /// The row with a key.
    ///
    /// # Errors
    /// As for [`crate::Table::get`].
    pub fn get(&self, key: &[Value]) -> Result<Option<Row>> {
        let key = fit_key(self.schema(), key)?;
        let mut state = self.transaction.state();
        let seen = self.see(&mut state, &key)?;
        Ok(seen.row.map(|row| Row::new(Arc::clone(self.schema()), row)))
    }

    /// The rows with some keys, in the order of the keys.
    ///
    /// # Errors
    /// As for [`TransactionTable::get`].
    pub fn get_many(&self, keys: &[Vec<Value>]) -> Result<Vec<Option<Row>>> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    /// The row with a key, which no other transaction may change before this one commits: else the
    /// commit fails with a `Conflict`. Under snapshot isolation this is what keeps two
    /// transactions from changing what the other has only read.
    ///
    /// # Errors
    /// As for [`TransactionTable::get`]; `ReadOnly` in a transaction that only reads.
    pub fn get_for_update(&self, key: &[Value]) -> Result<Option<Row>> {
        let key = fit_key(self.schema(), key)?;
        let mut state = self.transaction.state();
        self.hold(&mut state, &key)?;
        let seen = self.see(&mut state, &key)?;
        Ok(seen.row.map(|row| Row::new(Arc::clone(self.schema()), row)))
    }

    /// True when there is a row with this key.
    ///
    /// # Errors
    /// As for [`TransactionTable::get`].
    pub fn exists(&self, key: &[Value]) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// As for [`Transaction::query`].
    pub fn count(&self) -> Result<u64> {
        self.as_it_is()?.count()
    }

    /// The rows as they are now, for reading many of them.
    pub(crate) fn as_it_is(&self) -> Result<SnapshotTable> {
        let mut state = self.transaction.state();
        self.transaction.expect_current(&state, &self.current)?;
        self.transaction
            .with_changes(&mut state, [&self.current.core])?
            .table_core(&self.current.core)
    }

    /// All rows as the transaction has them now, in storage order: see [`Table::iter`]. What it
    /// changes later does not show.
    ///
    /// # Errors
    /// As for [`TransactionTable::count`]; the rows themselves as for [`Table::iter`].
    pub fn iter(&self) -> Result<TableRows> {
        Ok(self.as_it_is()?.iter())
    }

    /// The rows whose keys lie within bounds, in the order of the keys.
    ///
    /// # Errors
    /// As for [`crate::SnapshotTable::range`].
    pub fn range<R: std::ops::RangeBounds<Vec<Value>>>(&self, bounds: R) -> Result<KeyRange> {
        self.as_it_is()?.range(bounds)
    }

    /// Adds a row; returns its row id, which is its key when the key is generated.
    ///
    /// # Errors
    /// As for [`crate::Table::insert`], but that what others commit meanwhile is reported by
    /// [`Transaction::commit`]; `OverBudget` when the changes take too much memory; `ReadOnly` in a
    /// transaction that only reads. Nothing is changed then; the same below.
    pub fn insert(&self, row: &[Value]) -> Result<u64> {
        let mut state = self.transaction.state();
        let row = self.complete(&mut state, row)?;
        self.done(&mut state, |state| self.put(state, row, true))
    }

    /// Adds rows, all or none.
    ///
    /// # Errors
    /// As for [`TransactionTable::insert`]; the message says which row.
    pub fn insert_many(&self, rows: &[Vec<Value>]) -> Result<()> {
        self.put_part(0, rows, true, &without_limits)
    }

    /// The same within limits: what takes longer than it may, or is cancelled, has added nothing.
    ///
    /// # Errors
    /// As for [`TransactionTable::insert_many`]; `TimedOut`, `Cancelled`.
    pub fn insert_many_with(&self, rows: &[Vec<Value>], limits: &Limits) -> Result<()> {
        self.within_limits(limits, |check| self.put_part(0, rows, true, check))
    }

    /// Adds a row or replaces the one with its key; returns its row id.
    ///
    /// # Errors
    /// As for [`TransactionTable::insert`].
    pub fn upsert(&self, row: &[Value]) -> Result<u64> {
        let mut state = self.transaction.state();
        let row = self.complete(&mut state, row)?;
        self.done(&mut state, |state| self.put(state, row, false))
    }

    /// Adds or replaces rows, all or none; of two with one key the last wins.
    ///
    /// # Errors
    /// As for [`TransactionTable::insert_many`].
    pub fn upsert_many(&self, rows: &[Vec<Value>]) -> Result<()> {
        self.put_part(0, rows, false, &without_limits)
    }

    /// The same within limits, as [`TransactionTable::insert_many_with`].
    ///
    /// # Errors
    /// As for [`TransactionTable::upsert_many`]; `TimedOut`, `Cancelled`.
    pub fn upsert_many_with(&self, rows: &[Vec<Value>], limits: &Limits) -> Result<()> {
        self.within_limits(limits, |check| self.put_part(0, rows, false, check))
    }

    pub(crate) fn within_limits<R>(
        &self,
        limits: &Limits,
        run: impl FnOnce(CancellationCheck<'_>) -> Result<R>,
    ) -> Result<R> {
        within_limits(self.transaction.engine(), limits, run)
    }

    /// Puts rows, of which the first is number `first` of all.
    pub(crate) fn put_part(
        &self,
        first: usize,
        rows: &[Vec<Value>],
        must_be_new: bool,
        check_cancelled: CancellationCheck<'_>,
    ) -> Result<()> {
        let mut state = self.transaction.state();
        self.done(&mut state, |state| {
            for (i, row) in rows.iter().enumerate() {
                check_cancelled(i)?;
                let row = self.complete(state, row);
                let put = row.and_then(|row| self.put(state, row, must_be_new));
                put.map_err(|e| e.in_row((first + i) as u64))?;
            }
            Ok(())
        })
    }

    /// Changes some fields of the row with a key; false when there is none.
    ///
    /// # Errors
    /// As for [`crate::Table::update`].
    pub fn update(&self, key: &[Value], changes: &[(&str, Value)]) -> Result<bool> {
        let update = FittedUpdate::of(self.schema(), key, changes)?;
        self.change_rows(|rows| update.apply(rows, 0))
    }

    /// Removes the row with a key; false when there is none.
    ///
    /// # Errors
    /// As for [`crate::Table::delete`].
    pub fn delete(&self, key: &[Value]) -> Result<bool> {
        let key = fit_key(self.schema(), key)?;
        self.change_rows(|rows| remove_row(rows, &key, 0))
    }

    /// Runs a change of rows, and takes back what it did when it fails.
    pub(crate) fn change_rows<R>(
        &self,
        change: impl FnOnce(&mut TransactionRows<'_, 't>) -> Result<R>,
    ) -> Result<R> {
        let mut state = self.transaction.state();
        self.done(&mut state, |state| {
            let mut rows = self.rows_in(state);
            let done = change(&mut rows)?;
            rows.settle()?;
            Ok(done)
        })
    }

    /// The rows as a change within a statement has them.
    pub(super) fn rows_in<'a>(&'a self, state: &'a mut State) -> TransactionRows<'a, 't> {
        TransactionRows { table: self, state, lifted: Vec::new() }
    }

    /// Runs a change, and takes back what it did when it fails.
    pub(crate) fn done<R>(
        &self,
        state: &mut State,
        change: impl FnOnce(&mut State) -> Result<R>,
    ) -> Result<R> {
        let base = state.undo.len();
        let outcome = change(state).and_then(|done| {
            self.transaction.end_bound_statement(state)?;
            Ok(done)
        });
        if outcome.is_err() {
            state.bound.forget_statement();
            state.undo_to(base);
        }
        state.forget_undo();
        outcome
    }

    /// A key was looked up: that there is no such row is something that was read, too. It counts
    /// whatever becomes of the change that it was for.
    pub(crate) fn note_read(&self, state: &mut State, key: &[ValueRef<'_>]) -> Result<()> {
        self.transaction.expect_current(state, &self.current)?;
        // No other commit changes a table that is not there yet.
        let is_new = state.definition(&self.current).is_some_and(|table| table.is_new());
        if self.transaction.remembers_reads() && !is_new {
            state.reads.note_key(&self.current, &self.bytes_of(key), key);
        }
        Ok(())
    }

    /// No other commit may change a key before this one.
    pub(super) fn hold(&self, state: &mut State, key: &[ValueRef<'_>]) -> Result<()> {
        self.transaction.expect_writes()?;
        self.transaction.expect_current(state, &self.current)?;
        if state.definition(&self.current).is_some_and(|table| table.is_new()) {
            return Ok(());
        }
        state.holds = true;
        state.reads.note_key(&self.current, &self.bytes_of(key), key);
        Ok(())
    }

    /// What the transaction has made of a key.
    pub(super) fn change_of<'s>(
        &self,
        state: &'s State,
        key: &[ValueRef<'_>],
    ) -> Result<Option<Cow<'s, Change>>> {
        Ok(self.known(state, key)?.change)
    }

    /// The row that the transaction has put, unless it has expired.
    pub(super) fn row_of<'c>(&self, change: &'c Change) -> Option<&'c [Value]> {
        let schema = self.schema();
        let row = change.row()?;
        let end = schema.expiry_position().and_then(|position| row.get(position));
        let is_over = end.is_some_and(|end| {
            esker_table::expiry::has_expired(
                end.as_ref(),
                self.transaction.moment_of(schema).of(schema),
            )
        });
        (!is_over).then_some(row)
    }

    /// What is known of a key, mostly without a look at the snapshot.
    pub(super) fn known<'s>(&self, state: &'s State, key: &[ValueRef<'_>]) -> Result<KnownKey<'s>> {
        match state.changes.get(&self.current.core.id()) {
            Some(delta) => delta.known(self.transaction.base(state), (&self.bytes_of(key), key)),
            None => Ok(KnownKey { change: None, base: BaseVersion::Unknown }),
        }
    }

    /// What the transaction has under a key.
    pub(crate) fn see(&self, state: &mut State, key: &[ValueRef<'_>]) -> Result<Seen> {
        self.note_read(state, key)?;
        if let Some(change) = self.change_of(state, key)? {
            let row = self.row_of(&change).map(<[Value]>::to_vec);
            return Ok(Seen { row, base: change.base, new_row_id: change.new_row_id });
        }
        // As the transaction has it, where it has altered the table.
        let fields = self.schema().fields();
        let base = self.transaction.base(state);
        let found = base.find(&self.current, key, |found| found.values_of(fields))?;
        Ok(match found {
            Some((row, base)) => Seen { row: Some(row), base, new_row_id: 0 },
            None => Seen { row: None, base: BaseVersion::Absent, new_row_id: 0 },
        })
    }

    /// A row is put; its values fit.
    pub(crate) fn put(&self, state: &mut State, row: Vec<Value>, must_be_new: bool) -> Result<u64> {
        let schema = self.schema();
        if schema.key_positions().is_empty() {
            self.transaction.expect_current(state, &self.current)?;
            let row_id = self.transaction.base(state).new_row_id(&self.current)?;
            let key = [ValueRef::Uint(row_id)];
            self.replace(state, &key, (row, BaseVersion::Absent, row_id))?;
            return Ok(row_id);
        }
        let values: Vec<Value> =
            schema.key_positions().iter().filter_map(|p| row.get(*p)).cloned().collect();
        let key: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        let seen = self.see(state, &key)?;
        if seen.row.is_some() && must_be_new {
            let key = esker_table::table::describe_key(schema, &key);
            return Err(Error::new(ErrorKind::AlreadyExists, format!("{key} exists already")));
        }
        let new_row_id = match seen.base {
            BaseVersion::At(..) => 0,
            _ if seen.new_row_id > 0 => seen.new_row_id,
            _ => self.transaction.base(state).new_row_id(&self.current)?,
        };
        let row_id = match seen.base {
            BaseVersion::At(_, row_id) => row_id,
            BaseVersion::Absent | BaseVersion::Unknown => new_row_id,
        };
        self.replace(state, &key, (row, seen.base, new_row_id))?;
        Ok(row_id)
    }

    /// A row takes the place of what there is.
    pub(crate) fn replace(
        &self,
        state: &mut State,
        key: &[ValueRef<'_>],
        (row, base, new_row_id): (Vec<Value>, BaseVersion, u64),
    ) -> Result<()> {
        refuse_long_values(self.schema(), |at| row.get(at).map(Value::as_ref))?;
        self.test(state, &row)?;
        self.note_bound(state, key, Some(&row))?;
        let change = Change { base, now: PendingVersion::Row(row), new_row_id };
        self.transaction.note(state, &self.current, (self.bytes_of(key), change))
    }

    /// A row that is given whole, as it is stored.
    fn complete(&self, state: &mut State, row: &[Value]) -> Result<Vec<Value>> {
        let (engine, current) = (&self.transaction.engine, &self.current);
        self.transaction.looking_up(state, |others| {
            engine.complete_row_by(current, row, others).map(Cow::into_owned)
        })
    }

    /// What has to be known of a row before it is changed.
    pub(crate) fn before_change(&self, row: &[Value]) -> Result<RowBefore> {
        self.transaction.engine.before_change(&self.current, row)
    }

    /// Computes what is generated of a row that was made of another one.
    pub(crate) fn recompute(
        &self,
        state: &mut State,
        changed: (&mut [Value], &RowBefore),
    ) -> Result<()> {
        let (engine, current) = (&self.transaction.engine, &self.current);
        self.transaction
            .looking_up(state, |others| engine.recompute_by(current, changed, others, None))
    }

    /// Tests a row by the checks of the table as it is in the transaction.
    fn test(&self, state: &State, row: &[Value]) -> Result<()> {
        let Some(definition) = state.definition(&self.current) else {
            return self.transaction.engine.test_rows(&self.current, &[row]);
        };
        let mut batch = Batch::empty(self.schema());
        batch.push_row(self.schema(), row)?;
        definition.checks.test(&batch, 0, &self.transaction.engine.limits())
    }

    /// A row is removed.
    pub(crate) fn remove(
        &self,
        state: &mut State,
        key: &[ValueRef<'_>],
        seen: &Seen,
    ) -> Result<()> {
        self.note_bound(state, key, None)?;
        self.end(state, key, seen)
    }

    /// The row of a key ends.
    pub(super) fn end(&self, state: &mut State, key: &[ValueRef<'_>], seen: &Seen) -> Result<()> {
        // Of a row that came and went within the transaction nothing is left to be compared once
        // files have been written: that no other commit has put the key counts as read.
        let is_new = state.definition(&self.current).is_some_and(|table| table.is_new());
        if seen.base == BaseVersion::Absent && !is_new && !self.schema().key_positions().is_empty()
        {
            state.reads.note_key(&self.current, &self.bytes_of(key), key);
        }
        let now =
            PendingVersion::Tombstone(key.iter().map(|value| ValueRef::to_owned(*value)).collect());
        let change = Change { base: seen.base, now, new_row_id: seen.new_row_id };
        self.transaction.note(state, &self.current, (self.bytes_of(key), change))
    }

    /// The bytes of a key, in the order of the keys.
    pub(super) fn bytes_of(&self, key: &[ValueRef<'_>]) -> Vec<u8> {
        primary_key(self.schema(), key.iter().copied())
    }
}

/// Rows of a table that a transaction changes.
pub(crate) struct TransactionRows<'a, 't> {
    table: &'a TransactionTable<'t>,
    state: &'a mut State,
    /// Those that go to other keys, which are free once all of them are lifted.
    lifted: Vec<Lifted>,
}

impl TransactionRows<'_, '_> {
    /// Adds a row that is new.
    pub(super) fn add(&mut self, row: Vec<Value>) -> Result<u64> {
        self.table.put(self.state, row, true)
    }
}

impl RowSink for TransactionRows<'_, '_> {
    type Slot = Seen;

    fn schema(&self) -> &Arc<Schema> {
        self.table.schema()
    }

    fn hash(&self, _key: &[ValueRef<'_>]) -> u64 {
        0
    }

    fn prefetch(&self, _hashes: &[u64]) {}

    fn look(&mut self, key: &[ValueRef<'_>], _hash: u64) -> Result<Seen> {
        self.table.see(self.state, key)
    }

    fn look_again(&mut self, key: &[ValueRef<'_>], _row_id: &Value) -> Result<Seen> {
        let seen = self.table.see(self.state, key)?;
        if seen.row.is_none() {
            let message = "the transaction was changed by another thread meanwhile";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        Ok(seen)
    }

    fn is_there(seen: &Seen) -> bool {
        seen.row.is_some()
    }

    fn take_row(&mut self, seen: &mut Seen) -> Result<Option<Vec<Value>>> {
        Ok(seen.row.take())
    }

    fn before_change(&self, row: &[Value]) -> Result<RowBefore> {
        self.table.before_change(row)
    }

    fn recompute(&mut self, row: &mut [Value], before: &RowBefore) -> Result<()> {
        self.table.recompute(self.state, (row, before))
    }

    fn put(&mut self, key: &[ValueRef<'_>], seen: Seen, row: Vec<Value>) -> Result<()> {
        if !self.table.has_key(key, &row) {
            self.lifted.push(self.table.lift(self.state, key, &seen, row)?);
            return Ok(());
        }
        self.table.replace(self.state, key, (row, seen.base, seen.new_row_id))
    }

    fn settle(&mut self) -> Result<()> {
        let lifted = std::mem::take(&mut self.lifted);
        lifted.into_iter().try_for_each(|lifted| self.table.land(self.state, lifted))
    }

    fn remove(&mut self, key: &[ValueRef<'_>], seen: Seen) -> Result<()> {
        self.table.remove(self.state, key, &seen)
    }
}
impl std::fmt::Debug for TransactionTable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransactionTable").field("name", &self.name()).finish_non_exhaustive()
    }
}
