//! Events of streams, singly and in batches.
//!
//! Requests that come at the same time share a commit, and a sync: the first of them leads, once
//! the others that are ready had their turn. An event is in every query once it is answered.
//!
//! | body | how it is stored |
//! |---|---|
//! | JSON; lines of up to 64 KiB; `each=false` | read as a whole, in the commit of those that wait |
//! | other lines, of any length | in commits of their own, as they arrive: [`event_lines`] |

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::http::StatusCode;
use esker::{Appended, EventId, Schema, Stream, Value};
use esker_import::{Format, unpacked, unpacked_bytes};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::call::{Call, CancelOnDrop, blocking, stalled, too_large};
use super::event_lines::{self, LongBody, Outcomes};
use super::event_tally::{Place, RESULTS_MAX, Tally};
use super::route::Outcome;
use super::rows::row_text;
use super::{Problem, bodies, bulk, entity};
use crate::monitor::active_sessions::ActiveSession;
use crate::session::{RequestSummary, Session};
use crate::{Code, Error, Result};

/// Bytes of a request that is done where it came in; others go beside the runtime.
const AT_ONCE_BYTES: usize = 64 << 10;
/// The longest that a client may wait for the disk.
const TIMEOUT_MS_MAX: u64 = 600_000;

/// How a request wants its events stored.
#[derive(Clone, Copy)]
struct Wanted {
    /// Answered once they are on the disk, or before; as the database says unless it is given.
    is_durable: Option<bool>,
    /// Each has an outcome of its own.
    is_each: bool,
    /// Only counts are answered.
    is_minimal: bool,
    /// How long the client waits for the disk.
    timeout: Option<Duration>,
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
        let expected = "milliseconds from 1 to 600000";
        let timeout: Option<u64> = call.parsed("timeout_ms", expected)?;
        if let Some(found) = timeout.filter(|ms| !(1..=TIMEOUT_MS_MAX).contains(ms)) {
            let message = format!("timeout_ms: expected {expected}, found {found}");
            return Err(Error::invalid(message));
        }
        let timeout = timeout.map(Duration::from_millis);
        Ok(Self { is_durable, is_each, is_minimal, timeout })
    }

    fn status(&self, rejected: u64) -> StatusCode {
        match (rejected, self.is_durable) {
            (0, Some(false)) => StatusCode::ACCEPTED,
            (0, _) => StatusCode::CREATED,
            _ => StatusCode::MULTI_STATUS,
        }
    }
}

/// Rows that are ready for the stream, and what was refused before.
struct Ready {
    stream: Stream,
    schema: Arc<Schema>,
    rows: Vec<Vec<Value>>,
    /// The time of each row, or why there is none.
    times: Vec<(Place, Result<i64>)>,
}

impl Ready {
    fn of(
        (stream, schema): (Stream, Arc<Schema>),
        events: impl Iterator<Item = (Place, Result<Vec<Value>>)>,
    ) -> Self {
        let (mut rows, mut times) = (Vec::new(), Vec::new());
        for (place, row) in events {
            let time = row.and_then(|row| {
                let time_us = esker::time_of(&schema, &row)?;
                rows.push(row);
                Ok(time_us)
            });
            times.push((place, time));
        }
        Self { stream, schema, rows, times }
    }
}

/// Refuses to be part of a transaction.
fn expect_alone(call: &Call) -> Result<()> {
    match call.header("esker-transaction")? {
        None => Ok(()),
        Some(_) => Err(Error::invalid(
            "esker-transaction: events of a stream are not appended, read or removed by id within \
             a transaction; its rows and statements are",
        )),
    }
}

/// How the events of a body are written, lines or JSON.
fn format_of(call: &Call) -> Result<Format> {
    Ok(match call.media()?.as_deref() {
        Some("text/csv") => Format::Csv,
        Some("application/x-ndjson" | "application/ndjson") => Format::Ndjson,
        _ => Format::Json,
    })
}

/// The bytes that a body is said to have.
fn content_length(call: &Call) -> Result<Option<usize>> {
    Ok(call.header("content-length")?.and_then(|text| text.parse().ok()))
}

pub(super) async fn append(call: Call) -> Outcome {
    expect_alone(&call)?;
    bulk::check_encoding(&call)?;
    let (wanted, format) = (Wanted::of(&call)?, format_of(&call)?);
    let is_short = content_length(&call)?.is_some_and(|length| length <= AT_ONCE_BYTES);
    match format {
        Format::Csv | Format::Ndjson if wanted.is_each && !is_short => {
            append_long(call, wanted, format).await
        }
        _ => append_whole(call, wanted, format).await,
    }
}

/// The events of a body that is read as a whole.
async fn append_whole(mut call: Call, wanted: Wanted, format: Format) -> Outcome {
    let most = call.app.access_control.config.request_bytes_max;
    if content_length(&call)?.is_some_and(|length| length > most) {
        return Err(too_large(most));
    }
    let bytes = call.bytes().await?;
    let (is_small, name) = (bytes.len() <= AT_ONCE_BYTES, call.path("table").to_owned());
    // What little bytes unpack to is not little.
    let is_small = is_small && unpacked_bytes(&bytes, 1) == 0;
    let session = call.session()?;
    let environment = call.app.access_control.environment.clone();
    let prepare = move || {
        let Some(text) = unpacked(bytes.into(), most)? else { return Err(too_large(most)) };
        session.reserve_quota(0, text.len())?;
        let (is_one, ready) = match format {
            Format::Json => ready(&session, &name, &text)?,
            _ => (false, ready_lines(&session, (&environment, &name), (format, text))?),
        };
        session.reserve_quota(ready.rows.len(), 0)?;
        Ok::<_, Problem>((session, is_one, ready))
    };
    let (session, is_one, ready) = match is_small {
        true => prepare()?,
        false => blocking(prepare).await??,
    };
    let is_refused = |(_, time): &(Place, Result<i64>)| time.is_err();
    let refused = ready.times.iter().position(is_refused);
    if let Some(at) = refused.filter(|_| is_one || !wanted.is_each) {
        let lost = || Error::new(Code::Internal, "an event was refused");
        let Some((place, Err(e))) = ready.times.into_iter().nth(at) else {
            return Err(lost().into());
        };
        return Err(if is_one { e } else { e.at(place) }.into());
    }
    if !wanted.is_each && ready.times.len() > RESULTS_MAX {
        return Err(too_many(ready.times.len()).into());
    }
    let (outcomes, unsynced) = store(ready, &wanted, is_small).await?;
    session.release_room();
    let told = if is_one || !wanted.is_each { one_of(&outcomes) } else { None };
    let mut tally = Tally::new(wanted.is_minimal);
    outcomes.iter().for_each(|(place, outcome)| tally.add(*place, outcome));
    let status = wanted.status(tally.rejected);
    let members = match told {
        Some(Err(e)) => return Err(e.into()),
        Some(Ok(id)) if is_one => [("id".to_owned(), json!(id.to_string()))].into_iter().collect(),
        _ => tally.into_members(),
    };
    if let Some(commit) = unsynced
        && let Err(e) = wait(&call, commit, wanted.timeout).await
    {
        return Err(unknown(e).with(members));
    }
    entity::json(status, &members)
}

/// The outcome of one event, or of all where they are all or none.
fn one_of(outcomes: &Outcomes) -> Option<Result<EventId>> {
    let first_refused = outcomes.iter().find(|(_, outcome)| outcome.is_err());
    first_refused.or(outcomes.first()).map(|(_, outcome)| outcome.clone())
}

fn too_many(found: usize) -> Error {
    Error::invalid(format!(
        "body: expected at most {RESULTS_MAX} events, found {found}: lines (NDJSON or CSV) of any \
         number are taken, each for itself"
    ))
}

/// Events that are stored, of which it is not known whether the disk has them.
fn unknown(e: Error) -> Problem {
    match e.code() {
        Code::OutcomeUnknown => Problem::new(StatusCode::GATEWAY_TIMEOUT, e),
        _ => e.into(),
    }
}

/// Lines as they arrive.
async fn append_long(call: Call, wanted: Wanted, format: Format) -> Outcome {
    let mut session = call.session()?;
    session.register("http");
    let active_session = session.active_session().cloned();
    let name = call.path("table").to_owned();
    let words = RequestSummary::Keys { operation: "append", place: name.clone(), count: 0 };
    let listed = session.list(words);
    let patience = call.app.access_control.config.stall_timeout;
    let tenant = call.tenant()?;
    let permit = tokio::select! {
        permit = tenant.usage.loads().begin(patience) => Some(permit?),
        () = ActiveSession::ended(active_session.as_ref()) => None,
    };
    let stream = session.database().stream(&name)?;
    let body = call.take_body();
    let length = body.size_hint().exact();
    let (reader, has_stalled) = bodies::reader(body, patience, active_session);
    let mut guard = CancelOnDrop(Some(session.canceller()));
    let environment = call.app.access_control.environment.clone();
    let (is_durable, share) = (wanted.is_durable, call.share.sibling());
    let told = (is_durable, wanted.is_minimal);
    let mut long = LongBody::new(session, environment, (stream, format), told);
    let stored = blocking(move || {
        let _held = (permit, listed);
        let stored = long.store(reader, (length, share), patience);
        (long.tally, long.unsynced, stored)
    });
    let (tally, unsynced, stored) = stored.await?;
    guard.0 = None;
    let status = wanted.status(tally.rejected);
    let members = tally.into_members();
    if let Some(commit) = unsynced
        && let Err(e) = wait(&call, commit, wanted.timeout).await
    {
        return Err(unknown(e).with(members));
    }
    match stored {
        Err(_) if has_stalled.load(Ordering::Relaxed) => Err(stalled(patience).with(members)),
        Err(e) => Err(unknown(e).with(members)),
        Ok(()) => entity::json(status, &members),
    }
}

/// The events of a body of JSON: whether it is one alone, and each of them.
fn ready(session: &Session, name: &str, text: &[u8]) -> Result<(bool, Ready)> {
    let text = std::str::from_utf8(text).map_err(|_| Error::invalid("body: expected UTF-8"))?;
    let text = text.trim();
    let is_one = !text.starts_with('[');
    let items: Vec<&RawValue> = match is_one {
        true => Vec::new(),
        false => serde_json::from_str(text)
            .map_err(|e| Error::invalid(format!("body: expected a list of events: {e}")))?,
    };
    if items.len() > RESULTS_MAX {
        return Err(too_many(items.len()));
    }
    let texts = items.iter().map(|item| item.get()).chain(is_one.then_some(text));
    let stream = session.database().stream(name)?;
    let schema = stream.schema();
    let row = |text: &str| {
        session.expect_wanted()?;
        let values = esker_import::parse_new_json_row(text, &schema)?;
        Ok(stream.prepare(&schema, values)?)
    };
    let rows: Vec<Result<Vec<Value>>> = texts.map(row).collect();
    let events = (1..).map(Place::Item).zip(rows);
    Ok((is_one, Ready::of((stream.clone(), Arc::clone(&schema)), events)))
}

/// The events of lines.
fn ready_lines(
    session: &Session,
    (environment, name): (&esker_vfs::Environment, &str),
    (format, text): (Format, Vec<u8>),
) -> Result<Ready> {
    let stream = session.database().stream(name)?;
    let schema = stream.schema();
    let body = (format, event_lines::reader_of(Bytes::from(text)));
    let events = event_lines::whole(environment, &stream, &schema, body)?;
    Ok(Ready::of((stream, schema), events.into_iter()))
}

/// Commits what is ready, with what others have; the commit that has to be on the disk before that
/// may be told.
async fn store(ready: Ready, wanted: &Wanted, is_small: bool) -> Result<(Outcomes, Option<u64>)> {
    let Ready { stream, schema, rows, times } = ready;
    if rows.is_empty() {
        let refused = |(place, time): (Place, Result<i64>)| {
            (place, time.map(|time_us| EventId::new(time_us, 0)))
        };
        return Ok((times.into_iter().map(refused).collect(), None));
    }
    let (sender, done) = oneshot::channel::<Appended>();
    let lead = stream.submit(&schema, rows, !wanted.is_each, move |appended| {
        drop(sender.send(appended));
    });
    if let Some(lead) = lead {
        // Those that are ready now add their events. Where the client goes away meanwhile, the lead
        // makes the commit as it is dropped.
        tokio::task::yield_now().await;
        match is_small && !lead.may_wait() {
            true => lead.run(),
            false => blocking(move || lead.run()).await?,
        }
    }
    let given_up = |_| {
        let message = "whether the events are stored is unknown: their commit was given up";
        Error::new(Code::OutcomeUnknown, message)
    };
    let appended = done.await.map_err(given_up)?;
    let unsynced = match (wanted.is_durable, appended.commit) {
        (Some(true), _) => Some(appended.newest),
        (None, Some(commit)) => Some(commit),
        (Some(false), Some(commit)) => stream.reveal(commit).map(|()| None)?,
        (_, None) => None,
    };
    let mut stored = appended.outcomes.into_iter();
    let lost = || Error::new(Code::Internal, "the outcome of an event was not told");
    let mut outcome = |time: Result<i64>| {
        let time_us = time?;
        let row_id = stored.next().ok_or_else(lost)??;
        Ok(EventId::new(time_us, row_id))
    };
    let outcomes = times.into_iter().map(|(place, time)| (place, outcome(time))).collect();
    Ok((outcomes, unsynced))
}

/// Waits until a commit is on the disk, with all who wait for one, and so long at most.
async fn wait(call: &Call, commit: u64, at_most: Option<Duration>) -> Result<()> {
    let tenant = call.tenant()?;
    if tenant.database.is_on_disk(commit) {
        return Ok(());
    }
    let durability = call.app.syncs.durability(&tenant);
    let Some(at_most) = at_most else { return durability.wait(commit).await };
    let waited = tokio::time::timeout(at_most, durability.wait(commit)).await;
    waited.unwrap_or_else(|_| {
        let message = format!(
            "the events are stored, but not on the disk after {} ms: they are in every query soon, \
             unless the server fails before",
            at_most.as_millis()
        );
        Err(Error::new(Code::OutcomeUnknown, message))
    })
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
