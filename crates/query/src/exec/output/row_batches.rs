//! Rows that are collected, as they come, to be read again.

use std::ops::ControlFlow;

use esker_format::{Batch, Column};

use super::materialised::slice;
use crate::budget::Charge;
use crate::{Error, Options, Result, ZONE_ROWS};

/// Rows in memory, counted.
pub(crate) struct RowBatches<'o> {
    batches: Vec<Batch>,
    bytes: usize,
    charge: Charge<'o>,
}

impl<'o> RowBatches<'o> {
    pub(crate) fn new(options: &'o Options) -> Self {
        Self { batches: Vec::new(), bytes: 0, charge: options.memory().charge() }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// `OverBudget` with the number of bytes needed.
    pub(crate) fn push(&mut self, batch: Batch) -> Result<ControlFlow<()>> {
        self.bytes += crate::result::batch_bytes(&batch);
        self.charge.set(self.bytes)?;
        self.batches.push(batch);
        Ok(ControlFlow::Continue(()))
    }

    /// The batches, which are held until the end of the statement.
    pub(crate) fn finish(self) -> Result<Vec<Batch>> {
        let (batches, charge) = self.finish_charged()?;
        charge.keep();
        Ok(batches)
    }

    /// The batches, and what they take of the budget.
    pub(crate) fn finish_charged(self) -> Result<(Vec<Batch>, Charge<'o>)> {
        Ok((even(self.batches)?, self.charge))
    }
}

/// The same rows in batches of [`ZONE_ROWS`] but for the last.
pub(crate) fn even(batches: Vec<Batch>) -> Result<Vec<Batch>> {
    let full = batches.len().saturating_sub(1);
    if batches.iter().take(full).all(|batch| batch.len() == ZONE_ROWS) {
        return Ok(batches);
    }
    let mut even: Vec<Batch> = Vec::new();
    for batch in &batches {
        let mut start = 0;
        while start < batch.len() {
            if even.last().is_none_or(|last| last.len() == ZONE_ROWS) {
                let empty = batch.columns.iter().map(|column| Column::empty(column.data_type));
                even.push(Batch { columns: empty.collect() });
            }
            let Some(last) = even.last_mut() else { break };
            let end = batch.len().min(start + ZONE_ROWS - last.len());
            for (to, from) in last.columns.iter_mut().zip(&batch.columns) {
                let rows = slice(from, start..end).ok_or_else(|| Error::invalid("no such rows"))?;
                to.append(&rows)?;
            }
            start = end;
        }
    }
    Ok(even)
}
