//! Window functions: what they answer, by the standard's rules, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use esker::{ChangeOptions, Database, ErrorKind, Limits, Options};
use esker_sql::{Outcome, Sql, parse_statement, run};

use crate::fixture::{answer, check_on, memory};

fn database() -> Database {
    memory(&[
        "CREATE TABLE s (id i64 PRIMARY KEY, g text, v i64, f f64, d date, n decimal(6,2))",
        "INSERT INTO s VALUES (1, 'a', 10, 0.5, DATE '2024-01-31', 1.50), \
         (2, 'a', 20, -1.5, DATE '2024-02-29', 2.25), (3, 'a', 20, 2.5, DATE '2024-03-01', NULL), \
         (4, 'a', NULL, NULL, NULL, 0.25), (5, 'b', 5, 1.0, DATE '2024-03-31', 3.00), \
         (6, 'b', 15, 4.0, DATE '2024-04-30', -1.25), (7, 'c', 7, 1.0, DATE '2024-05-01', 9.99)",
    ])
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    check_on(&database(), cases);
}

/// Answers of one value for each row, in the order of the rows.
#[track_caller]
fn check_calls(cases: &[(&str, &str)]) {
    let db = database();
    for (call, wanted) in cases {
        let found = answer(&db, &format!("SELECT {call} FROM s ORDER BY id"));
        assert_eq!(found, *wanted, "{call}");
    }
}

/// Statements, each with a part of its error.
#[track_caller]
fn check_refused(cases: &[(&str, &str)]) {
    let db = database();
    for (text, wanted) in cases {
        let found = match db.sql(text, ()) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{text}: expected an error"),
        };
        assert!(found.contains(wanted), "{text}\n{found}");
    }
}

#[test]
fn ranks_count_rows_and_peers() {
    check(&[
        (
            "SELECT id, row_number() OVER w, rank() OVER w, dense_rank() OVER w FROM s \
             WINDOW w AS (PARTITION BY g ORDER BY v) ORDER BY id",
            "1|2|2|2;2|3|3|3;3|4|3|3;4|1|1|1;5|1|1|1;6|2|2|2;7|1|1|1",
        ),
        (
            "SELECT id, percent_rank() OVER w, cume_dist() OVER w FROM s \
             WINDOW w AS (PARTITION BY g ORDER BY v) ORDER BY id",
            "1|0.3333333333333333|0.5;2|0.6666666666666666|1.0;3|0.6666666666666666|1.0;\
             4|0.0|0.25;5|0.0|0.5;6|1.0|1.0;7|0.0|1.0",
        ),
        (
            "SELECT id, ntile(2) OVER w, ntile(3) OVER w, ntile(9) OVER w, ntile(NULL) OVER w \
             FROM s WINDOW w AS (PARTITION BY g ORDER BY v) ORDER BY id",
            "1|1|1|2|null;2|2|2|3|null;3|2|3|4|null;4|1|1|1|null;5|1|1|1|null;6|2|2|2|null;\
             7|1|1|1|null",
        ),
        // Without an order all rows are peers.
        (
            "SELECT rank() OVER (), dense_rank() OVER (), cume_dist() OVER (), percent_rank() \
             OVER () FROM s WHERE g = 'b'",
            "1|1|1.0|0.0;1|1|1.0|0.0",
        ),
        ("SELECT row_number() OVER (ORDER BY id) FROM s WHERE id > 100", ""),
        ("SELECT count(*) OVER () FROM s WHERE id > 100", ""),
    ]);
}

#[test]
fn orders_have_directions_and_places_for_nulls() {
    check_calls(&[
        ("rank() OVER (ORDER BY v DESC)", "4;1;1;7;6;3;5"),
        ("rank() OVER (ORDER BY v NULLS LAST)", "3;5;5;7;1;4;2"),
        ("rank() OVER (ORDER BY v DESC NULLS FIRST)", "5;2;2;1;7;4;6"),
        ("rank() OVER (ORDER BY g DESC, v)", "5;6;6;4;2;3;1"),
        ("rank() OVER (PARTITION BY v > 9 ORDER BY f)", "2;1;3;1;1;4;1"),
        ("row_number() OVER (PARTITION BY f, g ORDER BY id DESC)", "1;1;1;1;1;1;1"),
        ("rank() OVER (ORDER BY n)", "4;5;1;3;6;2;7"),
        ("rank() OVER (ORDER BY d DESC)", "6;5;4;7;3;2;1"),
    ]);
}

#[test]
fn aggregates_look_at_the_rows_up_to_the_peers() {
    check_calls(&[
        ("sum(v) OVER (PARTITION BY g ORDER BY v)", "10;50;50;null;5;20;7"),
        ("count(*) OVER (PARTITION BY g)", "4;4;4;4;2;2;1"),
        ("count(v) OVER ()", "6;6;6;6;6;6;6"),
        ("sum(v) OVER (ORDER BY id)", "10;30;50;50;55;70;77"),
        (
            "avg(v) OVER (PARTITION BY g ORDER BY id)",
            "10.0;15.0;16.666666666666668;\
          16.666666666666668;5.0;10.0;7.0",
        ),
        ("min(v) OVER (PARTITION BY g ORDER BY id)", "10;10;10;10;5;5;7"),
        ("max(f) OVER (ORDER BY id)", "0.5;0.5;2.5;2.5;2.5;4.0;4.0"),
        ("sum(f) OVER (ORDER BY id)", "0.5;-1.0;1.5;1.5;2.5;6.5;7.5"),
        ("sum(n) OVER (ORDER BY id)", "1.50;3.75;3.75;4.00;7.00;5.75;15.74"),
        ("max(g) OVER (ORDER BY id)", "a;a;a;a;b;b;c"),
        ("string_agg(g, '') OVER (ORDER BY id)", "a;aa;aaa;aaaa;aaaab;aaaabb;aaaabbc"),
        ("bool_or(v > 15) OVER (ORDER BY id)", "false;true;true;true;true;true;true"),
        ("count_if(v > 9) OVER (ORDER BY id)", "1;2;3;3;3;4;4"),
        ("median(v) OVER (PARTITION BY g)", "20.0;20.0;20.0;20.0;10.0;10.0;7.0"),
        (
            "var_pop(v) OVER (PARTITION BY g ORDER BY id ROWS 1 PRECEDING)",
            "0.0;25.0;0.0;0.0;0.0;25.0;0.0",
        ),
        ("first(v ORDER BY id DESC) OVER (PARTITION BY g)", "null;null;null;null;15;15;7"),
        ("arg_max(id, v) OVER (PARTITION BY g)", "2;2;2;2;6;6;7"),
        ("count(*) FILTER (WHERE v > 9) OVER (PARTITION BY g)", "3;3;3;3;1;1;0"),
        ("sum(v) FILTER (WHERE id <> 2) OVER (ORDER BY id)", "10;10;30;30;35;50;57"),
        ("sum(v) OVER (PARTITION BY g) * 2 + id", "101;102;103;104;45;46;21"),
    ]);
}

#[test]
fn frames_count_rows() {
    check_calls(&[
        ("sum(v) OVER (ORDER BY id ROWS 1 PRECEDING)", "10;30;40;20;5;20;22"),
        (
            "sum(v) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)",
            "40;20;5;20;22;7;null",
        ),
        (
            "sum(v) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)",
            "null;10;30;40;20;5;20",
        ),
        ("count(*) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)", "2;3;3;3;3;3;2"),
        (
            "count(*) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
            "7;6;5;4;3;2;1",
        ),
        (
            "count(*) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 1 FOLLOWING)",
            "0;0;0;0;0;0;0",
        ),
        (
            "max(v) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
            "10;20;20;20;5;15;15",
        ),
        ("min(v) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)", "10;20;20;5;5;7;7"),
        (
            "sum(f) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
            "-1.0;1.5;1.0;3.5;5.0;6.0;5.0",
        ),
        (
            "string_agg(g, '') OVER (ORDER BY id DESC ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
            "aa;aaa;aaa;baa;bba;cbb;cb",
        ),
        (
            "count(*) OVER (ORDER BY id ROWS BETWEEN 9223372036854775807 PRECEDING AND \
          18446744073709551615 FOLLOWING)",
            "7;7;7;7;7;7;7",
        ),
        (
            "count(*) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
            "7;7;7;7;7;7;7",
        ),
    ]);
}

#[test]
fn frames_count_groups_of_peers() {
    check_calls(&[
        ("count(*) OVER (ORDER BY v GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)", "2;3;3;1;2;2;2"),
        ("count(*) OVER (ORDER BY v GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING)", "2;2;2;2;2;3;2"),
        ("count(*) OVER (ORDER BY v GROUPS BETWEEN 1 FOLLOWING AND 1 FOLLOWING)", "1;0;0;1;1;2;1"),
        ("count(*) OVER (ORDER BY v GROUPS BETWEEN 2 PRECEDING AND 1 PRECEDING)", "2;2;2;0;1;2;2"),
        ("count(*) OVER (ORDER BY g GROUPS 0 PRECEDING)", "4;4;4;4;2;2;1"),
        ("count(*) OVER (ORDER BY g GROUPS UNBOUNDED PRECEDING)", "4;4;4;4;6;6;7"),
    ]);
}

#[test]
fn frames_measure_distances_of_keys() {
    check_calls(&[
        ("count(*) OVER (ORDER BY v RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING)", "4;3;3;1;3;4;3"),
        ("count(*) OVER (ORDER BY v DESC RANGE 5 PRECEDING)", "2;2;2;1;3;3;2"),
        ("count(*) OVER (ORDER BY v RANGE BETWEEN 1 FOLLOWING AND 5 FOLLOWING)", "1;0;0;1;2;2;1"),
        (
            "count(*) OVER (ORDER BY v RANGE BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING)",
            "3;5;5;1;1;4;2",
        ),
        (
            "count(*) OVER (ORDER BY v NULLS LAST RANGE BETWEEN 3 PRECEDING AND UNBOUNDED \
          FOLLOWING)",
            "6;3;3;1;7;4;7",
        ),
        (
            "count(*) OVER (ORDER BY v RANGE BETWEEN 2.5 PRECEDING AND 3.5 FOLLOWING)",
            "1;2;2;1;2;1;3",
        ),
        (
            "count(*) OVER (ORDER BY n RANGE BETWEEN 0.75 PRECEDING AND 1 FOLLOWING)",
            "2;3;1;1;2;1;1",
        ),
        ("count(*) OVER (ORDER BY n RANGE 1.5 PRECEDING)", "2;2;1;2;3;1;1"),
        (
            "count(*) OVER (ORDER BY f RANGE BETWEEN 0.5 PRECEDING AND 1.5 FOLLOWING)",
            "3;1;2;1;4;1;4",
        ),
        ("count(*) OVER (ORDER BY d RANGE INTERVAL '1 month' PRECEDING)", "1;2;2;1;3;2;2"),
        (
            "count(*) OVER (ORDER BY d RANGE BETWEEN '1 day' PRECEDING AND '1 day' FOLLOWING)",
            "1;2;2;1;1;2;2",
        ),
        ("count(*) OVER (ORDER BY d RANGE 30 PRECEDING)", "1;2;3;1;2;2;2"),
        (
            "count(*) OVER (ORDER BY CAST(d AS timestamp) DESC RANGE INTERVAL '1 month' PRECEDING)",
            "2;2;2;1;2;2;1",
        ),
        ("first_value(id) OVER (ORDER BY d RANGE INTERVAL '3 hours' PRECEDING)", "1;2;3;4;5;6;7"),
        // Keys at the ends of their type.
        ("count(*) OVER (ORDER BY -v RANGE 9223372036854775807 PRECEDING)", "4;2;2;1;6;3;5"),
    ]);
}

#[test]
fn rows_are_left_out_of_frames() {
    let all = "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE";
    let call = |function: &str, what: &str| format!("{function} OVER (ORDER BY v {all} {what})");
    let cases = [
        (call("count(*)", "CURRENT ROW"), "6;6;6;6;6;6;6"),
        (call("count(*)", "GROUP"), "6;5;5;6;6;6;6"),
        (call("count(*)", "TIES"), "7;6;6;7;7;7;7"),
        (call("count(*)", "NO OTHERS"), "7;7;7;7;7;7;7"),
        (call("sum(v)", "CURRENT ROW"), "67;57;57;77;72;62;70"),
        (call("sum(v)", "GROUP"), "67;37;37;77;72;62;70"),
        (call("max(v)", "GROUP"), "20;15;15;20;20;20;20"),
        (call("min(v)", "CURRENT ROW"), "5;5;5;5;7;5;5"),
        (call("sum(f)", "CURRENT ROW"), "7.0;9.0;5.0;7.5;6.5;3.5;6.5"),
        (call("first_value(id)", "GROUP"), "4;4;4;5;4;4;4"),
        (call("last_value(v)", "CURRENT ROW"), "20;20;20;20;20;20;20"),
        (call("nth_value(id, 2)", "TIES"), "5;5;5;5;5;5;5"),
    ];
    let cases: Vec<_> = cases.iter().map(|(call, wanted)| (call.as_str(), *wanted)).collect();
    check_calls(&cases);
    check_calls(&[
        (
            "string_agg(CAST(id AS text), '') OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 \
          FOLLOWING EXCLUDE CURRENT ROW)",
            "2;13;24;35;46;57;6",
        ),
        (
            "count(*) OVER (PARTITION BY g ORDER BY v ROWS 1 PRECEDING EXCLUDE GROUP)",
            "1;1;0;0;0;1;0",
        ),
        (
            "count(*) OVER (PARTITION BY g ORDER BY v ROWS 1 PRECEDING EXCLUDE TIES)",
            "2;2;1;1;1;2;1",
        ),
        // The row is no row of the frame, and is not put into it.
        (
            "count(*) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING EXCLUDE TIES)",
            "0;1;2;2;2;2;2",
        ),
    ]);
}

#[test]
fn values_of_other_rows() {
    check_calls(&[
        ("lag(v) OVER (ORDER BY id)", "null;10;20;20;null;5;15"),
        ("lead(v, 2, 0) OVER (ORDER BY id)", "20;null;5;15;7;0;0"),
        ("lag(v, 1, id) OVER (PARTITION BY g ORDER BY id)", "1;10;20;20;5;5;7"),
        ("lag(v, 0) OVER (ORDER BY id)", "10;20;20;null;5;15;7"),
        ("lag(v, -1) OVER (ORDER BY id)", "20;20;null;5;15;7;null"),
        ("lead(v, NULL) OVER (ORDER BY id)", "null;null;null;null;null;null;null"),
        ("lag(v, id - 1) OVER (ORDER BY id)", "10;10;10;10;10;10;10"),
        ("lead(g, 3, 'none') OVER (ORDER BY id)", "a;b;b;c;none;none;none"),
        ("lag(v, 1, 0.5) OVER (ORDER BY id)", "0.5;10.0;20.0;20.0;null;5.0;15.0"),
        ("lag(v) IGNORE NULLS OVER (ORDER BY id)", "null;10;20;20;20;5;15"),
        ("lag(v IGNORE NULLS) OVER (ORDER BY id)", "null;10;20;20;20;5;15"),
        ("lag(v) RESPECT NULLS OVER (ORDER BY id)", "null;10;20;20;null;5;15"),
        ("lead(v, 2) IGNORE NULLS OVER (ORDER BY id)", "20;5;15;15;7;null;null"),
        ("lag(v, 0) IGNORE NULLS OVER (ORDER BY id)", "10;20;20;null;5;15;7"),
        ("first_value(v) OVER (PARTITION BY g ORDER BY v)", "null;null;null;null;5;5;7"),
        ("first_value(v) IGNORE NULLS OVER (PARTITION BY g ORDER BY v)", "10;10;10;null;5;5;7"),
        ("last_value(id) OVER (ORDER BY v)", "1;3;3;4;5;6;7"),
        ("last_value(v) IGNORE NULLS OVER (ORDER BY id)", "10;20;20;20;5;15;7"),
        ("nth_value(v, 2) OVER (PARTITION BY g ORDER BY id)", "null;20;20;20;null;15;null"),
        ("nth_value(v, 3) IGNORE NULLS OVER (ORDER BY v)", "10;10;10;null;null;10;null"),
        ("nth_value(g, NULL) OVER (ORDER BY id)", "null;null;null;null;null;null;null"),
        (
            "first_value(g) OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING)",
            "a;a;b;b;c;null;null",
        ),
        (
            "last_value(g) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
            "c;c;c;c;c;c;c",
        ),
    ]);
}

#[test]
fn qualify_chooses_rows_by_windows() {
    check(&[
        (
            "SELECT id FROM s QUALIFY row_number() OVER (PARTITION BY g ORDER BY v DESC) = 1 \
             ORDER BY id",
            "2;6;7",
        ),
        (
            "SELECT id, rank() OVER (ORDER BY v DESC) AS r FROM s QUALIFY r <= 3 ORDER BY id",
            "2|1;3|1;6|3",
        ),
        (
            "SELECT g, sum(v) AS total FROM s GROUP BY g QUALIFY rank() OVER (ORDER BY total \
             DESC) = 1",
            "a|50",
        ),
        (
            "SELECT id FROM s WHERE v > 5 QUALIFY count(*) OVER w > 1 AND id > 1 WINDOW w AS \
             (PARTITION BY g) ORDER BY id",
            "2;3",
        ),
        ("SELECT id, count(*) OVER () FROM s QUALIFY id = 3", "3|7"),
        ("SELECT * FROM (SELECT id FROM s) QUALIFY row_number() OVER (ORDER BY id DESC) = 2", "6"),
        (
            "SELECT id FROM s QUALIFY id = 3",
            "error: QUALIFY: expected a window function in it or \
          in SELECT; rows are chosen by WHERE, groups by HAVING",
        ),
    ]);
}

#[test]
fn windows_run_between_groups_and_distinct() {
    check(&[
        (
            "SELECT g, sum(v), sum(sum(v)) OVER (ORDER BY g) FROM s GROUP BY g ORDER BY g",
            "a|50|50;b|20|70;c|7|77",
        ),
        (
            "SELECT g, rank() OVER (ORDER BY count(*) DESC, g) FROM s GROUP BY g ORDER BY 1",
            "a|1;b|2;c|3",
        ),
        (
            "SELECT g, sum(count(*)) OVER () FROM s GROUP BY g HAVING count(*) > 1 ORDER BY g",
            "a|6;b|6",
        ),
        ("SELECT sum(sum(v)) OVER () FROM s", "77"),
        ("SELECT count(*), row_number() OVER () FROM s", "7|1"),
        (
            "SELECT v > 9, lag(count(*)) OVER (ORDER BY v > 9) FROM s GROUP BY v > 9 ORDER BY 1",
            "null|null;false|1;true|2",
        ),
        ("SELECT DISTINCT g, count(*) OVER (PARTITION BY g) FROM s ORDER BY g", "a|4;b|2;c|1"),
        (
            "SELECT DISTINCT count(*) OVER (PARTITION BY g) AS m FROM s QUALIFY m > 1 ORDER BY m",
            "2;4",
        ),
        ("SELECT DISTINCT rank() OVER (ORDER BY sum(v) > 10) FROM s GROUP BY g ORDER BY 1", "1;2"),
        ("SELECT id FROM s ORDER BY row_number() OVER (ORDER BY v DESC, id DESC) LIMIT 3", "3;2;6"),
    ]);
}

#[test]
fn windows_stand_in_queries_of_all_kinds() {
    check(&[
        (
            "SELECT id, row_number() OVER (ORDER BY v) FROM s ORDER BY id LIMIT 2 OFFSET 1",
            "2|6;3|7",
        ),
        ("SELECT id, row_number() OVER (ORDER BY id) FROM s LIMIT 0", ""),
        ("SELECT *, count(*) OVER () FROM (SELECT g FROM s WHERE id > 5)", "b|2;c|2"),
        (
            "SELECT a.id, sum(b.v) OVER (PARTITION BY a.id ORDER BY b.id) FROM s AS a JOIN s AS b \
             ON a.g = b.g WHERE a.g = 'b' ORDER BY 1, 2",
            "5|5;5|20;6|5;6|20",
        ),
        (
            "SELECT id FROM s WHERE v = (SELECT max(x) FROM (SELECT lag(v) OVER (ORDER BY id) AS \
             x FROM s)) ORDER BY id",
            "2;3",
        ),
        (
            "SELECT id FROM s AS a WHERE v = (SELECT lead(b.v) OVER (ORDER BY b.id) FROM s AS b \
             WHERE b.g = a.g ORDER BY b.id LIMIT 1) ORDER BY id",
            "2;3;6",
        ),
        (
            "SELECT id FROM s AS a WHERE EXISTS (SELECT b.id FROM s AS b WHERE b.g = a.g QUALIFY \
             count(*) OVER () = 2) ORDER BY id",
            "5;6",
        ),
        (
            "SELECT id, sum((SELECT count(*) FROM s AS b WHERE b.v < a.v)) OVER (ORDER BY id) FROM \
             s AS a WHERE id < 4 ORDER BY id",
            "1|2;2|6;3|10",
        ),
        (
            "SELECT id, sum(v - (SELECT min(v) FROM s)) OVER (ORDER BY id) FROM s WHERE id < 4",
            "1|5;2|20;3|35",
        ),
        (
            "SELECT row_number() OVER (ORDER BY id) FROM s UNION SELECT 100 + rank() OVER (ORDER \
             BY g) FROM s ORDER BY 1 LIMIT 8 OFFSET 5",
            "6;7;101;105;107",
        ),
    ]);
}

#[test]
fn windows_have_names() {
    check(&[
        (
            "SELECT id, rank() OVER (w ORDER BY v), count(*) OVER w, sum(v) OVER (w ROWS 1 \
             PRECEDING) FROM s WINDOW w AS (PARTITION BY g) ORDER BY id LIMIT 3",
            "1|2|4|10;2|3|4|30;3|3|4|40",
        ),
        (
            "SELECT id, sum(v) OVER b FROM s WINDOW a AS (PARTITION BY g), b AS (a ORDER BY id \
             ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) ORDER BY id",
            "1|null;2|10;3|30;4|50;5|null;6|5;7|null",
        ),
        (
            "SELECT count(*) OVER (w ROWS UNBOUNDED PRECEDING EXCLUDE TIES) FROM s WINDOW w AS \
             (ORDER BY g) ORDER BY id LIMIT 2",
            "1;1",
        ),
        ("SELECT count(*) OVER w FROM s", "error: OVER: no window \"w\" in the clause WINDOW"),
        (
            "SELECT count(*) OVER (w PARTITION BY v) FROM s WINDOW w AS (PARTITION BY g)",
            "error: a window that begins with \"w\" has its PARTITION BY",
        ),
        (
            "SELECT count(*) OVER (w ORDER BY v) FROM s WINDOW w AS (ORDER BY g)",
            "error: a window that begins with \"w\" has its ORDER BY",
        ),
        (
            "SELECT count(*) OVER (w) FROM s WINDOW w AS (ORDER BY g ROWS 1 PRECEDING)",
            "error: window \"w\" has a frame: write OVER w without parentheses, or leave the \
             frame out of WINDOW",
        ),
        (
            "SELECT count(*) OVER w FROM s WINDOW w AS (ORDER BY g), w AS ()",
            "error: WINDOW: two windows are called \"w\"",
        ),
    ]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = "window functions stand in SELECT, ORDER BY and QUALIFY only";
    let cases = [
        ("SELECT id FROM s WHERE row_number() OVER () = 1", place),
        ("SELECT count(*) FROM s GROUP BY row_number() OVER ()", place),
        ("SELECT count(*) FROM s HAVING row_number() OVER () = 1", place),
        ("SELECT sum(row_number() OVER ()) FROM s", place),
        ("SELECT 1 FROM s AS a JOIN s AS b ON a.id = row_number() OVER ()", place),
        ("UPDATE s SET v = row_number() OVER ()", place),
        ("DELETE FROM s ORDER BY row_number() OVER () LIMIT 1", place),
        ("SELECT sum(lag(v) OVER ()) OVER () FROM s", "a window function cannot be inside another"),
        ("SELECT rank() OVER (ORDER BY rank() OVER ()) FROM s", "cannot be inside another"),
        ("SELECT row_number() FROM s", "row_number is a window function: write row_number(…) OVER"),
        ("SELECT lower(g) OVER () FROM s", "OVER: lower is no window function and no aggregate"),
        ("SELECT row_numbr() OVER () FROM s", "did you mean \"row_number\""),
        ("SELECT rank(v) OVER () FROM s", "rank takes 0 operands, found 1"),
        ("SELECT lag() OVER () FROM s", "lag takes 1 to 3 operands, found 0"),
        ("SELECT lag(v, 'x') OVER () FROM s", "expected a whole number, found text"),
        ("SELECT lag(v, 1, g) OVER () FROM s", "no common type"),
        ("SELECT ntile(0) OVER () FROM s", "ntile: expected a number of parts from 1, found 0"),
        ("SELECT nth_value(v, 0) OVER () FROM s", "nth_value: expected a place from 1, found 0"),
        ("SELECT sum(v) IGNORE NULLS OVER () FROM s", "IGNORE NULLS works in lag, lead"),
        ("SELECT count(DISTINCT v) OVER () FROM s", "DISTINCT is not supported in an aggregate"),
        ("SELECT rank() FILTER (WHERE v > 1) OVER () FROM s", "FILTER works with aggregates only"),
        ("SELECT sum(g) OVER () FROM s", "sum expects numbers, found text"),
        ("SELECT g, v, count(*) OVER () FROM s GROUP BY g", "neither in GROUP BY"),
        ("SELECT DISTINCT ON (g) id, rank() OVER () FROM s", "window functions or DISTINCT"),
    ];
    check_refused(&cases);
}

#[test]
fn frames_that_make_no_sense_are_refused() {
    let cases = [
        (
            "SELECT count(*) OVER (ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) FROM s",
            "a frame cannot start at UNBOUNDED FOLLOWING",
        ),
        (
            "SELECT count(*) OVER (ROWS BETWEEN CURRENT ROW AND UNBOUNDED PRECEDING) FROM s",
            "a frame cannot end at UNBOUNDED PRECEDING",
        ),
        (
            "SELECT count(*) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM s",
            "a frame that starts at CURRENT ROW cannot end at 1 PRECEDING",
        ),
        ("SELECT count(*) OVER (ROWS -1 PRECEDING) FROM s", "cannot be negative"),
        ("SELECT count(*) OVER (ROWS NULL PRECEDING) FROM s", "cannot be NULL"),
        ("SELECT count(*) OVER (ROWS v PRECEDING) FROM s", "expected a constant, found a name"),
        ("SELECT count(*) OVER (ROWS 1.5 PRECEDING) FROM s", "expected a number of rows or groups"),
        ("SELECT count(*) OVER (GROUPS 1 PRECEDING) FROM s", "GROUPS: expected ORDER BY"),
        ("SELECT count(*) OVER (RANGE 1 PRECEDING) FROM s", "expected one key in ORDER BY of the"),
        ("SELECT count(*) OVER (ORDER BY v, id RANGE 1 PRECEDING) FROM s", "found 2"),
        (
            "SELECT count(*) OVER (ORDER BY g RANGE 1 PRECEDING) FROM s",
            "expected numbers, dates, timestamps, times or intervals in ORDER BY, found text",
        ),
        (
            "SELECT count(*) OVER (ORDER BY v RANGE INTERVAL '1 day' PRECEDING) FROM s",
            "expected dates, timestamps, times or intervals in ORDER BY, found i64",
        ),
        (
            "SELECT count(*) OVER (ORDER BY d RANGE INTERVAL '-1 day' PRECEDING) FROM s",
            "cannot be negative",
        ),
        ("SELECT count(*) OVER (ORDER BY v EXCLUDE TIES) FROM s", "EXCLUDE: expected ROWS, RANGE"),
    ];
    check_refused(&cases);
}

#[test]
fn a_sum_that_does_not_fit_is_an_error() {
    let db = memory(&[
        "CREATE TABLE t (id i64 PRIMARY KEY, v i64)",
        "INSERT INTO t VALUES (1, 9223372036854775807), (2, 1), (3, -2)",
    ]);
    let cases = [
        ("SELECT sum(v) OVER (ORDER BY id) FROM t", "does not fit i64"),
        // No frame has both: what was added before is taken away again without a trace.
        (
            "SELECT sum(v) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND CURRENT ROW) FROM t",
            "9223372036854775807;1;-2",
        ),
        (
            "SELECT max(v) OVER (ORDER BY id RANGE 9223372036854775807 PRECEDING) FROM t",
            "9223372036854775807;9223372036854775807;9223372036854775807",
        ),
        (
            "SELECT count(*) OVER (ORDER BY v RANGE BETWEEN 9223372036854775807 PRECEDING AND \
          9223372036854775807 FOLLOWING) FROM t ORDER BY id",
            "2;3;2",
        ),
    ];
    for (text, wanted) in cases {
        assert!(answer(&db, text).contains(wanted), "{text}: {}", answer(&db, text));
    }
}

#[test]
fn plans_show_windows() {
    let db = database();
    let text = "EXPLAIN SELECT g, sum(sum(v)) OVER (ORDER BY g) FROM s GROUP BY g";
    let Outcome::Plan(plan) = db.sql(text, ()).unwrap() else { panic!("expected a plan") };
    let line = plan.lines().find(|line| line.trim_start().starts_with("window")).unwrap();
    assert_eq!(line.trim(), "window sum(sum(v)) OVER (ORDER BY g)  (about 3 rows)");
    let at = |step: &str| plan.lines().position(|line| line.trim_start().starts_with(step));
    assert!(at("project") < at("window") && at("window") < at("group"), "{plan}");
    let text = "EXPLAIN ANALYZE SELECT DISTINCT rank() OVER (ORDER BY g) FROM s WHERE id > 2";
    let Outcome::Plan(plan) = db.sql(text, ()).unwrap() else { panic!("expected a plan") };
    assert!(plan.contains("rows; rows in 5, out 5,"), "{plan}");
}

#[test]
fn texts_of_windows_are_read_again() {
    let same = [
        "SELECT row_number() OVER (PARTITION BY a, b ORDER BY c DESC NULLS LAST, d) FROM t",
        "SELECT lag(a, 1, 0) IGNORE NULLS OVER (ORDER BY b) AS x FROM t QUALIFY x > 1 ORDER BY x",
        "SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) \
         FROM t",
        "SELECT count(*) OVER (GROUPS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT \
         ROW) FROM t",
        "SELECT max(a) OVER (ORDER BY d RANGE BETWEEN INTERVAL '1 months' PRECEDING AND INTERVAL \
         '5 microseconds' FOLLOWING EXCLUDE GROUP) FROM t",
        "SELECT sum(sum(a)) OVER () + 1 FROM t GROUP BY b QUALIFY rank() OVER (ORDER BY b) < 3",
    ];
    for text in same {
        assert_eq!(esker_sql::parse(text).unwrap().to_string(), text);
    }
    let short = esker_sql::parse(
        "SELECT sum(a) OVER (w ROWS 1 PRECEDING) FROM t WINDOW w AS \
                                  (ORDER BY b)",
    );
    let long = "SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t";
    assert_eq!(short.unwrap().to_string(), long);
}

#[test]
fn parameters_stand_in_windows() {
    let db = database();
    let text = "SELECT sum(v + ?) OVER (ORDER BY id ROWS ? PRECEDING), lag(id, ?, ?) OVER (ORDER \
                BY id) FROM s WHERE id < 4 ORDER BY id";
    let found = db.prepare(text).unwrap();
    let found = found.query_as::<(i64, i64)>((1, 1, 2, -1)).unwrap();
    assert_eq!(found, [(11, -1), (32, -1), (42, 1)]);
}

/// More rows than fit a chunk, in partitions of some rows and in one.
#[test]
fn many_rows_are_numbered() {
    let db = memory(&["CREATE TABLE m (i i64 PRIMARY KEY)"]);
    let rows: Vec<String> = (0..500).map(|i| format!("({i})")).collect();
    db.sql(&format!("INSERT INTO m VALUES {}", rows.join(",")), ()).unwrap();
    let all = "(SELECT a.i * 400 + b.i AS n FROM m AS a JOIN m AS b ON b.i < 400)";
    let cases = [
        (
            format!(
                "SELECT count(*), sum(r), max(r), count(DISTINCT r) FROM (SELECT row_number() \
                 OVER (PARTITION BY n % 1000 ORDER BY -n) AS r FROM {all} AS x)"
            ),
            "200000|20100000|200|200",
        ),
        (
            format!(
                "SELECT count(*), sum(r - n), max(s - n * (n + 1) / 2) FROM (SELECT n, \
                 row_number() OVER (ORDER BY n) AS r, sum(n) OVER (ORDER BY n) AS s FROM {all} AS \
                 x)"
            ),
            "200000|200000|0",
        ),
        (
            format!(
                "SELECT sum(a), sum(b), sum(c) FROM (SELECT max(n) OVER (ORDER BY n ROWS BETWEEN 9 \
                 PRECEDING AND 9 FOLLOWING) - n AS a, n - min(n) OVER (ORDER BY n ROWS 9 \
                 PRECEDING) AS b, rank() OVER (PARTITION BY CAST(n % 7 AS text) ORDER BY CAST(n AS \
                 text)) - 1 AS c FROM {all} AS x)"
            ),
            "1799955|1799955|2857042858",
        ),
    ];
    for (text, wanted) in &cases {
        assert_eq!(answer(&db, text), *wanted, "{text}");
    }
}

/// Rows that memory does not hold are refused with what they need, and hold nothing afterwards.
#[test]
fn windows_keep_to_the_memory_of_the_query() {
    let db = memory(&["CREATE TABLE m (i i64 PRIMARY KEY, t text)"]);
    let rows: Vec<String> = (0..2_000).map(|i| format!("({i}, 't{}')", i % 7)).collect();
    db.sql(&format!("INSERT INTO m VALUES {}", rows.join(",")), ()).unwrap();
    let run_with = |text: &str, bytes| {
        let limits = Limits { memory_bytes: Some(bytes), ..Limits::default() };
        let options = ChangeOptions { limits, ..ChangeOptions::default() };
        run(&db, &parse_statement(text).unwrap(), &options)
    };
    for text in [
        "SELECT i, row_number() OVER (ORDER BY i) FROM m",
        "SELECT i, sum(i) OVER (PARTITION BY t ORDER BY t, i) FROM m",
        "SELECT i, min(t) OVER (ORDER BY i ROWS 3 PRECEDING) FROM m",
    ] {
        let error = run_with(text, 40_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{text}: {error}");
        assert!(error.to_string().contains("needs more than"), "{text}: {error}");
        let rows = run_with(text, 4 << 20).unwrap().into_rows().unwrap();
        assert_eq!(rows.to_rows().len(), 2_000);
    }
}

/// Partitions of which memory does not hold all go through files, one after another.
#[test]
fn what_memory_does_not_hold_of_windows_goes_to_files() {
    let directory = std::env::temp_dir().join(format!("esker-windows-{}", std::process::id()));
    let db = Options::new().open(&directory).unwrap();
    db.sql("CREATE TABLE m (i i64 PRIMARY KEY, t text)", ()).unwrap();
    for start in (0..60_000).step_by(3_000) {
        let rows: Vec<String> =
            (start..start + 3_000).map(|i| format!("({i}, 't{}')", i * 7 % 997)).collect();
        db.sql(&format!("INSERT INTO m VALUES {}", rows.join(",")), ()).unwrap();
    }
    let text = "SELECT i, t, sum(i) OVER (PARTITION BY t ORDER BY i DESC) AS s, max(t) OVER \
                (PARTITION BY t), lag(i) OVER (PARTITION BY t ORDER BY i) FROM m WHERE i % 11 <> 3";
    let wanted = db.sql(text, ()).unwrap().into_rows().unwrap().to_rows();
    for (text, skip) in
        [(text.to_owned(), 0), (format!("{text} ORDER BY i LIMIT 50000 OFFSET 7"), 7)]
    {
        let limits = Limits { memory_bytes: Some(3 << 20), ..Limits::default() };
        let options = ChangeOptions { limits, ..ChangeOptions::default() };
        let rows = db.statement_rows(&parse_statement(&text).unwrap(), &options).unwrap();
        let found: Vec<Vec<esker::Value>> = rows.map(|row| row.unwrap().into_values()).collect();
        assert!(found.iter().eq(wanted.iter().skip(skip).take(found.len())), "{text}");
        assert!(found.len() >= 50_000, "{text}: {} rows", found.len());
    }
    // One partition has to fit.
    let text = "SELECT i, row_number() OVER (ORDER BY t) FROM m";
    let limits = Limits { memory_bytes: Some(3 << 20), ..Limits::default() };
    let options = ChangeOptions { limits, ..ChangeOptions::default() };
    let error = run(&db, &parse_statement(text).unwrap(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
    drop(db);
    std::fs::remove_dir_all(directory).unwrap();
}
