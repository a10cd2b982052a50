//! The writing end of an open group. It belongs to the holder of the commit lock.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_arena::{AppendVec, Appender, Arena, Category, SparseWords};
use esker_format::{Batch, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_vfs::sync::AtomicU64;

use super::bounds::KnownBounds;
use super::column::GroupColumnWriter;
use super::run_list::RunListWriter;
use super::{Group, GroupColumn, PartialBlocks};
use crate::column_map::ColumnMap;
use crate::dead_blocks::DeadBlocks;
use crate::key_order::SortedRows;
use crate::location::{Location, ROW_GROUP_ROWS_MAX, row_word};
use crate::value_file::{FileList, StoredValue};
use crate::{Error, Result};

/// Appends rows to a group.
pub struct GroupWriter {
    group: Arc<Group>,
    columns: Vec<GroupColumnWriter>,
    created: RunListWriter,
    row_ids: RunListWriter,
    fresh: Appender<[u64; 2]>,
    rows: usize,
    next_row_id: u64,
    /// What would go on with the last run of inserted rows: the next row id, at the next row.
    next_fresh_id: u64,
    next_fresh_row: u64,
    /// The commit of the last row, once there is one.
    last_commit: Option<u64>,
    /// The position of the field that says when rows expire.
    expiry: Option<usize>,
}

impl GroupWriter {
    /// A group without rows.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full.
    pub fn create(arena: &Arc<Arena>, id: u64, schema: &Schema) -> Result<Self> {
        let files = Arc::new(FileList::default());
        let mut columns = Vec::with_capacity(schema.fields().len());
        let mut writers = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let (writer, column) =
                GroupColumn::create(arena, field.data_type, field.nullable, &files)?;
            writers.push(writer);
            columns.push(column);
        }
        let (created_writer, created) = RunListWriter::create(arena)?;
        let (row_id_writer, row_ids) = RunListWriter::create(arena)?;
        let (fresh_writer, fresh) = AppendVec::new(arena, Category::Visibility)?;
        let group = Arc::new(Group {
            id,
            columns,
            files,
            long_bytes: AtomicU64::new(0),
            column_map: ColumnMap::new(schema.fields().iter().map(|field| field.id)),
            created,
            row_ids,
            fresh,
            length: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            deleted: SparseWords::new(arena, Category::Visibility)?,
            replaced: SparseWords::new(arena, Category::Visibility)?,
            dead: AtomicU64::new(0),
            dead_blocks: DeadBlocks::default(),
            succeeded: AtomicU64::new(0),
            by_key: SortedRows::default(),
            partial_blocks: PartialBlocks::default(),
            bounds: KnownBounds::default(),
            expiry_field: schema.expiry_field().map(|field| field.id),
            least_expiry: AtomicU64::new(i64::MAX.cast_unsigned()),
        });
        Ok(Self {
            group,
            columns: writers,
            created: created_writer,
            row_ids: row_id_writer,
            fresh: fresh_writer,
            rows: 0,
            next_row_id: u64::MAX,
            next_fresh_id: u64::MAX,
            next_fresh_row: 0,
            last_commit: None,
            expiry: schema.expiry_position(),
        })
    }

    /// The reading end.
    #[must_use]
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// How many rows have been appended.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// True when a row with this id can be appended as an inserted one: their ids rise.
    #[must_use]
    pub fn takes_fresh(&self, row_id: u64) -> bool {
        self.next_fresh_id == u64::MAX || row_id >= self.next_fresh_id
    }

    /// Appends one row and publishes it as created by `commit`; `fresh` for an inserted row,
    /// false for a new version of an older one. Some values, by rising field, lie in value files.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full; the group must not be used any more then.
    pub fn push(
        &mut self,
        (row, long): (&[Value], &[(usize, StoredValue)]),
        row_id: u64,
        fresh: bool,
        commit: u64,
        replaced: Option<Location>,
    ) -> Result<Location> {
        debug_assert_eq!(row.len(), self.columns.len(), "a row has a value for every field");
        let (mut bytes, mut rest) = (0, long.iter().peekable());
        for (i, (column, value)) in self.columns.iter_mut().zip(row).enumerate() {
            bytes += match rest.next_if(|(field, _)| *field == i) {
                Some((_, stored)) => column.push_long(stored)?,
                None => column.push(value)?,
            };
        }
        self.count_long(long.iter().map(|(_, stored)| stored));
        self.note_expiry(self.expiry.and_then(|field| row.get(field)).map(Value::as_ref));
        if let Some(location) = replaced {
            self.group.replaced.set(row_word(self.rows), location.word())?;
        }
        let first = self.rows;
        self.publish(1, row_id, fresh, commit, bytes)?;
        Ok(Location::new(self.group.id, first))
    }

    /// Before the rows are published.
    fn note_expiry<'a>(&self, values: impl IntoIterator<Item = ValueRef<'a>>) {
        for value in values {
            if let ValueRef::Timestamp(at_us) = value
                && at_us < self.group.least_expiry.load(Ordering::Relaxed).cast_signed()
            {
                self.group.least_expiry.store(at_us.cast_unsigned(), Ordering::Release);
            }
        }
    }

    fn count_long<'a>(&self, long: impl Iterator<Item = &'a StoredValue>) {
        let bytes: u64 = long.map(|stored| stored.reference.len).sum();
        self.group.long_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Appends a batch of inserted rows with consecutive row ids. Some values of each column, by
    /// rising row, lie in value files.
    ///
    /// # Errors
    /// As for [`GroupWriter::push`].
    pub fn push_batch(
        &mut self,
        (batch, long): (&Batch, &[Vec<(usize, StoredValue)>]),
        first_row_id: u64,
        commit: u64,
    ) -> Result<usize> {
        let first = self.rows;
        let mut bytes = 0;
        for (i, (column, values)) in self.columns.iter_mut().zip(&batch.columns).enumerate() {
            // default: a batch whose values all lie in the group has no lists
            let long = long.get(i).map(Vec::as_slice).unwrap_or_default();
            bytes += column.append_column(values, long)?;
        }
        self.count_long(long.iter().flatten().map(|(_, stored)| stored));
        if let Some(column) = self.expiry.and_then(|field| batch.columns.get(field)) {
            self.note_expiry((0..batch.len()).map(|row| column.value(row)));
        }
        self.publish(batch.len(), first_row_id, true, commit, bytes)?;
        Ok(first)
    }

    fn publish(
        &mut self,
        count: usize,
        row_id: u64,
        fresh: bool,
        commit: u64,
        bytes: u64,
    ) -> Result<()> {
        let first = self.rows as u64;
        let breaks = self.next_row_id != row_id;
        if breaks {
            self.row_ids.start(first, row_id)?;
        }
        let goes_on = (self.next_fresh_row, self.next_fresh_id) == (first, row_id);
        if fresh && !goes_on {
            self.fresh.push([first, row_id])?;
        }
        self.next_row_id = row_id + count as u64;
        if fresh {
            self.next_fresh_id = self.next_row_id;
            self.next_fresh_row = first + count as u64;
        }
        if self.last_commit != Some(commit) {
            self.start_commit(first, commit)?;
        }
        self.rows += count;
        debug_assert!(
            self.rows <= ROW_GROUP_ROWS_MAX,
            "group {}: {} rows, at most {ROW_GROUP_ROWS_MAX}",
            self.group.id,
            self.rows
        );
        self.row_ids.extend_to(self.rows)?;
        self.created.extend_to(self.rows)?;
        self.group.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.group.length.store(self.rows as u64, Ordering::Release);
        Ok(())
    }

    /// The rows from `first` on are of another commit than those before.
    fn start_commit(&mut self, first: u64, commit: u64) -> Result<()> {
        if let Some(last) = self.last_commit {
            let commit = if Bug::GroupTakesOlderCommit.is_planted() { last - 1 } else { commit };
            if commit < last {
                let id = self.group.id;
                let message = format!("group {id}: rows of commit {commit} after those of {last}");
                return Err(Error::corrupt(message));
            }
        }
        self.created.start(first, commit)?;
        self.last_commit = Some(commit);
        Ok(())
    }
}
