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
    /// Whether all values are true.
    BoolAnd,
    /// Whether a value is true.
    BoolOr,
    /// How many values are true.
    CountIf,
    /// The first value that is not NULL.
    AnyValue,
    /// The value of the row in which a second operand is least.
    ArgMin,
    /// The value of the row in which a second operand is greatest.
    ArgMax,
    /// The bits that all integers have.
    BitAnd,
    /// The bits that an integer has.
    BitOr,
    /// The bits that an odd number of integers has.
    BitXor,
    /// The product, as a 64-bit float.
    Product,
    /// The most frequent value; of several, the least.
    Mode,
    /// The texts one after another, a second operand in between.
    StringAgg,
    /// The values as a list, NULLs too.
    ArrayAgg,
    /// The items of lists as one list.
    ArrayConcatAgg,
    /// The first value, in order, at or above which a part of the values lies.
    PercentileDisc {
        /// That part, in millionths.
        millionths: u32,
    },
    /// About how many different values there are.
    ApproxCountDistinct,
    /// The correlation of two operands.
    Corr,
    /// The covariance of two operands, of all there is.
    CovarPop,
    /// The covariance of two operands, of a sample.
    CovarSamp,
    /// How many rows have both operands, y and x.
    RegrCount,
    /// The mean of x where y is known, too.
    RegrAvgx,
    /// The mean of y where x is known, too.
    RegrAvgy,
    /// The sum of squared distances of x from its mean.
    RegrSxx,
    /// The sum of squared distances of y from its mean.
    RegrSyy,
    /// The sum of products of the distances of x and y from their means.
    RegrSxy,
    /// The slope of the line that is nearest to the points (x, y).
    RegrSlope,
    /// Where that line crosses x = 0.
    RegrIntercept,
    /// How much of how y varies that line explains, from 0 to 1.
    RegrR2,
}

impl Aggregate {
    /// Every aggregate function by its name and other names.
    const NAMES: [(&'static str, Self, &'static [&'static str]); 40] = [
        ("count", Self::Count, &[]),
        ("sum", Self::Sum, &[]),
        ("avg", Self::Avg, &["mean"]),
        ("min", Self::Min, &[]),
        ("max", Self::Max, &[]),
        ("stddev_samp", Self::StddevSamp, &["stddev"]),
        ("stddev_pop", Self::StddevPop, &[]),
        ("var_samp", Self::VarSamp, &["variance"]),
        ("var_pop", Self::VarPop, &[]),
        ("quantile", Self::MEDIAN, &["median", "quantile_cont", "percentile_cont"]),
        ("first", Self::First, &[]),
        ("last", Self::Last, &[]),
        ("bool_and", Self::BoolAnd, &["every"]),
        ("bool_or", Self::BoolOr, &[]),
        ("count_if", Self::CountIf, &["countif"]),
        ("any_value", Self::AnyValue, &["arbitrary"]),
        ("arg_min", Self::ArgMin, &["min_by", "argmin"]),
        ("arg_max", Self::ArgMax, &["max_by", "argmax"]),
        ("bit_and", Self::BitAnd, &[]),
        ("bit_or", Self::BitOr, &[]),
        ("bit_xor", Self::BitXor, &[]),
        ("product", Self::Product, &[]),
        ("mode", Self::Mode, &[]),
        ("string_agg", Self::StringAgg, &["group_concat", "listagg"]),
        ("array_agg", Self::ArrayAgg, &["list_agg", "list"]),
        ("array_concat_agg", Self::ArrayConcatAgg, &[]),
        ("percentile_disc", Self::MEDIAN_DISC, &["quantile_disc"]),
        ("approx_count_distinct", Self::ApproxCountDistinct, &[]),
        ("corr", Self::Corr, &[]),
        ("covar_pop", Self::CovarPop, &[]),
        ("covar_samp", Self::CovarSamp, &[]),
        ("regr_count", Self::RegrCount, &[]),
        ("regr_avgx", Self::RegrAvgx, &[]),
        ("regr_avgy", Self::RegrAvgy, &[]),
        ("regr_sxx", Self::RegrSxx, &[]),
        ("regr_syy", Self::RegrSyy, &[]),
        ("regr_sxy", Self::RegrSxy, &[]),
        ("regr_slope", Self::RegrSlope, &[]),
        ("regr_intercept", Self::RegrIntercept, &[]),
        ("regr_r2", Self::RegrR2, &[]),
    ];

    /// The number in the middle.
    pub const MEDIAN: Self = Self::Quantile { millionths: 500_000 };

    /// The value in the middle.
    const MEDIAN_DISC: Self = Self::PercentileDisc { millionths: 500_000 };

    /// Every aggregate function; of the quantiles, the median.
    pub const ALL: [Self; 40] = [
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
        Self::BoolAnd,
        Self::BoolOr,
        Self::CountIf,
        Self::AnyValue,
        Self::ArgMin,
        Self::ArgMax,
        Self::BitAnd,
        Self::BitOr,
        Self::BitXor,
        Self::Product,
        Self::Mode,
        Self::StringAgg,
        Self::ArrayAgg,
        Self::ArrayConcatAgg,
        Self::MEDIAN_DISC,
        Self::ApproxCountDistinct,
        Self::Corr,
        Self::CovarPop,
        Self::CovarSamp,
        Self::RegrCount,
        Self::RegrAvgx,
        Self::RegrAvgy,
        Self::RegrSxx,
        Self::RegrSyy,
        Self::RegrSxy,
        Self::RegrSlope,
        Self::RegrIntercept,
        Self::RegrR2,
    ];

    /// A quantile: `part` of the numbers, from 0 to 1, lie below it. `None` for another part.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
    #[allow(clippy::cast_sign_loss, reason = "the range is checked")]
    pub fn quantile(part: f64) -> Option<Self> {
        let is_part = (0.0..=1.0).contains(&part);
        is_part.then(|| Self::Quantile { millionths: (part * 1e6).round() as u32 })
    }

    /// The same of another part of the values, from 0 to 1; `None` for another part, and for what
    /// has none.
    #[must_use]
    pub fn with_part(self, part: f64) -> Option<Self> {
        match (self, Self::quantile(part)?) {
            (Self::PercentileDisc { .. }, Self::Quantile { millionths }) => {
                Some(Self::PercentileDisc { millionths })
            }
            (Self::Quantile { .. }, quantile) => Some(quantile),
            _ => None,
        }
    }

    /// Whether it is of two numbers of each row.
    #[must_use]
    pub fn takes_pairs(self) -> bool {
        matches!(
            self,
            Self::Corr
                | Self::CovarPop
                | Self::CovarSamp
                | Self::RegrCount
                | Self::RegrAvgx
                | Self::RegrAvgy
                | Self::RegrSxx
                | Self::RegrSyy
                | Self::RegrSxy
                | Self::RegrSlope
                | Self::RegrIntercept
                | Self::RegrR2
        )
    }

    /// Whether it takes a second operand, which is the first key of its order.
    #[must_use]
    pub fn takes_second(self) -> bool {
        self.takes_pairs() || matches!(self, Self::ArgMin | Self::ArgMax | Self::StringAgg)
    }

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let is_it = |known: Self| match (known, self) {
            (Self::Quantile { .. }, Self::Quantile { .. })
            | (Self::PercentileDisc { .. }, Self::PercentileDisc { .. }) => true,
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
