//! How values spread: variance and standard deviation, and quantiles.
//!
//! A variance is kept as count, mean and the sum of squared distances from the mean, and two are
//! put together without loss of digits (Chan's method): squares of large values that differ little
//! are never subtracted. Quantiles keep every value of their group.

use esker_format::value::compare_floats;

use crate::evaluate::{Lanes, Vector};

/// Count, mean and squared distances of some values.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    pub(super) fn add(&mut self, value: f64) {
        self.merge(Self { count: 1, mean: value, squares: 0.0 });
    }

    pub(super) fn merge(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other;
            return;
        }
        let (own, others) = (self.count as f64, other.count as f64);
        let (total, apart) = (own + others, other.mean - self.mean);
        self.count += other.count;
        self.mean += apart * (others / total);
        self.squares += other.squares + apart * apart * (own * others / total);
    }

    /// The variance of all there is, or, `of_sample`, as a sample of more tells; `None` of too few.
    pub(super) fn variance(&self, of_sample: bool) -> Option<f64> {
        let count = self.count.checked_sub(u64::from(of_sample)).filter(|count| *count > 0)?;
        Some(self.squares / count as f64)
    }
}

/// The value below which lies a part of the values, in millionths: between two, in proportion.
pub(super) fn quantile(values: &[f64], millionths: u32) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(|a, b| compare_floats(*a, *b));
    let places = (sorted.len().checked_sub(1)?) as u64 * u64::from(millionths);
    let (at, rest) = (places / 1_000_000, places % 1_000_000);
    let at = usize::try_from(at).ok()?;
    let low = *sorted.get(at)?;
    match sorted.get(at + 1) {
        Some(high) if rest > 0 && *high != low => {
            Some(low + (high - low) * (rest as f64 / 1_000_000.0))
        }
        _ => Some(low),
    }
}

/// The number of a row as a float; `unit` of what is stored make 1.
pub(super) fn number(vector: &Vector<'_>, unit: f64, i: usize) -> Option<f64> {
    if vector.is_null(i) {
        return None;
    }
    match &vector.lanes {
        Lanes::Ints(v) => v.get(i).map(|v| *v as f64 / unit),
        Lanes::Uints(v) => v.get(i).map(|v| *v as f64 / unit),
        Lanes::Wides(v) => v.get(i).map(|v| *v as f64 / unit),
        Lanes::Floats(v) => v.get(i).copied(),
        _ => None,
    }
}
