//! One commit for all events that wait.
//!
//! Their rows are tested before. What may still be in the way of one is found in the commit: a row
//! that it refers to is gone, say. Then the requests go alone, and of one that is not whole each
//! row; one with an entry beside it is one commit, without what is refused. Rows that were made
//! ready for an older schema are made ready again.
//!
//! Where events of the stream are stored once, requests that have some which are there go alone,
//! without these.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::{Batch, ColumnSlice, Field, Schema, Value};
use esker_log::sabotage::Bug;

use super::Stream;
use super::beside::Beside;
use super::dedupe::Deduping;
use super::fate::{self, Fate, all_new};
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

    /// Whether committing waits first, for memory or for what is stored: not where a thread must
    /// not wait.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        let table = &self.stream.table;
        table.engine.is_short_of_memory() || table.schema().dedupe().is_some()
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
        let mut stream = self.renewed();
        stream.table.engine = self.table.engine.deferred();
        stream
    }

    /// The outcomes of each part.
    fn commit_parts(&self, parts: &[Part]) -> Vec<Vec<Result<u64>>> {
        let (current, parts) = (self.table.current(), parts.iter().collect::<Vec<_>>());
        match self.deduping(&current.schema) {
            None => self.commit_all(&current, &parts),
            Some(mut deduping) => self.commit_new(&current, &parts, &mut deduping),
        }
    }

    /// The outcomes of each part, where some of their events may be there.
    fn commit_new(
        &self,
        current: &TableVersion,
        parts: &[&Part],
        deduping: &mut Deduping<'_>,
    ) -> Vec<Vec<Result<u64>>> {
        let are_new = match Self::are_new(parts, deduping) {
            Ok(are_new) => are_new,
            Err(e) => return parts.iter().map(|part| part.all(&e)).collect(),
        };
        // In the order in which they came: those next to each other that are new go together.
        let all: Vec<(&Part, bool)> = parts.iter().copied().zip(are_new).collect();
        let mut outcomes = Vec::with_capacity(parts.len());
        for run in all.chunk_by(|a, b| a.1 && b.1) {
            match run {
                [(part, false)] => outcomes.push(match deduping.fates(&[&part.rows]) {
                    Ok(fates) => self.commit_alone(part, fates),
                    Err(e) => part.all(&e),
                }),
                new => {
                    let new: Vec<&Part> = new.iter().map(|(part, _)| *part).collect();
                    outcomes.extend(self.commit_all(current, &new));
                }
            }
        }
        outcomes
    }

    /// Whether all events of each part are new, and no others of them are the same.
    fn are_new(parts: &[&Part], deduping: &mut Deduping<'_>) -> Result<Vec<bool>> {
        let rows: Vec<&ReadyRows> = parts.iter().map(|part| &part.rows).collect();
        let mut fates = deduping.fates(&rows)?.into_iter();
        let mut are_new = |part: &&Part| {
            let own = fates.by_ref().take(part.rows.len());
            own.filter(|fate| !fate.is_new()).count() == 0
        };
        Ok(parts.iter().map(&mut are_new).collect())
    }

    /// The outcomes of each part, all events of which are new.
    fn commit_all(&self, current: &TableVersion, parts: &[&Part]) -> Vec<Vec<Result<u64>>> {
        let is_ready = parts.iter().all(|part| Arc::ptr_eq(&part.rows.schema, &current.schema));
        if is_ready && have_distinct_entries(parts) {
            match self.commit_together(current, parts) {
                Ok(first) => {
                    let mut next = first..;
                    let mut ids =
                        |part: &&Part| next.by_ref().take(part.rows.len()).map(Ok).collect();
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
        parts.iter().map(|part| self.commit_alone(part, all_new(part.rows.len()))).collect()
    }

    /// All parts, which are ready for the schema of now, in one commit.
    fn commit_together(&self, current: &TableVersion, parts: &[&Part]) -> Result<u64> {
        let (mut entries, mut start) = (Vec::new(), 0);
        for part in parts {
            let rows = start..start + part.rows.len() as u64;
            start = rows.end;
            let entry = part.entry.as_deref();
            entries.extend(entry.map(|entry| Beside { entry, rows, fates: &[] }));
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
            false => {
                let fates = all_new(rows.len());
                self.commit_alone(&Part { rows, is_whole: false, entry: None }, fates)
            }
        }
    }

    /// The rows of one request, all of them or none, or each for itself, without those of which
    /// something else becomes.
    fn commit_alone(&self, part: &Part, fates: Vec<Fate>) -> Vec<Result<u64>> {
        let rows = part.rows.to_rows();
        let new = new_rows(&rows, &fates);
        match (part.is_whole, part.entry.as_deref()) {
            (false, None) if new.is_empty() => fate::outcomes(&fates, []),
            (false, None) => fate::outcomes(&fates, self.commit_each(part, &new)),
            (false, Some(entry)) => self.commit_one(part, (&rows, fates), entry),
            (true, None) if new.is_empty() => fate::outcomes(&fates, []),
            (true, entry) => {
                let all = 0..new.len() as u64;
                let entry = entry.map(|entry| Beside { entry, rows: all, fates: &fates });
                match self.commit_again(part, &new, (entry.as_slice(), false)) {
                    Ok(first) => fate::outcomes(&fates, (first..).take(new.len()).map(Ok)),
                    Err(e) => part.all(&self.named(part, (&rows, &fates), e)),
                }
            }
        }
    }

    /// The rows of a request that is one commit with its entry: without those that are refused.
    fn commit_one(
        &self,
        part: &Part,
        (all, mut fates): (&[Vec<Value>], Vec<Fate>),
        entry: &KeptEntry,
    ) -> Vec<Result<u64>> {
        for _ in 0..ATTEMPTS_MAX {
            let rows = new_rows(all, &fates);
            let beside = Beside { entry, rows: 0..rows.len() as u64, fates: &fates };
            let committed = self.commit_again(part, &rows, (&[beside], false));
            let first = match committed {
                Ok(first) => first,
                Err(e) if is_final(&e) || e.kind() == ErrorKind::AlreadyExists => {
                    return part.all(&e);
                }
                Err(e) => {
                    if let Err(e) = self.find_refused(part, (all, &mut fates)) {
                        return part.all(&e);
                    }
                    if fates.iter().filter(|fate| fate.is_new()).count() == rows.len() {
                        return part.all(&e);
                    }
                    continue;
                }
            };
            return fate::outcomes(&fates, (first..).take(rows.len()).map(Ok));
        }
        let message = "the rows that others refer to kept changing";
        part.all(&Error::new(ErrorKind::Conflict, message))
    }

    /// Notes which rows a commit would refuse: none is made.
    ///
    /// # Errors
    /// What is not about a row, such as too little memory: what is noted is kept for good.
    fn find_refused(&self, part: &Part, (rows, fates): (&[Vec<Value>], &mut [Fate])) -> Result<()> {
        let probed = self.commit_again(part, &new_rows(rows, fates), (&[], true));
        let (Err(e), Some(first)) = (probed, fates.first_mut()) else { return Ok(()) };
        if !matches!(e.kind(), ErrorKind::ConstraintViolated | ErrorKind::InvalidInput) {
            return Err(e);
        }
        if rows.len() == 1 {
            *first = Fate::Refused(e);
            return Ok(());
        }
        let middle = rows.len() / 2;
        let ((before, behind), (fates, fates_behind)) =
            (rows.split_at(middle), fates.split_at_mut(middle));
        self.find_refused(part, (before, fates))?;
        self.find_refused(part, (behind, fates_behind))
    }

    /// An error of a request that is whole, with the event that it is about.
    fn named(&self, part: &Part, (all, fates): (&[Vec<Value>], &[Fate]), e: Error) -> Error {
        let is_about_one = matches!(e.kind(), ErrorKind::ConstraintViolated);
        let (mut first, mut rows, mut fates) = (0, all, fates);
        if !is_about_one || rows.len() < 2 {
            return e;
        }
        while rows.len() > 1 {
            let middle = rows.len() / 2;
            let ((before, behind), (own, others)) = (rows.split_at(middle), fates.split_at(middle));
            match self.commit_again(part, &new_rows(before, own), (&[], true)) {
                Err(_) => (rows, fates) = (before, own),
                Ok(_) => (first, rows, fates) = (first + before.len(), behind, others),
            }
        }
        match self.commit_again(part, &new_rows(rows, fates), (&[], true)) {
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
                // Those of another rule were not asked about.
                if part.rows.schema.dedupe() != current.schema.dedupe() {
                    let message = "the stream was altered meanwhile: send the event again";
                    return Err(Error::new(ErrorKind::Conflict, message));
                }
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
fn gather(schema: &Schema, parts: &[&Part]) -> Result<Batch> {
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

/// The rows that are stored.
fn new_rows(rows: &[Vec<Value>], fates: &[Fate]) -> Vec<Vec<Value>> {
    let new = rows.iter().zip(fates).filter(|(_, fate)| fate.is_new());
    new.map(|(row, _)| row.clone()).collect()
}

/// Whether no entry is that of two requests.
fn have_distinct_entries(parts: &[&Part]) -> bool {
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
