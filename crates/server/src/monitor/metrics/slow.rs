//! Statements that took long, with their plans.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use esker::SlowStatementActivity;
use serde::Serialize;

use super::Metrics;
use crate::tenant::TenantName;

/// How many are kept.
const KEPT_MAX: usize = 128;
/// How much of each is kept, in characters.
const TEXT_MAX: usize = 4_096;

/// A statement that took long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowStatement {
    /// When it ended, in microseconds since 1970.
    pub ended_us: i64,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// The request: SQL, a query as JSON, or an operation, its table or bucket, and how many
    /// keys or rows; of a command of Redis's protocol, the first key.
    pub statement: String,
    /// How it is answered; none for what changes rows, and for what goes by keys.
    pub plan: Option<String>,
    /// Whether it came to its end.
    pub completed: bool,
}

impl From<SlowStatement> for SlowStatementActivity {
    fn from(slow: SlowStatement) -> Self {
        let SlowStatement { ended_us, elapsed_ms, statement, plan, completed } = slow;
        Self { ended_us, elapsed_ms, statement, plan, completed }
    }
}

#[derive(Debug)]
pub(super) struct SlowStatements {
    slow_ns: AtomicU64,
    kept: Mutex<VecDeque<(TenantName, SlowStatement)>>,
}

impl SlowStatements {
    pub fn new(slow_ns: u64) -> Self {
        Self { slow_ns: AtomicU64::new(slow_ns), kept: Mutex::default() }
    }
}

impl Metrics {
    /// Now, to measure how long something takes.
    pub(crate) fn now_ns(&self) -> u64 {
        self.environment.clock.monotonic_ns()
    }

    /// True for what takes so long that it is logged and listed.
    pub(crate) fn is_slow(&self, elapsed_ns: u64) -> bool {
        elapsed_ns >= self.slow.slow_ns.load(Ordering::Relaxed)
    }

    /// From how long on a statement is slow.
    pub(crate) fn set_slow(&self, from: Duration) {
        let ns = u64::try_from(from.as_nanos()).unwrap_or(u64::MAX);
        self.slow.slow_ns.store(ns, Ordering::Relaxed);
    }

    /// Logs and keeps what was slow: a statement, and its plan where it has one.
    pub(crate) fn note_slow(
        &self,
        tenant: &TenantName,
        elapsed_ns: u64,
        (statement, plan): (&str, Option<String>),
        completed: bool,
    ) {
        let cut = |text: &str| text.chars().take(TEXT_MAX).collect::<String>();
        let (statement, plan) = (cut(statement), plan.as_deref().map(cut));
        let elapsed_ms = elapsed_ns / 1_000_000;
        tracing::warn!(%tenant, elapsed_ms, completed, statement, plan, "slow statement");
        let ended_us = self.environment.clock.wall_us();
        let slow = SlowStatement { ended_us, elapsed_ms, statement, plan, completed };
        let mut kept = self.slow.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back((tenant.clone(), slow));
    }

    /// The slow statements of a tenant, the last first.
    #[must_use]
    pub fn slow_statements(&self, tenant: &TenantName) -> Vec<SlowStatement> {
        let kept = self.slow.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().rev().filter(|(own, _)| own == tenant).map(|(_, slow)| slow.clone()).collect()
    }
}
