//! What one tenant may take, so that the others have what is theirs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use esker::Database;
use esker_vfs::Environment;
use serde::{Deserialize, Serialize};

use crate::{Code, Error, Result};

/// How long a count of rows and bytes holds.
const USAGE_HOLDS_NS: u64 = 1_000_000_000;

/// The most that a tenant may take. Nothing given means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantLimits {
    /// Rows of all its tables and buckets. Counted once a second: writes are refused from then on.
    pub rows: Option<u64>,
    /// Bytes of its files and of rows that are in none yet. Counted once a second, likewise.
    pub bytes: Option<u64>,
    /// Requests in a second; twice as many may come at once.
    pub requests_per_second: Option<u64>,
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
    /// Requests that may come now, in thousandths, and when that was reckoned.
    requests: Mutex<(u64, u64)>,
    /// Rows and bytes, and when they were counted.
    stored: Mutex<Option<(u64, u64, u64)>>,
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
        let start = (limits.requests_per_second.unwrap_or(0).saturating_mul(2_000), 0);
        Self {
            environment: environment.clone(),
            limits: RwLock::new(limits),
            queries: Arc::default(),
            requests: Mutex::new(start),
            stored: Mutex::default(),
        }
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
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, then_ns) = *requests;
        let passed_us = now_ns.saturating_sub(then_ns) / 1_000;
        let gained = passed_us.saturating_mul(rate) / 1_000;
        if left.saturating_add(gained) < 1_000 {
            // The time stays, so that parts of a request add up.
            return Err(exceeded(format!("more than {rate} requests in a second: wait and retry")));
        }
        let most = rate.saturating_mul(2_000).max(1_000);
        *requests = (left.saturating_add(gained).min(most) - 1_000, now_ns);
        Ok(())
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

    /// Queries that run now.
    #[must_use]
    pub fn running_queries(&self) -> u64 {
        self.queries.load(Ordering::Relaxed)
    }

    /// Refuses a write of so many rows and bytes to a tenant that would have more than it may.
    ///
    /// # Errors
    /// `LimitExceeded` with the limit and what there is.
    pub fn expect_room(&self, database: &Database, more_rows: u64, more_bytes: u64) -> Result<()> {
        let limits = self.limits();
        if limits.rows.is_none() && limits.bytes.is_none() {
            return Ok(());
        }
        let (rows, bytes) = self.stored(database);
        // How many bytes something takes is known once it is there: at least one.
        let kinds = [
            ("rows", limits.rows, rows, more_rows),
            ("bytes", limits.bytes, bytes, more_bytes.max(1)),
        ];
        for (what, limit, there, more) in kinds {
            if let Some(limit) = limit.filter(|limit| there.saturating_add(more) > *limit) {
                let message = format!("the tenant may have {limit} {what} and has {there}");
                return Err(exceeded(message));
            }
        }
        Ok(())
    }

    fn stored(&self, database: &Database) -> (u64, u64) {
        let now_ns = self.environment.clock.monotonic_ns();
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((rows, bytes, at_ns)) = *stored
            && now_ns.saturating_sub(at_ns) < USAGE_HOLDS_NS
        {
            return (rows, bytes);
        }
        let info = database.info();
        let rows = info.tables.iter().map(|table| table.live_rows).sum();
        let tables: u64 = info.tables.iter().map(|t| t.segment_bytes + t.group_bytes).sum();
        let bytes = tables + info.value_bytes;
        *stored = Some((rows, bytes, now_ns));
        (rows, bytes)
    }
}
