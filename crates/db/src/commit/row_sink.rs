//! Where changes of the rows of a table go. What becomes of rows is written once, over a sink:
//!
//! ```text
//!  update, delete, modify by key ─┐            ┌─ StagedRows: the newest versions, under the
//!  UPDATE, DELETE ────────────────┼─► RowSink ─┤  commit lock; staged for one commit
//!  entries of a bucket ───────────┘            └─ TransactionRows: the snapshot and what was
//!                                                 changed since; kept until the commit
//! ```
//!
//! Invariants:
//! 1. A change sees those before it in the same sink, where one key may come again.
//! 2. What fails leaves what is in the sink to the caller, who forgets all of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::{Schema, Value, ValueRef};
use esker_query::Limits;
use esker_table::TableWriter;
use esker_table::table::{Existing, PreparedPut};

use crate::catalog::generated::RowBefore;
use crate::commit::fit::has_key;
use crate::commit::staged::Staged;
use crate::engine_handle::EngineHandle;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

/// Where changes of the rows of a table go.
pub(crate) trait RowSink {
    /// What there is under a key.
    type Slot;

    /// The fields and the key.
    fn schema(&self) -> &Arc<Schema>;

    /// By what rows are looked up, where that is not the key itself.
    fn hash(&self, key: &[ValueRef<'_>]) -> u64;

    /// Many look-ups follow.
    fn prefetch(&self, hashes: &[u64]);

    /// Looks a key up.
    fn look(&mut self, key: &[ValueRef<'_>], hash: u64) -> Result<Self::Slot>;

    /// The row with a key and a row id that a statement has found, if it is that row still.
    ///
    /// # Errors
    /// `Conflict` when another change came between.
    fn look_again(&mut self, key: &[ValueRef<'_>], row_id: &Value) -> Result<Self::Slot>;

    /// Whether there is a row.
    fn is_there(slot: &Self::Slot) -> bool;

    /// Takes the row, if there is one.
    fn take_row(&mut self, slot: &mut Self::Slot) -> Result<Option<Vec<Value>>>;

    /// What has to be known of a row before it is changed.
    fn before_change(&self, row: &[Value]) -> Result<RowBefore>;

    /// Computes what is generated of a row that was made of another one.
    fn recompute(&mut self, row: &mut [Value], before: &RowBefore) -> Result<()>;

    /// Puts a row, which fits the schema, and tests the checks of the table. In a transaction it
    /// may have another key, where it comes by [`RowSink::settle`].
    fn put(&mut self, key: &[ValueRef<'_>], slot: Self::Slot, row: Vec<Value>) -> Result<()>;

    /// All rows of a change have been taken: those that go to other keys come there.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// Removes a row that is there.
    fn remove(&mut self, key: &[ValueRef<'_>], slot: Self::Slot) -> Result<()>;
}

/// Rows that are staged for one commit, under the commit lock.
pub(crate) struct StagedRows<'a, 'r> {
    engine: &'a EngineHandle,
    current: &'a TableVersion,
    writer: &'a mut TableWriter,
    staged: &'a mut Staged<'r>,
    /// Whether a row may be changed again; its changes are looked for then.
    pub may_repeat: bool,
    /// Whether checks are tested as rows are put.
    pub is_tested: bool,
    /// What the checks may take, where they are of a statement.
    pub limits: Option<&'a Limits>,
    /// The commit that a statement has found its rows at.
    pub read_at: u64,
    /// The bytes that may still be staged, where each change is to end as by itself.
    pub bytes_left: Option<usize>,
    removed: BTreeSet<u64>,
}

/// The newest version of a key.
pub(crate) struct StagedSlot {
    hash: u64,
    existing: Option<Existing>,
    /// Where its staged version is among all.
    staged_at: Option<usize>,
}

impl<'a, 'r> StagedRows<'a, 'r> {
    /// For rows each of which is changed once.
    pub fn new(
        engine: &'a EngineHandle,
        current: &'a TableVersion,
        (writer, staged): (&'a mut TableWriter, &'a mut Staged<'r>),
    ) -> Self {
        Self {
            engine,
            current,
            writer,
            staged,
            may_repeat: false,
            is_tested: true,
            limits: None,
            read_at: 0,
            bytes_left: None,
            removed: BTreeSet::new(),
        }
    }

    /// Tests all rows that were put.
    pub fn test_all(&self) -> Result<()> {
        let rows: Vec<&[Value]> = self.staged.rows().collect();
        self.engine.test_rows(self.current, &rows)
    }

    /// Tests a row.
    fn test(&self, row: &[Value]) -> Result<()> {
        match self.limits {
            Some(limits) => self.engine.test_rows_within(self.current, &[row], limits),
            None => self.engine.test_rows(self.current, &[row]),
        }
    }

    /// Counts the bytes of a row that is to be staged, in the place of another one perhaps.
    fn count(&mut self, row: &[Value], staged_at: Option<usize>) -> Result<()> {
        let Some(left) = self.bytes_left else { return Ok(()) };
        // default: what is not staged yet counts nothing
        let before = staged_at.and_then(|at| self.staged.row_at(at)).map_or(0, byte_count);
        let left = (left + before).checked_sub(byte_count(row));
        self.bytes_left = Some(left.ok_or_else(|| {
            Error::new(ErrorKind::OverBudget, "too many bytes of rows in one commit")
        })?);
        Ok(())
    }
}

/// Bytes of the values of a row.
fn byte_count(row: &[Value]) -> usize {
    // default: what is no text or bytes has none
    row.iter().map(|value| value.as_ref().as_bytes().map_or(0, <[u8]>::len)).sum()
}

impl RowSink for StagedRows<'_, '_> {
    type Slot = StagedSlot;

    fn schema(&self) -> &Arc<Schema> {
        &self.current.schema
    }

    fn hash(&self, key: &[ValueRef<'_>]) -> u64 {
        self.current.hash(key)
    }

    fn prefetch(&self, hashes: &[u64]) {
        self.writer.touch(hashes);
    }

    fn look(&mut self, key: &[ValueRef<'_>], hash: u64) -> Result<StagedSlot> {
        let existing = self.writer.existing(key, hash)?.filter(Existing::is_alive);
        if !self.may_repeat {
            return Ok(StagedSlot { hash, existing, staged_at: None });
        }
        let existing = existing.filter(|existing| !self.removed.contains(&existing.row_id));
        let staged_at = existing.and_then(|e| self.staged.position_of_row(e.row_id, hash));
        Ok(StagedSlot { hash, existing, staged_at })
    }

    fn look_again(&mut self, key: &[ValueRef<'_>], row_id: &Value) -> Result<StagedSlot> {
        let slot = self.look(key, self.current.hash(key))?;
        let is_same = |e: &Existing| Value::Uint(e.row_id) == *row_id && e.created <= self.read_at;
        match slot.existing.as_ref().is_some_and(is_same) {
            true => Ok(slot),
            false => Err(Error::new(ErrorKind::Conflict, "a row has changed meanwhile")),
        }
    }

    fn is_there(slot: &StagedSlot) -> bool {
        slot.existing.is_some()
    }

    fn take_row(&mut self, slot: &mut StagedSlot) -> Result<Option<Vec<Value>>> {
        Ok(match slot.staged_at.and_then(|at| self.staged.row_at(at)) {
            Some(row) => Some(row.to_vec()),
            None => slot.existing.map(|e| self.current.core.row_at(e.location)).transpose()?,
        })
    }

    #[inline]
    fn before_change(&self, row: &[Value]) -> Result<RowBefore> {
        self.engine.before_change(self.current, row)
    }

    #[inline]
    fn recompute(&mut self, row: &mut [Value], before: &RowBefore) -> Result<()> {
        self.engine.recompute(self.current, (row, before), self.limits)
    }

    fn put(&mut self, key: &[ValueRef<'_>], slot: StagedSlot, row: Vec<Value>) -> Result<()> {
        if !has_key(&self.current.schema, key, &row) {
            let name = self.current.core.name();
            let message = format!("table {name:?}: a row is staged under the key of another one");
            return Err(Error::corrupt(message));
        }
        self.count(&row, slot.staged_at)?;
        if self.is_tested {
            self.test(&row)?;
        }
        if let Some(at) = slot.staged_at {
            // It would have been a row of its own for a moment.
            if self.bytes_left.is_some()
                && let Some(before) = self.staged.row_at(at)
            {
                self.test(before)?;
            }
            self.staged.replace(at, row);
            return Ok(());
        }
        let prepared = match slot.existing {
            Some(existing) => PreparedPut::update(slot.hash, existing),
            None => self.writer.prepare_put(&row, false)?,
        };
        match self.may_repeat {
            true => self.staged.put_again(row, prepared),
            false => self.staged.put(row, prepared),
        }
        Ok(())
    }

    fn remove(&mut self, _key: &[ValueRef<'_>], slot: StagedSlot) -> Result<()> {
        let Some(existing) = slot.existing else { return Ok(()) };
        if self.may_repeat {
            self.removed.insert(existing.row_id);
        }
        self.staged.delete(existing);
        Ok(())
    }
}
