//! What names mean in queries within others, and what such queries may be.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use esker::{Database, Options};
use esker_sql::Sql;

use crate::fixture::{answer, check_on, memory};

fn database() -> Database {
    memory(&[
        "CREATE TABLE o (id i64 PRIMARY KEY, x i64, k i64)",
        "CREATE TABLE t (n i64 PRIMARY KEY, y i64, k i64)",
        "INSERT INTO o VALUES (1, 10, 3), (2, 20, 2), (3, 30, 1)",
        "INSERT INTO t VALUES (1, 10, 3), (2, 11, 3), (3, 20, 2)",
    ])
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    check_on(&database(), cases);
}

#[track_caller]
fn check_refused(cases: &[(&str, &str)]) {
    let db = database();
    for (text, part) in cases {
        let found = answer(&db, text);
        assert!(found.starts_with("error: ") && found.contains(part), "{text}\n{found}");
        assert_eq!(answer(&db, "SELECT count(*), sum(x) FROM o"), "3|60", "{text}");
    }
}

#[test]
fn a_name_with_the_inner_table_is_never_the_outer_tables() {
    let unknown = "t: unknown field \"id\"";
    check_refused(&[
        ("DELETE FROM o WHERE id IN (SELECT t.id FROM t)", unknown),
        ("DELETE FROM o WHERE id IN (SELECT a.id FROM t AS a)", "a: unknown field \"id\""),
        ("DELETE FROM o WHERE EXISTS (SELECT 1 FROM t WHERE t.id = 1)", unknown),
        ("UPDATE o SET x = 0 WHERE id IN (SELECT t.id FROM t)", unknown),
        ("UPDATE o SET x = (SELECT t.id FROM t)", unknown),
        ("SELECT x FROM o WHERE id = (SELECT max(t.id) FROM t)", unknown),
        ("SELECT x FROM o WHERE EXISTS (SELECT 1 FROM t GROUP BY t.id)", unknown),
        ("SELECT x FROM o WHERE EXISTS (SELECT 1 FROM t ORDER BY t.id)", unknown),
        (
            "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM t WHERE t.x = 10)",
            "t: unknown field \"x\"",
        ),
        ("SELECT id FROM o WHERE EXISTS (SELECT 1 FROM (SELECT t.x FROM t) AS d)", "\"x\""),
    ]);
    check(&[
        ("SELECT id FROM o WHERE x IN (SELECT t.y FROM t WHERE t.k > 2)", "1"),
        ("SELECT o.id FROM o WHERE o.x IN (SELECT t.y FROM t WHERE t.k = o.k)", "1;2"),
        ("SELECT id FROM o WHERE k IN (SELECT o.k FROM o AS o WHERE o.x > 10)", "2;3"),
        ("SELECT id FROM o AS t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.k = t.k)", "1;2"),
        ("SELECT d.k FROM (SELECT t.k, count(*) AS c FROM t GROUP BY t.k HAVING t.k > 2) d", "3"),
        ("SELECT * FROM (SELECT t.* FROM t ORDER BY t.y DESC LIMIT 1) AS d", "3|20|2"),
        ("SELECT id FROM o WHERE x IN (SELECT y FROM t WHERE id = n)", "1"),
    ]);
}

/// One operand of each type beside values of each other one: by a list that was answered first, by
/// a semi join and by a join, the same rows are found, or each refuses.
#[test]
fn values_of_subqueries_compare_as_those_of_fields() {
    let db = Options::new().memory().unwrap();
    let types = [
        ("i", "i64", ["1", "9007199254740993", "3"]),
        ("f", "f64", ["0.1", "9007199254740992.0", "3.0"]),
        ("g", "f32", ["0.1", "16777216.0", "3.0"]),
        ("p", "decimal(20,2)", ["0.10", "9007199254740993", "3"]),
        ("s", "text", ["'2020-01-01'", "'small'", "'3'"]),
        ("d", "date", ["'2020-01-01'", "'2020-01-02'", "'1970-01-01'"]),
        ("t", "timestamp", ["'2020-01-01 00:00:00'", "'2020-01-02 00:00:01'", "NULL"]),
        ("e", "enum('large', 'small')", ["'small'", "'large'", "NULL"]),
        ("h", "enum('small', 'other', 'large')", ["'small'", "'large'", "'other'"]),
        ("b", "bool", ["true", "false", "NULL"]),
    ];
    for name in ["o", "q"] {
        let fields: Vec<_> = types.iter().map(|(n, t, _)| format!("{n} {t} NULL")).collect();
        let fields = fields.join(", ");
        db.sql(&format!("CREATE TABLE {name} (id i64 PRIMARY KEY, one i64, {fields})"), ())
            .unwrap();
        for row in 0..3 {
            let values: Vec<_> = types.iter().map(|(_, _, values)| values[row]).collect();
            let values = values.join(", ");
            db.sql(&format!("INSERT INTO {name} VALUES ({row}, 1, {values})"), ()).unwrap();
        }
    }
    let outcome = |text: String| match answer(&db, &text) {
        refused if refused.starts_with("error: ") => "refused".to_owned(),
        rows => rows,
    };
    for (a, _, _) in types {
        for (b, _, _) in types {
            let list = format!("SELECT id FROM o WHERE {a} IN (SELECT {b} FROM q) ORDER BY id");
            let semi = format!(
                "SELECT id FROM o WHERE {a} IN (SELECT q.{b} FROM q WHERE q.one = o.one) \
                 ORDER BY id"
            );
            let join = format!("SELECT DISTINCT o.id FROM o JOIN q ON o.{a} = q.{b} ORDER BY id");
            let wanted = outcome(join);
            assert_eq!(outcome(semi), wanted, "{a} {b}");
            assert_eq!(outcome(list.clone()), wanted, "{list}");
            let not = list.replace(" IN ", " NOT IN ");
            let semi = format!(
                "SELECT id FROM o WHERE {a} NOT IN (SELECT q.{b} FROM q WHERE q.one = o.one) \
                 ORDER BY id"
            );
            assert_eq!(outcome(not.clone()), outcome(semi), "{not}");
            for row in 0..3 {
                let one = format!(
                    "SELECT id FROM o WHERE {a} = (SELECT {b} FROM q WHERE id = {row}) ORDER BY id"
                );
                let join = format!(
                    "SELECT o.id FROM o JOIN q ON o.{a} = q.{b} WHERE q.id = {row} ORDER BY id"
                );
                assert_eq!(outcome(one.clone()), outcome(join), "{one}");
            }
        }
    }
    // Without a value, too.
    let none = "SELECT id FROM o WHERE d IN (SELECT s FROM q WHERE false)";
    assert!(answer(&db, none).starts_with("error: "), "{}", answer(&db, none));
    for value in ["(SELECT h FROM q WHERE id = 0)", "h", "(SELECT e FROM q WHERE id = 0)"] {
        db.sql("UPDATE o SET e = NULL, h = 'small' WHERE id = 0", ()).unwrap();
        db.sql(&format!("UPDATE o SET e = {value} WHERE id = 0"), ()).unwrap();
        assert_eq!(answer(&db, "SELECT e FROM o WHERE id = 0"), "small", "{value}");
    }
    let text = "SELECT id FROM o WHERE p < (SELECT max(i) / 2 FROM q) ORDER BY id";
    assert_eq!(answer(&db, text), "0;2", "{text}");
}

/// A column was named after the value that a subquery had answered.
#[test]
fn a_column_is_named_after_its_subquery() {
    let db = database();
    let outcome = db.sql("SELECT (SELECT max(y) FROM t), 1 + (SELECT 1) FROM o", ()).unwrap();
    let columns = outcome.into_rows().unwrap().columns;
    let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["(SELECT max(y) FROM t)", "1 + (SELECT 1)"]);
}

#[test]
fn an_alias_within_hides_no_field_around_where_no_alias_is_known() {
    check(&[
        ("SELECT id FROM o WHERE EXISTS (SELECT n AS x FROM t WHERE t.y = x)", "1;2"),
        ("SELECT id FROM o WHERE k IN (SELECT k AS x FROM t WHERE y = x)", "1;2"),
        (
            "SELECT id FROM o WHERE EXISTS (SELECT k AS x FROM t GROUP BY k HAVING count(*) > 1 \
             ORDER BY x)",
            "1;2;3",
        ),
    ]);
}

#[test]
fn a_name_with_a_table_that_is_not_there_is_no_alias() {
    check_refused(&[
        ("SELECT x AS k FROM o ORDER BY t.k", "t.k"),
        ("SELECT x AS z FROM o ORDER BY t.z", "t.z"),
        ("SELECT x AS z FROM o ORDER BY o.z", "\"z\""),
        ("SELECT x AS z FROM o GROUP BY x ORDER BY o.z", "\"z\""),
        ("SELECT o.x AS z FROM o JOIN t USING (k) ORDER BY t.z", "\"z\""),
    ]);
}

#[test]
fn a_limit_within_a_correlated_in_counts_for_each_row() {
    check(&[
        ("SELECT id FROM o WHERE x IN (SELECT y FROM t WHERE t.k = o.k ORDER BY y LIMIT 1)", "1;2"),
        (
            "SELECT id FROM o WHERE x NOT IN (SELECT y FROM t WHERE t.k = o.k ORDER BY y DESC \
             LIMIT 1)",
            "1;3",
        ),
        ("SELECT id FROM o WHERE x IN (SELECT y FROM t WHERE t.k = o.k ORDER BY y OFFSET 1)", ""),
        ("SELECT id FROM o WHERE EXISTS (SELECT 1 FROM t WHERE t.k = o.k LIMIT 1)", "1;2"),
        ("SELECT id FROM o WHERE x IN (SELECT y FROM t ORDER BY y DESC LIMIT 1)", "2"),
    ]);
}

#[test]
fn a_name_with_its_table_is_never_an_alias_in_order_by() {
    check(&[
        ("SELECT x AS k, k AS z FROM o ORDER BY o.k", "30|1;20|2;10|3"),
        ("SELECT x AS k, k AS z FROM o ORDER BY (o.k) DESC LIMIT 2", "10|3;20|2"),
        ("SELECT x AS k, k AS z FROM o AS p ORDER BY p.k", "30|1;20|2;10|3"),
        ("SELECT x AS k, k AS z FROM o ORDER BY k", "10|3;20|2;30|1"),
        ("SELECT DISTINCT x AS k, k AS z FROM o ORDER BY o.k", "30|1;20|2;10|3"),
        ("SELECT max(x) AS k, k AS z FROM o GROUP BY o.k ORDER BY o.k", "30|1;20|2;10|3"),
        ("SELECT * FROM (SELECT x AS k, k AS z FROM o ORDER BY o.k LIMIT 1) AS d", "30|1"),
        (
            "SELECT x AS k, k AS z FROM o WHERE id IN (SELECT id FROM o) ORDER BY o.k LIMIT 1",
            "30|1",
        ),
        ("SELECT o.x AS k, o.k AS z FROM o JOIN t USING (k) ORDER BY o.k LIMIT 1", "20|2"),
    ]);
}

#[test]
fn unknown_fields_of_correlated_subqueries_are_refused() {
    check_refused(&[
        ("SELECT id FROM o WHERE EXISTS (SELECT nope FROM t WHERE t.k = o.k)", "\"nope\""),
        ("SELECT id FROM o WHERE EXISTS (SELECT t.nope FROM t WHERE t.k = o.k)", "\"nope\""),
        ("SELECT id FROM o WHERE EXISTS (SELECT 1 + nope FROM t WHERE t.k = o.k)", "\"nope\""),
        ("SELECT id FROM o WHERE EXISTS (SELECT nope.* FROM t WHERE t.k = o.k)", "\"nope\""),
        (
            "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM t WHERE t.k = o.k ORDER BY nope)",
            "\"nope\"",
        ),
        ("DELETE FROM o WHERE x IN (SELECT y FROM t WHERE t.k = o.k ORDER BY t.nope)", "\"nope\""),
        ("DELETE FROM o WHERE x IN (SELECT nope FROM t WHERE t.k = o.k)", "\"nope\""),
    ]);
    check(&[
        (
            "SELECT id FROM o WHERE EXISTS (SELECT y + o.x AS s, t.* FROM t WHERE t.k = o.k \
             ORDER BY s, y, o.id, t.k)",
            "1;2",
        ),
        ("SELECT id FROM o WHERE x IN (SELECT DISTINCT t.y AS id FROM t WHERE t.k = o.k)", "1;2"),
    ]);
}

#[test]
fn a_subquery_may_have_any_number_of_values() {
    let db = database();
    let rows: Vec<String> = (0..300).map(|n| format!("({n})")).collect();
    db.sql("CREATE TABLE digits (n i64 PRIMARY KEY)", ()).unwrap();
    db.sql(&format!("INSERT INTO digits VALUES {}", rows.join(", ")), ()).unwrap();
    let all = "(SELECT a.n * 300 + b.n FROM digits a, digits b)";
    for (condition, wanted) in [
        (format!("n IN {all}"), "300"),
        (format!("n + 89999 IN {all}"), "1"),
        (format!("n + 89990 NOT IN {all}"), "290"),
    ] {
        let text = format!("SELECT count(*) FROM digits WHERE {condition}");
        assert_eq!(answer(&db, &text), wanted, "{text}");
    }
}

/// The lines of a plan.
fn plan(db: &Database, text: &str) -> String {
    match db.sql(text, ()).unwrap() {
        esker_sql::Outcome::Plan(plan) => plan.to_string(),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_plan_shows_its_subqueries_with_plans_of_their_own() {
    let db = database();
    for (condition, within) in [
        ("x IN (SELECT y FROM t WHERE k = 3)", "scan t where k = 3"),
        ("NOT x IN (SELECT y FROM t)", "scan t"),
        ("x = (SELECT max(y) FROM t)", "aggregate all"),
        ("EXISTS (SELECT 1 FROM t WHERE k = 9)", "scan t where k = 9"),
        ("CAST(x AS text) LIKE (SELECT 'a')", "scan one row"),
        ("regexp_like(CAST(x AS text), (SELECT 'a'))", "scan one row"),
    ] {
        let shown = plan(&db, &format!("EXPLAIN SELECT id FROM o WHERE {condition}"));
        let scan = format!("scan o where {condition}");
        let subquery = condition.find("SELECT").and_then(|at| condition.get(at..)).unwrap();
        let first = format!("  first {}", subquery.split_once(')').unwrap().0);
        for part in [&scan, "chosen again once the subqueries below are answered", &first, within] {
            assert!(shown.contains(part), "{part:?} in\n{shown}");
        }
        assert!(!shown.contains("no row can pass"), "{shown}");
        let ran = plan(&db, &format!("EXPLAIN ANALYZE SELECT id FROM o WHERE {condition}"));
        assert!(ran.contains(&first) && ran.contains(within), "{ran}");
        assert!(!ran.contains("chosen again"), "{ran}");
    }
    // One within another stands below it, and what is joined has them, too.
    let nested = "EXPLAIN SELECT o.id FROM o JOIN t ON t.k = o.k WHERE o.x IN (SELECT y FROM t \
                  WHERE n = (SELECT max(n) FROM t))";
    let shown = plan(&db, nested);
    let outer = shown.find("  first SELECT y").unwrap();
    let inner = shown.find("first SELECT max(n)").unwrap();
    assert!(outer < inner && shown.matches("first ").count() == 2, "{shown}");
    assert!(shown.contains("table o where o.x IN (SELECT y"), "{shown}");
}

/// What no value of a subquery could mend is told although running it fails.
#[test]
fn types_are_checked_before_a_subquery_runs() {
    check_refused(&[
        (
            "SELECT id FROM o WHERE x IN (SELECT CAST(9223372036854775807 + n AS text) FROM t)",
            "cannot compare",
        ),
        (
            "SELECT id FROM o WHERE x = (SELECT DATE '2020-01-01' FROM t \
             WHERE 9223372036854775807 + n > 0)",
            "cannot compare",
        ),
        (
            "SELECT id FROM o WHERE x IN (SELECT n, 9223372036854775807 + n FROM t)",
            "expected one column",
        ),
        ("SELECT id FROM o WHERE (SELECT n FROM t)", "expected a condition"),
        ("SELECT d.n + 'a' FROM (SELECT 9223372036854775807 + n AS n FROM t) AS d", "+"),
        (
            "SELECT gone FROM o WHERE x IN (SELECT 9223372036854775807 + n FROM t)",
            "unknown field \"gone\"",
        ),
        (
            "SELECT o.id FROM o JOIN t ON o.k + 9223372036854775807 = t.k WHERE x = 'a'",
            "cannot compare",
        ),
        ("SELECT id FROM o WHERE x IN (SELECT 9223372036854775807 + n FROM t)", "does not fit i64"),
    ]);
}
