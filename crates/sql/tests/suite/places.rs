//! Where errors point to: nonsense in each clause is marked in that clause.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use esker::{Database, Options};
use esker_sql::Sql;

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    for statement in [
        "CREATE TABLE o (id i64 PRIMARY KEY, x i64, name text)",
        "CREATE TABLE t (n i64 PRIMARY KEY, y i64, name text)",
        "INSERT INTO o VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'b')",
        "INSERT INTO t VALUES (1, 10, 'a'), (2, 11, 'b'), (3, 20, 'c')",
    ] {
        db.sql(statement, ()).unwrap();
    }
    db
}

/// What is marked is written between « and ».
#[track_caller]
fn check(cases: &[&str]) {
    let db = database();
    let mut wrong = Vec::new();
    for case in cases {
        let statement = case.replace(['«', '»'], "");
        let error = db.sql(&statement, ()).unwrap_err().to_string();
        let place = esker_sql::place(&statement, &error);
        let found = place.map(|place| {
            let marks = place.to_string().matches('^').count();
            let (line, column) = (place.line(), place.column());
            let mut marked = String::new();
            for (i, text) in (1..).zip(statement.split('\n')) {
                let newline = if i > 1 { "\n" } else { "" };
                marked.push_str(newline);
                if i != line {
                    marked.push_str(text);
                    continue;
                }
                for (at, c) in (1..).zip(text.chars()) {
                    marked.extend((at == column).then_some('«'));
                    marked.extend((at == column + marks).then_some('»'));
                    marked.push(c);
                }
                let end = text.chars().count() + 1;
                marked.extend((end == column).then_some('«'));
                marked.extend((end <= column + marks).then_some('»'));
            }
            marked
        });
        if found.as_deref() != Some(case) {
            wrong.push(format!("{case}\n{error}\n{found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn one_table() {
    check(&[
        "SELECT «nme» AS name FROM o WHERE name = 'nme' ORDER BY nme",
        "SELECT «name», count(*) FROM o WHERE name = 'a' GROUP BY x",
        "SELECT x AS nme\nFROM o\nWHERE «nme» = 3",
        "SELECT x FROM o WHERE name = 'x' AND «x = 'x'»",
        "SELECT name FROM o WHERE «sum(x)» > 3",
        "SELECT count(*) FROM o «GROUP» BY 1",
        "SELECT x FROM o GROUP BY «2»",
        "SELECT name FROM o GROUP BY «sum(x)»",
        "SELECT count(*) FROM o WHERE x = 1 HAVING «x» > 3",
        "SELECT name FROM o WHERE x = 3 HAVING «name» > 3",
        "SELECT name FROM o GROUP BY name HAVING «sum(name)» > 3",
        "SELECT x AS b FROM o «HAVING» b > 1",
        "SELECT name, x FROM o ORDER BY «name + x»",
        "SELECT name, «name + 1» AS nme FROM o",
        "SELECT x FROM o GROUP BY x ORDER BY «name»",
        "SELECT x FROM o ORDER BY «0»",
        "SELECT first(id ORDER BY «1») FROM o",
        "SELECT name FROM o LIMIT «name»",
        "SELECT lowr FROM «lowr»",
        "UPDATE o SET x = 1 WHERE «name = 2»",
        "UPDATE o SET name = 'b', x = «name + 1» WHERE name = 'a'",
        "UPDATE o SET x = x + «nme»",
        "UPDATE o SET x = (SELECT max(«w») FROM t)",
        "UPDATE o SET x = 1 RETURNING id, «name + 1»",
        "DELETE FROM o WHERE name = 'y' ORDER BY «y» LIMIT 1",
    ]);
}

#[test]
fn joins_and_subqueries() {
    check(&[
        "SELECT o.x FROM o JOIN t ON t.n = o.id WHERE o.name = 'a' ORDER BY «name»",
        "SELECT o.x FROM o JOIN t ON t.n = o.«nme» WHERE o.name = 'a'",
        "SELECT o.x FROM o JOIN t ON «t.n = o.name»",
        "SELECT o.x FROM o JOIN t ON «n = o.name»",
        "SELECT o.x AS nme FROM o JOIN t ON t.n = o.id\nWHERE «nme» = 3",
        "SELECT «t.name» FROM o JOIN t ON o.id = t.n GROUP BY o.name",
        "SELECT o.name FROM o JOIN t ON o.id = t.n LEFT JOIN t AS u ON u.n = «v».n",
        "SELECT u.name FROM o JOIN t ON o.id = t.n LEFT JOIN «u» ON u.n = t.n",
        "SELECT d.«z» FROM (SELECT x AS y FROM o) AS d WHERE d.y = 3",
        "SELECT d.z, d.y FROM (SELECT x AS y, «z» FROM o) AS d WHERE d.y = 3",
        "SELECT name FROM o WHERE «x IN (SELECT name FROM t)»",
        "SELECT name FROM o WHERE x IN (SELECT y FROM t WHERE t.«nme» = 3)",
        "SELECT name FROM o WHERE x IN (SELECT y FROM t WHERE «name = 3»)",
        "SELECT o.x AS b FROM o JOIN t ON o.id = t.n GROUP BY o.«b»",
    ]);
}

#[test]
fn a_name_with_its_table_is_no_select_item() {
    check(&[
        "SELECT x AS b, count(*) FROM o GROUP BY o.«b»",
        "SELECT x AS b, count(*) FROM o GROUP BY b HAVING o.«b» > 1",
        "SELECT x AS b FROM o ORDER BY o.«b» + 1",
    ]);
    let db = database();
    for (text, wanted) in [
        ("SELECT o.x AS x, count(*) FROM o GROUP BY o.x HAVING o.x > 10 ORDER BY o.x DESC", "30"),
        ("SELECT id AS x FROM o ORDER BY -o.x", "3"),
        ("SELECT id % 2 AS x, max(o.x) AS m FROM o GROUP BY 1 HAVING max(o.x) > 20", "1"),
    ] {
        let rows = db.sql(text, ()).unwrap().into_rows().unwrap().to_rows();
        assert_eq!(rows.first().unwrap().first().unwrap().to_string(), wanted, "{text}");
    }
}

/// A field goes before a select item of its name; where that cannot be meant, it is told what can.
#[test]
fn select_items_with_names_of_fields() {
    let db = database();
    for (text, hint) in [
        (
            "SELECT x % 2 AS id, count(*) FROM o GROUP BY id",
            "in GROUP BY, id is the field of that name: write x % 2",
        ),
        (
            "SELECT max(x) AS x FROM o HAVING x > 1",
            "in HAVING, x is the field of that name: write max(x)",
        ),
        ("SELECT max(x) AS x FROM o GROUP BY id HAVING x > 1", "write max(x)"),
    ] {
        let error = db.sql(text, ()).unwrap_err().to_string();
        assert!(error.ends_with(hint), "{text}\n{error}");
    }
}

/// What is set is no `SELECT`, and neither is what is returned.
#[test]
fn clauses_of_changes_are_named() {
    let db = database();
    for (text, wanted) in [
        ("UPDATE o SET x = name + 1", "SET: name + 1: expected a number, found text"),
        ("UPDATE o SET x = 1 RETURNING name + 1", "RETURNING: name + 1: expected a number, found"),
        ("UPDATE o SET x = (SELECT name + 1 FROM t)", "SELECT: name + 1: expected a number"),
    ] {
        let error = db.sql(text, ()).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{text}\n{error}");
    }
}
