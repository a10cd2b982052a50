//! `cargo xtask crash`: the crash campaign of `esker-testkit`, built optimised; with `--invariants`
//! as tests are, with all assertions.

use crate::Result;
use crate::program::Program;

/// Runs the campaign; every argument goes to it unchanged.
///
/// # Errors
/// When the campaign does not build or finds a failure.
pub fn run(arguments: &[String]) -> Result<()> {
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    let profile = if has("--invariants") { "test" } else { "release" };
    let mut cargo = vec!["run", "--profile", profile, "--package", "esker-testkit"];
    cargo.extend(["--bin", "crash"]);
    if has("--sabotage") || has("--invariants") {
        cargo.extend(["--features", "sabotage"]);
    }
    cargo.push("--");
    Program::cargo(&cargo).arguments(arguments).run()
}
