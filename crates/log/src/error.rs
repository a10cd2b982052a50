//! Errors of the log.

use std::fmt;

/// The result of an operation on the log.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A frame that was durable is damaged or gone. Nothing was modified: restore a backup.
    Corrupt,
    /// A log file belongs to another database. Nothing was modified.
    NotOurs,
    /// A log file is of a newer version of the format. Nothing was modified: use newer software.
    UnknownVersion,
    /// The disk is full. Nothing was numbered or written: free some space and try again.
    NoSpace,
    /// An earlier write or sync failed, so this handle takes nothing more: open the database again.
    Poisoned,
    /// The write or sync of this commit failed: whether it survives shows when the database is
    /// opened again.
    OutcomeUnknown,
    /// The device or the file system failed.
    Io,
    /// The caller gave something that does not fit: fix the input.
    InvalidInput,
}

/// An error with what was expected and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<esker_vfs::Error> for Error {
    fn from(error: esker_vfs::Error) -> Self {
        let kind = match error.kind() {
            esker_vfs::ErrorKind::NoSpace => ErrorKind::NoSpace,
            _ => ErrorKind::Io,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<esker_format::Error> for Error {
    fn from(error: esker_format::Error) -> Self {
        let kind = match error.kind() {
            esker_format::ErrorKind::InvalidInput => ErrorKind::InvalidInput,
            esker_format::ErrorKind::UnknownVersion => ErrorKind::UnknownVersion,
            _ => ErrorKind::Corrupt,
        };
        Self::new(kind, error.to_string())
    }
}
