//! What all tails of a server share: what wakes them, how many there are, and their end.
//!
//! ```text
//!  commit ──► database: something is visible or durable ──► feed: asked (no waiting)
//!                                                             │ one task a database
//!                                       every 2 to 5 ms at most └──► moved ──► all its tails
//! ```
//!
//! A tail has no thread. One that is woken looks whether its stream may have something for it, a
//! few loads, and goes on waiting where it has not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use esker::Stream;
use tokio::sync::{Notify, watch};

use crate::tenant::{Tenant, TenantName};
use crate::{Code, Error, Result};

/// Commits that come within this time wake tails once: the longer, the more there are.
const PACE_MIN: Duration = Duration::from_millis(2);
const PACE_MAX: Duration = Duration::from_millis(5);
/// What is added for each tail.
const PACE_EACH: Duration = Duration::from_nanos(500);

/// Wakes the tails of one database.
#[derive(Debug)]
struct Feed {
    asked: Notify,
    moved: watch::Sender<u64>,
    is_over: AtomicBool,
}

impl Feed {
    fn start(stream: &Stream) -> Arc<Self> {
        let (moved, _) = watch::channel(0);
        let feed = Arc::new(Self { asked: Notify::new(), moved, is_over: AtomicBool::new(false) });
        let asked = Arc::downgrade(&feed);
        stream.on_commits(move || {
            if let Some(feed) = asked.upgrade() {
                feed.asked.notify_one();
            }
        });
        tokio::spawn(Arc::clone(&feed).run());
        feed
    }

    async fn run(self: Arc<Self>) {
        loop {
            self.asked.notified().await;
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            self.moved.send_modify(|count| *count += 1);
            let count = u32::try_from(self.moved.receiver_count()).unwrap_or(u32::MAX);
            let pace = PACE_EACH.saturating_mul(count).clamp(PACE_MIN, PACE_MAX);
            tokio::time::sleep(pace).await;
        }
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.asked.notify_one();
    }
}

/// The feed of each database that has had a tail.
type Feeds = BTreeMap<TenantName, (Arc<Tenant>, Arc<Feed>)>;

/// The tails of a server.
#[derive(Debug)]
pub(crate) struct Tails {
    feeds: Mutex<Feeds>,
    count: Arc<AtomicUsize>,
    /// As many as there may be connections: HTTP/2 has several in one.
    most: usize,
    stop: watch::Sender<bool>,
}

/// The place of one tail, for as long as it is there.
#[derive(Debug)]
pub(super) struct TailPlace {
    count: Arc<AtomicUsize>,
    /// Those of its database.
    of_tenant: Arc<AtomicU64>,
    moved: watch::Receiver<u64>,
    stop: watch::Receiver<bool>,
}

impl Drop for TailPlace {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
        self.of_tenant.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Tails {
    /// None yet, and at most so many.
    pub fn new(most: usize) -> Self {
        let (stop, _) = watch::channel(false);
        Self { feeds: Mutex::default(), count: Arc::default(), most, stop }
    }

    /// A place for a tail of a database.
    ///
    /// # Errors
    /// `LimitExceeded` where there are too many.
    pub(super) fn take(&self, tenant: &Arc<Tenant>, stream: &Stream) -> Result<TailPlace> {
        let count = Arc::clone(&self.count);
        let before = count.fetch_add(1, Ordering::SeqCst);
        let of_tenant = Arc::clone(tenant.usage.tails());
        of_tenant.fetch_add(1, Ordering::Relaxed);
        let (moved, stop) = (self.feed(tenant, stream).moved.subscribe(), self.stop.subscribe());
        let place = TailPlace { count, of_tenant, moved, stop };
        if before >= self.most {
            let message = format!("{before} tails are open, and no more than {}", self.most);
            return Err(Error::new(Code::LimitExceeded, format!("{message} may be")));
        }
        Ok(place)
    }

    fn feed(&self, tenant: &Arc<Tenant>, stream: &Stream) -> Arc<Feed> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, feed)) = feeds.get(&tenant.name) {
            if Arc::ptr_eq(known, tenant) {
                return Arc::clone(feed);
            }
            // A database of the same name that was removed since.
            feed.end();
        }
        let feed = Feed::start(stream);
        feeds.insert(tenant.name.clone(), (Arc::clone(tenant), Arc::clone(&feed)));
        feed
    }

    /// Ends all of them.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *feeds).values().for_each(|(_, feed)| feed.end());
    }
}

impl TailPlace {
    /// Notes that everything so far is about to be looked at.
    pub fn look(&mut self) {
        self.moved.borrow_and_update();
    }

    /// Waits for commits since the last look; false once the server stops.
    pub async fn moved(&mut self) -> bool {
        if *self.stop.borrow() {
            return false;
        }
        tokio::select! {
            moved = self.moved.changed() => moved.is_ok(),
            _ = self.stop.changed() => false,
        }
    }

    /// Whether the server stops.
    pub fn is_over(&self) -> bool {
        *self.stop.borrow()
    }
}
