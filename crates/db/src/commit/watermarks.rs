//! How far commits are applied, durable and visible (protocol rule 2).
//!
//! `visible = min(published, max(durable, newest Async commit that returned))`.
//!
//! `published` and the other two move on different threads. Each first stores its own and then
//! reads the others', all sequentially consistent, so whichever comes second sees both, and
//! `visible` is never left behind.
//!
//! # Invariants
//!
//! 1. Numbers have no gap: each commit has the number after the last. The journal gives them under
//!    the commit lock; `number` refuses another one.
//! 2. `published` never falls, and no commit is published that has no number: the pipeline
//!    publishes under the commit lock, in the order of numbers. `publish` refuses another order.
//! 3. `durable` never falls: the log reports its batches one after another; asserted by
//!    `make_durable`, where a panic poisons the log.
//! 4. `visible` never falls, and is never beyond `published`; asserted by `advance`.
//! 5. Each observer hears of rising commits, of each once: two threads may move `visible` one after
//!    the other, and tell of it in another order. Who tells has the lock of the observer.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use esker_log::sabotage::Bug;
use esker_vfs::sync::{ArcSwap, AtomicBool, AtomicU64, Mutex};

use crate::{Error, Result};

/// Waits for commits: tails, followers. It is called on the thread that moved a watermark, which
/// may hold the commit lock, once for several commits: it must neither wait nor change anything.
pub(crate) trait Observer: Send + Sync {
    /// Everything up to a commit is visible, and was not when it was called before. What is visible
    /// by now may be a later one, of which it hears next.
    fn after_visible(&self, commit: u64);

    /// Everything up to a commit is durable; `frames` is what the log wrote for the newest of
    /// these commits, as it lies in the file, and empty in a database in memory.
    fn after_durable(&self, commit: u64, frames: &[u8]);
}

/// An observer, and the newest commit that it has heard is visible.
struct Observing {
    observer: Arc<dyn Observer>,
    told: Mutex<u64>,
}

impl Observing {
    fn tell_visible(&self, commit: u64) {
        // default: an observer that panicked has heard of the commit
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told < commit {
            *told = commit;
            self.observer.after_visible(commit);
        }
    }
}

/// The watermarks of one database.
pub(crate) struct Watermarks {
    has_observers: AtomicBool,
    observers: ArcSwap<Vec<Arc<Observing>>>,
    numbered: AtomicU64,
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
            numbered: AtomicU64::new(commit),
            published: AtomicU64::new(commit),
            durable: AtomicU64::new(commit),
            revealed: AtomicU64::new(commit),
            visible: AtomicU64::new(commit),
        }
    }

    /// Adds an observer, which stays.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        let mut all = (**self.observers.load()).clone();
        all.push(Arc::new(Observing { observer, told: Mutex::new(0) }));
        self.observers.store(Arc::new(all));
        self.has_observers.store(true, Ordering::SeqCst);
    }

    /// The newest commit that reads see.
    pub fn visible(&self) -> u64 {
        self.visible.load(Ordering::SeqCst)
    }

    /// The newest commit that is on the disk, with all before it.
    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::SeqCst)
    }

    /// The newest commit that is applied.
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::SeqCst)
    }

    /// Everything up to `commit` is numbered, applied and durable. Before the first commit.
    pub fn start_at(&self, commit: u64) {
        for mark in [&self.numbered, &self.published, &self.durable] {
            mark.fetch_max(commit, Ordering::SeqCst);
        }
        self.advance();
    }

    /// The journal has given a number. Under the commit lock.
    ///
    /// # Errors
    /// `Corrupt` when it is not the one after the last.
    pub fn number(&self, commit: u64) -> Result<()> {
        let last = self.numbered.load(Ordering::Relaxed);
        if commit != last + 1 {
            let message = format!("journal: number {commit} is given after {last}");
            return Err(Error::corrupt(message));
        }
        self.numbered.store(commit, Ordering::Relaxed);
        Ok(())
    }

    /// Commit `commit` has been applied, and so have all before it. Under the commit lock.
    ///
    /// # Errors
    /// `Corrupt` when a later one is published, or it has no number.
    pub fn publish(&self, commit: u64) -> Result<()> {
        let before = self.published();
        let falls = Bug::PublishedFalls.is_planted() && before > 0;
        let commit = if falls { before - 1 } else { commit };
        if commit < before {
            let message = format!("watermarks: published falls from {before} to {commit}");
            return Err(Error::corrupt(message));
        }
        let numbered = self.numbered.load(Ordering::Relaxed);
        if commit > numbered {
            let message = format!("watermarks: commit {commit} is published, {numbered} numbered");
            return Err(Error::corrupt(message));
        }
        self.published.store(commit, Ordering::SeqCst);
        self.advance();
        Ok(())
    }

    /// The log has made everything up to `commit` durable, the newest of it by these frames.
    pub fn make_durable(&self, commit: u64, frames: &[u8]) {
        let before = self.durable.load(Ordering::SeqCst);
        let falls = Bug::DurableFalls.is_planted() && before > 0;
        let commit = if falls { before - 1 } else { commit };
        let before = self.durable.fetch_max(commit, Ordering::SeqCst);
        assert!(before <= commit, "watermarks: durable falls from {before} to {commit}");
        self.advance();
        self.tell(|observing| observing.observer.after_durable(commit, frames));
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
        let visible = visible + u64::from(Bug::VisibleBeyondPublished.is_planted());
        debug_assert!(
            visible <= self.published(),
            "watermarks: visible is {visible}, beyond published {published}"
        );
        if self.visible.fetch_max(visible, Ordering::SeqCst) < visible {
            self.tell(|observing| observing.tell_visible(visible));
        }
    }

    fn tell(&self, what: impl Fn(&Observing)) {
        if self.has_observers.load(Ordering::SeqCst) {
            self.observers.load().iter().for_each(|observing| what(observing));
        }
    }
}

impl std::fmt::Debug for Watermarks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watermarks")
            .field("numbered", &self.numbered)
            .field("published", &self.published)
            .field("durable", &self.durable)
            .field("visible", &self.visible)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commits from 6 on have numbers.
    fn numbered(through: u64) -> Watermarks {
        let marks = Watermarks::new(5);
        (6..=through).for_each(|commit| marks.number(commit).unwrap());
        marks
    }

    #[test]
    fn numbers_have_no_gap_and_published_never_falls() {
        let marks = numbered(8);
        for number in [7, 8, 10] {
            let refused = marks.number(number).unwrap_err().to_string();
            assert!(refused.contains("is given after 8"), "{refused}");
        }
        marks.publish(7).unwrap();
        for (commit, why) in [(6, "falls from 7 to 6"), (9, "9 is published, 8 numbered")] {
            let refused = marks.publish(commit).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
        assert_eq!(marks.published(), 7);
    }

    #[test]
    #[should_panic(expected = "durable falls from 5 to 4")]
    fn durable_never_falls() {
        Watermarks::new(5).make_durable(4, &[]);
    }

    #[test]
    fn visible_is_what_is_both_applied_and_acknowledged() {
        let marks = numbered(10);
        marks.publish(8).unwrap();
        assert_eq!(marks.visible(), 5);
        marks.make_durable(7, &[]);
        assert_eq!(marks.visible(), 7);
        marks.make_durable(9, &[]);
        assert_eq!(marks.visible(), 8, "a durable commit that is not applied is not visible");
        marks.publish(10).unwrap();
        assert_eq!(marks.visible(), 9);
        marks.reveal(10);
        assert_eq!(marks.visible(), 10);
    }

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

    #[test]
    fn observers_hear_of_each_move_once() {
        let (marks, heard) = (numbered(8), Arc::new(Heard::default()));
        marks.observe(Arc::clone(&heard) as Arc<dyn Observer>);
        marks.publish(6).unwrap();
        marks.publish(7).unwrap();
        marks.make_durable(7, &[1, 2]);
        marks.make_durable(8, &[3]);
        marks.publish(8).unwrap();
        let expected = ["visible 7", "durable 7 [1, 2]", "durable 8 [3]", "visible 8"];
        assert_eq!(*heard.0.lock().unwrap(), expected);
    }

    /// The thread that had moved `visible` to 7 came after the one that moved it to 9.
    #[test]
    fn an_observer_hears_of_no_commit_after_a_later_one() {
        let (marks, heard) = (numbered(9), Arc::new(Heard::default()));
        marks.observe(Arc::clone(&heard) as Arc<dyn Observer>);
        for visible in [9, 7, 9] {
            marks.tell(|observing| observing.tell_visible(visible));
        }
        assert_eq!(*heard.0.lock().unwrap(), ["visible 9"]);
    }
}
