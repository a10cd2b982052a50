//! The clients that are connected, and what runs for each: listed for administrators, who may end
//! it.
//!
//! A connection that has said who it is takes a seat, and so does a transaction of HTTP, which
//! lasts over several requests, and what else takes long there. A seat is given up with the last
//! session that has it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use esker::SessionActivity;
use esker_vfs::Environment;
use serde::Serialize;
use tokio::sync::Notify;

use crate::session::{Canceller, RequestSummary};
use crate::tenant::TenantName;

/// How much of a statement is shown, in characters.
const TEXT_MAX: usize = 4_096;

/// All seats of a server.
#[derive(Debug)]
pub struct ActiveSessions {
    environment: Environment,
    taken: Mutex<BTreeMap<u64, Weak<ActiveSession>>>,
    last: AtomicU64,
}

/// What is listed of a seat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SeatInfo {
    /// By which it is ended.
    pub id: u64,
    /// How it came: `wire`, `json-lines`, `resp` or `http`.
    pub protocol: &'static str,
    /// The id of its token.
    pub token: String,
    /// When it came, in microseconds since 1970.
    pub began_us: i64,
    /// How long it has been there.
    pub age_ms: u64,
    /// For how long it has had a transaction; `None` without one.
    pub transaction_ms: Option<u64>,
    /// What runs for it.
    pub running: Vec<RunningInfo>,
}

/// What is listed of a request under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunningInfo {
    /// The request, as slow statements show it.
    pub statement: String,
    /// For how long it has been running.
    pub elapsed_ms: u64,
}

impl From<SeatInfo> for SessionActivity {
    fn from(seat: SeatInfo) -> Self {
        let now_us = later(seat.began_us, seat.age_ms);
        let since = |elapsed_ms: u64| now_us.saturating_sub(later(0, elapsed_ms));
        let newest = seat.running.last();
        Self {
            id: seat.id,
            protocol: seat.protocol,
            token: seat.token,
            started_us: seat.began_us,
            statement_since_us: newest.map(|running| since(running.elapsed_ms)),
            statement: newest.map(|running| running.statement.clone()),
            transaction_since_us: seat.transaction_ms.map(since),
        }
    }
}

/// So many milliseconds after a time in microseconds.
fn later(us: i64, ms: u64) -> i64 {
    us.saturating_add_unsigned(ms.saturating_mul(1_000))
}

#[derive(Debug)]
struct Running {
    number: u64,
    words: Arc<RequestSummary>,
    since_ns: u64,
    cancel: Canceller,
}

#[derive(Debug, Default)]
struct State {
    running: Vec<Running>,
    last: u64,
    transaction_ns: Option<u64>,
}

/// The place of one client.
#[derive(Debug)]
pub(crate) struct ActiveSession {
    active_sessions: Arc<ActiveSessions>,
    id: u64,
    protocol: &'static str,
    token: String,
    tenant: TenantName,
    began: (i64, u64),
    state: Mutex<State>,
    is_ended: AtomicBool,
    ended: Notify,
}

impl ActiveSessions {
    /// None is taken yet.
    #[must_use]
    pub fn new(environment: &Environment) -> Arc<Self> {
        let (environment, taken) = (environment.clone(), Mutex::default());
        Arc::new(Self { environment, taken, last: AtomicU64::new(0) })
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<u64, Weak<ActiveSession>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat for somebody who came by a protocol.
    pub(crate) fn take(
        self: &Arc<Self>,
        protocol: &'static str,
        token: &str,
        tenant: &TenantName,
    ) -> Arc<ActiveSession> {
        let clock = &self.environment.clock;
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let active_session = Arc::new(ActiveSession {
            active_sessions: Arc::clone(self),
            id,
            protocol,
            token: token.to_owned(),
            tenant: tenant.clone(),
            began: (clock.wall_us(), clock.monotonic_ns()),
            state: Mutex::default(),
            is_ended: AtomicBool::new(false),
            ended: Notify::new(),
        });
        self.taken().insert(id, Arc::downgrade(&active_session));
        active_session
    }

    fn of(&self, tenant: &TenantName) -> Vec<Arc<ActiveSession>> {
        let taken = self.taken();
        let active_sessions = taken.values().filter_map(Weak::upgrade);
        // The last to let go of a seat takes the lock: not within it.
        let all: Vec<_> = active_sessions.collect();
        drop(taken);
        all.into_iter()
            .filter(|active_session| active_session.tenant == *tenant && !active_session.is_ended())
            .collect()
    }

    /// The seats of a database, in the order of their coming.
    #[must_use]
    pub fn list(&self, tenant: &TenantName) -> Vec<SeatInfo> {
        let now_ns = self.environment.clock.monotonic_ns();
        self.of(tenant).iter().map(|active_session| active_session.info(now_ns)).collect()
    }

    /// Ends a seat of a database, and what runs for it; false when there is none.
    #[must_use]
    pub fn end(&self, id: u64, tenant: &TenantName) -> bool {
        let Some(active_session) =
            self.of(tenant).into_iter().find(|active_session| active_session.id == id)
        else {
            return false;
        };
        active_session.end();
        true
    }
}

impl ActiveSession {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn info(&self, now_ns: u64) -> SeatInfo {
        let since = |since_ns: u64| now_ns.saturating_sub(since_ns) / 1_000_000;
        let state = self.state();
        let running = state.running.iter().map(|running| RunningInfo {
            statement: running.words.to_string().chars().take(TEXT_MAX).collect(),
            elapsed_ms: since(running.since_ns),
        });
        SeatInfo {
            id: self.id,
            protocol: self.protocol,
            token: self.token.clone(),
            began_us: self.began.0,
            age_ms: since(self.began.1),
            transaction_ms: state.transaction_ns.map(since),
            running: running.collect(),
        }
    }

    fn end(&self) {
        self.is_ended.store(true, Ordering::SeqCst);
        self.state().running.iter().for_each(|running| running.cancel.cancel());
        self.ended.notify_waiters();
    }

    /// True once an administrator has ended it.
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::SeqCst)
    }

    /// Waits until an administrator ends it; for ever where there is none.
    pub async fn ended(active_session: Option<&Arc<Self>>) {
        let Some(active_session) = active_session else { return std::future::pending().await };
        let ended = active_session.ended.notified();
        tokio::pin!(ended);
        // From here on it is not missed.
        ended.as_mut().enable();
        if !active_session.is_ended() {
            ended.await;
        }
    }

    /// Notes what runs for it; the number is that by which [`ActiveSession::finish`] knows it.
    pub fn begin(&self, words: Arc<RequestSummary>, cancel: Canceller) -> u64 {
        let since_ns = self.active_sessions.environment.clock.monotonic_ns();
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        state.running.push(Running { number, words, since_ns, cancel });
        number
    }

    /// Notes that it has ended.
    pub fn finish(&self, number: u64) {
        self.state().running.retain(|running| running.number != number);
    }

    /// Notes whether it has a transaction.
    pub fn note_transaction(&self, has_one: bool) {
        let now_ns = has_one.then(|| self.active_sessions.environment.clock.monotonic_ns());
        self.state().transaction_ns = now_ns;
    }
}

impl Drop for ActiveSession {
    fn drop(&mut self) {
        self.active_sessions.taken().remove(&self.id);
    }
}
