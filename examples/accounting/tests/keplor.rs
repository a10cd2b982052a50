//! The behaviours of the service that this example is after, and those that it had not.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use std::sync::Arc;

use accounting::{ApiKey, Keys, RateLimit, Service, Store, router};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use esker_sql::Sql;
use esker_vfs::Environment;
use http_body_util::BodyExt;
use serde_json::{Value as Json, json};
use tower_service::Service as _;

/// A service with two keys, and prices of two models.
struct Fixture {
    service: Arc<Service>,
    router: Router,
}

struct Answered {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answered {
    fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

fn keys() -> Vec<ApiKey> {
    ["ann:a-secret:pro", "bob:b-secret"].map(|key| ApiKey::parse(key).unwrap()).to_vec()
}

fn prices(db: &esker::Database) {
    db.sql(
        "INSERT INTO prices (model, since, input, output, cache_read) VALUES \
         ('gpt-4o', '2020-01-01', 2500, 10000, 1250), ('claude', '2020-01-01', 3000, 15000, 300)",
        (),
    )
    .unwrap();
}

impl Fixture {
    fn new() -> Self {
        Self::with(keys(), None)
    }

    fn with(keys: Vec<ApiKey>, limit: Option<RateLimit>) -> Self {
        let db = esker::Options::new().memory().unwrap();
        let fixture = Self::of(db, keys, limit);
        prices(fixture.service.store().database());
        fixture
    }

    fn of(db: esker::Database, keys: Vec<ApiKey>, limit: Option<RateLimit>) -> Self {
        let store = Store::open(db).unwrap();
        let service = Arc::new(Service::new(store, Keys::new(keys, limit)));
        Self { router: router(Arc::clone(&service)), service }
    }

    async fn send(&self, request: Request<Body>) -> Answered {
        let response = self.router.clone().call(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Answered { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    async fn ask(&self, method: &str, path: &str, body: Option<&Json>) -> Answered {
        self.ask_with(method, path, body, &[]).await
    }

    async fn ask_with(
        &self,
        method: &str,
        path: &str,
        body: Option<&Json>,
        headers: &[(&str, &str)],
    ) -> Answered {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            request = request.header("authorization", "Bearer a-secret");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.send(request.header("content-type", "application/json").body(body).unwrap()).await
    }

    async fn get(&self, path: &str) -> Json {
        let answered = self.ask("GET", path, None).await;
        assert_eq!(answered.status, 200, "{path}: {}", answered.text());
        answered.json()
    }

    async fn post(&self, event: &Json) -> Answered {
        self.ask("POST", "/v1/events", Some(event)).await
    }

    async fn stored(&self, event: &Json) -> Json {
        let answered = self.post(event).await;
        assert_eq!(answered.status, 201, "{}", answered.text());
        answered.json()
    }
}

fn now_ns() -> i64 {
    Environment::os().clock.wall_us() * 1_000
}

fn event(user: &str) -> Json {
    json!({
        "model": "gpt-4o", "provider": "openai", "user_id": user,
        "usage": {"input_tokens": 500, "output_tokens": 500},
    })
}

fn with(mut event: Json, name: &str, value: impl Into<Json>) -> Json {
    event[name] = value.into();
    event
}

fn days() -> (i64, i64) {
    (now_ns() - 86_400_000_000_000, now_ns() + 86_400_000_000_000)
}

#[tokio::test]
async fn an_event_is_stored_normalised_and_costed() {
    let service = Fixture::new();
    let event = json!({
        "model": "  GPT-4o ", "provider": "OpenAI", "user_id": "alice",
        "usage": {"input_tokens": 500, "output_tokens": 500, "cache_read_input_tokens": 100},
        "latency": {"ttft_ms": 5, "total_ms": 40}, "http_status": 200, "endpoint": "/v1/chat",
        "flags": {"streaming": true}, "metadata": {"user_tag": "x", "n": [1, 2]},
        "client_ip": "10.0.0.1", "trace_id": "0x0123456789abcdef0123456789ABCDEF",
    });
    let answer = service.stored(&event).await;
    assert_eq!(answer["cost_nanodollars"], 400 * 2_500 + 100 * 1_250 + 500 * 10_000);
    assert_eq!((&answer["model"], &answer["provider"]), (&json!("gpt-4o"), &json!("openai")));
    let page = service.get("/v1/events").await;
    let shown = &page["events"][0];
    assert_eq!(shown["id"], answer["id"]);
    assert_eq!(shown["usage"]["cache_read_input_tokens"], 100);
    assert_eq!(shown["metadata"], json!({"user_tag": "x", "n": [1, 2]}));
    assert_eq!((&shown["streaming"], &shown["latency_ttft_ms"]), (&json!(true), &json!(5)));
    assert_eq!(shown["api_key_id"], "ann");
    assert_eq!(shown["trace_id"], "0123456789abcdef0123456789abcdef");
    assert_eq!((&page["has_more"], &page["cursor"]), (&json!(false), &json!(null)));
}

#[tokio::test]
async fn costs_go_by_provider_and_name_and_what_is_given() {
    let service = Fixture::new();
    let usage = json!({
        "input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 40,
        "reasoning_tokens": 2,
    });
    let base = json!({"model": "claude", "provider": "anthropic", "usage": usage});
    for (event, cost) in [
        (base.clone(), 100 * 3_000 + 40 * 300 + 12 * 15_000),
        (with(base.clone(), "provider", "openai"), 60 * 3_000 + 40 * 300 + 12 * 15_000),
        (with(base.clone(), "model", "claude-2025-01-31"), 100 * 3_000 + 40 * 300 + 12 * 15_000),
        (with(base.clone(), "model", "claude-20250131"), 100 * 3_000 + 40 * 300 + 12 * 15_000),
        (with(base.clone(), "model", "unknown"), 0),
        (with(base.clone(), "cost_nanodollars", 7), 7),
    ] {
        assert_eq!(service.stored(&event).await["cost_nanodollars"], cost, "{event}");
    }
    let other = service.stored(&with(base, "provider", "My-Own")).await;
    assert_eq!(other["provider"], "openai_compatible");
}

#[tokio::test]
async fn prices_of_later_change_nothing_that_was_stored() {
    let service = Fixture::new();
    let before = service.stored(&event("alice")).await;
    let db = service.service.store().database();
    db.sql("INSERT INTO prices VALUES ('gpt-4o', '2020-01-02', 1, 1, 1, 1, 1)", ()).unwrap();
    assert_eq!(service.stored(&event("alice")).await["cost_nanodollars"], 1_000);
    let page = service.get("/v1/events").await;
    let costs: Vec<_> = [0, 1].map(|at| page["events"][at]["cost_nanodollars"].clone()).into();
    assert_eq!(costs, [json!(1_000), before["cost_nanodollars"].clone()]);
    let quota = service.get("/v1/quota?user_id=alice&from=0").await;
    assert_eq!(quota, json!({"cost_nanodollars": 6_251_000, "event_count": 2}));
}

#[tokio::test]
async fn what_is_wrong_is_refused_by_its_field() {
    let service = Fixture::new();
    let base = event("alice");
    for (event, message) in [
        (with(base.clone(), "model", " "), "validation: model is required"),
        (with(base.clone(), "provider", ""), "validation: provider is required"),
        (with(base.clone(), "model", "m".repeat(257)), "model has 257 bytes, at most 256"),
        (with(base.clone(), "user_id", "u".repeat(257)), "user_id has 257 bytes"),
        (with(base.clone(), "usage", json!({"image_tokens": 10_000_001})), "usage.image_tokens"),
        (with(base.clone(), "cost_nanodollars", -1), "cost_nanodollars is -1"),
        (with(base.clone(), "timestamp", "yesterday"), "invalid timestamp"),
        (with(base.clone(), "timestamp", 1_000), "timestamp is before 2020-01-01"),
        (with(base.clone(), "timestamp", now_ns() * 2), "24 hours in the future"),
        (with(base.clone(), "metadata", "x".repeat(70_000)), "metadata"),
    ] {
        let answered = service.post(&event).await;
        assert_eq!(answered.status, 400, "{event}: {}", answered.text());
        let error = answered.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(message), "{error}");
    }
    for event in [json!({"model": "m"}), with(base.clone(), "request_body", "x"), json!([])] {
        assert_eq!(service.post(&event).await.status, 422, "{event}");
    }
    let headers = [("authorization", "Bearer a-secret"), ("content-type", "text/plain")];
    let mut request = Request::builder().method("POST").uri("/v1/events");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let answered = service.send(request.body(Body::from(base.to_string())).unwrap()).await;
    assert_eq!(answered.status, 415);
    assert_eq!(service.get("/v1/events").await["events"], json!([]));
}

#[tokio::test]
async fn each_event_of_a_batch_has_its_own_result() {
    let service = Fixture::new();
    let events = json!({"events": [event("a"), with(event("a"), "model", ""), event("b")]});
    for headers in [&[][..], &[("x-keplor-durable", "true")]] {
        let answered = service.ask_with("POST", "/v1/events/batch", Some(&events), headers).await;
        assert_eq!(answered.status, 207);
        let body = answered.json();
        assert_eq!((&body["accepted"], &body["rejected"]), (&json!(2), &json!(1)));
        assert_eq!(body["results"][1], json!({"error": "validation: model is required"}));
        assert_eq!(body["results"][2]["cost_nanodollars"], 6_250_000);
    }
    let good = json!({"events": [event("a")]});
    assert_eq!(service.ask("POST", "/v1/events/batch", Some(&good)).await.status, 201);
    let many = json!({"events": vec![event("a"); 10_001]});
    let answered = service.ask("POST", "/v1/events/batch", Some(&many)).await;
    assert_eq!(answered.status, 400);
    let message = "validation: batch size 10001 exceeds maximum 10000";
    assert_eq!(answered.json(), json!({"error": message}));
    let bad = json!({"events": [event("a"), {"model": 5}]});
    let answered = service.ask("POST", "/v1/events/batch", Some(&bad)).await;
    assert_eq!(answered.status, 422);
    assert!(answered.text().contains("events[1]: invalid type"), "{}", answered.text());
}

#[tokio::test]
async fn keys_are_asked_for_and_stamp_events() {
    let service = Fixture::new();
    for shown in ["", "Bearer wrong", "a-secret", "bearer a-secret"] {
        let headers = [("authorization", shown)];
        let answered = service.ask_with("GET", "/v1/events", None, &headers).await;
        assert_eq!((answered.status, answered.body.len()), (401, 0), "{shown:?}");
    }
    let headers = [("authorization", "Bearer b-secret")];
    let forged = with(event("x"), "api_key_id", "ann");
    let answered = service.ask_with("POST", "/v1/events", Some(&forged), &headers).await;
    assert_eq!(answered.status, 201);
    service.stored(&event("y")).await;
    let db = service.service.store().database();
    let stamped: Vec<(String, String)> =
        db.sql_as("SELECT api_key_id, tier FROM events ORDER BY user_id", ()).unwrap();
    let want = [("bob", "free"), ("ann", "pro")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(stamped, want);
    for path in ["/health", "/metrics"] {
        let answered = service.ask_with("GET", path, None, &[("authorization", "")]).await;
        assert_eq!(answered.status, 200);
    }
    let open = Fixture::with(Vec::new(), None);
    let answered = open.ask_with("POST", "/v1/events", Some(&forged), &[("authorization", "")]);
    assert_eq!(answered.await.status, 201);
    assert_eq!(open.get("/v1/events").await["events"][0]["api_key_id"], "ann");
}

#[tokio::test]
async fn events_are_found_by_what_they_are() {
    let service = Fixture::new();
    let start = now_ns() - 1_000_000_000;
    for n in 0..10i64 {
        let mut event = event(if n % 2 == 0 { "even" } else { "odd" });
        event["timestamp"] = (start + n).into();
        event["http_status"] = (200 + n * 100).into();
        event["source"] = format!("s{n}").into();
        event["metadata"] = json!({"user_tag": format!("u{n}"), "session_tag": "s"});
        service.stored(&event).await;
    }
    for (query, count) in [
        ("user_id=even".to_owned(), 5),
        ("model=GPT-4o&provider=openai&api_key_id=ann".to_owned(), 10),
        ("source=s3".to_owned(), 1),
        ("user_tag=u4&session_tag=s".to_owned(), 1),
        ("status_min=400&status_max=600".to_owned(), 2),
        (format!("from={}&to={}", start + 2, start + 5), 4),
        ("user_id=nobody".to_owned(), 0),
        ("user_id=od%64".to_owned(), 5),
    ] {
        let page = service.get(&format!("/v1/events?{query}")).await;
        assert_eq!(page["events"].as_array().unwrap().len(), count, "{query}");
        let export = service.ask("GET", &format!("/v1/events/export?{query}"), None).await;
        assert_eq!(export.text().lines().count(), count, "{query}");
        assert_eq!(export.headers["content-type"], "application/x-ndjson");
    }
    let all = service.get("/v1/events?limit=100000").await;
    let times: Vec<i64> = all["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["timestamp"].as_i64().unwrap())
        .collect();
    let want: Vec<i64> = (0..10).rev().map(|n| start + n).collect();
    assert_eq!(
        times.iter().map(|t| t / 1_000).collect::<Vec<_>>(),
        want.iter().map(|t| t / 1_000).collect::<Vec<_>>()
    );
    for query in ["limit=x", "from=x", "cursor=x", "user_id=%zz"] {
        let answered = service.ask("GET", &format!("/v1/events?{query}"), None).await;
        assert_eq!(answered.status, 400, "{query}");
    }
}

#[tokio::test]
async fn rollups_stats_and_quota_are_sums_of_the_events() {
    let service = Fixture::new();
    for user in ["a", "a", "b"] {
        service.stored(&event(user)).await;
    }
    let failed = with(event("b"), "error", json!({"kind": "rate_limited"}));
    service.stored(&with(failed, "model", "claude")).await;
    let (from, to) = days();
    let rollups = service.get(&format!("/v1/rollups?from={from}&to={to}")).await;
    let rows = rollups["rollups"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!((&rows[0]["user_id"], &rows[0]["event_count"]), (&json!("a"), &json!(2)));
    assert_eq!((&rows[1]["model"], &rows[1]["error_count"]), (&json!("claude"), &json!(1)));
    assert_eq!(rows[0]["day"].as_i64().unwrap() % 86_400, 0);
    assert_eq!(rows[0]["cost_nanodollars"], 12_500_000);
    let one = service.get(&format!("/v1/rollups?from={from}&to={to}&limit=1&offset=1")).await;
    assert_eq!((&one["rollups"][0], &one["has_more"]), (&rows[1], &json!(true)));
    let stats = service.get(&format!("/v1/stats?from={from}&to={to}")).await;
    assert_eq!(stats["stats"][0]["event_count"], 4);
    assert_eq!(stats["stats"][0]["model"], "");
    let by_model = service.get(&format!("/v1/stats?from={from}&to={to}&group_by=model")).await;
    assert_eq!(by_model["stats"][0]["model"], "gpt-4o");
    assert_eq!(by_model["stats"][1]["error_count"], 1);
    let quota = service.get("/v1/quota?user_id=a&api_key_id=ann&from=0").await;
    assert_eq!(quota, json!({"cost_nanodollars": 12_500_000, "event_count": 2}));
    for path in ["/v1/quota?from=0", "/v1/quota?user_id=a", "/v1/rollups", "/v1/stats?from=1"] {
        assert_eq!(service.ask("GET", path, None).await.status, 400, "{path}");
    }
}

#[tokio::test]
async fn events_go_by_id_by_age_and_by_user() {
    let service = Fixture::new();
    let id = service.stored(&event("a")).await["id"].as_str().unwrap().to_owned();
    let old = with(event("a"), "timestamp", now_ns() - 40 * 86_400_000_000_000);
    service.stored(&old).await;
    service.stored(&event("b")).await;
    let delete = |path: String| {
        let service = &service;
        async move { service.ask("DELETE", &path, None).await }
    };
    assert_eq!(delete("/v1/events/nonsense".into()).await.status, 400);
    assert_eq!(delete(format!("/v1/events/{id}")).await.status, 204);
    assert_eq!(delete(format!("/v1/events/{id}")).await.status, 404);
    for query in ["", "?older_than_days=0", "?user_id=%20", "?older_than_days=1&user_id=a"] {
        assert_eq!(delete(format!("/v1/events{query}")).await.status, 400, "{query}");
    }
    let answered = delete("/v1/events?older_than_days=30".into()).await;
    assert_eq!(answered.json(), json!({"events_deleted": 1, "blobs_deleted": 0}));
    let answered = delete("/v1/events?user_id=b".into()).await;
    assert_eq!(answered.json(), json!({"events_deleted": 1, "blobs_deleted": 0}));
    assert_eq!(service.get("/v1/events").await["events"], json!([]));
}

#[tokio::test]
async fn who_sends_too_fast_is_told_when_to_come_again() {
    let limit = RateLimit { events_per_second: 0.5, burst: 3.0 };
    let service = Fixture::with(keys(), Some(limit));
    for _ in 0..3 {
        service.stored(&event("a")).await;
    }
    let answered = service.post(&event("a")).await;
    assert_eq!(answered.status, 429);
    assert_eq!(answered.headers["retry-after"], "2");
    let headers = [("authorization", "Bearer b-secret")];
    let other = service.ask_with("POST", "/v1/events", Some(&event("b")), &headers).await;
    assert_eq!(other.status, 201, "a limit is of one key");
    let two = json!({"events": [event("b"), event("b"), event("b")]});
    let answered = service.ask_with("POST", "/v1/events/batch", Some(&two), &headers).await;
    assert_eq!(answered.status, 429, "a batch counts as many as it has");
}

#[tokio::test]
async fn health_metrics_and_request_ids() {
    let service = Fixture::new();
    service.stored(&event("a")).await;
    assert_eq!(service.post(&with(event("a"), "model", "")).await.status, 400);
    let health = service.get("/health").await;
    assert_eq!((&health["status"], &health["db"]), (&json!("ok"), &json!("connected")));
    let metrics = service.ask("GET", "/metrics", None).await.text();
    for line in [
        "keplor_events_ingested_total{provider=\"openai\"} 1",
        "keplor_events_errors_total{stage=\"validation\"} 1",
        "keplor_auth_successes_total 2",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{metrics}");
    }
    let answered = service.ask_with("GET", "/health", None, &[("x-request-id", "mine")]).await;
    assert_eq!(answered.headers["x-request-id"], "mine");
    assert!(service.ask("GET", "/health", None).await.headers.contains_key("x-request-id"));
    assert_eq!(service.ask("PUT", "/v1/events", None).await.status, 405);
    assert_eq!(service.ask("GET", "/v2", None).await.status, 404);
}

// What the service that this is after got wrong.

#[tokio::test]
async fn an_event_that_was_just_answered_is_not_lost_to_a_read() {
    let service = Fixture::new();
    for n in 1..=20 {
        let path = if n % 2 == 0 { "/v1/events?durable=false" } else { "/v1/events" };
        let answered = service.ask("POST", path, Some(&event("a"))).await;
        assert_eq!(answered.status, if n % 2 == 0 { 202 } else { 201 });
        let quota = service.get("/v1/quota?user_id=a&from=0").await;
        assert_eq!(quota["event_count"], n);
    }
}

#[tokio::test]
async fn an_event_at_the_time_of_others_is_not_lost_between_pages() {
    let service = Fixture::new();
    let at = now_ns() / 1_000_000_000 * 1_000_000_000;
    let events: Vec<Json> = (0..25).map(|_| with(event("a"), "timestamp", at)).collect();
    let batch = json!({"events": events});
    assert_eq!(service.ask("POST", "/v1/events/batch", Some(&batch)).await.status, 201);
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = service.get(&format!("/v1/events?limit=10{cursor}")).await;
        let events = page["events"].as_array().unwrap();
        ids.extend(events.iter().map(|event| event["id"].to_string()));
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 25);
    let export = service.ask("GET", "/v1/events/export", None).await;
    assert_eq!(export.text().lines().count(), 25);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_is_not_lost_to_requests_at_once() {
    let service = Arc::new(Fixture::new());
    let headers = [("idempotency-key", "k1")];
    let sends = (0..40).map(|_| {
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            let event = event("a");
            service.ask_with("POST", "/v1/events", Some(&event), &headers).await
        })
    });
    let mut answers = Vec::new();
    for send in sends.collect::<Vec<_>>() {
        let answered = send.await.unwrap();
        assert_eq!(answered.status, 201, "{}", answered.text());
        answers.push(answered.text());
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "all of them are answered alike");
    assert_eq!(service.get("/v1/quota?user_id=a&from=0").await["event_count"], 1);
    // Another client's key is another one, and another body is told of.
    let bob = [("idempotency-key", "k1"), ("authorization", "Bearer b-secret")];
    let answered = service.ask_with("POST", "/v1/events", Some(&event("a")), &bob).await;
    assert_eq!(answered.status, 201);
    let answered = service.ask_with("POST", "/v1/events", Some(&event("b")), &headers).await;
    assert_eq!(answered.status, 422);
    assert_eq!(service.get("/v1/quota?user_id=a&from=0").await["event_count"], 2);
    // Of a batch, too.
    let batch = json!({"events": [event("c"), with(event("c"), "model", ""), event("c")]});
    let headers = [("idempotency-key", "k2")];
    let first = service.ask_with("POST", "/v1/events/batch", Some(&batch), &headers).await;
    let again = service.ask_with("POST", "/v1/events/batch", Some(&batch), &headers).await;
    assert_eq!((first.status, first.text()), (207, again.text()));
    assert_eq!(service.get("/v1/quota?user_id=c&from=0").await["event_count"], 2);
}

#[tokio::test]
async fn rollups_and_idempotency_keys_are_not_lost_by_reopening() {
    let dir = std::env::temp_dir().join(format!("accounting-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let open = || {
        let db = esker::Options::new().open(&dir).unwrap();
        Fixture::of(db, keys(), None)
    };
    let headers = [("idempotency-key", "k")];
    let (from, to) = (now_ns() - 60 * 86_400_000_000_000, now_ns());
    let service = open();
    prices(service.service.store().database());
    let old = with(event("a"), "timestamp", now_ns() - 50 * 86_400_000_000_000);
    service.stored(&old).await;
    let first = service.ask_with("POST", "/v1/events", Some(&event("a")), &headers).await;
    let path = format!("/v1/rollups?from={from}&to={to}");
    let rollups = service.get(&path).await;
    assert_eq!(rollups["rollups"].as_array().unwrap().len(), 2);
    service.service.store().database().clone().close().unwrap();
    drop(service);
    let service = open();
    assert_eq!(service.get(&path).await, rollups);
    let again = service.ask_with("POST", "/v1/events", Some(&event("a")), &headers).await;
    assert_eq!(again.text(), first.text());
    service.service.store().database().clone().close().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn what_has_ended_is_not_lost_to_sums() {
    let service = Fixture::new();
    let db = service.service.store().database().clone();
    let old = with(event("a"), "timestamp", now_ns() - 5 * 86_400_000_000_000);
    let headers = [("authorization", "Bearer b-secret")];
    for event in [&old, &event("a")] {
        service.ask_with("POST", "/v1/events", Some(event), &headers).await;
    }
    let (from, to) = (now_ns() - 60 * 86_400_000_000_000, now_ns());
    let paths = [
        format!("/v1/rollups?from={from}&to={to}&user_id=a"),
        format!("/v1/stats?from={from}&to={to}&group_by=model"),
        format!("/v1/quota?user_id=a&from={from}"),
    ];
    let mut before = Vec::new();
    for path in &paths {
        before.push(service.get(path).await);
    }
    assert_eq!(before[2]["event_count"], 2);
    // The tier of the caller keeps a day from now on.
    db.sql("ALTER TABLE events SET (retention_by = 'tier: free 1 day')", ()).unwrap();
    db.wait_idle().unwrap();
    let left = service.get("/v1/events?user_id=a").await;
    assert_eq!(left["events"].as_array().unwrap().len(), 1, "{left}");
    for (path, before) in paths.iter().zip(&before) {
        assert_eq!(service.get(path).await, *before, "{path}");
    }
    service.ask("DELETE", "/v1/events?user_id=a", None).await;
    assert_eq!(service.get(&paths[2]).await["event_count"], 0);
}

#[tokio::test]
async fn what_is_deleted_is_not_lost_to_rollups_only() {
    let service = Fixture::new();
    service.stored(&event("a")).await;
    service.stored(&event("b")).await;
    service.ask("DELETE", "/v1/events?user_id=a", None).await;
    let (from, to) = days();
    let stats = service.get(&format!("/v1/stats?from={from}&to={to}")).await;
    assert_eq!(stats["stats"][0]["event_count"], 1);
}

#[tokio::test]
async fn an_event_of_a_tier_that_would_end_it_is_refused_and_not_lost() {
    let service = Fixture::new();
    let old = with(event("a"), "timestamp", now_ns() - 10 * 86_400_000_000_000);
    service.stored(&old).await;
    let headers = [("authorization", "Bearer b-secret")];
    let answered = service.ask_with("POST", "/v1/events", Some(&old), &headers).await;
    assert_eq!(answered.status, 400);
    assert!(answered.text().contains("too_late"), "{}", answered.text());
}

#[tokio::test]
async fn a_bad_time_or_address_is_not_lost_silently() {
    let service = Fixture::new();
    for (name, value) in [
        ("timestamp", "1999-01-01T00:00:00Z"),
        ("timestamp", "2200-01-01T00:00:00Z"),
        ("client_ip", "nowhere"),
        ("trace_id", "xyz"),
    ] {
        let answered = service.post(&with(event("a"), name, value)).await;
        assert_eq!(StatusCode::from_u16(answered.status).unwrap(), StatusCode::BAD_REQUEST);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_of_many_senders_is_lost() {
    let service = Arc::new(Fixture::new());
    let send = |n: usize| {
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            for _ in 0..10 {
                let batch = json!({"events": vec![event("a"); n]});
                let answered = service.ask("POST", "/v1/events/batch", Some(&batch)).await;
                assert_eq!(answered.status, 201);
            }
        })
    };
    for task in (1..=10).map(send).collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let quota = service.get("/v1/quota?user_id=a&from=0").await;
    assert_eq!(quota, json!({"cost_nanodollars": 550 * 6_250_000i64, "event_count": 550}));
}
