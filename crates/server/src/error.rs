//! The one error of all protocols.

use std::fmt;

use esker::ErrorKind;

/// The result of what a client asked.
pub type Result<T> = std::result::Result<T, Error>;

/// What a client can do about an [`Error`]. The texts never change meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Code {
    /// The request does not fit: mend it.
    InvalidRequest,
    /// There is no such database, table, bucket, row or cursor.
    NotFound,
    /// The key, table or index exists already.
    AlreadyExists,
    /// Somebody else changed the same rows: try again.
    Conflict,
    /// A condition that the request made does not hold.
    PreconditionFailed,
    /// There is no token, or none that is known.
    Unauthenticated,
    /// The token does not reach that far.
    Forbidden,
    /// A limit of the tenant, the session or the server; the message has the number.
    LimitExceeded,
    /// It took longer than it may.
    Timeout,
    /// The client cancelled it.
    Cancelled,
    /// The snapshot that a cursor goes on in is held no longer: begin again.
    CursorGone,
    /// The database is opened for reading.
    ReadOnly,
    /// The disk is full: nothing was changed.
    NoSpace,
    /// The server starts, stops, or a write failed earlier: try again later.
    Unavailable,
    /// The commit was made but is not known to be on the disk: look.
    OutcomeUnknown,
    /// A file of the database is damaged.
    Damaged,
    /// The machine or the server failed.
    Internal,
}

impl Code {
    /// Every code, in the order of the reference.
    pub const ALL: [Self; 17] = [
        Self::InvalidRequest,
        Self::NotFound,
        Self::AlreadyExists,
        Self::Conflict,
        Self::PreconditionFailed,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::LimitExceeded,
        Self::Timeout,
        Self::Cancelled,
        Self::CursorGone,
        Self::ReadOnly,
        Self::NoSpace,
        Self::Unavailable,
        Self::OutcomeUnknown,
        Self::Damaged,
        Self::Internal,
    ];

    /// The text of the code, as protocols send it.
    ///
    /// ```
    /// assert_eq!(esker_server::Code::NotFound.as_str(), "not_found");
    /// ```
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::Conflict => "conflict",
            Self::PreconditionFailed => "precondition_failed",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::LimitExceeded => "limit_exceeded",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::CursorGone => "cursor_gone",
            Self::ReadOnly => "read_only",
            Self::NoSpace => "no_space",
            Self::Unavailable => "unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Damaged => "damaged",
            Self::Internal => "internal",
        }
    }

    /// True when the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Conflict | Self::Unavailable | Self::NoSpace)
    }
}

impl From<ErrorKind> for Code {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::InvalidInput => Self::InvalidRequest,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::AlreadyExists => Self::AlreadyExists,
            ErrorKind::Conflict => Self::Conflict,
            ErrorKind::Locked | ErrorKind::Poisoned => Self::Unavailable,
            ErrorKind::NoSpace => Self::NoSpace,
            ErrorKind::OverBudget => Self::LimitExceeded,
            ErrorKind::Cancelled => Self::Cancelled,
            ErrorKind::TimedOut => Self::Timeout,
            ErrorKind::SnapshotGone => Self::CursorGone,
            ErrorKind::Corrupt => Self::Damaged,
            ErrorKind::OutcomeUnknown => Self::OutcomeUnknown,
            ErrorKind::ReadOnly => Self::ReadOnly,
            _ => Self::Internal,
        }
    }
}

/// Why a request failed: what was expected, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: Code,
    message: String,
}

impl Error {
    /// An error with a code.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// What the client sent does not fit.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, message)
    }

    /// What a client can do about it.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// What was expected, and where.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
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

impl std::error::Error for Error {}

impl From<esker::Error> for Error {
    fn from(e: esker::Error) -> Self {
        Self::new(e.kind().into(), e.to_string())
    }
}

impl From<esker_import::Error> for Error {
    fn from(e: esker_import::Error) -> Self {
        Self::invalid(e.to_string())
    }
}

impl From<esker_format::Error> for Error {
    fn from(e: esker_format::Error) -> Self {
        esker::Error::from(e).into()
    }
}

impl From<esker_query::Error> for Error {
    fn from(e: esker_query::Error) -> Self {
        esker::Error::from(e).into()
    }
}

impl From<esker_vfs::Error> for Error {
    fn from(e: esker_vfs::Error) -> Self {
        esker::Error::from(e).into()
    }
}
