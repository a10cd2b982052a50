//! Sealed segments: immutable columns in a file (or in memory, for memory databases), with the
//! little that may still change beside them: which rows have died since.

mod blocks;
mod cell;
mod columns;
mod delete_bitmap;
mod files;
mod forms;
mod heap;
mod lengths;
mod prefetch;
mod reader;
mod row_ids;
mod scattered;
mod writer;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use esker_format::schema::{INDEX_IDS_MAX, IndexId};

use crate::index_run::{run_file_id, run_of_file};
pub use files::SegmentFiles;
pub(crate) use prefetch::COLUMNS_MAX;
pub use reader::{CreateStamp, Segment};
pub use writer::{FinishedSegment, SegmentSpec, SegmentWriter, SinkTarget};

/// The file name of a segment, or of a run of one.
#[must_use]
pub fn segment_file_name(id: u64) -> String {
    match run_of_file(id) {
        None => format!("segment-{id:016x}"),
        Some((segment, index)) => format!("run-{segment:016x}-{:04x}", index.0),
    }
}

/// True for the name of a run that is being written.
#[must_use]
pub fn is_unnamed_run(name: &str) -> bool {
    name.strip_suffix(files::UNNAMED).is_some_and(|name| run_file_number(name).is_some())
}

/// The number of a run's file, from its name.
#[must_use]
pub fn run_file_number(name: &str) -> Option<u64> {
    let (segment, index) = name.strip_prefix("run-")?.split_once('-')?;
    let number = |digits: &str, len: usize| {
        (digits.len() == len).then(|| u64::from_str_radix(digits, 16).ok()).flatten()
    };
    let index = u32::try_from(number(index, 4)?).ok().filter(|index| *index <= INDEX_IDS_MAX)?;
    let segment = number(segment, 16).filter(|segment| *segment < 1 << 40)?;
    Some(run_file_id(segment, IndexId(index)))
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
