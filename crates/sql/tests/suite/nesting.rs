//! Statements whose parts lie deep in each other: as deep as is promised, on the stack of any
//! thread, and no deeper.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use esker::{Database, Options};
use esker_sql::Sql;

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, n i64)", ()).unwrap();
    db.sql("INSERT INTO t VALUES (1, 10), (2, 20), (3, NULL)", ()).unwrap();
    db
}

/// The whole answer, or the error.
fn answer(db: &Database, statement: &str) -> String {
    match db.sql(statement, ()) {
        Ok(answer) => format!("{:?}", answer.into_rows().unwrap().to_rows()),
        Err(error) => error.to_string(),
    }
}

/// `open` so many times, what is in the middle, and `close` as often.
fn nested(times: usize, open: &str, middle: &str, close: &str) -> String {
    format!("{}{middle}{}", open.repeat(times), close.repeat(times))
}

fn select(filter: &str) -> String {
    format!("SELECT id FROM t WHERE {filter}")
}

#[test]
fn conditions_nest_64_deep() {
    let db = database();
    let ids = |filter: &str| answer(&db, &select(filter));
    let plain = ids("n > 15");
    assert_eq!(ids(&nested(64, "NOT (", "n > 15", ")")), plain);
    assert_eq!(ids(&nested(63, "NOT (", "n > 15", ")")), ids("NOT n > 15"));
    assert_eq!(ids(&nested(64, "(", "n > 15", ")")), plain);
    assert_eq!(ids(&nested(32, "(id = 0 OR (id > 1 AND ", "n > 15", "))")), plain);
    assert_eq!(ids(&nested(120, "NOT (", "n > 15", ")")), plain);
}

#[test]
fn what_nests_deeper_is_refused() {
    let db = database();
    let error = answer(&db, &select(&nested(140, "NOT (", "n > 15", ")")));
    assert!(error.contains("an expression nests too deep: at most 128 levels"), "{error}");
    for (open, close) in
        [("NOT (", ")"), ("(", ")"), ("- ", ""), ("n IN (SELECT id FROM t WHERE ", ")")]
    {
        let error = answer(&db, &select(&nested(100_000 / open.len(), open, "n", close)));
        assert!(error.contains("nests too deep") || error.contains("at most"), "{error}");
    }
}

#[test]
fn queries_nest_31_deep() {
    let db = database();
    let kinds = [
        ("SELECT id FROM ", "(SELECT * FROM ", "t", ") AS x"),
        ("SELECT id FROM t WHERE ", "n IN (SELECT n FROM t WHERE ", "n > 15", ")"),
        ("SELECT id FROM t WHERE ", "EXISTS (SELECT 1 FROM t WHERE n < 15 AND ", "n < 15", ")"),
    ];
    for times in [1, 8, 16, 31, 32, 64, 128, 400] {
        for (start, open, middle, close) in kinds {
            let wanted = answer(&db, &format!("{start}{open}{middle}{close}"));
            let found = answer(&db, &format!("{start}{}", nested(times, open, middle, close)));
            match times {
                ..=31 => assert_eq!(found, wanted, "{times}: {open}"),
                _ => assert!(found.contains("nest"), "{times}: {found}"),
            }
        }
        let query = r#"{"table": "t", "where": {"field": "n", "op": "in", "query": "#;
        let innermost = r#"{"table": "t", "select": "n"}"#;
        let json = nested(
            times,
            &query.replace("\"where\"", "\"select\": \"n\", \"where\""),
            innermost,
            "}}",
        );
        match db.query_json(&json) {
            Ok(rows) => assert!(times <= 31 && rows.row_count() == 2, "{times}"),
            Err(error) => assert!(times > 31 && error.to_string().contains("levels"), "{error}"),
        }
    }
}
