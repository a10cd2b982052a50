//! What maintenance remembers between steps.

use std::collections::BTreeMap;

use esker_arena::ReadCommits;
use esker_format::schema::RowClasses;
use esker_format::{FieldId, TableId};
use esker_table::rewrite::Repoint;

use crate::Error;
use crate::maintenance::compaction::leveled::CompactionCursor;
use crate::maintenance::compaction::window_span::{ClassOf, EndBounds, WindowSpan};
use crate::maintenance::unfinished_erasures::Erasures;

/// A job that is about one table and, when it fails, does not hold back those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TableJob {
    Merge,
    BuildRun,
    EndEvents,
}

/// What maintenance remembers between steps.
#[derive(Default)]
pub(crate) struct State {
    /// Left by a seal or merge that could not read the keys of its inputs.
    pub moving: Option<Repoint>,
    /// Segments may know when their rows were created until no snapshot is older than this commit.
    pub settles_at: Option<u64>,
    /// Row groups judged as not worth rewriting yet.
    pub skip_cache: BTreeMap<u64, SkipCache>,
    /// The elapsed time at which row groups of tables whose rows expire are to be looked at next.
    pub expiring: BTreeMap<u64, i64>,
    /// Tables of which a job failed the last times: how often, and until when it is left alone.
    pub back_off: BTreeMap<(TableId, TableJob), (u32, u64)>,
    /// What row groups refer to in value files.
    pub counted: BTreeMap<u64, Counted>,
    /// Which windows segments of streams have rows of, and which classes by these rules.
    pub window_spans: BTreeMap<u64, WindowSpan>,
    pub segment_classes: BTreeMap<u64, (RowClasses, ClassOf)>,
    /// Up to which times events of each class of a stream have been ended, for a version of the
    /// schema.
    pub retained: BTreeMap<TableId, (u32, EndBounds)>,
    /// Merges of tables in the order of the key that did not fit one, and are under way.
    pub compaction_cursors: BTreeMap<TableId, CompactionCursor>,
    /// Erasures that are not done.
    pub erasures: Erasures,
    /// Index files that are not needed once the next checkpoint is durable.
    pub old_index_files: Vec<u64>,
    /// The disk had too little space for the log's reserve.
    pub is_reserve_short: bool,
    /// Why the last job failed.
    pub last_error: Option<String>,
    /// How many jobs have failed, and what the last of them met: writers that wait for memory
    /// get it.
    pub failures: u64,
    pub failure: Option<Error>,
    /// A job is running: another caller leaves it alone.
    pub running: bool,
    /// How many callers have a job of their own that is to run next: the task that does one job
    /// after another would keep them from it for as long as something is due.
    pub waiting: usize,
    /// How many callers build runs themselves, and wait for them.
    pub building: usize,
}

/// A row group that is not worth rewriting yet. Counting costs time: it is not done again before it
/// may come to something else.
pub(crate) struct SkipCache {
    /// Those who might see a version that was dead then: later readers do not.
    pub readers: ReadCommits,
    /// When the last of the dead had died.
    pub newest: u64,
    /// Deaths, and successors of dead rows, until then.
    pub events: u64,
    /// How many more there have to be for the same readers.
    pub missing: u64,
}

impl SkipCache {
    pub fn holds(&self, events: u64, readers: &ReadCommits) -> bool {
        let readers = readers.up_to(self.newest);
        let same_time = self.readers.since() == readers.since();
        self.readers.are_held_alike(&readers)
            && match self.missing {
                0 => same_time,
                missing => events < self.events + missing,
            }
    }
}

/// Bytes of long values by file.
pub(crate) type Bytes = BTreeMap<u64, u64>;

/// What a row group referred to when it was last counted.
#[derive(Default)]
pub(crate) struct Counted {
    /// Rows, and what happened to them since.
    pub as_of: (usize, u64),
    /// When the last of the dead had died, and who might see such a version then.
    pub newest: u64,
    pub readers: Option<ReadCommits>,
    /// The fields that a caller can ask for then.
    pub fields: Vec<FieldId>,
    pub bytes: Bytes,
}
