//! How many loads there may be at once.
//!
//! A load has a thread for as long as its rows take to come, which is up to whoever sends them.
//! Queries, syncs and all else that waits have threads beside those of as many loads as there may
//! be, and no tenant has those of all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Code, Error, Result};

/// The most loads of a server at once; its runtime needs threads for what waits beside them.
pub const LOADS_MAX: usize = 64;
/// The most loads of one tenant at once.
pub const TENANT_LOADS_MAX: usize = LOADS_MAX / 2;

/// Counts loads under way.
#[derive(Debug, Default)]
pub(super) struct Loads {
    all: Arc<AtomicUsize>,
    own: Arc<AtomicUsize>,
}

impl Loads {
    /// Those of another tenant of the same server.
    pub fn of_another(&self) -> Self {
        Self { all: Arc::clone(&self.all), own: Arc::default() }
    }

    /// Takes a place among them.
    pub fn begin(&self) -> Result<LoadPermit> {
        Ok(LoadPermit {
            _own: Place::take(&self.own, TENANT_LOADS_MAX, "the tenant")?,
            _all: Place::take(&self.all, LOADS_MAX, "the server")?,
        })
    }
}

/// Held by a load while it is under way.
#[derive(Debug)]
pub struct LoadPermit {
    _own: Place,
    _all: Place,
}

#[derive(Debug)]
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(taken: &Arc<AtomicUsize>, most: usize, whose: &str) -> Result<Self> {
        let before = taken.fetch_add(1, Ordering::Relaxed);
        let place = Self(Arc::clone(taken));
        if before >= most {
            let message = format!("{whose} has {most} loads under way already: wait and retry");
            return Err(Error::new(Code::LimitExceeded, message));
        }
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tenant_has_the_places_of_all() {
        let first = Loads::default();
        let (second, third) = (first.of_another(), first.of_another());
        let take = |loads: &Loads| (0..LOADS_MAX).map_while(|_| loads.begin().ok()).collect();
        let of_first: Vec<_> = take(&first);
        assert_eq!(of_first.len(), TENANT_LOADS_MAX);
        let of_second: Vec<_> = take(&second);
        assert_eq!(of_second.len(), TENANT_LOADS_MAX);
        let e = third.begin().unwrap_err();
        assert_eq!(e.message(), "the server has 64 loads under way already: wait and retry");
        drop(of_first);
        assert!(third.begin().is_ok() && second.begin().is_err());
        drop((of_second, third));
        assert_eq!(first.all.load(Ordering::Relaxed), 0);
    }
}
