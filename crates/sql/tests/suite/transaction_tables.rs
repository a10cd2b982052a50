//! Tables that are created, altered, renamed and dropped within a transaction.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use esker::{Database, ErrorKind, Options, Value};
use esker_sql::{Outcome, Prepared, Session, Sql};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

use crate::fixture::run_all;

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    fill(&db);
    db
}

fn fill(db: &Database) {
    db.sql("CREATE TABLE people (id i64 PRIMARY KEY, name text NOT NULL, age i64)", ()).unwrap();
    db.sql("INSERT INTO people VALUES (1, 'ada', 36), (2, 'bob', NULL), (3, 'cy', 5)", ()).unwrap();
}

#[track_caller]
fn ask(session: &mut Session, text: &str) -> String {
    let rows = match session.sql(text, ()) {
        Ok(outcome) => outcome.into_rows().unwrap().to_rows(),
        Err(error) => panic!("{text}: {error}"),
    };
    let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    rows.iter().map(row).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn refused(session: &mut Session, text: &str) -> String {
    session.sql(text, ()).unwrap_err().to_string()
}

/// The rewriting of a table, as migrations do it.
const MIGRATION: [&str; 9] = [
    "BEGIN",
    "CREATE TABLE new (id i64 PRIMARY KEY, name text NOT NULL, decade i64)",
    "INSERT INTO new SELECT id, upper(name), age / 10 FROM people",
    "CREATE UNIQUE INDEX by_name ON new (name)",
    "DROP TABLE people",
    "ALTER TABLE new RENAME TO people",
    "ALTER TABLE people ADD COLUMN note text DEFAULT 'none'",
    "UPDATE people SET note = 'young' WHERE decade = 0",
    "INSERT INTO people VALUES (4, 'DI', 2, 'late')",
];

const MIGRATED: &str = "1|ADA|3|none 2|BOB|null|none 3|CY|0|young 4|DI|2|late";

#[test]
fn a_table_is_rewritten_and_others_see_the_old_one_until_the_commit() {
    let db = database();
    let (mut a, mut b) = (Session::new(&db), Session::new(&db));
    run_all(&mut a, &MIGRATION);
    assert_eq!(ask(&mut a, "SELECT * FROM people ORDER BY id"), MIGRATED);
    assert_eq!(ask(&mut a, "SELECT name FROM people WHERE name = 'CY'"), "CY");
    assert_eq!(refused(&mut a, "SELECT * FROM new").split(';').next(), Some("no table \"new\""));
    let old = "SELECT * FROM people ORDER BY id";
    assert_eq!(ask(&mut b, old), "1|ada|36 2|bob|null 3|cy|5");
    let snapshot = db.snapshot().unwrap();
    run_all(&mut a, &["COMMIT"]);
    assert_eq!(ask(&mut b, old), MIGRATED);
    assert_eq!(db.tables(), ["people"]);
    let rows = snapshot.query(&esker_sql::parse(old).unwrap()).unwrap().to_rows();
    assert_eq!((rows.len(), rows[0].len()), (3, 3));
    let twice = refused(&mut b, "INSERT INTO people VALUES (9, 'CY', 1, NULL)");
    assert!(twice.contains("by_name"), "{twice}");
    run_all(
        &mut b,
        &["INSERT INTO people (id, name) VALUES (9, 'EVE')", "DELETE FROM people WHERE id = 9"],
    );
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn a_transaction_that_is_rolled_back_leaves_the_tables_as_they_were() {
    let db = database();
    let mut a = Session::new(&db);
    run_all(&mut a, &MIGRATION);
    run_all(&mut a, &["ROLLBACK"]);
    assert_eq!(ask(&mut a, "SELECT * FROM people ORDER BY id"), "1|ada|36 2|bob|null 3|cy|5");
    assert_eq!(db.tables(), ["people"]);
    run_all(&mut a, &MIGRATION);
    run_all(&mut a, &["COMMIT"]);
    assert_eq!(ask(&mut a, "SELECT * FROM people ORDER BY id"), MIGRATED);
}

#[test]
fn a_table_that_was_there_is_altered_with_its_rows() {
    let db = database();
    let (mut a, mut b) = (Session::new(&db), Session::new(&db));
    run_all(
        &mut a,
        &[
            "BEGIN",
            "UPDATE people SET age = 37 WHERE id = 1",
            "DELETE FROM people WHERE id = 3",
            "ALTER TABLE people ADD COLUMN height f64 NOT NULL DEFAULT 1.5",
            "ALTER TABLE people DROP COLUMN name",
            "CREATE INDEX by_age ON people (age)",
            "UPDATE people SET height = 2, age = 40 WHERE age IS NULL",
            "INSERT INTO people VALUES (5, 50, 0.5)",
        ],
    );
    let all = "SELECT * FROM people ORDER BY id";
    assert_eq!(ask(&mut a, all), "1|37|1.5 2|40|2.0 5|50|0.5");
    assert_eq!(ask(&mut a, "SELECT id FROM people WHERE age > 39 ORDER BY age DESC"), "5 2");
    assert_eq!(ask(&mut b, all), "1|ada|36 2|bob|null 3|cy|5");
    // A row that others put meanwhile gets the new fields, too.
    run_all(&mut b, &["INSERT INTO people VALUES (7, 'gus', 70)"]);
    run_all(&mut a, &["COMMIT"]);
    assert_eq!(ask(&mut b, all), "1|37|1.5 2|40|2.0 5|50|0.5 7|70|1.5");
    assert_eq!(db.table("people").unwrap().schema().indexes().len(), 1);
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn a_savepoint_takes_definitions_back() {
    let db = database();
    let mut a = Session::new(&db);
    run_all(&mut a, &["BEGIN", "UPDATE people SET age = 1 WHERE id = 1", "SAVEPOINT s"]);
    for undone in [
        &["CREATE TABLE t (n i64)", "INSERT INTO t VALUES (1)"][..],
        &["ALTER TABLE people ADD COLUMN x i64 DEFAULT 5", "UPDATE people SET x = 6 WHERE id = 2"],
        &["ALTER TABLE people DROP COLUMN name", "INSERT INTO people VALUES (8, 9)"],
        &["DROP TABLE people", "CREATE TABLE people (z text)", "INSERT INTO people VALUES ('z')"],
        &["ALTER TABLE people RENAME TO persons", "DELETE FROM persons"],
        &["CREATE INDEX by_age ON people (age)", "UPDATE people SET age = 2 WHERE id = 1"],
    ] {
        run_all(&mut a, undone);
        run_all(&mut a, &["ROLLBACK TO s"]);
        let all = "SELECT * FROM people ORDER BY id";
        assert_eq!(ask(&mut a, all), "1|ada|1 2|bob|null 3|cy|5", "{undone:?}");
        assert!(a.sql("SELECT * FROM t", ()).is_err());
    }
    run_all(&mut a, &["ALTER TABLE people DROP COLUMN age", "RELEASE s", "COMMIT"]);
    assert_eq!(ask(&mut a, "SELECT * FROM people ORDER BY id"), "1|ada 2|bob 3|cy");
    assert_eq!(db.tables(), ["people"]);
}

#[test]
fn a_statement_that_fails_changes_nothing() {
    let db = database();
    let mut a = Session::new(&db);
    run_all(&mut a, &["BEGIN", "UPDATE people SET age = -1 WHERE id = 1"]);
    for (statement, why) in [
        ("CREATE TABLE people (n i64)", "table \"people\" exists already"),
        ("ALTER TABLE people RENAME TO people", "exists already"),
        ("ALTER TABLE people ADD CONSTRAINT old CHECK (age > 0)", "is false for a row"),
        ("ALTER TABLE people ALTER COLUMN age SET NOT NULL", "must not be null"),
        ("ALTER TABLE people DROP COLUMN other", "unknown field"),
        ("CREATE UNIQUE INDEX u ON people (name)", "was there before the transaction"),
        ("CREATE SEQUENCE s", "sequences are changed outside"),
        ("DROP TABLE nobody", "no table \"nobody\""),
        ("DROP INDEX nothing", "unknown index"),
    ] {
        let found = refused(&mut a, statement);
        assert!(found.contains(why), "{statement}: {found}");
    }
    run_all(&mut a, &["DROP TABLE IF EXISTS nobody", "CREATE TABLE IF NOT EXISTS people (n i64)"]);
    assert_eq!(ask(&mut a, "SELECT * FROM people ORDER BY id"), "1|ada|-1 2|bob|null 3|cy|5");
    run_all(&mut a, &["COMMIT", "BEGIN READ ONLY"]);
    let e = a.sql("DROP TABLE people", ()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ReadOnly);
    run_all(&mut a, &["COMMIT"]);
}

#[test]
fn what_others_commit_meanwhile_is_a_conflict_and_changes_nothing() {
    for (mine, theirs) in [
        ("CREATE TABLE t (n i64)", "CREATE TABLE t (n text)"),
        ("ALTER TABLE people RENAME TO t", "CREATE TABLE t (n text)"),
        ("DROP TABLE people", "ALTER TABLE people ADD COLUMN x i64"),
        ("DROP TABLE people", "DROP TABLE people"),
        ("ALTER TABLE people ADD COLUMN x i64", "ALTER TABLE people ADD COLUMN y i64"),
        ("ALTER TABLE people ADD COLUMN x i64", "CREATE INDEX by_age ON people (age)"),
        ("ALTER TABLE people DROP COLUMN age", "ALTER TABLE people RENAME TO persons"),
        (
            "ALTER TABLE people ADD CONSTRAINT old CHECK (age > 0)",
            "INSERT INTO people VALUES (8, 'h', -8)",
        ),
        ("ALTER TABLE people ADD COLUMN x i64", "UPDATE people SET age = 9 WHERE id = 1"),
    ] {
        let db = database();
        let (mut a, mut b) = (Session::new(&db), Session::new(&db));
        run_all(&mut a, &["BEGIN", "INSERT INTO people VALUES (9, 'ivy', 90)"]);
        run_all(&mut a, &["UPDATE people SET age = 8 WHERE id = 1", mine]);
        run_all(&mut b, &[theirs]);
        let tables = db.tables();
        let e = a.sql("COMMIT", ()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict, "{mine} beside {theirs}: {e}");
        assert!(e.to_string().contains("begin again"), "{e}");
        assert_eq!(db.tables(), tables);
        if let Some(table) = ["people", "persons"].iter().find(|t| tables.iter().any(|n| n == **t))
        {
            let count = format!("SELECT count(*) FROM {table} WHERE id = 9");
            assert_eq!(ask(&mut b, &count), "0", "{mine} beside {theirs}");
        }
        // The database goes on.
        run_all(&mut b, &["CREATE TABLE other (n i64)", "INSERT INTO other VALUES (1)"]);
        assert_eq!(db.check().unwrap().problems, []);
    }
}

#[test]
fn a_crash_leaves_all_of_it_or_nothing() {
    for large in [false, true] {
        let machine = Simulation::new(3, SimOptions::default());
        let options = Options::new().environment(machine.environment()).background(false);
        let options = if large { options.commit_limit(64) } else { options };
        let db = options.open("db").unwrap();
        fill(&db);
        db.sql("CREATE TABLE stays (n i64 PRIMARY KEY)", ()).unwrap();
        let mut a = Session::new(&db);
        run_all(&mut a, &MIGRATION);
        run_all(
            &mut a,
            &[
                "ALTER TABLE stays ADD COLUMN text text DEFAULT 'old'",
                "INSERT INTO stays VALUES (1, 'new'), (2, 'a text that is longer than the others')",
                "CREATE INDEX by_text ON stays (text)",
                "CREATE TABLE empty (n i64)",
                "COMMIT",
            ],
        );
        drop(a);
        db.sql("INSERT INTO people VALUES (5, 'ED', 5, 'e')", ()).unwrap();
        db.sql("INSERT INTO stays VALUES (3, 'third')", ()).unwrap();
        let mut image = machine.crash_image(CrashChoice::KeepNone);
        for seed in 0..2 {
            let machine = Simulation::from_image(&image, seed, SimOptions::default());
            let db = Options::new().environment(machine.environment()).open("db").unwrap();
            let mut a = Session::new(&db);
            let all = ask(&mut a, "SELECT * FROM people ORDER BY id");
            assert_eq!(all, format!("{MIGRATED} 5|ED|5|e"));
            assert_eq!(ask(&mut a, "SELECT n FROM stays WHERE text = 'new'"), "1");
            assert_eq!(ask(&mut a, "SELECT count(*) FROM stays"), "3");
            assert_eq!(db.tables(), ["empty", "people", "stays"]);
            assert!(
                refused(&mut a, "INSERT INTO people VALUES (7, 'CY', 1, '')").contains("by_name")
            );
            assert_eq!(db.check().unwrap().problems, []);
            db.checkpoint().unwrap();
            image = machine.crash_image(CrashChoice::KeepNone);
        }
    }
}

#[test]
fn a_serializable_transaction_may_define_what_it_reads() {
    let db = database();
    let (mut a, mut b) = (Session::new(&db), Session::new(&db));
    run_all(
        &mut a,
        &[
            "BEGIN ISOLATION LEVEL SERIALIZABLE",
            "CREATE TABLE t (id i64 PRIMARY KEY, n i64)",
            "INSERT INTO t VALUES (1, 10), (2, 20)",
            "UPDATE t SET n = n + 1 WHERE id = 1",
            "INSERT INTO t VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET n = t.n * 2",
        ],
    );
    assert_eq!(ask(&mut a, "SELECT id, n FROM t ORDER BY n"), "2|20 1|22");
    let joined = "SELECT name, n FROM people JOIN t ON t.id = people.id ORDER BY n";
    assert_eq!(ask(&mut a, joined), "bob|20 ada|22");
    run_all(&mut b, &["CREATE TABLE other (n i64)", "INSERT INTO other VALUES (1)"]);
    run_all(&mut a, &["COMMIT"]);
    assert_eq!(ask(&mut b, joined), "bob|20 ada|22");
    // What it has read counts, as before.
    run_all(&mut a, &["BEGIN ISOLATION LEVEL SERIALIZABLE", "CREATE TABLE u (n i64)"]);
    run_all(&mut a, &["INSERT INTO u SELECT count(*) FROM people"]);
    run_all(&mut b, &["INSERT INTO people VALUES (6, 'flo', 6)"]);
    assert_eq!(a.sql("COMMIT", ()).unwrap_err().kind(), ErrorKind::Conflict);
    assert!(!db.tables().contains(&"u".to_owned()));
}

#[test]
fn a_table_of_a_transaction_has_all_that_tables_have() {
    let db = database();
    let mut a = Session::new(&db);
    run_all(
        &mut a,
        &[
            "BEGIN",
            "CREATE TABLE t (a text NOT NULL, b i32 CHECK (b > 0), c json DEFAULT '{}')",
            "INSERT INTO t (a, b) VALUES ('x', 1), ('y', 2)",
        ],
    );
    assert!(refused(&mut a, "INSERT INTO t (a, b) VALUES ('z', -1)").contains("check"));
    run_all(
        &mut a,
        &[
            "ALTER TABLE t ADD CONSTRAINT small CHECK (b < 10)",
            "ALTER TABLE t RENAME COLUMN a TO name",
            "CREATE INDEX t_name ON t USING trigram (name)",
            "UPDATE t SET c.n = b WHERE name LIKE '%x%'",
            "DELETE FROM t WHERE name = 'y'",
            "ALTER TABLE t ALTER COLUMN b TYPE i64",
        ],
    );
    for (statement, why) in [
        ("INSERT INTO t (name, b) VALUES ('z', 11)", "small"),
        ("INSERT INTO t (a, b) VALUES ('z', 1)", "unknown field"),
        ("CREATE INDEX t_name ON t (b)", "exists already"),
    ] {
        let found = refused(&mut a, statement);
        assert!(found.contains(why), "{statement}: {found}");
    }
    assert_eq!(ask(&mut a, "SELECT * FROM t"), "x|1|{\"n\":1}");
    run_all(&mut a, &["DROP INDEX t_name", "CREATE INDEX by_b ON t (b)", "COMMIT"]);
    assert_eq!(ask(&mut a, "SELECT name, c.n FROM t WHERE b = 1"), "x|1");
    let schema = db.table("t").unwrap().schema();
    assert_eq!((schema.indexes().len(), schema.checks().len()), (1, 2));
    assert_eq!(db.check().unwrap().problems, []);
}

/// A prepared statement knows the tables of the scope in which it was prepared, and runs on those
/// of the one in which it runs.
#[test]
fn prepared_statements_run_on_the_tables_of_the_transaction() {
    let db = database();
    let mut session = Session::new(&db);
    let execute = |session: &mut Session, prepared: &Prepared, values: &[Value]| {
        session.run_prepared(prepared, values).map(|outcome| match outcome {
            Outcome::Rows(rows) => format!("{:?}", rows.to_rows()),
            other => other.rows_changed().to_string(),
        })
    };
    let name_of = db.prepare("SELECT name FROM people WHERE id = ?").unwrap();
    let insert = db.prepare("INSERT INTO people VALUES (?, ?, 1)").unwrap();
    run_all(&mut session, &["BEGIN", "UPDATE people SET name = 'eve' WHERE id = 2"]);
    assert_eq!(execute(&mut session, &insert, &[4i64.into(), "di".into()]).unwrap(), "1");
    for (id, name) in [(2i64, "eve"), (4, "di")] {
        let found = execute(&mut session, &name_of, &[id.into()]).unwrap();
        assert_eq!(found, format!("[[Text({name:?})]]"));
    }
    let twice = execute(&mut session, &insert, &[4i64.into(), "di".into()]).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::AlreadyExists, "{twice}");
    // Outside it runs as before.
    assert_eq!(name_of.first(&[2i64.into()]).unwrap(), Some(vec!["bob".into()]));
    assert_eq!(name_of.first(&[4i64.into()]).unwrap(), None);
    // A table that is altered in the transaction is bound anew.
    run_all(&mut session, &["ALTER TABLE people ADD COLUMN note text DEFAULT 'none'"]);
    let few = execute(&mut session, &insert, &[5i64.into(), "fay".into()]).unwrap_err();
    assert!(few.to_string().contains("expected 4 values, found 3"), "{few}");
    let all = session.prepare("SELECT * FROM people WHERE id = 4").unwrap();
    let row = execute(&mut session, &all, &[]).unwrap();
    assert!(row.ends_with(r#"Text("di"), Int(1), Text("none")]]"#), "{row}");
    // One that it creates is there for those prepared within it, and for no other.
    run_all(&mut session, &["CREATE TABLE new (id i64 PRIMARY KEY, n i64)"]);
    assert_eq!(db.prepare("SELECT n FROM new").unwrap_err().kind(), ErrorKind::NotFound);
    let of_new = session.prepare("SELECT n FROM new WHERE id = ?").unwrap();
    let to_new = session.prepare("INSERT INTO new VALUES (?, ?)").unwrap();
    execute(&mut session, &to_new, &[1i64.into(), 7i64.into()]).unwrap();
    assert_eq!(execute(&mut session, &of_new, &[1i64.into()]).unwrap(), "[[Int(7)]]");
    assert_eq!(of_new.first(&[1i64.into()]).unwrap_err().kind(), ErrorKind::NotFound);
    // What is held, and what begins and ends it.
    let hold = session.prepare("SELECT n FROM new WHERE id = ? FOR UPDATE").unwrap();
    assert_eq!(execute(&mut session, &hold, &[1i64.into()]).unwrap(), "[[Int(7)]]");
    let commit = session.prepare("COMMIT").unwrap();
    execute(&mut session, &commit, &[]).unwrap();
    assert_eq!(of_new.first(&[1i64.into()]).unwrap(), Some(vec![7i64.into()]));
    assert_eq!(execute(&mut session, &of_new, &[1i64.into()]).unwrap(), "[[Int(7)]]");
    run_all(&mut session, &["BEGIN", "DROP TABLE new"]);
    let gone = execute(&mut session, &of_new, &[1i64.into()]).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound, "{gone}");
}
