use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use esker::{Options, Value};
use esker_wire::frame::{Frame, GREETING_BYTES, greeting};
use esker_wire::{FrameWriter, Kind, Reader, pack, value};

use crate::auth::authenticator::{Authenticator, Open};
use crate::{Server, ServerConfig};

/// How long these servers wait for a client.
const PATIENCE: Duration = Duration::from_secs(3);

/// A server of its own, and a runtime that it runs on.
pub(crate) struct Running {
    runtime: tokio::runtime::Runtime,
    server: Option<Server>,
}

impl Running {
    /// With a table of people.
    fn start() -> Self {
        let database = Options::new().memory().unwrap();
        let schema = esker_import::schema_text::parse("id i64, name text, primary key (id)");
        database.create_table("people", schema.unwrap()).unwrap();
        Self::serve(&database)
    }

    /// Without anything.
    pub fn empty() -> Self {
        Self::serve(&Options::new().memory().unwrap())
    }

    pub fn serve(database: &esker::Database) -> Self {
        let change = ServerConfig::default();
        Self::with(change, || Arc::new(Open::new(database)))
    }

    /// Behind an admission, with changes of the configuration.
    pub fn with(
        change: ServerConfig,
        authenticator: impl FnOnce() -> Arc<dyn Authenticator>,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(async {
            let authenticator = authenticator();
            let config = ServerConfig { idle_timeout: PATIENCE, stall_timeout: PATIENCE, ..change };
            Server::start(config, authenticator).await.unwrap()
        });
        Self { runtime, server: Some(server) }
    }

    pub fn connect(&self) -> TcpStream {
        let address = self.server.as_ref().unwrap().address().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    pub fn binary(&self) -> Client {
        let mut stream = self.connect();
        stream.write_all(&greeting()).unwrap();
        let mut found = [0; GREETING_BYTES];
        stream.read_exact(&mut found).unwrap();
        assert_eq!(found, greeting());
        Client { stream, input: Vec::new() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.stop());
        }
    }
}

/// One side of a connection, frame by frame.
pub(crate) struct Client {
    pub stream: TcpStream,
    pub input: Vec<u8>,
}

impl Client {
    pub fn send(&mut self, id: u32, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        let mut frame = FrameWriter::new(&mut out, id, kind, 0);
        write(frame.payload());
        frame.finish();
        self.stream.write_all(&out).unwrap();
    }

    /// The next frame: its id, kind and payload.
    pub fn receive(&mut self) -> (u32, Kind, Vec<u8>) {
        loop {
            if let Some((frame, length)) = Frame::parse(&self.input, usize::MAX).unwrap() {
                let found = (frame.id, frame.kind().unwrap(), frame.payload.to_vec());
                self.input.drain(..length);
                return found;
            }
            let mut more = [0; 4096];
            let n = self.stream.read(&mut more).unwrap();
            assert!(n > 0, "the server hung up");
            self.input.extend_from_slice(&more[..n]);
        }
    }

    pub fn sql(&mut self, id: u32, text: &str) {
        self.send(id, Kind::Sql, |out| {
            pack::array(out, 2);
            pack::text(out, text);
            pack::array(out, 0);
        });
    }
}

pub(super) fn insert(out: &mut Vec<u8>, rows: &[(i64, &str)]) {
    pack::array(out, 3);
    pack::text(out, "people");
    pack::bool(out, false);
    pack::array(out, rows.len());
    for (id, name) in rows {
        value::write_values(out, [Value::Int(*id), Value::from(*name)].iter().map(Value::as_ref));
    }
}

pub(super) fn get(out: &mut Vec<u8>, keys: &[i64]) {
    pack::array(out, 2);
    pack::text(out, "people");
    pack::array(out, keys.len());
    keys.iter().for_each(|key| pack::int(out, *key));
}

#[test]
fn rows_go_in_and_come_out() {
    let server = Running::start();
    let mut client = server.binary();
    client.send(1, Kind::Insert, |out| insert(out, &[(1, "Ada"), (2, "Bob")]));
    assert_eq!(client.receive(), (1, Kind::Done, vec![0x92, 2, 0xc0]));
    client.send(2, Kind::Get, |out| get(out, &[2, 3]));
    let (id, kind, payload) = client.receive();
    assert_eq!((id, kind), (2, Kind::Done));
    assert_eq!(payload, [&[0x92, 0x92, 2, 0xa3], &b"Bob"[..], &[0xc0]].concat());
    let many: Vec<i64> = (0..3000).collect();
    client.send(3, Kind::Exists, |out| get(out, &many));
    let (_, _, payload) = client.receive();
    assert_eq!(payload[..6], [0xdc, 11, 184, 0xc2, 0xc3, 0xc3]);
    assert!(payload.len() == 3003 && payload[6..].iter().all(|found| *found == 0xc2));
    client.send(4, Kind::Insert, |out| insert(out, &[(9, "x"), (1, "Eve")]));
    let (_, kind, payload) = client.receive();
    assert_eq!(kind, Kind::Failed);
    let mut reader = Reader::new(&payload);
    reader.array_of(2).unwrap();
    assert_eq!(reader.text(), Ok("already_exists"));
}

#[test]
fn a_query_is_streamed_beside_other_requests() {
    let server = Running::start();
    let mut client = server.binary();
    client.sql(1, "SELECT count(*) AS n FROM people");
    client.send(2, Kind::Ping, pack::nil);
    let mut kinds = Vec::new();
    for _ in 0..4 {
        let (id, kind, _) = client.receive();
        kinds.push((id, kind));
    }
    kinds.sort_by_key(|(id, kind)| (*id, kind.code()));
    let of_query = [(1, Kind::Done), (1, Kind::Columns), (1, Kind::Rows)];
    assert_eq!(kinds, [&of_query[..], &[(2, Kind::Done)]].concat());
}

#[test]
fn transactions_are_of_their_connection() {
    let server = Running::start();
    let (mut one, mut other) = (server.binary(), server.binary());
    one.sql(1, " begin");
    assert_eq!(one.receive().1, Kind::Done);
    one.send(2, Kind::Insert, |out| insert(out, &[(5, "Eve")]));
    one.send(3, Kind::Get, |out| get(out, &[5]));
    assert_eq!(one.receive().0, 2);
    assert!(one.receive().2.len() > 2, "it sees its own change");
    other.send(1, Kind::Get, |out| get(out, &[5]));
    assert_eq!(other.receive().2, [0x91, 0xc0]);
    one.send(4, Kind::Commit, |_| ());
    assert_eq!(one.receive(), (4, Kind::Done, vec![0xc0]));
    other.send(2, Kind::Get, |out| get(out, &[5]));
    assert!(other.receive().2.len() > 2);
}

#[test]
fn rows_are_held_for_update_by_a_connection() {
    let server = Running::start();
    let (mut one, mut other) = (server.binary(), server.binary());
    other.send(1, Kind::Insert, |out| insert(out, &[(6, "Eve")]));
    other.receive();
    one.sql(1, "BEGIN");
    one.receive();
    one.sql(2, "SELECT name FROM people WHERE id = 6 FOR UPDATE");
    let kinds: Vec<Kind> = (0..3).map(|_| one.receive().1).collect();
    assert_eq!(kinds, [Kind::Columns, Kind::Rows, Kind::Done]);
    other.sql(2, "UPDATE people SET name = 'Eva' WHERE id = 6");
    assert_eq!(other.receive().1, Kind::Done);
    one.send(3, Kind::Commit, |_| ());
    let (_, kind, payload) = one.receive();
    assert_eq!(kind, Kind::Failed);
    assert!(payload.windows(8).any(|part| part == b"conflict"), "{payload:?}");
}

pub(super) fn bulk(client: &mut Client, id: u32, format: &str) {
    client.send(id, Kind::BulkBegin, |out| {
        pack::array(out, 3);
        for text in ["people", format, "error"] {
            pack::text(out, text);
        }
    });
}

#[test]
fn bulk_loads_are_all_or_nothing() {
    let server = Running::start();
    let mut client = server.binary();
    bulk(&mut client, 1, "messagepack");
    for chunk in 0..20 {
        client.send(1, Kind::BulkChunk, |out| {
            for i in 0..100 {
                let row = [Value::Int(chunk * 100 + i), Value::from("x")];
                value::write_values(out, row.iter().map(Value::as_ref));
            }
        });
    }
    client.send(1, Kind::BulkEnd, |_| ());
    assert_eq!(client.receive(), (1, Kind::Done, vec![0xcd, 7, 208]));
    bulk(&mut client, 2, "csv");
    client.send(2, Kind::BulkChunk, |out| out.extend_from_slice(b"id,name\n5000,a\n50"));
    client.send(2, Kind::BulkChunk, |out| out.extend_from_slice(b"01,b\nx,c\n"));
    client.send(2, Kind::BulkEnd, |_| ());
    assert_eq!(client.receive().1, Kind::Failed);
    client.send(3, Kind::Exists, |out| get(out, &[5000]));
    assert_eq!(client.receive().2, [0x91, 0xc2]);
    bulk(&mut client, 4, "ndjson");
    client.send(4, Kind::BulkChunk, |out| out.extend_from_slice(b"{\"id\": 7000}\n"));
    client.send(9, Kind::Cancel, |out| pack::uint(out, 4));
    let (id, kind, payload) = client.receive();
    assert_eq!((id, kind), (4, Kind::Failed));
    assert!(payload.windows(9).any(|part| part == b"cancelled"), "{payload:?}");
}

/// It was a commit of its own, which no rollback took back.
#[test]
fn a_load_within_a_transaction_is_refused() {
    let server = Running::start();
    let mut client = server.binary();
    client.send(1, Kind::Begin, |out| {
        pack::array(out, 2);
        pack::bool(out, false);
        pack::bool(out, false);
    });
    assert_eq!(client.receive().1, Kind::Done);
    bulk(&mut client, 2, "csv");
    client.send(2, Kind::BulkChunk, |out| out.extend_from_slice(b"id,name\n1,a\n"));
    client.send(2, Kind::BulkEnd, |_| ());
    let (id, kind, payload) = client.receive();
    assert_eq!((id, kind), (2, Kind::Failed));
    assert!(String::from_utf8_lossy(&payload).contains("expected no transaction"), "{payload:?}");
    client.send(3, Kind::Rollback, |_| ());
    assert_eq!(client.receive().1, Kind::Done);
    client.send(4, Kind::Exists, |out| get(out, &[1]));
    assert_eq!(client.receive().2, [0x91, 0xc2]);
}

#[test]
fn lines_of_json_are_answered_in_order() {
    let server = Running::start();
    let mut stream = server.connect();
    let lines = concat!(
        "{\"op\":\"insert\",\"table\":\"people\",\"row\":{\"id\":1,\"name\":\"Ada\"}}\n",
        "{\"id\":\"a\",\"op\":\"get\",\"table\":\"people\",\"keys\":[1,2]}\n",
        "\n{\"op\":\"sql\",\"sql\":\"SELECT name FROM people WHERE id = ?\",\"parameters\":[1]}\n",
        "{\"op\":\"update\",\"table\":\"people\",\"key\":1,\"fields\":{\"nam\":\"x\"}}\n",
        "{\"op\":\"bucket_put\",\"bucket\":\"b\",\"key\":\"k\",\"value\":\"v\"}\n",
        "{\"op\":\"bucket_get\",\"bucket\":\"b\",\"key\":\"k\"}\n",
        "{\"op\":\"gte\"}",
    );
    stream.write_all(lines.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let answers: Vec<String> = BufReader::new(stream).lines().map(Result::unwrap).collect();
    assert_eq!(answers[0], "{\"ok\":true,\"stored\":1}");
    assert_eq!(
        answers[1],
        "{\"id\":\"a\",\"ok\":true,\"rows\":[{\"id\":1,\"name\":\"Ada\"},null]}"
    );
    assert_eq!(answers[2], "{\"ok\":true,\"rows\":[{\"name\":\"Ada\"}]}");
    assert!(answers[3].contains("did you mean \\\"name\\\""), "{}", answers[3]);
    assert_eq!(answers[5], "{\"ok\":true,\"values\":[\"v\"]}");
    assert!(answers[6].starts_with("{\"error\":{\"code\":\"invalid_request\""), "{}", answers[6]);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "sockets take real time")]
fn clients_that_stall_are_left() {
    let server = Running::start();
    let mut silent = server.binary();
    bulk(&mut silent, 1, "csv");
    let mut deaf = server.binary();
    deaf.send(1, Kind::Insert, |out| insert(out, &[(1, &"x".repeat(60_000))]));
    deaf.receive();
    for id in 2..300 {
        deaf.send(id, Kind::Get, |out| get(out, &[1]));
    }
    let patience = std::time::Instant::now();
    while server.server.as_ref().unwrap().connections() > 0 {
        assert!(patience.elapsed() < Duration::from_secs(20), "they are still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn garbage_is_refused_and_harms_nobody() {
    let server = Running::start();
    let mut stream = server.connect();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains("wire protocol"), "{text}");
    let mut client = server.binary();
    client.send(1, Kind::Get, |out| out.extend_from_slice(&[0xdd, 0xff, 0xff, 0xff, 0xff]));
    assert_eq!(client.receive().1, Kind::Failed);
    client.stream.write_all(&[0xff; 16]).unwrap();
    let (id, kind, _) = client.receive();
    assert_eq!((id, kind), (0, Kind::Failed));
    assert_eq!(client.stream.read(&mut [0; 16]).unwrap(), 0, "it hangs up");
    server.binary().send(1, Kind::Ping, pack::nil);
}

#[test]
fn a_load_that_was_begun_is_taken_to_its_end_while_the_server_stops() {
    let mut server = Running::start();
    let (mut client, mut idle) = (server.binary(), server.binary());
    bulk(&mut client, 1, "csv");
    client.send(1, Kind::BulkChunk, |out| out.extend_from_slice(b"id,name\n1,a\n"));
    // Answered in order: the load has begun.
    client.send(2, Kind::Ping, |_| ());
    assert_eq!(client.receive().0, 2);
    let stopped = server.runtime.spawn(server.server.take().unwrap().stop());
    assert_eq!(idle.stream.read(&mut [0; 16]).unwrap(), 0, "who asks nothing is hung up on");
    client.send(3, Kind::Ping, |_| ());
    let (id, kind, payload) = client.receive();
    assert_eq!((id, kind), (3, Kind::Failed));
    assert!(payload.windows(11).any(|part| part == b"unavailable"), "{payload:?}");
    client.send(1, Kind::BulkChunk, |out| out.extend_from_slice(b"2,b\n"));
    client.send(1, Kind::BulkEnd, |_| ());
    assert_eq!(client.receive(), (1, Kind::Done, vec![2]));
    assert_eq!(client.stream.read(&mut [0; 16]).unwrap(), 0, "it is over then");
    server.runtime.block_on(stopped).unwrap();
}
