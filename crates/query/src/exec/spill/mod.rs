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
mod row;
mod sorter;
mod windows;

pub(super) use crate::temporary_file::SpillReader;
pub use crate::temporary_file::{TEMPORARY_PREFIX, TemporaryFiles};
pub(super) use groups::{Grouping, SpilledGroups};
pub(super) use partitions::{LEVELS_MAX, Partitions, key_of, record_of, rest_of, split};
pub(super) use projection::{project, sorted_locations};
pub(super) use row::rising;
pub(super) use sorter::{ExternalSorter, Record};
pub(super) use windows::windows;
