//! The one query model, its planner and its vectorised executor.
#![forbid(unsafe_code)]

mod error;
mod source;

pub use error::{Error, ErrorKind, Result};
pub use source::{Part, Source, ZONE_ROWS, Zone};
