//! Functions that make rows, where tables stand: what the corpus of statements does not reach.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::time::{Duration, Instant};

use esker::{ChangeOptions, Database, Error, ErrorKind, Limits, Options, Value};
use esker_sql::{Outcome, Sql, parse_statement, run};

use crate::correlated::{both, check_both};

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, n i64, day date)", ()).unwrap();
    db.sql("INSERT INTO t VALUES (1, 2, '2024-01-30'), (2, 0, NULL), (3, NULL, '2024-02-28')", ())
        .unwrap();
    db
}

fn rows(db: &Database, text: &str) -> Vec<Vec<Value>> {
    let outcome = db.sql(text, ()).unwrap_or_else(|e| panic!("{text}: {e}"));
    outcome.into_rows().unwrap().to_rows()
}

fn within(db: &Database, text: &str, limits: Limits) -> Result<Outcome, Error> {
    let options = ChangeOptions { limits, ..ChangeOptions::default() };
    run(db, &parse_statement(text).unwrap(), &options)
}

fn plan(db: &Database, text: &str) -> String {
    match db.sql(&format!("EXPLAIN {text}"), ()).unwrap() {
        Outcome::Plan(plan) => plan,
        other => panic!("{other:?}"),
    }
}

fn int(value: i64) -> Value {
    Value::Int(value)
}

#[test]
fn a_long_series_takes_no_memory() {
    let db = database();
    let small = || Limits { memory_bytes: Some(1 << 18), ..Limits::default() };
    for (text, expected) in [
        ("SELECT count(*) FROM generate_series(1, 100000000)", 100_000_000),
        ("SELECT sum(g % 2) FROM generate_series(1, 3000000) g", 1_500_000),
        ("SELECT max(g) FROM generate_series(1, 2000000) g WHERE g < 1999999", 1_999_998),
        ("SELECT count(*) FROM generate_series(1, 3000000) g JOIN t ON t.id = g", 3),
    ] {
        let found = within(&db, text, small()).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(found.into_rows().unwrap().to_rows(), [[int(expected)]], "{text}");
    }
    for text in [
        "SELECT count(*) FROM generate_series(DATE '0001-01-01', DATE '9000-01-01', '1 month')",
        "SELECT count(*) FROM generate_series(DATE '2024-01-01', DATE '2024-03-01', \
         INTERVAL '1 month -29 days')",
        "SELECT count(*) FROM t, generate_series(1, t.id * 1000000)",
        "SELECT count(*) FROM generate_series(1, 1000000, 10000000000000000000.0)",
    ] {
        if text.contains("000.0") {
            assert_eq!(rows(&db, text), [[int(1)]]);
            continue;
        }
        let error = within(&db, text, small()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{text}: {error}");
    }
}

#[test]
fn a_limit_ends_a_series() {
    let db = database();
    for text in [
        "SELECT g FROM generate_series(1, 9223372036854775807) g LIMIT 2",
        "SELECT * FROM generate_series(1, 17000000000000) LIMIT 2",
        "SELECT g FROM generate_series(1, 17000000000000) g WHERE g % 5 < 3 LIMIT 2",
    ] {
        assert_eq!(rows(&db, text), [[int(1)], [int(2)]], "{text}");
    }
    let error = db.sql("SELECT g + 1 FROM generate_series(1, 9223372036854775807) g", ());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("expected 17592186044416 rows at most"), "{error}");
}

#[test]
fn the_time_of_a_statement_ends_a_series() {
    let db = database();
    let limits = || Limits { timeout: Some(Duration::from_millis(50)), ..Limits::default() };
    for text in [
        "SELECT sum(g * g % 7) FROM generate_series(1, 10000000000000) g",
        "SELECT g FROM generate_series(1, 10000000000000) g WHERE g < 0",
        "SELECT count(*) FROM t, generate_series(1, t.id + 10000000) g",
    ] {
        let started = Instant::now();
        let error = within(&db, text, limits()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{text}: {error}");
        assert!(started.elapsed() < Duration::from_secs(20), "{text}");
    }
}

/// A subquery over a series made all of it for all rows around it.
#[test]
fn a_subquery_over_a_long_series_stops_where_it_knows_its_answer() {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, n i64, k i64)", ()).unwrap();
    let values = "(1, 1000000000000, 5), (2, 1000000000000, 70000), (3, 10, 20), (4, NULL, 1)";
    db.sql(&format!("INSERT INTO t VALUES {values}"), ()).unwrap();
    let small = || Limits {
        memory_bytes: Some(1 << 20),
        timeout: Some(Duration::from_secs(20)),
        ..Limits::default()
    };
    let series = "FROM generate_series(1, t.n) s WHERE s";
    for (select, expected) in [
        (format!("SELECT id FROM t WHERE EXISTS (SELECT 1 {series} = t.k)"), "1;2"),
        (format!("SELECT id FROM t WHERE NOT EXISTS (SELECT 1 {series} = t.k)"), "3;4"),
        (format!("SELECT id FROM t WHERE EXISTS (SELECT 1 {series} % 7 = 3)"), "1;2;3"),
        (format!("SELECT id FROM t WHERE EXISTS (SELECT 1 {series} % 7 = 3 LIMIT 5)"), "1;2;3"),
        (
            format!("SELECT id, (SELECT s {series} > t.k LIMIT 1) FROM t"),
            "1,6;2,70001;3,null;4,null",
        ),
        (
            format!("SELECT id, q.s FROM t, LATERAL (SELECT s {series} > 2 LIMIT 1) q ORDER BY id"),
            "1,3;2,3;3,3",
        ),
        (
            "SELECT id, EXISTS (SELECT 1 FROM generate_series(1, t.n)) FROM t".to_owned(),
            "1,true;2,true;3,true;4,false",
        ),
    ] {
        let found = within(&db, &select, small()).unwrap_or_else(|e| panic!("{select}: {e}"));
        let found = found
            .into_rows()
            .unwrap()
            .to_rows()
            .into_iter()
            .map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
        assert_eq!(found.collect::<Vec<_>>().join(";").to_lowercase(), expected, "{select}");
    }
    // Few rows are made at once for all.
    let few = "EXPLAIN ANALYZE SELECT id, (SELECT max(s) FROM generate_series(1, t.k) s) FROM t \
               WHERE id <> 2";
    let Outcome::Plan(shown) = db.sql(few, ()).unwrap() else { panic!("{few}") };
    assert!(shown.contains("unnested query"), "{shown}");
}

#[test]
fn what_memory_does_not_hold_of_a_series_is_refused_at_once() {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, n i64)", ()).unwrap();
    db.sql("INSERT INTO t VALUES (1, 1000000000000), (2, 5)", ()).unwrap();
    let small = || Limits { memory_bytes: Some(1 << 20), ..Limits::default() };
    for text in [
        "SELECT id, s FROM t, generate_series(1, t.n) s",
        "SELECT id, generate_series(1, n) FROM t",
    ] {
        let error = within(&db, text, small()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{text}: {error}");
        // What it needs is known before a row is made: a number and the value of each.
        assert!(error.to_string().contains("160000000"), "{error}");
    }
    let limits = || Limits { timeout: Some(Duration::from_millis(50)), ..Limits::default() };
    for text in [
        "SELECT max(s), min(s), count(*) FROM generate_series(1, 1000000000000) s",
        "SELECT max(s) FROM generate_series(1, 1000000000000) s WHERE s % 2 = 1",
        "SELECT id, (SELECT max(s % 10) FROM generate_series(1, t.n) s) FROM t",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM generate_series(1, t.n) s WHERE s < 0)",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM generate_series(1, t.n) s WHERE s % 2 = 3)",
    ] {
        let started = Instant::now();
        match within(&db, text, limits()) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut, "{text}: {error}"),
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{text}");
    }
}

#[test]
fn plans_show_series_and_intervals() {
    let db = database();
    for (text, expected) in [
        (
            "SELECT g FROM generate_series(1, 5) g WHERE g > 2",
            "project g  (about 3 rows)|  filter g > 2|    function generate_series(1, 5) AS g  \
            (about 5 rows)",
        ),
        (
            "SELECT d FROM generate_series(DATE '2024-01-31', DATE '2024-05-31', \
             INTERVAL '1 month') d",
            "  function generate_series(DATE '2024-01-31', DATE '2024-05-31', \
             INTERVAL '1 months') AS d  (about 1000 rows)",
        ),
        (
            "SELECT t.id, g FROM t, generate_series(1, t.n) g",
            "function generate_series(1, t.n) AS g",
        ),
        (
            "SELECT id, generate_series(1, n) FROM t",
            "function generate_series(1, n) AS \"rows of SELECT\" (generate_series)",
        ),
        (
            "SELECT id FROM t WHERE day + INTERVAL '1 month' > DATE '2024-02-01' \
             AND n * INTERVAL '1 day' < INTERVAL '3 days 02:00'",
            "scan t where day + INTERVAL '1 mon' > DATE '2024-02-01' \
             AND n * INTERVAL '1 day' < INTERVAL '3 days 02:00:00'",
        ),
    ] {
        let shown = plan(&db, text);
        assert!(shown.replace('\n', "|").contains(expected), "{text}\n{shown}");
    }
}

#[test]
fn operands_are_parameters() {
    let db = database();
    let prepared = db.prepare("SELECT * FROM generate_series(?, ?, ?) AS g").unwrap();
    assert_eq!(prepared.query((1, 5, 2)).unwrap().to_rows(), [[int(1)], [int(3)], [int(5)]]);
    assert_eq!(prepared.query((5, 1, -4)).unwrap().to_rows(), [[int(5)], [int(1)]]);
    assert!(prepared.query((1, Value::Null, 1)).unwrap().to_rows().is_empty());
    let error = prepared.query((1, 5, 0)).unwrap_err().to_string();
    assert!(error.contains("expected a step other than zero"), "{error}");
    let error = prepared.query(("a", 5, 1)).unwrap_err().to_string();
    assert!(error.contains("found text"), "{error}");
    let days = "SELECT count(*) FROM generate_series(:first, :last, INTERVAL '1 day')";
    let days = db.prepare(days).unwrap();
    let moments = (Value::Timestamp(0), Value::Timestamp(86_400_000_000));
    assert_eq!(days.query(moments).unwrap().to_rows(), [[int(2)]]);
    assert_eq!(days.query(("2024-01-01", "2024-01-31")).unwrap().to_rows(), [[int(31)]]);
    let limited = db.prepare("SELECT * FROM generate_series(1, ?) LIMIT ?").unwrap();
    assert_eq!(limited.query((i64::MAX, 1)).unwrap().to_rows(), [[int(1)]]);
}

#[test]
fn rows_of_fields_to_the_left_are_those_of_each_row() {
    let dbs = both(&[
        "CREATE TABLE t (id i64 PRIMARY KEY, n i64)",
        "INSERT INTO t VALUES (1, 2), (2, 0), (3, NULL), (4, 2)",
    ]);
    check_both(
        &dbs,
        &[
            ("SELECT id, g FROM t, generate_series(1, t.n) g ORDER BY 1, 2", "1|1;1|2;4|1;4|2"),
            (
                "SELECT id, g FROM t LEFT JOIN generate_series(1, n) g ON true ORDER BY 1, 2",
                "1|1;1|2;2|NULL;3|NULL;4|1;4|2",
            ),
            (
                "SELECT id, g FROM t LEFT JOIN LATERAL generate_series(1, n) g ON g > 1 \
                 ORDER BY 1, 2",
                "1|2;2|NULL;3|NULL;4|2",
            ),
            (
                "SELECT id, a, b FROM t, generate_series(1, n) a, generate_series(a, n) b \
             WHERE id = 1 ORDER BY 2, 3",
                "1|1|1;1|1|2;1|2|2",
            ),
            (
                "SELECT id, (SELECT sum(g) FROM generate_series(1, t.n) g) FROM t ORDER BY 1",
                "1|3;2|NULL;3|NULL;4|3",
            ),
            (
                "SELECT id FROM t WHERE EXISTS \
                 (SELECT 1 FROM generate_series(1, t.n) g WHERE g > 1) ORDER BY 1",
                "1;4",
            ),
            (
                "SELECT id FROM t WHERE id IN (SELECT g FROM generate_series(t.n, 9) g) ORDER BY 1",
                "2;4",
            ),
            (
                "SELECT id, g FROM t, generate_series((SELECT min(n) FROM t) + 1, t.n) g \
             ORDER BY 1, 2",
                "1|1;1|2;4|1;4|2",
            ),
            (
                "SELECT id, g FROM t, \
                 generate_series(1, (SELECT count(*) FROM t u WHERE u.n = t.n)) g ORDER BY 1, 2",
                "1|1;1|2;2|1;4|1;4|2",
            ),
            (
                "SELECT t.id, s.x FROM t, \
                 LATERAL (SELECT g * 10 AS x FROM generate_series(1, t.n) g) AS s ORDER BY 1, 2",
                "1|10;1|20;4|10;4|20",
            ),
            (
                "SELECT id, (SELECT string_agg(g::text, '+' ORDER BY g) FROM \
             generate_series(t.n, 0, -1) AS g) FROM t WHERE n IS NOT NULL ORDER BY 1",
                "1|0+1+2;2|0;4|0+1+2",
            ),
            (
                "SELECT count(*), count(DISTINCT g) FROM t a, t b, generate_series(a.id, b.id) g",
                "20|4",
            ),
        ],
    );
}

#[test]
fn what_is_joined_from_the_right_names_no_field_to_the_left() {
    let db = database();
    for text in [
        "SELECT * FROM t RIGHT JOIN generate_series(1, t.n) g ON true",
        "SELECT * FROM t FULL JOIN generate_series(1, t.n) g ON true",
        "SELECT * FROM generate_series(1, t.n) g, t",
    ] {
        let error = db.sql(text, ()).unwrap_err().to_string();
        assert!(error.contains("t.n"), "{text}: {error}");
    }
    let text = "SELECT id, g FROM t RIGHT JOIN generate_series(2, 4) g ON t.id = g ORDER BY g";
    let expected = [[int(2), int(2)], [int(3), int(3)], [Value::Null, int(4)]];
    assert_eq!(rows(&db, text), expected);
}

#[test]
fn a_plan_shows_the_call_and_how_many_rows_it_makes() {
    let db = database();
    let text = plan(&db, "SELECT count(*) FROM generate_series(1, 250000) AS g WHERE g > 10");
    assert!(
        text.contains("function generate_series(1, 250000) AS g  (about 250000 rows"),
        "{text}"
    );
    let text = plan(&db, "SELECT * FROM t JOIN generate_series(1, 5000) AS g ON g = t.id");
    assert!(text.contains("function generate_series(1, 5000) AS g  (about 5000 rows"), "{text}");
    let text = plan(&db, "SELECT * FROM t, generate_series(1, t.n) AS g");
    assert!(text.contains("function generate_series(1, t.n) AS g"), "{text}");
    let days = "SELECT * FROM generate_series(DATE '2024-01-01', DATE '2024-01-09', \
                INTERVAL '1 day') AS g";
    let text = plan(&db, days);
    let call = "function generate_series(DATE '2024-01-01', DATE '2024-01-09', INTERVAL '1 days')";
    assert!(text.contains(call), "{text}");
}

#[test]
fn rows_are_numbered() {
    let db = database();
    let text = "SELECT * FROM generate_series(7, 3, -2) WITH ORDINALITY";
    assert_eq!(rows(&db, text), [[int(7), int(1)], [int(5), int(2)], [int(3), int(3)]]);
    let columns = db.sql(text, ()).unwrap().into_rows().unwrap().columns;
    let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["generate_series", "ordinality"]);
    let text = "SELECT id, x, o FROM t, generate_series(1, t.n) WITH ORDINALITY AS g (x, o) \
                ORDER BY 1, 2";
    assert_eq!(rows(&db, text), [[int(1), int(1), int(1)], [int(1), int(2), int(2)]]);
}

#[test]
fn json_queries_have_them_in_place_of_tables() {
    let db = database();
    let ask = |text: &str| db.query_json(text).map(|answer| answer.to_rows());
    let series = r#"{"table": {"function": "generate_series", "operands": [1, 6, 2]}, "as": "g",
        "where": {"field": "g", "op": "gt", "value": 1}}"#;
    assert_eq!(ask(series).unwrap(), [[int(3)], [int(5)]]);
    let lateral = r#"{"table": "t", "join": {"kind": "cross", "as": "g", "table": {"ordinality":
        true, "function": "generate_series", "operands": [{"field": "t.n"}, 3]}},
        "select": ["id", "g.g", "ordinality"], "order": ["id", "ordinality"]}"#;
    let expected = [[1, 2, 1], [1, 3, 2], [2, 0, 1], [2, 1, 2], [2, 2, 3], [2, 3, 4]];
    assert_eq!(ask(lateral).unwrap(), expected.map(|row| row.map(int)));
    let days = r#"{"table": {"function": "range", "operands": ["2024-01-01", "2024-01-03",
        {"microseconds": 86400000000}]}}"#;
    assert_eq!(ask(days).unwrap().len(), 2);
    for (text, message) in [
        (r#"{"table": {"function": "nope"}}"#, "table.function: no function \"nope\" makes rows"),
        (r#"{"table": {"function": "range", "x": 1}}"#, "table: unknown member \"x\""),
        (r#"{"table": {"function": "range", "operands": 1}}"#, "expected an array"),
        (r#"{"table": {"function": "range", "operands": [{"months": "x"}]}}"#, "a whole number"),
    ] {
        let error = ask(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}
