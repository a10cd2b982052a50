//! SQL statements that change rows and tables, on the engine as programs use it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine"
)]

use esker::{Database, ErrorKind, Options, Value};
use esker_sql::{Sql, Statement, parse, parse_statement};

fn run(db: &Database, text: &str) -> Result<u64, esker::Error> {
    parse_statement(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    db.sql(text, ()).map(|outcome| outcome.rows_changed())
}

fn rows(db: &Database, text: &str) -> Vec<Vec<Value>> {
    db.query(&parse(text).unwrap()).unwrap().to_rows()
}

fn refused(db: &Database, text: &str) -> String {
    match parse_statement(text) {
        Err(e) => e.to_string(),
        Ok(Statement::Change(change)) => db.change(&change).unwrap_err().to_string(),
        Ok(_) => run(db, text).unwrap_err().to_string(),
    }
}

fn people() -> Database {
    let db = Options::new().memory().unwrap();
    let create = "CREATE TABLE people (name VARCHAR(12) PRIMARY KEY, age INTEGER, born DATE NULL, \
                  height DOUBLE PRECISION)";
    run(&db, create).unwrap();
    let insert = "INSERT INTO people (name, age, born) VALUES ('Ada', 36, '1815-12-10'), \
                  ('Grace', 80 + 5, DATE '1906-12-09'), ('Edsger', NULL, NULL)";
    assert_eq!(run(&db, insert).unwrap(), 3);
    db
}

#[test]
fn rows_are_added_changed_and_removed() {
    let db = people();
    assert_eq!(
        run(&db, "UPDATE people SET Age = age + 1, height = 1.5 WHERE AGE > 40").unwrap(),
        1
    );
    let found = rows(&db, "SELECT name, age, height FROM people ORDER BY name");
    let ada = vec!["Ada".into(), Value::Int(36), Value::Null];
    let edsger = vec!["Edsger".into(), Value::Null, Value::Null];
    let grace = vec!["Grace".into(), Value::Int(86), Value::Float(1.5)];
    assert_eq!(found, [ada, edsger, grace]);
    assert_eq!(run(&db, "DELETE FROM people WHERE born IS NULL").unwrap(), 1);
    assert_eq!(run(&db, "DELETE FROM people WHERE born IS NULL").unwrap(), 0);
    assert_eq!(run(&db, "UPDATE people p SET born = NULL WHERE p.name LIKE 'A%'").unwrap(), 1);
    assert_eq!(rows(&db, "SELECT count(*), count(born) FROM people"), [[2i64.into(), 1i64.into()]]);
    assert_eq!(run(&db, "DELETE FROM people").unwrap(), 2);
    assert_eq!(db.table("people").unwrap().count().unwrap(), 0);
}

#[test]
fn a_key_that_exists_fails_is_skipped_or_is_replaced() {
    let db = people();
    let e = run(&db, "INSERT INTO people (name) VALUES ('Alan'), ('Ada')").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    assert_eq!(e.to_string(), "row 2: key name = Ada exists already");
    let skip = "INSERT INTO people (name, age) VALUES ('Alan', 41), ('Ada', 1), ('Alan', 2) \
                ON CONFLICT DO NOTHING";
    assert_eq!(run(&db, skip).unwrap(), 1);
    let replace = "INSERT OR REPLACE INTO people (name, age) VALUES ('Ada', 1), ('Kurt', 71)";
    assert_eq!(run(&db, replace).unwrap(), 2);
    assert_eq!(run(&db, "INSERT OR IGNORE INTO people (name) VALUES ('Ada')").unwrap(), 0);
    let found = rows(&db, "SELECT name, age, born FROM people WHERE name < 'B' ORDER BY name");
    assert_eq!(found[0], ["Ada".into(), Value::Int(1), Value::Null]);
    assert_eq!(found[1], ["Alan".into(), Value::Int(41), Value::Null]);
}

#[test]
fn the_answer_to_a_query_is_inserted() {
    let db = people();
    run(&db, "CREATE TABLE old (id bigint, name text, primary key (name))").unwrap();
    let copy = "INSERT INTO old (name, id) SELECT name, age FROM people WHERE age > 1";
    assert_eq!(run(&db, copy).unwrap(), 2);
    assert_eq!(rows(&db, "SELECT sum(id) FROM old"), [[Value::Int(121)]]);
    // What is read is the table as it was.
    run(&db, "CREATE TABLE n (v i64)").unwrap();
    run(&db, "INSERT INTO n VALUES (1), (2)").unwrap();
    assert_eq!(run(&db, "INSERT INTO n SELECT v + 10 FROM n").unwrap(), 2);
    assert_eq!(rows(&db, "SELECT count(*), sum(v) FROM n"), [[Value::Int(4), Value::Int(26)]]);
}

#[test]
fn rows_of_generated_keys_are_found_again() {
    let db = Options::new().segment_limit(1_000).group_limit(300, 1 << 20).memory().unwrap();
    run(&db, "CREATE TABLE n (rowid i64, v i64 not null)").unwrap();
    let table = db.table("n").unwrap();
    let mut appender = table.appender();
    for v in 0..20_000i64 {
        appender.append(&[Value::Int(v % 7), v.into()]).unwrap();
    }
    appender.finish().unwrap();
    db.wait_idle().unwrap();
    assert_eq!(run(&db, "DELETE FROM n WHERE v % 2 = 0").unwrap(), 10_000);
    assert_eq!(run(&db, "UPDATE n SET v = -v WHERE v > 10000 AND rowid = 3").unwrap(), 714);
    let sum: i64 = (0..20_000i64)
        .filter(|v| v % 2 == 1)
        .map(|v| if v > 10_000 && v % 7 == 3 { -v } else { v })
        .sum();
    assert_eq!(rows(&db, "SELECT count(*), sum(v) FROM n"), [[Value::Int(10_000), sum.into()]]);
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn what_tables_cannot_be_is_refused() {
    let db = people();
    let cases = [
        ("CREATE TABLE people (a i64)", "table \"people\" exists already"),
        ("CREATE TABLE t (a i64 REFERENCES u)", "reference \"t_a_fkey\": no table \"u\""),
        ("CREATE TABLE t (a money)", "field \"a\": unknown type \"money\""),
        ("CREATE TABLE t (a decimal(50, 2))", "decimal(50,2): expected 1 to 38 digits"),
        ("CREATE TABLE t (a i64 PRIMARY KEY, b i64 PRIMARY KEY)", "two fields say PRIMARY KEY"),
        ("CREATE TABLE t (a i64) STRICT", "not all of"),
        ("CREATE TEMPORARY TABLE t (a i64)", "temporary tables and views are a session's own"),
        ("DROP TABLE nobody", "no table \"nobody\""),
        ("DROP ROLE people", "this DROP is not supported yet"),
    ];
    for (text, wanted) in cases {
        let message = refused(&db, text);
        assert!(message.contains(wanted), "{text}: {message}");
    }
    assert_eq!(db.tables(), ["people"]);
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let db = people();
    let cases = [
        ("INSERT INTO people VALUES ('x', 1)", "row 1: expected 4 values, found 2"),
        ("INSERT INTO people (name, size) VALUES ('x', 1)", "unknown field \"size\""),
        ("INSERT INTO people (name, name) VALUES ('x', 'y')", "field \"name\" is named twice"),
        ("INSERT INTO people (age) VALUES (1)", "row 1: field \"name\" must not be null"),
        ("INSERT INTO people (name) VALUES (age)", "\"age\": expected a constant, found a name"),
        ("INSERT INTO people (name, age) VALUES ('x', 1.5)", "field \"age\": expected i64"),
        ("INSERT INTO people (name, age) VALUES ('x', '1')", "field \"age\": expected i64"),
        ("INSERT INTO people (name, born) VALUES ('x', 'soon')", "expected date (like 2013-01-31)"),
        ("INSERT INTO people (name) VALUES ('Wolfgang Amadeus')", "expected at most 12 characters"),
        ("INSERT INTO nobody VALUES (1)", "no table \"nobody\""),
        ("UPDATE people SET name = 'x'", "key name = x exists already"),
        ("UPDATE people SET age = 1, age = 2", "field \"age\" is set twice"),
        ("UPDATE people SET age = born", "field \"age\": expected i64, found date"),
        ("UPDATE people SET age = age * 9223372036854775807", "does not fit i64"),
        ("UPDATE people SET size = 1", "unknown field \"size\""),
        (
            "UPDATE people SET age = 1 WHERE rowid = 1",
            "unknown field \"rowid\"; fields: name, age, born, height",
        ),
        ("UPDATE people SET age = 1 WHERE size = 1", "unknown field \"size\""),
        ("DELETE FROM people WHERE name = 1", "cannot compare text with i64"),
        ("DELETE FROM people USING other WHERE 1 = 1", "no table \"other\""),
        ("UPDATE people SET age = 1 FROM other", "no table \"other\""),
        ("INSERT INTO people (name) VALUES ('x') RETURNING size", "RETURNING: unknown field"),
        ("INSERT INTO people (name) VALUES ('x') RETURNING max(age)", "RETURNING: an aggregate"),
        (
            "DELETE FROM people RETURNING 9223372036854775807 + age",
            "RETURNING: 9223372036854775807",
        ),
        (
            "INSERT INTO people (name) VALUES ('x') ON CONFLICT (age) DO UPDATE SET age = 1",
            "ON CONFLICT (age): expected the primary key, (name)",
        ),
        (
            "INSERT INTO people (name) VALUES ('Ada') ON CONFLICT (name) DO UPDATE SET name = NULL",
            "field \"name\" must not be null",
        ),
        (
            "INSERT INTO people (name) VALUES ('x') ON CONFLICT DO UPDATE SET age = excluded.size",
            "ON CONFLICT: unknown field \"excluded.size\"",
        ),
        (
            "INSERT INTO people VALUES ('Ada') ON CONFLICT (name) DO UPDATE SET age = 1 WHERE age",
            "row 1: expected 4 values, found 1",
        ),
        (
            "INSERT INTO people (name) VALUES ('Eva'), ('Ada') \
             ON CONFLICT (name) DO UPDATE SET age = age + 9223372036854775807",
            "row 2: 36 + 9223372036854775807 does not fit i64",
        ),
        ("UPDATE people SET age = 1 + DEFAULT", "SET: unknown field \"DEFAULT\""),
        ("INSERT INTO people (name) VALUES (?)", "parameter ?1 has no value"),
        ("TRUNCATE TABLE nobody", "no table \"nobody\""),
        ("TRUNCATE TABLE people RESTART IDENTITY", "not all of"),
    ];
    for (text, wanted) in cases {
        let message = refused(&db, text);
        assert!(message.contains(wanted), "{text}: {message}");
    }
    assert_eq!(db.tables(), ["people"]);
    assert_eq!(rows(&db, "SELECT count(*), sum(age) FROM people"), [[3i64.into(), 121i64.into()]]);
}

/// Increments of a counter by several threads: none is lost, since a statement that read what
/// another has changed begins anew.
#[test]
fn updates_of_the_same_row_by_several_threads_are_all_there() {
    let dir = std::env::temp_dir().join(format!("esker-statements-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let db = Database::open(&dir).unwrap();
    run(&db, "CREATE TABLE counters (name text primary key, n i64 not null)").unwrap();
    run(&db, "INSERT INTO counters VALUES ('a', 0), ('b', 0)").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    loop {
                        match run(&db, "UPDATE counters SET n = n + 1") {
                            Ok(rows) => break assert_eq!(rows, 2),
                            Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e}"),
                        }
                    }
                }
            });
        }
    });
    let found = rows(&db, "SELECT n FROM counters");
    assert_eq!(found, [[Value::Int(200)], [Value::Int(200)]]);
    drop(db);
    let db = Database::open(&dir).unwrap();
    assert_eq!(rows(&db, "SELECT n FROM counters"), found);
    assert_eq!(db.check().unwrap().problems, []);
    drop(db);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn enums_and_decimals_are_declared_and_have_defaults() {
    let db = Options::new().memory().unwrap();
    let run = |text: &str| run(&db, text).unwrap();
    run("CREATE TABLE t (id i64 PRIMARY KEY, size ENUM('small', 'large') DEFAULT 'large', \
         price decimal(9,2) DEFAULT 1.5 CHECK (price < 100), CHECK (size >= 'small'))");
    run("INSERT INTO t (id) VALUES (1)");
    run("INSERT INTO t VALUES (2, 'small', 2)");
    run("ALTER TABLE t ADD COLUMN mood ENUM('good', 'bad') DEFAULT 'bad'");
    run("UPDATE t SET price = price * 2, size = 'small' WHERE size = 'large'");
    let shown: Vec<_> = rows(&db, "SELECT size, price, mood FROM t ORDER BY id")
        .into_iter()
        .map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(shown, ["small 3.00 bad", "small 2.00 bad"]);
    for (text, wanted) in [
        ("INSERT INTO t (id, size) VALUES (3, 'huge')", "expected one of small, large"),
        (
            "INSERT INTO t (id, price) VALUES (3, 1.234)",
            "expected decimal(9,2), found decimal 1.234",
        ),
        ("INSERT INTO t (id, price) VALUES (3, 1.5e0)", "found floating-point number 1.5"),
        ("UPDATE t SET price = price / 3", "found floating-point number"),
        ("INSERT INTO t (id, price) VALUES (3, 100)", "check"),
    ] {
        let message = refused(&db, text);
        assert!(message.contains(wanted), "{text}: {message}");
    }
}
