//! Temporary tables of sessions on one database.

use std::sync::Arc;

use esker::{Database, Options};

use super::super::{Access, Answer, Level, Request, Session, SessionLimits};
use super::sql;
use crate::{Code, Error};

fn begun() -> (Database, Session) {
    let database = Options::new().memory().unwrap();
    let mut session = Session::new(&database);
    session.run(sql("CREATE TABLE t (id i64 PRIMARY KEY)")).unwrap();
    session.run(sql("INSERT INTO t VALUES (1), (2)")).unwrap();
    (database, session)
}

fn count(session: &mut Session, table: &str) -> crate::Result<u64> {
    match session.run(sql(&format!("SELECT * FROM {table}")))? {
        Answer::Result { result, .. } => Ok(result.row_count() as u64),
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_sessions_have_tables_of_one_name() {
    let (database, mut one) = begun();
    let mut other = Session::new(&database);
    one.run(sql("CREATE TEMP TABLE s AS SELECT id FROM t")).unwrap();
    assert_eq!(count(&mut other, "s").unwrap_err().code(), Code::NotFound);
    other.run(sql("CREATE TEMP TABLE s (word text)")).unwrap();
    assert_eq!((count(&mut one, "s").unwrap(), count(&mut other, "s").unwrap()), (2, 0));
    let asked = one.run(Request::Query { json: r#"{"table": "temp.s"}"#.into() }).unwrap();
    assert!(matches!(asked, Answer::Result { result, .. } if result.row_count() == 2));
    drop(one);
    assert_eq!(count(&mut Session::new(&database), "s").unwrap_err().code(), Code::NotFound);
}

/// It would be gone before the next request.
#[test]
fn a_session_of_one_request_has_none() {
    let (_, session) = begun();
    let mut alone = session.sibling();
    let refused = alone.run(sql("CREATE TEMP TABLE s (n i64)")).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidRequest);
    assert!(refused.to_string().contains("ends with the request"), "{refused}");
    alone.run(sql("BEGIN")).unwrap();
    alone.run(sql("CREATE TEMP TABLE s (n i64)")).unwrap();
    assert_eq!(count(&mut alone, "s").unwrap(), 0);
    alone.run(sql("COMMIT")).unwrap();
}

/// May read everything.
#[derive(Debug)]
struct Reads;

impl Access for Reads {
    fn expect(&self, level: Level, _: Option<&str>) -> crate::Result<()> {
        match level {
            Level::Read => Ok(()),
            _ => Err(Error::new(Code::Forbidden, "it only reads")),
        }
    }
}

#[test]
fn who_only_reads_sees_neither_files_nor_what_others_do() {
    let (database, _) = begun();
    let mut session = Session::with(&database, Arc::new(Reads), SessionLimits::default());
    for text in [
        "SELECT * FROM esker_sessions",
        "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM Esker_Slow_Statements)",
        "SHOW SESSIONS",
        "SELECT * FROM 'x.csv'",
        "EXPLAIN SELECT * FROM 'x.csv'",
    ] {
        assert_eq!(session.run(sql(text)).unwrap_err().code(), Code::Forbidden, "{text}");
    }
    let json = r#"{"table": "esker_sessions"}"#.to_owned();
    assert_eq!(session.run(Request::Query { json }).unwrap_err().code(), Code::Forbidden);
    assert_eq!(count(&mut Session::new(&database), "esker_sessions").unwrap(), 0);
}

#[test]
fn who_only_reads_may_have_some() {
    let (database, _) = begun();
    let mut session = Session::with(&database, Arc::new(Reads), SessionLimits::default());
    session.run(sql("CREATE TEMP TABLE s AS SELECT id FROM t")).unwrap();
    session.run(sql("INSERT INTO s SELECT id + 10 FROM t")).unwrap();
    session.run(sql("CREATE INDEX by_id ON s (id)")).unwrap();
    session.run(sql("DELETE FROM s WHERE id = 11")).unwrap();
    assert_eq!(count(&mut session, "s").unwrap(), 3);
    for text in [
        "INSERT INTO t SELECT id FROM s",
        "CREATE TABLE u AS SELECT id FROM s",
        "DROP TABLE s, t",
        "DELETE FROM main.t",
        "CREATE INDEX by_id ON t (id)",
    ] {
        assert_eq!(session.run(sql(text)).unwrap_err().code(), Code::Forbidden, "{text}");
    }
    session.run(sql("CREATE TEMP TABLE t (id i64)")).unwrap();
    session.run(sql("INSERT INTO t VALUES (1)")).unwrap();
    assert_eq!(
        session.run(sql("INSERT INTO main.t VALUES (9)")).unwrap_err().code(),
        Code::Forbidden
    );
    session.run(sql("DROP TABLE t")).unwrap();
    assert_eq!(session.run(sql("DROP TABLE t")).unwrap_err().code(), Code::Forbidden);
}
