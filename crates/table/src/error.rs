//! Errors of tables.

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A key exists already: use another, or upsert.
    AlreadyExists,
    /// No such row.
    NotFound,
    /// Another writer changes the same key: try again.
    Conflict,
    /// The input does not fit the schema: fix it.
    InvalidInput,
    /// A field that must not be null is.
    ConstraintViolated,
    /// Memory would pass its limit: wait for sealing, or raise the limit.
    OverBudget,
    /// A file is damaged: restore it.
    Corrupt,
    /// The machine failed.
    Io,
    /// The disk is full: free some space and try again.
    NoSpace,
}

esker_format::error_type! {
    /// An error with what was expected and where.
    #[derive(Debug)]
    Error { kind: ErrorKind }, pub new, pub at
    make { pub corrupt = Corrupt }
    from esker_vfs { NoSpace => NoSpace, UnexpectedEnd => Corrupt, _ => Io }
    from esker_format {
        InvalidInput => InvalidInput,
        ConstraintViolated => ConstraintViolated,
        _ => Corrupt
    }
}

impl From<esker_arena::ArenaError> for Error {
    fn from(e: esker_arena::ArenaError) -> Self {
        let kind = match e.kind() {
            esker_arena::ArenaErrorKind::Corrupt => ErrorKind::Corrupt,
            _ => ErrorKind::OverBudget,
        };
        Self::new(kind, e.to_string())
    }
}
