//! What the server counts, as Prometheus reads it, and the statements that were slow.

mod operations;
mod slow;
mod text;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use esker_vfs::{DurationCounts, Environment};

pub use operations::Operations;
pub use slow::SlowStatement;
use slow::SlowStatements;

/// What the server counts.
#[derive(Debug)]
pub struct Metrics {
    environment: Environment,
    /// By protocol and operation.
    durations: Mutex<BTreeMap<(&'static str, &'static str), DurationCounts>>,
    /// By protocol, operation and status.
    requests: Mutex<BTreeMap<(&'static str, &'static str, u16), u64>>,
    operations: Mutex<Vec<Arc<Operations>>>,
    slow: SlowStatements,
}

impl Metrics {
    /// Nothing yet; statements are slow from a number of nanoseconds on.
    #[must_use]
    pub fn new(environment: &Environment, slow_ns: u64) -> Self {
        Self {
            environment: environment.clone(),
            durations: Mutex::default(),
            requests: Mutex::default(),
            operations: Mutex::default(),
            slow: SlowStatements::new(slow_ns),
        }
    }

    /// Adds what a protocol counts by itself.
    pub fn add(&self, operations: &Arc<Operations>) {
        let mut all = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::clone(operations));
    }

    /// Counts a request that was answered; `status` is 0 where the protocol has none.
    pub fn count_request(
        &self,
        protocol: &'static str,
        operation: &'static str,
        status: u16,
        nanoseconds: u64,
    ) {
        let mut durations = self.durations.lock().unwrap_or_else(PoisonError::into_inner);
        durations.entry((protocol, operation)).or_default().add(nanoseconds);
        drop(durations);
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((protocol, operation, status)).or_default() += 1;
    }
}
