//! The `esker` program. All of it is in the library, so that tests can call it.
#![forbid(unsafe_code)]

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use esker_cli::{Console, Status};

/// Threads of a server hand rows to each other, which a general allocator pays for with locks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (stdout, mut stderr) = (std::io::stdout(), std::io::stderr());
    let is_terminal = stdout.is_terminal();
    let size = is_terminal.then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
    let size = size.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
    // A terminal that does not know its size says zero.
    let size = size.filter(|(columns, lines)| *columns > 0 && *lines > 0);
    let mut out = std::io::BufWriter::new(stdout.lock());
    let colors = is_terminal && esker_cli::may_color(|name| std::env::var(name).ok());
    let mut console =
        Console { out: &mut out, err: &mut stderr, is_terminal, size, colors, is_merged: false };
    let status = esker_cli::run(std::env::args_os(), &mut console);
    let status = match out.flush() {
        // The reader of the output has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => status,
        Err(_) => status.max(Status::System),
        Ok(()) => status,
    };
    ExitCode::from(status.code())
}
