//! A stream of rows into one table, committed as it goes.

use esker_arena::{Category, Reservation};
use esker_format::frame::PAYLOAD_BYTES_MAX;
use esker_format::{Batch, Schema, Value};
use esker_query::model::OnConflict;

use super::check_batch;
use crate::commit::fit::fit_row;
use crate::limits::without_limits;
use crate::table_version::TableVersion;
use crate::{Result, Table};

/// Rows gathered before they are committed together.
const BATCH_ROWS: usize = 4_096;
/// Bytes of a row that is a commit of its own.
const OWN_COMMIT_BYTES: usize = 4 << 20;
/// Bytes gathered before they are committed together, as the log holds them.
const BATCH_BYTES: usize = 1 << 20;
/// The most bytes of a row in the log beside its values: what it is a change of.
const ROW_HEAD_BYTES: usize = 20;
/// Memory of gathered rows, over the bytes of their values: it grows by doubling.
const MEMORY_FACTOR: u64 = 2;
/// Memory counted beside what is needed, so that not each row reserves.
const MEMORY_STEP_BYTES: u64 = 64 << 10;
/// The most bytes of the length of one text or bytes value.
const LENGTH_BYTES: usize = 5;

/// Appends a stream of rows. Every few thousand rows are one atomic commit; [`Appender::flush`]
/// and [`Appender::finish`] commit what is left. Dropping it loses what was not flushed.
pub struct Appender {
    table: Table,
    current: TableVersion,
    /// Where nothing is looked up: columns, without a value per row.
    batch: Batch,
    /// Otherwise: rows, since each is looked up.
    rows: Vec<Vec<Value>>,
    /// How many rows are gathered.
    gathered: usize,
    /// The most bytes that the gathered rows take in the log.
    bytes: usize,
    /// The most bytes of a row in the log, without its texts and bytes.
    row_bytes: usize,
    /// Bytes of memory of a gathered row beside that.
    row_memory: usize,
    /// Memory counted for gathered rows.
    held: Reservation,
    generated: bool,
    /// Positions of the fields whose values differ in length.
    variable: Vec<usize>,
}

impl Appender {
    pub(crate) fn new(table: Table) -> Self {
        let current = table.current();
        let schema = &current.schema;
        let generated = !schema.has_unique_values();
        let batch = Batch::empty(schema);
        let is_variable = |f: &esker_format::Field| f.data_type.width().is_none();
        let fields = schema.fields().iter().enumerate();
        let variable = fields.filter(|(_, f)| is_variable(f)).map(|(p, _)| p).collect();
        let row_bytes = row_bytes(schema);
        // Values in columns take what they take in the log. A row of its own takes more.
        let values = schema.fields().len() * size_of::<Value>() + size_of::<Vec<Value>>();
        let row_memory = if generated { 0 } else { values };
        let held = Reservation::new(&table.engine.arena, Category::Load);
        Self {
            table,
            current,
            batch,
            rows: Vec::new(),
            gathered: 0,
            bytes: 0,
            row_bytes,
            row_memory,
            held,
            generated,
            variable,
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// `InvalidInput` when a value does not fit its field, `OverBudget` when there is no memory for
    /// the row (the row is not added then), and what [`Appender::flush`] returns when the batch is
    /// full.
    #[inline]
    pub fn append(&mut self, row: &[Value]) -> Result<()> {
        let mut bytes = self.row_bytes;
        for position in &self.variable {
            let value = row.get(*position).and_then(|v| v.as_ref().as_bytes());
            // default: what is no text or bytes has none
            bytes += value.map_or(0, <[u8]>::len);
        }
        if bytes > OWN_COMMIT_BYTES {
            // A commit of its own, which need not go through the log.
            self.commit()?;
            return self.table.put_once(&self.current, row, true).map(drop);
        }
        if self.bytes + bytes > PAYLOAD_BYTES_MAX {
            self.commit()?;
        }
        if self.memory_with(bytes) > self.held.bytes() {
            self.find_memory(bytes)?;
        }
        if self.generated {
            self.batch.push_row(&self.current.schema, row)?;
        } else {
            self.rows.push(fit_row(&self.current.schema, row)?.into_owned());
        }
        self.bytes += bytes;
        self.gathered += 1;
        if self.gathered >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    /// What the gathered rows take with another one of so many bytes in the log.
    #[inline]
    fn memory_with(&self, bytes: usize) -> u64 {
        MEMORY_FACTOR * (self.bytes + bytes + self.row_memory * (self.gathered + 1)) as u64
    }

    #[cold]
    fn find_memory(&mut self, bytes: usize) -> Result<()> {
        let engine = std::sync::Arc::clone(&self.table.engine);
        let ample = self.memory_with(bytes) + MEMORY_STEP_BYTES;
        if engine.reserve_for_load(&mut self.held, ample) {
            return Ok(());
        }
        self.flush()?;
        let needed = self.memory_with(bytes);
        if engine.seal_for_load(&mut self.held, needed)? {
            return Ok(());
        }
        Err(engine.refuse_load(&self.held, needed))
    }

    /// Adds many rows by column.
    ///
    /// # Errors
    /// `InvalidInput` when the batch is not what [`Load::push`](crate::Load::push) takes (no row
    /// is added), and as for [`Appender::append`].
    pub fn append_batch(&mut self, batch: &Batch) -> Result<()> {
        check_batch(&self.current.schema, batch, 0)?;
        for i in 0..batch.len() {
            let row: Vec<Value> = batch.columns.iter().map(|c| c.value(i).to_owned()).collect();
            self.append(&row)?;
        }
        Ok(())
    }

    /// Commits what has been appended, and gives the memory for it back.
    ///
    /// # Errors
    /// `AlreadyExists` when a key does: none of the rows since the last flush is added then.
    pub fn flush(&mut self) -> Result<()> {
        let result = self.commit();
        self.batch = Batch::empty(&self.current.schema);
        self.held.shrink(0);
        result
    }

    /// Commits what has been appended. More rows are likely to come: columns keep their memory.
    fn commit(&mut self) -> Result<()> {
        self.bytes = 0;
        self.gathered = 0;
        if self.generated {
            if self.batch.is_empty() {
                return Ok(());
            }
            let result = self.table.engine.commit_batch(&self.current, &self.batch);
            self.batch.columns.iter_mut().for_each(esker_format::Column::clear);
            return result.map(drop);
        }
        let rows = std::mem::take(&mut self.rows);
        let result = match rows.as_slice() {
            [] => Ok(()),
            rows => {
                let table = &self.table;
                table.put_batch(&self.current, rows, &OnConflict::Fail, &without_limits).map(drop)
            }
        };
        drop(rows);
        self.held.shrink(0);
        result
    }

    /// Commits what is left and ends the stream.
    ///
    /// # Errors
    /// As for [`Appender::flush`].
    pub fn finish(mut self) -> Result<()> {
        self.flush()
    }
}

/// The most bytes of a row of a schema in the log, without its texts and bytes.
fn row_bytes(schema: &Schema) -> usize {
    let nulls = schema.fields().len().div_ceil(8);
    // default: texts and bytes have a length in place of a width
    let widths = schema.fields().iter().map(|f| f.data_type.width().unwrap_or(LENGTH_BYTES));
    ROW_HEAD_BYTES + nulls + widths.sum::<usize>()
}
