//! Joins of many tables as SQL writes them: in which order they run, and what conditions say.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use esker::{Database, IndexUse, Options, Value};
use esker_sql::{Outcome, Sql};

use crate::fixture::{answer, memory};

fn plan(db: &Database, text: &str) -> String {
    match db.sql(&format!("EXPLAIN {text}"), ()).unwrap() {
        Outcome::Plan(plan) => plan,
        other => panic!("{other:?}"),
    }
}

/// The lines of a plan that are joins, without what they are thought to find.
fn joins(plan: &str) -> Vec<&str> {
    let lines = plan.lines().map(str::trim).filter(|line| line.contains("join"));
    lines.map(|line| line.split("  (").next().unwrap_or(line)).collect()
}

fn pairs() -> Database {
    let db = memory(&[
        "CREATE TABLE l (k i64, x i64)",
        "CREATE TABLE r (k i64, y i64)",
        "CREATE TABLE n (v i64)",
        "INSERT INTO n VALUES (NULL), (0), (1), (2)",
    ]);
    for table in ["l", "r"] {
        let insert = format!("INSERT INTO {table} SELECT a.v, b.v FROM n a, n b");
        db.sql(&insert, ()).unwrap();
    }
    db
}

/// Each condition, and the same in a form that is tested as it is, pair by pair.
#[test]
fn what_branches_of_an_or_have_in_common_holds_with_nulls() {
    let db = pairs();
    let conditions = [
        "l.k = r.k AND l.x = 1 OR l.k = r.k AND l.x = 2 AND r.y > 0",
        "l.k = r.k AND l.x = 1 OR r.k = l.k AND r.y = 1 OR l.k = r.k",
        "l.k = r.k AND (l.x = 1 AND r.y = 2 OR l.x = 2 AND r.y = 1)",
        "l.x = 1 AND r.y IS NULL OR l.x IS NULL AND r.y = 1",
        "(l.k IS NULL AND r.y = 1) OR (l.k IS NULL AND r.y IS NULL AND l.x > 0)",
        "NOT (l.k = r.k AND l.x = 1 OR l.k = r.k AND r.y = 1)",
        "(l.k = r.k AND l.x > 0 OR l.k = r.k AND l.x IS NULL) IS NULL AND l.k = 1",
        "l.k = r.k AND 10 / l.x > 4 OR l.k = r.k AND r.y = 0",
        "l.k = 1 AND (r.k = 1 OR r.k = 2) OR l.k = 1 AND r.y = 0",
    ];
    for condition in conditions {
        for from in ["l, r", "l JOIN r ON true", "l LEFT JOIN r ON l.x = r.y AND r.k > 0"] {
            let select = format!("SELECT l.k, l.x, r.k, r.y FROM {from} WHERE");
            let found = answer(&db, &format!("{select} {condition} ORDER BY 1, 2, 3, 4"));
            let whole = format!("CASE WHEN {condition} THEN 1 ELSE 0 END = 1");
            let wanted = answer(&db, &format!("{select} {whole} ORDER BY 1, 2, 3, 4"));
            assert_eq!(found, wanted, "{from}: {condition}");
        }
    }
    let plan = plan(&db, &format!("SELECT count(*) FROM l, r WHERE {}", conditions[0]));
    assert!(joins(&plan)[0].starts_with("inner join on l.k = r.k"), "{plan}");
    assert!(plan.contains("table l where l.x = 1 OR l.x = 2"), "{plan}");
}

/// The tables of TPC-H, with few rows.
fn trade() -> Database {
    let numbers = |rows: u32, select: &str| {
        format!(
            "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < {rows}) \
             SELECT {select} FROM r"
        )
    };
    let db = memory(&[
        "CREATE TABLE region (r_regionkey i64 PRIMARY KEY, r_name text)",
        "CREATE TABLE nation (n_nationkey i64 PRIMARY KEY, n_name text, n_regionkey i64)",
        "CREATE TABLE supplier (s_suppkey i64 PRIMARY KEY, s_nationkey i64)",
        "CREATE TABLE customer (c_custkey i64 PRIMARY KEY, c_nationkey i64)",
        "CREATE TABLE part (p_partkey i64 PRIMARY KEY, p_name text, p_type text, p_brand text, \
         p_size i64)",
        "CREATE TABLE partsupp (ps_partkey i64, ps_suppkey i64, ps_supplycost decimal(10,2), \
         PRIMARY KEY (ps_partkey, ps_suppkey))",
        "CREATE TABLE orders (o_orderkey i64 PRIMARY KEY, o_custkey i64, o_orderdate date)",
        "CREATE TABLE lineitem (l_orderkey i64, l_partkey i64, l_suppkey i64, l_quantity i64, \
         l_extendedprice decimal(10,2), l_discount decimal(4,2), l_shipdate date)",
    ]);
    let rows = [
        ("region", numbers(5, "i - 1, concat('REGION ', i - 1)")),
        ("nation", numbers(25, "i - 1, concat('NATION ', i - 1), i % 5")),
        ("supplier", numbers(40, "i, i % 25")),
        ("customer", numbers(60, "i, i % 25")),
        (
            "part",
            numbers(
                80,
                "i, concat('part ', i % 7), concat('TYPE ', i % 6), \
             concat('Brand#', i % 5), i % 50",
            ),
        ),
        ("partsupp", numbers(320, "i % 80 + 1, (i * 7 + i / 80) % 40 + 1, i % 100")),
        ("orders", numbers(300, "i, i % 60 + 1, date '1995-01-01' + i % 700")),
        (
            "lineitem",
            numbers(
                1_200,
                "i % 300 + 1, i % 80 + 1, (i * 7 + i / 80) % 40 + 1, i % 50, \
             i % 900 + 1, cast(concat('0.0', i % 10) AS decimal(4,2)), date '1995-01-01' + i % 730",
            ),
        ),
    ];
    for (table, select) in rows {
        db.sql(&format!("INSERT INTO {table} {select}"), ())
            .unwrap_or_else(|e| panic!("{table}: {e}"));
    }
    db
}

const BY_NATION: &str = "SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue \
     FROM customer, orders, lineitem, supplier, nation, region \
     WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey \
     AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey \
     AND r_name = 'REGION 2' AND o_orderdate >= date '1995-02-01' \
     AND o_orderdate < date '1996-02-01' GROUP BY n_name ORDER BY revenue DESC";

const BETWEEN_NATIONS: &str = "SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue \
     FROM (SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, \
     extract(year FROM l_shipdate) AS l_year, l_extendedprice * (1 - l_discount) AS volume \
     FROM supplier, lineitem, orders, customer, nation n1, nation n2 \
     WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey \
     AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey \
     AND ((n1.n_name = 'NATION 3' AND n2.n_name = 'NATION 7') \
     OR (n1.n_name = 'NATION 7' AND n2.n_name = 'NATION 3'))) AS shipping \
     GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year";

const SHARE: &str = "SELECT o_year, sum(CASE WHEN nation = 'NATION 4' THEN volume ELSE 0 END) \
     FROM (SELECT extract(year FROM o_orderdate) AS o_year, \
     l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation \
     FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region \
     WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey \
     AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey \
     AND r_name = 'REGION 1' AND s_nationkey = n2.n_nationkey AND p_type = 'TYPE 3') AS nations \
     GROUP BY o_year ORDER BY o_year";

const PROFIT: &str = "SELECT nation, o_year, sum(amount) AS sum_profit \
     FROM (SELECT n_name AS nation, extract(year FROM o_orderdate) AS o_year, \
     l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount \
     FROM part, supplier, lineitem, partsupp, orders, nation \
     WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey \
     AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey \
     AND p_name LIKE '%3%') AS profit GROUP BY nation, o_year ORDER BY nation, o_year DESC";

const BRANDS: &str = "SELECT sum(l_extendedprice * (1 - l_discount)) FROM lineitem, part \
     WHERE (p_partkey = l_partkey AND p_brand = 'Brand#1' AND l_quantity BETWEEN 1 AND 20 \
     AND p_size BETWEEN 1 AND 30) OR (p_partkey = l_partkey AND p_brand = 'Brand#2' \
     AND l_quantity BETWEEN 10 AND 40 AND p_size BETWEEN 1 AND 40)";

/// Comma lists whose tables are not connected in the order that is written.
#[test]
fn queries_of_many_tables_join_by_keys_alone() {
    let db = trade();
    for text in [BY_NATION, BETWEEN_NATIONS, SHARE, PROFIT, BRANDS] {
        let plan = plan(&db, text);
        let joins = joins(&plan);
        let tables = text.matches("_").count();
        assert!(!joins.is_empty() && tables > 0, "{plan}");
        assert!(joins.iter().all(|join| join.starts_with("inner join on ")), "{plan}");
        let found = answer(&db, text);
        assert!(!found.is_empty() && found != "null", "{text}");
    }
    // Brands and quantities are read of each table alone.
    let plan = plan(&db, BRANDS);
    assert!(plan.contains("table part where") && plan.contains("table lineitem where"), "{plan}");
}

/// The same answers as where every condition is tested on its own.
#[test]
fn queries_of_many_tables_are_what_their_parts_say() {
    let db = trade();
    let one = "SELECT sum(l_extendedprice * (1 - l_discount)) FROM lineitem, part \
        WHERE p_partkey = l_partkey AND p_brand = 'Brand#1' AND l_quantity BETWEEN 1 AND 20 \
        AND p_size BETWEEN 1 AND 30";
    let other = "SELECT sum(l_extendedprice * (1 - l_discount)) FROM lineitem, part \
        WHERE p_partkey = l_partkey AND p_brand = 'Brand#2' AND l_quantity BETWEEN 10 AND 40 \
        AND p_size BETWEEN 1 AND 40";
    let sum = answer(&db, &format!("SELECT ({one}) + ({other})"));
    assert_eq!(answer(&db, BRANDS).trim_end_matches('0'), sum.trim_end_matches('0'));
    // A table at a time, by subqueries.
    let nations = "SELECT n_nationkey FROM nation WHERE n_regionkey IN (SELECT r_regionkey FROM \
        region WHERE r_name = 'REGION 2')";
    let whole = format!(
        "SELECT sum(l_extendedprice * (1 - l_discount)) FROM lineitem \
         JOIN (SELECT s_suppkey, s_nationkey FROM supplier WHERE s_nationkey IN ({nations})) s \
         ON s_suppkey = l_suppkey JOIN (SELECT o_orderkey, c_nationkey FROM orders JOIN customer \
         ON c_custkey = o_custkey WHERE o_orderdate >= date '1995-02-01' \
         AND o_orderdate < date '1996-02-01') o ON o_orderkey = l_orderkey \
         WHERE c_nationkey = s_nationkey"
    );
    let all = format!("SELECT sum(revenue) FROM ({BY_NATION}) q");
    assert_eq!(answer(&db, &all), answer(&db, &whole));
}

/// In any order written, each table is joined by its key.
#[test]
fn chains_and_stars_of_many_tables_have_no_product() {
    let db = memory(&["CREATE TABLE t (id i64 PRIMARY KEY, next i64, v i64)"]);
    db.sql(
        "INSERT INTO t WITH RECURSIVE r (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r \
         WHERE i < 9) SELECT i, (i + 1) % 10, i FROM r",
        (),
    )
    .unwrap();
    for count in [8usize, 12, 20, 27] {
        let chain = |n: usize| format!("t{}.next = t{n}.id", n - 1);
        let star = |n: usize| format!("t0.v = t{n}.id");
        for links in [&chain as &dyn Fn(usize) -> String, &star] {
            for step in [1, 3, 7] {
                // Steps that have no factor in common with the number of tables.
                let step = if count % step == 0 && step > 1 { step + 4 } else { step };
                let tables: Vec<_> =
                    (0..count).map(|n| format!("t AS t{}", n * step % count)).collect();
                let links: Vec<_> = (1..count).map(links).collect();
                let (tables, links) = (tables.join(", "), links.join(" AND "));
                let text = format!("SELECT count(*), min(t1.v) FROM {tables} WHERE {links}");
                assert_eq!(answer(&db, &text), "10|0", "{text}");
                let plan = plan(&db, &text);
                let joins = joins(&plan);
                assert_eq!(joins.len(), count - 1, "{plan}");
                assert!(joins.iter().all(|join| join.starts_with("inner join on ")), "{plan}");
            }
        }
    }
}

/// What a date computed from an interval is compared with is a date: such a condition cannot fail,
/// so it is tested as the table is read, below joins, too.
#[test]
fn dates_compare_with_a_moment_as_with_a_day() {
    let db = memory(&[
        "CREATE TABLE o (k i64 PRIMARY KEY, day date)",
        "CREATE TABLE l (k i64, n i64)",
        "INSERT INTO o VALUES (1, '1993-12-31'), (2, '1994-01-01'), (3, '1994-01-02'), (4, NULL)",
        "INSERT INTO l VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    ]);
    let midnight = "date '1993-10-01' + interval '3' month";
    for (operator, same, later) in [
        ("<", "1", "1,2"),
        ("<=", "1,2", "1,2"),
        ("=", "2", "null"),
        ("<>", "1,3", "1,2,3"),
        (">=", "2,3", "3"),
        (">", "3", "3"),
    ] {
        let ask = |condition: &str| {
            let text = format!(
                "SELECT string_agg(l.n::text, ',' ORDER BY l.n) FROM l JOIN o ON l.k = o.k \
                 WHERE {condition}"
            );
            assert!(!plan(&db, &text).contains("filter"), "{}", plan(&db, &text));
            answer(&db, &text)
        };
        let flipped = |text: &str| {
            match text {
                "<" => ">",
                "<=" => ">=",
                ">=" => "<=",
                ">" => "<",
                other => other,
            }
            .to_owned()
        };
        let back = flipped(operator);
        assert_eq!(ask(&format!("o.day {operator} {midnight}")), same, "{operator}");
        assert_eq!(ask(&format!("{midnight} {back} o.day")), same, "{operator}");
        let moment = format!("{midnight} + interval '1 minute'");
        assert_eq!(ask(&format!("o.day {operator} {moment}")), later, "{operator}");
        assert_eq!(ask(&format!("{moment} {back} o.day")), later, "{operator}");
    }
}

/// Of a moment that is not midnight a date is before, or after; the time of the statement is such a
/// moment.
#[test]
fn dates_beside_a_moment_are_before_or_after_it() {
    let db = Options::new().index_use(IndexUse::Always).memory().unwrap();
    for text in ["CREATE TABLE o (k i64 PRIMARY KEY, day date)", "CREATE INDEX ON o (day)"] {
        db.sql(text, ()).unwrap();
    }
    let mut load = db.table("o").unwrap().load().unwrap();
    for i in 0..20_000i32 {
        // Each day once, in no order: no zone is of few days.
        let day = 10_958 + i * 7_919 % 20_000;
        load.push_row(&[i64::from(i).into(), Value::Date(day)]).unwrap();
    }
    load.finish().unwrap();
    db.wait_idle().unwrap();
    for (condition, count) in [
        ("day < TIMESTAMP '2000-01-04 12:00'", 3),
        ("day <= TIMESTAMP '2000-01-04 12:00'", 3),
        ("day = TIMESTAMP '2000-01-04 12:00'", 0),
        ("day = TIMESTAMP '2000-01-04'", 1),
        ("day >= TIMESTAMP '2054-09-30 00:00:01'", 4),
        ("day BETWEEN TIMESTAMP '2000-01-02 01:00' AND TIMESTAMP '2000-01-04 23:00'", 2),
        ("day IN (TIMESTAMP '2000-01-02 01:00', TIMESTAMP '2000-01-03')", 1),
        ("day < TIMESTAMP '1700-01-01 01:00'", 0),
        ("day > now() + interval '500 years 1 minute'", 0),
    ] {
        let text = format!("SELECT count(*) FROM o WHERE {condition}");
        assert_eq!(answer(&db, &text), count.to_string(), "{text}");
    }
}
