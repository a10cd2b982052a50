//! Snapshots that cursors go on in.
//!
//! # Invariants
//!
//! 1. At most [`HELD_MAX`] snapshots are held: `hold` lets one go for one that comes; asserted
//!    there.
//! 2. A snapshot that is held is registered, so that no merge drops what it sees: it is a
//!    [`Snapshot`] as any other.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use esker_log::sabotage::Bug;
use esker_vfs::Environment;

use crate::engine::ExpiringSnapshots;
use crate::{Error, ErrorKind, Result, Snapshot};

/// The most snapshots that are held for cursors; past it the one that was used least lately goes.
const HELD_MAX: usize = 256;

/// Snapshots that cursors go on in.
#[derive(Debug)]
pub(crate) struct HeldSnapshots {
    environment: Environment,
    hold: Duration,
    held: Mutex<BTreeMap<u128, Held>>,
}

#[derive(Debug)]
struct Held {
    snapshot: Snapshot,
    used_ns: u64,
}

impl HeldSnapshots {
    pub(crate) fn new(environment: &Environment, hold: Duration) -> Self {
        Self { environment: environment.clone(), hold, held: Mutex::default() }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<u128, Held>> {
        // default: a panic leaves what is locked as it was, or whole
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets those go that were not used lately.
    pub(crate) fn expire_now(&self) {
        let now_ns = self.environment.clock.monotonic_ns();
        // default: a hold of centuries never ends
        let hold_ns = u64::try_from(self.hold.as_nanos()).unwrap_or(u64::MAX);
        let is_old = |held: &Held| now_ns.saturating_sub(held.used_ns) > hold_ns;
        // Dropped without the lock.
        let gone: Vec<Held> = {
            let mut held = self.locked();
            let old: Vec<u128> =
                held.iter().filter(|(_, held)| is_old(held)).map(|(id, _)| *id).collect();
            old.iter().filter_map(|id| held.remove(id)).collect()
        };
        drop(gone);
    }

    /// Lets all of them go.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.locked());
        drop(all);
    }

    pub(crate) fn hold(&self, snapshot: &Snapshot) -> u128 {
        let random = || u128::from(self.environment.random.next_u64());
        let id = random() << 64 | random();
        let used_ns = self.environment.clock.monotonic_ns();
        let gone = {
            let mut held = self.locked();
            held.insert(id, Held { snapshot: snapshot.clone(), used_ns });
            let oldest = held.iter().min_by_key(|(_, held)| held.used_ns).map(|(id, _)| *id);
            let is_full = held.len() > HELD_MAX && !Bug::HeldSnapshotsPileUp.is_planted();
            let gone = if is_full { oldest.and_then(|id| held.remove(&id)) } else { None };
            debug_assert!(
                held.len() <= HELD_MAX,
                "held snapshots: {} are held, at most {HELD_MAX}",
                held.len()
            );
            gone
        };
        drop(gone);
        id
    }

    pub(crate) fn find(&self, id: u128) -> Result<Snapshot> {
        let mut held = self.locked();
        let held = held.get_mut(&id).ok_or_else(|| {
            let message = "cursor: the snapshot of its pages is held no longer: begin again \
                           without it, or without \"snapshot\"";
            Error::new(ErrorKind::SnapshotGone, message)
        })?;
        held.used_ns = self.environment.clock.monotonic_ns();
        Ok(held.snapshot.clone())
    }
}

impl ExpiringSnapshots for HeldSnapshots {
    fn expire(&self) {
        self.expire_now();
    }
}
