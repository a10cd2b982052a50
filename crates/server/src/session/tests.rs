mod definitions;
mod settings;
mod temporary;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use esker::{Options, Value};

use super::{Answer, Conflict, EntryRange, Everything, Expiry, Fields, Key, Request, Rows};
use super::{Session, SessionLimits};
use crate::Code;

fn sql(text: &str) -> Request {
    Request::Sql { text: text.into(), parameters: Vec::new() }
}

fn session() -> Session {
    let mut session = Session::new(&Options::new().memory().unwrap());
    session.run(sql("CREATE TABLE t (id i64 PRIMARY KEY, name text DEFAULT 'x')")).unwrap();
    session
}

fn get(session: &mut Session, id: i64) -> Option<Vec<Value>> {
    let keys = vec![Key::Values(vec![id.into()])];
    match session.run(Request::Get { table: "t".into(), keys }).unwrap() {
        Answer::Rows(rows) => rows.into_iter().next().unwrap().map(|row| row.into_values()),
        other => panic!("{other:?}"),
    }
}

fn insert(rows: Rows, conflict: Conflict) -> Request {
    Request::Insert { table: "t".into(), rows, conflict }
}

#[test]
fn objects_get_defaults_and_are_stored_all_or_none() {
    let mut session = session();
    let rows = Rows::Objects(vec![
        "{\"id\": 1, \"name\": \"a\"}".into(),
        "{\"id\": 2}".into(),
        "{\"name\": \"c\", \"id\": 3}".into(),
    ]);
    let stored = session.run(insert(rows.clone(), Conflict::Fail)).unwrap();
    assert!(matches!(stored, Answer::Stored { rows: 3, .. }), "{stored:?}");
    assert_eq!(get(&mut session, 2), Some(vec![2i64.into(), "x".into()]));
    let Rows::Objects(mut more) = rows else { panic!() };
    more.insert(0, "{\"id\": 4}".into());
    let error = session.run(insert(Rows::Objects(more), Conflict::Fail)).unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists);
    assert_eq!(get(&mut session, 4), None);
    let error = session.run(insert(Rows::Objects(vec!["{\"ix\": 4}".into()]), Conflict::Fail));
    assert_eq!(error.unwrap_err().message(), "row 1: unknown field \"ix\"; did you mean \"id\"?");
}

#[test]
fn a_transaction_sees_its_changes_and_rolls_back() {
    let mut session = session();
    session.run(sql("BEGIN")).unwrap();
    let rows = Rows::Values(vec![vec![1i64.into(), "a".into()]]);
    session.run(insert(rows, Conflict::Fail)).unwrap();
    let fields = Fields::Object("{\"name\": \"b\"}".into());
    let key = Key::Texts(vec!["1".into()]);
    session.run(Request::Update { table: "t".into(), key, fields }).unwrap();
    assert_eq!(get(&mut session, 1), Some(vec![1i64.into(), "b".into()]));
    session.run(Request::Rollback).unwrap();
    assert_eq!(get(&mut session, 1), None);
    assert_eq!(session.run(Request::Commit).unwrap_err().code(), Code::InvalidRequest);
}

#[test]
fn buckets_are_made_by_the_first_entry_and_not_by_reading() {
    let mut session = session();
    let read = Request::BucketGet { bucket: "b".into(), keys: vec![b"k".to_vec()] };
    assert_eq!(session.run(read.clone()).unwrap_err().code(), Code::NotFound);
    let entries = vec![(b"k".to_vec(), b"v".to_vec()), (b"l".to_vec(), b"w".to_vec())];
    let put = Request::BucketPut { bucket: "b".into(), entries, expiry: Expiry::Default };
    session.run(put).unwrap();
    let Answer::Values(values) = session.run(read).unwrap() else { panic!() };
    assert_eq!(values, [Some(b"v".to_vec())]);
    let keys = vec![b"k".to_vec(), b"l".to_vec(), b"m".to_vec()];
    let removed = session.run(Request::BucketRemove { bucket: "b".into(), keys }).unwrap();
    assert!(matches!(removed, Answer::Changed(2)), "{removed:?}");
}

struct Nowhere;

impl super::RowSink for Nowhere {
    fn columns(&mut self, _: &[esker_query::ResultColumn]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn rows(&mut self, _: &esker::Batch) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Those that a statement does not have were passed over: this one removed all rows.
#[test]
fn more_values_than_a_statement_has_parameters_are_refused() {
    let mut session = session();
    session.run(sql("INSERT INTO t (id) VALUES (1), (2)")).unwrap();
    for (text, found) in [
        ("DELETE FROM t", "expected 0 parameters, found 1"),
        ("SELECT id FROM t", "expected 0 parameters, found 1"),
        ("DELETE FROM t WHERE id = ? OR id = ?", "expected 2 parameters (?1, ?2), found 1"),
        ("BEGIN", "expected 0 parameters, found 1"),
    ] {
        let request = Request::Sql { text: text.into(), parameters: vec![7i64.into()] };
        let refused = session.run(request.clone()).unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::InvalidRequest, found));
        let refused = session.stream(request, &mut Nowhere).unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::InvalidRequest, found));
    }
    assert_eq!(session.database().table("t").unwrap().count().unwrap(), 2);
}

/// Two protocols took it, and the entry was gone at once.
#[test]
fn a_time_to_live_of_nothing_is_refused() {
    let mut session = session();
    let create = r#"{"task": "create_bucket", "bucket": "b", "ttl_ms": 0}"#;
    let requests = [
        Request::Admin(super::AdminTask::parse(create).unwrap()),
        Request::BucketPut {
            bucket: "b".into(),
            entries: vec![(b"k".to_vec(), b"v".to_vec())],
            expiry: Expiry::After(Duration::ZERO),
        },
    ];
    for request in requests {
        let refused = session.run(request).unwrap_err();
        assert_eq!(refused.message(), "time to live: expected more than 0");
        assert!(session.database().buckets().is_empty());
    }
}

/// The bucket was a commit of its own, before the put that failed.
#[test]
fn a_put_that_is_refused_makes_no_bucket() {
    let mut session = session();
    let (bucket, key) = (|| "b".to_owned(), || vec![0; 70_000]);
    for begin in ["SELECT 1 AS n", "BEGIN"] {
        session.run(sql(begin)).unwrap();
        for request in [
            Request::BucketPut {
                bucket: bucket(),
                entries: vec![(key(), b"v".to_vec())],
                expiry: Expiry::Default,
            },
            Request::BucketIncrement { bucket: bucket(), key: key(), by: 1 },
        ] {
            assert_eq!(session.run(request).unwrap_err().code(), Code::InvalidRequest);
            let Answer::Names(names) = session.run(Request::Buckets).unwrap() else { panic!() };
            assert!(names.is_empty(), "{begin}: {names:?}");
        }
    }
}

#[test]
fn pages_have_cursors() {
    let mut session = session();
    session.run(sql("INSERT INTO t (id) VALUES (1), (2), (3)")).unwrap();
    let json = r#"{"table": "t", "order": ["id"], "limit": 2, "total": true}"#.into();
    match session.run(Request::Query { json }).unwrap() {
        Answer::Page(page) => assert!(page.next.is_some() && page.total == Some(3)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn many_rows_are_updated_by_their_keys() {
    let mut session = session();
    session.run(sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")).unwrap();
    let update = |id: i64, name: &str| {
        let fields = vec![("name".to_owned(), Value::from(name))];
        (Key::Values(vec![id.into()]), Fields::Values(fields))
    };
    let many = |updates| Request::UpdateMany { table: "t".into(), updates };
    // Outside of a transaction, and in one.
    for begin in ["SELECT 1 AS n", "BEGIN"] {
        session.run(sql(begin)).unwrap();
        let updates = vec![update(1, "x"), update(3, "y"), update(1, "z"), update(9, "none")];
        let changed = session.run(many(updates)).unwrap();
        assert!(matches!(changed, Answer::Changed(3)), "{changed:?}");
        let wrong = session.run(many(vec![update(2, "w"), update(2, &"w".repeat(2))]));
        assert!(matches!(wrong, Ok(Answer::Changed(2))), "{wrong:?}");
        let fields = Fields::Object(r#"{"nme": 1}"#.into());
        let wrong = vec![update(1, "lost"), (Key::Texts(vec!["2".into()]), fields)];
        let error = session.run(many(wrong)).unwrap_err();
        assert_eq!(error.message(), "update 1: unknown field \"nme\"; did you mean \"name\"?");
        let expected = [(1i64, "z"), (2, "ww"), (3, "y")];
        for (id, name) in expected {
            assert_eq!(get(&mut session, id), Some(vec![id.into(), name.into()]));
        }
    }
}

/// Changes of many rows or entries, of which the last cannot be done.
fn half_done() -> [Request; 3] {
    let entry = |key: &[u8]| (key.to_vec(), b"1".to_vec());
    let objects = vec![r#"{"id": 8}"#.to_owned(), r#"{"name": "x", "id": 1}"#.to_owned()];
    let removed = [Key::Texts(vec!["1".into()]), Key::Texts(vec!["x".into()])].to_vec();
    [
        insert(Rows::Objects(objects), Conflict::Fail),
        Request::Delete { table: "t".into(), keys: removed },
        Request::BucketPut {
            bucket: "b".into(),
            entries: vec![entry(b"new"), entry(&[0; 70_000])],
            expiry: Expiry::Default,
        },
    ]
}

#[test]
fn what_fails_within_a_transaction_has_changed_nothing() {
    let mut session = session();
    session.run(sql("INSERT INTO t VALUES (1, 'a')")).unwrap();
    let entries = vec![(b"old".to_vec(), b"1".to_vec())];
    let put = Request::BucketPut { bucket: "b".into(), entries, expiry: Expiry::Default };
    session.run(put).unwrap();
    session.run(sql("BEGIN")).unwrap();
    for request in half_done() {
        let shown = format!("{request:?}");
        session.run(request).expect_err(&shown);
    }
    session.run(Request::Commit).unwrap();
    assert_eq!(get(&mut session, 1), Some(vec![1i64.into(), "a".into()]));
    assert_eq!(get(&mut session, 8), None);
    let keys = vec![b"new".to_vec(), b"old".to_vec()];
    let found = session.run(Request::BucketGet { bucket: "b".into(), keys }).unwrap();
    assert!(matches!(found, Answer::Values(v) if v == [None, Some(b"1".to_vec())]));
}

#[test]
fn many_keys_take_no_longer_than_a_statement_may() {
    let all = session();
    let database = all.database().clone();
    database.bucket("b").unwrap().put("old", "1").unwrap();
    let limits = SessionLimits { timeout: Some(Duration::from_nanos(1)), memory_bytes: None };
    let mut session = Session::with(&database, Arc::new(Everything), limits);
    let (bucket, table) = (|| "b".to_owned(), || "t".to_owned());
    let keys = || vec![b"old".to_vec(), b"new".to_vec()];
    let rows = || vec![Key::Texts(vec!["1".into()]), Key::Texts(vec!["2".into()])];
    let entries = keys().into_iter().map(|key| (key, b"2".to_vec())).collect();
    let values = vec![vec![1i64.into(), "a".into()], vec![2i64.into(), "b".into()]];
    let requests = [
        Request::Exists { table: table(), keys: rows() },
        insert(Rows::Values(values), Conflict::Fail),
        Request::Delete { table: table(), keys: rows() },
        Request::BucketPut { bucket: bucket(), entries, expiry: Expiry::Default },
        Request::BucketRemove { bucket: bucket(), keys: keys() },
        Request::BucketRange { bucket: bucket(), range: EntryRange::default() },
    ];
    for request in requests {
        let shown = format!("{request:?}");
        assert_eq!(session.run(request).expect_err(&shown).code(), Code::Timeout, "{shown}");
    }
    assert_eq!(database.table("t").unwrap().count().unwrap(), 0);
    assert_eq!(database.bucket("b").unwrap().get_copy("old").unwrap(), Some(b"1".to_vec()));
}

#[test]
fn many_rows_in_one_commit_end_with_the_time_of_a_statement() {
    let database = session().database().clone();
    let timeout = Some(Duration::from_millis(2));
    let limits = SessionLimits { timeout, memory_bytes: None };
    let mut limited = Session::with(&database, Arc::new(Everything), limits);
    let rows = |name: &str| -> Vec<Vec<Value>> {
        (0..50_000i64).map(|id| vec![id.into(), name.into()]).collect()
    };
    let (table, bucket) = (|| "t".to_owned(), || "b".to_owned());
    let keys = || (0..50_000i64).map(|id| Key::Values(vec![id.into()]));
    let update = |key| (key, Fields::Values(vec![("name".to_owned(), "c".into())]));
    let entries = || (0..50_000u32).map(|id| (id.to_le_bytes().to_vec(), b"1".to_vec()));
    let requests = || {
        [
            insert(Rows::Values(rows("a")), Conflict::Fail),
            insert(Rows::Values(rows("b")), Conflict::Replace),
            Request::UpdateMany { table: table(), updates: keys().map(update).collect() },
            Request::Delete { table: table(), keys: keys().collect() },
            Request::BucketPut {
                bucket: bucket(),
                entries: entries().collect(),
                expiry: Expiry::Default,
            },
        ]
    };
    database.bucket("b").unwrap();
    let mut unlimited = Session::new(&database);
    for (position, request) in requests().into_iter().enumerate() {
        let before = database.table("t").unwrap().count().unwrap();
        let error = limited.run(request.clone()).unwrap_err();
        assert_eq!(error.code(), Code::Timeout, "{position}: {error}");
        assert_eq!(database.table("t").unwrap().count().unwrap(), before, "{position}");
        assert_eq!(database.bucket("b").unwrap().len().unwrap(), 0);
        unlimited.run(request).unwrap();
    }
}

#[test]
fn many_rows_of_a_transaction_are_stored_as_long_as_they_are_wanted() {
    let mut all = session();
    let canceller = all.canceller();
    all.run(Request::Begin { isolation: esker::Isolation::Snapshot, read_only: false }).unwrap();
    let rows = |count: i64| (0..count).map(|id| vec![id.into(), "a".into()]).collect::<Vec<_>>();
    all.run(insert(Rows::Values(rows(2_500)), Conflict::Fail)).unwrap();
    canceller.cancel();
    let more = insert(Rows::Values(rows(5_000)), Conflict::Replace);
    assert_eq!(all.run(more).unwrap_err().code(), Code::Cancelled);
    // The second part of a thousand has a key twice: the first is not there either.
    let mut twice = rows(4_000).split_off(2_500);
    twice.push(vec![3_999.into(), "b".into()]);
    let refused = all.run(insert(Rows::Values(twice), Conflict::Fail));
    assert_eq!(refused.unwrap_err().code(), Code::AlreadyExists);
    all.run(Request::Commit).unwrap();
    let table = all.database().table("t").unwrap();
    assert_eq!(table.count().unwrap(), 2_500);
    // So many that they are a transaction of their own.
    let many = insert(Rows::Values(rows(100_500)), Conflict::Replace);
    assert!(matches!(all.run(many).unwrap(), Answer::Stored { rows: 100_500, .. }));
    assert_eq!(table.count().unwrap(), 100_500);
}

/// The rollback was refused, and the session stayed in the transaction.
#[test]
fn what_is_cancelled_late_is_rolled_back() {
    let mut session = session();
    let cancelled = super::retried(&mut session, |session| {
        session.run(insert(Rows::Objects(vec!["{\"id\": 1}".into()]), Conflict::Fail))?;
        session.canceller().cancel();
        Err::<(), _>(crate::Error::invalid("refused"))
    });
    assert_eq!(cancelled.unwrap_err().message(), "refused");
    assert!(!session.is_in_transaction());
    // Nor is a commit done that is not wanted any more.
    let cancelled = super::retried(&mut session, |session| {
        session.run(insert(Rows::Objects(vec!["{\"id\": 1}".into()]), Conflict::Fail))?;
        session.canceller().cancel();
        Ok(())
    });
    assert_eq!(cancelled.unwrap_err().code(), Code::Cancelled);
    assert!(!session.is_in_transaction());
    assert_eq!(get(&mut session, 1), None);
}

#[derive(Debug)]
struct Reads;

impl super::Access for Reads {
    fn expect(&self, level: super::Level, _table: Option<&str>) -> crate::Result<()> {
        match level {
            super::Level::Read => Ok(()),
            _ => Err(crate::Error::new(Code::Forbidden, "reads only")),
        }
    }
}

#[test]
fn who_may_only_read_takes_no_value_of_a_sequence() {
    let database = Options::new().memory().unwrap();
    let mut all = Session::new(&database);
    all.run(sql("CREATE SEQUENCE s")).unwrap();
    let mut reads = Session::with(&database, Arc::new(Reads), SessionLimits::default());
    for text in [
        "SELECT nextval('s')",
        "SELECT (SELECT nextval('s'))",
        "SELECT 1 WHERE EXISTS (SELECT nextval('s'))",
        "SELECT 1 ORDER BY nextval('s')",
        "SELECT * FROM (SELECT 1 AS x WHERE EXISTS (SELECT nextval('s'))) t",
        "EXPLAIN ANALYZE SELECT nextval('s')",
    ] {
        assert!(!sql(text).only_reads(), "{text}");
        let refused = reads.run(sql(text)).map(drop).unwrap_err();
        assert_eq!(refused.code(), Code::Forbidden, "{text}");
    }
    reads.run(sql("EXPLAIN SELECT nextval('s')")).unwrap();
    let Answer::Result { result, .. } = all.run(sql("SELECT nextval('s')")).unwrap() else {
        panic!("expected rows");
    };
    let rows: Vec<_> = result.rows().collect();
    assert_eq!(format!("{rows:?}"), "[[Int(1)]]");
}
