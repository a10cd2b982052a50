//! Set operations, VALUES, WITH and outer joins beside what a statement has around them: limits,
//! parameters, streams, plans, changes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::time::Duration;

use esker::{ChangeOptions, Database, ErrorKind, Limits, Options, Scope, Value};
use esker_sql::{Outcome, Sql, parse_statement, run};

use crate::fixture::{answer, check_on, memory};

fn database() -> Database {
    memory(&[
        "CREATE TABLE a (id i64 PRIMARY KEY, k i64, t text)",
        "CREATE TABLE b (id i64 PRIMARY KEY, k i64, t text)",
        "INSERT INTO a VALUES (1, 10, 'x'), (2, 20, 'y'), (3, NULL, 'x')",
        "INSERT INTO b VALUES (2, 20, 'y'), (3, 30, NULL), (4, 10, 'x')",
    ])
}

fn many(rows: u64) -> Database {
    let db = memory(&["CREATE TABLE a (id i64 PRIMARY KEY, n i64)"]);
    let insert = format!(
        "INSERT INTO a WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < \
         {rows}) SELECT i, i % 7 FROM r"
    );
    db.sql(&insert, ()).unwrap();
    db
}

fn run_with(db: &Database, text: &str, limits: Limits) -> esker::Result<Outcome> {
    let options = ChangeOptions { limits, ..ChangeOptions::default() };
    run(db, &parse_statement(text).unwrap(), &options)
}

fn plan(db: &Database, text: &str) -> String {
    match db.sql(text, ()).unwrap() {
        Outcome::Plan(plan) => plan,
        other => panic!("{other:?}"),
    }
}

#[test]
fn parameters_stand_in_every_branch() {
    let db = database();
    let union =
        db.prepare("SELECT id FROM a WHERE k = ? UNION SELECT ? ORDER BY 1 LIMIT ?").unwrap();
    assert_eq!(union.query_as::<i64>((10, 7, 5)).unwrap(), [1, 7]);
    assert_eq!(union.query_as::<i64>((10, 7, 1)).unwrap(), [1]);
    let values = db.prepare("VALUES (?), (? + 1)").unwrap();
    assert_eq!(values.query_as::<i64>((1, 2)).unwrap(), [1, 3]);
    let with = "WITH x AS (SELECT id FROM a WHERE k >= :least) SELECT id FROM x ORDER BY id";
    let with = db.prepare(with).unwrap();
    assert_eq!(with.query_as::<i64>((20,)).unwrap(), [2]);
    let limit = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n \
                 LIMIT ?";
    assert_eq!(db.sql_as::<i64>(limit, (3,)).unwrap(), [1, 2, 3]);
}

#[test]
fn a_query_of_with_hides_a_table_and_needs_none() {
    let db = Options::new().memory().unwrap();
    let text = "WITH a AS (SELECT 1 AS n), b AS (SELECT n + 1 AS n FROM a) SELECT n FROM b";
    assert_eq!(db.prepare(text).unwrap().query_as::<i64>(()).unwrap(), [2]);
    assert!(answer(&db, "WITH a AS (SELECT 1 AS n) SELECT * FROM nowhere").contains("nowhere"));
    assert!(answer(&db, "WITH a AS (SELECT * FROM a) SELECT * FROM a").contains("no table \"a\""));
}

#[test]
fn a_long_chain_of_queries_by_a_name_is_answered() {
    let db = Options::new().memory().unwrap();
    let mut text = "WITH c0 AS (SELECT 1 AS n)".to_owned();
    for i in 1..60 {
        text += &format!(", c{i} AS (SELECT n + 1 AS n FROM c{})", i - 1);
    }
    assert_eq!(db.sql_as::<i64>(&(text + " SELECT n FROM c59"), ()).unwrap(), [60]);
    let mut text = "WITH c0 AS (SELECT 1 AS n)".to_owned();
    for i in 1..40 {
        text += &format!(", c{i} AS (SELECT x.n FROM c{0} AS x, c{0} AS y)", i - 1);
    }
    assert_eq!(db.sql_as::<i64>(&(text + " SELECT n FROM c39"), ()).unwrap(), [1]);
}

#[test]
fn a_long_chain_of_unions_is_answered() {
    let db = Options::new().memory().unwrap();
    let text = (0..300).map(|i| format!("SELECT {i}")).collect::<Vec<_>>();
    let count = format!("SELECT count(*) FROM ({})", text.join(" UNION "));
    assert_eq!(db.sql_as::<i64>(&count, ()).unwrap(), [300]);
    let sum = format!("SELECT sum(column1) FROM (VALUES {})", vec!["(1)"; 900].join(", "));
    assert_eq!(db.sql_as::<i64>(&sum, ()).unwrap(), [900]);
    let nested = format!("{}SELECT 1{}", "(".repeat(40), ")".repeat(40));
    assert!(answer(&db, &format!("{nested} UNION SELECT 2")).contains("nest"));
    assert_eq!(answer(&db, "((((SELECT 1)))) UNION ((SELECT 1))"), "1");
}

#[test]
fn columns_of_rows_and_intervals_are_called_as_written() {
    let db = database();
    for (text, name) in [
        ("(1, 2) = (3, 4)", "(1, 2) = (3, 4)"),
        ("NOT (id, k) IN ((1, 2))", "NOT (id, k) IN ((1, 2))"),
        ("DATE '2024-01-31' + INTERVAL '1 day'", "DATE '2024-01-31' + INTERVAL '1 day'"),
        ("mode() WITHIN GROUP (ORDER BY k)", "mode() WITHIN GROUP (ORDER BY k)"),
        ("median(k)", "median(k)"),
    ] {
        let answer = db.sql(&format!("SELECT {text} FROM a"), ()).unwrap().answer().unwrap();
        assert_eq!(answer.columns[0].name, name);
    }
}

/// EXPLAIN shows a subquery by itself: its time is not that of the branch which asks it as well.
#[test]
fn times_of_branches_leave_out_those_of_subqueries() {
    let db = many(20_000);
    let slow = "(SELECT count(*) FROM a x JOIN a y ON x.n = y.n WHERE x.id < 900)";
    for text in [
        format!("SELECT id FROM a WHERE id = {slow} UNION ALL SELECT 1"),
        format!(
            "SELECT x.id FROM (SELECT 1 AS id) x FULL JOIN (SELECT 2 AS id) y ON x.id = {slow}"
        ),
    ] {
        let explained = db.explain(&esker_sql::parse(&text).unwrap()).unwrap();
        let steps = explained.steps.iter().filter_map(|step| step.ran).map(|ran| ran.elapsed_ms);
        let input = explained.input.iter().filter_map(|input| input.elapsed_ms);
        let first = explained.subqueries.iter().map(|one| one.plan.met.unwrap().elapsed_ms);
        let parts: f64 = steps.chain(input).chain(first).sum();
        let whole = explained.met.unwrap().elapsed_ms;
        assert!(parts <= whole + 0.001, "{text}: {parts} ms of {whole} ms\n{explained}");
    }
}

#[test]
fn a_clause_of_an_aggregate_is_taken_or_refused() {
    let db = database();
    let values = "FROM (VALUES ('a'), ('b'), ('a')) AS v (s)";
    check_on(
        &db,
        &[
            (
                &format!("SELECT string_agg(DISTINCT s, ',') WITHIN GROUP (ORDER BY s) {values}"),
                "a,b",
            ),
            (&format!("SELECT group_concat(s SEPARATOR ';') {values}"), "a;b;a"),
            (
                "SELECT percentile_cont(DISTINCT 0.5) WITHIN GROUP (ORDER BY n) \
                 FROM (VALUES (1), (1), (1), (2)) AS v (n)",
                "1.5",
            ),
        ],
    );
    for (text, wanted) in [
        ("sum(k SEPARATOR ',')", "SEPARATOR here is not supported yet"),
        ("group_concat(k, ';' SEPARATOR ',')", "SEPARATOR here is not supported yet"),
        (
            "percentile_cont(0.5 ORDER BY id) WITHIN GROUP (ORDER BY k)",
            "ORDER BY beside WITHIN GROUP is not supported yet",
        ),
    ] {
        let error = db.sql(&format!("SELECT {text} FROM a"), ()).unwrap_err().to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

#[test]
fn a_subquery_and_default_are_not_in_one_values() {
    let db = database();
    let text = "INSERT INTO a VALUES ((SELECT max(id) + 1 FROM a), DEFAULT, 'x')";
    let error = db.sql(text, ()).unwrap_err().to_string();
    assert!(error.contains("DEFAULT cannot be beside a subquery"), "{error}");
}

#[test]
fn rows_of_union_all_stream_in_little_memory() {
    let db = many(200_000);
    let text = "SELECT id, n FROM a UNION ALL SELECT n, id FROM a WHERE n < 3";
    // What is found at once of one table, 3 MB, fits; the rows of all do not.
    let text = [text, text, text, text].join(" UNION ALL ");
    let options = ChangeOptions {
        limits: Limits { memory_bytes: Some(4 << 20), ..Limits::default() },
        ..ChangeOptions::default()
    };
    let rows = db.statement_rows(&parse_statement(&text).unwrap(), &options).unwrap();
    assert_eq!(rows.map(Result::unwrap).count(), 4 * 285_715);
    let first = db.sql_rows(&format!("{text} LIMIT 3 OFFSET 199999"), ()).unwrap();
    assert_eq!(first.count(), 3);
}

#[test]
fn what_memory_does_not_hold_of_a_set_operation_goes_to_files() {
    let directory = std::env::temp_dir().join(format!("esker-sets-{}", std::process::id()));
    let db = Options::new().open(&directory).unwrap();
    db.sql("CREATE TABLE a (id i64 PRIMARY KEY, n i64)", ()).unwrap();
    db.sql(
        "INSERT INTO a WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < \
         60000) SELECT i, i % 7 FROM r",
        (),
    )
    .unwrap();
    let limits = |bytes| Limits { memory_bytes: Some(bytes), ..Limits::default() };
    for (text, wanted) in [
        ("SELECT id FROM a UNION SELECT id + 30000 FROM a", 90_000),
        ("SELECT id FROM a INTERSECT SELECT id + 30000 FROM a", 30_000),
        ("SELECT id FROM a EXCEPT ALL SELECT id + 30000 FROM a", 30_000),
    ] {
        let statement = parse_statement(text).unwrap();
        let options = ChangeOptions { limits: limits(1 << 20), ..ChangeOptions::default() };
        let rows = db.statement_rows(&statement, &options).unwrap();
        assert_eq!(rows.map(Result::unwrap).count(), wanted, "{text}");
    }
    let error = run_with(
        &db,
        "SELECT count(*) FROM (SELECT id FROM a UNION SELECT n FROM a)",
        limits(1 << 17),
    );
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
    assert!(error.to_string().contains("bytes of memory"), "{error}");
    drop(db);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_recursion_without_an_end_ends_with_the_limits_of_the_statement() {
    let db = Options::new().memory().unwrap();
    let text =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n";
    let limits = Limits { memory_bytes: Some(1 << 16), ..Limits::default() };
    let error = run_with(&db, text, limits).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
    assert!(error.to_string().contains("WITH RECURSIVE n, after"), "{error}");
    let limits = Limits { timeout: Some(Duration::from_millis(100)), ..Limits::default() };
    let error = run_with(&db, text, limits).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(error.to_string().contains("WITH RECURSIVE n"), "{error}");
    let grows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 100000) \
                 SELECT count(*) FROM n";
    assert_eq!(db.sql_as::<i64>(grows, ()).unwrap(), [100_000]);
}

#[test]
fn a_query_that_is_read_twice_runs_once() {
    let db = memory(&["CREATE SEQUENCE s"]);
    db.sql("CREATE TABLE t (n i64)", ()).unwrap();
    db.sql("INSERT INTO t VALUES (1)", ()).unwrap();
    let text = "EXPLAIN ANALYZE WITH x AS (SELECT n FROM t) SELECT x.n FROM x, x AS y";
    assert_eq!(plan(&db, text).matches("query x").count(), 2, "{}", plan(&db, text));
}

#[test]
fn plans_show_the_new_forms() {
    let db = database();
    for (text, parts) in [
        ("SELECT id FROM a UNION SELECT id FROM b", &["union", "query SELECT id FROM a"][..]),
        ("SELECT id FROM a INTERSECT ALL SELECT id FROM b ORDER BY 1", &["sort", "intersect all"]),
        ("VALUES (1), (2)", &["values"]),
        ("WITH x AS (SELECT DISTINCT id FROM a) SELECT * FROM x", &["query x"]),
        ("WITH x AS MATERIALIZED (SELECT id FROM a) SELECT * FROM x", &["query x"]),
        ("WITH x AS (SELECT id FROM a) SELECT * FROM x", &["table a AS x  (about 3 rows"]),
        (
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) \
             SELECT i FROM n",
            &["query n", "recursive union"],
        ),
        ("SELECT a.id FROM a FULL JOIN b ON a.id = b.id", &["full join", "left join", "anti join"]),
        ("SELECT a.id FROM a RIGHT JOIN b ON a.id = b.id", &["left join"]),
    ] {
        for explain in ["EXPLAIN", "EXPLAIN ANALYZE"] {
            let found = plan(&db, &format!("{explain} {text}"));
            for part in parts {
                assert!(found.contains(part), "{explain} {text}: {part}\n{found}");
            }
        }
    }
}

#[test]
fn columns_are_known_without_running() {
    let db = database();
    let columns = |text: &str| {
        let query = esker_sql::parse(text).unwrap();
        let columns = db.snapshot_for(&query).unwrap().columns(&query).unwrap();
        let shown = columns.iter().map(|c| format!("{} {}", c.name, c.data_type));
        shown.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        columns("SELECT id, NULL AS n FROM a UNION SELECT 1.5, t FROM b"),
        "id decimal(20,1), n text"
    );
    assert_eq!(columns("VALUES (1, 'a'), (NULL, NULL)"), "column1 i64, column2 text");
    assert_eq!(
        columns("WITH x (p) AS (SELECT t FROM a) SELECT *, p AS q FROM x"),
        "p text, q text"
    );
    let full = "SELECT * FROM a FULL JOIN b USING (id)";
    assert_eq!(columns(full), "id i64, k i64, t text, k i64, t text");
    let forever =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    assert_eq!(columns(forever), "i i64");
}

#[test]
fn changes_read_queries_by_a_name() {
    let db = database();
    for (text, rows) in [
        (
            "WITH x AS (SELECT max(id) AS m FROM b) UPDATE a SET k = (SELECT m FROM x) \
             WHERE id IN (SELECT m - 2 FROM x)",
            1,
        ),
        (
            "WITH x AS (SELECT id FROM b) DELETE FROM a \
             WHERE EXISTS (SELECT 1 FROM x WHERE x.id = a.id)",
            2,
        ),
        (
            "WITH x AS (VALUES (8, 80, 'v')) INSERT INTO a SELECT * FROM x UNION SELECT 9, 90, 'w'",
            2,
        ),
        ("INSERT INTO a VALUES (11, 0, 'p'), (10, 1, 'q') ORDER BY column1 LIMIT 1", 1),
        ("WITH x AS (SELECT 12 AS n) INSERT INTO a VALUES ((SELECT n FROM x), 1, 'r')", 1),
    ] {
        assert_eq!(db.sql(text, ()).unwrap().rows_changed(), rows, "{text}");
    }
    check_on(&db, &[("SELECT id, k FROM a ORDER BY id", "1|10;8|80;9|90;10|1;12|1")]);
}

#[test]
fn what_is_no_query_of_rows_of_one_table_is_not_held() {
    let db = database();
    db.transact(|transaction| {
        for text in [
            "SELECT id FROM a UNION SELECT id FROM b FOR UPDATE",
            "WITH x AS (SELECT 1) SELECT id FROM a FOR UPDATE",
            "SELECT DISTINCT ON (k) id FROM a FOR UPDATE",
            "SELECT n FROM a AS x (n) FOR UPDATE",
        ] {
            let error = transaction.sql(text, ()).unwrap_err().to_string();
            assert!(error.contains("expected a query of rows of one table"), "{text}: {error}");
        }
        Ok(())
    })
    .unwrap();
}

/// Places of Value::Null beside values of every type.
#[test]
fn types_of_columns_are_those_that_all_branches_can_take() {
    let db = memory(&[
        "CREATE TABLE t (i i32, u u64, f f32, d decimal(6,2), day date, at timestamp, b bool, \
         x bytes)",
        "INSERT INTO t VALUES (1, 2, 0.5, 1.25, '2024-01-31', '2024-01-31 10:00:00', true, \
         X'00ff')",
    ]);
    check_on(
        &db,
        &[
            ("SELECT i FROM t UNION ALL SELECT d FROM t", "1.00;1.25"),
            ("SELECT i FROM t UNION ALL SELECT f FROM t", "1.0;0.5"),
            (
                "SELECT day FROM t UNION ALL SELECT at FROM t",
                "2024-01-31 00:00:00;2024-01-31 10:00:00",
            ),
            ("SELECT NULL UNION ALL SELECT x FROM t", "null;00ff"),
            ("SELECT '2024-02-01' UNION ALL SELECT day FROM t", "2024-02-01;2024-01-31"),
            ("SELECT b FROM t UNION SELECT NULL UNION SELECT true ORDER BY 1", "null;true"),
        ],
    );
    let error = answer(&db, "SELECT b FROM t UNION SELECT i FROM t");
    assert!(error.contains("UNION: column 1 (b): bool and i32 have no common type"), "{error}");
    assert_eq!(Value::Null.to_string(), "null");
}
