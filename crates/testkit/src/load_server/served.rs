//! The server, and what it takes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
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
/// What its database takes for rows, indexes and loads.
pub(super) const MEMORY_BYTES: u64 = 256 << 20;
/// The events that a server with a limit takes in a second.
pub(super) const EVENTS_A_SECOND: u64 = 500;
/// How long it waits for clients that do not go on.
pub(super) const STALL: Duration = Duration::from_millis(1_500);

/// A server in a process of its own, which ends with this.
pub(super) struct Served {
    child: Child,
    addresses: Vec<String>,
}

impl Served {
    pub fn start() -> Result<Self, Error> {
        Self::start_with(None, None)
    }

    /// One whose database is on a disk; of one sort, it takes [`EVENTS_A_SECOND`].
    pub fn start_in(directory: &Path, is_limited: bool) -> Result<Self, Error> {
        Self::start_with(Some(directory), is_limited.then_some("--limited"))
    }

    #[allow(clippy::disallowed_methods, reason = "a real process is what this is about")]
    fn start_with(directory: Option<&Path>, flag: Option<&str>) -> Result<Self, Error> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--child")
            .args(directory)
            .args(flag)
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
    pub fn memory_bytes(&self) -> Result<u64, Error> {
        self.bytes_of("VmRSS:")
    }

    /// The same without what is read of files, which the machine takes back when it likes.
    pub fn own_bytes(&self) -> Result<u64, Error> {
        self.bytes_of("RssAnon:")
    }

    #[allow(clippy::disallowed_methods, reason = "/proc is no file of a database")]
    fn bytes_of(&self, figure: &str) -> Result<u64, Error> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with(figure)).ok_or("no such figure")?;
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

fn config(directory: Option<&Path>, is_limited: bool) -> Result<Config, Error> {
    let stall = format!("{}ms", STALL.as_millis());
    let limit = if is_limited { EVENTS_A_SECOND.to_string() } else { "off".to_owned() };
    let flags = [
        ("memory", if directory.is_none() { "true" } else { "false" }),
        ("memory_limit", &MEMORY_BYTES.to_string()),
        ("limits.events_per_second", &limit),
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
    let events = esker::Schema::builder()
        .field("t", esker::DataType::Timestamp)
        .default_value(esker::DefaultValue::Now)
        .field("n", esker::DataType::I64)
        .nullable("text", esker::DataType::Text);
    database.create_table("events", events.stream("t", []).build()?)?;
    let bucket = database.bucket("db0")?;
    for key in 0..ROWS {
        bucket.put(key.to_string().as_bytes(), text.as_bytes())?;
    }
    Ok(())
}

/// The child: serves until it is ended.
pub(super) fn serve(directory: Option<&Path>, is_limited: bool) -> Result<(), Error> {
    let config = config(directory, is_limited)?;
    let directory = directory.map(Path::to_owned);
    let access_control = Arc::new(AccessControl::open(config, &Environment::os(), directory)?);
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
