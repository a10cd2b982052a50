//! Errors of the seam.

use std::fmt;
use std::path::Path;

/// The result of an operation on the machine.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such file or directory.
    NotFound,
    /// The file exists already.
    AlreadyExists,
    /// Another process or handle holds the lock.
    Locked,
    /// The disk or the quota is full: free some space and try again.
    NoSpace,
    /// Interrupted before anything happened: try again.
    Interrupted,
    /// The file is shorter than the read needs.
    UnexpectedEnd,
    /// The caller may not do this.
    PermissionDenied,
    /// The device or the file system failed.
    Io,
}

/// An error of the machine, with the operation and path it happened on.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<std::io::Error>,
}

impl Error {
    /// An error with a kind and a message that names the operation and the path.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Wraps an error of the operating system.
    #[must_use]
    pub fn from_io(source: std::io::Error, operation: &str, path: &Path) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match source.kind() {
            Io::NotFound => ErrorKind::NotFound,
            Io::AlreadyExists => ErrorKind::AlreadyExists,
            Io::WouldBlock => ErrorKind::Locked,
            Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => ErrorKind::NoSpace,
            Io::Interrupted => ErrorKind::Interrupted,
            Io::UnexpectedEof => ErrorKind::UnexpectedEnd,
            Io::PermissionDenied | Io::ReadOnlyFilesystem => ErrorKind::PermissionDenied,
            _ => ErrorKind::Io,
        };
        let message = format!("{operation} {}: {source}", path.display());
        Self { kind, message, source: Some(source) }
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

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}
