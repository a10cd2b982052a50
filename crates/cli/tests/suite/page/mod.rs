//! A page of the guide, followed literally: its blocks are done in their order, by one shell, and
//! show what the page says.
//!
//! | block | what is done |
//! |---|---|
//! | `sh` | it is run as it is |
//! | `console` | each line behind `$ ` is run, and shows the lines below; `…` stands for any text |
//! | `lines` | lines behind `→` are sent to the server, which answers the lines behind `←` |
//! | `python` | a program, whose output stands behind `# →` |
//!
//! A command that ends with `&` runs in the background: what it shows is awaited, but for logs.
//! Ports are free ones in place of those of the page.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;
use crate::transcript::{blocks, commands, matches};

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/python");
/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(240);
const LISTENING: &str = "listening on ";
const END: &str = "__end_of_command";

pub fn is_here(program: &str) -> bool {
    let version = if program == "openssl" { "version" } else { "--version" };
    let found = Command::new(program).arg(version).stdout(Stdio::null()).status();
    let is_here = found.is_ok_and(|status| status.success());
    if !is_here {
        println!("left out: there is no {program} here");
    }
    is_here
}

/// A shell that runs the commands of a page.
pub struct Page<'s> {
    sandbox: &'s Sandbox,
    shell: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    /// Addresses of the page, and those that are served in their place.
    served: Vec<(String, String)>,
    /// What runs in the background.
    background: Vec<String>,
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        for process in &self.background {
            let _ = Command::new("kill").args(["-KILL", process]).status();
        }
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Follows a page to its end; commands of programs in `missing` are left out.
pub fn follow(page: &str, sandbox: &Sandbox, missing: &[&str]) {
    let mut run = Page::start(sandbox);
    for (kind, block) in blocks(page) {
        match kind {
            "sh" => {
                let block = run.placed(block);
                let shown = run.run(&block, true);
                assert_eq!(shown.trim(), "", "{block}");
            }
            "console" => {
                for (line, wanted) in commands(&format!("```console\n{block}\n```")) {
                    let is_missing = |program: &&str| line.starts_with(&format!("{program} "));
                    if missing.iter().any(is_missing) {
                        println!("left out: {line}");
                        continue;
                    }
                    match line.strip_suffix('&') {
                        Some(command) => run.start_server(command, &wanted),
                        None => run.expect(&line, &wanted),
                    }
                }
            }
            "lines" => run.converse(block),
            "python" if !missing.contains(&"python3") => run.python(block),
            _ => {}
        }
    }
    run.stop();
}

impl<'s> Page<'s> {
    fn start(sandbox: &'s Sandbox) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_esker")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.current_dir(&sandbox.0).env("PATH", path).env("PYTHONPATH", CLIENT);
        for key in ["WIRE_LISTEN", "HTTP_LISTEN"] {
            command.env(format!("ESKER_{key}"), "127.0.0.1:0");
        }
        command.env_remove("ESKER_TOKEN").env_remove("ESKER_DATABASE");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        let (input, output) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let (served, background) = (Vec::new(), Vec::new());
        Self { sandbox, shell, input, lines, served, background }
    }

    /// Runs lines in the shell: what they show. They succeed, or fail, as is expected.
    fn run(&mut self, lines: &str, succeeds: bool) -> String {
        writeln!(self.input, "{{ {lines}\n}} 2>&1 < /dev/null\nprintf '\\n{END} %s\\n' $?")
            .unwrap();
        self.input.flush().unwrap();
        let (started, mut shown) = (Instant::now(), String::new());
        loop {
            let left = PATIENCE.saturating_sub(started.elapsed());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|e| panic!("{lines}\n{shown}: {e}"));
            if let Some(status) = line.strip_prefix(END) {
                println!("$ {lines}\n{}", shown.trim_end());
                assert_eq!(status.trim() == "0", succeeds, "{lines}\n{shown}{status}");
                return shown;
            }
            shown.push_str(&line);
            shown.push('\n');
        }
    }

    /// A text with the addresses that are served in place of those of the page.
    fn placed(&self, text: &str) -> String {
        let port = |address: &str| address.rsplit_once(':').unwrap().1.to_owned();
        self.served.iter().fold(text.to_owned(), |text, (page, real)| {
            let text = text.replace(page.as_str(), real);
            let text = text.replace(
                &format!("localhost:{}", port(page)),
                &format!("localhost:{}", port(real)),
            );
            match port(page).as_str() {
                "6379" => text.replace("redis-cli ", &format!("redis-cli -p {} ", port(real))),
                _ => text,
            }
        })
    }

    fn expect(&mut self, line: &str, wanted: &str) {
        let line = self.placed(line);
        let fails = wanted.lines().any(|line| line.starts_with("error: "));
        let shown = self.run(&line, !fails);
        let fits = matches(wanted.trim_end(), shown.trim_end());
        assert!(fits, "$ {line}\n{wanted}\nbut: {shown}");
    }

    /// Starts a server on free ports, and waits until it shows what the page says.
    fn start_server(&mut self, command: &str, wanted: &str) {
        let words = command.split(' ').map(|word| match word.starts_with("127.0.0.1:") {
            true => "127.0.0.1:0",
            false => word,
        });
        let command = words.collect::<Vec<_>>().join(" ");
        let log = format!("server-{}.log", self.background.len());
        let process = self.run(&format!("{command} > {log} 2>&1 & echo $!"), true);
        self.background.push(process.trim().to_owned());
        let is_address = |line: &str| line.starts_with(LISTENING) && line.contains("127.0.0.1:");
        let address = |line: &str| {
            let at = line.trim_start_matches(LISTENING);
            at.split_once("://").map_or(at, |(_, at)| at).to_owned()
        };
        let pattern: Vec<String> = wanted
            .lines()
            .map(|line| match is_address(line) {
                true => line.replace(&address(line), "127.0.0.1:…"),
                false => line.to_owned(),
            })
            .collect();
        let started = Instant::now();
        let lines = loop {
            // The shell makes the file when it comes to it.
            let text = match self.sandbox.exists(&log) {
                true => self.sandbox.read(&log),
                false => String::new(),
            };
            let is_log = |line: &&str| line.starts_with("20") && line.contains('T');
            let lines: Vec<String> =
                text.lines().filter(|line| !is_log(line)).map(str::to_owned).collect();
            if matches(pattern.join("\n").trim_end(), lines.join("\n").trim_end()) {
                println!("$ {command}\n{}", lines.join("\n"));
                break lines;
            }
            assert!(started.elapsed() < PATIENCE, "{command}\n{wanted}\nbut: {text}");
            std::thread::sleep(Duration::from_millis(10));
        };
        let page = wanted.lines().filter(|line| is_address(line)).map(address);
        let real = lines.iter().filter(|line| is_address(line)).map(|line| address(line));
        self.served.extend(page.zip(real));
    }

    /// Sends the lines with `→`, and expects those with `←`.
    fn converse(&mut self, conversation: &str) {
        let stream = TcpStream::connect(&self.served[0].1).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
        for line in conversation.lines() {
            println!("{line}");
            match line.strip_prefix("→ ") {
                Some(request) => {
                    (&stream).write_all(format!("{request}\n").as_bytes()).unwrap();
                }
                None => {
                    let answer = answers.next().unwrap().unwrap();
                    assert_eq!(Some(answer.as_str()), line.strip_prefix("← "), "{conversation}");
                }
            }
        }
    }

    fn python(&mut self, block: &str) {
        self.sandbox.write("example.py", self.placed(block));
        let wanted = block.lines().filter_map(|line| line.trim().strip_prefix("# → "));
        let shown = self.run("PYTHONDONTWRITEBYTECODE=1 python3 example.py", true);
        assert_eq!(shown.trim_end(), wanted.collect::<Vec<_>>().join("\n"), "{block}");
    }

    /// Ends the servers by a signal, and waits for them.
    fn stop(mut self) {
        for process in std::mem::take(&mut self.background) {
            self.run(&format!("kill -TERM {process}; wait {process}"), true);
            println!("stopped");
        }
    }
}
