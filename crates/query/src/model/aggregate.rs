//! Aggregate functions.

use serde::{Deserialize, Serialize};

/// A function of all rows of a group. NULLs are left out; over no value at all, counts are 0 and
/// the others NULL.
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
}

impl Aggregate {
    /// Every aggregate function.
    pub const ALL: [Self; 5] = [Self::Count, Self::Sum, Self::Avg, Self::Min, Self::Max];

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// The aggregate of a name (in any case), if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.name().eq_ignore_ascii_case(name))
    }
}
