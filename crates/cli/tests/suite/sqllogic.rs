//! The corpus of `sqllogic/*.slt`: statements with what they answer, or how they are refused.
//!
//! Answers were found by thought, or by SQLite, which is asked again by a test of
//! `crates/differential`; what only Esker has is marked `skipif sqlite`. Each file is run three
//! times: with rows in open groups, with rows in segments of three, and with these and indexes that
//! are read wherever they say anything. Types of columns are `I` for integers, `R` for other
//! numbers, `T` for text and what is written as text, `B` for truth.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking; the files are the repository's"
)]

use std::path::{Path, PathBuf};

use esker::{ChangeOptions, DataType, Error, IndexUse, Options, QueryResult, Value};
use esker_sql::{Session, parse_statement};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Record, Runner, strict_column_validator};

/// A session, and whether rows are sealed after each statement.
struct Esker {
    session: Session,
    seals: bool,
}

impl DB for Esker {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let outcome = self.session.run(&parse_statement(sql)?, &ChangeOptions::default())?;
        if self.seals {
            self.session.database().wait_idle()?;
        }
        let changed = outcome.rows_changed();
        Ok(outcome.into_rows().map_or(DBOutput::StatementComplete(changed), answer))
    }

    fn engine_name(&self) -> &'static str {
        "esker"
    }
}

fn answer(result: QueryResult) -> DBOutput<DefaultColumnType> {
    let types = result.columns.iter().map(|column| column_type(column.data_type)).collect();
    let row = |row: Vec<Value>| row.iter().map(shown).collect();
    DBOutput::Rows { types, rows: result.to_rows().into_iter().map(row).collect() }
}

/// The sign of a type; the reader of the files takes `B` for any other.
fn column_type(data_type: DataType) -> DefaultColumnType {
    match data_type {
        DataType::Bool => DefaultColumnType::Any,
        t if t.is_integer() => DefaultColumnType::Integer,
        t if t.is_numeric() => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        value => match value.to_string() {
            text if text.is_empty() => "(empty)".to_owned(),
            text => text,
        },
    }
}

fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sqllogic");
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.collect();
    files.sort();
    files
}

fn run_all(name: &str, seals: bool, options: impl Fn() -> Options) {
    for file in files() {
        let db =
            || Options::memory(options()).map(|db| Esker { session: Session::new(&db), seals });
        let mut runner = Runner::new(|| async { db() });
        runner.with_column_validator(strict_column_validator);
        if let Err(e) = runner.run_file(&file) {
            panic!("{name} rows: {e}");
        }
    }
}

fn small_groups() -> Options {
    Options::new().group_limit(3, 1 << 20).small_group_limit(0).segment_limit(16)
}

#[test]
fn answers_of_open_rows() {
    run_all("open", false, Options::new);
}

#[test]
fn answers_of_sealed_rows() {
    run_all("sealed", true, small_groups);
}

#[test]
fn answers_by_indexes_wherever_they_say_anything() {
    run_all("indexed", true, || small_groups().index_use(IndexUse::Always));
}

#[test]
fn there_are_enough_cases() {
    let count = |file: &PathBuf| {
        let records = sqllogictest::parse_file::<DefaultColumnType>(file).unwrap();
        let is_case = |r: &&Record<_>| matches!(r, Record::Statement { .. } | Record::Query { .. });
        records.iter().filter(is_case).count()
    };
    let cases: usize = files().iter().map(count).sum();
    println!("{cases} cases in {} files", files().len());
    assert!(cases >= 5_000, "{cases}");
}
