//! Rows and their numbers, as records have them.

use esker_format::codec::Reader;
use esker_format::row::decode_row;
use esker_format::{Batch, Schema};

use crate::Result;

/// Adds a row as it lies in a record.
pub(super) fn push_row(batch: &mut Batch, schema: &Schema, row: &[u8]) -> Result<()> {
    let mut values = Vec::with_capacity(batch.columns.len());
    decode_row(&mut Reader::new(row), schema, &mut values)?;
    for (column, value) in batch.columns.iter_mut().zip(&values) {
        column.push(*value)?;
    }
    Ok(())
}

/// A number as bytes that sort as numbers do.
pub(crate) fn rising(number: u64) -> [u8; 8] {
    let mut bytes = number.to_le_bytes();
    bytes.reverse();
    bytes
}
