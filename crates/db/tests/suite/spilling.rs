//! Queries that pass their budget: temporary files, and what becomes of them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use crate::fixture::Directory;
use esker::{
    DataType, Database, ErrorKind, Limits, Options, Query, QueryOptions, QueryResult, Result,
    Schema,
};
use esker_query::model::{Expr, OrderBy, SelectItem};
use esker_vfs::sim::{CallKind, FaultKind, Options as SimOptions, Repeat, Script, Simulation};

const ROWS: i64 = 6_000;

fn fill(db: &Database) -> Result<()> {
    let schema = Schema::builder().field("id", DataType::I64).field("name", DataType::Text);
    let table = db.create_table("t", schema.primary_key(["id"]).build()?)?;
    let text = |id: i64| format!("{:05}{}", id * 7_919 % ROWS, "x".repeat(150));
    let rows: Vec<_> = (0..ROWS).map(|id| vec![id.into(), text(id).into()]).collect();
    rows.chunks(500).try_for_each(|rows| table.insert_many(rows).map(drop))
}

/// The first few of many groups, and of many rows.
fn queries() -> [Query; 2] {
    let field = |name| SelectItem { expr: Expr::field(name), alias: None };
    let count = SelectItem { expr: Expr::count(), alias: None };
    let by_name = vec![OrderBy { expr: Expr::field("name"), descending: true, nulls_first: None }];
    let mut grouped = Query { group_by: vec![Expr::field("name")], ..Query::table("t") };
    grouped.select = vec![field("name"), count];
    // Without an order, a look at few rows would do.
    grouped.order_by.clone_from(&by_name);
    grouped.limit = Some(20.into());
    let mut sorted = Query { order_by: by_name, ..Query::table("t") };
    sorted.select = vec![field("id")];
    [grouped, sorted]
}

fn within(db: &Database, query: &Query, bytes: usize) -> Result<QueryResult> {
    let limits = Limits { memory_bytes: Some(bytes), ..Limits::default() };
    db.query_with(query, &QueryOptions { limits, ..QueryOptions::default() })
}

#[test]
fn a_database_on_disk_has_files_for_it_and_one_in_memory_says_what_it_needs() {
    if crate::is_on_disk() {
        return; // Of databases in memory.
    }
    let dir = Directory::new("spilling");
    let db = Options::new().open(&dir.0).unwrap();
    fill(&db).unwrap();
    let files = dir.files();
    let memory = Options::new().query_memory_limit(100_000).memory().unwrap();
    fill(&memory).unwrap();
    for query in queries() {
        let wanted = db.query(&query).unwrap().to_rows();
        assert_eq!(within(&db, &query, 100_000).unwrap().to_rows(), wanted, "{query}");
        assert_eq!(dir.files(), files);
        let error = memory.query(&query).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget);
        assert!(error.to_string().contains("its budget is 100000"), "{error}");
        assert_eq!(within(&memory, &query, 1 << 30).unwrap().to_rows(), wanted);
    }
    // The rows of an answer count, too.
    let error = within(&db, &Query::table("t"), 100_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget);
    assert!(
        error.to_string().ends_with("take it in parts, as a stream or page by page"),
        "{error}"
    );
    db.close().unwrap();
    // What a process left that died between giving a file its name and taking it away.
    std::fs::write(dir.0.join("temporary-00000000000000ff"), b"left").unwrap();
    let db = Options::new().open(&dir.0).unwrap();
    assert!(dir.files().iter().all(|name| !name.starts_with("temporary-")));
    db.close().unwrap();
}

#[test]
fn a_full_disk_refuses_the_query_and_nothing_is_left() {
    for query in queries() {
        // The first temporary file cannot be made, or the first, or a later write fails.
        let calls = [(CallKind::Create, 0), (CallKind::Write, 0), (CallKind::Write, 9)];
        for (call, skipped) in calls {
            let sim = Simulation::new(7, SimOptions::default());
            let environment = sim.environment();
            let options = Options::new().environment(environment.clone()).background(false);
            let db = options.open("/db").unwrap();
            fill(&db).unwrap();
            let names = environment.files.list("/db".as_ref()).unwrap();
            let fault = match call {
                CallKind::Create => FaultKind::NoSpaceOnCreate,
                _ => FaultKind::NoSpaceOnWrite,
            };
            let script = Script::fault(call, skipped, fault, Repeat::Once);
            sim.add_script(script.on_paths_with("temporary-"));
            let error = within(&db, &query, 50_000).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            assert!(error.is_retryable());
            assert_eq!(environment.files.list("/db".as_ref()).unwrap(), names);
            // The database goes on, and the same query answers later.
            db.table("t").unwrap().update(&[1i64.into()], &[("name", "y".into())]).unwrap();
            let again = within(&db, &query, 50_000).unwrap().to_rows();
            assert_eq!(again, db.query(&query).unwrap().to_rows());
        }
    }
}
