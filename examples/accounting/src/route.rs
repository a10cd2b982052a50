//! Paths, status codes, headers.
#![allow(clippy::result_large_err, reason = "what is refused is answered, once a request")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use esker::EventId;
use hyper::body::Frame;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::event::IngestEvent;
use crate::key::{Caller, Keys};
use crate::store::{Filter, Once, Outcome, Refusal, Store};

/// The longest body, in bytes.
const BODY_BYTES_MAX: usize = 10 << 20;
/// The most events of a batch.
const BATCH_MAX: usize = 10_000;
/// Events of a page, where it is not said, and at most.
const PAGE: usize = 50;
const PAGE_MAX: usize = 1_000;
/// Rows of rollups, where it is not said.
const ROLLUPS: usize = 100;
/// Pages that wait for a reader of an export.
const EXPORTED_PAGES: usize = 2;
const DAY_NS: i64 = 86_400_000_000_000;

/// The store, who may use it, and what has happened.
pub struct Service {
    store: Store,
    keys: Keys,
    requests: AtomicU64,
    /// By name and labels.
    counters: Mutex<BTreeMap<String, u64>>,
}

impl Service {
    /// A service of a store for some keys.
    #[must_use]
    pub fn new(store: Store, keys: Keys) -> Self {
        Self { store, keys, requests: AtomicU64::new(0), counters: Mutex::default() }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    fn count(&self, name: String, by: u64) {
        // Counters are whole whatever panics.
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        *counters.entry(name).or_default() += by;
    }
}

/// The routes of a service.
pub fn router(service: impl Into<Arc<Service>>) -> Router {
    Router::new().fallback(answer).with_state(service.into())
}

async fn answer(State(service): State<Arc<Service>>, request: Request) -> Response {
    let number = service.requests.fetch_add(1, Ordering::Relaxed);
    let id = request.headers().get("x-request-id").cloned();
    let id = id.or_else(|| HeaderValue::from_str(&format!("{number:016x}")).ok());
    let mut response = match Asked::of(&service, request).await {
        // The database waits for its disk.
        Ok(asked) => match tokio::task::spawn_blocking(move || asked.answer(&service)).await {
            Ok(response) => response,
            Err(_) => error(StatusCode::INTERNAL_SERVER_ERROR, "internal error"),
        },
        Err(response) => response,
    };
    id.into_iter().for_each(|id| drop(response.headers_mut().insert("x-request-id", id)));
    response
}

fn error(status: StatusCode, message: &str) -> Response {
    object(status, &json!({ "error": message }))
}

fn invalid(message: impl std::fmt::Display) -> Response {
    error(StatusCode::BAD_REQUEST, &format!("validation: {message}"))
}

fn object(status: StatusCode, body: &Json) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Invalid(message) => invalid(message),
            Self::OtherBody => error(
                StatusCode::UNPROCESSABLE_ENTITY,
                "this Idempotency-Key was used with another body",
            ),
            Self::Full => error(StatusCode::INSUFFICIENT_STORAGE, "store: the disk is full"),
            Self::Failed(e) => {
                eprintln!("{e}");
                error(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
            }
        }
    }
}

/// A request that is read, and who it comes from.
struct Asked {
    method: Method,
    path: String,
    parameters: BTreeMap<String, String>,
    headers: HeaderMap,
    body: Bytes,
    caller: Option<Caller>,
}

type Answer = Result<Response, Response>;

impl Asked {
    async fn of(service: &Service, request: Request) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().trim_end_matches('/').to_owned();
        let caller = match path.starts_with("/v1/") {
            true => Some(service.admit(&parts.headers)?),
            false => None,
        };
        let body = to_bytes(body, BODY_BYTES_MAX).await;
        let body = body.map_err(|_| error(StatusCode::BAD_REQUEST, "failed to read body"))?;
        let parameters = parameters(parts.uri.query().unwrap_or_default())?;
        Ok(Self { method: parts.method, path, parameters, headers: parts.headers, body, caller })
    }

    fn answer(&self, service: &Arc<Service>) -> Response {
        let path: Vec<&str> = self.path.split('/').skip(1).collect();
        let answer = match (self.method.as_str(), path.as_slice()) {
            ("POST", ["v1", "events"]) => self.one(service),
            ("POST", ["v1", "events", "batch"]) => self.batch(service),
            ("GET", ["v1", "events"]) => self.events(service),
            ("GET", ["v1", "events", "export"]) => self.export(service),
            ("DELETE", ["v1", "events"]) => self.delete_many(service),
            ("DELETE", ["v1", "events", id]) => delete(service, id),
            ("GET", ["v1", "quota"]) => self.quota(service),
            ("GET", ["v1", "rollups"]) => self.rollups(service),
            ("GET", ["v1", "stats"]) => self.stats(service),
            ("GET", ["health"]) => Ok(health(service)),
            ("GET", ["metrics"]) => Ok(service.metrics()),
            (_, ["v1", "events" | "quota" | "rollups" | "stats", ..]) => {
                Err(StatusCode::METHOD_NOT_ALLOWED.into_response())
            }
            _ => Err(StatusCode::NOT_FOUND.into_response()),
        };
        answer.unwrap_or_else(|refused| refused)
    }

    fn parse<T: for<'d> Deserialize<'d>>(&self) -> Result<T, Response> {
        let kind = self.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
        let is_json = kind == "application/json"
            || (kind.starts_with("application/") && kind.ends_with("+json"));
        if !is_json {
            let message = "Content-Type must be application/json";
            return Err(error(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        serde_json::from_slice(&self.body).map_err(|e| {
            let message = format!("failed to parse JSON body: {e}");
            error(StatusCode::UNPROCESSABLE_ENTITY, &message)
        })
    }

    fn caller(&self, service: &Service, events: usize) -> Result<&Caller, Response> {
        let Some(caller) = &self.caller else {
            return Err(StatusCode::UNAUTHORIZED.into_response());
        };
        match service.keys.take(caller, events) {
            Ok(()) => Ok(caller),
            Err(seconds) => {
                let after = [(header::RETRY_AFTER, seconds.to_string())];
                Err((StatusCode::TOO_MANY_REQUESTS, after).into_response())
            }
        }
    }

    fn ingest(
        &self,
        service: &Service,
        events: Vec<IngestEvent>,
        durable: bool,
    ) -> Result<Vec<Outcome>, Response> {
        let caller = self.caller(service, events.len())?;
        let key = self.headers.get("idempotency-key").map(HeaderValue::to_str).transpose();
        let key = key.map_err(|_| invalid("Idempotency-Key: expected printable characters"))?;
        let once = key.map(|key| Once { key, body: &self.body });
        let stored = service.store.ingest(events, caller, (once, durable));
        let outcomes = stored.map_err(IntoResponse::into_response)?;
        for outcome in &outcomes {
            service.count_outcome(outcome);
        }
        Ok(outcomes)
    }

    fn one(&self, service: &Service) -> Answer {
        let event: IngestEvent = self.parse()?;
        let durable = self.parameters.get("durable").is_none_or(|durable| durable != "false");
        match self.ingest(service, vec![event], durable)?.pop() {
            Some(Ok(answer)) => {
                let status = if durable { StatusCode::CREATED } else { StatusCode::ACCEPTED };
                Ok(object(status, &answer))
            }
            Some(Err(message)) => Err(error(StatusCode::BAD_REQUEST, &message)),
            None => Err(error(StatusCode::INTERNAL_SERVER_ERROR, "internal error")),
        }
    }

    fn batch(&self, service: &Service) -> Answer {
        #[derive(Deserialize)]
        struct Batch {
            events: Vec<Json>,
        }
        let Batch { events } = self.parse()?;
        if events.len() > BATCH_MAX {
            let count = events.len();
            return Err(invalid(format!("batch size {count} exceeds maximum {BATCH_MAX}")));
        }
        let parsed = events.into_iter().enumerate().map(|(at, event)| {
            serde_json::from_value(event).map_err(|e| {
                let message = format!("failed to parse JSON body: events[{at}]: {e}");
                error(StatusCode::UNPROCESSABLE_ENTITY, &message)
            })
        });
        let events = parsed.collect::<Result<Vec<IngestEvent>, _>>()?;
        let durable = self.headers.get("x-keplor-durable").is_some_and(|value| value == "true");
        let outcomes = self.ingest(service, events, durable)?;
        let rejected = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        let accepted = outcomes.len() - rejected;
        let result = |outcome: Outcome| outcome.unwrap_or_else(|e| json!({ "error": e }));
        let results: Vec<Json> = outcomes.into_iter().map(result).collect();
        let status = if rejected == 0 { StatusCode::CREATED } else { StatusCode::MULTI_STATUS };
        let body = json!({ "results": results, "accepted": accepted, "rejected": rejected });
        Ok(object(status, &body))
    }

    /// A parameter that is a number.
    fn number(&self, name: &str) -> Result<Option<i64>, Response> {
        let text = self.parameters.get(name);
        let parsed = text.map(|text| text.parse()).transpose();
        parsed.map_err(|_| invalid(format!("{name}: expected a number")))
    }

    fn count(&self, name: &str, otherwise: usize) -> Result<usize, Response> {
        let given = self.number(name)?.map(usize::try_from).transpose();
        let given = given.map_err(|_| invalid(format!("{name}: expected 0 or more")))?;
        Ok(given.unwrap_or(otherwise))
    }

    fn limit(&self, otherwise: usize) -> Result<usize, Response> {
        Ok(self.count("limit", otherwise)?.clamp(1, PAGE_MAX))
    }

    fn filter(&self, fields: &[&'static str]) -> Result<Filter, Response> {
        let equal = fields.iter().filter_map(|field| {
            let value = self.parameters.get(*field)?;
            let folds = matches!(*field, "model" | "provider");
            Some((*field, if folds { value.to_ascii_lowercase() } else { value.clone() }))
        });
        Ok(Filter {
            equal: equal.collect(),
            from: self.number("from")?,
            to: self.number("to")?,
            status_min: self.number("status_min")?,
            status_max: self.number("status_max")?,
        })
    }

    fn filter_of_events(&self) -> Result<Filter, Response> {
        self.filter(&[
            "user_id",
            "api_key_id",
            "model",
            "provider",
            "source",
            "user_tag",
            "session_tag",
        ])
    }

    fn events(&self, service: &Service) -> Answer {
        self.caller(service, 0)?;
        let filter = self.filter_of_events()?;
        let cursor = self.parameters.get("cursor").map(String::as_str);
        let page = service.store.page(&filter, self.limit(PAGE)?, cursor);
        let (events, next) = page.map_err(IntoResponse::into_response)?;
        let body = json!({
            "events": events, "has_more": next.is_some(), "cursor": next,
            "has_archived_data": false,
        });
        Ok(object(StatusCode::OK, &body))
    }

    fn export(&self, service: &Arc<Service>) -> Answer {
        self.caller(service, 0)?;
        let body = exported(Arc::clone(service), self.filter_of_events()?);
        let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
        Ok((StatusCode::OK, kind, body).into_response())
    }

    fn delete_many(&self, service: &Service) -> Answer {
        let caller = self.caller(service, 0)?;
        let (days, user) = (self.number("older_than_days")?, self.parameters.get("user_id"));
        let deleted = match (days, user) {
            (Some(days), None) => match u32::try_from(days) {
                Ok(days) if days > 0 => service.store.delete_older(days),
                _ => return Err(invalid("older_than_days: expected 1 or more")),
            },
            (None, Some(user)) if !user.trim().is_empty() => service.store.delete_user(user),
            (None, Some(_)) => return Err(invalid("user_id is blank")),
            _ => return Err(invalid("expected one of older_than_days and user_id")),
        };
        let deleted = deleted.map_err(IntoResponse::into_response)?;
        let actor = caller.key.as_deref().unwrap_or("anon");
        eprintln!("audit: {actor} has deleted {deleted} events: {:?}", self.parameters);
        let body = json!({ "events_deleted": deleted, "blobs_deleted": 0 });
        Ok(object(StatusCode::OK, &body))
    }

    fn quota(&self, service: &Service) -> Answer {
        self.caller(service, 0)?;
        let filter = self.filter(&["user_id", "api_key_id"])?;
        if filter.equal.is_empty() {
            return Err(invalid("at least one of user_id or api_key_id is required"));
        }
        if filter.from.is_none() {
            return Err(invalid("from is required"));
        }
        let quota = service.store.quota(&filter).map_err(IntoResponse::into_response)?;
        Ok(object(StatusCode::OK, &quota))
    }

    /// Whole days, both of them included.
    fn filter_of_days(&self, fields: &[&'static str]) -> Result<Filter, Response> {
        let filter = self.filter(fields)?;
        let (Some(from), Some(to)) = (filter.from, filter.to) else {
            return Err(invalid("from and to are required"));
        };
        let day = |ns: i64| ns.div_euclid(DAY_NS).saturating_mul(DAY_NS);
        let to = day(to).saturating_add(DAY_NS - 1);
        Ok(Filter { from: Some(day(from)), to: Some(to), ..filter })
    }

    fn rollups(&self, service: &Service) -> Answer {
        self.caller(service, 0)?;
        let filter = self.filter_of_days(&["user_id", "api_key_id"])?;
        let (limit, offset) = (self.limit(ROLLUPS)?, self.count("offset", 0)?);
        let rows = service.store.rollups(&filter, limit + 1, offset);
        Ok(listed("rollups", rows.map_err(IntoResponse::into_response)?, limit))
    }

    fn stats(&self, service: &Service) -> Answer {
        self.caller(service, 0)?;
        let filter = self.filter_of_days(&["user_id", "api_key_id", "provider"])?;
        let by_model = self.parameters.get("group_by").is_some_and(|by| by == "model");
        let (limit, offset) = (self.limit(ROLLUPS)?, self.count("offset", 0)?);
        let rows = service.store.stats(&filter, by_model, (limit + 1, offset));
        Ok(listed("stats", rows.map_err(IntoResponse::into_response)?, limit))
    }
}

/// All events as lines, a page at a time: of any number a few pages are in memory. One that cannot
/// be read ends the connection, not the list.
fn exported(service: Arc<Service>, filter: Filter) -> Body {
    let (send, pages) = tokio::sync::mpsc::channel(EXPORTED_PAGES);
    tokio::task::spawn_blocking(move || {
        let mut cursor: Option<String> = None;
        loop {
            let page = match service.store.page(&filter, PAGE_MAX, cursor.as_deref()) {
                Ok((events, next)) => {
                    cursor = next;
                    Ok(events.iter().map(|event| format!("{event}\n")).collect::<String>())
                }
                Err(refusal) => Err(std::io::Error::other(format!("{refusal:?}"))),
            };
            let is_last = cursor.is_none() || page.is_err();
            // Nobody may read on.
            if send.blocking_send(page.map(Bytes::from)).is_err() || is_last {
                return;
            }
        }
    });
    Body::new(Pages(pages))
}

/// A body that comes page by page.
struct Pages(tokio::sync::mpsc::Receiver<std::io::Result<Bytes>>);

impl HttpBody for Pages {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let page = self.get_mut().0.poll_recv(context);
        page.map(|page| page.map(|page| page.map(Frame::data)))
    }
}

/// Rows of which one more than wanted says that there are more.
fn listed(name: &str, mut rows: Vec<Json>, limit: usize) -> Response {
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    object(StatusCode::OK, &json!({ name: rows, "has_more": has_more }))
}

fn delete(service: &Service, id: &str) -> Answer {
    let id: EventId = id.parse().map_err(|_| error(StatusCode::BAD_REQUEST, "invalid event id"))?;
    match service.store.delete(id).map_err(IntoResponse::into_response)? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(error(StatusCode::NOT_FOUND, "no such event")),
    }
}

fn health(service: &Service) -> Response {
    let (status, word, db) = match service.store.database().table("events") {
        Ok(_) => (StatusCode::OK, "ok", "connected"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "degraded", "unavailable"),
    };
    let version = env!("CARGO_PKG_VERSION");
    object(status, &json!({ "status": word, "version": version, "db": db }))
}

impl Service {
    fn admit(&self, headers: &HeaderMap) -> Result<Caller, Response> {
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let caller = self.keys.caller(shown);
        match (&caller, shown) {
            (Some(_), _) => self.count("keplor_auth_successes_total".to_owned(), 1),
            (None, shown) => {
                let reason = if shown.is_some() { "invalid" } else { "missing" };
                self.count(format!("keplor_auth_failures_total{{reason=\"{reason}\"}}"), 1);
            }
        }
        caller.ok_or_else(|| StatusCode::UNAUTHORIZED.into_response())
    }

    fn count_outcome(&self, outcome: &Outcome) {
        match outcome {
            Ok(event) => {
                let provider = event.get("provider").and_then(Json::as_str).unwrap_or_default();
                let name = format!("keplor_events_ingested_total{{provider=\"{provider}\"}}");
                self.count(name, 1);
            }
            Err(_) => self.count("keplor_events_errors_total{stage=\"validation\"}".to_owned(), 1),
        }
    }

    fn metrics(&self) -> Response {
        let mut text = String::new();
        // Counters are whole whatever panics.
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, value) in &*counters {
            // Writing to a text does not fail.
            let _ = writeln!(text, "{name} {value}");
        }
        let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
        (StatusCode::OK, kind, text).into_response()
    }
}

/// The parameters behind a `?`.
fn parameters(query: &str) -> Result<BTreeMap<String, String>, Response> {
    let mut all = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(name), Some(value)) = (decoded(name), decoded(value)) else {
            return Err(invalid(format!("query: {pair:?} is not encoded as it should be")));
        };
        all.insert(name, value);
    }
    Ok(all)
}

/// A part of a query with `%2F` and `+` as what they stand for.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}
