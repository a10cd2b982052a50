//! Answers.

use std::ops::ControlFlow;

use esker_format::{Batch, DataType, Value, ValueRef};

use crate::Result;

/// One column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// Its name: the alias, the field, or the text of the expression.
    pub name: String,
    /// What it holds.
    pub data_type: DataType,
}

/// What running a query took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Rows that a filter or an aggregate looked at, the invisible ones included.
    pub rows_scanned: u64,
    /// Zones of the table, of [`crate::ZONE_ROWS`] rows each.
    pub zones: u64,
    /// Zones that their zone maps excluded.
    pub zones_pruned: u64,
    /// Nanoseconds from start to end.
    pub elapsed_ns: u64,
}

impl Statistics {
    /// The same where it took so much longer to make ready what was read.
    pub(crate) fn after(self, ready_ns: u64) -> Self {
        Self { elapsed_ns: self.elapsed_ns + ready_ns, ..self }
    }
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryResult {
    /// The columns.
    pub columns: Vec<ResultColumn>,
    /// The rows, in order, some thousands to a batch. No batch is empty.
    pub batches: Vec<Batch>,
    /// What it took.
    pub statistics: Statistics,
}

impl QueryResult {
    /// The number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.batches.iter().map(Batch::len).sum()
    }

    /// The rows, one after another, each with a value per column.
    pub fn rows(&self) -> impl Iterator<Item = Vec<ValueRef<'_>>> {
        self.batches.iter().flat_map(|batch| {
            (0..batch.len()).map(|i| batch.columns.iter().map(|c| c.value(i)).collect())
        })
    }

    /// The rows as owned values.
    #[must_use]
    pub fn to_rows(&self) -> Vec<Vec<Value>> {
        let owned = |row: Vec<ValueRef<'_>>| row.into_iter().map(ValueRef::to_owned).collect();
        self.rows().map(owned).collect()
    }
}

/// Takes an answer as it is found.
pub trait AnswerSink {
    /// The columns, before any row; breaks when no row is wanted.
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()>;
    /// Some rows; breaks when no more are wanted.
    ///
    /// # Errors
    /// What ends the query with it.
    fn rows(&mut self, batch: Batch) -> Result<ControlFlow<()>>;
}

/// A function takes rows alone.
impl<F: FnMut(Batch) -> Result<ControlFlow<()>>> AnswerSink for F {
    fn columns(&mut self, _columns: &[ResultColumn]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn rows(&mut self, batch: Batch) -> Result<ControlFlow<()>> {
        self(batch)
    }
}

/// About how many bytes of memory a batch takes.
pub(crate) fn batch_bytes(batch: &Batch) -> usize {
    batch.columns.iter().map(column_bytes).sum()
}

/// About how many bytes of memory a column takes.
pub(crate) fn column_bytes(column: &esker_format::Column) -> usize {
    let heap = match &column.values {
        esker_format::Values::Variable(v) => v.heap.len() + v.offsets.len() * 4,
        values => values.len() * column.data_type.width().unwrap_or(8),
    };
    heap + column.nulls.as_ref().map_or(0, Vec::len)
}
