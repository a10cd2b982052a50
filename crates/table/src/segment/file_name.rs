//! Names and numbers of the files of segments and of their index runs.

use std::path::{Path, PathBuf};

use esker_format::schema::{INDEX_IDS_MAX, IndexId};

/// What the name of a run ends with while it is written.
pub(super) const UNNAMED: &str = ".new";

/// The bit that tells the file number of a run from that of a segment.
const RUN_TAG: u64 = 1 << 55;
const INDEX_SHIFT: u32 = 40;

/// The number of a run's file.
#[must_use]
pub fn run_file_id(segment: u64, index: IndexId) -> u64 {
    debug_assert!(index.0 <= INDEX_IDS_MAX, "index number {} does not fit 15 bits", index.0);
    RUN_TAG | u64::from(index.0) << INDEX_SHIFT | segment
}

/// The segment and the index of a run, by the number of its file; `None` for a segment's.
#[must_use]
pub fn run_of_file(id: u64) -> Option<(u64, IndexId)> {
    let index = u32::try_from((id & (RUN_TAG - 1)) >> INDEX_SHIFT).ok()?;
    (id & RUN_TAG != 0).then_some((id & ((1 << INDEX_SHIFT) - 1), IndexId(index)))
}

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
    name.strip_suffix(UNNAMED).is_some_and(|name| run_file_number(name).is_some())
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
