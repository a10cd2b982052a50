//! The answers of `crates/cli/tests/sqllogic` are those that SQLite gives, where it knows the
//! statement; what it does not know or means otherwise is marked `skipif sqlite` there.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking; the files are the repository's"
)]

use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;
use sqllogictest::{DB, DBOutput, DefaultColumnType, Normalizer, Runner};

struct Sqlite(Connection);

impl Sqlite {
    fn new() -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch("PRAGMA case_sensitive_like = ON")?;
        Ok(Self(connection))
    }
}

impl DB for Sqlite {
    type Error = rusqlite::Error;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> rusqlite::Result<DBOutput<DefaultColumnType>> {
        let changes = self.0.total_changes();
        let mut statement = self.0.prepare(sql)?;
        let columns = statement.column_count();
        let mut found = statement.query([])?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            let values = (0..columns).map(|i| row.get::<_, Value>(i).map(shown));
            rows.push(values.collect::<rusqlite::Result<Vec<String>>>()?);
        }
        if columns == 0 {
            return Ok(DBOutput::StatementComplete(self.0.total_changes() - changes));
        }
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Any; columns], rows })
    }

    fn engine_name(&self) -> &'static str {
        "sqlite"
    }
}

fn shown(value: Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(v) => v.to_string(),
        Value::Real(v) => format!("{v:?}"),
        Value::Text(v) if v.is_empty() => "(empty)".to_owned(),
        Value::Text(v) => v,
        Value::Blob(v) => v.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Truth is a number there, and a whole number in a column of another type an integer.
fn is_same(normalizer: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    let word = |(expected, actual): (&str, &str)| match (expected, actual) {
        ("true", "1") | ("false", "0") => true,
        (a, b) if a == b => true,
        (a, b) => a.parse::<f64>().is_ok_and(|a| b.parse() == Ok(a)),
    };
    let row = |(expected, actual): (&String, &Vec<String>)| {
        let (expected, actual) = (normalizer(expected), normalizer(&actual.join(" ")));
        let (a, b) = (expected.split(' '), actual.split(' '));
        a.clone().count() == b.clone().count() && a.zip(b).all(word)
    };
    expected.len() == actual.len() && expected.iter().zip(actual).all(row)
}

#[test]
fn sqlite_gives_the_same_answers() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/sqllogic");
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let mut runner = Runner::new(|| async { Sqlite::new() });
        runner.with_validator(is_same);
        if let Err(e) = runner.run_file(entry.unwrap().path()) {
            panic!("{e}");
        }
        files += 1;
    }
    assert!(files > 10, "{files} files");
}
