//! Joins and subqueries.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use esker::{Database, ErrorKind, Value};
use esker_sql::{Outcome, Sql};

use crate::fixture::{answer, check_on, memory};

fn database() -> Database {
    memory(&[
        "CREATE TABLE people (id i64 PRIMARY KEY, name text, city i64, boss i64)",
        "CREATE TABLE cities (id i64 PRIMARY KEY, name text, rank f64)",
        "CREATE TABLE pets (owner i32, name text, price decimal(8,2))",
        "INSERT INTO cities VALUES (1, 'Bonn', 1.5), (2, 'Kiel', 2.0), (3, 'Ulm', NULL)",
        "INSERT INTO people VALUES (1, 'Ada', 1, NULL), (2, 'Bob', 1, 1), (3, 'Cyd', 2, 1), \
         (4, 'Dan', NULL, 2), (5, 'Eve', 9, 3)",
        "INSERT INTO pets VALUES (1, 'cat', 1.50), (1, 'dog', 2.00), (3, 'cow', 9.99), \
         (NULL, 'owl', 2.00), (7, 'fox', NULL)",
    ])
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    check_on(&database(), cases);
}

#[test]
fn joins() {
    check(&[
        (
            "SELECT p.name, c.name FROM people p JOIN cities c ON p.city = c.id",
            "Ada|Bonn;Bob|Bonn;Cyd|Kiel",
        ),
        (
            "SELECT p.name, c.name FROM people p LEFT JOIN cities c ON p.city = c.id ORDER BY p.id",
            "Ada|Bonn;Bob|Bonn;Cyd|Kiel;Dan|null;Eve|null",
        ),
        ("SELECT c.name FROM cities c SEMI JOIN people p ON p.city = c.id", "Bonn;Kiel"),
        ("SELECT c.name FROM cities c ANTI JOIN people p ON p.city = c.id", "Ulm"),
        (
            "SELECT p.name, b.name FROM people p JOIN people b ON p.boss = b.id ORDER BY 1 DESC",
            "Eve|Cyd;Dan|Bob;Cyd|Ada;Bob|Ada",
        ),
        ("SELECT count(*) FROM people, cities", "15"),
        ("SELECT count(*) FROM people CROSS JOIN cities WHERE people.city = cities.id", "3"),
        (
            "SELECT p.name, c.name, t.name FROM people p LEFT JOIN cities c ON c.id = p.city \
          JOIN pets t ON t.owner = p.id",
            "Ada|Bonn|cat;Ada|Bonn|dog;Cyd|Kiel|cow",
        ),
        (
            "SELECT c.name, count(*), sum(t.price) FROM cities c JOIN people p ON p.city = c.id \
          LEFT JOIN pets t ON t.owner = p.id GROUP BY c.name ORDER BY c.name",
            "Bonn|3|3.50;Kiel|1|9.99",
        ),
        (
            "SELECT * FROM cities JOIN people USING (id) WHERE id < 3",
            "1|Bonn|1.5|Ada|1|null;2|Kiel|2.0|Bob|1|1",
        ),
        (
            "SELECT p.*, rank FROM people p JOIN cities ON city = cities.id WHERE p.id = 3",
            "3|Cyd|2|1|2.0",
        ),
        (
            "SELECT c.name, t.name FROM cities c JOIN pets t ON c.rank = t.price",
            "Bonn|cat;Kiel|dog;Kiel|owl",
        ),
        (
            "SELECT c.name, t.name FROM cities c LEFT JOIN pets t \
             ON c.rank = t.price AND t.name > 'd'",
            "Bonn|null;Kiel|dog;Kiel|owl;Ulm|null",
        ),
        (
            "SELECT c.name, t.name FROM cities c LEFT JOIN pets t \
             ON t.price > c.rank WHERE c.id > 1",
            "Kiel|cow;Ulm|null",
        ),
        (
            "SELECT d.n, c.name FROM (SELECT city, count(*) AS n FROM people GROUP BY city) d \
          JOIN cities c ON d.city = c.id",
            "2|Bonn;1|Kiel",
        ),
        ("SELECT n FROM (SELECT count(*) AS n FROM people) AS x", "5"),
        (
            "SELECT a.id FROM people a JOIN people b ON a.id = b.id + 1 \
             JOIN people c ON c.id = b.boss",
            "3;4;5",
        ),
    ]);
}

#[test]
fn subqueries() {
    check(&[
        ("SELECT name FROM people WHERE city IN (SELECT id FROM cities)", "Ada;Bob;Cyd"),
        ("SELECT name FROM people WHERE city NOT IN (SELECT id FROM cities)", "Eve"),
        ("SELECT name FROM people WHERE id NOT IN (SELECT owner FROM pets)", ""),
        (
            "SELECT name FROM people WHERE id NOT IN (SELECT owner FROM pets WHERE owner > 100)",
            "Ada;Bob;Cyd;Dan;Eve",
        ),
        (
            "SELECT name FROM people p WHERE EXISTS (SELECT 1 FROM pets WHERE owner = p.id)",
            "Ada;Cyd",
        ),
        (
            "SELECT name FROM people WHERE NOT EXISTS (SELECT 1 FROM pets WHERE owner = people.id)",
            "Bob;Dan;Eve",
        ),
        (
            "SELECT name FROM people WHERE NOT EXISTS (SELECT 1 FROM pets WHERE price > 100)",
            "Ada;Bob;Cyd;Dan;Eve",
        ),
        (
            "SELECT name FROM people p WHERE 'dog' IN \
             (SELECT t.name FROM pets t WHERE t.owner = p.id)",
            "Ada",
        ),
        (
            "SELECT name FROM people p WHERE 2.0 NOT IN \
             (SELECT price FROM pets WHERE owner = p.id)",
            "Bob;Cyd;Dan;Eve",
        ),
        ("SELECT name FROM cities WHERE rank = (SELECT max(rank) FROM cities)", "Kiel"),
        ("SELECT (SELECT count(*) FROM pets), name FROM cities WHERE id = 1", "5|Bonn"),
        ("SELECT (SELECT name FROM cities WHERE id = 77) IS NULL", "true"),
        (
            "SELECT name FROM people WHERE id = (SELECT id FROM people)",
            "error: expected one row at most of the subquery, found 5: (SELECT id FROM people)",
        ),
        (
            "SELECT c.name FROM cities c WHERE EXISTS (SELECT 1 FROM people p JOIN pets t \
          ON t.owner = p.id WHERE p.city = c.id AND t.price > 5)",
            "Kiel",
        ),
        (
            "SELECT p.name FROM people p JOIN cities c ON c.id = p.city WHERE EXISTS \
          (SELECT 1 FROM pets WHERE owner = p.id AND price < c.rank + 1)",
            "Ada",
        ),
        (
            "SELECT name FROM people p WHERE EXISTS (SELECT 1 FROM people q WHERE q.boss = p.id \
          AND q.id > p.id + 1)",
            "Ada;Bob;Cyd",
        ),
    ]);
}

#[test]
fn changes() {
    let db = database();
    let run = |text: &str| db.sql(text, ()).unwrap().rows_changed();
    assert_eq!(
        run("UPDATE people SET name = 'X' WHERE city IN (SELECT id FROM cities WHERE rank < 2)"),
        2
    );
    assert_eq!(
        run("UPDATE people p SET boss = (SELECT max(id) FROM cities) WHERE EXISTS \
                    (SELECT 1 FROM pets WHERE owner = p.id)"),
        2
    );
    assert_eq!(
        run("DELETE FROM cities WHERE NOT EXISTS (SELECT 1 FROM people WHERE city = cities.id)"),
        1
    );
    assert_eq!(
        run("INSERT INTO cities SELECT 10 + p.id, c.name, NULL FROM people p JOIN cities c \
                    ON c.id = p.city"),
        3
    );
    assert_eq!(
        answer(&db, "SELECT id, name FROM cities ORDER BY id"),
        "1|Bonn;2|Kiel;11|Bonn;12|Bonn;13|Kiel"
    );
    assert_eq!(
        answer(&db, "SELECT name, boss FROM people ORDER BY id"),
        "X|3;X|1;Cyd|3;Dan|2;Eve|3"
    );
}

#[test]
fn what_is_wrong_is_named() {
    check(&[
        (
            "SELECT id FROM people, cities",
            "error: SELECT: field \"id\" is ambiguous: it may be people.id, cities.id",
        ),
        (
            "SELECT p.nme FROM people p JOIN cities c ON true",
            "error: SELECT: p: unknown field \"nme\"; did you mean \"name\"?",
        ),
        (
            "SELECT 1 FROM people, people",
            "error: FROM: two tables are called \"people\"; give one another name with AS",
        ),
        (
            "SELECT p.name FROM cities c SEMI JOIN people p ON p.city = c.id",
            "error: SELECT: p.name: fields of \"p\" are not shown after a semi or anti join",
        ),
        ("SELECT x.* FROM people p, cities c", "error: x.*: no table \"x\" here; tables: p, c"),
        (
            "SELECT 1 FROM people p JOIN nothing n ON true",
            "error: no table \"nothing\"; tables: cities, people, pets",
        ),
    ]);
}

/// The condition of an inner join was taken for one of WHERE.
#[test]
fn a_condition_of_a_join_reads_no_table_that_comes_later() {
    let message = "error: ON: t.owner = p.id: \"t\" is joined later";
    for kind in ["JOIN", "LEFT JOIN"] {
        let text =
            format!("SELECT 1 FROM people p {kind} cities c ON t.owner = p.id JOIN pets t ON true");
        assert_eq!(answer(&database(), &text), message, "{text}");
    }
    let text = "SELECT 1 FROM people p JOIN cities c ON EXISTS (SELECT 1 FROM cities d WHERE d.id \
                = t.owner) JOIN pets t ON true";
    let found = answer(&database(), text);
    assert!(found.contains("\"t\" is joined later"), "{found}");
}

/// All pairs were made, and tested one by one: thousands of millions here.
#[test]
fn a_condition_that_holds_of_nothing_makes_no_pairs() {
    let db = database();
    let rows: Vec<String> = (0..1_000).map(|n| format!("({n})")).collect();
    db.sql("CREATE TABLE thousand (n i64 PRIMARY KEY)", ()).unwrap();
    db.sql(&format!("INSERT INTO thousand VALUES {}", rows.join(", ")), ()).unwrap();
    let many = "(SELECT a.n * 1000 + b.n AS n FROM thousand a, thousand b)";
    for (from, wanted) in [
        (format!("{many} AS x LEFT JOIN {many} AS y ON false"), "1000000|0"),
        (format!("{many} AS x LEFT JOIN {many} AS y ON 1 > 2 AND x.n < y.n"), "1000000|0"),
        (format!("{many} AS x JOIN {many} AS y ON NULL"), "0|0"),
        (format!("{many} AS x, {many} AS y WHERE 1 = 2"), "0|0"),
    ] {
        let text = format!("SELECT count(*), count(y.n) FROM {from}");
        assert_eq!(answer(&db, &text), wanted, "{text}");
    }
    // What the left alone is asked leaves out its rows before they meet any.
    for (on, wanted) in [
        ("x.n < 0", "1000000|0"),
        ("x.n < 0 AND x.n > y.n", "1000000|0"),
        ("x.n = 5 AND y.n < 3", "1000002|3"),
        ("x.n IN (3, 4) AND y.n < x.n", "1000005|7"),
        ("x.n < 2 AND y.n < 2 AND x.n <> y.n", "1000000|2"),
        ("NULLIF(x.n, x.n) = 1", "1000000|0"),
    ] {
        let text =
            format!("SELECT count(*), count(y.n) FROM {many} AS x LEFT JOIN {many} AS y ON {on}");
        assert_eq!(answer(&db, &text), wanted, "{text}");
    }
    for (kind, wanted) in [("SEMI", "0"), ("ANTI", "1000000")] {
        let text = format!("SELECT count(*) FROM {many} AS x {kind} JOIN {many} AS y ON false");
        assert_eq!(answer(&db, &text), wanted, "{text}");
    }
}

/// A key that fails made the join test all pairs, also where ON leaves such rows out.
#[test]
fn keys_of_outer_joins_are_computed_of_rows_that_on_lets_through() {
    let db = esker::Options::new().memory().unwrap();
    for table in ["a", "b"] {
        let text =
            |n: i64| if table == "a" && n % 3 == 0 { "none".to_owned() } else { n.to_string() };
        let rows: Vec<_> = (0..3_000).map(|n| format!("({n}, '{}')", text(n))).collect();
        db.sql(&format!("CREATE TABLE {table} (id i64 PRIMARY KEY, t text)"), ()).unwrap();
        db.sql(&format!("INSERT INTO {table} VALUES {}", rows.join(", ")), ()).unwrap();
    }
    let plan = |text: &str| match db.sql(text, ()).unwrap() {
        Outcome::Plan(plan) => plan,
        other => format!("{other:?}"),
    };
    let key = "CAST(a.t AS i64) = b.id";
    for (join, shown, expected) in [
        ("a LEFT JOIN b", "count(*), count(b.id)", "3000|2000"),
        ("b RIGHT JOIN a", "count(*), count(b.id)", "3000|2000"),
        ("a FULL JOIN b", "count(a.id), count(b.id)", "3000|3000"),
        ("b LEFT JOIN a", "count(*), count(a.id)", "3000|2000"),
        ("a SEMI JOIN b", "count(*)", "2000"),
        ("a ANTI JOIN b", "count(*)", "1000"),
    ] {
        let text = format!("SELECT {shown} FROM {join} ON a.t <> 'none' AND {key}");
        assert_eq!(answer(&db, &text), expected, "{text}");
        // What ran is what was planned.
        for explain in ["EXPLAIN", "EXPLAIN ANALYZE"] {
            let shown = plan(&format!("{explain} {text}"));
            assert!(shown.contains(&format!(" join on {key}")), "{shown}");
        }
    }
}

#[test]
fn statements_with_parameters_and_plans() {
    let db = database();
    let by_rank = db
        .prepare(
            "SELECT p.name FROM people p JOIN cities c ON c.id = p.city WHERE c.rank < ? AND p.id \
             IN (SELECT owner FROM pets WHERE price > ?) LIMIT ?",
        )
        .unwrap();
    let found = by_rank.query(&[3i64.into(), 1i64.into(), 5i64.into()]).unwrap();
    assert_eq!(found.to_rows(), [["Ada".into()], ["Cyd".into()]] as [[Value; 1]; 2]);
    assert_eq!(db.prepare("SELECT 1 FROM people, gone").unwrap_err().kind(), ErrorKind::NotFound);
    let plan = |text: &str| match db.sql(text, ()).unwrap() {
        Outcome::Plan(plan) => plan,
        other => format!("{other:?}"),
    };
    let text = "SELECT p.name, count(*) FROM people p LEFT JOIN pets t ON t.owner = p.id AND \
                t.price > 1 WHERE p.id < 3 AND NOT EXISTS (SELECT 1 FROM cities WHERE id = p.city) \
                GROUP BY p.name";
    let shown = plan(&format!("EXPLAIN {text}"));
    for line in [
        "    anti join on cities.id = p.city  (about ",
        "      left join on t.owner = p.id  (about ",
        "        table p where p.id < 3  (about ",
        "        table t where t.price > 1  (about ",
        "      table cities  (about ",
    ] {
        assert!(shown.lines().any(|found| found.starts_with(line)), "{line}\n{shown}");
    }
    let ran = plan(&format!("EXPLAIN ANALYZE {text}"));
    assert!(ran.contains(", found 3, right side built"), "{ran}");
}

#[test]
fn joins_as_json() {
    let db = database();
    let cases = [
        (
            r#"{"table": "people", "as": "p", "join": {"table": "cities", "as": "c", "kind": "left",
                "on": {"field": "c.id", "op": "eq_field", "value": "p.city"}},
                "where": {"field": "p.id", "op": "lt", "value": "5"},
                "select": ["p.name", {"field": "c.name", "as": "city"}], "order": ["p.name"]}"#,
            "Ada|Bonn;Bob|Bonn;Cyd|Kiel;Dan|null",
        ),
        (
            r#"{"table": "people", "join": [{"table": "cities", "using": ["id"]}],
                "group_by": ["boss"], "aggregates": [{"fn": "max", "field": "rank"}],
                "order": ["boss"]}"#,
            "null|1.5;1|2.0",
        ),
        (
            r#"{"table": "people", "select": ["name"], "where": [
                {"exists": {"table": "pets", "where": {"field": "owner", "op": "eq_field",
                                                       "value": "people.id"}}},
                {"field": "city", "op": "in", "query": {"table": "cities", "select": ["id"],
                 "where": {"field": "rank", "op": "gt", "value": 1.75}}}]}"#,
            "Cyd",
        ),
        (
            r#"{"table": {"table": "pets", "group_by": ["owner"],
                          "aggregates": [{"fn": "count", "as": "n"}]},
                "as": "d", "select": ["*"], "where": {"field": "n", "op": "gt", "value": 1}}"#,
            "1|2",
        ),
    ];
    for (text, wanted) in cases {
        let rows = db.query_json(text).unwrap().to_rows();
        let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
        assert_eq!(rows.iter().map(row).collect::<Vec<_>>().join(";"), wanted, "{text}");
    }
    let wrong = [
        (
            r#"{"table": "people", "join": [{"table": "cities"}]}"#,
            "join[0]: expected \"on\" or \"using\"",
        ),
        (
            r#"{"table": "people", "join": {"table": "cities", "kind": "cross"},
                "where": {"field": "id", "op": "eq", "value": 1}}"#,
            "where.field: field \"id\" is ambiguous: it may be people.id, cities.id",
        ),
        (
            r#"{"table": "people", "where": {"exists": {"table": "pets", "where":
                {"field": "ownr", "op": "eq", "value": 1}}}}"#,
            "where.exists: where.field: unknown field \"ownr\"",
        ),
        (r#"{"table": "people", "join": {"table": "nil", "kind": "cross"}}"#, "no table \"nil\""),
    ];
    for (text, message) in wrong {
        let error = db.query_json(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{text}\n{error}");
    }
}

/// What is always false reads a field, which has to be there behind the join all the same.
#[test]
fn conditions_that_fold_are_tested_behind_joins() {
    let join = "SELECT p.id FROM people p LEFT JOIN pets q ON p.id = q.owner WHERE";
    let none = "(SELECT owner FROM pets WHERE name = 'none')";
    check(&[
        (&format!("{join} p.city IN {none} OR q.owner IS NULL ORDER BY p.id"), "2;4;5"),
        (&format!("{join} p.city NOT IN {none} AND q.owner IS NULL ORDER BY p.id"), "2;4;5"),
        (&format!("{join} (p.city IN {none} OR 1 / q.owner = 1) AND q.owner = 1"), "1;1"),
        (&format!("{join} p.city IN {none} OR p.boss IN {none}"), ""),
    ]);
}
