//! Commits of rows with long values: these go to value files before the frame that refers to them.
//!
//! ```text
//! stage (commit lock) ─► some value is long ─► unlock ─► write the values, sync their files
//!   ─► lock ─► still as staged? ─► number the frame, apply, publish ─► unlock
//! ```
//!
//! Many writers share the current value file and a sync of it, as they share those of the log.
//! When another commit changed one of the rows meanwhile, nothing is done and the writer gets a
//! `Conflict`; the values that it wrote are garbage.

use esker_format::{Batch, Column, Schema, Value, Values};
use esker_table::value_file::StoredValue;

use crate::commit::staged::{Put, Staged};
use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

impl Engine {
    /// Has some row that is staged a value that is to go to a value file?
    pub(crate) fn has_long(&self, schema: &Schema, staged: &Staged<'_>) -> bool {
        self.is_durable()
            && staged.puts.iter().any(|put| self.long_fields(schema, put).next().is_some())
    }

    /// The fields of a row whose values are to go to value files.
    fn long_fields<'a>(
        &self,
        schema: &'a Schema,
        put: &'a Put<'_>,
    ) -> impl Iterator<Item = (usize, &'a Value)> {
        let most = self.options.values.long_bytes;
        put.row.iter().enumerate().filter(move |(field, value)| {
            value.as_ref().as_bytes().is_some_and(|bytes| bytes.len() > most)
                && may_be_long(schema, *field)
        })
    }

    /// Writes the long values of rows, and makes them durable.
    pub(crate) fn store_long(&self, schema: &Schema, puts: &mut [Put<'_>]) -> Result<()> {
        for put in &mut *puts {
            let mut long = Vec::new();
            for (field, value) in self.long_fields(schema, put) {
                // default: long fields are texts or bytes
                let bytes = value.as_ref().as_bytes().unwrap_or_default();
                long.push((field, self.store_value(bytes)?));
            }
            put.long = long;
        }
        puts.iter().flat_map(|put| &put.long).try_for_each(|(_, stored)| Ok(stored.sync()?))
    }

    /// Writes a value into a value file. It is not durable yet.
    pub(crate) fn store_value(&self, value: &[u8]) -> Result<StoredValue> {
        let (needed, limit) = (value.len() as u64, self.memory_limit_bytes);
        if needed > limit {
            let message = format!(
                "a value of {needed} bytes: whoever reads it needs as many bytes of memory, the \
                 limit is {limit}"
            );
            return Err(Error::new(ErrorKind::OverBudget, message));
        }
        Ok(self.segment_files.values().store(value, &mut || self.new_row_group())?)
    }

    /// Writes the long values of a batch, and makes them durable: by column, by rising row.
    pub(crate) fn store_long_columns(
        &self,
        schema: &Schema,
        batch: &Batch,
    ) -> Result<Vec<Vec<(usize, StoredValue)>>> {
        let columns = batch.columns.iter().enumerate();
        let stored: Vec<_> = columns
            .map(|(field, column)| match may_be_long(schema, field) {
                true => self.store_long_column(column),
                false => Ok(Vec::new()),
            })
            .collect::<Result<_>>()?;
        stored.iter().flatten().try_for_each(|(_, stored)| stored.sync())?;
        Ok(stored)
    }

    fn store_long_column(&self, column: &Column) -> Result<Vec<(usize, StoredValue)>> {
        let most = self.options.values.long_bytes;
        match &column.values {
            Values::Variable(values) if self.is_durable() && values.longest() > most => {
                let rows = (0..values.len()).filter(|row| values.get(*row).len() > most);
                rows.map(|row| Ok((row, self.store_value(values.get(row))?))).collect()
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// May the values of the field at a position lie in value files?
fn may_be_long(schema: &Schema, position: usize) -> bool {
    schema.fields().get(position).is_some_and(|field| schema.may_have_long_values(field))
}
