//! Events of a stream as they arrive.
//!
//! A tail pulls, as those of HTTP do: it reads some events, hands them to its connection, and reads
//! on once the client has credit for more. What a slow client has not read is in the stream, not in
//! memory. While there is nothing to tell, all of a tail is its place, its filter and its credit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use esker::{EventId, Row, Schema, Stream, Tail, TailBatch, TailFrom};
use esker_import::distinct_names;
use esker_query::model::Expr;
use esker_wire::pack::Token;
use esker_wire::{FrameWriter, Kind, MORE, Reader, pack, value};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::super::tails::{TailPlace, Tails};
use super::encode;
use super::job::{Finished, JobOutput, Place};
use crate::monitor::active_sessions::ActiveSession;
use crate::session::group_sync::Durability;
use crate::session::{RequestSummary, Session, panic_guard::caught};
use crate::{Code, Error, Result};

/// Events that are read at a time.
const BATCH_EVENTS: u64 = 256;
/// A client hears something as often at least.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What a client says of a tail that is under way.
#[derive(Debug)]
pub(super) struct Tap {
    /// How many events more may be told.
    credit: AtomicU64,
    is_over: AtomicBool,
    moved: Notify,
}

impl Tap {
    fn new(credit: u64) -> Self {
        let (credit, is_over) = (AtomicU64::new(credit), AtomicBool::new(false));
        Self { credit, is_over, moved: Notify::new() }
    }

    /// So many events more may be told.
    pub fn add(&self, credit: u64) {
        let sum = |before: u64| Some(before.saturating_add(credit));
        let _ = self.credit.fetch_update(Ordering::SeqCst, Ordering::SeqCst, sum);
        self.moved.notify_one();
    }

    /// The client wants no more.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.moved.notify_one();
    }
}

/// What is asked.
pub(super) struct TailRequest {
    pub stream: String,
    from: TailFrom,
    filter: Option<String>,
    credit: u64,
}

impl TailRequest {
    /// What a frame asks.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(payload);
        reader.array_of(4)?;
        let stream = reader.text()?.to_owned();
        let from = match reader.token()? {
            Token::Nil => TailFrom::Now,
            Token::Uint(row_id) => TailFrom::After(row_id),
            Token::Text(text) => text.parse().map_err(|e| Error::from(e).at("from"))?,
            other => {
                let expected = "expected now, start, the id of an event, or its row id";
                return Err(Error::invalid(format!("from: {expected}, found {}", other.name())));
            }
        };
        let filter = reader.optional_text()?.map(str::to_owned);
        let credit = reader.uint()?;
        reader.finish()?;
        Ok(Self { stream, from, filter, credit })
    }

    /// What a client will say of it.
    pub fn tap(&self) -> Arc<Tap> {
        Arc::new(Tap::new(self.credit))
    }
}

/// How much more credit a frame gives.
///
/// # Errors
/// What is no number.
pub(super) fn credit(payload: &[u8]) -> Result<u64> {
    let mut reader = Reader::new(payload);
    let credit = reader.uint()?;
    reader.finish()?;
    Ok(credit)
}

/// One tail.
struct Telling {
    place: Place,
    session: Session,
    seat: TailPlace,
    tap: Arc<Tap>,
    /// Away while it reads.
    tail: Option<Tail>,
    /// The columns that the client knows, as they were sent.
    columns: Vec<u8>,
    /// The position that the client knows.
    known: u64,
    heartbeat: Duration,
    next_beat: Instant,
}

/// Starts a tail: it goes on until the client, the server or its token does not.
pub(super) fn start(
    place: Place,
    request: TailRequest,
    (session, tap): (Session, Arc<Tap>),
    (tails, durability): (Arc<Tails>, Arc<Durability>),
    idle: Duration,
) {
    tokio::spawn(async move {
        let name = request.stream.clone();
        let summary = RequestSummary::Keys { operation: "tail", place: name, count: 0 };
        let _listed = session.list(summary);
        let (id, to, stall) = (place.id, place.to.clone(), place.stall);
        let share = place.share.sibling();
        let heartbeat = HEARTBEAT.min(idle / 2);
        let told = tell(place, request, (session, tap), (&tails, &durability), heartbeat).await;
        let (mut bytes, mut finished) = (Vec::new(), Finished::default());
        match told {
            Ok(position) => encode::done(&mut bytes, id, |out| pack::uint(out, position)),
            Err(e) => {
                encode::error(&mut bytes, id, &e);
                finished.failed = Some(e.code());
            }
        }
        let output = JobOutput { id, bytes, share, finished: Some(Box::new(finished)) };
        // Where the client is gone, nobody asks.
        let _ = tokio::time::timeout(stall, to.send(output)).await;
    });
}

/// Tells events; the position at the end.
async fn tell(
    place: Place,
    request: TailRequest,
    (session, tap): (Session, Arc<Tap>),
    (tails, durability): (&Tails, &Durability),
    heartbeat: Duration,
) -> Result<u64> {
    let database = session.database().waiting();
    let begun = beside(move || {
        let stream = database.stream(&request.stream)?;
        let filter = request.filter.map(|text| filter_of(&stream, &text)).transpose()?;
        let tail = stream.tail(request.from, filter)?;
        Ok((stream, tail))
    });
    let (stream, tail) = begun.await?;
    let of_tenant = session.access().tails().unwrap_or_default();
    let seat = tails.take(&of_tenant, &durability.feed(&stream))?;
    let mut telling = Telling {
        known: tail.position(),
        place,
        session,
        seat,
        tap,
        tail: Some(tail),
        columns: Vec::new(),
        heartbeat,
        next_beat: Instant::now() + heartbeat,
    };
    // The client knows from here on that nothing passes it by.
    let mut hello = Vec::new();
    telling.write_columns(&mut hello, &stream.schema());
    telling.write_position(&mut hello, None);
    telling.send(hello).await?;
    telling.run().await
}

/// A condition, in JSON or in SQL.
fn filter_of(stream: &Stream, text: &str) -> Result<Expr> {
    match text.trim_start().starts_with('{') {
        true => Ok(stream.parse_filter(text)?),
        false => esker_sql::parse_condition(text).map_err(|e| Error::from(e).at("where")),
    }
}

/// Does something beside the runtime.
async fn beside<R: Send + 'static>(run: impl FnOnce() -> Result<R> + Send + 'static) -> Result<R> {
    let done = tokio::task::spawn_blocking(move || caught(run).and_then(|done| done));
    done.await.map_err(|_| Error::new(Code::Unavailable, "the server stops"))?
}

impl Telling {
    async fn run(&mut self) -> Result<u64> {
        loop {
            if self.tap.is_over.load(Ordering::SeqCst) {
                return Ok(self.position());
            }
            if self.seat.is_over() {
                return Err(Error::new(Code::Unavailable, "the server stops"));
            }
            // A token may be gone by now.
            self.session.expect_valid()?;
            self.seat.look();
            let credit = self.tap.credit.load(Ordering::SeqCst);
            let is_behind = self.tail.as_ref().is_some_and(Tail::may_have_more);
            if credit > 0 && is_behind {
                if self.read(credit).await? {
                    continue;
                }
                if self.tail.as_ref().is_some_and(|tail| !tail.is_at_end()) {
                    // A filter may let nothing pass for long.
                    if Instant::now() >= self.next_beat {
                        self.beat().await?;
                    }
                    continue;
                }
            }
            self.wait(credit > 0).await?;
        }
    }

    /// Waits until something may be told, or the client should hear something.
    async fn wait(&mut self, has_credit: bool) -> Result<()> {
        let active = self.session.active_session().cloned();
        let is_late = tokio::select! {
            () = self.seat.wait(has_credit) => false,
            () = self.tap.moved.notified() => false,
            () = self.place.to.closed() => {
                self.tap.end();
                false
            }
            () = ActiveSession::ended(active.as_ref()) => {
                return Err(Error::new(Code::Cancelled, "the session was ended"));
            }
            () = tokio::time::sleep_until(self.next_beat) => true,
        };
        if !is_late {
            return Ok(());
        }
        // The stream may be gone by now.
        match has_credit && self.read(1).await? {
            true => Ok(()),
            false => self.beat().await,
        }
    }

    fn position(&self) -> u64 {
        self.tail.as_ref().map_or(self.known, Tail::position)
    }

    /// Tells where the tail is.
    async fn beat(&mut self) -> Result<()> {
        let mut out = Vec::new();
        self.write_position(&mut out, None);
        self.send(out).await
    }

    /// Tells some events, or a gap; false when there are none.
    async fn read(&mut self, credit: u64) -> Result<bool> {
        let gone = || Error::new(Code::Internal, "a tail that reads already");
        let mut tail = self.tail.take().ok_or_else(gone)?;
        let most = usize::try_from(credit.min(BATCH_EVENTS)).unwrap_or(1);
        let (id, columns) = (self.place.id, std::mem::take(&mut self.columns));
        let read = beside(move || {
            let told = tail.next_batch(most, Duration::ZERO);
            let mut out = Vec::new();
            let mut columns = columns;
            if let Ok(TailBatch::Events(events)) = &told {
                write_events(&mut out, (id, &mut columns), events);
            }
            Ok((tail, columns, told, out))
        });
        let (tail, columns, told, mut out) = read.await?;
        (self.tail, self.columns) = (Some(tail), columns);
        match told? {
            TailBatch::Events(events) if events.is_empty() => return Ok(false),
            TailBatch::Events(events) => {
                let count = events.len() as u64;
                let less = |before: u64| Some(before.saturating_sub(count));
                let _ = self.tap.credit.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
            }
            TailBatch::Gap { from, to } => self.write_position(&mut out, Some((from, to))),
            other => {
                let message = format!("a tail told {other:?}");
                return Err(Error::new(Code::Internal, message));
            }
        }
        self.known = self.position();
        self.send(out).await?;
        Ok(true)
    }

    /// Hands frames on, as soon as the connection takes them.
    async fn send(&mut self, bytes: Vec<u8>) -> Result<()> {
        let place = &mut self.place;
        place.share.wait(bytes.len(), place.stall).await?;
        let output = JobOutput { id: place.id, bytes, share: place.share.take(), finished: None };
        if place.to.send(output).await.is_err() {
            self.tap.end();
        }
        self.next_beat = Instant::now() + self.heartbeat;
        Ok(())
    }

    fn write_columns(&mut self, out: &mut Vec<u8>, schema: &Schema) {
        write_columns(out, (self.place.id, &mut self.columns), schema);
    }

    fn write_position(&self, out: &mut Vec<u8>, gap: Option<(u64, u64)>) {
        let mut frame = FrameWriter::new(out, self.place.id, Kind::Position, MORE);
        let payload = frame.payload();
        pack::array(payload, 2);
        pack::uint(payload, self.position());
        match gap {
            Some((from, to)) => {
                pack::array(payload, 2);
                pack::uint(payload, from);
                pack::uint(payload, to);
            }
            None => pack::nil(payload),
        }
        frame.finish();
    }
}

/// Events, behind their columns where the client knows others.
fn write_events(out: &mut Vec<u8>, (id, known): (u32, &mut Vec<u8>), events: &[(EventId, Row)]) {
    let Some((_, first)) = events.first() else { return };
    write_columns(out, (id, known), first.schema());
    let mut frame = FrameWriter::new(out, id, Kind::Rows, MORE);
    let payload = frame.payload();
    pack::array(payload, events.len());
    for (event, row) in events {
        pack::array(payload, row.values().len() + 1);
        pack::text(payload, &event.to_string());
        row.values().iter().for_each(|field| value::write(payload, field.as_ref()));
    }
    frame.finish();
}

/// The id and the fields, unless the client knows them. A field that is called `id` is `id_2`.
fn write_columns(out: &mut Vec<u8>, (id, known): (u32, &mut Vec<u8>), schema: &Schema) {
    let fields = schema.fields();
    let names = std::iter::once("id").chain(fields.iter().map(|field| field.name.as_str()));
    let types = fields.iter().map(|field| field.data_type.to_string());
    let types = std::iter::once("text".to_owned()).chain(types);
    let mut columns = Vec::new();
    pack::array(&mut columns, fields.len() + 1);
    for (name, data_type) in distinct_names(names).iter().zip(types) {
        pack::array(&mut columns, 2);
        pack::text(&mut columns, name);
        pack::text(&mut columns, &data_type);
    }
    if *known == columns {
        return;
    }
    let mut frame = FrameWriter::new(out, id, Kind::Columns, MORE);
    frame.payload().extend_from_slice(&columns);
    frame.finish();
    *known = columns;
}
