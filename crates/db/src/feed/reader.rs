//! Reading a feed: whole commits in their order, once the disk has them.
//!
//! A commit is known by the place of its last event in the feed, not by its number: one that is
//! written by way of files has its number only after its events are written. The order is the same.
//!
//! # Invariants
//!
//! 1. A commit is told as a whole: see [`assembly`](super::assembly).
//! 2. A cursor is told with the commit that it is behind, so that a reader that goes on from it
//!    neither skips nor repeats one.
//! 3. A reader that has told a commit tells the next one, or an error: that it has ended is not
//!    forgotten by another call.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use esker_format::TableId;

use super::assembly::{Assembly, CommitChanges, Taken};
use super::cursor::ChangeCursor;
use super::place::{gone, newest_place, no_changes, strange};
use crate::stream::{Stream, Tail, TailBatch, TailFrom};
use crate::{Database, Error, Result};

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

impl FromStr for ChangesFrom {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.eq_ignore_ascii_case("now") {
            return Ok(Self::Now);
        }
        if text.eq_ignore_ascii_case("start") {
            return Ok(Self::Start);
        }
        let unread = |_| {
            let expected = "expected now, start, or the cursor of a commit, such as 12.345";
            Error::invalid(format!("{expected}, found {text:?}"))
        };
        text.parse().map(Self::After).map_err(unread)
    }
}

/// Reads the changes of a table: see [`Database::changes`].
#[derive(Debug)]
pub struct ChangeReader {
    table: String,
    events: Events,
    assembly: Assembly,
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
    /// Changes are kept no longer: the place to begin at.
    Gone(ChangeCursor),
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
    /// cursor that no commit has had; `SnapshotGone` for a cursor of an earlier feed, and for one
    /// behind which changes are kept no longer: the message has the one to begin behind, once the
    /// rows were read anew.
    pub fn changes(&self, table: &str, from: ChangesFrom) -> Result<ChangeReader> {
        let (feed, stream) = self.feed(table)?;
        let ended = stream.ended_through();
        let row_id = match from {
            // No crash takes back what the cursor is behind.
            ChangesFrom::Now => newest_place(self.engine(), feed)?.row_id,
            // What is left before the last change that is gone is not whole.
            ChangesFrom::Start => ended,
            ChangesFrom::After(cursor) if cursor.feed == feed && cursor.row_id >= ended => {
                cursor.row_id
            }
            ChangesFrom::After(cursor) => {
                return Err(gone(table, cursor, newest_place(self.engine(), feed)?));
            }
        };
        let tail = stream.tail(TailFrom::After(row_id), None)?;
        let place = ChangeCursor { feed, row_id };
        let events = Events { stream, tail, may_have_gap: from == ChangesFrom::Start };
        let assembly = Assembly::behind(place);
        Ok(ChangeReader { table: table.to_owned(), events, assembly, ended: None })
    }

    /// The feed of a table that keeps its changes.
    fn feed(&self, table: &str) -> Result<(TableId, Stream)> {
        let feed = self.table(table)?.schema().feed().ok_or_else(|| no_changes(table))?;
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
        self.assembly.through()
    }

    /// Whether [`ChangeReader::next_commits`] may have something to tell; false is sure, and costs
    /// little.
    #[must_use]
    pub fn may_have_more(&self) -> bool {
        self.ended.is_some() || self.assembly.has_begun() || self.events.tail.may_have_more()
    }

    /// Whether the last call has found the end: nothing more could be told then.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.ended.is_none() && self.events.tail.is_at_end()
    }

    /// The stream that the feed is: it tells, by
    /// [`Stream::on_commits`](crate::Stream::on_commits), when there may be more.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.events.stream
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
            let may_wait = commits.is_empty() && !self.assembly.has_begun();
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
        // default: more than are read
        let rest = usize::try_from(self.assembly.more()).unwrap_or(READ_EVENTS);
        let most = limit.saturating_add(rest).min(READ_EVENTS);
        let events = match self.events.tail.next_batch(most, wait)? {
            TailBatch::Events(events) => events,
            TailBatch::Gap { to, .. } if self.events.may_have_gap => {
                self.events.tail = self.events.stream.tail(TailFrom::After(to), None)?;
                self.assembly = Assembly::behind(self.place(to));
                return Ok(true);
            }
            TailBatch::Gap { .. } => {
                let feed = self.cursor().feed;
                let place = newest_place(self.events.stream.engine(), feed)?;
                return Err(self.end(Ended::Gone(place)));
            }
        };
        let count = events.len();
        for (id, row) in events {
            match self.assembly.take((id.row_id(), row.values())) {
                Taken::Whole(commit) => commits.push(commit),
                Taken::Part => {}
                Taken::Strange => return Err(self.end(Ended::Strange(id.row_id()))),
            }
        }
        self.events.may_have_gap &= commits.is_empty();
        let is_done =
            !self.assembly.has_begun() && self.events.tail.is_at_end() && !commits.is_empty();
        Ok(count > 0 && !is_done)
    }

    fn end(&mut self, ended: Ended) -> Error {
        self.ended = Some(ended);
        self.error(ended)
    }

    fn error(&self, ended: Ended) -> Error {
        match ended {
            Ended::Gone(place) => gone(&self.table, self.cursor(), place),
            Ended::Strange(row_id) => strange(&self.table, row_id),
        }
    }

    fn place(&self, row_id: u64) -> ChangeCursor {
        ChangeCursor { row_id, ..self.cursor() }
    }
}
