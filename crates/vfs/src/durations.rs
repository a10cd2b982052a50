//! How long things took, counted without a lock: what a histogram is made of.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Clock;

/// The upper bounds of the counts, in microseconds.
const BOUNDS_US: [u64; 18] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 60_000_000,
];

/// Durations, as they come from any thread.
///
/// ```
/// use esker_vfs::Durations;
///
/// let durations = Durations::default();
/// durations.add(70_000);
/// let counts = durations.counts();
/// assert_eq!((counts.count, counts.sum_ns), (1, 70_000));
/// assert_eq!(counts.cumulated().nth(1), Some((0.0001, 1)));
/// ```
#[derive(Debug, Default)]
pub struct Durations {
    counts: [AtomicU64; BOUNDS_US.len()],
    count: AtomicU64,
    sum_ns: AtomicU64,
}

/// How many there were, and how long they took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationCounts {
    counts: [u64; BOUNDS_US.len()],
    /// All of them.
    pub count: u64,
    /// What they took together, in nanoseconds.
    pub sum_ns: u64,
}

impl Durations {
    /// One more.
    #[inline]
    pub fn add(&self, nanoseconds: u64) {
        // One of three: what reads them sees each by itself.
        if let Some(count) = bucket_of(nanoseconds).and_then(|bucket| self.counts.get(bucket)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Does something, and counts how long it takes.
    pub fn time<R>(&self, clock: &dyn Clock, work: impl FnOnce() -> R) -> R {
        let started = clock.monotonic_ns();
        let done = work();
        self.add(clock.monotonic_ns().saturating_sub(started));
        done
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> DurationCounts {
        let seen = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DurationCounts {
            counts: std::array::from_fn(|i| self.counts.get(i).map_or(0, seen)),
            count: seen(&self.count),
            sum_ns: seen(&self.sum_ns),
        }
    }
}

impl DurationCounts {
    /// One more.
    pub fn add(&mut self, nanoseconds: u64) {
        if let Some(count) = bucket_of(nanoseconds).and_then(|at| self.counts.get_mut(at)) {
            *count += 1;
        }
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(nanoseconds);
    }

    /// The bounds in seconds, each with how many took no longer.
    pub fn cumulated(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0;
        BOUNDS_US.iter().zip(&self.counts).map(move |(bound, count)| {
            sum += count;
            (*bound as f64 / 1e6, sum)
        })
    }
}

fn bucket_of(nanoseconds: u64) -> Option<usize> {
    BOUNDS_US.iter().position(|bound| nanoseconds <= bound * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_up_to_each_bound() {
        let (shared, mut own) = (Durations::default(), DurationCounts::default());
        for microseconds in [10, 50, 51, 999, 100_000_000] {
            shared.add(microseconds * 1_000);
            own.add(microseconds * 1_000);
        }
        assert_eq!(shared.counts(), own);
        let counts: Vec<_> = own.cumulated().collect();
        assert_eq!([counts[0], counts[1], counts[4]], [(0.00005, 2), (0.0001, 3), (0.001, 4)]);
        assert_eq!((counts.last().unwrap().1, own.count), (4, 5), "the last is beyond all");
    }
}
