//! Statements that change places inside documents, and functions that make documents.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use esker::{Database, Options, Value};
use esker_sql::Sql;

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE TABLE t (id i64 PRIMARY KEY, doc json, name text)", ()).unwrap();
    let document = r#"{"a": 1, "tags": ["x"], "on": {"b": 2}}"#;
    db.sql(&format!("INSERT INTO t VALUES (1, '{document}', 'one'), (2, NULL, 'two')"), ())
        .unwrap();
    db
}

fn shown(db: &Database, text: &str) -> String {
    let rows = db.query(&esker_sql::parse(text).unwrap()).unwrap();
    let row = |row: Vec<Value>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
    rows.to_rows().into_iter().map(row).collect::<Vec<_>>().join("\n")
}

fn documents(db: &Database) -> String {
    shown(db, "SELECT doc FROM t ORDER BY id")
}

fn refused(db: &Database, text: &str) -> String {
    let before = documents(db);
    let error = db.sql(text, ()).unwrap_err().to_string();
    assert_eq!(documents(db), before, "{text}");
    error
}

#[test]
fn places_are_set_from_the_row_as_it_was() {
    let db = database();
    db.sql(
        "UPDATE t SET doc.a = json_get_number(doc, 'a') + id, doc.on.c = name, doc.on.b = doc.a",
        (),
    )
    .unwrap();
    assert_eq!(
        documents(&db),
        r#"{"a":2,"on":{"b":1,"c":"one"},"tags":["x"]}
{"a":null,"on":{"b":null,"c":"two"}}"#
    );
    db.sql("UPDATE t SET doc.on = NULL, name = 'n' WHERE id = 2", ()).unwrap();
    assert_eq!(shown(&db, "SELECT doc, name FROM t WHERE id = 2"), r#"{"a":null,"on":null}|n"#);
}

#[test]
fn places_are_set_by_parameters_and_names_with_points() {
    let db = database();
    let update =
        db.prepare("UPDATE t SET doc.a = ?, doc.\"x.y\".\"z\\\" = ? WHERE id = ?").unwrap();
    update.execute(&[Value::Float(0.5), "new".into(), 2.into()]).unwrap();
    update.execute(&[true.into(), Value::json("[1]").unwrap(), 1.into()]).unwrap();
    assert_eq!(
        documents(&db),
        r#"{"a":true,"on":{"b":2},"tags":["x"],"x.y":{"z\\":[1]}}
{"a":0.5,"x.y":{"z\\":"new"}}"#
    );
}

#[test]
fn places_are_set_where_rows_conflict() {
    let db = database();
    db.sql("CREATE UNIQUE INDEX by_tag ON t (doc.on.b)", ()).unwrap();
    let insert = r#"INSERT INTO t VALUES (9, '{"on": {"b": 2}, "a": 40}', 'nine')"#;
    let set = "doc.a = excluded.doc -> 'a', doc.n = excluded.id";
    db.sql(&format!("{insert} ON CONFLICT (doc.on.b) DO UPDATE SET {set}"), ()).unwrap();
    assert!(documents(&db).starts_with(r#"{"a":40,"n":9,"#), "{}", documents(&db));
    db.sql(&format!("{insert} ON CONFLICT (doc.on.b) DO NOTHING"), ()).unwrap();
    let e = refused(&db, insert);
    assert!(e.contains("doc.on.b = 2 exists already"), "{e}");
}

#[test]
fn what_cannot_be_set_is_refused_and_changes_nothing() {
    let db = database();
    for (set, wanted) in [
        ("doc.a = 1, doc.a = 2", "\"doc.a\" is set twice"),
        ("doc.a = 1, doc = '{}'", "\"doc\" is set within another"),
        ("doc = '{}', doc.a = 1", "\"doc.a\" is set within another"),
        ("doc.a.b = 1, doc.a = 2", "\"doc.a\" is set within another"),
        ("name.first = 'x'", "expected json, found text"),
        ("id.x = 1", "expected json, found"),
        ("dock.a = 1", "unknown field \"dock\""),
        ("doc.a.b = 1", "expected an object or an array before \"b\", found a number"),
        ("doc.tags.x = 1", "expected a place of an array of 1, found \"x\""),
    ] {
        let e = refused(&db, &format!("UPDATE t SET {set}"));
        assert!(e.contains(wanted), "{set}: {e}");
    }
}

#[test]
fn what_is_set_is_found_by_indexes_and_refused_by_unique_ones() {
    let db = database();
    db.sql("CREATE UNIQUE INDEX by_a ON t (doc.a)", ()).unwrap();
    let e = refused(&db, "UPDATE t SET doc.a = 7");
    assert!(e.contains("doc.a = 7"), "{e}");
    db.sql("UPDATE t SET doc.a = 7 WHERE id = 2", ()).unwrap();
    assert_eq!(shown(&db, "SELECT id FROM t WHERE doc.a = '7'"), "2");
    let arrays = "UPDATE t SET doc.a = json_array(1, 'x')";
    let e = refused(&db, arrays);
    assert!(e.contains(r#"doc.a = [1,"x"]"#), "{e}");
}

#[test]
fn functions_make_documents_of_rows() {
    let db = database();
    for (expr, wanted) in [
        ("json_object('n', name, 'id', id, 'd', doc -> 'on')", r#"{"d":{"b":2},"id":1,"n":"one"}"#),
        ("json_object()", "{}"),
        ("json_array()", "[]"),
        ("json_array(DATE '2024-02-29', 1.50, true, NULL)", r#"["2024-02-29",1.50,true,null]"#),
        ("json_set(NULL, 'a', 'b', 1)", r#"{"a":{"b":1}}"#),
        ("json_set(doc, 'tags', 1, 'y') -> 'tags'", r#"["x","y"]"#),
        ("json_push(doc, 'tags', id) -> 'tags'", r#"["x",1]"#),
        ("json_push('[]'::json, '[]'::json)", "[[]]"),
        ("json_remove(doc, 'tags', 0) -> 'tags'", "[]"),
        ("json_remove(doc, 'nothing', 'here') = doc", "true"),
        ("json_remove(NULL, 'a')", "null"),
        ("json_remove('{\"a\":null}', 'a', 'b')", r#"{"a":null}"#),
        ("json_remove('5', 'a')", "5"),
        ("json_remove('[1]', 'a')", "[1]"),
        ("json_remove('[1,2]', -3)", "[1,2]"),
        ("json_remove('[1,2]', -2)", "[2]"),
        ("json_remove('{\"0\":1}', '$[0]')", r#"{"0":1}"#),
        ("json_remove('{\"0\":1}', 0)", r#"{"0":1}"#),
        ("json_remove('{\"a\":{\"0\":1}}', '$.a[0]')", r#"{"a":{"0":1}}"#),
        ("json_remove('[1]', '$.\"0\"')", "[1]"),
        ("json_set('{}', '$.y[0]', 5)", r#"{"y":[5]}"#),
        ("json_set('{}', '$.y[0].z[0]', 5)", r#"{"y":[{"z":[5]}]}"#),
        ("json_set(NULL, 0, 5)", "[5]"),
        ("json_set('[1]', '0', 5)", "[5]"),
        ("json_push('{}', '$.y[0]', 5)", r#"{"y":[[5]]}"#),
        ("json_merge(doc, json_object('on', NULL, 'a', 3))", r#"{"a":3,"tags":["x"]}"#),
        ("json_merge('5', '{\"a\": {\"b\": null, \"c\": 1}}')", r#"{"a":{"c":1}}"#),
        ("json_contains(doc, '{\"tags\": [\"x\"]}')", "true"),
        ("json_contains(doc, '{\"tags\": [\"y\"]}')", "false"),
        ("json_contains(doc, NULL)", "null"),
        ("json_type(doc)", "object"),
        ("json_type(doc, 'on', 'c')", "null"),
        ("json_length(doc, 'tags')", "1"),
        ("json_length(doc, 'a')", "null"),
        ("json_keys(doc)", r#"["a","on","tags"]"#),
    ] {
        assert_eq!(shown(&db, &format!("SELECT {expr} FROM t WHERE id = 1")), wanted, "{expr}");
    }
    assert_eq!(
        shown(&db, "SELECT json_length(doc), json_type(doc) FROM t WHERE id = 2"),
        "null|null"
    );
}

#[test]
fn what_functions_cannot_make_is_refused() {
    let db = database();
    for (expr, wanted) in [
        ("json_object('a')", "takes pairs of a name and a value, found 1 operands"),
        ("json_object('a', 1, 'a', 2)", "name \"a\" comes twice"),
        ("json_object(doc ->> 'none', 1)", "expected a name, found NULL"),
        ("json_set(doc, 'a')", "at least 3 operands"),
        ("json_set(name, 'a', 1)", "expected json"),
        ("json_set(doc, doc ->> 'none', 1)", "expected a name or a place, found NULL"),
        ("json_set('{\"a\":{}}', '$.a[0]', 5)", "expected an array before [0], found an object"),
        ("json_set('{\"0\":1}', 0, 5)", "expected an array before [0], found an object"),
        ("json_push('{\"0\":[]}', 0, 5)", "expected an array before [0], found an object"),
        ("json_set('{}', '$.y[1]', 5)", "expected a place of an array of 0, found [1]"),
        ("json_set('[1]', '$.\"0\"', 5)", "expected a place of an array of 1, found \"0\""),
        ("json_push(doc, 'a', 1)", "expected an array, found a number"),
        ("json_array(1e308::f64 * 10)", "expected a number that json has"),
    ] {
        let query = esker_sql::parse(&format!("SELECT {expr} FROM t WHERE id = 1"));
        let e = match query {
            Ok(query) => db.query(&query).unwrap_err().to_string(),
            Err(e) => e.to_string(),
        };
        assert!(e.contains(wanted), "{expr}: {e}");
    }
    let mut deep = "'{}'::json".to_owned();
    for _ in 0..60 {
        deep = format!("json_array({deep})");
    }
    db.sql(&format!("UPDATE t SET doc = {deep}"), ()).unwrap();
    for _ in 0..67 {
        db.sql("UPDATE t SET doc = json_array(doc)", ()).unwrap();
    }
    for text in
        ["json_array(doc)", "json_object('a', doc)", "json_merge('{}', json_object('a', doc))"]
    {
        let e = refused(&db, &format!("UPDATE t SET doc = {text}"));
        assert!(e.contains("at most 128 levels"), "{text}: {e}");
    }
}

/// A transaction looks for the row in the way by the same text, and by what kind of value has it.
#[test]
fn transactions_find_who_has_the_value_at_a_path() {
    let db = database();
    db.sql("CREATE UNIQUE INDEX by_b ON t (doc.on.b, name)", ()).unwrap();
    db.sql("UPDATE t SET doc.on.b = CASE id WHEN 1 THEN '2' ELSE '[1]' END, name = 'n'", ())
        .unwrap();
    let mut session = esker_sql::Session::new(&db);
    session.sql("BEGIN", ()).unwrap();
    for (value, action) in [
        ("2", "DO NOTHING"),
        ("2", "DO UPDATE SET doc.found = excluded.id"),
        ("[1]", "DO UPDATE SET doc.found = excluded.id"),
        ("\"[1]\"", "DO UPDATE SET doc.found = excluded.id"),
        ("null", "DO NOTHING"),
        ("null", "DO NOTHING"),
    ] {
        let row = format!(r#"SELECT max(id) + 1, '{{"on": {{"b": {value}}}}}'::json, 'n' FROM t"#);
        let insert = format!("INSERT INTO t {row} ON CONFLICT (doc.on.b, name) {action}");
        session.sql(&insert, ()).unwrap();
    }
    session.sql("COMMIT", ()).unwrap();
    assert_eq!(
        documents(&db),
        r#"{"a":1,"found":3,"on":{"b":"2"},"tags":["x"]}
{"found":4,"on":{"b":"[1]"}}
{"on":{"b":[1]}}
{"on":{"b":null}}
{"on":{"b":null}}"#
    );
}
