//! Many requests in one commit, each with its own result.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fixture::Directory;
use esker::{
    DataType, Database, Error, ErrorKind, NewIndex, Options, Requests, Result, Schema, SharedSync,
    Transaction, Value, check,
};
use esker_query::model::{Expr, Operator};

/// A table of a number with a check, and a text that is unique.
fn database() -> Database {
    let db = Options::new().memory().unwrap();
    create(&db);
    db
}

fn create(db: &Database) {
    let schema = Schema::builder().field("n", DataType::I64).nullable("name", DataType::Text);
    let small = Expr::field("n").binary(Operator::Lt, Expr::literal(100i64));
    let small = check("small", &small).unwrap();
    let schema = schema.check(small.name, small.condition);
    let schema = schema.primary_key(["n"]).build().unwrap();
    db.create_table("t", schema).unwrap();
    db.create_index("t", NewIndex::new("by_name", ["name"]).unique()).unwrap();
}

fn row(n: i64, name: &str) -> Vec<Value> {
    vec![n.into(), name.into()]
}

fn insert(transaction: &Transaction, (n, name): &(i64, &str)) -> Result<u64> {
    transaction.table("t")?.insert(&row(*n, name))
}

fn kinds<R>(results: &[Result<R>]) -> Vec<Option<ErrorKind>> {
    results.iter().map(|result| result.as_ref().err().map(Error::kind)).collect()
}

fn names(db: &Database) -> Vec<String> {
    let query = r#"{"table": "t", "select": ["name"], "order": ["n"]}"#;
    let rows = db.query_json(query).unwrap().to_rows();
    rows.into_iter().map(|row| row[0].to_string()).collect()
}

#[test]
fn requests_share_a_commit_and_each_has_its_result() {
    let db = database();
    let before = db.published_commit();
    let requests = [(1, "a"), (2, "b"), (1, "c"), (100, "d"), (3, "e")];
    let results = db.coalesce(&requests, insert);
    let taken = Some(ErrorKind::AlreadyExists);
    let violated = Some(ErrorKind::ConstraintViolated);
    assert_eq!(kinds(&results), [None, None, taken, violated, None]);
    assert_eq!(db.published_commit(), before + 1);
    assert_eq!(names(&db), ["a", "b", "e"]);
    // Each sees what those before it have made.
    let counts = db.coalesce(&[(); 3], |within, ()| within.bucket("b")?.increment("n", 1));
    assert_eq!(kinds(&counts), [Some(ErrorKind::NotFound); 3]);
    db.bucket("b").unwrap();
    let before = db.published_commit();
    let counts = db.coalesce(&[(); 3], |within, ()| within.bucket("b")?.increment("n", 1));
    assert_eq!(counts.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(db.published_commit(), before + 1);
    assert!(db.coalesce(&[] as &[(i64, &str)], insert).is_empty());
}

/// What a request has changed before it failed is taken back, and nothing else.
#[test]
fn one_that_fails_half_way_has_changed_nothing() {
    let db = database();
    let results = db.coalesce(&[1i64, 2, 3], |within, n| {
        let table = within.table("t")?;
        table.insert(&row(n * 10, "first"))?;
        table.update(&[(n * 10).into()], &[("name", format!("name {n}").into())])?;
        match n {
            2 => Err(Error::new(ErrorKind::InvalidInput, "not two")),
            _ => Ok(table.count()?),
        }
    });
    assert_eq!(kinds(&results), [None, Some(ErrorKind::InvalidInput), None]);
    assert_eq!(names(&db), ["name 1", "name 3"]);
    assert_eq!(*results[2].as_ref().unwrap(), 2);
}

/// A unique value is known to be taken with the commit only: then each is a commit of its own.
#[test]
fn where_the_commit_is_refused_each_request_is_one() {
    let db = database();
    let before = db.published_commit();
    let requests = [(1, "a"), (2, "a"), (3, "b"), (4, "a")];
    let results = db.coalesce(&requests, insert);
    let taken = Some(ErrorKind::AlreadyExists);
    assert_eq!(kinds(&results), [None, taken, None, taken]);
    assert_eq!(db.published_commit(), before + 2);
    assert_eq!(names(&db), ["a", "b"]);
}

#[test]
fn others_that_are_quicker_are_met_again_and_then_apart() {
    let db = database();
    db.table("t").unwrap().insert(&row(1, "a")).unwrap();
    let runs = AtomicUsize::new(0);
    let results = db.coalesce(&["b", "c"], |within, name| {
        let table = within.table("t")?;
        let before = table.get(&[1i64.into()])?.unwrap().get("name").unwrap().to_string();
        // Each time that the first begins, but for the last of them.
        if *name == "b" && runs.fetch_add(1, Ordering::SeqCst) < 2 {
            db.table("t")?.update(&[1i64.into()], &[("name", format!("{before}!").into())])?;
        }
        table.update(&[1i64.into()], &[("name", format!("{before}{name}").into())])
    });
    assert_eq!(kinds(&results), [None, None]);
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    assert_eq!(names(&db), ["a!!bc"]);
}

#[test]
fn a_panic_leaves_nothing_behind() {
    let db = database();
    let attempt = AssertUnwindSafe(|| {
        db.coalesce(&[(1, "a"), (2, "b"), (3, "c")], |within, request| {
            assert_ne!(request.0, 2, "a request that fails");
            insert(within, request)
        })
    });
    assert!(catch_unwind(attempt).is_err());
    assert!(names(&db).is_empty());
    let results = db.coalesce(&[(1, "a"), (2, "b")], insert);
    assert_eq!(kinds(&results), [None, None]);
}

/// Puts into a bucket, which know a quicker way, up to one that is not to be done.
struct Puts<'d> {
    db: &'d Database,
    keys: &'d [&'d str],
    is_refused: bool,
    ways: Vec<&'static str>,
}

impl Requests for Puts<'_> {
    type Answer = String;

    fn count(&self) -> usize {
        self.keys.len()
    }

    fn at_once(&mut self) -> Option<Result<Vec<String>>> {
        self.ways.push("at once");
        if self.is_refused {
            return Some(Err(Error::new(ErrorKind::InvalidInput, "one by one")));
        }
        let bucket = self.db.bucket("b").unwrap();
        let puts = bucket.put_many(self.keys.iter().map(|key| (key, "at once")));
        Some(puts.map(|()| self.keys.iter().map(|key| (*key).to_owned()).collect()))
    }

    fn run(&mut self, at: usize, transaction: &Transaction) -> Result<Option<String>> {
        if self.keys[at] == "stop" {
            return Ok(None);
        }
        self.ways.push("together");
        transaction.bucket("b")?.put(self.keys[at], "together")?;
        Ok(Some(self.keys[at].to_owned()))
    }
}

#[test]
fn a_quicker_way_is_taken_and_the_last_may_be_left_out() {
    let db = database();
    let bucket = db.bucket("b").unwrap();
    let keys = ["x", "y", "stop", "z"];
    let mut puts = Puts { db: &db, keys: &keys[..2], is_refused: false, ways: Vec::new() };
    assert_eq!(kinds(&db.coalesce_requests(&mut puts).unwrap()), [None, None]);
    assert_eq!(puts.ways, ["at once"]);
    let mut puts = Puts { keys: &keys, is_refused: true, ways: Vec::new(), ..puts };
    assert_eq!(kinds(&db.coalesce_requests(&mut puts).unwrap()), [None, None]);
    assert_eq!(puts.ways, ["at once", "together", "together"]);
    assert_eq!(bucket.get("x").unwrap().unwrap(), b"together");
    assert_eq!(bucket.len().unwrap(), 2);
}

#[test]
fn requests_apart_wait_for_one_sync() {
    let dir = Directory::new("coalescing-apart");
    let db = Options::new().open(&dir.0).unwrap();
    create(&db);
    let (before, syncs) = (db.published_commit(), db.info().syncs.count);
    // The unique value is taken: no two of them may share a commit.
    let requests = [(0, "a"), (1, "a"), (2, "b"), (3, "b"), (4, "c"), (5, "c"), (6, "d"), (7, "d")];
    let results = db.coalesce(&requests, insert);
    let taken = Some(ErrorKind::AlreadyExists);
    assert_eq!(kinds(&results), [None, taken, None, taken, None, taken, None, taken]);
    assert_eq!(db.published_commit(), before + 4);
    assert!(db.is_durable(before + 4), "they are answered");
    assert_eq!(names(&db), ["a", "b", "c", "d"]);
    assert_eq!(db.info().syncs.count, syncs + 1);
}

/// All of them are visible once they are durable, and one sync is for all handles.
#[test]
fn deferred_requests_share_a_sync_and_are_seen_all_or_none() {
    let dir = Directory::new("coalescing");
    let db = Options::new().open(&dir.0).unwrap();
    create(&db);
    let syncs = SharedSync::new(&db);
    let (handles, mut newest) = ([db.deferred(), db.deferred()], 0);
    for (n, deferred) in [0i64, 10].into_iter().zip(&handles) {
        let names = [format!("{n} a"), format!("{n} b")];
        let requests = [(n, names[0].as_str()), (n + 1, &names[1])];
        let results = deferred.coalesce(&requests, insert);
        assert_eq!(kinds(&results), [None, None]);
        newest = deferred.take_commit().unwrap();
        syncs.want(newest);
    }
    assert!(names(&db).is_empty());
    let mut reached = Vec::new();
    syncs.run(|synced| reached.push(synced.unwrap()));
    assert_eq!(reached, [newest]);
    assert_eq!(names(&db).len(), 4);
    syncs.run(|_| panic!("nothing is wanted"));
    assert!(!syncs.is_stopped());
    syncs.stop();
    assert!(syncs.is_stopped());
    syncs.run(|_| panic!("it is stopped"));
}
