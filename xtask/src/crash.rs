//! `cargo xtask crash`: the crash campaign of `esker-testkit`, built optimised.

use crate::Result;
use crate::program::Program;

/// Runs the campaign; every argument goes to it unchanged.
///
/// # Errors
/// When the campaign does not build or finds a failure.
pub fn run(arguments: &[String]) -> Result<()> {
    Program::cargo(&["run", "--release", "--package", "esker-testkit", "--bin", "crash", "--"])
        .arguments(arguments)
        .run()
}
