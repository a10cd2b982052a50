//! Events of a stream as they arrive, and changes of a table, as server-sent events.
//!
//! A tail pulls: it reads some events, writes them, and reads on once the client has taken them.
//! What a slow client has not read is in the stream, not in memory. While there is nothing to
//! tell, all of a tail is its place and its filter.

use std::str::FromStr;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use esker::{ChangesFrom, Database, ErrorKind, Stream};
use tokio::time::Instant;

use super::super::tails::TailPlace;
use super::call::{Call, blocking};
use super::entity;
use super::event_pages::Asked;
use super::problem::Problem;
use super::route::Outcome;
use super::streams::expect_alone;
use super::tailed::Tailed;
use crate::monitor::active_sessions::ActiveSession;
use crate::session::{InFlight, RequestSummary, Session};
use crate::{Code, Error, Result};

/// A client hears something as often at least.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// One tail.
struct Telling {
    call: Call,
    session: Session,
    place: TailPlace,
    /// Lists it among what runs.
    _listed: Option<InFlight>,
    /// Away while it reads.
    tail: Option<Tailed>,
    /// How many events more are told, where there is a limit.
    left: Option<u64>,
    /// The place that the client knows.
    known: String,
    heartbeat: Duration,
    next_beat: Instant,
    is_over: bool,
}

/// Where a tail begins: behind the last event that the client has, which it says when it comes
/// again, beside what it asked for first.
fn from_of<F>(call: &Call) -> Result<F>
where
    F: FromStr<Err = esker::Error>,
{
    if let Some(last) = call.header("last-event-id")? {
        let at = |e: esker::Error| Error::from(e).at("header last-event-id");
        return last.parse().map_err(at);
    }
    let text = call.parameter("after").unwrap_or("now");
    text.parse().map_err(|e: esker::Error| Error::from(e).at("after"))
}

pub(super) async fn tail(call: Call) -> Outcome {
    let (asked, from) = (Asked::of(&call)?, from_of(&call)?);
    let name = asked.name.clone();
    begin(call, name, move |database| {
        let stream = database.stream(&asked.name)?;
        let tail = stream.tail(from, asked.filter(&stream)?)?;
        Ok((stream, Tailed::Events(tail)))
    })
    .await
}

/// The changes of a table, by commits.
pub(super) async fn changes(call: Call) -> Outcome {
    expect_alone(&call)?;
    let (name, from) = (call.path("table").to_owned(), from_of(&call)?);
    let table = name.clone();
    begin(call, name, move |database| match database.changes(&table, from) {
        Ok(reader) => Ok((reader.stream().clone(), Tailed::Changes(reader))),
        Err(e) if e.kind() == ErrorKind::SnapshotGone => {
            let place = database.changes(&table, ChangesFrom::Now)?.cursor();
            let place = serde_json::Value::String(place.to_string());
            let members = [("after".to_owned(), place)].into_iter().collect();
            Err(Problem::from(e).with(members))
        }
        Err(e) => Err(e.into()),
    })
    .await
}

/// Begins a tail of what `open` opens.
async fn begin(
    call: Call,
    name: String,
    open: impl FnOnce(&Database) -> std::result::Result<(Stream, Tailed), Problem> + Send + 'static,
) -> Outcome {
    let expected = "a number from 1 on";
    let left = call.parsed("limit", expected)?;
    if left == Some(0) {
        return Err(Error::invalid(format!("limit: expected {expected}, found 0")).into());
    }
    let mut session = call.session()?;
    session.register("http");
    let summary = RequestSummary::Keys { operation: "tail", place: name, count: 0 };
    let listed = session.list(summary);
    let opened = move || open(session.database()).map(|(stream, tail)| (session, stream, tail));
    let (session, stream, tail) = blocking(opened).await??;
    let tenant = call.tenant()?;
    let feed = call.app.syncs.durability(&tenant).feed(&stream);
    let place = call.app.tails.take(tenant.usage.tails(), &feed)?;
    let heartbeat = HEARTBEAT.min(call.app.access_control.config.idle_timeout / 2);
    let telling = Telling {
        known: tail.place(),
        call,
        session,
        place,
        _listed: listed,
        tail: Some(tail),
        left,
        heartbeat,
        next_beat: Instant::now() + heartbeat,
        is_over: false,
    };
    let hello: std::result::Result<_, std::convert::Infallible> = Ok(Bytes::from_static(b":\n\n"));
    let events = futures_util::stream::unfold(telling, Telling::next);
    let body =
        futures_util::stream::StreamExt::chain(futures_util::stream::once(async { hello }), events);
    let mut response =
        entity::with_body(StatusCode::OK, "text/event-stream", Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy that gathers answers would keep events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

type Next = Option<(std::result::Result<Bytes, std::convert::Infallible>, Telling)>;

impl Telling {
    /// The next piece of the answer.
    async fn next(mut self) -> Next {
        if self.is_over {
            return None;
        }
        let piece = match self.piece().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return None,
            Err(e) => {
                self.is_over = true;
                error_text(&e).into()
            }
        };
        self.next_beat = Instant::now() + self.heartbeat;
        Some((Ok(piece), self))
    }

    /// Something to send; `None` at the end.
    async fn piece(&mut self) -> Result<Option<Bytes>> {
        loop {
            if self.place.is_over() || self.left == Some(0) {
                return Ok(None);
            }
            // A token may be gone by now.
            self.session.expect_valid()?;
            if self.session.active_session().is_some_and(|active| active.is_ended()) {
                return Err(Error::new(Code::Cancelled, "the session was ended"));
            }
            self.place.look();
            let is_behind = self.tail.as_ref().is_some_and(Tailed::may_have_more);
            if is_behind && let Some(text) = self.read().await? {
                return self.held(text).await.map(Some);
            }
            if is_behind && self.tail.as_ref().is_some_and(|tail| !tail.is_at_end()) {
                // A filter may let nothing pass for long.
                if Instant::now() >= self.next_beat {
                    return Ok(Some(self.comment()));
                }
                continue;
            }
            let seat = self.session.active_session().cloned();
            tokio::select! {
                goes_on = self.place.moved() => if !goes_on { return Ok(None) },
                () = ActiveSession::ended(seat.as_ref()) => {
                    return Err(Error::new(Code::Cancelled, "the session was ended"));
                }
                () = tokio::time::sleep_until(self.next_beat) => return self.beat().await.map(Some),
            }
        }
    }

    /// What a client hears that hears nothing else: that the tail is there, and where it is.
    async fn beat(&mut self) -> Result<Bytes> {
        // The stream may be gone by now.
        if let Some(text) = self.read().await? {
            return self.held(text).await;
        }
        Ok(self.comment())
    }

    /// Where the tail is, if that has changed.
    fn comment(&mut self) -> Bytes {
        let place = self.tail.as_ref().map(Tailed::place).filter(|place| *place != self.known);
        let Some(place) = place else { return Bytes::from_static(b":\n\n") };
        let text = format!(":\nid: {place}\n\n").into();
        self.known = place;
        text
    }

    async fn held(&self, text: Vec<u8>) -> Result<Bytes> {
        self.call.held(text, None).await
    }

    /// Reads some events, beside the runtime; `None` when there are none.
    async fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let gone = || Error::new(Code::Internal, "a tail that reads already");
        let mut tail = self.tail.take().ok_or_else(gone)?;
        let most = self.left.and_then(|left| usize::try_from(left).ok()).unwrap_or(usize::MAX);
        let (tail, told) = blocking(move || {
            let told = tail.read(most);
            (tail, told)
        })
        .await?;
        let place = tail.place();
        self.tail = Some(tail);
        let Some(told) = told? else { return Ok(None) };
        self.left = self.left.map(|left| left.saturating_sub(told.count));
        self.known = place;
        Ok(Some(told.text))
    }
}

/// An error once events were told: the client comes again where it was.
fn error_text(e: &Error) -> String {
    let error = serde_json::json!({ "code": e.code().as_str(), "message": e.message() });
    format!("event: error\ndata: {error}\n\n")
}
