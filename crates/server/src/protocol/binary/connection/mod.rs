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
//! may be, a load takes no chunk, or there is no share of the common budget (`memory`).
//!
//! | module | what it does |
//! |---|---|
//! | `requests` | frames: requests, done at once or by a job |
//! | `together` | changes of rows that share a commit |
//! | `answers` | what waits for the disk, and for the socket |
//! | `memory` | the shares of the budget, and which buffers are kept |

mod answers;
mod memory;
mod requests;
mod together;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Sleep};

use super::bulk::Chunk;
use super::job::JobOutput;
use super::operations::Asked;
use super::tail::Tap;
use super::{Stream, buffers};
use crate::auth::authenticator::Admitted;
use crate::monitor::active_sessions::ActiveSession;
use crate::resources::budget::Share;
use crate::resources::fair_share::FairShare;
use crate::resources::spin::{PROMPT, SPIN};
use crate::session::group_sync;
use crate::session::group_sync::{Durability, Reached};
use crate::session::{Canceller, Session};
use crate::shared::Shared;
use answers::Held;

/// Answers that wait to be written, in bytes; past it no request is begun.
const OUT_BYTES_MAX: usize = 1 << 20;
/// Jobs of one connection at a time.
const JOBS_MAX: usize = 16;
/// Requests of one connection that wait without a thread.
const BESIDE_MAX: usize = 1_024;

/// A job under way.
#[derive(Debug)]
struct Running {
    asked: Asked,
    cancel: Canceller,
    /// Where the chunks of a load go.
    chunks: Option<mpsc::Sender<Chunk>>,
    /// It has no thread.
    is_beside: bool,
    /// What the client says of a tail.
    tap: Option<Arc<Tap>>,
}

impl Running {
    /// The client does not want it any more.
    fn end(&self) {
        self.cancel.cancel();
        self.tap.iter().for_each(|tap| tap.end());
    }
}

struct Connection<'s> {
    stream: Stream,
    shared: &'s Shared,
    input: Vec<u8>,
    /// How much of the input has been dealt with.
    read_to: usize,
    /// The share of the budget of what has come and waits.
    incoming: Share,
    /// How large that share has to be for anything to go on; nothing is read before.
    wanted: Option<usize>,
    out: Vec<u8>,
    written: usize,
    /// The share of the budget of answers that wait.
    outgoing: Share,
    /// Answers are more than there is a share for: no request is begun.
    is_over: bool,
    /// `None` before the client has been let in, and while a job has it.
    session: Option<Session>,
    active_session: Option<Arc<ActiveSession>>,
    is_away: bool,
    durability: Option<(Arc<Durability>, watch::Receiver<Reached>)>,
    running: BTreeMap<u32, Running>,
    /// How many of those have no thread.
    beside: usize,
    /// Those of them that are tails.
    tails: usize,
    jobs: mpsc::Sender<JobOutput>,
    outputs: mpsc::Receiver<JobOutput>,
    holding: Held,
    held: VecDeque<Held>,
    /// The load that takes no more chunks for now.
    full: Option<u32>,
    is_at_end: bool,
    /// The client's last request came soon after it had been answered.
    is_prompt: bool,
    /// Its number among those that look for more.
    number: u64,
    /// When the client has had its time, and a timer that goes off no later.
    deadline: Instant,
    timer: Pin<Box<Sleep>>,
}

/// Serves a client until it goes, is idle for too long, or the server stops.
pub(super) async fn serve(stream: Stream, input: Vec<u8>, shared: &Shared) -> io::Result<()> {
    let (jobs, outputs) = mpsc::channel(4);
    let deadline = Instant::now() + shared.config.stall_timeout;
    let mut connection = Connection {
        stream,
        shared,
        input,
        read_to: 0,
        incoming: shared.config.budget.share(),
        wanted: None,
        out: Vec::new(),
        written: 0,
        outgoing: shared.config.budget.share(),
        is_over: false,
        session: None,
        active_session: None,
        is_away: false,
        durability: None,
        running: BTreeMap::new(),
        beside: 0,
        tails: 0,
        jobs,
        outputs,
        holding: Held::default(),
        held: VecDeque::new(),
        full: None,
        is_at_end: false,
        is_prompt: false,
        number: shared.spin.number(),
        deadline,
        timer: Box::pin(tokio::time::sleep_until(deadline)),
    };
    if let Ok(admitted) = shared.authenticator.admit(None, None) {
        connection.active_session(admitted);
    }
    let result = connection.run().await;
    connection.running.values().for_each(Running::end);
    result
}

/// What a future comes to; none of them never ends.
async fn of_some<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// What has happened while a connection waited.
enum Event {
    Ready,
    /// The first answers that wait for the disk may go.
    Reached,
    Output(JobOutput),
    /// There is a share for what has come.
    Granted,
    /// There is none.
    Refused(crate::Error),
    /// There is one for the answers.
    Covered,
    QuotaReservation,
    Late,
}

impl Connection<'_> {
    fn active_session(&mut self, admitted: Admitted) {
        let reached = admitted.durability.subscribe();
        self.durability = Some((admitted.durability, reached));
        let mut session = admitted.session;
        session.register("wire");
        session.defer();
        self.active_session = session.active_session().cloned();
        self.session = Some(session);
    }

    async fn run(&mut self) -> io::Result<()> {
        let mut stopping = self.shared.stopping.clone();
        let mut fair_share = FairShare::default();
        loop {
            if self.active_session.as_ref().is_some_and(|active_session| active_session.is_ended())
            {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let has_more = self.handle_input();
            self.hold();
            self.release();
            self.flush()?;
            self.share_memory();
            // What had no room for its answer has it now, and the socket need not say more.
            if has_more && self.may_begin() {
                tokio::task::yield_now().await;
                continue;
            }
            let is_idle = self.running.is_empty() && self.held.is_empty() && self.out.is_empty();
            // What is decided here is what is waited for below: a stop that comes between is seen.
            let stops = *stopping.borrow();
            if is_idle && (self.is_at_end || stops) {
                return Ok(());
            }
            if self.may_read() {
                if self.input.capacity() == 0 {
                    self.input = buffers::take();
                }
                match self.stream.try_read(&mut self.input)? {
                    Some(0) => self.end(),
                    Some(bytes) => fair_share.note_read(bytes).await,
                    None => {
                        if !self.spin_for_more().await? {
                            self.wait((!stops).then_some(&mut stopping)).await?;
                        }
                    }
                }
            } else {
                self.wait((!stops).then_some(&mut stopping)).await?;
            }
        }
    }

    /// Looks for the next request for a moment, of a client that is prompt; true when something
    /// has come, or the client has gone.
    async fn spin_for_more(&mut self) -> io::Result<bool> {
        let is_idle = self.running.is_empty() && self.held.is_empty() && self.out.is_empty();
        if !is_idle || !std::mem::take(&mut self.is_prompt) {
            return Ok(false);
        }
        let Some(_turn) = self.shared.spin.turn(self.number) else { return Ok(false) };
        let until = Instant::now() + SPIN;
        while Instant::now() < until {
            tokio::task::yield_now().await;
            match self.stream.try_read(&mut self.input)? {
                Some(0) => self.end(),
                Some(_) => {}
                None => continue,
            }
            self.is_prompt = true;
            return Ok(true);
        }
        Ok(false)
    }

    /// The client says no more: what it has not waited for is given up.
    fn end(&mut self) {
        self.is_at_end = true;
        self.running.values_mut().for_each(|running| {
            running.end();
            running.chunks = None;
        });
    }

    /// Nothing is begun once the server stops; loads that were are taken to their end.
    fn is_open(&self) -> bool {
        !self.is_at_end && (!*self.shared.stopping.borrow() || self.is_loading())
    }

    /// True while a load is under way whose rows have not all come.
    fn is_loading(&self) -> bool {
        self.running.values().any(|running| running.chunks.is_some())
    }

    fn may_begin(&self) -> bool {
        self.has_room() && self.may_run()
    }

    /// Whether there is room for what is answered at once.
    fn has_room(&self) -> bool {
        let has_room = self.out.len() < OUT_BYTES_MAX && self.full.is_none();
        has_room && self.wanted.is_none() && !self.is_over
    }

    /// Whether another request may be under way; tails, which do not end, have their own limit.
    fn may_run(&self) -> bool {
        let jobs = self.running.len() - self.beside;
        jobs < JOBS_MAX && self.beside - self.tails < BESIDE_MAX
    }

    fn may_read(&self) -> bool {
        let backlog = self.input.len() - self.read_to;
        let room = backlog < super::stream::READ_BYTES || (self.may_begin() && !self.is_away);
        let has_memory = self.wanted.is_none() && !self.is_over;
        self.is_open() && room && has_memory && self.out.len() < OUT_BYTES_MAX
    }

    /// How long the client has for what it is to do; `None` while something is for the server to
    /// do.
    fn patience(&self) -> Option<Duration> {
        let config = &self.shared.config;
        if !self.out.is_empty() {
            return Some(config.stall_timeout);
        }
        let is_job = |running: &Running| running.chunks.is_none() && running.tap.is_none();
        let has_job = self.running.values().any(is_job);
        if has_job || self.full.is_some() || self.wanted.is_some() || !self.held.is_empty() {
            return None;
        }
        // A request, or a load, of which the rest is missing.
        if self.input.len() > self.read_to || self.is_loading() {
            return Some(config.stall_timeout);
        }
        let is_within = self.session.as_ref().is_some_and(Session::is_in_transaction);
        let idle = config.idle_timeout;
        match (is_within, self.tails) {
            (true, _) => Some(idle.min(config.transaction_timeout)),
            (false, 0) => Some(idle),
            // A tail tells for as long as it is wanted.
            (false, _) => None,
        }
    }

    /// Waits until something can go on; for the server's stop, too, where that is not known.
    async fn wait(&mut self, mut stopping: Option<&mut watch::Receiver<bool>>) -> io::Result<()> {
        self.release_buffers();
        let patience = self.patience();
        if let Some(patience) = patience {
            self.deadline = Instant::now() + patience;
            if self.deadline < self.timer.deadline() {
                self.timer.as_mut().reset(self.deadline);
            }
        }
        let since = Instant::now();
        let event = loop {
            match self.next_event(stopping.as_deref_mut(), patience.is_some()).await? {
                // The timer is set anew when it goes off, not with each request.
                Event::Late if Instant::now() < self.deadline => {
                    self.timer.as_mut().reset(self.deadline);
                }
                event => break event,
            }
        };
        match event {
            Event::Ready => self.is_prompt = since.elapsed() < PROMPT,
            Event::Reached => {}
            Event::Output(output) => self.take(output),
            Event::Granted => self.wanted = None,
            Event::Refused(e) => self.refuse(&e),
            Event::Covered => self.is_over = false,
            Event::QuotaReservation => self.full = None,
            Event::Late => return Err(io::ErrorKind::TimedOut.into()),
        }
        Ok(())
    }

    async fn next_event(
        &mut self,
        stopping: Option<&mut watch::Receiver<bool>>,
        is_timed: bool,
    ) -> io::Result<Event> {
        let interest = match (self.may_read(), self.out.is_empty()) {
            (true, true) => Some(Interest::READABLE),
            (true, false) => Some(Interest::READABLE | Interest::WRITABLE),
            (false, false) => Some(Interest::WRITABLE),
            (false, true) => None,
        };
        // What a client does not read stays with its jobs, which wait then.
        let has_room = self.out.len() < OUT_BYTES_MAX && !self.is_over;
        let takes_outputs = !self.running.is_empty() && has_room;
        let stall = self.shared.config.stall_timeout;
        let room = self.full.and_then(|id| self.running.get(&id)?.chunks.clone());
        let first_held = self.held.front().map(|held| held.commit);
        let (stream, durability) = (&self.stream, &mut self.durability);
        let ready = of_some(interest.map(|interest| stream.ready(interest)));
        let awaited = durability.as_mut().zip(first_held);
        let reached =
            of_some(awaited.map(|((_, reached), commit)| group_sync::passed(reached, commit)));
        let has_room = of_some(room.as_ref().map(mpsc::Sender::reserve));
        let stopped = async {
            match stopping {
                Some(stopping) => stopping.wait_for(|stops| *stops).await.is_ok(),
                None => false,
            }
        };
        let wanted = self.wanted.unwrap_or(0);
        let answers = memory::bytes_of(&self.out, &self.held);
        tokio::select! {
            ready = ready => ready.map(|()| Event::Ready),
            Some(output) = self.outputs.recv(), if takes_outputs => Ok(Event::Output(output)),
            () = reached => Ok(Event::Reached),
            _ = has_room => Ok(Event::QuotaReservation),
            granted = self.incoming.wait(wanted, stall), if self.wanted.is_some() => {
                Ok(granted.map_or_else(Event::Refused, |()| Event::Granted))
            }
            covered = self.outgoing.wait(answers, stall), if self.is_over => match covered {
                Ok(()) => Ok(Event::Covered),
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            },
            () = ActiveSession::ended(self.active_session.as_ref()) => Ok(Event::Ready),
            true = stopped => Ok(Event::Ready),
            () = self.timer.as_mut(), if is_timed => Ok(Event::Late),
        }
    }
}
