//! `cargo xtask history`: histories of transactions and their anomalies, built optimised.

use crate::Result;
use crate::program::Program;

/// Runs the checker; every argument goes to it unchanged.
///
/// # Errors
/// When it does not build, or a history has what its level forbids.
pub fn run(arguments: &[String]) -> Result<()> {
    Program::cargo(&["run", "--release", "--package", "esker-testkit", "--bin", "history", "--"])
        .arguments(arguments)
        .run()
}
