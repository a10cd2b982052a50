//! How far commits are applied, durable and visible (protocol rule 2).
//!
//! `visible = min(published, max(durable, newest Async commit that returned))`.
//!
//! `published` and the other two move on different threads. Each first stores its own and then
//! reads the others', all sequentially consistent, so whichever comes second sees both, and
//! `visible` is never left behind.

use std::sync::atomic::Ordering;

use esker_log::sabotage::planted;
use esker_vfs::sync::AtomicU64;

/// The watermarks of one database.
#[derive(Debug)]
pub(crate) struct Watermarks {
    published: AtomicU64,
    durable: AtomicU64,
    revealed: AtomicU64,
    visible: AtomicU64,
}

impl Watermarks {
    /// All at the commit that recovery ended with.
    pub fn new(commit: u64) -> Self {
        Self {
            published: AtomicU64::new(commit),
            durable: AtomicU64::new(commit),
            revealed: AtomicU64::new(commit),
            visible: AtomicU64::new(commit),
        }
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

    /// The log has made everything up to `commit` durable.
    pub fn make_durable(&self, commit: u64) {
        self.durable.fetch_max(commit, Ordering::SeqCst);
        self.advance();
    }

    /// An Async commit returns, and reveals every lower one.
    pub fn reveal(&self, commit: u64) {
        self.revealed.fetch_max(commit, Ordering::SeqCst);
        self.advance();
    }

    fn advance(&self) {
        let published = self.published.load(Ordering::SeqCst);
        let durable = self.durable.load(Ordering::SeqCst);
        let revealed = match planted("reads_see_unacknowledged") {
            true => u64::MAX,
            false => self.revealed.load(Ordering::SeqCst),
        };
        self.visible.fetch_max(published.min(durable.max(revealed)), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::Watermarks;

    #[test]
    fn visible_is_what_is_both_applied_and_acknowledged() {
        let marks = Watermarks::new(5);
        marks.publish(8);
        assert_eq!(marks.visible(), 5);
        marks.make_durable(7);
        assert_eq!(marks.visible(), 7);
        marks.make_durable(9);
        assert_eq!(marks.visible(), 8, "a durable commit that is not applied is not visible");
        marks.publish(10);
        assert_eq!(marks.visible(), 9);
        marks.reveal(10);
        assert_eq!(marks.visible(), 10);
    }
}
