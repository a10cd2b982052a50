//! Errors of an import.

use std::fmt;

/// The result of reading a file.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An option or a schema does not fit: fix the call.
    InvalidOptions,
    /// A line or a value of the file does not fit: fix the file or the schema.
    BadData,
    /// There is no such file.
    NotFound,
    /// The file could not be read.
    Io,
}

/// An error with the file, the line and the column it happened at, as far as they are known.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    file: Option<String>,
    line: Option<u64>,
    column: Option<(usize, String)>,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, file: None, line: None, column: None, message: message.into() }
    }

    pub(crate) fn options(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidOptions, message)
    }

    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::BadData, message)
    }

    pub(crate) fn in_file(mut self, file: &str) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// Counts from 1.
    pub(crate) fn on_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    /// The same error in a part of a file with `lines` lines before it.
    pub(crate) fn after_lines(mut self, lines: u64) -> Self {
        self.line = self.line.map(|line| line + lines);
        self
    }

    /// `position` counts from 0.
    pub(crate) fn in_column(mut self, position: usize, name: &str) -> Self {
        self.column = Some((position + 1, name.to_owned()));
        self
    }

    pub(crate) fn with_note(mut self, note: &str) -> Self {
        self.message.push_str(note);
        self
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The line of the file, counted from 1: where the record or the value starts.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// The column of the file: its number, counted from 1, and its name.
    #[must_use]
    pub fn column(&self) -> Option<(usize, &str)> {
        self.column.as_ref().map(|(number, name)| (*number, name.as_str()))
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}")?;
            match self.line {
                Some(line) => write!(f, ":{line}: ")?,
                None => f.write_str(": ")?,
            }
        }
        if let Some((number, name)) = &self.column {
            write!(f, "column {number} {name:?}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<esker_vfs::Error> for Error {
    fn from(error: esker_vfs::Error) -> Self {
        let kind = match error.kind() {
            esker_vfs::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        Self::new(kind, error.to_string())
    }
}
