//! A side of a join: what is read of it, which of them is built, and numbers of rows.

use crate::access_path::{Access, Goal, ScanPlan, cardinality};
use crate::bound::Bound;
use crate::predicate::Predicate;
use crate::{Error, ErrorKind, Options, Result, Source};

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

/// Which side the index is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
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

/// Refuses more rows than have numbers.
pub(super) fn refuse_many(rows: usize) -> Result<()> {
    match u32::try_from(rows) {
        Ok(rows) if rows < NONE => Ok(()),
        _ => Err(Error::new(
            ErrorKind::OverBudget,
            format!("a join of {rows} rows: at most {} on each side, and out of it", NONE - 1),
        )),
    }
}
