//! Pools for tasks, and writes that are done once although connections break.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real sockets and files"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::sell::sell;
use crate::served::Served;
use esker_client::{AsyncPool, Call, Client, Code, Duplicates, Format, Pool};
use esker_server::auth::authenticator::Open;
use esker_server::{Server, ServerConfig};

const README: &str = include_str!("../../README.md");

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Stands before a server. The first connections break once the first answer to a request of them
/// has come from the server, which the client never sees.
struct Faulty {
    address: String,
    broken: Arc<AtomicUsize>,
}

impl Faulty {
    fn before(url: &str, faults: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let upstream = url.trim_start_matches("esker://").to_owned();
        let broken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&broken);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (mut client, mut server) =
                    (client.unwrap(), TcpStream::connect(&upstream).unwrap());
                let (mut sent, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut sent, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
                if counted.load(Ordering::SeqCst) < faults {
                    let mut greeting = [0; 6];
                    server.read_exact(&mut greeting).unwrap();
                    client.write_all(&greeting).unwrap();
                    let mut answer = [0; 64];
                    assert!(server.read(&mut answer).unwrap() > 0);
                    counted.fetch_add(1, Ordering::SeqCst);
                    client.shutdown(Shutdown::Both).unwrap();
                    continue;
                }
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut server, &mut client);
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
        });
        Self { address, broken }
    }
}

fn count_up() -> Call {
    Call::sql("UPDATE counters SET n = n + 1 WHERE id = 1", &[])
}

fn counters(server: &Served) -> Client {
    let mut client = Client::connect(&server.url()).unwrap();
    client.sql("CREATE TABLE counters (id i64 PRIMARY KEY, n i64)", &[]).unwrap();
    client.insert("counters", &[vec![1i64.into(), 0i64.into()]]).unwrap();
    client
}

fn counted(client: &mut Client) -> u64 {
    client.sql("SELECT n FROM counters WHERE n >= 0", &[]).unwrap().rows[0][0]
        .to_string()
        .parse()
        .unwrap()
}

#[test]
fn a_write_is_done_once_though_its_answer_is_lost() {
    let server = Served::start();
    let mut client = counters(&server);
    // Without a key nobody knows, and it must not be sent again.
    let faulty = Faulty::before(&server.url(), 1);
    let pool = Pool::new(&faulty.address, 2);
    let error = pool.run(|client| client.call(&count_up())).unwrap_err();
    assert_eq!((error.code(), counted(&mut client)), (None, 1));
    let faulty = Faulty::before(&server.url(), 3);
    let pool = Pool::new(&faulty.address, 2);
    assert_eq!(pool.call_once(&count_up()).unwrap().changed(), 1);
    assert_eq!((faulty.broken.load(Ordering::SeqCst), counted(&mut client)), (3, 2));
    // Each call has a key of its own.
    pool.call_once(&count_up()).unwrap();
    assert_eq!(counted(&mut client), 3);
    let faulty = Faulty::before(&server.url(), 2);
    runtime().block_on(async {
        let pool = AsyncPool::new(&faulty.address, 2);
        assert_eq!(pool.call_once(&count_up()).await.unwrap().changed(), 1);
    });
    assert_eq!((faulty.broken.load(Ordering::SeqCst), counted(&mut client)), (2, 4));
}

#[test]
fn a_key_is_of_one_kind_of_request_and_of_one_payload() {
    let server = Served::start();
    let mut client = counters(&server);
    let row = |n: i64| Call::insert("counters", &[vec![n.into(), (-n).into()]]);
    for call in [
        row(5).once("a").once("key of a key"),
        Call::get("counters", &[vec![1i64.into()]]).once("k"),
        Call::sql("BEGIN", &[]).once("k"),
        count_up().once(""),
        count_up().once(&"k".repeat(256)),
    ] {
        let error = client.call(&call).unwrap_err();
        assert_eq!(error.code(), Some(Code::InvalidRequest), "{error}");
    }
    for (call, other) in [
        (row(5), row(6)),
        (Call::delete("counters", &[vec![5i64.into()]]), Call::delete("counters", &[])),
        (count_up(), Call::sql("UPDATE counters SET n = 9 WHERE id = 1", &[])),
        (Call::bucket_put("b", &[("k", "v")]), Call::bucket_put("b", &[("k", "w")])),
        (Call::bucket_increment("b", b"n", 2), Call::bucket_increment("b", b"n", 3)),
        (Call::bucket_remove("b", &["k"]), Call::bucket_remove("b", &["l"])),
    ] {
        let first = client.call(&call.once("k")).unwrap();
        assert_eq!(client.call(&call.once("k")).unwrap(), first);
        let error = client.call(&other.once("k")).unwrap_err();
        assert!(error.to_string().contains("another body"), "{error}");
        assert_eq!(error.code(), Some(Code::InvalidRequest));
    }
    assert_eq!(counted(&mut client), 1);
    // What was refused is not kept, and what only reads has no use for a key.
    assert_eq!(client.call(&row(1).once("r")).unwrap_err().code(), Some(Code::AlreadyExists));
    client.delete("counters", &[1i64.into()]).unwrap();
    client.call(&row(1).once("r")).unwrap();
    let read = Call::sql("SELECT count(*) FROM counters", &[]).once("k");
    assert_eq!(client.call(&read).unwrap().rows, [[1u8.into()]]);
    client.begin().unwrap();
    let error = client.call(&count_up().once("t")).unwrap_err();
    assert_eq!(error.code(), Some(Code::InvalidRequest), "{error}");
    client.rollback().unwrap();
    assert_eq!(client.call(&Call::buckets()).unwrap().names().unwrap(), ["b"]);
}

#[test]
fn writes_with_keys_that_come_at_once_are_each_done_once() {
    let server = Served::start();
    let mut client = counters(&server);
    let mut pipeline = client.pipeline();
    for n in 0..64 {
        pipeline.push(&count_up().once(&format!("{}", n % 16)));
    }
    let replies = pipeline.run().unwrap();
    assert!(replies.iter().all(|reply| reply.as_ref().is_ok_and(|reply| reply.changed() == 1)));
    assert_eq!(counted(&mut client), 16);
}

#[test]
fn a_key_is_known_after_a_restart_and_lines_have_their_own() {
    let name = format!("esker-once-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&directory);
    let line = "{\"op\":\"sql\",\"sql\":\"UPDATE counters SET n = n + 1 WHERE id = 1 RETURNING n\"";
    for life in 0..3u64 {
        let runtime = runtime();
        let database = esker::Options::new().open(&directory).unwrap();
        let server = runtime.block_on(async {
            Server::start(ServerConfig::default(), Arc::new(Open::new(&database))).await.unwrap()
        });
        let address = server.address().unwrap().to_string();
        let mut client = Client::connect(&address).unwrap();
        if life == 0 {
            client.sql("CREATE TABLE counters (id i64 PRIMARY KEY, n i64)", &[]).unwrap();
            client.insert("counters", &[vec![1i64.into(), 0i64.into()]]).unwrap();
        }
        assert_eq!(client.call(&count_up().once("k")).unwrap().changed(), 1);
        let stream = TcpStream::connect(&address).unwrap();
        let mut answers = BufReader::new(stream.try_clone().unwrap());
        let mut ask = |line: &str| {
            (&stream).write_all(format!("{line}\n").as_bytes()).unwrap();
            let mut answer = String::new();
            answers.read_line(&mut answer).unwrap();
            answer.trim_end().to_owned()
        };
        // The id is not of the body, and members stand in any order.
        let answer = ask(&format!("{line},\"id\":{life},\"idempotency_key\":\"k\"}}"));
        assert_eq!(answer, format!("{{\"id\":{life},\"ok\":true,\"rows\":[{{\"n\":2}}]}}"));
        let other = line.replace("n + 1", "n + 2");
        let answer = ask(&format!("{other},\"idempotency_key\":\"k\"}}"));
        assert!(answer.contains("invalid_request") && answer.contains("another body"), "{answer}");
        assert_eq!(counted(&mut client), 2);
        drop(client);
        drop((stream, answers));
        runtime.block_on(server.stop());
        drop(runtime);
        database.close().unwrap();
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn the_program_of_the_readme_runs() {
    assert!(README.contains(include_str!("readme/sell.rs")));
    let server = Served::start();
    assert_eq!(runtime().block_on(sell(&server.url())).unwrap(), Some(3));
}

#[test]
fn a_pool_for_tasks_has_no_more_connections_than_it_may() {
    let server = Served::start();
    let pool = AsyncPool::new(&server.url(), 2);
    runtime().block_on(async {
        let (a, b) = (pool.get().await.unwrap(), pool.get().await.unwrap());
        a.call(Call::ping()).await.unwrap();
        b.call(Call::ping()).await.unwrap();
        let third = tokio::time::timeout(Duration::from_millis(50), pool.get());
        assert!(third.await.is_err());
        drop(a);
        let third = pool.get().await.unwrap();
        third.call(Call::ping()).await.unwrap();
    });
}

#[test]
fn a_pool_for_tasks_replaces_what_was_closed_and_what_has_a_transaction() {
    let server = Served::impatient(Duration::from_millis(200));
    drop(counters(&server));
    let pool = AsyncPool::new(&server.url(), 1);
    runtime().block_on(async {
        for begin in [Call::begin(false, false), Call::sql(" begin;", &[])] {
            let client = pool.get().await.unwrap();
            client.call(begin).await.unwrap();
            client.call(Call::insert("counters", &[vec![2i64.into(), 0i64.into()]])).await.unwrap();
            drop(client);
            let client = pool.get().await.unwrap();
            let found = client.call(Call::exists("counters", &[vec![2i64.into()]])).await.unwrap();
            assert_eq!(found.flags().unwrap(), [false]);
            assert!(client.call(Call::commit()).await.is_err(), "it is not of this connection");
        }
        tokio::time::sleep(Duration::from_millis(800)).await;
        for _ in 0..3 {
            pool.get().await.unwrap().call(Call::ping()).await.unwrap();
        }
        let refused = AsyncPool::new(&server.url(), 1).hello(Some("any"), Some("other"));
        for _ in 0..3 {
            assert_eq!(refused.get().await.unwrap_err().code(), Some(Code::NotFound));
        }
        let known = AsyncPool::new(&server.url(), 1).hello(Some("any"), None);
        known.get().await.unwrap().call(Call::ping()).await.unwrap();
    });
}

#[test]
fn a_pool_for_tasks_begins_again_what_met_somebody_else() {
    let server = Served::start();
    let mut client = counters(&server);
    let pool = AsyncPool::new(&server.url(), 4);
    runtime().block_on(async {
        let add = |client: esker_client::AsyncClient| async move {
            client.call(Call::begin(false, false)).await?;
            client.call(count_up()).await?;
            client.call(Call::commit()).await
        };
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let pool = pool.clone();
            tasks.push(tokio::spawn(async move {
                for _ in 0..10 {
                    while pool.run(add).await.is_err() {}
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(counted(&mut client), 40);
}

#[test]
fn a_load_is_done_once_though_its_answer_is_lost() {
    let server = Served::start();
    let mut client = Client::connect(&server.url()).unwrap();
    client.sql("CREATE TABLE t (id i64, name text)", &[]).unwrap();
    let faulty = Faulty::before(&server.url(), 2);
    let pool = Pool::new(&faulty.address, 2);
    let fill = |load: &mut esker_client::Load<'_>| {
        (0..10_000i64).try_for_each(|id| load.push(&[id.into(), "x".into()]))
    };
    // Keys are generated: sent twice without a key, the rows would be there twice.
    let loaded = pool.load_once("t", Format::MessagePack, Duplicates::Error, fill).unwrap();
    assert_eq!((loaded, faulty.broken.load(Ordering::SeqCst)), (10_000, 2));
    let count = |client: &mut Client| client.sql("SELECT count(*) FROM t", &[]).unwrap().rows;
    assert_eq!(count(&mut client), [[10_000i64.into()]]);
    // The rows are what the key is for.
    let load = |client: &mut Client, key: &str, table: &str, text: &str| {
        let mut load = client.load_once(table, Format::Csv, Duplicates::Error, key)?;
        load.push_text(text.as_bytes())?;
        load.finish()
    };
    assert_eq!(load(&mut client, "k", "t", "id,name\n1,a\n").unwrap(), 1);
    assert_eq!(load(&mut client, "k", "t", "id,name\n1,a\n").unwrap(), 1);
    let error = load(&mut client, "k", "t", "id,name\n1,b\n").unwrap_err();
    assert!(error.to_string().contains("used with another body"), "{error}");
    let error = load(&mut client, "", "t", "id,name\n1,b\n").unwrap_err();
    assert!(error.to_string().contains("1 to 255 characters"), "{error}");
    assert_eq!(count(&mut client), [[10_001i64.into()]]);
    // What was refused is not kept, and leaves nothing; the row is the one of the file.
    client.sql("CREATE TABLE u (id i64 PRIMARY KEY, name text)", &[]).unwrap();
    let rows: String = (0..9_000).map(|id| format!("{id},x\n")).collect();
    let twice = format!("id,name\n{rows}8500,y\n");
    let error = load(&mut client, "u", "u", &twice).unwrap_err();
    assert_eq!(error.code(), Some(Code::AlreadyExists));
    assert!(error.to_string().starts_with("row 9001: "), "{error}");
    assert_eq!(load(&mut client, "u", "u", &format!("id,name\n{rows}")).unwrap(), 9_000);
    let mut skips = client.load_once("u", Format::Csv, Duplicates::Skip, "s").unwrap();
    skips.push_text(b"id,name\n1,a\n").unwrap();
    assert!(skips.finish().unwrap_err().to_string().contains("skip is not for"));
    let again = client.sql("SELECT count(*) FROM u", &[]).unwrap().rows;
    assert_eq!(again, [[9_000i64.into()]]);
}
