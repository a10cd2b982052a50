//! What a part keeps of a rollup, as queries read it.

use super::Fragment;
use super::rollup_layout::RollupLayout;
use crate::bound::Bound;

/// The partial aggregates of the rows of a part, by group: of *all* rows, the invisible and dead
/// ones included.
pub trait RollupRun: Sync {
    /// The name of the rollup.
    fn name(&self) -> &str;

    /// What it is; `None` where it cannot be read.
    fn shape(&self) -> Option<&RollupShape>;

    /// The groups, as rows of the columns that [`RollupShape::layout`] says.
    fn entries(&self) -> &dyn Fragment;
}

/// A rollup as queries of a table see it: with the positions that fields have there.
#[derive(Clone, Debug)]
pub struct RollupShape {
    pub(crate) keys: Vec<Bound>,
    pub(crate) filter: Option<Bound>,
    /// The fields that are aggregated.
    pub(crate) operands: Vec<usize>,
    pub(crate) layout: RollupLayout,
}

impl RollupShape {
    /// The columns of what is kept.
    #[must_use]
    pub fn layout(&self) -> &RollupLayout {
        &self.layout
    }
}
