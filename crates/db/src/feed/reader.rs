//! Reading a feed: whole commits in their order, once the disk has them.
//!
//! A commit is known by the place of its last event in the feed, not by its number: one that is
//! written by way of files has its number only after its events are written. The order is the same.
//!
//! ```text
//! begun nothing ─► event 1 of n ─► … ─► event n of n ─► the commit is told ─► begun nothing
//!       │ event 2 of n: its commit began before this place, and is passed over
//!       └─► changes are gone, or the feed is damaged: so it stays
//! ```
//!
//! # Invariants
//!
//! 1. A commit is told as a whole: from its first event (`nth` is 1) to its last (`more` is 0).
//! 2. A cursor is told with the commit that it is behind, so that a reader that goes on from it
//!    neither skips nor repeats one.
//! 3. A reader that has told a commit tells the next one, or an error: that it has ended is not
//!    forgotten by another call.

use std::fmt;
use std::time::Duration;

use esker_format::{TableId, Value};

use super::{ChangeCursor, ChangeKind};
use crate::stream::{Stream, Tail, TailBatch, TailFrom};
use crate::{Database, Error, ErrorKind, Result, Row};

/// Events that are read at once.
const READ_EVENTS: usize = 1_024;

/// Where a reader of changes begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangesFrom {
    /// With what is committed from now on. All that was committed before is durable then.
    Now,
    /// With the first change that is kept.
    Start,
    /// Behind a commit.
    After(ChangeCursor),
}

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

/// Reads the changes of a table: see [`Database::changes`].
#[derive(Debug)]
pub struct ChangeReader {
    table: String,
    feed: TableId,
    events: Events,
    /// The changes of a commit whose last one was not read yet, and how many follow.
    begun: Vec<Change>,
    more: u64,
    /// The row id of the last event of the commit that was told last.
    through: u64,
    /// It may meet a commit whose first event it has not seen.
    is_first: bool,
    ended: Option<Ended>,
}

/// The events of a feed from some place on.
struct Events {
    stream: Stream,
    tail: Tail,
    /// A gap is no error: nothing was told, and it begins with what is there.
    may_have_gap: bool,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tail.fmt(f)
    }
}

/// Why a reader tells no more.
#[derive(Clone, Copy, Debug)]
enum Ended {
    /// Changes up to this row id are kept no longer.
    Gone(u64),
    /// The event with this row id is none, or not the next one.
    Strange(u64),
}

impl Database {
    /// The changes of a table that keeps them (`WITH (changes = '1 day')`), from some place on:
    /// whole commits, in their order, each once, as soon as the disk has them.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use esker::{ChangedRows, Changes, ChangesFrom, DataType, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let kept = Changes::Kept { keep_us: 86_400_000_000, rows: ChangedRows::Key };
    /// let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]);
    /// let numbers = db.create_table("numbers", schema.changes(kept).build()?)?;
    /// numbers.insert_many(&[vec![1i64.into()], vec![2i64.into()]])?;
    /// let mut changes = db.changes("numbers", ChangesFrom::Start)?;
    /// let commits = changes.next_commits(10, Duration::ZERO)?;
    /// assert_eq!((commits.len(), commits[0].changes.len()), (1, 2));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for an unknown table; `InvalidInput` for one that keeps no changes, and for a
    /// cursor that no commit has had; `SnapshotGone` for a cursor of an earlier feed: the message
    /// has the one to begin behind, once the rows were read anew.
    pub fn changes(&self, table: &str, from: ChangesFrom) -> Result<ChangeReader> {
        let (feed, stream) = self.feed(table)?;
        let first = match from {
            // What is left before the last change that is gone is not whole.
            ChangesFrom::Start => TailFrom::After(stream.ended_through()),
            ChangesFrom::After(cursor) if cursor.feed == feed => TailFrom::After(cursor.row_id),
            ChangesFrom::Now | ChangesFrom::After(_) => TailFrom::Now,
        };
        let tail = stream.tail(first, None)?;
        if first == TailFrom::Now {
            // No crash takes back what the cursor is behind.
            self.engine().sync()?;
        }
        let through = tail.position();
        if let ChangesFrom::After(cursor) = from
            && cursor.feed != feed
        {
            return Err(gone(table, cursor, ChangeCursor { feed, row_id: through }));
        }
        let (begun, table) = (Vec::new(), table.to_owned());
        let may_have_gap = from == ChangesFrom::Start;
        let (more, is_first, ended) = (0, true, None);
        let events = Events { stream, tail, may_have_gap };
        Ok(ChangeReader { table, feed, events, begun, more, through, is_first, ended })
    }

    /// The feed of a table that keeps its changes.
    fn feed(&self, table: &str) -> Result<(TableId, Stream)> {
        let Some(feed) = self.table(table)?.schema().feed() else {
            let message = "keeps no changes: ALTER TABLE … SET (changes = '1 day') begins that";
            return Err(Error::invalid(format!("table {table:?} {message}")));
        };
        let core = self.engine().lock().entry(feed)?.writer.table().clone();
        Ok((feed, self.stream_of(core)))
    }
}

impl ChangeReader {
    /// All commits up to this place were told: another reader goes on behind it. Rows that are
    /// read once it is known have all the changes up to it, and may have later ones, which are
    /// told, too.
    #[must_use]
    pub fn cursor(&self) -> ChangeCursor {
        self.place(self.through)
    }

    /// Whether [`ChangeReader::next_commits`] may have something to tell; false is sure, and costs
    /// little.
    #[must_use]
    pub fn may_have_more(&self) -> bool {
        self.ended.is_some() || !self.begun.is_empty() || self.events.tail.may_have_more()
    }

    /// The next commits, at most so many, as soon as there is one; none when none came in this
    /// time.
    ///
    /// # Errors
    /// `SnapshotGone` when changes behind the cursor are kept no longer: the message has the cursor
    /// to begin behind, once the rows were read anew; every further call says the same. Else as for
    /// [`Tail::next_batch`](crate::Tail::next_batch). What was read before an error is returned
    /// first, and the error by the next call.
    pub fn next_commits(&mut self, limit: usize, wait: Duration) -> Result<Vec<CommitChanges>> {
        if limit == 0 {
            return Err(Error::invalid("limit: expected at least 1, found 0"));
        }
        let mut commits = Vec::new();
        while commits.len() < limit {
            // What is left of a commit is there, too.
            let may_wait = commits.is_empty() && self.begun.is_empty();
            let wait = if may_wait { wait } else { Duration::ZERO };
            match self.read(limit - commits.len(), wait, &mut commits) {
                Ok(true) => {}
                Ok(false) => break,
                // The next call meets it again.
                Err(_) if !commits.is_empty() => break,
                Err(e) => return Err(e),
            }
        }
        Ok(commits)
    }

    /// Reads some events, of which as many commits come at the most; false when there are none.
    fn read(
        &mut self,
        limit: usize,
        wait: Duration,
        commits: &mut Vec<CommitChanges>,
    ) -> Result<bool> {
        if let Some(ended) = self.ended {
            return Err(self.error(ended));
        }
        let rest = usize::try_from(self.more).unwrap_or(READ_EVENTS); // default: more than are read
        let most = limit.saturating_add(rest).min(READ_EVENTS);
        let events = match self.events.tail.next_batch(most, wait)? {
            TailBatch::Events(events) => events,
            TailBatch::Gap { to, .. } if self.events.may_have_gap => {
                self.events.tail = self.events.stream.tail(TailFrom::After(to), None)?;
                self.begun.clear();
                (self.more, self.is_first, self.through) = (0, true, to);
                return Ok(true);
            }
            TailBatch::Gap { to, .. } => return Err(self.end(Ended::Gone(to))),
        };
        let count = events.len();
        for (id, row) in events {
            if self.take((id.row_id(), &row), commits).is_none() {
                return Err(self.end(Ended::Strange(id.row_id())));
            }
        }
        let is_done = self.begun.is_empty() && self.events.tail.is_at_end() && !commits.is_empty();
        Ok(count > 0 && !is_done)
    }

    /// Takes an event; `None` for one that is not the next one.
    fn take(&mut self, event: (u64, &Row), commits: &mut Vec<CommitChanges>) -> Option<()> {
        let (row_id, row) = event;
        let [Value::Timestamp(at_us), Value::Text(kind), place @ ..] = row.values() else {
            return None;
        };
        let [Value::Uint(nth), Value::Uint(more), key, new, old] = place else { return None };
        let kind = kind.parse().ok()?;
        if *nth != self.begun.len() as u64 + 1 || (*nth > 1 && *more + 1 != self.more) {
            // A part of a commit whose first events are gone, or before the place.
            if *more == 0 && self.is_first {
                self.through = row_id;
            }
            return self.is_first.then_some(());
        }
        self.is_first = false;
        self.more = *more;
        let (key, new, old) = (key.clone(), new.clone(), old.clone());
        self.begun.push(Change { kind, key, new, old });
        if *more == 0 {
            (self.through, self.events.may_have_gap) = (row_id, false);
            let changes = std::mem::take(&mut self.begun);
            commits.push(CommitChanges { cursor: self.cursor(), at_us: *at_us, changes });
        }
        Some(())
    }

    fn end(&mut self, ended: Ended) -> Error {
        self.ended = Some(ended);
        self.begun = Vec::new();
        self.error(ended)
    }

    fn error(&self, ended: Ended) -> Error {
        match ended {
            Ended::Gone(to) => gone(&self.table, self.cursor(), self.place(to)),
            Ended::Strange(row_id) => {
                let message = "is not the next one of its commit";
                Error::corrupt(format!("feed of {:?}: event {row_id} {message}", self.table))
            }
        }
    }

    fn place(&self, row_id: u64) -> ChangeCursor {
        ChangeCursor { feed: self.feed, row_id }
    }
}

fn gone(table: &str, cursor: ChangeCursor, to: ChangeCursor) -> Error {
    let message = format!(
        "changes of table {table:?} behind {cursor} are kept no longer: read its rows anew, and go \
         on behind {to}"
    );
    Error::new(ErrorKind::SnapshotGone, message)
}

#[cfg(test)]
mod tests;
