//! The order of the rows of a row group, as far as it is known.

use std::sync::{Arc, OnceLock};

use esker_vfs::sync::Mutex;

/// Sorted keys: what they have in common, and eight bytes after that of each.
#[derive(Debug, Default)]
pub(super) struct Heads {
    pub(super) prefix: Vec<u8>,
    pub(super) heads: Vec<u64>,
}

/// Rows of a row group by key.
#[derive(Debug)]
pub struct SortedRun {
    pub(super) rows: Vec<u32>,
    pub(super) heads: Option<Heads>,
}

/// The samples of a segment whose rows lie in the order of the key.
#[derive(Debug)]
pub(super) struct SegmentSamples {
    /// Of the least keys of the zones, as the zone map knows them: cut short, if they are long.
    pub(super) zones: Heads,
    pub(super) within: Vec<OnceLock<Heads>>,
}

/// The rows of a row group, sorted as far as readers needed them.
#[derive(Default)]
pub struct SortedRows {
    pub(super) runs: Mutex<Vec<Arc<SortedRun>>>,
    /// Of a segment whose rows lie in the order of the key.
    pub(super) samples: OnceLock<Option<SegmentSamples>>,
}
