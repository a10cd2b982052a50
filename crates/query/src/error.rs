//! Errors of queries.

use std::fmt;

/// The result of binding or running a query.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The query names something that is not there or does not fit: fix the query.
    InvalidQuery,
    /// A value met while running does not fit its type: arithmetic overflowed, or a cast failed.
    OutOfRange,
    /// The query needs more memory than its budget: the message has the number needed.
    OverBudget,
    /// The disk has no space for the temporary files of the query: try again when there is some.
    NoSpace,
    /// The caller has cancelled the query.
    Cancelled,
    /// The query took longer than it may: try again with more time.
    TimedOut,
    /// Stored bytes are damaged.
    Corrupt,
    /// The machine could not read: a device or file-system error.
    Io,
}

/// An error with the place it is about and what was expected there.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error with a message that says where and what was expected.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// An [`ErrorKind::InvalidQuery`] error.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidQuery, message)
    }

    /// An [`ErrorKind::OutOfRange`] error.
    #[must_use]
    pub fn out_of_range(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::OutOfRange, message)
    }

    /// Wraps an error of the storage below. Its message becomes this one's.
    #[must_use]
    pub fn wrap(
        kind: ErrorKind,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let source = source.into();
        Self { kind, message: source.to_string(), source: Some(source) }
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The same error with a place in front of its message.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as &(dyn std::error::Error + 'static))
    }
}

impl From<esker_format::Error> for Error {
    fn from(error: esker_format::Error) -> Self {
        let kind = match error.kind() {
            esker_format::ErrorKind::InvalidInput => ErrorKind::InvalidQuery,
            _ => ErrorKind::Corrupt,
        };
        Self::wrap(kind, error)
    }
}
