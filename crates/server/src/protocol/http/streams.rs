//! Events of streams, singly and in batches.
//!
//! Requests that come at the same time share a commit, and a sync: the first of them leads, once
//! the others that are ready had their turn. An event is in every query once it is answered.
//!
//! | body | how it is stored |
//! |---|---|
//! | JSON; up to 64 KiB; `each=false`; done once | whole, in the commit of all that wait |
//! | other lines, of any length | in commits of their own, as they arrive: [`event_lines`] |

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::http::StatusCode;
use esker::{Appended, Batch, ErrorKind, EventId, KeptEntry, ReadyRows, Schema, Stream, Value};
use esker_import::{Format, unpacked, unpacked_bytes};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::super::event_outcomes::{
    Outcomes, Place, Prepared, RESULTS_MAX, StoredEvent, counts, ends, expect_few_waiting, of_all,
    of_commit, outcomes_of, stored, too_late,
};
use super::super::gathered::Submitted;
use super::call::{Call, CancelOnDrop, blocking, stalled, too_large};
use super::event_lines::{self, BodyForm, LongBody};
use super::event_once::{Once, Step};
use super::event_readers::EventReaders;
use super::event_tally::Tally;
use super::object_text::{ObjectText, Quoted};
use super::route::Outcome;
use super::rows::row_text;
use super::write::{Written, of_key};
use super::{Problem, bodies, bulk, entity};
use crate::monitor::active_sessions::ActiveSession;
use crate::session::RequestSummary;
use crate::tenant::QuotaReservation;
use crate::{Code, Error, Result};

/// Bytes of a request that is done where it came in; others go beside the runtime.
const AT_ONCE_BYTES: usize = 64 << 10;
/// The most events whose outcomes are kept with a key: it is done while other commits wait.
const KEPT_RESULTS_MAX: usize = 500;
/// Bytes of such an answer, at the most.
const KEPT_BYTES_MAX: usize = 40 << 10;
/// How often a request is begun again after another one of its producer or key.
const ATTEMPTS_MAX: usize = 16;
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

    /// Tells how soon the disk has what is answered before.
    fn tell_window(&self, status: StatusCode, (stream, answer): (&Stream, &mut ObjectText)) {
        if status == StatusCode::ACCEPTED {
            answer.add("durable_within_ms", stream.durable_within().as_millis());
        }
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
    rows: ReadyRows,
    /// The time of each event, or why it is not among the rows.
    times: Prepared,
}

impl Ready {
    /// The items of a list, by column.
    fn of_columns(stream: Stream, schema: &Arc<Schema>, columns: Batch) -> Result<Self> {
        let ready = stream.ready_columns(schema, columns);
        let times = ready.times()?.into_iter().map(|time| time.map_err(Error::from));
        let times = (1..).map(Place::Item).zip(times).collect();
        Ok(Self { stream, rows: ready.rows, times })
    }

    /// The items of a list, each made ready by itself.
    fn of_items(
        stream: Stream,
        schema: &Arc<Schema>,
        items: impl Iterator<Item = Result<Vec<Value>>>,
    ) -> Self {
        let (mut rows, mut times) = (ReadyRows::none(schema), Vec::new());
        for (place, row) in (1..).map(Place::Item).zip(items) {
            let time = row.and_then(|row| {
                let time_us = esker::time_of(schema, &row)?;
                rows.push(&row)?;
                Ok(time_us)
            });
            times.push((place, time));
        }
        Self { stream, rows, times }
    }

    /// The first event that is refused, and why.
    fn refused(&self) -> Option<(Place, &Error)> {
        self.times.iter().find_map(|(place, time)| Some((*place, time.as_ref().err()?)))
    }
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

fn form_of(call: &Call) -> Result<BodyForm> {
    Ok(match call.media()?.as_deref() {
        Some("text/csv") => BodyForm::Lines(Format::Csv),
        Some("application/x-ndjson" | "application/ndjson") => BodyForm::Lines(Format::Ndjson),
        Some("application/msgpack" | "application/x-msgpack") => BodyForm::Packed,
        _ => BodyForm::Json,
    })
}

/// The bytes that a body is said to have.
pub(super) fn content_length(call: &Call) -> Result<Option<usize>> {
    Ok(call.header("content-length")?.and_then(|text| text.parse().ok()))
}

pub(super) async fn append(call: Call) -> Outcome {
    expect_alone(&call)?;
    bulk::check_encoding(&call)?;
    let (wanted, format) = (Wanted::of(&call)?, form_of(&call)?);
    let stream = admit(&call)?;
    let is_short = content_length(&call)?.is_some_and(|length| length <= AT_ONCE_BYTES);
    let is_plain = call.header("content-encoding")?.is_none_or(|coding| coding == "identity");
    let is_whole = format == BodyForm::Json || !wanted.is_each || Once::is_asked(&call);
    match is_whole || (is_short && is_plain) {
        true => append_whole(call, stream, (wanted, format)).await,
        false => append_long(call, stream, (wanted, format)).await,
    }
}

/// The events of a body that is read as a whole.
async fn append_whole(
    mut call: Call,
    stream: Stream,
    (wanted, format): (Wanted, BodyForm),
) -> Outcome {
    let most = call.app.access_control.config.request_bytes_max;
    if content_length(&call)?.is_some_and(|length| length > most) {
        return Err(too_large(most));
    }
    let bytes = call.bytes().await.map_err(Problem::of_server)?;
    // What little bytes unpack to is not little.
    let is_small = bytes.len() <= AT_ONCE_BYTES && unpacked_bytes(&bytes, 1) == 0;
    let once = Once::of(&call, &stream, &bytes)?;
    let environment = call.app.access_control.environment.clone();
    // Few bytes that are not compressed have few lines.
    let is_one_commit = !matches!(once, Once::Not) || !wanted.is_each;
    let lines_max = if is_one_commit { RESULTS_MAX } else { usize::MAX };
    let is_of_producer = matches!(once, Once::Producer(..));
    let readers = Arc::clone(&call.app.event_readers);
    let tenant = call.tenant()?;
    let prepare = move || {
        let mut room = QuotaReservation::default();
        let mut reserve = |rows: usize, bytes: usize| {
            let (rows, bytes) = (rows as u64, bytes as u64);
            tenant.usage.reserve_quota(&tenant.database, &mut room, rows, bytes)
        };
        let Some(text) = unpacked(bytes.into(), most)? else { return Err(too_large(most)) };
        // What is no JSON uses none of the numbers of a producer.
        if is_of_producer && format == BodyForm::Json {
            let read = serde_json::from_slice::<serde::de::IgnoredAny>(&text);
            read.map_err(|e| Error::invalid(format!("body: expected an event in JSON: {e}")))?;
        }
        reserve(0, text.len())?;
        let (is_one, ready) = match format {
            BodyForm::Json => ready(stream, &readers, text)?,
            _ => (false, ready_lines(&environment, stream, (format, text), lines_max)?),
        };
        reserve(ready.rows.len(), 0)?;
        Ok::<_, Problem>((room, is_one, ready))
    };
    let (_room, is_one, ready) = match is_small {
        true => prepare()?,
        false => blocking(prepare).await??,
    };
    // What is not about an event is not kept as what became of one.
    let prepared = ready.times.iter().filter_map(|(_, time)| time.as_ref().err());
    if let Some(e) = prepared.into_iter().find(|e| ends(e.code())) {
        return Err(e.clone().into());
    }
    // A producer goes on behind an event that is refused.
    let is_alone = is_one && !is_of_producer;
    let refused = ready.refused().filter(|_| is_alone || !wanted.is_each);
    let refused = refused.map(|(place, e)| if is_one { e.clone() } else { e.clone().at(place) });
    if !wanted.is_each && ready.times.len() > RESULTS_MAX {
        return Err(too_many(ready.times.len()).into());
    }
    call.tenant()?.usage.count_events(ready.times.len() as u64);
    let form = Form { wanted, is_one };
    store_once(&call, ready, (&once, form), (is_small, refused)).await
}

/// How the outcomes of a request are told.
#[derive(Clone, Copy)]
struct Form {
    wanted: Wanted,
    is_one: bool,
}

impl Form {
    /// The status of some outcomes, and their answer.
    fn answer(self, outcomes: &Outcomes) -> Result<(StatusCode, ObjectText)> {
        if self.is_one || !self.wanted.is_each {
            let first = one_of(outcomes).transpose()?.filter(|_| self.is_one);
            if let Some(StoredEvent { id, is_duplicate }) = first {
                let mut answer = ObjectText::new();
                answer.add("id", Quoted(id));
                if is_duplicate {
                    answer.add("duplicate", true);
                }
                return Ok((self.wanted.status(0), answer));
            }
        }
        let mut tally = Tally::new(self.wanted.is_minimal);
        outcomes.iter().for_each(|(place, outcome)| tally.add(*place, outcome));
        Ok((self.wanted.status(tally.rejected), tally.into_object()))
    }

    /// The answer that is kept with a key: that of many events without the outcome of each.
    fn written(mut self, outcomes: &Outcomes) -> Result<Written> {
        self.wanted.is_minimal |= outcomes.len() > KEPT_RESULTS_MAX;
        let (status, answer) = self.answer(outcomes)?;
        let text = answer.into_text();
        if text.len() <= KEPT_BYTES_MAX {
            return Ok(Written::json(status.as_u16(), text));
        }
        let members: Json = serde_json::from_str(&text)
            .map_err(|e| Error::new(Code::Internal, format!("an answer: {e}")))?;
        let mut answer = ObjectText::new();
        for (name, value) in members.as_object().into_iter().flatten() {
            if name != "results" && name != "first_errors" {
                answer.add(name, value);
            }
        }
        Ok(Written::json(status.as_u16(), answer.into_text()))
    }
}

/// Stores what is ready, unless that was done before.
async fn store_once(
    call: &Call,
    mut ready: Ready,
    (once, form): (&Once, Form),
    (is_small, refused): (bool, Option<Error>),
) -> Outcome {
    let database = call.tenant()?.database.clone();
    let wanted = form.wanted;
    // One event is told as an error, of which nothing is kept with a key.
    let is_whole = !wanted.is_each || (form.is_one && matches!(once, Once::Key(_)));
    for _ in 0..ATTEMPTS_MAX {
        let kept = move |outcomes: Outcomes| form.written(&outcomes);
        let step = once.step(&database, &ready.times, kept).map_err(of_key)?;
        let entry = match step {
            Step::Store(entry) => entry,
            known => {
                if wanted.is_durable != Some(false) {
                    let newest = database.published_commit();
                    wait(call, newest, wanted.timeout).await.map_err(unknown)?;
                }
                return known_answer(known, &ready, form);
            }
        };
        // What was stored before is answered, whatever would be refused by now.
        if let Some(e) = &refused {
            call.tenant()?.usage.note_events(0, ready.times.len() as u64);
            return Err(e.clone().into());
        }
        let how = (wanted.is_durable, is_whole, is_small);
        let Some((outcomes, unsynced)) = store(&mut ready, entry, how).await? else {
            // Another request came first: what it did is seen once it is on the disk.
            wait(call, database.published_commit(), None).await?;
            continue;
        };
        if let Some(e) = of_all(&outcomes) {
            return Err(unknown(e));
        }
        note_outcomes(call, &outcomes)?;
        let answer = form.answer(&outcomes);
        if let Some(commit) = unsynced
            && let Err(e) = wait(call, commit, wanted.timeout).await
        {
            // default: one that is refused has no id
            let members = answer.map(|(_, answer)| answer.into_members()).unwrap_or_default();
            return Err(unknown(e).with(members));
        }
        let (status, mut answer) = answer?;
        form.wanted.tell_window(status, (&ready.stream, &mut answer));
        return Ok(entity::object(status, answer));
    }
    Err(too_late().into())
}

/// Counts what became of events.
fn note_outcomes(call: &Call, outcomes: &Outcomes) -> Result<()> {
    let (stored, refused) = counts(outcomes);
    call.tenant()?.usage.note_events(stored, refused);
    Ok(())
}

/// The answer of what was done before.
fn known_answer(step: Step, ready: &Ready, form: Form) -> Outcome {
    match step {
        Step::Answer(written) => Ok(written.into_response()),
        Step::Known(outcomes) => {
            let places = ready.times.iter().map(|(place, _)| *place);
            let (status, mut answer) = form.answer(&places.zip(outcomes).collect())?;
            answer.add("duplicate", true);
            Ok(entity::object(status, answer))
        }
        Step::Stored | Step::Store(_) => {
            let mut answer = ObjectText::new();
            answer.add("duplicate", true);
            Ok(entity::object(form.wanted.status(0), answer))
        }
    }
}

/// The outcome of one event, or of all where they are all or none.
fn one_of(outcomes: &Outcomes) -> Option<Result<StoredEvent>> {
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
async fn append_long(call: Call, stream: Stream, (wanted, format): (Wanted, BodyForm)) -> Outcome {
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
    let body = call.take_body();
    let length = body.size_hint().exact();
    let (reader, has_stalled) = bodies::reader(body, patience, active_session);
    let mut guard = CancelOnDrop(Some(session.canceller()));
    let environment = call.app.access_control.environment.clone();
    let (is_durable, share) = (wanted.is_durable, call.share.sibling());
    let told = (is_durable, wanted.is_minimal);
    let counting = call.tenant()?;
    let counted = move |count| counting.usage.count_events(count);
    let mut long = LongBody::new(session, environment, (stream.clone(), format), told, counted);
    let stored = blocking(move || {
        let _held = (permit, listed);
        let stored = long.store(reader, (length, share), patience);
        (long.tally, long.unsynced, stored)
    });
    let (tally, unsynced, stored) = stored.await?;
    guard.0 = None;
    call.tenant()?.usage.note_events(tally.accepted - tally.duplicates, tally.rejected);
    let status = wanted.status(tally.rejected);
    let mut answer = tally.into_object();
    if stored.is_ok() {
        wanted.tell_window(status, (&stream, &mut answer));
    }
    if let Some(commit) = unsynced
        && let Err(e) = wait(&call, commit, wanted.timeout).await
    {
        return Err(unknown(e).with(answer.into_members()));
    }
    match stored {
        Err(_) if has_stalled.load(Ordering::Relaxed) => {
            Err(stalled(patience).with(answer.into_members()))
        }
        Err(e) => Err(unknown(e).with(answer.into_members())),
        Ok(()) => Ok(entity::object(status, answer)),
    }
}

/// The events of a body of JSON: whether it is one alone, and each of them.
fn ready(stream: Stream, readers: &EventReaders, text: Vec<u8>) -> Result<(bool, Ready)> {
    let schema = stream.schema();
    let is_one = text.trim_ascii_start().first() != Some(&b'[');
    let (columns, text) = readers.of(&schema).read(text, RESULTS_MAX);
    let Some(columns) = columns else { return Ok((is_one, ready_items(stream, &text)?)) };
    Ok((is_one, Ready::of_columns(stream, &schema, columns)?))
}

/// The same, each read by itself: one of them at least is not as it should be.
fn ready_items(stream: Stream, text: &[u8]) -> Result<Ready> {
    let text = std::str::from_utf8(text).map_err(|_| Error::invalid("body: expected UTF-8"))?;
    let text = text.trim_ascii();
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
    let schema = stream.schema();
    let row = |text: &str| {
        let values = esker_import::parse_new_json_row(text, &schema)?;
        Ok(stream.prepare(&schema, values)?)
    };
    let rows: Vec<Result<Vec<Value>>> = texts.map(row).collect();
    Ok(Ready::of_items(stream, &schema, rows.into_iter()))
}

/// The events of lines.
fn ready_lines(
    environment: &esker_vfs::Environment,
    stream: Stream,
    (format, text): (BodyForm, Vec<u8>),
    most: usize,
) -> Result<Ready> {
    let schema = stream.schema();
    let body = (format, event_lines::reader_of(Bytes::from(text)));
    let (rows, times) = event_lines::whole(environment, &stream, &schema, body, most)?;
    Ok(Ready { stream, rows, times })
}

/// Commits what is ready, with what others have; the commit that has to be on the disk before that
/// may be told. `None` where what the entry rests on has changed.
async fn store(
    ready: &mut Ready,
    entry: Option<KeptEntry>,
    (is_durable, is_whole, is_small): (Option<bool>, bool, bool),
) -> Result<Option<(Outcomes, Option<u64>)>> {
    let Ready { stream, rows, times } = ready;
    let has_entry = entry.is_some();
    if rows.is_empty() && !has_entry {
        return Ok(Some((outcomes_of(times, None), None)));
    }
    let is_empty = rows.is_empty();
    // They are needed again where another request comes first.
    let rows = if has_entry { rows.clone() } else { rows.take() };
    let mut appended = commit_gathered(stream, (rows, is_whole), entry, is_small).await?;
    let is_late = |outcome: &esker::Result<u64>| {
        outcome.as_ref().is_err_and(|e| e.kind() == ErrorKind::AlreadyExists)
    };
    if has_entry && appended.outcomes.iter().any(is_late) {
        return Ok(None);
    }
    if is_empty && let Some(Err(e)) = appended.outcomes.pop() {
        return Err(e.into());
    }
    let unsynced = match (is_durable, appended.commit) {
        (Some(true), _) => Some(appended.newest),
        (None, Some(commit)) => Some(commit),
        (Some(false), Some(commit)) if stream.is_flush_due() => Some(commit),
        (Some(false), Some(commit)) => stream.reveal(commit).map(|()| None)?,
        (_, None) => None,
    };
    let rows = appended.outcomes.iter().map(|row| stored(row, of_commit));
    Ok(Some((outcomes_of(times, rows), unsynced)))
}

/// Commits rows that are ready, with what others have, all of them or each for itself.
pub(super) async fn commit_gathered(
    stream: &Stream,
    rows: (ReadyRows, bool),
    entry: Option<KeptEntry>,
    is_small: bool,
) -> Result<Appended> {
    Submitted::new(stream, rows, entry).outcome(is_small).await
}

/// Refuses events before they are read: those beyond what the tenant may send, and those that would
/// only wait in memory.
fn admit(call: &Call) -> std::result::Result<Stream, Problem> {
    let tenant = call.tenant()?;
    let usage = &tenant.usage;
    usage.expect_events().map_err(|(e, wait)| Problem::from(e).after(wait))?;
    let stream = tenant.database.stream(call.path("table"))?;
    let later = |(e, waiting, stored)| Problem::from(e).after(usage.backlog_wait(waiting, stored));
    expect_few_waiting(&stream).map(|()| stream).map_err(later)
}

/// Waits until a commit is on the disk, with all who wait for one, and so long at most.
pub(super) async fn wait(call: &Call, commit: u64, at_most: Option<Duration>) -> Result<()> {
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
