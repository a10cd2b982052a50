//! Errors, by what the caller can do about them.

use esker_query::model::Expr;

use crate::EventId;

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input does not fit: fix it. Nothing was changed.
    InvalidInput,
    /// A row breaks a NOT NULL or CHECK constraint of its table: fix the row. Nothing was changed.
    ConstraintViolated,
    /// No such table or row.
    NotFound,
    /// The key, table or directory exists already.
    AlreadyExists,
    /// Another writer changes the same key: try again.
    Conflict,
    /// Events of a producer are left out, or come in another order: the message has the number that
    /// is expected. Nothing was changed.
    SequenceGap,
    /// The event is there already, by the `dedupe` of its stream: this is its id. Nothing was
    /// changed.
    Duplicate(EventId),
    /// Another producer has taken over: stop. Nothing was changed.
    Fenced,
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
    /// The snapshot that a cursor goes on in is held no longer, or the changes behind it are not
    /// kept: begin again without the cursor, or where the message says.
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

esker_format::error_type! {
    /// An error with what was expected and where.
    #[derive(Debug)]
    Error { kind: ErrorKind }, pub new, pub(crate) at
    make {
        pub(crate) invalid = InvalidInput,
        pub(crate) violated = ConstraintViolated,
        pub(crate) corrupt = Corrupt
    }
    from esker_vfs {
        NotFound => NotFound,
        AlreadyExists => AlreadyExists,
        Locked => Locked,
        NoSpace => NoSpace,
        _ => Io
    }
    from esker_format {
        InvalidInput => InvalidInput,
        ConstraintViolated => ConstraintViolated,
        _ => Corrupt
    }
    from esker_log {
        Corrupt | NotOurs => Corrupt,
        NoSpace => NoSpace,
        Poisoned => Poisoned,
        OutcomeUnknown => OutcomeUnknown,
        InvalidInput => InvalidInput,
        _ => Io
    }
    from esker_table {
        AlreadyExists => AlreadyExists,
        NotFound => NotFound,
        Conflict => Conflict,
        InvalidInput => InvalidInput,
        ConstraintViolated => ConstraintViolated,
        OverBudget => OverBudget,
        Corrupt => Corrupt,
        NoSpace => NoSpace,
        _ => Io
    }
    from esker_query {
        Corrupt => Corrupt,
        OverBudget => OverBudget,
        Cancelled => Cancelled,
        TimedOut => TimedOut,
        NoSpace => NoSpace,
        Io => Io,
        _ => InvalidInput
    }
}

impl Error {
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

    /// The error of one row of several, by its place among them: people count from 1.
    #[must_use]
    pub(crate) fn in_row(self, place: u64) -> Self {
        self.at(format_args!("row {}", place.saturating_add(1)))
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
}

impl From<esker_arena::ArenaError> for Error {
    fn from(e: esker_arena::ArenaError) -> Self {
        Self::from(esker_table::Error::from(e))
    }
}
