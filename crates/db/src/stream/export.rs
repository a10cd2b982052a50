//! All events of a stream, as of one commit, some at a time.

use esker_query::model::Expr;

use super::arrivals::{ArrivalReader, Arrived, Readable};
use super::condition::{all_of, within};
use super::{EventId, Stream, TailFrom};
use crate::{Error, Result, Row, SnapshotTable};

/// Which events are exported.
#[derive(Clone, Debug, Default)]
pub struct ExportQuery {
    /// Behind an event, by its row id; from the first one on without it.
    pub after: Option<u64>,
    /// From this time on, in microseconds since 1970.
    pub from: Option<i64>,
    /// Before this time.
    pub to: Option<i64>,
    /// Of which this is true.
    pub filter: Option<Expr>,
}

/// The events of a stream as of one commit, in the order in which they arrived: see
/// [`Stream::export`].
pub struct EventExport {
    rows: SnapshotTable,
    reader: ArrivalReader,
    position: u64,
    is_end: bool,
}

impl std::fmt::Debug for EventExport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventExport").field("position", &self.position).finish_non_exhaustive()
    }
}

impl Stream {
    /// The events as of now, in the order in which they arrived, some at a time: of any number
    /// only those are in memory. One that ended early goes on behind the last event that it gave:
    /// no event is skipped or given twice.
    ///
    /// ```
    /// use esker::{DataType, ExportQuery, Options, Schema, Value};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
    /// db.create_table("events", schema.stream("t", []).build()?)?;
    /// let events = db.stream("events")?;
    /// for t in [7, 3, 5] {
    ///     events.append(&[Value::Timestamp(t), 1i64.into()])?;
    /// }
    /// let mut export = events.export(ExportQuery { to: Some(7), ..ExportQuery::default() })?;
    /// let mut count = 0;
    /// while let Some(events) = export.next_batch(1_000)? {
    ///     count += events.len();
    /// }
    /// assert_eq!(count, 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Stream::tail`].
    pub fn export(&self, query: ExportQuery) -> Result<EventExport> {
        let ExportQuery { after, from, to, filter } = query;
        let rows = self.table.snapshot()?;
        let filter = all_of([within(rows.schema(), from, to)?, filter]);
        let reader = ArrivalReader::new(filter, rows.schema())?;
        // A place that the stream has not come to is refused as by a tail.
        let position = match after {
            Some(row_id) => self.tail(TailFrom::After(row_id), None)?.position(),
            None => 0,
        };
        Ok(EventExport { rows, reader, position, is_end: false })
    }
}

impl EventExport {
    /// The fields.
    #[must_use]
    pub fn schema(&self) -> &esker_format::Schema {
        self.rows.schema()
    }

    /// The next events, up to so many; `None` at the end. Where few pass the filter, or they are
    /// long, there are fewer, or none.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; `InvalidInput` for a limit of 0.
    pub fn next_batch(&mut self, limit: usize) -> Result<Option<Vec<(EventId, Row)>>> {
        if limit == 0 {
            return Err(Error::invalid("limit: expected at least 1, found 0"));
        }
        if self.is_end {
            return Ok(None);
        }
        let readable = Readable { rows: &self.rows, durable: None };
        let read = self.reader.read(&readable, self.position, limit)?;
        (self.position, self.is_end) = (read.through, read.is_end);
        let events: Vec<Arrived> = read.events;
        Ok(Some(events))
    }
}
