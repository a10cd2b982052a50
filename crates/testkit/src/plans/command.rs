//! The command line of the `plans` program.

use std::process::ExitCode;

use super::{Counts, run_case};

const USAGE: &str = "usage: plans [--cases N] [--seed N]";

/// Runs the program: so many cases, the first of a seed and each next of the next.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let Some((cases, seed)) = read(arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut counts = Counts::default();
    for number in 0..cases {
        if let Err(why) = run_case(seed.wrapping_add(number), &mut counts) {
            println!("answers differ: {why}");
            return ExitCode::FAILURE;
        }
    }
    let Counts { cases, answers, rows, refused, indexed, by_key, by_zone } = counts;
    println!("{cases} cases, seed {seed}: no difference");
    println!("  {answers} answers of {rows} rows compared, {refused} of them refusals");
    let share = indexed * 100 / answers.max(1);
    println!("  {indexed} answers ({share} %) had a plan with an index, {by_key} one by key");
    println!("  {by_zone} answers read zones in the order asked for");
    ExitCode::SUCCESS
}

fn read(arguments: &[String]) -> Option<(u64, u64)> {
    let (mut cases, mut seed) = (200, 1);
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let number = rest.next()?.parse().ok()?;
        match name.as_str() {
            "--cases" => cases = number,
            "--seed" => seed = number,
            _ => return None,
        }
    }
    Some((cases, seed))
}
