//! `plans`: the same answers whatever the plan. See `docs/internals/testing.md`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    esker_testkit::plans::command::run(&arguments)
}
