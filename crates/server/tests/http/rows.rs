//! Rows, queries and buckets: what is sent comes back.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::client::Harness;

const D: &str = "/v1/databases/default";

fn with_table(schema: &str) -> Harness {
    let server = Harness::new(&[]);
    let headers = [("content-type", "text/plain")];
    let made = server.send("PUT", &format!("{D}/tables/t"), &headers, schema.as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
    server
}

#[test]
fn a_row_comes_back_digit_by_digit() {
    let schema = "a text not null, b i64 not null, n u64, d decimal(38, 10), primary key (a, b)";
    let server = with_table(schema);
    let row = r#"{"n":18446744073709551615,"d":1234567890123456789012345678.0123456789}"#;
    let path = format!("{D}/tables/t/rows/x%2Cy%2F%C3%A9,-7");
    let put = server.ask("PUT", &path, row);
    assert_eq!(put.status, 201, "{}", put.text());
    let got = server.ask("GET", &path, "");
    let text = got.text();
    assert_eq!(text, put.text());
    for part in ["\"a\":\"x,y/é\"", "\"b\":-7", "18446744073709551615"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(text.contains("1234567890123456789012345678.0123456789"), "{text}");
    assert_eq!(got.header("etag"), put.header("etag"));
    let other = server.ask("PUT", &path, r#"{"b": 8}"#);
    assert_eq!(other.status, 400, "{}", other.text());
    assert!(other.text().contains("as in the path"), "{}", other.text());
    let wrong = server.ask("GET", &format!("{D}/tables/t/rows/x"), "");
    assert!(wrong.text().contains("expected a value for each of a, b"), "{}", wrong.text());
}

#[test]
fn who_saw_an_older_row_does_not_overwrite_a_newer_one() {
    let server = with_table("id i64 not null, n i64, primary key (id)");
    let path = format!("{D}/tables/t/rows/1");
    let first = server.send("PUT", &path, &[("if-none-match", "*")], br#"{"n": 1}"#);
    assert_eq!(first.status, 201);
    assert_eq!(server.send("PUT", &path, &[("if-none-match", "*")], br#"{"n": 2}"#).status, 412);
    let tag = first.header("etag").to_owned();
    let second = server.send("PATCH", &path, &[("if-match", &tag)], br#"{"n": 2}"#);
    assert_eq!(second.status, 200);
    assert_eq!(server.send("PATCH", &path, &[("if-match", &tag)], br#"{"n": 3}"#).status, 412);
    assert_eq!(server.ask("GET", &path, "").json()["n"], 2);
    let tag = second.header("etag").to_owned();
    assert_eq!(server.send("DELETE", &path, &[("if-match", &tag)], b"").status, 204);
    assert_eq!(server.send("PUT", &path, &[("if-match", "*")], br#"{"n": 3}"#).status, 412);
    let wrong = server.send("PUT", &path, &[("if-match", "x")], br#"{"n": 3}"#);
    assert_eq!(wrong.status, 400, "{}", wrong.text());
}

#[test]
fn tags_are_compared_weakly_for_reading_and_strongly_for_writing() {
    let server = with_table("id i64 not null, n i64, primary key (id)");
    server.ask("PUT", &format!("{D}/buckets/b"), "");
    for path in [format!("{D}/tables/t/rows/1"), format!("{D}/buckets/b/entries/k")] {
        let put = server.ask("PUT", &path, r#"{"n": 1}"#);
        let tag = server.ask("GET", &path, "").header("etag").to_owned();
        assert_eq!((put.status, tag.is_empty()), (201, false), "{path}");
        let weak = format!("W/{tag}");
        let known = |value: &str| server.send("GET", &path, &[("if-none-match", value)], b"");
        for value in [&tag, &weak, &format!("\"x\", {weak}"), &"*".to_owned()] {
            assert_eq!(known(value).status, 304, "{path}: {value}");
        }
        assert_eq!(known("\"x\"").status, 200, "{path}");
        assert_eq!(known("x").status, 400, "{path}");
        let put = |name, value: &str| server.send("PUT", &path, &[(name, value)], br#"{"n": 2}"#);
        assert_eq!(put("if-match", &weak).status, 412, "{path}: never equal");
        assert_eq!(put("if-none-match", &weak).status, 412, "{path}");
        for (value, status) in [(&*tag, 200), ("*", 200), (&weak, 412), ("\"x\"", 412), ("x", 400)]
        {
            for method in ["GET", "HEAD"] {
                let read = server.send(method, &path, &[("if-match", value)], b"");
                assert_eq!(read.status, status, "{method} {path}: {value}");
            }
        }
        let done = put("if-match", &tag).status;
        assert!([200, 204].contains(&done), "{path}: {done}");
    }
}

#[test]
fn a_range_is_for_get_alone() {
    let server = Harness::new(&[]);
    server.ask("PUT", &format!("{D}/buckets/b"), "");
    let path = format!("{D}/buckets/b/entries/k");
    server.ask("PUT", &path, "0123456789");
    let head = server.send("HEAD", &path, &[("range", "bytes=2-3")], b"");
    assert_eq!((head.status, head.header("content-length")), (200, "10"));
    assert_eq!(server.send("GET", &path, &[("range", "bytes=2-3")], b"").status, 206);
    assert_eq!(server.send("GET", &path, &[("range", "bytes=+2-3")], b"").status, 200);
    let two = [("range", "bytes=2-3"), ("range", "bytes=4-5")];
    assert_eq!(server.send("GET", &path, &two, b"").status, 400);
}

/// The bytes of a compressed body were taken for the value, and for a query.
#[test]
fn a_body_in_an_encoding_or_a_charset_that_is_not_undone_is_refused() {
    let server = with_table("id i64 not null, n text, primary key (id)");
    server.ask("PUT", &format!("{D}/buckets/b"), "");
    let row = format!("{D}/tables/t/rows/1");
    for (method, path) in [
        ("PUT", row.clone()),
        ("PUT", format!("{D}/buckets/b/entries/k")),
        ("POST", format!("{D}/query")),
    ] {
        let sent = server.send(method, &path, &[("content-encoding", "gzip")], b"{}");
        assert_eq!(sent.status, 415, "{path}: {}", sent.text());
        assert!(sent.text().contains("content-encoding: expected none"), "{}", sent.text());
    }
    let put = |media: &str| server.send("PUT", &row, &[("content-type", media)], b"{}").status;
    assert_eq!(put("application/json; charset=iso-8859-1"), 415);
    assert_eq!(put("application/json; charset=\"UTF-8\""), 201);
    assert_eq!(server.send("PUT", &row, &[("content-encoding", "identity")], b"{}").status, 200);
}

#[test]
fn a_request_without_a_host_or_with_two_is_refused() {
    let server = Harness::new(&[]);
    let two = server.raw("GET", "/healthz", &[("host", "y")], b"");
    assert_eq!(two.status, 400, "{}", two.text());
    assert!(two.text().contains("header host: expected once"), "{}", two.text());
    for (version, status) in [("1.1", "400"), ("1.0", "200")] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let request = format!("GET /healthz HTTP/{version}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert_eq!(answer.split(' ').nth(1), Some(status), "{answer}");
    }
}

#[test]
fn answers_have_the_form_that_is_asked_for() {
    let server = with_table("id i64 not null, name text, primary key (id)");
    let query = format!("{D}/query");
    let sql = |accept: &str, text: &str| {
        let headers = [("content-type", "application/sql"), ("accept", accept)];
        server.send("POST", &query, &headers, text.as_bytes())
    };
    let empty = sql("application/json", "SELECT * FROM t").json();
    assert_eq!(empty["rows"], serde_json::json!([]));
    assert_eq!(empty["columns"][0], serde_json::json!({ "name": "id", "type": "i64" }));
    let insert = sql("*/*", "INSERT INTO t VALUES (1, 'a'), (2, NULL)");
    assert_eq!(insert.json(), serde_json::json!({ "changed": 2 }));
    let select = "SELECT id, name, id FROM t ORDER BY id";
    let json = sql("application/json", select).json();
    let rows = serde_json::json!([
        { "id": 1, "name": "a", "id_2": 1 },
        { "id": 2, "name": null, "id_2": 2 },
    ]);
    assert_eq!((&json["rows"], &json["changed"]), (&rows, &serde_json::json!(0)));
    let lines = sql("application/x-ndjson", select);
    assert_eq!(lines.header("content-type"), "application/x-ndjson");
    assert_eq!(lines.text().lines().count(), 2);
    assert_eq!(sql("text/csv", select).text(), "id,name,id_2\n1,a,1\n2,,2\n");
    assert_eq!(sql("*/*", "BEGIN").status, 400);
    let wrong = sql("*/*", "SELEC 1");
    assert_eq!((wrong.status, wrong.json()["code"].as_str()), (400, Some("invalid_request")));
    let parameters = r#"{"sql": "SELECT name FROM t WHERE id = ?", "parameters": [1]}"#;
    assert_eq!(server.ask("POST", &query, parameters).json()["rows"][0]["name"], "a");
    // A body that has no form as a tree of values was taken for a query.
    let by_zero = r#"{"sql": "SELECT 1 / 0 AS n"}"#;
    assert!(server.ask("POST", &query, by_zero).json()["rows"][0]["n"].is_null());
    let by_zero = r#"{"sql": "SELECT 1 / 0 AS n", "division_by_zero": "error"}"#;
    let refused = server.ask("POST", &query, by_zero);
    assert!(refused.text().contains("division by zero: 1 / 0"), "{}", refused.text());
    let unknown = r#"{"sql": "SELECT 1", "nulls_order": "lost"}"#;
    let refused = server.ask("POST", &query, unknown);
    assert!(refused.text().contains("nulls_order: unknown value"), "{}", refused.text());
    let refused = server.ask("POST", &query, r#"{"sql": "SET nulls_order = 'last'"}"#);
    assert!(refused.text().contains("beside the statement"), "{}", refused.text());
    let beyond = r#"{"sql": "SELECT ?", "parameters": [1e400]}"#;
    let refused = server.ask("POST", &query, beyond);
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("parameter 1e400: expected"), "{}", refused.text());
    // With a key, too; nothing is removed.
    let surplus = r#"{"sql": "DELETE FROM t", "parameters": [1]}"#;
    for headers in [&[][..], &[("idempotency-key", "k")]] {
        let refused = server.send("POST", &query, headers, surplus.as_bytes());
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(refused.text().contains("expected 0 parameters, found 1"), "{}", refused.text());
    }
    let page = server.ask("GET", &format!("{D}/tables/t/rows?limit=1"), "").json();
    let next = page["next"].as_str().unwrap();
    let path = format!("{D}/tables/t/rows?limit=1&cursor={next}");
    assert_eq!(server.ask("GET", &path, "").json()["rows"][0]["id"], 2);
}

#[test]
fn values_are_bytes_and_keys_too() {
    let server = Harness::new(&[]);
    let b = format!("{D}/buckets/b");
    assert_eq!(server.ask("PUT", &format!("{b}/entries/k"), "x").status, 404, "made by PUT alone");
    server.ask("PUT", &b, "");
    let value: Vec<u8> = (0..=255).collect();
    let headers = [("content-type", "image/png"), ("esker-ttl", "100")];
    let key = format!("{b}/entries/%00%FF%2F");
    assert_eq!(server.send("PUT", &key, &headers, &value).status, 201);
    let got = server.ask("GET", &key, "");
    assert_eq!((got.body, got.status), (value.clone(), 200));
    let left: u64 = server.ask("GET", &key, "").header("esker-ttl").parse().unwrap();
    assert!((90..=100).contains(&left), "{left}");
    let part = server.send("GET", &key, &[("range", "bytes=250-")], b"");
    assert_eq!(part.header("content-range"), "bytes 250-255/256");
    assert_eq!(part.body, &value[250..]);
    let listed = server.ask("GET", &format!("{b}/entries?prefix=%00"), "").json();
    assert_eq!(listed["entries"][0]["key"], "\u{0}%FF/");
    for ttl in ["0", "-1", "soon"] {
        let response = server.send("PUT", &key, &[("esker-ttl", ttl)], b"x");
        assert_eq!(response.status, 400, "{ttl}");
    }
}

/// Lists are arrays of JSON: in bodies of one and of many rows, in answers, and as parameters.
#[test]
fn lists_are_arrays() {
    let server = Harness::new(&[]);
    let query = format!("{D}/query");
    let schema = r#"{"schema": "id i64 not null, n i64[], t text[], primary key (id)"}"#;
    server.ask("PUT", &format!("{D}/tables/l"), schema);
    let rows = format!("{D}/tables/l/rows");
    let many = r#"[{"id": 1, "n": [1, 2], "t": ["a,b", null]}, {"id": 2, "n": []}]"#;
    assert_eq!(server.ask("POST", &rows, many).json()["rows"], 2, "a body of several");
    let one = server.ask("PUT", &format!("{rows}/3"), r#"{"n": [5], "t": "{x,y}"}"#);
    assert!(one.status < 300, "{}", one.text());
    let changed = server.ask("PATCH", &format!("{rows}/2"), r#"{"n": [7, 8]}"#);
    assert!(changed.status < 300, "{}", changed.text());
    let lines = server.send(
        "POST",
        &rows,
        &[("content-type", "application/x-ndjson")],
        b"{\"id\":4,\"n\":[2],\"t\":[\"[1]\"]}\n",
    );
    assert_eq!(lines.json()["rows"], 1, "{}", lines.text());
    let all = server.ask("POST", &query, r#"{"sql": "SELECT id, n, t FROM l ORDER BY id"}"#).json();
    let expected = serde_json::json!([
        { "id": 1, "n": [1, 2], "t": ["a,b", null] },
        { "id": 2, "n": [7, 8], "t": null },
        { "id": 3, "n": [5], "t": ["x", "y"] },
        { "id": 4, "n": [2], "t": ["[1]"] },
    ]);
    assert_eq!(all["rows"], expected);
    let among =
        r#"{"sql": "SELECT id FROM l WHERE id = ANY (?) ORDER BY id", "parameters": [[1, 4]]}"#;
    let found = server.ask("POST", &query, among);
    assert_eq!(found.json()["rows"], serde_json::json!([{ "id": 1 }, { "id": 4 }]));
    let insert = r#"{"sql": "INSERT INTO l VALUES (5, ?, ?)", "parameters": [[9], ["q"]]}"#;
    assert_eq!(server.ask("POST", &query, insert).json()["changed"], 1);
    let wrong = server.ask("POST", &rows, r#"[{"id": 6, "n": [1, "x"]}]"#);
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("item 2"), "{}", wrong.text());
}
