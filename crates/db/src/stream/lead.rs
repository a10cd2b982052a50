//! One commit for all events that wait.
//!
//! Their rows are tested before. What may still be in the way of one is found in the commit: a row
//! that it refers to is gone, say. Then the requests go alone, and of one that is not whole each
//! row; one with an entry beside it is one commit, without what is refused. Rows that were made
//! ready for an older schema are made ready again.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::{Batch, ColumnSlice, Field, Schema, Value};
use esker_log::sabotage::Bug;

use super::Stream;
use super::beside::Beside;
use super::kept::KeptEntry;
use super::ready_events::ReadyRows;
use crate::commit::gathered_events::{Appended, EventRequest, GatheredEvents};
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

/// How often what is refused is looked for anew.
const ATTEMPTS_MAX: usize = 8;

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

    /// Whether committing waits for memory first: not where a thread must not wait.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        self.stream.table.engine.is_short_of_memory()
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
            let (mut parts, mut dones) = (Vec::new(), Vec::new());
            for EventRequest { columns, schema, is_whole, entry, done } in requests {
                let entry = entry.and_then(|entry| entry.downcast::<KeptEntry>().ok());
                parts.push(Part { rows: ReadyRows { schema, columns }, is_whole, entry });
                dones.push(done);
            }
            let handle = self.with_deferred();
            let outcomes = handle.commit_parts(&parts);
            let engine = &handle.table.engine;
            let (commit, newest) = (engine.take_deferred_commit(), engine.watermarks.published());
            for (done, outcomes) in dones.into_iter().zip(outcomes) {
                done(Appended { outcomes, commit, newest });
            }
        }
    }

    /// The same stream, whose calls do not wait for the disk.
    pub(super) fn with_deferred(&self) -> Self {
        let mut stream = self.clone();
        stream.table.engine = self.table.engine.deferred();
        stream
    }

    /// The outcomes of each part.
    fn commit_parts(&self, parts: &[Part]) -> Vec<Vec<Result<u64>>> {
        let current = self.table.current();
        let is_ready = parts.iter().all(|part| Arc::ptr_eq(&part.rows.schema, &current.schema));
        if is_ready && have_distinct_entries(parts) {
            match self.commit_together(&current, parts) {
                Ok(first) => {
                    let mut next = first..;
                    let mut ids =
                        |part: &Part| next.by_ref().take(part.rows.len()).map(Ok).collect();
                    let mut outcomes: Vec<_> = parts.iter().map(&mut ids).collect();
                    if Bug::OutcomesOfOtherRequests.is_planted() {
                        outcomes.reverse();
                    }
                    return outcomes;
                }
                Err(e) if is_final(&e) => {
                    return parts.iter().map(|part| part.all(&e)).collect();
                }
                Err(_) => {}
            }
        }
        parts.iter().map(|part| self.commit_alone(part)).collect()
    }

    /// All parts, which are ready for the schema of now, in one commit.
    fn commit_together(&self, current: &TableVersion, parts: &[Part]) -> Result<u64> {
        let (mut entries, mut start) = (Vec::new(), 0);
        for part in parts {
            let rows = start..start + part.rows.len() as u64;
            start = rows.end;
            let entry = part.entry.as_deref();
            entries.extend(entry.map(|entry| Beside { entry, rows, refused: &[] }));
        }
        let mut gathered = None;
        let columns = match parts {
            [only] => &only.rows.columns,
            many => gathered.insert(gather(&current.schema, many)?),
        };
        self.commit(current, columns, (&entries, false))
    }

    /// The row ids of rows that are ready, each for itself.
    pub(super) fn commit_ready(&self, rows: ReadyRows) -> Vec<Result<u64>> {
        match rows.is_empty() {
            true => Vec::new(),
            false => self.commit_alone(&Part { rows, is_whole: false, entry: None }),
        }
    }

    /// The rows of one request: all of them or none, or each for itself.
    fn commit_alone(&self, part: &Part) -> Vec<Result<u64>> {
        let rows = part.rows.to_rows();
        match (part.is_whole, part.entry.as_deref()) {
            (false, None) => self.commit_each(part, &rows),
            (false, Some(entry)) => self.commit_one(part, &rows, entry),
            (true, entry) => {
                let all = 0..rows.len() as u64;
                let entry = entry.map(|entry| Beside { entry, rows: all, refused: &[] });
                match self.commit_again(part, &rows, (entry.as_slice(), false)) {
                    Ok(first) => (first..).take(rows.len()).map(Ok).collect(),
                    Err(e) => part.all(&self.named(part, &rows, e)),
                }
            }
        }
    }

    /// The rows of a request that is one commit with its entry: without those that are refused.
    fn commit_one(&self, part: &Part, all: &[Vec<Value>], entry: &KeptEntry) -> Vec<Result<u64>> {
        let mut refused: Vec<Option<Error>> = all.iter().map(|_| None).collect();
        for _ in 0..ATTEMPTS_MAX {
            let kept = all.iter().zip(&refused).filter(|(_, refused)| refused.is_none());
            let rows: Vec<Vec<Value>> = kept.map(|(row, _)| row.clone()).collect();
            let beside = Beside { entry, rows: 0..rows.len() as u64, refused: &refused };
            let committed = self.commit_again(part, &rows, (&[beside], false));
            let first = match committed {
                Ok(first) => first,
                Err(e) if is_final(&e) || e.kind() == ErrorKind::AlreadyExists => {
                    return part.all(&e);
                }
                Err(e) => {
                    let before = refused.iter().filter(|refused| refused.is_some()).count();
                    if let Err(e) = self.find_refused(part, (all, &mut refused)) {
                        return part.all(&e);
                    }
                    if refused.iter().filter(|refused| refused.is_some()).count() == before {
                        return part.all(&e);
                    }
                    continue;
                }
            };
            let mut ids = first..;
            let outcome = |refused: Option<Error>| match refused {
                Some(e) => Err(e),
                None => ids.next().ok_or_else(super::lost),
            };
            return refused.into_iter().map(outcome).collect();
        }
        let message = "the rows that others refer to kept changing";
        part.all(&Error::new(ErrorKind::Conflict, message))
    }

    /// Notes which rows a commit would refuse: none is made.
    ///
    /// # Errors
    /// What is not about a row, such as too little memory: what is noted is kept for good.
    fn find_refused(
        &self,
        part: &Part,
        (rows, refused): (&[Vec<Value>], &mut [Option<Error>]),
    ) -> Result<()> {
        let probed = self.commit_again(part, rows, (&[], true));
        let (Err(e), Some(first)) = (probed, refused.first_mut()) else { return Ok(()) };
        if !matches!(e.kind(), ErrorKind::ConstraintViolated | ErrorKind::InvalidInput) {
            return Err(e);
        }
        if rows.len() == 1 {
            first.get_or_insert(e);
            return Ok(());
        }
        let middle = rows.len() / 2;
        let ((before, behind), (refused, refused_behind)) =
            (rows.split_at(middle), refused.split_at_mut(middle));
        self.find_refused(part, (before, refused))?;
        self.find_refused(part, (behind, refused_behind))
    }

    /// An error of a request that is whole, with the event that it is about.
    fn named(&self, part: &Part, all: &[Vec<Value>], e: Error) -> Error {
        let is_about_one = matches!(e.kind(), ErrorKind::ConstraintViolated);
        let (mut first, mut rows) = (0, all);
        if !is_about_one || rows.len() < 2 {
            return e;
        }
        while rows.len() > 1 {
            let (before, behind) = rows.split_at(rows.len() / 2);
            match self.commit_again(part, before, (&[], true)) {
                Err(_) => rows = before,
                Ok(_) => (first, rows) = (first + before.len(), behind),
            }
        }
        match self.commit_again(part, rows, (&[], true)) {
            Err(found) => found.at(format_args!("event {}", first + 1)),
            Ok(_) => e,
        }
    }

    /// Rows each of which is for itself: together, or in halves where that is refused.
    fn commit_each(&self, part: &Part, rows: &[Vec<Value>]) -> Vec<Result<u64>> {
        match self.commit_again(part, rows, (&[], false)) {
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

    /// Makes rows ready for the schema of now, and commits them with entries, or finds out whether
    /// that would be done.
    fn commit_again(
        &self,
        part: &Part,
        rows: &[Vec<Value>],
        beside: (&[Beside<'_>], bool),
    ) -> Result<u64> {
        self.table.attempt(|current| {
            let engine = &self.table.engine;
            let ready = rows.iter().map(|row| {
                let mut row = match Arc::ptr_eq(&part.rows.schema, &current.schema) {
                    true => row.clone(),
                    false => {
                        let moved = part.moved(row, &current.schema);
                        engine.fill_row(&current.schema, moved)?
                    }
                };
                engine.forget_looked_up(current, &mut row)?;
                self.ready(current, &row)
            });
            let mut columns = Batch::empty(&current.schema);
            for row in ready {
                columns.push_row(&current.schema, &row?)?;
            }
            self.commit(current, &columns, beside)
        })
    }

    fn commit(
        &self,
        current: &TableVersion,
        columns: &Batch,
        (entries, is_probe): (&[Beside<'_>], bool),
    ) -> Result<u64> {
        let engine = &self.table.engine;
        let mut columns = Cow::Borrowed(columns);
        if engine.looks_up(current)? && !Bug::LookupBeforeCommit.is_planted() {
            engine.look_up_again(current, columns.to_mut())?;
        }
        match entries.is_empty() && !is_probe {
            true => engine.commit_tested(current, &columns),
            false => self.commit_beside(current, &columns, (entries, is_probe)),
        }
    }
}

/// The rows of all parts.
fn gather(schema: &Schema, parts: &[Part]) -> Result<Batch> {
    let mut all = Batch::empty(schema);
    for (at, column) in all.columns.iter_mut().enumerate() {
        for part in parts {
            let own = part.rows.columns.columns.get(at);
            let own = own.ok_or_else(|| Error::corrupt("ready rows without a column"))?;
            column.append(&ColumnSlice::from(own))?;
        }
    }
    Ok(all)
}

/// Whether no entry is that of two requests.
fn have_distinct_entries(parts: &[Part]) -> bool {
    let mut seen = BTreeSet::new();
    let mut entries = parts.iter().filter_map(|part| part.entry.as_deref());
    entries.all(|entry| seen.insert((entry.bucket().core.id(), entry.key().to_vec())))
}

/// The rows of one request.
struct Part {
    rows: ReadyRows,
    is_whole: bool,
    entry: Option<Box<KeptEntry>>,
}

impl Part {
    /// The values of a row where another schema has their fields: what is gone is left out.
    fn moved(&self, row: &[Value], to: &Schema) -> Vec<(usize, Value)> {
        let fields = self.rows.schema.fields().iter().zip(row);
        let place = |(field, value): (&Field, &Value)| {
            let at = to.fields().iter().position(|other| other.id == field.id)?;
            Some((at, value.clone()))
        };
        fields.filter_map(place).collect()
    }

    /// The same error for each row; for none where there is an entry alone.
    fn all(&self, e: &Error) -> Vec<Result<u64>> {
        let count = self.rows.len().max(usize::from(self.entry.is_some()));
        (0..count).map(|_| Err(e.repeated())).collect()
    }
}

/// Whether nothing may be tried again: it is unknown what was done, or nothing can be.
pub(super) fn is_final(e: &Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::OutcomeUnknown
            | ErrorKind::Poisoned
            | ErrorKind::Io
            | ErrorKind::NoSpace
            | ErrorKind::ReadOnly
    )
}
