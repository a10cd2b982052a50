//! Databases in asynchronous programs.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use esker::{Database, ErrorKind, Options, Record, Value};
use esker_sql::{AsyncDatabase, Named};
use futures_util::StreamExt;
use tokio::runtime::Builder;

#[derive(Debug, PartialEq, Record)]
struct Line {
    #[esker(key)]
    id: i64,
    word: String,
}

fn block_on<R>(work: impl Future<Output = R>) -> R {
    Builder::new_current_thread().build().unwrap().block_on(work)
}

/// A table with so many rows.
fn lines(count: i64) -> Database {
    let db = Options::new().memory().unwrap();
    let table = db.create_table_of::<Line>("lines").unwrap();
    let lines: Vec<_> = (0..count).map(|id| Line { id, word: format!("{id:0>100}") }).collect();
    table.insert_many(&lines).unwrap();
    db
}

#[test]
fn statements_and_their_errors() {
    block_on(async {
        let db = AsyncDatabase::new(Options::new().memory().unwrap());
        db.sql("CREATE TABLE t (id i64 PRIMARY KEY, word text)", ()).await.unwrap();
        let word = String::from("one"); // values may be borrowed
        db.sql("INSERT INTO t VALUES (?, ?)", (1, word.as_str())).await.unwrap();
        let insert = db.prepare("INSERT INTO t VALUES (:id, :word)").await.unwrap();
        let two = Named::new([("id", 2.into()), ("word", "two".into())]);
        assert_eq!(insert.execute(two).await.unwrap(), 1);
        let all = db.sql_as::<(i64, String)>("SELECT * FROM t ORDER BY id", ()).await.unwrap();
        assert_eq!(all, [(1, "one".to_owned()), (2, "two".to_owned())]);
        let of_key = db.prepare("SELECT word FROM t WHERE id = ?").await.unwrap();
        assert_eq!(of_key.first_as::<String>((2,)).await.unwrap().as_deref(), Some("two"));
        assert_eq!(of_key.query_as::<String>((3,)).await.unwrap(), Vec::<String>::new());
        let sum = db.run(|db| db.table("t")?.count()).await.unwrap();
        assert_eq!(db.sql_first::<u64>("SELECT count(*) FROM t", ()).await.unwrap(), Some(sum));

        let e = db.sql("SELECT ?", ()).await.unwrap_err();
        assert_eq!(e.to_string(), "expected 1 parameter (?1), found 0");
        let e = of_key.run(()).await.unwrap_err();
        assert_eq!(e.to_string(), "expected 1 parameter (?1), found 0");
        let e = db.sql("INSERT INTO t VALUES (1, 'x')", ()).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::AlreadyExists);
        let e = db.sql_rows("SELECT nothing FROM t", ()).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput);
        db.close().await.unwrap();
    });
}

#[test]
fn rows_come_while_the_query_waits_for_them_to_be_taken() {
    let db = lines(100_000);
    block_on(async {
        let here = AsyncDatabase::new(db.clone());
        let rows = here.sql_rows("SELECT * FROM lines", ()).await.unwrap();
        assert_eq!(rows.columns().len(), 2);
        let (mut rows, mut count, mut sum) = (rows.records::<Line>().unwrap(), 0, 0);
        while let Some(line) = rows.next().await {
            let line = line.unwrap();
            (count, sum) = (count + 1, sum + line.id);
            assert_eq!(line.word.len(), 100);
        }
        assert_eq!((count, sum), (100_000, 99_999 * 50_000));
        assert!(rows.next().await.is_none());
        let mut rows = here.sql_rows("SELECT * FROM lines", ()).await.unwrap();
        rows.next().await.unwrap().unwrap();
        let rest = rows.records::<Line>();
        assert!(rest.is_ok(), "rows at hand can be read as something else");
    });
    assert!(db.snapshots().is_empty());
}

#[test]
fn a_future_that_is_dropped_loses_no_row() {
    let db = lines(50_000);
    block_on(async {
        let here = AsyncDatabase::new(db.clone());
        let rows = here.sql_rows("SELECT id FROM lines ORDER BY id", ()).await.unwrap();
        let mut rows = rows.records::<i64>().unwrap();
        let mut expected = 0;
        loop {
            // Polled once and dropped.
            let polled = pin!(rows.next()).as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let id = match polled {
                Poll::Ready(row) => row,
                Poll::Pending => rows.next().await,
            };
            let Some(id) = id else { break };
            assert_eq!(id.unwrap(), expected);
            expected += 1;
        }
        assert_eq!(expected, 50_000);
    });
}

#[test]
fn rows_that_are_dropped_end_their_query() {
    let db = lines(100_000);
    block_on(async {
        let here = AsyncDatabase::new(db.clone());
        for taken in [0, 1, 20_000] {
            let mut rows = here.sql_rows("SELECT * FROM lines", ()).await.unwrap();
            for _ in 0..taken {
                rows.next().await.unwrap().unwrap();
            }
            drop(rows);
        }
        let mut rows = here.sql_rows("SELECT * FROM lines", ()).await.unwrap();
        let _ = rows.poll_next_unpin(&mut Context::from_waker(Waker::noop()));
        drop(rows); // while a thread waits for them
    });
    // The runtime has ended, and with it what waited for the ends of the queries.
    assert!(db.snapshots().is_empty(), "{:?}", db.snapshots());
}

#[test]
fn rows_that_are_dropped_while_they_are_waited_for_end_their_query_at_once() {
    let db = lines(100_000);
    let begun = Instant::now();
    block_on(async {
        let here = AsyncDatabase::new(db.clone());
        // Ten thousand million pairs, and none that is an answer.
        let pairs = "SELECT a.id FROM lines a JOIN lines b ON a.id + b.id < 0";
        let mut rows = here.sql_rows(pairs, ()).await.unwrap();
        let polled = rows.poll_next_unpin(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    });
    // The runtime waits for what it has begun.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(db.snapshots().is_empty());
}

/// Polls until it is ready, outside of any runtime.
fn spin<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    loop {
        match poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

#[test]
fn rows_are_taken_outside_of_their_runtime_and_end_with_it() {
    let db = lines(100_000);
    let here = AsyncDatabase::new(db.clone());
    let runtime = Builder::new_current_thread().build().unwrap();
    let ask = || runtime.block_on(here.sql_rows("SELECT id FROM lines", ())).unwrap();
    let mut rows = ask().records::<i64>().unwrap();
    let mut count = 0;
    while let Some(row) = spin(|context| rows.poll_next_unpin(context)) {
        row.unwrap();
        count += 1;
    }
    assert_eq!(count, 100_000);

    let mut rows = ask().records::<i64>().unwrap();
    drop(ask());
    let misfit = ask().records::<(i64, i64)>().unwrap_err().to_string();
    assert_eq!(misfit, "expected an answer of 2 columns, found 1: id");
    drop(runtime);
    let last = spin(|context| rows.poll_next_unpin(context)).unwrap();
    assert_eq!(last.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(spin(|context| rows.poll_next_unpin(context)).is_none());
    assert!(db.snapshots().is_empty(), "{:?}", db.snapshots());
}

#[test]
fn a_statement_that_answers_no_rows_is_not_run_where_rows_are_asked_for() {
    let db = lines(1);
    block_on(async {
        let here = AsyncDatabase::new(db.clone());
        let text = "DELETE FROM lines";
        let prepared = here.prepare(text).await.unwrap();
        for refused in [
            here.sql_as::<i64>(text, ()).await.map(drop),
            here.sql_first::<i64>(text, ()).await.map(drop),
            here.sql_rows(text, ()).await.map(drop),
            prepared.query_as::<i64>(()).await.map(drop),
            prepared.first_as::<i64>(()).await.map(drop),
            prepared.rows(()).await.map(drop),
        ] {
            assert_eq!(refused.unwrap_err().to_string(), "the statement answers no rows");
        }
    });
    assert_eq!(db.table("lines").unwrap().count().unwrap(), 1);
}

#[test]
fn a_write_whose_future_is_dropped_goes_on() {
    let db = lines(0);
    block_on(async {
        let here = AsyncDatabase::new(db.clone());
        {
            let mut write = pin!(here.sql("INSERT INTO lines VALUES (1, 'one')", ()));
            let _ = write.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        while here.run(|db| db.table("lines")?.count()).await.unwrap() == 0 {}
    });
    let one = db.table("lines").unwrap().get(&[Value::Int(1)]).unwrap().unwrap();
    assert_eq!(one.get("word"), Some(&"one".into()));
}

#[test]
#[should_panic(expected = "on purpose")]
fn a_panic_goes_on_where_it_is_waited_for() {
    let db = AsyncDatabase::new(Options::new().memory().unwrap());
    let work = async { db.run(|_| -> esker::Result<()> { panic!("on purpose") }).await };
    block_on(work).unwrap();
}
