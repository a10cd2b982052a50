//! Text in, model out, shown as text again; and what is refused, with the words it is refused in.

use crate::{Statement, parse, parse_statement};

/// The query as the model writes it.
fn shown(text: &str) -> String {
    parse(text).unwrap().to_string()
}

fn refused(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn what_is_supported_keeps_its_meaning() {
    let same = [
        "SELECT * FROM flights",
        "SELECT a, b AS c FROM t WHERE a = 1 AND b < 2.5 OR NOT c >= -3",
        "SELECT DISTINCT a FROM t ORDER BY a DESC NULLS LAST LIMIT 10 OFFSET 5",
        "SELECT a + b * (c - 1) % 2 FROM t WHERE (a OR b) AND c",
        "SELECT count(*), count(DISTINCT a), sum(a), avg(a), min(a), max(a) FROM t",
        "SELECT a FROM t WHERE a IN (1, 2, NULL) AND b NOT IN ('x', 'it''s')",
        "SELECT a FROM t WHERE a BETWEEN 1 AND 2 AND b NOT BETWEEN 3 AND 4",
        "SELECT a FROM t WHERE a LIKE 'x%' AND b NOT LIKE '_' ESCAPE '!' AND c ILIKE 'Y'",
        "SELECT a FROM t WHERE a IS NULL OR b IS NOT NULL",
        "SELECT -(-9), -(1), 1e-3, a - -9, -a FROM t",
        "SELECT a FROM t WHERE (a AND b) AND c OR (d OR e) OR (a LIKE 'x') = b",
        "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END FROM t",
        "SELECT CAST(a AS f64), round(a, 2), coalesce(a, b, 0), lower(c) FROM t",
        "SELECT a, count(*) AS n FROM t GROUP BY a HAVING n > 1 ORDER BY n DESC",
        "SELECT a FROM t WHERE d >= DATE '2013-01-31' AND t < TIMESTAMP '2013-01-31 05:00:00'",
        "SELECT \"a b\", X'00ff' FROM \"my table\"",
        "SELECT a FROM t WHERE a = -9223372036854775808 OR a = 18446744073709551615",
        "SELECT a, 6, count(*) FROM t GROUP BY a, 2 ORDER BY 2 DESC, a",
        "SELECT 4. AS n, -4., 4.5, 18446744073709551616 FROM t",
    ];
    for text in same {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn powers_and_roots_bind_as_in_postgresql() {
    for (text, meaning) in [
        ("2 ^ 3 ^ 2", "power(power(2, 3), 2)"),
        ("-2 ^ 2", "power(-2, 2)"),
        ("-a ^ 2", "power(-a, 2)"),
        ("2 * a ^ 2 * 3", "2 * power(a, 2) * 3"),
        ("2 ** 3 ** b", "power(power(2, 3), b)"),
        ("2 ^ -1 + 1", "power(2, -1) + 1"),
        ("|/ 9 + 16", "sqrt(9 + 16)"),
        ("||/ a", "cbrt(a)"),
        ("@ -5", "abs(-5)"),
        ("1 + 2 << 3", "bitshiftleft(1 + 2, 3)"),
        ("a | b & 3 # 1", "bitxor(bitand(bitor(a, b), 3), 1)"),
        ("7 & a = 3", "bitand(7, a) = 3"),
        ("~1 + 1", "bitnot(1 + 1)"),
        ("8 >> 1 - 1", "bitshiftright(8, 1 - 1)"),
        ("-a::text", "-CAST(a AS text)"),
        ("a - -9 * +b", "a - -9 * b"),
    ] {
        let text = format!("SELECT a FROM t WHERE {text}");
        assert_eq!(shown(&text), format!("SELECT a FROM t WHERE {meaning}"), "{text}");
    }
    for text in ["SELECT 5 !", "SELECT a! FROM t", "SELECT !! 5"] {
        assert!(refused(text).starts_with("the factorial is not supported yet"), "{text}");
    }
}

#[test]
fn relational_forms_keep_their_meaning() {
    let same = [
        "SELECT a FROM t UNION SELECT b FROM u ORDER BY a DESC LIMIT 3 OFFSET 1",
        "SELECT a FROM t UNION ALL SELECT b FROM u EXCEPT SELECT c FROM v",
        "SELECT a FROM t UNION (SELECT b FROM u INTERSECT ALL SELECT c FROM v)",
        "(SELECT a FROM t UNION SELECT b FROM u) INTERSECT SELECT c FROM v",
        "(SELECT a FROM t ORDER BY a LIMIT 1) UNION ALL (SELECT b FROM u LIMIT 2)",
        "VALUES (1, 'a'), (2, NULL) ORDER BY 2",
        "SELECT x FROM (VALUES (1), (2)) AS t (x)",
        "SELECT * FROM t WHERE a IN (VALUES (1), (2))",
        "SELECT * FROM t WHERE a IN (SELECT b FROM u UNION SELECT c FROM v)",
        "WITH x AS (SELECT a FROM t), y (b) AS MATERIALIZED (SELECT * FROM x) SELECT * FROM y",
        "WITH x AS (SELECT 1 AS a) SELECT * FROM x AS p JOIN x AS q ON p.a = q.a",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT n.i + 1 FROM n WHERE n.i < 5) \
         SELECT i FROM n",
        "SELECT a FROM (SELECT 1 AS a)",
        "SELECT p FROM t AS t (p, q)",
        "SELECT * FROM a RIGHT JOIN b ON a.x = b.x FULL JOIN c USING (x)",
        "SELECT * FROM a NATURAL JOIN b NATURAL LEFT JOIN c",
        "SELECT * FROM a JOIN (b LEFT JOIN c ON b.x = c.x) ON a.x = b.x",
        "SELECT DISTINCT ON (a, 2) a, b FROM t ORDER BY a, c",
        "SELECT a FROM t WHERE (a, b) IN (SELECT c, d FROM u)",
    ];
    for text in same {
        assert_eq!(shown(text), text);
    }
    let pairs = [
        ("SELECT a FROM t LIMIT ALL", "SELECT a FROM t"),
        (
            "WITH x AS NOT MATERIALIZED (SELECT 1 AS a) SELECT * FROM x",
            "WITH x AS (SELECT 1 AS a) SELECT * FROM x",
        ),
        (
            "SELECT a FROM t OFFSET 2 ROWS FETCH FIRST 3 ROWS ONLY",
            "SELECT a FROM t LIMIT 3 OFFSET 2",
        ),
        ("SELECT a FROM t FETCH NEXT ROW ONLY", "SELECT a FROM t LIMIT 1"),
        ("(SELECT a FROM t) ORDER BY a", "SELECT a FROM t ORDER BY a"),
        ("(SELECT a FROM t LIMIT 2) LIMIT 1", "SELECT * FROM (SELECT a FROM t LIMIT 2) LIMIT 1"),
        ("SELECT a FROM t MINUS SELECT b FROM u", "SELECT a FROM t EXCEPT SELECT b FROM u"),
        ("SELECT a FROM t UNION DISTINCT SELECT b FROM u", "SELECT a FROM t UNION SELECT b FROM u"),
        ("SELECT * FROM (a JOIN b ON a.x = b.x)", "SELECT * FROM a JOIN b ON a.x = b.x"),
        ("SELECT * FROM ((a))", "SELECT * FROM a"),
        (
            "SELECT * FROM (a CROSS JOIN b) AS g",
            "SELECT * FROM (SELECT * FROM a CROSS JOIN b) AS g",
        ),
        (
            "SELECT a FROM t WHERE (a, b) = (1, 2) AND (a, b) < (3, 4)",
            "SELECT a FROM t WHERE (a = 1 AND b = 2) AND (a < 3 OR a = 3 AND b < 4)",
        ),
        (
            "SELECT a FROM t WHERE (a, b) IN ((1, 2), (3, 4))",
            "SELECT a FROM t WHERE a = 1 AND b = 2 OR a = 3 AND b = 4",
        ),
        (
            "SELECT count(*) FILTER (WHERE a > 1) FROM t",
            "SELECT count(CASE WHEN a > 1 THEN true END) AS \"count(*) FILTER (WHERE a > 1)\" \
             FROM t",
        ),
    ];
    for (text, meaning) in pairs {
        assert_eq!(shown(text), meaning, "{text}");
        assert_eq!(shown(meaning), meaning, "{text}");
    }
}

#[test]
fn relational_forms_that_are_not_supported_are_named() {
    let pairs = [
        ("SELECT a FROM t UNION BY NAME SELECT b FROM u", "BY NAME is not supported yet"),
        ("SELECT a FROM t FETCH FIRST 2 ROWS WITH TIES", "WITH TIES is not supported yet"),
        ("SELECT a FROM t LIMIT 1 FETCH FIRST ROW ONLY", "expected LIMIT or FETCH, found both"),
        ("SELECT upper(a) FILTER (WHERE a > 'b') FROM t", "FILTER here is not supported yet"),
        ("SELECT a FROM t WHERE (a, b) = (1, 2, 3)", "expected rows of one length, found 2 and 3"),
        ("SELECT a FROM t WHERE (a, b) = 1", "expected rows of one length, found 2 and 1"),
        ("SELECT a FROM t WHERE (a, b) LIKE ('x', 'y')", "LIKE: expected values, found rows"),
    ];
    for (text, message) in pairs {
        let found = refused(text);
        assert!(found.contains(message), "{text}\n{found}");
    }
}

#[test]
fn other_spellings_mean_the_same() {
    let pairs = [
        ("select A from T where A != 1;", "SELECT A FROM T WHERE A <> 1"),
        ("SELECT a, b FROM t ORDER BY 0x2, +1 DESC", "SELECT a, b FROM t ORDER BY 2, 1 DESC"),
        ("SELECT a x, count(*) FROM t GROUP BY 1", "SELECT a AS x, count(*) FROM t GROUP BY 1"),
        ("SELECT 1_000, 0xFF, 0o17, 0b101", "SELECT 1000, 255, 15, 5"),
        (
            "SELECT a ISNULL, b NOTNULL, c NOT NULL FROM t",
            "SELECT a IS NULL, b IS NOT NULL, c IS NOT NULL FROM t",
        ),
        ("SELECT a AS 'b c' FROM t", "SELECT a AS \"b c\" FROM t"),
        ("SELECT t.a FROM t WHERE t.b = 1", "SELECT a FROM t WHERE b = 1"),
        ("SELECT f.a FROM flights AS f", "SELECT a FROM flights"),
        ("SELECT f.* FROM flights AS f ORDER BY 2", "SELECT * FROM flights ORDER BY 2"),
        ("SELECT a FROM t LIMIT 5, 10", "SELECT a FROM t LIMIT 10 OFFSET 5"),
        ("SELECT a::text FROM t", "SELECT CAST(a AS text) FROM t"),
        ("SELECT CAST(a AS varchar) FROM t", "SELECT CAST(a AS text) FROM t"),
        ("SELECT CAST(a AS INTEGER) FROM t", "SELECT CAST(a AS i64) FROM t"),
        ("SELECT CASE a WHEN 1 THEN 2 END FROM t", "SELECT CASE WHEN a = 1 THEN 2 END FROM t"),
        ("SELECT a FROM t WHERE a IS NOT TRUE", "SELECT a FROM t WHERE NOT coalesce(a, false)"),
    ];
    for (text, meaning) in pairs {
        assert_eq!(shown(text), meaning);
    }
}

#[test]
fn joins_and_subqueries_mean_what_they_say() {
    let pairs = [
        (
            "select t.a, u.* from t join u using (b, c)",
            "SELECT t.a, u.* FROM t JOIN u USING (b, c)",
        ),
        ("select x.a from t as x", "SELECT a FROM t"),
        ("select *, a + 1 from t x, u", "SELECT *, a + 1 FROM t AS x CROSS JOIN u"),
        (
            "select 1 from t left outer join u on t.a = u.b and u.c > 1",
            "SELECT 1 FROM t LEFT JOIN u ON t.a = u.b AND u.c > 1",
        ),
        (
            "select n from (select count(*) n from t) as d",
            "SELECT n FROM (SELECT count(*) AS n FROM t) AS d",
        ),
        (
            "select a from t x where a in (select b from u) and not exists \
             (select 1 from u where u.c = x.a)",
            "SELECT a FROM t AS x WHERE a IN (SELECT b FROM u) AND NOT EXISTS \
             (SELECT 1 FROM u WHERE u.c = x.a)",
        ),
        (
            "select a from t where a not in (select b from u) and a < (select max(b) from u)",
            "SELECT a FROM t WHERE NOT a IN (SELECT b FROM u) AND a < (SELECT max(b) FROM u)",
        ),
        ("select 1 from t semi join u on t.a = u.a", "SELECT 1 FROM t SEMI JOIN u ON t.a = u.a"),
    ];
    for (text, meaning) in pairs {
        assert_eq!(shown(text), meaning);
        assert_eq!(shown(meaning), meaning);
    }
}

#[test]
fn joins_that_are_not_supported_are_named() {
    let pairs = [
        (
            "SELECT 1 FROM a JOIN b",
            "expected ON or USING behind a join (CROSS JOIN has none): `JOIN b`",
        ),
        (
            "SELECT 1 FROM a LEFT JOIN LATERAL (SELECT 1) x",
            "expected ON or USING behind a join (CROSS JOIN has none): `LEFT JOIN LATERAL \
             (SELECT 1) x`",
        ),
    ];
    for (text, message) in pairs {
        assert_eq!(refused(text), message, "{text}");
    }
}

#[test]
fn what_is_not_supported_is_named() {
    let pairs = [
        (
            "SELECT CAST(a AS varchar(10)) FROM t",
            "a length in CAST is not supported yet: `CAST(a AS VARCHAR(10))`",
        ),
        ("DELETE FROM t", "expected SELECT, found DELETE"),
        ("SELECT a FROM t; SELECT b FROM t", "expected one statement, found 2"),
        ("", "expected a statement, found nothing"),
        ("SELECT a FROM t ORDER BY 0", "ORDER BY 0: expected the place of a column, from 1 on"),
        ("SELECT a FROM t GROUP BY -1", "GROUP BY -1: expected the place of a column, from 1 on"),
        ("SELECT a FROM t LIMIT -1", "LIMIT: expected a number of rows, found `-1`"),
        ("SELECT sum(*) FROM t", "sum takes one operand, found `sum(*)`"),
        (
            "SELECT 999999999999999999999999999999999999999 FROM t",
            "999999999999999999999999999999999999999 is a whole number of more than 38 digits",
        ),
        (
            "SELECT DATE '2013-02-30' FROM t",
            "expected date (like 2013-01-31), found \"2013-02-30\"",
        ),
        (
            "SELECT TOP 5 a FROM t",
            "TOP (write LIMIT) is not supported yet: `SELECT TOP 5 a FROM t`",
        ),
    ];
    for (text, message) in pairs {
        assert_eq!(refused(text), message, "{text}");
    }
    assert_eq!(refused("SELECT nosuch(a) FROM t"), "unknown function nosuch");
    assert_eq!(
        refused("SELECT coalece(a, 1) FROM t"),
        "unknown function coalece; did you mean \"coalesce\"?"
    );
    assert!(
        refused("SELECT CAST(a AS money) FROM t")
            .starts_with("unknown type \"money\"; known: bool,")
    );
    assert!(refused("SELECT a FROM").contains("Expected"), "{}", refused("SELECT a FROM"));
    assert!(
        refused("SELECT 'a FROM t").contains("Unterminated"),
        "{}",
        refused("SELECT 'a FROM t")
    );
}

#[test]
fn nothing_follows_a_statement_unread() {
    for text in [
        "DELETE FROM t END WHERE id = 1",
        "UPDATE t SET a = 1 END WHERE id = 1",
        "INSERT INTO t SELECT * FROM u END WHERE id = 1",
        "TRUNCATE t END x",
        "CREATE TABLE t (a INT PRIMARY KEY) END WITH (expires = 'b')",
        "DROP TABLE t END x",
        "EXPLAIN SELECT a FROM t END x",
        "SELECT 5 END",
        "SELECT 5 end",
        "SELECT a FROM t WHERE a = 1 END",
        "BEGIN END x",
        "COMMIT END",
        "ROLLBACK END x",
        "END END",
    ] {
        let e = parse_statement(text).unwrap_err().to_string();
        assert!(e.contains("end of statement") || e.contains("not supported"), "{text}: {e}");
    }
}

#[test]
fn rows_are_held_by_for_update_alone() {
    let pairs = [
        ("SELECT a FROM t FOR UPDATE", "expected a SELECT that only reads, found FOR UPDATE"),
        (
            "EXPLAIN SELECT a FROM t FOR UPDATE",
            "expected FOR UPDATE in a SELECT that stands alone, not in another statement: \
             `FOR UPDATE`",
        ),
        (
            "SELECT a FROM t WHERE a IN (SELECT b FROM u FOR UPDATE)",
            "expected FOR UPDATE in a SELECT that stands alone, not in another statement: \
             `FOR UPDATE`",
        ),
        (
            "SELECT a FROM t FOR SHARE",
            "expected FOR UPDATE alone, found `FOR SHARE`: rows are held as if they were to be \
             changed",
        ),
        (
            "SELECT a FROM t FOR UPDATE NOWAIT",
            "expected FOR UPDATE alone, found `FOR UPDATE NOWAIT`: nobody waits, the later commit \
             is a conflict",
        ),
        (
            "SELECT a FROM t FOR UPDATE SKIP LOCKED",
            "expected FOR UPDATE alone, found `FOR UPDATE SKIP LOCKED`: no row is locked, the \
             later commit is a conflict",
        ),
        (
            "SELECT a FROM t FOR UPDATE OF t",
            "expected FOR UPDATE alone, found `FOR UPDATE OF t`: the query is of one table",
        ),
    ];
    for (text, message) in pairs {
        assert_eq!(refused(text), message, "{text}");
    }
    let held = parse_statement("SELECT a FROM t WHERE a = 1 LIMIT 2 FOR UPDATE").unwrap();
    let read = parse("SELECT a FROM t WHERE a = 1 LIMIT 2").unwrap();
    assert_eq!(held, Statement::QueryForUpdate(read));
}

/// A whole number that is a key is no place of a column.
#[test]
fn a_constant_key_is_shown_as_a_constant() {
    let mut query = parse("SELECT a FROM t ORDER BY a").unwrap();
    query.order_by[0].expr = esker_query::model::Expr::literal(7);
    assert_eq!(query.to_string(), "SELECT a FROM t ORDER BY CAST(7 AS i64)");
    parse(&query.to_string()).unwrap();
}

#[test]
fn explain_is_a_statement() {
    let statement = parse_statement("EXPLAIN SELECT a FROM t").unwrap();
    assert!(
        matches!(statement, Statement::Explain(plan) if !plan.analyze && plan.query.table == "t")
    );
    let statement = parse_statement("EXPLAIN ANALYZE SELECT a FROM t").unwrap();
    assert!(
        matches!(statement, Statement::Explain(plan) if plan.analyze && plan.query.table == "t")
    );
    assert_eq!(refused("EXPLAIN SELECT a FROM t"), "expected SELECT, found EXPLAIN");
}

#[test]
fn long_and_deep_texts_are_refused_or_taken() {
    let many: Vec<_> = (0..20_000).map(|i| i.to_string()).collect();
    parse(&format!("SELECT a FROM t WHERE a IN ({})", many.join(", "))).unwrap();
    let chain = |n: usize| format!("SELECT a FROM t WHERE a = 1{}", " OR a = 2".repeat(n));
    parse(&chain(900)).unwrap();
    assert!(refused(&chain(100_000)).contains("at most 4000 words"), "{}", refused(&chain(9_999)));
    let nested = format!("SELECT {}a{} FROM t", "(".repeat(10_000), ")".repeat(10_000));
    assert!(refused(&nested).contains("at most 300 levels"), "{}", refused(&nested));
    let sums = format!("SELECT a{} FROM t", " + 1".repeat(1_900));
    assert!(refused(&sums).contains("nests too deep"), "{}", refused(&sums));
}

#[test]
fn a_column_named_like_the_beginning_of_an_index_is_told_apart() {
    for text in ["CREATE TABLE t (key bytes)", "CREATE TABLE t (n i64, index i64)"] {
        let error = parse_statement(text).unwrap_err().to_string();
        assert!(error.contains("called key or index is written in double quotes"), "{error}");
    }
    parse_statement(r#"CREATE TABLE t ("key" bytes PRIMARY KEY, "index" i64)"#).unwrap();
}
