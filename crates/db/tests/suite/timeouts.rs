//! Statements that take longer than they may end, and have changed nothing.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use esker::{
    ChangeOptions, DataType, Database, ErrorKind, Limits, Options, Query, QueryOptions, Schema,
};
use esker_query::model::{Change, Delete, Expr, Insert, InsertRows, Operator, Update};
use esker_vfs::{Clock, Environment};

const ROWS: i64 = 4_000;

/// The system's clock, which runs on by as much as one wishes whenever somebody looks.
#[derive(Debug)]
struct Slowed {
    inner: Arc<dyn Clock>,
    step_ns: AtomicU64,
    added_ns: AtomicU64,
}

impl Clock for Slowed {
    fn wall_us(&self) -> i64 {
        self.inner.wall_us()
    }

    fn monotonic_ns(&self) -> u64 {
        let step_ns = self.step_ns.load(Ordering::Relaxed);
        self.inner.monotonic_ns() + self.added_ns.fetch_add(step_ns, Ordering::Relaxed)
    }

    fn boottime_us(&self) -> i64 {
        self.inner.boottime_us()
    }

    fn boot_id(&self) -> Option<u128> {
        self.inner.boot_id()
    }
}

fn database(options: Options) -> (Database, Arc<Slowed>) {
    let mut environment = Environment::os();
    let (inner, step_ns) = (Arc::clone(&environment.clock), AtomicU64::new(0));
    let clock = Arc::new(Slowed { inner, step_ns, added_ns: AtomicU64::new(0) });
    environment.clock = Arc::clone(&clock) as Arc<dyn Clock>;
    let db = options.environment(environment).memory().unwrap();
    let schema = Schema::builder().field("n", DataType::I64).field("m", DataType::I64);
    let table = db.create_table("t", schema.primary_key(["n"]).build().unwrap()).unwrap();
    let rows: Vec<_> = (0..ROWS).map(|n| vec![n.into(), 0i64.into()]).collect();
    table.insert_many(&rows).unwrap();
    (db, clock)
}

/// A change of each kind, all of them of all rows.
fn changes() -> Vec<Change> {
    let next = Expr::field("n").binary(Operator::Add, Expr::literal(ROWS));
    let mut query = Query::table("t");
    query.select(next).select(Expr::literal(1i64));
    let set = vec![("m".to_owned(), Expr::literal(1i64))];
    vec![
        Change::Update(Update { table: "t".into(), set, ..Update::default() }),
        Change::Delete(Delete { table: "t".into(), ..Delete::default() }),
        Change::Insert(Insert {
            rows: InsertRows::Query(Box::new(query)),
            ..Insert::values("t", Vec::new())
        }),
    ]
}

fn unchanged(db: &Database) {
    let mut query = Query::table("t");
    let sum = |field| Expr::Aggregate {
        function: esker_query::model::Aggregate::Sum,
        operand: Some(Box::new(Expr::field(field))),
        distinct: false,
        order: Vec::new(),
    };
    query.select(sum("n")).select(sum("m")).select(Expr::count());
    let rows = db.query(&query).unwrap().to_rows();
    assert_eq!(rows, [[(ROWS * (ROWS - 1) / 2).into(), 0i64.into(), ROWS.into()]]);
}

#[test]
fn changes_that_take_too_long_change_nothing() {
    let (db, clock) = database(Options::new());
    // Looks while rows are found, and while they are changed: late and early in the work.
    for (looks, change) in
        [1u64, 5, 9, 14].iter().flat_map(|n| changes().into_iter().map(move |c| (*n, c)))
    {
        clock.step_ns.store(1_000_000_000, Ordering::Relaxed);
        let timeout = Some(Duration::from_secs(looks));
        let limits = Limits { timeout, ..Limits::default() };
        let options = ChangeOptions { limits, ..ChangeOptions::default() };
        let error = db.change_with(&change, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{change:?}: {error}");
        clock.step_ns.store(0, Ordering::Relaxed);
        unchanged(&db);
    }
    // With time enough, or no limit at all, they go through.
    for change in changes() {
        let limits = Limits { timeout: Some(Duration::from_secs(600)), ..Limits::default() };
        let options = ChangeOptions { limits, ..ChangeOptions::default() };
        assert!(db.change_with(&change, &options).is_ok());
    }
}

#[test]
fn the_database_says_what_holds_without_limits_of_ones_own() {
    let (db, clock) = database(Options::new().statement_timeout(Duration::from_secs(60)));
    let query = Query::table("t");
    assert!(db.query(&query).is_ok());
    clock.step_ns.store(100_000_000_000, Ordering::Relaxed);
    let error = db.query(&query).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let wanted = "the statement took longer than its timeout of 60000 ms: try again with more time";
    assert_eq!(error.to_string(), wanted);
    let error = db.query_json(r#"{"table": "t", "timeout_ms": 5}"#).unwrap_err();
    assert!(error.to_string().contains("of 5 ms"), "{error}");
    let limits = Limits { timeout: Some(Duration::from_secs(3_600_000)), ..Limits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    assert!(db.query_with(&query, &options).is_ok());
    for change in changes() {
        assert_eq!(db.change(&change).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}

#[test]
fn a_statement_has_its_own_flag() {
    let (db, _) = database(Options::new());
    let cancel = Arc::new(AtomicBool::new(true));
    let limits = Limits { cancel: Some(Arc::clone(&cancel)), ..Limits::default() };
    let options = ChangeOptions { limits, ..ChangeOptions::default() };
    for change in changes() {
        let error = db.change_with(&change, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
    let error = db.query_with(&Query::table("t"), &options.for_query()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    cancel.store(false, Ordering::Relaxed);
    unchanged(&db);
    assert!(db.query_with(&Query::table("t"), &options.for_query()).is_ok());
}

#[test]
fn many_rows_by_their_keys_that_take_too_long_change_nothing() {
    let (db, clock) = database(Options::new());
    let table = db.table("t").unwrap();
    let rows: Vec<_> = (ROWS..2 * ROWS).map(|n| vec![n.into(), 1i64.into()]).collect();
    let old: Vec<_> = (0..ROWS).map(|n| vec![n.into(), 1i64.into()]).collect();
    let keys: Vec<_> = (0..ROWS).map(|n| vec![n.into()]).collect();
    let updates: Vec<_> = keys.iter().map(|key| (key.clone(), vec![("m", 1i64.into())])).collect();
    let bucket = db.bucket("b").unwrap();
    let all = |limits: &Limits| {
        let mut batch = bucket.batch();
        for n in 0..ROWS {
            batch.put(&bucket, n.to_le_bytes(), b"v").unwrap();
        }
        [
            table.insert_many_with(&rows, limits),
            table.upsert_many_with(&old, limits),
            table.update_many_with(&updates, limits).map(drop),
            table.delete_many_with(&keys, limits).map(drop),
            batch.commit_with(limits),
        ]
    };
    // Looks while rows are fitted, and while they are staged.
    for looks in [1u64, 5, 15] {
        clock.step_ns.store(1_000_000_000, Ordering::Relaxed);
        let limits = Limits { timeout: Some(Duration::from_secs(looks)), ..Limits::default() };
        for (i, done) in all(&limits).into_iter().enumerate() {
            assert_eq!(done.unwrap_err().kind(), ErrorKind::TimedOut, "{i} after {looks}");
        }
        clock.step_ns.store(0, Ordering::Relaxed);
        unchanged(&db);
        assert_eq!(bucket.len().unwrap(), 0);
    }
    let cancel = Some(Arc::new(AtomicBool::new(true)));
    for done in all(&Limits { cancel, ..Limits::default() }) {
        assert_eq!(done.unwrap_err().kind(), ErrorKind::Cancelled);
    }
    unchanged(&db);
    for done in all(&Limits { timeout: Some(Duration::from_secs(600)), ..Limits::default() }) {
        done.unwrap();
    }
}
