//! What one tenant may take, so that the others have what is theirs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use esker::Database;
use esker_vfs::Environment;
use serde::{Deserialize, Serialize};

use super::rate::{Rate, Wait};
use crate::resources::load_slots::Loads;
use crate::{Code, Error, Result};

/// Bytes of events that are stored in a second at the least, for who asks how long to wait.
const DRAINED_MIN: u64 = 1 << 20;
/// How long a count of rows and bytes holds at most: files shrink without a commit.
const USAGE_HOLDS_NS: u64 = 1_000_000_000;

/// The most that a tenant may take. Nothing given means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantLimits {
    /// Rows of all its tables and buckets. A write counts for the rows that it may add until it,
    /// or its transaction or load, has ended, and then for those that it added. The rows of
    /// `INSERT … SELECT` count once it is done.
    pub rows: Option<u64>,
    /// Bytes of its files and of rows that are in none yet, too: keys and values of buckets
    /// count when they are admitted, other rows for as much as they take once they are counted.
    pub bytes: Option<u64>,
    /// Requests in a second; twice as many may come at once.
    pub requests_per_second: Option<u64>,
    /// Events that are appended to streams in a second; twice as many may come at once, and a
    /// batch of more is made up for.
    pub events_per_second: Option<u64>,
    /// Queries that run at the same time.
    pub concurrent_queries: Option<u64>,
    /// Bytes of one answer.
    pub result_bytes: Option<u64>,
    /// Bytes of memory of one query.
    pub memory_bytes: Option<u64>,
}

/// What a tenant has taken.
#[derive(Debug)]
pub struct Usage {
    environment: Environment,
    limits: RwLock<TenantLimits>,
    queries: Arc<AtomicU64>,
    loads: Loads,
    requests: Rate,
    events: Rate,
    event_counts: EventCounts,
    tails: Arc<AtomicU64>,
    /// Bytes of events that were stored, when that was looked at, and how many in a second.
    drained: Mutex<(u64, u64, u64)>,
    stored: Arc<Mutex<Stored>>,
}

/// What became of events that were sent.
#[derive(Debug, Default)]
struct EventCounts {
    stored: AtomicU64,
    refused: AtomicU64,
}

/// Rows and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    rows: u64,
    bytes: u64,
}

impl Amount {
    fn add(&mut self, more: Self) {
        self.rows = self.rows.saturating_add(more.rows);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }

    fn subtract(&mut self, less: Self) {
        self.rows = self.rows.saturating_sub(less.rows);
        self.bytes = self.bytes.saturating_sub(less.bytes);
    }
}

/// What a tenant has, and what may come to it.
#[derive(Debug, Default)]
struct Stored {
    counted: Amount,
    /// When that was, and the newest commit then; `None`: it has to be counted.
    counted_at: Option<(u64, u64)>,
    /// What writes that have ended since may have added.
    ended: Amount,
    /// What writes, transactions and loads under way may add.
    in_flight: Amount,
}

/// What a write, a transaction or a load may add, held while it is under way.
#[derive(Debug, Default)]
pub struct QuotaReservation {
    stored: Option<Arc<Mutex<Stored>>>,
    held: Amount,
}

impl QuotaReservation {
    /// How many of so many rows it does not have.
    #[must_use]
    pub fn rows_beyond(&self, rows: u64) -> u64 {
        rows.saturating_sub(self.held.rows)
    }

    /// Called when what it was held for has ended, as dropping it does: what that added is counted
    /// like everything that is there.
    pub fn release(&mut self) {
        if self.held == Amount::default() {
            return;
        }
        let Some(stored) = &self.stored else { return };
        let held = std::mem::take(&mut self.held);
        let mut stored = stored.lock().unwrap_or_else(PoisonError::into_inner);
        stored.in_flight.subtract(held);
        stored.ended.add(held);
    }
}

impl Drop for QuotaReservation {
    fn drop(&mut self) {
        self.release();
    }
}

/// Held by a query while it runs.
#[derive(Debug)]
pub struct QueryPermit(Arc<AtomicU64>);

impl Drop for QueryPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn exceeded(message: String) -> Error {
    Error::new(Code::LimitExceeded, message)
}

impl Usage {
    /// Nothing yet.
    #[must_use]
    pub fn new(environment: &Environment, limits: TenantLimits) -> Self {
        Self {
            environment: environment.clone(),
            limits: RwLock::new(limits),
            queries: Arc::default(),
            loads: Loads::default(),
            requests: Rate::full(),
            events: Rate::full(),
            event_counts: EventCounts::default(),
            tails: Arc::default(),
            drained: Mutex::default(),
            stored: Arc::default(),
        }
    }

    /// Its loads count among those of a server.
    pub(super) fn beside(self, others: &Loads) -> Self {
        Self { loads: others.of_another(), ..self }
    }

    /// The limits now.
    #[must_use]
    pub fn limits(&self) -> TenantLimits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_limits(&self, limits: TenantLimits) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Takes one request from what may come.
    ///
    /// # Errors
    /// `LimitExceeded` when too many came in the last second.
    pub fn count_request(&self) -> Result<()> {
        let Some(rate) = self.limits().requests_per_second else { return Ok(()) };
        let now_ns = self.environment.clock.monotonic_ns();
        self.requests
            .take_one(rate, now_ns)
            .map_err(|_| exceeded(format!("more than {rate} requests in a second: wait and retry")))
    }

    /// How long who was refused a request waits, in seconds.
    #[must_use]
    pub fn request_wait(&self) -> Wait {
        let rate = self.limits().requests_per_second.unwrap_or(0);
        let now_ns = self.environment.clock.monotonic_ns();
        self.requests.admit(rate, now_ns).err().unwrap_or(Wait(1))
    }

    /// Refuses events before they are looked at while those that came are more than may come.
    ///
    /// # Errors
    /// `LimitExceeded`, and how long to wait.
    pub fn expect_events(&self) -> std::result::Result<(), (Error, Wait)> {
        let Some(rate) = self.limits().events_per_second else { return Ok(()) };
        let now_ns = self.environment.clock.monotonic_ns();
        self.events.admit(rate, now_ns).map_err(|wait| {
            (exceeded(format!("more than {rate} events in a second: wait and retry")), wait)
        })
    }

    /// Takes events from what may come: a batch may be more than that, and is made up for.
    pub fn count_events(&self, count: u64) {
        if let Some(rate) = self.limits().events_per_second {
            self.events.take(rate, count, self.environment.clock.monotonic_ns());
        }
    }

    /// Counts what became of events, for the metrics.
    pub fn note_events(&self, stored: u64, refused: u64) {
        self.event_counts.stored.fetch_add(stored, Ordering::Relaxed);
        self.event_counts.refused.fetch_add(refused, Ordering::Relaxed);
    }

    /// Events that were stored, and those that were refused, since the database was opened.
    #[must_use]
    pub fn event_counts(&self) -> (u64, u64) {
        let EventCounts { stored, refused } = &self.event_counts;
        (stored.load(Ordering::Relaxed), refused.load(Ordering::Relaxed))
    }

    /// How many tails there are: who tells one counts itself.
    #[must_use]
    pub fn tails(&self) -> &Arc<AtomicU64> {
        &self.tails
    }

    /// How long it takes until what waits is stored, by what was stored in the last second.
    #[must_use]
    pub fn backlog_wait(&self, waiting: u64, stored: u64) -> Wait {
        let now_ns = self.environment.clock.monotonic_ns();
        let mut seen = self.drained.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, at_ns, in_a_second) = *seen;
        let passed_ms = now_ns.saturating_sub(at_ns) / 1_000_000;
        if passed_ms >= 1_000 {
            let rate = stored.saturating_sub(before).saturating_mul(1_000) / passed_ms;
            *seen = (stored, now_ns, rate);
        }
        Wait::of(waiting, in_a_second.max(DRAINED_MIN), now_ns)
    }

    /// Takes a place among the queries that run.
    ///
    /// # Errors
    /// `LimitExceeded` when there is none.
    pub fn begin_query(&self) -> Result<QueryPermit> {
        let most = self.limits().concurrent_queries.unwrap_or(u64::MAX);
        let running = self.queries.fetch_add(1, Ordering::Relaxed);
        let permit = QueryPermit(Arc::clone(&self.queries));
        if running >= most {
            return Err(exceeded(format!("{most} queries run already: wait and retry")));
        }
        Ok(permit)
    }

    /// The places of its loads.
    #[must_use]
    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    /// Queries that run now.
    #[must_use]
    pub fn running_queries(&self) -> u64 {
        self.queries.load(Ordering::Relaxed)
    }

    /// Admits a write of so many more rows and bytes, or refuses it to a tenant that would have
    /// more than it may. `room` is held until the write has ended.
    ///
    /// # Errors
    /// `LimitExceeded` with the limit and what there is.
    pub fn reserve_quota(
        &self,
        database: &Database,
        room: &mut QuotaReservation,
        rows: u64,
        bytes: u64,
    ) -> Result<()> {
        let limits = self.limits();
        if limits.rows.is_none() && limits.bytes.is_none() {
            return Ok(());
        }
        // How many bytes something takes is known once it is there: at least one.
        let more = Amount { rows, bytes: bytes.max(1) };
        let now_ns = self.environment.clock.monotonic_ns();
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |(at_ns, _)| now_ns.saturating_sub(at_ns) >= USAGE_HOLDS_NS;
        if stored.counted_at.is_none_or(is_old) {
            stored.count(database, now_ns);
        }
        // What has ended may have replaced rows, or failed; others may have removed some.
        if stored.exceeded(&limits, more).is_some() && stored.is_outdated(database) {
            stored.count(database, now_ns);
        }
        if let Some(message) = stored.exceeded(&limits, more) {
            return Err(exceeded(message));
        }
        stored.in_flight.add(more);
        drop(stored);
        room.held.add(more);
        room.stored.get_or_insert_with(|| Arc::clone(&self.stored));
        Ok(())
    }
}

impl Stored {
    fn is_outdated(&self, database: &Database) -> bool {
        self.ended != Amount::default()
            || self.counted_at.is_none_or(|(_, commit)| commit != database.published_commit())
    }

    fn count(&mut self, database: &Database, now_ns: u64) {
        let commit = database.published_commit();
        let info = database.info();
        let rows = info.tables.iter().map(|table| table.live_rows).sum();
        let tables: u64 = info.tables.iter().map(|t| t.segment_bytes + t.group_bytes).sum();
        self.counted = Amount { rows, bytes: tables + info.value_bytes };
        self.counted_at = Some((now_ns, commit));
        self.ended = Amount::default();
    }

    /// What to answer to a request that would exceed a limit.
    fn exceeded(&self, limits: &TenantLimits, more: Amount) -> Option<String> {
        let mut there = self.counted;
        there.add(self.ended);
        there.add(self.in_flight);
        let kinds = [
            ("rows", limits.rows, there.rows, more.rows),
            ("bytes", limits.bytes, there.bytes, more.bytes),
        ];
        kinds.into_iter().find_map(|(what, limit, there, more)| {
            let limit = limit.filter(|limit| there.saturating_add(more) > *limit)?;
            Some(format!("the tenant may have {limit} {what} and has {there}"))
        })
    }
}
