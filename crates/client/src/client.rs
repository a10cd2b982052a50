//! The blocking client.

use std::sync::mpsc;
use std::time::Duration;

use esker_format::Value;

use crate::bulk::{Duplicates, Format, Load};
use crate::call::Boundary;
use crate::reply::Column;
use crate::socket::Socket;
use crate::{Address, Call, Error, Reply, Result, RowUpdate};

/// How often a waiting caller decides whether to go on.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A connection to a server. One thread uses it at a time; see [`Pool`](crate::Pool) for more.
#[derive(Debug)]
pub struct Client {
    pub(crate) socket: Socket,
    pub(crate) out: Vec<u8>,
    next_id: u32,
    /// An answer was not read to its end: what follows would be taken for that of another.
    pub(crate) is_broken: bool,
    /// A transaction was begun, and its end is not known.
    pub(crate) may_be_within: bool,
}

impl Client {
    /// Connects to a server: see [`Address`].
    ///
    /// # Errors
    /// When there is no server, or one of another version.
    pub fn connect(address: &str) -> Result<Self> {
        let socket = Socket::connect(&Address::parse(address)?)?;
        let (out, next_id) = (Vec::new(), 1);
        Ok(Self { socket, out, next_id, is_broken: false, may_be_within: false })
    }

    /// Says who asks, and for which database.
    ///
    /// # Errors
    /// `Unauthenticated`, `Forbidden`, `NotFound`.
    pub fn hello(&mut self, token: Option<&str>, database: Option<&str>) -> Result<()> {
        self.call(&Call::hello(token, database)).map(drop)
    }

    pub(crate) fn next_id(&mut self) -> u32 {
        let id = self.next_id;
        // 0 is the server's.
        self.next_id = self.next_id.checked_add(1).unwrap_or(1);
        id
    }

    /// Gathers a request.
    fn gather(&mut self, call: &Call) -> u32 {
        let id = self.next_id();
        call.frame(&mut self.out, id);
        self.may_be_within |= call.boundary() == Boundary::Begins;
        id
    }

    /// Notes what was said of a request.
    fn note(&mut self, call: &Call, reply: &Result<Reply>) {
        if reply.is_ok() && call.boundary() == Boundary::Ends {
            self.may_be_within = false;
        }
    }

    /// Sends what has been gathered.
    pub(crate) fn send(&mut self) -> Result<()> {
        if self.is_broken {
            let message = "an earlier answer was not read to its end: connect again";
            return Err(Error::connection(message));
        }
        self.is_broken = true;
        let sent = self.socket.write(&self.out);
        self.out.clear();
        sent
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// What the server said, or that the connection failed; the same below.
    pub fn call(&mut self, call: &Call) -> Result<Reply> {
        let id = self.gather(call);
        self.send()?;
        let reply = self.reply(id);
        self.note(call, &reply);
        reply
    }

    /// The same, and cancels the request once `goes_on` says no, which it decides every few
    /// milliseconds. Whether something was cancelled is what the server says: it may have been
    /// done already.
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use esker_client::{Call, Client};
    /// use std::time::{Duration, Instant};
    ///
    /// let mut client = Client::connect(&server.url())?;
    /// let end = Instant::now() + Duration::from_secs(5);
    /// let reply = client.call_while(&Call::sql("SELECT 1 AS n", &[]), || Instant::now() < end)?;
    /// assert_eq!(reply.rows.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Client::call`]; `Cancelled`.
    #[allow(clippy::disallowed_methods, reason = "a client has no seam: nothing here is simulated")]
    pub fn call_while(
        &mut self,
        call: &Call,
        mut goes_on: impl FnMut() -> bool + Send,
    ) -> Result<Reply> {
        let id = self.gather(call);
        let mut writer = self.socket.writer()?;
        self.send()?;
        let (answered, waits) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while waits.recv_timeout(LOOK_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                    if !goes_on() {
                        let mut cancel = Vec::new();
                        Call::cancel(id).frame(&mut cancel, id);
                        // A server that cannot be reached has gone, which the reading side finds
                        // out.
                        return drop(writer.write(&cancel));
                    }
                }
            });
            let reply = self.reply(id);
            drop(answered);
            self.note(call, &reply);
            reply
        })
    }

    /// Reads the whole answer to a request.
    pub(crate) fn reply(&mut self, id: u32) -> Result<Reply> {
        let mut reply = Reply::default();
        let mut failed = None;
        let mut is_last = false;
        while !is_last {
            is_last = self.socket.receive(|frame| {
                if frame.id != id && frame.id != 0 {
                    return false;
                }
                reply.take(frame).unwrap_or_else(|e| {
                    failed = Some(e);
                    true
                })
            })?;
        }
        self.is_broken = failed.as_ref().is_some_and(|e: &Error| e.code().is_none());
        failed.map_or(Ok(reply), Err)
    }

    /// Whether anybody is there.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn ping(&mut self) -> Result<()> {
        self.call(&Call::ping()).map(drop)
    }

    /// The names of tables.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn tables(&mut self) -> Result<Vec<String>> {
        self.call(&Call::tables())?.names()
    }

    /// The row with a key.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn get(&mut self, table: &str, key: &[Value]) -> Result<Option<Vec<Value>>> {
        let found = self.get_many(table, &[key.to_vec()])?;
        Ok(found.into_iter().next().flatten())
    }

    /// The rows with some keys, in their order, all as of one commit.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn get_many(
        &mut self,
        table: &str,
        keys: &[Vec<Value>],
    ) -> Result<Vec<Option<Vec<Value>>>> {
        self.call(&Call::get(table, keys))?.found()
    }

    /// Whether there is a row with a key.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn exists(&mut self, table: &str, key: &[Value]) -> Result<bool> {
        let flags = self.call(&Call::exists(table, &[key.to_vec()]))?.flags()?;
        Ok(flags.first() == Some(&true))
    }

    /// Adds rows, all or none, with a value for every field. Returns the row id of a single one.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn insert(&mut self, table: &str, rows: &[Vec<Value>]) -> Result<Option<u64>> {
        Ok(self.call(&Call::insert(table, rows))?.row_id())
    }

    /// Adds rows, or replaces those with their keys, all or none.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn upsert(&mut self, table: &str, rows: &[Vec<Value>]) -> Result<Option<u64>> {
        Ok(self.call(&Call::upsert(table, rows))?.row_id())
    }

    /// Changes fields of a row; false when there is none.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn update(&mut self, table: &str, key: &[Value], fields: &[(&str, Value)]) -> Result<bool> {
        Ok(self.call(&Call::update(table, key, fields))?.changed() > 0)
    }

    /// Changes fields of rows, each by its key, all in one commit; returns how many
    /// of the updates found a row.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn update_many(&mut self, table: &str, updates: &[RowUpdate<'_>]) -> Result<u64> {
        Ok(self.call(&Call::update_many(table, updates))?.changed())
    }

    /// Removes a row; false when there is none.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn delete(&mut self, table: &str, key: &[Value]) -> Result<bool> {
        Ok(self.call(&Call::delete(table, &[key.to_vec()]))?.changed() > 0)
    }

    /// Runs one SQL statement, and gathers its rows; see [`Client::stream`] for many.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn sql(&mut self, text: &str, parameters: &[Value]) -> Result<Reply> {
        self.call(&Call::sql(text, parameters))
    }

    /// Answers a query that is written as JSON.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn query(&mut self, json: &str) -> Result<Reply> {
        self.call(&Call::query(json))
    }

    /// Begins a transaction: what follows on this connection is part of it.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn begin(&mut self) -> Result<()> {
        self.call(&Call::begin(false, false)).map(drop)
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// As for [`Client::call`]; `Conflict` when another client was first.
    pub fn commit(&mut self) -> Result<()> {
        self.call(&Call::commit()).map(drop)
    }

    /// Forgets the transaction.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn rollback(&mut self) -> Result<()> {
        self.call(&Call::rollback()).map(drop)
    }

    /// The value of a key of a bucket.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn bucket_get(&mut self, bucket: &str, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let values = self.call(&Call::bucket_get(bucket, &[key]))?.values()?;
        Ok(values.into_iter().next().flatten())
    }

    /// Puts an entry into a bucket, which is made when there is none.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn bucket_put(
        &mut self,
        bucket: &str,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.call(&Call::bucket_put(bucket, &[(key, value)])).map(drop)
    }

    /// Removes an entry of a bucket; false when there is none.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn bucket_remove(&mut self, bucket: &str, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.call(&Call::bucket_remove(bucket, &[key]))?.changed() > 0)
    }

    /// Gathers requests, to send them all before the first answer is read.
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use esker_client::{Call, Client};
    ///
    /// let mut client = Client::connect(&server.url())?;
    /// let mut pipeline = client.pipeline();
    /// for i in 0..100u32 {
    ///     pipeline.push(&Call::bucket_put("b", &[(i.to_string(), "value")]));
    /// }
    /// let replies = pipeline.run()?;
    /// assert!(replies.iter().all(Result::is_ok));
    /// # Ok(())
    /// # }
    /// ```
    pub fn pipeline(&mut self) -> Pipeline<'_> {
        let first = self.next_id;
        Pipeline { client: self, first, ids: Vec::new() }
    }

    /// Runs a statement whose rows are read as they come, so that an answer of any size takes
    /// little memory. Dropped before its end, it cancels the statement.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn stream(&mut self, text: &str, parameters: &[Value]) -> Result<Rows<'_>> {
        let id = self.gather(&Call::sql(text, parameters));
        self.send()?;
        let mut rows = Rows { client: self, id, part: Reply::default(), is_at_end: false };
        while rows.part.columns.is_empty() && !rows.is_at_end {
            rows.receive()?;
        }
        Ok(rows)
    }

    /// Begins to load rows: all of them once [`Load::finish`] returns, or none.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn load(
        &mut self,
        table: &str,
        format: Format,
        duplicates: Duplicates,
    ) -> Result<Load<'_>> {
        self.begin_load(&Call::bulk_begin(table, format, duplicates, None))
    }

    /// The same, done once however often it is sent with the same key, of 1 to 255 characters, and
    /// the same rows: sent again, also by another connection, it answers what it answered before.
    /// Rows are not left out ([`Duplicates::Skip`]). It may end with `Conflict` where somebody else
    /// changes the same rows: try again. See [`Pool::load_once`](crate::Pool::load_once).
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use esker_client::{Client, Duplicates, Format};
    ///
    /// let mut client = Client::connect(&server.url())?;
    /// client.sql("CREATE TABLE t (n i64 PRIMARY KEY)", &[])?;
    /// for _ in 0..2 {
    ///     let mut load = client.load_once("t", Format::Csv, Duplicates::Error, "file 1")?;
    ///     load.push_text(b"n\n1\n2\n")?;
    ///     assert_eq!(load.finish()?, 2);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn load_once(
        &mut self,
        table: &str,
        format: Format,
        duplicates: Duplicates,
        key: &str,
    ) -> Result<Load<'_>> {
        self.begin_load(&Call::bulk_begin(table, format, duplicates, Some(key)))
    }

    fn begin_load(&mut self, begin: &Call) -> Result<Load<'_>> {
        let id = self.gather(begin);
        self.send()?;
        Ok(Load::new(self, id))
    }
}

/// Requests that are sent together.
#[derive(Debug)]
pub struct Pipeline<'c> {
    client: &'c mut Client,
    first: u32,
    ids: Vec<u32>,
}

/// Bytes of requests that are sent before answers are read: sockets hold as many.
const SENT_BYTES: usize = 64 << 10;

impl Pipeline<'_> {
    /// Adds a request.
    pub fn push(&mut self, call: &Call) {
        let id = self.client.gather(call);
        self.ids.push(id);
    }

    /// Sends all requests and reads all answers, in the order of the requests.
    ///
    /// # Errors
    /// When the connection failed; what the server said of a request is within.
    pub fn run(mut self) -> Result<Vec<Result<Reply>>> {
        let mut replies: Vec<Result<Reply>> = Vec::with_capacity(self.ids.len());
        replies.resize_with(self.ids.len(), || Ok(Reply::default()));
        self.run_with(|position, frame| {
            if let Some(Ok(reply)) = replies.get_mut(position)
                && let Err(e) = reply.take(frame)
                && let Some(slot) = replies.get_mut(position)
            {
                *slot = Err(e);
            }
        })?;
        Ok(replies)
    }

    /// The same, handing the frames of answers to `take` as they come, with the position of their
    /// request.
    ///
    /// # Errors
    /// As for [`Pipeline::run`].
    pub fn run_with(&mut self, mut take: impl FnMut(usize, &esker_wire::Frame<'_>)) -> Result<()> {
        let requests = std::mem::take(&mut self.client.out);
        let ids = std::mem::take(&mut self.ids);
        self.client.send()?;
        let mut left = ids.len();
        let mut receive = |socket: &mut Socket| -> Result<()> {
            while left > 0 {
                left -= usize::from(socket.receive(|frame| {
                    let position = frame.id.wrapping_sub(self.first) as usize;
                    take(position, frame);
                    frame.is_last()
                })?);
            }
            Ok(())
        };
        if requests.len() <= SENT_BYTES {
            self.client.socket.write(&requests)?;
            receive(&mut self.client.socket)?;
        } else {
            let mut writer = self.client.socket.writer()?;
            let socket = &mut self.client.socket;
            beside(move || writer.write(&requests), || receive(socket))?;
        }
        self.client.is_broken = false;
        Ok(())
    }
}

/// Sends on one thread what is answered on another, so that neither side waits for the other to
/// read.
#[allow(clippy::disallowed_methods, reason = "a client has no seam: nothing here is simulated")]
fn beside(
    send: impl FnOnce() -> Result<()> + Send,
    receive: impl FnOnce() -> Result<()>,
) -> Result<()> {
    std::thread::scope(|scope| {
        let sending = scope.spawn(send);
        let received = receive();
        let sent = sending.join().map_err(|_| Error::connection("sending failed"))?;
        received.and(sent)
    })
}

/// The rows of a statement, as they come.
#[derive(Debug)]
pub struct Rows<'c> {
    client: &'c mut Client,
    id: u32,
    part: Reply,
    is_at_end: bool,
}

impl Rows<'_> {
    /// The columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.part.columns
    }

    /// The next rows, some thousand; `None` at the end.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn next_rows(&mut self) -> Result<Option<Vec<Vec<Value>>>> {
        while self.part.rows.is_empty() && !self.is_at_end {
            self.receive()?;
        }
        let rows = std::mem::take(&mut self.part.rows);
        Ok((!rows.is_empty()).then_some(rows))
    }

    fn receive(&mut self) -> Result<()> {
        let (id, part) = (self.id, &mut self.part);
        let taken = self.client.socket.receive(|frame| match frame.id == id || frame.id == 0 {
            true => part.take(frame),
            false => Ok(false),
        })?;
        self.is_at_end = *taken.as_ref().unwrap_or(&true);
        if self.is_at_end {
            self.client.is_broken = taken.as_ref().is_err_and(|e| e.code().is_none());
        }
        taken.map(drop)
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        if self.is_at_end {
            return;
        }
        let mut cancel = Vec::new();
        Call::cancel(self.id).frame(&mut cancel, self.id);
        let mut is_ended = self.client.socket.write(&cancel).is_err();
        while !is_ended {
            self.part.rows.clear();
            is_ended = self.receive().is_err() || self.is_at_end;
        }
    }
}
