//! The command line of the `history` program.

use std::process::ExitCode;

use super::Anomaly;
use super::planted::{PLANTED, THIRTEEN, verdict};

const USAGE: &str = "\
usage: history MODE [--seed N]

  --planted    put each anomaly into an honest history, and see it named
";

/// How many transactions the histories have into which anomalies are put.
const HONEST: u32 = 5_000;

/// Runs the program.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let seed = match words.as_slice() {
        ["--planted"] => Some(1),
        ["--planted", "--seed", seed] => seed.parse().ok(),
        _ => None,
    };
    let Some(seed) = seed else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    if planted(seed) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints what is found of each planted anomaly; whether each was named.
fn planted(seed: u64) -> bool {
    let (thirteen, others) = PLANTED.split_at(THIRTEEN);
    let thirteen = plant(thirteen, seed);
    let others = plant(others, seed);
    thirteen && others
}

fn plant(anomalies: &[Anomaly], seed: u64) -> bool {
    let mut named = 0;
    for &anomaly in anomalies {
        let (_, verdict) = verdict(anomaly, HONEST, seed);
        let is_named = verdict.count(anomaly) > 0;
        named += usize::from(is_named);
        let mark = if is_named { "named" } else { "MISSED" };
        let level = anomaly.forbidden_from();
        println!("  {anomaly:<20} {mark}, forbidden from {level:<20} found: {}", verdict.summary());
    }
    println!("planted anomalies named: {named}/{}", anomalies.len());
    named == anomalies.len()
}
