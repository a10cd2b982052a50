use esker::{Options, Value};

use super::{Answer, Conflict, Expiry, Fields, Key, Request, Rows, Session};
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
    assert_eq!(error.unwrap_err().message(), "row 0: unknown field \"ix\"; did you mean \"id\"?");
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
