//! DuckDB and SQLite in one long-lived process of Python: a request a line, an answer a line, both
//! JSON. `peer.py` is the other end. The benchmark of analytics reads this file, too.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};

/// The program of the process.
const PROGRAM: &str = include_str!("peer.py");

/// What to do where the process does not start.
const ADVICE: &str = "DuckDB is asked by its Python package: `pip install duckdb`, or put the \
                      python3 of the environment that has it first on the path";

/// Why a request has no answer.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// The process; it ends with this value.
pub(crate) struct Peer {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Rows, as `peer.py` writes values.
pub(crate) type Rows = Vec<Vec<Json>>;

impl Peer {
    /// Starts the process.
    pub(crate) fn start() -> Result<Self> {
        let mut command = Command::new("python3");
        command.args(["-c", PROGRAM]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("python3: {e}; {ADVICE}"))?;
        let requests = child.stdin.take().ok_or("python3 has no input")?;
        let answers = child.stdout.take().ok_or("python3 has no output")?;
        Ok(Self { child, requests, answers: BufReader::new(answers) })
    }

    /// Opens a database of an engine; gives the engine's version.
    pub(crate) fn open(
        &mut self,
        engine: &str,
        path: Option<&str>,
        settings: &Json,
    ) -> Result<String> {
        let mut request = json!({"do": "open", "engine": engine, "settings": settings});
        if let (Some(path), Some(request)) = (path, request.as_object_mut()) {
            request.insert("path".to_owned(), path.into());
        }
        let answer = self.ask(&request)?;
        Ok(answer.get("version").and_then(Json::as_str).unwrap_or("?").to_owned())
    }

    /// Runs a statement; how many seconds it took within the process, and its rows.
    pub(crate) fn run(&mut self, engine: &str, sql: &str, seconds: f64) -> Result<(f64, Rows)> {
        let request = json!({"do": "run", "engine": engine, "sql": sql, "seconds": seconds});
        let mut answer = self.ask(&request)?;
        let lists = |value: Option<Json>| match value {
            Some(Json::Array(values)) => values,
            _ => Vec::new(),
        };
        let rows = lists(answer.get_mut("rows").map(Json::take));
        let rows = rows.into_iter().map(|row| lists(Some(row))).collect();
        Ok((seconds_of(&answer)?, rows))
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask(&mut self, request: &Json) -> Result<Json> {
        let sent = writeln!(self.requests, "{request}").and_then(|()| self.requests.flush());
        let mut line = String::new();
        let read = sent.and_then(|()| self.answers.read_line(&mut line));
        if !matches!(read, Ok(bytes) if bytes > 0) {
            return Err(format!("the process of Python ended; {ADVICE}"));
        }
        let answer: Json = serde_json::from_str(&line).map_err(|e| format!("{line}: {e}"))?;
        match answer.get("error") {
            Some(error) => Err(error.as_str().unwrap_or_default().to_owned()),
            None => Ok(answer),
        }
    }
}

/// The time that an answer tells.
pub(crate) fn seconds_of(answer: &Json) -> Result<f64> {
    let seconds = answer.get("seconds").and_then(Json::as_f64);
    seconds.ok_or_else(|| format!("an answer without a time: {answer}"))
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
