//! The server, and what it takes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use esker::{Options, Value};
use esker_server::admission::Open;
use esker_server::budget::Budget;
use esker_server::{Server, ServerConfig};

use super::Error;

/// The budget of requests and answers.
pub(super) const BUDGET_BYTES: usize = 64 << 20;
/// The rows of its table.
pub(super) const ROWS: i64 = 1_000;
/// How long it waits for clients that do not go on.
pub(super) const STALL: Duration = Duration::from_millis(1_500);

/// A server in a process of its own, which ends with this.
pub(super) struct Served {
    child: Child,
    pub address: String,
}

impl Served {
    #[allow(clippy::disallowed_methods, reason = "a real process is what this is about")]
    pub fn start() -> Result<Self, Error> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--child")
            .stdout(Stdio::piped())
            .stdin(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
        Ok(Self { child, address: line.trim().to_owned() })
    }

    /// The memory that the process has, in bytes.
    #[allow(clippy::disallowed_methods, reason = "/proc is no file of a database")]
    pub fn memory_bytes(&self) -> Result<u64, Error> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
        let kib: u64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
        Ok(kib * 1024)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The child: serves until it is ended.
pub(super) fn serve() -> Result<(), Error> {
    let database = Options::new().memory()?;
    let schema = esker::Schema::builder()
        .field("id", esker::DataType::I64)
        .field("n", esker::DataType::I64)
        .field("text", esker::DataType::Text)
        .primary_key(["id"])
        .build()?;
    let table = database.create_table("rows", schema)?;
    let text = "x".repeat(1_000);
    let row = |id: i64| vec![id.into(), 0i64.into(), Value::from(text.as_str())];
    table.insert_many(&(0..ROWS).map(row).collect::<Vec<_>>())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let config = ServerConfig {
            connections_max: 20_000,
            stall_timeout: STALL,
            budget: Budget::new(BUDGET_BYTES),
            request_bytes_max: 16 << 20,
            ..ServerConfig::default()
        };
        let server = Server::start(config, Arc::new(Open::new(&database))).await?;
        let mut out = std::io::stdout();
        writeln!(out, "{}", server.address().ok_or("no address")?)?;
        out.flush()?;
        std::future::pending::<()>().await;
        Ok(())
    })
}
