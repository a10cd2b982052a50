//! Events that wait for their commit: many requests, one commit, to each its own outcome.
//!
//! ```text
//!  requests ──► pending ──► the first one leads: takes all that have come ──► one commit
//!     (each with rows that are ready)   │                                        │
//!                                       └── those that come meanwhile wait ◄─────┘ outcomes
//! ```
//!
//! There is no timer and no least number: what comes while a commit is made is the next one.
//!
//! Invariants:
//! 1. While requests wait, exactly one of their callers leads, or is about to: a `Lead` that is
//!    dropped leads before it goes.
//! 2. Each request gets its outcome once, in the order in which they came.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use esker_format::{Batch, Column, Schema};
use esker_log::sabotage::Bug;
use esker_vfs::sync::{Mutex, MutexGuard};

use crate::Result;
use crate::commit::recent_events::RecentEvents;

/// Rows of one commit, about: a request that has more is a commit of its own.
pub(crate) const COMMIT_ROWS: usize = 4_096;
/// Bytes of their values, about: as for rows.
const COMMIT_BYTES: usize = 2 << 20;

/// What becomes of the rows of a request.
#[derive(Debug)]
pub struct Appended {
    /// The row id of each, or why it was not stored.
    pub outcomes: Vec<Result<u64>>,
    /// The commit that has to be durable before that is reported; `None`: it may be now.
    pub commit: Option<u64>,
    /// A commit that is not before those of the rows: once it is on the disk, they are.
    pub newest: u64,
}

/// Rows that are ready, and what to call with their outcomes.
pub(crate) struct EventRequest {
    /// The rows, by column.
    pub columns: Batch,
    /// What they were made ready for.
    pub schema: Arc<Schema>,
    /// All of them or none.
    pub is_whole: bool,
    /// What is in their commit, too, which is one then: a `KeptEntry`.
    pub entry: Option<Box<dyn Any + Send>>,
    pub done: Box<dyn FnOnce(Appended) + Send>,
}

impl EventRequest {
    fn byte_count(&self) -> usize {
        self.columns.columns.iter().map(Column::byte_count).sum()
    }
}

/// The requests of one stream.
#[derive(Default)]
pub(crate) struct GatheredEvents {
    pending: Mutex<Pending>,
    /// Which events are there already, where some are stored once.
    pub recent: Mutex<RecentEvents>,
}

#[derive(Default)]
struct Pending {
    requests: VecDeque<(EventRequest, usize)>,
    is_led: bool,
    /// Bytes of those that wait, and of all that were taken.
    bytes: u64,
    taken: u64,
}

impl GatheredEvents {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        // default: nothing panics while the list changes
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets which events are there, unless that is asked now.
    pub fn forget_recent(&self) {
        if let Ok(mut recent) = self.recent.try_lock() {
            recent.forget();
        }
    }

    /// Whether it is known which events are there; what nobody uses can be looked at.
    pub fn has_recent(&self) -> bool {
        // default: after a panic nothing is taken as known
        self.recent.lock().is_ok_and(|recent| !recent.is_empty())
    }

    /// Adds a request; true when its caller has to lead.
    pub fn add(&self, request: EventRequest) -> bool {
        let bytes = request.byte_count();
        let mut pending = self.pending();
        pending.bytes += bytes as u64;
        pending.requests.push_back((request, bytes));
        !std::mem::replace(&mut pending.is_led, true)
    }

    /// The bytes of events that wait, and of all that were taken before.
    pub fn backlog(&self) -> (u64, u64) {
        let pending = self.pending();
        (pending.bytes, pending.taken)
    }

    /// The requests of the next commit; none when no request waits: the leader's work is done then.
    pub fn take(&self) -> Vec<EventRequest> {
        let mut pending = self.pending();
        let (mut taken, mut rows, mut bytes): (Vec<EventRequest>, _, _) = (Vec::new(), 0, 0);
        while let Some((next, size)) = pending.requests.front() {
            rows += next.columns.len();
            bytes += size;
            let size = *size as u64;
            if !taken.is_empty() && (rows > COMMIT_ROWS || bytes > COMMIT_BYTES) {
                break;
            }
            taken.extend(pending.requests.pop_front().map(|(request, _)| request));
            pending.bytes -= size;
            pending.taken += size;
        }
        if taken.is_empty() && Bug::LeaderLeavesRequest.is_planted() {
            drop(pending);
            pending = self.pending();
        }
        pending.is_led = !taken.is_empty();
        taken
    }

    /// Drops all waiting requests, since their leader has failed. Each learns it when its `done` is
    /// dropped.
    pub fn abandon(&self) {
        let mut pending = self.pending();
        pending.is_led = false;
        let requests = std::mem::take(&mut pending.requests);
        pending.bytes = 0;
        drop(pending);
        drop(requests);
    }
}
