//! Errors of commands, and the exit codes they end in.

use std::fmt;

use esker::ErrorKind;
use esker_format::Excerpt;
use esker_server::Code;

/// The result of a command.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// How the program ended; the numbers are its exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// `check` has found a problem.
    Problem = 1,
    /// The command line, a query or a file does not fit: fix it. Nothing was changed.
    Usage = 2,
    /// No such database, table, row or file.
    NotFound = 3,
    /// Another process has the database open, or changed the same rows, or a statement took longer
    /// than it may: try again.
    Busy = 4,
    /// A file of the database is damaged.
    Damaged = 5,
    /// The machine failed: a disk is full, a file cannot be read or written.
    System = 6,
}

impl Status {
    /// The exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    message: String,
    /// The place in the input, underlined.
    excerpt: Option<Box<Excerpt>>,
    broken_pipe: bool,
    /// Rows of a file are not of the types that some of them had.
    is_contradicted: bool,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, message, excerpt: None, broken_pipe: false, is_contradicted: false }
    }

    pub(crate) fn system(message: impl Into<String>) -> Self {
        Self::new(Status::System, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Status::Usage, message)
    }

    pub(crate) fn status(&self) -> Status {
        self.status
    }

    /// True when a load may begin again, with other types.
    pub(crate) fn is_contradicted(&self) -> bool {
        self.is_contradicted
    }

    /// True when no one reads the output any more.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }

    /// The same failure with more to say at the end.
    pub(crate) fn with_note(mut self, note: &str) -> Self {
        self.message.push_str(note);
        self
    }

    /// The same failure of a row, `row N: …`, with its place in a file in front instead. Rows are
    /// counted from 1 there, and from 0 by `place`.
    pub(crate) fn in_row(mut self, place: impl Fn(u64) -> Option<(String, u64)>) -> Self {
        let row = self.message.strip_prefix("row ").and_then(|rest| rest.split_once(": "));
        let row = row
            .and_then(|(row, rest)| Some((place(row.parse::<u64>().ok()?.checked_sub(1)?)?, rest)));
        if let Some(((file, line), rest)) = row {
            self.message = format!("{file}:{line}: {rest}");
        }
        self
    }

    /// The same failure of a statement, with the place in it that it is about.
    pub(crate) fn in_statement(self, statement: &str) -> Self {
        match esker_sql::place(statement, &self.message) {
            Some(excerpt) if self.excerpt.is_none() => self.at(excerpt),
            _ => self,
        }
    }

    /// The same failure with the place that it is about.
    pub(crate) fn at(mut self, excerpt: Excerpt) -> Self {
        self.excerpt = Some(Box::new(excerpt));
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.excerpt {
            Some(excerpt) => {
                let shown = excerpt.to_string().replace('\n', "\n  ");
                write!(f, "\n  {shown}")
            }
            None => Ok(()),
        }
    }
}

impl From<esker::Error> for Failure {
    fn from(error: esker::Error) -> Self {
        let status = match error.kind() {
            ErrorKind::InvalidInput
            | ErrorKind::ConstraintViolated
            | ErrorKind::AlreadyExists
            | ErrorKind::OverBudget
            | ErrorKind::SnapshotGone
            | ErrorKind::ReadOnly => Status::Usage,
            ErrorKind::NotFound => Status::NotFound,
            ErrorKind::Conflict | ErrorKind::Locked | ErrorKind::TimedOut => Status::Busy,
            ErrorKind::Corrupt => Status::Damaged,
            _ => Status::System,
        };
        Self::new(status, error.to_string())
    }
}

impl From<esker_import::Error> for Failure {
    fn from(error: esker_import::Error) -> Self {
        let status = match error.kind() {
            esker_import::ErrorKind::NotFound => Status::NotFound,
            esker_import::ErrorKind::Io => Status::System,
            _ => Status::Usage,
        };
        let message = error.to_string();
        // What the system says names the file, too.
        let named = error.file().and_then(|file| {
            let rest = message.strip_prefix(file)?.strip_prefix(": ")?;
            rest.contains(&format!(" {file}: ")).then(|| rest.to_owned())
        });
        let is_contradicted = error.kind() == esker_import::ErrorKind::Contradicted;
        let failure = Self { is_contradicted, ..Self::new(status, named.unwrap_or(message)) };
        match error.excerpt() {
            Some(excerpt) => failure.at(excerpt.clone()),
            None => failure,
        }
    }
}

impl From<esker_query::Error> for Failure {
    fn from(error: esker_query::Error) -> Self {
        esker::Error::from(error).into()
    }
}

impl From<esker_server::Error> for Failure {
    fn from(e: esker_server::Error) -> Self {
        Self::new(status_of(e.code()), e.to_string())
    }
}

/// How the program ends for what a server says.
pub(crate) fn status_of(code: Code) -> Status {
    match code {
        Code::NotFound => Status::NotFound,
        Code::Conflict | Code::Timeout | Code::Unavailable => Status::Busy,
        Code::Damaged => Status::Damaged,
        Code::Internal | Code::NoSpace | Code::OutcomeUnknown => Status::System,
        _ => Status::Usage,
    }
}

impl From<esker_vfs::Error> for Failure {
    fn from(error: esker_vfs::Error) -> Self {
        esker::Error::from(error).into()
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let broken_pipe = error.kind() == std::io::ErrorKind::BrokenPipe;
        Self { broken_pipe, ..Self::new(Status::System, format!("write the output: {error}")) }
    }
}
