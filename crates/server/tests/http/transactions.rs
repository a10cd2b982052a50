//! Transactions that last over several requests.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::client::Harness;

const D: &str = "/v1/databases/default";

/// A server with a table of some rows.
fn server() -> Harness {
    let server = Harness::new(&[]);
    let schema = r#"{"schema": "id i64 not null, primary key (id)"}"#;
    assert_eq!(server.ask("PUT", &format!("{D}/tables/t"), schema).status, 201);
    let rows: Vec<_> = (0..6_000).map(|id| format!("{{\"id\": {id}}}")).collect();
    let rows = format!("[{}]", rows.join(","));
    assert_eq!(server.ask("POST", &format!("{D}/tables/t/rows"), &rows).status, 200);
    server
}

fn begin(server: &Harness) -> String {
    let begun = server.ask("POST", &format!("{D}/transactions"), "{}");
    begun.json()["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_query_that_failed_ends_nothing_behind_it() {
    let server = server();
    let id = begin(&server);
    let within = [("esker-transaction", id.as_str())];
    for _ in 0..50 {
        let query = br#"{"sql": "SELECT nothing FROM t"}"#;
        let failed = server.send("POST", &format!("{D}/query"), &within, query);
        assert_eq!(failed.status, 400, "{}", failed.text());
        let found = server.send("GET", &format!("{D}/tables/t/rows/1"), &within, b"");
        assert_eq!(found.status, 200, "{}", found.text());
    }
    let end = format!("{D}/transactions/{id}/commit");
    assert_eq!(server.ask("POST", &end, "").status, 204);
}

#[test]
fn who_goes_away_ends_no_request_of_somebody_else() {
    let server = server();
    let id = begin(&server);
    // Many pairs are looked at, and few are kept.
    let join = "SELECT count(*) AS n FROM t AS a JOIN t AS b ON (a.id * b.id) % 1000003 = 7";
    let query = format!(r#"{{"sql": "{join}"}}"#);
    let (path, within) = (format!("{D}/query"), [("esker-transaction", id.as_str())]);
    std::thread::scope(|threads| {
        let asked = threads.spawn(|| server.send("POST", &path, &within, query.as_bytes()));
        let patience = Instant::now();
        while !server.ask("GET", &format!("{D}/sessions"), "").text().contains("SELECT count") {
            let waited = patience.elapsed() < Duration::from_secs(20);
            assert!(waited && !asked.is_finished(), "it is not listed");
        }
        let mut other = TcpStream::connect(server.address).unwrap();
        write!(
            other,
            "GET {D}/tables/t/rows/1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
             esker-transaction: {id}\r\n\r\n",
            server.token
        )
        .unwrap();
        std::thread::sleep(Duration::from_millis(50));
        drop(other);
        let answer = asked.join().unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    });
}

fn sql(server: &Harness, transaction: Option<&str>, text: &str) -> (u16, String) {
    let within: Vec<_> = transaction.iter().map(|id| ("esker-transaction", *id)).collect();
    let query = format!(r#"{{"sql": "{text}"}}"#);
    let answer = server.send("POST", &format!("{D}/query"), &within, query.as_bytes());
    (answer.status, answer.text())
}

#[test]
fn temporary_tables_are_of_a_transaction_and_of_no_request_alone() {
    let server = server();
    let (status, text) = sql(&server, None, "CREATE TEMP TABLE s (n i64)");
    assert_eq!(status, 400, "{text}");
    assert!(text.contains("ends with the request"), "{text}");
    let (one, other) = (begin(&server), begin(&server));
    for id in [&one, &other] {
        let made = "CREATE TEMP TABLE s AS SELECT id FROM t WHERE id < 3";
        let (status, text) = sql(&server, Some(id), made);
        assert_eq!(status, 200, "{text}");
    }
    assert_eq!(sql(&server, Some(&one), "DELETE FROM s WHERE id = 0").0, 200);
    let count = "SELECT count(*) AS n FROM s JOIN t ON t.id = s.id";
    let found = [&one, &other].map(|id| sql(&server, Some(id), count).1);
    assert!(found[0].contains('2') && found[1].contains('3'), "{found:?}");
    assert_eq!(sql(&server, None, count).0, 404);
    for id in [one, other] {
        let end = format!("{D}/transactions/{id}/commit");
        assert_eq!(server.ask("POST", &end, "").status, 204);
    }
    assert_eq!(sql(&server, None, count).0, 404);
}
