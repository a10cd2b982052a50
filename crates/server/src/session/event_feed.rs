//! What wakes the tails of a database.
//!
//! ```text
//!  commit ──► database: something is visible or durable ──► feed: asked (no waiting)
//!                                                             │ one task a database
//!                                       every 2 to 5 ms at most └──► moved ──► all its tails
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker::Stream;
use tokio::sync::{Notify, watch};

/// Commits that come within this time wake tails once: the longer, the more there are.
const PACE_MIN: Duration = Duration::from_millis(2);
const PACE_MAX: Duration = Duration::from_millis(5);
/// What is added for each tail.
const PACE_EACH: Duration = Duration::from_nanos(500);

/// Wakes the tails of one database.
#[derive(Debug)]
pub struct EventFeed {
    asked: Notify,
    moved: watch::Sender<u64>,
    is_over: AtomicBool,
}

impl EventFeed {
    /// That of the database of a stream. Within a runtime.
    #[must_use]
    pub fn start(stream: &Stream) -> Arc<Self> {
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

    /// Tells of commits from now on.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
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

    /// Ends its task.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.asked.notify_one();
    }
}
