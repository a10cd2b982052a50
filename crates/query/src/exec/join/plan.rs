//! What is joined, and which side is built.

use super::band::Band;
use super::rank::PairOrder;
use crate::access_path::{Access, Goal, ScanPlan, cardinality};
use crate::bound::Bound;
use crate::model::JoinKind;
use crate::predicate::Predicate;
use crate::{Options, Result, Source};

/// No row: the end of a chain, or what stands beside a row without a match.
pub(crate) const NONE: u32 = u32::MAX;

/// One side of a join. Expressions read the fields of `source` by position.
pub(crate) struct Input<'a> {
    pub(crate) source: &'a dyn Source,
    /// What rows have to pass.
    pub(crate) filter: Option<Bound>,
    /// What has to be equal to the keys of the other side, in order.
    pub(crate) keys: Vec<Bound>,
    /// The fields that are wanted of the rows that match.
    pub(crate) columns: Vec<usize>,
    /// The fields that the pair filter reads.
    pub(crate) pair_columns: Vec<usize>,
}

/// A join.
pub(crate) struct JoinPlan<'a> {
    pub(crate) kind: JoinKind,
    pub(crate) left: Input<'a>,
    pub(crate) right: Input<'a>,
    /// What pairs have to pass: over the pair columns of the left, then those of the right.
    pub(crate) pair: Option<Bound>,
    /// Of a product: what tells which pairs are worth testing, where rows may come in any order.
    pub(crate) band: Option<Band>,
    /// What becomes of the order of the rows, where that is to be put back.
    pub(crate) order: Option<PairOrder<'a>>,
}

/// Which side the index is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// What a join met.
#[derive(Clone, Debug, Default)]
pub(crate) struct JoinCounts {
    /// Rows of the side that was built.
    pub(crate) rows_built: u64,
    /// Rows of the other side that passed its filter.
    pub(crate) rows_probed: u64,
    /// Rows that came out.
    pub(crate) rows_out: u64,
    /// What the other side was asked for, of the keys that were built.
    pub(crate) narrowing: Option<String>,
    /// How many rows that removed; `None` where its own filter removed some of them.
    pub(crate) rows_removed: Option<u64>,
}

impl<'a> JoinPlan<'a> {
    /// The input of a side, and the other.
    pub(crate) fn inputs(&self, side: Side) -> (&Input<'a>, &Input<'a>) {
        side.order(&self.left, &self.right)
    }
}

impl Input<'_> {
    /// About how many rows pass the filter.
    ///
    /// # Errors
    /// When an index cannot be read.
    pub(crate) fn estimate(&self, options: &Options) -> Result<u64> {
        let predicate = Predicate::compile(self.filter.as_ref());
        let plan = ScanPlan::new(&predicate, self.source, Goal::ALL, options)?;
        let is_scanned = |part| matches!(plan.part(part).access, Access::Scan);
        let share = match (0..self.source.part_count()).any(is_scanned) {
            true => cardinality::selectivity(&predicate, self.source)?,
            false => 1.0,
        };
        let mut rows = 0.0;
        for index in 0..self.source.part_count() {
            let part = self.source.part(index);
            let visible = || part.visible_count().unwrap_or_else(|| part.row_count()) as f64;
            rows += match &plan.part(index).access {
                Access::Nothing => 0.0,
                Access::Lookup(candidates) => candidates.estimate(part.row_count()),
                Access::Scan => visible() * share,
            };
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        Ok(rows.ceil() as u64)
    }
}

impl Side {
    /// What is of this side and of the other, as what is of the left and of the right; and the
    /// other way around.
    pub(crate) fn order<T>(self, of_this: T, of_other: T) -> (T, T) {
        match self {
            Self::Left => (of_this, of_other),
            Self::Right => (of_other, of_this),
        }
    }

    /// Which side to build, given about how many rows each has: the smaller one, the right one
    /// where they are about the same.
    pub(crate) fn to_build(left: u64, right: u64) -> Self {
        if left.saturating_mul(2) < right { Self::Left } else { Self::Right }
    }
}
