//! What a statement may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker_vfs::{Clock, Random};

use crate::{Budget, Error, ErrorKind, Result};

/// What a statement may take: memory, and time. Clones share both.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Counts what is held at once: groups, sort keys, results, and what expressions make. Groups,
    /// sort keys and sides of joins that need more lie in temporary files; what cannot is refused
    /// with [`crate::ErrorKind::OverBudget`].
    pub memory: Arc<Budget>,
    /// Ends the statement with [`crate::ErrorKind::Cancelled`] soon after it is set.
    pub cancel: Arc<AtomicBool>,
    /// The same for the one that takes the answer: it wants no more of it.
    pub left: Arc<AtomicBool>,
    /// Ends the statement with [`crate::ErrorKind::TimedOut`] soon after it has passed.
    pub deadline: Option<Deadline>,
    /// Where `random()` gets its numbers; `None` where a constant is expected.
    pub random: Option<Arc<dyn Random>>,
    /// What `clock_timestamp()` reads; `None` where a constant is expected.
    pub clock: Option<Arc<dyn Clock>>,
}

/// When a statement has to have ended.
#[derive(Clone, Debug)]
pub struct Deadline {
    clock: Arc<dyn Clock>,
    at_ns: u64,
    timeout_ms: u64,
}

impl Deadline {
    /// So long from now.
    #[must_use]
    pub fn new(clock: &Arc<dyn Clock>, timeout: Duration) -> Self {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let at_ns = clock.monotonic_ns().saturating_add(timeout_ns);
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        Self { clock: Arc::clone(clock), at_ns, timeout_ms }
    }
}

impl Limits {
    /// Fails once the statement is to end: it was cancelled, or its time is over.
    ///
    /// # Errors
    /// `Cancelled` or `TimedOut`.
    pub fn expect_time_left(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) || self.left.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "the statement was cancelled"));
        }
        match &self.deadline {
            Some(Deadline { clock, at_ns, timeout_ms }) if clock.monotonic_ns() >= *at_ns => {
                let message = format!(
                    "the statement took longer than its timeout of {timeout_ms} ms: try again \
                     with more time"
                );
                Err(Error::new(ErrorKind::TimedOut, message))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::Limits;
    use crate::ErrorKind;

    #[test]
    fn a_statement_ends_when_the_one_that_takes_its_answer_has_left() {
        let limits = Limits::default();
        assert!(limits.expect_time_left().is_ok());
        limits.left.store(true, Ordering::Relaxed);
        assert_eq!(limits.clone().expect_time_left().unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
