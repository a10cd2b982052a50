//! The `esker` program. All of it is in the library, so that tests can call it.
#![forbid(unsafe_code)]

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use esker_cli::{Console, Status};

fn main() -> ExitCode {
    let (stdout, mut stderr) = (std::io::stdout(), std::io::stderr());
    let is_terminal = stdout.is_terminal();
    let mut out = std::io::BufWriter::new(stdout.lock());
    let mut console = Console { out: &mut out, err: &mut stderr, is_terminal };
    let status = esker_cli::run(std::env::args_os(), &mut console);
    let status = match out.flush() {
        // Whoever read the output has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => status,
        Err(_) => status.max(Status::System),
        Ok(()) => status,
    };
    ExitCode::from(status.code())
}
