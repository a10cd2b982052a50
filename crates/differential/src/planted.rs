//! Wrong answers planted back by name, each to be found by the campaign, or by a script of
//! `crates/cli/tests/sqllogic` where SQLite has no such statement.

use std::process::{Command, ExitCode};

use esker::{Database, Error, Options, Value};
use esker_sql::Sql;
use esker_vfs::sabotage::{Bug, Campaign};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};

/// How many statements may go by until a bug is found.
const STATEMENTS: &str = "20000";

/// What finds a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finder {
    Statements,
    Script(&'static str),
}

/// What finds a bug: random SQL, or a script where SQLite has no such statement.
const fn finder(bug: Bug) -> Finder {
    match bug {
        Bug::NothingSelectsAll | Bug::SharpBeginsAName => Finder::Script("grammar.slt"),
        Bug::AddedFieldStaysNull => Finder::Script("added_fields.slt"),
        _ => Finder::Statements,
    }
}

/// The scripts.
const SCRIPTS: [(&str, &str); 2] = [
    ("grammar.slt", include_str!("../../cli/tests/sqllogic/grammar.slt")),
    ("added_fields.slt", include_str!("../../cli/tests/sqllogic/added_fields.slt")),
];

/// Plants each bug in a process of its own; success when each is found, and nothing without any.
pub(crate) fn run_all(seed: u64) -> ExitCode {
    if !cfg!(feature = "sabotage") {
        eprintln!("differential: build with --features sabotage");
        return ExitCode::from(2);
    }
    let mut missed = 0;
    for (name, _) in SCRIPTS {
        if let Some(line) = found_by("", Finder::Script(name), seed) {
            println!("{name} fails as it is: {line}");
            missed += 1;
        }
    }
    for bug in Bug::of(Campaign::Sql) {
        let name = bug.name();
        match found_by(name, finder(bug), seed) {
            Some(line) => println!("{name:<30} caught: {line}"),
            None => {
                missed += 1;
                println!("{name:<30} MISSED: {}", bug.what());
            }
        }
    }
    println!("planted {}, missed {missed}", Bug::of(Campaign::Sql).count());
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How a bug was found.
fn found_by(name: &str, finder: Finder, seed: u64) -> Option<String> {
    let seed = seed.to_string();
    let arguments = match finder {
        Finder::Statements => vec!["--statements", STATEMENTS, "--seed", &seed],
        Finder::Script(file) => vec!["--script", file],
    };
    let mut command = Command::new(std::env::current_exe().ok()?);
    let output = command.args(arguments).env("ESKER_SABOTAGE", name).output().ok()?;
    if output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_told =
        |line: &&str| line.starts_with("seed ") || line.trim_start().starts_with("Esker:");
    let lines: Vec<&str> = match finder {
        Finder::Statements => text.lines().filter(is_told).collect(),
        Finder::Script(_) => text.lines().take(3).collect(),
    };
    let line: String = lines.join(" ").chars().take(200).collect();
    Some(line)
}

/// Runs a script; prints what is not as it says.
pub(crate) fn run_script(name: &str) -> ExitCode {
    let Some((_, script)) = SCRIPTS.iter().find(|(known, _)| *known == name) else {
        eprintln!("differential: no script {name}");
        return ExitCode::from(2);
    };
    let mut runner = Runner::new(|| async { Options::new().memory().map(Script) });
    match runner.run_script(script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            println!("{}", e.display(false));
            ExitCode::FAILURE
        }
    }
}

/// What a script runs on.
struct Script(Database);

impl DB for Script {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let outcome = self.0.sql(sql, ())?;
        let changed = outcome.rows_changed();
        let Some(rows) = outcome.into_rows() else {
            return Ok(DBOutput::StatementComplete(changed));
        };
        let shown = |value: &Value| match value.to_string() {
            _ if value.is_null() => "NULL".to_owned(),
            text if text.is_empty() => "(empty)".to_owned(),
            text => text,
        };
        let types = vec![DefaultColumnType::Any; rows.columns.len()];
        let row = |row: Vec<Value>| row.iter().map(shown).collect();
        Ok(DBOutput::Rows { types, rows: rows.to_rows().into_iter().map(row).collect() })
    }

    fn engine_name(&self) -> &'static str {
        "esker"
    }
}
