//! TableRows one after another, as of one commit.

use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::sync::Arc;

use esker_format::ValueRef;

use crate::{Result, Row, SnapshotTable, Table};

/// TableRows that are read at a time, unless they have long values.
const PAGE_ROWS: usize = 64;

/// All rows of a table as of one commit, in storage order: see [`Table::iter`]. An error ends the
/// walk.
pub struct TableRows {
    pages: RowPages<Row>,
}

/// What is made of the rows of a table, of some of them at a time.
pub(crate) struct RowPages<R> {
    rows: SnapshotTable,
    /// Where the next page begins: in which part, with which row.
    part: usize,
    row: usize,
    page: VecDeque<Result<R>>,
}

impl<R> RowPages<R> {
    pub fn new(rows: SnapshotTable) -> Self {
        Self { rows, part: 0, row: 0, page: VecDeque::new() }
    }

    /// The next one.
    pub fn next(&mut self, make: &dyn Fn(u64, &[ValueRef<'_>]) -> Result<R>) -> Option<Result<R>> {
        while self.page.is_empty() && self.read_page(make) {}
        self.page.pop_front()
    }

    /// Reads a page, which may have no rows that are visible; false behind the last one.
    fn read_page(&mut self, make: &dyn Fn(u64, &[ValueRef<'_>]) -> Result<R>) -> bool {
        let parts = self.rows.rows_as_of().parts();
        let Some(part) = parts.get(self.part) else { return false };
        if self.row >= part.row_count() {
            (self.part, self.row) = (self.part + 1, 0);
            return true;
        }
        let end = part.batch_end(self.row, PAGE_ROWS.min(part.rows_at_once()));
        let (rows, page) = (self.row..end, &mut self.page);
        let read = self.rows.visit_rows(part, rows, &mut |row_id, row| {
            page.push_back(Ok(make(row_id, row)?));
            Ok(())
        });
        self.row = end;
        if let Err(e) = read {
            self.page.push_back(Err(e));
            self.part = parts.len();
        }
        true
    }
}

impl Iterator for TableRows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        let schema = Arc::clone(self.pages.rows.schema());
        self.pages.next(&|_, row| {
            let values = row.iter().map(|value| ValueRef::to_owned(*value)).collect();
            Ok(Row::new(Arc::clone(&schema), values))
        })
    }
}

impl FusedIterator for TableRows {}

impl std::fmt::Debug for TableRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableRows").finish_non_exhaustive()
    }
}

impl SnapshotTable {
    /// All rows, in storage order: see [`Table::iter`].
    #[must_use]
    pub fn iter(self) -> TableRows {
        TableRows { pages: RowPages::new(self) }
    }
}

impl Table {
    /// All rows as of the newest commit, in storage order. A few rows are in memory at a time,
    /// however many there are, and what others commit meanwhile does not show. As long as the
    /// iterator lives, it holds the snapshot that it reads.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]).build()?;
    /// let numbers = db.create_table("numbers", schema)?;
    /// numbers.insert_many(&[vec![1i64.into()], vec![2i64.into()]])?;
    /// for row in numbers.iter()? {
    ///     numbers.delete(&[row?.values()[0].clone()])?;
    /// }
    /// assert_eq!(numbers.count()?, 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// In the order of the key: [`SnapshotTable::range`]; with row ids, and without copies:
    /// [`SnapshotTable::for_each`].
    ///
    /// # Errors
    /// As for [`Table::snapshot`]; the rows themselves `Corrupt` when a block does not fit its
    /// checksum.
    pub fn iter(&self) -> Result<TableRows> {
        Ok(self.snapshot()?.iter())
    }

    /// Removes all rows at once, however many there are. Row ids begin again at 1. Handles go on
    /// working; a [`Load`](crate::Load) that has begun before fails.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let table = db.create_table("t", Schema::builder().field("n", DataType::I64).build()?)?;
    /// table.insert_many(&[vec![1i64.into()], vec![2i64.into()]])?;
    /// table.clear()?;
    /// assert_eq!(table.count()?, 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` when the table has been dropped.
    pub fn clear(&self) -> Result<()> {
        self.engine.truncate_core(self)
    }
}
