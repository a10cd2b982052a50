//! How two numbers go together: covariance, correlation, the line that is nearest to all points.
//!
//! Means and sums of products of distances from them are kept, and two are put together without
//! loss of digits, as for [variances](super::spread).

use crate::evaluate::{Lanes, Vector};
use crate::model::Aggregate;

/// What is kept of the points (x, y) of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pairs {
    count: u64,
    mean_x: f64,
    mean_y: f64,
    sxx: f64,
    syy: f64,
    sxy: f64,
}

/// The two numbers of a row: 16 bytes, y and x.
pub(super) fn numbers(vector: &Vector<'_>, i: usize) -> Option<(f64, f64)> {
    let Lanes::Bytes(values) = &vector.lanes else { return None };
    if vector.is_null(i) {
        return None;
    }
    let (y, rest) = values.get(i)?.split_first_chunk::<8>()?;
    let x = rest.first_chunk::<8>()?;
    Some((f64::from_le_bytes(*x), f64::from_le_bytes(*y)))
}

impl Pairs {
    pub(super) fn add(&mut self, x: f64, y: f64) {
        self.merge(Self { count: 1, mean_x: x, mean_y: y, ..Self::default() });
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
        let total = own + others;
        let (dx, dy) = (other.mean_x - self.mean_x, other.mean_y - self.mean_y);
        let weight = own * others / total;
        self.count += other.count;
        self.mean_x += dx * (others / total);
        self.mean_y += dy * (others / total);
        self.sxx += other.sxx + dx * dx * weight;
        self.syy += other.syy + dy * dy * weight;
        self.sxy += other.sxy + dx * dy * weight;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The result of a function; `None` of too few points, or of points that it has none for.
    pub(super) fn value(&self, function: Aggregate) -> Option<f64> {
        use Aggregate as A;
        let count = self.count as f64;
        if self.count == 0 {
            return None;
        }
        Some(match function {
            A::CovarPop => self.sxy / count,
            A::CovarSamp if self.count > 1 => self.sxy / (count - 1.0),
            A::Corr if self.sxx > 0.0 && self.syy > 0.0 => {
                (self.sxy / (self.sxx.sqrt() * self.syy.sqrt())).clamp(-1.0, 1.0)
            }
            A::RegrAvgx => self.mean_x,
            A::RegrAvgy => self.mean_y,
            A::RegrSxx => self.sxx,
            A::RegrSyy => self.syy,
            A::RegrSxy => self.sxy,
            A::RegrSlope if self.sxx > 0.0 => self.sxy / self.sxx,
            A::RegrIntercept if self.sxx > 0.0 => self.mean_y - self.sxy / self.sxx * self.mean_x,
            A::RegrR2 if self.sxx > 0.0 && self.syy == 0.0 => 1.0,
            A::RegrR2 if self.sxx > 0.0 => self.sxy * self.sxy / (self.sxx * self.syy),
            _ => return None,
        })
    }
}
