//! Sessions: what one client has under way on one database.
//!
//! Protocols only translate. What a request does, within a transaction or without, under which
//! limits, and how it is cancelled, is here.

mod access;
mod entries;
mod key;
mod operation;
mod rows;
mod run;
mod statement;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker::{ChangeOptions, Database, Limits, Transaction, Value};

pub use access::{Access, Everything, Level};
pub use operation::{Answer, Conflict, EntryRange, Expiry, Fields, Key, Request, Rows};
pub use stream::RowSink;

/// What the requests of a session may take.
#[derive(Clone, Debug, Default)]
pub struct SessionLimits {
    /// How long a statement may take.
    pub timeout: Option<Duration>,
    /// The memory that a statement may have, in bytes.
    pub memory_bytes: Option<usize>,
}

/// Ends what a session does at the moment, from another thread.
#[derive(Clone, Debug, Default)]
pub struct Canceller(Arc<AtomicBool>);

impl Canceller {
    /// Cancels the statement under way; it ends with [`Code::Cancelled`](crate::Code::Cancelled).
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What one client has under way on one database: its rights, its limits, its transaction.
///
/// ```
/// use esker_server::{Answer, Request, Session};
///
/// let database = esker::Options::new().memory()?;
/// let mut session = Session::new(&database);
/// let sql = |text: &str| Request::Sql { text: text.into(), parameters: Vec::new() };
/// session.run(sql("CREATE TABLE t (n i64 PRIMARY KEY)"))?;
/// session.run(sql("INSERT INTO t VALUES (1), (2)"))?;
/// let Answer::Result { result, .. } = session.run(sql("SELECT count(*) FROM t"))? else {
///     panic!("expected rows");
/// };
/// assert_eq!(result.to_rows(), [[esker::Value::Int(2)]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Session {
    sql: esker_sql::Session,
    access: Arc<dyn Access>,
    limits: SessionLimits,
    cancel: Canceller,
}

impl Session {
    /// A session that may do everything, without limits of its own.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        Self::with(database, Arc::new(Everything), SessionLimits::default())
    }

    /// A session with rights and limits.
    #[must_use]
    pub fn with(database: &Database, access: Arc<dyn Access>, limits: SessionLimits) -> Self {
        let sql = esker_sql::Session::new(database);
        Self { sql, access, limits, cancel: Canceller::default() }
    }

    /// Another session with the same rights and limits, without a transaction, that is cancelled
    /// by itself.
    #[must_use]
    pub fn sibling(&self) -> Self {
        Self::with(self.database(), Arc::clone(&self.access), self.limits.clone())
    }

    /// Refuses what the session may not do.
    ///
    /// # Errors
    /// `Forbidden` with the right that is missing.
    pub fn expect(&self, level: Level, table: Option<&str>) -> crate::Result<()> {
        self.access.expect(level, table)
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &Database {
        self.sql.database()
    }

    /// What ends the request under way from another thread. A request that begins cancelled ends
    /// at once; each ends uncancelled.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.cancel.clone()
    }

    /// True while the session has a transaction.
    #[must_use]
    pub fn is_in_transaction(&self) -> bool {
        self.sql.is_in_transaction()
    }

    pub(crate) fn transaction(&self) -> Option<&Transaction> {
        self.sql.transaction()
    }

    fn limits(&self) -> Limits {
        Limits {
            timeout: self.limits.timeout,
            memory_bytes: self.limits.memory_bytes,
            cancel: Some(Arc::clone(&self.cancel.0)),
        }
    }

    fn change_options(&self, parameters: Vec<Value>) -> ChangeOptions {
        ChangeOptions {
            parameters: parameters.into(),
            limits: self.limits(),
            ..ChangeOptions::default()
        }
    }
}
