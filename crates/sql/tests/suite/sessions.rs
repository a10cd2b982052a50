//! What a session keeps: prepared statements and cursors; and tables that a transaction holds.

use std::time::Duration;

use esker::{ChangeOptions, Database, ErrorKind, Limits, Options, Result, Value};
use esker_sql::{Outcome, Session, parse_statement};

fn session() -> Result<(Database, Session)> {
    let db = Options::new().memory()?;
    let mut session = Session::new(&db);
    session.sql("CREATE TABLE t (id i64 PRIMARY KEY, word text, day date)", ())?;
    session
        .sql("INSERT INTO t VALUES (1, 'one', NULL), (2, 'two', NULL), (3, 'three', NULL)", ())?;
    Ok((db, session))
}

/// The error of a statement, whole.
fn refused(session: &mut Session, text: &str) -> String {
    session.sql(text, ()).unwrap_err().to_string()
}

fn rows(session: &mut Session, text: &str) -> Vec<Vec<Value>> {
    session.sql(text, ()).unwrap().into_rows().unwrap().to_rows()
}

#[test]
fn arguments_are_fitted_to_the_types_of_parameters() {
    let (_, mut session) = session().unwrap();
    session.sql("PREPARE add (i64, text, date) AS INSERT INTO t VALUES (?, ?, ?)", ()).unwrap();
    let added = session.sql("EXECUTE add(2 + 2, 'four', '2024-05-06')", ()).unwrap();
    assert_eq!(added.rows_changed(), 1);
    session.sql("PREPARE one (i64) AS SELECT word, day FROM t WHERE id = $1", ()).unwrap();
    let found = rows(&mut session, "EXECUTE one(4)");
    assert_eq!(found[0][0], Value::from("four"));
    assert_eq!(found[0][1].to_string(), "2024-05-06");
    let words: Vec<String> = session.sql_as("EXECUTE one(?)", (1,)).unwrap_or_default();
    assert!(words.is_empty(), "two columns are not one");
    let word: Option<(String, Option<i32>)> = session.sql_first("EXECUTE one(1)", ()).unwrap();
    assert_eq!(word, Some(("one".to_owned(), None)));

    let e = refused(&mut session, "EXECUTE one('x')");
    assert_eq!(e, "EXECUTE one: parameter $1: expected i64, found text x");
    let e = refused(&mut session, "EXECUTE one");
    assert_eq!(e, "EXECUTE one: expected 1 parameter ($1), found 0");
    let e = refused(&mut session, "EXECUTE one(1, 2)");
    assert_eq!(e, "EXECUTE one: expected 1 parameter ($1), found 2");
    let e = refused(&mut session, "EXECUTE ones(1)");
    assert_eq!(e, "no prepared statement \"ones\"; did you mean \"one\"?");
    let e = refused(&mut session, "PREPARE one AS SELECT 1");
    assert_eq!(e, "prepared statement \"one\" exists already: DEALLOCATE it first");
    let e = refused(&mut session, "PREPARE two (i64, i64) AS SELECT ?");
    assert_eq!(e, "PREPARE two: 2 types for 1 parameters");
    let e = refused(&mut session, "PREPARE two AS DROP TABLE t");
    assert_eq!(e, "PREPARE: expected SELECT, INSERT, UPDATE, DELETE or MERGE behind AS");
    let e = refused(&mut session, "PREPARE two AS SELECT * FROM u");
    assert!(e.starts_with("no table \"u\""), "{e}");

    session.sql("DEALLOCATE PREPARE ONE", ()).unwrap();
    session.sql("DEALLOCATE ALL", ()).unwrap();
    let e = refused(&mut session, "EXECUTE add(1, 'x', NULL)");
    assert_eq!(e, "no prepared statement \"add\"; there is none: PREPARE makes one");
}

#[test]
fn a_prepared_statement_goes_by_the_newest_schema() {
    let (db, mut session) = session().unwrap();
    session.sql("PREPARE all_of AS SELECT * FROM t WHERE id = ?", ()).unwrap();
    session.sql("PREPARE put AS INSERT INTO t VALUES (?, ?, NULL)", ()).unwrap();
    assert_eq!(rows(&mut session, "EXECUTE all_of(1)")[0].len(), 3);
    session.sql("ALTER TABLE t ADD COLUMN n i64 DEFAULT 7", ()).unwrap();
    let row = &rows(&mut session, "EXECUTE all_of(1)")[0];
    assert_eq!((row.len(), &row[3]), (4, &Value::Int(7)));
    session.sql("ALTER TABLE t DROP COLUMN n", ()).unwrap();
    session.sql("BEGIN", ()).unwrap();
    session.sql("EXECUTE put(9, 'nine')", ()).unwrap();
    assert_eq!(rows(&mut session, "EXECUTE all_of(9)").len(), 1);
    assert_eq!(db.table("t").unwrap().count().unwrap(), 3);
    session.sql("ROLLBACK", ()).unwrap();
    assert!(rows(&mut session, "EXECUTE all_of(9)").is_empty());
    session.sql("DROP TABLE t", ()).unwrap();
    let e = refused(&mut session, "EXECUTE all_of(1)");
    assert!(e.starts_with("no table \"t\""), "{e}");
    // A database has no session.
    let e = esker_sql::Sql::sql(&db, "EXECUTE all_of(1)", ()).unwrap_err();
    assert!(e.to_string().contains("are about a session"), "{e}");
}

#[test]
fn a_session_keeps_so_many_statements() {
    let (_, mut session) = session().unwrap();
    for number in 0..256 {
        session.sql(&format!("PREPARE p{number} AS SELECT {number}"), ()).unwrap();
    }
    let e = session.sql("PREPARE more AS SELECT 1", ()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::OverBudget);
    session.sql("DEALLOCATE p0", ()).unwrap();
    session.sql("PREPARE more AS SELECT 1", ()).unwrap();
}

#[test]
fn a_cursor_answers_some_rows_at_a_time() {
    let (_, mut session) = session().unwrap();
    let e = refused(&mut session, "DECLARE c CURSOR FOR SELECT id FROM t");
    assert_eq!(e, "a cursor ends with its transaction: expected BEGIN before");
    session.sql("BEGIN", ()).unwrap();
    session.sql("DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t ORDER BY id", ()).unwrap();
    // What is changed behind it is not seen.
    session.sql("DELETE FROM t WHERE id = 2", ()).unwrap();
    assert_eq!(rows(&mut session, "FETCH c"), [[Value::Int(1)]]);
    assert_eq!(rows(&mut session, "FETCH 2 FROM C"), [[Value::Int(2)], [Value::Int(3)]]);
    let Outcome::Rows(none) = session.sql("FETCH ALL FROM c", ()).unwrap() else { panic!() };
    assert_eq!((none.row_count(), none.columns.len()), (0, 1));
    assert!(rows(&mut session, "FETCH NEXT FROM c").is_empty());
    let e = refused(&mut session, "FETCH PRIOR FROM c");
    assert_eq!(e, "FETCH: a cursor only goes forward: expected NEXT, ALL or a number");
    let e = refused(&mut session, "FETCH 1 FROM d");
    assert_eq!(e, "no cursor \"d\"; cursors: c");
    let e = refused(&mut session, "DECLARE c CURSOR FOR SELECT 1");
    assert_eq!(e, "cursor \"c\" exists already: CLOSE it first");
    session.sql("CLOSE c", ()).unwrap();
    session.sql("SAVEPOINT s", ()).unwrap();
    session.sql("DECLARE d CURSOR WITHOUT HOLD FOR VALUES (1), (2)", ()).unwrap();
    session.sql("ROLLBACK TO s", ()).unwrap();
    let e = refused(&mut session, "FETCH d");
    assert_eq!(e, "no cursor \"d\"; there is none: DECLARE opens one");
    for number in 0..16 {
        session.sql(&format!("DECLARE c{number} CURSOR FOR SELECT 1"), ()).unwrap();
    }
    let e = session.sql("DECLARE one_more CURSOR FOR SELECT 1", ()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::OverBudget);
    session.sql("COMMIT", ()).unwrap();
    session.sql("BEGIN", ()).unwrap();
    assert!(refused(&mut session, "FETCH c1").starts_with("no cursor"));
}

#[test]
fn a_table_that_is_locked_is_not_changed_by_others() {
    let (db, mut session) = session().unwrap();
    let change = "INSERT INTO t VALUES (7, 'seven', NULL)";
    for (lock, conflicts) in [
        ("LOCK t", true),
        ("LOCK TABLE t IN SHARE MODE", true),
        ("LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE NOWAIT", true),
        ("LOCK TABLE t IN ROW EXCLUSIVE MODE", false),
        ("LOCK TABLE t IN ACCESS SHARE MODE", false),
    ] {
        session.sql("BEGIN", ()).unwrap();
        session.sql(lock, ()).unwrap();
        esker_sql::Sql::sql(&db, change, ()).unwrap();
        let committed = session.sql("COMMIT", ());
        assert_eq!(committed.is_err(), conflicts, "{lock}");
        if let Err(e) = committed {
            assert_eq!(e.kind(), ErrorKind::Conflict);
            assert!(e.to_string().contains("\"t\""), "{e}");
        }
        esker_sql::Sql::sql(&db, "DELETE FROM t WHERE id = 7", ()).unwrap();
    }
    // Its own changes are none of others, nor is a table of its own.
    session.sql("BEGIN", ()).unwrap();
    session.sql("CREATE TABLE own (n i64 PRIMARY KEY)", ()).unwrap();
    session.sql("LOCK TABLE t, own", ()).unwrap();
    session.sql(change, ()).unwrap();
    session.sql("COMMIT", ()).unwrap();

    let e = refused(&mut session, "LOCK TABLE t");
    assert_eq!(e, "LOCK TABLE is until the end of a transaction: expected BEGIN before");
    session.sql("BEGIN", ()).unwrap();
    let e = refused(&mut session, "LOCK TABLE t, none");
    assert!(e.starts_with("no table \"none\""), "{e}");
    let e = refused(&mut session, "LOCK TABLE t IN LOUD MODE");
    assert!(e.starts_with("LOCK TABLE … IN LOUD MODE: expected one of ACCESS SHARE"), "{e}");
    let e = refused(&mut session, "VACUUM");
    assert!(e.contains("not within a transaction"), "{e}");
}

#[test]
fn maintenance_does_what_it_says() {
    let dir = std::env::temp_dir().join(format!("esker-maintenance-{}", std::process::id()));
    let db = Options::new().group_limit(4, 1 << 20).small_group_limit(0).open(&dir).unwrap();
    let mut session = Session::new(&db);
    session.sql("CREATE TABLE t (n i64 PRIMARY KEY)", ()).unwrap();
    session.sql("INSERT INTO t SELECT * FROM generate_series(1, 50)", ()).unwrap();
    session.sql("DELETE FROM t WHERE n % 2 = 0", ()).unwrap();
    let done = |session: &mut Session, text: &str| match session.sql(text, ()).unwrap() {
        Outcome::Done(text) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(done(&mut session, "CHECKPOINT"), "made a checkpoint");
    let rewrote = done(&mut session, "VACUUM FULL t");
    assert!(rewrote.starts_with("rewrote ") && rewrote.contains("segment"), "{rewrote}");
    assert_eq!(done(&mut session, "VACUUM t"), "rewrote 0 segments");
    assert_eq!(done(&mut session, "VACUUM"), "rewrote 0 segments");
    let analyzed = "nothing to do: statistics are kept with the rows";
    assert_eq!(done(&mut session, "ANALYZE t;"), analyzed);
    assert_eq!(done(&mut session, "ANALYZE"), analyzed);
    assert!(refused(&mut session, "VACUUM none").starts_with("no table \"none\""));
    assert!(refused(&mut session, "ANALYZE none").starts_with("no table \"none\""));
    let e = refused(&mut session, "VACUUM (FREEZE) t");
    assert!(e.starts_with("VACUUM has no options here"), "{e}");
    assert_eq!(session.sql_as::<i64>("SELECT count(*) FROM t", ()).unwrap(), [25]);
    drop(session);
    db.close().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn rows_that_fetch_may_not_take_stay_where_they_are() {
    let (_, mut session) = session().unwrap();
    session.sql("BEGIN", ()).unwrap();
    let long =
        "DECLARE c CURSOR FOR SELECT n, repeat('x', 1000) AS x FROM generate_series(1, 9) s (n)";
    session.sql(long, ()).unwrap();
    let limits = Limits { memory_bytes: Some(3_500), ..Limits::default() };
    let options = ChangeOptions { limits, ..ChangeOptions::default() };
    let all = parse_statement("FETCH ALL FROM c").unwrap();
    for _ in 0..2 {
        let e = session.run(&all, &options).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::OverBudget);
        assert!(e.to_string().contains("fetch fewer; the cursor is where it was"), "{e}");
    }
    let numbers = |rows: Vec<Vec<Value>>| -> Vec<Value> {
        rows.into_iter().map(|mut row| row.swap_remove(0)).collect()
    };
    let two = parse_statement("FETCH 2 FROM c").unwrap();
    let first = session.run(&two, &options).unwrap().into_rows().unwrap().to_rows();
    assert_eq!(numbers(first), [Value::Int(1), Value::Int(2)]);
    let rest = numbers(rows(&mut session, "FETCH ALL FROM c"));
    assert_eq!(rest, (3..=9i64).map(Value::Int).collect::<Vec<_>>());
    session.sql("COMMIT", ()).unwrap();
}

#[test]
fn a_fetch_has_the_time_of_a_statement() {
    let (_, mut session) = session().unwrap();
    session.sql("BEGIN", ()).unwrap();
    let slow = "DECLARE c CURSOR FOR SELECT count(*) FROM generate_series(1, 100000000) a (n), \
                generate_series(1, 1000) b (n) WHERE a.n * b.n % 7 = 3";
    session.sql(slow, ()).unwrap();
    let limits = Limits { timeout: Some(Duration::from_millis(50)), ..Limits::default() };
    let options = ChangeOptions { limits, ..ChangeOptions::default() };
    let e = session.run(&parse_statement("FETCH c").unwrap(), &options).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TimedOut, "{e}");
    assert!(e.to_string().ends_with("cursor \"c\" is closed"), "{e}");
    assert!(refused(&mut session, "FETCH c").starts_with("no cursor \"c\""));
    session.sql("ROLLBACK", ()).unwrap();
}

/// A cursor that was opened before the savepoint stays, also where others were closed since.
#[test]
fn going_back_to_a_savepoint_closes_what_was_opened_behind_it() {
    let (_, mut session) = session().unwrap();
    session.sql("BEGIN", ()).unwrap();
    session.sql("DECLARE a CURSOR FOR SELECT id FROM t ORDER BY id", ()).unwrap();
    session.sql("DECLARE b CURSOR FOR SELECT id FROM t ORDER BY id", ()).unwrap();
    session.sql("SAVEPOINT s", ()).unwrap();
    session.sql("CLOSE a", ()).unwrap();
    session.sql("DECLARE c CURSOR FOR SELECT id FROM t", ()).unwrap();
    assert_eq!(rows(&mut session, "FETCH b"), [[Value::Int(1)]]);
    session.sql("ROLLBACK TO s", ()).unwrap();
    assert!(refused(&mut session, "FETCH c").starts_with("no cursor \"c\""));
    assert!(refused(&mut session, "FETCH a").starts_with("no cursor \"a\""));
    assert_eq!(rows(&mut session, "FETCH b"), [[Value::Int(2)]]);
    session.sql("COMMIT", ()).unwrap();
}
