//! Sessions: what one client has under way on one database.
//!
//! Protocols only translate. What a request does, within a transaction or without, under which
//! limits, and how it is cancelled, is here.

mod access;
mod admin;
mod copy;
mod entries;
mod event_feed;
mod figures;
pub mod group_sync;
mod idempotency;
mod key;
mod operation;
pub(crate) mod panic_guard;
pub(crate) mod request_log;
mod result_budget;
mod rows;
mod run;
mod sql_text;
mod statement;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use esker::{ChangeOptions, Database, Deferred, Limits, Scope, Semantics, Transaction, Value};
use tokio::time::Instant;

use crate::Code;
use crate::monitor::active_sessions::ActiveSession;
use crate::tenant::{Loads, QueryPermit, QuotaReservation};
pub use access::{Access, Everything, Level};
pub use admin::{AdminTask, ClockAction, ClockReport, NewBackup};
pub(crate) use copy::{copied, media_of};
pub use entries::after_prefix;
pub(crate) use entries::lasting;
pub use event_feed::EventFeed;
pub use figures::{DatabaseFigures, TableFigures};
pub use idempotency::is_internal;
pub(crate) use idempotency::{BUCKET as ONCE_BUCKET, BodyHash, IdempotencyKey, retried};
pub(crate) use operation::Duplicates;
pub use operation::{Answer, Conflict, EntryRange, Expiry, Fields, Key, Request, Rows};
pub use panic_guard::caught;
use request_log::TransactionRecord;
pub(crate) use request_log::{InFlight, RequestLog, RequestSummary};
pub(crate) use result_budget::ResultBudget;
pub(crate) use rows::{numbered, unwanted, value_bytes};
pub use sql_text::SqlText;
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
    /// Cancels the statement under way; it ends with [`Code::Cancelled`].
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
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
    /// The handle of its database, where its owner waits for the disk.
    deferred: Option<Deferred>,
    access: Arc<dyn Access>,
    limits: SessionLimits,
    cancel: Canceller,
    /// When the request under way began, where it may not take any time.
    began: Option<Instant>,
    /// For what the request or transaction under way may add.
    room: Mutex<QuotaReservation>,
    /// For the answer.
    answer: Mutex<ResultBudget>,
    /// Records requests.
    request_log: Option<Arc<RequestLog>>,
    /// Where what runs is listed.
    active_session: Option<Arc<ActiveSession>>,
    noted: TransactionRecord,
    /// Whether what it has for itself would be gone when its request has been answered.
    is_for_one_request: bool,
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
        let (cancel, room, answer) = (Canceller::default(), Mutex::default(), Mutex::default());
        let (request_log, active_session, noted) = (None, None, TransactionRecord::default());
        Self {
            sql,
            deferred: None,
            access,
            limits,
            cancel,
            began: None,
            room,
            answer,
            request_log,
            active_session,
            noted,
            is_for_one_request: false,
        }
    }

    /// Another session with the same rights, limits and settings, without a transaction, that is
    /// cancelled by itself and waits for the disk.
    #[must_use]
    pub fn sibling(&self) -> Self {
        let database = self.database().waiting();
        let sibling = Self::with(&database, Arc::clone(&self.access), self.limits.clone());
        Self {
            sql: sibling.sql.with_semantics(self.sql.semantics()),
            request_log: self.request_log.clone(),
            active_session: self.active_session.clone(),
            is_for_one_request: true,
            ..sibling
        }
    }

    /// The same session for one request, after which it ends.
    pub(crate) fn for_one_request(self) -> Self {
        Self { is_for_one_request: true, ..self }
    }

    /// The same session for requests one after another.
    pub(crate) fn for_many_requests(self) -> Self {
        Self { is_for_one_request: false, ..self }
    }

    /// Whether it has something for itself, so that its requests are done by itself.
    pub(crate) fn has_temporary(&self) -> bool {
        self.sql.has_temporary()
    }

    /// Leaves it to the owner of the session, which has no transaction, to wait for the disk: see
    /// [`Session::take_commit`].
    pub(crate) fn defer(&mut self) {
        let deferred = self.database().deferred();
        self.sql = esker_sql::Session::new(&deferred).with_semantics(self.sql.semantics());
        self.deferred = Some(deferred);
        self.is_for_one_request = false;
    }

    /// The handle of a session whose owner waits for the disk.
    pub(crate) fn deferred(&self) -> Option<&Deferred> {
        self.deferred.as_ref()
    }

    /// The commit that has to be durable before what was done since the last call is reported.
    pub(crate) fn take_commit(&self) -> Option<u64> {
        self.deferred.as_ref().and_then(Deferred::take_commit)
    }

    /// Refuses what the session may not do.
    ///
    /// # Errors
    /// `Forbidden` with the right that is missing.
    pub fn expect(&self, level: Level, table: Option<&str>) -> crate::Result<()> {
        self.access.expect(level, table)
    }

    /// What its token may do, and how much.
    pub(crate) fn access(&self) -> &Arc<dyn Access> {
        &self.access
    }

    /// Called before each request of a client that was let in once and keeps its session: whether
    /// it may still go on, and whether it asks too often.
    ///
    /// # Errors
    /// `Unauthenticated` when its token was removed, or is past its end; `LimitExceeded`.
    pub fn check_in(&self) -> crate::Result<()> {
        self.access.expect_valid()?;
        self.access.count_request()
    }

    /// Refuses a client that may go on no longer.
    ///
    /// # Errors
    /// `Unauthenticated` when its token was removed, or is past its end.
    pub fn expect_valid(&self) -> crate::Result<()> {
        self.access.expect_valid()
    }

    /// Refuses rows and bytes that would be more than there may be; they count as there until
    /// [`Session::release_room`].
    ///
    /// # Errors
    /// `LimitExceeded` with the limit and what there is.
    pub fn reserve_quota(&self, rows: usize, bytes: usize) -> crate::Result<()> {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        self.access.reserve_quota(self.database(), &mut room, rows as u64, bytes as u64)
    }

    /// Called once a request has been done or has failed, unless a transaction goes on.
    pub fn release_room(&self) {
        if !self.is_in_transaction() {
            self.room.lock().unwrap_or_else(PoisonError::into_inner).release();
        }
    }

    /// The places of loads, one of which a load takes before it has a thread.
    #[must_use]
    pub fn loads(&self) -> Option<Loads> {
        self.access.loads()
    }

    /// Refuses a load that exceeds the quota of rows: it has brought `rows` by now.
    ///
    /// # Errors
    /// `LimitExceeded` with the limit and what there is.
    pub fn reserve_load_quota(&self, room: &mut QuotaReservation, rows: u64) -> crate::Result<()> {
        let more = room.rows_beyond(rows);
        self.access.reserve_quota(self.database(), room, more, 0)
    }

    /// The most bytes of one answer.
    #[must_use]
    pub fn result_bytes_max(&self) -> u64 {
        self.access.result_bytes_max()
    }

    fn answer_room(&self) -> MutexGuard<'_, ResultBudget> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer begins, which is put together in this room, and those of later requests too.
    pub(crate) fn answer_in(&self, mut room: ResultBudget) {
        room.begin(self.result_bytes_max());
        *self.answer_room() = room;
    }

    /// Another answer begins.
    fn begin_answer(&self) {
        let most = self.result_bytes_max();
        self.answer_room().begin(most);
    }

    /// Room for so many bytes more of the answer under way: reserved before they are copied.
    ///
    /// # Errors
    /// `LimitExceeded` when an answer may not be so large, or there is no memory for it.
    pub(crate) fn take_answer(&self, bytes: usize) -> crate::Result<()> {
        self.answer_room().take(bytes)
    }

    /// The room of the answers so far; those that follow are nowhere counted.
    pub(crate) fn end_answer(&self) -> ResultBudget {
        std::mem::take(&mut *self.answer_room())
    }

    /// True when an answer was refused only as its thread must not wait.
    pub(crate) fn is_budget_exhausted(&self) -> bool {
        self.answer_room().is_exhausted()
    }

    /// Reads what is not part of the answer.
    pub(crate) fn internally<R>(&mut self, read: impl FnOnce(&mut Self) -> R) -> R {
        self.answer_room().set_internal(true);
        let done = read(self);
        self.answer_room().set_internal(false);
        done
    }

    /// Ends what was cancelled, or takes longer than a statement may.
    ///
    /// # Errors
    /// `Cancelled`, `Timeout`.
    pub fn expect_wanted(&self) -> crate::Result<()> {
        if self.cancel.is_cancelled() {
            return Err(crate::Error::new(Code::Cancelled, "the request was cancelled"));
        }
        self.began.map_or(Ok(()), |began| self.expect_in_time(began))
    }

    /// Ends what takes longer than a statement may.
    ///
    /// # Errors
    /// `Timeout` with the limit.
    pub(crate) fn expect_in_time(&self, began: Instant) -> crate::Result<()> {
        match self.limits.timeout {
            Some(timeout) if began.elapsed() > timeout => {
                let message = format!("the request took longer than {} ms", timeout.as_millis());
                Err(crate::Error::new(Code::Timeout, message))
            }
            _ => Ok(()),
        }
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

    /// From now on this ends the request under way, and no other does: a client that gives a
    /// request up while its answer is on the way ends none of those that follow.
    pub(crate) fn cancelled_by(&mut self, canceller: Canceller) {
        self.cancel = canceller;
    }

    /// True while the session has a transaction.
    #[must_use]
    pub fn is_in_transaction(&self) -> bool {
        self.sql.is_in_transaction()
    }

    pub(crate) fn transaction(&self) -> Option<&Transaction> {
        self.sql.transaction()
    }

    /// The transaction, or the database where there is none: what names mean, and where changes go.
    pub(crate) fn scope(&self) -> &dyn Scope {
        self.sql.scope()
    }

    /// Counts among the queries under way for as long as what is returned lives.
    ///
    /// # Errors
    /// `LimitExceeded` where there are too many.
    pub(crate) fn begin_query(&self) -> crate::Result<Option<QueryPermit>> {
        self.access.begin_query()
    }

    /// What a statement may take.
    pub(crate) fn limits(&self) -> Limits {
        let is_admin = self.access.expect(Level::Admin, None).is_ok();
        Limits {
            timeout: self.limits.timeout,
            memory_bytes: self.limits.memory_bytes,
            cancel: Some(Arc::clone(&self.cancel.0)),
            // What lies beside a database is of the server, and what others do is not theirs.
            without_files: !is_admin,
            activity: self.request_log.clone().filter(|_| is_admin).map(|log| log as _),
        }
    }

    fn change_options(&self, parameters: Vec<Value>, semantics: Semantics) -> ChangeOptions {
        ChangeOptions {
            parameters: parameters.into(),
            limits: self.limits(),
            semantics: semantics.or(self.sql.semantics()),
            ..ChangeOptions::default()
        }
    }
}
