//! Whatever a statement computes has the limits of the statement.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use esker::{ChangeOptions, Database, ErrorKind, Limits, Options, Value};
use esker_sql::{ErrorKind as SqlErrorKind, Outcome, Sql, parse_statement, run};

fn database(statement: &str) -> Database {
    let db = Options::new().memory().unwrap();
    db.sql(statement, ()).unwrap();
    db
}

fn answer(db: &Database, text: &str, options: &ChangeOptions) -> esker::Result<Outcome> {
    run(db, &parse_statement(text).unwrap(), options)
}

fn within(memory_bytes: usize) -> ChangeOptions {
    let limits = Limits { memory_bytes: Some(memory_bytes), ..Limits::default() };
    ChangeOptions { limits, ..ChangeOptions::default() }
}

/// EXPLAIN had no parameters and no limits.
#[test]
fn a_plan_has_the_parameters_and_limits_of_the_statement() {
    let db = database("CREATE TABLE t (a i64)");
    let parameters = [Value::Int(7)].as_slice().into();
    let options = ChangeOptions { parameters, ..ChangeOptions::default() };
    let query = "EXPLAIN SELECT a FROM t WHERE a = ?";
    let plan = answer(&db, query, &options).unwrap();
    assert!(matches!(&plan, Outcome::Plan(text) if text.contains("where a = ?1")), "{plan:?}");
    assert!(answer(&db, query, &ChangeOptions::default()).is_err());
    let long = "EXPLAIN SELECT length(repeat('a', 8000000)) AS n FROM t";
    let error = answer(&db, long, &within(1 << 20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
    assert!(error.to_string().contains("repeat: the query needs more than"), "{error}");
    let limits = Limits { timeout: Some(Duration::ZERO), ..Limits::default() };
    let options = ChangeOptions { limits, ..ChangeOptions::default() };
    assert_eq!(answer(&db, long, &options).unwrap_err().kind(), ErrorKind::TimedOut);
}

/// Checks were computed without the limits of the statement whose rows they are of.
#[test]
fn checks_have_the_limits_of_the_statement() {
    let check =
        "CREATE TABLE t (k i64 PRIMARY KEY, a text, CHECK (length(repeat(a, 8000000)) > 9))";
    let db = database(check);
    let insert = "INSERT INTO t VALUES (1, 'a')";
    let refuse = |text: &str| {
        let error = answer(&db, text, &within(1 << 20)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{text}: {error}");
    };
    refuse(insert);
    answer(&db, insert, &within(64 << 20)).unwrap();
    refuse("UPDATE t SET a = 'b'");
    refuse("INSERT INTO t VALUES (1, 'b') ON CONFLICT (k) DO UPDATE SET a = excluded.a");
    let rows = db.sql("SELECT a FROM t", ()).unwrap().into_rows().unwrap().to_rows();
    assert_eq!(rows, [["a".into()]]);
}

/// A default was computed without any limit, while the statement was read.
#[test]
fn constants_of_definitions_have_limits_of_their_own() {
    let refuse = |text: &str, kind| {
        let error = parse_statement(text).unwrap_err();
        assert_eq!(error.kind(), kind, "{text}: {error}");
    };
    let long = "repeat('a', 8000000) || repeat('a', 8000000) || repeat('a', 8000000)";
    refuse(&format!("CREATE TABLE t (a text DEFAULT {long})"), SqlErrorKind::OverBudget);
    refuse(&format!("ALTER TABLE t ALTER a SET DEFAULT {long}"), SqlErrorKind::OverBudget);
    refuse(&format!("CREATE SEQUENCE s START length({long})"), SqlErrorKind::OverBudget);
    let list = |item: u8| format!("CAST('[' || repeat('{item},', 200000) || '2]' AS json)");
    let slow = format!("json_contains({}, {})", list(1), list(2));
    refuse(&format!("CREATE TABLE t (a bool DEFAULT {slow})"), SqlErrorKind::TimedOut);
}
