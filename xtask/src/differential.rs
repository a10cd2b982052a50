//! `cargo xtask differential`: random SQL on Esker and on SQLite, built optimised.

use crate::Result;
use crate::program::Program;

/// Runs the campaign; every argument goes to it unchanged.
///
/// # Errors
/// When the campaign does not build or the two differ.
pub fn run(arguments: &[String]) -> Result<()> {
    Program::cargo(&["run", "--release", "--package", "esker-differential", "--"])
        .arguments(arguments)
        .run()
}
