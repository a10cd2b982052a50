//! What the readers of a stream find, compared with the model: pages, ids, an export and tails.

use std::collections::BTreeMap;
use std::time::Duration;

use esker::{
    Database, EventId, EventOrder, ExportQuery, PageQuery, Row, Stream, Tail, TailBatch, TailFrom,
};
use esker_vfs::sim::Generator;

use super::model::{self, Event, STREAM, State};
use crate::oracle::said;

/// Of which events the filter of some readers is true: those of a class.
const FILTER: &str = r#"{"field": "tier", "op": "eq", "value": "free"}"#;

fn passes(event: &Event) -> bool {
    event.tier == Some("free")
}

/// That pages of any size, look-ups by id, and an export find what they must.
pub(super) fn expect(
    db: &Database,
    state: &State,
    ids: &BTreeMap<i64, u64>,
    generator: &mut Generator,
) -> Result<(), String> {
    let stream = db.stream(STREAM).map_err(|e| said(&e))?;
    expect_pages(&stream, state, ids, generator)?;
    expect_ids(&stream, state, ids, generator)?;
    let filter = generator.chance(500_000);
    let mut export = stream.export(ExportQuery {
        filter: filter.then(|| stream.parse_filter(FILTER)).transpose().map_err(|e| said(&e))?,
        ..ExportQuery::default()
    });
    let mut found = Vec::new();
    let export = export.as_mut().map_err(|e| said(e))?;
    let limit = generator.pick([1, 7, 100]);
    while let Some(events) = export.next_batch(limit).map_err(|e| said(&e))? {
        for (id, row) in events {
            found.push(checked(id, &row, state, ids)?);
        }
    }
    let wanted = state.events.iter().filter(|(_, event)| !filter || passes(event));
    let wanted: Vec<i64> = wanted.map(|(number, _)| *number).collect();
    match found == wanted {
        true => Ok(()),
        false => Err(format!("an export has {found:?}, expected {wanted:?}")),
    }
}

/// The number of an event that a reader was given, which is as the model has it.
fn checked(id: EventId, row: &Row, state: &State, ids: &BTreeMap<i64, u64>) -> Result<i64, String> {
    let number = model::number(row.values())?;
    let wanted = state.events.get(&number).map(|event| event.row(number));
    if wanted.as_deref() != Some(row.values()) {
        return Err(format!("a reader finds {:?}, expected {wanted:?}", row.values()));
    }
    match ids.get(&number) == Some(&id.row_id()) {
        true => Ok(number),
        false => Err(format!("event {number} has id {id}, and row id {:?}", ids.get(&number))),
    }
}

fn expect_pages(
    stream: &Stream,
    state: &State,
    ids: &BTreeMap<i64, u64>,
    generator: &mut Generator,
) -> Result<(), String> {
    let order = generator.pick([EventOrder::Newest, EventOrder::Oldest]);
    let is_filtered = generator.chance(300_000);
    let filter = is_filtered.then(|| stream.parse_filter(FILTER)).transpose();
    let limit = generator.pick([2, 5, 40]);
    let mut query =
        PageQuery { order, limit, filter: filter.map_err(|e| said(&e))?, ..PageQuery::default() };
    let mut found = Vec::new();
    loop {
        let page = stream.page(&query).map_err(|e| said(&e))?;
        for (id, row) in &page.events {
            found.push(checked(*id, row, state, ids)?);
        }
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    let mut wanted: Vec<(i64, i64)> = state
        .events
        .iter()
        .filter(|(_, event)| !is_filtered || passes(event))
        .map(|(number, event)| (event.t, *number))
        .collect();
    wanted.sort_unstable();
    if order == EventOrder::Newest {
        wanted.reverse();
    }
    let wanted: Vec<i64> = wanted.into_iter().map(|(_, number)| number).collect();
    match found == wanted {
        true => Ok(()),
        false => Err(format!("pages of {limit}, {order:?}, have {found:?}, expected {wanted:?}")),
    }
}

/// An event is found by its id, and by no other one.
fn expect_ids(
    stream: &Stream,
    state: &State,
    ids: &BTreeMap<i64, u64>,
    generator: &mut Generator,
) -> Result<(), String> {
    for _ in 0..2 {
        let Some((number, event)) =
            state.events.iter().nth(generator.index(state.events.len().max(1)))
        else {
            return Ok(());
        };
        let row_id = ids.get(number).copied().ok_or("an event without a row id")?;
        let found = stream.get(EventId::new(event.t, row_id)).map_err(|e| said(&e))?;
        if found.as_ref().map(Row::values) != Some(&*event.row(*number)) {
            return Err(format!("event {number} is {found:?} by its id"));
        }
        let other = stream.get(EventId::new(event.t + 5_000, row_id)).map_err(|e| said(&e))?;
        if other.is_some() {
            return Err(format!("event {number} is found by an id of another time"));
        }
    }
    Ok(())
}

/// A reader that follows the stream, and what it was told.
pub(super) struct Follower {
    tail: Tail,
    is_filtered: bool,
    limit: usize,
    /// The number of the last event that it was told.
    last: i64,
    /// It was told that events up to this row id have ended.
    gap: u64,
}

impl Follower {
    /// From the first event on.
    pub fn new(db: &Database, is_filtered: bool, limit: usize) -> Result<Self, String> {
        let stream = db.stream(STREAM).map_err(|e| said(&e))?;
        let filter = is_filtered.then(|| stream.parse_filter(FILTER)).transpose();
        let filter = filter.map_err(|e| said(&e))?;
        let tail = stream.tail(TailFrom::After(0), filter).map_err(|e| said(&e))?;
        Ok(Self { tail, is_filtered, limit, last: -1, gap: 0 })
    }

    /// Reads to the end. What is told is next of what there is; all of it, where all is durable;
    /// and what ended before it was told, up to a row id, is told as a gap.
    pub fn follow(
        &mut self,
        state: &State,
        ids: &BTreeMap<i64, u64>,
        ended_through: u64,
        is_all: bool,
    ) -> Result<(), String> {
        let before = self.tail.position();
        let mut told = Vec::new();
        loop {
            match self.tail.next_batch(self.limit, Duration::ZERO).map_err(|e| said(&e))? {
                TailBatch::Events(events) => {
                    let is_over = events.is_empty() && self.tail.is_at_end();
                    for (id, row) in events {
                        told.push(checked(id, &row, state, ids)?);
                    }
                    if is_over {
                        break;
                    }
                }
                TailBatch::Gap { from, to } if to >= from => self.gap = self.gap.max(to),
                other => return Err(format!("a tail tells {other:?}")),
            }
        }
        if before > 0 && ended_through > before.max(self.gap) {
            return Err(format!(
                "a tail behind row id {before} is told of a gap to {}, and events to \
                 {ended_through} have ended",
                self.gap
            ));
        }
        let next = state.events.range(self.last + 1..);
        let wanted = next.filter(|(_, event)| !self.is_filtered || passes(event));
        let wanted: Vec<i64> = wanted.map(|(number, _)| *number).collect();
        let (limit, is_filtered) = (self.limit, self.is_filtered);
        if !wanted.starts_with(&told) || (is_all && told != wanted) {
            return Err(format!(
                "a tail (limit {limit}, filtered: {is_filtered}) tells {told:?}, expected \
                 {wanted:?}"
            ));
        }
        self.last = told.last().copied().unwrap_or(self.last);
        Ok(())
    }

    /// The number of the last event that it was told.
    pub fn last(&self) -> i64 {
        self.last
    }
}
