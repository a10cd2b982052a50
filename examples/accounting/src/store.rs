//! What is done with events.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

use esker::{
    Database, ErrorKind, EventCursor, EventId, EventPage, PageQuery, Row, Schema, Stream,
    Transaction, Value,
};
use esker_query::model::{Expr, Operator};
use esker_sql::Sql;
use esker_vfs::Environment;
use serde_json::{Value as Json, json};

use crate::event::{IngestEvent, Values};
use crate::key::Caller;
use crate::{schema, totals};

/// For how long the answer to a request with an `Idempotency-Key` is kept.
const ANSWER_DAYS: i64 = 1;
const DAY_US: i64 = 86_400_000_000;
const HOUR_US: i64 = 3_600_000_000;
/// How often a request is begun again beside others.
const ATTEMPTS_MAX: usize = 64;

/// Why something is not done.
#[derive(Debug)]
pub enum Refusal {
    /// The request is wrong.
    Invalid(String),
    /// The key of a request was used for another one.
    OtherBody,
    /// The disk is full.
    Full,
    /// The database has failed.
    Failed(esker::Error),
}

impl From<esker::Error> for Refusal {
    fn from(e: esker::Error) -> Self {
        match e.kind() {
            ErrorKind::InvalidInput | ErrorKind::ConstraintViolated => Self::Invalid(e.to_string()),
            ErrorKind::NoSpace => Self::Full,
            _ => Self::Failed(e),
        }
    }
}

type Result<T> = std::result::Result<T, Refusal>;

/// What became of an event: as it is answered, or why it is not stored.
pub type Outcome = std::result::Result<Json, String>;

/// A request that is done once, however often it is sent.
pub struct Once<'r> {
    /// Its `Idempotency-Key`.
    pub key: &'r str,
    /// Its body.
    pub body: &'r [u8],
}

/// Conditions on events. Times are in nanoseconds, both included.
#[derive(Default)]
pub struct Filter {
    /// Fields and their values.
    pub equal: Vec<(&'static str, String)>,
    /// From here on.
    pub from: Option<i64>,
    /// Up to here.
    pub to: Option<i64>,
    /// The least status.
    pub status_min: Option<i64>,
    /// The status that is too great.
    pub status_max: Option<i64>,
}

impl Filter {
    fn comparisons(&self) -> Vec<(&'static str, Operator, Value)> {
        let equal = self.equal.iter();
        let mut all: Vec<_> = equal
            .map(|(field, value)| (*field, Operator::Eq, Value::Text(value.clone())))
            .collect();
        for (field, operator, value) in [
            ("ts_ns", Operator::Gte, self.from),
            ("ts_ns", Operator::Lte, self.to),
            ("http_status", Operator::Gte, self.status_min),
            ("http_status", Operator::Lt, self.status_max),
        ] {
            all.extend(value.map(|value| (field, operator, Value::Int(value))));
        }
        all
    }

    fn condition(&self) -> Option<Expr> {
        let all = self.comparisons().into_iter();
        let all = all.map(|(field, by, value)| Expr::field(field).binary(by, Expr::literal(value)));
        all.reduce(Expr::and)
    }

    /// The same as SQL, with its values.
    pub(crate) fn sql(&self) -> (String, Vec<Value>) {
        Self::as_sql(self.comparisons())
    }

    /// What fields are to be equal to, as SQL, with its values.
    pub(crate) fn sql_of_fields(&self) -> (String, Vec<Value>) {
        Self { equal: self.equal.clone(), ..Self::default() }.sql()
    }

    fn as_sql(comparisons: Vec<(&'static str, Operator, Value)>) -> (String, Vec<Value>) {
        let (mut text, mut values) = ("true".to_owned(), Vec::new());
        for (field, operator, value) in comparisons {
            let symbol = operator.entry().symbol;
            // Writing to a text does not fail.
            let _ = write!(text, " AND {field} {symbol} ?");
            values.push(value);
        }
        (text, values)
    }
}

/// The events and their prices.
pub struct Store {
    db: Database,
    events: Stream,
    environment: Environment,
}

impl Store {
    /// In a database, whose tables are made where they are not there yet.
    ///
    /// # Errors
    /// Those of the database.
    pub fn open(db: Database) -> esker::Result<Self> {
        schema::make(&db)?;
        let events = db.stream("events")?;
        Ok(Self { db, events, environment: Environment::os() })
    }

    /// The database, for who keeps the prices.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// Stores events, each with an outcome of its own; once only, where that is asked for. What is
    /// answered is on the disk, or, unless it is to be durable, seen by all and on it soon.
    ///
    /// # Errors
    /// What stands for all of them.
    pub fn ingest(
        &self,
        events: Vec<IngestEvent>,
        caller: &Caller,
        (once, durable): (Option<Once<'_>>, bool),
    ) -> Result<Vec<Outcome>> {
        let now_ns = self.environment.clock.wall_us().saturating_mul(1_000);
        let values = events.into_iter().map(|event| event.values(caller, now_ns)).collect();
        match once {
            Some(once) => self.ingest_once(values, caller, &once),
            None => Ok(self.append(values, durable)),
        }
    }

    fn append(
        &self,
        events: Vec<std::result::Result<Values, String>>,
        durable: bool,
    ) -> Vec<Outcome> {
        let schema = self.events.schema();
        let rows = events.into_iter().map(|values| values.map(|values| row(&schema, values)));
        let rows: Vec<_> = rows.collect();
        let valid: Vec<&Vec<Value>> = rows.iter().flatten().collect();
        let stored = match durable {
            true => self.events.append_many(&valid),
            false => self.append_soon(&valid),
        };
        let mut stored = stored.into_iter();
        let outcome = |row: &std::result::Result<Vec<Value>, String>| match row {
            Ok(_) => match stored.next() {
                Some(Ok(id)) => self.answered(id),
                Some(Err(e)) => Err(e.to_string()),
                None => Err("the outcome was not told".to_owned()),
            },
            Err(message) => Err(format!("validation: {message}")),
        };
        rows.iter().map(outcome).collect()
    }

    /// The same without waiting for the disk; a crash takes some milliseconds of such events.
    fn append_soon(&self, rows: &[&Vec<Value>]) -> Vec<esker::Result<EventId>> {
        let deferred = self.db.deferred();
        let stream = match deferred.stream("events") {
            Ok(stream) => stream,
            Err(e) => {
                let message = e.to_string();
                let failed = |_: &_| Err(esker::Error::new(e.kind(), message.clone()));
                return rows.iter().map(failed).collect();
            }
        };
        let stored = stream.append_many(rows);
        if let Some(commit) = deferred.commit() {
            // A log that has failed refuses what comes next.
            let _ = stream.reveal(commit);
        }
        stored
    }

    fn answered(&self, id: EventId) -> Outcome {
        match self.events.get(id) {
            Ok(Some(row)) => Ok(answer(id, &row)),
            // Retention, or a client, was quicker than the answer.
            Ok(None) => Ok(json!({ "id": id.to_string() })),
            Err(e) => Err(e.to_string()),
        }
    }

    /// The answers to the events of a request that is done once: they are in one commit with what
    /// tells that it was done.
    fn ingest_once(
        &self,
        events: Vec<std::result::Result<Values, String>>,
        caller: &Caller,
        once: &Once<'_>,
    ) -> Result<Vec<Outcome>> {
        // No other client's key is this one's.
        let whose = caller.key.as_deref().unwrap_or_default();
        let name = format!("{}:{whose}:{}", whose.len(), once.key);
        for _ in 0..ATTEMPTS_MAX {
            if let Some(known) = self.known(&name, once.body)? {
                return Ok(known);
            }
            let within = self.db.begin()?;
            match self.store_once(&within, (&name, once.body), &events) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                stored => stored?,
            }
            match within.commit() {
                Err(e) if e.kind() == ErrorKind::Conflict => {}
                committed => drop(committed?),
            }
        }
        let message = "other requests kept coming before this one".to_owned();
        Err(Refusal::Failed(esker::Error::new(ErrorKind::Conflict, message)))
    }

    fn store_once(
        &self,
        within: &Transaction,
        (name, body): (&str, &[u8]),
        events: &[std::result::Result<Values, String>],
    ) -> esker::Result<()> {
        let (table, schema) = (within.table("events")?, self.events.schema());
        let mut results = Vec::with_capacity(events.len());
        for event in events {
            let refused = match event {
                Ok(values) => {
                    let values = values.iter().cloned().chain([("once", name.into())]);
                    let row = row(&schema, values.collect());
                    table.insert(&row).err().map(|e| e.to_string())
                }
                Err(message) => Some(format!("validation: {message}")),
            };
            results.push(refused);
        }
        let until = self.environment.clock.wall_us() + ANSWER_DAYS * DAY_US;
        let answer = [
            name.into(),
            Value::Bytes(body.to_vec()),
            Value::json(&json!(results).to_string())?,
            Value::Timestamp(until),
        ];
        within.table("answers")?.insert(&answer).map(drop)
    }

    /// What was answered to a request before.
    fn known(&self, name: &str, body: &[u8]) -> Result<Option<Vec<Outcome>>> {
        let Some(answer) = self.db.table("answers")?.get(&[name.into()])? else { return Ok(None) };
        if answer.get("body") != Some(&Value::Bytes(body.to_vec())) {
            return Err(Refusal::OtherBody);
        }
        let results = answer.get("results").map(Value::to_string).unwrap_or_default();
        let results: Vec<Option<String>> = serde_json::from_str(&results).unwrap_or_default();
        let found = "SELECT id(e) AS id FROM events e WHERE once = ? ORDER BY id(e)";
        let ids: Vec<String> = self.db.sql_as(found, (name,))?;
        let mut ids: Vec<EventId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        // As they were given: events of one commit have rising numbers.
        ids.sort_by_key(|id| id.row_id());
        let mut ids = ids.into_iter();
        let outcome = |refused: Option<String>| match refused {
            Some(message) => Err(message),
            None => match ids.next() {
                Some(id) => self.answered(id),
                None => Ok(json!({ "id": null })),
            },
        };
        Ok(Some(results.into_iter().map(outcome).collect()))
    }

    /// A page of the newest events; where the next one begins, if there is one.
    ///
    /// # Errors
    /// `Invalid` for a cursor that is none.
    pub fn page(
        &self,
        filter: &Filter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<(Vec<Json>, Option<String>)> {
        let after = cursor.map(EventCursor::from_str).transpose()?;
        let query = PageQuery {
            limit,
            after,
            from: filter.from.map(|ns| ns.div_euclid(1_000)),
            to: filter.to.map(|ns| ns.div_euclid(1_000).saturating_add(1)),
            filter: filter.condition(),
            ..PageQuery::default()
        };
        let EventPage { events, next } = self.events.page(&query)?;
        let shown = events.iter().map(|(id, row)| shown(*id, row)).collect();
        Ok((shown, next.map(|next| next.to_string())))
    }

    /// Removes an event; false when there is none.
    ///
    /// # Errors
    /// Those of the database.
    pub fn delete(&self, id: EventId) -> Result<bool> {
        Ok(self.events.delete(id)?)
    }

    /// Removes the events before some days; how many.
    ///
    /// # Errors
    /// Those of the database.
    pub fn delete_older(&self, days: u32) -> Result<u64> {
        let before = self.environment.clock.wall_us() - i64::from(days) * DAY_US;
        let deleted = self.events.delete_before(before)?;
        // What has ended before is left in the sums alone.
        let hour = Value::Timestamp(before - HOUR_US);
        self.db.sql("DELETE FROM totals WHERE hour <= ?", (hour,))?;
        Ok(deleted)
    }

    /// Removes the events of a user; how many.
    ///
    /// # Errors
    /// Those of the database.
    pub fn delete_user(&self, user: &str) -> Result<u64> {
        Ok(self.db.transact(|within| {
            within.sql("DELETE FROM totals WHERE user_id = ?", (user,))?;
            let deleted = within.sql("DELETE FROM events WHERE user_id = ?", (user,))?;
            Ok(deleted.rows_changed())
        })?)
    }

    /// What events cost together, and how many they are.
    ///
    /// # Errors
    /// Those of the database.
    pub fn quota(&self, filter: &Filter) -> Result<Json> {
        let select = "coalesce(sum(cost_nanodollars), 0) AS cost_nanodollars, \
                      coalesce(sum(event_count), 0) AS event_count";
        let mut rows = self.rows(select, filter, "", Vec::new())?;
        Ok(rows.pop().unwrap_or_default())
    }

    /// Sums of events by day, user, key, provider and model, in that order.
    ///
    /// # Errors
    /// Those of the database.
    pub fn rollups(&self, filter: &Filter, limit: usize, offset: usize) -> Result<Vec<Json>> {
        let select = format!(
            "CAST(extract(epoch FROM date_trunc('day', hour)) AS i64) AS day, \
             coalesce(user_id, '') AS user_id, coalesce(api_key_id, '') AS api_key_id, \
             provider, model, {}",
            totals::sums()
        );
        let rest = "GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5 LIMIT ? OFFSET ?";
        self.rows(&select, filter, rest, cut(limit, offset))
    }

    /// Sums of events, by provider and model or of all.
    ///
    /// # Errors
    /// Those of the database.
    pub fn stats(
        &self,
        filter: &Filter,
        by_model: bool,
        (limit, offset): (usize, usize),
    ) -> Result<Vec<Json>> {
        let (keys, group) = match by_model {
            true => ("provider, model", "GROUP BY provider, model"),
            false => ("'' AS provider, '' AS model", ""),
        };
        let select = format!("{keys}, {}", totals::sums());
        let rest = format!("{group} ORDER BY cost_nanodollars DESC, 1, 2 LIMIT ? OFFSET ?");
        self.rows(&select, filter, &rest, cut(limit, offset))
    }

    fn rows(
        &self,
        select: &str,
        filter: &Filter,
        rest: &str,
        more: Vec<Value>,
    ) -> Result<Vec<Json>> {
        let (groups, mut values) = totals::of(filter);
        values.extend(more);
        let text = format!("SELECT {select} FROM ({groups}) AS groups {rest}");
        let answer = self.db.sql(&text, values.as_slice())?.answer()?;
        let names: Vec<String> = answer.columns.iter().map(|column| column.name.clone()).collect();
        let object = |row: Vec<Value>| {
            names.iter().cloned().zip(row.iter().map(as_json)).collect::<serde_json::Map<_, _>>()
        };
        Ok(answer.to_rows().into_iter().map(|row| Json::Object(object(row))).collect())
    }
}

fn cut(limit: usize, offset: usize) -> Vec<Value> {
    [limit, offset].map(|count| Value::Uint(count as u64)).to_vec()
}

/// A row of the stream: what is computed is left out.
fn row(schema: &Arc<Schema>, values: Values) -> Vec<Value> {
    let mut row = vec![Value::Null; schema.fields().len()];
    for (name, value) in values {
        let slot = schema.position(name).and_then(|at| row.get_mut(at));
        slot.into_iter().for_each(|slot| *slot = value.clone());
    }
    row
}

fn as_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::Uint(value) => json!(value),
        Value::Float(value) => json!(value),
        Value::Json(_) => serde_json::from_str(&value.to_string()).unwrap_or_default(),
        // Sums are whole numbers of any size.
        Value::Decimal(_) => serde_json::from_str(&value.to_string()).unwrap_or_default(),
        other => json!(other.to_string()),
    }
}

fn field(row: &Row, name: &str) -> Json {
    row.get(name).map(as_json).unwrap_or_default()
}

/// What is answered when an event is stored.
fn answer(id: EventId, row: &Row) -> Json {
    json!({
        "id": id.to_string(),
        "cost_nanodollars": field(row, "cost"),
        "model": field(row, "model"),
        "provider": field(row, "provider"),
    })
}

/// An event as it is shown.
fn shown(id: EventId, row: &Row) -> Json {
    let flags = field(row, "flags");
    let mut event = json!({
        "id": id.to_string(),
        "timestamp": field(row, "ts_ns"),
        "model": field(row, "model"),
        "provider": field(row, "provider"),
        "usage": {
            "input_tokens": field(row, "input_tokens"),
            "output_tokens": field(row, "output_tokens"),
            "cache_read_input_tokens": field(row, "cache_read_input_tokens"),
            "cache_creation_input_tokens": field(row, "cache_creation_input_tokens"),
            "reasoning_tokens": field(row, "reasoning_tokens"),
        },
        "cost_nanodollars": field(row, "cost"),
        "latency_total_ms": field(row, "latency_total_ms"),
        "latency_ttft_ms": field(row, "latency_ttft_ms"),
        "http_status": field(row, "http_status"),
        "source": field(row, "source"),
        "user_id": field(row, "user_id"),
        "api_key_id": field(row, "api_key_id"),
        "endpoint": field(row, "endpoint"),
        "streaming": flags.get("streaming"),
        "error": field(row, "error"),
        "metadata": field(row, "metadata"),
    });
    if let Some(event) = event.as_object_mut() {
        for name in ["client_ip", "user_agent", "request_id", "trace_id"] {
            let value = field(row, name);
            if !value.is_null() {
                event.insert(name.to_owned(), value);
            }
        }
    }
    event
}
