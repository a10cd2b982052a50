//! A server of Redis that stands beside ours: found on the path, started on a free port of this
//! machine, ended with the value that started it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Result;

/// How long it may take to answer after its start.
const PATIENCE: Duration = Duration::from_secs(10);

/// When Redis syncs its log of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppendSync {
    EverySecond,
    Always,
}

/// A process of Redis, with a directory that is removed by whoever gave it.
#[derive(Debug)]
pub(crate) struct Redis {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Redis {
    /// Keeps a log of commands, and makes no snapshots.
    pub(crate) fn start(dir: &Path, sync: AppendSync) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let sync = if sync == AppendSync::Always { "always" } else { "everysec" };
        let mut command = Command::new("redis-server");
        command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"]);
        command.args(["--save", "", "--appendonly", "yes", "--appendfsync", sync, "--dir"]);
        command.arg(dir).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().map_err(|e| missing("redis-server", &e))?;
        let mut redis = Self { child, address };
        redis.wait()?;
        Ok(redis)
    }

    /// Until it answers.
    fn wait(&mut self) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("redis-server ended: {status}").into());
            }
            let answer = Connection::open(self.address).and_then(|mut c| c.status(&[b"PING"]));
            if answer.is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("redis-server does not answer at {}", self.address).into())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // What it has not written is of no use: its directory is removed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is said where a program is not found.
fn missing(program: &str, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("{program} is not on the path: it comes with Redis (`apt-get install redis`)")
        }
        _ => format!("{program}: {error}"),
    }
}

/// What `redis-benchmark` is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// `set` or `get`.
    pub(crate) command: &'static str,
    pub(crate) requests: u64,
    pub(crate) pipeline: u64,
    pub(crate) connections: u64,
    pub(crate) value_bytes: u64,
    pub(crate) keys: u64,
}

impl Load {
    /// Runs `redis-benchmark`; requests a second, as it tells them.
    pub(crate) fn run(&self, address: SocketAddr) -> Result<f64> {
        let mut command = Command::new("redis-benchmark");
        command.args(["-h", &address.ip().to_string(), "-p", &address.port().to_string(), "--csv"]);
        command.args(["-t", self.command]);
        for (flag, number) in [
            ("-n", self.requests),
            ("-P", self.pipeline),
            ("-c", self.connections),
            ("-d", self.value_bytes),
            ("-r", self.keys),
        ] {
            command.args([flag, &number.to_string()]);
        }
        let output = command.output().map_err(|e| missing("redis-benchmark", &e))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let told = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() || told.contains("Error") {
            let status = output.status;
            return Err(format!("redis-benchmark: {status}: {}", told.trim()).into());
        }
        rate(&text, self.command)
            .ok_or_else(|| format!("redis-benchmark told no rate: {:?}", text.trim()).into())
    }
}

/// The second column of the line that begins with the name of the command, in quotes.
fn rate(text: &str, command: &str) -> Option<f64> {
    let name = command.to_uppercase();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("\"{name}\",")))?;
    line.split(',').next()?.trim_matches('"').parse().ok()
}

/// A connection that speaks Redis's protocol, one command after another.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    sent: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::with_capacity(256 << 10, stream), sent: Vec::new() })
    }

    /// Sends commands in one write; their answers are read by whoever sent them.
    pub(crate) fn send(&mut self, commands: &[&[&[u8]]]) -> Result<()> {
        self.sent.clear();
        for words in commands {
            write!(self.sent, "*{}\r\n", words.len())?;
            for word in *words {
                write!(self.sent, "${}\r\n", word.len())?;
                self.sent.extend_from_slice(word);
                self.sent.extend_from_slice(b"\r\n");
            }
        }
        Ok(self.stream.get_mut().write_all(&self.sent)?)
    }

    /// The next answer: a status.
    pub(crate) fn read_status(&mut self) -> Result<String> {
        self.line('+')
    }

    /// Sends a command of which the answer is a status.
    pub(crate) fn status(&mut self, words: &[&[u8]]) -> Result<String> {
        self.send(&[words])?;
        self.read_status()
    }

    /// The next answer: a number.
    pub(crate) fn read_number(&mut self) -> Result<i64> {
        Ok(self.line(':')?.parse()?)
    }

    /// The next answer: how many items of an array follow.
    pub(crate) fn read_length(&mut self) -> Result<usize> {
        Ok(self.line('*')?.parse()?)
    }

    /// The next answer: bytes, appended; `false` when there are none.
    pub(crate) fn read_bytes(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        let Ok(length) = self.line('$')?.parse::<u64>() else { return Ok(false) };
        let before = into.len();
        self.stream.by_ref().take(length).read_to_end(into)?;
        let mut end = [0; 2];
        self.stream.read_exact(&mut end)?;
        match (into.len() - before) as u64 == length && &end == b"\r\n" {
            true => Ok(true),
            false => Err("a value of Redis's protocol ended early".into()),
        }
    }

    fn line(&mut self, kind: char) -> Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        match line.strip_prefix(kind).and_then(|rest| rest.strip_suffix("\r\n")) {
            Some(rest) => Ok(rest.to_owned()),
            None => Err(format!("expected an answer that begins with {kind:?}: {line:?}").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_one_of_the_command() {
        let text = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"36023.05\",\"1.365\"\n";
        assert_eq!(rate(text, "set"), Some(36_023.05));
        assert_eq!(rate(text, "get"), None);
    }

    #[test]
    fn answers_are_read_one_by_one() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = vec![0; b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n".len()];
            stream.read_exact(&mut asked).unwrap();
            stream.write_all(b"$2\r\nxy\r\n$-1\r\n:7\r\n*2\r\n-ERR no\r\n").unwrap();
            asked
        });
        let mut connection = Connection::open(address).unwrap();
        connection.send(&[&[b"GET", b"a"]]).unwrap();
        let mut value = Vec::new();
        assert!(connection.read_bytes(&mut value).unwrap());
        assert_eq!(value, b"xy");
        assert!(!connection.read_bytes(&mut value).unwrap());
        assert_eq!(connection.read_number().unwrap(), 7);
        assert_eq!(connection.read_length().unwrap(), 2);
        assert!(connection.read_status().unwrap_err().to_string().contains("ERR no"));
        assert_eq!(server.join().unwrap(), b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
    }
}
