//! Tables and buckets that a transaction of a session has made, altered, renamed or dropped, and
//! buckets that are altered.

use esker::Options;

use super::super::{Answer, Conflict, Expiry, Key, Request, Rows, Session};
use super::sql;
use crate::Code;

fn session() -> Session {
    Session::new(&Options::new().memory().unwrap())
}

/// What is asked of a table `b` with one row, other than in SQL.
fn requests() -> [Request; 6] {
    let keys = || vec![Key::Values(vec![1i64.into()])];
    let table = || "b".to_owned();
    [
        Request::Insert {
            table: table(),
            rows: Rows::Values(vec![vec![2i64.into()]]),
            conflict: Conflict::Fail,
        },
        Request::Get { table: table(), keys: keys() },
        Request::Exists { table: table(), keys: keys() },
        Request::Delete { table: table(), keys: keys() },
        Request::Schema { table: table() },
        Request::Query { json: r#"{"table": "b"}"#.into() },
    ]
}

/// Requests other than SQL looked names up in the database.
#[test]
fn a_table_created_in_a_transaction_is_there_for_every_request() {
    let mut session = session();
    session.run(sql("BEGIN")).unwrap();
    session.run(sql("CREATE TABLE b (id i64 PRIMARY KEY)")).unwrap();
    session.run(sql("INSERT INTO b VALUES (1)")).unwrap();
    for request in requests() {
        session.run(request.clone()).unwrap_or_else(|e| panic!("{request:?}: {e:?}"));
    }
    let Answer::Names(tables) = session.run(Request::Tables).unwrap() else { panic!() };
    assert_eq!(tables, ["b"]);
    let mut other = Session::new(session.database());
    for request in requests() {
        let error = other.run(request.clone()).unwrap_err();
        assert_eq!(error.code(), Code::NotFound, "{request:?}: {error:?}");
    }
    session.run(sql("COMMIT")).unwrap();
    let Answer::Flags(flags) = other.run(exists(&[1, 2])).unwrap() else { panic!() };
    assert_eq!(flags, [false, true], "one was deleted, one inserted");
}

fn exists(keys: &[i64]) -> Request {
    let keys = keys.iter().map(|key| Key::Values(vec![(*key).into()])).collect();
    Request::Exists { table: "b".to_owned(), keys }
}

/// The same for fields.
#[test]
fn a_field_added_in_a_transaction_is_there_for_every_request() {
    let mut session = session();
    session.run(sql("CREATE TABLE b (id i64 PRIMARY KEY)")).unwrap();
    session.run(sql("BEGIN")).unwrap();
    session.run(sql("ALTER TABLE b ADD COLUMN n i64")).unwrap();
    session.run(sql("INSERT INTO b VALUES (1, 2)")).unwrap();
    let Answer::Text(schema) = session.run(Request::Schema { table: "b".into() }).unwrap() else {
        panic!()
    };
    assert!(schema.contains("n i64"), "{schema}");
    let rows = Rows::Objects(vec![r#"{"id": 3, "n": 4}"#.into(), r#"{"id": 4}"#.into()]);
    session.run(Request::Insert { table: "b".into(), rows, conflict: Conflict::Fail }).unwrap();
    let rows = Rows::Values(vec![vec![5i64.into(), 6i64.into()]]);
    session.run(Request::Insert { table: "b".into(), rows, conflict: Conflict::Fail }).unwrap();
    let query = Request::Query { json: r#"{"table": "b", "select": ["n"]}"#.into() };
    let Answer::Result { result, .. } = session.run(query).unwrap() else { panic!() };
    assert_eq!(result.row_count(), 4);
    session.run(sql("ROLLBACK")).unwrap();
    let Answer::Flags(flags) = session.run(exists(&[1, 3, 4, 5])).unwrap() else { panic!() };
    assert_eq!(flags, [false; 4]);
}

/// The same for names that are given and taken away.
#[test]
fn a_table_renamed_or_dropped_in_a_transaction_is_that_for_every_request() {
    let mut session = session();
    session.run(sql("CREATE TABLE a (id i64 PRIMARY KEY)")).unwrap();
    session.run(sql("INSERT INTO a VALUES (1)")).unwrap();
    session.run(sql("BEGIN")).unwrap();
    session.run(sql("ALTER TABLE a RENAME TO b")).unwrap();
    for request in requests() {
        session.run(request.clone()).unwrap_or_else(|e| panic!("{request:?}: {e:?}"));
    }
    let rows = Rows::Objects(vec![r#"{"id": 3}"#.into()]);
    session.run(Request::Insert { table: "b".into(), rows, conflict: Conflict::Fail }).unwrap();
    session.run(sql("DROP TABLE b")).unwrap();
    for request in requests() {
        let error = session.run(request.clone()).unwrap_err();
        assert_eq!(error.code(), Code::NotFound, "{request:?}: {error:?}");
    }
    let Answer::Names(tables) = session.run(Request::Tables).unwrap() else { panic!() };
    assert!(tables.is_empty(), "{tables:?}");
    session.run(sql("ROLLBACK")).unwrap();
    let Answer::Names(tables) = session.run(Request::Tables).unwrap() else { panic!() };
    assert_eq!(tables, ["a"]);
}

/// It was refused, as there was no such bucket.
#[test]
fn a_put_in_a_transaction_makes_the_bucket_within_it() {
    let mut session = session();
    let entries = |key: &str| vec![(key.into(), b"v".to_vec())];
    let bucket = || "new".to_owned();
    let put = |key| Request::BucketPut {
        bucket: bucket(),
        entries: entries(key),
        expiry: Expiry::Default,
    };
    let begin = || Request::Begin { isolation: esker::Isolation::Snapshot, read_only: false };
    let count = |session: &mut Session| {
        let Answer::Names(names) = session.run(Request::Buckets).unwrap() else { panic!() };
        names.len()
    };
    session.run(begin()).unwrap();
    session.run(put("k")).unwrap();
    let keys = vec![b"k".to_vec(), b"n".to_vec()];
    let increment = Request::BucketIncrement { bucket: bucket(), key: b"n".to_vec(), by: 2 };
    assert!(matches!(session.run(increment).unwrap(), Answer::Number(2)));
    let get = Request::BucketGet { bucket: bucket(), keys };
    let Answer::Values(values) = session.run(get.clone()).unwrap() else { panic!() };
    assert_eq!(values[0], Some(b"v".to_vec()));
    assert!(values[1].is_some());
    let mut other = Session::new(session.database());
    assert_eq!((count(&mut session), count(&mut other)), (1, 0));
    session.run(Request::Rollback).unwrap();
    assert_eq!(count(&mut session), 0);
    session.run(begin()).unwrap();
    session.run(put("k")).unwrap();
    session.run(Request::Commit).unwrap();
    let Answer::Values(values) = other.run(get).unwrap() else { panic!() };
    assert_eq!(values, [Some(b"v".to_vec()), None]);
}

/// What would end a bucket is refused at once; it was done, and the bucket was none any more.
#[test]
fn a_change_of_a_bucket_is_refused_at_once() {
    let mut session = session();
    let put = |session: &mut Session| {
        let entries = vec![(b"k".to_vec(), b"v".to_vec())];
        session.run(Request::BucketPut { bucket: "b".into(), entries, expiry: Expiry::Default })
    };
    put(&mut session).unwrap();
    for change in [
        "ADD COLUMN n i64",
        "DROP COLUMN expires_at",
        "RENAME COLUMN value TO v",
        "RESET (expires)",
        "ALTER COLUMN value SET DEFAULT x'00'",
        "ALTER COLUMN value DROP NOT NULL",
        "ADD CONSTRAINT c CHECK (length(value) < 9)",
    ] {
        for within in [false, true] {
            if within {
                session.run(sql("BEGIN")).unwrap();
            }
            let error = session.run(sql(&format!("ALTER TABLE b {change}"))).unwrap_err();
            assert_eq!(error.code(), Code::InvalidRequest, "{change}: {error:?}");
            let message = error.message();
            assert!(message.contains("\"b\" is a bucket: "), "{change}: {message}");
            if within {
                session.run(sql("ROLLBACK")).unwrap();
            }
            put(&mut session).unwrap();
        }
    }
    let error = session.run(sql("CREATE UNIQUE INDEX u ON b (value)")).unwrap_err();
    assert!(error.message().contains("\"b\" is a bucket: "), "{error:?}");
    session.run(sql("CREATE INDEX i ON b (value)")).unwrap();
    session.run(sql("DROP INDEX i ON b")).unwrap();
    put(&mut session).unwrap();
    session.run(sql("ALTER TABLE b RENAME TO c")).unwrap();
    session.run(sql("DROP TABLE c")).unwrap();
}
