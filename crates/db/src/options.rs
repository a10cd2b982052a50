//! How to open a database.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use esker_format::segment::SEGMENT_ROWS_MAX;
use esker_query::{IndexUse, JoinOrder, Semantics, Unnesting};
use esker_table::segment::SegmentFiles;
use esker_table::value_file::ValueLimits;
use esker_vfs::Environment;

use crate::files::Files;

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
    pub(crate) program: Option<String>,
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
    pub(crate) join_order: JoinOrder,
    pub(crate) unnesting: Unnesting,
    pub(crate) semantics: Semantics,
    pub(crate) files: Option<Arc<dyn Files>>,
    pub(crate) temporary_limit_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            environment: None,
            program: None,
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
            join_order: JoinOrder::default(),
            unnesting: Unnesting::default(),
            semantics: Semantics::default(),
            files: None,
            temporary_limit_bytes: None,
        }
    }
}

/// Methods that set fields of the options, and give the options back.
macro_rules! setters {
    ($(
        $(#[$about:meta])*
        $name:ident($($value:ident: $type:ty),*) => $($field:ident = $to:expr),+;
    )*) => {
        impl Options {$(
            $(#[$about])*
            #[must_use]
            pub fn $name(mut self $(, $value: $type)*) -> Self {
                $(self.$field = $to;)+
                self
            }
        )*}
    };
}

setters! {
    /// When commits are acknowledged.
    durability(durability: Durability) => durability = durability;

    /// The most memory that groups, indexes, visibility and loads may take, in bytes. The finished
    /// segments of a memory database are not counted, nor are the copies of [`Options::paranoid`].
    memory_limit(bytes: u64) => memory_limit_bytes = bytes;

    /// The most memory that the temporary tables of one session may take, in bytes; a quarter of
    /// the memory limit by default, of which they are part.
    temporary_memory_limit(bytes: u64) => temporary_limit_bytes = Some(bytes);

    /// The most that the log's reserve may take, in bytes; 1 MiB by default, 0 for none.
    ///
    /// The reserve is disk space that is kept for the time when the disk is full: for opening the
    /// database, and for commits that free space (`DROP`, `DELETE`, `TRUNCATE` and the like).
    /// Commits that only add data leave it alone, and are refused with
    /// [`NoSpace`](crate::ErrorKind::NoSpace). It is a 64th of what the database takes, but at
    /// least 16 KiB. Half as much is kept at the end of the log besides, for those commits. It is
    /// filled again as soon as there is space.
    log_reserve(bytes: u64) => log_reserve_bytes = bytes;

    /// The length of log past which groups are sealed and a checkpoint is made, in bytes.
    log_limit(bytes: u64) => log_limit_bytes = bytes;

    /// The size at which an open group is sealed, in rows and bytes. For tests and tuning.
    group_limit(rows: usize, bytes: u64) =>
        group_rows_max = rows.clamp(1, 1 << 21),
        group_bytes_max = bytes;

    /// Groups below this many bytes live in the checkpoint file and are never sealed for it.
    small_group_limit(bytes: u64) => small_group_bytes = bytes;

    /// The most rows of a segment that a bulk load writes.
    segment_limit(rows: usize) => segment_rows_max = rows.clamp(1, 1 << 22);

    /// Tables with at least this many sealed rows get an index checkpoint, and so do those whose
    /// keys lie among values. For tests and tuning.
    index_file_limit(rows: usize) => index_rows_min = rows.max(1);

    /// The share of its time that background merging may spend working, in percent.
    merge_share(percent: u32) => merge_share_percent = percent.clamp(1, 100);

    /// The most bytes of values of a commit that goes through the log; larger ones become segments
    /// first. For tests.
    commit_limit(bytes: usize) => commit_bytes_max = bytes.clamp(1, COMMIT_BYTES_MAX);

    /// The most bytes of its changes, about, that a transaction keeps in memory before it writes
    /// them to files; else a part of the memory limit. For tests.
    transaction_limit(bytes: usize) => transaction_bytes_max = bytes.max(1);

    /// Lets other tasks run before a commit that is too large for the log is numbered, in a
    /// simulation. For tests.
    #[doc(hidden)]
    pause_large_commits() => pauses_large_commits = true;

    /// Tells the number of each commit of rows, on the thread that commits, as soon as it has one:
    /// before it is durable. For tests.
    #[doc(hidden)]
    on_commits(tell: fn(u64)) => on_commit = Some(tell);

    /// The most bytes that the texts of one column of a merged segment take when they are not
    /// encoded. For tests.
    merged_column_limit(bytes: u64) =>
        column_bytes_max = bytes.clamp(1, esker_table::rewrite::COLUMN_BYTES_MAX);

    /// About how many rows a merge of a table that is ordered by key takes at once, and how many
    /// each segment has at the most that a merge of any table writes. For tests.
    #[doc(hidden)]
    merge_limit(rows: u64, segment_rows: usize) =>
        merge_rows_max = rows.clamp(1, MERGE_ROWS_MAX),
        merged_rows_max = segment_rows.clamp(1, SEGMENT_ROWS_MAX);

    /// Opens for reading only: recovers in memory and writes nothing. Refused while a writer has
    /// the database open; further readers may open it too.
    read_only(read_only: bool) => read_only = read_only;

    /// Whether to create the database when there is none.
    create(create: bool) => create = create;

    /// The machine to run on: for the simulator.
    environment(environment: Environment) => environment = Some(environment);

    /// What this program calls itself, for others that find the database open; the name of its file
    /// unless given. See [`LockHolder`](crate::LockHolder).
    program(name: &str) => program = Some(name.to_owned());

    /// Whether sealing, merging and checkpoints run by themselves; without, only
    /// [`wait_idle`](crate::Database::wait_idle) and [`checkpoint`](crate::Database::checkpoint) do
    /// them. For tests.
    background(background: bool) => background = background;

    /// Whether reads use only what has been verified: the first touch of a block of a segment file
    /// copies it into memory, and later reads use that copy. Otherwise they use the mapped file,
    /// where rot after the first touch gives a wrong answer until [`check`](crate::Database::check)
    /// finds it, and a device error ends the process.
    ///
    /// Costs memory for what is read, up to the length of all segment files, beside the memory
    /// limit; each block is then read from the disk once only.
    paranoid(paranoid: bool) => paranoid = paranoid;

    /// While `flag` is set, queries of the database end with `Cancelled`, soon after they notice,
    /// and so do statements that change rows, until they commit. The thread that sets it clears it
    /// before the next statement.
    cancel(flag: Arc<AtomicBool>) => cancel = flag;

    /// How long a statement may take, unless it says otherwise ([`crate::Limits::timeout`]). Past
    /// it a query, or a statement that changes rows and has not committed, ends with `TimedOut`,
    /// having changed nothing. Waiting for the disk to acknowledge a commit does not count.
    statement_timeout(timeout: Duration) => statement_timeout = Some(timeout);

    /// The most memory that groups, sort keys and answer of one query take at once, in bytes,
    /// unless it says otherwise ([`crate::Limits::memory_bytes`]); 1 GiB by default. It is beside
    /// [`Options::memory_limit`]. Groups, sort keys and sides of joins beyond it lie in
    /// temporary files of the directory; a database in memory refuses what needs more with
    /// `OverBudget`.
    query_memory_limit(bytes: usize) => query_memory_limit_bytes = bytes;

    /// How long a snapshot is held for cursors ([`crate::PageOptions::snapshot`]) after the last
    /// page was read; one minute by default. While it is held, no merge drops what it sees.
    cursor_hold(time: Duration) => cursor_hold = time;

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
    index_use(index_use: IndexUse) => index_use = index_use;

    /// In which order the tables of a query are joined. The answers are the same; for tests.
    #[doc(hidden)]
    join_order(order: JoinOrder) => join_order = order;

    /// Whether subqueries that name fields of the query around them become joins, which they do
    /// unless this says otherwise. The answers are the same; for tests.
    ///
    /// ```
    /// use esker::{Options, Unnesting};
    ///
    /// let db = Options::new().unnesting(Unnesting::Never).memory()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    unnesting(unnesting: Unnesting) => unnesting = unnesting;

    /// Where NULLs go in orders that do not say it, and what a division by zero is, for statements
    /// that do not choose. Nothing of it is stored.
    ///
    /// ```
    /// use esker::{Options, Semantics};
    ///
    /// let db = Options::new().semantics(Semantics::postgres()).memory()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    semantics(semantics: Semantics) => semantics = semantics;
}

impl Options {
    /// The defaults: create when absent, [`Durability::Sync`], 4 GiB of memory, 256 MiB of log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How statements reach files: `FROM 'x.csv'`, `COPY t FROM 'x.csv'`. Without it, they reach
    /// none. `FileAccess` of the crate `esker-import` is one that reads and writes CSV and JSON.
    #[must_use]
    pub fn files(mut self, files: Arc<dyn Files>) -> Self {
        self.files = Some(files);
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
