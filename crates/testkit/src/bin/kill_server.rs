//! `kill_server`: kills a server under load again and again. See `docs/internals/testing.md`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    esker_testkit::kill_server::run(&arguments)
}
