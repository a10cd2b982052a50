//! How far commits are applied, durable and visible (protocol rule 2).
//!
//! `visible = min(published, max(durable, newest Async commit that returned))`.
//!
//! `published` and the other two move on different threads. Each first stores its own and then
//! reads the others', all sequentially consistent, so whichever comes second sees both, and
//! `visible` is never left behind.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_log::sabotage::Bug;
use esker_vfs::sync::{ArcSwap, AtomicBool, AtomicU64};

/// Waits for commits: tails, followers. It is called on the thread that moved a watermark, which
/// may hold the commit lock, once for several commits: it must neither wait nor change anything.
pub(crate) trait Observer: Send + Sync {
    /// Everything up to a commit is visible.
    fn after_visible(&self, commit: u64);

    /// Everything up to a commit is durable; `frames` is what the log wrote for the newest of
    /// these commits, as it lies in the file, and empty in a database in memory.
    fn after_durable(&self, commit: u64, frames: &[u8]);
}

/// The watermarks of one database.
pub(crate) struct Watermarks {
    has_observers: AtomicBool,
    observers: ArcSwap<Vec<Arc<dyn Observer>>>,
    published: AtomicU64,
    durable: AtomicU64,
    revealed: AtomicU64,
    visible: AtomicU64,
}

impl Watermarks {
    /// All at the commit that recovery ended with.
    pub fn new(commit: u64) -> Self {
        Self {
            has_observers: AtomicBool::new(false),
            observers: ArcSwap::new(Arc::new(Vec::new())),
            published: AtomicU64::new(commit),
            durable: AtomicU64::new(commit),
            revealed: AtomicU64::new(commit),
            visible: AtomicU64::new(commit),
        }
    }

    /// Adds an observer, which stays.
    #[cfg_attr(not(test), expect(dead_code, reason = "tails and followers register here"))]
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        let mut all = (**self.observers.load()).clone();
        all.push(observer);
        self.observers.store(Arc::new(all));
        self.has_observers.store(true, Ordering::SeqCst);
    }

    /// The newest commit that reads see.
    pub fn visible(&self) -> u64 {
        self.visible.load(Ordering::SeqCst)
    }

    /// The newest commit that is applied.
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::SeqCst)
    }

    /// Commit `commit` has been applied, and so have all before it. Under the commit lock.
    pub fn publish(&self, commit: u64) {
        debug_assert!(commit >= self.published(), "commits are applied in order");
        self.published.store(commit, Ordering::SeqCst);
        self.advance();
    }

    /// The log has made everything up to `commit` durable, the newest of it by these frames.
    pub fn make_durable(&self, commit: u64, frames: &[u8]) {
        self.durable.fetch_max(commit, Ordering::SeqCst);
        self.advance();
        self.tell(|observer| observer.after_durable(commit, frames));
    }

    /// An Async commit returns, and reveals every lower one.
    pub fn reveal(&self, commit: u64) {
        self.revealed.fetch_max(commit, Ordering::SeqCst);
        self.advance();
    }

    fn advance(&self) {
        let published = self.published.load(Ordering::SeqCst);
        let durable = self.durable.load(Ordering::SeqCst);
        let revealed = match Bug::ReadsSeeUnacknowledged.is_planted() {
            true => u64::MAX,
            false => self.revealed.load(Ordering::SeqCst),
        };
        let visible = published.min(durable.max(revealed));
        if self.visible.fetch_max(visible, Ordering::SeqCst) < visible {
            self.tell(|observer| observer.after_visible(visible));
        }
    }

    fn tell(&self, what: impl Fn(&dyn Observer)) {
        if self.has_observers.load(Ordering::SeqCst) {
            self.observers.load().iter().for_each(|observer| what(&**observer));
        }
    }
}

impl std::fmt::Debug for Watermarks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watermarks")
            .field("published", &self.published)
            .field("durable", &self.durable)
            .field("visible", &self.visible)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn visible_is_what_is_both_applied_and_acknowledged() {
        let marks = Watermarks::new(5);
        marks.publish(8);
        assert_eq!(marks.visible(), 5);
        marks.make_durable(7, &[]);
        assert_eq!(marks.visible(), 7);
        marks.make_durable(9, &[]);
        assert_eq!(marks.visible(), 8, "a durable commit that is not applied is not visible");
        marks.publish(10);
        assert_eq!(marks.visible(), 9);
        marks.reveal(10);
        assert_eq!(marks.visible(), 10);
    }

    #[test]
    fn observers_hear_of_each_move_once() {
        #[derive(Default)]
        struct Heard(Mutex<Vec<String>>);
        impl Observer for Heard {
            fn after_visible(&self, commit: u64) {
                self.0.lock().unwrap().push(format!("visible {commit}"));
            }
            fn after_durable(&self, commit: u64, frames: &[u8]) {
                self.0.lock().unwrap().push(format!("durable {commit} {frames:?}"));
            }
        }
        let (marks, heard) = (Watermarks::new(5), Arc::new(Heard::default()));
        marks.observe(Arc::clone(&heard) as Arc<dyn Observer>);
        marks.publish(6);
        marks.publish(7);
        marks.make_durable(7, &[1, 2]);
        marks.make_durable(8, &[3]);
        marks.publish(8);
        let expected = ["visible 7", "durable 7 [1, 2]", "durable 8 [3]", "visible 8"];
        assert_eq!(*heard.0.lock().unwrap(), expected);
    }
}
