//! Events page by page, by their times.
//!
//! The order is that of times, and of row ids where these are equal, so that no two events are
//! equal in it. A cursor is a place in it: the time and the row id of the last event of a page. The
//! next page has those beyond that place. Neither changes while an event is there, so whatever
//! comes meanwhile makes a page neither skip nor repeat one.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use esker_format::checksum::{Place, checksum};
use esker_format::schema::ROW_ID_NAME;
use esker_format::{DataType, Schema, Value};
use esker_log::sabotage::Bug;
use esker_query::model::{Expr, Operator, OrderBy, RowCount};
use esker_query::{Query, QueryResult};

use super::condition::{all_of, literal, time_field, within};
use super::{EventId, Stream, time_of};
use crate::read::source::SnapshotSource;
use crate::{Error, Limits, QueryOptions, Result, Row};

/// The most events of a page.
const LIMIT_MAX: usize = 10_000;
/// Bytes of a cursor, its checksum apart: direction, time, row id.
const PLACE_BYTES: usize = 17;

/// Which events come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventOrder {
    /// Those with the latest times.
    #[default]
    Newest,
    /// Those with the earliest times.
    Oldest,
}

impl FromStr for EventOrder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "newest" => Ok(Self::Newest),
            "oldest" => Ok(Self::Oldest),
            other => Err(Error::invalid(format!("expected newest or oldest, found {other:?}"))),
        }
    }
}

/// Where a page ends, as a text that a client keeps. It holds as long as the database does, with
/// any filter and limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventCursor {
    order: EventOrder,
    time_us: i64,
    row_id: u64,
}

impl EventCursor {
    fn bytes(self) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        let (first, rest) = bytes.split_at_mut(1);
        first.fill(u8::from(self.order == EventOrder::Oldest));
        let (time, row_id) = rest.split_at_mut(8);
        time.copy_from_slice(&self.time_us.to_le_bytes());
        row_id.copy_from_slice(&self.row_id.to_le_bytes());
        bytes
    }
}

/// Enough to tell a text that was cut or typed.
fn sum(bytes: &[u8]) -> [u8; 4] {
    let sum = checksum(Place { database: 0, file: 0, position: 0 }, bytes);
    let [a, b, c, d, ..] = sum.to_le_bytes();
    [a, b, c, d]
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes();
        bytes.iter().chain(&sum(&bytes)).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for EventCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let damaged =
            || Error::invalid(format!("expected what `next` of a page was, found {text:?}"));
        let byte = |pair: &[u8]| {
            let digits = std::str::from_utf8(pair).ok()?;
            let is_hex = pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit);
            u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)
        };
        let bytes = text.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>();
        let bytes = bytes.ok_or_else(damaged)?;
        let (place, given) = bytes.split_at_checked(PLACE_BYTES).ok_or_else(damaged)?;
        let (order, rest) = place.split_first().ok_or_else(damaged)?;
        let (time, row_id) = rest.split_at_checked(8).ok_or_else(damaged)?;
        let word = |bytes: &[u8]| bytes.try_into().map_err(|_| damaged());
        let (time_us, row_id) =
            (i64::from_le_bytes(word(time)?), u64::from_le_bytes(word(row_id)?));
        let order = match order {
            0 => EventOrder::Newest,
            1 => EventOrder::Oldest,
            _ => return Err(damaged()),
        };
        (given == sum(place)).then_some(Self { order, time_us, row_id }).ok_or_else(damaged)
    }
}

/// Which page of which events.
#[derive(Clone, Debug)]
pub struct PageQuery {
    /// Which come first.
    pub order: EventOrder,
    /// How many it has at most: 1 to 10,000.
    pub limit: usize,
    /// What [`EventPage::next`] of another page was, of the same order; the first page without it.
    pub after: Option<EventCursor>,
    /// Events from this time on, in microseconds since 1970.
    pub from: Option<i64>,
    /// Events before this time.
    pub to: Option<i64>,
    /// Events of which this is true.
    pub filter: Option<Expr>,
    /// How long it may take and how much memory it may have.
    pub limits: Limits,
}

impl Default for PageQuery {
    /// The newest hundred events.
    fn default() -> Self {
        let (order, limits) = (EventOrder::Newest, Limits::default());
        let (after, from, to, filter) = (None, None, None, None);
        Self { order, limit: 100, after, from, to, filter, limits }
    }
}

/// A page of events.
#[derive(Clone, Debug)]
pub struct EventPage {
    /// The events, in the order of the page.
    pub events: Vec<(EventId, Row)>,
    /// Where the next page begins; `None` when there was none.
    pub next: Option<EventCursor>,
}

impl Stream {
    /// A page of events by their times.
    ///
    /// ```
    /// use esker::{DataType, Options, PageQuery, Schema, Value};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
    /// db.create_table("events", schema.stream("t", []).build()?)?;
    /// let events = db.stream("events")?;
    /// for (t, n) in [(7, 1i64), (9, 2), (7, 3)] {
    ///     events.append(&[Value::Timestamp(t), n.into()])?;
    /// }
    /// let first = events.page(&PageQuery { limit: 2, ..PageQuery::default() })?;
    /// assert_eq!(first.events[0].1.get("n"), Some(&2i64.into()));
    /// assert_eq!(first.events[1].1.get("n"), Some(&3i64.into()));
    /// let next = PageQuery { limit: 2, after: first.next, ..PageQuery::default() };
    /// let second = events.page(&next)?;
    /// assert_eq!((second.events.len(), second.next), (1, None));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a limit out of its bounds, a cursor of the other order, and a filter that
    /// does not fit the fields; else as for [`Database::query`](crate::Database::query).
    pub fn page(&self, query: &PageQuery) -> Result<EventPage> {
        let limit = query.limit;
        if !(1..=LIMIT_MAX).contains(&limit) {
            let message = format!("limit: expected 1 to {LIMIT_MAX}, found {limit}");
            return Err(Error::invalid(message));
        }
        if query.after.is_some_and(|cursor| cursor.order != query.order) {
            return Err(Error::invalid(
                "after: expected the cursor of a page with the same order, found the other one",
            ));
        }
        if query.filter.as_ref().is_some_and(Expr::has_subquery) {
            let message = "where: expected a condition on the event alone, found a subquery";
            return Err(Error::invalid(message));
        }
        let engine = &self.table.engine;
        let rows = self.table.snapshot()?;
        let asked = query.asked(&self.table.name(), rows.schema())?;
        let given = QueryOptions { limits: query.limits.clone(), ..QueryOptions::default() };
        let options = engine.statement_options(&given);
        let source = SnapshotSource::with_row_id(rows.rows_as_of());
        let answer = esker_query::execute(&asked, &source, &options)?;
        let mut events = events_of(rows.schema(), &answer)?;
        let has_more = events.len() > limit;
        events.truncate(limit);
        let last = events.last().filter(|_| has_more);
        let next = last.map(|(id, row)| {
            let (order, row_id) = (query.order, id.row_id());
            Ok::<_, Error>(EventCursor {
                order,
                time_us: time_of(row.schema(), row.values())?,
                row_id,
            })
        });
        Ok(EventPage { events, next: next.transpose()? })
    }
}

impl PageQuery {
    /// The same as a query of the row id and all fields: one row more than the page has.
    fn asked(&self, table: &str, schema: &Schema) -> Result<Query> {
        let time = time_field(schema)?;
        let descending = self.order == EventOrder::Newest;
        let mut query = Query::table(table);
        query.select(Expr::field(ROW_ID_NAME));
        for field in schema.fields() {
            query.select(Expr::field(&field.name));
        }
        let key = |name: &str| OrderBy { expr: Expr::field(name), descending, nulls_first: None };
        query.order_by = vec![key(time), key(ROW_ID_NAME)];
        let beyond = self.after.map(|cursor| beyond(time, cursor));
        query.filter = all_of([within(schema, self.from, self.to)?, beyond, self.filter.clone()]);
        query.limit = Some(RowCount::Number(self.limit as u64 + 1));
        Ok(query)
    }
}

/// The events on the other side of a place. What is true of their times is said by itself, too, by
/// which zones are left out.
fn beyond(time: &str, cursor: EventCursor) -> Expr {
    let (strict, loose) = match cursor.order {
        EventOrder::Newest => (Operator::Lt, Operator::Lte),
        EventOrder::Oldest => (Operator::Gt, Operator::Gte),
    };
    let at = || literal(Value::Timestamp(cursor.time_us));
    let side = |operator| Expr::field(time).binary(operator, at());
    let row_id = Expr::field(ROW_ID_NAME).binary(strict, literal(Value::Uint(cursor.row_id)));
    let equal = side(Operator::Eq).and(row_id);
    if Bug::PageCursorSkipsEqualTimes.is_planted() {
        return side(strict);
    }
    side(loose).and(side(strict).or(equal))
}

/// The rows of an answer that begin with their row ids.
fn events_of(schema: &Arc<Schema>, answer: &QueryResult) -> Result<Vec<(EventId, Row)>> {
    let mut events = Vec::with_capacity(answer.row_count());
    for batch in &answer.batches {
        for row in 0..batch.len() {
            let mut values = batch.columns.iter().map(|column| column.value(row).to_owned());
            let row_id = match values.next() {
                Some(Value::Uint(row_id)) => row_id,
                other => {
                    let found = format!("{} expected, found {other:?}", DataType::U64);
                    return Err(Error::corrupt(format!("the row id of an event: {found}")));
                }
            };
            let values: Vec<Value> = values.collect();
            let id = EventId::new(time_of(schema, &values)?, row_id);
            events.push((id, Row::new(Arc::clone(schema), values)));
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back_and_others_are_refused() {
        for order in [EventOrder::Newest, EventOrder::Oldest] {
            for (time_us, row_id) in [(0, 0), (i64::MIN, u64::MAX), (i64::MAX, 7), (-1, 1)] {
                let cursor = EventCursor { order, time_us, row_id };
                let text = cursor.to_string();
                assert_eq!(text.parse::<EventCursor>().unwrap(), cursor, "{text}");
                let longer = format!("{text}00");
                let other =
                    text.replacen(&text[3..4], if &text[3..4] == "0" { "1" } else { "0" }, 1);
                for wrong in [&text[1..], &text[..text.len() - 2], &longer, &other, "", "é", "+1"]
                {
                    assert!(wrong.parse::<EventCursor>().is_err(), "{wrong}");
                }
            }
        }
    }
}
