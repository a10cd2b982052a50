//! What is joined, and what that met.

use super::band::Band;
use super::rank::PairOrder;
use super::{Input, Side};
use crate::bound::Bound;
use crate::model::JoinKind;

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
