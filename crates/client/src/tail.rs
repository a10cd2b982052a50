//! Events of a stream as they arrive.

use std::collections::VecDeque;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use esker_wire::pack::Token;
use esker_wire::{Frame, Kind, Reader, pack};
use tokio::sync::mpsc;

use crate::reply::{Column, Reply};
use crate::{AsyncClient, Call, Client, Error, EventId, Result, Value};

/// Events that the server may send before any is read.
const CREDIT: u64 = 1_024;

/// How often it is decided whether a tail goes on.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What a tail tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// An event, with the values of its fields: see [`Tail::columns`].
    Event(EventId, Vec<Value>),
    /// Events with some of these row ids are gone, which retention took before they were told.
    Gap {
        /// The first row id.
        from: u64,
        /// The last one.
        to: u64,
    },
}

/// What has come of a tail.
#[derive(Debug, Default)]
struct Heard {
    /// The id and the fields.
    columns: Vec<Column>,
    told: VecDeque<Told>,
    /// Where the server is; `None` before it listens.
    reached: Option<u64>,
    /// Everything up to this row id was handed out, or is not wanted.
    position: u64,
    /// Events that were handed out since more were asked for.
    taken: u64,
    is_over: bool,
}

impl Heard {
    fn take(&mut self, frame: &Frame<'_>) -> Result<()> {
        match frame.kind()? {
            Kind::Position => {
                let (reached, gap) = position(frame.payload)?;
                self.reached = Some(reached);
                self.told.extend(gap);
                if self.told.is_empty() {
                    self.position = self.position.max(reached);
                }
            }
            Kind::Rows => {
                let mut reply = Reply::default();
                reply.take(frame)?;
                for row in reply.rows {
                    self.told.push_back(event(row)?);
                }
            }
            _ => {
                let mut reply = Reply::default();
                self.is_over = reply.take(frame).inspect_err(|_| self.is_over = true)?;
                if !reply.columns.is_empty() {
                    self.columns = reply.columns;
                }
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Option<Told> {
        let told = self.told.pop_front()?;
        match &told {
            Told::Event(id, _) => {
                self.position = id.row_id;
                self.taken += 1;
            }
            // Those of them that are left may still come.
            Told::Gap { .. } => {}
        }
        Some(told)
    }

    /// The credit that is given again, once enough was handed out.
    fn credit(&mut self) -> Option<u64> {
        (self.taken >= CREDIT / 2).then(|| std::mem::take(&mut self.taken))
    }

    /// The fields.
    fn columns(&self) -> &[Column] {
        self.columns.get(1..).unwrap_or_default()
    }
}

fn position(payload: &[u8]) -> Result<(u64, Option<Told>)> {
    let mut reader = Reader::new(payload);
    reader.array_of(2)?;
    let reached = reader.uint()?;
    let gap = match reader.token()? {
        Token::Nil => None,
        _ => Some(Told::Gap { from: reader.uint()?, to: reader.uint()? }),
    };
    Ok((reached, gap))
}

fn event(mut row: Vec<Value>) -> Result<Told> {
    if row.is_empty() {
        return Err(Error::connection("the server sent an event without an id"));
    }
    match row.remove(0) {
        Value::Text(id) => Ok(Told::Event(id.parse()?, row)),
        other => Err(Error::connection(format!("the server sent {other:?} as an id"))),
    }
}

impl Call {
    /// Tells events as they arrive.
    pub(crate) fn tail(stream: &str, after: &str, filter: Option<&str>, credit: u64) -> Self {
        Self::new(Kind::Tail, |out| {
            pack::array(out, 4);
            pack::text(out, stream);
            pack::text(out, after);
            match filter {
                Some(json) => pack::text(out, json),
                None => pack::nil(out),
            }
            pack::uint(out, credit);
        })
    }

    /// Lets the server send so many more events.
    pub(crate) fn credit(credit: u64) -> Self {
        Self::new(Kind::Credit, |out| pack::uint(out, credit))
    }
}

/// The events of a stream as they arrive, one after the other: see [`Client::tail`].
#[derive(Debug)]
pub struct Tail<'c> {
    client: &'c mut Client,
    id: u32,
    heard: Heard,
}

impl Client {
    /// Events as they arrive, each once and only once the disk has it, for as long as they are
    /// read: `after` is `now`, `start`, the id of an event or its row id, and `filter` a condition
    /// as queries in JSON have it, or as it stands behind WHERE in SQL. Dropped, it ends. A tail
    /// that ended early, or whose connection broke, goes on behind [`Tail::position`].
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use esker_client::{Client, Told, Value};
    ///
    /// let mut client = Client::connect(&server.url())?;
    /// client.sql("CREATE TABLE events (t timestamp NOT NULL, n i64) WITH (stream = 't')", &[])?;
    /// for n in 0..10i64 {
    ///     client.append("events", &[("t", Value::Timestamp(n)), ("n", n.into())])?;
    /// }
    /// let filter = r#"{"field": "n", "op": "gt", "value": 7}"#;
    /// let mut tail = client.tail("events", "start", Some(filter))?;
    /// let Some(Ok(Told::Event(id, values))) = tail.next() else { panic!("no event") };
    /// assert_eq!((id.row_id, &values[1]), (9, &8u64.into()));
    /// assert_eq!(tail.position(), 9);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn tail(&mut self, stream: &str, after: &str, filter: Option<&str>) -> Result<Tail<'_>> {
        let id = self.next_id();
        Call::tail(stream, after, filter, CREDIT).frame(&mut self.out, id);
        self.send()?;
        let mut tail = Tail { client: self, id, heard: Heard::default() };
        while tail.heard.reached.is_none() {
            tail.receive()?;
        }
        Ok(tail)
    }
}

impl Client {
    /// Hands the events of a [tail](Client::tail) on as they come, until `take` says no, or
    /// `goes_on` does, which it decides every few milliseconds. Returns the position at the end.
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use esker_client::{Client, Value};
    /// use std::time::{Duration, Instant};
    ///
    /// let mut client = Client::connect(&server.url())?;
    /// client.sql("CREATE TABLE events (t timestamp NOT NULL) WITH (stream = 't')", &[])?;
    /// client.append("events", &[("t", Value::Timestamp(1))])?;
    /// let (mut count, end) = (0, Instant::now() + Duration::from_millis(100));
    /// let position = client.tail_while(
    ///     ("events", "start", Some("t < '2000-01-01'")),
    ///     || Instant::now() < end,
    ///     |_, told| {
    ///         count += told.len();
    ///         true
    ///     },
    /// )?;
    /// assert_eq!((count, position), (1, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Client::tail`].
    #[allow(clippy::disallowed_methods, reason = "a client has no seam: nothing here is simulated")]
    pub fn tail_while(
        &mut self,
        (stream, after, filter): (&str, &str, Option<&str>),
        mut goes_on: impl FnMut() -> bool + Send,
        mut take: impl FnMut(&[Column], Vec<Told>) -> bool,
    ) -> Result<u64> {
        let mut writer = self.socket.writer()?;
        let mut tail = self.tail(stream, after, filter)?;
        let id = tail.id;
        let (ended, waits) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while waits.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                    if !goes_on() {
                        let mut cancel = Vec::new();
                        Call::cancel(id).frame(&mut cancel, id);
                        // A server that cannot be reached has gone, which the reading side finds
                        // out.
                        return drop(writer.write(&cancel));
                    }
                }
            });
            let mut run = || loop {
                let told = tail.next_batch()?;
                if told.is_empty() || !take(tail.columns(), told) {
                    return Ok(tail.position());
                }
            };
            let done = run();
            drop(ended);
            done
        })
    }
}

impl Tail<'_> {
    /// The fields of the events.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        self.heard.columns()
    }

    /// All events up to this row id were told, or were not wanted: a tail from here on goes on
    /// where this one is.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.heard.position
    }

    /// Waits for the next events, and returns all that have come; none at the end.
    ///
    /// # Errors
    /// What the server said, or that the connection failed; then it has ended.
    pub fn next_batch(&mut self) -> Result<Vec<Told>> {
        let Some(first) = self.step()? else { return Ok(Vec::new()) };
        let mut all = vec![first];
        while let Some(told) = self.heard.next() {
            all.push(told);
        }
        Ok(all)
    }

    fn receive(&mut self) -> Result<()> {
        let (id, heard) = (self.id, &mut self.heard);
        let taken = self.client.socket.receive(|frame| match frame.id == id || frame.id == 0 {
            true => heard.take(frame),
            false => Ok(()),
        });
        let taken = taken.and_then(|taken| taken);
        if taken.as_ref().is_err_and(|e| e.code().is_none()) {
            self.heard.is_over = true;
        } else if self.heard.is_over {
            self.client.is_broken = false;
        }
        taken
    }

    fn say(&mut self, call: &Call) -> Result<()> {
        let mut out = Vec::new();
        call.frame(&mut out, self.id);
        self.client.socket.write(&out)
    }

    fn step(&mut self) -> Result<Option<Told>> {
        while self.heard.told.is_empty() && !self.heard.is_over {
            self.receive()?;
        }
        if let Some(credit) = self.heard.credit().filter(|_| !self.heard.is_over) {
            self.say(&Call::credit(credit))?;
        }
        Ok(self.heard.next())
    }
}

impl Iterator for Tail<'_> {
    type Item = Result<Told>;

    fn next(&mut self) -> Option<Result<Told>> {
        self.step().transpose()
    }
}

impl Drop for Tail<'_> {
    fn drop(&mut self) {
        if self.heard.is_over || self.say(&Call::cancel(self.id)).is_err() {
            return;
        }
        while !self.heard.is_over {
            self.heard.told.clear();
            let _ = self.receive();
        }
    }
}

/// The events of a stream as they arrive, for async code: see [`AsyncClient::tail`].
#[derive(Debug)]
pub struct AsyncTail {
    client: AsyncClient,
    id: u32,
    frames: mpsc::UnboundedReceiver<Result<TailFrame>>,
    heard: Heard,
}

/// A frame of a tail, as it came.
#[derive(Debug)]
pub(crate) struct TailFrame {
    code: u8,
    flags: u8,
    payload: Vec<u8>,
}

impl TailFrame {
    pub fn of(frame: &Frame<'_>) -> Self {
        Self { code: frame.code, flags: frame.flags, payload: frame.payload.to_vec() }
    }
}

impl AsyncClient {
    /// Events as they arrive: see [`Client::tail`]. What else the connection is asked meanwhile is
    /// answered beside it.
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # let server = served::Served::start();
    /// # let url = server.url();
    /// use esker_client::{AppendOptions, AsyncClient, Call, Told, Value};
    ///
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    /// # runtime.block_on(async {
    /// let client = AsyncClient::connect(&url).await?;
    /// let table = "CREATE TABLE events (t timestamp NOT NULL) WITH (stream = 't')";
    /// client.call(Call::sql(table, &[])).await?;
    /// let mut tail = client.tail("events", "now", None).await?;
    /// let rows = [[Value::Timestamp(7)]];
    /// client.call(Call::append_rows("events", &rows, &AppendOptions::default())).await?;
    /// let Some(Told::Event(id, _)) = tail.next().await? else { panic!("no event") };
    /// assert_eq!((id.row_id, tail.position()), (1, 1));
    /// # Ok::<(), esker_client::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// What the server said, or that the connection failed.
    pub async fn tail(&self, stream: &str, after: &str, filter: Option<&str>) -> Result<AsyncTail> {
        let (id, frames) = self.begin_tail(Call::tail(stream, after, filter, CREDIT)).await?;
        let mut tail = AsyncTail { client: self.clone(), id, frames, heard: Heard::default() };
        while tail.heard.reached.is_none() {
            tail.receive().await?;
        }
        Ok(tail)
    }
}

impl AsyncTail {
    /// The fields of the events.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        self.heard.columns()
    }

    /// All events up to this row id were told, or were not wanted: a tail from here on goes on
    /// where this one is.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.heard.position
    }

    async fn receive(&mut self) -> Result<()> {
        let Some(received) = self.frames.recv().await else {
            self.heard.is_over = true;
            return Err(Error::connection("the connection has ended"));
        };
        let TailFrame { code, flags, payload } =
            received.inspect_err(|_| self.heard.is_over = true)?;
        self.heard.take(&Frame { id: self.id, code, flags, payload: &payload })
    }

    /// Waits for the next event; `None` once the tail has ended.
    ///
    /// # Errors
    /// What the server said, or that the connection failed; then it has ended.
    pub async fn next(&mut self) -> Result<Option<Told>> {
        while self.heard.told.is_empty() && !self.heard.is_over {
            self.receive().await?;
        }
        if let Some(credit) = self.heard.credit().filter(|_| !self.heard.is_over) {
            self.client.say(self.id, Call::credit(credit)).await?;
        }
        Ok(self.heard.next())
    }
}

impl Drop for AsyncTail {
    fn drop(&mut self) {
        if !self.heard.is_over {
            self.client.end_tail(self.id);
        }
    }
}
