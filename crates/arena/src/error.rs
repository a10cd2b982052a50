//! The error type of this crate.

use std::fmt;

/// What a caller can do about an [`ArenaError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArenaErrorKind {
    /// The arena is at its limit: free something, or open with a higher limit.
    OutOfMemory,
    /// The operating system refused the address range: lower the reservation.
    Unavailable,
    /// An argument is outside what the container holds: fix the call.
    InvalidInput,
    /// An invariant of a container does not hold: open the database again.
    Corrupt,
}

/// Why an arena or one of its containers refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArenaError {
    reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    OutOfMemory { wanted: u64, used: u64, limit: u64 },
    Unavailable { wanted: u64, cause: rustix::io::Errno },
    InvalidInput(String),
    Corrupt(String),
}

impl ArenaError {
    pub(crate) fn out_of_memory(wanted: u64, used: u64, limit: u64) -> Self {
        Self { reason: Reason::OutOfMemory { wanted, used, limit } }
    }

    pub(crate) fn unavailable(wanted: u64, cause: rustix::io::Errno) -> Self {
        Self { reason: Reason::Unavailable { wanted, cause } }
    }

    pub(crate) fn invalid_input(message: impl Into<String>) -> Self {
        Self { reason: Reason::InvalidInput(message.into()) }
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self { reason: Reason::Corrupt(message.into()) }
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ArenaErrorKind {
        match self.reason {
            Reason::OutOfMemory { .. } => ArenaErrorKind::OutOfMemory,
            Reason::Unavailable { .. } => ArenaErrorKind::Unavailable,
            Reason::InvalidInput(_) => ArenaErrorKind::InvalidInput,
            Reason::Corrupt(_) => ArenaErrorKind::Corrupt,
        }
    }
}

impl fmt::Display for ArenaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::OutOfMemory { wanted, used, limit } => write!(
                f,
                "out of arena memory: {wanted} bytes wanted, {used} bytes used, limit {limit} bytes"
            ),
            Reason::Unavailable { wanted, cause } => {
                write!(f, "the system refused an address range of {wanted} bytes: {cause}")
            }
            Reason::InvalidInput(message) | Reason::Corrupt(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for ArenaError {}
