//! Errors, by what the caller can do about them.

use std::fmt;

use esker_query::model::Expr;

/// The result of a database operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input does not fit: fix it. Nothing was changed.
    InvalidInput,
    /// No such table or row.
    NotFound,
    /// The key, table or directory exists already.
    AlreadyExists,
    /// Somebody else is changing the same key: try again.
    Conflict,
    /// Another process has the database open; the message says which.
    Locked,
    /// The disk is full: free some space and try again. Nothing was changed.
    NoSpace,
    /// Memory would pass its limit: the message has the number needed.
    OverBudget,
    /// The query was cancelled: see [`Options::cancel`](crate::Options::cancel).
    Cancelled,
    /// The statement took longer than its timeout: try again with more time
    /// ([`Limits::timeout`](crate::Limits::timeout)). Nothing was changed.
    TimedOut,
    /// The snapshot that a cursor goes on in is held no longer: begin again without the cursor.
    SnapshotGone,
    /// A file is damaged; the message names it and the offset. Restore it from a backup.
    Corrupt,
    /// A write or a sync failed earlier: reads go on, writes need the database to be opened again.
    Poisoned,
    /// The commit was made but is not known to be durable: open again and look.
    OutcomeUnknown,
    /// The database was opened for reading.
    ReadOnly,
    /// The machine failed.
    Io,
}

/// An error with what was expected and where.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    /// An error of a kind.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// True when the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Conflict | ErrorKind::NoSpace | ErrorKind::Locked)
    }

    /// The same error once more, for a second caller.
    #[must_use]
    pub(crate) fn repeated(&self) -> Self {
        Self { kind: self.kind, message: self.message.clone() }
    }

    /// The same error with a place in front of its message.
    #[must_use]
    pub(crate) fn at(self, place: impl fmt::Display) -> Self {
        Self { kind: self.kind, message: format!("{place}: {}", self.message) }
    }

    /// The error of expressions that a query shows, as one of the clause that they stand in. What
    /// a query within them says of its own keeps its place.
    #[must_use]
    pub(crate) fn in_clause<'a>(
        self,
        clause: &str,
        exprs: impl IntoIterator<Item = &'a Expr>,
    ) -> Self {
        let Some(told) = self.message.strip_prefix("SELECT: ") else { return self };
        let mut exprs = exprs.into_iter().peekable();
        let is_own = |expr: &Expr| !expr.has_subquery() || told.starts_with(&expr.to_string());
        if exprs.peek().is_some() && exprs.all(is_own) {
            return Self { kind: self.kind, message: format!("{clause}: {told}") };
        }
        self
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<esker_vfs::Error> for Error {
    fn from(e: esker_vfs::Error) -> Self {
        use esker_vfs::ErrorKind as K;
        let kind = match e.kind() {
            K::NotFound => ErrorKind::NotFound,
            K::AlreadyExists => ErrorKind::AlreadyExists,
            K::Locked => ErrorKind::Locked,
            K::NoSpace => ErrorKind::NoSpace,
            _ => ErrorKind::Io,
        };
        Self::new(kind, e.to_string())
    }
}

impl From<esker_format::Error> for Error {
    fn from(e: esker_format::Error) -> Self {
        let kind = match e.kind() {
            esker_format::ErrorKind::InvalidInput => ErrorKind::InvalidInput,
            _ => ErrorKind::Corrupt,
        };
        Self::new(kind, e.to_string())
    }
}

impl From<esker_log::Error> for Error {
    fn from(e: esker_log::Error) -> Self {
        use esker_log::ErrorKind as K;
        let kind = match e.kind() {
            K::Corrupt | K::NotOurs => ErrorKind::Corrupt,
            K::NoSpace => ErrorKind::NoSpace,
            K::Poisoned => ErrorKind::Poisoned,
            K::OutcomeUnknown => ErrorKind::OutcomeUnknown,
            K::InvalidInput => ErrorKind::InvalidInput,
            _ => ErrorKind::Io,
        };
        Self::new(kind, e.to_string())
    }
}

impl From<esker_table::Error> for Error {
    fn from(e: esker_table::Error) -> Self {
        use esker_table::ErrorKind as K;
        let kind = match e.kind() {
            K::AlreadyExists => ErrorKind::AlreadyExists,
            K::NotFound => ErrorKind::NotFound,
            K::Conflict => ErrorKind::Conflict,
            K::InvalidInput => ErrorKind::InvalidInput,
            K::OverBudget => ErrorKind::OverBudget,
            K::Corrupt => ErrorKind::Corrupt,
            K::NoSpace => ErrorKind::NoSpace,
            _ => ErrorKind::Io,
        };
        Self::new(kind, e.to_string())
    }
}

impl From<esker_arena::ArenaError> for Error {
    fn from(e: esker_arena::ArenaError) -> Self {
        Self::new(ErrorKind::OverBudget, e.to_string())
    }
}

impl From<esker_query::Error> for Error {
    fn from(e: esker_query::Error) -> Self {
        use esker_query::ErrorKind as K;
        let kind = match e.kind() {
            K::Corrupt => ErrorKind::Corrupt,
            K::OverBudget => ErrorKind::OverBudget,
            K::Cancelled => ErrorKind::Cancelled,
            K::TimedOut => ErrorKind::TimedOut,
            K::NoSpace => ErrorKind::NoSpace,
            K::Io => ErrorKind::Io,
            _ => ErrorKind::InvalidInput,
        };
        Self::new(kind, e.to_string())
    }
}
