//! Handles whose calls leave it to the caller to wait for the disk.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::fixture::Directory;
use esker::{
    Alteration, DataType, Database, Durability, ErrorKind, Field, FieldId, Options, Schema, Ttl,
    Value,
};
use esker_query::model::{Change, Expr, Operator, Update};

/// A table with one row, on the disk.
fn with_row(directory: &Directory) -> Database {
    let db = Options::new().open(&directory.0).unwrap();
    let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]).build().unwrap();
    db.create_table("t", schema).unwrap().insert(&[0i64.into()]).unwrap();
    db
}

/// A sync that a write asks for is its own affair where others do not wait.
#[test]
fn a_write_that_asks_for_a_sync_waits_itself_where_others_do_not() {
    let dir = Directory::new("waiting");
    let at_most = Duration::from_secs(3_600);
    let db = Options::new().durability(Durability::Async { at_most }).open(&dir.0).unwrap();
    let deferred = db.deferred();
    let bucket = deferred.bucket("b").unwrap();
    for sync in [true, false] {
        let mut batch = deferred.batch();
        batch.sync(sync).put(&bucket, b"k", b"v").unwrap();
        batch.commit().unwrap();
        assert_eq!(deferred.commit(), None);
    }
    drop((bucket, deferred));
    db.close().unwrap();

    let db = Options::new().open(&dir.0).unwrap();
    let deferred = db.deferred();
    deferred.bucket("b").unwrap().put(b"k", b"w").unwrap();
    let commit = deferred.take_commit().unwrap();
    assert!(!db.is_durable(commit));
    assert_eq!(deferred.commit(), None);
    db.sync().unwrap();
    assert!(db.is_durable(commit));
}

#[test]
fn whatever_is_made_with_a_deferred_handle_is_deferred() {
    let dir = Directory::new("deferred");
    let db = with_row(&dir);
    let deferred = db.deferred();
    let mut newest = 0;
    let mut expect_noted = |what: &str| {
        let commit = deferred.take_commit().unwrap_or_else(|| panic!("{what}: nothing noted"));
        assert!(commit > newest && !db.is_durable(commit), "{what}: commit {commit}");
        newest = commit;
    };
    deferred.table("t").unwrap().insert(&[1i64.into()]).unwrap();
    expect_noted("a row");
    let bucket = deferred.bucket("b").unwrap();
    expect_noted("a bucket");
    bucket.with(Ttl::Never).increment("k", 1).unwrap();
    expect_noted("an entry");
    let mut batch = bucket.batch();
    batch.put(&bucket, "k", "v").unwrap();
    batch.commit().unwrap();
    expect_noted("a batch");
    let transaction = deferred.begin().unwrap();
    transaction.table("t").unwrap().insert(&[2i64.into()]).unwrap();
    transaction.commit().unwrap();
    expect_noted("a transaction");
    deferred.transact(|within| within.bucket("b")?.put("k", "w")).unwrap();
    expect_noted("a function in a transaction");
    deferred.create_sequence("s", 1, 1).unwrap();
    deferred.rename_table("t", "u").unwrap();
    expect_noted("a definition");
    deferred.waiting().bucket("b").unwrap().put("k", "x").unwrap();
    assert_eq!(deferred.commit(), None, "a handle that waits notes nothing");
    assert!(db.is_durable(newest));
}

#[test]
fn a_refusal_reports_the_commits_that_it_rests_on() {
    let dir = Directory::new("refused");
    let db = with_row(&dir);
    let (writer, other) = (db.deferred(), db.deferred());
    writer.table("t").unwrap().insert(&[1i64.into()]).unwrap();
    let written = writer.commit().unwrap();
    let table = other.table("t").unwrap();
    assert_eq!(other.commit(), None, "what was asked for has been durable for long");
    let refused = table.insert(&[1i64.into()]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    assert_eq!(other.take_commit(), Some(written));
    let nothing = other.table("none").unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::NotFound);
    assert_eq!(other.take_commit(), Some(written));
    let snapshot = other.snapshot().unwrap();
    assert_eq!(snapshot.table("none").err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(other.take_commit(), Some(written));
    assert!(!db.is_durable(written));
    // What is not deferred waits itself.
    db.table("t").unwrap().insert(&[1i64.into()]).unwrap_err();
    assert!(db.is_durable(written));
}

#[test]
fn deferred_handles_of_one_thread_do_not_mix() {
    let dir = Directory::new("two-handles");
    let db = with_row(&dir);
    let (first, second) = (db.deferred(), db.deferred());
    let (of_first, of_second) = (first.table("t").unwrap(), second.table("t").unwrap());
    of_first.insert(&[1i64.into()]).unwrap();
    of_second.insert(&[2i64.into()]).unwrap();
    of_first.insert(&[3i64.into()]).unwrap();
    let (newest, between) = (first.commit().unwrap(), second.commit().unwrap());
    assert!(between < newest);
    // Nor is anything left behind by a call that panicked.
    let panics = AssertUnwindSafe(|| {
        second.transact(|within| -> esker::Result<()> {
            within.table("t")?.insert(&[4i64.into()])?;
            panic!("a function that fails");
        })
    });
    assert!(catch_unwind(panics).is_err());
    assert_eq!((first.commit(), second.commit()), (Some(newest), Some(between)));
    db.table("t").unwrap().insert(&[4i64.into()]).unwrap();
    assert!(db.is_durable(newest));
}

#[test]
fn a_deferred_handle_of_two_threads_notes_the_newest_of_both() {
    let dir = Directory::new("two-threads");
    let db = with_row(&dir);
    let deferred = db.deferred();
    std::thread::scope(|threads| {
        for thread in [1i64, 2] {
            let deferred = &deferred;
            threads.spawn(move || {
                let table = deferred.table("t").unwrap();
                for n in 1..=100i64 {
                    table.insert(&[(thread * 1_000 + n).into()]).unwrap();
                }
            });
        }
    });
    let newest = deferred.commit().unwrap();
    assert!(!db.is_durable(newest));
    assert_eq!(db.table("t").unwrap().count().unwrap(), 1, "not durable, not visible");
    deferred.wait().unwrap();
    assert!(db.is_durable(newest));
    assert_eq!(db.table("t").unwrap().count().unwrap(), 201);
}

/// They conflicted with what the same handle had left to its caller to wait for, each time.
#[test]
fn what_is_tried_again_by_a_deferred_handle_sees_what_came_before() {
    let dir = Directory::new("tried-again");
    let db = Options::new().open(&dir.0).unwrap();
    let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    let schema = schema.nullable("m", DataType::I64).primary_key(["id"]).build().unwrap();
    let row = |id: i64| [id.into(), 1i64.into(), 2i64.into()];
    db.create_table("t", schema).unwrap().insert(&row(1)).unwrap();
    let deferred = db.deferred();
    let t = deferred.table("t").unwrap();
    let n = || Expr::field("n");
    // A statement of a row that was just changed.
    t.update(&[1i64.into()], &[("n", 5i64.into())]).unwrap();
    let set = vec![("n".into(), n().binary(Operator::Add, Expr::literal(1i64)))];
    let filter = Some(Expr::field("id").binary(Operator::Eq, Expr::literal(1i64)));
    let update = Update { table: "t".into(), set, filter, ..Update::default() };
    assert_eq!(deferred.change(&Change::Update(update)).unwrap(), 1);
    deferred.wait().unwrap();
    assert_eq!(t.get(&[1i64.into()]).unwrap().unwrap().values()[1], Value::Int(6));
    // What tests the rows of a table that has just got some.
    let positive = n().binary(Operator::Gt, Expr::literal(0i64));
    let check = |name| Alteration::AddCheck(esker::check(name, &positive).unwrap());
    for (id, change) in [(2, Alteration::SetNotNull("m".into())), (3, check("positive"))] {
        t.insert(&row(id)).unwrap();
        deferred.alter_table("t", &[change]).unwrap();
    }
    // The same of a table that has just got another field.
    let field = Field::new(FieldId(0), "more".into(), DataType::I64, true);
    deferred.alter_table("t", &[Alteration::AddField(field)]).unwrap();
    deferred.alter_table("t", &[check("as before")]).unwrap();
    let newest = deferred.commit().unwrap();
    assert!(!db.is_durable(newest), "the end of it is the caller's to wait for");
    deferred.wait().unwrap();
    assert_eq!((t.count().unwrap(), t.schema().checks().len()), (3, 2));
}
