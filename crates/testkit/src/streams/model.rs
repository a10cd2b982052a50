//! What a stream holds: a list of events, each with its time and class.

use std::collections::BTreeMap;

use esker::{Database, Query, Snapshot, Value};
use esker_query::model::{Expr, OrderBy, RowCount};

use crate::oracle::said;

pub(super) const DAY_US: i64 = 86_400_000_000;
/// The name of the stream.
pub(super) const STREAM: &str = "events";
/// The classes; events of no class are kept for [`KEPT_DAYS`].
pub(super) const TIERS: [Option<&str>; 4] = [None, Some("free"), Some("vip"), Some("pro")];
const KEPT_DAYS: i64 = 5;
const FREE_DAYS: i64 = 2;
/// The options of the stream that say so.
pub(super) const OPTIONS: [(&str, &str); 4] = [
    ("late", "3 days"),
    ("retention", "5 days"),
    ("retention_by", "tier: free 2 days, vip forever"),
    ("window", "1 day"),
];

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

impl Event {
    /// Its row.
    pub fn row(&self, number: i64) -> Vec<Value> {
        let text = |text: Option<&str>| text.map_or(Value::Null, Into::into);
        vec![Value::Timestamp(self.t), number.into(), text(self.tier), text(self.note.as_deref())]
    }

    /// Whether it is over at a date: those of a class end by whole windows.
    fn is_over(&self, date_us: i64) -> bool {
        let days = match self.tier {
            Some("vip") => return false,
            Some("free") => FREE_DAYS,
            _ => KEPT_DAYS,
        };
        self.t < (date_us - days * DAY_US).div_euclid(DAY_US) * DAY_US
    }
}

/// Ends what is over at a date.
pub(super) fn end(events: &mut Events, date_us: i64) {
    events.retain(|_, event| !event.is_over(date_us));
}

/// The events of a snapshot with their row ids, by a scan.
pub(super) fn scanned(snapshot: &Snapshot) -> Result<Vec<(u64, Vec<Value>)>, String> {
    let table = snapshot.table(STREAM).map_err(|e| said(&e))?;
    let mut rows = table.rows().map_err(|e| said(&e))?;
    rows.sort_unstable_by_key(|(row_id, _)| *row_id);
    Ok(rows)
}

/// That a snapshot has these events: by a scan, in the order in which they came, and the newest by
/// their time.
pub(super) fn expect(snapshot: &Snapshot, events: &Events) -> Result<(), String> {
    let found = scanned(snapshot)?;
    if found.windows(2).any(|pair| matches!(pair, [(a, _), (b, _)] if a >= b)) {
        return Err("two events have one row id".to_owned());
    }
    let rows: Vec<&Vec<Value>> = found.iter().map(|(_, row)| row).collect();
    let wanted: Vec<Vec<Value>> = events.iter().map(|(number, event)| event.row(*number)).collect();
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
    match count == events.len() as u64 {
        true => Ok(()),
        false => Err(format!("{count} events are counted, of {}", events.len())),
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

/// What time it is for retention.
pub(super) fn date_us(db: &Database) -> i64 {
    db.clock().date_us
}
