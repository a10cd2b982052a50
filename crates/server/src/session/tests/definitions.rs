//! Tables that a transaction of a session has made or altered, and buckets that are altered.
//!
//! The tests named `fault_…` pin wrong answers: names are resolved in the database, not in the
//! transaction. Each says what is right.

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

/// Right: every request of a transaction sees the tables that it has created, as SQL does.
#[test]
fn fault_a_a_table_created_in_a_transaction_is_found_by_queries_alone() {
    let mut session = session();
    session.run(sql("BEGIN")).unwrap();
    session.run(sql("CREATE TABLE b (id i64 PRIMARY KEY)")).unwrap();
    session.run(sql("INSERT INTO b VALUES (1)")).unwrap();
    for request in requests() {
        let error = session.run(request.clone()).unwrap_err();
        assert_eq!(error.code(), Code::NotFound, "{request:?}: {error:?}");
    }
    let Answer::Names(tables) = session.run(Request::Tables).unwrap() else { panic!() };
    assert!(tables.is_empty(), "{tables:?}");
    session.run(sql("COMMIT")).unwrap();
    for request in requests() {
        session.run(request).unwrap();
    }
}

/// Right: every request of a transaction sees the fields that it has added, as SQL does.
#[test]
fn fault_a_a_field_added_in_a_transaction_is_found_by_queries_alone() {
    let mut session = session();
    session.run(sql("CREATE TABLE b (id i64 PRIMARY KEY)")).unwrap();
    session.run(sql("BEGIN")).unwrap();
    session.run(sql("ALTER TABLE b ADD COLUMN n i64")).unwrap();
    session.run(sql("INSERT INTO b VALUES (1, 2)")).unwrap();
    let Answer::Text(schema) = session.run(Request::Schema { table: "b".into() }).unwrap() else {
        panic!()
    };
    assert!(!schema.contains("n i64"), "{schema}");
    let rows = Rows::Objects(vec![r#"{"id": 3, "n": 4}"#.into()]);
    let insert = Request::Insert { table: "b".into(), rows, conflict: Conflict::Fail };
    let error = session.run(insert).unwrap_err();
    assert!(error.message().contains("unknown field \"n\""), "{error:?}");
    let query = Request::Query { json: r#"{"table": "b", "select": ["n"]}"#.into() };
    session.run(query).unwrap();
    session.run(sql("SELECT n FROM b")).unwrap();
}

/// Right: a table that the transaction has dropped is not there for any request.
#[test]
fn fault_a_a_table_dropped_in_a_transaction_has_a_schema() {
    let mut session = session();
    session.run(sql("CREATE TABLE b (id i64 PRIMARY KEY)")).unwrap();
    session.run(sql("BEGIN")).unwrap();
    session.run(sql("DROP TABLE b")).unwrap();
    session.run(Request::Schema { table: "b".into() }).unwrap();
    let Answer::Names(tables) = session.run(Request::Tables).unwrap() else { panic!() };
    assert_eq!(tables, ["b"]);
}

/// Right: the put makes the bucket within the transaction, as it says that it does.
#[test]
fn fault_c_a_put_in_a_transaction_makes_no_bucket() {
    let mut session = session();
    let entries = vec![(b"k".to_vec(), b"v".to_vec())];
    let put = Request::BucketPut { bucket: "new".into(), entries, expiry: Expiry::Default };
    session
        .run(Request::Begin { isolation: esker::Isolation::Snapshot, read_only: false })
        .unwrap();
    assert_eq!(session.run(put.clone()).unwrap_err().code(), Code::NotFound);
    session.run(Request::Rollback).unwrap();
    session.run(put).unwrap();
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
