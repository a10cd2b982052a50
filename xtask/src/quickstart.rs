//! `cargo xtask quickstart [--serve]`: the example data, loaded and asked, and served.

use crate::program::Program;
use crate::{Error, Result};

/// The test that serves the example data and runs the commands of `docs/guide/server.md`; it
/// shows them, and what they answer.
const SERVED: [&str; 8] = [
    "test",
    "--quiet",
    "--locked",
    "--package=esker-cli",
    "--test=server_guide",
    "--",
    "--nocapture",
    "--test-threads=1",
];

/// Runs `esker quickstart`; with `--serve` on free ports, with the commands of the guide, until
/// they are done.
///
/// # Errors
/// When the arguments are others, it does not build, or a command shows what the guide does not.
pub fn run(arguments: &[String]) -> Result<()> {
    match arguments {
        [] => {
            let program = ["run", "--release", "--locked", "--bin", "esker", "--", "quickstart"];
            Program::cargo(&program).run()
        }
        [serve] if serve == "--serve" => Program::cargo(&SERVED).run(),
        _ => Err(Error::usage("expected nothing, or --serve")),
    }
}
