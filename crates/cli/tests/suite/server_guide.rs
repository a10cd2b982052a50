//! The commands of `docs/guide/server.md` are run against `esker quickstart --serve`, and show what
//! it says. `cargo xtask quickstart --serve` shows this test's output.
//!
//! What the page has stands in blocks, done in its order: `console` has commands, `lines` what is
//! typed into `nc`, `python` a program. Commands of programs that are not here are left out, and
//! it is said; without curl nothing is run.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;
use crate::transcript::{blocks, commands, matches};

const GUIDE: &str = include_str!("../../../../docs/guide/server.md");
/// Where the page says that the server listens: the wire protocol, Redis's and HTTP.
const ADDRESSES: [&str; 3] = ["127.0.0.1:7437", "127.0.0.1:6379", "127.0.0.1:7438"];
/// How the lines begin that say where.
const SCHEMES: [&str; 3] = ["listening on 127.", "listening on redis://", "listening on http://"];
const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/python");

/// How long the server may take until it listens, and until it has ended.
const START: Duration = Duration::from_secs(240);
/// How long a command may take.
const COMMAND: Duration = Duration::from_secs(60);

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Waits for its end: whether it succeeded. It is killed when that takes too long.
    fn wait(&mut self, limit: Duration) -> bool {
        let started = Instant::now();
        while started.elapsed() < limit {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it did not end within {limit:?}");
    }

    /// Hands what it writes to a function, line by line, in a thread.
    fn each_line(&mut self, mut take: impl FnMut(String) + Send + 'static) {
        let lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(&mut take));
    }
}

/// Starts the quickstart, shows what it writes, and waits until it listens everywhere: where, in
/// the order of `ADDRESSES`.
fn start(sandbox: &Sandbox) -> (Running, Vec<String>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(["quickstart", "--serve"]).current_dir(&sandbox.0);
    for key in ["WIRE_LISTEN", "RESP_LISTEN", "HTTP_LISTEN"] {
        command.env(format!("ESKER_{key}"), "127.0.0.1:0");
    }
    command.env("ESKER_WIRE_UNIX", "shop.sock").stderr(Stdio::piped());
    let mut running = Running::start(&mut command);
    let (sender, lines) = channel();
    running.each_line(move |line| {
        let _ = sender.send(line);
    });
    let mut found = Vec::new();
    let started = Instant::now();
    while let Ok(line) = lines.recv_timeout(START.saturating_sub(started.elapsed())) {
        println!("{line}");
        if SCHEMES.get(found.len()).is_some_and(|scheme| line.starts_with(scheme)) {
            let at = line.trim_start_matches("listening on ");
            found.push(at.split_once("://").map_or(at, |(_, at)| at).to_owned());
        }
        if found.len() == SCHEMES.len() {
            return (running, found);
        }
    }
    let _ = running.0.kill();
    let mut error = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    panic!("it ended, or {START:?} went by, before it listened: {error}");
}

fn is_here(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).status();
    let is_here = found.is_ok_and(|status| status.success());
    if !is_here {
        println!("left out: there is no {program} here");
    }
    is_here
}

/// Runs a line of the shell, within a time: what it writes. It must succeed.
fn shell(line: &str, sandbox: &Sandbox) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_esker")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("({line}) 2>&1")).env("PATH", &path);
    let mut running = Running::start(command.env("PYTHONPATH", CLIENT).current_dir(&sandbox.0));
    let (sender, lines) = channel();
    running.each_line(move |line| {
        let _ = sender.send(line);
    });
    let succeeded = running.wait(COMMAND);
    let shown = lines.iter().collect::<Vec<String>>().join("\n");
    println!("$ {line}\n{shown}");
    assert!(succeeded, "{line}\n{shown}");
    shown
}

/// Sends the lines with `→`, and expects those with `←`.
fn converse(conversation: &str, wire: &str) {
    let stream = TcpStream::connect(wire).unwrap();
    stream.set_read_timeout(Some(COMMAND)).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    for line in conversation.lines() {
        println!("{line}");
        match line.strip_prefix("→ ") {
            Some(request) => writeln!(&stream, "{request}").unwrap(),
            None => {
                let answer = answers.next().unwrap().unwrap();
                assert_eq!(Some(answer.as_str()), line.strip_prefix("← "), "{conversation}");
            }
        }
    }
}

#[test]
fn the_commands_show_what_the_page_says() {
    if !is_here("curl") {
        return;
    }
    let has_python = is_here("python3");
    let has_redis = is_here("redis-cli");
    let sandbox = Sandbox::new("server-guide");
    let (mut served, found) = start(&sandbox);
    let replaced = ADDRESSES.iter().zip(&found);
    let guide = replaced.fold(GUIDE.to_owned(), |guide, (from, to)| guide.replace(from, to));
    let (_, port) = found[1].rsplit_once(':').unwrap();
    let guide = guide.replace("redis-cli ", &format!("redis-cli -p {port} "));
    for (kind, block) in blocks(&guide) {
        match kind {
            "console" => {
                for (line, wanted) in commands(&format!("```console\n{block}\n```")) {
                    if !has_redis && line.starts_with("redis-cli") {
                        continue;
                    }
                    let shown = shell(&line, &sandbox);
                    let fits = matches(wanted.trim_end(), shown.trim_end());
                    assert!(fits, "{line}\n{wanted}\nbut: {shown}");
                }
            }
            "lines" => converse(block, &found[0]),
            "python" if has_python => {
                sandbox.write("example.py", block);
                let wanted = block.lines().filter_map(|line| line.trim().strip_prefix("# → "));
                let shown = shell("PYTHONDONTWRITEBYTECODE=1 python3 example.py", &sandbox);
                assert_eq!(shown.trim_end(), wanted.collect::<Vec<_>>().join("\n"), "{block}");
            }
            _ => {}
        }
    }
    Command::new("kill").args(["-TERM", &served.0.id().to_string()]).status().unwrap();
    assert!(served.wait(START), "it ends by itself when it is told");
    println!("stopped");
}
