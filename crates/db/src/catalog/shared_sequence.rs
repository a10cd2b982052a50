//! A sequence in memory: what of it is given out, and what is free to be.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use esker_format::suggest::near_or_all;
use esker_format::{Field, Schema, Sequence};
use esker_log::sabotage::Bug;
use esker_vfs::sync::{Mutex, MutexGuard};

use crate::commit::journal::Ticket;
use crate::{Error, ErrorKind, Result};

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
    /// A commit is yet to make it: values are given out of memory until then.
    pub pending: Option<Pending>,
}

/// How far the commit is that makes a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    Open,
    /// Its frame says what has been given out, so that nothing more is.
    Closed,
}

impl SharedSequence {
    /// A sequence as the catalogue has it.
    pub fn new(logged: Sequence) -> Arc<Self> {
        let (given, ahead) = (logged.given, AHEAD_FIRST);
        let (ticket, dropped, pending) = (None, false, None);
        let state = State { logged, given, ahead, ticket, dropped, pending };
        Arc::new(Self(Mutex::new(state)))
    }

    /// A sequence that a commit is yet to make.
    pub(super) fn pending(new: Sequence) -> Arc<Self> {
        let shared = Self::new(new);
        shared.state().pending = Some(Pending::Open);
        shared
    }

    /// Whether a commit is yet to make it.
    pub fn is_pending(&self) -> bool {
        self.state().pending.is_some()
    }

    /// As the frame says that makes it: nothing more is given out until it is applied.
    pub(super) fn closed(&self) -> Sequence {
        let mut state = self.state();
        if state.pending.is_some() {
            state.pending = Some(Pending::Closed);
            state.logged.given = state.given;
        }
        state.logged.clone()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // default: a panic leaves what is locked as it was, or whole
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As a frame says of which others gave out the values: all that may be gone are. Under the
    /// commit lock.
    pub(super) fn follow(&self, logged: Sequence) {
        let mut state = self.state();
        state.given = logged.given;
        (state.logged, state.pending) = (logged, None);
    }

    /// As the newest frame says. Under the commit lock.
    pub fn logged(&self) -> Sequence {
        self.state().logged.clone()
    }
}

impl SharedSequence {
    /// The sequence with what it has given out, and nothing more.
    pub fn given(&self) -> Sequence {
        let state = self.state();
        Sequence { given: state.given, ..state.logged.clone() }
    }
}

impl State {
    /// The next value, if it is free, and the frame that freed it.
    pub fn take(&mut self) -> Option<Option<(i64, Option<Ticket>)>> {
        let is_free = self.pending == Some(Pending::Open) || self.given < self.logged.given;
        if !is_free && !Bug::SequenceNotLogged.is_planted() {
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

/// Refuses a sequence that is the default of a field of a table.
pub(crate) fn refuse_default(table: &str, schema: &Schema, sequence: &str) -> Result<()> {
    let is_default = |field: &&Field| field.default_sequence() == Some(sequence);
    match schema.fields().iter().find(is_default) {
        None => Ok(()),
        Some(Field { name, .. }) => Err(Error::invalid(format!(
            "sequence {sequence:?} is the default of field {name:?} of table {table:?}: change \
             that before"
        ))),
    }
}
