//! A server of keplor's shape, and one of axum that answers a constant.
//!
//! An event is parsed and goes to one writer. That flushes when 256 events wait, or every 50 ms:
//! each flush is a file of its own, which is synced. Who asked for a durable event waits for that.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::time::{MissedTickBehavior, interval};

use crate::Result;

/// How often a batch is flushed that is not full.
const TICK: Duration = Duration::from_millis(50);
/// Events of a full batch.
const BATCH: usize = 256;
/// Events that wait at the most.
const QUEUE_MAX: usize = 262_144;

/// The paths of the stand-in, and of the constant.
pub(super) const DURABLE: &str = "/v1/events";
pub(super) const ASYNC: &str = "/v1/events/async";
pub(super) const CONSTANT: &str = "/constant";

type Waiter = oneshot::Sender<()>;

/// What waits for the next flush.
#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    events: usize,
    waiting: Vec<Waiter>,
}

struct Writer {
    queue: Mutex<Queue>,
    full: Notify,
    dir: PathBuf,
    flushed: AtomicU64,
}

/// A server that is running on the current runtime.
pub(super) struct StandIn {
    pub address: SocketAddr,
    writer: Arc<Writer>,
}

impl StandIn {
    /// Starts it, with files in a directory.
    pub async fn start(dir: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&dir)?;
        let (queue, full, flushed) = (Mutex::default(), Notify::new(), AtomicU64::new(0));
        let writer = Arc::new(Writer { queue, full, dir, flushed });
        let constant =
            |_body: Bytes| async { (StatusCode::CREATED, [(CONTENT_TYPE, "text/plain")], "{}") };
        let router = Router::new()
            .route(DURABLE, post(durable))
            .route(ASYNC, post(later))
            .with_state(Arc::clone(&writer))
            .route(CONSTANT, post(constant));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(async { axum::serve(listener, router).await });
        tokio::spawn(flush_all(Arc::clone(&writer)));
        Ok(Self { address, writer })
    }

    /// How many events were flushed.
    pub fn flushed(&self) -> u64 {
        self.writer.flushed.load(Ordering::Relaxed)
    }
}

impl Writer {
    /// Adds the events of a body; false when too many wait.
    fn push(&self, body: &[u8], waiter: Option<Waiter>) -> std::result::Result<bool, StatusCode> {
        let parsed = serde_json::from_slice::<serde_json::Value>(body);
        let events = match parsed.map_err(|_| StatusCode::BAD_REQUEST)? {
            serde_json::Value::Array(events) => events,
            event => vec![event],
        };
        let mut encoded = Vec::with_capacity(body.len());
        for event in &events {
            serde_json::to_writer(&mut encoded, event).map_err(|_| StatusCode::BAD_REQUEST)?;
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.events >= QUEUE_MAX {
            return Ok(false);
        }
        queue.bytes.extend_from_slice(&encoded);
        queue.events += events.len();
        queue.waiting.extend(waiter);
        if queue.events >= BATCH {
            self.full.notify_one();
        }
        Ok(true)
    }

    fn flush(&self) -> std::io::Result<()> {
        let queue = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *queue)
        };
        if queue.events == 0 {
            return Ok(());
        }
        let number = self.flushed.fetch_add(queue.events as u64, Ordering::Relaxed);
        let mut file = File::create(self.dir.join(format!("flush-{number}")))?;
        file.write_all(&queue.bytes)?;
        file.sync_data()?;
        for waiter in queue.waiting {
            // Who asked may be gone.
            let _ = waiter.send(());
        }
        Ok(())
    }
}

async fn flush_all(writer: Arc<Writer>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = writer.full.notified() => {}
        }
        let own = Arc::clone(&writer);
        if !matches!(tokio::task::spawn_blocking(move || own.flush()).await, Ok(Ok(()))) {
            return;
        }
    }
}

async fn durable(State(writer): State<Arc<Writer>>, body: Bytes) -> StatusCode {
    let (waiter, done) = oneshot::channel();
    match writer.push(&body, Some(waiter)) {
        Ok(true) => {}
        Ok(false) => return StatusCode::SERVICE_UNAVAILABLE,
        Err(status) => return status,
    }
    if done.await.is_ok() { StatusCode::CREATED } else { StatusCode::INTERNAL_SERVER_ERROR }
}

async fn later(State(writer): State<Arc<Writer>>, body: Bytes) -> StatusCode {
    match writer.push(&body, None) {
        Ok(true) => StatusCode::ACCEPTED,
        Ok(false) => StatusCode::SERVICE_UNAVAILABLE,
        Err(status) => status,
    }
}
