//! What a client can do about an error.

macro_rules! codes {
    ($($(#[$about:meta])* $code:ident = $text:literal,)*) => {
        /// What a client can do about an error. The texts never change meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$about])* $code,)*
        }

        impl Code {
            /// Every code, in the order of the reference.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$code),*];

            /// The text of the code, as protocols send it.
            ///
            /// ```
            /// assert_eq!(esker_wire::Code::NotFound.as_str(), "not_found");
            /// ```
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $text,)*
                }
            }
        }
    };
}

codes! {
    /// The request does not fit: mend it.
    InvalidRequest = "invalid_request",
    /// There is no such database, table, bucket, row or cursor.
    NotFound = "not_found",
    /// The key, table or index exists already.
    AlreadyExists = "already_exists",
    /// A row breaks a NOT NULL or CHECK constraint of its table: fix the row.
    ConstraintViolated = "constraint_violated",
    /// Another client changed the same rows: try again.
    Conflict = "conflict",
    /// Events of a producer are left out, or come in another order: the message has the number that
    /// is expected.
    SequenceGap = "sequence_gap",
    /// Another producer has taken over: stop.
    Fenced = "fenced",
    /// A condition that the request made does not hold.
    PreconditionFailed = "precondition_failed",
    /// There is no token, or none that is known.
    Unauthenticated = "unauthenticated",
    /// The token does not reach that far.
    Forbidden = "forbidden",
    /// A limit of the tenant, the session or the server; the message has the number.
    LimitExceeded = "limit_exceeded",
    /// It took longer than it may.
    Timeout = "timeout",
    /// The client cancelled it.
    Cancelled = "cancelled",
    /// The snapshot that a cursor goes on in is held no longer: begin again.
    CursorGone = "cursor_gone",
    /// The database is opened for reading.
    ReadOnly = "read_only",
    /// The disk is full: nothing was changed.
    NoSpace = "no_space",
    /// The server starts, stops, or a write failed earlier: try again later.
    Unavailable = "unavailable",
    /// The commit was made, but is not known to be on the disk, or its answer is not known: look.
    OutcomeUnknown = "outcome_unknown",
    /// A file of the database is damaged.
    Damaged = "damaged",
    /// The machine or the server failed.
    Internal = "internal",
}

impl Code {
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
