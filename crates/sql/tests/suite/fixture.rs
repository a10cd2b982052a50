//! Databases for tests, and answers as text.

use esker::{Database, Options, Value};
use esker_sql::{Session, Sql};

/// A database in memory, after some statements.
#[track_caller]
pub fn memory(statements: &[&str]) -> Database {
    let db = Options::new().memory().unwrap();
    for statement in statements {
        db.sql(statement, ()).unwrap_or_else(|e| panic!("{statement}: {e}"));
    }
    db
}

/// Runs statements that are to succeed.
#[track_caller]
pub fn run_all(session: &mut Session, statements: &[&str]) {
    for statement in statements {
        if let Err(error) = session.sql(statement, ()) {
            panic!("{statement}: {error}");
        }
    }
}

/// An answer as text: values by `|`, rows by `;`.
pub fn answer(db: &Database, text: &str) -> String {
    match db.sql(text, ()) {
        Ok(outcome) => {
            let rows = outcome.into_rows().unwrap().to_rows();
            let row =
                |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
            rows.iter().map(row).collect::<Vec<_>>().join(";")
        }
        Err(error) => format!("error: {error}"),
    }
}

/// Compares answers with those wanted.
#[track_caller]
pub fn check_on(db: &Database, cases: &[(&str, &str)]) {
    for (text, wanted) in cases {
        assert_eq!(answer(db, text), *wanted, "{text}");
    }
}
