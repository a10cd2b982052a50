//! Errors of tables.

use std::fmt;

/// The result of an operation on a table.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A key exists already: use another, or upsert.
    AlreadyExists,
    /// No such row.
    NotFound,
    /// Somebody else is changing the same key: try again.
    Conflict,
    /// The input does not fit the schema: fix it.
    InvalidInput,
    /// Memory would pass its limit: wait for sealing, or raise the limit.
    OverBudget,
    /// A file is damaged: restore it.
    Corrupt,
    /// The machine failed.
    Io,
    /// The disk is full: free some space and try again.
    NoSpace,
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

    /// A [`ErrorKind::Corrupt`] error.
    #[must_use]
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The same error with a place in front of its message.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Self {
        Self { kind: self.kind, message: format!("{place}: {}", self.message) }
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
        let kind = match e.kind() {
            esker_vfs::ErrorKind::NoSpace => ErrorKind::NoSpace,
            esker_vfs::ErrorKind::UnexpectedEnd => ErrorKind::Corrupt,
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

impl From<esker_arena::ArenaError> for Error {
    fn from(e: esker_arena::ArenaError) -> Self {
        Self::new(ErrorKind::OverBudget, e.to_string())
    }
}
