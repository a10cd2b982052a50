//! Queries as JSON: what they become, and what is said of wrong ones.

use esker_format::{DataType, Schema};

use super::JsonQuery;

fn schema() -> Schema {
    Schema::builder()
        .field("name", DataType::Text)
        .field("age", DataType::I16)
        .field("price", DataType::Decimal { precision: 10, scale: 2 })
        .field("since", DataType::Date)
        .field("is_on", DataType::Bool)
        .nullable("doc", DataType::Json)
        .build()
        .unwrap()
}

fn bound(text: &str) -> Result<String, String> {
    let query = JsonQuery::parse(text).and_then(|query| query.bind(&schema()));
    query.map(|query| query.to_string()).map_err(|e| e.to_string())
}

#[test]
fn queries_become_what_they_say() {
    let cases = [
        (r#"{"table": "t"}"#, "SELECT * FROM t"),
        (
            r#"{"table": "t", "select": ["name", {"field": "age", "as": "years"}],
                "where": {"field": "age", "op": "in", "value": ["3", 4]},
                "order": ["name", {"field": "age", "descending": true, "nulls": "last"}],
                "limit": 5, "offset": 2, "distinct": true}"#,
            "SELECT DISTINCT name, age AS years FROM t WHERE age IN (3, 4) \
             ORDER BY name, age DESC NULLS LAST LIMIT 5 OFFSET 2",
        ),
        (
            r#"{"table": "t", "where": [
                {"or": [{"field": "name", "op": "like", "value": "a!%", "escape": "!"},
                        {"not": {"field": "is_on", "op": "eq", "value": "true"}}]},
                {"field": "price", "op": "between", "value": 1.10, "value2": "12345678.90"},
                {"field": "since", "op": "gte", "value": "2024-01-31"}]}"#,
            "SELECT * FROM t WHERE (name LIKE 'a!%' ESCAPE '!' OR NOT is_on = true) \
             AND price BETWEEN 1.10 AND 12345678.90 AND since >= '2024-01-31'",
        ),
        (
            r#"{"table": "t", "where": [
                {"field": "doc.customer.city", "op": "istarts", "value": "B"},
                {"field": "doc.amount", "op": "gt", "value": 5}]}"#,
            "SELECT * FROM t WHERE istarts_with(doc.customer.city, 'B') AND doc.amount > 5",
        ),
        (
            // Every digit of a number counts.
            r#"{"table": "t", "where": [
                {"field": "price", "op": "lt", "value": 12345678901234567890123456789},
                {"field": "doc.n", "op": "eq", "value": 0.1234567890123456789012345}]}"#,
            "SELECT * FROM t WHERE price < 12345678901234567890123456789 \
             AND doc.n = 0.1234567890123456789012345",
        ),
        (
            r#"{"table": "t", "aggregates": [{"fn": "median", "field": "age"},
                {"fn": "quantile", "field": "age", "quantile": 0.9, "as": "most"}]}"#,
            "SELECT quantile(age, 0.5) AS median_age, quantile(age, 0.9) AS most FROM t",
        ),
        (
            r#"{"table": "t", "group_by": "name", "aggregates": [{"fn": "count", "as": "n"},
                {"fn": "sum", "field": "price"}, {"fn": "count", "field": "age", "distinct": true}],
                "having": {"field": "n", "op": "gt", "value": "3"}, "order": [{"field": "n"}]}"#,
            "SELECT name, count(*) AS n, sum(price) AS sum_price, count(DISTINCT age) AS count_age \
             FROM t GROUP BY name HAVING n > 3 ORDER BY n",
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(bound(text).unwrap(), wanted);
    }
}

#[test]
fn wrong_queries_are_told_where_they_are_wrong() {
    let leaf = |leaf: &str| format!(r#"{{"table": "t", "where": [{leaf}]}}"#);
    let cases = [
        ("[]".to_owned(), "expected an object, found []"),
        ("{}".to_owned(), "expected a member \"table\", the name of the table to ask"),
        (r#"{"table": 5}"#.to_owned(), "table: expected a text, found 5"),
        (
            r#"{"table": "t", "limt": 3}"#.to_owned(),
            "unknown member \"limt\"; did you mean \"limit\"?",
        ),
        (r#"{"table": "t", "limit": -1}"#.to_owned(), "limit: expected a number of rows, found -1"),
        (
            leaf(r#"{"field": "agee", "op": "eq", "value": 3}"#),
            "where[0].field: unknown field \"agee\"; did you mean \"age\"?",
        ),
        (
            leaf(r#"{"field": "age", "op": "eqq", "value": 3}"#),
            "where[0].op: unknown operator \"eqq\"; did you mean \"eq\"?",
        ),
        (
            leaf(r#"{"or": [{"field": "age", "op": "contains", "value": "3"}]}"#),
            "where[0].or[0]: contains is for text, enum, a path into json; \"age\" is i16",
        ),
        (
            leaf(r#"{"field": "age", "op": "eq", "value": "three"}"#),
            "where[0].value: expected i16, found \"three\"",
        ),
        (
            leaf(r#"{"field": "age", "op": "eq", "value": null}"#),
            "where[0].value: null compares with nothing; \"exists\" and \"not_exists\" ask whether \
             there is a value",
        ),
        (
            leaf(r#"{"field": "age", "op": "between", "value": [1]}"#),
            "where[0].value: expected two values, the least and the greatest, found [1]",
        ),
        (
            leaf(r#"{"field": "age", "op": "lt_field", "value": "rnak"}"#),
            "where[0].value: unknown field \"rnak\"; fields: name, age, price, since, is_on, doc",
        ),
        (
            leaf(r#"{"field": "since", "op": "eq", "value": "yesterday"}"#),
            "where[0]: since = 'yesterday': ",
        ),
        (
            leaf(r#"{"field": "name", "op": "regex", "value": "("}"#),
            "where[0]: regexp_like(name, '('): regular expression '(': unclosed group",
        ),
        (leaf(r#"{"or": []}"#), "where[0].or: expected at least one condition, found []"),
        (
            leaf(r#"{"field": "age", "op": "exists", "value": 1}"#),
            "where[0].value: expected no value, found 1",
        ),
        (
            leaf(r#"{"field": "age", "op": "eq", "value": 1, "escape": "!"}"#),
            "where[0].escape: eq takes no escape",
        ),
        (
            r#"{"table": "t", "aggregates": [{"fn": "summ", "field": "age"}]}"#.to_owned(),
            "aggregates[0].fn: unknown aggregate \"summ\"; did you mean \"sum\"?",
        ),
    ];
    check_errors(&cases);
}

#[track_caller]
fn check_errors(cases: &[(String, &str)]) {
    for (text, wanted) in cases {
        let error = bound(text).unwrap_err();
        assert!(error.starts_with(wanted), "{text}\n{error}\n{wanted}");
    }
}

#[test]
fn wrong_members_and_numbers_are_told() {
    let leaf = |leaf: &str| format!(r#"{{"table": "t", "where": [{leaf}]}}"#);
    check_errors(&[
        (
            r#"{"table": "t", "aggregates": [{"fn": "quantile", "field": "age"}]}"#.to_owned(),
            "aggregates[0]: quantile takes the part of the values that lie below it, from 0 to 1, \
             in \"quantile\"",
        ),
        (
            r#"{"table": "t", "aggregates": [{"fn": "median", "field": "age", "quantile": 0.9}]}"#
                .to_owned(),
            "aggregates[0].quantile: expected nothing beside this aggregate, found 0.9",
        ),
        (
            r#"{"table": "t", "limit": 5, "limit": 6}"#.to_owned(),
            "expected a query as JSON: line 1, character 28: expected a name that the object does \
             not have yet, found",
        ),
        (
            leaf(r#"{"field": "age", "op": "eq", "value": 1e400}"#),
            "where[0].value: expected a number, found 1e400",
        ),
        (
            r#"{"table": "t", "limit": 5.0}"#.to_owned(),
            "limit: expected a number of rows, found 5.0",
        ),
    ]);
}

#[test]
fn groups_nest_64_deep_and_no_deeper() {
    let nested = |levels: usize| {
        let leaf = r#"{"field": "age", "op": "eq", "value": 1}"#;
        let open = r#"{"and": ["#.repeat(levels - 1);
        format!(r#"{{"table": "t", "where": [{open}{leaf}{}]}}"#, "]}".repeat(levels - 1))
    };
    assert_eq!(bound(&nested(64)).unwrap(), "SELECT * FROM t WHERE age = 1");
    let error = bound(&nested(65)).unwrap_err();
    assert!(error.ends_with(": conditions nest too deep: at most 64 levels"), "{error}");
    assert!(error.starts_with("where[0].and[0].and[0]"), "{error}");
    let error = bound(&"[".repeat(100_000)).unwrap_err();
    let wanted = "expected a query as JSON: line 1, character 138: expected at most 136 levels, ";
    assert!(error.starts_with(wanted), "{error}");
}

#[test]
fn grouping_sets_become_what_they_say() {
    let cases = [
        (
            r#"{"table": "t", "group_by": "name", "rollup": ["age", ["since", "is_on"]],
                "aggregates": [{"fn": "count"}, {"fn": "grouping", "as": "g",
                                                   "fields": ["age", "name"]}],
                "having": {"field": "g", "op": "eq", "value": 2}, "order": ["g", "age"]}"#,
            "SELECT name, age, since, is_on, count(*) AS count, grouping(age, name) AS g FROM t \
             GROUP BY GROUPING SETS ((name, age, since, is_on), (name, age), (name)) \
             HAVING g = 2 ORDER BY g, age",
        ),
        (
            r#"{"table": "t", "cube": ["name", "age"], "aggregates": {"fn": "grouping"}}"#,
            "SELECT name, age, grouping() AS grouping FROM t \
             GROUP BY GROUPING SETS ((name, age), (name), (age), ())",
        ),
        (
            r#"{"table": "t", "grouping_sets": [["name", "age"], "age", []]}"#,
            "SELECT name, age FROM t GROUP BY GROUPING SETS ((name, age), (age), ())",
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(bound(text).as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn windows_become_what_they_say() {
    let cases = [
        (
            r#"{"table": "t", "windows": {"fn": "row_number", "partition_by": "name",
                "order": {"field": "age", "descending": true}}}"#,
            "SELECT *, row_number() OVER (PARTITION BY name ORDER BY age DESC) AS row_number \
             FROM t",
        ),
        (
            r#"{"table": "t", "select": ["name"], "windows": [
                {"fn": "lag", "field": "age", "default": "7", "order": "name"},
                {"fn": "nth_value", "field": "age", "n": 2, "ignore_nulls": true, "as": "second"},
                {"fn": "sum", "field": "age", "order": ["since"], "frame": {"units": "range",
                 "start": {"preceding": 3}, "end": {"following": 1}, "exclude": "ties"}}],
                "qualify": {"field": "second", "op": "gt", "value": 3}}"#,
            "SELECT name, lag(age, 1, 7) OVER (ORDER BY name) AS lag_age, \
             nth_value(age, 2) IGNORE NULLS OVER () AS second, \
             sum(age) OVER (ORDER BY since RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) \
             AS sum_age FROM t QUALIFY second > 3",
        ),
        (
            r#"{"table": "t", "group_by": "name",
                "aggregates": {"fn": "sum", "field": "age", "as": "n"}, "windows":
                [{"fn": "rank", "order": "n"}, {"fn": "sum", "field": "n", "as": "sums"}]}"#,
            "SELECT name, sum(age) AS n, rank() OVER (ORDER BY sum(age)) AS rank, \
             sum(sum(age)) OVER () AS sums FROM t GROUP BY name",
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(bound(text).as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn members_of_groups_and_windows_are_named_in_errors() {
    let cases = [
        (r#""rollup": [3]"#, "rollup[0]: expected an array, found 3"),
        (r#""rollup": [[]]"#, "rollup[0]: expected at least one field, found []"),
        (r#""cube": [["name", 1]]"#, "cube[0][1]: expected a text, found 1"),
        (r#""grouping_sets": []"#, "grouping_sets: expected at least one set, found []"),
        (r#""aggregates": {"fn": "grouping", "field": "a"}"#, "\"field\""),
        (r#""windows": {"fn": "rnk"}"#, "windows[0].fn: unknown window function \"rnk\""),
        (r#""windows": {"fn": "rank", "field": "age"}"#, "windows[0]"),
        (r#""windows": {"fn": "ntile"}"#, "windows[0]: ntile takes a number in \"n\""),
        (r#""windows": {"fn": "ntile", "n": -1}"#, "windows[0].n: expected a number of rows"),
        (
            r#""windows": {"fn": "sum", "field": "age", "frame": {"start": "here"}}"#,
            "windows[0].frame.start: expected \"unbounded_preceding\"",
        ),
        (
            r#""windows": {"fn": "sum", "field": "age", "frame": {"units": "bytes"}}"#,
            "windows[0].frame.units: expected \"rows\", \"range\" or \"groups\", found \"bytes\"",
        ),
        (r#""qualify": {"field": "age", "op": "gt", "value": 1}"#, "qualify: expected"),
        (r#""combine": []"#, "expected a query of one table"),
    ];
    for (member, wanted) in cases {
        let found = bound(&format!("{{\"table\": \"t\", {member}}}")).unwrap_err();
        assert!(found.contains(wanted), "{member}\n{found}");
    }
    let keys: Vec<String> = (0..13).map(|i| format!("\"doc.k{i}\"")).collect();
    let cube = format!("{{\"table\": \"t\", \"cube\": [{}]}}", keys.join(", "));
    assert!(bound(&cube).unwrap_err().contains("cube: GROUP BY: 8192 grouping sets, at most 4096"));
}
