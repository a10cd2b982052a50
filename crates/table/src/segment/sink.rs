//! Where new segments go.

use esker_format::edit::SegmentEntry;

use super::{Segment, SinkTarget};
use crate::Result;
use crate::value_file::StoredValue;

/// Gives out numbers and places for new segments, and opens what was written.
pub trait SegmentSink {
    /// A number that no row group has had.
    fn next_id(&mut self) -> u64;

    /// Where the segment's bytes go.
    ///
    /// # Errors
    /// What the machine says.
    fn create(&mut self, id: u64) -> Result<SinkTarget>;

    /// Longer values are to lie in value files.
    fn long_bytes(&self) -> usize;

    /// Writes a value into a value file.
    ///
    /// # Errors
    /// What the machine says.
    fn store(&mut self, value: &[u8]) -> Result<StoredValue>;

    /// Syncs and opens a finished segment.
    ///
    /// # Errors
    /// What the machine says.
    fn finish(&mut self, entry: SegmentEntry, target: SinkTarget) -> Result<Segment>;

    /// A point at which others may run, in simulation.
    fn pause(&mut self);
}
