//! What a protocol counts that has no time for a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use esker_vfs::{DurationCounts, Durations};
use esker_wire::Code;

/// One operation.
#[derive(Debug)]
struct Operation {
    name: String,
    durations: Durations,
    /// By the position of the code in [`Code::ALL`].
    failed: [AtomicU64; Code::ALL.len()],
}

/// How often the operations of a protocol were done, how they ended, and how long they took.
#[derive(Debug)]
pub struct Operations {
    pub(super) protocol: &'static str,
    operations: Vec<Operation>,
}

impl Operations {
    /// Of a protocol, its operations by name.
    #[must_use]
    pub fn new(protocol: &'static str, names: impl IntoIterator<Item = String>) -> Self {
        let operation = |name| Operation {
            name,
            durations: Durations::default(),
            failed: [const { AtomicU64::new(0) }; Code::ALL.len()],
        };
        Self { protocol, operations: names.into_iter().map(operation).collect() }
    }

    /// Counts one, by the position of its name, and the code of its error if it had one.
    #[inline]
    pub fn count(&self, operation: usize, failed: Option<Code>, nanoseconds: u64) {
        let Some(operation) = self.operations.get(operation) else { return };
        operation.durations.add(nanoseconds);
        if let Some(code) = failed {
            let position = Code::ALL.iter().position(|known| *known == code);
            let failed = position.and_then(|position| operation.failed.get(position));
            failed.map(|failed| failed.fetch_add(1, Ordering::Relaxed));
        }
    }

    /// Those that were used: the name, how many ended how, and how long they took.
    pub(super) fn counted(
        &self,
    ) -> impl Iterator<Item = (&str, Vec<(&'static str, u64)>, DurationCounts)> {
        let seen = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.operations.iter().filter_map(move |operation| {
            let durations = operation.durations.counts();
            if durations.count == 0 {
                return None;
            }
            let failed = Code::ALL.iter().zip(&operation.failed);
            let failed: Vec<_> = failed
                .map(|(code, count)| (code.as_str(), seen(count)))
                .filter(|(_, count)| *count > 0)
                .collect();
            let all_failed: u64 = failed.iter().map(|(_, count)| count).sum();
            let mut ends = vec![("ok", durations.count.saturating_sub(all_failed))];
            ends.extend(failed);
            Some((operation.name.as_str(), ends, durations))
        })
    }
}
