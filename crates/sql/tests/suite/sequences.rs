//! Sequences, queries without a table, and numbers of rows as parameters.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests fail so")]

use esker::{ChangeOptions, Database, ErrorKind, Options, Value};
use esker_sql::{Outcome, Session, Sql, parse_statement};

fn db() -> Database {
    let db = Options::new().memory().unwrap();
    db.sql("CREATE SEQUENCE orders START 100 INCREMENT 5", ()).unwrap();
    db.sql(
        "CREATE TABLE orders (id i64 PRIMARY KEY DEFAULT nextval('orders'), item text NOT NULL)",
        (),
    )
    .unwrap();
    db
}

fn ask(db: &Database, text: &str) -> String {
    let outcome = db.sql(text, ()).unwrap_or_else(|e| panic!("{text}: {e}"));
    if let Outcome::Done(done) = outcome {
        return done;
    }
    let rows = outcome.into_rows().unwrap_or_else(|| panic!("{text}: no rows")).to_rows();
    let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    rows.iter().map(row).collect::<Vec<_>>().join(" ")
}

fn error(db: &Database, text: &str) -> String {
    match db.sql(text, ()) {
        Ok(outcome) => panic!("{text}: {outcome:?}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn values_of_a_sequence() {
    let db = db();
    let insert = "INSERT INTO orders (item) VALUES ('tea'), ('salt') RETURNING id";
    assert_eq!(ask(&db, insert), "100 105");
    assert_eq!(ask(&db, "SELECT nextval('orders')"), "110");
    let both = "INSERT INTO orders VALUES (nextval('orders') + 1, 'a'), (DEFAULT, 'b') \
                RETURNING id, item";
    assert_eq!(ask(&db, both), "116|a 120|b");
    let upsert = "INSERT INTO orders (item) VALUES ('c') ON CONFLICT (id) DO UPDATE SET item = 'd' \
                  RETURNING id";
    assert_eq!(ask(&db, upsert), "125");
    assert_eq!(ask(&db, "INSERT INTO orders (item) SELECT 'e' RETURNING id"), "130");
    assert_eq!(
        ask(&db, "INSERT INTO orders SELECT nextval('orders'), 'f' RETURNING id, item"),
        "135|f"
    );
    let insert = db.prepare("INSERT INTO orders VALUES (nextval('orders'), ?)").unwrap();
    insert.execute(&["g".into()]).unwrap();
    insert.execute(&["h".into()]).unwrap();
    assert_eq!(ask(&db, "SELECT max(id), count(*) FROM orders"), "145|9");
    let look = parse_statement("SELECT nextval('orders') AS n").unwrap();
    assert!(!look.only_reads());
    let columns =
        db.snapshot().unwrap().columns(&esker_sql::parse("SELECT nextval('orders') AS n").unwrap());
    assert_eq!(columns.unwrap()[0].name, "n");
    assert_eq!(ask(&db, "SELECT nextval('orders')"), "150");
}

/// A look at the plan took a value.
#[test]
fn a_plan_takes_no_value_of_a_sequence() {
    let db = db();
    let query = esker_sql::parse("SELECT nextval('orders')").unwrap();
    for _ in 0..3 {
        db.plan(&query).unwrap();
        db.explain(&query).unwrap();
    }
    assert_eq!(ask(&db, "SELECT nextval('orders')"), "100");
}

#[test]
fn sequences_are_created_and_dropped() {
    let db = db();
    for (text, done) in [
        ("CREATE SEQUENCE a", "created sequence a"),
        ("CREATE SEQUENCE IF NOT EXISTS a", "sequence a exists already"),
        ("create sequence b increment by -2 start with -1;", "created sequence b"),
        ("DROP SEQUENCE IF EXISTS c", "no sequence c"),
        ("DROP SEQUENCE a", "dropped sequence a"),
    ] {
        assert_eq!(ask(&db, text), done);
    }
    assert_eq!(ask(&db, "SELECT nextval('b'), nextval('b')"), "-1|-3");
    for (text, wanted) in [
        ("CREATE SEQUENCE b", "sequence \"b\" exists already"),
        ("CREATE SEQUENCE c INCREMENT 0", "the increment of a sequence is not 0"),
        ("CREATE SEQUENCE c START 'x'", "START: expected a whole number, found `'x'`"),
        ("DROP SEQUENCE orders", "sequence \"orders\" is the default of field \"id\" of table"),
        ("DROP SEQUENCE oders", "no sequence \"oders\"; did you mean \"orders\"?"),
        ("SELECT nextval('oders')", "no sequence \"oders\"; did you mean \"orders\"?"),
        ("SELECT nextval(item) FROM orders", "expected the name of a sequence as a constant"),
        ("SELECT nextval('b') FROM orders", "not here: nextval stands in VALUES"),
        ("UPDATE orders SET item = nextval('b')", "not here: nextval stands in VALUES"),
        ("CREATE TABLE t (n i64 CHECK (n < nextval('b')))", "a condition on the row alone"),
        ("CREATE TABLE t (n i64 DEFAULT nextval('x'))", "no sequence \"x\""),
        ("CREATE TABLE t (n text DEFAULT nextval('b'))", "the default gives an integer"),
        ("ALTER TABLE orders ADD n i64 UNIQUE DEFAULT nextval('b')", "without a unique index"),
    ] {
        let found = error(&db, text);
        assert!(found.contains(wanted), "{text}: {found}");
    }
    let found = error(&db, "CREATE SEQUENCE c CACHE 3");
    assert!(found.contains("Expected: START n, INCREMENT n or the end, found: CACHE"), "{found}");
    let create = parse_statement("CREATE SEQUENCE c").unwrap();
    let dry_run = ChangeOptions { dry_run: true, ..ChangeOptions::default() };
    let outcome = esker_sql::run(&db, &create, &dry_run).unwrap();
    assert_eq!(outcome, Outcome::Done("would create sequence c".into()));
    assert_eq!(db.sequences().len(), 2);
}

#[test]
fn a_query_without_a_table_has_one_row() {
    let db = db();
    for (text, wanted) in [
        ("SELECT 1 + 1", "2"),
        ("SELECT 1 AS a, 'x' || 'y' AS b, NULL", "1|xy|null"),
        ("SELECT now() = now(), typeof(current_date)", "true|date"),
        ("SELECT count(*), sum(3), max('a')", "1|3|a"),
        ("SELECT 1 WHERE 1 = 2", ""),
        ("SELECT count(*) WHERE false", "0"),
        ("SELECT DISTINCT 7 AS n ORDER BY n LIMIT 1", "7"),
        ("SELECT 1 LIMIT 0", ""),
        ("SELECT 1 OFFSET 1", ""),
        ("SELECT 5 AS n GROUP BY n HAVING count(*) = 1", "5"),
    ] {
        assert_eq!(ask(&db, text), wanted, "{text}");
        let again = esker_sql::parse(text).unwrap();
        assert_eq!(esker_sql::parse(&again.to_string()).unwrap(), again, "{text}");
    }
    assert_eq!(error(&db, "SELECT *"), "SELECT * without a table: expected FROM");
    let found = error(&db, "SELECT item");
    assert!(found.contains("unknown field \"item\""), "{found}");
    assert!(
        db.explain(&esker_sql::parse("SELECT 1").unwrap()).unwrap().to_string().contains("one row")
    );
    let sum = db.prepare("SELECT ? + ?").unwrap();
    assert_eq!(sum.query(&[1.into(), 2.into()]).unwrap().to_rows(), [[Value::Int(3)]]);
    assert_eq!(sum.first(&[4.into(), 5.into()]).unwrap(), Some(vec![Value::Int(9)]));
}

#[test]
fn limit_and_offset_take_parameters() {
    let db = db();
    db.sql("INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')", ()).unwrap();
    let page = db.prepare("SELECT id FROM orders ORDER BY id LIMIT ? OFFSET ?").unwrap();
    let ids = |limit: Value, offset: Value| page.query(&[limit, offset]).map(|r| r.to_rows());
    assert_eq!(ids(2.into(), 1.into()).unwrap().concat(), [2, 3].map(Value::Int));
    assert_eq!(ids(9u8.into(), 3u8.into()).unwrap().concat(), [Value::Int(4)]);
    assert!(ids(0.into(), 0.into()).unwrap().is_empty());
    for (value, found) in [
        (Value::Int(-1), "found integer -1"),
        (Value::Null, "found null null"),
        ("2".into(), "found text 2"),
    ] {
        let e = ids(value, 0.into()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput);
        let wanted = format!("LIMIT: parameter ?1: expected a number of rows, {found}");
        assert_eq!(e.to_string(), wanted);
    }
    let by_key = db.prepare("SELECT item FROM orders WHERE id = 1 LIMIT :most").unwrap();
    assert_eq!(by_key.first(&[0.into()]).unwrap(), None);
    assert_eq!(by_key.first(&[1.into()]).unwrap(), Some(vec!["a".into()]));
    let delete = db.prepare("DELETE FROM orders ORDER BY id DESC LIMIT ?").unwrap();
    assert_eq!(delete.execute(&[3.into()]).unwrap(), 3);
    let update = db.prepare("UPDATE orders SET item = ? LIMIT ?").unwrap();
    assert_eq!(update.execute(&["z".into(), 0.into()]).unwrap(), 0);
    assert_eq!(ask(&db, "SELECT * FROM orders"), "1|a");
    let text = "SELECT id FROM orders LIMIT ?";
    assert_eq!(error(&db, text), "expected 1 parameter (?1), found 0");
    let unbound = db.run_statement(&parse_statement(text).unwrap(), &ChangeOptions::default());
    assert_eq!(unbound.unwrap_err().to_string(), "LIMIT: parameter ?1 has no value");
    let text = "SELECT id FROM orders LIMIT :a OFFSET :b";
    assert_eq!(esker_sql::parse(text).unwrap().to_string(), text);
}

/// They were NULL.
#[test]
fn rows_there_are_get_values_of_a_new_field_one_each() {
    let db = db();
    ask_count(&db, "INSERT INTO orders (item) VALUES ('tea'), ('salt'), ('oil')", 3);
    db.create_sequence("numbers", 1, 1).unwrap();
    let before = db.snapshot().unwrap();
    ask(&db, "ALTER TABLE orders ADD n i64 NOT NULL DEFAULT nextval('numbers')");
    assert_eq!(ask(&db, "SELECT min(n), max(n), count(DISTINCT n) FROM orders"), "1|3|3");
    assert_eq!(before.table("orders").unwrap().schema().fields().len(), 2);
    // Within a transaction, and gone again with it.
    let mut session = Session::new(&db);
    for text in [
        "BEGIN",
        "INSERT INTO orders (item) VALUES ('ice')",
        "ALTER TABLE orders ADD u uuid DEFAULT uuid()",
    ] {
        session.sql(text, ()).unwrap();
    }
    let rows = |outcome: Outcome| outcome.into_rows().unwrap().to_rows();
    let count = rows(session.sql("SELECT count(DISTINCT u), count(*) FROM orders", ()).unwrap());
    assert_eq!(count, [[Value::Int(4), Value::Int(4)]]);
    session.sql("ROLLBACK", ()).unwrap();
    assert!(error(&db, "SELECT u FROM orders").contains("unknown field"));
    // A value that a check refuses changes nothing.
    let refused = "ALTER TABLE orders ADD m i64 DEFAULT nextval('numbers') CHECK (m < 0)";
    assert!(error(&db, refused).contains("check \"check_m\""));
    assert_eq!(ask(&db, "SELECT count(n) FROM orders"), "3");
}

fn ask_count(db: &Database, text: &str, rows: u64) {
    assert_eq!(db.sql(text, ()).unwrap().rows_changed(), rows, "{text}");
}
