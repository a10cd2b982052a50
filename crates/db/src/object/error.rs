//! Errors on their way through serde.

use std::fmt;

use crate::Error;

/// An error that serde can make and pass on.
#[derive(Debug)]
pub(super) struct ObjectError(pub(super) Error);

impl ObjectError {
    pub(super) fn at(self, place: impl fmt::Display) -> Self {
        Self(self.0.at(place))
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ObjectError {}

impl serde::ser::Error for ObjectError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(Error::invalid(message.to_string()))
    }
}

impl serde::de::Error for ObjectError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(Error::invalid(message.to_string()))
    }
}

impl From<Error> for ObjectError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<esker_format::Error> for ObjectError {
    fn from(error: esker_format::Error) -> Self {
        Self(error.into())
    }
}

impl From<ObjectError> for Error {
    fn from(error: ObjectError) -> Self {
        error.0
    }
}
