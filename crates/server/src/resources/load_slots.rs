//! How many loads there may be at once.
//!
//! A load has a thread for as long as its rows take to come, which is up to the client.
//! Queries, syncs and all else that waits have threads beside those of as many loads as there may
//! be, and no tenant has those of all. One too many waits for its turn, without a thread: what its
//! client sends meanwhile stays on the way.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::{Code, Error, Result};

/// The most loads of a server at once; its runtime needs threads for what waits beside them.
pub const LOADS_MAX: usize = 64;
/// The most loads of one tenant at once.
pub const TENANT_LOADS_MAX: usize = LOADS_MAX / 2;

/// The places of loads.
#[derive(Clone, Debug)]
pub struct Loads {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
}

impl Default for Loads {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(LOADS_MAX)),
            own: Arc::new(Semaphore::new(TENANT_LOADS_MAX)),
        }
    }
}

impl Loads {
    /// Those of another tenant of the same server.
    pub(crate) fn of_another(&self) -> Self {
        Self { all: Arc::clone(&self.all), ..Self::default() }
    }

    /// Takes a place among them, behind those who came before; waits so long at most.
    ///
    /// # Errors
    /// `LimitExceeded` when there is none until then.
    pub async fn begin(&self, patience: Duration) -> Result<LoadPermit> {
        let taken = tokio::time::timeout(patience, async {
            // First its own, so that who waits for that keeps no place of others.
            let own = Arc::clone(&self.own).acquire_owned().await?;
            let all = Arc::clone(&self.all).acquire_owned().await?;
            Ok::<_, AcquireError>(LoadPermit { _own: own, _all: all })
        });
        taken.await.ok().and_then(std::result::Result::ok).ok_or_else(|| {
            let (own, all) = (TENANT_LOADS_MAX, LOADS_MAX);
            let message = format!(
                "other loads are under way, of which there may be {own} of a tenant and {all} of \
                 the server at once: wait and retry"
            );
            Error::new(Code::LimitExceeded, message)
        })
    }

    /// A place, if there is one now.
    #[must_use]
    pub fn try_begin(&self) -> Option<LoadPermit> {
        let own = Arc::clone(&self.own).try_acquire_owned().ok()?;
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(LoadPermit { _own: own, _all: all })
    }
}

/// Held by a load while it is under way.
#[derive(Debug)]
pub struct LoadPermit {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tenant_has_the_places_of_all() {
        let first = Loads::default();
        let (second, third) = (first.of_another(), first.of_another());
        let take = |loads: &Loads| (0..LOADS_MAX).map_while(|_| loads.try_begin()).collect();
        let of_first: Vec<_> = take(&first);
        assert_eq!(of_first.len(), TENANT_LOADS_MAX);
        let of_second: Vec<_> = take(&second);
        assert_eq!(of_second.len(), TENANT_LOADS_MAX);
        assert!(third.try_begin().is_none());
        drop(of_first);
        assert!(third.try_begin().is_some() && second.try_begin().is_none());
        drop((of_second, third));
        assert_eq!(first.all.available_permits(), LOADS_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn one_too_many_waits_for_its_turn() {
        let loads = Loads::default();
        let mut others: Vec<_> = (0..TENANT_LOADS_MAX).map_while(|_| loads.try_begin()).collect();
        let patience = Duration::from_secs(30);
        let e = loads.begin(patience).await.unwrap_err();
        assert_eq!(e.code(), Code::LimitExceeded);
        let waiting = loads.clone();
        let waits = tokio::spawn(async move { waiting.begin(patience).await });
        tokio::time::sleep(patience / 2).await;
        assert!(!waits.is_finished());
        others.pop();
        waits.await.unwrap().unwrap();
        assert!(loads.try_begin().is_some(), "its place is given back");
    }
}
