//! `load_server`: many clients at once, and bad ones. See `docs/internals/testing.md`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    esker_testkit::load_server::run(&arguments)
}
