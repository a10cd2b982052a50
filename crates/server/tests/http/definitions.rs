//! Tables that a transaction over HTTP has made, and buckets that are altered.

use super::client::Harness;

const D: &str = "/v1/databases/default";

fn within(server: &Harness) -> String {
    let begun = server.ask("POST", &format!("{D}/transactions"), "{}");
    begun.json()["id"].as_str().unwrap().to_owned()
}

fn sql(server: &Harness, transaction: &str, text: &str) -> u16 {
    let body = format!(r#"{{"sql": "{text}"}}"#);
    let headers = [("esker-transaction", transaction)];
    server.send("POST", &format!("{D}/query"), &headers, body.as_bytes()).status
}

/// Requests other than SQL looked names up in the database.
#[test]
fn a_table_created_in_a_transaction_is_there_for_every_request() {
    let server = Harness::new(&[]);
    let id = within(&server);
    assert_eq!(sql(&server, &id, "CREATE TABLE b (id i64 PRIMARY KEY, n i64)"), 200);
    assert_eq!(sql(&server, &id, "INSERT INTO b VALUES (1, 1)"), 200);
    let headers = [("esker-transaction", id.as_str())];
    let query = br#"{"table": "b"}"#;
    for (method, path, body) in [
        ("GET", "tables/b/rows/1", &b""[..]),
        ("POST", "tables/b/rows", &br#"[{"id": 2}]"#[..]),
        ("PATCH", "tables/b/rows/1", &br#"{"n": 2}"#[..]),
        ("DELETE", "tables/b/rows/1", &b""[..]),
        ("POST", "query", &query[..]),
    ] {
        let answer = server.send(method, &format!("{D}/{path}"), &headers, body);
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text());
    }
    assert_eq!(sql(&server, &id, "SELECT count(*) FROM b"), 200);
    assert_eq!(server.ask("POST", &format!("{D}/transactions/{id}/commit"), "").status, 204);
    assert_eq!(server.ask("GET", &format!("{D}/tables/b/rows/1"), "").status, 404);
    assert_eq!(server.ask("GET", &format!("{D}/tables/b/rows/2"), "").status, 200);
}

/// They were done to the database, whatever transaction the request named.
#[test]
fn definitions_are_part_of_the_transaction_that_a_request_names() {
    let server = Harness::new(&[]);
    let sql = r#"{"sql": "CREATE TABLE a (id i64 PRIMARY KEY)"}"#;
    assert_eq!(server.ask("POST", &format!("{D}/query"), sql).status, 200);
    assert!(server.ask("PUT", &format!("{D}/buckets/c"), "{}").status < 300);
    let steps = [
        ("PUT", "tables/b", r#"{"schema": "id i64 not null, n i64, primary key (id)"}"#),
        ("GET", "tables/b", ""),
        ("PATCH", "tables/b", r#"{"changes": ["ADD COLUMN m i64"]}"#),
        ("POST", "tables/b/indexes", r#"{"index": "n"}"#),
        ("POST", "tables/b/rows", r#"[{"id": 1, "n": 2, "m": 3}]"#),
        ("GET", "tables/b/rows/1", ""),
        ("PATCH", "tables/a", r#"{"rename": "z"}"#),
        ("DELETE", "tables/z", ""),
        ("PATCH", "buckets/c", r#"{"rename": "d"}"#),
        ("GET", "buckets/d", ""),
        ("DELETE", "buckets/d", ""),
    ];
    let seen = |headers: &[(&str, &str)]| {
        let names = |path: &str| {
            let body = server.send("GET", &format!("{D}/{path}"), headers, b"").json();
            body[path].as_array().unwrap().iter().map(|name| name.to_string()).collect::<String>()
        };
        (names("tables"), names("buckets"))
    };
    let (before, after) = ((r#""a""#, r#""c""#), (r#""b""#, ""));
    for commits in [false, true] {
        let id = within(&server);
        let headers = [("esker-transaction", id.as_str())];
        for (method, path, body) in steps {
            let answer = server.send(method, &format!("{D}/{path}"), &headers, body.as_bytes());
            assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text());
        }
        let described = server.send("GET", &format!("{D}/tables/b"), &headers, b"").json();
        assert_eq!(
            (&described["rows"], &described["indexes"][0]["name"]),
            (&1.into(), &"by_n".into())
        );
        let (tables, buckets) = seen(&headers);
        assert_eq!((tables.as_str(), buckets.as_str()), after);
        let (tables, buckets) = seen(&[]);
        assert_eq!((tables.as_str(), buckets.as_str()), before, "others see none of it");
        let end = format!("{D}/transactions/{id}");
        match commits {
            true => assert_eq!(server.ask("POST", &format!("{end}/commit"), "").status, 204),
            false => assert_eq!(server.ask("DELETE", &end, "").status, 204),
        }
    }
    let (tables, buckets) = seen(&[]);
    assert_eq!((tables.as_str(), buckets.as_str()), after);
}

#[test]
fn indexes_are_of_expressions_and_of_some_rows() {
    let server = Harness::new(&[]);
    let table = format!("{D}/tables/people");
    let made = server.ask("PUT", &table, r#"{"schema": "name text, n i64"}"#);
    assert_eq!(made.status, 201, "{}", made.text());
    let index = r#"{"index": "unique by_name (lower(name)) where n > 0"}"#;
    let made = server.ask("POST", &format!("{table}/indexes"), index);
    assert_eq!(made.status, 201, "{}", made.text());
    let found = &made.json()["indexes"][0];
    assert_eq!(found["fields"], serde_json::json!(["lower(name)"]));
    assert_eq!((&found["where"], &found["unique"]), (&"n > 0".into(), &true.into()));
    let wrong = r#"{"index": "by_time (now())"}"#;
    let refused = server.ask("POST", &format!("{table}/indexes"), wrong);
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("expected a value of the row alone"), "{}", refused.text());
}

/// Entries were looked for in the database alone.
#[test]
fn a_bucket_made_in_a_transaction_is_there_for_its_requests() {
    let server = Harness::new(&[]);
    let id = within(&server);
    let headers = [("esker-transaction", id.as_str())];
    let path = format!("{D}/buckets/b/entries/k");
    let missing = server.send("PUT", &path, &headers, b"v");
    assert_eq!(missing.status, 404, "{}", missing.text());
    let made = server.send("PUT", &format!("{D}/buckets/b"), &headers, b"{}");
    assert!(made.status < 300, "{}", made.text());
    let answer = server.send("PUT", &path, &headers, b"v");
    assert!(answer.status < 300, "{}", answer.text());
    assert_eq!(server.send("GET", &path, &headers, b"").text(), "v");
    assert_eq!(server.ask("GET", &path, "").status, 404);
    assert_eq!(server.ask("POST", &format!("{D}/transactions/{id}/commit"), "").status, 204);
    assert_eq!(server.ask("GET", &path, "").text(), "v");
}

#[test]
fn a_change_of_a_bucket_is_refused_at_once() {
    let server = Harness::new(&[]);
    let entry = format!("{D}/buckets/b/entries/k");
    assert!(server.ask("PUT", &format!("{D}/buckets/b"), "{}").status < 300);
    assert!(server.ask("PUT", &entry, "v").status < 300);
    for change in ["ADD COLUMN x i64", "DROP COLUMN expires_at", "RENAME COLUMN value TO v"] {
        let body = format!(r#"{{"changes": ["{change}"]}}"#);
        let refused = server.ask("PATCH", &format!("{D}/tables/b"), &body);
        assert_eq!(refused.status, 400, "{change}: {}", refused.text());
        assert!(refused.text().contains(r#"\"b\" is a bucket: "#), "{}", refused.text());
        let id = within(&server);
        assert_eq!(sql(&server, &id, &format!("ALTER TABLE b {change}")), 400);
        server.ask("POST", &format!("{D}/transactions/{id}/rollback"), "");
    }
    let found = server.ask("GET", &entry, "");
    assert_eq!((found.status, found.text().as_str()), (200, "v"));
    assert!(server.ask("PUT", &entry, "w").status < 300);
    let renamed = server.ask("PATCH", &format!("{D}/tables/b"), r#"{"rename": "c"}"#);
    assert_eq!(renamed.status, 200, "{}", renamed.text());
}

/// It was called a table.
#[test]
fn a_bucket_that_is_missing_is_named_a_bucket() {
    let server = Harness::new(&[]);
    for (method, path, body) in [
        ("GET", "", ""),
        ("PATCH", "", r#"{"rename": "c"}"#),
        ("DELETE", "", ""),
        ("GET", "/entries", ""),
        ("GET", "/entries/k", ""),
        ("PUT", "/entries/k", "v"),
        ("DELETE", "/entries/k", ""),
        ("POST", "/entries/k/increment", ""),
    ] {
        let answer = server.ask(method, &format!("{D}/buckets/b{path}"), body);
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert_eq!(answer.status, 404, "{method} {path}: {detail}");
        assert!(detail.starts_with("no bucket \"b\""), "{method} {path}: {detail}");
    }
}
