//! `cargo xtask crash`: the crash campaign of `esker-testkit`, built optimised.

use crate::Result;
use crate::program::Program;

/// Runs the campaign; every argument goes to it unchanged.
///
/// # Errors
/// When the campaign does not build or finds a failure.
pub fn run(arguments: &[String]) -> Result<()> {
    let mut cargo = vec!["run", "--release", "--package", "esker-testkit", "--bin", "crash"];
    if arguments.iter().any(|argument| argument == "--sabotage" || argument == "--invariants") {
        cargo.extend(["--features", "sabotage"]);
    }
    cargo.push("--");
    Program::cargo(&cargo).arguments(arguments).run()
}
