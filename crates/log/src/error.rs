//! Errors of the log.

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A frame that was durable is damaged or gone. Nothing was modified: restore a backup.
    Corrupt,
    /// A log file belongs to another database. Nothing was modified.
    NotOurs,
    /// A log file is of a newer version of the format. Nothing was modified: use newer software.
    UnknownVersion,
    /// The disk is full. Nothing was numbered or written: free some space and try again.
    NoSpace,
    /// An earlier write or sync failed, so this handle takes nothing more: open the database again.
    Poisoned,
    /// The write or sync of this commit failed: whether it survives shows when the database is
    /// opened again.
    OutcomeUnknown,
    /// The device or the file system failed.
    Io,
    /// The caller gave something that does not fit: fix the input.
    InvalidInput,
}

esker_format::error_type! {
    /// An error with what was expected and where.
    #[derive(Clone, Debug, PartialEq, Eq)]
    Error { kind: ErrorKind }, pub(crate) new
    from esker_vfs { NoSpace => NoSpace, _ => Io }
    from esker_format {
        InvalidInput | ConstraintViolated => InvalidInput,
        UnknownVersion => UnknownVersion,
        _ => Corrupt
    }
}
