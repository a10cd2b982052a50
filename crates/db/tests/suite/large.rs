//! Rows, commits and values that are too large for a frame of the log.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use crate::fixture::Directory;
use esker::{DataType, Database, Durability, ErrorKind, Options, Schema, Table, Value};
use esker_query::model::{Change, Expr, Function, Update};

fn documents(keyed: bool) -> Schema {
    let schema = Schema::builder().field("id", DataType::I64).nullable("body", DataType::Text);
    if keyed { schema.primary_key(["id"]) } else { schema }.build().unwrap()
}

fn row(id: i64, letter: &str, bytes: usize) -> Vec<Value> {
    vec![Value::Int(id), letter.repeat(bytes).into()]
}

fn open(dir: &Directory) -> Database {
    Options::new().open(&dir.0).unwrap()
}

fn is_sound(db: &Database) {
    assert_eq!(db.check().unwrap().problems, []);
    assert_eq!(db.recount(true).unwrap(), []);
}

fn body(t: &Table, key: i64) -> String {
    match t.get(&[Value::Int(key)]).unwrap().unwrap().values()[1].clone() {
        Value::Text(text) => text.to_string(),
        other => panic!("{other}"),
    }
}

/// Every way to write a row of 20 MiB, then again over it, then away; reopened in between.
#[test]
fn a_value_of_any_size_is_written_replaced_and_removed() {
    const BYTES: usize = 20 << 20;
    for keyed in [true, false] {
        let dir = Directory::new("large-value");
        let mut db = open(&dir);
        let t = db.create_table("t", documents(keyed)).unwrap();
        t.insert(&row(1, "small", 1)).unwrap();
        assert_eq!(t.insert(&row(2, "a", BYTES)).unwrap(), 2);
        let mut appender = t.appender();
        appender.append(&row(3, "b", BYTES)).unwrap();
        appender.append(&row(4, "c", 10)).unwrap();
        appender.finish().unwrap();
        let before = db.snapshot().unwrap();
        assert!(t.update(&[Value::Int(1)], &[("body", "d".repeat(BYTES).into())]).unwrap());
        assert!(t.update(&[Value::Int(2)], &[("body", "e".into())]).unwrap());
        assert!(t.delete(&[Value::Int(3)]).unwrap());
        if keyed {
            let e = t.insert(&row(1, "x", BYTES)).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::AlreadyExists);
            t.upsert_many(&[row(4, "f", BYTES), row(5, "g", 1)]).unwrap();
        }
        let old = before.table("t").unwrap();
        assert_eq!(old.count().unwrap(), 4);
        assert_eq!(old.get(&[Value::Int(1)]).unwrap().unwrap().values()[1], "small".into());
        drop((old, before));
        for stage in ["written", "reopened", "compacted", "reopened again"] {
            let t = db.table("t").unwrap();
            assert_eq!(t.count().unwrap(), if keyed { 4 } else { 3 }, "{stage}");
            assert!(body(&t, 1) == "d".repeat(BYTES), "{stage}");
            assert_eq!(body(&t, 2), "e", "{stage}");
            assert_eq!(t.get(&[Value::Int(3)]).unwrap(), None, "{stage}");
            if keyed {
                assert!(body(&t, 4) == "f".repeat(BYTES), "{stage}");
            }
            is_sound(&db);
            drop(t);
            if stage == "reopened" {
                db.compact(false, &mut |_, _| {}).unwrap();
            } else {
                db.close().unwrap();
                db = open(&dir);
            }
        }
    }
}

/// After replay the index led to the version before, which is dead, and nothing was found.
#[test]
fn a_row_without_a_declared_key_that_grew_large_can_be_changed_after_a_restart() {
    let dir = Directory::new("large-generated");
    let db = Options::new().background(false).open(&dir.0).unwrap();
    let t = db.create_table("t", documents(false)).unwrap();
    let key = [Value::Uint(t.insert(&row(1, "a", 1)).unwrap())];
    assert!(t.update(&key, &[("body", "b".into())]).unwrap());
    assert!(t.update(&key, &[("body", "c".repeat(20 << 20).into())]).unwrap());
    drop((t, db));
    let db = open(&dir);
    let t = db.table("t").unwrap();
    assert!(t.update(&key, &[("body", "d".into())]).unwrap());
    assert_eq!(t.get(&key).unwrap().unwrap().values()[1], "d".into());
    assert!(t.delete(&key).unwrap());
    assert_eq!(t.count().unwrap(), 0);
    is_sound(&db);
}

#[test]
fn many_rows_of_one_commit_are_all_there_or_none() {
    let dir = Directory::new("large-commit");
    let db = open(&dir);
    let t = db.create_table("t", documents(true)).unwrap();
    let rows: Vec<Vec<Value>> = (0..40_000).map(|id| row(id, "x", 1_000)).collect();
    let mut twice = rows.clone();
    twice.push(row(7, "y", 1));
    assert_eq!(t.insert_many(&twice).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(t.count().unwrap(), 0);
    t.insert_many(&rows).unwrap();
    let e = t.insert_many(&rows).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    let doubled = Expr::call(Function::Concat, [Expr::field("body"), Expr::field("body")]);
    let set = vec![("body".to_owned(), doubled)];
    let update = Update { table: "t".into(), set, ..Default::default() };
    assert_eq!(db.change(&Change::Update(update)).unwrap(), 40_000);
    is_sound(&db);
    db.close().unwrap();
    let db = open(&dir);
    let t = db.table("t").unwrap();
    assert_eq!(t.count().unwrap(), 40_000);
    assert_eq!(body(&t, 39_999).len(), 2_000);
    is_sound(&db);
}

#[test]
fn memory_databases_take_large_values_too() {
    let db = Options::new().memory().unwrap();
    let t = db.create_table("t", documents(true)).unwrap();
    t.insert(&row(1, "a", 20 << 20)).unwrap();
    t.upsert(&row(1, "b", 20 << 20)).unwrap();
    assert!(body(&t, 1) == "b".repeat(20 << 20));
    let numbers: Vec<Vec<Value>> =
        (10..(1 << 22) + 20).map(|id| vec![Value::Int(id), Value::Null]).collect();
    t.insert_many(&numbers).unwrap();
    assert_eq!(t.count().unwrap(), (1 << 22) + 11);
}

#[test]
fn limits_of_keys_values_and_memory_are_told() {
    let dir = Directory::new("large-limits");
    let db = Options::new().memory_limit(32 << 20).open(&dir.0).unwrap();
    let schema = Schema::builder().field("key", DataType::Text).nullable("n", DataType::I64);
    let t = db.create_table("t", schema.primary_key(["key"]).build().unwrap()).unwrap();
    let key = |bytes: usize| vec![Value::from("k".repeat(bytes)), Value::Null];
    t.insert(&key(64 << 10)).unwrap();
    let long = key((64 << 10) + 1);
    let mut load = t.load().unwrap();
    let errors = [
        t.insert(&long).unwrap_err(),
        t.upsert(&long).unwrap_err(),
        load.push_row(&long).unwrap_err(),
    ];
    for e in errors {
        assert_eq!(e.kind(), ErrorKind::InvalidInput);
        assert!(e.to_string().contains("a key of 65537 bytes, at most 65536"), "{e}");
    }
    drop(load);
    let documents = db.create_table("documents", documents(true)).unwrap();
    let e = documents.insert(&row(1, "x", 40 << 20)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::OverBudget, "{e}");
    assert_eq!(documents.count().unwrap(), 0);
    is_sound(&db);
}

/// Of several writers of one key, large or small, each wins or hears of it; nothing is half.
#[test]
fn large_commits_beside_small_ones() {
    let dir = Directory::new("large-beside");
    let options = Options::new()
        .durability(Durability::Async { at_most: std::time::Duration::from_millis(5) });
    let db = options.open(&dir.0).unwrap();
    let t = db.create_table("t", documents(true)).unwrap();
    t.insert(&row(0, "0", 1)).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let t = t.clone();
            scope.spawn(move || {
                for i in 0..20 {
                    let bytes = if writer == 0 { 5 << 20 } else { 10 };
                    let letter = format!("{}", i % 10);
                    match t.upsert_many(&[row(0, &letter, bytes), row(1, &letter, bytes)]) {
                        Ok(()) => {}
                        Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e}"),
                    }
                }
            });
        }
    });
    assert_eq!(body(&t, 0), body(&t, 1));
    is_sound(&db);
    db.close().unwrap();
    let db = open(&dir);
    is_sound(&db);
    assert_eq!(db.table("t").unwrap().count().unwrap(), 2);
}
