//! What requests are about and how long they take, for administrators of a server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use esker::{Activity, Limits, QueryOptions, SessionActivity, SlowStatementActivity, Value};
use esker_sql::Statement;

use super::{Request, Session, SqlText, value_bytes};
use crate::monitor::active_sessions::{ActiveSession, ActiveSessions};
use crate::monitor::metrics::Metrics;
use crate::tenant::TenantName;

/// The most bytes of a statement, and of its parameters, that are kept to explain it.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The plan of what was slow may take so long: its answer waits for it.
const PLAN_TIMEOUT: Duration = Duration::from_millis(50);

/// Notes the requests of sessions on one database.
#[derive(Debug)]
pub(crate) struct RequestLog {
    pub metrics: Arc<Metrics>,
    pub active_sessions: Arc<ActiveSessions>,
    pub token: Arc<str>,
    pub tenant: TenantName,
}

impl Activity for RequestLog {
    fn sessions(&self) -> Vec<SessionActivity> {
        self.active_sessions.list(&self.tenant).into_iter().map(SessionActivity::from).collect()
    }

    fn slow_statements(&self) -> Vec<SlowStatementActivity> {
        let all = self.metrics.slow_statements(&self.tenant).into_iter();
        all.map(SlowStatementActivity::from).collect()
    }
}

impl RequestLog {
    fn note_slow(&self, ns: u64, words: &RequestSummary, plan: Option<String>, completed: bool) {
        self.metrics.note_slow(&self.tenant, ns, (&words.to_string(), plan), completed);
    }
}

/// A request, in a few words.
#[derive(Debug)]
pub(crate) enum RequestSummary {
    /// A statement, with its parameters where they are small.
    Sql { text: SqlText, parameters: Option<Vec<Value>> },
    /// A query as JSON.
    Query(String),
    /// Something that is done to some keys, of a table or bucket, or from a key on.
    Keys { operation: &'static str, place: String, count: usize },
    /// Something that needs no more words.
    Alone(&'static str),
}

impl fmt::Display for RequestSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql { text, .. } => f.write_str(cut(text)),
            Self::Query(text) => f.write_str(text),
            Self::Keys { operation, place, count } => write!(f, "{operation} {place}: {count}"),
            Self::Alone(operation) => f.write_str(operation),
        }
    }
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(KEPT_BYTES_MAX)).unwrap_or_default()
}

impl RequestSummary {
    fn of(request: &Request) -> Self {
        let keys = |operation, place: &String, count| {
            let place = place.clone();
            Self::Keys { operation, place, count }
        };
        match request {
            Request::Sql { text, parameters } => {
                let bytes: usize = parameters.iter().map(|value| value_bytes(value.as_ref())).sum();
                let is_small = text.len() <= KEPT_BYTES_MAX && bytes <= KEPT_BYTES_MAX;
                let parameters = is_small.then(|| parameters.clone());
                Self::Sql { text: text.clone(), parameters }
            }
            Request::Query { json } | Request::Explain { json } => {
                Self::Query(cut(json).to_owned())
            }
            Request::Schema { table } => keys("schema", table, 0),
            Request::Get { table, keys: found } => keys("get", table, found.len()),
            Request::Exists { table, keys: found } => keys("exists", table, found.len()),
            Request::Insert { table, rows, .. } => keys("insert", table, rows.len()),
            Request::Update { table, .. } => keys("update", table, 1),
            Request::UpdateMany { table, updates } => keys("update", table, updates.len()),
            Request::Delete { table, keys: found } => keys("delete", table, found.len()),
            Request::BucketGet { bucket, keys: found } => keys("bucket_get", bucket, found.len()),
            Request::BucketPut { bucket, entries, .. } => keys("bucket_put", bucket, entries.len()),
            Request::BucketRemove { bucket, keys: found } => {
                keys("bucket_remove", bucket, found.len())
            }
            Request::BucketIncrement { bucket, .. } => keys("bucket_increment", bucket, 1),
            Request::BucketRange { bucket, range } => {
                keys("bucket_range", bucket, range.limit.unwrap_or(0))
            }
            Request::Admin(task) => Self::Alone(task.name()),
            Request::Ping => Self::Alone("ping"),
            Request::Tables => Self::Alone("tables"),
            Request::Buckets => Self::Alone("buckets"),
            Request::Begin { .. } => Self::Alone("begin"),
            Request::Commit => Self::Alone("commit"),
            Request::Rollback => Self::Alone("rollback"),
        }
    }
}

/// A request under way, listed at the seat of its session.
pub(crate) struct InFlight {
    words: Arc<RequestSummary>,
    since_ns: u64,
    listed: Option<(Arc<ActiveSession>, u64)>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some((active_session, number)) = self.listed.take() {
            active_session.finish(number);
        }
    }
}

/// The active session that has a transaction, until its end.
#[derive(Debug, Default)]
pub(crate) struct TransactionRecord(Option<Arc<ActiveSession>>);

impl Drop for TransactionRecord {
    fn drop(&mut self) {
        if let Some(active_session) = &self.0 {
            active_session.note_transaction(false);
        }
    }
}

impl Session {
    /// The requests of this session, and of its siblings, are noted from now on.
    #[must_use]
    pub(crate) fn watched(mut self, request_log: RequestLog) -> Self {
        self.request_log = Some(Arc::new(request_log));
        self
    }

    /// Takes a seat for a client who came by a protocol; the siblings of this session have it, too.
    pub(crate) fn register(&mut self, protocol: &'static str) {
        if let Some(request_log) = &self.request_log {
            self.active_session = Some(request_log.active_sessions.take(
                protocol,
                &request_log.token,
                &request_log.tenant,
            ));
        }
    }

    /// The token that its client showed; empty where it is trusted without.
    pub(crate) fn token(&self) -> &str {
        self.request_log.as_ref().map_or("", |request_log| &*request_log.token)
    }

    /// The seat of its client.
    pub(crate) fn active_session(&self) -> Option<&Arc<ActiveSession>> {
        self.active_session.as_ref()
    }

    /// Lists whether there is a transaction.
    pub(crate) fn note_transaction(&mut self, has_one: bool) {
        if let Some(active_session) = &self.active_session
            && has_one != self.noted.0.is_some()
        {
            self.noted = if has_one {
                active_session.note_transaction(true);
                TransactionRecord(Some(Arc::clone(active_session)))
            } else {
                TransactionRecord::default()
            };
        }
    }

    /// Notes that a request begins.
    pub(crate) fn begin(&self, request: &Request) -> Option<InFlight> {
        self.request_log.as_ref()?;
        self.list(RequestSummary::of(request))
    }

    /// Lists what runs, until what is returned is dropped.
    pub(crate) fn list(&self, words: RequestSummary) -> Option<InFlight> {
        let request_log = self.request_log.as_ref()?;
        let words = Arc::new(words);
        let listed = self.active_session.as_ref().map(|active_session| {
            let number = active_session.begin(Arc::clone(&words), self.canceller());
            (Arc::clone(active_session), number)
        });
        Some(InFlight { words, since_ns: request_log.metrics.now_ns(), listed })
    }

    /// Notes that it has ended; what was slow is logged and listed, with its plan.
    pub(crate) fn finish(&mut self, in_flight: Option<InFlight>, completed: bool) {
        self.note_transaction(self.is_in_transaction());
        let (Some(in_flight), Some(request_log)) = (in_flight, &self.request_log) else { return };
        let request_log = Arc::clone(request_log);
        let elapsed_ns = request_log.metrics.now_ns().saturating_sub(in_flight.since_ns);
        if request_log.metrics.is_slow(elapsed_ns) {
            let plan = self.plan_of(&in_flight.words);
            request_log.note_slow(elapsed_ns, &in_flight.words, plan, completed);
        }
    }

    /// The same of what was done by other means than [`Session::run`], and took so long.
    pub(crate) fn note(
        &self,
        took: Duration,
        completed: bool,
        words: impl FnOnce() -> RequestSummary,
    ) {
        let Some(request_log) = &self.request_log else { return };
        let elapsed_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        if request_log.metrics.is_slow(elapsed_ns) {
            request_log.note_slow(elapsed_ns, &words(), None, completed);
        }
    }

    /// How a statement is answered; none for what changes rows, and where constants take long. It
    /// is not run.
    fn plan_of(&self, words: &RequestSummary) -> Option<String> {
        let limits = Limits { timeout: Some(PLAN_TIMEOUT), ..self.limits() };
        match words {
            RequestSummary::Sql { text, parameters: Some(parameters) } => {
                let parameters = parameters.as_slice().into();
                let Statement::Query(query) = text.statement().ok()? else { return None };
                let semantics = text.semantics();
                let options = QueryOptions { parameters, limits, semantics };
                Some(self.sql.plan_with(query, &options).ok()?.to_string())
            }
            RequestSummary::Query(json) => {
                let query = self.parse_query(json).ok()?;
                let bound = self.scope().bind_json(&query).ok()?;
                let semantics = query.semantics().ok()?;
                let options = QueryOptions { limits, semantics, ..QueryOptions::default() };
                Some(self.sql.plan_with(&bound, &options).ok()?.to_string())
            }
            _ => None,
        }
    }
}
