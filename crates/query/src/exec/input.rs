//! What a step of a program reads.

use super::output::Materialised;
use super::spill::{SpilledGroups, TemporaryFiles};
use crate::Source;
use crate::budget::Charge;

/// What a step reads.
pub(crate) enum Input<'a> {
    /// The table.
    Source(&'a dyn Source),
    /// Groups of the step before, and what they take of the budget.
    Memory(Materialised, Charge<'a>),
    /// The same, in temporary files.
    Spilled(SpilledGroups<'a>, &'a TemporaryFiles),
}

impl Input<'_> {
    /// How many groups there are, as far as that is known before they are read.
    pub(super) fn row_count(&self) -> u64 {
        match self {
            Self::Source(_) => 0,
            Self::Memory(groups, _) => groups.row_count() as u64,
            Self::Spilled(groups, _) => groups.count,
        }
    }
}
