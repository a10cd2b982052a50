//! Streams of events: appending to them, and their ids.
//!
//! | module | what it has |
//! |---|---|
//! | [`event_id`] | what an event is called |
//! | [`outcome`] | a thread that waits for what becomes of its events |
//! | [`lead`] | one commit for all that wait |
//! | [`ready_events`] | events that are whole and tested, by column |
//! | [`columns`] | events by column, in commits of their own |
//! | [`dedupe`], [`fate`] | events that come again, and what becomes of each |
//! | [`beside`], [`kept`] | entries that are put in the commit of events |
//! | [`producer`] | senders each of whose events is stored once |
//! | [`filter`], [`condition`] | which events are wanted; conditions on their times |
//! | [`page`] | events page by page, by their times |
//! | [`arrivals`] | events in the order in which they arrived |
//! | [`tail`] | the same as they arrive, once they are durable |
//! | [`export`] | the same as of one commit |
//! | [`info`] | figures |

mod arrivals;
mod beside;
pub(crate) mod columns;
mod condition;
mod dedupe;
pub(crate) mod event_id;
mod export;
mod fate;
mod filter;
mod info;
pub(crate) mod kept;
pub(crate) mod lead;
mod outcome;
mod page;
pub(crate) mod producer;
mod ready_events;
mod tail;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use esker_format::{Schema, TableId, Value};
use esker_log::sabotage::Bug;
use esker_query::model::Expr;
use esker_table::Table as TableCore;

use crate::commit::fit::fit_row;
use crate::commit::gathered_events::{Appended, EventRequest, GatheredEvents};
use crate::engine_handle::EngineHandle;
use crate::table_version::TableVersion;
use crate::{Database, Durability, Erased, Error, Result, Table};
pub use event_id::EventId;
pub use export::{EventExport, ExportQuery};
use fate::lost;
pub use info::StreamInfo;
use kept::KeptEntry;
pub use lead::Lead;
pub use page::{EventCursor, EventOrder, EventPage, PageQuery};
pub use ready_events::{ReadyEvents, ReadyRows};
pub use tail::{Tail, TailBatch, TailFrom};

/// A stream of a database. Cheap to clone; usable from any number of threads, whose events share
/// commits and syncs.
///
/// ```
/// use esker::{DataType, Options, Schema, Value};
///
/// let db = Options::new().memory()?;
/// let schema = Schema::builder().field("t", DataType::Timestamp).field("what", DataType::Text);
/// db.create_table("events", schema.stream("t", []).build()?)?;
/// let events = db.stream("events")?;
/// let id = events.append(&[Value::Timestamp(1_767_323_045_123_456), "start".into()])?;
/// assert_eq!(events.get(id)?.unwrap().get("what"), Some(&"start".into()));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone)]
pub struct Stream {
    database: Database,
    table: Table,
    gathered: Arc<GatheredEvents>,
    /// The table whose requests these are.
    gathered_of: TableId,
}

impl Database {
    /// A stream by name.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` for a table that is no stream.
    pub fn stream(&self, name: &str) -> Result<Stream> {
        let table = self.table(name)?;
        if table.schema().stream().is_none() {
            let message = format!("table {name:?} is no stream: WITH (stream = 'field') makes one");
            return Err(Error::invalid(message));
        }
        Ok(self.stream_of(Arc::clone(table.core())))
    }

    /// A table that is a stream.
    pub(crate) fn stream_of(&self, core: Arc<TableCore>) -> Stream {
        let gathered_of = core.id();
        let gathered = self.engine().gathered_events(gathered_of);
        let table = Table::new(self.engine().clone(), core);
        Stream { database: self.clone(), table, gathered, gathered_of }
    }
}

impl Database {
    /// The bytes of events that wait for their commit, of all streams.
    #[doc(hidden)]
    #[must_use]
    pub fn waiting_event_bytes(&self) -> u64 {
        self.engine().waiting_event_bytes()
    }

    /// A table to which rows are appended the way events are. `None` if it has a declared key or
    /// unique values, as then a row may conflict with another.
    ///
    /// # Errors
    /// `NotFound`.
    #[doc(hidden)]
    pub fn without_keys(&self, name: &str) -> Result<Option<Stream>> {
        let table = self.table(name)?;
        if table.schema().has_unique_values() {
            return Ok(None);
        }
        let gathered_of = table.core().id();
        let gathered = self.engine().gathered_events(gathered_of);
        Ok(Some(Stream { database: self.clone(), table, gathered, gathered_of }))
    }
}

impl Stream {
    pub(crate) fn engine(&self) -> &EngineHandle {
        &self.table.engine
    }

    /// The fields.
    #[must_use]
    pub fn schema(&self) -> Arc<Schema> {
        self.table.schema()
    }

    /// Adds an event, given whole; returns its id once it is as durable as the database says: that
    /// of the event that is there, where the stream stores it once (`dedupe`).
    ///
    /// # Errors
    /// As for [`Table::insert`]; `ConstraintViolated` for a time that is too far from now.
    pub fn append(&self, event: &[Value]) -> Result<EventId> {
        let outcomes = self.append_many(std::slice::from_ref(&event));
        outcomes.into_iter().next().ok_or_else(lost)?
    }

    /// Adds events, each with an outcome of its own: those that are refused change nothing, and the
    /// others are stored, in one commit.
    pub fn append_many(&self, events: &[impl AsRef<[Value]>]) -> Vec<Result<EventId>> {
        let current = self.table.current();
        let mut ready = self.ready_events(&current, events);
        let columns = std::mem::take(&mut ready.rows.columns);
        let rows = ReadyRows { schema: Arc::clone(&current.schema), columns };
        let stored = match rows.is_empty() {
            true => Ok(Vec::new()),
            false => self.append_kept(rows, None),
        };
        match stored {
            Ok(stored) => ready.outcomes(stored),
            Err(e) => ready.tested.into_iter().map(|row| row.and(Err(e.repeated()))).collect(),
        }
    }

    /// An event by the names of its values, whole and tested: others have their defaults.
    ///
    /// # Errors
    /// As for [`Stream::append`].
    pub fn prepare(
        &self,
        schema: &Arc<Schema>,
        values: Vec<(String, Value)>,
    ) -> Result<Vec<Value>> {
        let current = TableVersion { schema: Arc::clone(schema), ..self.table.current() };
        let placed = values.into_iter().map(|(name, value)| Ok((schema.resolve(&name)?, value)));
        let placed = placed.collect::<Result<Vec<_>>>()?;
        self.ready(&current, &self.table.engine.fill_row(schema, placed)?)
    }

    fn ready(&self, current: &TableVersion, event: &[Value]) -> Result<Vec<Value>> {
        let engine = &self.table.engine;
        let mut row = [fit_row(&current.schema, event)?];
        engine.complete_rows(current, &mut row, &engine.limits())?;
        engine.test_rows(current, &row)?;
        let [row] = row;
        Ok(row.into_owned())
    }

    /// Queues rows that are ready. The commit calls `done` with their outcomes, or drops it when
    /// they are unknown; an entry is put in their commit, which is one then. A caller that gets a
    /// [`Lead`] has to make the commit, and may first let other tasks add their events.
    #[must_use]
    pub fn submit(
        &self,
        (rows, is_whole): (ReadyRows, bool),
        entry: Option<KeptEntry>,
        done: impl FnOnce(Appended) + Send + 'static,
    ) -> Option<Lead> {
        let renewed = (self.table.core().id() != self.gathered_of).then(|| self.renewed());
        // default: no truncation came between
        let stream = renewed.as_ref().unwrap_or(self);
        let ReadyRows { schema, columns } = rows;
        let entry = entry.map(|entry| Box::new(entry) as Box<dyn Any + Send>);
        let request = EventRequest { columns, schema, is_whole, entry, done: Box::new(done) };
        stream.gathered.add(request).then(|| Lead::of(stream))
    }

    /// The same stream, with those of its requests that wait: a truncation makes it another table.
    fn renewed(&self) -> Self {
        let mut stream = self.clone();
        let core = stream.table.core();
        if core.id() != stream.gathered_of {
            stream.gathered_of = core.id();
            stream.gathered = stream.table.engine.gathered_events(stream.gathered_of);
        }
        stream
    }

    fn append_kept(
        &self,
        rows: ReadyRows,
        entry: Option<KeptEntry>,
    ) -> Result<Vec<Result<EventId>>> {
        let times = rows.times()?.to_vec();
        let engine = &self.table.engine;
        let (outcome, told) = outcome::awaited(&engine.environment);
        let tell = move |appended| outcome.tell(appended);
        let lead = self.submit((rows, false), entry, tell);
        lead.into_iter().for_each(Lead::run);
        let mut appended = told.wait()?;
        if times.is_empty()
            && let Some(Err(e)) = appended.outcomes.pop()
        {
            return Err(e);
        }
        if let Some(commit) = appended.commit
            && !engine.defer(commit)
        {
            self.wait(commit)?;
        }
        let outcomes = appended.outcomes.into_iter().zip(times);
        let id = |(row_id, time_us): (Result<u64>, i64)| {
            fate::id_of(row_id.map(|row_id| EventId::new(time_us, row_id)))
        };
        Ok(outcomes.map(id).collect())
    }

    /// Shows a commit to all readers before it is synced, and schedules the sync: for senders that
    /// do not wait for the disk.
    ///
    /// # Errors
    /// `OutcomeUnknown` when the log has failed.
    pub fn reveal(&self, commit: u64) -> Result<()> {
        let engine = &self.table.engine;
        if engine.is_durable() {
            crate::maintenance::flusher_of(engine);
        }
        engine.reveal(commit)
    }

    /// The bytes of events that wait for their commit, and of all that were taken before.
    #[doc(hidden)]
    #[must_use]
    pub fn backlog(&self) -> (u64, u64) {
        self.gathered.backlog()
    }

    /// How long after it was [revealed](Self::reveal) a commit is on the disk, at most.
    #[must_use]
    pub fn durable_within(&self) -> Duration {
        crate::maintenance::flush_window(&self.table.engine)
    }

    /// Whether as much waits for the disk as a crash may take: who reveals more waits for it.
    #[must_use]
    pub fn is_flush_due(&self) -> bool {
        self.table.engine.is_flush_due()
    }

    /// Waits until a commit is on the disk, with all others that wait.
    fn wait(&self, commit: u64) -> Result<()> {
        let engine = &self.table.engine;
        let waits = engine.options.durability == Durability::Sync;
        match engine.journal.log().filter(|log| waits && log.durable() < commit) {
            Some(_) => engine.sync(),
            None => Ok(()),
        }
    }

    /// The event of an id.
    ///
    /// # Errors
    /// As for [`Table::get`].
    pub fn get(&self, id: EventId) -> Result<Option<crate::Row>> {
        let Some(row) = self.table.get(&[Value::Uint(id.row_id())])? else { return Ok(None) };
        let is_it = id.is_at(time_of(row.schema(), row.values())?);
        let is_it = is_it || Bug::EventFoundAtOtherTime.is_planted();
        Ok(is_it.then_some(row))
    }

    /// Removes the event of an id; false when there is none.
    ///
    /// # Errors
    /// As for [`Table::delete`].
    pub fn delete(&self, id: EventId) -> Result<bool> {
        match self.get(id)? {
            Some(_) => self.table.delete(&[Value::Uint(id.row_id())]),
            None => Ok(false),
        }
    }

    /// Erases the events that match: see [`Table::erase`].
    ///
    /// # Errors
    /// As for [`Table::erase`].
    pub fn erase(&self, filter: Option<&Expr>) -> Result<Erased> {
        self.table.erase(filter)
    }

    /// Ends all events whose times are before this one, in microseconds since 1970; returns how
    /// many. Where whole segments are older they end in one commit, whatever they have. It waits
    /// for a job of maintenance that is under way.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema, Value};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("t", DataType::Timestamp).stream("t", []).build()?;
    /// db.create_table("events", schema)?;
    /// let events = db.stream("events")?;
    /// for t in 0..5 {
    ///     events.append(&[Value::Timestamp(t)])?;
    /// }
    /// assert_eq!(events.delete_before(3)?, 3);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of a commit.
    pub fn delete_before(&self, time_us: i64) -> Result<u64> {
        let mut ended = 0;
        self.table.attempt(|current| {
            // default: what is no stream has no classes
            let classes = current.schema.stream().map_or(0, |stream| stream.class_count());
            let bounds = vec![Some(time_us); classes];
            // Neither a seal nor a merge moves rows meanwhile. The second look is for those that
            // were changed while the first was made.
            self.table.engine.exclusively(|engine| {
                for _ in 0..2 {
                    ended += engine.end_events_before(&current.core, &current.schema, &bounds)?;
                }
                Ok(())
            })
        })?;
        Ok(ended)
    }
}

/// The time of an event, in microseconds since 1970.
///
/// # Errors
/// `Corrupt` when it has none.
pub fn time_of(schema: &Schema, row: &[Value]) -> Result<i64> {
    let time = schema.stream().map(|stream| stream.time);
    let at = schema.fields().iter().position(|field| Some(field.id) == time);
    match at.and_then(|at| row.get(at)) {
        Some(Value::Timestamp(time_us)) => Ok(*time_us),
        other => Err(Error::corrupt(format!("an event without a time: {other:?}"))),
    }
}
