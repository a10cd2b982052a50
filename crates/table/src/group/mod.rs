//! The open group: the mutable end of a table.
//!
//! Rows are appended and never moved or changed; a writer appends under the commit lock, readers
//! take no lock. What a reader may look at follows from the commit it reads at:
//!
//! ```text
//! row        0 ─────────── 7 │ 8 ── 9 │ 10 ─────────── 14 │ …
//! created    run (0, #41)    │ (8,#42)│ (10, #43)         │      one run per commit
//! row ids    run (0, id 100) ─────────│ (10, id 3)        │      one run per break
//! deleted    one word a row, present per 1,024 rows: the commit that killed it, 0 while it lives;
//!            and a bit once a dead version has a successor
//! replaced   the same: the location of the version that this one superseded
//! ```
//!
//! # Invariants
//!
//! 1. A commit publishes columns and row ids, then the `created` run, then `length`, then the
//!    primary index: [`GroupWriter`], and the table's writer after it, which asserts that an entry
//!    names a row below `length`.
//! 2. `created` commits rise, so the rows visible at a commit are a prefix: the commit lock gives
//!    commits in order, and the writer refuses one that is older than the last.
//! 3. A group has no more rows than a location can name; asserted by the writer.
//! 4. `deleted` goes from zero to a commit once, and gets its bit once; asserted by
//!    `Group::delete`. `replaced` goes from zero to its value before the row is published.

mod arrival;
mod bounds;
mod column;
mod partial_blocks;
mod run_list;
mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_arena::{AppendReader, SparseWords};
use esker_format::{ColumnSlice, Field, FieldId, ValueRef, invariant};
use esker_vfs::sync::AtomicU64;

use crate::Result;
use crate::column_map::{ColumnMap, initial_column};
use crate::dead_blocks::DeadBlocks;
use crate::delete_stamp::DeleteStamp;
use crate::key_order::SortedRows;
use crate::known_expiry::initial_expiry;
use crate::location::{Location, row_word};
use crate::value_file::FileList;
use bounds::KnownBounds;
pub use column::GroupColumn;
pub use partial_blocks::{BlockGroups, PartialBlocks};
use run_list::RunList;
pub use writer::GroupWriter;

/// Columns, row ids and visibility of an open or frozen group.
pub struct Group {
    pub(crate) id: u64,
    pub(crate) columns: Vec<GroupColumn>,
    column_map: ColumnMap,
    pub(crate) files: Arc<FileList>,
    long_bytes: AtomicU64,
    created: RunList,
    row_ids: RunList,
    fresh: AppendReader<[u64; 2]>,
    length: AtomicU64,
    bytes: AtomicU64,
    pub(crate) deleted: SparseWords,
    pub(crate) replaced: SparseWords,
    dead: AtomicU64,
    pub(crate) dead_blocks: DeadBlocks,
    /// How many rows have got a successor after they had died.
    succeeded: AtomicU64,
    /// Its rows in the order of the key, as far as readers needed them.
    pub(crate) by_key: SortedRows,
    /// What readers found out of the values of its zones.
    bounds: KnownBounds,
    /// What rollups have of its rows, as far as readers needed it.
    partial_blocks: PartialBlocks,
    /// The field by which its rows expire, and when the first of them does.
    expiry_field: Option<FieldId>,
    least_expiry: AtomicU64,
}

impl Group {
    /// How many rows have been published, visible or not.
    #[must_use]
    pub fn row_count(&self) -> usize {
        // default: it was stored from a usize, so it always fits
        usize::try_from(self.length.load(Ordering::Acquire)).unwrap_or_default()
    }

    /// What rollups have of its rows.
    #[must_use]
    pub fn partial_blocks(&self) -> &PartialBlocks {
        &self.partial_blocks
    }

    /// Bytes of row data, for deciding when to seal.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many rows have been marked dead, at any commit.
    #[must_use]
    pub fn dead_count(&self) -> u64 {
        self.dead.load(Ordering::Acquire)
    }

    /// The commit that created the newest row; 0 when there is none.
    #[must_use]
    pub fn newest_commit(&self) -> u64 {
        let runs = self.created.len();
        // default: without rows there is no commit
        runs.checked_sub(1).and_then(|last| self.created.get(last)).map_or(0, |run| run[1])
    }

    /// When the first row expires by a field, or earlier; `i64::MAX` when none does.
    pub(crate) fn least_expiry(&self, field: &Field) -> i64 {
        if self.expiry_field == Some(field.id) {
            return self.least_expiry.load(Ordering::Acquire).cast_signed();
        }
        match self.column_of(field) {
            // Its rows were put when they expired by another field, or not at all.
            Some(_) => i64::MIN,
            None => initial_expiry(field),
        }
    }

    /// How many rows, from the first, had been created at commit `at`.
    ///
    /// Gallops back from the newest run, because most readers read at a recent commit.
    #[must_use]
    pub fn rows_at(&self, at: u64) -> usize {
        let length = self.row_count();
        let runs = self.created.len();
        let later = |i: usize| self.created.get(i).is_some_and(|run| run[1] > at);
        let (mut low, mut high, mut step) = (0, runs, 1);
        while low < high && step <= high {
            if later(high - step) {
                high -= step;
                step *= 2;
            } else {
                low = high - step + 1;
                break;
            }
        }
        while low < high {
            let middle = low.midpoint(high);
            if later(middle) { high = middle } else { low = middle + 1 }
        }
        match self.created.get(low) {
            Some([first, _]) if low < runs => {
                // default: a limit beyond all rows
                length.min(usize::try_from(first).unwrap_or(usize::MAX))
            }
            _ => length,
        }
    }

    /// The commit that created a row.
    #[must_use]
    pub fn created(&self, row: usize) -> u64 {
        let run = self.created.run_of(row);
        debug_assert!(run.is_some(), "row {row} of group {} has no commit", self.id);
        // default: the run of a row is there before the row is published
        run.map_or(0, |[_, commit]| commit)
    }

    /// True when the row had been created at commit `at`.
    #[must_use]
    pub fn is_created_at(&self, row: usize, at: u64) -> bool {
        if self.newest_commit() <= at {
            return row < self.row_count();
        }
        row < self.rows_at(at)
    }

    /// The row id of a row.
    #[must_use]
    pub fn row_id(&self, row: usize) -> u64 {
        let row_id = self.known_row_id(row);
        debug_assert!(row_id.is_some(), "row {row} of group {} has no row id", self.id);
        // default: the run of a row is there before the row is published
        row_id.unwrap_or(0)
    }

    /// The same; `None` for a row that has not been published.
    pub(crate) fn known_row_id(&self, row: usize) -> Option<u64> {
        self.row_ids.run_of(row).map(|[first, id]| id + (row as u64 - first))
    }

    /// The row that was inserted here with this id; updates are not found.
    #[must_use]
    pub fn fresh_row(&self, row_id: u64) -> Option<usize> {
        let (mut low, mut high) = (0, self.fresh.len());
        while low < high {
            let middle = low.midpoint(high);
            let at_most = self.fresh.get(middle).is_some_and(|run| run[1] <= row_id);
            if at_most { low = middle + 1 } else { high = middle }
        }
        let [first, id] = self.fresh.get(low.checked_sub(1)?)?;
        let row = usize::try_from(first.checked_add(row_id - id)?).ok()?;
        (row < self.row_count() && self.row_id(row) == row_id).then_some(row)
    }

    /// The commit that killed a row, 0 while it lives.
    #[must_use]
    pub fn deleted(&self, row: usize) -> u64 {
        self.delete_stamp(row).commit()
    }

    pub(crate) fn delete_stamp(&self, row: usize) -> DeleteStamp {
        DeleteStamp::from_word(self.deleted.get(row_word(row)))
    }

    /// Marks a row dead from a commit on.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full.
    pub(crate) fn delete(&self, row: usize, delete_stamp: DeleteStamp) -> Result<()> {
        // A second count would make a block look dead while one of its rows lives.
        let killed_by = self.deleted(row);
        let place = format_args!("group {}", self.id);
        invariant!(killed_by == 0, place, "row {row} dies once, found dead since {killed_by}");
        self.set_delete_stamp(row, delete_stamp)?;
        self.dead_blocks.note(row, delete_stamp.commit());
        // A reader that sees the count sees the rows that it counts.
        self.dead.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Notes that a dead row has a successor.
    pub(crate) fn supersede(&self, row: usize, delete_stamp: DeleteStamp) -> Result<()> {
        self.set_delete_stamp(row, delete_stamp.with_successor())?;
        self.succeeded.fetch_add(1, Ordering::Release);
        Ok(())
    }

    pub(crate) fn succeeded_count(&self) -> u64 {
        self.succeeded.load(Ordering::Acquire)
    }

    fn set_delete_stamp(&self, row: usize, delete_stamp: DeleteStamp) -> Result<()> {
        Ok(self.deleted.set(row_word(row), delete_stamp.word())?)
    }

    /// The version that a row superseded.
    #[must_use]
    pub fn replaced(&self, row: usize) -> Option<Location> {
        Location::from_word(self.replaced.get(row_word(row)))
    }

    /// One value.
    ///
    /// # Errors
    /// `Corrupt` when it is long and does not fit its checksum; the same below.
    pub fn value<'a>(&'a self, field: &'a Field, row: usize) -> Result<ValueRef<'a>> {
        let column = self.column_map.get(field.id).and_then(|at| self.columns.get(at));
        match column.and_then(|column| column.in_place_value(field.data_type, row)) {
            Some(value) => Ok(value),
            None => Ok(self.column(field, row, row + 1)?.value(0)),
        }
    }

    /// A column of rows that lie in one chunk.
    pub fn column<'a>(
        &'a self,
        field: &'a Field,
        start: usize,
        end: usize,
    ) -> Result<ColumnSlice<'a>> {
        let Some(column) = self.column_of(field) else {
            return Ok(initial_column(field, end - start));
        };
        column.ensure(start, end)?;
        Ok(ColumnSlice { data_type: field.data_type, ..column.slice(start, end) })
    }

    /// The column of a field, the word of a row, and the bytes that it names, where they lie in the
    /// heap of the column.
    #[inline]
    pub(crate) fn in_place_bytes(&self, field: &Field, row: usize) -> Option<(usize, u64, &[u8])> {
        let at = self.column_map.get(field.id)?;
        let column = self.columns.get(at)?;
        let word = column.in_place_word(field.data_type, row)?;
        Some((at, word, column.word_bytes(word)))
    }

    /// The bytes that a word of a column names.
    #[inline]
    pub(crate) fn word_bytes(&self, column: usize, word: u64) -> &[u8] {
        debug_assert!(column < self.columns.len(), "group {} has no column {column}", self.id);
        // default: who has a word got it from that column of this group
        self.columns.get(column).map_or(&[], |column| column.word_bytes(word))
    }

    pub(crate) fn column_of(&self, field: &Field) -> Option<&GroupColumn> {
        self.columns.get(self.column_map.get(field.id)?)
    }

    /// Bytes of long values, dead ones included.
    #[must_use]
    pub fn long_bytes(&self) -> u64 {
        self.long_bytes.load(Ordering::Relaxed)
    }

    /// The end of the chunk that holds `row`: columns are contiguous up to there.
    #[must_use]
    pub fn chunk_end(&self, row: usize) -> usize {
        esker_arena::chunk_end(row)
    }
}

#[cfg(test)]
mod tests;
