//! A version that lives on when its row group is rewritten.

use crate::view::RowGroup;
use crate::{Error, Result};

/// One version that is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LiveVersion {
    pub row_id: u64,
    pub row_group: u32,
    pub row: u32,
}

impl LiveVersion {
    /// Its row group, among the inputs of a rewrite.
    pub fn row_group_in<'g>(&self, inputs: &'g [RowGroup]) -> Result<&'g RowGroup> {
        inputs.get(self.row_group as usize).ok_or_else(|| {
            let (input, row, len) = (self.row_group, self.row, inputs.len());
            Error::corrupt(format!("row {row} of input {input}, of {len} that are rewritten"))
        })
    }
}
