//! The one error of all protocols.

use std::fmt;

use esker::ErrorKind;
pub use esker_wire::Code;

/// The result of a request.
pub type Result<T> = std::result::Result<T, Error>;

/// What a client can do about an error of the engine.
#[must_use]
pub fn code_of(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::InvalidInput => Code::InvalidRequest,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::AlreadyExists => Code::AlreadyExists,
        ErrorKind::Conflict => Code::Conflict,
        ErrorKind::Locked | ErrorKind::Poisoned => Code::Unavailable,
        ErrorKind::NoSpace => Code::NoSpace,
        ErrorKind::OverBudget => Code::LimitExceeded,
        ErrorKind::Cancelled => Code::Cancelled,
        ErrorKind::TimedOut => Code::Timeout,
        ErrorKind::SnapshotGone => Code::CursorGone,
        ErrorKind::Corrupt => Code::Damaged,
        ErrorKind::OutcomeUnknown => Code::OutcomeUnknown,
        ErrorKind::ReadOnly => Code::ReadOnly,
        _ => Code::Internal,
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

    /// An answer of more bytes than it may have.
    pub(crate) fn too_large_answer(most: u64) -> Self {
        let message = format!("the answer has more than {most} bytes: ask for less");
        Self::new(Code::LimitExceeded, message)
    }

    /// Why not all is answered of a statement that changed something: sending it again might change
    /// it twice.
    #[must_use]
    pub(crate) fn though_done(self) -> Self {
        let message = format!("the statement was done, but its answer is lost: {}", self.message);
        Self::new(Code::OutcomeUnknown, message)
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
        Self::new(code_of(e.kind()), e.to_string())
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
