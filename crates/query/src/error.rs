//! Errors of queries.

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

esker_format::error_type! {
    /// An error with the place it is about and what was expected there.
    #[derive(Debug)]
    Error { kind: ErrorKind }, pub new, pub at
    make { pub invalid = InvalidQuery, pub out_of_range = OutOfRange }
    from esker_format { InvalidInput | ConstraintViolated => InvalidQuery, _ => Corrupt }
}
