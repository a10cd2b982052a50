//! Sealed segments: immutable columns in a file (or in memory, for memory databases), with the
//! little that may still change beside them: which rows have died since.
//!
//! The invariants of the file are in the head of [`esker_format::segment`]: the writer asserts
//! those of all rows, `Segment::open` those of the file, before a frame names it and at each start.

mod alive;
mod arrival;
mod blocks;
mod by_field;
mod cell;
mod cell_map;
mod columns;
mod compressed;
mod delete_bitmap;
mod file_name;
mod files;
mod forms;
mod heap;
mod heap_blocks;
mod in_place;
mod known_lengths;
mod lengths;
mod packed;
mod plain;
mod prefetch;
mod reader;
mod row_ids;
mod runs;
mod scattered;
mod scattered_heap;
pub mod sink;
mod sketches;
mod writer;

#[cfg(test)]
mod packed_tests;
#[cfg(test)]
mod tests;

pub use file_name::{
    is_unnamed_run, run_file_id, run_file_number, run_of_file, segment_file_id, segment_file_name,
    segment_path,
};

pub use arrival::ArrivedRows;
pub use files::SegmentFiles;
pub(crate) use prefetch::COLUMNS_MAX;
pub(crate) use reader::ANY_ROWS;
pub use reader::{CreateStamp, Segment};
pub use runs::Runs;
pub use writer::{FinishedSegment, SegmentSpec, SegmentWriter, SinkTarget};
