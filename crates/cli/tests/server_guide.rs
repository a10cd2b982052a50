//! The commands of `docs/guide/server.md` are run against `esker quickstart --serve`, and show what
//! it says. `cargo xtask quickstart --serve` shows this test's output.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

mod sandbox;
mod transcript;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sandbox::Sandbox;
use transcript::{commands, matches};

const GUIDE: &str = include_str!("../../../docs/guide/server.md");
/// Where the page says that the server listens.
const WIRE: &str = "127.0.0.1:7437";
const HTTP: &str = "127.0.0.1:7438";

struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the quickstart, shows what it writes, and waits until it listens: where, in this order.
fn start(sandbox: &Sandbox) -> (Served, [String; 2]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(["quickstart", "--serve"]).current_dir(&sandbox.0);
    command.env("ESKER_WIRE_LISTEN", "127.0.0.1:0").env("ESKER_HTTP_LISTEN", "127.0.0.1:0");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut served = Served(command.spawn().unwrap());
    let mut wire = None;
    for line in BufReader::new(served.0.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        println!("{line}");
        match line.strip_prefix("listening on ").map(|at| at.split_once("://").ok_or(at)) {
            Some(Err(address)) => wire = Some(address.to_owned()),
            Some(Ok(("http", address))) => return (served, [wire.unwrap(), address.to_owned()]),
            _ => {}
        }
    }
    let mut error = String::new();
    served.0.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    panic!("it ended before it listened: {error}");
}

#[test]
fn the_commands_show_what_the_page_says() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: there is no curl here to run the commands with");
        return;
    }
    let sandbox = Sandbox::new("server-guide");
    let (mut served, [wire, http]) = start(&sandbox);
    let program = Path::new(env!("CARGO_BIN_EXE_esker")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    for (line, wanted) in commands(GUIDE) {
        let line = line.replace(WIRE, &wire).replace(HTTP, &http);
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("({line}) 2>&1")).env("PATH", &path);
        let output = shell.current_dir(&sandbox.0).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        println!("$ {line}\n{}", shown.trim_end());
        assert!(output.status.success(), "{line}\n{shown}");
        assert!(matches(wanted.trim_end(), shown.trim_end()), "{line}\n{wanted}\nbut: {shown}");
    }
    Command::new("kill").args(["-TERM", &served.0.id().to_string()]).status().unwrap();
    assert!(served.0.wait().unwrap().success(), "it ends by itself when it is told");
    println!("stopped");
}
