//! What buckets must hold: plain maps whose entries may end, one state for each commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker::Moment as Now;

pub use super::lease::{ExpiresBy, Lease, Leases};

/// The buckets of a workload.
pub const NAMES: [&str; 2] = ["ants", "bees"];

/// What a bucket is called for a while.
pub const AWAY: &str = "away";

/// Where a bucket is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Under its name.
    #[default]
    Home,
    /// Under [`AWAY`].
    Away,
    /// It was dropped.
    Nowhere,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelEntry {
    /// The value.
    pub value: Vec<u8>,
    /// When it expires, in microseconds of elapsed time; `None`: never.
    pub end_us: Option<i64>,
}

/// A bucket: entries stay here after they have expired, until something replaces them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelBucket {
    /// The entries by key.
    pub entries: BTreeMap<Vec<u8>, ModelEntry>,
    /// What entries get that are put without a time to live.
    pub ttl_us: Option<i64>,
    /// Where it is.
    pub place: Place,
}

/// The buckets and the table of a workload after some commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Whether buckets and table have been made.
    pub is_ready: bool,
    /// The buckets, as in [`NAMES`].
    pub buckets: [ModelBucket; 2],
    /// The rows of the table that batches change, too.
    pub rows: BTreeMap<i64, i64>,
    /// The table whose rows expire.
    pub leases: Leases,
}

/// A change, and what it left.
#[derive(Clone, Debug)]
struct Step {
    /// The newest commit before it.
    from: u64,
    /// The newest commit once it had returned: its own, or one of maintenance.
    until: u64,
    /// What the log has surely been told of the time, in microseconds since 1970.
    told_us: i64,
    state: Arc<State>,
}

/// The states by commit, of one life and those before it.
#[derive(Clone, Debug, Default)]
pub struct History {
    earlier: Option<Arc<History>>,
    opened_at: u64,
    steps: Vec<Step>,
}

impl ModelEntry {
    /// Whether it is there at a time.
    #[must_use]
    pub fn is_there(&self, now_us: i64) -> bool {
        self.end_us.is_none_or(|end_us| end_us > now_us)
    }
}

impl ModelBucket {
    /// The entry of a key at a time.
    #[must_use]
    pub fn get(&self, key: &[u8], now_us: i64) -> Option<&ModelEntry> {
        self.entries.get(key).filter(|entry| entry.is_there(now_us))
    }
}

impl State {
    /// A bucket by its place in [`NAMES`].
    #[must_use]
    pub fn bucket(&self, at: usize) -> &ModelBucket {
        let [first, second] = &self.buckets;
        if at == 0 { first } else { second }
    }

    /// The same, to be changed.
    pub fn bucket_mut(&mut self, at: usize) -> &mut ModelBucket {
        let [first, second] = &mut self.buckets;
        if at == 0 { first } else { second }
    }

    /// The name that a bucket of a place in [`NAMES`] has; `None` when it was dropped.
    #[must_use]
    pub fn name(&self, at: usize) -> Option<&'static str> {
        match self.bucket(at).place {
            Place::Home => NAMES.get(at).copied(),
            Place::Away => Some(AWAY),
            Place::Nowhere => None,
        }
    }

    /// Whether some entry or row ends after a moment.
    #[must_use]
    pub fn is_to_end_after(&self, now: Now) -> bool {
        self.ends_of_entries().any(|end_us| end_us > now.elapsed_us)
            || self.leases.ends_that_tell().any(|end_us| end_us > now.date_us)
    }

    /// The elapsed times at which entries end.
    pub fn ends_of_entries(&self) -> impl Iterator<Item = i64> + '_ {
        let entries = self.buckets.iter().flat_map(|bucket| bucket.entries.values());
        entries.filter_map(|entry| entry.end_us)
    }
}

impl History {
    /// What comes after an open that found a state.
    #[must_use]
    pub fn opened(earlier: &Arc<Self>, commit: u64, told_us: i64, state: Arc<State>) -> Self {
        let step = Step { from: commit, until: commit, told_us, state };
        Self { earlier: Some(Arc::clone(earlier)), opened_at: commit, steps: vec![step] }
    }

    /// Adds what a change left. The commit may have any number above `from`, up to `until`.
    pub fn push(&mut self, (from, until): (u64, u64), told_us: i64, state: Arc<State>) {
        self.steps.push(Step { from, until, told_us, state });
    }

    /// The states that may hold after a commit.
    #[must_use]
    pub fn candidates(&self, commit: u64) -> Vec<Arc<State>> {
        let mut found = Vec::new();
        if let Some(earlier) = self.earlier.as_ref().filter(|_| commit <= self.opened_at) {
            found = earlier.candidates(commit);
            if commit < self.opened_at {
                return found;
            }
        }
        let settled = self.steps.iter().rfind(|step| step.until <= commit);
        found.push(settled.map_or_else(Arc::default, |step| Arc::clone(&step.state)));
        let under_way = self.steps.iter().filter(|step| step.from < commit && commit < step.until);
        found.extend(under_way.map(|step| Arc::clone(&step.state)));
        found
    }

    /// The least time that an open which recovers a commit must go on from.
    #[must_use]
    pub fn told_us(&self, commit: u64) -> i64 {
        // What came after the commit that was recovered is lost, and its numbers are given again.
        let kept = commit.min(self.opened_at);
        let earlier = self.earlier.as_ref().map_or(i64::MIN, |earlier| earlier.told_us(kept));
        if commit < self.opened_at {
            return earlier;
        }
        let steps = self.steps.iter().filter(|step| step.until <= commit);
        steps.map(|step| step.told_us).fold(i64::MIN, i64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_of_unknown_number_has_two_states() {
        let state = |ready| Arc::new(State { is_ready: ready, ..State::default() });
        let mut history = History::opened(&Arc::default(), 3, 0, state(false));
        history.push((5, 8), 70, state(true));
        assert_eq!(history.candidates(5), [state(false)]);
        assert_eq!(history.candidates(6), [state(false), state(true)]);
        assert_eq!(history.candidates(8), [state(true)]);
        assert_eq!((history.told_us(7), history.told_us(8)), (0, 70));
    }

    #[test]
    fn a_time_that_was_lost_is_not_asked_for_when_its_number_is_given_again() {
        let mut lost = History::opened(&Arc::default(), 3, 10, Arc::default());
        lost.push((3, 5), 20, Arc::default());
        lost.push((5, 8), 70, Arc::default());
        let found_us = lost.told_us(6);
        let mut history = History::opened(&Arc::new(lost), 6, found_us, Arc::default());
        history.push((6, 9), 30, Arc::default());
        assert_eq!((history.told_us(6), history.told_us(8)), (20, 20));
        assert_eq!((history.told_us(5), history.told_us(9)), (20, 30));
    }

    #[test]
    fn an_entry_ends_at_its_end() {
        let entry = ModelEntry { value: Vec::new(), end_us: Some(10) };
        assert!(entry.is_there(9) && !entry.is_there(10));
    }
}
