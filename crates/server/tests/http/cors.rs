//! Pages of other origins.

use super::client::{Harness, Response};

const D: &str = "/v1/databases/default";
const PAGE: &str = "https://app.example.com";
const ORIGINS: &str = "https://app.example.com,http://localhost:5173";

fn allowed(response: &Response) -> (&str, &str) {
    let origin = response.header("access-control-allow-origin");
    (origin, response.header("access-control-allow-credentials"))
}

fn preflight(server: &Harness, path: &str, origin: &str) -> Response {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "authorization,content-type,if-match"),
    ];
    server.raw("OPTIONS", path, &headers, b"")
}

fn names(response: &Response, header: &str) -> Vec<String> {
    response.header(header).split(", ").map(str::to_owned).collect()
}

#[test]
fn no_page_may_ask_unless_configured() {
    let server = Harness::new(&[]);
    let answer = server.send("GET", "/v1/databases", &[("origin", PAGE)], b"");
    assert_eq!((answer.status, allowed(&answer), answer.header("vary")), (200, ("", ""), ""));
    assert_eq!(preflight(&server, "/v1/databases/x", PAGE).status, 405);
}

#[test]
fn a_preflight_answers_the_methods_and_headers_of_the_routes() {
    let server = Harness::new(&[("http.cors_origins", ORIGINS)]);
    let row = format!("{D}/tables/t/rows/1");
    let answer = preflight(&server, &row, PAGE);
    assert_eq!((answer.status, allowed(&answer)), (204, (PAGE, "")));
    assert_eq!((answer.header("vary"), answer.header("access-control-max-age")), ("origin", "600"));
    assert_eq!(
        names(&answer, "access-control-allow-methods"),
        ["GET", "PUT", "PATCH", "DELETE", "HEAD"]
    );
    assert_eq!(
        names(&answer, "access-control-allow-headers"),
        [
            "accept",
            "authorization",
            "content-type",
            "esker-transaction",
            "idempotency-key",
            "if-match",
            "if-none-match"
        ]
    );
    let answer = preflight(&server, &format!("{D}/tables/t/rows"), "http://localhost:5173");
    assert_eq!(allowed(&answer), ("http://localhost:5173", ""));
    assert_eq!(names(&answer, "access-control-allow-methods"), ["GET", "POST", "HEAD"]);
    assert!(names(&answer, "access-control-allow-headers").contains(&"content-encoding".into()));
    let answer = preflight(&server, &format!("{D}/buckets/b/entries/k"), PAGE);
    for name in ["esker-ttl", "range", "if-range"] {
        assert!(names(&answer, "access-control-allow-headers").contains(&name.into()), "{name}");
    }
    assert_eq!(preflight(&server, "/v2", PAGE).status, 404);
}

#[test]
fn a_preflight_of_another_origin_is_refused_and_says_why() {
    let server = Harness::new(&[("http.cors_origins", ORIGINS)]);
    for origin in ["https://evil.example.com", "http://app.example.com", "null"] {
        let answer = preflight(&server, &format!("{D}/tables/t/rows/1"), origin);
        assert_eq!((answer.status, allowed(&answer)), (403, ("", "")));
        assert_eq!(answer.header("vary"), "origin");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(ORIGINS) && detail.contains(origin), "{detail}");
    }
}

#[test]
fn answers_tell_the_browser_who_may_see_them() {
    let server = Harness::new(&[("http.cors_origins", ORIGINS)]);
    let schema = r#"{"schema": "id i64 not null, primary key (id)"}"#;
    server.ask("PUT", &format!("{D}/tables/t"), schema);
    let row = format!("{D}/tables/t/rows/1");
    let page = [("origin", PAGE), ("content-type", "application/json")];
    let put = server.send("PUT", &row, &page, b"{}");
    assert_eq!((put.status, allowed(&put), put.header("vary")), (201, (PAGE, ""), "origin"));
    let exposed = names(&put, "access-control-expose-headers");
    for name in ["etag", "esker-ttl", "content-range", "retry-after"] {
        assert!(exposed.contains(&name.to_owned()), "{name}");
    }
    assert!(!put.header("etag").is_empty());
    // Errors, too: the page has to read them.
    for (method, path) in [("GET", row.as_str()), ("GET", "/v2"), ("PATCH", "/healthz")] {
        let refused = server.raw(method, path, &[("origin", PAGE)], b"");
        assert!(refused.status > 400, "{method} {path}");
        assert_eq!(allowed(&refused), (PAGE, ""), "{method} {path}");
    }
    // Programs and pages of other origins are answered as before; what they see is up to browsers.
    for headers in [&[][..], &[("origin", "https://evil.example.com")]] {
        let answer = server.send("GET", &row, headers, b"");
        assert_eq!((answer.status, allowed(&answer)), (200, ("", "")));
        assert_eq!(answer.header("vary"), "origin", "a cache keeps them apart");
    }
    // What is no preflight is a request as any other.
    let plain = server.raw("OPTIONS", &row, &[("origin", PAGE)], b"");
    assert_eq!((plain.status, allowed(&plain)), (405, (PAGE, "")));
}

/// A form or a script of any page could compact a database, or do what a statement says, where no
/// token is needed: a browser sends such requests without a preflight.
#[test]
fn a_page_of_another_origin_changes_nothing_without_a_token() {
    let server = Harness::new(&[("http.cors_origins", ORIGINS), ("trust_local", "true")]);
    let (query, compact) = (format!("{D}/query"), format!("{D}/compact"));
    let statement = br#"{"sql": "CREATE TABLE t (id i64)"}"#;
    let evil = "https://evil.example.com";
    let both = [("origin", PAGE), ("origin", evil)];
    for headers in [&[("origin", evil)][..], &[("origin", "null")], &both] {
        for (path, body) in [(&query, &statement[..]), (&compact, b"")] {
            let refused = server.raw("POST", path, headers, body);
            assert_eq!(refused.status, 403, "{headers:?}: {}", refused.text());
        }
    }
    let tables = server.ask("GET", &format!("{D}/tables"), "").json();
    assert_eq!(tables["tables"], serde_json::json!([]));
    for origin in [PAGE, "http://x"] {
        let done = server.raw("POST", &compact, &[("origin", origin)], b"");
        assert_eq!(done.status, 200, "{origin}: {}", done.text());
    }
}

#[test]
fn all_pages_may_ask_or_some_with_credentials() {
    let server = Harness::new(&[("http.cors_origins", "*")]);
    for origin in [PAGE, "null"] {
        let answer = preflight(&server, "/v1/databases/x", origin);
        assert_eq!((answer.status, allowed(&answer), answer.header("vary")), (204, ("*", ""), ""));
        let answer = server.send("GET", "/v1/databases", &[("origin", origin)], b"");
        assert_eq!((answer.status, allowed(&answer), answer.header("vary")), (200, ("*", ""), ""));
    }
    let flags = [("http.cors_origins", ORIGINS), ("http.cors_credentials", "true")];
    let server = Harness::new(&flags);
    assert_eq!(allowed(&preflight(&server, "/v1/databases/x", PAGE)), (PAGE, "true"));
    let answer = server.send("GET", "/v1/databases", &[("origin", PAGE)], b"");
    assert_eq!(allowed(&answer), (PAGE, "true"));
    let answer = server.send("GET", "/v1/databases", &[("origin", "https://x.example")], b"");
    assert_eq!(allowed(&answer), ("", ""));
}
