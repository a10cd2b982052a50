//! One sync for all that wait.
//!
//! Connections apply writes without waiting, and send their answers once the commit is on the
//! disk. The sync that runs is the window in which others gather; the next begins when it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker::Database;
use esker_log::sabotage::planted;
use tokio::sync::{Notify, watch};

use crate::{Code, Error, Result};

/// How far the disk is: a commit, or what went wrong.
pub type Reached = std::result::Result<u64, String>;

/// Makes the commits of one database durable, for all who wait.
#[derive(Debug)]
pub struct Durability {
    wanted: AtomicU64,
    /// What has been synced, or could not be.
    done: AtomicU64,
    asked: Notify,
    reached: watch::Sender<Reached>,
}

impl Durability {
    /// Starts the task that syncs; it ends when the last handle but its own is gone.
    #[must_use]
    pub fn start(database: &Database) -> Arc<Self> {
        let (reached, _) = watch::channel(Ok(0));
        let (wanted, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let this = Arc::new(Self { wanted, done, asked: Notify::new(), reached });
        tokio::spawn(sync_for_all(Arc::clone(&this), database.clone()));
        this
    }

    /// Asks for a commit to be made durable.
    pub fn want(&self, commit: u64) {
        self.wanted.fetch_max(commit, Ordering::SeqCst);
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

    /// Ends the task.
    pub fn stop(&self) {
        self.wanted.store(u64::MAX, Ordering::SeqCst);
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

async fn sync_for_all(this: Arc<Durability>, database: Database) {
    loop {
        this.asked.notified().await;
        if this.wanted.load(Ordering::SeqCst) == u64::MAX {
            return;
        }
        let (syncing, database) = (Arc::clone(&this), database.clone());
        let synced = tokio::task::spawn_blocking(move || syncing.sync_while_wanted(&database));
        if let Err(e) = synced.await {
            let _ = this.reached.send_replace(Err(e.to_string()));
        }
    }
}

impl Durability {
    /// Syncs, and wakes those that wait, as long as more is wanted.
    fn sync_while_wanted(&self, database: &Database) {
        loop {
            let wanted = self.wanted.load(Ordering::SeqCst);
            if wanted == u64::MAX || wanted <= self.done.load(Ordering::Relaxed) {
                return;
            }
            if planted("answer_before_sync") {
                let _ = self.reached.send_replace(Ok(wanted));
            }
            let synced = database.sync();
            self.done.store(wanted, Ordering::Relaxed);
            let _ = self.reached.send_replace(synced.map(|()| wanted).map_err(|e| e.to_string()));
        }
    }
}
