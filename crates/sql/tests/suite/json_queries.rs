//! Queries as JSON that answer what the same in SQL does: grouping sets, windows, several queries.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use esker::Value;

use crate::fixture::{answer, memory};

fn database() -> esker::Database {
    memory(&[
        "CREATE TABLE s (id i64 PRIMARY KEY, shop text, day i64, v i64)",
        "INSERT INTO s VALUES (1, 'x', 1, 10), (2, 'x', 2, 20), (3, 'y', 1, 30), \
         (4, NULL, 2, 40), (5, 'y', NULL, NULL), (6, 'y', 3, 5)",
        "CREATE TABLE o (shop text, day i64)",
        "INSERT INTO o VALUES ('x', 1), ('z', 2), ('z', 2), ('y', 1)",
    ])
}

/// Answers of JSON and of SQL are the same, names of columns included.
#[track_caller]
fn check(cases: &[(&str, &str)]) {
    let db = database();
    for (json, sql) in cases {
        let found = db.query_json(json).unwrap_or_else(|e| panic!("{json}: {e}"));
        let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
        let rows = found.to_rows().iter().map(row).collect::<Vec<_>>().join(";");
        assert_eq!(rows, answer(&db, sql), "{json}\n{sql}");
    }
}

#[test]
fn grouping_sets_of_json_answer_as_those_of_sql() {
    check(&[
        (
            r#"{"table": "s", "rollup": ["shop", "day"],
                "aggregates": [{"fn": "sum", "field": "v", "as": "n"},
                               {"fn": "grouping", "fields": ["shop", "day"], "as": "g"}],
                "having": {"field": "n", "op": "gt", "value": 5}, "order": ["g", "shop", "day"]}"#,
            "SELECT shop, day, sum(v) AS n, GROUPING(shop, day) AS g FROM s \
             GROUP BY ROLLUP (shop, day) HAVING n > 5 ORDER BY g, shop, day",
        ),
        (
            r#"{"table": "s", "group_by": "shop", "grouping_sets": [["day"], []],
                "aggregates": {"fn": "count"}, "windows": {"fn": "rank", "as": "r",
                "partition_by": "day", "order": {"field": "count", "descending": true}},
                "qualify": {"field": "r", "op": "eq", "value": 1},
                "order": ["shop", "day", "count"]}"#,
            "SELECT shop, day, count(*), \
             rank() OVER (PARTITION BY day ORDER BY count(*) DESC) AS r \
             FROM s GROUP BY shop, GROUPING SETS ((day), ()) QUALIFY r = 1 ORDER BY 1, 2, 3",
        ),
    ]);
}

#[test]
fn collations_of_json_are_those_of_sql() {
    let names = "CREATE TABLE names (id i64 PRIMARY KEY, name text, other text)";
    let rows = "INSERT INTO names VALUES (1, 'bob', 'BOB'), (2, 'Ada', 'ada'), (3, 'BOB', 'x'), \
                (4, 'ÄNN', 'änn'), (5, NULL, 'bob'), (6, 'änn', NULL)";
    let db = memory(&[names, rows]);
    let leaf = |op: &str, value: &str, by: &str| {
        format!(
            r#"{{"table": "names", "select": ["id"], "order": "id", "where":
                {{"field": "name", "op": "{op}", "value": {value}, "collate": "{by}"}}}}"#
        )
    };
    for (json, condition) in [
        (leaf("eq", r#""Bob""#, "nocase"), "name = 'Bob' COLLATE nocase"),
        (leaf("neq", r#""Bob""#, "nocase"), "name <> 'Bob' COLLATE nocase"),
        (leaf("gt", r#""BA""#, "NoCase"), "name > 'BA' COLLATE nocase"),
        (leaf("in", r#"["BOB", "äNN"]"#, "unicode"), "name COLLATE unicode IN ('BOB', 'äNN')"),
        (leaf("not_in", r#"["ada"]"#, "nocase"), "name COLLATE nocase NOT IN ('ada')"),
        (leaf("between", r#"["AA", "B"]"#, "nocase"), "name COLLATE nocase BETWEEN 'AA' AND 'B'"),
        (leaf("eq_field", r#""other""#, "unicode"), "name = other COLLATE unicode"),
        (leaf("eq", r#""bob""#, "binary"), "name = 'bob'"),
    ] {
        let sql = format!("SELECT id FROM names WHERE {condition} ORDER BY id");
        let found = db.query_json(&json).unwrap_or_else(|e| panic!("{json}: {e}")).to_rows();
        let found: Vec<String> = found.iter().map(|row| row[0].to_string()).collect();
        assert!(!found.is_empty(), "{json}");
        assert_eq!(found.join(";"), answer(&db, &sql), "{json}");
    }
    let ordered = r#"{"table": "names", "select": ["id"], "order":
        [{"field": "name", "collate": "unicode", "nulls": "last"}, "id"]}"#;
    let found = db.query_json(ordered).unwrap().to_rows();
    let found: Vec<String> = found.iter().map(|row| row[0].to_string()).collect();
    assert_eq!(found.join(""), "213465");
    for (json, expected) in [
        (leaf("contains", r#""b""#, "nocase"), "contains is not by nocase: expected a comparison"),
        (leaf("eq", r#""b""#, "nocas"), "unknown collation \"nocas\"; did you mean \"nocase\"?"),
        (
            r#"{"table": "names", "where": {"field": "name", "op": "in", "collate": "nocase",
                "query": {"table": "names", "select": ["other"]}}}"#
                .to_owned(),
            "where.collate: expected values beside it, found a query",
        ),
        (
            r#"{"table": "names", "order": {"field": "id", "collate": "nocase"}}"#.to_owned(),
            "ascii_lower",
        ),
    ] {
        let error = db.query_json(&json).unwrap_err().to_string();
        assert!(error.contains(expected), "{json}: {error}");
    }
}

#[test]
fn windows_of_json_answer_as_those_of_sql() {
    check(&[
        (
            r#"{"table": "s", "windows": [
                {"fn": "lag", "field": "v", "n": 1, "default": 0, "partition_by": "shop",
                 "order": "id"},
                {"fn": "sum", "field": "v", "order": "id",
                 "frame": {"start": {"preceding": 1}, "end": {"following": 1},
                           "exclude": "current_row"}},
                {"fn": "ntile", "n": 2, "order": ["day", {"field": "id", "descending": true}]},
                {"fn": "first_value", "field": "shop", "ignore_nulls": true, "order": "day"}],
                "order": "id"}"#,
            "SELECT *, lag(v, 1, 0) OVER (PARTITION BY shop ORDER BY id), sum(v) OVER (ORDER BY id \
             ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW), \
             ntile(2) OVER (ORDER BY day, id DESC), \
             first_value(shop) IGNORE NULLS OVER (ORDER BY day) FROM s ORDER BY id",
        ),
        (
            r#"{"table": "s", "as": "a", "join": {"table": "o", "using": ["shop"]},
                "select": ["a.id", "o.day"], "windows": {"fn": "count", "partition_by": "a.id"},
                "where": {"field": "a.v", "op": "gt", "value": 6}, "order": ["id", "o.day"]}"#,
            "SELECT a.id, o.day, count(*) OVER (PARTITION BY a.id) FROM s AS a JOIN o USING (shop) \
             WHERE a.v > 6 ORDER BY a.id, o.day",
        ),
    ]);
}

#[test]
fn queries_of_json_are_combined_from_left_to_right() {
    check(&[
        (
            r#"{"table": "s", "select": ["shop", "day"], "combine": [
                {"op": "union", "all": true, "query": {"table": "o"}},
                {"op": "intersect", "query": {"table": "o"}}],
                "order": ["shop", "day"], "limit": 2}"#,
            "SELECT * FROM (SELECT shop, day FROM s UNION ALL SELECT * FROM o) AS q \
             INTERSECT SELECT * FROM o ORDER BY shop, day LIMIT 2",
        ),
        (
            r#"{"table": {"table": "s", "select": ["shop"],
                          "combine": {"op": "except", "query": {"table": "o", "select": ["shop"]}}},
                "as": "q", "aggregates": {"fn": "count"}}"#,
            "SELECT count(*) FROM (SELECT shop FROM s EXCEPT SELECT shop FROM o) AS q",
        ),
        (
            r#"{"table": "o", "select": ["shop"], "where": {"field": "shop", "op": "in",
                "query": {"table": "s", "select": ["shop"],
                          "combine": {"op": "union", "query": {"table": "s", "select": ["shop"]}}}},
                "order": "shop"}"#,
            "SELECT shop FROM o WHERE shop IN (SELECT shop FROM s) ORDER BY shop",
        ),
    ]);
    let db = database();
    for (combine, wanted) in [
        ("[]", "combine: expected at least one query, found []"),
        (r#"{"op": "minus", "query": {"table": "o"}}"#, "combine[0].op: expected \"union\""),
        (r#"{"op": "union"}"#, "combine[0]: expected a member \"query\""),
        (r#"{"op": "union", "query": {"table": "o", "limits": 3}}"#, "combine[0].query"),
        (r#"{"op": "union", "query": {"table": "o", "limit": "x"}}"#, "combine[0].query: limit"),
        (r#"{"op": "union", "query": {"table": "nothing"}}"#, "nothing"),
        (r#"{"op": "union", "query": {"table": "s"}}"#, "columns"),
    ] {
        let json = format!("{{\"table\": \"o\", \"combine\": {combine}}}");
        let error = db.query_json(&json).unwrap_err().to_string();
        assert!(error.contains(wanted), "{json}\n{error}");
    }
}
