//! What becomes of an event, as far as it is known before its commit.

use super::event_id::EventId;
use crate::{Error, ErrorKind, Result};

/// What becomes of an event.
#[derive(Debug)]
pub(super) enum Fate {
    /// It is stored.
    New,
    /// It is there already.
    Known(EventId),
    /// It is the same event as another one of the request, which is new: the place of that one, and
    /// its time in microseconds since 1970.
    Twin { at: usize, time_us: i64 },
    /// It is refused.
    Refused(Error),
}

impl Fate {
    pub fn is_new(&self) -> bool {
        matches!(self, Self::New)
    }
}

/// A commit has an outcome for each event.
pub(super) fn lost() -> Error {
    Error::corrupt("the outcome of an event was not told")
}

/// So many events, each of which is stored.
pub(super) fn all_new(events: usize) -> Vec<Fate> {
    (0..events).map(|_| Fate::New).collect()
}

/// An event that was stored before.
pub(super) fn duplicate(id: EventId) -> Error {
    Error::new(ErrorKind::Duplicate(id), format!("duplicate: the event is stored already, as {id}"))
}

/// The id of an event that is stored, or was before.
pub(super) fn id_of(outcome: Result<EventId>) -> Result<EventId> {
    outcome.or_else(|e| match e.kind() {
        ErrorKind::Duplicate(id) => Ok(id),
        _ => Err(e),
    })
}

/// The outcome of each event, by the row ids of those that were stored.
pub(super) fn outcomes(
    fates: &[Fate],
    stored: impl IntoIterator<Item = Result<u64>>,
) -> Vec<Result<u64>> {
    let mut stored = stored.into_iter();
    let mut known: Vec<Result<u64>> = Vec::with_capacity(fates.len());
    for fate in fates {
        known.push(match fate {
            Fate::New => stored.next().ok_or_else(lost).flatten(),
            Fate::Known(id) => Err(duplicate(*id)),
            Fate::Refused(e) => Err(e.repeated()),
            // A twin comes behind the event that it is the same as.
            Fate::Twin { at, time_us } => match known.get(*at) {
                Some(Ok(row_id)) => Err(duplicate(EventId::new(*time_us, *row_id))),
                Some(Err(e)) => Err(e.repeated()),
                None => Err(lost()),
            },
        });
    }
    known
}
