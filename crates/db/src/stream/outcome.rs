//! A thread that waits for what becomes of its events.

use std::sync::{Arc, PoisonError};

use esker_vfs::sync::{Mutex, MutexGuard};
use esker_vfs::{Environment, Event};

use crate::commit::gathered_events::Appended;
use crate::{Error, ErrorKind, Result};

/// What is known so far.
enum State {
    Waiting,
    Told(Appended),
    /// The outcome was dropped: it stays unknown.
    Lost,
}

struct Slot {
    environment: Environment,
    state: Mutex<State>,
    changed: Event,
}

/// Tells what became of events, or, when it is dropped, that this is not known.
pub(super) struct Outcome(Arc<Slot>);

/// Waits for it.
pub(super) struct Told(Arc<Slot>);

/// Both ends.
pub(super) fn awaited(environment: &Environment) -> (Outcome, Told) {
    let (environment, state) = (environment.clone(), Mutex::new(State::Waiting));
    let slot = Arc::new(Slot { environment, state, changed: Event::new() });
    (Outcome(Arc::clone(&slot)), Told(slot))
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        // default: nothing panics while it changes
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        *self.state() = state;
        self.environment.tasks.signal(&self.changed, usize::MAX);
    }
}

impl Outcome {
    pub fn tell(self, appended: Appended) {
        self.0.set(State::Told(appended));
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        if matches!(*self.0.state(), State::Waiting) {
            self.0.set(State::Lost);
        }
    }
}

impl Told {
    /// # Errors
    /// `OutcomeUnknown` when the other end was dropped.
    pub fn wait(self) -> Result<Appended> {
        loop {
            let seen = self.0.changed.generation();
            match std::mem::replace(&mut *self.0.state(), State::Waiting) {
                State::Told(appended) => return Ok(appended),
                State::Lost => {
                    let message = "whether the events are stored is unknown: their commit was \
                                   given up";
                    return Err(Error::new(ErrorKind::OutcomeUnknown, message));
                }
                State::Waiting => {}
            }
            self.0.environment.tasks.wait(&self.0.changed, seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_that_is_dropped_ends_the_wait() {
        let (outcome, told) = awaited(&Environment::os());
        drop(outcome);
        assert_eq!(told.wait().unwrap_err().kind(), ErrorKind::OutcomeUnknown);
        let (outcome, told) = awaited(&Environment::os());
        outcome.tell(Appended { outcomes: Vec::new(), commit: Some(7), newest: 7 });
        assert_eq!(told.wait().unwrap().commit, Some(7));
    }
}
