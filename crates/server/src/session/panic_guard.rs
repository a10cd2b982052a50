//! A panic ends the request that met it, and nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Code, Error, Result};

/// Does something; a panic becomes an error. What it was about is not used any more afterwards, but
/// for what is sound behind a panic: databases.
///
/// # Errors
/// `Internal` behind a panic.
pub fn caught<R>(run: impl FnOnce() -> R) -> Result<R> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let texts = (panic.downcast_ref::<&str>().copied(), panic.downcast_ref::<String>());
        let what = texts.0.or(texts.1.map(String::as_str)).unwrap_or("a panic");
        tracing::error!(what, "a request ended in a panic");
        let message = "the server failed within this request; it may have been done: look";
        Error::new(Code::Internal, message)
    })
}
