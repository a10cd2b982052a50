//! Reading a feed: whole commits in their order, once the disk has them.
//!
//! The cursor of a commit is a number that rises with the commits: the row id of its last event in
//! the feed. A commit that is written by way of files has its number only after its events are
//! written, so that these cannot have it; the order of row ids is that of the commits all the same.
//!
//! # Invariants
//!
//! 1. A commit is told as a whole: its last event says that none follows (`more` is 0).
//! 2. A cursor is told with the commit that it is behind, so that a reader that goes on from it
//!    neither skips nor repeats one.

use std::time::Duration;

use esker_format::Value;

use super::ChangeKind;
use super::shape::name_of;
use crate::stream::{Tail, TailBatch, TailFrom};
use crate::{Database, Error, ErrorKind, Result, Row};

/// Events that are read at once.
const READ_EVENTS: usize = 1_024;

/// Where a reader of changes begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangesFrom {
    /// With what is committed from now on.
    Now,
    /// With the first change that is kept.
    Start,
    /// Behind a commit, by its cursor.
    After(u64),
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
    pub cursor: u64,
    /// When it was made, in microseconds since 1970.
    pub at_us: i64,
    /// What became of rows of the table, in the order in which it was done.
    pub changes: Vec<Change>,
}

/// Reads the changes of a table: see [`Database::changes`].
#[derive(Debug)]
pub struct ChangeReader {
    table: String,
    tail: Tail,
    /// The changes of a commit whose last one was not read yet.
    begun: Vec<Change>,
    cursor: u64,
    /// A gap is no error: it begins with what is there.
    is_at_start: bool,
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
    /// cursor that no commit has had.
    pub fn changes(&self, table: &str, from: ChangesFrom) -> Result<ChangeReader> {
        if self.table(table)?.schema().kept_changes().is_none() {
            let message = "keeps no changes: ALTER TABLE … SET (changes = '1 day') begins that";
            return Err(Error::invalid(format!("table {table:?} {message}")));
        }
        let from = match from {
            ChangesFrom::Now => TailFrom::Now,
            ChangesFrom::Start => TailFrom::Start,
            ChangesFrom::After(cursor) => TailFrom::After(cursor),
        };
        let tail = self.stream(&name_of(table))?.tail(from, None)?;
        let (table, cursor) = (table.to_owned(), tail.position());
        let is_at_start = from == TailFrom::Start;
        Ok(ChangeReader { table, tail, begun: Vec::new(), cursor, is_at_start })
    }
}

impl ChangeReader {
    /// All commits up to this place were told: another reader goes on behind it. Rows that are
    /// read once it is known have all the changes up to it, and may have later ones, which are
    /// told, too.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The next commits, about so many, as soon as there is one; none when none came in this time.
    ///
    /// # Errors
    /// `SnapshotGone` when changes behind the cursor are kept no longer: the message has the cursor
    /// to begin behind, once the rows were read anew. Else as for
    /// [`Tail::next_batch`](crate::Tail::next_batch). The reader stays where it was.
    pub fn next_commits(&mut self, limit: usize, wait: Duration) -> Result<Vec<CommitChanges>> {
        if limit == 0 {
            return Err(Error::invalid("limit: expected at least 1, found 0"));
        }
        let mut commits = Vec::new();
        let mut wait = wait;
        while commits.len() < limit {
            let events = match self.tail.next_batch(READ_EVENTS, wait)? {
                TailBatch::Gap { .. } if self.is_at_start => continue,
                TailBatch::Gap { to, .. } => return Err(self.gone(to)),
                TailBatch::Events(events) => events,
            };
            if events.is_empty() {
                break;
            }
            for (id, row) in events {
                self.take((id.row_id(), &row), &mut commits)?;
            }
            self.is_at_start = false;
            if !commits.is_empty() {
                // What is left of a commit is there, too.
                wait = Duration::ZERO;
            }
            if self.begun.is_empty() && self.tail.is_at_end() {
                break;
            }
        }
        Ok(commits)
    }

    fn take(&mut self, (row_id, row): (u64, &Row), commits: &mut Vec<CommitChanges>) -> Result<()> {
        let strange = || Error::corrupt(format!("feed of {:?}: event {row_id}", self.table));
        let [Value::Timestamp(at_us), Value::Text(kind), Value::Uint(more), key, new, old] =
            row.values()
        else {
            return Err(strange());
        };
        let kind = kind.parse().map_err(|_| strange())?;
        let (key, new, old) = (key.clone(), new.clone(), old.clone());
        self.begun.push(Change { kind, key, new, old });
        if *more == 0 {
            self.cursor = row_id;
            let changes = std::mem::take(&mut self.begun);
            commits.push(CommitChanges { cursor: row_id, at_us: *at_us, changes });
        }
        Ok(())
    }

    fn gone(&self, to: u64) -> Error {
        let Self { table, cursor, .. } = self;
        let message = format!(
            "changes of table {table:?} behind {cursor} are kept no longer: read its rows anew, \
             and go on behind {to}"
        );
        Error::new(ErrorKind::SnapshotGone, message)
    }
}
