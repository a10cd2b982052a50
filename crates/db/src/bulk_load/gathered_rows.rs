//! Rows of a load that come one by one and have fields that are computed: they are computed for
//! many rows at a time.

use esker_format::{Batch, Value};

use super::Load;
use crate::Result;

/// Rows, and bytes of them, that are gathered before their fields are computed.
const ROWS_AT_ONCE: usize = 1_024;
const BYTES_AT_ONCE: usize = 64 << 10;

/// Rows without what is computed of them.
#[derive(Default)]
pub(super) struct GatheredRows {
    batch: Batch,
    bytes: usize,
}

impl GatheredRows {
    pub fn len(&self) -> usize {
        self.batch.len()
    }
}

impl Load {
    /// Adds a row of about so many bytes.
    pub(super) fn gather_row(&mut self, row: &[Value], bytes: usize) -> Result<()> {
        let (schema, waiting) = (&self.shared.schema, &mut self.waiting);
        if waiting.batch.columns.is_empty() {
            waiting.batch = Batch::empty(schema);
        }
        waiting.batch.push_row(schema, row)?;
        waiting.bytes += bytes;
        match waiting.len() < ROWS_AT_ONCE && waiting.bytes < BYTES_AT_ONCE {
            true => Ok(()),
            false => self.push_gathered(),
        }
    }

    /// Computes what is generated of the rows that came one by one, and adds them.
    pub(super) fn push_gathered(&mut self) -> Result<()> {
        match self.waiting.len() {
            0 => Ok(()),
            _ => {
                let GatheredRows { batch, .. } = std::mem::take(&mut self.waiting);
                self.push_batch(batch)
            }
        }
    }
}
