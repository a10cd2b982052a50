//! Conditions that give the whole key are look-ups, and answer as a scan would.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

use esker::{Database, IndexUse, Options, Value};
use esker_sql::{Outcome, Session, Sql};

fn shown(outcome: Outcome) -> String {
    let rows = outcome.into_rows().unwrap().to_rows();
    let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    rows.iter().map(row).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn ask(db: &Database, text: &str) -> String {
    shown(db.sql(text, ()).unwrap_or_else(|e| panic!("{text}: {e}")))
}

/// Small groups and segments, so that few rows lie in many parts.
fn database(index_use: IndexUse) -> Database {
    Options::new()
        .background(false)
        .group_limit(64, 1 << 20)
        .small_group_limit(0)
        .index_use(index_use)
        .memory()
        .unwrap()
}

/// The plan of a query, as people read it.
fn plan(db: &Database, text: &str) -> String {
    db.plan(&esker_sql::parse(text).unwrap()).unwrap().to_string()
}

/// Rows in segments, an open group, dead ones and replaced ones among them.
fn fill(db: &Database) {
    db.sql("CREATE TABLE t (a i64, b text, n i64, PRIMARY KEY (a, b))", ()).unwrap();
    for first in (0..1_500).step_by(100) {
        let text = |a| match a % 3 {
            0 => "x",
            1 => "y",
            _ => "ü",
        };
        let row = |a: i64| format!("({a}, '{}', {})", text(a), a * 10);
        let rows: Vec<String> = (first..first + 100).map(row).collect();
        db.sql(&format!("INSERT INTO t VALUES {}", rows.join(", ")), ()).unwrap();
        db.wait_idle().unwrap();
    }
    db.sql("DELETE FROM t WHERE a % 7 = 0", ()).unwrap();
    db.sql("UPDATE t SET n = -n WHERE a % 5 = 0", ()).unwrap();
    db.sql("INSERT INTO t VALUES (7, 'x', 1), (7, 'y', 2), (7, 'ü', 3), (5000, 'x', 4)", ())
        .unwrap();
}

#[test]
fn a_whole_key_is_looked_up_and_a_part_of_it_is_not() {
    let db = database(IndexUse::WhenCheaper);
    fill(&db);
    for looked_up in [
        "SELECT n FROM t WHERE a = 7 AND b = 'y'",
        "SELECT n FROM t WHERE b = 'y' AND n > 0 AND a = 7",
        "SELECT n FROM t WHERE 'y' = b AND a IN (7, 8)",
        "SELECT count(*) FROM t WHERE a = 7 AND b = 'y'",
        "SELECT max(n) FROM t WHERE a BETWEEN 7 AND 7 AND b = 'y'",
    ] {
        let plan = plan(&db, looked_up);
        assert!(plan.contains("rows looked up by key"), "{looked_up}\n{plan}");
        assert!(!plan.contains("every row"), "{looked_up}\n{plan}");
        assert_eq!(ask(&db, looked_up), if looked_up.contains("count") { "1" } else { "2" });
    }
    for scanned in [
        "SELECT n FROM t WHERE a = 7",
        "SELECT n FROM t WHERE a = 7 OR b = 'y'",
        "SELECT n FROM t WHERE a = 7 AND b >= 'y'",
        "SELECT n FROM t WHERE a = 7 AND b <> 'y'",
        "SELECT n FROM t WHERE a + 0 = 7 AND b = 'y'",
    ] {
        let plan = plan(&db, scanned);
        assert!(!plan.contains("key"), "{scanned}\n{plan}");
    }
    let query = esker_sql::parse("SELECT n FROM t WHERE a = 9 AND b = 'x'").unwrap();
    let explained = db.explain(&query).unwrap();
    let (told, met) = (explained.to_string(), explained.met.unwrap());
    assert!(told.contains("rows looked up by key: 1 part, about 1 of"), "{told}");
    assert_eq!((met.rows_read, met.rows_passed), (1, 1));
}

#[test]
fn what_is_looked_up_is_what_a_scan_finds() {
    let [by_key, by_scan] = [IndexUse::Always, IndexUse::Never].map(database);
    [&by_key, &by_scan].into_iter().for_each(fill);
    let old = [&by_key, &by_scan].map(|db| db.snapshot().unwrap());
    let changes = [
        "UPDATE t SET n = n + 1 WHERE a = 7 AND b = 'ü' RETURNING a, b, n",
        "UPDATE t SET n = n + 1 WHERE a IN (14, 15, 16) AND b IN ('x', 'y') RETURNING a, n",
        "DELETE FROM t WHERE a = 5000 AND b = 'x' RETURNING n",
        "DELETE FROM t WHERE a = 16 AND b = 'y' AND n < 0 RETURNING n",
        "UPDATE t SET n = 0 WHERE a = 1 AND b = 'no' RETURNING n",
    ];
    let conditions = [
        "a = 7 AND b = 'x'",
        "a = 7 AND b = 'ü' AND n = 4",
        "a = 14 AND b = 'ü'",
        "a = 15.0 AND b IN ('x', 'y', 'ü', 'x')",
        "a = 15.5 AND b = 'x'",
        "a = 15 AND a = 16 AND b = 'x'",
        "a = 15 AND b = 'x' AND b = 'y'",
        "a IN (1, 2, 3, 4, 5, 6, 7, 1499, 5000, 301) AND b IN ('x', 'ü')",
        "a IN (SELECT a FROM t WHERE n > 14900) AND b = 'x'",
        "a BETWEEN 4 AND 11 AND b IN ('x', 'y') AND n < 0",
        "a = NULL AND b = 'x'",
        "a = 9223372036854775807 AND b = ''",
        "NOT (a <> 15 OR b <> 'x')",
        "a = 15 AND b = 'x' AND 10 / (n + 150) > 0",
    ];
    let questions = conditions.map(|condition| {
        [
            format!("SELECT * FROM t WHERE {condition} ORDER BY a, b"),
            format!("SELECT count(*), min(n) FROM t WHERE {condition}"),
            format!("SELECT count(*) FROM t WHERE {condition}"),
            format!("SELECT b, count(*) FROM t WHERE {condition} GROUP BY b ORDER BY b"),
            format!(
                "SELECT n, m FROM t JOIN (SELECT a + 1 AS c, n AS m FROM t) AS u ON c = a \
                 WHERE {condition} ORDER BY 1, 2"
            ),
        ]
    });
    let same = |questions: &[[String; 5]]| {
        for question in questions.iter().flatten() {
            let found = by_key.sql(question, ()).map(shown).map_err(|e| e.to_string());
            let expected = by_scan.sql(question, ()).map(shown).map_err(|e| e.to_string());
            assert_eq!(found, expected, "{question}");
        }
    };
    same(&questions);
    for change in changes {
        assert_eq!(ask(&by_key, change), ask(&by_scan, change), "{change}");
        same(&questions);
    }
    for question in questions.iter().flatten() {
        let question = esker_sql::parse(question).unwrap();
        let rows = |at: &esker::Snapshot| {
            at.query(&question).map(|r| r.to_rows()).map_err(|e| e.to_string())
        };
        assert_eq!(rows(&old[0]), rows(&old[1]), "{question}");
    }
    by_key.compact(false, &mut |_, _| {}).unwrap();
    same(&questions);
    assert_eq!(by_key.check().unwrap().problems, []);
}

#[test]
fn a_key_of_any_type_is_found_by_what_it_is_compared_with() {
    let types = [
        ("bool", ["true", "false"]),
        ("i8", ["-128", "127.0"]),
        ("u8", ["255", "0"]),
        ("i64", ["-9223372036854775808", "5"]),
        ("u64", ["18446744073709551615", "0"]),
        ("f64", ["0.1", "-0.0"]),
        ("f32", ["0.5", "2"]),
        ("decimal(9,2)", ["1.50", "-3"]),
        ("decimal(38,0)", ["99999999999999999999999999999999999999", "7"]),
        ("text", ["''", "'日本'"]),
        ("bytes", ["'00ff'", "''"]),
        ("date", ["'2024-02-29'", "'0001-01-01'"]),
        ("timestamp", ["'2024-02-29T12:00:00.000001Z'", "'1969-12-31T23:59:59Z'"]),
        ("time", ["'23:59:59.999999'", "'00:00'"]),
        (
            "uuid",
            ["'00000000-0000-0000-0000-000000000001'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
        ),
        ("ipv4", ["'255.255.255.255'", "'0.0.0.0'"]),
        ("ipv6", ["'::1'", "'2001:db8::'"]),
        ("enum('new', 'old')", ["'old'", "'new'"]),
    ];
    let dbs = [IndexUse::Always, IndexUse::Never].map(database);
    for (data_type, [first, second]) in types {
        for db in &dbs {
            db.sql("DROP TABLE IF EXISTS k", ()).unwrap();
            db.sql(&format!("CREATE TABLE k (k {data_type} PRIMARY KEY, n i64)"), ())
                .unwrap_or_else(|e| panic!("{data_type}: {e}"));
            db.sql(&format!("INSERT INTO k VALUES ({first}, 1)"), ()).unwrap();
            db.wait_idle().unwrap();
            db.sql(&format!("INSERT INTO k VALUES ({second}, 2)"), ()).unwrap();
            for (literal, n) in [(first, "1"), (second, "2")] {
                let question = format!("SELECT n FROM k WHERE k = {literal}");
                assert_eq!(ask(db, &question), n, "{data_type}: {question}");
            }
            let both = format!("SELECT n FROM k WHERE k IN ({first}, {second}) ORDER BY n");
            assert_eq!(ask(db, &both), "1 2", "{data_type}");
            let change = format!("UPDATE k SET n = 3 WHERE k = {second} RETURNING n");
            assert_eq!(ask(db, &change), "3", "{data_type}");
        }
        let is_looked_up = !data_type.starts_with('f');
        let plan = plan(&dbs[0], &format!("SELECT n FROM k WHERE k = {first}"));
        assert_eq!(plan.contains("rows looked up by key"), is_looked_up, "{data_type}: {plan}");
    }
}

#[test]
fn a_transaction_finds_its_own_rows_and_not_those_it_replaced() {
    for index_use in [IndexUse::Always, IndexUse::Never] {
        let db = database(index_use);
        fill(&db);
        let mut session = Session::new(&db);
        let mut run = |text: &str| match session.sql(text, ()) {
            Ok(outcome) => outcome,
            Err(e) => panic!("{text}: {e}"),
        };
        run("BEGIN");
        run("INSERT INTO t VALUES (2000, 'x', 1)");
        run("UPDATE t SET n = 5 WHERE a = 7 AND b = 'x'");
        run("DELETE FROM t WHERE a = 7 AND b = 'y'");
        let found = "SELECT a, b, n FROM t WHERE a IN (7, 2000) AND b IN ('x', 'y', 'ü') \
                     ORDER BY a, b";
        assert_eq!(shown(run(found)), "7|x|5 7|ü|3 2000|x|1");
        run("SAVEPOINT s");
        run("UPDATE t SET n = n + 1 WHERE a = 2000 AND b = 'x'");
        run("INSERT INTO t VALUES (7, 'y', 9)");
        assert_eq!(shown(run(found)), "7|x|5 7|y|9 7|ü|3 2000|x|2");
        run("ROLLBACK TO s");
        assert_eq!(shown(run(found)), "7|x|5 7|ü|3 2000|x|1");
        let count = "SELECT count(*) FROM t WHERE a = 7 AND b = 'y'";
        assert_eq!(shown(run(count)), "0");
        assert_eq!(ask(&db, count), "1");
        run("COMMIT");
        assert_eq!(ask(&db, found), "7|x|5 7|ü|3 2000|x|1");
    }
}
