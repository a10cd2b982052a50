//! `differential --statements N --queries N --seed N`: random SQL on Esker and on SQLite
//! in one process.
//!
//! A session has three random tables. With `--statements` it goes on with any statements, with
//! `--queries` with questions about rows that have been changed. After each, answers and counts are
//! compared, and every few changes the whole tables. Esker runs four times: with all rows in open
//! groups, with groups of seven rows that are sealed, with these and indexes that are read wherever
//! they say anything, and merged. What differs by design, and what SQLite cannot say, is listed in
//! [`difference`] with its reason; the first other difference is printed with its seed and a short
//! script.
//!
//! `--duckdb` asks DuckDB in place of SQLite, by its Python package: what DuckDB says otherwise, or
//! cannot say, is listed in [`rule::duckdb`].
//!
//! `--planted` plants wrong answers by name, each in a process of its own, and shows what finds it.
#![forbid(unsafe_code)]

mod beside;
mod columns;
mod comparison;
mod dice;
mod difference;
mod duckdb;
mod esker_side;
mod expression;
mod joins;
mod peer;
mod planted;
mod query;
mod rule;
mod session;
mod sets;
mod shrink;
mod sqlite;
mod statement;
mod table;
mod times;
mod value;
mod windows;

use std::process::ExitCode;

use comparison::Comparison;
use dice::Beside;
use session::Session;

/// Statements of a session.
const SESSION: usize = 120;

/// Queries of a session, after some changes.
const QUERIES: usize = 240;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked = match read(&arguments) {
        Ok(asked) => asked,
        Err(message) => {
            eprintln!("differential: {message}");
            return ExitCode::from(2);
        }
    };
    match &asked.other {
        Some(Other::Planted) => return planted::run_all(asked.seed),
        Some(Other::Script(name)) => return planted::run_script(name),
        Some(Other::DuckDb) | None => {}
    }
    let Asked { statements, queries, seed, .. } = asked;
    let same = if matches!(asked.other, Some(Other::DuckDb)) {
        if let Some(entry) = rule::duckdb::stale() {
            eprintln!("differential: rule/duckdb.rs is about {entry}, which is no rule any more");
            return ExitCode::FAILURE;
        }
        // A change is a statement of Esker's alone there: all that are asked for are questions.
        let questions = statements.saturating_add(queries);
        let draw = Session::of_questions;
        Comparison::new("duckdb --queries", questions, QUERIES, seed, draw)
            .beside(Beside::DuckDb)
            .run()
    } else {
        let statements = Comparison::new("statements", statements, SESSION, seed, Session::random);
        let queries = Comparison::new("queries", queries, QUERIES, seed, Session::of_queries);
        [statements, queries].into_iter().all(|comparison| comparison.run())
    };
    if same { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How much is asked for, and the seed of the first session; the next has the next seed.
struct Asked {
    statements: usize,
    queries: usize,
    seed: u64,
    other: Option<Other>,
}

/// What is asked for in place of a comparison.
enum Other {
    /// Every planted bug.
    Planted,
    /// One of the scripts that find them.
    Script(String),
    /// Questions, with DuckDB in place of SQLite.
    DuckDb,
}

fn read(arguments: &[String]) -> Result<Asked, String> {
    let mut asked = Asked { statements: 0, queries: 0, seed: 1, other: None };
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        match name.as_str() {
            "--planted" => {
                asked.other = Some(Other::Planted);
                continue;
            }
            "--duckdb" => {
                asked.other = Some(Other::DuckDb);
                continue;
            }
            "--script" => {
                let file = rest.next().ok_or("--script: expected a file")?;
                asked.other = Some(Other::Script(file.clone()));
                continue;
            }
            _ => {}
        }
        let number = rest.next().and_then(|value| value.parse::<u64>().ok());
        let number = number.ok_or_else(|| format!("{name}: expected a number"))?;
        let count = usize::try_from(number).unwrap_or(usize::MAX);
        match name.as_str() {
            "--statements" => asked.statements = count,
            "--queries" => asked.queries = count,
            "--seed" => asked.seed = number,
            other => {
                let known = "--statements, --queries, --seed, --duckdb, --planted";
                return Err(format!("unknown argument {other}; known: {known}"));
            }
        }
    }
    if asked.statements == 0 && asked.queries == 0 {
        asked.statements = 2_000;
    }
    Ok(asked)
}
