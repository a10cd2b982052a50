//! What a session may do.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use esker::{BackupReport, Database};

use super::NewBackup;
use crate::tenant::{Loads, QueryPermit, QuotaReservation};
use crate::{Error, Result};

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

    /// Refuses a client that was let in and may go on no longer: a token that was removed, or is
    /// past its end.
    ///
    /// # Errors
    /// `Unauthenticated`.
    fn expect_valid(&self) -> Result<()> {
        Ok(())
    }

    /// Counts a request, and refuses one too many.
    ///
    /// # Errors
    /// `LimitExceeded`.
    fn count_request(&self) -> Result<()> {
        Ok(())
    }

    /// Refuses more rows and bytes than there may be. The room for them is held until what adds
    /// them has ended.
    ///
    /// # Errors
    /// `LimitExceeded` with the limit and what there is.
    fn reserve_quota(
        &self,
        _database: &Database,
        _room: &mut QuotaReservation,
        _rows: u64,
        _bytes: u64,
    ) -> Result<()> {
        Ok(())
    }

    /// Takes a place among the queries that run.
    ///
    /// # Errors
    /// `LimitExceeded` when there is none.
    fn begin_query(&self) -> Result<Option<QueryPermit>> {
        Ok(None)
    }

    /// The places of loads, if there are only so many.
    fn loads(&self) -> Option<Loads> {
        None
    }

    /// Makes a backup among those of the server; returns its place there.
    ///
    /// # Errors
    /// `InvalidRequest` where there is no server with a directory; `AlreadyExists`; what the backup
    /// meets.
    fn back_up(&self, _backup: &NewBackup) -> Result<(String, BackupReport)> {
        Err(Error::invalid("backup: expected the database of a server with a directory"))
    }

    /// Refuses events before they are looked at while those that came are more than may come.
    ///
    /// # Errors
    /// `LimitExceeded`.
    fn expect_events(&self) -> Result<()> {
        Ok(())
    }

    /// Takes events from what may come.
    fn count_events(&self, _count: u64) {}

    /// Counts what became of events, for the metrics.
    fn note_events(&self, _stored: u64, _refused: u64) {}

    /// Where the tails of the database are counted, if they are.
    fn tails(&self) -> Option<Arc<AtomicU64>> {
        None
    }

    /// The most bytes of one answer.
    fn result_bytes_max(&self) -> u64 {
        u64::MAX
    }
}

/// May do everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everything;

impl Access for Everything {
    fn expect(&self, _level: Level, _table: Option<&str>) -> Result<()> {
        Ok(())
    }
}
