//! Queries that need more than their budget, in temporary files.
//!
//! ```text
//! sort    keys and locations ─► sorted runs in files ─► merge ─► rows fetched some at a time
//! group   keys and operands ─► files by hash of the key ─► groups of one file after another
//!           ─► sorted by where each group was first met ─► the next step, some at a time
//! window  rows ─► files by hash of the partition's keys ─► partitions of one file after another
//!           ─► sorted by where their rows stand
//! join    keys and locations of both sides ─► files by hash of the key ─► pairs of one file after
//!           another ─► sorted by where their rows lie
//! ```
//!
//! Each step begins in memory, and begins again here once it is over its budget. The answer is the
//! same, to the order of groups and the last bit of sums: rows reach their group in the same order
//! and by the same morsels. Besides its budget a step takes what a morsel for each core needs.

mod groups;
mod partitions;
mod projection;
mod sorter;
mod windows;

use esker_format::codec::Reader;
use esker_format::row::decode_row;
use esker_format::{Batch, Schema};

use crate::Result;
pub(super) use crate::temporary_file::SpillReader;
pub use crate::temporary_file::{TEMPORARY_PREFIX, TemporaryFiles};
pub(super) use groups::{Grouping, SpilledGroups};
pub(super) use partitions::{LEVELS_MAX, Partitions, key_of, record_of, rest_of, split};
pub(super) use projection::{project, sorted_locations};
pub(super) use sorter::{ExternalSorter, Record};
pub(super) use windows::windows;

/// Adds a row as it lies in a record.
fn push_row(batch: &mut Batch, schema: &Schema, row: &[u8]) -> Result<()> {
    let mut values = Vec::with_capacity(batch.columns.len());
    decode_row(&mut Reader::new(row), schema, &mut values)?;
    for (column, value) in batch.columns.iter_mut().zip(&values) {
        column.push(*value)?;
    }
    Ok(())
}

/// A number as bytes that sort as numbers do.
pub(super) fn rising(number: u64) -> [u8; 8] {
    let mut bytes = number.to_le_bytes();
    bytes.reverse();
    bytes
}
