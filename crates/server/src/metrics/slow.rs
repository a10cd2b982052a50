//! Statements that took long, with their plans.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::Metrics;
use crate::gate::Gate;
use crate::session::{Answer, Request, Session};
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
    /// What was asked: SQL, or a query as JSON.
    pub statement: String,
    /// How it is answered; none for what changes rows.
    pub plan: Option<String>,
    /// Whether it came to its end.
    pub completed: bool,
}

#[derive(Debug)]
pub(super) struct SlowStatements {
    slow_ns: u64,
    kept: Mutex<VecDeque<(TenantName, SlowStatement)>>,
}

impl SlowStatements {
    pub fn new(slow_ns: u64) -> Self {
        Self { slow_ns, kept: Mutex::default() }
    }
}

/// Times one statement.
#[derive(Debug)]
pub struct Timer {
    gate: Arc<Gate>,
    tenant: TenantName,
    request: Request,
    started_ns: u64,
}

impl Timer {
    /// Begins to time a statement of a tenant.
    #[must_use]
    pub fn start(gate: &Arc<Gate>, tenant: &TenantName, request: &Request) -> Self {
        let started_ns = gate.environment.clock.monotonic_ns();
        let (gate, tenant) = (Arc::clone(gate), tenant.clone());
        Self { gate, tenant, request: request.clone(), started_ns }
    }

    /// Keeps and logs the statement if it was slow. Its plan is asked for in the same session.
    pub fn finish(self, session: &mut Session, completed: bool) {
        let Self { gate, tenant, request, started_ns } = self;
        let (clock, metrics) = (&gate.environment.clock, &gate.metrics);
        let elapsed_ns = clock.monotonic_ns().saturating_sub(started_ns);
        if elapsed_ns < metrics.slow.slow_ns {
            return;
        }
        let cut = |text: &str| text.chars().take(TEXT_MAX).collect::<String>();
        let (statement, explain) = match &request {
            Request::Sql { text, parameters } => {
                let (text, parameters) = (format!("EXPLAIN {text}"), parameters.clone());
                let only_reads = esker_sql::parse_statement(&text).is_ok();
                (
                    cut(text.trim_start_matches("EXPLAIN ")),
                    only_reads.then_some(Request::Sql { text, parameters }),
                )
            }
            Request::Query { json } => (cut(json), None),
            _ => return,
        };
        let plan = explain.and_then(|explain| match session.run(explain) {
            Ok(Answer::Text(plan)) => Some(cut(&plan)),
            _ => None,
        });
        let elapsed_ms = elapsed_ns / 1_000_000;
        tracing::warn!(%tenant, elapsed_ms, completed, statement, plan, "slow statement");
        let ended_us = clock.wall_us();
        let slow = SlowStatement { ended_us, elapsed_ms, statement, plan, completed };
        let mut kept = metrics.slow.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back((tenant, slow));
    }
}

impl Metrics {
    /// The slow statements of a tenant, the last first.
    #[must_use]
    pub fn slow_statements(&self, tenant: &TenantName) -> Vec<SlowStatement> {
        let kept = self.slow.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().rev().filter(|(own, _)| own == tenant).map(|(_, slow)| slow.clone()).collect()
    }
}
