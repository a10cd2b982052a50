//! Answers as Redis gives them, in `answers/*.txt`, and Redis itself, where it is installed.
//!
//! ```text
//! # About what.
//! > SET k v EX 0
//! -ERR invalid expire time in 'set' command|
//! ! Why Redis answers the next one in another way.
//! > SCAN 7
//! -ERR the cursor is not known any more: expected 0, to begin again|
//! ```
//!
//! Line ends within an answer are `|`. Behind an empty line there are another connection and no
//! keys.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::state::State;
use super::tests::{Directory, ask, database, is_found, random_command, state};

const FILES: [&str; 5] = ["commands", "connection", "expiry", "keys", "strings"];

/// A command, its answer, and why Redis answers in another way where it does.
struct Case {
    line: String,
    answer: String,
    difference: Option<String>,
}

/// The cases of a file, by connection.
#[allow(clippy::disallowed_methods, reason = "files of the project, not of a database")]
fn cases(file: &str) -> Vec<Vec<Case>> {
    let path = format!("{}/src/protocol/resp/answers/{file}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let cases = |part: &str| {
        let (mut cases, mut difference) = (Vec::new(), None);
        let mut lines = part.lines().filter(|line| !line.starts_with('#'));
        while let Some(line) = lines.next() {
            match line.split_at(2) {
                ("! ", why) => difference = Some(why.to_owned()),
                ("> ", line) => {
                    let answer = lines.next().unwrap_or_else(|| panic!("no answer to {line}"));
                    let (line, answer) = (line.to_owned(), answer.to_owned());
                    cases.push(Case { line, answer, difference: difference.take() });
                }
                _ => panic!("neither a command nor a difference: {line}"),
            }
        }
        cases
    };
    text.split("\n\n").map(cases).collect()
}

#[test]
fn answers_are_those_that_are_written() {
    let (mut count, mut wrong) = (0, String::new());
    for file in FILES {
        for cases in cases(file) {
            let mut state = state(&database());
            for Case { line, answer, .. } in cases {
                let told = ask(&mut state, &line);
                if told != answer {
                    wrong += &format!("{file}.txt: {line}\n  written {answer}\n  told {told}\n");
                }
                count += 1;
            }
        }
    }
    assert!(count > 500 && wrong.is_empty(), "of {count}:\n{wrong}");
}

/// A server of Redis, which keeps nothing.
struct Redis {
    child: Child,
    socket: std::path::PathBuf,
    _directory: Directory,
}

#[allow(clippy::disallowed_methods, reason = "a process and its socket")]
impl Redis {
    /// `None` where there is none on this machine.
    fn start(name: &str) -> Option<Self> {
        if !is_found("redis-server") {
            return None;
        }
        let directory = Directory::new(name);
        let socket = directory.0.join("socket");
        let mut run = Command::new("redis-server");
        run.args(["--port", "0", "--save", "", "--unixsocket"]).arg(&socket);
        let child = run.stdout(Stdio::null()).spawn().unwrap();
        Some(Self { child, socket, _directory: directory })
    }

    fn connect(&self) -> Peer {
        let start = Instant::now();
        loop {
            match UnixStream::connect(&self.socket) {
                Ok(stream) => return Peer { stream: BufReader::new(stream) },
                Err(e) => assert!(start.elapsed() < Duration::from_secs(10), "{e}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection to Redis.
struct Peer {
    stream: BufReader<UnixStream>,
}

impl Peer {
    fn ask(&mut self, line: &str) -> String {
        self.stream.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
        let mut told = Vec::new();
        self.read_answer(&mut told);
        String::from_utf8_lossy(&told).replace("\r\n", "|")
    }

    fn read_answer(&mut self, told: &mut Vec<u8>) {
        let start = told.len();
        self.stream.read_until(b'\n', told).unwrap();
        let line = String::from_utf8_lossy(&told[start..]).into_owned();
        // Nothing where the connection has been closed.
        let count = line.get(1..).and_then(|count| count.trim_end().parse::<usize>().ok());
        let items = match (line.get(..1), count) {
            (Some("$" | "="), Some(length)) => {
                let start = told.len();
                told.resize(start + length + 2, 0);
                return self.stream.read_exact(&mut told[start..]).unwrap();
            }
            (Some("*" | "~"), Some(count)) => count,
            (Some("%"), Some(count)) => 2 * count,
            _ => 0,
        };
        (0..items).for_each(|_| self.read_answer(told));
    }
}

/// What is written is what Redis says, but for what is marked.
#[test]
fn redis_answers_as_it_is_written() {
    let Some(redis) = Redis::start("redis-answers") else { return };
    let mut wrong = String::new();
    for file in FILES {
        for cases in cases(file) {
            let mut peer = redis.connect();
            peer.ask("FLUSHALL");
            for Case { line, answer, difference } in cases {
                let told = peer.ask(&line);
                if (told == answer) == difference.is_some() {
                    let marked = difference.map_or(String::new(), |why| format!(" ({why})"));
                    wrong += &format!("{file}.txt: {line}\n  written {answer}{marked}\n");
                    wrong += &format!("  Redis {told}\n");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Redis adds numbers with a fraction in 80 bits.
fn is_beyond_80_bits(state: &mut State, command: &str) -> bool {
    const DIGITS_EXACT: usize = 18;
    let Some(rest) = command.strip_prefix("incrbyfloat ") else { return false };
    let key = rest.split(' ').next().unwrap_or_default();
    let value = ask(state, &format!("get {key}"));
    value.split('|').nth(1).is_some_and(|value| value.len() > DIGITS_EXACT)
}

/// Random commands, to a server of Redis and here: every answer is the same.
#[test]
fn redis_answers_the_same() {
    let Some(redis) = Redis::start("redis") else { return };
    let mut peer = redis.connect();
    let mut state = state(&database());
    let mut seed = 11;
    for _ in 0..5_000 {
        let command = random_command(&mut seed);
        if is_beyond_80_bits(&mut state, &command) {
            continue;
        }
        let told = peer.ask(&command);
        let found = ask(&mut state, &command);
        assert_eq!(found, told, "{command}");
    }
}
