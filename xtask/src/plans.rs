//! `cargo xtask plans`: random questions under different plans, built optimised.

use crate::Result;
use crate::program::Program;

/// Runs the comparison; every argument goes to it unchanged.
///
/// # Errors
/// When it does not build or two answers differ.
pub fn run(arguments: &[String]) -> Result<()> {
    Program::cargo(&["run", "--release", "--package", "esker-testkit", "--bin", "plans", "--"])
        .arguments(arguments)
        .run()
}
