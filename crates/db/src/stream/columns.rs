//! Events that come by column, as readers of files and long bodies have them.

use std::ops::Range;
use std::sync::Arc;

use esker_format::{Batch, ColumnSlice, Schema};

use super::fate::{self, Fate};
use super::lead::is_final;
use super::ready_events::times_of;
use super::{EventId, Stream};
use crate::bulk_load::check_batch;
use crate::commit::gathered_events::COMMIT_ROWS;
use crate::{Error, ErrorKind, Result};

/// What became of events that came by column.
#[derive(Debug)]
pub struct AppendedColumns {
    /// The id of each, or why it was not stored: `Duplicate` with its id, where it was there.
    pub events: Vec<Result<EventId>>,
    /// The commit that has to be durable before that is reported; `None`: it may be now.
    pub commit: Option<u64>,
    /// A commit that is not before those of the events: once it is on the disk, they are.
    pub newest: u64,
}

impl Stream {
    /// Adds events given by column, made for a schema of the stream, each with an outcome of its
    /// own. They are one commit, or several where some are refused. Rows that are marked so
    /// ([`Column::DEFAULT_MARK`](crate::Column::DEFAULT_MARK)) get defaults. The call does not wait
    /// for the disk.
    pub fn append_columns(&self, schema: &Arc<Schema>, mut batch: Batch) -> AppendedColumns {
        let handle = self.with_deferred();
        let events = match handle.table.engine.fill_batch(schema, &mut batch) {
            Ok(()) => handle.commit_pieces(schema, &batch),
            Err(e) => refused(&e, batch.len()),
        };
        let engine = &handle.table.engine;
        let commit = engine.take_deferred_commit();
        AppendedColumns { events, commit, newest: engine.watermarks.published() }
    }

    fn commit_pieces(&self, schema: &Arc<Schema>, batch: &Batch) -> Vec<Result<EventId>> {
        if batch.len() <= COMMIT_ROWS {
            return self.commit_columns(schema, batch);
        }
        let mut events: Vec<Result<EventId>> = Vec::with_capacity(batch.len());
        for start in (0..batch.len()).step_by(COMMIT_ROWS) {
            let end = batch.len().min(start + COMMIT_ROWS);
            // What has ended one piece would end the next, and none is stored behind one that is
            // not.
            let ends = |e: &&Error| is_final(e) || e.kind() == ErrorKind::OverBudget;
            let ended = events.iter().filter_map(|event| event.as_ref().err()).find(ends);
            if let Some(e) = ended.map(Error::repeated) {
                events.extend(refused(&e, end - start));
                continue;
            }
            match piece(schema, batch, start..end) {
                Ok(piece) => events.extend(self.commit_columns(schema, &piece)),
                Err(e) => events.extend(refused(&e, end - start)),
            }
        }
        events
    }

    /// Those that are new, where some may be there.
    fn commit_columns(&self, schema: &Arc<Schema>, batch: &Batch) -> Vec<Result<EventId>> {
        let Some(mut deduping) = self.deduping(schema) else {
            return self.commit_new_columns(schema, batch);
        };
        // Before they are tested they are no events that others could be the same as.
        let ready = self.ready_columns(schema, batch.clone());
        let asked = deduping.fates(&[&ready.rows]).and_then(|fates| Ok((ready.times()?, fates)));
        let (times, fates) = match asked {
            Ok(asked) => asked,
            Err(e) => return refused(&e, batch.len()),
        };
        if times.iter().all(Result::is_ok) && fates.iter().all(Fate::is_new) {
            return self.commit_new_columns(schema, batch);
        }
        let stored = match ready.rows.of_new(&fates) {
            Ok(new) => self.commit_ready(new),
            Err(e) => return refused(&e, batch.len()),
        };
        let outcomes = ready.outcomes(fate::outcomes(&fates, stored));
        let id = |(row_id, time): (Result<u64>, Result<i64>)| Ok(EventId::new(time?, row_id?));
        outcomes.into_iter().zip(times).map(id).collect()
    }

    fn commit_new_columns(&self, schema: &Arc<Schema>, batch: &Batch) -> Vec<Result<EventId>> {
        match self.commit_whole(schema, batch) {
            Ok(first) => match times_of(schema, batch) {
                Ok(times) => {
                    (first..).zip(times).map(|(id, at)| Ok(EventId::new(*at, id))).collect()
                }
                Err(e) => refused(&e, batch.len()),
            },
            Err(e) if is_final(&e) => refused(&e, batch.len()),
            Err(_) => self.commit_rows_of(schema, batch),
        }
    }

    /// All of them in one commit.
    fn commit_whole(&self, schema: &Arc<Schema>, batch: &Batch) -> Result<u64> {
        let current = self.table.current();
        if !Arc::ptr_eq(&current.schema, schema) {
            return Err(Error::new(ErrorKind::Conflict, "the stream has another schema"));
        }
        check_batch(schema, batch, 0)?;
        self.table.engine.commit_batch(&current, batch)
    }

    /// Each with an outcome of its own, where one at least is refused.
    fn commit_rows_of(&self, schema: &Arc<Schema>, batch: &Batch) -> Vec<Result<EventId>> {
        let ready = self.ready_each(schema, batch);
        let times = match ready.times() {
            Ok(times) => times.into_iter(),
            Err(e) => return refused(&e, batch.len()),
        };
        let stored = self.commit_ready(ready.rows.clone());
        let stored = ready.outcomes(stored).into_iter();
        stored.zip(times).map(|(row_id, at)| Ok(EventId::new(at?, row_id?))).collect()
    }
}

/// Some rows of a batch.
fn piece(schema: &Schema, batch: &Batch, rows: Range<usize>) -> Result<Batch> {
    let mut piece = Batch::empty(schema);
    for (to, from) in piece.columns.iter_mut().zip(&batch.columns) {
        to.append(&ColumnSlice::from(from).rows(rows.start, rows.end))?;
    }
    Ok(piece)
}

/// The same error for each of so many.
fn refused<T>(e: &Error, count: usize) -> Vec<Result<T>> {
    (0..count).map(|_| Err(e.repeated())).collect()
}
