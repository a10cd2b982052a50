//! One commit for all events that wait.
//!
//! Their rows are tested before. What may still be in the way of one is found in the commit: a row
//! that it refers to is gone, say. Then the requests go alone, and of one that is not whole each
//! row. Rows that were made ready for an older schema are made ready again.

use std::sync::Arc;

use esker_format::{Batch, Value};

use super::Stream;
use crate::commit::gathered_events::{Appended, EventRequest};
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

impl Stream {
    /// Commits what waits, until nothing does.
    pub fn lead(&self) {
        loop {
            let requests = self.gathered.take();
            if requests.is_empty() {
                return;
            }
            let (mut rows, mut dones) = (Vec::new(), Vec::new());
            for EventRequest { schema, rows: own, is_whole, done } in requests {
                rows.push(Part { schema, rows: own, is_whole });
                dones.push(done);
            }
            let handle = self.with_deferred();
            let outcomes = handle.commit_parts(&rows);
            let commit = handle.table.engine.take_deferred_commit();
            for (done, outcomes) in dones.into_iter().zip(outcomes) {
                done(Appended { outcomes, commit });
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
                Err(e) if is_final(&e) || rows().count() == 1 => {
                    return parts.iter().map(|part| part.all(&e)).collect();
                }
                Err(_) => {}
            }
        }
        parts.iter().map(|part| self.commit_alone(part)).collect()
    }

    /// The rows of one request: all of them or none, or each for itself.
    fn commit_alone(&self, part: &Part) -> Vec<Result<u64>> {
        let together = self.commit_again(&part.rows);
        match together {
            Ok(first) => (first..).take(part.rows.len()).map(Ok).collect(),
            Err(e) if part.is_whole || part.rows.len() == 1 || is_final(&e) => part.all(&e),
            Err(_) => {
                let alone = |row: &Vec<Value>| self.commit_again(std::slice::from_ref(row));
                part.rows.iter().map(alone).collect()
            }
        }
    }

    /// Makes rows ready for the schema of now, and commits them.
    fn commit_again(&self, rows: &[Vec<Value>]) -> Result<u64> {
        self.table.attempt(|current| {
            let ready = rows.iter().map(|row| self.ready(current, row));
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
    schema: Arc<esker_format::Schema>,
    rows: Vec<Vec<Value>>,
    is_whole: bool,
}

impl Part {
    /// The same error for each row.
    fn all(&self, e: &Error) -> Vec<Result<u64>> {
        self.rows.iter().map(|_| Err(e.repeated())).collect()
    }
}

/// Whether nothing may be tried again: it is unknown what was done, or nothing can be.
fn is_final(e: &Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::OutcomeUnknown
            | ErrorKind::Poisoned
            | ErrorKind::Io
            | ErrorKind::OverBudget
            | ErrorKind::ReadOnly
    )
}
