//! How a server is set up, and what its connections share.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tokio::sync::watch;

use crate::auth::authenticator::Authenticator;
use crate::auth::tls::Tls;
use crate::monitor::metrics::Operations;
use crate::protocol::resp::Cursors;
use crate::protocol::tails::Tails;
use crate::resources::budget::Budget;
use crate::resources::spin::Spin;

/// Where a server listens, and how much it takes on.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where it listens for the wire protocol, by TCP.
    pub listen: Option<SocketAddr>,
    /// The path of its Unix socket.
    pub unix: Option<PathBuf>,
    /// Where it listens for Redis's protocol.
    pub resp_listen: Option<SocketAddr>,
    /// The buckets of the databases of Redis's protocol.
    pub resp_buckets: Vec<String>,
    /// The most connections at a time; more are closed at once.
    pub connections_max: usize,
    /// The most bytes of a request.
    pub request_bytes_max: usize,
    /// How long a connection may be without a request.
    pub idle_timeout: Duration,
    /// How long the rest of a request may take to arrive, and answers to be read.
    pub stall_timeout: Duration,
    /// How long a transaction may be silent.
    pub transaction_timeout: Duration,
    /// What connections by TCP are encrypted with; none are without it.
    pub tls: Option<Arc<Tls>>,
    /// Whether connections by TCP may be plain where others could be encrypted.
    pub is_plain_allowed: bool,
    /// The same of those that speak Redis's protocol.
    pub is_plain_resp_allowed: bool,
    /// The memory of what has arrived and what is to leave, of all connections.
    pub budget: Arc<Budget>,
    /// What is counted of requests in frames.
    pub operations: Arc<Operations>,
    /// The same of those in lines.
    pub line_operations: Arc<Operations>,
    /// The same of commands of Redis.
    pub resp_operations: Arc<Operations>,
    /// How long answers to requests with an idempotency key are kept.
    pub idempotency_lifetime: Duration,
    /// How long requests under way have when the server stops.
    pub drain: Duration,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub config: ServerConfig,
    pub authenticator: Arc<dyn Authenticator>,
    pub connections: AtomicUsize,
    /// Where scans of Redis's protocol go on.
    pub cursors: Arc<Cursors>,
    pub spin: Spin,
    /// Who waits for events of streams.
    pub tails: Arc<Tails>,
    /// True once the server stops.
    pub stopping: watch::Receiver<bool>,
}
