//! Events that are added and told beside a server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::time::Duration;

use crate::served::Served;
use esker_client::{
    AppendOptions, AsyncClient, Call, Client, Code, ColumnValues, DataType, Told, Value, Values,
};

fn streams(server: &Served) -> Client {
    let mut client = Client::connect(&server.url()).unwrap();
    let table = "CREATE TABLE events (t timestamp NOT NULL, n i64) WITH (stream = 't')";
    client.sql(table, &[]).unwrap();
    client
}

fn rows(numbers: std::ops::Range<i64>) -> Vec<[Value; 2]> {
    numbers.map(|n| [Value::Timestamp(n), n.into()]).collect()
}

fn add(client: &mut Client, numbers: std::ops::Range<i64>) {
    let count = numbers.end - numbers.start;
    let told = client.append_many("events", &rows(numbers), &AppendOptions::default()).unwrap();
    assert_eq!(i64::try_from(told.accepted), Ok(count));
}

/// The number of an event.
fn number(told: &Told) -> u64 {
    match told {
        Told::Event(_, values) => match values[1] {
            Value::Uint(n) => n,
            _ => panic!("{told:?}"),
        },
        Told::Gap { .. } => panic!("a gap"),
    }
}

#[test]
fn a_tail_is_read_beyond_its_first_credit_and_the_connection_goes_on() {
    let server = Served::start();
    let mut client = streams(&server);
    add(&mut client, 0..5_000);
    let mut tail = client.tail("events", "start", None).unwrap();
    assert_eq!(tail.columns().len(), 2);
    let found: Vec<u64> = tail.by_ref().take(4_000).map(|told| number(&told.unwrap())).collect();
    assert_eq!(found, (0..4_000).collect::<Vec<_>>());
    let position = tail.position();
    assert_eq!(position, 4_000);
    drop(tail);
    client.ping().unwrap();
    let mut tail = client.tail("events", &position.to_string(), Some("n >= 4998")).unwrap();
    let told = tail.next_batch().unwrap();
    assert_eq!(told.iter().map(number).collect::<Vec<_>>(), [4_998, 4_999]);
    drop(tail);
    for (stream, after, filter) in
        [("events", "soon", None), ("events", "now", Some("m = 1")), ("events", "77777", None)]
    {
        let error = client.tail(stream, after, filter).unwrap_err();
        assert_eq!(error.code(), Some(Code::InvalidRequest), "{after} {filter:?}");
    }
    assert_eq!(client.tail("nowhere", "now", None).unwrap_err().code(), Some(Code::NotFound));
    client.ping().unwrap();
}

#[test]
fn a_tail_is_told_that_its_server_stops() {
    let server = Served::start();
    let mut client = streams(&server);
    let mut tail = client.tail("events", "now", None).unwrap();
    let stopping = std::thread::spawn(move || drop(server));
    let error = tail.next().unwrap().unwrap_err();
    assert_eq!(error.code(), Some(Code::Unavailable));
    assert!(tail.next().is_none());
    drop(tail);
    stopping.join().unwrap();
}

#[test]
fn a_column_that_does_not_fit_changes_nothing() {
    let server = Served::start();
    let mut client = streams(&server);
    let column = |data_type, values: Vec<i64>| ColumnValues {
        data_type,
        values: Values::I64(values),
        nulls: None,
    };
    let all =
        [("t", column(DataType::Timestamp, vec![1, 2])), ("n", column(DataType::Time, vec![3, 4]))];
    let error = client.append_columns("events", &all, &AppendOptions::default()).unwrap_err();
    assert_eq!(error.code(), Some(Code::InvalidRequest));
    assert!(error.to_string().starts_with("column \"n\": row 1: "), "{error}");
    let count = client.sql("SELECT count(*) FROM events", &[]).unwrap();
    assert_eq!(count.rows, [[Value::Uint(0)]]);
    let mut pipeline = client.pipeline();
    for n in 0..500 {
        pipeline.push(&Call::append_rows("events", &rows(n..n + 1), &AppendOptions::default()));
    }
    let replies = pipeline.run().unwrap();
    let ids = replies.into_iter().map(|reply| reply.unwrap().appended().unwrap().ids[0].unwrap());
    let ids: Vec<u64> = ids.map(|id| id.row_id).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "in the order in which they were sent");
}

#[test]
fn async_tails_are_told_beside_requests() {
    let server = Served::start();
    let mut client = streams(&server);
    let url = server.url();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let asking = AsyncClient::connect(&url).await.unwrap();
        let mut tails = Vec::new();
        for _ in 0..10 {
            tails.push(asking.tail("events", "now", None).await.unwrap());
        }
        add(&mut client, 0..2_000);
        for tail in &mut tails {
            for n in 0..2_000 {
                assert_eq!(number(&tail.next().await.unwrap().unwrap()), n);
            }
            assert_eq!(tail.position(), 2_000);
        }
        drop(tails);
        asking.call(Call::ping()).await.unwrap();
        let mut tail = asking.tail("events", "now", None).await.unwrap();
        let waited = tokio::time::timeout(Duration::from_millis(50), tail.next()).await;
        assert!(waited.is_err(), "nothing is told twice");
        add(&mut client, 2_000..2_001);
        assert_eq!(number(&tail.next().await.unwrap().unwrap()), 2_000);
    });
}
