//! One commit for all events that wait.
//!
//! Their rows are tested before. What may still be in the way of one is found in the commit: a row
//! that it refers to is gone, say. Then the requests go alone, and of one that is not whole each
//! row. Rows that were made ready for an older schema are made ready again.

use std::sync::Arc;

use esker_format::{Batch, Field, Schema, Value};

use super::Stream;
use crate::commit::gathered_events::{Appended, EventRequest, GatheredEvents};
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

/// The duty to commit the events that wait, until none does: by [`Lead::run`], or when it is
/// dropped, as it is when a client disconnects.
#[must_use]
pub struct Lead {
    stream: Stream,
    is_done: bool,
}

impl Lead {
    pub(super) fn of(stream: &Stream) -> Self {
        Self { stream: stream.clone(), is_done: false }
    }

    /// Commits what waits.
    pub fn run(mut self) {
        self.lead();
    }

    fn lead(&mut self) {
        if !std::mem::replace(&mut self.is_done, true) {
            self.stream.lead();
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.lead();
    }
}

/// Gives up the waiting requests when leading ends in a panic; the next request leads then.
struct Leading<'s>(Option<&'s GatheredEvents>);

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|gathered| gathered.abandon());
    }
}

impl Stream {
    /// Commits what waits, until nothing does.
    fn lead(&self) {
        let mut leading = Leading(Some(&self.gathered));
        loop {
            let requests = self.gathered.take();
            if requests.is_empty() {
                leading.0 = None;
                return;
            }
            let (mut rows, mut dones) = (Vec::new(), Vec::new());
            for EventRequest { schema, rows: own, is_whole, done } in requests {
                rows.push(Part { schema, rows: own, is_whole });
                dones.push(done);
            }
            let handle = self.with_deferred();
            let outcomes = handle.commit_parts(&rows);
            let engine = &handle.table.engine;
            let (commit, newest) = (engine.take_deferred_commit(), engine.watermarks.published());
            for (done, outcomes) in dones.into_iter().zip(outcomes) {
                done(Appended { outcomes, commit, newest });
            }
        }
    }

    /// The same stream, whose calls do not wait for the disk.
    fn with_deferred(&self) -> Self {
        let mut stream = self.clone();
        stream.table.engine = self.table.engine.deferred();
        stream
    }

    /// The outcomes of each part.
    fn commit_parts(&self, parts: &[Part]) -> Vec<Vec<Result<u64>>> {
        let current = self.table.current();
        let is_ready = parts.iter().all(|part| Arc::ptr_eq(&part.schema, &current.schema));
        if is_ready {
            let rows = || parts.iter().flat_map(|part| &part.rows);
            match self.commit(&current, rows()) {
                Ok(first) => {
                    let mut next = first..;
                    let mut ids =
                        |part: &Part| next.by_ref().take(part.rows.len()).map(Ok).collect();
                    return parts.iter().map(&mut ids).collect();
                }
                Err(e) if is_final(&e) => {
                    return parts.iter().map(|part| part.all(&e)).collect();
                }
                Err(_) => {}
            }
        }
        parts.iter().map(|part| self.commit_alone(part)).collect()
    }

    /// The rows of one request: all of them or none, or each for itself.
    fn commit_alone(&self, part: &Part) -> Vec<Result<u64>> {
        match part.is_whole {
            false => self.commit_each(part, &part.rows),
            true => match self.commit_again(part, &part.rows) {
                Ok(first) => (first..).take(part.rows.len()).map(Ok).collect(),
                Err(e) => part.all(&e),
            },
        }
    }

    /// Rows each of which is for itself: together, or in halves where that is refused.
    fn commit_each(&self, part: &Part, rows: &[Vec<Value>]) -> Vec<Result<u64>> {
        match self.commit_again(part, rows) {
            Ok(first) => (first..).take(rows.len()).map(Ok).collect(),
            Err(e) if rows.len() == 1 || is_final(&e) => {
                rows.iter().map(|_| Err(e.repeated())).collect()
            }
            Err(_) => {
                let (before, behind) = rows.split_at(rows.len() / 2);
                let mut outcomes = self.commit_each(part, before);
                outcomes.extend(self.commit_each(part, behind));
                outcomes
            }
        }
    }

    /// Makes rows ready for the schema of now, and commits them.
    fn commit_again(&self, part: &Part, rows: &[Vec<Value>]) -> Result<u64> {
        self.table.attempt(|current| {
            let ready = rows.iter().map(|row| {
                if Arc::ptr_eq(&part.schema, &current.schema) {
                    return self.ready(current, row);
                }
                let moved = part.moved(row, &current.schema);
                self.ready(current, &self.table.engine.fill_row(&current.schema, moved)?)
            });
            let ready = ready.collect::<Result<Vec<_>>>()?;
            self.commit(current, ready.iter())
        })
    }

    fn commit<'r>(
        &self,
        current: &TableVersion,
        rows: impl Iterator<Item = &'r Vec<Value>>,
    ) -> Result<u64> {
        let mut batch = Batch::empty(&current.schema);
        for row in rows {
            batch.push_row(&current.schema, row)?;
        }
        self.table.engine.commit_tested(current, &batch)
    }
}

/// The rows of one request.
struct Part {
    schema: Arc<Schema>,
    rows: Vec<Vec<Value>>,
    is_whole: bool,
}

impl Part {
    /// The values of a row where another schema has their fields: what is gone is left out.
    fn moved(&self, row: &[Value], to: &Schema) -> Vec<(usize, Value)> {
        let fields = self.schema.fields().iter().zip(row);
        let place = |(field, value): (&Field, &Value)| {
            let at = to.fields().iter().position(|other| other.id == field.id)?;
            Some((at, value.clone()))
        };
        fields.filter_map(place).collect()
    }

    /// The same error for each row.
    fn all(&self, e: &Error) -> Vec<Result<u64>> {
        self.rows.iter().map(|_| Err(e.repeated())).collect()
    }
}

/// Whether nothing may be tried again: it is unknown what was done, or nothing can be.
fn is_final(e: &Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::OutcomeUnknown | ErrorKind::Poisoned | ErrorKind::Io | ErrorKind::ReadOnly
    )
}
