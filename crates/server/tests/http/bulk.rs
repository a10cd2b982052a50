//! Loads, as they arrive.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;

use async_compression::tokio::bufread::GzipEncoder;
use tokio::io::AsyncReadExt;

use super::client::Harness;
use super::memory::until;

const D: &str = "/v1/databases/default";

fn with_table() -> Harness {
    let server = Harness::new(&[("stall_timeout", "500ms")]);
    let schema = r#"{"schema": "id i64 not null, name text, primary key (id)"}"#;
    server.ask("PUT", &format!("{D}/tables/t"), schema);
    server
}

fn count(server: &Harness) -> i64 {
    let answer =
        server.ask("POST", &format!("{D}/query"), r#"{"sql": "SELECT count(*) AS n FROM t"}"#);
    answer.json()["rows"][0]["n"].as_i64().unwrap()
}

#[test]
fn rows_come_in_three_forms_plain_or_compressed_all_or_none() {
    let server = with_table();
    let path = format!("{D}/tables/t/rows");
    let csv: String = (0..50_000).map(|i| format!("{i},name {i}\n")).collect();
    let csv = format!("id,name\n{csv}");
    let packed = zstd::encode_all(csv.as_bytes(), 1).unwrap();
    let headers = [("content-type", "text/csv"), ("content-encoding", "zstd")];
    let loaded = server.send("POST", &path, &headers, &packed);
    assert_eq!(loaded.json(), serde_json::json!({ "rows": 50_000, "skipped": 0 }));
    let lines: String = (50_000..50_010).map(|i| format!("{{\"id\":{i}}}\n")).collect();
    let headers = [("content-type", "application/x-ndjson")];
    assert_eq!(server.send("POST", &path, &headers, lines.as_bytes()).json()["rows"], 10);
    let wrong = server.ask("POST", &path, r#"[{"id": 60000}, {"id": "x"}]"#);
    assert_eq!(wrong.status, 400, "{}", wrong.text());
    let there = r#"[{"id": 70000}, {"id": 1}]"#;
    assert_eq!(server.ask("POST", &path, there).status, 409);
    assert_eq!(count(&server), 50_010, "nothing of what was refused");
    let skipped = server.ask("POST", &format!("{path}?on_duplicate=skip"), there);
    assert_eq!(skipped.json(), serde_json::json!({ "rows": 1, "skipped": 1 }));
    let replaced = server.ask("POST", &format!("{path}?on_duplicate=replace"), there);
    assert_eq!(replaced.json()["rows"], 2);
    let headers = [("content-type", "text/csv"), ("content-encoding", "br")];
    assert_eq!(server.send("POST", &path, &headers, b"x").status, 415);
    let headers = [("content-type", "text/csv"), ("accept-encoding", "zstd, gzip")];
    let all = server.send("POST", &format!("{D}/query"), &[headers[1]], br#"{"table": "t"}"#);
    assert_eq!(all.header("content-encoding"), "zstd");
    let all = zstd::decode_all(all.body.as_slice()).unwrap();
    let all: serde_json::Value = serde_json::from_slice(&all).unwrap();
    assert_eq!(all["rows"].as_array().unwrap().len(), 50_011);
}

/// Only what is sent was counted: some KiB became all the memory that there is.
#[test]
fn a_packed_load_that_is_read_as_a_whole_is_counted_as_it_is_without_packing() {
    let server = Harness::new(&[("request_bytes_max", "64KiB")]);
    let schema = r#"{"schema": "id i64 not null, name text, primary key (id)"}"#;
    server.ask("PUT", &format!("{D}/tables/t"), schema);
    let path = format!("{D}/tables/t/rows");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let gzip = |plain: &[u8]| {
        let mut packed = Vec::new();
        runtime.block_on(GzipEncoder::new(plain).read_to_end(&mut packed)).unwrap();
        packed
    };
    let csv = |bytes: usize| format!("id,name\n1,{}\n", "x".repeat(bytes));
    let begun = server.ask("POST", &format!("{D}/transactions"), "{}").json();
    let id = begun["id"].as_str().unwrap();
    for read_whole in [("esker-transaction", id), ("idempotency-key", "k")] {
        let send = |encoding: &str, body: &[u8]| {
            let media = ("content-type", "text/csv");
            let headers = [media, ("content-encoding", encoding), read_whole];
            server.send("POST", &path, &headers, body).status
        };
        for bytes in [64 << 10, 16 << 20] {
            let (plain, half) = (csv(bytes), bytes / 2);
            let packed = zstd::encode_all(plain.as_bytes(), 1).unwrap();
            assert_eq!((packed.len() < 20 << 10, send("zstd", &packed)), (true, 413));
            // Of two members.
            let two = [gzip(&plain.as_bytes()[..half]), gzip(&plain.as_bytes()[half..])].concat();
            assert_eq!(send("gzip", &two), 413);
            // What its reader passes over hides nothing: a frame to be skipped, zeros.
            let skipped = [b"\x50\x2a\x4d\x18\x01\0\0\0x".as_slice(), &packed].concat();
            assert_eq!(send("zstd", &skipped), 413);
            let parts =
                [gzip(b"id,name\n"), vec![0; 512], gzip(format!("1,{}\n", &plain[8..]).as_bytes())];
            assert_eq!(send("gzip", &parts.concat()), 413);
        }
        assert_eq!(count(&server), 0);
    }
    let headers = [("content-type", "text/csv"), ("idempotency-key", "k")];
    let packed = zstd::encode_all(csv(60 << 10).as_bytes(), 1).unwrap();
    assert_eq!(server.send("POST", &path, &headers, &packed).status, 200);
    let damaged = &zstd::encode_all(csv(8).as_bytes(), 1).unwrap()[..12];
    let headers = [("content-type", "text/csv"), ("idempotency-key", "d")];
    assert_eq!(server.send("POST", &path, &headers, damaged).status, 400);
    assert_eq!(count(&server), 1);
}

/// Each row reserved 120 MiB, as much as a body without end: with a limit of 64 MiB none was taken,
/// and with the default one those of 24 connections.
#[test]
fn one_row_from_each_of_many_connections_is_taken() {
    const CONNECTIONS: i64 = 96;
    let server = Harness::new(&[("memory_limit", "64MiB")]);
    let schema = r#"{"schema": "id i64 not null, name text, primary key (id)"}"#;
    server.ask("PUT", &format!("{D}/tables/t"), schema);
    let path = format!("{D}/tables/t/rows");
    let together = Barrier::new(usize::try_from(CONNECTIONS).unwrap());
    std::thread::scope(|scope| {
        for id in 0..CONNECTIONS {
            let (server, path, together) = (&server, path.as_str(), &together);
            scope.spawn(move || {
                together.wait();
                let answer = match id % 3 {
                    0 => server.ask("POST", path, &format!(r#"[{{"id": {id}}}]"#)),
                    1 => {
                        let csv = [("content-type", "text/csv")];
                        server.send("POST", path, &csv, format!("id\n{id}\n").as_bytes())
                    }
                    _ => {
                        let lines = ("content-type", "application/x-ndjson");
                        let chunked = ("transfer-encoding", "chunked");
                        let row = format!("{{\"id\":{id}}}\n");
                        let body = format!("{:x}\r\n{row}\r\n0\r\n\r\n", row.len());
                        server.send("POST", path, &[lines, chunked], body.as_bytes())
                    }
                };
                assert_eq!(answer.status, 200, "{}", answer.text());
            });
        }
    });
    assert_eq!(count(&server), CONNECTIONS);
}

#[test]
fn who_goes_away_or_falls_silent_in_a_load_leaves_nothing() {
    let server = with_table();
    let head = format!(
        "POST {D}/tables/t/rows HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: text/csv\r\ntransfer-encoding: chunked\r\n\r\n",
        server.token
    );
    for silent in [false, true] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(b"c\r\nid,name\n1,a\n\r\n").unwrap();
        if silent {
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            let answer = String::from_utf8_lossy(&answer).into_owned();
            assert!(answer.contains("nothing was sent") || answer.is_empty(), "{answer}");
        }
    }
    assert_eq!(server.ask("GET", "/healthz", "").status, 200);
    assert_eq!(count(&server), 0);
}

/// A load of which two rows have come, once it is listed.
fn begun(server: &Harness, token: &str) -> TcpStream {
    let head = format!(
        "POST {D}/tables/t/rows HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\ncontent-type: text/csv\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(b"10\r\nid,name\n1,a\n2,b\n\r\n").unwrap();
    until("it is not listed", || listed(server)["running"][0]["statement"] == "load t: 0");
    stream
}

fn listed(server: &Harness) -> serde_json::Value {
    server.ask("GET", &format!("{D}/sessions"), "").json()["sessions"][0].clone()
}

#[test]
fn a_load_is_a_session_that_may_be_ended() {
    let server = Harness::new(&[("stall_timeout", "60s")]);
    let schema = r#"{"schema": "id i64 not null, name text, primary key (id)"}"#;
    server.ask("PUT", &format!("{D}/tables/t"), schema);
    let mut stream = begun(&server, &server.token);
    let session = listed(&server);
    assert_eq!(session["protocol"], "http");
    let end = server.ask("DELETE", &format!("{D}/sessions/{}", session["id"]), "");
    assert_eq!(end.status, 204, "{}", end.text());
    // Nothing more is sent, and it is answered all the same.
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("cancelled"), "{answer}");
    assert_eq!(count(&server), 0);
    until("it is listed still", || listed(&server).is_null());
}

#[test]
fn a_load_whose_token_is_removed_stores_nothing() {
    let server = Harness::new(&[("stall_timeout", "60s")]);
    let schema = r#"{"schema": "id i64 not null, name text, primary key (id)"}"#;
    server.ask("PUT", &format!("{D}/tables/t"), schema);
    let made = server.ask("POST", "/v1/tokens", r#"{"name": "n", "scopes": ["write"]}"#).json();
    let mut stream = begun(&server, made["token"].as_str().unwrap());
    let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(server.ask("DELETE", &path, "").status, 204);
    stream.write_all(b"0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert_eq!(count(&server), 0);
}

/// Each reserved what a load may take: 24 at once were too many.
#[test]
fn few_rows_of_many_connections_share_commits() {
    const CLIENTS: usize = 48;
    let server = std::sync::Arc::new(Harness::new(&[]));
    let made = "CREATE TABLE notes (n i64 NOT NULL CHECK (n < 1000), what text DEFAULT 'x')";
    let made = serde_json::json!({ "sql": made }).to_string();
    assert_eq!(server.ask("POST", &format!("{D}/query"), &made).status, 200);
    let path = format!("{D}/tables/notes/rows");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (server, path) = (std::sync::Arc::clone(&server), path.clone());
            std::thread::spawn(move || {
                for n in 0..10 {
                    let body = format!("[{{\"n\": {n}}}, {{\"n\": {client}, \"what\": \"y\"}}]");
                    let posted = server.ask("POST", &path, &body);
                    assert_eq!((posted.status, &posted.json()["rows"]), (200, &2.into()));
                    let refused = server.ask("POST", &path, "[{\"n\": 1}, {\"n\": 1000}]");
                    assert_eq!(refused.status, 400, "{}", refused.text());
                    assert!(refused.text().contains("n < 1000"), "{}", refused.text());
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let count =
        r#"{"sql": "SELECT count(*) AS n, count(*) FILTER (WHERE what = 'x') AS x FROM notes"}"#;
    let rows = server.ask("POST", &format!("{D}/query"), count).json()["rows"][0].clone();
    assert_eq!((&rows["n"], &rows["x"]), (&(CLIENTS * 20).into(), &(CLIENTS * 10).into()));
    let csv = [("content-type", "text/csv")];
    let posted = server.send("POST", &path, &csv, b"what,n\na,1\nb,2\n");
    assert_eq!((posted.status, &posted.json()["rows"]), (200, &2.into()), "{}", posted.text());
    let none = server.send("POST", &path, &csv, b"what,n\n");
    assert_eq!((none.status, &none.json()["rows"]), (200, &0.into()), "{}", none.text());
    for (body, words) in [("[{\"n\": 1}, {\"m\": 2}]", "m"), ("[{\"n\": null}]", "n"), ("[", "")] {
        let refused = server.ask("POST", &path, body);
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(refused.text().contains(words), "{}", refused.text());
    }
    assert_eq!(server.ask("POST", &format!("{D}/tables/nothing/rows"), "[]").status, 404);
}
