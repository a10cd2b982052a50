//! One client that speaks the binary form.
//!
//! One task has everything: it reads what has come, answers what takes microseconds at once, and
//! writes all answers that are ready by one call. What may take long is a job on another thread,
//! whose frames come back by a channel of few places.
//!
//! ```text
//!            ┌──────────── requests by key ────────────┐
//!  socket ──►│ input ──► frames ──► session ──► out ──►│──► socket
//!            │             │                    ▲      │
//!            │             ├──► jobs ───────────┤      │    queries, many keys, loads
//!            │             └──► held ── sync ───┘      │    writes that wait for the disk
//!            └─────────────────────────────────────────┘
//! ```
//!
//! Memory is bounded by reading no further: while answers wait to be written, jobs are as many as
//! may be, or a load takes no chunk.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use esker_wire::{Frame, Kind, Reader};
use tokio::io::Interest;
use tokio::sync::{mpsc, watch};

use super::bulk::{self, Begin, Chunk};
use super::job::{self, JobOutput, Work};
use super::{Stream, decode, encode, point};
use crate::admission::Admitted;
use crate::durability::{self, Durability, Reached};
use crate::server::Shared;
use crate::session::{Canceller, Request, Session};
use crate::{Code, Error, Result};

/// Answers that wait to be written, in bytes; past it no request is begun.
const OUT_BYTES_MAX: usize = 1 << 20;
/// Jobs of one connection at a time.
const JOBS_MAX: usize = 16;
/// Reads before other connections have their turn.
const READS_BEFORE_YIELD: usize = 64;

/// A job under way.
#[derive(Debug)]
struct Running {
    cancel: Canceller,
    /// Where the chunks of a load go.
    chunks: Option<mpsc::Sender<Chunk>>,
}

/// Answers that are told once a commit is durable.
#[derive(Debug)]
struct Held {
    commit: u64,
    frames: Vec<u8>,
}

struct Connection<'s> {
    stream: Stream,
    shared: &'s Shared,
    input: Vec<u8>,
    /// How much of the input has been dealt with.
    read_to: usize,
    out: Vec<u8>,
    written: usize,
    /// `None` before the client has been let in, and while a job has it.
    session: Option<Session>,
    is_away: bool,
    durability: Option<(Arc<Durability>, watch::Receiver<Reached>)>,
    running: BTreeMap<u32, Running>,
    jobs: mpsc::Sender<JobOutput>,
    outputs: mpsc::Receiver<JobOutput>,
    holding: Held,
    held: VecDeque<Held>,
    /// The load that takes no more chunks for now.
    full: Option<u32>,
    is_at_end: bool,
}

/// Serves a client until it goes, is idle for too long, or the server stops.
pub(super) async fn serve(stream: Stream, input: Vec<u8>, shared: &Shared) -> io::Result<()> {
    let (jobs, outputs) = mpsc::channel(4);
    let mut connection = Connection {
        stream,
        shared,
        input,
        read_to: 0,
        out: Vec::new(),
        written: 0,
        session: None,
        is_away: false,
        durability: None,
        running: BTreeMap::new(),
        jobs,
        outputs,
        holding: Held { commit: 0, frames: Vec::new() },
        held: VecDeque::new(),
        full: None,
        is_at_end: false,
    };
    if let Ok(admitted) = shared.admission.admit(None, None) {
        connection.seat(admitted);
    }
    let result = connection.run().await;
    connection.running.values().for_each(|running| running.cancel.cancel());
    result
}

impl Connection<'_> {
    fn seat(&mut self, admitted: Admitted) {
        let reached = admitted.durability.subscribe();
        self.durability = Some((admitted.durability, reached));
        self.session = Some(admitted.session);
    }

    async fn run(&mut self) -> io::Result<()> {
        let mut stopping = self.shared.stopping.clone();
        let mut reads = 0;
        loop {
            self.handle_input();
            self.hold();
            self.release();
            self.flush()?;
            let is_idle = self.running.is_empty() && self.held.is_empty() && self.out.is_empty();
            if is_idle && (self.is_at_end || *stopping.borrow()) {
                return Ok(());
            }
            if self.may_read() {
                match self.stream.try_read(&mut self.input)? {
                    Some(0) => self.end(),
                    Some(_) => {}
                    None => {
                        reads = 0;
                        self.wait(&mut stopping).await?;
                        continue;
                    }
                }
                reads += 1;
                if reads % READS_BEFORE_YIELD == 0 {
                    tokio::task::yield_now().await;
                }
            } else {
                self.wait(&mut stopping).await?;
            }
        }
    }

    /// The client says no more: what it has not waited for is given up.
    fn end(&mut self) {
        self.is_at_end = true;
        self.running.values_mut().for_each(|running| {
            running.cancel.cancel();
            running.chunks = None;
        });
    }

    fn is_open(&self) -> bool {
        !self.is_at_end && !*self.shared.stopping.borrow()
    }

    fn may_begin(&self) -> bool {
        self.out.len() < OUT_BYTES_MAX && self.running.len() < JOBS_MAX && self.full.is_none()
    }

    fn may_read(&self) -> bool {
        let backlog = self.input.len() - self.read_to;
        let room = backlog < super::stream::READ_BYTES || (self.may_begin() && !self.is_away);
        self.is_open() && room && self.out.len() < OUT_BYTES_MAX
    }

    /// Whether it is for the server to do something, and not for the client: to ask, to read, to go
    /// on with a load.
    fn is_working(&self) -> bool {
        let has_job = self.running.values().any(|running| running.chunks.is_none());
        self.out.is_empty() && (has_job || self.full.is_some() || !self.held.is_empty())
    }

    /// Waits until something can go on.
    async fn wait(&mut self, stopping: &mut watch::Receiver<bool>) -> io::Result<()> {
        let interest = match (self.may_read(), self.out.is_empty()) {
            (true, true) => Some(Interest::READABLE),
            (true, false) => Some(Interest::READABLE | Interest::WRITABLE),
            (false, false) => Some(Interest::WRITABLE),
            (false, true) => None,
        };
        let is_working = self.is_working();
        let is_holding = !self.held.is_empty();
        // What a client does not read stays with its jobs, which wait then.
        let takes_outputs = !self.running.is_empty() && self.out.len() < OUT_BYTES_MAX;
        let has_stopped = *stopping.borrow();
        let room = self.full.and_then(|id| self.running.get(&id)?.chunks.clone());
        let ready = async {
            match interest {
                Some(interest) => self.stream.ready(interest).await,
                None => std::future::pending().await,
            }
        };
        let reached = async {
            match self.durability.as_mut().filter(|_| is_holding) {
                Some((_, reached)) => drop(reached.changed().await),
                None => std::future::pending().await,
            }
        };
        let has_room = async {
            match &room {
                Some(sender) => drop(sender.reserve().await),
                None => std::future::pending().await,
            }
        };
        let mut output = None;
        tokio::select! {
            ready = ready => ready?,
            found = self.outputs.recv(), if takes_outputs => output = found,
            () = reached => {}
            () = has_room, if room.is_some() => self.full = None,
            _ = stopping.changed(), if !has_stopped => {}
            () = tokio::time::sleep(self.shared.config.idle_timeout), if !is_working => {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        if let Some(output) = output {
            self.take(output);
        }
        Ok(())
    }

    /// Takes what a job has to say.
    fn take(&mut self, output: JobOutput) {
        self.out.extend_from_slice(&output.bytes);
        if let Some(finished) = output.finished {
            self.running.remove(&output.id);
            if self.full == Some(output.id) {
                self.full = None;
            }
            if let Some(session) = finished.session {
                self.session = Some(session);
                self.is_away = false;
            }
        }
    }

    /// Deals with the frames that have come.
    fn handle_input(&mut self) {
        let input = std::mem::take(&mut self.input);
        while self.may_begin() && !*self.shared.stopping.borrow() {
            let bytes = input.get(self.read_to..).unwrap_or_default();
            match Frame::parse(bytes, self.shared.config.request_bytes_max) {
                Ok(None) => break,
                Ok(Some((frame, length))) => {
                    let is_about_another = frame.code == Kind::Cancel.code()
                        || frame.code == Kind::BulkChunk.code()
                        || frame.code == Kind::BulkEnd.code();
                    if self.is_away && !is_about_another {
                        break;
                    }
                    if !self.handle(&frame) {
                        break;
                    }
                    self.read_to += length;
                }
                Err(e) => {
                    // Where the next frame starts cannot be told.
                    encode::error(&mut self.out, 0, &e.into());
                    self.read_to = input.len();
                    self.end();
                    break;
                }
            }
        }
        self.input = input;
        if self.read_to >= self.input.len() {
            self.input.clear();
            self.read_to = 0;
        } else if self.read_to > super::stream::READ_BYTES {
            self.input.drain(..self.read_to);
            self.read_to = 0;
        }
    }

    /// Deals with a frame; false when it has to be dealt with again.
    fn handle(&mut self, frame: &Frame<'_>) -> bool {
        match self.dispatch(frame) {
            Ok(is_done) => is_done,
            Err(e) => {
                encode::error(&mut self.out, frame.id, &e);
                true
            }
        }
    }

    fn dispatch(&mut self, frame: &Frame<'_>) -> Result<bool> {
        let kind = frame.kind()?;
        match kind {
            Kind::Cancel => return self.cancel(frame.payload).map(|()| true),
            Kind::BulkChunk => return Ok(self.give(frame.id, Some(frame.payload))),
            Kind::BulkEnd => return Ok(self.give(frame.id, None)),
            Kind::Hello => return self.hello(frame).map(|()| true),
            Kind::Ping => {
                encode::done(&mut self.out, frame.id, esker_wire::pack::nil);
                return Ok(true);
            }
            _ => {}
        }
        if self.running.contains_key(&frame.id) {
            let message = format!("request {} is under way: expected another id", frame.id);
            return Err(Error::invalid(message));
        }
        let Some(session) = &self.session else {
            let message = "expected a hello with a token first";
            return Err(Error::new(Code::Unauthenticated, message));
        };
        if kind == Kind::BulkBegin {
            let begin = Begin::parse(frame.payload)?;
            let session = session.sibling();
            let (to_load, chunks) = mpsc::channel(bulk::CHUNKS_MAX);
            self.note(frame.id, session.canceller(), Some(to_load));
            bulk::start(frame.id, begin, session, chunks, self.jobs.clone());
            return Ok(true);
        }
        let many = point::key_count(kind, frame.payload) > point::KEYS_AT_ONCE;
        if point::is_point(kind) && !session.is_in_transaction() {
            if many {
                let session = session.sibling();
                self.start(frame.id, Work::Keys(kind, frame.payload.to_vec()), session, true);
            } else {
                let start = self.out.len();
                let (id, payload, out) = (frame.id, frame.payload, &mut self.out);
                let answer = || point::answer(session, kind, id, payload, out);
                let ((), commit) = session.database().without_waiting(answer);
                if let Some(commit) = commit {
                    // It tells of what is not durable yet: that there is no such table.
                    self.holding.frames.extend(self.out.drain(start..));
                    self.holding.commit = self.holding.commit.max(commit);
                }
            }
            return Ok(true);
        }
        let request = decode::request(kind, frame.payload)?;
        self.begin(frame.id, request, many);
        Ok(true)
    }

    /// Does a request, or starts a job for it.
    fn begin(&mut self, id: u32, request: Request, many: bool) {
        let Some(mut session) = self.session.take() else { return };
        let in_order = session.is_in_transaction() || is_about_transactions(&request);
        if many || is_long(&request) {
            if in_order {
                self.is_away = true;
                self.start(id, Work::Request(request), session, false);
            } else {
                self.start(id, Work::Request(request), session.sibling(), true);
                self.session = Some(session);
            }
            return;
        }
        let database = session.database().clone();
        let (answer, commit) = database.without_waiting(|| session.run(request));
        self.session = Some(session);
        match commit {
            Some(commit) if !database.is_durable(commit) => {
                encode::answer(&mut self.holding.frames, id, &answer);
                self.holding.commit = self.holding.commit.max(commit);
            }
            _ => encode::answer(&mut self.out, id, &answer),
        }
    }

    fn note(&mut self, id: u32, cancel: Canceller, chunks: Option<mpsc::Sender<Chunk>>) {
        self.running.insert(id, Running { cancel, chunks });
    }

    fn start(&mut self, id: u32, work: Work, session: Session, is_own: bool) {
        self.note(id, session.canceller(), None);
        job::start(id, work, session, is_own, self.jobs.clone());
    }

    fn cancel(&mut self, payload: &[u8]) -> Result<()> {
        let mut reader = Reader::new(payload);
        let id = reader.uint()?;
        if let Some(running) = u32::try_from(id).ok().and_then(|id| self.running.get_mut(&id)) {
            running.cancel.cancel();
            running.chunks = None;
        }
        Ok(())
    }

    fn hello(&mut self, frame: &Frame<'_>) -> Result<()> {
        let mut reader = Reader::new(frame.payload);
        reader.array_of(2)?;
        let (token, database) = (reader.optional_text()?, reader.optional_text()?);
        reader.finish()?;
        let has_work = self.is_away || !self.running.is_empty() || !self.held.is_empty();
        if has_work || self.session.as_ref().is_some_and(Session::is_in_transaction) {
            return Err(Error::invalid("a hello while requests are under way"));
        }
        let admitted = self.shared.admission.admit(token, database)?;
        self.seat(admitted);
        encode::done(&mut self.out, frame.id, |out| {
            esker_wire::pack::text(out, env!("CARGO_PKG_VERSION"));
        });
        Ok(())
    }

    /// Gives a load a chunk, or its end; false when it takes none for now. A load that has ended
    /// has been answered: the rest of it is nobody's.
    fn give(&mut self, id: u32, chunk: Option<&[u8]>) -> bool {
        let Some(running) = self.running.get_mut(&id) else { return true };
        let Some(sender) = &running.chunks else { return true };
        let is_last = chunk.is_none();
        let is_closed = match sender.try_reserve() {
            Ok(permit) => {
                permit.send(chunk.map(<[u8]>::to_vec));
                false
            }
            Err(mpsc::error::TrySendError::Full(())) => {
                self.full = Some(id);
                return false;
            }
            Err(mpsc::error::TrySendError::Closed(())) => true,
        };
        if is_last || is_closed {
            running.chunks = None;
        }
        true
    }

    /// Holds the answers to the writes of this turn until they are durable.
    fn hold(&mut self) {
        if self.holding.frames.is_empty() {
            return;
        }
        let held = std::mem::replace(&mut self.holding, Held { commit: 0, frames: Vec::new() });
        if let Some((durability, _)) = &self.durability {
            durability.want(held.commit);
        }
        self.held.push_back(held);
    }

    /// Lets answers go whose commits are durable.
    fn release(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let Some((_, reached)) = &mut self.durability else { return };
        let reached = durability::outcome(&reached.borrow_and_update());
        while let Some(first) = self.held.front() {
            match &reached {
                Ok(commit) if first.commit > *commit => return,
                Ok(_) => self.out.extend_from_slice(&first.frames),
                Err(e) => {
                    let mut rest = first.frames.as_slice();
                    while let Ok(Some((frame, length))) = Frame::parse(rest, usize::MAX) {
                        encode::error(&mut self.out, frame.id, e);
                        rest = rest.get(length..).unwrap_or_default();
                    }
                }
            }
            self.held.pop_front();
        }
    }

    /// Writes what is ready, as far as it goes.
    fn flush(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            let rest = self.out.get(self.written..).unwrap_or_default();
            match self.stream.try_write(rest)? {
                Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                Some(n) => self.written += n,
                None => return Ok(()),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }
}

/// Requests that may take long, or wait for the disk in a way of their own.
fn is_long(request: &Request) -> bool {
    match request {
        Request::Sql { .. } | Request::Query { .. } | Request::Explain { .. } | Request::Commit => {
            true
        }
        Request::BucketRange { range, .. } => {
            range.limit.is_none_or(|limit| limit > point::KEYS_AT_ONCE)
        }
        // Makes the bucket where there is none, which waits for the disk: once.
        _ => false,
    }
}

/// Requests that change which transaction the session has.
fn is_about_transactions(request: &Request) -> bool {
    match request {
        Request::Begin { .. } | Request::Commit | Request::Rollback => true,
        Request::Sql { text, .. } => {
            let words = ["begin", "start", "commit", "end", "rollback", "savepoint", "release"];
            let text = text.trim_start();
            let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
            let first = text.get(..end).unwrap_or_default();
            words.iter().any(|word| word.eq_ignore_ascii_case(first))
        }
        _ => false,
    }
}
