//! Faults of transactions that have been mended.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used, reason = "tests")]

use esker::{
    DataType, Database, Durability, ErrorKind, Isolation, Options, Schema, TransactionOptions,
};
use esker_query::model::{Change, Delete, Expr, Insert, InsertRows, OnConflict, SelectItem};

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder().field("k", DataType::I64).primary_key(["k"]).build().unwrap();
    db.create_table("t", schema).unwrap();
    let generated = Schema::builder().field("n", DataType::I64).build().unwrap();
    db.create_table("generated", generated).unwrap();
    db.bucket("b").unwrap();
    db
}

fn serializable() -> TransactionOptions {
    TransactionOptions::new().isolation(Isolation::Serializable)
}

/// Of a row with a generated key the oldest dead version told whether it had changed: a row that
/// somebody else had deleted came back.
#[test]
fn a_row_with_a_generated_key_that_was_deleted_is_a_conflict() {
    let db = database();
    let t = db.table("generated").unwrap();
    let id = t.insert(&[1i64.into()]).unwrap();
    t.update(&[id.into()], &[("n", 2i64.into())]).unwrap();
    let (changes, holds) = (db.begin().unwrap(), db.begin().unwrap());
    let held = holds.table("generated").unwrap();
    held.get_for_update(&[id.into()]).unwrap();
    held.insert(&[7i64.into()]).unwrap();
    let changed = changes.table("generated").unwrap();
    assert!(t.delete(&[id.into()]).unwrap());
    assert!(changed.update(&[id.into()], &[("n", 3i64.into())]).unwrap());
    assert_eq!(changes.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(holds.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(t.count().unwrap(), 0);
}

/// What RETURNING failed with left the rows changed.
#[test]
fn a_statement_whose_returning_fails_changes_nothing() {
    let db = database();
    db.table("t").unwrap().insert(&[1i64.into()]).unwrap();
    let transaction = db.begin().unwrap();
    let returning = Some(vec![SelectItem { expr: Expr::field("nosuch"), alias: None }]);
    let delete = Delete { table: "t".into(), returning: returning.clone(), ..Delete::default() };
    assert!(transaction.change(&Change::Delete(delete)).is_err());
    let insert = Insert {
        table: "t".into(),
        rows: InsertRows::Values(vec![vec![Expr::literal(2i64)]]),
        returning,
        fields: Vec::new(),
        overriding: None,
        on_conflict: OnConflict::Fail,
        conflict_key: Vec::new(),
        conflict_expressions: Vec::new(),
        conflict_filter: None,
    };
    assert!(transaction.change(&Change::Insert(insert)).is_err());
    assert!(transaction.is_unchanged());
    assert_eq!(transaction.table("t").unwrap().count().unwrap(), 1);
}

/// What a change had read was not remembered when the change was undone, or failed.
#[test]
fn what_a_change_has_read_counts_whatever_becomes_of_it() {
    let db = database();
    let b = db.bucket("b").unwrap();
    b.increment(b"x", 1).unwrap();
    let transaction = db.begin_with(serializable()).unwrap();
    let within = transaction.bucket("b").unwrap();
    let savepoint = transaction.savepoint();
    assert_eq!(within.increment(b"x", 0).unwrap(), 1);
    transaction.rollback_to(savepoint).unwrap();
    b.increment(b"x", 10).unwrap();
    within.put(b"y", b"1").unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);

    db.table("t").unwrap().insert(&[1i64.into()]).unwrap();
    let (one, other) =
        (db.begin_with(serializable()).unwrap(), db.begin_with(serializable()).unwrap());
    // One adds 2 since there is 1, the other removes 1 since there is no 2.
    assert!(one.table("t").unwrap().insert(&[1i64.into()]).is_err());
    one.table("t").unwrap().insert(&[2i64.into()]).unwrap();
    assert!(other.table("t").unwrap().get(&[2i64.into()]).unwrap().is_none());
    assert!(other.table("t").unwrap().delete(&[1i64.into()]).unwrap());
    other.commit().unwrap();
    assert_eq!(one.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

/// A query that failed half-way through the transaction's rows left later queries without some.
#[test]
fn a_query_that_failed_leaves_nothing_out_of_later_ones() {
    let db = database();
    let b = db.bucket("b").unwrap();
    b.put_many([(b"a", b"0"), (b"z", b"0")]).unwrap();
    let transaction = db.begin().unwrap();
    let within = transaction.bucket("b").unwrap();
    within.put(b"a", b"1").unwrap();
    within.put(b"z", b"1").unwrap();
    let savepoint = transaction.savepoint();
    within.put(b"m", b"1").unwrap();
    db.drop_table("b").unwrap();
    assert_eq!(within.len().unwrap_err().kind(), ErrorKind::Conflict);
    transaction.rollback_to(savepoint).unwrap();
    let all = within.iter().unwrap().map(|entry| entry.unwrap().to_pair());
    let expected = [b"a", b"z"].map(|key| (key.to_vec(), b"1".to_vec()));
    assert_eq!(all.collect::<Vec<_>>(), expected);
}

/// Memory ran out in the middle of a row, and the rows behind it had values of their neighbours.
#[test]
fn rows_are_made_anew_after_memory_ran_out() {
    let db = Options::new().memory_limit(64 << 20).memory().unwrap();
    db.bucket("b").unwrap();
    let hog = db.begin().unwrap();
    let hogs = hog.bucket("b").unwrap();
    for i in 0..14 {
        hogs.put([i], vec![i; 1 << 20]).unwrap();
        hogs.len().unwrap();
    }
    let transaction = db.begin().unwrap();
    let within = transaction.bucket("b").unwrap();
    let mut put = 0u8;
    while put < 100 && within.put([put], vec![put; 1 << 20]).is_ok() {
        put += 1;
        if within.len().is_err() {
            break;
        }
    }
    assert!(put < 100, "memory has a limit");
    drop(hogs);
    drop(hog);
    for i in 200..206u8 {
        within.put([i], [i]).unwrap();
    }
    for entry in within.iter().unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.value().first(), entry.key().first());
    }
}

#[test]
fn a_row_that_is_only_held_is_compared_at_the_commit() {
    let db = database();
    let b = db.bucket("b").unwrap();
    b.put(b"a", b"0").unwrap();
    let transaction = db.begin().unwrap();
    transaction.bucket("b").unwrap().get_for_update(b"a").unwrap();
    b.put(b"a", b"1").unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

/// Neither small limits nor what a savepoint keeps nor replaced rows were counted.
#[test]
fn all_that_a_transaction_keeps_counts() {
    let db = database();
    let limited = |bytes| db.begin_with(TransactionOptions::new().memory_limit(bytes)).unwrap();
    let transaction = limited(1_000);
    let e = transaction.bucket("b").unwrap().put(b"k", vec![1; 200_000]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::OverBudget);
    let transaction = limited(4 << 20);
    let within = transaction.bucket("b").unwrap();
    let _kept = transaction.savepoint();
    let puts = (0..200u8).take_while(|i| within.put(b"k", vec![*i; 1 << 20]).is_ok()).count();
    assert!((2..=5).contains(&puts), "{puts}");
    // Without a savepoint only the newest value counts, in the groups of queries, too.
    let transaction = limited(40 << 20);
    let within = transaction.bucket("b").unwrap();
    for i in 0..200u8 {
        within.put(b"k", vec![i; 1 << 20]).unwrap();
        assert_eq!(within.len().unwrap(), 1);
    }
    transaction.commit().unwrap();
}

#[test]
fn a_savepoint_is_of_its_transaction() {
    let db = database();
    let (one, other) = (db.begin().unwrap(), db.begin().unwrap());
    let savepoint = one.savepoint();
    let _own = other.savepoint();
    other.bucket("b").unwrap().put(b"k", b"v").unwrap();
    let e = other.rollback_to(savepoint).unwrap_err();
    assert!(e.to_string().contains("another transaction"), "{e}");
    assert!(other.bucket("b").unwrap().contains(b"k").unwrap());
}

/// A bucket that was cleared meanwhile was `NotFound` for a query, and not begun again.
#[test]
fn a_bucket_that_is_cleared_meanwhile_is_tried_again() {
    let db = database();
    let b = db.bucket("b").unwrap();
    b.put(b"a", b"0").unwrap();
    let mut attempts = 0;
    let count = db.transact(|transaction| {
        attempts += 1;
        let within = transaction.bucket("b")?;
        within.put(b"n", b"1")?;
        if attempts == 1 {
            b.clear()?;
        }
        within.len()
    });
    assert_eq!((count.unwrap(), attempts), (1, 2));
}

/// A table whose changes were all taken back still made the commit fail when it was altered.
#[test]
fn a_table_that_stays_as_it_was_is_no_conflict() {
    let db = database();
    let transaction = db.begin().unwrap();
    let savepoint = transaction.savepoint();
    transaction.table("t").unwrap().insert(&[1i64.into()]).unwrap();
    transaction.rollback_to(savepoint).unwrap();
    transaction.bucket("b").unwrap().put(b"k", b"v").unwrap();
    db.truncate_table("t").unwrap();
    transaction.commit().unwrap();
}

/// Where nobody waits for the disk, a transaction showed a commit whose sync had failed.
#[test]
fn a_commit_in_doubt_is_not_shown_to_transactions() {
    let late = Durability::Async { at_most: std::time::Duration::from_secs(1) };
    [late, Durability::Sync].into_iter().for_each(expect_doubt_is_told);
}

fn expect_doubt_is_told(durability: Durability) {
    use esker_vfs::sim::{CallKind, FaultKind, Options as SimOptions, Repeat, Script, Simulation};
    let machine = Simulation::new(3, SimOptions::default());
    let options = Options::new().background(false).durability(durability);
    let db = options.environment(machine.environment()).open("db").unwrap();
    let b = db.bucket("b").unwrap();
    b.put(b"k", b"old").unwrap();
    let fails = Script::fault(CallKind::Sync, 0, FaultKind::SyncErrorXfs, Repeat::ForEver);
    machine.add_script(fails.on_paths_with("log"));
    let sync = TransactionOptions::new().sync(true);
    let put = db.transact_with(sync, |transaction| transaction.bucket("b")?.put(b"k", b"new"));
    assert_eq!(put.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(b.get(b"k").unwrap().as_deref(), Some(&b"old"[..]));
    let told = db.transact(|transaction| transaction.bucket("b")?.contains(b"k"));
    assert!(told.is_err(), "{told:?}");
    let transaction = db.begin().unwrap();
    assert!(transaction.bucket("b").is_err());
}
