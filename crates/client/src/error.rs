//! Why a request failed.

use std::{fmt, io};

use esker_wire::Code;

/// The result of a request.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a request failed: what the server said, or that it could not be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: Option<Code>,
    message: String,
}

impl Error {
    pub(crate) fn told(code: &str, message: &str) -> Self {
        // A server of a later minor version may know more of them.
        let code = Code::of(code).unwrap_or(Code::Internal);
        Self { code: Some(code), message: message.to_owned() }
    }

    pub(crate) fn connection(message: impl Into<String>) -> Self {
        Self { code: None, message: message.into() }
    }

    /// What the server said that can be done about it; `None` when the connection failed: whether
    /// the request was done is not known then.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        self.code
    }

    /// True when the same request may succeed later, and has certainly not been done.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.code.is_some_and(Code::is_retryable)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        Self::connection(format!("the connection to the server: {e}"))
    }
}

impl From<esker_wire::Error> for Error {
    fn from(e: esker_wire::Error) -> Self {
        Self::connection(format!("the server's answer: {e}"))
    }
}
