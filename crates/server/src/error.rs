//! The one error of all protocols.

use esker::ErrorKind;
pub use esker_wire::Code;

/// What a client can do about an error of the engine.
#[must_use]
pub fn code_of(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::InvalidInput => Code::InvalidRequest,
        ErrorKind::ConstraintViolated => Code::ConstraintViolated,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::AlreadyExists | ErrorKind::Duplicate(_) => Code::AlreadyExists,
        ErrorKind::Conflict => Code::Conflict,
        ErrorKind::SequenceGap => Code::SequenceGap,
        ErrorKind::Fenced => Code::Fenced,
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

esker_format::error_type! {
    /// Why a request failed: what was expected, and where.
    #[derive(Clone, Debug, PartialEq, Eq)]
    Error { code: Code }, pub new, pub at
    make { pub invalid = InvalidRequest }
}

impl Error {
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
}

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
