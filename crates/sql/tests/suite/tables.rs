//! `CREATE TABLE` with defaults and checks, and `ALTER TABLE`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use esker::{Database, Options, Value};
use esker_sql::{Outcome, Sql};

use crate::fixture::memory;

fn rows(db: &Database, query: &str) -> Vec<Vec<Value>> {
    match db.sql(query, ()).unwrap() {
        Outcome::Rows(result) => result.to_rows(),
        _ => panic!("{query}: no rows"),
    }
}

fn text(db: &Database, query: &str) -> String {
    let row = |row: Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
    rows(db, query).into_iter().map(row).collect::<Vec<_>>().join(", ")
}

fn refused(db: &Database, statement: &str, why: &str) {
    let e = db.sql(statement, ()).map(|_| ()).unwrap_err().to_string();
    assert!(e.contains(why), "{statement}: {e}");
}

#[test]
fn what_is_not_given_has_its_default() {
    let db = memory(&[
        "CREATE TABLE t (id i64 PRIMARY KEY, stars u8 NOT NULL DEFAULT 1 + 2, \
         day date DEFAULT '2024-02-29', at timestamp DEFAULT now(), token uuid DEFAULT uuidv7(), \
         note text DEFAULT NULL)",
        "INSERT INTO t (id) VALUES (1), (2)",
        "INSERT INTO t (id, stars, day, note) VALUES (3, DEFAULT, NULL, 'x')",
    ]);
    assert_eq!(
        text(&db, "SELECT id, stars, day, note FROM t ORDER BY id"),
        "1 3 2024-02-29 null, 2 3 2024-02-29 null, 3 3 null x"
    );
    let alive = "SELECT count(*) FROM t WHERE at > '2024-01-01' AND token IS NOT NULL";
    assert_eq!(text(&db, alive), "3");
    refused(&db, "CREATE TABLE u (n u8 DEFAULT 300)", "expected u8");
    refused(&db, "CREATE TABLE u (n u8 DEFAULT n + 1)", "expected a constant");
    refused(&db, "CREATE TABLE u (n i64 DEFAULT now())", "expected i64, found timestamp");
    refused(&db, "CREATE TABLE u (n i64 DEFAULT uuid())", "expected i64, found uuid");
}

#[test]
fn checks_are_tested_and_named() {
    let db = memory(&[
        "CREATE TABLE t (id i64 PRIMARY KEY, price i64 CHECK (price >= 0), low i64, high i64, \
         CONSTRAINT ordered CHECK (low <= high), CHECK (low <> 7))",
        "INSERT INTO t VALUES (1, 5, 1, 2), (2, NULL, NULL, NULL)",
    ]);
    refused(
        &db,
        "INSERT INTO t VALUES (3, -1, 1, 2)",
        "check \"check_price\": price >= 0 is false",
    );
    refused(&db, "UPDATE t SET low = high + 1", "check \"ordered\"");
    refused(&db, "INSERT INTO t VALUES (3, 1, 7, 8)", "check \"check_2\"");
    refused(&db, "CREATE TABLE u (n i64 CHECK (m > 0))", "unknown field");
    refused(&db, "CREATE TABLE u (n timestamp CHECK (n < now()))", "what changes");
    refused(&db, "CREATE TABLE u (n i64 CHECK (n + 1))", "expected a condition");
    assert_eq!(text(&db, "SELECT count(*) FROM t"), "2");
}

/// A new check was tested on the fields as they had been.
#[test]
fn a_new_check_is_tested_on_the_fields_of_the_same_statement() {
    let db = memory(&["CREATE TABLE t (id i64 PRIMARY KEY, a i64)", "INSERT INTO t VALUES (1, 5)"]);
    let again = "ALTER TABLE t DROP COLUMN a, ADD COLUMN a i64 DEFAULT -1, \
                 ADD CONSTRAINT pos CHECK (a > 0)";
    refused(&db, again, "check \"pos\": a > 0 is false for a row");
    db.sql("ALTER TABLE t ADD COLUMN n i64 DEFAULT 7 CHECK (n > 0)", ()).unwrap();
    refused(&db, "INSERT INTO t (id, n) VALUES (2, 0)", "n > 0 is false");
    refused(&db, "ALTER TABLE t ADD m i64 DEFAULT -7 CHECK (m > 0)", "is false for a row");
    assert_eq!(text(&db, "SELECT * FROM t"), "1 5 7");
}

/// A check read another field once that had a name which differs in case only.
#[test]
fn a_check_reads_the_field_that_it_was_made_for() {
    let db = memory(&[
        "CREATE TABLE t (id i64 PRIMARY KEY, n i64, \"N\" i64, CONSTRAINT c CHECK (n > 0))",
        "ALTER TABLE t RENAME COLUMN \"N\" TO m",
        "CREATE TABLE u (id i64 PRIMARY KEY, n i64, CHECK (N > 0))",
        "ALTER TABLE u ADD COLUMN \"N\" i64 DEFAULT -5",
        "INSERT INTO u (id, n) VALUES (1, 1)",
    ]);
    refused(&db, "INSERT INTO t VALUES (2, -5, 5)", "n > 0 is false");
    db.sql("INSERT INTO t VALUES (3, 5, -5)", ()).unwrap();
    refused(&db, "INSERT INTO u (id, n) VALUES (2, -5)", "n > 0 is false");
    refused(&db, "ALTER TABLE t ALTER COLUMN n TYPE enum('a', 'b')", "ADD VALUE");
}

/// Rows by the schema of a reader were taken apart by the schema of a plan.
#[test]
fn prepared_statements_beside_changes_of_the_table() {
    let db = memory(&[
        "CREATE TABLE t (id i64 PRIMARY KEY, a i64 DEFAULT 1, b i64 DEFAULT 2)",
        "INSERT INTO t VALUES (1, 1, 2)",
    ]);
    let select = db.prepare("SELECT a FROM t WHERE id = 1").unwrap();
    let insert = db.prepare("INSERT INTO t (id, a, b) VALUES (?, 1, 2)").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 10..3_000i64 {
                match select.first(&[]) {
                    Ok(row) => assert_eq!(row, Some(vec![Value::Int(1)])),
                    Err(e) => assert!(e.to_string().contains("unknown field"), "{e}"),
                }
                if let Err(e) = insert.execute(&[i.into()]) {
                    assert!(e.to_string().contains("unknown field"), "{e}");
                }
            }
        });
        for i in 0..200 {
            let (name, value) = [("a", 1), ("b", 2)][i % 2];
            db.sql(&format!("ALTER TABLE t DROP COLUMN {name}"), ()).unwrap();
            db.sql(&format!("ALTER TABLE t ADD COLUMN {name} i64 DEFAULT {value}"), ()).unwrap();
        }
    });
    assert_eq!(text(&db, "SELECT count(*) FROM t WHERE a <> 1 OR b <> 2"), "0");
}

#[test]
fn checks_are_tested_by_upserts_too() {
    let db = memory(&[
        "CREATE TABLE t (id i64 PRIMARY KEY, n i64 CHECK (n > 0))",
        "INSERT INTO t VALUES (1, 1)",
    ]);
    refused(&db, "INSERT OR REPLACE INTO t VALUES (1, 0)", "n > 0 is false");
    let upsert = "INSERT INTO t VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET n = t.n - 1";
    refused(&db, upsert, "n > 0 is false");
    let twice = "INSERT INTO t VALUES (2, 1), (2, 1) ON CONFLICT (id) DO UPDATE SET n = t.n - 1";
    refused(&db, twice, "n > 0 is false");
    assert_eq!(text(&db, "SELECT * FROM t"), "1 1");
}

#[test]
fn tables_are_altered() {
    let db = memory(&[
        "CREATE TABLE t (id i64 PRIMARY KEY, n i16 NOT NULL, s text(3))",
        "INSERT INTO t VALUES (1, 10, 'abc'), (2, 20, 'def')",
        "ALTER TABLE t ADD COLUMN stars u8 NOT NULL DEFAULT 3",
        "ALTER TABLE t ADD seen timestamp DEFAULT now(), ADD note text",
        "ALTER TABLE t RENAME COLUMN n TO number",
        "ALTER TABLE t ALTER COLUMN number TYPE i64, ALTER COLUMN s TYPE text",
        "ALTER TABLE t ALTER COLUMN number DROP NOT NULL",
        "ALTER TABLE t ALTER COLUMN note SET DEFAULT 'none'",
        "ALTER TABLE t ADD CONSTRAINT few CHECK (stars < 6)",
        "INSERT INTO t (id, number, s) VALUES (3, NULL, 'longer than three')",
    ]);
    assert_eq!(
        text(&db, "SELECT id, number, s, stars, note FROM t ORDER BY id"),
        "1 10 abc 3 null, 2 20 def 3 null, 3 null longer than three 3 none"
    );
    assert_eq!(text(&db, "SELECT count(*) FROM t WHERE seen IS NOT NULL"), "3");
    refused(&db, "UPDATE t SET stars = 9 WHERE id = 1", "check \"few\"");
    refused(&db, "ALTER TABLE t ADD CONSTRAINT none CHECK (id > 1)", "is false for a row");
    refused(&db, "ALTER TABLE t ADD must i64 NOT NULL", "it needs a default");
    db.sql("ALTER TABLE t ADD must uuid NOT NULL DEFAULT uuid()", ()).unwrap();
    assert_eq!(text(&db, "SELECT count(DISTINCT must) FROM t"), "3");
    db.sql("ALTER TABLE t DROP COLUMN must", ()).unwrap();
    refused(&db, "ALTER TABLE t DROP COLUMN id", "part of the key");
    refused(&db, "ALTER TABLE t DROP COLUMN stars", "check \"few\" reads field \"stars\"");
    refused(&db, "ALTER TABLE t ALTER COLUMN number TYPE i8", "i64 cannot be widened");
    refused(&db, "ALTER TABLE t ADD COLUMN x i64 PRIMARY KEY", "the key of a table stays");
    refused(&db, "ALTER TABLE nothing ADD COLUMN x i64", "no table \"nothing\"");
    db.sql("ALTER TABLE IF EXISTS nothing ADD COLUMN x i64", ()).unwrap();
    db.sql("ALTER TABLE t DROP CONSTRAINT few", ()).unwrap();
    db.sql("ALTER TABLE t DROP COLUMN stars", ()).unwrap();
    db.sql("ALTER TABLE t RENAME TO u", ()).unwrap();
    assert_eq!(db.table("u").unwrap().schema().fields().len(), 5);
    db.sql("TRUNCATE TABLE u", ()).unwrap();
    assert_eq!(text(&db, "SELECT count(*) FROM u"), "0");
}

#[test]
fn labels_are_added_and_checks_nest_so_deep() {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE TABLE t (e enum(a, b), n i64)", ()).unwrap();
    db.sql("alter table if exists t alter e add value 'c d';", ()).unwrap();
    db.sql("INSERT INTO t VALUES ('c d', 1)", ()).unwrap();
    let error = |text: &str| db.sql(text, ()).unwrap_err().to_string();
    let found = error("ALTER TABLE t ALTER COLUMN e ADD VALUE 'a'");
    assert_eq!(found, "field \"e\": label \"a\" is declared twice");
    let found = error("ALTER TABLE t ALTER COLUMN e ADD VALUE 7");
    assert!(found.contains("found: 7"), "{found}");
    let found = error("ALTER TABLE t ALTER COLUMN e TYPE enum(a, b, c)");
    assert!(found.contains("ADD VALUE 'label'"), "{found}");
    let check = |depth: usize| {
        let (open, close) = ("(".repeat(depth - 2), " + 1)".repeat(depth - 2));
        format!("ALTER TABLE t ADD CONSTRAINT deep CHECK ({open}n{close} > 0)")
    };
    let found = error(&check(60));
    assert!(found.contains("nests too deep: 60 levels, at most 40"), "{found}");
    db.sql(&check(40), ()).unwrap();
}

#[test]
fn rows_expire_by_the_field_that_the_table_names() {
    let db = memory(&[
        "CREATE TABLE t (id BIGINT PRIMARY KEY, until TIMESTAMP) WITH (expires = 'until')",
        "CREATE TABLE u (id BIGINT PRIMARY KEY, until TIMESTAMP) WITH (expires = until)",
        "INSERT INTO t VALUES (1, NULL), (2, '1970-01-02 00:00:00'), (3, '2999-01-01 00:00:00')",
    ]);
    assert_eq!(text(&db, "SELECT id FROM t ORDER BY id"), "1, 3");
    assert_eq!(db.table("u").unwrap().schema().expiry_field().unwrap().name, "until");
    for (statement, why) in [
        ("CREATE TABLE v (n INT) WITH (expires = 'm')", "unknown field \"m\""),
        ("CREATE TABLE v (n INT) WITH (expires = 'n')", "expected a timestamp"),
        (
            "CREATE TABLE v (n INT) WITH (ends = 'n')",
            "expected expires, changes, changes_by, stream",
        ),
        ("CREATE TABLE v (n INT) WITH (expires = 1)", "expected name = 'value'"),
        ("ALTER TABLE t DROP COLUMN until", "rows expire by field \"until\""),
        ("ALTER TABLE t SET (expires = 'm')", "unknown field \"m\""),
        ("ALTER TABLE t SET (expires = 'id')", "expected a timestamp"),
        ("ALTER TABLE t SET (ends = 'until')", "expected expires, changes, changes_by, stream"),
        ("ALTER TABLE t SET (expires = 'until', x = 1)", "option x = 1 of a table: expected"),
        ("ALTER TABLE t SET (expires = 'until') x", "Expected: the end"),
        ("ALTER TABLE t RESET (ends)", "expected expires"),
        ("ALTER TABLE t RESET (expires", "Expected: )"),
        ("ALTER TABLE none RESET (expires)", "no table \"none\""),
    ] {
        refused(&db, statement, why);
    }
    for statement in [
        "CREATE TABLE v (n INT UNIQUE, until TIMESTAMP) WITH (expires = 'until')",
        "ALTER TABLE t RESET (expires)",
        "ALTER TABLE IF EXISTS none RESET (expires)",
        "INSERT INTO t VALUES (4, '1970-01-02 00:00:00')",
    ] {
        db.sql(statement, ()).unwrap();
    }
    assert_eq!(text(&db, "SELECT id FROM t ORDER BY id"), "1, 3, 4");
    db.sql("ALTER TABLE t SET (expires = until)", ()).unwrap();
    assert_eq!(text(&db, "SELECT id FROM t ORDER BY id"), "1, 3");
    db.sql("ALTER TABLE t RESET (EXPIRES)", ()).unwrap();
    assert_eq!(text(&db, "SELECT id FROM t ORDER BY id"), "1, 3");
}
