//! Events that are stored once, and events that are refused before they are read.

use std::sync::Arc;

use super::client::{Harness, Response};

const D: &str = "/v1/databases/default";
const EVENTS: &str = "/v1/databases/default/streams/events/events";

fn sql(server: &Harness, text: &str) -> serde_json::Value {
    let body = serde_json::json!({ "sql": text }).to_string();
    let answer = server.ask("POST", &format!("{D}/query"), &body);
    assert_eq!(answer.status, 200, "{text}: {}", answer.text());
    answer.json()
}

fn with_stream(flags: &[(&str, &str)]) -> Harness {
    let server = Harness::new(flags);
    sql(&server, "CREATE TABLE users (id i64 PRIMARY KEY)");
    sql(&server, "INSERT INTO users VALUES (1)");
    sql(
        &server,
        "CREATE TABLE events (t timestamp NOT NULL DEFAULT now(), n i64 CHECK (n < 100) \
         REFERENCES users (id)) WITH (stream = 't')",
    );
    server
}

fn count(server: &Harness) -> i64 {
    sql(server, "SELECT count(*) AS n FROM events")["rows"][0]["n"].as_i64().unwrap()
}

fn produced(server: &Harness, producer: &str, body: &str) -> Response {
    server.send("POST", EVENTS, &[("esker-producer", producer)], body.as_bytes())
}

#[test]
fn a_producer_may_send_again_what_was_not_answered() {
    let server = with_stream(&[]);
    let batch = r#"[{"n": 1}, {"n": 100}, {"n": 2}, {"n": 1}]"#;
    let first = produced(&server, "a; epoch=1; seq=0", batch);
    assert_eq!(first.status, 207, "{}", first.text());
    let answer = first.json();
    assert_eq!((&answer["accepted"], &answer["rejected"]), (&2.into(), &2.into()), "{answer}");
    assert!(answer["results"][2]["error"]["message"].as_str().unwrap().contains("users"));
    let again = produced(&server, "a; epoch=1; seq=0", batch);
    let repeated = again.json();
    assert_eq!((again.status, &repeated["duplicate"]), (207, &true.into()), "{repeated}");
    for at in [0, 3] {
        assert_eq!(repeated["results"][at]["id"], answer["results"][at]["id"], "{repeated}");
    }
    assert_eq!(repeated["results"][2]["error"]["code"], "constraint_violated", "{repeated}");
    assert_eq!(count(&server), 2);
    let gap = produced(&server, "a; epoch=1; seq=5", "{}");
    assert_eq!((gap.status, &gap.json()["code"]), (409, &"sequence_gap".into()), "{}", gap.text());
    assert!(gap.text().contains("expected event 4, found 5"), "{}", gap.text());
    assert_eq!(gap.json()["retryable"], false);
    // One event that is refused counts as well, and lines do.
    let refused = produced(&server, "a; epoch=1; seq=4", r#"{"n": 100}"#);
    assert_eq!(refused.status, 400, "{}", refused.text());
    let lines = [("esker-producer", "a; epoch=1; seq=5"), ("content-type", "application/x-ndjson")];
    for _ in 0..2 {
        let posted = server.send("POST", EVENTS, &lines, b"{\"n\": 1}\n{}\n");
        assert_eq!(posted.status, 201, "{}", posted.text());
    }
    let older = produced(&server, "a; epoch=1; seq=0", batch);
    assert_eq!((older.status, &older.json()["duplicate"]), (201, &true.into()), "{}", older.text());
    // Another one takes over.
    assert_eq!(produced(&server, "a; epoch=2; seq=7", "{}").status, 409);
    let next = produced(&server, "a; epoch=2; seq=0", "{}");
    assert_eq!(next.status, 201, "{}", next.text());
    let again = produced(&server, "a; epoch=2; seq=0", "{}");
    assert_eq!((again.status, &again.json()["id"]), (201, &next.json()["id"]));
    let fenced = produced(&server, "a; epoch=1; seq=7", "{}");
    assert_eq!((fenced.status, &fenced.json()["code"]), (409, &"fenced".into()));
    assert_eq!(count(&server), 5);
    // Each token has producers of its own.
    let other = format!("Bearer {}", server.token("write"));
    let headers = [("authorization", other.as_str()), ("esker-producer", "a; epoch=0; seq=0")];
    let posted = server.raw("POST", EVENTS, &headers, b"{}");
    assert_eq!(posted.status, 201, "{}", posted.text());
    for wrong in ["a", "a; epoch=1", "a; epoch=x; seq=0", "; epoch=0; seq=0"] {
        let refused = produced(&server, wrong, "{}");
        assert_eq!(refused.status, 400, "{wrong}: {}", refused.text());
    }
}

#[test]
fn a_request_with_a_key_is_stored_once() {
    let server = with_stream(&[]);
    let keyed = |key: &str, query: &str, body: &str| {
        let path = format!("{EVENTS}{query}");
        server.send("POST", &path, &[("idempotency-key", key)], body.as_bytes())
    };
    for (key, body, stored) in [("a", r#"{"n": 1}"#, 1), ("b", r#"[{"n": 1}, {"n": 2}, {}]"#, 3)] {
        let first = keyed(key, "", body);
        assert!(matches!(first.status, 201 | 207), "{}", first.text());
        let again = keyed(key, "", body);
        assert_eq!((again.status, again.text()), (first.status, first.text()));
        assert_eq!(count(&server), stored);
    }
    for (query, body) in [("", r#"{"n": null}"#), ("?durability=async", r#"{"n": 1}"#)] {
        let other = keyed("a", query, body);
        assert_eq!(other.status, 422, "{}", other.text());
    }
    // What is refused is not kept: it may be mended.
    for (body, status) in [(r#"{"n": 100}"#, 400), (r#"{"n": 2}"#, 400), ("{}", 201)] {
        let posted = keyed("c", "", body);
        assert_eq!(posted.status, status, "{}", posted.text());
    }
    let all = keyed("d", "?each=false", r#"[{}, {"n": 2}]"#);
    assert_eq!(all.status, 400, "{}", all.text());
    assert!(all.text().contains("event 2: "), "{}", all.text());
    assert_eq!(count(&server), 4);
    // A long answer is kept in short.
    let many = format!("[{}{{}}]", "{},".repeat(2_000));
    let first = keyed("e", "", &many).json();
    let again = keyed("e", "", &many).json();
    assert_eq!((&again["accepted"], &again["last_id"]), (&2_001.into(), &again["last_id"]));
    assert_eq!(first["results"].as_array().unwrap().len(), 2_001);
    assert_eq!(again["last_id"], first["results"][2_000]["id"]);
    assert_eq!(count(&server), 2_005);
    let both = [("idempotency-key", "f"), ("esker-producer", "a; epoch=0; seq=0")];
    assert_eq!(server.send("POST", EVENTS, &both, b"{}").status, 400);
    let tables = server.ask("GET", &format!("{D}/tables"), "").text();
    assert!(!tables.contains("esker_"), "{tables}");
}

/// Many at once send the same events: each is there once, and all learn its id.
#[test]
fn clients_that_send_the_same_at_once_store_it_once() {
    let server = Arc::new(with_stream(&[]));
    let clients: Vec<_> = (0..6)
        .map(|client| {
            let server = Arc::clone(&server);
            std::thread::spawn(move || {
                let mut ids = Vec::new();
                for n in 0..20 {
                    let key = format!("key {n}");
                    let producer = format!("p{n}; epoch=0; seq=0");
                    for header in [("idempotency-key", &*key), ("esker-producer", &*producer)] {
                        let posted = server.send("POST", EVENTS, &[header], b"{\"n\": 1}");
                        assert_eq!(posted.status, 201, "{client} {header:?}: {}", posted.text());
                        ids.push(posted.json()["id"].as_str().unwrap().to_owned());
                    }
                }
                ids
            })
        })
        .collect();
    let ids: Vec<Vec<String>> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert!(ids.iter().all(|own| *own == ids[0]), "{ids:?}");
    assert_eq!(count(&server), 40);
}

#[test]
fn events_beyond_what_a_tenant_may_send_are_refused_before_they_are_read() {
    let server = with_stream(&[]);
    let limits = format!("{D}/limits");
    assert_eq!(server.ask("PUT", &limits, r#"{"events_per_second": 10}"#).status, 200);
    let batch = format!("[{}{{}}]", "{},".repeat(299));
    let posted = server.ask("POST", EVENTS, &batch);
    assert_eq!(posted.status, 201, "a batch is made up for: {}", posted.text());
    // It is refused though it is no event: nobody looks at it.
    for body in ["{}", "no event"] {
        let refused = server.ask("POST", EVENTS, body);
        assert_eq!((refused.status, &refused.json()["retryable"]), (429, &true.into()));
        let wait: u64 = refused.header("retry-after").parse().unwrap();
        assert!((20..=30).contains(&wait), "{wait}");
        assert!(refused.text().contains("more than 10 events in a second"), "{}", refused.text());
    }
    assert_eq!(count(&server), 300);
    assert_eq!(server.ask("PUT", &limits, "{}").status, 200);
    assert_eq!(server.ask("POST", EVENTS, "{}").status, 201);
}

#[test]
fn an_asynchronous_answer_says_how_soon_the_disk_has_it() {
    let server = with_stream(&[]);
    let posted = server.ask("POST", &format!("{EVENTS}?durability=async"), "[{}]");
    assert_eq!((posted.status, &posted.json()["durable_within_ms"]), (202, &10.into()));
}

/// What was stored is answered, whatever the stream would refuse by now; what is no JSON uses none
/// of a producer's numbers; and where a header says nothing it is refused.
#[test]
fn what_was_stored_is_answered_though_it_came_too_late_by_now() {
    let server = with_stream(&[]);
    sql(&server, "ALTER TABLE events SET (late = '2 seconds')");
    let now = sql(&server, "SELECT now() AS t")["rows"][0]["t"].as_str().unwrap().to_owned();
    let body = serde_json::json!({ "t": now, "n": 1 }).to_string();
    let key = [("idempotency-key", "late")];
    let first = server.send("POST", EVENTS, &key, body.as_bytes());
    assert_eq!(first.status, 201, "{}", first.text());
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    let again = server.send("POST", EVENTS, &key, body.as_bytes());
    assert_eq!((again.status, again.text()), (201, first.text()));
    assert_eq!(server.ask("POST", EVENTS, &body).status, 400);
    let broken = produced(&server, "json; epoch=0; seq=0", "{\"n\":");
    assert_eq!(broken.status, 400, "{}", broken.text());
    let mended = produced(&server, "json; epoch=0; seq=0", "{\"n\": 1}");
    assert_eq!(mended.status, 201, "{}", mended.text());
    assert_eq!(count(&server), 2);
    let rows = format!("{D}/tables/events/rows");
    let producer = [("esker-producer", "json; epoch=0; seq=1")];
    let elsewhere = server.send("POST", &rows, &producer, b"[{\"n\": 1}]");
    assert!(elsewhere.status == 400 && elsewhere.text().contains("esker-producer"));
    let listed = server.ask("GET", &format!("{D}/buckets"), "").text();
    assert!(!listed.contains("esker_producers"), "{listed}");
    let many = "{}\n".repeat(10_001);
    let lines =
        [("esker-producer", "many; epoch=0; seq=0"), ("content-type", "application/x-ndjson")];
    let refused = server.send("POST", EVENTS, &lines, many.as_bytes());
    assert!(
        refused.status == 400 && refused.text().contains("at most 10000"),
        "{}",
        refused.text()
    );
}

/// Streams that say which events are the same one.
#[test]
fn an_event_that_is_there_is_answered_with_its_id() {
    let server = Harness::new(&[]);
    sql(
        &server,
        "CREATE TABLE events (t timestamp NOT NULL DEFAULT now(), request text, n i64) \
         WITH (stream = 't', dedupe = 'request within 1 hour')",
    );
    let send = |query: &str, body: &str| {
        let answer = server.ask("POST", &format!("{EVENTS}{query}"), body);
        (answer.status, answer.json())
    };
    let one = r#"{"t": "2026-11-30T10:00:00Z", "request": "a"}"#;
    let (status, first) = send("", one);
    assert_eq!((status, first.get("duplicate")), (201, None), "{first}");
    for query in ["", "?durability=sync", "?each=false"] {
        let (status, again) = send(query, one);
        assert_eq!((status, &again["id"]), (201, &first["id"]), "{again}");
        assert_eq!(again["duplicate"], true, "{again}");
    }
    let list = format!(r#"[{one}, {{"request": "b"}}, {{"request": "b"}}, {{"t": "x"}}]"#);
    let (status, told) = send("", &list);
    assert_eq!((status, &told["accepted"], &told["duplicates"]), (207, &3.into(), &2.into()));
    let results = &told["results"];
    assert_eq!((&results[0]["id"], &results[0]["duplicate"]), (&first["id"], &true.into()));
    assert_eq!((&results[2]["id"], &results[2]["duplicate"]), (&results[1]["id"], &true.into()));
    assert!(results[1].get("duplicate").is_none(), "{told}");
    // Lines of any number, requests with keys; rows of the table are not asked about.
    let lines = "{\"request\": \"b\"}\n{\"request\": \"c\"}\n{\"request\": \"c\"}\n";
    let headers = [("content-type", "application/x-ndjson")];
    let answer = server.send("POST", EVENTS, &headers, lines.as_bytes()).json();
    assert_eq!((&answer["accepted"], &answer["duplicates"]), (&3.into(), &2.into()), "{answer}");
    let keyed = [("idempotency-key", "k")];
    let list = r#"[{"request": "c"}, {"request": "d"}]"#;
    let answer = server.send("POST", EVENTS, &keyed, list.as_bytes()).json();
    assert_eq!((&answer["accepted"], &answer["duplicates"]), (&2.into(), &1.into()), "{answer}");
    let answer = server.ask("POST", &format!("{D}/tables/events/rows"), r#"[{"request": "d"}]"#);
    assert_eq!(answer.json(), serde_json::json!({"rows": 1, "skipped": 0}));
    let produced = produced(&server, "p; epoch=1; seq=0", r#"[{"request": "d"}, {"n": 1}]"#);
    assert_eq!(produced.json()["duplicates"], 1, "{}", produced.text());
    assert_eq!(count(&server), 6);
    let metrics = server.ask("GET", "/metrics", "").text();
    let stored = "esker_events_total{database=\"default\"} 5";
    assert!(metrics.lines().any(|line| line == stored), "{metrics}");
    let shown = sql(&server, "SELECT sql FROM esker_tables WHERE table_name = 'events'");
    assert!(shown.to_string().contains("dedupe = 'request within 1 hour'"), "{shown}");
}
