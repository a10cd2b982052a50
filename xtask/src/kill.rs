//! `cargo xtask kill`: a server that is killed under load, built optimised.

use crate::Result;
use crate::program::Program;

/// Runs the campaign; every argument goes to it unchanged.
///
/// # Errors
/// When it does not build, or something that was answered is lost.
pub fn run(arguments: &[String]) -> Result<()> {
    let package = ["run", "--release", "--package", "esker-testkit", "--bin", "kill_server", "--"];
    Program::cargo(&package).arguments(arguments).run()
}
