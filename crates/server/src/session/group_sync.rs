//! One sync for all that wait.
//!
//! Connections apply writes without waiting, and send their answers once the commit is on the
//! disk. The task here drives [`SharedSync`] on a thread that may wait.

use std::sync::{Arc, OnceLock};

use esker::{Database, SharedSync, Stream};
use tokio::sync::{Notify, watch};

use super::EventFeed;
use crate::{Code, Error, Result};

/// How far the disk is: a commit, or what went wrong.
pub type Reached = std::result::Result<u64, String>;

/// Makes the commits of one database durable, for all who wait.
#[derive(Debug)]
pub struct Durability {
    syncs: SharedSync,
    asked: Notify,
    reached: watch::Sender<Reached>,
    /// What wakes its tails, once it has had one.
    feed: OnceLock<Arc<EventFeed>>,
}

impl Durability {
    /// Starts the task that syncs; it ends when the last handle but its own is gone.
    #[must_use]
    pub fn start(database: &Database) -> Arc<Self> {
        let (reached, _) = watch::channel(Ok(0));
        let (syncs, asked) = (SharedSync::new(database), Notify::new());
        let this = Arc::new(Self { syncs, asked, reached, feed: OnceLock::new() });
        tokio::spawn(sync_for_all(Arc::clone(&this)));
        this
    }

    /// Asks for a commit to be made durable.
    pub fn want(&self, commit: u64) {
        self.syncs.want(commit);
        self.asked.notify_one();
    }

    /// Tells how far it is, whenever that changes.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Reached> {
        self.reached.subscribe()
    }

    /// Waits until a commit is durable.
    ///
    /// # Errors
    /// `OutcomeUnknown` when a sync failed.
    pub async fn wait(&self, commit: u64) -> Result<()> {
        let mut reached = self.subscribe();
        self.want(commit);
        match reached.wait_for(|reached| is_past(reached, commit)).await {
            Ok(reached) => outcome(&reached).map(drop),
            Err(_) => Err(Error::new(Code::OutcomeUnknown, "the server stops")),
        }
    }

    /// What wakes the tails of the database, which a stream is of. Within a runtime.
    #[must_use]
    pub fn feed(&self, stream: &Stream) -> Arc<EventFeed> {
        Arc::clone(self.feed.get_or_init(|| EventFeed::start(stream)))
    }

    /// Ends the task.
    pub fn stop(&self) {
        if let Some(feed) = self.feed.get() {
            feed.end();
        }
        self.syncs.stop();
        self.asked.notify_one();
    }
}

/// Waits until a commit is durable, or it is unknown whether it is.
pub(crate) async fn passed(reached: &mut watch::Receiver<Reached>, commit: u64) {
    let _ = reached.wait_for(|reached| is_past(reached, commit)).await;
}

fn is_past(reached: &Reached, commit: u64) -> bool {
    reached.as_ref().map_or(true, |at| *at >= commit)
}

/// How far the disk is, or why that is unknown.
///
/// # Errors
/// `OutcomeUnknown` when a sync failed.
pub fn outcome(reached: &Reached) -> Result<u64> {
    let failed = |e: &String| Error::new(Code::OutcomeUnknown, format!("a sync failed: {e}"));
    reached.as_ref().copied().map_err(failed)
}

async fn sync_for_all(this: Arc<Durability>) {
    loop {
        this.asked.notified().await;
        if this.syncs.is_stopped() {
            return;
        }
        let syncing = Arc::clone(&this);
        let synced = tokio::task::spawn_blocking(move || {
            syncing.syncs.run(|reached| {
                let _ = syncing.reached.send_replace(reached.map_err(|e| e.to_string()));
            });
        });
        if let Err(e) = synced.await {
            let _ = this.reached.send_replace(Err(e.to_string()));
        }
    }
}
