//! Aggregate functions.

use serde::{Deserialize, Serialize};

/// A function of all rows of a group. NULLs are left out, but by the first and the last; over no
/// value at all, counts are 0 and the others NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Aggregate {
    /// How many rows, or how many values.
    Count,
    /// The sum: of integers and decimals exact, of floats in the order of the rows with
    /// compensation.
    Sum,
    /// The mean, as a 64-bit float.
    Avg,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The standard deviation of a sample, as a 64-bit float; NULL of one value.
    StddevSamp,
    /// The standard deviation of all there is, as a 64-bit float.
    StddevPop,
    /// The variance of a sample, as a 64-bit float; NULL of one value.
    VarSamp,
    /// The variance of all there is, as a 64-bit float.
    VarPop,
    /// The number below which a part of the numbers lies, as a 64-bit float; between two of them,
    /// in proportion.
    Quantile {
        /// That part, in millionths: 500,000 for the median.
        millionths: u32,
    },
    /// The value of the first row, in the order that is given with it, or that in which rows are
    /// met. NULL where that row has NULL.
    First,
    /// The value of the last row.
    Last,
}

impl Aggregate {
    /// Every aggregate function by its name and other names.
    const NAMES: [(&'static str, Self, &'static [&'static str]); 12] = [
        ("count", Self::Count, &[]),
        ("sum", Self::Sum, &[]),
        ("avg", Self::Avg, &["mean"]),
        ("min", Self::Min, &[]),
        ("max", Self::Max, &[]),
        ("stddev_samp", Self::StddevSamp, &["stddev"]),
        ("stddev_pop", Self::StddevPop, &[]),
        ("var_samp", Self::VarSamp, &["variance"]),
        ("var_pop", Self::VarPop, &[]),
        ("quantile", Self::MEDIAN, &["median"]),
        ("first", Self::First, &[]),
        ("last", Self::Last, &[]),
    ];

    /// The number in the middle.
    pub const MEDIAN: Self = Self::Quantile { millionths: 500_000 };

    /// Every aggregate function; of the quantiles, the median.
    pub const ALL: [Self; 12] = [
        Self::Count,
        Self::Sum,
        Self::Avg,
        Self::Min,
        Self::Max,
        Self::StddevSamp,
        Self::StddevPop,
        Self::VarSamp,
        Self::VarPop,
        Self::MEDIAN,
        Self::First,
        Self::Last,
    ];

    /// A quantile: `part` of the numbers, from 0 to 1, lie below it. `None` for another part.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
    #[allow(clippy::cast_sign_loss, reason = "the range is checked")]
    pub fn quantile(part: f64) -> Option<Self> {
        let is_part = (0.0..=1.0).contains(&part);
        is_part.then(|| Self::Quantile { millionths: (part * 1e6).round() as u32 })
    }

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let is_it = |known: Self| match (known, self) {
            (Self::Quantile { .. }, Self::Quantile { .. }) => true,
            _ => known == self,
        };
        let named = Self::NAMES.iter().find(|(_, known, _)| is_it(*known));
        named.map_or("aggregate", |(name, ..)| name)
    }

    /// The aggregate of a name (in any case), if there is one; of `quantile`, the median.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let is_it = |known: &str| known.eq_ignore_ascii_case(name);
        let named =
            Self::NAMES.iter().find(|(n, _, also)| is_it(n) || also.iter().any(|n| is_it(n)));
        named.map(|(_, aggregate, _)| *aggregate)
    }
}
