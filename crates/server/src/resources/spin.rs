//! Looking for a client's next request for a moment, before waiting for it.
//!
//! A client that asks one thing after another has its next request ready some microseconds after an
//! answer. A thread that sleeps meanwhile takes longer to wake up than the request to be answered.
//! So a connection whose client is prompt looks for some microseconds whether more has come; other
//! connections of the thread have their turns between the looks. Only the connection that also was
//! the last to want to does so: where several are busy there is no sleep to be saved, and looking
//! would take time from work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long a connection looks for more at the most.
pub(crate) const SPIN: Duration = Duration::from_micros(50);
/// A client whose next request came within this time is prompt; waking up is part of it.
pub(crate) const PROMPT: Duration = Duration::from_micros(100);

/// Who looks for more, if anybody does.
#[derive(Debug, Default)]
pub(crate) struct Spin {
    is_taken: AtomicBool,
    connections: AtomicU64,
    /// The connection that was the last to want to look.
    last: AtomicU64,
}

/// The right to look, until it is dropped.
#[derive(Debug)]
pub(crate) struct SpinPermit<'l>(&'l Spin);

impl Spin {
    /// A number for a connection.
    pub fn number(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The right to look, unless another connection has it, or has wanted it since this one did.
    pub fn turn(&self, connection: u64) -> Option<SpinPermit<'_>> {
        let is_alone = self.last.swap(connection, Ordering::Relaxed) == connection;
        let is_free = is_alone && !self.is_taken.swap(true, Ordering::Relaxed);
        is_free.then(|| SpinPermit(self))
    }
}

impl Drop for SpinPermit<'_> {
    fn drop(&mut self) {
        self.0.is_taken.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_lingers_while_no_other_wants_to() {
        let spin = Spin::default();
        let (one, other) = (spin.number(), spin.number());
        assert!(spin.turn(one).is_none());
        let turn = spin.turn(one);
        assert!(turn.is_some() && spin.turn(one).is_none());
        drop(turn);
        for _ in 0..3 {
            assert!(spin.turn(other).is_none() && spin.turn(one).is_none());
        }
        assert!(spin.turn(one).is_some());
    }
}
