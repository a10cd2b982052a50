//! LATERAL: queries in FROM that name fields of what stands before them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use esker_sql::Sql;

use crate::correlated::{both, check_both, check_refused, tables};

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    check_both(&tables(), cases);
}

#[test]
fn rows_of_a_query_stand_beside_those_that_it_names() {
    check(&[
        (
            "SELECT o.id, d.y FROM o CROSS JOIN LATERAL (SELECT y FROM t WHERE t.k = o.k) AS d \
             ORDER BY 1, 2",
            "1|10;1|11;2|NULL;2|20;4|10;4|11",
        ),
        (
            "SELECT o.id, d.y FROM o, LATERAL (SELECT y FROM t WHERE t.k = o.k ORDER BY y DESC \
             LIMIT 1) AS d ORDER BY 1",
            "1|11;2|20;4|11",
        ),
        (
            "SELECT o.id, d.n FROM o LEFT JOIN LATERAL (SELECT n FROM t WHERE t.k = o.k ORDER BY n \
             LIMIT 2 OFFSET 1) AS d ON true ORDER BY 1, 2",
            "1|2;2|4;3|NULL;4|2;5|NULL",
        ),
        (
            "SELECT o.id, d.c, d.m FROM o LEFT JOIN LATERAL (SELECT count(*) AS c, max(y) AS m \
             FROM t WHERE t.k = o.k) AS d ON d.c > 0 ORDER BY 1",
            "1|2|11;2|2|20;3|NULL|NULL;4|2|11;5|NULL|NULL",
        ),
        (
            "SELECT id, c FROM o CROSS JOIN LATERAL (SELECT count(*) FROM t WHERE t.k = o.k) AS \
             d (c) ORDER BY 1",
            "1|2;2|2;3|0;4|2;5|0",
        ),
        (
            "SELECT * FROM o JOIN LATERAL (SELECT t.k, y FROM t WHERE t.n = o.id) AS d ON d.k = \
             o.k ORDER BY 1",
            "1|10|3|3|10",
        ),
        (
            "SELECT * FROM o JOIN LATERAL (SELECT t.k, y FROM t WHERE t.n = o.id) AS d USING (k) \
             ORDER BY 1",
            "1|10|3|10",
        ),
        (
            "SELECT o.id, d.* FROM o, LATERAL (SELECT o.x AS a, o.k + 1 AS b) AS d WHERE id < 3",
            "1|10|4;2|20|3",
        ),
        (
            "SELECT o.id, v.a FROM o, LATERAL (VALUES (o.x), (o.k)) AS v (a) WHERE o.id < 3 \
             ORDER BY 1, 2",
            "1|3;1|10;2|2;2|20",
        ),
        // It need not name anything.
        ("SELECT count(*) FROM o, LATERAL (SELECT * FROM t) AS d", "30"),
        (
            "SELECT o.id, d.u FROM o, LATERAL (SELECT y AS u FROM t WHERE t.k = o.k UNION SELECT \
             o.x) AS d WHERE o.id < 3 ORDER BY 1, 2",
            "1|10;1|11;2|NULL;2|20",
        ),
    ]);
}

#[test]
fn one_after_another_and_within_each_other() {
    check(&[
        (
            "SELECT o.id, a.m, b.c FROM o, LATERAL (SELECT max(y) AS m FROM t WHERE t.k = o.k) AS \
             a, LATERAL (SELECT count(*) AS c FROM t WHERE t.y < a.m OR t.n = o.id) AS b \
             ORDER BY 1",
            "1|11|2;2|20|3;3|NULL|1;4|11|3;5|NULL|1",
        ),
        (
            "SELECT o.id, t.n, d.s FROM o JOIN t ON t.k = o.k, LATERAL (SELECT t.y + o.x AS s) AS \
             d WHERE o.id < 3 ORDER BY 1, 2",
            "1|1|20;1|2|21;2|3|40;2|4|NULL",
        ),
        (
            "SELECT o.id, d.n FROM o, LATERAL (SELECT t.n, e.c FROM t, LATERAL (SELECT count(*) AS \
             c FROM t AS u WHERE u.y > t.y AND u.n > o.id) AS e WHERE t.k = o.k) AS d WHERE d.c \
             = 2 ORDER BY 1, 2",
            "1|2",
        ),
        (
            "SELECT o.id FROM o WHERE EXISTS (SELECT 1 FROM t, LATERAL (SELECT t.y - o.x AS d) AS \
             e WHERE t.k = o.k AND e.d = 1) ORDER BY 1",
            "1",
        ),
        (
            "SELECT o.id, (SELECT sum(d.y) FROM t, LATERAL (SELECT u.y FROM t AS u WHERE u.n = t.n \
             AND t.k = o.k) AS d) FROM o ORDER BY 1",
            "1|21;2|20;3|NULL;4|21;5|NULL",
        ),
        (
            "SELECT o.id, d.m FROM o, LATERAL (SELECT max(y) AS m FROM t WHERE t.k = o.k) AS d \
             WHERE d.m > (SELECT min(y) FROM t WHERE t.n <= o.id) ORDER BY 1",
            "1|11;2|20;4|11",
        ),
        (
            "SELECT o.k, count(*), max(d.y) FROM o, LATERAL (SELECT y FROM t WHERE t.k = o.k) AS d \
             GROUP BY o.k HAVING count(*) > 1 ORDER BY 1",
            "2|2|20;3|4|11",
        ),
    ]);
}

#[test]
fn what_stands_before_it_is_named_by_lateral_alone() {
    let dbs = tables();
    check_refused(
        &dbs,
        &[
            ("SELECT 1 FROM o, (SELECT y FROM t WHERE t.k = o.k) AS d", "o"),
            ("SELECT 1 FROM o, LATERAL (SELECT y FROM t WHERE t.k = o.gone) AS d", "\"gone\""),
            ("SELECT 1 FROM LATERAL (SELECT y FROM t WHERE t.k = o.k) AS d, o", "o"),
            (
                "SELECT 1 FROM o RIGHT JOIN LATERAL (SELECT y FROM t WHERE t.k = o.k) AS d ON true",
                "LATERAL stands behind JOIN",
            ),
            (
                "SELECT 1 FROM o FULL JOIN LATERAL (SELECT y FROM t WHERE t.k = o.k) AS d ON true",
                "LATERAL stands behind JOIN",
            ),
            (
                "SELECT 1 FROM o JOIN o AS p ON true, LATERAL (SELECT y FROM t WHERE t.k = x) AS d",
                "field \"x\" is ambiguous: it may be o.x, p.x",
            ),
            ("SELECT y FROM o, t, LATERAL (SELECT o.k AS y) AS d", "field \"y\" is ambiguous"),
        ],
    );
    for db in &dbs {
        let text = "EXPLAIN SELECT o.id, d.y FROM o, LATERAL (SELECT y FROM t WHERE t.k = o.k \
                    LIMIT 2) AS d";
        let esker_sql::Outcome::Plan(plan) = db.sql(text, ()).unwrap() else { panic!("{text}") };
        assert!(plan.contains("memoised loop d: SELECT y FROM t"), "{plan}");
    }
    let shown = "EXPLAIN SELECT o.id, d.y FROM o, LATERAL (SELECT y FROM t WHERE t.k = o.k) AS d";
    let esker_sql::Outcome::Plan(plan) = dbs[0].sql(shown, ()).unwrap() else { panic!("{shown}") };
    assert!(plan.contains("unnested query d: SELECT y FROM t"), "{plan}");
}

/// Rows before LATERAL are left out before it is asked, and each combination asks once.
#[test]
fn only_rows_that_pass_ask() {
    let dbs = both(&[
        "CREATE TABLE a (id i64 PRIMARY KEY, k i64, big i64)",
        "CREATE TABLE b (k i64, v i64)",
        "INSERT INTO a VALUES (1, 1, 1), (2, 1, 1), (3, 2, 9223372036854775807)",
        "INSERT INTO b VALUES (1, 5), (2, 6)",
    ]);
    let text = "SELECT a.id, d.s FROM a, LATERAL (SELECT a.big + v AS s FROM b WHERE b.k = a.k) AS \
                d WHERE a.id < 3 ORDER BY 1";
    check_both(&dbs, &[(text, "1|6;2|6")]);
    check_refused(&dbs, &[(&text.replace("a.id < 3", "a.id < 4"), "fit")]);
}
