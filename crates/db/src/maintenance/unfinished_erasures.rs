//! What maintenance knows of the erasures that are not done.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::erasure::Record;

/// How often it is looked whether readers have let files go: not all of them tell.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// The shortest time between two looks that find nothing to do, however many snapshots end.
pub(super) const LOOK_MIN: Duration = Duration::from_millis(50);
/// How many times as long as a look that found nothing the next one is away.
const LOOK_PAUSE: u64 = 20;

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
    /// How long to wait at least, since the last look took so long.
    pub pause_ns: u64,
}

impl Erasures {
    /// True when none is under way.
    pub fn is_empty(&self) -> bool {
        self.unfinished.is_empty()
    }

    /// A snapshot has ended: what it saw may go.
    pub fn look_soon(&mut self) {
        let soon = after(self.looked_ns, LOOK_MIN.max(Duration::from_nanos(self.pause_ns)));
        self.next_look_ns = self.next_look_ns.min(soon);
    }

    /// A look has found nothing to do: it may have read all rows of large tables.
    pub fn end_look(&mut self, now_ns: u64) {
        self.pause_ns = now_ns.saturating_sub(self.looked_ns).saturating_mul(LOOK_PAUSE);
        self.looked_ns = now_ns;
        self.next_look_ns = self.next_look_ns.max(now_ns.saturating_add(self.pause_ns));
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
    /// Rows that had died by then are to go; `None` until rows that have expired are ended.
    pub since: Option<u64>,
    /// Files with numbers below this one may have had such rows.
    pub before: Option<u64>,
    /// Whether a checkpoint was made since.
    pub is_log_cut: bool,
    pub bytes_left: u64,
    pub waits_for: &'static str,
    /// Row groups that could not be written anew: they are the last to be tried again.
    pub failed: BTreeSet<u64>,
    /// How often it has failed since something was done, and until when it is left alone.
    pub failures: u32,
    pub retry_ns: u64,
}

impl Unfinished {
    pub fn new(record: Record, since: Option<u64>, bytes_left: u64) -> Self {
        Self {
            record,
            since,
            before: None,
            is_log_cut: false,
            bytes_left,
            waits_for: "rewriting",
            failed: BTreeSet::new(),
            failures: 0,
            retry_ns: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside many short snapshots, looks took all the time there was.
    #[test]
    fn a_look_that_took_long_is_not_followed_at_once() {
        let mut erasures =
            Erasures { looked_ns: 1_000, next_look_ns: 2_000, ..Erasures::default() };
        erasures.end_look(1_000_001_000);
        assert_eq!(erasures.next_look_ns, 21_000_001_000);
        erasures.look_soon();
        assert_eq!(erasures.next_look_ns, 21_000_001_000);
        erasures.looked_ns = 30_000_000_000;
        erasures.next_look_ns = 31_000_000_000;
        erasures.end_look(30_000_000_000);
        erasures.look_soon();
        assert_eq!(erasures.next_look_ns, 30_050_000_000);
    }
}
