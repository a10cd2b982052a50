//! What statements answer of the rows that they change: as they are, as they were, or both.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use esker::{Database, Options, Value};
use esker_sql::{Outcome, Session, Sql};

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, n i64, name text)", ()).unwrap();
    db.sql("CREATE UNIQUE INDEX by_name ON t (name)", ()).unwrap();
    db.sql("INSERT INTO t VALUES (1, 10, 'a'), (2, NULL, 'b')", ()).unwrap();
    db
}

/// Statements in turn, by themselves and within a transaction: both answer the same.
fn answers(statements: &[(&str, &str)]) {
    for within in [false, true] {
        let db = database();
        let mut session = Session::new(&db);
        if within {
            session.sql("BEGIN", ()).unwrap();
        }
        for (text, wanted) in statements {
            let found = match session.sql(text, ()) {
                Ok(
                    Outcome::Added(changed) | Outcome::Changed(changed) | Outcome::Removed(changed),
                ) => {
                    let rows = changed.returning.unwrap().to_rows();
                    let row = |row: &Vec<Value>| {
                        row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")
                    };
                    rows.iter().map(row).collect::<Vec<_>>().join(" ; ")
                }
                Ok(other) => panic!("{text}: {other:?}"),
                Err(e) => e.to_string(),
            };
            assert!(found.contains(wanted), "{text} (within: {within}): {found}");
            assert!(!wanted.contains('|') || found == *wanted, "{text}: {found}");
        }
    }
}

#[test]
fn old_and_new_are_the_row_before_and_after() {
    answers(&[
        (
            "UPDATE t SET n = coalesce(n, 0) + 1 RETURNING id, old.n, new.n, n",
            "1|10|11|11 ; 2|null|1|1",
        ),
        ("UPDATE t SET n = 5 WHERE id = 1 RETURNING OLD.*, new.n - old.n AS more", "1|11|a|-6"),
        ("UPDATE t SET n = 6 WHERE id = 1 RETURNING *, old.n", "1|6|a|5"),
        ("INSERT INTO t VALUES (3, 7, 'c') RETURNING old.id, new.id, *", "null|3|3|7|c"),
        (
            "INSERT INTO t VALUES (3, 8, 'd'), (4, 1, 'e') ON CONFLICT (id) DO UPDATE \
             SET n = excluded.n RETURNING old.n, new.n, old.id IS NULL AS is_new",
            "7|8|false ; null|1|true",
        ),
        (
            "INSERT INTO t VALUES (9, 2, 'e') ON CONFLICT (name) DO UPDATE SET n = excluded.n \
             RETURNING old.id, old.n, n",
            "4|1|2",
        ),
        ("REPLACE INTO t VALUES (3, 9, 'f') RETURNING old.n, old.name, new.*", "8|c|3|9|f"),
        ("INSERT INTO t VALUES (3, 0, 'x') ON CONFLICT DO NOTHING RETURNING old.n", ""),
        ("DELETE FROM t WHERE id = 3 RETURNING old.n, new.n, name", "9|null|f"),
        ("DELETE FROM t WHERE id = 1 RETURNING new.*, old.*", "null|null|null|1|6|a"),
        ("DELETE FROM t WHERE id = 2 RETURNING older.n", "unknown"),
        ("UPDATE t SET n = 1 WHERE id = 2 RETURNING old.size", "unknown field"),
        ("UPDATE t SET n = 1 WHERE id = 2 RETURNING count(old.n)", "aggregate"),
        ("UPDATE t SET n = 3 WHERE id = 2 RETURNING old.n, new.n", "1|3"),
    ]);
}

#[test]
fn fields_that_are_called_so_are_meant_before_versions() {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, old json, n i64)", ()).unwrap();
    db.sql(r#"INSERT INTO t VALUES (1, '{"n": 5}', 6)"#, ()).unwrap();
    let Outcome::Changed(changed) =
        db.sql("UPDATE t SET n = 7 RETURNING old.n, new.n", ()).unwrap()
    else {
        panic!("a change");
    };
    assert_eq!(changed.returning.unwrap().to_rows(), [["5".into(), Value::Int(7)]]);
}
