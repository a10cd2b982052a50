//! What a server runs with: a TOML file, the environment, flags, in rising order of weight.
//!
//! Each key stands once, in [`KEYS`], with its default, its meaning and how it is read. The file,
//! the variables (`ESKER_` and the key in capitals, `_` for `.`), the flags (`--` and the key, `-`
//! for `.` and `_`) and `docs/reference/config.md` all come from there.

mod document;
mod key;
mod load;
mod origins;
mod quantity;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use esker::Durability;

use crate::tenant::TenantLimits;

pub use document::{document, example};
pub use key::{KEYS, Key, is_live};
pub use load::Sources;
pub use origins::Origins;
pub use quantity::{parse_bytes, parse_duration};

/// The most threads that serve connections: more are a slip of the hand, and systems end programs
/// that ask for too many.
const THREADS_MAX: usize = 1_024;

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Everything that can be configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where the wire protocol is served.
    pub wire_listen: Option<SocketAddr>,
    /// The Unix socket of the wire protocol.
    pub wire_unix: Option<PathBuf>,
    /// Where Redis's protocol is served.
    pub resp_listen: Option<SocketAddr>,
    /// The buckets of its databases, from 0.
    pub resp_buckets: Vec<String>,
    /// Where HTTP is served.
    pub http_listen: Option<SocketAddr>,
    /// The pages that may ask over HTTP from another origin.
    pub cors_origins: Option<Origins>,
    /// Whether they may send cookies and certificates along.
    pub cors_credentials: bool,
    /// Whether addresses beyond this machine are served without TLS.
    pub insecure_listen: bool,
    /// Whether connections from this machine need no token.
    pub trust_local: bool,
    /// The chain of certificates, as PEM.
    pub tls_certificate: Option<PathBuf>,
    /// The key of the first of them, as PEM.
    pub tls_key: Option<PathBuf>,
    /// The directory below which statements reach files.
    pub files_dir: Option<PathBuf>,
    /// When commits are acknowledged.
    pub durability: Durability,
    /// Whether everything is in memory only.
    pub memory: bool,
    /// The most memory of a database, in bytes.
    pub memory_limit_bytes: u64,
    /// The most of it that the temporary tables of one session take; a quarter without it.
    pub temporary_memory_limit_bytes: Option<u64>,
    /// Threads that serve connections; 0: as many as there are processors.
    pub threads: usize,
    /// The most connections at once.
    pub connections_max: usize,
    /// The most bytes of a request that is not streamed.
    pub request_bytes_max: usize,
    /// The most bytes of requests and answers in memory, of all connections.
    pub buffer_bytes_max: usize,
    /// The most bytes of the header of an HTTP request.
    pub header_bytes_max: usize,
    /// How long a connection may take to send the header of a request.
    pub header_timeout: Duration,
    /// How long a connection may send or take nothing within a request.
    pub stall_timeout: Duration,
    /// How long a connection may be idle.
    pub idle_timeout: Duration,
    /// How long a statement may take.
    pub statement_timeout: Option<Duration>,
    /// How long a transaction may be idle.
    pub transaction_timeout: Duration,
    /// How long answers to requests with an idempotency key are kept.
    pub idempotency_lifetime: Duration,
    /// How long connections have to end when the server stops.
    pub drain_timeout: Duration,
    /// What each tenant may take.
    pub limits: TenantLimits,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// What is logged.
    pub log_level: String,
    /// From when on a statement is slow.
    pub slow_query: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            wire_listen: Some(SocketAddr::from(([127, 0, 0, 1], 7437))),
            wire_unix: None,
            resp_listen: None,
            resp_buckets: (0..16).map(|number| format!("db{number}")).collect(),
            http_listen: Some(SocketAddr::from(([127, 0, 0, 1], 7438))),
            cors_origins: None,
            cors_credentials: false,
            insecure_listen: false,
            trust_local: false,
            tls_certificate: None,
            tls_key: None,
            files_dir: None,
            durability: Durability::Sync,
            memory: false,
            memory_limit_bytes: 4 << 30,
            temporary_memory_limit_bytes: None,
            threads: 0,
            connections_max: 16_384,
            request_bytes_max: 16 << 20,
            buffer_bytes_max: 512 << 20,
            header_bytes_max: 32 << 10,
            header_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(600),
            statement_timeout: Some(Duration::from_secs(60)),
            transaction_timeout: Duration::from_secs(60),
            idempotency_lifetime: Duration::from_secs(24 * 3600),
            drain_timeout: Duration::from_secs(10),
            limits: TenantLimits::default(),
            log_format: LogFormat::Text,
            log_level: "info".to_owned(),
            slow_query: Duration::from_secs(1),
        }
    }
}

impl Config {
    /// What is wrong with the whole, where each part is right.
    ///
    /// # Errors
    /// A message that says what to do.
    pub fn check(&self) -> Result<(), String> {
        if self.tls_certificate.is_some() != self.tls_key.is_some() {
            return Err("tls.certificate and tls.key: expected both or none".to_owned());
        }
        if self.threads > THREADS_MAX {
            return Err(format!("threads: expected {THREADS_MAX} at most"));
        }
        let counts = [
            ("connections_max", self.connections_max),
            ("request_bytes_max", self.request_bytes_max),
            ("header_bytes_max", self.header_bytes_max),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(format!("{name}: expected at least 1"));
        }
        if self.buffer_bytes_max / 2 < self.request_bytes_max {
            return Err("buffer_bytes_max: expected at least twice request_bytes_max".to_owned());
        }
        self.check_cors()?;
        let named =
            [("wire", self.wire_listen), ("resp", self.resp_listen), ("http", self.http_listen)];
        for (name, address) in named {
            let Some(address) = address.filter(|a| !a.ip().is_loopback()) else { continue };
            if self.insecure_listen || self.tls_certificate.is_some() {
                continue;
            }
            return Err(format!(
                "{name}.listen: {address} is reached from other machines, without encryption: \
                 expected an address of this machine alone, tls.certificate and tls.key, or \
                 insecure_listen = true"
            ));
        }
        let listens = named.iter().any(|(_, a)| a.is_some()) || self.wire_unix.is_some();
        if !listens {
            return Err("nothing to listen on: expected one of wire.listen, wire.unix, \
                        resp.listen, http.listen"
                .to_owned());
        }
        Ok(())
    }

    /// Refuses what no browser does, and what lets every page do everything.
    fn check_cors(&self) -> Result<(), String> {
        let is_listed = matches!(self.cors_origins, Some(Origins::Listed(_)));
        if self.cors_credentials && !is_listed {
            return Err("http.cors_credentials: expected origins in http.cors_origins: browsers \
                        send credentials only where the origin is named"
                .to_owned());
        }
        if self.trust_local && self.cors_origins == Some(Origins::Any) {
            return Err("http.cors_origins: expected a list of origins, or trust_local = false: \
                        with both, every page that is open on this machine may do everything"
                .to_owned());
        }
        Ok(())
    }
}
