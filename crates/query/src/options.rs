//! What a query runs with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker_format::Value;
use esker_vfs::{Clock, Environment, Tasks};

use crate::exec::TemporaryFiles;
use crate::{Error, ErrorKind, Result};

/// The machine a query runs on, and how much of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Runs the parallel parts.
    pub tasks: Arc<dyn Tasks>,
    /// Times the steps.
    pub clock: Arc<dyn Clock>,
    /// The most bytes of groups, sort keys and results held at once. Groups, sort keys and sides
    /// of joins that need more lie in temporary files; what cannot is refused with
    /// [`crate::ErrorKind::OverBudget`].
    pub memory_budget_bytes: usize,
    /// Where the temporary files are; `None` for none.
    pub temporary: Option<TemporaryFiles>,
    /// What the statement is given.
    pub inputs: Inputs,
    /// Whether sorted runs are used. The answer is the same.
    pub indexes: IndexUse,
    /// Ends the query with [`crate::ErrorKind::Cancelled`] soon after it is set.
    pub cancel: Arc<AtomicBool>,
    /// Ends the query with [`crate::ErrorKind::TimedOut`] soon after it has passed.
    pub deadline: Option<Deadline>,
}

/// When a statement has to have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The time by the monotonic clock of [`Options::clock`], in nanoseconds.
    pub at_ns: u64,
    /// How long that was from the beginning, in milliseconds, for messages.
    pub timeout_ms: u64,
}

/// When a query reads the sorted runs of indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexUse {
    /// Where that is thought to take less time.
    #[default]
    WhenCheaper,
    /// Wherever they say anything: to test them.
    Always,
    /// Not at all.
    Never,
}

/// What a statement is given when it runs, apart from its text.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// What `now()` is: microseconds since 1970-01-01 UTC.
    pub now_us: i64,
    /// The values of its parameters, by position.
    pub parameters: Arc<[Value]>,
    /// Where `nextval` gets its values; `None` where an expression is computed once for many rows,
    /// or may be computed again.
    pub sequences: Option<Arc<dyn Sequences>>,
}

/// Gives out the values of named sequences.
pub trait Sequences: std::fmt::Debug + Send + Sync {
    /// The next value of a sequence.
    ///
    /// # Errors
    /// When there is no such sequence, or it has no more values.
    fn next_value(&self, name: &str) -> Result<i64>;
}

impl Options {
    /// Fails once the statement is to end: it was cancelled, or its time is over. For whoever works
    /// on a statement outside of this crate, every some thousand rows.
    ///
    /// # Errors
    /// `Cancelled` or `TimedOut`.
    pub fn expect_time_left(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "the statement was cancelled"));
        }
        match self.deadline {
            Some(Deadline { at_ns, timeout_ms }) if self.clock.monotonic_ns() >= at_ns => {
                let message = format!(
                    "the statement took longer than its timeout of {timeout_ms} ms: try again \
                     with more time"
                );
                Err(Error::new(ErrorKind::TimedOut, message))
            }
            _ => Ok(()),
        }
    }

    /// The same with a time to end, counted from now.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let at_ns = self.clock.monotonic_ns().saturating_add(timeout_ns);
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.deadline = Some(Deadline { at_ns, timeout_ms });
        self
    }

    /// The budget of [`Options::new`]: 1 GiB.
    pub const MEMORY_BUDGET_BYTES: usize = 1 << 30;

    /// The threads and the clock of an environment, with the default budget, now.
    #[must_use]
    pub fn new(environment: &Environment) -> Self {
        Self {
            tasks: Arc::clone(&environment.tasks),
            clock: Arc::clone(&environment.clock),
            memory_budget_bytes: Self::MEMORY_BUDGET_BYTES,
            temporary: None,
            inputs: Inputs { now_us: environment.clock.wall_us(), ..Inputs::default() },
            indexes: IndexUse::default(),
            cancel: Arc::default(),
            deadline: None,
        }
    }
}
