//! What rollups have of the rows of a part that is still written to.

use std::ops::Range;
use std::sync::Arc;

use esker_format::Column;

use super::rollup_run::RollupShape;
use crate::Result;

/// What a rollup has of blocks of a part's rows. A part that grows has no run, which would be of
/// all of its rows.
pub trait RollupBlocks: Sync {
    /// The name of the rollup.
    fn name(&self) -> &str;

    /// What it is.
    fn shape(&self) -> &RollupShape;

    /// The blocks that are known, or take little to know, in the order of the rows. Of rows in none
    /// nothing is kept.
    ///
    /// # Errors
    /// When a column cannot be read.
    fn blocks(&self) -> Result<Vec<RollupBlock>>;
}

/// The groups of some rows of a part: of all of them, the invisible and dead ones included.
pub struct RollupBlock {
    /// The rows.
    pub rows: Range<usize>,
    /// The groups, as columns that [`RollupShape::layout`] says; the number of the first row of a
    /// group is one among those of the block.
    pub groups: Arc<Option<Vec<Column>>>,
}
