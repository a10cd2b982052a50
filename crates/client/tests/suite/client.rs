//! The client beside a server.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use crate::served::Served;
use esker_client::{AsyncClient, Call, Client, Code, Duplicates, Format, Pool, Value};

fn people(server: &Served) -> Client {
    let mut client = Client::connect(&server.url()).unwrap();
    client.sql("CREATE TABLE people (id i64 PRIMARY KEY, name text)", &[]).unwrap();
    client
}

fn rows(count: i64) -> Vec<Vec<Value>> {
    (0..count).map(|id| vec![id.into(), format!("name {id}").into()]).collect()
}

#[test]
fn rows_are_stored_changed_and_removed() {
    let server = Served::start();
    let mut client = people(&server);
    client.insert("people", &rows(1000)).unwrap();
    let keys: Vec<Vec<Value>> = vec![vec![5i64.into()], vec![5000i64.into()]];
    let found = client.get_many("people", &keys).unwrap();
    assert_eq!(found, [Some(vec![5u8.into(), "name 5".into()]), None]);
    assert!(client.update("people", &[5i64.into()], &[("name", "x".into())]).unwrap());
    assert!(client.delete("people", &[6i64.into()]).unwrap());
    assert!(!client.exists("people", &[6i64.into()]).unwrap());
    let error = client.insert("people", &rows(1)).unwrap_err();
    assert_eq!(error.code(), Some(Code::AlreadyExists));
    client.ping().unwrap();
}

#[test]
fn a_large_pipeline_does_not_wait_for_itself() {
    let server = Served::start();
    let mut client = people(&server);
    client.insert("people", &rows(100)).unwrap();
    let keys: Vec<Vec<Value>> = (0..100i64).map(|id| vec![id.into()]).collect();
    let mut pipeline = client.pipeline();
    for _ in 0..3000 {
        pipeline.push(&Call::get("people", &keys));
    }
    let replies = pipeline.run().unwrap();
    assert!(replies.into_iter().all(|reply| reply.unwrap().found().unwrap().len() == 100));
}

#[test]
fn streams_end_early_and_the_connection_goes_on() {
    let server = Served::start();
    let mut client = people(&server);
    let mut load = client.load("people", Format::MessagePack, Duplicates::Error).unwrap();
    rows(50_000).iter().for_each(|row| load.push(row).unwrap());
    assert_eq!(load.finish().unwrap(), 50_000);
    let mut stream = client.stream("SELECT * FROM people", &[]).unwrap();
    assert_eq!(stream.columns().len(), 2);
    assert!(!stream.next_rows().unwrap().unwrap().is_empty());
    drop(stream);
    let mut count = 0;
    let mut stream = client.stream("SELECT id FROM people WHERE id >= ?", &[9i64.into()]).unwrap();
    while let Some(rows) = stream.next_rows().unwrap() {
        count += rows.len();
    }
    drop(stream);
    assert_eq!(count, 49_991);
    let error = client.stream("SELECT nam FROM people", &[]).unwrap_err();
    assert_eq!(error.code(), Some(Code::InvalidRequest));
    drop(client.load("people", Format::Csv, Duplicates::Error).unwrap());
    assert_eq!(client.sql("SELECT count(*) FROM people", &[]).unwrap().rows, [[50_000u16.into()]]);
}

#[test]
fn transactions_conflict() {
    let server = Served::start();
    let mut one = people(&server);
    one.insert("people", &rows(1)).unwrap();
    let mut other = Client::connect(&server.url()).unwrap();
    for client in [&mut one, &mut other] {
        client.begin().unwrap();
        client.update("people", &[0i64.into()], &[("name", "x".into())]).unwrap();
    }
    one.commit().unwrap();
    let error = other.commit().unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (Some(Code::Conflict), true));
}

#[test]
fn a_pool_gives_each_thread_a_connection() {
    let server = Served::start();
    let pool = Pool::new(&server.url(), 2);
    let (a, b) = (pool.get().unwrap(), pool.get().unwrap());
    drop(a);
    pool.get().unwrap().ping().unwrap();
    drop(b);
}

#[test]
fn a_pool_has_no_connection_with_a_transaction_of_somebody_else() {
    let server = Served::start();
    drop(people(&server));
    let pool = Pool::new(&server.url(), 1);
    for begin in [Call::begin(false, false), Call::sql(" begin;", &[])] {
        let mut client = pool.get().unwrap();
        client.call(&begin).unwrap();
        client.insert("people", &rows(1)).unwrap();
        drop(client);
        assert!(!pool.get().unwrap().exists("people", &[0i64.into()]).unwrap());
        // Not of this connection: there is nothing to commit.
        assert!(pool.get().unwrap().commit().is_err());
    }
    let mut client = pool.get().unwrap();
    client.begin().unwrap();
    client.sql("SAVEPOINT a", &[]).unwrap();
    client.insert("people", &rows(2)).unwrap();
    client.sql("ROLLBACK TO a", &[]).unwrap();
    client.insert("people", &rows(1)).unwrap();
    client.sql("COMMIT", &[]).unwrap();
    drop(client);
    assert!(pool.get().unwrap().exists("people", &[0i64.into()]).unwrap());
    assert!(!pool.get().unwrap().exists("people", &[1i64.into()]).unwrap());
}

#[test]
#[allow(clippy::disallowed_methods, reason = "sockets take real time")]
fn a_pool_replaces_connections_that_the_server_has_closed() {
    let server = Served::impatient(Duration::from_millis(200));
    let pool = Pool::new(&server.url(), 2);
    let (mut a, mut b) = (pool.get().unwrap(), pool.get().unwrap());
    a.ping().unwrap();
    b.ping().unwrap();
    drop((a, b));
    std::thread::sleep(Duration::from_millis(1_000));
    for _ in 0..5 {
        pool.get().unwrap().ping().unwrap();
    }
}

#[test]
fn a_pool_says_who_asks_on_each_connection() {
    let server = Served::start();
    // There is one database here, without a name, and whoever asks for another is told so.
    let pool = Pool::new(&server.url(), 2).hello(Some("any"), Some("other"));
    assert_eq!(pool.get().unwrap_err().code(), Some(Code::NotFound));
    assert_eq!(pool.get().unwrap_err().code(), Some(Code::NotFound), "none of them is kept");
    let pool = Pool::new(&server.url(), 2).hello(Some("any"), None);
    let (mut a, mut b) = (pool.get().unwrap(), pool.get().unwrap());
    a.ping().unwrap();
    b.ping().unwrap();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "clients of a test")]
fn a_pool_begins_again_what_met_somebody_else() {
    let server = Served::start();
    let pool = Pool::new(&server.url(), 4);
    pool.get().unwrap().bucket_put("b", "n", "0").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let add = |client: &mut Client| {
                        client.begin()?;
                        let text = client.bucket_get("b", "n")?.unwrap();
                        let n: u32 = String::from_utf8(text).unwrap().parse().unwrap();
                        client.bucket_put("b", "n", (n + 1).to_string())?;
                        client.commit()
                    };
                    while pool.run(add).is_err() {}
                }
            });
        }
    });
    assert_eq!(pool.get().unwrap().bucket_get("b", "n").unwrap().unwrap(), b"100");
    let mut attempts = 0;
    let failed = pool.run(|client| {
        attempts += 1;
        client.get("nothing", &[1i64.into()])
    });
    assert_eq!((failed.unwrap_err().code(), attempts), (Some(Code::NotFound), 1));
}

#[test]
fn async_clones_share_a_connection() {
    let server = Served::start();
    drop(people(&server));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = AsyncClient::connect(&server.url()).await.unwrap();
        let mut asked = Vec::new();
        for row in rows(500) {
            let client = client.clone();
            asked.push(tokio::spawn(
                async move { client.call(Call::insert("people", &[row])).await },
            ));
        }
        for answer in asked {
            answer.await.unwrap().unwrap();
        }
        let counted = client.call(Call::sql("SELECT count(*) FROM people", &[])).await.unwrap();
        assert_eq!(counted.rows, [[500u16.into()]]);
    });
}

/// Requests that have all come, and whose answers pass what the server gathers of them.
#[test]
fn answers_of_any_size_come_to_requests_that_came_at_once() {
    let server = Served::start();
    let mut client = people(&server);
    let text = "x".repeat(1_000);
    let rows: Vec<Vec<Value>> =
        (0..5_000i64).map(|id| vec![id.into(), text.as_str().into()]).collect();
    client.insert("people", &rows).unwrap();
    for count in [1_000, 2_000, 5_000] {
        let mut pipeline = client.pipeline();
        for id in 0..count {
            pipeline.push(&Call::get("people", &[vec![Value::Int(id)]]));
        }
        let replies = pipeline.run().unwrap();
        assert!(replies.into_iter().all(|reply| reply.unwrap().found().unwrap()[0].is_some()));
    }
}

#[test]
fn what_takes_too_long_is_cancelled_and_the_connection_goes_on() {
    let server = Served::start();
    let mut client = people(&server);
    let same: Vec<Vec<Value>> = (0..3_000i64).map(|id| vec![id.into(), "x".into()]).collect();
    client.insert("people", &same).unwrap();
    let long = "SELECT count(*) FROM people a JOIN people b USING (name)";
    let error = client.call_while(&Call::sql(long, &[]), || false).unwrap_err();
    assert_eq!(error.code(), Some(Code::Cancelled), "{error}");
    assert_eq!(client.sql("SELECT 1 AS n", &[]).unwrap().rows.len(), 1);
}

#[test]
fn temporary_tables_are_of_one_connection_until_it_ends() {
    let server = Served::start();
    let mut one = people(&server);
    one.insert("people", &rows(3)).unwrap();
    let mut other = Client::connect(&server.url()).unwrap();
    one.sql("CREATE TEMP TABLE s AS SELECT id FROM people WHERE id > 0", &[]).unwrap();
    other.sql("CREATE TEMP TABLE s (id i64 PRIMARY KEY)", &[]).unwrap();
    other.sql("INSERT INTO s SELECT id + 10 FROM people", &[]).unwrap();
    let count = "SELECT id FROM s WHERE id NOT IN (SELECT id FROM people)";
    let found = |client: &mut Client| client.sql(count, &[]).map(|reply| reply.rows.len());
    assert_eq!(found(&mut one).unwrap(), 0);
    assert_eq!(found(&mut other).unwrap(), 3);
    one.sql("BEGIN", &[]).unwrap();
    one.sql("INSERT INTO s VALUES (77)", &[]).unwrap();
    one.sql("CREATE TEMP VIEW v AS SELECT count(*) AS n FROM s JOIN people USING (id)", &[])
        .unwrap();
    assert_eq!(found(&mut one).unwrap(), 1);
    one.sql("ROLLBACK", &[]).unwrap();
    assert_eq!(found(&mut one).unwrap(), 0);
    assert_eq!(one.sql("SELECT * FROM v", &[]).unwrap_err().code(), Some(Code::NotFound));
    drop(other);
    let mut next = Client::connect(&server.url()).unwrap();
    assert_eq!(found(&mut next).unwrap_err().code(), Some(Code::NotFound));
}
