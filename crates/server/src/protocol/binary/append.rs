//! Events of streams, as rows or by column.
//!
//! Requests of all connections share commits, as those of HTTP do: a request is submitted in the
//! order in which it came, and a task, not a thread, waits for what becomes of it.

use std::sync::Arc;

use esker::{
    AppendedColumns, Database, ErrorKind, EventId, KeptEntry, ReadyRows, Schema, Stream, Turn,
};
use esker_wire::pack::Token;
use esker_wire::{Frame, Kind, Reader, pack};

use super::super::event_outcomes::{
    Outcomes, Place, Prepared, RESULTS_MAX, StoredEvent, counts, ends, expect_few_waiting, of_all,
    of_commit, outcomes_of, producer_name, stored, times_of, too_late,
};
use super::super::gathered::Submitted;
use super::encode;
use super::event_rows::{self, EventRows};
use super::job::{Finished, JobOutput, Place as JobPlace};
use crate::session::{Access, IdempotencyKey, Level, Session, panic_guard::caught};
use crate::tenant::QuotaReservation;
use crate::{Code, Error, Result};

/// Bytes of a request that is read where it came in; others go beside the runtime.
pub(super) const AT_ONCE_BYTES: usize = 64 << 10;
/// The same in events.
const AT_ONCE_EVENTS: usize = 2_000;
/// The most values of the events of one request, with those that are left out.
const VALUES_MAX: usize = 8 << 20;
/// Of more events than this, a key keeps the first id and the last.
const KEPT_RESULTS_MAX: usize = 500;
/// Bytes of an answer that is kept with a key; of a longer one the errors are left out.
const KEPT_BYTES_MAX: usize = 40 << 10;
/// The most refused events that are told where the ids are not.
const ERRORS_MAX: usize = 100;
/// How often a request is begun again after another one of its producer.
const ATTEMPTS_MAX: usize = 16;

/// How a request wants its events stored.
#[derive(Clone, Debug, Default)]
struct How<'b> {
    /// Answered once they are on the disk, or before; as the database says unless it is given.
    is_durable: Option<bool>,
    /// All of them or none.
    is_whole: bool,
    /// Only counts are answered.
    is_minimal: bool,
    /// Name, epoch, and the number of the first event.
    producer: Option<(&'b str, u64, u64)>,
    /// The fields of rows that are arrays.
    fields: Option<Vec<&'b str>>,
}

/// A request, as far as it says what it wants.
pub(super) struct AppendRequest<'b> {
    pub stream: &'b str,
    how: How<'b>,
    kind: Kind,
    /// The events.
    rest: Reader<'b>,
}

/// Where the events of a request go.
pub(super) struct Target {
    database: Database,
    stream: Stream,
    access: Arc<dyn Access>,
    token: Arc<str>,
    key: Option<IdempotencyKey>,
}

/// By what a request is done once.
enum Once {
    /// It is done as often as it is sent.
    Not,
    Key(IdempotencyKey),
    /// The events of a producer, the first of which has a number.
    Producer(esker::Producer, u64),
}

/// Events that are ready for the stream, and what was refused before.
pub(super) struct Ready {
    database: Database,
    stream: Stream,
    access: Arc<dyn Access>,
    rows: ReadyRows,
    times: Prepared,
    is_durable: Option<bool>,
    is_whole: bool,
    is_minimal: bool,
    once: Once,
    is_small: bool,
    /// What was stored at once, piece by piece.
    stored: Option<(Outcomes, Option<u64>)>,
    _room: QuotaReservation,
}

/// What is answered, once a commit is on the disk.
pub(super) struct Told {
    bytes: Vec<u8>,
    commit: Option<u64>,
    failed: Option<Code>,
    has_changed: bool,
}

/// How an answer says what became of events.
#[derive(Clone, Copy)]
struct Form {
    /// Without the id of each event.
    is_minimal: bool,
    /// How many refused events are told.
    errors_max: usize,
    /// How soon the disk has what is answered before.
    within_ms: Option<u64>,
}

impl<'b> How<'b> {
    fn read(reader: &mut Reader<'b>) -> Result<Self> {
        let mut how = Self::default();
        let members = match reader.token()? {
            Token::Nil => 0,
            Token::Map(members) => members,
            other => {
                let message = format!("how: expected a map or nil, found {}", other.name());
                return Err(Error::invalid(message));
            }
        };
        for _ in 0..members {
            match reader.text()? {
                "durability" => how.is_durable = Some(durability(reader.text()?)?),
                "each" => how.is_whole = !reader.bool()?,
                "minimal" => how.is_minimal = reader.bool()?,
                "producer" => {
                    reader.array_of(3)?;
                    how.producer = Some((reader.text()?, reader.uint()?, reader.uint()?));
                }
                "fields" => {
                    let names = (0..reader.array()?).map(|_| reader.text());
                    how.fields = Some(names.collect::<esker_wire::Result<_>>()?);
                }
                other => {
                    let expected = "expected durability, each, minimal, producer or fields";
                    return Err(Error::invalid(format!("how: {expected}, found {other:?}")));
                }
            }
        }
        Ok(how)
    }
}

fn durability(text: &str) -> Result<bool> {
    match text {
        "sync" => Ok(true),
        "async" => Ok(false),
        other => {
            Err(Error::invalid(format!("durability: expected sync or async, found {other:?}")))
        }
    }
}

impl<'b> AppendRequest<'b> {
    /// What a frame asks.
    ///
    /// # Errors
    /// What is wrong with it before its events.
    pub fn read(kind: Kind, payload: &'b [u8]) -> Result<Self> {
        let mut rest = Reader::new(payload);
        rest.array_of(if kind == Kind::Append { 3 } else { 4 })?;
        let (stream, how) = (rest.text()?, How::read(&mut rest)?);
        if how.fields.is_some() && kind == Kind::AppendColumns {
            return Err(Error::invalid("how: fields are those of rows, and columns have names"));
        }
        Ok(Self { stream, how, kind, rest })
    }

    /// Whether it has more events than are looked at where it came in.
    pub fn has_many(&self) -> bool {
        let mut ahead = self.rest;
        let count = match self.kind {
            Kind::Append => ahead.array().ok(),
            _ => ahead.uint().ok().and_then(|count| usize::try_from(count).ok()),
        };
        count.is_none_or(|count| count > AT_ONCE_EVENTS)
    }

    /// The events.
    fn events(&mut self, schema: &Schema) -> Result<EventRows> {
        let reader = &mut self.rest;
        let events = match self.kind {
            Kind::Append => event_rows::read_rows(reader, schema, self.how.fields.as_deref())?,
            _ => {
                let count = usize::try_from(reader.uint()?).unwrap_or(usize::MAX);
                event_rows::read_columns(reader, schema, count)?
            }
        };
        reader.finish()?;
        Ok(events)
    }
}

impl Target {
    /// Refuses events before they are looked at.
    ///
    /// # Errors
    /// Within a transaction; what the session may not do; `LimitExceeded` and `Unavailable` where
    /// more came than may, or than is stored.
    pub fn of(session: &Session, stream: &str) -> Result<Self> {
        if session.is_in_transaction() {
            let message = "events are appended in a commit of their own: end the transaction, or \
                           use INSERT within it";
            return Err(Error::invalid(message));
        }
        session.expect(Level::Write, Some(stream))?;
        session.access().expect_events()?;
        let database = session.database().waiting();
        let stream = database.stream(stream)?;
        expect_few_waiting(&stream).map_err(|(e, ..)| e)?;
        let (access, token) = (Arc::clone(session.access()), session.token().into());
        Ok(Self { database, stream, access, token, key: None })
    }

    /// The same of events that are stored once, with a key.
    pub fn once(self, key: IdempotencyKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Makes the events of a request ready.
    ///
    /// # Errors
    /// What is wrong with all of them, or with the first where they are all or none.
    pub fn prepare(self, mut request: AppendRequest<'_>, is_small: bool) -> Result<Ready> {
        let Self { database, stream, access, token, key } = self;
        let schema = stream.schema();
        let EventRows { batch, refused, count } = request.events(&schema)?;
        let how = request.how;
        if count.saturating_mul(schema.fields().len()) > VALUES_MAX {
            let (most, fields) = (VALUES_MAX, schema.fields().len());
            let message = format!("expected at most {most} values in a request");
            let message = format!("{message}, found {count} events of {fields} fields");
            return Err(Error::new(Code::LimitExceeded, message));
        }
        let is_one_commit = how.is_whole || how.producer.is_some() || key.is_some();
        if is_one_commit && count > RESULTS_MAX {
            let message = format!("expected at most {RESULTS_MAX} events in one commit");
            return Err(Error::invalid(format!("{message}, found {count}")));
        }
        let once = match (key, how.producer) {
            (None, None) => Once::Not,
            (Some(key), None) => Once::Key(key),
            (None, Some((name, epoch, seq))) => {
                Once::Producer(stream.producer(&producer_name(&token, name)?, epoch)?, seq)
            }
            (Some(_), Some(_)) => {
                let message = "idempotency-key: not beside a producer, whose events are stored \
                               once anyway";
                return Err(Error::invalid(message));
            }
        };
        let mut room = QuotaReservation::default();
        let bytes = batch.columns.iter().map(esker::Column::byte_count).sum::<usize>() as u64;
        access.reserve_quota(&database, &mut room, batch.len() as u64, bytes)?;
        access.count_events(count as u64);
        let mut ready = Ready {
            database,
            access,
            rows: ReadyRows::none(&schema),
            times: Prepared::new(),
            is_durable: how.is_durable,
            is_whole: how.is_whole,
            is_minimal: how.is_minimal || count > RESULTS_MAX,
            once,
            is_small,
            stored: None,
            _room: room,
            stream,
        };
        if count > RESULTS_MAX {
            ready.store_pieces(&schema, batch, (refused, count));
            return Ok(ready);
        }
        let events = ready.stream.ready_columns(&schema, batch);
        let times = events.times()?.into_iter().map(|time| time.map_err(Error::from));
        ready.times = in_order(times, refused, count);
        ready.rows = events.rows;
        ready.expect_fit()?;
        Ok(ready)
    }
}

/// What became of all events, by what became of those that were not refused.
fn in_order<T>(
    others: impl IntoIterator<Item = Result<T>>,
    refused: Vec<(usize, Error)>,
    count: usize,
) -> Vec<(Place, Result<T>)> {
    let mut all = Vec::with_capacity(count);
    let (mut others, mut refused) = (others.into_iter(), refused.into_iter().peekable());
    for at in 0..count {
        let next = match refused.next_if(|(place, _)| *place == at) {
            Some((_, e)) => Some(Err(e)),
            None => others.next(),
        };
        all.extend(next.map(|next| (Place::Item(at as u64 + 1), next)));
    }
    all
}

impl Ready {
    /// Refuses what is not about an event, and all where one is refused of what is whole.
    fn expect_fit(&self) -> Result<()> {
        let refused = self.times.iter().filter_map(|(at, time)| Some((at, time.as_ref().err()?)));
        for (at, e) in refused {
            if ends(e.code()) {
                return Err(e.clone());
            }
            // What was stored before is answered first.
            if self.is_whole && matches!(self.once, Once::Not) {
                self.access.note_events(0, self.times.len() as u64);
                return Err(e.clone().at(at));
            }
        }
        Ok(())
    }

    /// Stores more events than one commit takes, in commits of their own.
    fn store_pieces(
        &mut self,
        schema: &Arc<Schema>,
        batch: esker::Batch,
        (refused, count): (Vec<(usize, Error)>, usize),
    ) {
        let AppendedColumns { events, commit, newest } = self.stream.append_columns(schema, batch);
        let stored = events.into_iter().map(StoredEvent::of);
        let events = stored.map(|event| event.map_err(|e| of_commit(&e)));
        self.stored = Some((in_order(events, refused, count), self.unsynced(commit, newest)));
    }

    /// The commit that has to be on the disk before what is stored is told.
    fn unsynced(&self, commit: Option<u64>, newest: u64) -> Option<u64> {
        match (self.is_durable, commit) {
            (Some(true), _) => Some(newest),
            (None, Some(commit)) => Some(commit),
            (Some(false), Some(commit)) => {
                // What cannot be shown before it is on the disk is told once it is.
                let is_due = self.stream.is_flush_due() || self.stream.reveal(commit).is_err();
                is_due.then_some(commit)
            }
            (_, None) => None,
        }
    }

    /// Queues the rows for their commit; `None` where that depends on what was sent before, or
    /// there is none.
    pub fn submit(&mut self) -> Option<Submitted> {
        let is_ready = self.stored.is_none() && !self.rows.is_empty();
        let is_alone = matches!(self.once, Once::Not) && is_ready;
        is_alone.then(|| Submitted::new(&self.stream, (self.rows.take(), self.is_whole), None))
    }

    /// What is answered, once what was submitted is stored.
    async fn store(mut self, id: u32, submitted: Option<Submitted>) -> Result<Told> {
        if let Some((outcomes, commit)) = self.stored.take() {
            return self.told(id, &outcomes, (commit, false));
        }
        if let Some(submitted) = submitted {
            let appended = submitted.outcome(self.is_small).await?;
            let commit = self.unsynced(appended.commit, appended.newest);
            let rows = appended.outcomes.iter().map(|row| stored(row, of_commit));
            return self.told(id, &outcomes_of(&self.times, rows), (commit, false));
        }
        let once = std::mem::replace(&mut self.once, Once::Not);
        for _ in 0..ATTEMPTS_MAX {
            let entry = match &once {
                Once::Not => {
                    return self.told(id, &outcomes_of(&self.times, None), (None, false));
                }
                Once::Key(key) => match key.beside(&self.database, self.kept_answer())? {
                    Err(entry) => entry,
                    Ok(kept) => return Ok(self.told_again(id, &kept)),
                },
                Once::Producer(producer, seq) => {
                    match producer.turn(*seq, times_of(&self.times))? {
                        Turn::New(entry) => entry,
                        Turn::Known(outcomes) => return self.told_known(id, outcomes),
                        Turn::Stored { events } => return Ok(self.told_stored(id, events)),
                    }
                }
            };
            if let Some(told) = self.store_turn(id, entry).await? {
                return Ok(told);
            }
            // What the other request did is seen once it is on the disk.
            let database = self.database.clone();
            let synced = tokio::task::spawn_blocking(move || database.sync()).await;
            synced.map_err(|_| too_late())??;
        }
        Err(too_late())
    }

    /// What is kept with a key: the answer, made of what became of the rows.
    fn kept_answer(
        &self,
    ) -> impl Fn(&[esker::Result<u64>]) -> esker::Result<Vec<u8>> + Send + Sync + 'static {
        let (times, mut form) = (self.times.clone(), self.form());
        if times.len() > KEPT_RESULTS_MAX {
            (form.is_minimal, form.errors_max) = (true, ERRORS_MAX);
        }
        move |rows| {
            let rows = rows.iter().map(|row| stored(row, of_commit));
            let outcomes = outcomes_of(&times, rows);
            if let Some(e) = of_all(&outcomes) {
                return Err(esker::Error::new(ErrorKind::InvalidInput, e.message()));
            }
            let mut out = Vec::new();
            form.write(&mut out, &outcomes, false);
            if out.len() > KEPT_BYTES_MAX {
                out.clear();
                let short = Form { is_minimal: true, errors_max: 0, ..form };
                short.write(&mut out, &outcomes, false);
            }
            Ok(out)
        }
    }

    /// The newest commit, where what was stored before is told once the disk has it.
    fn before(&self) -> Option<u64> {
        (self.is_durable != Some(false)).then(|| self.database.published_commit())
    }

    /// Stores events with the entry that is kept of them; `None` where another request came first.
    async fn store_turn(&self, id: u32, entry: KeptEntry) -> Result<Option<Told>> {
        if self.is_whole
            && let Some((at, Err(e))) = self.times.iter().find(|(_, time)| time.is_err())
        {
            self.access.note_events(0, self.times.len() as u64);
            return Err(e.clone().at(at));
        }
        let rows = (self.rows.clone(), self.is_whole);
        let submitted = Submitted::new(&self.stream, rows, Some(entry));
        let mut appended = submitted.outcome(self.is_small).await?;
        let is_late = |outcome: &esker::Result<u64>| {
            outcome.as_ref().is_err_and(|e| e.kind() == ErrorKind::AlreadyExists)
        };
        if appended.outcomes.iter().any(is_late) {
            return Ok(None);
        }
        if self.rows.is_empty()
            && let Some(Err(e)) = appended.outcomes.pop()
        {
            return Err(e.into());
        }
        let commit = self.unsynced(appended.commit, appended.newest);
        let rows = appended.outcomes.iter().map(|row| stored(row, of_commit));
        let outcomes = outcomes_of(&self.times, rows);
        self.told(id, &outcomes, (commit, false)).map(Some)
    }

    /// The answer by the outcomes of all events.
    fn told(
        &self,
        id: u32,
        outcomes: &Outcomes,
        (commit, is_duplicate): (Option<u64>, bool),
    ) -> Result<Told> {
        if let Some(e) = of_all(outcomes) {
            return Err(e);
        }
        if !is_duplicate {
            let (new, refused) = counts(outcomes);
            self.access.note_events(new, refused);
        }
        let first = outcomes.iter().find_map(|(at, outcome)| Some((at, outcome.as_ref().err()?)));
        if let Some((at, e)) = first.filter(|_| self.is_whole) {
            return Err(e.clone().at(at));
        }
        let mut bytes = Vec::with_capacity(48 + outcomes.len() * ID_BYTES);
        encode::done(&mut bytes, id, |out| self.form().write(out, outcomes, is_duplicate));
        Ok(self.settled(bytes, commit))
    }

    /// What became of the last request of a producer, which comes again.
    fn told_known(&self, id: u32, outcomes: Vec<esker::Result<EventId>>) -> Result<Told> {
        let places = self.times.iter().map(|(place, _)| *place);
        let known = outcomes.into_iter().map(StoredEvent::of);
        let outcomes = known.map(|outcome| outcome.map_err(Error::from));
        self.told(id, &places.zip(outcomes).collect(), (self.before(), true))
    }

    /// What was answered to a request with the same key.
    fn told_again(&self, id: u32, kept: &[u8]) -> Told {
        let mut bytes = Vec::new();
        encode::done(&mut bytes, id, |out| out.extend_from_slice(kept));
        self.settled(bytes, self.before())
    }

    /// The answer of a request one after which was stored: what became of its events is not kept.
    fn told_stored(&self, id: u32, events: u64) -> Told {
        let mut bytes = Vec::new();
        encode::done(&mut bytes, id, |out| {
            pack::array(out, 6);
            pack::uint(out, events);
            pack::uint(out, 0);
            pack::nil(out);
            pack::array(out, 0);
            pack::bool(out, true);
            self.form().write_window(out);
        });
        self.settled(bytes, self.before())
    }

    fn form(&self) -> Form {
        let is_async = self.is_durable == Some(false);
        let within = is_async.then(|| self.stream.durable_within().as_millis());
        let within_ms = within.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX));
        let errors_max = if self.is_minimal { ERRORS_MAX } else { usize::MAX };
        Form { is_minimal: self.is_minimal, errors_max, within_ms }
    }

    fn settled(&self, bytes: Vec<u8>, commit: Option<u64>) -> Told {
        let commit = commit.filter(|commit| !self.database.is_on_disk(*commit));
        Told { bytes, commit, failed: None, has_changed: true }
    }
}

impl Form {
    /// Writes what became of all events.
    fn write(self, out: &mut Vec<u8>, outcomes: &Outcomes, is_duplicate: bool) {
        let stored = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).count() as u64;
        pack::array(out, 6);
        pack::uint(out, stored);
        pack::uint(out, outcomes.len() as u64 - stored);
        write_ids(out, outcomes, self.is_minimal);
        write_errors(out, outcomes, self.errors_max);
        pack::bool(out, is_duplicate);
        self.write_window(out);
    }

    fn write_window(self, out: &mut Vec<u8>) {
        match self.within_ms {
            Some(ms) => pack::uint(out, ms),
            None => pack::nil(out),
        }
    }
}

/// Bytes of an id: its milliseconds, 48 bits, 16 that are 0, and its row id, 64.
const ID_BYTES: usize = 16;

/// The ids of all events, one behind the other, zeros where there is none; or the first and the
/// last.
fn write_ids(out: &mut Vec<u8>, outcomes: &Outcomes, is_minimal: bool) {
    let ids = || outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().ok());
    let mut bytes = Vec::new();
    if is_minimal {
        [ids().next(), ids().next_back()].into_iter().flatten().for_each(|id| {
            bytes.extend_from_slice(&id_bytes(id.id));
        });
    } else {
        bytes.reserve_exact(outcomes.len() * ID_BYTES);
        for (_, outcome) in outcomes {
            let id = outcome.as_ref().map_or([0; ID_BYTES], |stored| id_bytes(stored.id));
            bytes.extend_from_slice(&id);
        }
    }
    pack::bytes(out, &bytes);
}

#[allow(clippy::big_endian_bytes, reason = "ids sort as their bytes do")]
fn id_bytes(id: EventId) -> [u8; ID_BYTES] {
    (u128::from(id.time_ms()) << 80 | u128::from(id.row_id())).to_be_bytes()
}

/// `[[item, code, message, retryable]…]`
fn write_errors(out: &mut Vec<u8>, outcomes: &Outcomes, most: usize) {
    let errors = || {
        let errors = (1u64..).zip(outcomes);
        errors.filter_map(|(at, (_, outcome))| Some((at, outcome.as_ref().err()?))).take(most)
    };
    pack::array(out, errors().count());
    for (at, e) in errors() {
        pack::array(out, 4);
        pack::uint(out, at);
        pack::text(out, e.code().as_str());
        pack::text(out, e.message());
        pack::bool(out, e.code().is_retryable());
    }
}

/// Reads a request that is large beside the runtime, and stores it.
pub(super) fn start_large(place: JobPlace, target: Target, kind: Kind, payload: Vec<u8>) {
    tokio::spawn(async move {
        let JobPlace { id, to, mut share, stall } = place;
        let prepared =
            match share.wait(payload.len().saturating_mul(3).min(share.most()), stall).await {
                Ok(()) => {
                    let prepare = move || {
                        let request = AppendRequest::read(kind, &payload)?;
                        let mut ready = target.prepare(request, false)?;
                        let submitted = ready.submit();
                        Ok((ready, submitted))
                    };
                    let prepared =
                        tokio::task::spawn_blocking(move || caught(prepare).and_then(|r| r));
                    let gone = |_| Error::new(Code::Unavailable, "the server stops");
                    prepared.await.map_err(gone).and_then(|prepared| prepared)
                }
                Err(e) => Err(e),
            };
        let told = match prepared {
            Ok((ready, submitted)) => ready.store(id, submitted).await,
            Err(e) => Err(e),
        };
        finish(JobPlace { id, to, share, stall }, told).await;
    });
}

/// Stores what is ready.
pub(super) fn start(place: JobPlace, ready: Ready, submitted: Option<Submitted>) {
    tokio::spawn(async move {
        let told = ready.store(place.id, submitted).await;
        finish(place, told).await;
    });
}

/// Stores the events of a frame, without a connection.
pub(super) fn answer_here(session: &Session, frame: &Frame<'_>, kind: Kind, out: &mut Vec<u8>) {
    let told = AppendRequest::read(kind, frame.payload).and_then(|request| {
        let mut ready = Target::of(session, request.stream)?.prepare(request, true)?;
        let submitted = ready.submit();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(|e| Error::new(Code::Internal, e.to_string()))?;
        runtime.block_on(ready.store(frame.id, submitted))
    });
    match told {
        Ok(told) => out.extend_from_slice(&told.bytes),
        Err(e) => encode::error(out, frame.id, &e),
    }
}

/// Hands the answer on.
async fn finish(place: JobPlace, told: Result<Told>) {
    let JobPlace { id, to, mut share, stall } = place;
    let mut told = told.unwrap_or_else(|e| Told::failed(id, &e));
    if let Err(e) = share.wait(told.bytes.len(), stall).await {
        let e = if told.has_changed { e.though_done() } else { e };
        told = Told::failed(id, &e);
    }
    let Told { bytes, commit, failed, has_changed } = told;
    let finished = Finished { failed, has_changed, commit, ..Finished::default() };
    let output = JobOutput { id, bytes, share, finished: Some(Box::new(finished)) };
    // Where the client is gone, nobody asks.
    let _ = to.send(output).await;
}

impl Told {
    fn failed(id: u32, e: &Error) -> Self {
        let mut bytes = Vec::new();
        encode::error(&mut bytes, id, e);
        Self { bytes, commit: None, failed: Some(e.code()), has_changed: false }
    }
}
