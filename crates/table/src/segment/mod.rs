//! Sealed segments: immutable columns in a file (or in memory, for memory databases), with the
//! little that may still change beside them: which rows have died since.

mod blocks;
mod files;
mod reader;
mod touch;
mod writer;

use std::path::{Path, PathBuf};

pub use files::SegmentFiles;
pub use reader::{Created, Segment};
pub use writer::{SegmentSpec, SegmentWriter, SinkTarget};

/// The file name of a segment.
#[must_use]
pub fn segment_file_name(id: u64) -> String {
    format!("segment-{id:016x}")
}

/// The number in a segment's file name.
#[must_use]
pub fn segment_file_id(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("segment-").filter(|d| d.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

/// The path of a segment.
#[must_use]
pub fn segment_path(dir: &Path, id: u64) -> PathBuf {
    dir.join(segment_file_name(id))
}
