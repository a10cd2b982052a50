//! Lines: requests, and serving the clients that send them.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use esker::{Isolation, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::ahead::Ahead;
use super::answer::{self, Told, failed_line};
use super::load::Loading;
use super::members::{self, Members, Unread};
use crate::monitor::active_sessions::ActiveSession;
use crate::monitor::metrics::Operations;
use crate::protocol::binary::Stream;
use crate::resources::budget::{SMALL_BYTES, Share};
use crate::resources::fair_share::FairShare;
use crate::session::{
    AdminTask, Answer, Canceller, Conflict, EntryRange, Expiry, Fields, IdempotencyKey, Key,
    Request, ResultBudget, Rows, Session, panic_guard::caught,
};
use crate::shared::{ServerConfig, Shared};
use crate::{Code, Error, Result};

/// What is counted of them.
pub(crate) fn operations() -> Operations {
    Operations::new("json-lines", members::OPERATIONS.map(|(name, _)| name.to_owned()))
}

macro_rules! line {
    (owned { $($owned:ident: $of:ty,)* } borrowed { $($borrowed:ident: $part:ty,)* }) => {
        /// A line. Which members there are is up to `op`.
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Line<'l> {
            #[serde(borrow)]
            id: Option<&'l RawValue>,
            idempotency_key: Option<String>,
            #[serde(borrow)]
            op: Cow<'l, str>,
            $($owned: Option<$of>,)*
            $(#[serde(borrow)] $borrowed: Option<$part>,)*
        }

        impl Line<'_> {
            /// Refuses members that are not for the operation.
            fn expect_members(&self) -> Result<()> {
                let members = [
                    $((stringify!($owned), self.$owned.is_some()),)*
                    $((stringify!($borrowed), self.$borrowed.is_some()),)*
                ];
                let given = members.into_iter().filter(|(_, is_given)| *is_given);
                members::expect(&self.op, given.map(|(name, _)| name))
            }
        }
    };
}

line! {
    owned {
        token: String,
        database: String,
        table: String,
        bucket: String,
        on_duplicate: String,
        value: String,
        ttl_ms: u64,
        by: i64,
        from: String,
        to: String,
        prefix: String,
        limit: usize,
        reverse: bool,
        replace: bool,
        sql: String,
        serializable: bool,
        read_only: bool,
    }
    borrowed {
        key: &'l RawValue,
        keys: Vec<&'l RawValue>,
        row: &'l RawValue,
        rows: Vec<&'l RawValue>,
        fields: &'l RawValue,
        updates: Vec<LineUpdate<'l>>,
        // The id of the request that is to end.
        request: &'l RawValue,
        parameters: Vec<&'l RawValue>,
        query: &'l RawValue,
        admin: &'l RawValue,
    }
}

/// What a row of an `update_many` gets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineUpdate<'l> {
    #[serde(borrow)]
    key: &'l RawValue,
    #[serde(borrow)]
    fields: &'l RawValue,
}

/// Serves a client until it goes.
pub(crate) async fn serve(
    mut stream: Stream,
    mut input: Vec<u8>,
    shared: &Shared,
) -> io::Result<()> {
    let config = &shared.config;
    let admitted = shared.authenticator.admit(None, None).ok();
    let mut session = admitted.map(|admitted| seated(admitted.session));
    let mut stopping = shared.stopping.clone();
    let (mut searched, mut is_at_end, mut fair_share) = (0, false, FairShare::default());
    let (mut incoming, mut outgoing) = (config.budget.share(), config.budget.share());
    loop {
        while let Some(length) = line_end(&input, searched, is_at_end) {
            let line: Vec<u8> = input.drain(..length).collect();
            searched = 0;
            let told = match Loading::begin(&line, session.as_ref(), shared) {
                Some(loading) => {
                    let begun = (&mut stream, &mut input, &mut is_at_end);
                    let taken = loading.take_rows(begun, &mut session, &mut incoming);
                    let Some(told) = taken.await? else {
                        return Ok(());
                    };
                    told
                }
                None => {
                    let canceller = session.as_mut().map(renew_canceller);
                    let ahead = Ahead { stream: &mut stream, input: &mut input, canceller };
                    let answering = answer_line(&line, &mut session, shared);
                    ahead.read_while(&line, answering, &mut is_at_end).await
                }
            };
            if !told.out.is_empty() {
                let out = settle(told, &mut outgoing, config.stall_timeout).await;
                stream.write_all(&out, config.stall_timeout).await?;
                outgoing.resize(0);
            }
        }
        if let Err(e) = incoming.wait(input.len(), config.stall_timeout).await {
            return end(&mut stream, &e, config.stall_timeout).await;
        }
        if input.is_empty() {
            input = Vec::new();
        }
        let active_session = session.as_ref().and_then(Session::active_session).cloned();
        let is_ended =
            active_session.as_ref().is_some_and(|active_session| active_session.is_ended());
        if is_at_end || is_ended || *stopping.borrow() {
            return Ok(());
        }
        searched = input.len();
        let most = request_bytes_max(config, session.as_ref());
        if searched > most {
            let e = Error::new(Code::LimitExceeded, format!("a line of more than {most} bytes"));
            return end(&mut stream, &e, config.stall_timeout).await;
        }
        let patience = patience(config, session.as_ref(), searched > 0);
        tokio::select! {
            read = stream.read(&mut input) => {
                let bytes = read?;
                is_at_end = bytes == 0;
                fair_share.note_read(bytes).await;
            }
            _ = stopping.changed() => {}
            () = ActiveSession::ended(active_session.as_ref()) => {}
            () = tokio::time::sleep(patience) => return Ok(()),
        }
    }
}

/// The most bytes of a line; fewer before it is known who asks.
pub(super) fn request_bytes_max(config: &ServerConfig, session: Option<&Session>) -> usize {
    let most = config.request_bytes_max;
    if session.is_some() { most } else { most.min(SMALL_BYTES) }
}

/// How long the client has for its next line, or for the rest of one.
fn patience(config: &ServerConfig, session: Option<&Session>, has_part: bool) -> Duration {
    match (has_part, session.is_some_and(Session::is_in_transaction)) {
        (true, _) => config.stall_timeout,
        (false, true) => config.transaction_timeout.min(config.idle_timeout),
        (false, false) => config.idle_timeout,
    }
}

/// Tells an error, behind which the connection ends.
async fn end(stream: &mut Stream, e: &Error, stall: Duration) -> io::Result<()> {
    stream.write_all(&[failed_line(None, e), vec![b'\n']].concat(), stall).await
}

/// What ends the next request of a session, and none behind it.
fn renew_canceller(session: &mut Session) -> Canceller {
    let canceller = Canceller::default();
    session.cancelled_by(canceller.clone());
    canceller
}

fn seated(mut session: Session) -> Session {
    session.register("json-lines");
    session
}

pub(super) fn line_end(input: &[u8], searched: usize, is_at_end: bool) -> Option<usize> {
    let rest = input.get(searched..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'\n').map(|at| searched + at + 1);
    end.or((is_at_end && !input.is_empty()).then_some(input.len()))
}

/// The line that tells it, with a share of the budget: once there is none, the request is answered
/// as refused only where it has changed nothing.
async fn settle(told: Told, outgoing: &mut Share, stall: Duration) -> Vec<u8> {
    let Told { id, mut out, share, failed, only_reads } = told;
    out.push(b'\n');
    if let Some(share) = share {
        outgoing.absorb(share);
    }
    // Errors are small, and true as they are.
    if failed.is_none()
        && let Err(e) = outgoing.wait(out.len(), stall).await
    {
        let e = if only_reads { e } else { e.though_done() };
        out = [failed_line(id.as_deref(), &e), vec![b'\n']].concat();
        outgoing.resize(0);
    }
    out
}

async fn answer_line(line: &[u8], session: &mut Option<Session>, shared: &Shared) -> Told {
    if line.trim_ascii().is_empty() {
        return Told::default();
    }
    let parsed: Line<'_> = match serde_json::from_slice(line) {
        Ok(parsed) => parsed,
        Err(e) => {
            let unread = Unread::of(line, &e);
            return Told::error(unread.id, &unread.error);
        }
    };
    let id = parsed.id.map(|id| id.get().to_owned());
    let since = Instant::now();
    let told = match (parsed.expect_members(), parsed.op.as_ref()) {
        (Err(e), _) => Err(e),
        // The request that it names has been answered, or never came.
        (_, "cancel") => need(parsed.request, "request", "cancel").map(|_| Told::default()),
        (_, "hello") => {
            hello(&parsed, session, shared).await.map(|answer| Told::answer(id.clone(), &answer))
        }
        _ => answer_request(&parsed, line, session, shared).await,
    };
    let told = told.unwrap_or_else(|e| Told::error(id, &e));
    count(&parsed.op, &told, since, shared);
    told
}

/// Counts the answer to an operation.
pub(super) fn count(op: &str, told: &Told, since: Instant, shared: &Shared) {
    if let Some(position) = members::position(op) {
        let took = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        shared.config.line_operations.count(position, told.failed, took);
    }
}

/// What a line says of the load that it begins.
pub(super) struct LoadLine {
    pub id: Option<String>,
    pub table: Result<String>,
    pub on_duplicate: String,
    pub key: Option<String>,
}

impl LoadLine {
    /// Nothing where it asks something else.
    pub fn of(line: &[u8]) -> Option<Self> {
        const NAME: &[u8] = b"\"load\"";
        if !line.windows(NAME.len()).any(|part| part == NAME) {
            return None;
        }
        let parsed: Line<'_> = match serde_json::from_slice(line) {
            Ok(parsed) => parsed,
            Err(e) => {
                let Unread { id, is_load, error } = Unread::of(line, &e);
                let (on_duplicate, key) = (String::new(), None);
                return is_load.then_some(Self { id, table: Err(error), on_duplicate, key });
            }
        };
        if parsed.op != "load" {
            return None;
        }
        let id = parsed.id.map(|id| id.get().to_owned());
        let members = parsed.expect_members();
        let table = members.and_then(|()| need(parsed.table, "table", "load"));
        let on_duplicate = parsed.on_duplicate.unwrap_or_else(|| "error".to_owned());
        Some(Self { id, table, on_duplicate, key: parsed.idempotency_key })
    }
}

async fn answer_request(
    line: &Line<'_>,
    text: &[u8],
    session: &mut Option<Session>,
    shared: &Shared,
) -> Result<Told> {
    let id = line.id.map(|id| id.get().to_owned());
    let request = request(line)?;
    let once = match &line.idempotency_key {
        Some(key) if !request.only_reads() => {
            let lifetime = shared.config.idempotency_lifetime;
            Some((key.clone(), line.op.as_ref().to_owned(), body(text)?, lifetime))
        }
        _ => None,
    };
    let Some(mut taken) = session.take() else {
        return Err(Error::new(Code::Unauthenticated, "expected {\"op\": \"hello\"} first"));
    };
    let fresh = taken.sibling().for_many_requests();
    let (budget, stall) = (Arc::clone(&shared.config.budget), shared.config.stall_timeout);
    let run = move || {
        let told = taken.check_in().and_then(|()| {
            let room = || ResultBudget::shared(budget.share(), stall);
            taken.answer_in(room().twice());
            let Some((key, op, body, lifetime)) = once else {
                return answer::tell(&mut taken, id, request, room());
            };
            let scope = [taken.token().as_bytes(), b"json-lines", op.as_bytes()];
            let once = IdempotencyKey::new(&key, &scope, &[&body], lifetime)?;
            answer::tell_once(&mut taken, id, &request, &once)
        });
        (taken, told)
    };
    let (kept, told) = match tokio::task::spawn_blocking(move || caught(run)).await {
        Ok(Ok((taken, told))) => (taken, told),
        Ok(Err(e)) => (fresh, Err(e)),
        Err(_) => (fresh, Err(Error::new(Code::Unavailable, "the server stops"))),
    };
    let is_out = told.as_ref().is_err_and(|e| e.code() == Code::Unauthenticated);
    *session = (!is_out).then_some(kept);
    told
}

/// What a line asks, whatever its id and its key are, and in whatever order its members stand.
fn body(line: &[u8]) -> Result<Vec<u8>> {
    let members: Members<'_> =
        serde_json::from_slice(line).map_err(|e| Error::invalid(e.to_string()))?;
    let mut body = Vec::with_capacity(line.len());
    for (name, value) in members.iter().filter(|(name, _)| *name != "id") {
        if name != "idempotency_key" {
            body.extend_from_slice(
                &[name.as_bytes(), b":", value.get().as_bytes(), b"\n"].concat(),
            );
        }
    }
    Ok(body)
}

async fn hello(line: &Line<'_>, session: &mut Option<Session>, shared: &Shared) -> Result<Answer> {
    let authenticator = Arc::clone(&shared.authenticator);
    let (token, database) = (line.token.clone(), line.database.clone());
    let admit = move || {
        let admitted = authenticator.admit(token.as_deref(), database.as_deref())?;
        admitted.session.check_in().map(|()| admitted.session)
    };
    let admitted = tokio::task::spawn_blocking(admit).await;
    let stops = |_| Error::new(Code::Unavailable, "the server stops");
    *session = Some(seated(admitted.map_err(stops)??));
    Ok(Answer::Text(env!("CARGO_PKG_VERSION").to_owned()))
}

/// A member that the operation needs.
fn need<T>(member: Option<T>, name: &str, op: &str) -> Result<T> {
    member.ok_or_else(|| Error::invalid(format!("op {op:?}: expected the member {name:?}")))
}

fn request(line: &Line<'_>) -> Result<Request> {
    let op = line.op.as_ref();
    let table = || need(line.table.clone(), "table", op);
    let raw = |raw: &RawValue| raw.get().to_owned();
    Ok(match op {
        "ping" => Request::Ping,
        "tables" => Request::Tables,
        "schema" => Request::Schema { table: table()? },
        "get" => Request::Get { table: table()?, keys: keys(line)? },
        "exists" => Request::Exists { table: table()?, keys: keys(line)? },
        "delete" => Request::Delete { table: table()?, keys: keys(line)? },
        "insert" => {
            let rows: Vec<String> = match (line.row, &line.rows) {
                (Some(row), None) => vec![raw(row)],
                (None, Some(rows)) => rows.iter().map(|row| raw(row)).collect(),
                _ => return Err(Error::invalid("op \"insert\": expected \"row\" or \"rows\"")),
            };
            let conflict =
                if line.replace == Some(true) { Conflict::Replace } else { Conflict::Fail };
            Request::Insert { table: table()?, rows: Rows::Objects(rows), conflict }
        }
        "update" => {
            let key = key(need(line.key, "key", op)?)?;
            let fields = Fields::Object(raw(need(line.fields, "fields", op)?));
            Request::Update { table: table()?, key, fields }
        }
        "update_many" => {
            let updates = need(line.updates.as_ref(), "updates", op)?.iter();
            let updates = updates
                .map(|LineUpdate { key: of, fields }| Ok((key(of)?, Fields::Object(raw(fields)))));
            Request::UpdateMany { table: table()?, updates: updates.collect::<Result<_>>()? }
        }
        "sql" => {
            let parameters = line.parameters.iter().flatten().map(|v| value(v));
            let parameters = parameters.collect::<Result<_>>()?;
            Request::Sql { text: need(line.sql.clone(), "sql", op)?.into(), parameters }
        }
        "query" => Request::Query { json: raw(need(line.query, "query", op)?) },
        "explain" => Request::Explain { json: raw(need(line.query, "query", op)?) },
        "admin" => Request::Admin(AdminTask::parse(need(line.admin, "admin", op)?.get())?),
        "begin" => {
            let isolation = match line.serializable {
                Some(true) => Isolation::Serializable,
                _ => Isolation::Snapshot,
            };
            Request::Begin { isolation, read_only: line.read_only == Some(true) }
        }
        "commit" => Request::Commit,
        "rollback" => Request::Rollback,
        _ => return bucket_request(line),
    })
}

fn bucket_request(line: &Line<'_>) -> Result<Request> {
    let op = line.op.as_ref();
    let bucket = || need(line.bucket.clone(), "bucket", op);
    let entry_key = || -> Result<Vec<u8>> {
        let key = need(line.key, "key", op)?;
        let text: std::result::Result<String, _> = serde_json::from_str(key.get());
        let text = text.map_err(|_| Error::invalid("\"key\": expected a text"))?;
        Ok(text.into_bytes())
    };
    Ok(match op {
        "buckets" => Request::Buckets,
        "bucket_get" => Request::BucketGet { bucket: bucket()?, keys: vec![entry_key()?] },
        "bucket_remove" => Request::BucketRemove { bucket: bucket()?, keys: vec![entry_key()?] },
        "bucket_put" => {
            let value = need(line.value.clone(), "value", op)?.into_bytes();
            let expiry = line.ttl_ms.map(Duration::from_millis);
            let expiry = expiry.map_or(Expiry::Default, Expiry::After);
            Request::BucketPut { bucket: bucket()?, entries: vec![(entry_key()?, value)], expiry }
        }
        "bucket_increment" => {
            let by = line.by.unwrap_or(1);
            Request::BucketIncrement { bucket: bucket()?, key: entry_key()?, by }
        }
        "bucket_range" => {
            let bytes = |text: &Option<String>| text.clone().map(String::into_bytes);
            let range = EntryRange {
                from: bytes(&line.from),
                to: bytes(&line.to),
                prefix: bytes(&line.prefix),
                limit: line.limit,
                reverse: line.reverse == Some(true),
            };
            Request::BucketRange { bucket: bucket()?, range }
        }
        _ => return Err(members::unknown(op)),
    })
}

fn keys(line: &Line<'_>) -> Result<Vec<Key>> {
    match (line.key, &line.keys) {
        (Some(one), None) => Ok(vec![key(one)?]),
        (None, Some(keys)) => keys.iter().map(|k| key(k)).collect(),
        _ => Err(Error::invalid(format!("op {:?}: expected \"key\" or \"keys\"", line.op))),
    }
}

/// A key: the text or number of its only field, or an array of them.
fn key(raw: &RawValue) -> Result<Key> {
    let text = |raw: &RawValue| match raw.get() {
        text if text.starts_with('"') => serde_json::from_str(text).ok(),
        text if text.starts_with(['{', '[', 'n']) => None,
        text => Some(text.to_owned()),
    };
    let parts: Vec<&RawValue> = match raw.get().starts_with('[') {
        true => serde_json::from_str(raw.get()).unwrap_or_default(),
        false => vec![raw],
    };
    let texts: Option<Vec<String>> = parts.into_iter().map(text).collect();
    let wanted = "key: expected a text, a number or a boolean, or an array of them";
    texts.map(Key::Texts).ok_or_else(|| Error::invalid(wanted))
}

/// The value of a parameter.
pub(crate) fn value(raw: &RawValue) -> Result<Value> {
    let text = raw.get();
    let wrong = || {
        let wanted = "null, a boolean, a finite number, a text, an array or an object";
        Error::invalid(format!("parameter {text}: expected {wanted}"))
    };
    Ok(match text {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ if text.starts_with('"') => Value::Text(serde_json::from_str(text).map_err(|_| wrong())?),
        // A list where the statement expects one, a document elsewhere.
        _ if text.starts_with(['[', '{']) => Value::json(text)?,
        _ => match (text.parse(), text.parse(), text.parse()) {
            (Ok(v), _, _) => Value::Int(v),
            (_, Ok(v), _) => Value::Uint(v),
            (_, _, Ok(v)) if f64::is_finite(v) => Value::Float(v),
            _ => return Err(wrong()),
        },
    })
}
