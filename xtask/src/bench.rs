//! `cargo xtask bench NAME`: a benchmark of `esker-bench`, built optimised.

use crate::program::Program;
use crate::{Error, Result};

/// Runs a benchmark; the name and every argument go to it unchanged.
///
/// # Errors
/// Without a name, and when the benchmark does not build or fails.
pub fn run(arguments: &[String]) -> Result<()> {
    if arguments.is_empty() {
        return Err(Error::usage("expected the name of a benchmark: cargo xtask bench NAME"));
    }
    Program::cargo(&["run", "--release", "--package", "esker-bench", "--"])
        .arguments(arguments)
        .run()
}
