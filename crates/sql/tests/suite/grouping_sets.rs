//! Grouping sets, GROUP BY ALL and ORDER BY ALL: what they answer, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use esker::{ChangeOptions, Database, Limits, Options, Value};
use esker_sql::{Outcome, Sql, parse_statement};

use crate::fixture::{answer, check_on, memory};

fn database() -> Database {
    memory(&[
        "CREATE TABLE s (id i64 PRIMARY KEY, a i64, b text, v i64)",
        "INSERT INTO s VALUES (1, 1, 'x', 10), (2, 1, 'y', 20), (3, 2, 'x', 30), \
         (4, NULL, 'x', 40), (5, 2, NULL, NULL)",
        "CREATE TABLE none (a i64, b text, v i64)",
    ])
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    check_on(&database(), cases);
}

#[test]
fn each_set_has_its_groups() {
    check(&[
        (
            "SELECT a, b, sum(v) FROM s GROUP BY GROUPING SETS ((a, b), (a), ()) \
             ORDER BY GROUPING(a, b), a, b",
            "null|x|40;1|x|10;1|y|20;2|null|null;2|x|30;null|null|40;1|null|30;2|null|30;\
             null|null|100",
        ),
        (
            "SELECT a, count(*), GROUPING(a) FROM s GROUP BY ROLLUP (a) ORDER BY 3, 1",
            "null|1|0;1|2|0;2|2|0;null|5|1",
        ),
        (
            "SELECT a, b, count(*) FROM s GROUP BY CUBE (a, b) HAVING GROUPING(a, b) IN (1, 2) \
             ORDER BY GROUPING_ID(a, b), a, b",
            "null|null|1;1|null|2;2|null|2;null|null|1;null|x|3;null|y|1",
        ),
        // Composite elements, a product, a set inside a set.
        (
            "SELECT count(*), GROUPING(a), GROUPING(b) FROM s GROUP BY ROLLUP ((a, b)) \
             ORDER BY 2 DESC, 1",
            "5|1|1;1|0|0;1|0|0;1|0|0;1|0|0;1|0|0",
        ),
        (
            "SELECT a, count(*) FROM s GROUP BY a, GROUPING SETS ((b), ()) HAVING count(*) > 1 \
             ORDER BY a",
            "1|2;2|2",
        ),
        (
            "SELECT a, count(*) FROM s GROUP BY GROUPING SETS (a, ROLLUP (a), \
             GROUPING SETS ((a), ())) HAVING a = 1 OR GROUPING(a) = 1 ORDER BY GROUPING(a), a",
            "1|2;1|2;1|2;null|5;null|5",
        ),
    ]);
}

#[test]
fn a_set_that_is_there_twice_is_shown_twice() {
    check(&[
        ("SELECT count(*) FROM s GROUP BY GROUPING SETS ((), (), (a)) ORDER BY 1", "1;2;2;5;5"),
        ("SELECT a FROM s GROUP BY a, ROLLUP (a) ORDER BY a", "null;null;1;1;2;2"),
    ]);
}

#[test]
fn a_set_without_keys_has_a_group_of_no_rows() {
    check(&[
        ("SELECT count(*), sum(v) FROM none GROUP BY ()", "0|null"),
        ("SELECT a, count(*) FROM none GROUP BY a, ()", ""),
        ("SELECT a, b, count(*) FROM none GROUP BY CUBE (a, b)", "null|null|0"),
        ("SELECT count(*) FROM none GROUP BY GROUPING SETS ((), (a), ())", "0;0"),
        ("SELECT a, count(*) FROM s WHERE v > 1000 GROUP BY ROLLUP (a)", "null|0"),
        ("SELECT count(*) FROM none GROUP BY GROUPING SETS (()) HAVING count(*) > 0", ""),
    ]);
}

#[test]
fn bits_of_grouping_are_in_the_order_of_its_operands() {
    check(&[
        (
            "SELECT GROUPING(a, b), GROUPING(b, a), GROUPING(b), GROUPING(), count(*) FROM s \
             GROUP BY GROUPING SETS ((a), (b), (a, b), ()) HAVING count(*) >= 3 \
             OR GROUPING(a, b) = 1 ORDER BY 1, 5",
            "1|2|1|1|1;1|2|1|1|2;1|2|1|1|2;2|1|0|2|3;3|3|1|3|5",
        ),
        ("SELECT GROUPING(a), count(*) FROM s GROUP BY a ORDER BY 2 LIMIT 1", "0|1"),
        (
            "SELECT v % 20 AS m, GROUPING(v % 20) FROM s GROUP BY ROLLUP (m) ORDER BY 2, 1",
            "null|0;0|0;10|0;null|1",
        ),
    ]);
}

#[test]
fn clauses_work_over_the_groups_of_all_sets() {
    check(&[
        ("SELECT DISTINCT GROUPING(a) FROM s GROUP BY CUBE (a, b) ORDER BY 1", "0;1"),
        (
            "SELECT a, count(DISTINCT b), count(*) FILTER (WHERE v > 15) FROM s \
             GROUP BY ROLLUP (a) ORDER BY GROUPING(a), a",
            "null|1|1;1|2|1;2|1|1;null|2|3",
        ),
        (
            "SELECT a, sum(v), rank() OVER (PARTITION BY GROUPING(a) ORDER BY sum(v) DESC) \
             FROM s GROUP BY ROLLUP (a) ORDER BY GROUPING(a), a",
            "null|40|1;1|30|2;2|30|2;null|100|1",
        ),
        (
            "SELECT n FROM (SELECT a, count(*) AS n FROM s GROUP BY ROLLUP (a)) AS q \
             WHERE a IS NULL ORDER BY n",
            "1;5",
        ),
        (
            "SELECT t.b, count(*) FROM s JOIN s AS t ON t.a = s.a GROUP BY ROLLUP (t.b) \
             ORDER BY GROUPING(t.b), 1",
            "null|2;x|4;y|2;null|8",
        ),
        (
            "SELECT id FROM s WHERE a IN (SELECT a FROM s GROUP BY CUBE (a, b) \
             HAVING count(*) = 2) ORDER BY id",
            "1;2;3;5",
        ),
        (
            "SELECT DISTINCT a, (SELECT count(*) FROM s AS t WHERE t.a = s.a GROUP BY ROLLUP (b) \
             ORDER BY 1 DESC LIMIT 1) FROM s ORDER BY a",
            "null|0;1|2;2|2",
        ),
        (
            "SELECT a, (SELECT count(*) FROM s AS t WHERE t.a = s.a), sum(v) FROM s \
             GROUP BY ROLLUP (a) HAVING EXISTS (SELECT 1 FROM s AS t WHERE t.a = s.a) \
             OR sum(v) > 50 ORDER BY GROUPING(a), a",
            "1|2|30;2|2|30;null|0|100",
        ),
        (
            "SELECT a, sum(v) AS n, (SELECT max(v) FROM s AS t WHERE t.a = a OR s.a IS NULL) AS m, \
             rank() OVER (ORDER BY sum(v)) FROM s GROUP BY CUBE (a, b) HAVING sum(v) > 30 \
             ORDER BY GROUPING(a, b), m, n",
            "null|40|40|1;null|40|40|1;null|80|40|3;null|100|40|4",
        ),
        ("SELECT 'all' AS k, count(*) FROM s GROUP BY ROLLUP (k) ORDER BY k", "null|5;all|5"),
    ]);
}

#[test]
fn all_stands_for_the_select_items() {
    check(&[
        ("SELECT a, count(*) FROM s GROUP BY ALL ORDER BY ALL", "null|1;1|2;2|2"),
        ("SELECT a, count(*) FROM s GROUP BY ALL ORDER BY ALL DESC", "2|2;1|2;null|1"),
        ("SELECT b, a FROM s ORDER BY ALL NULLS LAST", "x|1;x|2;x|null;y|1;null|2"),
        ("SELECT count(*), a % 2 AS odd FROM s GROUP BY ALL ORDER BY odd", "1|null;2|0;2|1"),
        ("SELECT 1 AS one, count(*) FROM none GROUP BY ALL", "1|0"),
        ("SELECT 1 AS one FROM s GROUP BY ALL", "1;1;1;1;1"),
        ("SELECT * FROM none GROUP BY ALL ORDER BY ALL", ""),
        ("SELECT * FROM s ORDER BY ALL DESC LIMIT 1", "5|2|null|null"),
        ("SELECT a FROM s UNION SELECT v FROM s WHERE v < 20 ORDER BY ALL", "null;1;2;10"),
        (
            "SELECT s.a, t.b, count(*) FROM s JOIN s AS t USING (id) GROUP BY ALL \
             ORDER BY ALL LIMIT 2",
            "null|x|1;1|x|1",
        ),
        ("SELECT a, count(*) FROM s GROUP BY 1 ORDER BY ALL", "null|1;1|2;2|2"),
        (
            "SELECT a, b, count(*) FROM s GROUP BY ROLLUP (1, 2) ORDER BY count(*) DESC LIMIT 1",
            "null|null|5",
        ),
    ]);
}

#[test]
fn what_has_no_meaning_is_refused() {
    let db = database();
    let keys: Vec<String> = (0..13).map(|i| format!("v + {i}")).collect();
    let cube = format!("SELECT count(*) FROM s GROUP BY CUBE ({})", keys.join(", "));
    let twelve = keys.iter().take(12).cloned().collect::<Vec<_>>().join(", ");
    let product = format!("SELECT count(*) FROM s GROUP BY CUBE ({twelve}), ROLLUP (a)");
    for (text, wanted) in [
        (cube.as_str(), "8192 grouping sets, at most 4096"),
        (&product, "8192 grouping sets, at most 4096"),
        ("SELECT GROUPING(b) FROM s GROUP BY ROLLUP (a)", "grouping(b): b is not in GROUP BY"),
        ("SELECT GROUPING(a) FROM s", "a is not in GROUP BY"),
        ("SELECT a FROM s WHERE GROUPING(a) = 1 GROUP BY a", "there are no groups"),
        ("SELECT v FROM s GROUP BY ROLLUP (a)", "\"v\" is neither in GROUP BY"),
        ("SELECT sum(GROUPING(a)) FROM s GROUP BY a", "cannot be inside another"),
        ("SELECT count(*) FROM s GROUP BY ROLLUP (3)", "GROUP BY 3: expected 1 to 1"),
        ("SELECT count(*) FROM s GROUP BY ROLLUP (sum(v))", "is an aggregate"),
        ("SELECT a, rank() OVER (ORDER BY a) FROM s GROUP BY ALL", "window function"),
        ("SELECT a FROM s GROUP BY a WITH ROLLUP", "this GROUP BY"),
        ("SELECT ROLLUP(a) FROM s", "unknown function ROLLUP"),
    ] {
        let found = answer(&db, text);
        assert!(found.starts_with("error: ") && found.contains(wanted), "{text}\n{found}");
    }
    let found = answer(&db, &format!("SELECT count(*) FROM s GROUP BY CUBE ({twelve}) LIMIT 1"));
    assert!(!found.starts_with("error"), "{found}");
}

/// It was computed of the rows of the subquery, each of which has the same value.
#[test]
fn aggregates_of_fields_of_the_query_around_are_refused() {
    let db = database();
    for text in [
        "SELECT (SELECT max(s.v) FROM none) FROM s",
        "SELECT a, (SELECT sum(s.v) FROM s AS t) FROM s GROUP BY a",
        "SELECT a FROM s GROUP BY a HAVING EXISTS (SELECT 1 FROM s AS t HAVING count(s.v) > 1)",
        "SELECT id FROM s WHERE v = (SELECT sum(DISTINCT s.v) FILTER (WHERE s.a = 1) FROM s AS t)",
    ] {
        let found = answer(&db, text);
        assert!(found.contains("is of the groups of that query"), "{text}\n{found}");
    }
    check(&[
        (
            "SELECT id, (SELECT sum(s.v + t.v) FROM s AS t WHERE t.id = 1) FROM s WHERE id < 3",
            "1|20;2|30",
        ),
        ("SELECT id, (SELECT sum(s.v) OVER () FROM s AS t LIMIT 1) FROM s WHERE id = 2", "2|100"),
    ]);
}

#[test]
fn a_plan_names_the_sets() {
    let db = database();
    let plan = |text: &str| match db.sql(text, ()) {
        Ok(Outcome::Plan(plan)) => plan,
        other => panic!("{other:?}"),
    };
    let rollup = plan("EXPLAIN SELECT a, b, count(*) FROM s GROUP BY ROLLUP (a, b)");
    assert!(rollup.contains("by GROUPING SETS ((a, b), (a), ())"), "{rollup}");
    let cube = plan("EXPLAIN SELECT count(*) FROM s GROUP BY CUBE (1 + a, 2 + a, 3 + a, 4 + a, b)");
    assert!(cube.contains("… (32 sets))"), "{cube}");
}

/// Groups of all sets that memory does not hold go through files, and come in the same order.
#[test]
fn grouping_sets_that_memory_does_not_hold_go_to_files() {
    let directory = std::env::temp_dir().join(format!("esker-sets-{}", std::process::id()));
    let db = Options::new().open(&directory).unwrap();
    db.sql("CREATE TABLE m (i i64 PRIMARY KEY, t text, n i64)", ()).unwrap();
    for start in (0..30_000).step_by(3_000) {
        let row = |i: i64| match i % 13 {
            0 => format!("({i}, NULL, {})", i % 5),
            _ => format!("({i}, 'text {}', {})", i * 7 % 9_973, i % 5),
        };
        let rows: Vec<String> = (start..start + 3_000).map(row).collect();
        db.sql(&format!("INSERT INTO m VALUES {}", rows.join(",")), ()).unwrap();
    }
    let rows = |text: &str, bytes: usize| -> Vec<Vec<Value>> {
        let limits = Limits { memory_bytes: Some(bytes), ..Limits::default() };
        let options = ChangeOptions { limits, ..ChangeOptions::default() };
        let rows = db.statement_rows(&parse_statement(text).unwrap(), &options).unwrap();
        rows.map(|row| row.unwrap().into_values()).collect()
    };
    for text in [
        "SELECT t, n, GROUPING(t, n), count(*), sum(i), count(DISTINCT i % 7) FROM m \
         GROUP BY CUBE (t, n)",
        "SELECT t, i % 1000, min(i), max(t) FROM m GROUP BY t, ROLLUP (i % 1000)",
    ] {
        let (wanted, found) = (rows(text, 256 << 20), rows(text, 2 << 20));
        assert!(wanted.len() > 20_000, "{text}: {} rows", wanted.len());
        assert!(found == wanted, "{text}: other rows, or another order");
        let text = format!("SELECT count(*) FROM ({text}) AS q");
        assert_eq!(rows(&text, 256 << 20), [[Value::Int(wanted.len() as i64)]]);
    }
    let none = "SELECT t, count(*) FROM m WHERE i < 0 GROUP BY CUBE (t, i)";
    assert_eq!(rows(none, 2 << 20), [[Value::Null, Value::Int(0)]]);
    drop(db);
    std::fs::remove_dir_all(directory).unwrap();
}
