//! A sequence that every client takes values from. None may ever come twice.

use esker::{Database, ErrorKind};

use super::Life;
use super::client::Client;
use super::world::{Begun, Inner, World};

/// Its name. It starts at 1 and rises by 1.
const NAME: &str = "tickets";

/// The most values that a client takes at a time: some more than a frame makes free at first.
const VALUES_MAX: usize = 24;

/// A value that was given out does not come again.
///
/// # Errors
/// When the next value is not greater than all before.
pub fn compare(db: &Database, given: i64) -> Result<(), String> {
    let sequences = db.sequences();
    let next = sequences.iter().find(|sequence| sequence.name == NAME).map(|s| s.next);
    match next {
        None if given == 0 => Ok(()),
        Some(Some(next)) if next > given => Ok(()),
        next => Err(format!("the next value of the sequence is {next:?}, {given} was given out")),
    }
}

impl Life {
    /// The greatest value of the sequence that had been given out after so many I/Os.
    #[must_use]
    pub fn given(&self, ios: u64) -> i64 {
        let until = self.given.iter().filter(|(io, _)| *io <= ios).map(|(_, value)| *value);
        until.fold(self.given_before, i64::max)
    }
}

impl Inner {
    /// The greatest value that was given out.
    pub(super) fn greatest_value(&self) -> i64 {
        self.given.iter().map(|(_, value)| *value).fold(self.given_before, i64::max)
    }
}

impl World {
    fn gave(&self, value: i64) {
        let io = self.machine.io_count();
        let mut inner = self.lock();
        let is_known = inner.given.iter().any(|(_, known)| *known == value);
        if is_known || value <= inner.given_before {
            inner.problem.get_or_insert(format!("{value} of the sequence was given out twice"));
        }
        inner.given.push((io, value));
    }

    /// Whether to go on after an answer.
    fn goes_on<T>(&self, answer: esker::Result<T>, fine: ErrorKind) -> Option<T> {
        let e = match answer {
            Ok(value) => return Some(value),
            Err(e) => e,
        };
        let mut inner = self.lock();
        inner.over |= matches!(e.kind(), ErrorKind::Poisoned | ErrorKind::OutcomeUnknown);
        let is_fault = super::check_fault(&e).is_ok() && inner.history.is_faulty();
        if e.kind() != fine && !is_fault {
            inner.problem.get_or_insert(format!("the sequence: {:?}: {e}", e.kind()));
        }
        None
    }
}

impl Client {
    /// Takes some values, of a sequence that is made before the first.
    pub(super) fn take_values(&mut self) {
        let count = 1 + self.generator.index(VALUES_MAX);
        let Some(Begun { db, .. }) = self.world.begin(None, None) else { return };
        if db.sequences().iter().all(|sequence| sequence.name != NAME) {
            let made = db.create_sequence(NAME, 1, 1);
            self.world.note(|| format!("create the sequence: {made:?}"));
            _ = self.world.goes_on(made, ErrorKind::AlreadyExists);
        }
        for _ in 0..count {
            let value = db.next_value(NAME);
            self.world.note(|| format!("the next value of the sequence: {value:?}"));
            let Some(value) = self.world.goes_on(value, ErrorKind::NotFound) else { return };
            self.world.gave(value);
        }
    }
}
