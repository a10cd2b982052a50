//! The server, and what it takes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use esker::{Database, Value};
use esker_server::auth::access_control::{AccessControl, TokenAuthenticator};
use esker_server::config::{Config, Sources};
use esker_server::protocol::http::HttpServer;
use esker_server::{Server, ServerConfig};
use esker_vfs::Environment;

use super::Error;
use super::protocol::Protocol;

/// The budget of requests and answers.
pub(super) const BUDGET_BYTES: usize = 64 << 20;
/// The rows of its table, and the entries of its bucket.
pub(super) const ROWS: usize = 1_000;
/// The bytes of their texts.
pub(super) const TEXT_BYTES: usize = 1_000;
/// How long it waits for clients that do not go on.
pub(super) const STALL: Duration = Duration::from_millis(1_500);

/// A server in a process of its own, which ends with this.
pub(super) struct Served {
    child: Child,
    addresses: Vec<String>,
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
        let addresses: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        let started = addresses.len() == Protocol::ALL.len();
        let served = Self { child, addresses };
        if started { Ok(served) } else { Err("the server did not start".into()) }
    }

    /// Where it speaks a protocol.
    pub fn address(&self, protocol: Protocol) -> String {
        let found = Protocol::ALL.iter().position(|known| *known == protocol);
        found.and_then(|at| self.addresses.get(at)).cloned().unwrap_or_default()
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

fn config() -> Result<Config, Error> {
    let stall = format!("{}ms", STALL.as_millis());
    let flags = [
        ("memory", "true"),
        ("trust_local", "true"),
        ("wire.listen", "127.0.0.1:0"),
        ("http.listen", "127.0.0.1:0"),
        ("resp.listen", "127.0.0.1:0"),
        ("connections_max", "20000"),
        ("stall_timeout", &stall),
        ("header_timeout", &stall),
        ("request_bytes_max", "16MiB"),
        ("buffer_bytes_max", &BUDGET_BYTES.to_string()),
    ]
    .map(|(key, value)| (key, value.to_owned()));
    Ok(Sources { flags: &flags, ..Sources::default() }.read()?)
}

fn fill(database: &Database) -> Result<(), Error> {
    let schema = esker::Schema::builder()
        .field("id", esker::DataType::I64)
        .field("n", esker::DataType::I64)
        .field("text", esker::DataType::Text)
        .primary_key(["id"])
        .build()?;
    let table = database.create_table("rows", schema)?;
    let text = "x".repeat(TEXT_BYTES);
    let row = |id: usize| Ok(vec![i64::try_from(id)?.into(), 0i64.into(), Value::from(&*text)]);
    table.insert_many(&(0..ROWS).map(row).collect::<Result<Vec<_>, Error>>()?)?;
    let bucket = database.bucket("db0")?;
    for key in 0..ROWS {
        bucket.put(key.to_string().as_bytes(), text.as_bytes())?;
    }
    Ok(())
}

/// The child: serves until it is ended.
pub(super) fn serve() -> Result<(), Error> {
    let access_control = Arc::new(AccessControl::open(config()?, &Environment::os(), None)?);
    fill(&access_control.tenants.get(&esker_server::tenant::TenantName::main())?.database)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let authenticator = Arc::new(TokenAuthenticator::new(&access_control));
        let server = Server::start(ServerConfig::of(&access_control)?, authenticator).await?;
        let http = access_control.config.http_listen.ok_or("no address")?;
        let http = HttpServer::start(http, Arc::clone(&access_control)).await?;
        let wire = server.address().ok_or("no address")?;
        let resp = server.resp_address().ok_or("no address")?;
        let mut out = std::io::stdout();
        writeln!(out, "{wire} {} {resp}", http.address())?;
        out.flush()?;
        std::future::pending::<()>().await;
        Ok(())
    })
}
