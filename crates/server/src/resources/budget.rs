//! One budget of memory for what arrives and what leaves, of all connections.
//!
//! Whatever waits in memory because somebody has not sent its rest, or does not read, has a share
//! of the budget as large as it is. What is too large for what is left waits: its connection reads
//! no further, and so its client cannot send. Shares above [`SMALL_BYTES`] leave an eighth of the
//! budget to others, so that small requests go on beside large ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::{Mutex, Notify};

use crate::{Code, Error, Result};

/// The most bytes of a share that may take the last eighth of the budget.
pub const SMALL_BYTES: usize = 64 << 10;

/// The memory that requests and answers of all connections may take.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
    waiting: AtomicUsize,
    freed: Notify,
    /// Those that wait, in the order of coming.
    queue: Mutex<()>,
}

/// A part of the budget, given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

/// Bytes, and their share.
struct Held {
    bytes: Vec<u8>,
    _share: Share,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Counts those that wait.
struct Waiting<'b>(&'b AtomicUsize);

impl<'b> Waiting<'b> {
    fn new(waiting: &'b AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::SeqCst);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Budget {
    /// Of so many bytes.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Self> {
        let (used, waiting) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { limit, used, waiting, freed: Notify::new(), queue: Mutex::new(()) })
    }

    /// The most bytes of all shares together.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The most bytes of one share.
    #[must_use]
    pub fn share_max(&self) -> usize {
        self.limit - self.limit / 8
    }

    /// The bytes of all shares now.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// A share of nothing yet.
    #[must_use]
    pub fn share(self: &Arc<Self>) -> Share {
        Share { budget: Arc::clone(self), bytes: 0 }
    }

    fn add(&self, more: usize, most: usize) -> bool {
        let (set, get) = (Ordering::SeqCst, Ordering::SeqCst);
        let added = |used: usize| used.checked_add(more).filter(|sum| *sum <= most);
        self.used.fetch_update(set, get, added).is_ok()
    }

    fn free(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.freed.notify_waiters();
        }
    }
}

impl Share {
    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Has so many bytes from now on; false, and as before, when they are not to be had.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let is_small = bytes <= SMALL_BYTES;
        if bytes > self.bytes && !is_small && self.budget.waiting.load(Ordering::SeqCst) > 0 {
            // Others were there before.
            return false;
        }
        self.try_resize(bytes)
    }

    fn try_resize(&mut self, bytes: usize) -> bool {
        let budget = &self.budget;
        let most = if bytes <= SMALL_BYTES { budget.limit } else { budget.share_max() };
        match bytes.checked_sub(self.bytes) {
            Some(more) => {
                if more > 0 && !budget.add(more, most) {
                    return false;
                }
            }
            None => budget.free(self.bytes - bytes),
        }
        self.bytes = bytes;
        true
    }

    /// Waits until it can have so many bytes.
    ///
    /// # Errors
    /// `LimitExceeded` when that takes too long, or they are more than one share may have.
    pub async fn wait(&mut self, bytes: usize, at_most: Duration) -> Result<()> {
        if self.resize(bytes) {
            return Ok(());
        }
        let budget = Arc::clone(&self.budget);
        let exceeded = || {
            let (used, limit) = (budget.used(), budget.limit);
            Error::new(
                Code::LimitExceeded,
                format!(
                    "{bytes} bytes: requests and answers of all connections have {used} bytes, \
                     and at most {limit}: wait and retry"
                ),
            )
        };
        if bytes > budget.share_max() {
            return Err(exceeded());
        }
        let _waiting = Waiting::new(&budget.waiting);
        let waited = async {
            // What is small has room that the large cannot take, and need not wait behind them.
            let _turn = match bytes > SMALL_BYTES {
                true => Some(budget.queue.lock().await),
                false => None,
            };
            loop {
                let freed = budget.freed.notified();
                tokio::pin!(freed);
                // From here on nothing that is given back is missed.
                freed.as_mut().enable();
                if self.try_resize(bytes) {
                    return;
                }
                freed.await;
            }
        };
        tokio::time::timeout(at_most, waited).await.map_err(|_| exceeded())
    }

    /// The same on a thread where waiting does no harm, within a runtime.
    ///
    /// # Errors
    /// As for [`Share::wait`].
    pub fn wait_here(&mut self, bytes: usize, at_most: Duration) -> Result<()> {
        if self.resize(bytes) {
            return Ok(());
        }
        tokio::runtime::Handle::current().block_on(self.wait(bytes, at_most))
    }

    /// The most bytes that it may have.
    #[must_use]
    pub fn most(&self) -> usize {
        self.budget.share_max()
    }

    /// Another of the same budget, of nothing yet.
    #[must_use]
    pub fn sibling(&self) -> Self {
        self.budget.share()
    }

    /// Bytes that have it for as long as they are there.
    #[must_use]
    pub fn hold(self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Held { bytes, _share: self })
    }

    /// What another has becomes part of this.
    pub fn absorb(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// All it has, as a share of its own.
    #[must_use]
    pub fn take(&mut self) -> Self {
        Self { budget: Arc::clone(&self.budget), bytes: std::mem::take(&mut self.bytes) }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.free(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn shares_are_given_back() {
        let budget = Budget::new(1 << 20);
        let mut share = budget.share();
        assert!(share.resize(900_000));
        let mut other = budget.share();
        assert!(!other.resize(100_000), "an eighth is for small ones");
        assert!(other.resize(60_000) && !other.resize(200_000));
        assert_eq!((budget.used(), other.bytes()), (960_000, 60_000));
        assert!(share.resize(100_000) && other.resize(200_000));
        share.absorb(other);
        assert_eq!((budget.used(), share.bytes()), (300_000, 300_000));
        drop(share.take());
        assert_eq!((budget.used(), share.bytes()), (0, 0));
    }

    #[tokio::test]
    async fn who_waits_gets_what_is_given_back_or_an_error() {
        let budget = Budget::new(1 << 20);
        let (mut first, mut second) = (budget.share(), budget.share());
        assert!(first.resize(800_000));
        let e = second.wait(500_000, SHORT).await.unwrap_err();
        assert_eq!(e.code(), Code::LimitExceeded);
        assert_eq!((budget.used(), second.bytes()), (800_000, 0));
        let waits = async { second.wait(500_000, Duration::from_secs(10)).await };
        let gives = async {
            tokio::task::yield_now().await;
            let mut third = budget.share();
            assert!(!third.resize(70_000), "the one before it waits");
            assert!(third.resize(1_000));
            drop(first);
        };
        let (waited, ()) = tokio::join!(waits, gives);
        assert_eq!((waited, budget.used()), (Ok(()), 500_000));
        let e = second.wait(1 << 20, Duration::from_secs(10)).await.unwrap_err();
        assert!(e.message().starts_with("1048576 bytes:"), "{e}");
    }
}
