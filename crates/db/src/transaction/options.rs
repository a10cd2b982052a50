//! How a transaction is run.

/// What a transaction is kept from seeing of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Isolation {
    /// It reads as of one commit, and of two that change the same row, or put the same key or the
    /// same unique value, the first to commit wins. Two that each change what the other only reads
    /// may both commit: that is write skew.
    #[default]
    Snapshot,
    /// As if the transactions of this level ran one after another. Commits fail with a `Conflict`
    /// where what was read was changed meanwhile: a row that was looked up by its key, or anything
    /// in a table that a query read.
    Serializable,
}

/// How a transaction is run.
///
/// ```
/// use esker::{Isolation, Options, TransactionOptions};
///
/// let db = Options::new().memory()?;
/// let options = TransactionOptions::new().isolation(Isolation::Serializable);
/// let transaction = db.begin_with(options)?;
/// assert_eq!(transaction.isolation(), Isolation::Serializable);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionOptions {
    pub(super) isolation: Isolation,
    pub(super) read_only: bool,
    pub(super) sync: Option<bool>,
    pub(super) memory_bytes: Option<u64>,
}

impl TransactionOptions {
    /// A transaction that reads and writes, under snapshot isolation, as durable as the database.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What it is kept from seeing of others.
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Whether it only reads: it never waits and never fails for what others do. Changes are
    /// refused.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Whether the commit returns only once it is on the disk (`true`), or at once (`false`),
    /// whatever the durability of the database is.
    #[must_use]
    pub fn sync(mut self, sync: bool) -> Self {
        self.sync = Some(sync);
        self
    }

    /// The most memory that its changes take, in bytes; else what the database may have for all.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }
}
