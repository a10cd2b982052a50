//! `differential --statements N --seed N`: random SQL on Esker and on SQLite in one process.
//!
//! A session has three random tables and a hundred random statements. After each, answers and
//! counts are compared, and every few the whole tables; Esker runs twice, with all rows in open
//! groups and with groups of seven rows that are sealed and merged. What differs by design is
//! listed in one table; the first other difference is printed with its seed and a short script.
#![forbid(unsafe_code)]

mod dice;
mod difference;
mod esker_side;
mod expression;
mod session;
mod shrink;
mod sqlite;
mod statement;
mod table;
mod value;

use std::process::ExitCode;

use dice::Dice;
use difference::DESIGNS;
use session::{Counts, Session};

/// Statements of a session.
const SESSION: usize = 120;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (statements, seed) = match read(&arguments) {
        Ok(found) => found,
        Err(message) => {
            eprintln!("differential: {message}");
            return ExitCode::from(2);
        }
    };
    let mut counts = Counts::default();
    let mut left = statements;
    let mut number = 0;
    while left > 0 {
        let session_seed = seed.wrapping_add(number);
        let count = left.min(SESSION);
        let session = Session::random(&mut Dice::new(session_seed), count);
        if let Err(finding) = session.run(&mut counts) {
            let (session, finding) = shrink::shrink(&session, finding);
            let what = &finding.what;
            println!("seed {session_seed}: Esker and SQLite differ\n{what}\n");
            println!("{}", shrink::script(&session));
            println!("again: cargo xtask differential --statements {count} --seed {session_seed}");
            return ExitCode::FAILURE;
        }
        left -= count;
        number += 1;
    }
    println!("{statements} statements in {number} sessions, seed {seed}: no difference");
    println!("  {} rows compared, {} statements refused by both", counts.rows, counts.refused);
    for (design, what, why) in DESIGNS {
        let times = counts.designs.get(&design).copied().unwrap_or_default();
        println!("  by design {times} times: {what}: {why}");
    }
    ExitCode::SUCCESS
}

/// The number of statements, and the seed of the first session; the next has the next seed.
fn read(arguments: &[String]) -> Result<(usize, u64), String> {
    let (mut statements, mut seed) = (2_000, 1);
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let number = rest.next().and_then(|value| value.parse::<u64>().ok());
        let number = number.ok_or_else(|| format!("{name}: expected a number"))?;
        match name.as_str() {
            "--statements" => statements = usize::try_from(number).unwrap_or(usize::MAX),
            "--seed" => seed = number,
            other => {
                return Err(format!("unknown argument {other}; known: --statements, --seed"));
            }
        }
    }
    Ok((statements, seed))
}
