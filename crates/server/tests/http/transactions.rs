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
