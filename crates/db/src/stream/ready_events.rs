//! Events that are ready for their commit: whole, fitted to their fields and tested, by column.
//!
//! They are tested together, column by column. Where one is refused, each is looked at by itself,
//! and the others are ready.

use std::sync::Arc;

use esker_format::{Batch, ColumnSlice, Schema, Value, Values};
use esker_log::sabotage::Bug;

use super::Stream;
use crate::bulk_load::check_batch;
use crate::commit::fit::fit_row;
use crate::table_version::TableVersion;
use crate::{Error, Result};

/// Rows that are ready for a schema of a stream.
#[derive(Clone, Debug)]
pub struct ReadyRows {
    /// What they were made ready for.
    pub schema: Arc<Schema>,
    /// The rows, by column.
    pub columns: Batch,
}

/// Events of which some may be ready.
#[derive(Debug)]
pub struct ReadyEvents {
    /// Those that are.
    pub rows: ReadyRows,
    /// Of each event, in order, why it is not.
    pub tested: Vec<Result<()>>,
}

impl ReadyRows {
    /// None, of a stream with a schema.
    #[must_use]
    pub fn none(schema: &Arc<Schema>) -> Self {
        Self { schema: Arc::clone(schema), columns: Batch::empty(schema) }
    }

    /// Takes all of them out.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let columns = std::mem::take(&mut self.columns);
        Self { schema: Arc::clone(&self.schema), columns }
    }

    /// Adds a row that is whole and tested.
    ///
    /// # Errors
    /// `InvalidInput` when it does not fit.
    pub fn push(&mut self, row: &[Value]) -> Result<()> {
        Ok(self.columns.push_row(&self.schema, row)?)
    }

    /// Adds rows that are ready for the same schema.
    ///
    /// # Errors
    /// `InvalidInput` for more than 4 GiB of texts.
    pub fn append(&mut self, rows: Self) -> Result<()> {
        if self.is_empty() {
            *self = rows;
            return Ok(());
        }
        for (to, from) in self.columns.columns.iter_mut().zip(&rows.columns.columns) {
            to.append(&ColumnSlice::from(from))?;
        }
        Ok(())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The times of events, in microseconds since 1970.
    ///
    /// # Errors
    /// `Corrupt` for rows of what is no stream.
    pub fn times(&self) -> Result<&[i64]> {
        times_of(&self.schema, &self.columns)
    }

    /// The rows, value by value.
    pub(super) fn to_rows(&self) -> Vec<Vec<Value>> {
        (0..self.len()).map(|at| row_of(&self.columns, at)).collect()
    }
}

impl ReadyEvents {
    /// No event yet.
    fn new(schema: &Arc<Schema>, events: usize) -> Self {
        Self { rows: ReadyRows::none(schema), tested: Vec::with_capacity(events) }
    }

    /// The time of each event, in microseconds since 1970, or why it is not ready.
    ///
    /// # Errors
    /// As for [`ReadyRows::times`].
    pub fn times(&self) -> Result<Vec<Result<i64>>> {
        let mut times = self.rows.times()?.iter();
        let time = |tested: &Result<()>| match tested {
            Ok(()) => times.next().copied().ok_or_else(super::fate::lost),
            Err(e) => Err(e.repeated()),
        };
        Ok(self.tested.iter().map(time).collect())
    }

    /// The outcome of each event, by what became of those that are ready.
    pub(super) fn outcomes<T>(self, stored: Vec<Result<T>>) -> Vec<Result<T>> {
        let mut stored = stored.into_iter();
        let outcome = |tested: Result<()>| {
            tested?;
            stored.next().ok_or_else(super::fate::lost)?
        };
        self.tested.into_iter().map(outcome).collect()
    }

    fn add(&mut self, row: Result<Vec<Value>>) {
        self.tested.push(row.and_then(|row| self.rows.push(&row)));
    }
}

impl Stream {
    /// Makes events ready that are given whole, value by value.
    pub(super) fn ready_events(
        &self,
        current: &TableVersion,
        events: &[impl AsRef<[Value]>],
    ) -> ReadyEvents {
        let schema = &current.schema;
        let mut ready = ReadyEvents::new(schema, events.len());
        for event in events {
            // A value of another type may still fit; if not, this error names the field.
            let fitted = match ready.rows.push(event.as_ref()) {
                Ok(()) => Ok(()),
                Err(_) => fit_row(schema, event.as_ref()).and_then(|row| ready.rows.push(&row)),
            };
            ready.tested.push(fitted);
        }
        if self.test_together(current, &mut ready.rows.columns).is_ok() {
            return ready;
        }
        let mut ready = ReadyEvents::new(schema, events.len());
        events.iter().for_each(|event| ready.add(self.ready(current, event.as_ref())));
        let refused = ready.tested.iter().find_map(|tested| tested.as_ref().err());
        if let Some(e) = refused.filter(|_| Bug::OneBadItemFailsBatch.is_planted()) {
            let tested = events.iter().map(|_| Err(e.repeated())).collect();
            return ReadyEvents { rows: ReadyRows::none(schema), tested };
        }
        ready
    }

    /// Makes events ready that come by column, made for a schema of the stream. Rows that are
    /// marked so ([`Column::DEFAULT_MARK`](crate::Column::DEFAULT_MARK)) get defaults.
    pub fn ready_columns(&self, schema: &Arc<Schema>, mut batch: Batch) -> ReadyEvents {
        let engine = &self.table.engine;
        let current = TableVersion { schema: Arc::clone(schema), ..self.table.current() };
        if let Err(e) = engine.fill_batch(schema, &mut batch) {
            let mut ready = ReadyEvents::new(schema, batch.len());
            ready.tested.extend((0..batch.len()).map(|_| Err(e.repeated())));
            return ready;
        }
        // A file may lack the column of a field that has to be given.
        let is_fit = check_batch(schema, &batch, 0).is_ok();
        if is_fit && self.test_together(&current, &mut batch).is_ok() {
            let tested = (0..batch.len()).map(|_| Ok(())).collect();
            let rows = ReadyRows { schema: Arc::clone(schema), columns: batch };
            return ReadyEvents { rows, tested };
        }
        self.ready_each(schema, &batch)
    }

    /// Makes each row of a batch ready by itself, whatever the batch is.
    pub(super) fn ready_each(&self, schema: &Arc<Schema>, batch: &Batch) -> ReadyEvents {
        let current = TableVersion { schema: Arc::clone(schema), ..self.table.current() };
        let mut ready = ReadyEvents::new(schema, batch.len());
        (0..batch.len()).for_each(|at| ready.add(self.ready(&current, &row_of(batch, at))));
        ready
    }

    /// Computes what is generated of rows that fit, and tests them. They are left as they are where
    /// one is refused.
    fn test_together(&self, current: &TableVersion, batch: &mut Batch) -> Result<()> {
        let (engine, schema) = (&self.table.engine, &current.schema);
        engine.expect_times(schema, batch, 0)?;
        let mut whole = schema.has_generated().then(|| batch.clone());
        if let Some(whole) = &mut whole {
            engine.complete_batch(current, whole, 0)?;
        }
        // default: where nothing is computed they are whole
        let tested = whole.as_ref().unwrap_or(batch);
        if let Some(checks) = engine.checks(current)? {
            checks.test(tested, 0, &engine.limits())?;
        }
        if let Some(whole) = whole {
            *batch = whole;
        }
        Ok(())
    }
}

/// A row of a batch, value by value.
pub(super) fn row_of(batch: &Batch, at: usize) -> Vec<Value> {
    batch.columns.iter().map(|column| column.value(at).to_owned()).collect()
}

/// The times of events, in microseconds since 1970.
pub(super) fn times_of<'b>(schema: &Schema, batch: &'b Batch) -> Result<&'b [i64]> {
    let time = schema.stream().map(|stream| stream.time);
    let at = schema.fields().iter().position(|field| Some(field.id) == time);
    match at.and_then(|at| batch.columns.get(at)).map(|column| &column.values) {
        Some(Values::I64(times)) => Ok(times),
        _ => Err(Error::corrupt("events without times")),
    }
}
