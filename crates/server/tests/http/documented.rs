//! Every route is in the document, and every answer that it has there happens.

use std::collections::BTreeSet;

use esker_server::protocol::http::{Need, PROBLEM_MEDIA, ROUTES, Route, document};
use serde_json::Value as Json;

use super::client::Harness;
use super::memory::{half_a_put, until};

type Headers<'a> = &'a [(&'a str, &'a str)];
/// Method, path, headers, body, and the status that is answered.
type Step<'a> = (&'a str, &'a str, Headers<'a>, &'a str, u16);

#[test]
fn every_route_is_in_the_document() {
    let document = document();
    let mut ids = BTreeSet::new();
    for route in ROUTES {
        let operation = &document["paths"][route.path][route.method];
        assert_eq!(operation["operationId"], route.id, "{route:?}");
        assert!(ids.insert(route.id), "{} is there twice", route.id);
        for status in route.statuses() {
            assert!(operation["responses"][status.to_string()].is_object(), "{route:?} {status}");
        }
        let takes_key = operation["parameters"].to_string().contains("\"Idempotency-Key\"");
        let tells_refusal = operation["responses"]["400"].to_string().contains("Idempotency-Key");
        assert_eq!(route.refuses_key(), tells_refusal, "{route:?}");
        assert!(takes_key || tells_refusal || route.only_reads(), "{route:?}");
    }
    let paths = document["paths"].as_object().unwrap();
    let count: usize = paths.values().map(|path| path.as_object().unwrap().len()).sum();
    assert_eq!(count, ROUTES.len());
}

/// Generators of clients leave out what has none, or asks for one that is not there.
#[test]
fn every_body_has_a_schema_and_every_schema_is_used() {
    fn refer(value: &Json, found: &mut BTreeSet<String>) {
        match value {
            Json::Object(members) => members.iter().for_each(|(name, member)| {
                if let ("$ref", Some(target)) = (name.as_str(), member.as_str()) {
                    found.insert(target.rsplit('/').next().unwrap().to_owned());
                }
                if name == "content" {
                    let bodies = member.as_object().into_iter().flatten();
                    bodies.for_each(|(media, body)| {
                        assert!(body["schema"].is_object() && media != "*/*", "{media}: {body}");
                    });
                }
                refer(member, found);
            }),
            Json::Array(items) => items.iter().for_each(|item| refer(item, found)),
            _ => {}
        }
    }
    let (document, mut found) = (document(), BTreeSet::new());
    refer(&document, &mut found);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert_eq!(found, schemas.keys().cloned().collect());
}

#[test]
fn what_the_document_lets_be_empty_is_not_refused() {
    let server = Harness::new(&[]);
    server.ask("PUT", "/v1/databases/default/buckets/b", "");
    let schema = r#"{"schema": "id i64 not null, primary key (id)"}"#;
    server.ask("PUT", "/v1/databases/default/tables/t", schema);
    let mut count = 0;
    for route in ROUTES {
        let path = path_of(route, "default");
        let may_be_empty = |schema: &str| {
            let schema: Json = serde_json::from_str(schema).unwrap();
            let bounds = ["minLength", "pattern", "enum"];
            schema["type"] == "string" && bounds.iter().all(|bound| schema[*bound].is_null())
        };
        for parameter in route.query.iter().filter(|p| may_be_empty(p.schema)) {
            let path = format!("{path}?{}=", parameter.name);
            let answer = server.ask(&route.method.to_uppercase(), &path, body_of(route));
            assert_ne!(answer.status, 400, "{path}: {}", answer.text());
            count += 1;
        }
        assert!(!route.headers.iter().any(|header| may_be_empty(header.schema)), "{route:?}");
    }
    assert_eq!(count, 3, "`from`, `to` and `prefix`");
}

fn path_of(route: &Route, database: &str) -> String {
    let path = route.path.replace("{database}", database);
    let path = path.replace("{table}", "t").replace("{bucket}", "b").replace("{key}", "1");
    let sql = if route.id == "copy" { "?sql=COPY+t+FROM+STDIN" } else { "" };
    path.replace("{index}", "i")
        .replace("{token}", "0")
        .replace("{transaction}", "0")
        .replace("{session}", "0")
        .replace("{id}", "01KDYAK3830000000000000007")
        + sql
}

fn body_of(route: &Route) -> &'static str {
    if route.bodies.is_empty() { "" } else { "{}" }
}

/// What every route of a kind answers, whatever it does.
fn common_answers(server: &Harness) {
    let (none, foreign) = (server.token("read:elsewhere/x"), server.token("admin:elsewhere"));
    for route in ROUTES {
        let method = route.method.to_uppercase();
        let (path, body) = (path_of(route, "default"), body_of(route));
        let media = ("content-type", "application/json");
        let plain = |headers: &[(&str, &str)]| server.raw(&method, &path, headers, body.as_bytes());
        let unknown = format!("{path}?nonsense=1");
        let response = server.ask(&method, &unknown, body);
        assert_eq!(response.status, 400, "{route:?} {}", response.text());
        assert_eq!(response.header("content-type"), PROBLEM_MEDIA);
        if route.refuses_key() {
            let response = server.send(&method, &path, &[media, ("idempotency-key", "k")], b"{}");
            assert_eq!(response.status, 400, "{route:?} {}", response.text());
            assert!(response.text().contains("idempotency-key: this route"), "{}", response.text());
        }
        if route.need == Need::Nothing {
            continue;
        }
        let response = plain(&[media]);
        assert_eq!(
            (response.status, response.json()["code"].as_str()),
            (401, Some("unauthenticated"))
        );
        assert_eq!(plain(&[media, ("authorization", "Bearer esk_0_0")]).status, 401);
        assert_eq!(plain(&[media, ("authorization", "Basic eDp5")]).status, 401);
        if route.need != Need::Token {
            for token in [&none, &foreign] {
                let bearer = format!("Bearer {token}");
                let response = plain(&[media, ("authorization", &bearer)]);
                assert_eq!(response.status, 403, "{route:?} {}", response.text());
            }
        }
        if route.is_in_database() {
            assert_eq!(server.ask(&method, &path_of(route, "nowhere"), body).status, 404);
            if route.is_counted() {
                let response = server.ask(&method, &path_of(route, "busy"), body);
                assert_eq!(response.status, 429, "{route:?}");
            }
            assert_eq!(server.ask(&method, &path_of(route, "NO"), body).status, 400);
        }
        let any = route.bodies.iter().any(|(media, _)| *media == "*/*");
        if !route.bodies.is_empty() && !any {
            let response = server.send(&method, &path, &[("content-type", "text/html")], b"x");
            assert_eq!(response.status, 415, "{route:?}");
        }
        if !route.bodies.is_empty() && !route.streams {
            let headers = [media, ("content-length", "99999999999")];
            assert_eq!(server.send(&method, &path, &headers, b"").status, 413, "{route:?}");
        }
    }
}

/// Bodies that do not go on.
fn silent_bodies() -> BTreeSet<(String, u16)> {
    let server = Harness::new(&[("stall_timeout", "200ms")]);
    let create = r#"{"sql": "CREATE TABLE t (t timestamp NOT NULL) WITH (stream = 't')"}"#;
    assert_eq!(server.ask("POST", "/v1/databases/default/query", create).status, 200);
    server.seen.lock().unwrap().clear();
    for route in ROUTES.iter().filter(|route| !route.bodies.is_empty()) {
        let headers = [("content-type", "application/json"), ("content-length", "10")];
        let (method, path) = (route.method.to_uppercase(), path_of(route, "default"));
        let response = server.send(&method, &path, &headers, b"{");
        assert_eq!(response.status, 408, "{route:?} {}", response.text());
        assert_eq!(response.json()["code"], "timeout");
    }
    server.seen.lock().unwrap().clone()
}

/// What a server that stops says.
fn stopping() -> BTreeSet<(String, u16)> {
    let mut server = Harness::new(&[("drain_timeout", "20s"), ("stall_timeout", "20s")]);
    server.ask("PUT", "/v1/databases/default/buckets/b", "");
    let in_flight = half_a_put(&server, 1_000, 500);
    until("the request has not come", || server.access_control.budget.used() > 0);
    let stopped = server.begin_stop();
    until("it does not stop", || server.ask("GET", "/readyz", "").status == 503);
    drop(in_flight);
    stopped();
    server.seen.lock().unwrap().clone()
}

fn tables(server: &Harness) {
    let (t, json) = ("/v1/databases/default/tables/t", "application/json");
    let schema = r#"{"schema": "id i64 not null, name text, primary key (id)"}"#;
    let steps: &[Step] = &[
        ("PUT", "", &[], schema, 201),
        ("PUT", "", &[], schema, 409),
        ("GET", "", &[], "", 200),
        ("POST", "/indexes", &[], r#"{"index": "name"}"#, 201),
        ("POST", "/indexes", &[], r#"{"index": "name"}"#, 409),
        ("PUT", "/rows/1", &[], r#"{"name": "a"}"#, 201),
        ("PUT", "/rows/1", &[], r#"{"name": "b"}"#, 200),
        ("PUT", "/rows/1", &[("if-match", "\"x\"")], "{}", 412),
        ("PUT", "/rows/1", &[("idempotency-key", "k")], r#"{"name": "c"}"#, 200),
        ("PUT", "/rows/1", &[("idempotency-key", "k")], r#"{"name": "d"}"#, 422),
        ("PATCH", "/rows/1", &[], r#"{"name": "e"}"#, 200),
        ("PATCH", "/rows/1", &[("if-match", "\"x\"")], "{}", 412),
        ("PATCH", "/rows/1", &[("idempotency-key", "k")], r#"{"name": "c"}"#, 200),
        ("PATCH", "/rows/1", &[("idempotency-key", "k")], r#"{"name": "d"}"#, 422),
        ("GET", "/rows/1", &[], "", 200),
        ("GET", "/rows/1", &[("if-none-match", "*")], "", 304),
        ("GET", "/rows/1", &[("if-match", "\"x\"")], "", 412),
        ("GET", "/rows?limit=5", &[], "", 200),
        ("GET", "/rows", &[("accept", "image/png")], "", 406),
        ("POST", "/rows", &[("content-type", json)], r#"[{"id": 5}]"#, 200),
        ("POST", "/rows", &[("content-type", json)], r#"[{"id": 5}]"#, 409),
        ("POST", "/rows", &[("idempotency-key", "k")], r#"[{"id": 6}]"#, 200),
        ("POST", "/rows", &[("idempotency-key", "k")], r#"[{"id": 7}]"#, 422),
        ("DELETE", "/rows/1", &[("if-match", "\"x\"")], "", 412),
        ("DELETE", "/rows/1", &[("idempotency-key", "k")], "", 204),
        ("DELETE", "/indexes/by_name", &[], "", 204),
        ("PATCH", "", &[], r#"{"changes": ["ADD COLUMN size u8", "DROP COLUMN size"]}"#, 200),
        ("PATCH", "", &[], r#"{"changes": ["ADD INDEX i (id)", "ADD INDEX i (id)"]}"#, 409),
        ("PATCH", "", &[], r#"{"rename": "t"}"#, 409),
        ("PATCH", "", &[], r#"{"changes": ["ADD COLUMN z i64; DROP TABLE t"]}"#, 400),
        ("PATCH", "", &[], r#"{"changes": ["RENAME TO u"]}"#, 400),
        ("PATCH", "", &[], r#"{"changes": ["DROP COLUMN name"], "rename": "u"}"#, 400),
    ];
    for (method, path, headers, body, status) in steps {
        let response = server.send(method, &format!("{t}{path}"), headers, body.as_bytes());
        assert_eq!(response.status, *status, "{method} {path} {body}: {}", response.text());
    }
    let views = "/v1/databases/default/views";
    let query = r#"{"query": "SELECT id FROM t"}"#;
    for (method, path, body, status) in [
        ("PUT", "/v", query, 201),
        ("PUT", "/v", query, 200),
        ("PUT", "/t", query, 409),
        ("GET", "/v", "", 200),
        ("GET", "", "", 200),
        ("DELETE", "/v", "", 204),
    ] {
        let response = server.ask(method, &format!("{views}{path}"), body);
        assert_eq!(response.status, status, "{method} {path}: {}", response.text());
    }
    let copy = "/v1/databases/default/copy?sql=COPY+t+FROM+STDIN+CSV";
    for (headers, status) in
        [(&[][..], 200), (&[][..], 409), (&[("content-encoding", "br")][..], 415)]
    {
        let response = server.send("POST", copy, headers, b"8,eight\n");
        assert_eq!(response.status, status, "{}", response.text());
    }
    let path = format!("{t}/rows/1?x");
    assert_eq!(server.ask("DELETE", &path, "").status, 400);
    assert_eq!(server.ask("GET", "/v1/databases/default/tables", "").status, 200);
}

fn streams(server: &Harness) {
    let made = "CREATE TABLE ev (t timestamp NOT NULL DEFAULT now()) WITH (stream = 't')";
    let made = serde_json::json!({ "sql": made }).to_string();
    assert_eq!(server.ask("POST", "/v1/databases/default/query", &made).status, 200);
    let events = "/v1/databases/default/streams/ev/events";
    let posted = server.ask("POST", events, "{}");
    assert_eq!(posted.status, 201, "{}", posted.text());
    let one = format!("{events}/{}", posted.json()["id"].as_str().unwrap());
    assert_eq!(server.ask("POST", &format!("{events}?durability=async"), "{}").status, 202);
    assert_eq!(server.ask("POST", events, "[{}, {\"x\": 1}]").status, 207);
    let key = [("idempotency-key", "k")];
    assert_eq!(server.send("POST", events, &key, b"{}").status, 201);
    assert_eq!(server.send("POST", events, &key, b"[]").status, 422);
    let gap = [("esker-producer", "p; epoch=0; seq=1")];
    assert_eq!(server.send("POST", events, &gap, b"{}").status, 409);
    let long = [("content-length", "99999999999")];
    assert_eq!(server.send("POST", events, &long, b"").status, 413);
    assert_eq!(server.ask("GET", &one, "").status, 200);
    assert_eq!(server.ask("DELETE", &one, "").status, 204);
    assert_eq!(server.ask("GET", &one, "").status, 404);
    assert_eq!(server.ask("GET", events, "").status, 200);
    assert_eq!(server.ask("GET", &format!("{events}/export"), "").status, 200);
    let tail = "/v1/databases/default/streams/ev/tail?after=start&limit=1";
    assert_eq!(server.ask("GET", tail, "").status, 200);
    let made = "CREATE TABLE kept (n i64 PRIMARY KEY) WITH (changes = '1 day')";
    for sql in [made, "INSERT INTO kept VALUES (1)"] {
        let made = serde_json::json!({ "sql": sql }).to_string();
        assert_eq!(server.ask("POST", "/v1/databases/default/query", &made).status, 200);
    }
    let changes = "/v1/databases/default/tables/kept/changes?after=start&limit=1";
    assert_eq!(server.ask("GET", changes, "").status, 200);
    let before = format!("{events}?before=2999-01-01T00:00:00Z");
    let removed = server.ask("DELETE", &before, "");
    assert_eq!((removed.status, removed.text()), (200, r#"{"removed":3}"#.to_owned()));
    assert_eq!(server.ask("DELETE", events, "").status, 400);
}

fn buckets(server: &Harness) {
    let b = "/v1/databases/default/buckets/b";
    let steps: &[Step] = &[
        ("PUT", "?ttl_s=60", &[("idempotency-key", "k")], "", 201),
        ("PUT", "?ttl_s=60", &[("idempotency-key", "k")], "", 201),
        ("PUT", "?ttl_s=61", &[("idempotency-key", "k")], "", 422),
        ("PUT", "", &[], "", 409),
        ("GET", "", &[], "", 200),
        ("PATCH", "", &[], r#"{"rename": "t"}"#, 409),
        ("PUT", "/entries/k", &[], "0123456789", 201),
        ("PUT", "/entries/k", &[("esker-ttl", "30")], "0123456789", 204),
        ("PUT", "/entries/k", &[("if-none-match", "*")], "x", 412),
        ("PUT", "/entries/k", &[("idempotency-key", "k")], "0123456789", 204),
        ("PUT", "/entries/k", &[("idempotency-key", "k")], "y", 422),
        ("GET", "/entries/k", &[], "", 200),
        ("GET", "/entries/k", &[("if-match", "\"x\"")], "", 412),
        ("PUT", "/entries/k", &[("content-encoding", "gzip")], "x", 415),
        ("GET", "/entries/k", &[("range", "bytes=2-4")], "", 206),
        ("GET", "/entries/k", &[("range", "bytes=20-")], "", 416),
        ("GET", "/entries?limit=2&prefix=k", &[], "", 200),
        ("POST", "/entries/n/increment?by=5", &[], "", 200),
        ("POST", "/entries/n/increment?by=5", &[("idempotency-key", "k")], "", 200),
        ("POST", "/entries/n/increment?by=6", &[("idempotency-key", "k")], "", 422),
        ("DELETE", "/entries/n", &[("if-match", "\"x\"")], "", 412),
        ("DELETE", "/entries/n", &[("idempotency-key", "k")], "", 204),
    ];
    for (method, path, headers, body, status) in steps {
        let response = server.send(method, &format!("{b}{path}"), headers, body.as_bytes());
        assert_eq!(response.status, *status, "{method} {path} {body}: {}", response.text());
    }
    let other = b.replace("buckets/b", "buckets/other");
    for (from, to) in [(b, "other"), (&*other, "b")] {
        let renamed = server.ask("PATCH", from, &format!(r#"{{"rename": "{to}"}}"#));
        assert_eq!((renamed.status, &renamed.json()["bucket"]), (200, &to.into()));
    }
    let tag = server.ask("GET", &format!("{b}/entries/k"), "").header("etag").to_owned();
    let known = server.send("GET", &format!("{b}/entries/k"), &[("if-none-match", &tag)], b"");
    assert_eq!(known.status, 304);
    assert_eq!(server.ask("GET", "/v1/databases/default/buckets", "").status, 200);
    assert_eq!(server.ask("DELETE", b, "").status, 204);
}

/// A transaction that somebody else was quicker than, one that nobody was, and values that are
/// there already.
fn conflicts(server: &Harness) {
    let d = "/v1/databases/default";
    let row = format!("{d}/tables/t/rows/1");
    server.ask("PUT", &row, r#"{"name": "a"}"#);
    for (other, status) in [(true, 409), (false, 204)] {
        let begun = server.ask("POST", &format!("{d}/transactions"), "").json();
        let id = begun["id"].as_str().unwrap().to_owned();
        let within = [("esker-transaction", id.as_str())];
        assert_eq!(server.send("PATCH", &row, &within, br#"{"name": "b"}"#).status, 200);
        assert_eq!(server.ask("GET", &row, "").json()["name"], "a", "others see none of it");
        if other {
            server.ask("PUT", &row, r#"{"name": "a"}"#);
        }
        let commit = server.ask("POST", &format!("{d}/transactions/{id}/commit"), "");
        assert_eq!(commit.status, status, "{}", commit.text());
        let late = server.send("PATCH", &row, &within, br#"{"name": "b"}"#);
        assert_eq!(late.status, 404, "the transaction is over");
    }
    server.ask("POST", &format!("{d}/tables/t/indexes"), r#"{"index": "unique name"}"#);
    server.ask("PUT", &row, r#"{"name": "one"}"#);
    server.ask("PUT", &format!("{d}/tables/t/rows/2"), r#"{"name": "two"}"#);
    for method in ["PUT", "PATCH"] {
        let response = server.ask(method, &row, r#"{"name": "two"}"#);
        assert_eq!(response.json()["code"], "already_exists", "{}", response.text());
        assert_eq!(server.ask("GET", &row, "").json()["name"], "one");
    }
}

fn statements(server: &Harness) {
    let d = "/v1/databases/default";
    let query = format!("{d}/query");
    let insert = r#"{"sql": "INSERT INTO t (id) VALUES (?)", "parameters": [77]}"#;
    let steps: &[(Headers, &str, u16)] = &[
        (&[], r#"{"table": "t"}"#, 200),
        (&[("accept", "image/png")], r#"{"table": "t"}"#, 406),
        (&[], r#"{"table": "t", "tabel": 1}"#, 400),
        (&[("idempotency-key", "k")], insert, 200),
        (&[("idempotency-key", "k")], insert, 200),
        (&[], insert, 409),
        (&[("idempotency-key", "k")], r#"{"sql": "DELETE FROM t"}"#, 422),
    ];
    for (headers, body, status) in steps {
        let response = server.send("POST", &query, headers, body.as_bytes());
        assert_eq!(response.status, *status, "{body}: {}", response.text());
    }
    let page = r#"{"table": "t", "limit": 1, "snapshot": true}"#;
    let next = server.ask("POST", &query, page).json()["next"].as_str().unwrap().to_owned();
    let page = format!(r#"{{"table": "t", "limit": 1, "cursor": "{next}"}}"#);
    assert_eq!(server.ask("POST", &query, &page).status, 200);
    let explain = server.ask("POST", &format!("{d}/explain"), r#"{"table": "t"}"#);
    assert_eq!(explain.status, 200, "{}", explain.text());
    let sql = [("content-type", "application/sql")];
    let path = format!("{d}/explain?analyze=true");
    let explain = server.send("POST", &path, &sql, b"SELECT count(*) FROM t");
    assert!(explain.json()["plan"].as_str().unwrap().contains("count"), "{}", explain.text());
    let begin = format!("{d}/transactions");
    let id = server.ask("POST", &begin, "").json()["id"].as_str().unwrap().to_owned();
    assert_eq!(server.ask("DELETE", &format!("{begin}/{id}"), "").status, 204);
}

/// A transaction that an administrator ends.
fn ended(server: &Harness) {
    let d = "/v1/databases/default";
    let begun = server.ask("POST", &format!("{d}/transactions"), "").json();
    let row = format!("{d}/tables/t/rows/1");
    let within = [("esker-transaction", begun["id"].as_str().unwrap())];
    assert_eq!(server.send("PATCH", &row, &within, br#"{"name": "ended"}"#).status, 200);
    let listed = server.ask("GET", &format!("{d}/sessions"), "").json()["sessions"].clone();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["protocol"], "http");
    assert!(
        listed[0]["transaction_ms"].is_number() && listed[0]["running"] == serde_json::json!([])
    );
    let path = format!("{d}/sessions/{}", listed[0]["id"]);
    assert_eq!(server.ask("DELETE", &path, "").status, 204);
    assert_eq!(server.ask("DELETE", &path, "").status, 404);
    assert_eq!(server.send("GET", &row, &within, b"").status, 404, "it is over");
    assert_ne!(server.ask("GET", &row, "").json()["name"], "ended");
}

fn administration(server: &Harness) {
    let (d, admin) = ("/v1/databases/default", "/v1/databases/shop");
    let token = r#"{"name": "n", "scopes": ["read:shop"], "expires": "5m"}"#;
    let made = server.ask("POST", "/v1/tokens", token);
    assert_eq!(made.status, 201, "{}", made.text());
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let rotate = format!("/v1/tokens/{id}/rotate?grace=5m");
    let steps = [
        ("GET", "/v1/tokens", "", 200),
        ("POST", &rotate, "", 201),
        ("DELETE", &format!("/v1/tokens/{id}"), "", 204),
        ("DELETE", &format!("/v1/tokens/{id}"), "", 404),
        ("POST", &rotate, "", 404),
        ("GET", "/v1/databases", "", 200),
        ("PUT", admin, "", 201),
        ("PUT", admin, "", 409),
        ("GET", admin, "", 200),
        ("PUT", &format!("{admin}/limits"), r#"{"rows": 10}"#, 200),
        ("GET", &format!("{admin}/limits"), "", 200),
        ("DELETE", admin, "", 204),
        ("DELETE", admin, "", 404),
        ("POST", &format!("{d}/compact"), "", 200),
        ("POST", &format!("{d}/check"), "", 200),
        ("POST", &format!("{d}/backups"), r#"{"name": "monday"}"#, 201),
        ("POST", &format!("{d}/backups"), r#"{"name": "monday"}"#, 409),
        ("POST", &format!("{d}/backups"), r#"{"name": "../up"}"#, 400),
        ("GET", &format!("{d}/backups"), "", 200),
        ("POST", &format!("{admin}/restore"), r#"{"backup": "monday", "of": "default"}"#, 201),
        ("POST", &format!("{admin}/restore"), r#"{"backup": "monday", "of": "default"}"#, 409),
        ("POST", "/v1/databases/none/restore", r#"{"backup": "monday"}"#, 404),
        ("POST", "/v1/databases/none/restore", r#"{"backup": "../up"}"#, 400),
        ("GET", &format!("{d}/sessions"), "", 200),
        ("GET", &format!("{d}/slow-statements"), "", 200),
        ("DELETE", &format!("{d}/tables/t"), "", 204),
        ("GET", "/metrics", "", 200),
        ("GET", "/openapi.json", "", 200),
        ("GET", "/", "", 200),
        ("GET", "/healthz", "", 200),
        ("GET", "/readyz", "", 200),
    ];
    for (method, path, body, status) in steps {
        let response = server.ask(method, path, body);
        assert_eq!(response.status, status, "{method} {path}: {}", response.text());
    }
}

#[test]
fn every_answer_in_the_document_happens_and_no_other() {
    let server = Harness::new(&[("slow_query", "0s")]);
    server.ask("PUT", "/v1/databases/busy", "");
    server.ask("PUT", "/v1/databases/busy/limits", r#"{"requests_per_second": 0}"#);
    common_answers(&server);
    tables(&server);
    streams(&server);
    buckets(&server);
    statements(&server);
    conflicts(&server);
    ended(&server);
    administration(&server);
    let mut seen = server.seen.lock().unwrap();
    seen.extend(silent_bodies());
    seen.extend(stopping());
    let documented: BTreeSet<_> = ROUTES
        .iter()
        .flat_map(|route| route.statuses().into_iter().map(|s| (route.id.to_owned(), s)))
        .collect();
    let surprises: Vec<_> = seen.difference(&documented).collect();
    assert!(surprises.is_empty(), "answers that are not documented: {surprises:?}");
    // A cursor whose snapshot is gone needs a minute to come about.
    let missing: Vec<_> = documented.difference(&*seen).filter(|(_, s)| *s != 410).collect();
    assert!(missing.is_empty(), "documented answers that never happened: {missing:?}");
}

#[test]
fn what_is_no_route_gets_a_problem() {
    let server = Harness::new(&[]);
    let response = server.ask("GET", "/v2", "");
    assert_eq!((response.status, response.header("content-type")), (404, PROBLEM_MEDIA));
    let response = server.ask("DELETE", "/healthz", "");
    assert_eq!((response.status, response.header("content-type")), (405, PROBLEM_MEDIA));
    assert!(response.header("allow").contains("GET"), "{response:?}");
}
