//! Subqueries that name fields of the query around them, wherever they stand: by joins and one by
//! one, the answers are the same.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use esker::{Database, Options, Unnesting};
use esker_sql::Sql;

use crate::fixture::answer;

/// A database of which subqueries become joins, and one of which they do not.
pub fn both(statements: &[&str]) -> [Database; 2] {
    [Unnesting::WherePossible, Unnesting::Never].map(|unnesting| {
        let db = Options::new().unnesting(unnesting).memory().unwrap();
        for statement in statements {
            db.sql(statement, ()).unwrap_or_else(|e| panic!("{statement}: {e}"));
        }
        db
    })
}

#[track_caller]
pub fn check_both(dbs: &[Database; 2], cases: &[(&str, &str)]) {
    for (text, wanted) in cases {
        let wanted = wanted.replace("NULL", "null");
        let found = dbs.each_ref().map(|db| answer(db, text));
        assert_eq!(found, [wanted.clone(), wanted], "{text}");
    }
}

/// Each is refused with a part of a message.
#[track_caller]
pub fn check_refused(dbs: &[Database; 2], cases: &[(&str, &str)]) {
    for (text, part) in cases {
        for db in dbs {
            let found = answer(db, text);
            assert!(found.starts_with("error: ") && found.contains(part), "{text}\n{found}");
        }
    }
}

pub fn tables() -> [Database; 2] {
    both(&[
        "CREATE TABLE o (id i64 PRIMARY KEY, x i64, k i64)",
        "CREATE TABLE t (n i64 PRIMARY KEY, y i64, k i64)",
        "INSERT INTO o VALUES (1, 10, 3), (2, 20, 2), (3, 30, 1), (4, NULL, 3), (5, 50, NULL)",
        "INSERT INTO t VALUES (1, 10, 3), (2, 11, 3), (3, 20, 2), (4, NULL, 2), (5, 7, NULL), \
         (6, 99, 4)",
    ])
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    check_both(&tables(), cases);
}

#[test]
fn a_scalar_subquery_stands_anywhere() {
    check(&[
        (
            "SELECT id, (SELECT max(y) FROM t WHERE t.k = o.k) FROM o ORDER BY id",
            "1|11;2|20;3|NULL;4|11;5|NULL",
        ),
        ("SELECT id FROM o WHERE x = (SELECT min(y) FROM t WHERE t.k = o.k) ORDER BY id", "1;2"),
        ("SELECT id FROM o ORDER BY (SELECT max(y) FROM t WHERE t.k = o.k) DESC, id", "2;1;4;3;5"),
        (
            "SELECT id, 1 + (SELECT y FROM t WHERE n = o.id) * 2 FROM o WHERE id <> 4 ORDER BY 1",
            "1|21;2|23;3|41;5|15",
        ),
        (
            "SELECT DISTINCT (SELECT max(y) FROM t WHERE t.k = o.k) AS m FROM o ORDER BY m",
            "NULL;11;20",
        ),
        ("SELECT sum((SELECT count(*) FROM t WHERE t.k = o.k)) FROM o", "6"),
        (
            "SELECT (SELECT count(*) FROM t WHERE t.k = o.k) AS c, count(*) FROM o GROUP BY c \
             ORDER BY c",
            "0|2;2|3",
        ),
        (
            "SELECT 1 + (SELECT count(*) FROM t WHERE t.k = o.k) AS c, count(*) FROM o GROUP BY 1 \
             ORDER BY 1",
            "1|2;3|3",
        ),
        (
            "SELECT k, (SELECT max(y) FROM t WHERE t.k = o.k), count(*) FROM o GROUP BY k \
             ORDER BY k",
            "NULL|NULL|1;1|NULL|1;2|20|1;3|11|2",
        ),
        (
            "SELECT k, count(*) FROM o GROUP BY k HAVING count(*) < (SELECT count(*) FROM t WHERE \
             t.k = o.k) ORDER BY k",
            "2|1",
        ),
        ("SELECT * FROM o WHERE (SELECT max(y) FROM t WHERE t.k = o.k) = 20", "2|20|2"),
        ("SELECT count(*) FROM o WHERE x > (SELECT min(y) FROM t WHERE t.n <= o.id)", "3"),
        ("SELECT id FROM o WHERE (SELECT max(y) FROM t WHERE t.k = o.k) > 5 LIMIT 1", "1"),
        ("SELECT id, (SELECT o.x + o.k) FROM o WHERE id < 3 ORDER BY id", "1|13;2|22"),
        (
            "SELECT a.id FROM o AS a WHERE a.x = (SELECT max(b.x) FROM o AS b WHERE b.k = a.k)",
            "1;2;3",
        ),
    ]);
}

#[test]
fn counts_of_no_rows_are_0_and_other_aggregates_null() {
    check(&[
        (
            "SELECT id, (SELECT count(*) FROM t WHERE t.k = o.k) FROM o ORDER BY id",
            "1|2;2|2;3|0;4|2;5|0",
        ),
        (
            "SELECT id, (SELECT count(*) * 10 + o.id FROM t WHERE t.k = o.k) FROM o ORDER BY id",
            "1|21;2|22;3|3;4|24;5|5",
        ),
        (
            "SELECT id, (SELECT coalesce(sum(y), -1) + count(y) FROM t WHERE t.k = o.k) FROM o \
             ORDER BY id",
            "1|23;2|21;3|-1;4|23;5|-1",
        ),
        (
            "SELECT id, (SELECT count(DISTINCT y) FROM t WHERE t.k >= o.k) FROM o ORDER BY id",
            "1|3;2|4;3|4;4|3;5|0",
        ),
        ("SELECT id FROM o WHERE (SELECT count(*) FROM t WHERE t.k = o.k) = 0 ORDER BY id", "3;5"),
        (
            "SELECT id, (SELECT count(*) FROM t WHERE t.k = o.k HAVING count(*) > 0) FROM o \
             ORDER BY id",
            "1|2;2|2;3|NULL;4|2;5|NULL",
        ),
        ("SELECT id, (SELECT count(*) + o.id FROM t) FROM o ORDER BY id LIMIT 2", "1|7;2|8"),
        (
            "SELECT id, (SELECT count(*) FILTER (WHERE y > o.x) FROM t) FROM o ORDER BY id",
            "1|3;2|1;3|1;4|0;5|1",
        ),
        (
            "SELECT id, (SELECT string_agg(CAST(y AS text), '+' ORDER BY y) FROM t WHERE t.k = \
             o.k) FROM o ORDER BY id",
            "1|10+11;2|20;3|NULL;4|10+11;5|NULL",
        ),
    ]);
}

#[test]
fn truths_with_nulls_are_exact() {
    check(&[
        (
            "SELECT id, x IN (SELECT y FROM t WHERE t.k = o.k) FROM o ORDER BY id",
            "1|true;2|true;3|false;4|NULL;5|false",
        ),
        (
            "SELECT id, x + 1 NOT IN (SELECT y FROM t WHERE t.k = o.k) FROM o ORDER BY id",
            "1|false;2|NULL;3|true;4|NULL;5|true",
        ),
        (
            "SELECT id, x >= ALL (SELECT y FROM t WHERE t.k = o.k) FROM o ORDER BY id",
            "1|false;2|NULL;3|true;4|NULL;5|true",
        ),
        (
            "SELECT id, x > ANY (SELECT y FROM t WHERE t.k = o.k) FROM o ORDER BY id",
            "1|false;2|NULL;3|false;4|NULL;5|false",
        ),
        (
            "SELECT id, x <> ALL (SELECT y FROM t WHERE t.k = o.k) FROM o ORDER BY id",
            "1|false;2|false;3|true;4|NULL;5|true",
        ),
        (
            "SELECT id, x = SOME (SELECT y FROM t WHERE t.k = o.k) FROM o ORDER BY id",
            "1|true;2|true;3|false;4|NULL;5|false",
        ),
        (
            "SELECT id, x <> ANY (SELECT y FROM t WHERE t.k = o.k) FROM o ORDER BY id",
            "1|true;2|NULL;3|false;4|NULL;5|false",
        ),
        (
            "SELECT id, x = ALL (SELECT y FROM t WHERE t.k = o.k) FROM o ORDER BY id",
            "1|false;2|NULL;3|true;4|NULL;5|true",
        ),
        ("SELECT id FROM o WHERE x NOT IN (SELECT y FROM t WHERE t.k = o.k) ORDER BY id", "3;5"),
        (
            "SELECT id FROM o WHERE id = 5 OR NOT x < ALL (SELECT y FROM t WHERE t.k = o.k) \
             ORDER BY id",
            "1;2;5",
        ),
        (
            "SELECT id, EXISTS (SELECT 1 FROM t WHERE t.k = o.k), NOT EXISTS (SELECT y FROM t \
             WHERE t.y > o.x) FROM o ORDER BY id",
            "1|true|false;2|true|false;3|false|false;4|true|true;5|false|false",
        ),
        (
            "SELECT id FROM o WHERE id = 3 OR EXISTS (SELECT 1 FROM t WHERE t.k = o.k) ORDER BY id",
            "1;2;3;4",
        ),
        (
            "SELECT id, (x, k) IN (SELECT y, t.k FROM t WHERE t.n <= o.id) FROM o ORDER BY id",
            "1|true;2|false;3|false;4|NULL;5|NULL",
        ),
        (
            "SELECT id, 20 IN (SELECT y FROM t WHERE t.k = o.k) FROM o ORDER BY id LIMIT 2",
            "1|false;2|true",
        ),
    ]);
}

#[test]
fn any_and_all_of_a_subquery_that_stands_alone() {
    check(&[
        (
            "SELECT id, x > ALL (SELECT y FROM t WHERE y < 20) FROM o ORDER BY id",
            "1|false;2|true;3|true;4|NULL;5|true",
        ),
        (
            "SELECT id, x < ANY (SELECT y FROM t) FROM o ORDER BY id",
            "1|true;2|true;3|true;4|NULL;5|true",
        ),
        (
            "SELECT id, x <= ALL (SELECT y FROM t WHERE n > 2) FROM o ORDER BY id",
            "1|false;2|false;3|false;4|NULL;5|false",
        ),
        (
            "SELECT id, x = ALL (SELECT 10) FROM o ORDER BY id",
            "1|true;2|false;3|false;4|NULL;5|false",
        ),
        (
            "SELECT id, x <> ANY (SELECT y FROM t WHERE y IN (10, 20)) FROM o ORDER BY id",
            "1|true;2|true;3|true;4|NULL;5|true",
        ),
        (
            "SELECT id, x = ANY (SELECT y FROM t) FROM o ORDER BY id",
            "1|true;2|true;3|NULL;4|NULL;5|NULL",
        ),
        ("SELECT id FROM o WHERE x > ALL (SELECT y FROM t WHERE false) ORDER BY id", "1;2;3;4;5"),
        ("SELECT id FROM o WHERE x > ANY (SELECT y FROM t WHERE false) ORDER BY id", ""),
        (
            "SELECT 3 > ALL (SELECT 1 UNION SELECT 2), 1 > ANY (SELECT CAST(NULL AS i64))",
            "true|NULL",
        ),
    ]);
    check_refused(
        &tables(),
        &[
            ("SELECT id FROM o WHERE x > ALL (SELECT y, n FROM t)", "expected one column"),
            ("SELECT id FROM o WHERE x > ALL (SELECT 'a' FROM t)", "cannot compare"),
            (
                "SELECT id FROM o WHERE x > ALL (SELECT 'a' FROM t WHERE t.k = o.k)",
                "cannot compare",
            ),
            ("SELECT id FROM o WHERE (x, k) > ALL (SELECT y, k FROM t)", "one value"),
            ("SELECT id FROM o WHERE x > ANY (1)", "expected a list, found i64"),
        ],
    );
}

#[test]
fn more_than_one_row_is_an_error_where_it_is_asked_for() {
    let dbs = tables();
    let message = "expected one row at most of the subquery, found 2";
    check_refused(
        &dbs,
        &[
            ("SELECT (SELECT y FROM t WHERE t.k = o.k) FROM o", message),
            ("SELECT id FROM o WHERE x = (SELECT y FROM t WHERE t.k = o.k)", message),
            ("SELECT coalesce(x, (SELECT y FROM t WHERE t.k = o.k)) FROM o", message),
            ("UPDATE o SET x = (SELECT y FROM t WHERE t.k = o.k)", message),
        ],
    );
    check_both(
        &dbs,
        &[
            (
                "SELECT id, (SELECT y FROM t WHERE t.k = o.k) FROM o WHERE id IN (3, 5)",
                "3|NULL;5|NULL",
            ),
            (
                "SELECT id, CASE WHEN id = 3 THEN (SELECT y FROM t WHERE t.k = o.k) WHEN id < 3 \
                 THEN 0 ELSE (SELECT y FROM t WHERE t.n = o.id) END FROM o ORDER BY id",
                "1|0;2|0;3|NULL;4|NULL;5|7",
            ),
            (
                "SELECT coalesce(x, (SELECT y FROM t WHERE t.k = o.k)) FROM o WHERE id <> 4 \
                 ORDER BY id",
                "10;20;30;50",
            ),
            (
                "SELECT id FROM o WHERE id <> 4 AND id > 2 AND coalesce((SELECT y FROM t WHERE \
                 t.k = o.k), 0) = 0 ORDER BY id",
                "3;5",
            ),
        ],
    );
}

#[test]
fn limits_and_groups_within() {
    check(&[
        (
            "SELECT id, (SELECT y FROM t WHERE t.k = o.k ORDER BY y DESC LIMIT 1) FROM o \
             ORDER BY id",
            "1|11;2|20;3|NULL;4|11;5|NULL",
        ),
        (
            "SELECT id, (SELECT y FROM t WHERE t.k = o.k ORDER BY y LIMIT 1 OFFSET 1) FROM o \
             ORDER BY id",
            "1|11;2|20;3|NULL;4|11;5|NULL",
        ),
        ("SELECT id FROM o WHERE x IN (SELECT y FROM t WHERE t.k = o.k ORDER BY y LIMIT 1)", "1"),
        (
            "SELECT id FROM o WHERE 2 IN (SELECT count(*) FROM t WHERE t.k = o.k GROUP BY t.k \
             HAVING max(y) > 15)",
            "2",
        ),
        (
            "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM t WHERE t.k = o.k GROUP BY t.k HAVING \
             count(y) = o.id) ORDER BY id",
            "",
        ),
    ]);
}

#[test]
fn several_queries_within() {
    check(&[
        (
            "SELECT id, (SELECT count(*) FROM (SELECT y FROM t WHERE t.k = o.k UNION SELECT o.x) \
             AS d) FROM o ORDER BY id",
            "1|2;2|2;3|1;4|3;5|1",
        ),
        (
            "SELECT id FROM o WHERE EXISTS (SELECT y FROM t WHERE t.k = o.k EXCEPT SELECT o.x) \
             ORDER BY id",
            "1;2;4",
        ),
        (
            "SELECT id FROM o WHERE x IN (SELECT y FROM t WHERE t.k = o.k INTERSECT SELECT y FROM \
             t WHERE n < 3)",
            "1",
        ),
        (
            "SELECT id, (SELECT max(v.column1) FROM (VALUES (o.x), (o.k)) AS v) FROM o ORDER BY id",
            "1|10;2|20;3|30;4|3;5|50",
        ),
        (
            "SELECT id, (SELECT count(*) FROM (SELECT DISTINCT t.k FROM t WHERE t.y > o.x) AS d) \
             FROM o ORDER BY id",
            "1|3;2|1;3|1;4|0;5|1",
        ),
        (
            "SELECT id, (SELECT max(d.y) FROM (SELECT y FROM t WHERE t.k = o.k) AS d) FROM o \
             ORDER BY id",
            "1|11;2|20;3|NULL;4|11;5|NULL",
        ),
        (
            "SELECT id, (SELECT count(*) FROM t RIGHT JOIN (SELECT 1 AS one) AS q ON t.k = o.k) \
             FROM o ORDER BY id",
            "1|2;2|2;3|1;4|2;5|1",
        ),
        (
            "SELECT id, (SELECT count(u.n) FROM t LEFT JOIN t AS u ON u.n = t.n AND u.k = o.k \
             WHERE t.n < 4) FROM o ORDER BY id",
            "1|2;2|1;3|0;4|2;5|0",
        ),
        (
            "SELECT id FROM o WHERE EXISTS (WITH w AS (SELECT * FROM t WHERE t.k = o.k) SELECT 1 \
             FROM w WHERE y > 10) ORDER BY id",
            "1;2;4",
        ),
        (
            "WITH w AS (SELECT k, max(y) AS m FROM t GROUP BY k) SELECT id, (SELECT m FROM w WHERE \
             w.k = o.k) FROM o ORDER BY id",
            "1|11;2|20;3|NULL;4|11;5|NULL",
        ),
        (
            "SELECT id, (SELECT count(*) FROM (SELECT DISTINCT ON (t.k) y FROM t WHERE t.y >= o.x \
             ORDER BY y) AS d) FROM o ORDER BY id",
            "1|3;2|2;3|1;4|0;5|1",
        ),
        ("SELECT id FROM o WHERE EXISTS (SELECT 1 FROM t WHERE t.k = o.k LIMIT 0)", ""),
        ("SELECT id, (SELECT max(y) FROM t WHERE t.k = o.k LIMIT 0) FROM o WHERE id = 1", "1|NULL"),
    ]);
}

#[test]
fn several_levels_deep() {
    check(&[
        (
            "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM t WHERE t.k = o.k AND y = (SELECT \
             min(u.y) FROM t AS u WHERE u.k = t.k AND u.y >= o.x)) ORDER BY id",
            "1;2",
        ),
        (
            "SELECT id, (SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.y > o.x \
             AND u.n = t.n)) FROM o ORDER BY id",
            "1|3;2|1;3|1;4|0;5|1",
        ),
        (
            "SELECT id, (SELECT max((SELECT count(*) FROM t AS u WHERE u.y <= t.y AND u.n >= \
             o.id)) FROM t WHERE t.k = o.k) FROM o ORDER BY id",
            "1|3;2|3;3|NULL;4|1;5|NULL",
        ),
        (
            "SELECT id FROM o WHERE x NOT IN (SELECT y FROM t WHERE t.k = o.k AND NOT EXISTS \
             (SELECT 1 FROM t AS u WHERE u.n = t.n AND u.y IS NULL AND o.id = 2)) ORDER BY id",
            "3;5",
        ),
        (
            "SELECT d.id, d.m FROM (SELECT id, (SELECT max(y) FROM t WHERE t.k = o.k) AS m FROM o) \
             AS d WHERE d.m = (SELECT max(y) FROM t WHERE y <= d.m AND t.k IS NOT NULL) ORDER BY 1",
            "1|11;2|20;4|11",
        ),
        (
            "SELECT id FROM o WHERE (SELECT (SELECT (SELECT o.k + t.k FROM t WHERE t.n = o.id)) ) \
             = 6 ORDER BY id",
            "1",
        ),
    ]);
}

#[test]
fn in_the_conditions_of_joins() {
    check(&[
        (
            "SELECT o.id, t.n FROM o JOIN t ON t.k = o.k AND t.y = (SELECT max(u.y) FROM t AS u \
             WHERE u.k = o.k) ORDER BY 1, 2",
            "1|2;2|3;4|2",
        ),
        (
            "SELECT o.id, t.n FROM o LEFT JOIN t ON t.k = o.k AND t.y = (SELECT max(u.y) FROM t AS \
             u WHERE u.k = o.k) ORDER BY 1, 2",
            "1|2;2|3;3|NULL;4|2;5|NULL",
        ),
        (
            "SELECT o.id, t.n FROM o LEFT JOIN t ON EXISTS (SELECT 1 FROM t AS u WHERE u.k = o.k \
             AND u.y < t.y AND t.k = u.k) ORDER BY 1, 2",
            "1|2;2|NULL;3|NULL;4|2;5|NULL",
        ),
        (
            "SELECT o.id FROM o SEMI JOIN t ON t.k = o.k AND t.y > (SELECT min(u.y) FROM t AS u \
             WHERE u.k = o.k) ORDER BY 1",
            "1;4",
        ),
        (
            "SELECT o.id, t.n FROM o, t WHERE t.k = o.k AND t.y = (SELECT max(u.y) FROM t AS u \
             WHERE u.k = t.k AND u.n >= o.id) ORDER BY 1, 2",
            "1|2;2|3",
        ),
    ]);
}

#[test]
fn rows_are_changed_by_what_is_asked_for_each() {
    for db in tables() {
        let run = |text: &str| drop(db.sql(text, ()).unwrap_or_else(|e| panic!("{text}: {e}")));
        let rows = |wanted: &str| {
            assert_eq!(answer(&db, "SELECT id, x FROM o ORDER BY id"), wanted);
        };
        run("UPDATE o SET x = (SELECT sum(y) FROM t WHERE t.k = o.k) WHERE k = 3");
        rows("1|21;2|20;3|30;4|21;5|50");
        run("UPDATE o SET x = x + (SELECT count(*) FROM t WHERE t.k = o.k) \
             WHERE x < (SELECT max(y) FROM t WHERE t.n > o.id) AND id < 4");
        rows("1|23;2|22;3|30;4|21;5|50");
        run("DELETE FROM o WHERE x > (SELECT sum(p.x) / count(*) FROM o AS p WHERE p.id <> o.id)");
        rows("1|23;2|22;4|21");
        run("DELETE FROM o WHERE 2 <= ALL (SELECT n FROM t WHERE t.k = o.k)");
        rows("1|23;4|21");
    }
}

#[test]
fn names_are_looked_for_from_inside_out() {
    let dbs = tables();
    check_both(
        &dbs,
        &[
            // `k` is that of t, `x` that of o.
            ("SELECT id FROM o WHERE 2 = (SELECT count(*) FROM t WHERE k = 3 AND y >= x)", "1"),
            ("SELECT id FROM o WHERE EXISTS (SELECT 1 FROM t AS o WHERE o.y = x AND o.k = 2)", "2"),
            ("SELECT id, (SELECT count(*) FROM t WHERE y < x) FROM o WHERE id < 3", "1|1;2|3"),
        ],
    );
    check_refused(
        &dbs,
        &[
            ("SELECT (SELECT max(y) FROM t WHERE t.k = o.gone) FROM o", "unknown field \"gone\""),
            ("SELECT (SELECT max(y) FROM t WHERE gone = o.k) FROM o", "gone"),
            (
                "SELECT (SELECT max(y) FROM t WHERE t.n = id) FROM o JOIN o AS p ON p.k = o.k",
                "field \"id\" is ambiguous: it may be o.id, p.id",
            ),
            (
                "SELECT k, (SELECT max(y) FROM t WHERE t.n = o.id) FROM o GROUP BY k",
                "a subquery beside groups reads o.id, which is not in GROUP BY",
            ),
            ("SELECT (SELECT sum(t.y) + 'a' FROM t WHERE t.k = o.k) FROM o", "+"),
            (
                "SELECT o.id FROM o FULL JOIN t ON t.k = o.k AND EXISTS (SELECT 1 FROM t AS u \
                 WHERE u.y = o.x)",
                "(o.x)",
            ),
            ("SELECT id FROM o WHERE x = (SELECT y, n FROM t WHERE t.k = o.k)", "one column"),
            ("SELECT id FROM o LIMIT (SELECT 1)", "LIMIT"),
        ],
    );
}

/// A part of a document, dates, texts and labels of the query around.
#[test]
fn fields_of_every_type_are_named_within() {
    let dbs = both(&[
        "CREATE TABLE a (id i64 PRIMARY KEY, doc json, day date NULL, word text NULL, \
         size enum('small', 'large'), price decimal(9,2), f f64)",
        "INSERT INTO a VALUES \
         (1, '{\"b\": {\"c\": \"x\"}}', '2020-01-01', 'x', 'small', 1.50, 0.5), \
         (2, '{\"b\": {\"c\": \"y\"}}', NULL, 'z', 'large', 2.50, 1e300)",
    ]);
    check_both(
        &dbs,
        &[
            (
                "SELECT id, (SELECT count(*) FROM a AS i WHERE i.word = a.doc.b.c) FROM a \
                 ORDER BY 1",
                "1|1;2|0",
            ),
            (
                "SELECT id, (SELECT max(i.id) FROM a AS i WHERE i.day = a.day) FROM a ORDER BY 1",
                "1|1;2|NULL",
            ),
            (
                "SELECT id, (SELECT i.word FROM a AS i WHERE i.size = a.size) FROM a ORDER BY 1",
                "1|x;2|z",
            ),
            (
                "SELECT id, (SELECT max(i.size) FROM a AS i WHERE i.id >= a.id) FROM a ORDER BY 1",
                "1|large;2|large",
            ),
            (
                "SELECT id, (SELECT sum(i.price) + a.price FROM a AS i WHERE i.id <> a.id) FROM a \
                 ORDER BY 1",
                "1|4.00;2|4.00",
            ),
            (
                "SELECT id, (SELECT max(i.f) / a.f FROM a AS i WHERE i.id <= a.id) FROM a \
                 ORDER BY 1",
                "1|1.0;2|1.0",
            ),
            (
                "SELECT id FROM a WHERE 'small' = ALL (SELECT i.size FROM a AS i WHERE i.id = \
                 a.id)",
                "1",
            ),
            (
                "SELECT id FROM a WHERE '2020-01-01' IN (SELECT i.day FROM a AS i WHERE i.id = \
                 a.id)",
                "1",
            ),
        ],
    );
}

fn plan(db: &Database, text: &str) -> String {
    match db.sql(text, ()).unwrap() {
        esker_sql::Outcome::Plan(plan) => plan.to_string(),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_plan_shows_what_became_of_a_subquery() {
    let [unnested, looped] = tables();
    let scalar = "SELECT id FROM o WHERE x = (SELECT min(y) FROM t WHERE t.k = o.k)";
    let limited = "SELECT id, (SELECT y FROM t WHERE t.k = o.k ORDER BY y LIMIT 1 OFFSET 1) FROM o";
    let exists = "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM t WHERE t.k = o.k)";
    for (db, text, part) in [
        (&unnested, scalar, "unnested query subquery"),
        (&looped, scalar, "memoised loop subquery"),
        (&unnested, limited, "memoised loop subquery"),
        (&unnested, exists, "semi join on t.k = o.k"),
        (&looped, exists, "memoised loop subquery"),
    ] {
        for explain in ["EXPLAIN", "EXPLAIN ANALYZE"] {
            let shown = plan(db, &format!("{explain} {text}"));
            assert!(shown.contains(part), "{part:?} in\n{shown}");
            let is_join = shown.contains("subquery join subquery");
            assert!(is_join || shown.contains("semi join"), "{shown}");
        }
    }
    // Of six rows, each of the four combinations asks once.
    let shown = plan(&looped, &format!("EXPLAIN ANALYZE {scalar}"));
    assert!(shown.contains("found 4"), "{shown}");
}

/// What takes too much memory or time ends, whichever way it is asked.
#[test]
fn memory_and_time_are_kept() {
    use esker::{ChangeOptions, ErrorKind, Limits};
    use esker_sql::{parse_statement, run};
    for unnesting in [Unnesting::WherePossible, Unnesting::Never] {
        let db = Options::new().unnesting(unnesting).memory().unwrap();
        db.sql("CREATE TABLE n (i i64 PRIMARY KEY)", ()).unwrap();
        let rows: Vec<String> = (0..3_000).map(|i| format!("({i})")).collect();
        db.sql(&format!("INSERT INTO n VALUES {}", rows.join(", ")), ()).unwrap();
        let text = "SELECT i, (SELECT max(m.i) FROM n AS m WHERE m.i < n.i) FROM n ORDER BY i \
                    LIMIT 3";
        assert_eq!(answer(&db, text), "0|null;1|0;2|1");
        let little = Limits { memory_bytes: Some(20_000), ..Limits::default() };
        let short = Limits { timeout: Some(std::time::Duration::ZERO), ..Limits::default() };
        for (limits, kind) in [(little, ErrorKind::OverBudget), (short, ErrorKind::TimedOut)] {
            let options = ChangeOptions { limits, ..ChangeOptions::default() };
            let found = run(&db, &parse_statement(text).unwrap(), &options);
            assert_eq!(found.unwrap_err().kind(), kind);
        }
    }
}
