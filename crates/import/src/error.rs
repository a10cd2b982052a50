//! Errors of an import.

use std::fmt;

use esker_format::Excerpt;

use crate::comments::LinesGone;

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
    /// A value does not fit the types that were inferred from the rows before it: read again, by
    /// [`ImportReader::again`](crate::ImportReader::again), or give a schema.
    Contradicted,
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
    /// The number of a column, where columns are numbered, and its name.
    column: Option<(Option<usize>, String)>,
    message: String,
    excerpt: Option<Box<Excerpt>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, file: None, line: None, column: None, message, excerpt: None }
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

    /// The same error by the lines of the file, of which some are gone from what is read.
    pub(crate) fn beside(mut self, gone: &LinesGone) -> Self {
        self.line = self.line.map(|line| gone.in_file(line));
        self
    }

    /// `position` counts from 0.
    pub(crate) fn in_column(mut self, position: usize, name: &str) -> Self {
        self.column = Some((Some(position + 1), name.to_owned()));
        self
    }

    /// In a file whose fields have names and no numbers.
    pub(crate) fn in_field(mut self, name: &str) -> Self {
        self.column = Some((None, name.to_owned()));
        self
    }

    /// At a position of a part of the file, for `length` bytes.
    pub(crate) fn at(mut self, bytes: &[u8], position: usize, length: usize) -> Self {
        self.excerpt = Some(Box::new(Excerpt::of(bytes, position, length)));
        self.on_line(crate::tokenizer::lines_before(bytes, position) + 1)
    }

    pub(crate) fn with_excerpt(mut self, excerpt: Excerpt) -> Self {
        self.excerpt = Some(Box::new(excerpt));
        self
    }

    /// Of a text that has one line only.
    pub(crate) fn without_line(mut self) -> Self {
        self.line = None;
        self
    }

    /// Of types that `note` says where they come from, if they were inferred from some rows only.
    pub(crate) fn against_types(mut self, note: &str) -> Self {
        if !note.is_empty() {
            self.message.push_str(note);
            self.kind = ErrorKind::Contradicted;
        }
        self
    }

    /// Of a schema of some fields, where inference adds others.
    pub(crate) fn contradicting(mut self) -> Self {
        self.kind = ErrorKind::Contradicted;
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
        self.column.as_ref().and_then(|(number, name)| Some(((*number)?, name.as_str())))
    }

    /// The name of the column or field.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.column.as_ref().map(|(_, name)| name.as_str())
    }

    /// The line of the file with the place underlined, where that helps.
    #[must_use]
    pub fn excerpt(&self) -> Option<&Excerpt> {
        self.excerpt.as_deref()
    }

    /// The file, as far as it is known.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.message
    }

    /// What is wrong, with the column but without file and line.
    #[must_use]
    pub fn detail(&self) -> String {
        match &self.column {
            Some((Some(number), name)) => format!("column {number} {name:?}: {}", self.message),
            Some((None, name)) => format!("field {name:?}: {}", self.message),
            None => self.message.clone(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What the machine says names the file.
        let is_named =
            |file: &&String| self.kind == ErrorKind::BadData || !self.message.contains(*file);
        if let Some(file) = self.file.as_ref().filter(is_named) {
            write!(f, "{file}")?;
            match self.line {
                Some(line) => write!(f, ":{line}: ")?,
                None => f.write_str(": ")?,
            }
        }
        f.write_str(&self.detail())
    }
}

impl std::error::Error for Error {}

impl From<esker_vfs::Error> for Error {
    fn from(error: esker_vfs::Error) -> Self {
        let machine = std::error::Error::source(&error);
        let machine = machine.and_then(|e| e.downcast_ref::<std::io::Error>());
        let is_directory = machine.is_some_and(|e| e.kind() == std::io::ErrorKind::IsADirectory);
        let kind = match error.kind() {
            esker_vfs::ErrorKind::NotFound => ErrorKind::NotFound,
            _ if is_directory => ErrorKind::InvalidOptions,
            _ => ErrorKind::Io,
        };
        Self::new(kind, error.to_string())
    }
}
