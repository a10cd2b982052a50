//! The errors of the format, and the one way in which crates write theirs.

/// Writes the error of a crate: its kind, and a message that says what was expected and where.
///
/// ```
/// /// What a caller can do about an [`Error`].
/// #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// pub enum ErrorKind {
///     /// Wait, and try again.
///     Busy,
///     /// What is stored is damaged.
///     Corrupt,
/// }
///
/// esker_format::error_type! {
///     /// An error of some crate.
///     #[derive(Debug)]
///     Error { kind: ErrorKind }, pub new, pub at
///     make { pub busy = Busy }
///     from esker_format { Corrupt | UnknownVersion => Corrupt, _ => Busy }
/// }
///
/// let lower = esker_format::Error::corrupt("expected 8 bytes");
/// assert_eq!(Error::from(lower).at("a.seg").to_string(), "a.seg: expected 8 bytes");
/// assert_eq!(Error::busy("later").kind(), ErrorKind::Busy);
/// ```
#[macro_export]
macro_rules! error_type {
    (
        $(#[$about:meta])*
        Error { $kind:ident: $Kind:ident }, $new:vis new $(, $at:vis at)?
        $(make { $($make:vis $name:ident = $value:ident),* })?
        $(from $lower:ident { $($($source:ident)|+ => $to:ident,)* _ => $rest:ident })*
    ) => {
        /// The result of an operation that may fail.
        pub type Result<T> = std::result::Result<T, Error>;

        $(#[$about])*
        pub struct Error {
            $kind: $Kind,
            message: String,
        }

        impl Error {
            /// An error that says what was expected and where.
            #[must_use]
            $new fn new($kind: $Kind, message: impl Into<String>) -> Self {
                Self { $kind, message: message.into() }
            }

            $($(
                #[doc = concat!("An error of this kind: [`", stringify!($Kind), "::")]
                #[doc = concat!(stringify!($value), "`].")]
                #[must_use]
                $make fn $name(message: impl Into<String>) -> Self {
                    Self::new($Kind::$value, message)
                }
            )*)?

            /// What the caller can do about it.
            #[must_use]
            pub fn $kind(&self) -> $Kind {
                self.$kind
            }

            $(
                /// The same error with a place in front of its message.
                #[must_use]
                $at fn at(mut self, place: impl std::fmt::Display) -> Self {
                    self.message = format!("{place}: {}", self.message);
                    self
                }
            )?
        }

        impl std::fmt::Display for Error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.message)
            }
        }

        impl std::error::Error for Error {}

        $(impl From<$lower::Error> for Error {
            fn from(e: $lower::Error) -> Self {
                let kind = match e.kind() {
                    $($($lower::ErrorKind::$source)|+ => $Kind::$to,)*
                    _ => $Kind::$rest,
                };
                Self::new(kind, e.to_string())
            }
        })*
    };
}

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Bytes do not decode: the file or message is damaged, or not ours.
    Corrupt,
    /// The bytes are of a newer version of the format.
    UnknownVersion,
    /// The caller gave something that does not fit: fix the input.
    InvalidInput,
    /// A field that must not be null is.
    ConstraintViolated,
}

error_type! {
    /// An error with what was expected and where.
    #[derive(Clone, Debug, PartialEq, Eq)]
    Error { kind: ErrorKind }, pub new, pub at
    make { pub corrupt = Corrupt, pub invalid = InvalidInput }
}

impl Error {
    /// The error of a broken invariant, which is made here only: the bytes are what was written,
    /// and what was written cannot be right. `place` names path, offset, table, row: what is known.
    #[must_use]
    pub fn broken(place: impl std::fmt::Display, rule: impl std::fmt::Display) -> Self {
        Self::corrupt(format!("{place}: {BROKEN}{rule}"))
    }
}

/// How the rule of a broken invariant begins in the message of its error.
pub const BROKEN: &str = "broken invariant: ";

/// Ends a function with the error of a broken invariant, of the crate's own type, unless a
/// condition holds.
///
/// ```
/// fn open(rows: u32) -> esker_format::Result<()> {
///     esker_format::invariant!(rows > 0, "segment 7", "expected rows, found {rows}");
///     Ok(())
/// }
///
/// let message = open(0).unwrap_err().to_string();
/// assert_eq!(message, "segment 7: broken invariant: expected rows, found 0");
/// ```
#[macro_export]
macro_rules! invariant {
    ($holds:expr, $place:expr, $($rule:tt)+) => {
        if !$holds {
            Err::<(), $crate::Error>($crate::Error::broken($place, format_args!($($rule)+)))?;
        }
    };
}
