//! What becomes of the events of a request, whatever protocol they came by.

use std::fmt;

use esker::{ErrorKind, EventId, Stream};

use crate::error::code_of;
use crate::{Code, Error, Result};

/// The most events whose outcomes are told one by one, and of a request that is one commit.
pub(super) const RESULTS_MAX: usize = 10_000;
/// Bytes of events that may wait for their commit, in all requests of a stream.
pub(super) const WAITING_BYTES_MAX: u64 = 16 << 20;

/// Where an event stands in its request, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// In a list.
    Item(u64),
    Line(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(at) => write!(f, "event {at}"),
            Self::Line(at) => write!(f, "line {at}"),
        }
    }
}

/// What became of events before their commit, with their places: their times.
pub(super) type Prepared = Vec<(Place, Result<i64>)>;

/// The events that are there, or why they are not, with their places.
pub(super) type Outcomes = Vec<(Place, Result<StoredEvent>)>;

/// An event that is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredEvent {
    pub id: EventId,
    /// It was stored before, by the `dedupe` of its stream.
    pub is_duplicate: bool,
}

impl StoredEvent {
    /// One that was stored, or was there, by its outcome.
    pub fn of(outcome: esker::Result<EventId>) -> esker::Result<Self> {
        match outcome {
            Ok(id) => Ok(Self { id, is_duplicate: false }),
            Err(e) => match e.kind() {
                ErrorKind::Duplicate(id) => Ok(Self { id, is_duplicate: true }),
                _ => Err(e),
            },
        }
    }
}

/// What became of a row of an event.
pub(super) enum Stored {
    /// It was stored with a row id.
    New(u64),
    /// The event was there.
    Before(EventId),
}

/// What became of a row, by its outcome; `of_error` says what else it has met.
pub(super) fn stored(
    outcome: &esker::Result<u64>,
    of_error: impl Fn(&esker::Error) -> Error,
) -> Result<Stored> {
    match outcome {
        Ok(row_id) => Ok(Stored::New(*row_id)),
        Err(e) => match e.kind() {
            ErrorKind::Duplicate(id) => Ok(Stored::Before(id)),
            _ => Err(of_error(e)),
        },
    }
}

/// What became of events, by what became of the rows of those that were not refused before.
pub(super) fn outcomes_of(
    prepared: &Prepared,
    rows: impl IntoIterator<Item = Result<Stored>>,
) -> Outcomes {
    let mut rows = rows.into_iter();
    let lost = || Error::new(Code::Internal, "the outcome of an event was not told");
    let mut outcome = |time: &Result<i64>| {
        let time_us = time.clone()?;
        Ok(match rows.next().ok_or_else(lost)?? {
            Stored::New(row_id) => {
                StoredEvent { id: EventId::new(time_us, row_id), is_duplicate: false }
            }
            Stored::Before(id) => StoredEvent { id, is_duplicate: true },
        })
    };
    prepared.iter().map(|(place, time)| (*place, outcome(time))).collect()
}

/// The times of events as a producer takes them.
pub(super) fn times_of(prepared: &Prepared) -> Vec<esker::Result<i64>> {
    let time = |(_, time): &(Place, Result<i64>)| match time {
        Ok(time_us) => Ok(*time_us),
        Err(e) => Err(esker::Error::new(kind_of(e.code()), e.message())),
    };
    prepared.iter().map(time).collect()
}

/// The kind of an error of an event.
fn kind_of(code: Code) -> ErrorKind {
    match code {
        Code::ConstraintViolated => ErrorKind::ConstraintViolated,
        _ => ErrorKind::InvalidInput,
    }
}

/// Whether an error is one of the stream, or of the server, and not of an event: the next events
/// would meet it, too.
pub(super) fn ends(code: Code) -> bool {
    !matches!(code, Code::InvalidRequest | Code::ConstraintViolated | Code::Conflict)
}

/// Memory that a commit waits for is the server's.
pub(super) fn of_commit(e: &esker::Error) -> Error {
    match e.kind() {
        ErrorKind::OverBudget => Error::new(Code::Unavailable, e.to_string()),
        kind => Error::new(code_of(kind), e.to_string()),
    }
}

/// How many events were stored, and how many refused.
pub(super) fn counts(outcomes: &Outcomes) -> (u64, u64) {
    let is_new = |stored: &StoredEvent| !stored.is_duplicate;
    let stored = outcomes.iter().filter(|(_, outcome)| outcome.as_ref().is_ok_and(is_new));
    let refused = outcomes.iter().filter(|(_, outcome)| outcome.is_err());
    (stored.count() as u64, refused.count() as u64)
}

/// The error that all events have met, where it is one of the stream or of the server.
pub(super) fn of_all(outcomes: &Outcomes) -> Option<Error> {
    let has_none = outcomes.iter().all(|(_, outcome)| outcome.is_err());
    let mut errors = outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().err());
    errors.find(|e| has_none && ends(e.code())).cloned()
}

/// Refuses events that would only wait in memory; with the bytes that wait, and those that were
/// taken before.
pub(super) fn expect_few_waiting(stream: &Stream) -> std::result::Result<(), (Error, u64, u64)> {
    let (waiting, stored) = stream.backlog();
    if waiting <= WAITING_BYTES_MAX {
        return Ok(());
    }
    let message = format!("{waiting} bytes of events wait to be stored: wait and retry");
    Err((Error::new(Code::Unavailable, message), waiting, stored))
}

/// The longest name of a producer, in bytes.
pub(super) const PRODUCER_BYTES_MAX: usize = 128;

/// The name of a producer among those of all tokens: no client meets the producers of another one.
pub(super) fn producer_name(token: &str, name: &str) -> Result<String> {
    if !(1..=PRODUCER_BYTES_MAX).contains(&name.len()) {
        let found = name.len();
        let message = format!("producer: expected a name of 1 to 128 bytes, found {found}");
        return Err(Error::invalid(message));
    }
    Ok(format!("{token}\0{name}"))
}

/// Rows whose commit was given up.
pub(super) fn given_up() -> Error {
    let message = "whether the rows are stored is unknown: their commit was given up";
    Error::new(Code::OutcomeUnknown, message)
}

/// Another request of the producer or key came first, too often.
pub(super) fn too_late() -> Error {
    Error::new(Code::Conflict, "other requests of the same producer or key came first")
}
