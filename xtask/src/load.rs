//! `cargo xtask load`: many clients of a server at once, and bad ones, built optimised.

use crate::Result;
use crate::program::Program;

/// Runs the suite; every argument goes to it unchanged.
///
/// # Errors
/// When it does not build, or the server does not bear them.
pub fn run(arguments: &[String]) -> Result<()> {
    let package = ["run", "--release", "--package", "esker-testkit", "--bin", "load_server", "--"];
    Program::cargo(&package).arguments(arguments).run()
}
