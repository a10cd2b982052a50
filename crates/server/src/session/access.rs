//! What a session may do.

use std::fmt;

use crate::Result;

/// What is done with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// It is read.
    Read,
    /// Rows and entries are changed.
    Write,
    /// Tables, indexes and buckets are made or removed.
    Admin,
}

/// Decides what a session may do.
pub trait Access: fmt::Debug + Send + Sync {
    /// Refuses what the session may not do to a table or bucket, or to any of the database where
    /// none is named.
    ///
    /// # Errors
    /// `Forbidden` with the right that is missing.
    fn expect(&self, level: Level, table: Option<&str>) -> Result<()>;
}

/// May do everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everything;

impl Access for Everything {
    fn expect(&self, _level: Level, _table: Option<&str>) -> Result<()> {
        Ok(())
    }
}
