//! Events that are added to streams.

use std::fmt;
use std::str::FromStr;

use esker_format::event_id::{event_id_text, parse_event_id};
use esker_format::{Column, Value};
use esker_wire::pack::Token;
use esker_wire::value::{write, write_values};
use esker_wire::{Code, Kind, Reader, columns, pack};

use crate::reply::Reply;
use crate::{Call, Client, Error, Result};

/// What an event of a stream is called: its time in milliseconds, and its row id. As a text it has
/// 26 characters, which sort as the times do.
///
/// ```
/// use esker_client::EventId;
///
/// let id: EventId = "01KDYAK3830000000000000007".parse()?;
/// assert_eq!((id.time_ms, id.row_id), (1_767_323_045_123, 7));
/// assert_eq!(id.to_string(), "01KDYAK3830000000000000007");
/// # Ok::<(), esker_client::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    /// The milliseconds of its time since 1970.
    pub time_ms: u64,
    /// The row id, which rises with the commits.
    pub row_id: u64,
}

impl EventId {
    /// That of 16 bytes; `None` for zeros, which stand for none.
    fn of(bytes: [u8; 16]) -> Option<Self> {
        let [a, b, c, d, e, f, _, _, row_id @ ..] = bytes;
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        let id = Self { time_ms: number(&[a, b, c, d, e, f]), row_id: number(&row_id) };
        (id.row_id > 0).then_some(id)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&event_id_text(self.time_ms, self.row_id))
    }
}

impl FromStr for EventId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = parse_event_id(text);
        found.map(|(time_ms, row_id)| Self { time_ms, row_id }).ok_or_else(|| {
            let expected = "expected 26 letters and digits, as an answer has told it";
            let message = format!("id of an event: {expected}, found {text:?}");
            Error::told(Code::InvalidRequest.as_str(), &message)
        })
    }
}

/// How events are stored. By default each for itself, as durable as the server's databases are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendOptions<'o> {
    /// Answered once the disk has them (true), or before.
    pub is_durable: Option<bool>,
    /// All of them or none.
    pub is_whole: bool,
    /// Answers the first and the last id only.
    pub is_minimal: bool,
    /// Who sends them, so that each is stored once.
    pub producer: Option<ProducerTurn<'o>>,
    /// The fields of rows, unless they have a value for every field, in order.
    pub fields: Option<&'o [&'o str]>,
}

/// What a producer sends: events that it numbers from 0. Sent again, they are stored once; it waits
/// for each answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerTurn<'o> {
    /// Its name, of 1 to 128 bytes.
    pub name: &'o str,
    /// Who takes over from another one has a higher epoch.
    pub epoch: u64,
    /// The number of the first event.
    pub seq: u64,
}

/// What became of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// How many are stored.
    pub accepted: u64,
    /// How many are not.
    pub rejected: u64,
    /// The id of each, in their order, or of the first and the last one. None of events that a
    /// producer has stored long before.
    pub ids: Vec<Option<EventId>>,
    /// Why events were refused.
    pub errors: Vec<RefusedEvent>,
    /// They were stored before.
    pub is_duplicate: bool,
    /// How soon the disk has what is answered before.
    pub durable_within_ms: Option<u64>,
}

/// Why one event was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedEvent {
    /// Its number, from 1.
    pub item: u64,
    /// What is wrong with it.
    pub error: Error,
}

impl AppendOptions<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let Self { is_durable, is_whole, is_minimal, producer, fields } = *self;
        let count =
            [is_durable.is_some(), is_whole, is_minimal, producer.is_some(), fields.is_some()];
        pack::map(out, count.into_iter().filter(|is_said| *is_said).count());
        if let Some(is_durable) = is_durable {
            pack::text(out, "durability");
            pack::text(out, if is_durable { "sync" } else { "async" });
        }
        if is_whole {
            pack::text(out, "each");
            pack::bool(out, false);
        }
        if let Some(fields) = fields {
            pack::text(out, "fields");
            pack::array(out, fields.len());
            fields.iter().for_each(|name| pack::text(out, name));
        }
        if is_minimal {
            pack::text(out, "minimal");
            pack::bool(out, true);
        }
        if let Some(ProducerTurn { name, epoch, seq }) = producer {
            pack::text(out, "producer");
            pack::array(out, 3);
            pack::text(out, name);
            pack::uint(out, epoch);
            pack::uint(out, seq);
        }
    }
}

impl Call {
    /// Adds events to a stream, each with values for some of its fields.
    #[must_use]
    pub fn append(stream: &str, events: &[&[(&str, Value)]], how: &AppendOptions<'_>) -> Self {
        Self::new(Kind::Append, |out| {
            pack::array(out, 3);
            pack::text(out, stream);
            how.write(out);
            pack::array(out, events.len());
            for event in events {
                pack::map(out, event.len());
                for (name, value) in *event {
                    pack::text(out, name);
                    write(out, value.as_ref());
                }
            }
        })
    }

    /// The same of rows: with a value for every field, or for each of
    /// [`fields`](AppendOptions::fields).
    #[must_use]
    pub fn append_rows(
        stream: &str,
        rows: &[impl AsRef<[Value]>],
        how: &AppendOptions<'_>,
    ) -> Self {
        Self::new(Kind::Append, |out| {
            pack::array(out, 3);
            pack::text(out, stream);
            how.write(out);
            pack::array(out, rows.len());
            rows.iter().for_each(|row| write_values(out, row.as_ref().iter().map(Value::as_ref)));
        })
    }

    /// The same by column; fields without one have their defaults.
    #[must_use]
    pub fn append_columns(
        stream: &str,
        columns: &[(&str, Column)],
        how: &AppendOptions<'_>,
    ) -> Self {
        Self::new(Kind::AppendColumns, |out| {
            pack::array(out, 4);
            pack::text(out, stream);
            how.write(out);
            pack::uint(out, columns.first().map_or(0, |(_, column)| column.len()) as u64);
            columns::write(out, columns.iter().map(|(name, column)| (*name, column)));
        })
    }
}

impl Reply {
    /// What became of events.
    ///
    /// # Errors
    /// When it is the answer to something else.
    pub fn appended(&self) -> Result<Appended> {
        let mut reader = Reader::new(&self.done);
        reader.array_of(6)?;
        let (accepted, rejected) = (reader.uint()?, reader.uint()?);
        let ids = reader.optional_bytes()?.unwrap_or_default();
        let ids = ids.as_chunks::<16>().0.iter().map(|id| EventId::of(*id)).collect();
        let mut errors = Vec::new();
        for _ in 0..reader.array()? {
            reader.array_of(4)?;
            let item = reader.uint()?;
            errors.push(RefusedEvent { item, error: Error::told(reader.text()?, reader.text()?) });
            reader.bool()?;
        }
        let is_duplicate = reader.bool()?;
        let durable_within_ms = match reader.token()? {
            Token::Uint(ms) => Some(ms),
            _ => None,
        };
        Ok(Appended { accepted, rejected, ids, errors, is_duplicate, durable_within_ms })
    }
}

impl Client {
    /// Adds an event to a stream, with values for some of its fields; its id.
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use esker_client::{Client, Value};
    ///
    /// let mut client = Client::connect(&server.url())?;
    /// let table = "CREATE TABLE events (t timestamp NOT NULL, what text) WITH (stream = 't')";
    /// client.sql(table, &[])?;
    /// let at = Value::Timestamp(1_767_323_045_123_456);
    /// let id = client.append("events", &[("t", at), ("what", "start".into())])?;
    /// assert_eq!(id.to_string(), "01KDYAK3830000000000000001");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Client::call`]; why the event is refused.
    pub fn append(&mut self, stream: &str, event: &[(&str, Value)]) -> Result<EventId> {
        let appended =
            self.call(&Call::append(stream, &[event], &AppendOptions::default()))?.appended()?;
        if let Some(refused) = appended.errors.into_iter().next() {
            return Err(refused.error);
        }
        let id = appended.ids.first().copied().flatten();
        id.ok_or_else(|| Error::connection("the server told no id"))
    }

    /// Adds events as rows, each with an outcome of its own: with a value for every field, or for
    /// each of [`fields`](AppendOptions::fields).
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use esker_client::{AppendOptions, Client, ProducerTurn, Value};
    ///
    /// let mut client = Client::connect(&server.url())?;
    /// let table = "CREATE TABLE events (t timestamp NOT NULL, what text) WITH (stream = 't')";
    /// client.sql(table, &[])?;
    /// let rows = [[Value::Timestamp(1), "a".into()], [Value::Null, "b".into()]];
    /// let producer = Some(ProducerTurn { name: "agent 7", epoch: 1, seq: 0 });
    /// let how = AppendOptions { producer, ..AppendOptions::default() };
    /// let told = client.append_many("events", &rows, &how)?;
    /// assert_eq!((told.accepted, told.rejected, told.errors[0].item), (1, 1, 2));
    /// // No answer came, so they are sent again.
    /// assert!(client.append_many("events", &rows, &how)?.is_duplicate);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn append_many(
        &mut self,
        stream: &str,
        rows: &[impl AsRef<[Value]>],
        how: &AppendOptions<'_>,
    ) -> Result<Appended> {
        self.call(&Call::append_rows(stream, rows, how))?.appended()
    }

    /// The same by column: the fastest way in.
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use esker_client::{AppendOptions, Client, ColumnValues, DataType, Values};
    ///
    /// let mut client = Client::connect(&server.url())?;
    /// client.sql("CREATE TABLE events (t timestamp NOT NULL, n i64) WITH (stream = 't')", &[])?;
    /// let times = Values::I64((0..1_000).collect());
    /// let times = ColumnValues { data_type: DataType::Timestamp, values: times, nulls: None };
    /// let how = AppendOptions { is_minimal: true, ..AppendOptions::default() };
    /// let told = client.append_columns("events", &[("t", times)], &how)?;
    /// assert_eq!((told.accepted, told.ids[1].unwrap().row_id), (1_000, 1_000));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Client::call`]; a value that does not fit its field, with column and row.
    pub fn append_columns(
        &mut self,
        stream: &str,
        columns: &[(&str, Column)],
        how: &AppendOptions<'_>,
    ) -> Result<Appended> {
        self.call(&Call::append_columns(stream, columns, how))?.appended()
    }
}
