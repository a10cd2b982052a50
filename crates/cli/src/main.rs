//! The `esker` program. All of it is in the library, so that tests can call it.
#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let (stdout, mut stderr) = (std::io::stdout(), std::io::stderr());
    let is_terminal = stdout.is_terminal();
    let mut out = std::io::BufWriter::new(stdout.lock());
    let mut console = esker_cli::Console { out: &mut out, err: &mut stderr, is_terminal };
    let status = esker_cli::run(std::env::args_os(), &mut console);
    let flushed = out.flush();
    let status = if flushed.is_err() { status.max(esker_cli::Status::System) } else { status };
    ExitCode::from(status.code())
}
