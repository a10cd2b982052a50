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
//! `--planted` plants wrong answers by name, each in a process of its own, and shows what finds it.
#![forbid(unsafe_code)]

mod columns;
mod dice;
mod difference;
mod esker_side;
mod expression;
mod joins;
mod planted;
mod query;
mod rule;
mod session;
mod shrink;
mod sqlite;
mod statement;
mod table;
mod times;
mod value;

use std::process::ExitCode;

use dice::Dice;
use difference::{DESIGNS, LEFT_OUT};
use session::{Counts, Session};

/// Statements of a session.
const SESSION: usize = 120;

/// Queries of a session, after some changes.
const QUERIES: usize = 240;

/// What is compared: statements of any kind, or queries alone.
type Draw = fn(&mut Dice, usize) -> Session;

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
        None => {}
    }
    let campaigns: [(&str, usize, usize, Draw); 2] = [
        ("statements", asked.statements, SESSION, Session::random),
        ("queries", asked.queries, QUERIES, Session::of_queries),
    ];
    let all = campaigns.into_iter().filter(|(_, count, ..)| *count > 0);
    for (what, count, at_once, draw) in all {
        if !compare(what, count, at_once, asked.seed, draw) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Runs sessions until there are so many; false at the first difference.
fn compare(what: &str, statements: usize, at_once: usize, seed: u64, draw: Draw) -> bool {
    let mut counts = Counts::default();
    let mut left = statements;
    let mut number = 0;
    while left > 0 {
        let session_seed = seed.wrapping_add(number);
        let count = left.min(at_once);
        let session = draw(&mut Dice::new(session_seed), count);
        if let Err(finding) = session.run(&mut counts) {
            let (session, finding) = shrink::shrink(&session, finding);
            println!("seed {session_seed}: answers differ\n{}\n", finding.what);
            println!("{}", shrink::script(&session));
            println!("again: cargo xtask differential --{what} {count} --seed {session_seed}");
            return false;
        }
        left -= count;
        number += 1;
    }
    println!("{statements} {what} in {number} sessions, seed {seed}: no difference");
    println!("  {} rows compared, {} statements refused by both", counts.rows, counts.refused);
    for (design, what, why) in DESIGNS {
        let times = counts.designs.get(&design).copied().unwrap_or_default();
        println!("  by design {times} times: {what}: {why}");
    }
    for (what, why) in LEFT_OUT {
        println!("  not compared: {what}: {why}");
    }
    true
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
                let known = "--statements, --queries, --seed, --planted";
                return Err(format!("unknown argument {other}; known: {known}"));
            }
        }
    }
    if asked.statements == 0 && asked.queries == 0 {
        asked.statements = 2_000;
    }
    Ok(asked)
}
