//! What a stream and what is written beside it hold: a list of events, each with its time and
//! class, rows of a table, and how far a producer has come.

use std::collections::{BTreeMap, BTreeSet};

use esker::{Database, Query, Snapshot, StreamOption, Value};
use esker_query::model::{Expr, OrderBy, RowCount};

use crate::oracle::said;

pub(super) const HOUR_US: i64 = 3_600_000_000;
const DAY_US: i64 = 24 * HOUR_US;
/// The name of the stream.
pub(super) const STREAM: &str = "events";
/// The table that transactions write beside it.
pub(super) const BESIDE: &str = "beside";
/// The producer of some events.
pub(super) const PRODUCER: &str = "a sender";
/// The classes.
pub(super) const TIERS: [Option<&str>; 4] = [None, Some("free"), Some("vip"), Some("pro")];
/// What the stream takes of late and of early events.
pub(super) const BOUNDS: [(&str, &str); 2] = [("late", "3 days"), ("ahead", "1 hour")];

/// For how long events are kept, and by which windows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rule {
    retention: &'static str,
    retention_by: Option<&'static str>,
    window: &'static str,
    /// The same in numbers: days of events of no class, days of others, hours of a window.
    days: i64,
    of_classes: &'static [(&'static str, Option<i64>)],
    window_hours: i64,
}

/// What a stream is altered to; the first one is what it begins with.
pub(super) const RULES: [Rule; 4] = [
    Rule {
        retention: "5 days",
        retention_by: Some("tier: free 2 days, vip forever"),
        window: "1 day",
        days: 5,
        of_classes: &[("free", Some(2)), ("vip", None)],
        window_hours: 24,
    },
    Rule {
        retention: "4 days",
        retention_by: Some("tier: vip forever, free 3 days"),
        window: "12 hours",
        days: 4,
        of_classes: &[("free", Some(3)), ("vip", None)],
        window_hours: 12,
    },
    Rule {
        retention: "6 days",
        retention_by: Some("tier: pro 2 days"),
        window: "1 day",
        days: 6,
        of_classes: &[("pro", Some(2))],
        window_hours: 24,
    },
    Rule {
        retention: "5 days",
        retention_by: None,
        window: "6 hours",
        days: 5,
        of_classes: &[],
        window_hours: 6,
    },
];

impl Rule {
    /// The options of the stream that say so.
    pub fn options(&self) -> Result<Vec<StreamOption>, String> {
        let options = [
            ("retention_by", self.retention_by),
            ("window", Some(self.window)),
            ("retention", Some(self.retention)),
        ];
        let read = |(name, value)| StreamOption::read(name, value).map_err(|e| e.to_string());
        options.into_iter().map(read).collect()
    }

    /// Whether an event is over at a date: those of a class end by whole windows.
    fn is_over(&self, event: &Event, date_us: i64) -> bool {
        let of_class = self.of_classes.iter().find(|(tier, _)| event.tier == Some(tier));
        let Some(days) = of_class.map_or(Some(self.days), |(_, days)| *days) else { return false };
        let window_us = self.window_hours * HOUR_US;
        event.t < (date_us - days * DAY_US).div_euclid(window_us) * window_us
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub t: i64,
    pub tier: Option<&'static str>,
    /// What an update has set last.
    pub note: Option<String>,
}

/// Events by their numbers, which rise as the events come.
pub(super) type Events = BTreeMap<i64, Event>;

/// All that a database of the campaign has.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub events: Events,
    /// The rows of the table beside the stream.
    pub beside: BTreeSet<i64>,
    /// The epoch of the producer, and how many events it has sent in it.
    pub sent: (u64, u64),
    pub rule: &'static Rule,
}

impl State {
    pub fn new() -> Self {
        let [rule, ..] = &RULES;
        Self { events: Events::new(), beside: BTreeSet::new(), sent: (1, 0), rule }
    }

    /// Ends what is over at a date.
    pub fn end(&mut self, date_us: i64) {
        let rule = self.rule;
        self.events.retain(|_, event| !rule.is_over(event, date_us));
    }
}

impl Event {
    /// Its row.
    pub fn row(&self, number: i64) -> Vec<Value> {
        let text = |text: Option<&str>| text.map_or(Value::Null, Into::into);
        vec![Value::Timestamp(self.t), number.into(), text(self.tier), text(self.note.as_deref())]
    }
}

/// The events of a snapshot with their row ids, by a scan.
pub(super) fn scanned(snapshot: &Snapshot) -> Result<Vec<(u64, Vec<Value>)>, String> {
    let table = snapshot.table(STREAM).map_err(|e| said(&e))?;
    let mut rows = table.rows().map_err(|e| said(&e))?;
    rows.sort_unstable_by_key(|(row_id, _)| *row_id);
    Ok(rows)
}

/// The number of an event.
pub(super) fn number(row: &[Value]) -> Result<i64, String> {
    match row.get(1) {
        Some(Value::Int(number)) => Ok(*number),
        other => Err(format!("an event with the number {other:?}")),
    }
}

/// That a snapshot has what it must: by a scan, in the order in which events came, the newest by
/// their time, and the rows beside. The row ids of the events by their numbers.
pub(super) fn expect(snapshot: &Snapshot, state: &State) -> Result<BTreeMap<i64, u64>, String> {
    let found = scanned(snapshot)?;
    if found.windows(2).any(|pair| matches!(pair, [(a, _), (b, _)] if a >= b)) {
        return Err("two events have one row id".to_owned());
    }
    let rows: Vec<&Vec<Value>> = found.iter().map(|(_, row)| row).collect();
    let events = state.events.iter();
    let wanted: Vec<Vec<Value>> = events.map(|(number, event)| event.row(*number)).collect();
    if !rows.iter().copied().eq(&wanted) {
        return Err(difference(&rows, &wanted));
    }
    let by = |name: &str| OrderBy { expr: Expr::field(name), descending: true, nulls_first: None };
    let newest = Query {
        order_by: vec![by("t"), by("n")],
        limit: Some(RowCount::Number(9)),
        ..Query::table(STREAM)
    };
    let mut by_time = wanted;
    by_time.sort_by_key(|row| std::cmp::Reverse(key(row)));
    by_time.truncate(9);
    let answer = snapshot.query(&newest).map_err(|e| said(&e))?.to_rows();
    if answer != by_time {
        return Err(format!("the newest are {answer:?}, expected {by_time:?}"));
    }
    let count = snapshot.table(STREAM).map_err(|e| said(&e))?.count().map_err(|e| said(&e))?;
    if count != state.events.len() as u64 {
        return Err(format!("{count} events are counted, of {}", state.events.len()));
    }
    expect_beside(snapshot, state)?;
    found.iter().map(|(row_id, row)| Ok((number(row)?, *row_id))).collect()
}

fn expect_beside(snapshot: &Snapshot, state: &State) -> Result<(), String> {
    let rows = snapshot.table(BESIDE).and_then(|table| table.rows()).map_err(|e| said(&e))?;
    let key = |(_, row): &(u64, Vec<Value>)| match row.first() {
        Some(Value::Int(n)) => Ok(*n),
        other => Err(format!("a row beside with {other:?}")),
    };
    let found = rows.iter().map(key).collect::<Result<BTreeSet<_>, String>>()?;
    match found == state.beside {
        true => Ok(()),
        false => Err(format!("rows {found:?} beside the events, expected {:?}", state.beside)),
    }
}

/// That what is kept of the producer is as its events are.
pub(super) fn expect_producer(db: &Database, (epoch, sent): (u64, u64)) -> Result<(), String> {
    let producer = db.stream(STREAM).and_then(|stream| stream.producer(PRODUCER, epoch));
    let next = producer.and_then(|producer| producer.next_seq()).map_err(|e| said(&e))?;
    match next == sent {
        true => Ok(()),
        false => Err(format!("the producer is at {next} of epoch {epoch}, expected {sent}")),
    }
}

/// Time and number of a row.
fn key(row: &[Value]) -> (i64, i64) {
    match row {
        [Value::Timestamp(t), Value::Int(n), ..] => (*t, *n),
        _ => (0, 0),
    }
}

fn difference(found: &[&Vec<Value>], wanted: &[Vec<Value>]) -> String {
    let numbers = |row: &Vec<Value>| key(row).1;
    let of_found: Vec<i64> = found.iter().copied().map(numbers).collect();
    let of_wanted: Vec<i64> = wanted.iter().map(numbers).collect();
    if of_found != of_wanted {
        return format!("events {of_found:?}, expected {of_wanted:?}");
    }
    let differs = found.iter().zip(wanted).find(|(found, wanted)| **found != *wanted);
    format!("{differs:?}")
}

/// What time it is for new events.
pub(super) fn date_us(db: &Database) -> i64 {
    db.clock().date_us
}

/// What time it is for retention: a date that is not confirmed ends nothing.
pub(super) fn confirmed_us(db: &Database) -> i64 {
    let clock = db.clock();
    clock.date_us - i64::try_from(clock.held_by.as_micros()).unwrap_or(i64::MAX)
}
