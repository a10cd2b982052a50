//! Looking for a client's next request for a moment, before waiting for it.
//!
//! A client that asks one thing after another has its next request ready some microseconds after an
//! answer. A thread that sleeps meanwhile takes longer to wake up than the request to be answered.
//! So a connection whose client is prompt looks for some microseconds whether more has come; other
//! connections of the thread have their turns between the looks. One connection does so at a time:
//! where several are busy there is no sleep to be saved, and looking would take time from work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a connection looks for more at the most.
pub(crate) const LINGER: Duration = Duration::from_micros(50);
/// A client whose next request came within this time is prompt; waking up is part of it.
pub(crate) const PROMPT: Duration = Duration::from_micros(100);

/// Who looks for more, if anybody does.
#[derive(Debug, Default)]
pub(crate) struct Lingering {
    is_taken: AtomicBool,
}

/// The right to look, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'l>(&'l Lingering);

impl Lingering {
    /// The right to look, unless another connection has it.
    pub fn turn(&self) -> Option<Turn<'_>> {
        let is_free = !self.is_taken.swap(true, Ordering::Relaxed);
        is_free.then(|| Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.is_taken.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_connection_lingers_at_a_time() {
        let lingering = Lingering::default();
        let turn = lingering.turn();
        assert!(turn.is_some() && lingering.turn().is_none());
        drop(turn);
        assert!(lingering.turn().is_some());
    }
}
