//! Tests of tails by frames.

use std::time::Duration;

use esker::{Database, Options, Value};
use esker_wire::pack::Token;
use esker_wire::value::read_values;
use esker_wire::{Kind, Reader, pack};

use super::safety::code_of;
use super::tests::{Client, Running};

fn run(database: &Database, text: &str) {
    let request = crate::Request::Sql { text: text.into(), parameters: Vec::new() };
    crate::Session::new(database).run(request).unwrap();
}

fn database() -> Database {
    let database = Options::new().memory().unwrap();
    run(
        &database,
        "CREATE TABLE events (t timestamp NOT NULL, n i64, id text) WITH (stream = 't')",
    );
    database
}

fn append(database: &Database, numbers: std::ops::Range<i64>) {
    let stream = database.stream("events").unwrap();
    let event = |n: i64| vec![Value::Timestamp(n), Value::Int(n), Value::Null];
    let rows: Vec<_> = numbers.map(event).collect();
    assert!(stream.append_many(&rows).iter().all(Result::is_ok));
}

fn tail(client: &mut Client, from: &str, filter: Option<&str>, credit: u64) {
    client.send(7, Kind::Tail, |out| {
        pack::array(out, 4);
        pack::text(out, "events");
        pack::text(out, from);
        match filter {
            Some(json) => pack::text(out, json),
            None => pack::nil(out),
        }
        pack::uint(out, credit);
    });
}

fn credit(client: &mut Client, credit: u64) {
    client.send(7, Kind::Credit, |out| pack::uint(out, credit));
}

fn cancel(client: &mut Client) {
    client.send(8, Kind::Cancel, |out| pack::uint(out, 7));
}

/// What a frame says, in short.
#[derive(Debug, PartialEq)]
enum Said {
    Columns(Vec<String>),
    At(u64, Option<(u64, u64)>),
    /// The numbers of events.
    Events(Vec<i64>),
    Done(u64),
    Failed(String),
}

fn said(client: &mut Client) -> Said {
    let (id, kind, payload) = client.receive();
    assert_eq!(id, 7);
    let mut reader = Reader::new(&payload);
    match kind {
        Kind::Columns => {
            let names = (0..reader.array().unwrap()).map(|_| {
                reader.array_of(2).unwrap();
                let name = reader.text().unwrap().to_owned();
                reader.text().unwrap();
                name
            });
            Said::Columns(names.collect())
        }
        Kind::Position => {
            reader.array_of(2).unwrap();
            let at = reader.uint().unwrap();
            let gap = match reader.token().unwrap() {
                Token::Nil => None,
                _ => Some((reader.uint().unwrap(), reader.uint().unwrap())),
            };
            Said::At(at, gap)
        }
        Kind::Rows => {
            let number = |row: Vec<Value>| match row[2] {
                Value::Uint(n) => n.try_into().unwrap(),
                _ => -1,
            };
            let count = reader.array().unwrap();
            Said::Events((0..count).map(|_| number(read_values(&mut reader).unwrap())).collect())
        }
        Kind::Done => Said::Done(reader.uint().unwrap()),
        _ => Said::Failed(code_of(&payload)),
    }
}

/// The columns and the first position.
fn begun(client: &mut Client, at: u64) {
    let names = ["id", "t", "n", "id_2"].map(str::to_owned);
    assert_eq!(said(client), Said::Columns(names.to_vec()));
    assert_eq!(said(client), Said::At(at, None));
}

/// The next events, so many of them.
fn events(client: &mut Client, count: usize) -> Vec<i64> {
    let mut all = Vec::new();
    while all.len() < count {
        match said(client) {
            Said::Events(more) => all.extend(more),
            Said::At(_, None) => {}
            other => panic!("{other:?}"),
        }
    }
    all
}

#[test]
fn events_are_told_as_far_as_there_is_credit() {
    let database = database();
    append(&database, 0..5);
    let server = Running::serve(&database);
    let mut client = server.binary();
    tail(&mut client, "start", None, 2);
    begun(&mut client, 0);
    assert_eq!(events(&mut client, 2), [0, 1]);
    // Other requests are answered beside it.
    client.send(9, Kind::Ping, |_| ());
    assert_eq!(client.receive().0, 9);
    credit(&mut client, 1);
    assert_eq!(events(&mut client, 1), [2]);
    credit(&mut client, 100);
    assert_eq!(events(&mut client, 2), [3, 4]);
    append(&database, 5..8);
    assert_eq!(events(&mut client, 3), [5, 6, 7]);
    cancel(&mut client);
    assert_eq!(said(&mut client), Said::Done(8));
    // From any place on, once more.
    for (from, at, expected) in [("5", 5, 5..8), ("00000000000000000000000007", 7, 7..8)] {
        tail(&mut client, from, None, 100);
        begun(&mut client, at);
        let expected: Vec<i64> = expected.collect();
        assert_eq!(events(&mut client, expected.len()), expected);
        cancel(&mut client);
        assert_eq!(said(&mut client), Said::Done(8));
    }
}

#[test]
fn a_filter_a_gap_and_other_columns_are_told() {
    let database = database();
    append(&database, 0..1_000);
    let server = Running::serve(&database);
    let mut client = server.binary();
    let filter = r#"{"field": "n", "op": "gte", "value": 998}"#;
    tail(&mut client, "start", Some(filter), 10);
    begun(&mut client, 0);
    assert_eq!(events(&mut client, 2), [998, 999]);
    run(&database, "ALTER TABLE events ADD COLUMN more text");
    append_wide(&database, 1_000);
    let names = ["id", "t", "n", "id_2", "more"].map(str::to_owned);
    assert_eq!(said(&mut client), Said::Columns(names.to_vec()));
    assert_eq!(events(&mut client, 1), [1_000]);
    cancel(&mut client);
    assert_eq!(said(&mut client), Said::Done(1_001));
    database.stream("events").unwrap().delete_before(500).unwrap();
    tail(&mut client, "3", Some(filter), 0);
    assert!(matches!(said(&mut client), Said::Columns(_)));
    assert_eq!(said(&mut client), Said::At(3, None));
    credit(&mut client, 10);
    let mut gap = None;
    while gap.is_none() {
        match said(&mut client) {
            Said::At(_, found) => gap = found,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(gap.unwrap().0, 4);
    assert_eq!(events(&mut client, 3), [998, 999, 1_000]);
    run(&database, "DROP TABLE events");
    loop {
        match said(&mut client) {
            Said::Failed(code) => break assert_eq!(code, "not_found"),
            Said::At(..) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn append_wide(database: &Database, n: i64) {
    let event = [Value::Timestamp(n), Value::Int(n), Value::Null, Value::Null];
    database.stream("events").unwrap().append(&event).unwrap();
}

#[test]
fn what_is_no_tail_is_refused() {
    let database = database();
    run(&database, "CREATE TABLE plain (id i64 PRIMARY KEY)");
    let server = Running::serve(&database);
    let mut client = server.binary();
    for from in ["soon", "77", "-1"] {
        tail(&mut client, from, None, 1);
        assert_eq!(said(&mut client), Said::Failed("invalid_request".to_owned()), "{from}");
    }
    tail(&mut client, "now", Some("{\"field\": \"m\"}"), 1);
    assert_eq!(said(&mut client), Said::Failed("invalid_request".to_owned()));
    client.send(7, Kind::Tail, |out| {
        pack::array(out, 4);
        pack::text(out, "plain");
        pack::nil(out);
        pack::nil(out);
        pack::uint(out, 1);
    });
    assert_eq!(said(&mut client), Said::Failed("invalid_request".to_owned()));
    client.sql(1, "BEGIN");
    client.receive();
    tail(&mut client, "now", None, 1);
    assert_eq!(said(&mut client), Said::Failed("invalid_request".to_owned()));
    // Credit of nothing is nobody's.
    credit(&mut client, 5);
    client.send(9, Kind::Ping, |_| ());
    assert_eq!(client.receive().0, 9);
}

#[test]
fn many_tails_of_one_connection_and_of_others_hear_the_same() {
    let database = database();
    let server = Running::serve(&database);
    let mut clients: Vec<Client> = (0..20).map(|_| server.binary()).collect();
    for client in &mut clients {
        tail(client, "now", None, 1_000);
        begun(client, 0);
    }
    // One never reads.
    let mut silent = server.binary();
    tail(&mut silent, "now", None, u64::MAX);
    for round in 0..10 {
        append(&database, round * 10..round * 10 + 10);
    }
    let expected: Vec<i64> = (0..100).collect();
    for client in &mut clients {
        assert_eq!(events(client, 100), expected);
    }
    drop(clients);
    append(&database, 100..101);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a client waits in real time")]
fn an_idle_tail_is_heard_and_ends_with_the_server() {
    let database = database();
    let server = Running::serve(&database);
    let mut client = server.binary();
    tail(&mut client, "now", None, 0);
    begun(&mut client, 0);
    // Longer than a connection without a request is kept.
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_secs(4) {
        assert_eq!(said(&mut client), Said::At(0, None));
    }
    let stopping = std::thread::spawn(move || drop(server));
    assert_eq!(said(&mut client), Said::Failed("unavailable".to_owned()));
    stopping.join().unwrap();
}
