//! Frames: requests, done at once or by a job.

use std::sync::Arc;

use esker_wire::frame::PAYLOAD_BYTES_MAX;
use esker_wire::{Code, Frame, Kind, Reader, pack};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::append::{self, AppendRequest, Target};
use super::super::bulk::{self, Begin, Chunk};
use super::super::job::{self, Place, Work};
use super::super::operations::Asked;
use super::super::tail::{self, TailRequest};
use super::super::{decode, encode, point};
use super::{BESIDE_MAX, Connection, Running};
use crate::session::{
    Canceller, IdempotencyKey, Level, Request, ResultBudget, Session, panic_guard::caught,
};
use crate::{Error, Result};

/// Where a frame says what it asks.
const KIND_AT: usize = 8;

/// How a frame was dealt with.
pub(super) enum Done {
    /// It was answered, or needs no answer; with the code of its error.
    Answered(Option<Code>),
    /// It is counted when its job ends, or its commit is durable.
    Later,
    /// It has to be dealt with again.
    NotYet,
}

/// Events to store, once where they have a key.
struct Events<'b> {
    kind: Kind,
    payload: &'b [u8],
    key: Option<IdempotencyKey>,
}

impl Connection<'_> {
    /// Deals with the frames that have come; true when it stopped as there is no room for answers
    /// or jobs.
    pub(super) fn handle_input(&mut self) -> bool {
        if self.read_to >= self.input.len() {
            return false;
        }
        let input = std::mem::take(&mut self.input);
        let mut now = Instant::now();
        let mut has_more = !self.has_room();
        while !has_more {
            let stops = *self.shared.stopping.borrow();
            if stops && !self.is_loading() {
                break;
            }
            let bytes = input.get(self.read_to..).unwrap_or_default();
            match Frame::parse(bytes, self.request_bytes_max()) {
                Ok(None) => break,
                Ok(Some((frame, length))) => {
                    let is_about_another = frame.code == Kind::Cancel.code()
                        || frame.code == Kind::BulkChunk.code()
                        || frame.code == Kind::Credit.code()
                        || frame.code == Kind::BulkEnd.code();
                    if self.is_away && !is_about_another {
                        break;
                    }
                    if !is_about_another && !self.may_run() {
                        has_more = true;
                        break;
                    }
                    let has_another = bytes.get(length + KIND_AT) == Some(&frame.code);
                    let may_share = has_another && !stops;
                    let shared = if may_share { self.coalesce(bytes, &mut now) } else { 0 };
                    if stops && !is_about_another {
                        let e = Error::new(Code::Unavailable, "the server stops");
                        encode::error(&mut self.out, frame.id, &e);
                    } else if shared == 0 && !self.handle(&frame, &mut now) {
                        break;
                    }
                    self.read_to += length.max(shared);
                    has_more = !self.has_room();
                }
                Err(e) => {
                    // Where the next frame starts cannot be known.
                    encode::error(&mut self.out, 0, &e.into());
                    self.read_to = input.len();
                    self.end();
                    break;
                }
            }
        }
        self.input = input;
        self.compact_input();
        has_more
    }

    /// Deals with a frame; false when it has to be dealt with again.
    fn handle(&mut self, frame: &Frame<'_>, now: &mut Instant) -> bool {
        let Ok(kind) = frame.kind() else {
            if let Err(e) = frame.kind() {
                encode::error(&mut self.out, frame.id, &e.into());
            }
            return true;
        };
        let asked = Asked { kind, since: *now };
        let done = self.dispatch(frame, asked);
        self.settle(frame.id, asked, done, now)
    }

    /// Tells an error, and counts what has been answered; false when the frame has to be dealt with
    /// again.
    pub(super) fn settle(
        &mut self,
        id: u32,
        asked: Asked,
        done: Result<Done>,
        now: &mut Instant,
    ) -> bool {
        let done = done.unwrap_or_else(|e| {
            encode::error(&mut self.out, id, &e);
            Done::Answered(Some(e.code()))
        });
        match done {
            Done::NotYet => return false,
            Done::Later => {}
            Done::Answered(failed) => {
                *now = Instant::now();
                asked.count(&self.shared.config.operations, failed, *now);
            }
        }
        true
    }

    fn dispatch(&mut self, frame: &Frame<'_>, asked: Asked) -> Result<Done> {
        match asked.kind {
            Kind::Cancel => return self.cancel(frame.payload).map(|()| Done::Answered(None)),
            Kind::BulkChunk => return Ok(self.give(frame.id, Some(frame.payload))),
            Kind::BulkEnd => return Ok(self.give(frame.id, None)),
            Kind::Credit => return self.credit(frame).map(|()| Done::Answered(None)),
            Kind::Hello => return self.hello(frame, asked),
            Kind::Ping => {
                encode::done(&mut self.out, frame.id, pack::nil);
                return Ok(Done::Answered(None));
            }
            _ => {}
        }
        if self.running.contains_key(&frame.id) {
            let message = format!("request {} is under way: expected another id", frame.id);
            return Err(Error::invalid(message));
        }
        self.check_in()?;
        let Some(session) = &self.session else {
            let message = "expected a hello with a token first";
            return Err(Error::new(Code::Unauthenticated, message));
        };
        if asked.kind == Kind::BulkBegin {
            let begin = Begin::parse(frame.payload)?;
            let once = begin.once(session, "wire", self.shared.config.idempotency_lifetime)?;
            let (session, patience) = (session.sibling(), self.shared.config.stall_timeout);
            let (to_load, chunks) = mpsc::channel(bulk::CHUNKS_MAX);
            self.note(frame.id, asked, session.canceller(), Some(to_load));
            bulk::start(self.place(frame.id), (begin, once), session, patience, chunks);
            return Ok(Done::Later);
        }
        match asked.kind {
            Kind::Once => return self.begin_once(frame, asked),
            Kind::Append | Kind::AppendColumns => {
                let events = Events { kind: asked.kind, payload: frame.payload, key: None };
                return self.append(frame.id, asked, events);
            }
            Kind::Tail => return self.tail(frame, asked),
            _ => {}
        }
        let many = point::key_count(asked.kind, frame.payload) > point::KEYS_AT_ONCE;
        if point::is_point(asked.kind) && !session.is_in_transaction() {
            if !many {
                return self.answer_now(frame, asked);
            }
            let session = session.sibling();
            let work = Work::Keys(asked.kind, frame.payload.to_vec());
            self.start(frame.id, asked, work, session, true);
            return Ok(Done::Later);
        }
        let request = decode::request(asked.kind, frame.payload)?;
        Ok(self.begin(frame.id, asked, request, many))
    }

    /// Stores events. A request that is small is read here, so that events are in the order in
    /// which they were sent.
    fn append(&mut self, id: u32, asked: Asked, events: Events<'_>) -> Result<Done> {
        let Some(session) = &self.session else { return Ok(Done::Answered(None)) };
        let Events { kind, payload, key } = events;
        let request = AppendRequest::read(kind, payload)?;
        let mut target = Target::of(session, request.stream)?;
        if let Some(key) = key {
            target = target.once(key);
        }
        if payload.len() > append::AT_ONCE_BYTES || request.has_many() {
            append::start_large(self.place(id), target, kind, payload.to_vec());
            self.note(id, asked, Canceller::default(), None);
        } else {
            let (ready, submitted) = caught(|| {
                let mut ready = target.prepare(request, true)?;
                let submitted = ready.submit();
                Ok::<_, Error>((ready, submitted))
            })??;
            let share = self.shared.config.budget.share();
            let (to, stall) = (self.jobs.clone(), self.shared.config.stall_timeout);
            append::start(Place { id, to, share, stall }, ready, submitted);
            self.note(id, asked, Canceller::default(), None);
            self.note_beside(id);
        }
        Ok(Done::Later)
    }

    /// Tells events as they arrive, for as long as the client wants them.
    fn tail(&mut self, frame: &Frame<'_>, asked: Asked) -> Result<Done> {
        let Some(session) = &self.session else { return Ok(Done::Answered(None)) };
        let Some((durability, _)) = &self.durability else { return Ok(Done::Answered(None)) };
        if session.is_in_transaction() {
            let message = "a tail is not part of a transaction: end the transaction first";
            return Err(Error::invalid(message));
        }
        if self.tails >= BESIDE_MAX {
            let message = format!("a connection has at most {BESIDE_MAX} tails");
            return Err(Error::new(Code::LimitExceeded, message));
        }
        let request = TailRequest::read(frame.payload)?;
        session.expect(Level::Read, Some(&request.stream))?;
        let (session, tap) = (session.sibling(), request.tap());
        let config = &self.shared.config;
        let (to, stall) = (self.jobs.clone(), config.stall_timeout);
        let place = Place { id: frame.id, to, share: config.budget.share(), stall };
        let shared = (Arc::clone(&self.shared.tails), Arc::clone(durability));
        self.note(frame.id, asked, session.canceller(), None);
        self.note_beside(frame.id);
        if let Some(running) = self.running.get_mut(&frame.id) {
            running.tap = Some(Arc::clone(&tap));
            self.tails += 1;
        }
        tail::start(place, request, (session, tap), shared, config.idle_timeout);
        Ok(Done::Later)
    }

    /// Gives a tail credit. One that has ended needs none.
    fn credit(&self, frame: &Frame<'_>) -> Result<()> {
        // A failure would tell the client that the tail has ended.
        let Ok(credit) = tail::credit(frame.payload) else { return Ok(()) };
        let running = self.running.get(&frame.id).and_then(|running| running.tap.as_ref());
        running.iter().for_each(|tap| tap.add(credit));
        Ok(())
    }

    /// Notes that a request has no thread.
    fn note_beside(&mut self, id: u32) {
        if let Some(running) = self.running.get_mut(&id) {
            running.is_beside = true;
            self.beside += 1;
        }
    }

    /// Starts a write that is done once. It runs beside others, with which it shares a sync.
    fn begin_once(&mut self, frame: &Frame<'_>, asked: Asked) -> Result<Done> {
        let Some(session) = &self.session else { return Ok(Done::Answered(None)) };
        let (key, kind, payload) = decode::once(frame.payload)?;
        let scope = [session.token().as_bytes(), b"wire", &[kind.code()]];
        let lifetime = self.shared.config.idempotency_lifetime;
        let once = IdempotencyKey::new(key, &scope, &[payload], lifetime);
        if matches!(kind, Kind::Append | Kind::AppendColumns) {
            return self.append(frame.id, asked, Events { kind, payload, key: Some(once?) });
        }
        let request = decode::request(kind, payload)?;
        IdempotencyKey::expect_alone(session, &request)?;
        if request.only_reads() {
            return Ok(self.begin(frame.id, asked, request, false));
        }
        let once = once?;
        let session = session.sibling();
        self.start(frame.id, asked, Work::IdempotencyKey(once, request), session, true);
        Ok(Done::Later)
    }

    /// Whether the client may still ask; one that may not has no session any more.
    fn check_in(&mut self) -> Result<()> {
        let Some(session) = &self.session else { return Ok(()) };
        let checked = session.check_in();
        if checked.as_ref().is_err_and(|e| e.code() == Code::Unauthenticated) {
            self.session = None;
        }
        checked
    }

    /// Answers a request for rows by key.
    fn answer_now(&mut self, frame: &Frame<'_>, asked: Asked) -> Result<Done> {
        let Some(session) = &self.session else { return Ok(Done::Answered(None)) };
        session.answer_in(ResultBudget::at_once().at_most(PAYLOAD_BYTES_MAX));
        let start = self.out.len();
        let (id, payload, out) = (frame.id, frame.payload, &mut self.out);
        let caught = caught(|| point::answer(session, asked.kind, id, payload, out));
        let commit = session.take_commit();
        let failed = caught.inspect_err(|_| self.out.truncate(start))?;
        if failed.is_some() && session.is_budget_exhausted() {
            let session = session.sibling();
            self.out.truncate(start);
            let work = Work::Keys(asked.kind, frame.payload.to_vec());
            self.start(frame.id, asked, work, session, true);
            return Ok(Done::Later);
        }
        let Some(commit) = commit else { return Ok(Done::Answered(failed)) };
        // It reports what is not durable yet: that there is no such table.
        self.holding.frames.extend(self.out.drain(start..));
        self.holding.commit = self.holding.commit.max(commit);
        self.holding.asked.push((asked, failed));
        Ok(Done::Later)
    }

    /// Does a request, or starts a job for it.
    pub(super) fn begin(&mut self, id: u32, asked: Asked, request: Request, many: bool) -> Done {
        let Some(mut session) = self.session.take() else { return Done::Answered(None) };
        if many || is_long(&request) {
            return self.begin_job(id, asked, request, session);
        }
        session.answer_in(ResultBudget::at_once().at_most(PAYLOAD_BYTES_MAX));
        let again = has_values(&request).then(|| request.clone());
        let answer = caught(|| session.run(request)).unwrap_or_else(|e| {
            // A transaction that met it is rolled back.
            session = session.sibling();
            session.defer();
            Err(e)
        });
        let commit = session.take_commit().filter(|commit| !session.database().is_durable(*commit));
        self.session = Some(session);
        let failed = answer.as_ref().err().map(Error::code);
        if failed.is_some()
            && let Some(request) = again
            && let Some(session) = self.session.take_if(|session| session.is_budget_exhausted())
        {
            return self.begin_job(id, asked, request, session);
        }
        match commit {
            Some(commit) => {
                encode::answer(&mut self.holding.frames, id, &answer);
                self.holding.commit = self.holding.commit.max(commit);
                self.holding.asked.push((asked, failed));
                Done::Later
            }
            None => {
                encode::answer(&mut self.out, id, &answer);
                Done::Answered(failed)
            }
        }
    }

    /// Starts a job for a request: with the session, where its order matters.
    fn begin_job(&mut self, id: u32, asked: Asked, request: Request, session: Session) -> Done {
        let is_alone = session.is_in_transaction() || session.has_temporary();
        if is_alone || request.is_about_transactions() {
            self.is_away = true;
            self.start(id, asked, Work::Request(request), session, false);
        } else {
            self.start(id, asked, Work::Request(request), session.sibling(), true);
            self.session = Some(session);
        }
        Done::Later
    }

    fn note(
        &mut self,
        id: u32,
        asked: Asked,
        cancel: Canceller,
        chunks: Option<mpsc::Sender<Chunk>>,
    ) {
        self.running.insert(id, Running { asked, cancel, chunks, is_beside: false, tap: None });
    }

    fn start(&mut self, id: u32, asked: Asked, work: Work, session: Session, is_own: bool) {
        self.note(id, asked, session.canceller(), None);
        job::start(self.place(id), work, session, is_own);
    }

    /// Where a job says what it has to say, with the share of what has come.
    fn place(&mut self, id: u32) -> Place {
        let stall = self.shared.config.stall_timeout;
        Place { id, to: self.jobs.clone(), share: self.incoming.take(), stall }
    }

    fn cancel(&mut self, payload: &[u8]) -> Result<()> {
        let mut reader = Reader::new(payload);
        let id = reader.uint()?;
        if let Some(running) = u32::try_from(id).ok().and_then(|id| self.running.get_mut(&id)) {
            running.end();
            running.chunks = None;
        }
        Ok(())
    }

    fn hello(&mut self, frame: &Frame<'_>, asked: Asked) -> Result<Done> {
        let mut reader = Reader::new(frame.payload);
        reader.array_of(2)?;
        let (token, database) = (reader.optional_text()?, reader.optional_text()?);
        reader.finish()?;
        let has_work = self.is_away || !self.running.is_empty() || !self.held.is_empty();
        if has_work || self.session.as_ref().is_some_and(Session::is_in_transaction) {
            return Err(Error::invalid("a hello while requests are under way"));
        }
        let authenticator = &self.shared.authenticator;
        if authenticator.is_ready(database) {
            let admitted = authenticator.admit(token, database)?;
            admitted.session.check_in()?;
            self.active_session(admitted);
            encode::done(&mut self.out, frame.id, encode::version);
            return Ok(Done::Answered(None));
        }
        // The database has to be opened, which waits for the disk.
        let names = (token.map(str::to_owned), database.map(str::to_owned));
        let authenticator = Arc::clone(authenticator);
        job::admit(self.place(frame.id), authenticator, names);
        self.is_away = true;
        self.note(frame.id, asked, Canceller::default(), None);
        Ok(Done::Later)
    }

    /// Gives a load a chunk, or its end. A load that has ended has been answered: the rest of it
    /// belongs to no one.
    fn give(&mut self, id: u32, chunk: Option<&[u8]>) -> Done {
        let done = Done::Answered(None);
        let Some(running) = self.running.get_mut(&id) else { return done };
        let Some(sender) = &running.chunks else { return done };
        let is_closed = match sender.try_reserve() {
            Ok(permit) => {
                let mut share = self.incoming.take();
                let bytes = chunk.map_or(0, <[u8]>::len);
                if !share.resize(bytes) {
                    (self.incoming, self.wanted) = (share, Some(bytes));
                    return Done::NotYet;
                }
                permit.send(chunk.map(|chunk| (chunk.to_vec(), share)));
                false
            }
            Err(mpsc::error::TrySendError::Full(())) => {
                self.full = Some(id);
                return Done::NotYet;
            }
            Err(mpsc::error::TrySendError::Closed(())) => true,
        };
        if chunk.is_none() || is_closed {
            running.chunks = None;
        }
        done
    }
}

/// Requests that may take long, or wait for the disk in a way of their own.
fn is_long(request: &Request) -> bool {
    match request {
        Request::Sql { .. }
        | Request::Query { .. }
        | Request::Explain { .. }
        | Request::Admin(_)
        | Request::Commit => true,
        Request::BucketRange { range, .. } => {
            range.limit.is_none_or(|limit| limit > point::KEYS_AT_ONCE)
        }
        // Makes the bucket where there is none, which waits for the disk: once.
        _ => false,
    }
}

/// Requests whose answers have values, and may be large.
fn has_values(request: &Request) -> bool {
    matches!(request, Request::Get { .. } | Request::BucketGet { .. } | Request::BucketRange { .. })
}
