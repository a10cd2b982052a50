//! How long things took, in buckets.

/// The upper bounds of buckets, in microseconds.
pub(super) const BOUNDS_US: [u64; 18] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 60_000_000,
];

/// Counts by how long something took.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    counts: [u64; BOUNDS_US.len()],
    pub count: u64,
    pub sum_ns: u64,
}

impl Histogram {
    /// From counts that were made elsewhere.
    pub fn of(counts: [u64; BOUNDS_US.len()], count: u64, sum_ns: u64) -> Self {
        Self { counts, count, sum_ns }
    }

    pub fn add(&mut self, nanoseconds: u64) {
        let bucket = BOUNDS_US.iter().position(|bound| nanoseconds <= bound * 1_000);
        if let Some(count) = bucket.and_then(|bucket| self.counts.get_mut(bucket)) {
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
