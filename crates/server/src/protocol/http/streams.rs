//! Events of streams, singly and in batches.
//!
//! Requests that come at the same time share a commit, and a sync: the first of them leads, once
//! the others that are ready had their turn. An event is in every query once it is answered.

use axum::http::StatusCode;
use esker::{Appended, EventId, Stream};
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};
use tokio::sync::oneshot;

use super::call::{Call, blocking};
use super::entity;
use super::route::Outcome;
use super::rows::row_text;
use crate::session::Session;
use crate::{Code, Error, Result};

/// The most events of a request, which is read as a whole.
const EVENTS_MAX: usize = 10_000;
/// Bytes of a request that is done where it came in; others go beside the runtime.
const AT_ONCE_BYTES: usize = 64 << 10;

/// How a request wants its events stored.
struct Wanted {
    /// Answered once they are on the disk, or before; as the database says unless it is given.
    is_durable: Option<bool>,
    /// Each has an outcome of its own.
    is_each: bool,
    /// Only counts are answered.
    is_minimal: bool,
}

impl Wanted {
    fn of(call: &Call) -> Result<Self> {
        let is_durable = match call.parameter("durability") {
            None => None,
            Some("sync") => Some(true),
            Some("async") => Some(false),
            Some(other) => {
                let message = format!("durability: expected sync or async, found {other:?}");
                return Err(Error::invalid(message));
            }
        };
        let is_each = call.parsed("each", "true or false")?.unwrap_or(true);
        let is_minimal = call.header("prefer")?.is_some_and(|text| {
            text.split([',', ';']).any(|part| part.trim().eq_ignore_ascii_case("return=minimal"))
        });
        Ok(Self { is_durable, is_each, is_minimal })
    }

    fn status(&self, rejected: usize) -> StatusCode {
        match (rejected, self.is_durable) {
            (0, Some(false)) => StatusCode::ACCEPTED,
            (0, _) => StatusCode::CREATED,
            _ => StatusCode::MULTI_STATUS,
        }
    }
}

/// What became of each event.
type Outcomes = Vec<Result<EventId>>;

/// Rows that are ready for the stream, and what was refused before.
struct Ready {
    stream: Stream,
    schema: std::sync::Arc<esker::Schema>,
    rows: Vec<Vec<esker::Value>>,
    /// The time of each row, or why there is none.
    times: Vec<Result<i64>>,
}

/// Refuses to be part of a transaction.
pub(super) fn expect_alone(call: &Call) -> Result<()> {
    match call.header("esker-transaction")? {
        None => Ok(()),
        Some(_) => Err(Error::invalid(
            "esker-transaction: events of a stream are not appended, read or removed by id within \
             a transaction; its rows and statements are",
        )),
    }
}

pub(super) async fn append(mut call: Call) -> Outcome {
    expect_alone(&call)?;
    let wanted = Wanted::of(&call)?;
    let media = call.media()?;
    let is_lines = media.is_some_and(|media| media.ends_with("ndjson"));
    let bytes = call.bytes().await?;
    let (is_small, name) = (bytes.len() <= AT_ONCE_BYTES, call.path("table").to_owned());
    let session = call.session()?;
    let prepare = move || {
        let (is_one, items) = items_of(&bytes, is_lines)?;
        let ready = ready(&session, &name, &items)?;
        Ok::<_, Error>((session, is_one, ready))
    };
    let (session, is_one, ready) = match is_small {
        true => prepare()?,
        false => blocking(prepare).await??,
    };
    let refused = ready.times.iter().position(Result::is_err);
    if let Some(at) = refused.filter(|_| is_one || !wanted.is_each) {
        let e = ready.times.into_iter().nth(at).map_or(Ok(0), |time| time);
        let e = e.err().unwrap_or_else(|| Error::new(Code::Internal, "an event was refused"));
        return Err(if is_one { e } else { e.at(format_args!("event {}", at + 1)) }.into());
    }
    let outcomes = store(&call, ready, &wanted, is_small).await?;
    session.release_room();
    answer(&wanted, is_one, outcomes)
}

/// The events of a body: whether it is one alone, and the text of each.
fn items_of(bytes: &[u8], is_lines: bool) -> Result<(bool, Vec<String>)> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::invalid("body: expected UTF-8"))?;
    let text = text.trim();
    let items: Vec<String> = match is_lines {
        true => text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect(),
        false if text.starts_with('[') => {
            let items: Vec<Box<RawValue>> = serde_json::from_str(text)
                .map_err(|e| Error::invalid(format!("body: expected a list of events: {e}")))?;
            items.into_iter().map(|item| item.get().to_owned()).collect()
        }
        false => return Ok((true, vec![text.to_owned()])),
    };
    if items.len() > EVENTS_MAX {
        let found = items.len();
        return Err(Error::invalid(format!(
            "body: expected at most {EVENTS_MAX} events, found {found}: POST …/rows loads any \
             number"
        )));
    }
    Ok((false, items))
}

fn ready(session: &Session, name: &str, items: &[String]) -> Result<Ready> {
    let bytes = items.iter().map(String::len).sum();
    session.reserve_quota(items.len(), bytes)?;
    let stream = session.database().stream(name)?;
    let schema = stream.schema();
    let (mut rows, mut times) = (Vec::with_capacity(items.len()), Vec::new());
    for item in items {
        session.expect_wanted()?;
        let values = esker_import::parse_new_json_row(item, &schema).map_err(Error::from);
        let row = values.and_then(|values| Ok(stream.prepare(&schema, values)?));
        times.push(row.and_then(|row| {
            let time_us = esker::time_of(&schema, &row)?;
            rows.push(row);
            Ok(time_us)
        }));
    }
    Ok(Ready { stream, schema, rows, times })
}

/// Commits what is ready, with what others have, and waits until that may be told.
async fn store(call: &Call, ready: Ready, wanted: &Wanted, is_small: bool) -> Result<Outcomes> {
    let Ready { stream, schema, rows, times } = ready;
    if rows.is_empty() {
        return Ok(times.into_iter().map(|time| time.map(|_| EventId::new(0, 0))).collect());
    }
    let (sender, done) = oneshot::channel::<Appended>();
    let lead = stream.submit(&schema, rows, !wanted.is_each, move |appended| {
        drop(sender.send(appended));
    });
    if let Some(lead) = lead {
        // Those that are ready now add their events. Where the client goes away meanwhile, the lead
        // makes the commit as it is dropped.
        tokio::task::yield_now().await;
        match is_small {
            true => lead.run(),
            false => blocking(move || lead.run()).await?,
        }
    }
    let unknown = |_| {
        let message = "whether the events are stored is unknown: their commit was given up";
        Error::new(Code::OutcomeUnknown, message)
    };
    let appended = done.await.map_err(unknown)?;
    match (wanted.is_durable, appended.commit) {
        (Some(true), _) => wait(call, appended.newest).await?,
        (None, Some(commit)) => wait(call, commit).await?,
        (Some(false), Some(commit)) => stream.reveal(commit)?,
        (_, None) => {}
    }
    let mut stored = appended.outcomes.into_iter();
    let lost = || Error::new(Code::Internal, "the outcome of an event was not told");
    let outcome = |time: Result<i64>| {
        let time_us = time?;
        let row_id = stored.next().ok_or_else(lost)??;
        Ok(EventId::new(time_us, row_id))
    };
    Ok(times.into_iter().map(outcome).collect())
}

/// Waits until a commit is on the disk, with all who wait for one.
async fn wait(call: &Call, commit: u64) -> Result<()> {
    let tenant = call.tenant()?;
    match tenant.database.is_on_disk(commit) {
        true => Ok(()),
        false => call.app.syncs.durability(&tenant).wait(commit).await,
    }
}

fn answer(wanted: &Wanted, is_one: bool, outcomes: Outcomes) -> Outcome {
    let rejected = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    let status = wanted.status(rejected);
    if is_one || (!wanted.is_each && rejected > 0) {
        let Some(outcome) = outcomes.into_iter().next() else {
            return Err(Error::new(Code::Internal, "no outcome of an event").into());
        };
        let id = outcome?;
        return entity::json(status, &json!({ "id": id.to_string() }));
    }
    let mut body = json!({ "accepted": outcomes.len() - rejected, "rejected": rejected });
    let Json::Object(members) = &mut body else {
        return Err(Error::new(Code::Internal, "an answer that is no object").into());
    };
    if wanted.is_minimal {
        let mut ids = outcomes.iter().flatten();
        let (first, last) = (ids.next(), outcomes.iter().flatten().next_back());
        members.insert("first_id".to_owned(), json!(first.map(ToString::to_string)));
        members.insert("last_id".to_owned(), json!(last.map(ToString::to_string)));
    } else {
        let results: Vec<Json> = outcomes.iter().map(result).collect();
        members.insert("results".to_owned(), Json::Array(results));
    }
    entity::json(status, &body)
}

/// What became of one event of several.
fn result(outcome: &Result<EventId>) -> Json {
    match outcome {
        Ok(id) => json!({ "id": id.to_string() }),
        Err(e) => json!({ "error": {
            "code": e.code().as_str(),
            "message": e.message(),
            "retryable": e.code().is_retryable(),
        } }),
    }
}

fn id_of(call: &Call) -> Result<EventId> {
    Ok(call.path("id").parse()?)
}

fn no_event(stream: &str, id: EventId) -> Error {
    Error::new(Code::NotFound, format!("stream {stream:?} has no event {id}"))
}

pub(super) async fn get(call: Call) -> Outcome {
    expect_alone(&call)?;
    let (name, id) = (call.path("table").to_owned(), id_of(&call)?);
    let wanted = name.clone();
    let found = call.run_at_once(move |session| Ok(session.database().stream(&wanted)?.get(id)?));
    let row = found.await?.ok_or_else(|| no_event(&name, id))?;
    Ok(entity::with_body(StatusCode::OK, "application/json", row_text(&row)))
}

pub(super) async fn remove(call: Call) -> Outcome {
    expect_alone(&call)?;
    let (name, id) = (call.path("table").to_owned(), id_of(&call)?);
    let wanted = name.clone();
    let removed = call.run(move |session| Ok(session.database().stream(&wanted)?.delete(id)?));
    match removed.await? {
        true => entity::empty(),
        false => Err(no_event(&name, id).into()),
    }
}
