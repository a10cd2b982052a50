//! Transactions in SQL: two sessions side by side.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use esker::{Database, ErrorKind, Options, Value};
use esker_sql::{Outcome, Session};

use crate::fixture::run_all;

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    let mut session = Session::new(&db);
    for statement in [
        "CREATE TABLE stock (item text PRIMARY KEY, n i64)",
        "CREATE TABLE orders (id i64 PRIMARY KEY, item text, n i64)",
        "CREATE INDEX by_item ON orders (item)",
        "INSERT INTO stock VALUES ('tea', 10), ('tin', 4)",
    ] {
        session.sql(statement, ()).unwrap();
    }
    db
}

/// An answer as text: values by `|`, rows by `;`.
#[track_caller]
fn answer(session: &mut Session, text: &str) -> String {
    let rows = session.sql(text, ()).unwrap().into_rows().unwrap().to_rows();
    let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    rows.iter().map(row).collect::<Vec<_>>().join(";")
}

#[test]
fn a_session_sees_its_transaction_and_others_see_the_commit() {
    let db = database();
    let (mut a, mut b) = (Session::new(&db), Session::new(&db));
    run_all(
        &mut a,
        &[
            "BEGIN TRANSACTION",
            "INSERT INTO orders VALUES (1, 'tea', 3), (2, 'tin', 1)",
            "UPDATE stock SET n = n - 3 WHERE item = 'tea'",
            "UPDATE stock SET n = n - (SELECT sum(n) FROM orders WHERE item = 'tin') \
         WHERE item = 'tin'",
        ],
    );
    let joined = "SELECT o.id, s.n FROM orders o JOIN stock s ON s.item = o.item ORDER BY o.id";
    assert_eq!(answer(&mut a, joined), "1|7;2|3");
    assert_eq!(answer(&mut a, "SELECT id FROM orders WHERE item = 'tin'"), "2");
    assert_eq!(answer(&mut b, joined), "");
    let returned = "DELETE FROM orders WHERE id = 2 RETURNING item, n";
    assert_eq!(answer(&mut a, returned), "tin|1");
    let upsert = "INSERT INTO stock VALUES ('tea', 1), ('tub', 2) \
                  ON CONFLICT (item) DO UPDATE SET n = stock.n + excluded.n RETURNING item, n";
    assert_eq!(answer(&mut a, upsert), "tea|8;tub|2");
    run_all(&mut a, &["COMMIT"]);
    assert_eq!(answer(&mut b, joined), "1|8");
    assert_eq!(answer(&mut b, "SELECT item, n FROM stock ORDER BY 1"), "tea|8;tin|3;tub|2");
}

#[test]
fn a_conflict_ends_the_transaction_and_says_with_whom() {
    let db = database();
    let (mut a, mut b) = (Session::new(&db), Session::new(&db));
    run_all(&mut a, &["BEGIN", "UPDATE stock SET n = 0 WHERE item = 'tea'"]);
    run_all(
        &mut b,
        &["START TRANSACTION", "UPDATE stock SET n = 1 WHERE item = 'tea'", "COMMIT WORK"],
    );
    let error = a.sql("COMMIT", ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("table \"stock\": key item = tea"), "{error}");
    assert!(!a.is_in_transaction());
    assert_eq!(answer(&mut a, "SELECT n FROM stock WHERE item = 'tea'"), "1");
    let serializable = "BEGIN ISOLATION LEVEL SERIALIZABLE";
    run_all(&mut a, &[serializable, "SELECT count(*) FROM orders", "UPDATE stock SET n = 5"]);
    run_all(&mut b, &["INSERT INTO orders VALUES (7, 'tea', 1)"]);
    assert_eq!(a.sql("END", ()).unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn savepoints_have_names() {
    let db = database();
    let mut a = Session::new(&db);
    run_all(
        &mut a,
        &[
            "BEGIN",
            "DELETE FROM stock WHERE item = 'tin'",
            "SAVEPOINT s",
            "DELETE FROM stock",
            "SAVEPOINT s",
            "INSERT INTO stock VALUES ('new', 1)",
            "ROLLBACK TO SAVEPOINT s",
        ],
    );
    assert_eq!(answer(&mut a, "SELECT count(*) FROM stock"), "0");
    run_all(&mut a, &["RELEASE SAVEPOINT s", "ROLLBACK TO S"]);
    assert_eq!(answer(&mut a, "SELECT item FROM stock"), "tea");
    let error = a.sql("ROLLBACK TO other", ()).unwrap_err().to_string();
    assert_eq!(error, "no savepoint \"other\"; there are s");
    // A statement that fails changes nothing, and the transaction goes on.
    assert!(a.sql("INSERT INTO stock VALUES ('a', 1), ('tea', 1)", ()).is_err());
    assert_eq!(answer(&mut a, "SELECT count(*) FROM stock"), "1");
    run_all(&mut a, &["TRUNCATE TABLE stock"]);
    assert_eq!(answer(&mut a, "SELECT count(*) FROM stock"), "0");
    run_all(&mut a, &["ROLLBACK"]);
    assert_eq!(answer(&mut a, "SELECT count(*) FROM stock"), "2");
}

/// Within a transaction it deleted the rows one by one; those that others added stayed.
#[test]
fn truncate_in_a_transaction_takes_all_rows_or_is_a_conflict() {
    let db = database();
    let (mut a, mut b) = (Session::new(&db), Session::new(&db));
    let truncate = ["BEGIN", "TRUNCATE TABLE stock", "INSERT INTO stock VALUES ('ink', 3)"];
    run_all(&mut a, &truncate);
    run_all(&mut b, &["INSERT INTO stock VALUES ('gum', 1)"]);
    let conflict = a.sql("COMMIT", ()).unwrap_err();
    assert!(conflict.to_string().contains("rows were changed"), "{conflict}");
    assert_eq!(answer(&mut b, "SELECT count(*) FROM stock"), "3", "nothing is changed");
    run_all(&mut a, &truncate);
    run_all(&mut a, &["SAVEPOINT s", "TRUNCATE stock", "ROLLBACK TO s"]);
    run_all(&mut a, &["ALTER TABLE stock RENAME TO goods", "ALTER TABLE goods ADD COLUMN at i64"]);
    run_all(&mut a, &["INSERT INTO goods VALUES ('tea', 9, 7)"]);
    assert_eq!(answer(&mut b, "SELECT count(*) FROM stock"), "3");
    run_all(&mut a, &["COMMIT"]);
    assert_eq!(answer(&mut b, "SELECT item FROM goods ORDER BY item"), "ink;tea");
    assert_eq!(answer(&mut b, "SELECT sum(at) FROM goods"), "7");
    // A table that is truncated and dropped is gone, and its name free.
    run_all(&mut a, &["BEGIN", "TRUNCATE goods", "DROP TABLE goods", "CREATE TABLE goods (n i64)"]);
    run_all(&mut a, &["COMMIT"]);
    assert_eq!(answer(&mut b, "SELECT count(*) FROM goods"), "0");
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn what_does_not_go_says_what_does() {
    let db = database();
    let mut a = Session::new(&db);
    let mut refused = |statement: &str| a.sql(statement, ()).unwrap_err().to_string();
    assert_eq!(refused("COMMIT"), "there is no transaction: expected BEGIN before");
    assert!(refused("BEGIN ISOLATION LEVEL READ COMMITTED").contains("expected SNAPSHOT"));
    assert!(refused("COMMIT AND CHAIN").contains("COMMIT"));
    run_all(&mut a, &["BEGIN"]);
    let mut refused = |statement: &str| a.sql(statement, ()).unwrap_err().to_string();
    assert!(refused("BEGIN").starts_with("BEGIN within a transaction"));
    assert!(refused("CREATE SEQUENCE s").starts_with("within a transaction: expected"));
    run_all(&mut a, &["COMMIT", "BEGIN READ ONLY"]);
    assert_eq!(a.sql("DELETE FROM stock", ()).unwrap_err().kind(), ErrorKind::ReadOnly);
    run_all(&mut a, &["SELECT * FROM stock", "COMMIT"]);
    let plan = a.sql("EXPLAIN SELECT * FROM stock", ()).unwrap();
    assert!(matches!(plan, Outcome::Plan(_)), "{plan:?}");
}

#[test]
fn rows_that_are_read_for_update_are_held_until_the_commit() {
    let db = database();
    let (mut a, mut b) = (Session::new(&db), Session::new(&db));
    let rest = "SELECT sum(n) FROM stock";
    let held = "SELECT item, n FROM stock WHERE n > 3 ORDER BY item FOR UPDATE";
    // What a reads decides what it writes elsewhere: nothing else tells it of b.
    run_all(&mut a, &["BEGIN"]);
    assert_eq!(answer(&mut a, held), "tea|10;tin|4");
    run_all(&mut a, &["INSERT INTO orders VALUES (1, 'tea', 10)"]);
    run_all(&mut b, &["BEGIN", "SELECT n FROM stock WHERE item = 'tin' FOR UPDATE"]);
    run_all(&mut b, &["UPDATE stock SET n = n - 4 WHERE item = 'tin'", "COMMIT"]);
    let e = a.sql("COMMIT", ()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
    assert!(e.is_retryable());
    assert!(e.to_string().contains("table \"stock\": key item = tin was changed"), "{e}");
    assert_eq!(answer(&mut a, "SELECT count(*) FROM orders"), "0");
    // A row that the query does not match is anybody's.
    run_all(&mut a, &["BEGIN"]);
    assert_eq!(answer(&mut a, held), "tea|10");
    run_all(&mut b, &["UPDATE stock SET n = 1 WHERE item = 'tin'"]);
    run_all(&mut a, &["INSERT INTO orders VALUES (1, 'tea', 10)", "COMMIT"]);
    assert_eq!(answer(&mut b, rest), "11");
}

#[test]
fn for_update_says_what_it_is_for() {
    let db = database();
    let mut a = Session::new(&db);
    let alone = "SELECT n FROM stock FOR UPDATE";
    let e = a.sql(alone, ()).unwrap_err().to_string();
    assert_eq!(e, "FOR UPDATE holds rows until the end of a transaction: expected BEGIN before");
    run_all(&mut a, &["BEGIN"]);
    for (text, found) in [
        ("SELECT sum(n) FROM stock FOR UPDATE", "groups or aggregates"),
        ("SELECT n FROM stock GROUP BY n FOR UPDATE", "groups or aggregates"),
        ("SELECT DISTINCT n FROM stock FOR UPDATE", "DISTINCT"),
        ("SELECT s.n FROM stock s JOIN orders o ON s.item = o.item FOR UPDATE", "a join"),
        ("SELECT n FROM (SELECT n FROM stock) AS s FOR UPDATE", "a subquery in FROM"),
    ] {
        let e = a.sql(text, ()).unwrap_err();
        let expected = "for update: expected a query of rows of one table, found";
        assert_eq!(e.to_string(), format!("{expected} {found}"), "{text}");
        assert_eq!(e.kind(), ErrorKind::InvalidInput);
    }
    run_all(&mut a, &["COMMIT", "BEGIN READ ONLY"]);
    assert_eq!(a.sql(alone, ()).unwrap_err().kind(), ErrorKind::ReadOnly);
}
