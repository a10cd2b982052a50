//! Writes that are done once, however often they are sent.

use std::path::PathBuf;

use super::client::Harness;

const D: &str = "/v1/databases/default";

#[test]
fn a_write_with_a_key_is_done_once_also_after_a_restart() {
    let server = Harness::new(&[]);
    server.ask("PUT", &format!("{D}/buckets/b"), "");
    let path = format!("{D}/buckets/b/entries/n/increment");
    let key = [("idempotency-key", "first")];
    let token = server.token.clone();
    let bearer = format!("Bearer {token}");
    let once = |server: &Harness| {
        let headers = [("authorization", bearer.as_str()), key[0]];
        server.raw("POST", &path, &headers, b"").text()
    };
    assert_eq!(once(&server), "{\"value\":1}");
    assert_eq!(once(&server), "{\"value\":1}");
    assert_eq!(server.ask("POST", &path, "").text(), "{\"value\":2}");
    // Another token has keys of its own.
    let other = format!("Bearer {}", server.token("write:default"));
    let response = server.raw("POST", &path, &[("authorization", &other), key[0]], b"");
    assert_eq!(response.text(), "{\"value\":3}");
    let copy = PathBuf::from(format!("{}-again", server.directory.display()));
    let kept = server.directory.clone();
    server.access_control.tenants.close().unwrap();
    std::fs::rename(&kept, &copy).unwrap();
    drop(server);
    let server = Harness::at(copy, &[]);
    assert_eq!(once(&server), "{\"value\":1}");
}

#[test]
fn many_at_once_with_one_key_are_one_write() {
    let server = Harness::new(&[]);
    server.ask("PUT", &format!("{D}/buckets/b"), "");
    let path = format!("{D}/buckets/b/entries/n/increment");
    let answers: Vec<String> = std::thread::scope(|scope| {
        let ask = || server.send("POST", &path, &[("idempotency-key", "k")], b"").text();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| answer == "{\"value\":1}"), "{answers:?}");
}

#[test]
fn what_failed_is_not_kept() {
    let server = Harness::new(&[]);
    let schema = r#"{"schema": "id i64 not null, primary key (id)"}"#;
    server.ask("PUT", &format!("{D}/tables/t"), schema);
    let path = format!("{D}/tables/t/rows");
    let load =
        |body: &str| server.send("POST", &path, &[("idempotency-key", "k")], body.as_bytes());
    assert_eq!(load("[{\"id\": 1}, {\"id\": 1}]").status, 409);
    assert_eq!(load("[{\"id\": 1}, {\"id\": 2}]").json()["rows"], 2);
    assert_eq!(load("[{\"id\": 1}, {\"id\": 2}]").json()["rows"], 2);
}

#[test]
fn a_key_is_refused_where_a_write_is_not_done_once() {
    let server = Harness::new(&[]);
    let key = [("idempotency-key", "k")];
    let schema = br#"{"schema": "id i64 not null, primary key (id)"}"#;
    let table = format!("{D}/tables/t");
    let refused = server.send("PUT", &table, &key, schema);
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert_eq!(server.ask("GET", &table, "").status, 404, "nothing was made");
    assert_eq!(server.send("POST", &format!("{D}/transactions"), &key, b"").status, 400);
    assert_eq!(server.send("PUT", "/v1/databases/more", &key, b"").status, 400);
    // What reads takes one for nothing.
    assert_eq!(server.send("GET", &format!("{D}/tables"), &key, b"").status, 200);
    assert_eq!(server.send("POST", &format!("{D}/check"), &key, b"").status, 200);
    // Sequences are made outside of transactions; the advice was to end one.
    let sql = [("content-type", "application/sql"), key[0]];
    let refused = server.send("POST", &format!("{D}/query"), &sql, b"CREATE SEQUENCE s");
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("not for sequences"), "{}", refused.text());
    // A bucket is made once.
    let bucket = format!("{D}/buckets/b");
    assert_eq!(server.send("PUT", &bucket, &key, b"").status, 201);
    assert_eq!(server.send("PUT", &bucket, &key, b"").status, 201);
    assert_eq!(server.ask("PUT", &bucket, "").status, 409);
}

type Headers<'h> = &'h [(&'h str, &'h str)];

#[test]
fn a_key_is_of_the_headers_too_that_say_what_is_written() {
    let server = Harness::new(&[]);
    server.ask("PUT", &format!("{D}/buckets/b"), "");
    let schema = r#"{"schema": "id i64 not null, primary key (id)"}"#;
    server.ask("PUT", &format!("{D}/tables/t"), schema);
    let put = |key: &str, more: &[(&str, &str)]| {
        let headers = [&[("idempotency-key", key)], more].concat();
        server.send("PUT", &format!("{D}/buckets/b/entries/{key}"), &headers, b"v").status
    };
    let cases: [(Headers, &[Headers]); 3] = [
        (&[("esker-ttl", "60")], &[&[("esker-ttl", "never")], &[("esker-ttl", "61")], &[]]),
        (&[], &[&[("esker-ttl", "60")], &[("if-match", "*")], &[("if-none-match", "*")]]),
        (&[("if-none-match", "*")], &[&[("if-match", "*")], &[], &[("if-none-match", "\"x\"")]]),
    ];
    for (number, (first, others)) in cases.into_iter().enumerate() {
        let key = number.to_string();
        assert_eq!((put(&key, first), put(&key, first)), (201, 201), "{first:?}");
        for other in others {
            assert_eq!(put(&key, other), 422, "{first:?}, {other:?}");
        }
        assert_eq!(put(&key, first), 201, "what was refused took nothing away");
    }
    let load = |media: &str| {
        let headers = [("idempotency-key", "k"), ("content-type", media)];
        server.send("POST", &format!("{D}/tables/t/rows"), &headers, b"{\"id\": 1}").status
    };
    let [lines, json] = ["application/x-ndjson", "application/json"];
    assert_eq!([lines, lines, json, "text/csv"].map(load), [200, 200, 422, 422]);
    let query = |media: &str| {
        let headers = [("idempotency-key", "k"), ("content-type", media)];
        server.send("POST", &format!("{D}/query"), &headers, b"DELETE FROM t").status
    };
    assert_eq!(["application/sql", "application/sql"].map(query), [200, 200]);
}
