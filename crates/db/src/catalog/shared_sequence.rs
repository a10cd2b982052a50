//! A sequence in memory: what of it is given out, and what is free to be.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use esker_format::Sequence;
use esker_format::suggest::near_or_all;
use esker_log::sabotage::Bug;
use esker_vfs::sync::{Mutex, MutexGuard};

use crate::commit::journal::Ticket;
use crate::{Error, ErrorKind};

/// Values that are made free at once, at first and at most.
const AHEAD_FIRST: u64 = 32;
pub(super) const AHEAD_MOST: u64 = 4_096;

/// The sequences there are, by name.
pub(crate) type Sequences = BTreeMap<String, Arc<SharedSequence>>;

/// A sequence that everybody takes values from.
#[derive(Debug)]
pub(crate) struct SharedSequence(Mutex<State>);

#[derive(Debug)]
pub(super) struct State {
    /// As the newest frame says: only with the commit lock is it changed.
    pub logged: Sequence,
    /// How many values are gone.
    pub given: u64,
    /// How many values the next frame frees beyond what is needed.
    pub ahead: u64,
    /// The newest frame, where this process wrote it.
    pub ticket: Option<Ticket>,
    pub dropped: bool,
}

impl SharedSequence {
    /// A sequence as the catalogue has it.
    pub fn new(logged: Sequence) -> Arc<Self> {
        let (given, ahead) = (logged.given, AHEAD_FIRST);
        Arc::new(Self(Mutex::new(State { logged, given, ahead, ticket: None, dropped: false })))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // default: a panic leaves what is locked as it was, or whole
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As a frame says of which others gave out the values: all that may be gone are. Under the
    /// commit lock.
    pub(super) fn follow(&self, logged: Sequence) {
        let mut state = self.state();
        (state.logged, state.given) = (logged, logged.given);
    }

    /// As the newest frame says. Under the commit lock.
    pub fn logged(&self) -> Sequence {
        self.state().logged
    }
}

impl SharedSequence {
    /// The sequence with what it has given out, and nothing more.
    pub fn given(&self) -> Sequence {
        let state = self.state();
        Sequence { given: state.given, ..state.logged }
    }
}

impl State {
    /// The next value, if it is free, and the frame that freed it.
    pub fn take(&mut self) -> Option<Option<(i64, Option<Ticket>)>> {
        if self.given >= self.logged.given && !Bug::SequenceNotLogged.is_planted() {
            return None;
        }
        let value = self.logged.value(self.given);
        self.given += u64::from(value.is_some());
        Some(value.map(|value| (value, self.ticket)))
    }
}

pub(super) fn no_sequence(name: &str, sequences: &Sequences) -> Error {
    let known = near_or_all(name, "sequences", sequences.keys().map(String::as_str));
    Error::new(ErrorKind::NotFound, format!("no sequence {name:?}{known}"))
}
