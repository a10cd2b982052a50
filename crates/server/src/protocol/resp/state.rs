//! What a client has under way.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use esker::Database;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::call::ANSWER_BYTES_MAX;
use super::cursors::{Cursors, Place};
use super::protocol::{Arguments, Parser};
use super::pubsub::{Said, Subscriptions};
use super::reply::Reply;
use super::watch::Watching;
use crate::auth::authenticator::{Admitted, Authenticator};
use crate::resources::budget::{SMALL_BYTES, Share};
use crate::session::group_sync::Durability;
use crate::session::{ResultBudget, Session};
use crate::shared::Shared;

/// Answers that wait to be written, in bytes; past it no command is begun.
const OUT_BYTES_MAX: usize = 1 << 20;
pub(super) const NO_AUTHENTICATION: &str = "NOAUTH Authentication required.";

/// Commands between MULTI and EXEC.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub commands: Vec<Arguments<'static>>,
    pub bytes: usize,
    /// One of them was refused.
    pub is_refused: bool,
}

/// What commands set of a connection, and an EXEC that comes to nothing takes back.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    database: usize,
    name: Vec<u8>,
    is_third: bool,
}

/// Commits that are to be on the disk before anything is answered.
#[derive(Debug)]
pub(super) struct Pending {
    pub database: Database,
    pub durability: Arc<Durability>,
    pub commit: u64,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepOutcome {
    /// The rest of a command is missing.
    Incomplete,
    /// The next command may take long.
    Long,
    /// Answers are to be written first.
    Full,
    /// The client is to go.
    Close,
}

/// What a client has under way.
#[derive(Default)]
pub(super) struct State {
    pub session: Option<Session>,
    pub durability: Option<Arc<Durability>>,
    pub shared: Option<Arc<Shared>>,
    pub cursors: Arc<Cursors>,
    pub buckets: Vec<String>,
    pub database: usize,
    pub id: u64,
    pub name: Vec<u8>,
    pub queue: Option<Queue>,
    /// The keys that are watched.
    pub watching: Option<Watching>,
    /// Who the client is once an EXEC with AUTH in it is over.
    pub next_seat: Option<Admitted>,
    pub reply: Reply,
    pub pending: Vec<Pending>,
    /// Commands that write are among those that are to be answered.
    pub has_written: bool,
    pub parser: Parser,
    pub input: Vec<u8>,
    pub is_closing: bool,
    pub request_bytes_max: usize,
    /// Commands are done on a thread where waiting does no harm.
    pub may_wait: bool,
    /// Until when those of this turn may wait for memory, all together.
    pub wait_until: Option<Instant>,
    /// Commands between MULTI and EXEC are done: nothing can be written before the last of them.
    pub is_within_exec: bool,
    /// The last command was refused only as it must not wait here: it has to be done again.
    pub is_exhausted: bool,
    /// The share of the budget of large answers.
    pub held: Option<Share>,
    /// The channels that it listens to.
    pub subscriptions: Option<Subscriptions>,
    /// Told when something was said on them.
    pub woken: Arc<Notify>,
    /// What it has published, to be told once its answers may go.
    pub said: Vec<Said>,
}

impl State {
    fn new(cursors: Arc<Cursors>, buckets: Vec<String>, request_bytes_max: usize) -> Self {
        Self { cursors, buckets, id: 1, request_bytes_max, ..Self::default() }
    }

    /// Of a session without a server.
    pub fn alone(session: Session) -> Self {
        let buckets = vec!["db0".to_owned(), "db1".to_owned()];
        let this = Self::new(Arc::default(), buckets, 1 << 20);
        Self { session: Some(session), ..this }
    }

    /// Of a connection to a server.
    pub fn of(shared: &Arc<Shared>, id: u64) -> Self {
        let config = &shared.config;
        let (cursors, buckets) = (Arc::clone(&shared.cursors), config.resp_buckets.clone());
        let mut this = Self::new(cursors, buckets, config.request_bytes_max);
        this.shared = Some(Arc::clone(shared));
        this.id = id;
        if let Ok(admitted) = shared.authenticator.admit(None, None) {
            this.active_session(admitted);
        }
        this
    }

    pub fn active_session(&mut self, admitted: Admitted) {
        self.note_pending();
        // They were those of another database, or other rights.
        self.subscriptions = None;
        let mut session = admitted.session;
        session.register("resp");
        session.defer();
        self.session = Some(session);
        self.durability = Some(admitted.durability);
    }

    /// The bucket that commands are about.
    pub fn place(&self) -> Place {
        let database = self.durability.as_ref().map(Arc::downgrade).unwrap_or_default();
        Place { database, bucket: self.bucket_name().to_owned() }
    }

    pub fn authenticator(&self) -> Option<Arc<dyn Authenticator>> {
        self.shared.as_ref().map(|shared| Arc::clone(&shared.authenticator))
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        let shared = self.shared.as_ref();
        shared.map_or(1, |shared| shared.connections.load(Ordering::Relaxed))
    }

    /// The bucket that is selected.
    pub fn bucket_name(&self) -> &str {
        self.buckets.get(self.database).map_or("", String::as_str)
    }

    /// Forgets what is queued and watched.
    pub fn forget(&mut self) {
        self.queue = None;
        self.watching = None;
    }

    /// What commands may set of the connection.
    pub fn settings(&self) -> Settings {
        let (database, name) = (self.database, self.name.clone());
        Settings { database, name, is_third: self.reply.is_third }
    }

    /// Sets it as it was.
    pub fn adopt(&mut self, settings: &Settings) {
        self.database = settings.database;
        self.name.clone_from(&settings.name);
        self.reply.is_third = settings.is_third;
    }

    /// The bytes of what has come and is not done.
    pub fn held_bytes(&self) -> usize {
        let queued = self.queue.as_ref().map_or(0, |queue| queue.bytes);
        let watched = self.watching.as_ref().map_or(0, Watching::byte_count);
        self.input.len() + self.parser.held_bytes() + queued + watched
    }

    /// What was to come has come, or not: limits count it as it is.
    pub fn release_room(&self) {
        if let Some(session) = &self.session {
            session.release_room();
        }
    }

    /// True when answers are to be written before another command begins: they are many, or more
    /// than the share that they have.
    pub fn is_full(&self) -> bool {
        let bytes = self.reply.out.len();
        let is_beyond = |held: &Share| bytes > held.bytes() + SMALL_BYTES;
        bytes > OUT_BYTES_MAX || self.held.as_ref().is_some_and(is_beyond)
    }

    /// How long it may wait from now on.
    fn patience(&self) -> Duration {
        let until = self.wait_until.map(|until| until.saturating_duration_since(Instant::now()));
        until.unwrap_or(Duration::ZERO)
    }

    /// Gets a share for all answers of an EXEC so far.
    ///
    /// # Errors
    /// As for [`Share::wait`].
    pub fn cover(&mut self) -> crate::Result<()> {
        let bytes = self.reply.out.len();
        let patience = self.patience();
        let Some(shared) = self.shared.as_ref().filter(|_| bytes > SMALL_BYTES) else {
            return Ok(());
        };
        let held = self.held.get_or_insert_with(|| shared.config.budget.share());
        match bytes > held.bytes() {
            true => held.wait_here(bytes, patience),
            false => Ok(()),
        }
    }

    /// Where the answer of a command lies. Only the first of a turn waits for memory: who waited
    /// with answers that others wait for would keep them from going on, and be kept by them.
    pub fn answer_room(&self) -> ResultBudget {
        let is_first = self.reply.out.is_empty() && self.held.is_none();
        let room = match &self.shared {
            None => ResultBudget::default(),
            Some(_) if !self.may_wait => ResultBudget::at_once(),
            Some(shared) if is_first || self.is_within_exec => {
                ResultBudget::shared(shared.config.budget.share(), self.patience())
            }
            Some(shared) => ResultBudget::beside_others(shared.config.budget.share()),
        };
        room.at_most(ANSWER_BYTES_MAX)
    }

    /// Notes which commit has to be on the disk before anything that was done is answered.
    pub fn note_pending(&mut self) {
        let (Some(session), Some(durability)) = (&self.session, &self.durability) else { return };
        let Some(commit) = session.take_commit() else { return };
        match self.pending.last_mut() {
            Some(last) if Arc::ptr_eq(&last.durability, durability) => {
                last.commit = last.commit.max(commit);
            }
            _ => {
                let (database, durability) = (session.database().clone(), Arc::clone(durability));
                self.pending.push(Pending { database, durability, commit });
            }
        }
    }
}
