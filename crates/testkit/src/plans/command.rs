//! The command line of the `plans` program.

use std::process::ExitCode;

use super::{Cases, Counts, Difference};

const USAGE: &str = "usage: plans [--rollups] [--cases N] [--seed N]";

/// Runs the program: so many cases, the first of a seed and each next of the next.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let Some(cases) = read(arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let seed = cases.seed;
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (counts, difference) = cases.run(threads as u64);
    if let Some(Difference { seed, why }) = difference {
        println!("seed {seed}: answers differ: {why}");
        return ExitCode::FAILURE;
    }
    let Counts { cases, answers, rows, refused, indexed, by_key, by_zone, rolled, joined } = counts;
    println!("{cases} cases, seed {seed}: no difference");
    println!("  {answers} answers of {rows} rows compared, {refused} of them refusals");
    let share = indexed * 100 / answers.max(1);
    println!("  {indexed} answers ({share} %) had a plan with an index, {by_key} one by key");
    println!("  {by_zone} answers read zones in the order asked for");
    println!("  {rolled} answers took groups that are kept of a rollup");
    println!("  {joined} answers were of two to eight tables");
    ExitCode::SUCCESS
}

fn read(arguments: &[String]) -> Option<Cases> {
    let mut cases = Cases { count: 200, seed: 1, of_rollups: false };
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        if name == "--rollups" {
            cases.of_rollups = true;
            continue;
        }
        let number = rest.next()?.parse().ok()?;
        match name.as_str() {
            "--cases" => cases.count = number,
            "--seed" => cases.seed = number,
            _ => return None,
        }
    }
    Some(cases)
}
