//! What maintenance knows of the erasures that are not done.

use std::time::Duration;

use crate::erasure::Record;

/// How often it is looked whether readers have let files go: not all of them tell.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// The shortest time between two looks that find nothing to do, however many snapshots end.
pub(super) const LOOK_MIN: Duration = Duration::from_millis(50);

/// The erasures that are not done, as far as this process knows.
#[derive(Default)]
pub(crate) struct Erasures {
    /// When the bucket that was read last had changed, if there was one; `None` before the first
    /// look.
    pub read_at: Option<Option<u64>>,
    pub unfinished: Vec<Unfinished>,
    /// Statements of this process have erased rows: the bucket may change.
    pub may_come: bool,
    /// The last look and the next one, by the monotonic clock.
    pub looked_ns: u64,
    pub next_look_ns: u64,
}

impl Erasures {
    /// True when none is under way.
    pub fn is_empty(&self) -> bool {
        self.unfinished.is_empty()
    }

    /// A snapshot has ended: what it saw may go.
    pub fn look_soon(&mut self) {
        self.next_look_ns = self.next_look_ns.min(after(self.looked_ns, LOOK_MIN));
    }
}

/// A time so much later.
pub(super) fn after(at_ns: u64, wait: Duration) -> u64 {
    // default: never
    at_ns.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
}

/// One that is not done.
pub(crate) struct Unfinished {
    pub record: Record,
    /// Rows that had died by then are to go.
    pub since: u64,
    /// Files with numbers below this one may have had such rows.
    pub before: Option<u64>,
    /// Whether a checkpoint was made since.
    pub is_log_cut: bool,
    pub bytes_left: u64,
    pub waits_for: &'static str,
}
