//! Starting, serving, stopping.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::auth::access_control::AccessControl;
use crate::auth::authenticator::Authenticator;
use crate::auth::tls::Tls;
use crate::protocol::binary;
use crate::protocol::binary::{Encrypted, Stream};
use crate::protocol::resp;
use crate::protocol::tails::Tails;
use crate::resources::budget::Budget;
use crate::resources::spin::Spin;
use crate::shared::{ServerConfig, Shared};
use crate::{Code, Error, Result};

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            unix: None,
            resp_listen: None,
            resp_buckets: vec!["db0".to_owned()],
            connections_max: 10_000,
            request_bytes_max: esker_wire::frame::PAYLOAD_BYTES_MAX,
            idle_timeout: Duration::from_secs(600),
            stall_timeout: Duration::from_secs(30),
            transaction_timeout: Duration::from_secs(60),
            tls: None,
            is_plain_allowed: true,
            is_plain_resp_allowed: true,
            budget: Budget::new(512 << 20),
            operations: Arc::new(binary::frame_operations()),
            line_operations: Arc::new(binary::line_operations()),
            resp_operations: Arc::new(resp::operations()),
            idempotency_lifetime: Duration::from_secs(24 * 3600),
            drain: Duration::from_secs(10),
        }
    }
}

impl ServerConfig {
    /// By the configuration of access control; what it counts is among its metrics. Where there is
    /// a certificate, plain connections are for addresses of this machine alone.
    ///
    /// # Errors
    /// What is wrong with the certificate.
    pub fn of(access_control: &AccessControl) -> Result<Self> {
        let config = &access_control.config;
        let is_plain_allowed = |address: Option<SocketAddr>| {
            address.is_none_or(|address| address.ip().is_loopback()) || config.insecure_listen
        };
        let this = Self {
            tls: Tls::open(config, &access_control.environment, &[])?,
            is_plain_allowed: is_plain_allowed(config.wire_listen),
            is_plain_resp_allowed: is_plain_allowed(config.resp_listen),
            listen: config.wire_listen,
            unix: config.wire_unix.clone(),
            resp_listen: config.resp_listen,
            resp_buckets: config.resp_buckets.clone(),
            connections_max: config.connections_max,
            request_bytes_max: config.request_bytes_max,
            idle_timeout: config.idle_timeout,
            stall_timeout: config.stall_timeout,
            transaction_timeout: config.transaction_timeout,
            idempotency_lifetime: config.idempotency_lifetime,
            drain: config.drain_timeout,
            budget: Arc::clone(&access_control.budget),
            ..Self::default()
        };
        access_control.metrics.add(&this.operations);
        access_control.metrics.add(&this.line_operations);
        if this.resp_listen.is_some() {
            access_control.metrics.add(&this.resp_operations);
        }
        Ok(this)
    }
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    address: Option<SocketAddr>,
    resp_address: Option<SocketAddr>,
    listeners: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts to listen. Within a runtime.
    ///
    /// # Errors
    /// `Unavailable` when an address cannot be had.
    pub async fn start(
        config: ServerConfig,
        authenticator: Arc<dyn Authenticator>,
    ) -> Result<Self> {
        let (stop, stopping) = watch::channel(false);
        let (connections, cursors) = (AtomicUsize::new(0), Arc::default());
        let spin = Spin::default();
        let tails = Arc::new(Tails::new(config.connections_max));
        let shared = Shared { config, authenticator, connections, cursors, spin, tails, stopping };
        let shared = Arc::new(shared);
        let mut server =
            Self { shared, stop, address: None, resp_address: None, listeners: Vec::new() };
        if let Some(address) = server.shared.config.listen {
            server.address = Some(server.listen(address, Protocol::Wire).await?);
        }
        if let Some(address) = server.shared.config.resp_listen {
            server.resp_address = Some(server.listen(address, Protocol::Resp).await?);
        }
        if let Some(path) = &server.shared.config.unix {
            let failed = |e| Error::new(Code::Unavailable, format!("{}: {e}", path.display()));
            let listener = UnixListener::bind(path).map_err(failed)?;
            server.listeners.push(tokio::spawn(accept_unix(listener, Arc::clone(&server.shared))));
        }
        Ok(server)
    }

    async fn listen(&mut self, address: SocketAddr, protocol: Protocol) -> Result<SocketAddr> {
        let failed = |e| Error::new(Code::Unavailable, format!("{address}: {e}"));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (protocol_name, tls) = (protocol.name(), &self.shared.config.tls);
        let is_encrypted = tls.is_some();
        tracing::info!(%address, protocol = protocol_name, is_encrypted, "listens");
        let accept = accept_tcp(listener, Arc::clone(&self.shared), protocol);
        self.listeners.push(tokio::spawn(accept));
        Ok(address)
    }

    /// Where it listens for Redis's protocol.
    #[must_use]
    pub fn resp_address(&self) -> Option<SocketAddr> {
        self.resp_address
    }

    /// Where it listens by TCP.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// What connections are encrypted with.
    #[must_use]
    pub fn tls(&self) -> Option<&Arc<Tls>> {
        self.shared.config.tls.as_ref()
    }

    /// How many connections there are.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Stops: no more connections, no more requests; those under way are answered, for as long as
    /// [`ServerConfig::drain`] lets them.
    pub async fn stop(self) {
        tracing::info!(protocol = "wire", connections = self.connections(), "stops");
        self.stop.send_replace(true);
        self.shared.tails.stop();
        for listener in self.listeners {
            listener.abort();
            let _ = listener.await;
        }
        if let Some(path) = &self.shared.config.unix {
            // New connections are refused from now on.
            let _ = esker_vfs::Environment::os().files.remove(path);
        }
        let emptied = async {
            while self.shared.connections.load(Ordering::Relaxed) > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let drained = tokio::time::timeout(self.shared.config.drain, emptied).await;
        let left = self.shared.connections.load(Ordering::Relaxed);
        tracing::info!(protocol = "wire", is_drained = drained.is_ok(), left, "stopped");
    }
}

/// What is spoken where it listens.
#[derive(Clone, Copy, Debug)]
enum Protocol {
    Wire,
    Resp,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Self::Wire => "wire",
            Self::Resp => "resp",
        }
    }
}

async fn accept_tcp(listener: TcpListener, shared: Arc<Shared>, protocol: Protocol) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                serve(Stream::Tcp(stream), &shared, protocol);
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn accept_unix(listener: UnixListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => serve(Stream::Unix(stream), &shared, Protocol::Wire),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Counts a connection for as long as it is there.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve(stream: Stream, shared: &Arc<Shared>, protocol: Protocol) {
    let before = shared.connections.fetch_add(1, Ordering::Relaxed);
    let counted = Counted(Arc::clone(shared));
    if before >= shared.config.connections_max {
        let protocol = protocol.name();
        tracing::warn!(protocol, connections = before, "a connection was refused");
        return;
    }
    tokio::spawn(async move {
        let shared = &counted.0;
        // What went wrong with a socket concerns its client alone.
        let _ = match (shake_hands(stream, shared, protocol).await, protocol) {
            (Ok(stream), Protocol::Resp) => resp::serve(stream, shared).await,
            (Ok(stream), Protocol::Wire) => binary::serve(stream, shared).await,
            (Err(e), _) => Err(e),
        };
    });
}

/// The first byte of a client that speaks TLS.
const HANDSHAKE: u8 = 22;

/// What a client gets that does not encrypt where it has to.
const PLAIN_WIRE: &[u8] =
    b"{\"error\":{\"code\":\"invalid_request\",\"message\":\"expected TLS: this \
    port is reached from other machines\"}}\n";
/// The same in Redis's protocol.
const PLAIN_RESP: &[u8] = b"-ERR expected TLS: this port is reached from other machines\r\n";

/// The same connection, encrypted where its first byte asks for that.
async fn shake_hands(stream: Stream, shared: &Shared, protocol: Protocol) -> io::Result<Stream> {
    let config = &shared.config;
    let Some(tls) = &config.tls else { return Ok(stream) };
    let Stream::Tcp(mut socket) = stream else { return Ok(stream) };
    let patience = config.stall_timeout;
    // Clients of Redis's protocol keep connections that have sent nothing yet.
    let (until_first, is_plain_allowed, refusal) = match protocol {
        Protocol::Wire => (patience, config.is_plain_allowed, PLAIN_WIRE),
        Protocol::Resp => (config.idle_timeout, config.is_plain_resp_allowed, PLAIN_RESP),
    };
    let mut first = [0];
    let mut stopping = shared.stopping.clone();
    tokio::select! {
        peeked = tokio::time::timeout(until_first, socket.peek(&mut first)) => { peeked??; }
        _ = stopping.wait_for(|stops| *stops) => {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
    }
    if first != [HANDSHAKE] {
        if is_plain_allowed {
            return Ok(Stream::Tcp(socket));
        }
        socket.write_all(refusal).await?;
        return Err(io::ErrorKind::InvalidData.into());
    }
    let refresh = Arc::clone(tls);
    if let Ok(Err(e)) = tokio::task::spawn_blocking(move || refresh.refresh()).await {
        tracing::error!(error = %e, "the certificate was not read again");
    }
    let accepted = tokio::time::timeout(patience, tls.acceptor().accept(socket)).await??;
    Ok(Stream::Tls(Box::new(Encrypted::new(accepted))))
}
