//! Commits of the events of a feed.
//!
//! ```text
//! nothing begun ─► event 1 of n ─► … ─► event n of n ─► the commit is told ─► nothing begun
//!       │ event 2 of n, at first: its commit began before this place, and is passed over
//!       └─► else the feed is damaged
//! ```
//!
//! # Invariants
//!
//! 1. A commit is told from its first event (`nth` is 1) to its last (`more` is 0), or not at all.

use esker_format::Value;

use super::cursor::ChangeCursor;
use super::shape::ChangeKind;

/// What became of one row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// What it is.
    pub kind: ChangeKind,
    /// The key, an object of JSON; NULL where all rows went.
    pub key: Value,
    /// The row as it is then, an object; NULL where it is gone.
    pub new: Value,
    /// The row as it was, an object; NULL where there was none, or it is not kept.
    pub old: Value,
}

/// The changes of one commit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CommitChanges {
    /// The place behind it: where another reader goes on.
    pub cursor: ChangeCursor,
    /// When it was made, in microseconds since 1970.
    pub at_us: i64,
    /// What became of rows of the table, in the order in which it was done.
    pub changes: Vec<Change>,
}

/// Puts commits together of events in their order.
#[derive(Debug)]
pub(super) struct Assembly {
    /// The place behind the last commit.
    through: ChangeCursor,
    /// The changes of a commit whose last one was not read yet, and how many follow.
    begun: Vec<Change>,
    more: u64,
    /// It may meet a commit whose first event it has not seen.
    is_first: bool,
}

/// What came of an event.
pub(super) enum Taken {
    /// It is the last one of a commit.
    Whole(CommitChanges),
    /// More of its commit follow, or its commit is passed over.
    Part,
    /// It is none, or not the next one.
    Strange,
}

impl Assembly {
    /// Of the events behind a place.
    pub fn behind(through: ChangeCursor) -> Self {
        Self { through, begun: Vec::new(), more: 0, is_first: true }
    }

    /// The place behind the last commit.
    pub fn through(&self) -> ChangeCursor {
        self.through
    }

    /// Whether events of a commit are known, and not all.
    pub fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// How many events of such a commit follow.
    pub fn more(&self) -> u64 {
        self.more
    }

    /// Takes the next event, by its row id.
    pub fn take(&mut self, event: (u64, &[Value])) -> Taken {
        self.taken(event).unwrap_or(Taken::Strange) // default: the row is no event
    }

    fn taken(&mut self, (row_id, row): (u64, &[Value])) -> Option<Taken> {
        let [Value::Timestamp(at_us), Value::Text(kind), place @ ..] = row else {
            return None;
        };
        let [Value::Uint(nth), Value::Uint(more), key, new, old] = place else { return None };
        let kind: ChangeKind = kind.parse().ok()?;
        let is_next = *nth == self.begun.len() as u64 + 1
            && (self.begun.is_empty() || more.checked_add(1) == Some(self.more));
        if !is_next && !self.is_first {
            return None;
        }
        let through = ChangeCursor { row_id, ..self.through };
        if !is_next {
            if *more == 0 {
                self.through = through;
            }
            return Some(Taken::Part);
        }
        (self.is_first, self.more) = (false, *more);
        let (key, new, old) = (key.clone(), new.clone(), old.clone());
        self.begun.push(Change { kind, key, new, old });
        if *more > 0 {
            return Some(Taken::Part);
        }
        self.through = through;
        let changes = std::mem::take(&mut self.begun);
        Some(Taken::Whole(CommitChanges { cursor: through, at_us: *at_us, changes }))
    }
}

#[cfg(test)]
mod tests;
