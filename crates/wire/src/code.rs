//! What a client can do about an error.

/// What a client can do about an error. The texts never change meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Code {
    /// The request does not fit: mend it.
    InvalidRequest,
    /// There is no such database, table, bucket, row or cursor.
    NotFound,
    /// The key, table or index exists already.
    AlreadyExists,
    /// Somebody else changed the same rows: try again.
    Conflict,
    /// A condition that the request made does not hold.
    PreconditionFailed,
    /// There is no token, or none that is known.
    Unauthenticated,
    /// The token does not reach that far.
    Forbidden,
    /// A limit of the tenant, the session or the server; the message has the number.
    LimitExceeded,
    /// It took longer than it may.
    Timeout,
    /// The client cancelled it.
    Cancelled,
    /// The snapshot that a cursor goes on in is held no longer: begin again.
    CursorGone,
    /// The database is opened for reading.
    ReadOnly,
    /// The disk is full: nothing was changed.
    NoSpace,
    /// The server starts, stops, or a write failed earlier: try again later.
    Unavailable,
    /// The commit was made, but is not known to be on the disk, or its answer is not known: look.
    OutcomeUnknown,
    /// A file of the database is damaged.
    Damaged,
    /// The machine or the server failed.
    Internal,
}

impl Code {
    /// Every code, in the order of the reference.
    pub const ALL: [Self; 17] = [
        Self::InvalidRequest,
        Self::NotFound,
        Self::AlreadyExists,
        Self::Conflict,
        Self::PreconditionFailed,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::LimitExceeded,
        Self::Timeout,
        Self::Cancelled,
        Self::CursorGone,
        Self::ReadOnly,
        Self::NoSpace,
        Self::Unavailable,
        Self::OutcomeUnknown,
        Self::Damaged,
        Self::Internal,
    ];

    /// The text of the code, as protocols send it.
    ///
    /// ```
    /// assert_eq!(esker_wire::Code::NotFound.as_str(), "not_found");
    /// ```
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::Conflict => "conflict",
            Self::PreconditionFailed => "precondition_failed",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::LimitExceeded => "limit_exceeded",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::CursorGone => "cursor_gone",
            Self::ReadOnly => "read_only",
            Self::NoSpace => "no_space",
            Self::Unavailable => "unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Damaged => "damaged",
            Self::Internal => "internal",
        }
    }

    /// The code of a text.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }

    /// True when the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Conflict | Self::Unavailable | Self::NoSpace)
    }
}
