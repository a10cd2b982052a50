//! Rows of calls, one after another.

use esker_format::{Batch, Column, DataType, Schema, ValueRef};

use crate::exec::output::RowBatches;
use crate::{Options, Result, ZONE_ROWS};

/// Rows are counted once they have so many bytes of texts and documents.
const BYTES_UNCOUNTED: usize = 1 << 20;

/// Rows that calls have made.
pub(crate) struct MadeRows<'o> {
    types: Vec<DataType>,
    batch: Batch,
    /// The bytes of texts and documents in the batch.
    bytes: usize,
    batches: RowBatches<'o>,
    options: &'o Options,
    /// The number of the next row within its call, where there is a column for it.
    ordinality: i64,
    /// What stands in the last column.
    mark: Option<i64>,
    /// How many more rows are wanted.
    left: u64,
}

impl<'o> MadeRows<'o> {
    /// Rows with the columns of a schema: those that calls make; where there is one more, the
    /// number of the row within its call.
    pub(crate) fn new(schema: &Schema, options: &'o Options) -> Self {
        let types: Vec<DataType> = schema.fields().iter().map(|field| field.data_type).collect();
        let (batch, batches) = (empty(&types), RowBatches::new(options));
        let left = u64::MAX;
        Self { types, batch, bytes: 0, batches, options, ordinality: 1, mark: None, left }
    }

    /// Takes no more than so many rows.
    pub(crate) fn at_most(mut self, most: Option<u64>) -> Self {
        self.left = most.unwrap_or(u64::MAX); // default: as many as there are
        self
    }

    /// True when no more rows are wanted.
    pub(crate) fn is_full(&self) -> bool {
        self.left == 0
    }

    /// The next rows are those of another call, which have a number in the last column.
    pub(crate) fn begin(&mut self, mark: i64) {
        (self.ordinality, self.mark) = (1, Some(mark));
    }

    /// Adds a row of what a call makes.
    ///
    /// # Errors
    /// `OverBudget` with the number of bytes needed; when the statement is to end.
    pub(crate) fn push(&mut self, values: &[ValueRef<'_>]) -> Result<()> {
        let beside = [Some(ValueRef::Int(self.ordinality)), self.mark.map(ValueRef::Int)];
        let has_ordinality = self.types.len() > values.len() + usize::from(self.mark.is_some());
        let beside = beside.into_iter().skip(usize::from(!has_ordinality)).flatten();
        for (column, value) in
            self.batch.columns.iter_mut().zip(values.iter().copied().chain(beside))
        {
            column.push(value)?;
        }
        self.ordinality += 1;
        self.left = self.left.saturating_sub(1);
        let bytes = values.iter().filter_map(|value| value.as_bytes()).map(<[u8]>::len);
        self.bytes += bytes.sum::<usize>();
        if self.batch.len() == ZONE_ROWS || self.bytes >= BYTES_UNCOUNTED {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.options.expect_time_left()?;
        self.bytes = 0;
        let full = std::mem::replace(&mut self.batch, empty(&self.types));
        self.batches.push(full).map(drop)
    }

    /// The rows, which are held until the end of the statement.
    ///
    /// # Errors
    /// As [`MadeRows::push`].
    pub(crate) fn finish(mut self) -> Result<Vec<Batch>> {
        if !self.batch.is_empty() {
            self.flush()?;
        }
        self.batches.finish()
    }
}

fn empty(types: &[DataType]) -> Batch {
    Batch { columns: types.iter().map(|data_type| Column::empty(*data_type)).collect() }
}
