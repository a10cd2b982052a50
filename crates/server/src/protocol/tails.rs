//! What all tails of a server share: how many there are, and their end.
//!
//! A tail has no thread. One that [the feed](crate::session::EventFeed) of its database wakes looks
//! whether its stream may have something for it, a few loads, and goes on waiting where it has not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::watch;

use crate::session::EventFeed;
use crate::{Code, Error, Result};

/// The tails of a server.
#[derive(Debug)]
pub(crate) struct Tails {
    count: Arc<AtomicUsize>,
    /// As many as there may be connections, each of which may have several.
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
        Self { count: Arc::default(), most, stop }
    }

    /// A place for a tail of a database, by the count of those that it has.
    ///
    /// # Errors
    /// `LimitExceeded` where there are too many.
    pub(super) fn take(&self, of_tenant: &Arc<AtomicU64>, feed: &EventFeed) -> Result<TailPlace> {
        let count = Arc::clone(&self.count);
        let before = count.fetch_add(1, Ordering::SeqCst);
        let of_tenant = Arc::clone(of_tenant);
        of_tenant.fetch_add(1, Ordering::Relaxed);
        let (moved, stop) = (feed.subscribe(), self.stop.subscribe());
        let place = TailPlace { count, of_tenant, moved, stop };
        if before >= self.most {
            let message = format!("{before} tails are open, and no more than {}", self.most);
            return Err(Error::new(Code::LimitExceeded, format!("{message} may be")));
        }
        Ok(place)
    }

    /// Ends all of them.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
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

    /// Waits until the server stops, and for commits, too, where there is a use for them.
    pub async fn wait(&mut self, has_use: bool) {
        if has_use {
            self.moved().await;
        } else {
            // Where no one may stop it any more, it has.
            let _ = self.stop.wait_for(|stops| *stops).await;
        }
    }

    /// Whether the server stops.
    pub fn is_over(&self) -> bool {
        *self.stop.borrow()
    }
}
