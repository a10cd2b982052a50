//! Temporary tables and views: what a session has for itself, beside what is there for all.

use esker::{Database, ErrorKind, Options, Result, Value};
use esker_sql::{Session, Sql};

fn begun() -> Result<(Database, Session)> {
    let db = Options::new().memory()?;
    let mut session = Session::new(&db);
    session.sql("CREATE TABLE t (id i64 PRIMARY KEY, name text)", ())?;
    session.sql("INSERT INTO t VALUES (1, 'one'), (2, 'two')", ())?;
    session.sql("CREATE TEMP TABLE s (id i64 PRIMARY KEY, n i64)", ())?;
    session.sql("INSERT INTO s VALUES (1, 10), (3, 30)", ())?;
    Ok((db, session))
}

fn refused(session: &mut Session, text: &str) -> String {
    session.sql(text, ()).unwrap_err().to_string()
}

fn numbers(session: &mut Session, text: &str) -> Vec<i64> {
    session.sql_as(text, ()).unwrap()
}

#[test]
fn another_session_does_not_see_it_and_has_its_own() {
    let (db, mut one) = begun().unwrap();
    let mut other = Session::new(&db);
    let e = refused(&mut other, "SELECT * FROM s");
    assert!(e.starts_with("no table \"s\""), "{e}");
    other.sql("CREATE TEMP TABLE s (word text)", ()).unwrap();
    other.sql("INSERT INTO s VALUES ('mine')", ()).unwrap();
    assert_eq!(other.sql_as::<String>("SELECT word FROM s", ()).unwrap(), ["mine"]);
    assert_eq!(numbers(&mut one, "SELECT n FROM s ORDER BY id"), [10, 30]);
    assert!(db.table("s").is_err());
    assert_eq!(db.tables(), ["t"]);
    let listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'temp'";
    assert_eq!(db.sql_as::<String>(listed, ()).unwrap(), Vec::<String>::new());
    assert_eq!(one.sql_as::<String>(listed, ()).unwrap(), ["s"]);
    drop(one);
    let mut next = Session::new(&db);
    assert!(next.sql("SELECT * FROM s", ()).is_err());
}

#[test]
fn without_a_session_it_is_refused_with_what_to_do() {
    let (db, _session) = begun().unwrap();
    for text in ["CREATE TEMP TABLE x (n i64)", "CREATE TEMP VIEW x AS SELECT 1 AS n"] {
        let e = db.sql(text, ()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput);
        assert!(e.to_string().contains("a session's own"), "{e}");
        let e = db.transact(|within| within.sql(text, ())).unwrap_err();
        assert!(e.to_string().contains("a session's own"), "{e}");
    }
    let e = db.sql("SELECT * FROM temp.s", ()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    assert!(e.to_string().starts_with("no temporary table \"s\" here"), "{e}");
    assert_eq!(db.sql_first::<i64>("SELECT count(*) FROM main.t", ()).unwrap(), Some(2));
    assert_eq!(db.sql("DELETE FROM main.t WHERE main.t.id = 2", ()).unwrap().rows_changed(), 1);
}

#[test]
fn a_transaction_is_of_both_and_sees_its_own_changes_of_both() {
    let (db, mut session) = begun().unwrap();
    session.sql("CREATE TEMP VIEW v AS SELECT t.id, n FROM t JOIN s ON s.id = t.id", ()).unwrap();
    session.sql("BEGIN", ()).unwrap();
    session.sql("INSERT INTO t VALUES (3, 'three')", ()).unwrap();
    assert_eq!(numbers(&mut session, "SELECT n FROM v ORDER BY n"), [10, 30]);
    session.sql("UPDATE s SET n = 31 FROM v WHERE v.id = s.id AND v.id = 3", ()).unwrap();
    session.sql("UPDATE t SET name = 'x' WHERE id IN (SELECT id FROM v WHERE n = 31)", ()).unwrap();
    let names = "SELECT name FROM t WHERE id = 3";
    assert_eq!(session.sql_as::<String>(names, ()).unwrap(), ["x"]);
    session.sql("CREATE TEMP TABLE c AS SELECT * FROM v", ()).unwrap();
    assert_eq!(numbers(&mut session, "SELECT n FROM c ORDER BY n"), [10, 31]);
    assert_eq!(db.table("t").unwrap().count().unwrap(), 2);
    session.sql("ROLLBACK", ()).unwrap();
    assert_eq!(numbers(&mut session, "SELECT n FROM v"), [10]);
    assert!(session.sql("SELECT * FROM c", ()).is_err());
    assert_eq!(numbers(&mut session, "SELECT n FROM s ORDER BY n"), [10, 30]);
}

/// The other part of the transaction fails: what is temporary is as it was.
#[test]
fn a_commit_that_fails_changes_nothing_that_is_temporary() {
    let (db, mut session) = begun().unwrap();
    session.sql("CREATE TEMP TABLE kept (n i64) ON COMMIT DELETE ROWS", ()).unwrap();
    session.sql("BEGIN", ()).unwrap();
    session.sql("UPDATE t SET name = 'mine' WHERE id = 1", ()).unwrap();
    session.sql("UPDATE s SET n = 11 WHERE id = 1", ()).unwrap();
    session.sql("CREATE TEMP TABLE x (n i64) ON COMMIT DROP", ()).unwrap();
    db.sql("UPDATE t SET name = 'theirs' WHERE id = 1", ()).unwrap();
    let e = session.sql("COMMIT", ()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
    assert_eq!(numbers(&mut session, "SELECT n FROM s WHERE id = 1"), [10]);
    assert!(session.sql("SELECT * FROM x", ()).is_err());
    session.sql("INSERT INTO kept VALUES (1)", ()).unwrap();
    assert_eq!(numbers(&mut session, "SELECT count(*) FROM kept"), [0]);
}

#[test]
fn a_session_makes_its_first_within_a_transaction() {
    let db = Options::new().memory().unwrap();
    let mut session = Session::new(&db);
    session.sql("BEGIN READ ONLY", ()).unwrap();
    session.sql("SAVEPOINT a", ()).unwrap();
    session.sql("CREATE TEMP TABLE x (n i64)", ()).unwrap();
    session.sql("INSERT INTO x VALUES (1)", ()).unwrap();
    session.sql("SAVEPOINT b", ()).unwrap();
    session.sql("INSERT INTO x VALUES (2)", ()).unwrap();
    session.sql("ROLLBACK TO b", ()).unwrap();
    assert_eq!(numbers(&mut session, "SELECT n FROM x"), [1]);
    session.sql("ROLLBACK TO a", ()).unwrap();
    assert!(session.sql("SELECT * FROM x", ()).is_err());
    session.sql("CREATE TEMP TABLE x (n i64)", ()).unwrap();
    session.sql("COMMIT", ()).unwrap();
    assert_eq!(numbers(&mut session, "SELECT count(*) FROM x"), [0]);
    session.sql("BEGIN", ()).unwrap();
    session.sql("DROP TABLE x", ()).unwrap();
    session.sql("ROLLBACK", ()).unwrap();
    assert_eq!(numbers(&mut session, "SELECT count(*) FROM x"), [0]);
}

#[test]
fn statements_about_both_change_both_or_none() {
    let (db, mut session) = begun().unwrap();
    db.sql("CREATE TABLE refers (id i64 PRIMARY KEY REFERENCES t (id))", ()).unwrap();
    let e = refused(&mut session, "TRUNCATE s, t");
    assert!(e.contains("refers"), "{e}");
    assert_eq!(numbers(&mut session, "SELECT count(*) FROM s"), [2]);
    assert!(session.sql("DROP TABLE s, t", ()).is_err());
    session.sql("BEGIN", ()).unwrap();
    assert!(session.sql("DROP TABLE s, t", ()).is_err());
    assert_eq!(numbers(&mut session, "SELECT count(*) FROM s"), [2]);
    session.sql("DROP TABLE s, refers", ()).unwrap();
    session.sql("ROLLBACK", ()).unwrap();
    assert_eq!(numbers(&mut session, "SELECT count(*) FROM s"), [2]);
    session.sql("DROP TABLE s, refers", ()).unwrap();
    assert!(session.sql("SELECT * FROM s", ()).is_err());
    assert_eq!(db.tables(), ["t"]);
}

#[test]
fn prepared_statements_and_cursors_find_it() {
    let (_, mut session) = begun().unwrap();
    let insert = session.prepare("INSERT INTO s VALUES (?, ?)").unwrap();
    assert_eq!(session.run_prepared(&insert, (5, 50)).unwrap().rows_changed(), 1);
    let get = session.prepare("SELECT n FROM s WHERE id = ?").unwrap();
    let found = session.run_prepared(&get, (5,)).unwrap().into_rows().unwrap().to_rows();
    assert_eq!(found, [[Value::Int(50)]]);
    session
        .sql("PREPARE q (i64) AS SELECT n FROM s JOIN t ON t.id = s.id WHERE s.id = $1", ())
        .unwrap();
    assert_eq!(numbers(&mut session, "EXECUTE q(1)"), [10]);
    session.sql("PREPARE all_of AS SELECT count(*) FROM main.t", ()).unwrap();
    session.sql("CREATE TEMP TABLE t (id i64)", ()).unwrap();
    assert_eq!(numbers(&mut session, "EXECUTE all_of"), [2]);
    assert_eq!(numbers(&mut session, "EXECUTE q(1)"), Vec::<i64>::new());
    let mut rows = session.sql_rows("SELECT n FROM s ORDER BY id", ()).unwrap();
    assert_eq!(rows.next().unwrap().unwrap().values(), [Value::Int(10)]);
    session.sql("BEGIN", ()).unwrap();
    session.sql("DECLARE c CURSOR FOR SELECT n FROM s ORDER BY id", ()).unwrap();
    assert_eq!(numbers(&mut session, "FETCH 2 FROM c"), [10, 30]);
    session.sql("COMMIT", ()).unwrap();
}

#[test]
fn it_takes_memory_within_the_limit_of_the_database() {
    let db = Options::new().memory_limit(48 << 20).memory().unwrap();
    let mut session = Session::new(&db);
    session.sql("CREATE TEMP TABLE x (n i64 PRIMARY KEY, text text)", ()).unwrap();
    let mut refused = None;
    for n in 0..64i64 {
        if let Err(e) = session.sql("INSERT INTO x VALUES (?, repeat('x', 1000000))", (n,)) {
            refused = Some(e);
            break;
        }
    }
    let e = refused.expect("more than the limit was taken");
    assert_eq!(e.kind(), ErrorKind::OverBudget, "{e}");
    assert!(e.to_string().contains("Options::temporary_memory_limit"), "{e}");
    session.sql("DROP TABLE x", ()).unwrap();
    // What the background has of the table goes with its work.
    session.temporary().unwrap().wait_idle().unwrap();
    db.wait_idle().unwrap();
    session.sql("CREATE TABLE y (n i64 PRIMARY KEY)", ()).unwrap();
    session.sql("INSERT INTO y VALUES (1)", ()).unwrap();
}

#[test]
fn nothing_of_it_is_saved() {
    let dir = std::env::temp_dir().join(format!("esker-temporary-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    {
        let db = Options::new().open(&dir).unwrap();
        let mut session = Session::new(&db);
        session.sql("CREATE TABLE t (n i64)", ()).unwrap();
        session.sql("CREATE TEMP TABLE s (n i64)", ()).unwrap();
        session.sql("CREATE TEMP VIEW v AS SELECT n FROM s", ()).unwrap();
        session.sql("INSERT INTO s VALUES (1)", ()).unwrap();
        db.checkpoint().unwrap();
        assert!(db.check().unwrap().problems.is_empty());
        assert_eq!(db.info().tables.len(), 1);
    }
    let db = Options::new().open(&dir).unwrap();
    assert_eq!(db.tables(), ["t"]);
    assert!(db.views().is_empty());
    drop(db);
    std::fs::remove_dir_all(&dir).unwrap();
}
