//! What tenants are kept from, and what connections may take.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use esker_server::auth::token::NewToken;
use esker_server::tenant::TENANT_LOADS_MAX;

use super::client::{Harness, Response};

fn as_token(server: &Harness, token: &str, method: &str, path: &str, body: &str) -> Response {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    server.raw(method, path, &headers, body.as_bytes())
}

#[test]
fn one_tenant_meets_nothing_of_another() {
    let server = Harness::new(&[]);
    for name in ["shop", "mill"] {
        server.ask("PUT", &format!("/v1/databases/{name}"), "");
        let schema = r#"{"schema": "id i64 not null, primary key (id)"}"#;
        for table in ["orders", "stock"] {
            server.ask("PUT", &format!("/v1/databases/{name}/tables/{table}"), schema);
        }
    }
    let shop = server.token("admin:shop");
    assert_eq!(
        as_token(&server, &shop, "GET", "/v1/databases", "").json()["databases"],
        serde_json::json!(["shop"])
    );
    let paths = ["", "/tables", "/tables/orders", "/buckets", "/tables/orders/rows"];
    for other in ["mill", "default", "nothing"] {
        for path in paths {
            let path = format!("/v1/databases/{other}{path}");
            assert_eq!(as_token(&server, &shop, "GET", &path, "").status, 403, "{path}");
        }
        let query = format!("/v1/databases/{other}/query");
        assert_eq!(as_token(&server, &shop, "POST", &query, r#"{"table": "orders"}"#).status, 403);
    }
    for path in ["/v1/databases/..%2Fmill", "/v1/databases/shop%2F..%2Fmill", "/v1/databases/."] {
        assert_eq!(as_token(&server, &shop, "GET", path, "").status, 400, "{path}");
    }
    let begun = as_token(&server, &shop, "POST", "/v1/databases/shop/transactions", "{}").json();
    let commit =
        format!("/v1/databases/shop/transactions/{}/commit", begun["id"].as_str().unwrap());
    assert_eq!(server.ask("POST", &commit, "").status, 404, "another token's transaction");
}

#[test]
fn a_scope_of_a_table_reaches_that_table_alone() {
    let server = Harness::new(&[]);
    let d = "/v1/databases/default";
    for table in ["orders", "stock"] {
        let schema = r#"{"schema": "id i64 not null, n i64, primary key (id)"}"#;
        server.ask("PUT", &format!("{d}/tables/{table}"), schema);
    }
    let token = server.token("write:default/orders");
    let ask = |method: &str, path: &str, body: &str| {
        as_token(&server, &token, method, &format!("{d}{path}"), body).status
    };
    assert_eq!(ask("PUT", "/tables/orders/rows/1", r#"{"n": 1}"#), 201);
    assert_eq!(ask("GET", "/tables/orders/rows/1", ""), 200);
    assert_eq!(ask("POST", "/query", r#"{"table": "orders"}"#), 200);
    assert_eq!(ask("POST", "/query", r#"{"sql": "SELECT * FROM orders"}"#), 200);
    for (method, path, body) in [
        ("GET", "/tables/stock/rows/1", ""),
        ("PUT", "/tables/stock/rows/1", "{}"),
        ("DELETE", "/tables/orders", ""),
        ("POST", "/query", r#"{"table": "stock"}"#),
        ("POST", "/query", r#"{"sql": "SELECT * FROM stock"}"#),
        ("POST", "/query", r#"{"sql": "SELECT * FROM orders WHERE id IN (SELECT id FROM stock)"}"#),
        ("POST", "/query", r#"{"sql": "SELECT * FROM orders o JOIN stock s ON s.id = o.id"}"#),
        ("POST", "/query", r#"{"sql": "INSERT INTO orders SELECT * FROM stock"}"#),
        ("POST", "/explain", r#"{"sql": "SELECT * FROM stock"}"#),
        ("POST", "/query", r#"{"sql": "DROP TABLE orders"}"#),
        ("POST", "/compact", ""),
    ] {
        assert_eq!(ask(method, path, body), 403, "{method} {path} {body}");
    }
}

/// Its rows took the right to read all of the database, its plan and its pages did not.
#[test]
fn a_join_as_json_takes_the_same_rights_however_it_is_answered() {
    let server = Harness::new(&[]);
    let d = "/v1/databases/default";
    for table in ["a", "b", "c"] {
        let schema = r#"{"schema": "id i64 not null, primary key (id)"}"#;
        server.ask("PUT", &format!("{d}/tables/{table}"), schema);
    }
    let scopes = ["a", "b"].map(|table| format!("read:default/{table}").parse().unwrap());
    let new = NewToken { name: "two".to_owned(), scopes: scopes.into(), lifetime: None };
    let token = server.access_control.tokens.create(&new).unwrap().1;
    // Pages are of one table, which is said to those who may read both.
    for (other, statuses) in [("b", [200, 200, 400]), ("c", [403; 3])] {
        let join = format!(r#""table": "a", "join": [{{"table": "{other}", "using": ["id"]}}]"#);
        let forms = [("query", ""), ("explain", ""), ("query", r#", "total": true"#)];
        let told = forms.map(|(path, more)| {
            let body = format!("{{{join}, \"limit\": 5{more}}}");
            as_token(&server, &token, "POST", &format!("{d}/{path}"), &body).status
        });
        assert_eq!(told, statuses, "{other}");
    }
}

#[test]
fn a_tenant_that_has_enough_is_refused_and_others_are_not() {
    let server = Harness::new(&[("limits.result_bytes", "2000")]);
    let d = "/v1/databases/default";
    server.ask("PUT", &format!("{d}/buckets/b"), "");
    for key in 0..100 {
        server.ask("PUT", &format!("{d}/buckets/b/entries/{key:030}"), "0123456789");
    }
    let all = server.ask("POST", &format!("{d}/query"), r#"{"sql": "SELECT * FROM b"}"#);
    assert_eq!(all.json()["code"], "limit_exceeded", "{}", all.text());
    let change = r#"{"sql": "UPDATE b SET value = value RETURNING *"}"#;
    let changed = server.ask("POST", &format!("{d}/query"), change);
    assert_eq!(changed.json()["code"], "outcome_unknown", "{}", changed.text());
    server.ask("PUT", &format!("{d}/limits"), r#"{"rows": 10}"#);
    let put = server.ask("PUT", &format!("{d}/buckets/b/entries/more"), "x");
    assert_eq!(put.json()["code"], "limit_exceeded", "{}", put.text());
    assert_eq!(server.ask("GET", &format!("{d}/buckets/b/entries/{:030}", 1), "").status, 200);
    server.ask("PUT", "/v1/databases/shop", "");
    assert_eq!(server.ask("PUT", "/v1/databases/shop/buckets/b", "").status, 201);
}

#[test]
fn a_limit_that_lets_nobody_in_can_be_taken_back() {
    let server = Harness::new(&[]);
    let limits = "/v1/databases/default/limits";
    assert_eq!(server.ask("PUT", limits, r#"{"requests_per_second": 0}"#).status, 200);
    let refused = server.ask("GET", "/v1/databases/default/tables", "");
    assert_eq!(refused.json()["code"], "limit_exceeded", "{}", refused.text());
    assert_eq!(server.ask("PUT", limits, "{}").status, 200);
}

#[test]
fn no_request_answers_more_than_the_tenant_lets_it() {
    let server = Harness::new(&[("limits.result_bytes", "2000")]);
    let d = "/v1/databases/default";
    let schema = r#"{"schema": "id i64 not null, name text, note text, primary key (id)"}"#;
    server.ask("PUT", &format!("{d}/tables/t"), schema);
    server.ask("PUT", &format!("{d}/buckets/b"), "");
    let (long, row) = ("x".repeat(3_000), format!("{d}/tables/t/rows/1"));
    let entry = format!("{d}/buckets/b/entries/k");
    assert_eq!(server.ask("PUT", &row, "{}").status, 201);
    assert_eq!(server.ask("PUT", &entry, &long).status, 201);
    // What answers the row is refused, and is not done, outside of a transaction and within one.
    let patch = format!(r#"{{"name": "{long}"}}"#);
    assert_eq!(server.ask("PATCH", &row, &patch).json()["code"], "limit_exceeded");
    let begun = server.ask("POST", &format!("{d}/transactions"), "").json();
    let id = begun["id"].as_str().unwrap().to_owned();
    let within = [("esker-transaction", id.as_str())];
    let refused = server.send("PATCH", &row, &within, patch.as_bytes());
    assert_eq!(refused.json()["code"], "limit_exceeded", "{}", refused.text());
    assert!(server.send("GET", &row, &within, b"").json()["name"].is_null());
    let load = format!(r#"[{{"id": 2, "name": "{long}"}}]"#);
    assert_eq!(server.ask("POST", &format!("{d}/tables/t/rows"), &load).status, 200);
    for path in [
        format!("{d}/tables/t/rows/2"),
        format!("{d}/tables/t/rows?limit=5"),
        entry.clone(),
        format!("{d}/buckets/b/entries?limit=5"),
    ] {
        for headers in [&[][..], &within] {
            let refused = server.send("GET", &path, headers, b"");
            // Rows that came with the transaction already under way are not seen by it.
            let is_unseen = refused.status == 404 || refused.json().get("rows").is_some();
            assert!(refused.status == 429 || (headers.len() == 1 && is_unseen), "{path}");
        }
        assert_eq!(server.ask("GET", &path, "").json()["code"], "limit_exceeded", "{path}");
    }
    // What is only looked at, to compare it or to replace it, is no answer.
    assert_eq!(server.send("PUT", &entry, &[("if-match", "*")], b"short").status, 204);
    assert_eq!(server.ask("GET", &entry, "").text(), "short");
    assert_eq!(server.ask("PUT", &format!("{d}/tables/t/rows/2"), "{}").status, 200);
}

#[test]
fn without_a_token_nobody_comes_in_unless_this_machine_is_trusted() {
    let server = Harness::new(&[]);
    assert_eq!(server.raw("GET", "/v1/databases", &[], b"").status, 401);
    assert!(server.access_control.notice().is_none());
    let server = Harness::new(&[("trust_local", "true")]);
    assert_eq!(server.raw("GET", "/v1/databases", &[], b"").status, 200);
    let wrong = server.raw("GET", "/v1/databases", &[("authorization", "Bearer x")], b"");
    assert_eq!(wrong.status, 401, "who shows a token is not trusted without it");
    assert!(server.access_control.notice().unwrap().contains("without a token"));
}

#[test]
fn slow_headers_long_headers_and_garbage_end_the_connection() {
    let flags = [("header_timeout", "300ms"), ("header_bytes_max", "8KiB")];
    let server = Harness::new(&flags);
    let long = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "a".repeat(100_000));
    for start in
        ["GET /healthz HTTP/1.1\r\nhost: x\r\nslow", "\0\u{1}\u{2} nonsense\r\n\r\n", &long]
    {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let _ = stream.write_all(start.as_bytes());
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let is_closed =
            read.is_ok() || read.is_err_and(|e| e.kind() != std::io::ErrorKind::WouldBlock);
        assert!(is_closed, "the server ends it");
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(server.ask("GET", "/healthz", "").status, 200);
}

#[test]
fn a_load_too_many_waits_for_its_turn_and_is_refused_then() {
    let server = Harness::new(&[("stall_timeout", "1s")]);
    let path = "/v1/databases/default/tables/t";
    server.ask("PUT", path, r#"{"schema": "id i64 not null, primary key (id)"}"#);
    let tenant = server.access_control.tenants.get(&"default".parse().unwrap()).unwrap();
    let others: Vec<_> =
        (0..TENANT_LOADS_MAX).map(|_| tenant.usage.loads().try_begin().unwrap()).collect();
    let load = || server.ask("POST", &format!("{path}/rows"), r#"[{"id": 1}]"#);
    let refused = load();
    assert_eq!(refused.status, 429, "{}", refused.text());
    drop(others);
    assert_eq!(load().status, 200);
}

#[test]
fn a_plan_is_an_answer_like_others() {
    let server = Harness::new(&[("limits.result_bytes", "2000")]);
    let path = "/v1/databases/default";
    let schema = r#"{"schema": "id i64 not null, primary key (id)"}"#;
    server.ask("PUT", &format!("{path}/tables/t"), schema);
    let plan = |keys: usize| {
        let keys: Vec<_> = (0..keys).map(|key| key.to_string()).collect();
        let sql = format!("SELECT id FROM t WHERE id + 1 IN ({})", keys.join(", "));
        server.ask("POST", &format!("{path}/explain"), &format!(r#"{{"sql": "{sql}"}}"#)).status
    };
    assert_eq!((plan(3), plan(1_000)), (200, 429));
}
