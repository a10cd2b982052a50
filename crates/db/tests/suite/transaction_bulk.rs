//! Removing many rows within a transaction.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use esker::{DataType, Database, ErrorKind, Isolation, Options, Schema, TransactionOptions, Value};

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    for (name, ordered) in [("by arrival", false), ("by key", true)] {
        let schema = Schema::builder().field("a", DataType::I64).field("b", DataType::I64);
        let schema = schema.primary_key(["a", "b"]);
        let schema = if ordered { schema.ordered_by_key() } else { schema };
        let table = db.create_table(name, schema.build().unwrap()).unwrap();
        let rows: Vec<_> = (0..30i64).map(|n| vec![(n / 10).into(), (n % 10).into()]).collect();
        table.insert_many(&rows).unwrap();
    }
    let generated = Schema::builder().field("n", DataType::I64).build().unwrap();
    let generated = db.create_table("generated", generated).unwrap();
    generated.insert_many(&[vec![1i64.into()], vec![2i64.into()]]).unwrap();
    let bucket = db.bucket("b").unwrap();
    bucket.put_many((0..9u8).map(|n| ([n], [n]))).unwrap();
    db
}

fn key(a: i64, b: i64) -> Vec<Value> {
    vec![a.into(), b.into()]
}

fn serializable() -> TransactionOptions {
    TransactionOptions::new().isolation(Isolation::Serializable)
}

#[test]
fn a_range_is_removed_with_what_the_transaction_has_put_into_it() {
    let db = database();
    for name in ["by arrival", "by key"] {
        let transaction = db.begin().unwrap();
        let t = transaction.table(name).unwrap();
        t.insert(&key(1, 77)).unwrap();
        assert!(t.delete(&key(1, 3)).unwrap());
        let savepoint = transaction.savepoint();
        let one: Vec<Value> = vec![1i64.into()];
        assert_eq!(t.delete_range(one.clone()..=one.clone()).unwrap(), 10);
        assert_eq!(t.delete_range(one.clone()..=one).unwrap(), 0);
        assert_eq!(t.count().unwrap(), 20);
        transaction.rollback_to(savepoint).unwrap();
        assert_eq!(t.count().unwrap(), 30);
        assert_eq!(t.delete_range(key(0, 5)..key(2, 1)).unwrap(), 16);
        assert_eq!(db.table(name).unwrap().count().unwrap(), 30);
        transaction.commit().unwrap();
        let left = db.table(name).unwrap();
        assert_eq!(left.count().unwrap(), 14);
        assert!(left.exists(&key(0, 4)).unwrap() && left.exists(&key(2, 1)).unwrap());
        assert!(!left.exists(&key(1, 77)).unwrap() && !left.exists(&key(2, 0)).unwrap());
    }
    let transaction = db.begin().unwrap();
    let e = transaction.table("generated").unwrap().delete_range(key(1, 1)..).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
}

#[test]
fn all_rows_that_a_transaction_sees_are_removed() {
    let db = database();
    let transaction = db.begin().unwrap();
    let within = |name| transaction.table(name).unwrap();
    within("generated").insert(&[3i64.into()]).unwrap();
    db.table("generated").unwrap().insert(&[4i64.into()]).unwrap();
    assert_eq!(within("generated").clear().unwrap(), 3);
    assert_eq!(within("by key").clear().unwrap(), 30);
    within("by key").insert(&key(5, 5)).unwrap();
    let bucket = transaction.bucket("b").unwrap();
    bucket.put(b"x", b"y").unwrap();
    assert_eq!((bucket.clear().unwrap(), bucket.len().unwrap()), (10, 0));
    transaction.commit().unwrap();
    let count = |name| db.table(name).unwrap().count().unwrap();
    // What came meanwhile stays.
    assert_eq!((count("generated"), count("by key")), (1, 1));
    assert!(db.bucket("b").unwrap().is_empty().unwrap());
    let reads = db.begin_with(TransactionOptions::new().read_only(true)).unwrap();
    let e = reads.table("by key").unwrap().clear().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ReadOnly);
}

/// First committer wins for each row that is removed, either way round.
#[test]
fn a_removed_row_that_somebody_changed_is_a_conflict() {
    for clears_first in [true, false] {
        let db = database();
        let (clears, puts) = (db.begin().unwrap(), db.begin().unwrap());
        assert_eq!(clears.bucket("b").unwrap().remove_range(&[3u8][..]..&[5u8][..]).unwrap(), 2);
        let bound: Vec<Value> = vec![1i64.into()];
        clears.table("by arrival").unwrap().delete_range(..bound).unwrap();
        puts.bucket("b").unwrap().put([4], b"new").unwrap();
        let (first, second) = if clears_first { (clears, puts) } else { (puts, clears) };
        first.commit().unwrap();
        assert_eq!(second.commit().unwrap_err().kind(), ErrorKind::Conflict);
        let left = db.table("by arrival").unwrap().count().unwrap();
        assert_eq!(left, if clears_first { 20 } else { 30 });
    }
}

#[test]
fn a_row_that_comes_into_a_removed_range_is_a_conflict_of_serializable_ones_only() {
    for (options, conflicts) in [(TransactionOptions::new(), false), (serializable(), true)] {
        let db = database();
        let transaction = db.begin_with(options).unwrap();
        let bound: Vec<Value> = vec![1i64.into()];
        transaction.table("by key").unwrap().delete_range(..bound).unwrap();
        db.table("by key").unwrap().insert(&key(0, 99)).unwrap();
        assert_eq!(transaction.commit().is_err(), conflicts);
        let left = db.table("by key").unwrap().count().unwrap();
        assert_eq!(left, if conflicts { 31 } else { 21 });
    }
}
