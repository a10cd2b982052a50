//! Events that come again: those that have the same value of the field of `dedupe`, at about the
//! same time, are one.
//!
//! ```text
//!  events that are ready ─► lock of the stream's recent events
//!     ─► note what arrived since ─► read spans that are not known yet ─► New, Known or Twin
//!     ─► commit those that are new ─► unlock
//! ```
//!
//! Nothing is stored for it: the value lies in the event, so that it is in the same frame. Events
//! that statements insert and loads bring are not asked about, but known to those that come later.
//!
//! Invariants:
//! 1. The lock is held from the question to the end of the commit, so that no other events are
//!    appended between the two. It is taken before the commit lock.
//! 2. Who is told of an event that is there already waits until that one is durable.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::PoisonError;

use esker_format::schema::{Dedupe, ROW_ID_NAME};
use esker_format::{FieldId, Room, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_query::Query;
use esker_query::model::{Expr, Operator, RowCount};
use esker_vfs::sync::MutexGuard;

use super::condition::{all_of, literal, time_field, within};
use super::fate::Fate;
use super::ready_events::{ReadyRows, times_of};
use super::{EventId, Stream};
use crate::commit::recent_events::RecentEvents;
use crate::engine::Engine;
use crate::read::source::SnapshotSource;
use crate::{Durability, Error, ErrorKind, QueryOptions, Result, Snapshot, SnapshotTable};

/// Beyond so many runs of spans, one reads what lies between them, too.
const RUNS_MAX: usize = 32;
/// Beyond so many events that arrived meanwhile, spans are read anew instead.
const ARRIVED_MAX: usize = 1 << 20;

/// Finds out which events are new, until it is dropped: nobody else appends events meanwhile.
pub(super) struct Deduping<'s> {
    stream: &'s Stream,
    rule: Dedupe,
    version: u32,
    recent: MutexGuard<'s, RecentEvents>,
}

/// An event that has a value.
struct Asked<'e> {
    time_us: i64,
    value: ValueRef<'e>,
    hash: u64,
}

impl Stream {
    /// What finds out which events are new; `None` where all are.
    pub(super) fn deduping(&self, schema: &Schema) -> Option<Deduping<'_>> {
        let rule = schema.dedupe()?;
        // default: after a panic nothing is taken as known
        let recent = self.gathered.recent.lock().unwrap_or_else(|poisoned| {
            let mut recent = PoisonError::into_inner(poisoned);
            recent.forget();
            recent
        });
        Some(Deduping { stream: self, rule, version: schema.version(), recent })
    }
}

impl Deduping<'_> {
    /// What becomes of the events of some requests, all or some of which are to be stored then.
    ///
    /// # Errors
    /// `OverBudget` where what is to be known takes too much memory; those of reading.
    pub fn fates(&mut self, requests: &[&ReadyRows]) -> Result<Vec<Fate>> {
        let mut asked = Vec::with_capacity(requests.iter().map(|rows| rows.len()).sum());
        requests.iter().try_for_each(|rows| self.ask(rows, &mut asked))?;
        if asked.iter().all(Option::is_none) {
            return Ok(super::fate::all_new(asked.len()));
        }
        let table = self.know(&asked)?;
        let mut twins: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut fates = Vec::with_capacity(asked.len());
        for (at, event) in asked.iter().enumerate() {
            let Some(event) = event else {
                fates.push(Fate::New);
                continue;
            };
            if let Some(id) = self.find(&table, event)? {
                fates.push(Fate::Known(id));
                continue;
            }
            let same_hash = twins.entry(event.hash).or_default();
            let twin = same_hash.iter().find_map(|at| {
                let other = asked.get(*at)?.as_ref()?;
                let is_same = other.value.is_identical(event.value)
                    && self.is_near(other.time_us, event.time_us);
                is_same.then_some(Fate::Twin { at: *at, time_us: other.time_us })
            });
            if twin.is_none() {
                same_hash.push(at);
            }
            fates.push(twin.unwrap_or(Fate::New)); // default: there is no event like it
        }
        if fates.iter().any(|fate| !fate.is_new()) {
            self.defer_to_known();
        }
        Ok(fates)
    }

    /// Adds what is asked about each event; `None`: nothing.
    fn ask<'e>(&self, rows: &'e ReadyRows, asked: &mut Vec<Option<Asked<'e>>>) -> Result<()> {
        let core = self.stream.table.core();
        let at = position_of(&rows.schema, self.rule.field);
        let column = at.and_then(|at| rows.columns.columns.get(at));
        let Some(column) = column else {
            asked.extend((0..rows.len()).map(|_| None));
            return Ok(());
        };
        let times = times_of(&rows.schema, &rows.columns)?;
        let event = |(at, time_us): (usize, &i64)| {
            let value = column.value(at);
            let hash = core.hasher().hash_key([value]);
            (!value.is_null()).then_some(Asked { time_us: *time_us, value, hash })
        };
        asked.extend(times.iter().enumerate().map(event));
        Ok(())
    }

    /// Makes known what is there of the spans of some events, and of those beside them.
    fn know(&mut self, asked: &[Option<Asked<'_>>]) -> Result<SnapshotTable> {
        let span = |event: &Asked<'_>| RecentEvents::span_of(self.rule, event.time_us);
        let spans: BTreeSet<i64> = asked.iter().flatten().map(span).collect();
        let beside = |at: i64| [at.saturating_sub(1), at, at.saturating_add(1)];
        let wanted: BTreeSet<i64> = spans.into_iter().flat_map(beside).collect();
        let engine = &self.stream.table.engine;
        if engine.is_short_of_memory() {
            self.recent.forget();
        }
        self.recent.begin(self.rule, self.version);
        // Before the snapshot, which has them all; what comes between is noted twice.
        let newest = self.stream.newest_row_id()?;
        let table = Snapshot::take_published(engine)?.table_core(self.stream.table.core())?;
        let is_noted = !self.recent.is_empty() && self.note_arrived(&table)?;
        if !is_noted {
            self.recent.forget();
            self.recent.through = Some(newest);
        }
        let known = self.know_spans(&table, &wanted);
        if known.is_err() {
            self.recent.forget();
        }
        known?;
        match self.recent.count(&engine.arena, engine.memory_mark()) {
            true => Ok(table),
            false => Err(Error::new(ErrorKind::OverBudget, too_many(engine))),
        }
    }

    /// Notes what has arrived since; false where that is too much.
    fn note_arrived(&mut self, table: &SnapshotTable) -> Result<bool> {
        let Some(through) = self.recent.through else {
            return Err(Error::corrupt("spans of events are known, but not up to which event"));
        };
        if !self.stream.table.core().may_have_rows_after(through) {
            return Ok(true);
        }
        let schema = table.schema();
        let time = schema.stream().map(|stream| stream.time);
        let fields = [time, Some(self.rule.field)];
        let field = |id: Option<FieldId>| schema.fields().iter().find(|field| Some(field.id) == id);
        let [Some(time), Some(field)] = fields.map(field) else { return Ok(false) };
        if Bug::DedupeForgetsInserted.is_planted() {
            return Ok(true);
        }
        let mut arrivals = table.rows_as_of().rows_after_id(through, None);
        for _ in 0..ARRIVED_MAX {
            let Some(arrived) = arrivals.step()? else { return Ok(true) };
            let row_group = arrived.part.row_group();
            let room = (Room::default(), Room::default());
            let value = row_group.value(field, arrived.row, &room.0)?;
            let ValueRef::Timestamp(time_us) = row_group.value(time, arrived.row, &room.1)? else {
                return Err(Error::corrupt("an event without a time"));
            };
            self.note(time_us, value, arrived.row_id);
            self.recent.through = Some(arrived.row_id);
        }
        Ok(false)
    }

    fn note(&mut self, time_us: i64, value: ValueRef<'_>, row_id: u64) {
        if value.is_null() {
            return;
        }
        let hash = self.stream.table.core().hasher().hash_key([value]);
        self.recent.add(RecentEvents::span_of(self.rule, time_us), hash, row_id);
    }

    /// Reads the spans that are not known: those that follow each other at once.
    fn know_spans(&mut self, table: &SnapshotTable, wanted: &BTreeSet<i64>) -> Result<()> {
        let unknown = self.recent.unknown(wanted);
        unknown.iter().for_each(|number| self.recent.add_span(*number));
        if Bug::DedupeForgottenAtOpen.is_planted() {
            return Ok(());
        }
        let ends = |run: &[i64]| Some((*run.first()?, *run.last()?));
        let runs = || unknown.chunk_by(|a, b| a.checked_add(1) == Some(*b));
        let runs: Vec<(i64, i64)> = match runs().count() > RUNS_MAX {
            true => ends(&unknown).into_iter().collect(),
            false => runs().filter_map(ends).collect(),
        };
        runs.into_iter().try_for_each(|run| self.read(table, run))
    }

    /// Notes the events of some spans.
    fn read(&mut self, table: &SnapshotTable, (first, last): (i64, i64)) -> Result<()> {
        let schema = table.schema();
        let Some(field) = schema.field_of(self.rule.field) else { return Ok(()) };
        // default: a span longer than all times
        let length = i64::try_from(self.rule.within_us).unwrap_or(i64::MAX);
        let from = first.checked_mul(length);
        let to = last.checked_add(1).and_then(|end| end.checked_mul(length));
        let mut query = Query::table(self.stream.table.name());
        query.select(Expr::field(ROW_ID_NAME));
        query.select(Expr::field(time_field(schema)?));
        query.select(Expr::field(&field.name));
        query.filter = within(schema, from, to)?;
        let engine = &self.stream.table.engine;
        let options = self.options();
        let most = RecentEvents::most(&engine.arena);
        let source = SnapshotSource::with_row_id(table.rows_as_of());
        esker_query::stream(&query, &source, &options, &mut |batch: esker_format::Batch| {
            if let [ids, times, values] = batch.columns.as_slice() {
                for row in 0..batch.len() {
                    if let (ValueRef::Uint(id), ValueRef::Timestamp(at)) =
                        (ids.value(row), times.value(row))
                    {
                        self.note(at, values.value(row), id);
                    }
                }
            }
            match self.recent.byte_count() <= most {
                true => Ok(ControlFlow::Continue(())),
                false => {
                    let kind = esker_query::ErrorKind::OverBudget;
                    Err(esker_query::Error::new(kind, too_many(engine)))
                }
            }
        })?;
        Ok(())
    }

    /// Options of a read without a deadline: a sender that met one would only send again.
    fn options(&self) -> esker_query::Options {
        let mut options = self.stream.table.engine.statement_options(&QueryOptions::default());
        options.inputs.limits.deadline = None;
        options
    }

    /// Looks for an event in the table itself, where too many rows have its value.
    fn find_in_crowd(&self, table: &SnapshotTable, event: &Asked<'_>) -> Result<Option<EventId>> {
        let schema = table.schema();
        let Some(field) = schema.field_of(self.rule.field) else { return Ok(None) };
        // default: a time longer than all times
        let within_us = i64::try_from(self.rule.within_us).unwrap_or(i64::MAX);
        let from = event.time_us.checked_sub(within_us);
        let to = event.time_us.checked_add(within_us).and_then(|to| to.checked_add(1));
        let mut query = Query::table(self.stream.table.name());
        query.select(Expr::field(ROW_ID_NAME));
        query.select(Expr::field(time_field(schema)?));
        let value = literal(event.value.to_owned());
        let is_it = Expr::field(&field.name).binary(Operator::Eq, value);
        query.filter = all_of([within(schema, from, to)?, Some(is_it)]);
        query.limit = Some(RowCount::Number(1));
        let options = self.options();
        let source = SnapshotSource::with_row_id(table.rows_as_of());
        let answer = esker_query::execute(&query, &source, &options)?;
        let batch = answer.batches.first().map(|batch| batch.columns.as_slice());
        let Some([ids, times]) = batch else { return Ok(None) };
        Ok(match (ids.value(0), times.value(0)) {
            (ValueRef::Uint(id), ValueRef::Timestamp(at)) => Some(EventId::new(at, id)),
            _ => None,
        })
    }

    /// The event that is there already.
    fn find(&self, table: &SnapshotTable, event: &Asked<'_>) -> Result<Option<EventId>> {
        let schema = table.schema();
        let time = schema.stream().and_then(|stream| position_of(schema, stream.time));
        let (Some(time), Some(field)) = (time, position_of(schema, self.rule.field)) else {
            return Ok(None);
        };
        let span = RecentEvents::span_of(self.rule, event.time_us);
        for row_id in self.recent.find(span, event.hash) {
            let id = table.visit(&[ValueRef::Uint(row_id)], |row| {
                let ValueRef::Timestamp(time_us) = row.value(time)? else { return Ok(None) };
                let is_it = self.is_near(time_us, event.time_us)
                    && row.value(field)?.is_identical(event.value);
                Ok(is_it.then(|| EventId::new(time_us, row_id)))
            })?;
            if let Some(id) = id.flatten() {
                return Ok(Some(id));
            }
        }
        match self.recent.is_crowded(span, event.hash) {
            true => self.find_in_crowd(table, event),
            false => Ok(None),
        }
    }

    fn is_near(&self, a_us: i64, b_us: i64) -> bool {
        a_us.abs_diff(b_us) <= self.rule.within_us
    }

    /// What is told of events that are there waits until these are durable.
    fn defer_to_known(&self) {
        let engine = &self.stream.table.engine;
        let published = engine.watermarks.published();
        let is_durable = engine.journal.log().is_none_or(|log| log.durable() >= published);
        if engine.options.durability == Durability::Sync && !is_durable {
            engine.defer(published);
        }
    }
}

fn too_many(engine: &Engine) -> String {
    let most = RecentEvents::most(&engine.arena) >> 20;
    format!(
        "dedupe: the events of this span need more memory than is free, or more than {most} MiB, \
         a quarter of the memory limit: raise the limit, or shorten the span"
    )
}

fn position_of(schema: &Schema, field: FieldId) -> Option<usize> {
    schema.fields().iter().position(|known| known.id == field)
}

impl ReadyRows {
    /// Those that are new.
    pub(super) fn of_new(&self, fates: &[Fate]) -> Result<Self> {
        let mut new = Self::none(&self.schema);
        for (at, _) in fates.iter().enumerate().filter(|(_, fate)| fate.is_new()) {
            let row: Vec<Value> = super::ready_events::row_of(&self.columns, at);
            new.push(&row)?;
        }
        Ok(new)
    }
}
