//! How to open a database.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use esker_format::segment::SEGMENT_ROWS_MAX;
use esker_query::IndexUse;
use esker_table::segment::SegmentFiles;
use esker_table::value_file::ValueLimits;
use esker_vfs::Environment;

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// Once it is on the disk: it survives a power loss.
    #[default]
    Sync,
    /// At once; it is on the disk at most this much later. A crash may lose the newest commits
    /// of that window, never one before another that survives.
    Async {
        /// The longest time between a commit and its being on the disk.
        at_most: Duration,
    },
}

/// Bytes of values of a commit that goes through the log: a frame has at most 16 MiB.
const COMMIT_BYTES_MAX: usize = 12 << 20;

/// Rows of the inputs of a merge by keys: their order is made in memory, of some 50 bytes a row.
const MERGE_ROWS_MAX: u64 = 32 << 20;

/// How to open or create a database.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) environment: Option<Environment>,
    pub(crate) durability: Durability,
    pub(crate) memory_limit_bytes: u64,
    pub(crate) log_limit_bytes: u64,
    pub(crate) log_reserve_bytes: u64,
    pub(crate) group_rows_max: usize,
    pub(crate) group_bytes_max: u64,
    pub(crate) small_group_bytes: u64,
    pub(crate) segment_rows_max: usize,
    pub(crate) index_rows_min: usize,
    pub(crate) merge_share_percent: u32,
    pub(crate) read_only: bool,
    pub(crate) create: bool,
    /// Whether the directory is one that this process is still filling.
    pub(crate) unfinished: bool,
    pub(crate) background: bool,
    pub(crate) column_bytes_max: u64,
    pub(crate) merge_rows_max: u64,
    pub(crate) merged_rows_max: usize,
    pub(crate) commit_bytes_max: usize,
    pub(crate) transaction_bytes_max: usize,
    pub(crate) pauses_large_commits: bool,
    pub(crate) on_commit: Option<fn(u64)>,
    pub(crate) values: ValueLimits,
    pub(crate) paranoid: bool,
    pub(crate) cancel: Arc<AtomicBool>,
    pub(crate) statement_timeout: Option<Duration>,
    pub(crate) query_memory_limit_bytes: usize,
    pub(crate) cursor_hold: Duration,
    pub(crate) index_use: IndexUse,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            environment: None,
            durability: Durability::Sync,
            memory_limit_bytes: 4 << 30,
            log_limit_bytes: 256 << 20,
            log_reserve_bytes: 1 << 20,
            group_rows_max: 1 << 20,
            group_bytes_max: 64 << 20,
            small_group_bytes: 1 << 20,
            segment_rows_max: 1 << 22,
            index_rows_min: 64 << 10,
            merge_share_percent: 50,
            read_only: false,
            create: true,
            unfinished: false,
            background: true,
            column_bytes_max: esker_table::rewrite::COLUMN_BYTES_MAX,
            merge_rows_max: MERGE_ROWS_MAX,
            merged_rows_max: SEGMENT_ROWS_MAX,
            commit_bytes_max: COMMIT_BYTES_MAX,
            transaction_bytes_max: usize::MAX,
            pauses_large_commits: false,
            on_commit: None,
            values: ValueLimits::default(),
            paranoid: false,
            cancel: Arc::default(),
            statement_timeout: None,
            query_memory_limit_bytes: esker_query::Options::MEMORY_BUDGET_BYTES,
            cursor_hold: Duration::from_secs(60),
            index_use: IndexUse::default(),
        }
    }
}

impl Options {
    /// The defaults: create when absent, [`Durability::Sync`], 4 GiB of memory, 256 MiB of log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// When commits are acknowledged.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The most memory that groups, indexes, visibility and loads may take, in bytes. The finished
    /// segments of a memory database are not counted, nor are the copies of [`Options::paranoid`].
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit_bytes = bytes;
        self
    }

    /// The most that the log's reserve may take, in bytes; 1 MiB by default, 0 for none.
    ///
    /// The reserve is disk space that is kept for the time when the disk is full: for opening the
    /// database, and for commits that free space (`DROP`, `DELETE`, `TRUNCATE` and the like).
    /// Commits that only add data leave it alone, and are refused with
    /// [`NoSpace`](crate::ErrorKind::NoSpace). It is a 64th of what the database takes, but at
    /// least 16 KiB. Half as much is kept at the end of the log besides, for those commits. It is
    /// filled again as soon as there is space.
    #[must_use]
    pub fn log_reserve(mut self, bytes: u64) -> Self {
        self.log_reserve_bytes = bytes;
        self
    }

    /// The length of log past which groups are sealed and a checkpoint is made, in bytes.
    #[must_use]
    pub fn log_limit(mut self, bytes: u64) -> Self {
        self.log_limit_bytes = bytes;
        self
    }

    /// The size at which an open group is sealed, in rows and bytes. For tests and tuning.
    #[must_use]
    pub fn group_limit(mut self, rows: usize, bytes: u64) -> Self {
        self.group_rows_max = rows.clamp(1, 1 << 21);
        self.group_bytes_max = bytes;
        self
    }

    /// Groups below this many bytes live in the checkpoint file and are never sealed for it.
    #[must_use]
    pub fn small_group_limit(mut self, bytes: u64) -> Self {
        self.small_group_bytes = bytes;
        self
    }

    /// The most rows of a segment that a bulk load writes.
    #[must_use]
    pub fn segment_limit(mut self, rows: usize) -> Self {
        self.segment_rows_max = rows.clamp(1, 1 << 22);
        self
    }

    /// Tables with at least this many sealed rows get an index checkpoint, and so do those whose
    /// keys lie among values. For tests and tuning.
    #[must_use]
    pub fn index_file_limit(mut self, rows: usize) -> Self {
        self.index_rows_min = rows.max(1);
        self
    }

    /// The share of its time that background merging may spend working, in percent.
    #[must_use]
    pub fn merge_share(mut self, percent: u32) -> Self {
        self.merge_share_percent = percent.clamp(1, 100);
        self
    }

    /// The most bytes of values of a commit that goes through the log; larger ones become segments
    /// first. For tests.
    #[must_use]
    pub fn commit_limit(mut self, bytes: usize) -> Self {
        self.commit_bytes_max = bytes.clamp(1, COMMIT_BYTES_MAX);
        self
    }

    /// The most bytes of its changes, about, that a transaction keeps in memory before it writes
    /// them to files; else a part of the memory limit. For tests.
    #[must_use]
    pub fn transaction_limit(mut self, bytes: usize) -> Self {
        self.transaction_bytes_max = bytes.max(1);
        self
    }

    /// Lets other tasks run before a commit that is too large for the log is numbered, in a
    /// simulation. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn pause_large_commits(mut self) -> Self {
        self.pauses_large_commits = true;
        self
    }

    /// Tells the number of each commit of rows, on the thread that commits, as soon as it has one:
    /// before it is durable. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn on_commits(mut self, tell: fn(u64)) -> Self {
        self.on_commit = Some(tell);
        self
    }

    /// The most bytes of a text, bytes or JSON that is stored with its row: longer ones go to value
    /// files, which take no more values past `file_bytes`. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn value_file_limits(mut self, long_bytes: usize, file_bytes: u64) -> Self {
        let long_bytes = long_bytes.clamp(16, ValueLimits::default().long_bytes);
        self.values = ValueLimits { long_bytes, file_bytes_max: file_bytes };
        self
    }

    /// The most bytes that the texts of one column of a merged segment take when they are not
    /// encoded. For tests.
    #[must_use]
    pub fn merged_column_limit(mut self, bytes: u64) -> Self {
        self.column_bytes_max = bytes.clamp(1, esker_table::rewrite::COLUMN_BYTES_MAX);
        self
    }

    /// About how many rows a merge of a table that is ordered by key takes at once, and how many
    /// each segment has at the most that a merge of any table writes. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn merge_limit(mut self, rows: u64, segment_rows: usize) -> Self {
        self.merge_rows_max = rows.clamp(1, MERGE_ROWS_MAX);
        self.merged_rows_max = segment_rows.clamp(1, SEGMENT_ROWS_MAX);
        self
    }

    /// Opens for reading only: recovers in memory and writes nothing. Refused while a writer has
    /// the database open; further readers may open it too.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Whether to create the database when there is none.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// The machine to run on: for the simulator.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Whether sealing, merging and checkpoints run by themselves; without, only
    /// [`wait_idle`](crate::Database::wait_idle) and [`checkpoint`](crate::Database::checkpoint) do
    /// them. For tests.
    #[must_use]
    pub fn background(mut self, background: bool) -> Self {
        self.background = background;
        self
    }

    /// Whether reads use only what has been verified: the first touch of a block of a segment file
    /// copies it into memory, and later reads use that copy. Otherwise they use the mapped file,
    /// where rot after the first touch gives a wrong answer until [`check`](crate::Database::check)
    /// finds it, and a device error ends the process.
    ///
    /// Costs memory for what is read, up to the length of all segment files, beside the memory
    /// limit; each block is then read from the disk once only.
    #[must_use]
    pub fn paranoid(mut self, paranoid: bool) -> Self {
        self.paranoid = paranoid;
        self
    }

    /// While `flag` is set, queries of the database end with `Cancelled`, soon after they notice,
    /// and so do statements that change rows, until they commit. The thread that sets it clears it
    /// before the next statement.
    #[must_use]
    pub fn cancel(mut self, flag: Arc<AtomicBool>) -> Self {
        self.cancel = flag;
        self
    }

    /// How long a statement may take, unless it says otherwise ([`crate::Limits::timeout`]). Past
    /// it a query, or a statement that changes rows and has not committed, ends with `TimedOut`,
    /// having changed nothing. Waiting for the disk to acknowledge a commit does not count.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = Some(timeout);
        self
    }

    /// The most memory that groups, sort keys and answer of one query take at once, in bytes,
    /// unless it says otherwise ([`crate::Limits::memory_bytes`]); 1 GiB by default. It is beside
    /// [`Options::memory_limit`]. Groups, sort keys and sides of joins beyond it lie in
    /// temporary files of the directory; a database in memory refuses what needs more with
    /// `OverBudget`.
    #[must_use]
    pub fn query_memory_limit(mut self, bytes: usize) -> Self {
        self.query_memory_limit_bytes = bytes;
        self
    }

    /// How long a snapshot is held for cursors ([`crate::PageOptions::snapshot`]) after the last
    /// page was read; one minute by default. While it is held, no merge drops what it sees.
    #[must_use]
    pub fn cursor_hold(mut self, time: Duration) -> Self {
        self.cursor_hold = time;
        self
    }

    /// When statements read the indexes of tables: where that is thought to be cheaper, unless this
    /// says otherwise. The answers are the same; for tests, which force what chance would seldom
    /// choose.
    ///
    /// ```
    /// use esker::{IndexUse, Options};
    ///
    /// let db = Options::new().index_use(IndexUse::Always).memory()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn index_use(mut self, index_use: IndexUse) -> Self {
        self.index_use = index_use;
        self
    }

    /// The segment files of a database opened so.
    pub(crate) fn segment_files(
        &self,
        environment: &Environment,
        dir: &Path,
        database: u128,
    ) -> Arc<SegmentFiles> {
        let (environment, dir) = (environment.clone(), dir.to_owned());
        SegmentFiles::new(environment, dir, database, self.paranoid, self.values)
    }
}
