//! `cargo xtask kill`: a server that is killed under load, built optimised; with `--planted` bugs
//! are planted, and found.

use crate::Result;
use crate::program::Program;

/// Runs the campaign; every argument goes to it unchanged.
///
/// # Errors
/// When it does not build, something that was answered is lost, or a planted bug is missed.
pub fn run(arguments: &[String]) -> Result<()> {
    let mut cargo = vec!["run", "--release", "--package", "esker-testkit", "--bin", "kill_server"];
    if arguments.iter().any(|argument| argument == "--planted") {
        cargo.extend(["--features", "sabotage"]);
    }
    cargo.push("--");
    Program::cargo(&cargo).arguments(arguments).run()
}
