//! `cargo xtask differential`: random SQL on Esker and on SQLite, built optimised; with `--planted`
//! wrong answers are planted back, and found.

use crate::Result;
use crate::program::Program;

/// Runs the campaign; every argument goes to it unchanged.
///
/// # Errors
/// When the campaign does not build or the two differ.
pub fn run(arguments: &[String]) -> Result<()> {
    let mut cargo = vec!["run", "--release", "--package", "esker-differential"];
    if arguments.iter().any(|argument| argument == "--planted") {
        cargo.extend(["--features", "sabotage"]);
    }
    cargo.push("--");
    Program::cargo(&cargo).arguments(arguments).run()
}
