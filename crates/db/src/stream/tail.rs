//! Events as they arrive: a reader that goes on from any place, and waits for the next ones.
//!
//! ```text
//! row id   1 ─────────────── 7 ─────────── 9 ─────── 12
//!                            │ position    │ durable │ visible
//!          told, or not there│ told next   │ told once the disk has them
//! ```
//!
//! # Invariants
//!
//! 1. An event is told once its commit is on the disk: a crash takes back none that was told.
//! 2. Events are told by rising row ids, which rise with the commits. So whatever comes later has a
//!    greater row id than all that was told, and no event is skipped or told twice.
//! 3. A tail holds a position and a filter. It holds no snapshot while it waits.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use esker_log::sabotage::Bug;
use esker_query::model::Expr;

use super::arrivals::{ArrivalReader, Arrived, Readable};
use super::{EventId, Stream};
use crate::{Error, Result, Row};

/// Where a tail begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailFrom {
    /// With what is committed from now on.
    Now,
    /// With the first event that is there.
    Start,
    /// Behind an event, by its row id, whether it is there still or not.
    After(u64),
}

impl FromStr for TailFrom {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.eq_ignore_ascii_case("now") {
            return Ok(Self::Now);
        }
        if text.eq_ignore_ascii_case("start") {
            return Ok(Self::Start);
        }
        if let Ok(id) = text.parse::<EventId>() {
            return Ok(Self::After(id.row_id()));
        }
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let row_id = text.parse().ok().filter(|_| is_number);
        row_id.map(Self::After).ok_or_else(|| {
            let expected = "expected now, start, the id of an event, or its row id";
            Error::invalid(format!("{expected}, found {text:?}"))
        })
    }
}

/// What a tail tells.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TailBatch {
    /// Events by rising row ids; none when none came in time.
    Events(Vec<(EventId, Row)>),
    /// Events with some of these row ids were there and are gone: retention has passed the tail. It
    /// goes on with those that are left.
    Gap {
        /// The first row id.
        from: u64,
        /// The last one.
        to: u64,
    },
}

/// The events of a stream as they arrive: see [`Stream::tail`].
pub struct Tail {
    stream: Stream,
    reader: ArrivalReader,
    /// All up to this row id was told, or is not wanted, or is gone.
    position: u64,
    /// It was told that events up to this row id have ended.
    gap: u64,
    is_at_end: bool,
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (position, is_at_end) = (self.position, self.is_at_end);
        let mut shown = f.debug_struct("Tail");
        shown.field("position", &position).field("is_at_end", &is_at_end).finish_non_exhaustive()
    }
}

impl Stream {
    /// The events that arrive from some place on, of which a filter is true: inserts in the order
    /// of their commits, once each, as soon as they are on the disk. An event that was removed
    /// meanwhile is not told, and one that was changed is told as it is now.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use esker::{DataType, Options, Schema, TailBatch, TailFrom, Value};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
    /// db.create_table("events", schema.stream("t", []).build()?)?;
    /// let events = db.stream("events")?;
    /// let first = events.append(&[Value::Timestamp(7), 1i64.into()])?;
    /// let second = events.append(&[Value::Timestamp(3), 2i64.into()])?;
    /// let mut tail = events.tail(TailFrom::After(first.row_id()), None)?;
    /// let TailBatch::Events(told) = tail.next_batch(100, Duration::from_secs(1))? else {
    ///     panic!("a gap")
    /// };
    /// assert_eq!((told.len(), told[0].0), (1, second));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a place behind the newest event, and a filter that does not fit the
    /// fields, or that more than the event decides, such as `now()`.
    pub fn tail(&self, from: TailFrom, filter: Option<Expr>) -> Result<Tail> {
        let reader = ArrivalReader::new(filter, &self.schema())?;
        let newest = self.newest_row_id()?;
        let gap = match from {
            // It begins with the first event that is there.
            TailFrom::Start => self.ended_through(),
            _ => 0,
        };
        let position = match from {
            TailFrom::Now => newest,
            TailFrom::Start => 0,
            TailFrom::After(row_id) if row_id <= newest => row_id,
            TailFrom::After(row_id) => {
                return Err(Error::invalid(format!(
                    "no event of stream {:?} has the row id {row_id}: expected at most {newest}",
                    self.table.name()
                )));
            }
        };
        // It listens before it looks.
        self.table.engine.commit_wakes();
        Ok(Tail { stream: self.clone(), reader, position, gap, is_at_end: false })
    }

    /// The newest row id that was given to an event, visible or not; 0 for none.
    pub(super) fn newest_row_id(&self) -> Result<u64> {
        let (engine, id) = (&self.table.engine, self.table.core().id());
        let next = engine.lock().entry(id)?.writer.next_row_id();
        Ok(next.saturating_sub(1))
    }

    /// Calls this whenever commits became visible or durable, for as long as the database is open:
    /// then tails may have something to tell. It is called on threads that commit, and must not
    /// wait.
    pub fn on_commits(&self, call: impl Fn() + Send + Sync + 'static) {
        self.table.engine.commit_wakes().call(std::sync::Arc::new(call));
    }

    /// The greatest row id of an event that ended for its age, or with a truncation, so that a tail
    /// before it has missed some; 0 for none. Others that came before it may be there.
    pub(crate) fn ended_through(&self) -> u64 {
        self.table.core().ended_row_id()
    }
}

impl Tail {
    /// All events up to this row id were told, were not wanted, or are gone: a tail from here on
    /// goes on where this one is.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether the last call has found the end: nothing more could be told then.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Whether [`Tail::next_batch`] may have something to tell; false is sure, and costs little.
    #[must_use]
    pub fn may_have_more(&self) -> bool {
        self.stream.table.core().may_have_rows_after(self.position)
    }

    /// The next events, up to so many, as soon as there is one; none when none came in this time.
    /// A filter that few events pass may end a call before, where [`Tail::is_at_end`] is false.
    ///
    /// # Errors
    /// `NotFound` once the stream was dropped, `Poisoned` when the log has failed, `InvalidInput`
    /// for a limit of 0, and where the filter does not fit the fields any more. The tail stays
    /// where it was.
    pub fn next_batch(&mut self, limit: usize, wait: Duration) -> Result<TailBatch> {
        if limit == 0 {
            return Err(Error::invalid("limit: expected at least 1, found 0"));
        }
        let environment = self.stream.table.engine.environment.clone();
        let began = environment.clock.monotonic_ns();
        loop {
            let mut seen = self.stream.table.engine.commit_wakes().moved.generation();
            if let Some(told) = self.look(limit)? {
                return Ok(told);
            }
            if Bug::TailLosesWake.is_planted() {
                seen = self.stream.table.engine.commit_wakes().moved.generation();
            }
            let passed = environment.clock.monotonic_ns().saturating_sub(began);
            let left = wait.saturating_sub(Duration::from_nanos(passed));
            if left.is_zero() {
                return Ok(TailBatch::Events(Vec::new()));
            }
            if self.is_at_end {
                let moved = &self.stream.table.engine.commit_wakes().moved;
                environment.tasks.wait_timeout(moved, seen, left);
            }
        }
    }

    /// What there is to tell now, if anything is.
    fn look(&mut self, limit: usize) -> Result<Option<TailBatch>> {
        let durable = self.stream.table.engine.durable_through()?;
        let rows = self.stream.table.snapshot()?;
        // What the snapshot lacks has been noted before it was taken.
        let to = self.stream.ended_through();
        if to > self.position.max(self.gap) && !Bug::TailPassesOverGap.is_planted() {
            self.gap = to;
            return Ok(Some(TailBatch::Gap { from: self.position + 1, to }));
        }
        let durable = durable.filter(|durable| *durable < rows.commit());
        let durable = durable.filter(|_| !Bug::TailTellsBeforeDurable.is_planted());
        let readable = Readable { rows: &rows, durable };
        let read = self.reader.read(&readable, self.position, limit)?;
        (self.position, self.is_at_end) = (read.through, read.is_end);
        let events: Vec<Arrived> = read.events;
        Ok((!events.is_empty()).then_some(TailBatch::Events(events)))
    }
}
