//! What a query runs with.

use std::sync::Arc;

use esker_format::Value;
use esker_vfs::{Clock, Environment, Tasks};

/// The machine a query runs on, and how much of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Runs the parallel parts.
    pub tasks: Arc<dyn Tasks>,
    /// Times the steps.
    pub clock: Arc<dyn Clock>,
    /// The most bytes of groups, sort keys and results held at once. A query that needs more is
    /// refused with [`crate::ErrorKind::OverBudget`].
    pub memory_budget_bytes: usize,
    /// What the statement is given.
    pub inputs: Inputs,
}

/// What a statement is given when it runs, apart from its text.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// What `now()` is: microseconds since 1970-01-01 UTC.
    pub now_us: i64,
    /// The values of its parameters, by position.
    pub parameters: Arc<[Value]>,
}

impl Options {
    /// The budget of [`Options::new`]: 1 GiB.
    pub const MEMORY_BUDGET_BYTES: usize = 1 << 30;

    /// The threads and the clock of an environment, with the default budget, now.
    #[must_use]
    pub fn new(environment: &Environment) -> Self {
        Self {
            tasks: Arc::clone(&environment.tasks),
            clock: Arc::clone(&environment.clock),
            memory_budget_bytes: Self::MEMORY_BUDGET_BYTES,
            inputs: Inputs { now_us: environment.clock.wall_us(), parameters: Arc::default() },
        }
    }
}
