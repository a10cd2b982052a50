//! Accepting connections, and serving each until it ends.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tower_service::Service;

use super::App;
use super::deadline::{Deadlines, Wait};
use super::dispatch::{self, Direct, Peer};
use crate::auth::access_control::AccessControl;
use crate::auth::tls::Tls;
use crate::{Code, Error, Result};

/// Serves HTTP until it is stopped.
#[derive(Debug)]
pub struct HttpServer {
    app: Arc<App>,
    address: SocketAddr,
    tls: Option<Arc<Tls>>,
    stop: watch::Sender<bool>,
    connections: Arc<AtomicUsize>,
    tasks: Vec<JoinHandle<()>>,
}

/// How long a connection without a request yet may still send one once the server stops. Its
/// client may have sent a request that has not come: it is answered, not cut off.
const FIRST_REQUEST_GRACE: Duration = Duration::from_secs(1);

struct Shared {
    app: Arc<App>,
    router: Router,
    direct: Option<Arc<Direct>>,
    tls: Option<Arc<Tls>>,
    stopping: watch::Receiver<bool>,
    connections: Arc<AtomicUsize>,
    /// Connections that came while the server stops.
    late: Arc<AtomicUsize>,
}

impl HttpServer {
    /// Starts to listen. Within a runtime.
    ///
    /// # Errors
    /// `Unavailable` when the address cannot be had; what is wrong with the certificate.
    pub async fn start(address: SocketAddr, access_control: Arc<AccessControl>) -> Result<Self> {
        let tls =
            Tls::open(&access_control.config, &access_control.environment, &["h2", "http/1.1"])?;
        let app = Arc::new(App::new(access_control));
        let router = dispatch::router(&app);
        let failed = |e| Error::new(Code::Unavailable, format!("{address}: {e}"));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        tracing::info!(%address, protocol = "http", is_encrypted = tls.is_some(), "listens");
        let (stop, stopping) = watch::channel(false);
        let connections = Arc::new(AtomicUsize::new(0));
        let shared = Shared {
            app: Arc::clone(&app),
            router,
            direct: Direct::of(&app).map(Arc::new),
            tls: tls.clone(),
            stopping,
            connections: Arc::clone(&connections),
            late: Arc::default(),
        };
        let tasks = vec![
            tokio::spawn(accept(listener, Arc::new(shared))),
            tokio::spawn(expire(Arc::clone(&app))),
        ];
        Ok(Self { app, address, tls, stop, connections, tasks })
    }

    /// What connections are encrypted with.
    #[must_use]
    pub fn tls(&self) -> Option<&Arc<Tls>> {
        self.tls.as_ref()
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops: no more requests; those under way are answered, for as long as the configuration lets
    /// them. Until then new connections get the answer that the server stops. Transactions that are
    /// under way are rolled back.
    pub async fn stop(self) {
        let connections = self.connections.load(Ordering::Relaxed);
        tracing::info!(protocol = "http", connections, "stops");
        self.app.stopping.store(true, Ordering::Relaxed);
        self.stop.send_replace(true);
        self.app.tails.stop();
        let emptied = async {
            while self.connections.load(Ordering::Relaxed) > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let drained =
            tokio::time::timeout(self.app.access_control.config.drain_timeout, emptied).await;
        let left = self.connections.load(Ordering::Relaxed);
        tracing::info!(protocol = "http", is_drained = drained.is_ok(), left, "stopped");
        for task in self.tasks {
            task.abort();
            let _ = task.await;
        }
        self.app.transactions.clear();
    }
}

async fn expire(app: Arc<App>) {
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        app.transactions.expire();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // The server does not wait for those that come while it stops.
                let is_late = *shared.stopping.borrow();
                let count = if is_late { &shared.late } else { &shared.connections };
                let before = count.fetch_add(1, Ordering::Relaxed);
                let counted = Counted(Arc::clone(count));
                if before < shared.app.access_control.config.connections_max {
                    tokio::spawn(serve(stream, peer, Arc::clone(&shared), (is_late, counted)));
                } else {
                    let (protocol, connections) = ("http", before);
                    tracing::warn!(%peer, protocol, connections, "a connection was refused");
                }
            }
            // Out of descriptors, most likely: others may end meanwhile.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Counts a connection for as long as it is there.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared>,
    (is_late, _counted): (bool, Counted),
) {
    let _ = stream.set_nodelay(true);
    let Some(tls) = shared.tls.clone() else {
        return serve_http(stream, peer, &shared, is_late).await;
    };
    let refresh = Arc::clone(&tls);
    let refreshed = tokio::task::spawn_blocking(move || refresh.refresh()).await;
    if let Ok(Err(e)) = refreshed {
        tracing::error!(error = %e, "the certificate was not read again");
    }
    let most = shared.app.access_control.config.header_timeout;
    if let Ok(Ok(stream)) = tokio::time::timeout(most, tls.acceptor().accept(stream)).await {
        serve_http(stream, peer, &shared, is_late).await;
    }
}

async fn serve_http<S>(stream: S, peer: SocketAddr, shared: &Arc<Shared>, is_late: bool)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let config = &shared.app.access_control.config;
    let (router, direct) = (shared.router.clone(), shared.direct.clone());
    // Holds a permit as soon as the connection has sent a request.
    let has_asked = Arc::new(Notify::new());
    let asked = Arc::clone(&has_asked);
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        asked.notify_one();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(peer.ip()));
        let direct = direct.as_ref().filter(|direct| direct.takes(&request)).cloned();
        let mut router = router.clone();
        async move {
            match direct {
                Some(direct) => Ok(direct.answer(request).await),
                None => router.call(request).await,
            }
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    let header_bytes = config.header_bytes_max.max(8 << 10);
    builder
        .http1()
        .timer(Deadlines)
        .keep_alive(!is_late)
        .header_read_timeout(config.header_timeout)
        .max_buf_size(header_bytes);
    builder
        .http2()
        .timer(Deadlines)
        .max_header_list_size(u32::try_from(header_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(256)
        .keep_alive_interval(config.stall_timeout)
        .keep_alive_timeout(config.stall_timeout);
    let stream = Timed::new(stream, config.idle_timeout, config.stall_timeout);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    if is_late {
        let _ = connection.await;
        return;
    }
    let mut stopping = shared.stopping.clone();
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = tokio::time::timeout(FIRST_REQUEST_GRACE, has_asked.notified()) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// A socket that fails once nothing moves for too long.
struct Timed<S> {
    stream: S,
    reading: Wait,
    writing: Wait,
}

impl<S> Timed<S> {
    fn new(stream: S, idle: Duration, stall: Duration) -> Self {
        Self { stream, reading: Wait::new(idle), writing: Wait::new(stall) }
    }
}

fn timed_out<T>() -> Poll<std::io::Result<T>> {
    Poll::Ready(Err(std::io::ErrorKind::TimedOut.into()))
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        match Pin::new(&mut this.stream).poll_read(context, buffer) {
            Poll::Ready(done) => {
                this.reading.end();
                Poll::Ready(done)
            }
            Poll::Pending if this.reading.is_over(context) => timed_out(),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let this = self.get_mut();
        match Pin::new(&mut this.stream).poll_write(context, bytes) {
            Poll::Ready(done) => {
                this.writing.end();
                this.reading.end();
                Poll::Ready(done)
            }
            Poll::Pending if this.writing.is_over(context) => timed_out(),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
