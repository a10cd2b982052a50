//! Events of streams: what is sent is in every query once it is answered, each with its outcome.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;

use super::client::Harness;

const D: &str = "/v1/databases/default";

fn sql(server: &Harness, text: &str) -> serde_json::Value {
    let body = serde_json::json!({ "sql": text }).to_string();
    let answer = server.ask("POST", &format!("{D}/query"), &body);
    assert_eq!(answer.status, 200, "{text}: {}", answer.text());
    answer.json()
}

fn with_stream(options: &str) -> Harness {
    let server = Harness::new(&[]);
    sql(
        &server,
        &format!(
            "CREATE TABLE events (t timestamp NOT NULL DEFAULT now(), what text, n i64 CHECK (n < \
             100), extra json) WITH (stream = 't'{options})"
        ),
    );
    server
}

fn count(server: &Harness) -> i64 {
    sql(server, "SELECT count(*) AS n FROM events")["rows"][0]["n"].as_i64().unwrap()
}

#[test]
fn an_event_has_an_id_and_is_seen_once_it_is_answered() {
    let server = with_stream(", rest = 'extra'");
    let path = format!("{D}/streams/events/events");
    for (durability, status) in [("", 201), ("?durability=sync", 201), ("?durability=async", 202)] {
        let before = count(&server);
        let body = r#"{"t": "2026-01-02 03:04:05.678", "what": "a", "run": {"of": [1]}}"#;
        let posted = server.ask("POST", &format!("{path}{durability}"), body);
        assert_eq!(posted.status, status, "{}", posted.text());
        assert_eq!(count(&server), before + 1, "{durability}");
        let id = posted.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(id.len(), 26);
        let got = server.ask("GET", &format!("{path}/{id}"), "");
        assert_eq!(got.status, 200, "{}", got.text());
        assert_eq!(got.json()["extra"]["run"]["of"][0], 1, "{}", got.text());
        assert_eq!(server.ask("GET", &format!("{path}/{}", id.to_lowercase()), "").status, 200);
        // The same row id at another time is no event.
        let other = format!("7{}", &id[1..]);
        assert_eq!(server.ask("GET", &format!("{path}/{other}"), "").status, 404);
        assert_eq!(server.ask("DELETE", &format!("{path}/{id}"), "").status, 204);
        assert_eq!(server.ask("DELETE", &format!("{path}/{id}"), "").status, 404);
        assert_eq!(count(&server), before);
    }
    let wrong = server.ask("GET", &format!("{path}/xyz"), "");
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("expected 26 letters and digits"), "{}", wrong.text());
}

#[test]
fn a_description_tells_of_a_stream_and_of_a_table_none() {
    let server = with_stream(", retention = '36500 days', window = '1 day'");
    let path = format!("{D}/streams/events/events");
    server.ask("POST", &path, r#"{"t": "2026-01-02 03:04:05", "what": "a"}"#);
    let told = server.ask("GET", &format!("{D}/tables/events"), "");
    assert_eq!(told.status, 200, "{}", told.text());
    let stream = &told.json()["stream"];
    assert_eq!((&stream["time"], &stream["events"]), (&"t".into(), &1.into()), "{stream}");
    assert_eq!(stream["options"]["retention"], "36500 days", "{stream}");
    assert_eq!((&stream["oldest_us"], &stream["given_row_id"]), (&stream["newest_us"], &1.into()));
    assert!(stream["next_end_us"].is_i64(), "{stream}");
    sql(&server, "CREATE TABLE plain (n i64)");
    let told = server.ask("GET", &format!("{D}/tables/plain"), "");
    assert!(told.json().get("stream").is_none(), "{}", told.text());
}

#[test]
fn each_event_of_a_batch_has_an_outcome_of_its_own() {
    let server = with_stream(", ahead = '1 hour'");
    let path = format!("{D}/streams/events/events");
    let batch = r#"[{"what": "a", "n": 1}, {"what": "b", "n": 100}, {"nope": 1},
        {"t": "2999-01-01", "what": "c"}, 7, {"what": "d", "n": "x"}, {"what": "e"}]"#;
    let posted = server.ask("POST", &path, batch);
    assert_eq!(posted.status, 207, "{}", posted.text());
    let answer = posted.json();
    assert_eq!((&answer["accepted"], &answer["rejected"]), (&2.into(), &5.into()));
    let results = answer["results"].as_array().unwrap();
    assert!(results[0]["id"].is_string() && results[6]["id"].is_string(), "{answer}");
    let expected = [
        (1, "constraint_violated", "n < 100 is false"),
        (2, "invalid_request", "unknown field \"nope\""),
        (3, "constraint_violated", "too_early"),
        (4, "invalid_request", "expected a row"),
        (5, "invalid_request", "expected i64"),
    ];
    for (at, code, words) in expected {
        let error = &results[at]["error"];
        assert_eq!(error["code"], code, "{answer}");
        assert!(error["message"].as_str().unwrap().contains(words), "{at}: {error}");
        assert_eq!(error["retryable"], false);
    }
    assert_eq!(count(&server), 2);
    // All or none.
    let refused = server.ask("POST", &format!("{path}?each=false"), batch);
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("event 2: check"), "{}", refused.text());
    assert_eq!(count(&server), 2);
    let minimal = [("prefer", "return=minimal"), ("content-type", "application/x-ndjson")];
    let lines = b"{\"what\": \"f\"}\n\n{\"what\": \"g\"}\n";
    let posted = server.send("POST", &format!("{path}?each=false"), &minimal, lines);
    assert_eq!(posted.status, 201, "{}", posted.text());
    let answer = posted.json();
    assert!(answer["results"].is_null() && answer["first_id"] != answer["last_id"], "{answer}");
    assert_eq!(count(&server), 4);
    assert_eq!(server.ask("POST", &path, "[]").json()["accepted"], 0);
    let many = format!("[{}{{}}]", "{},".repeat(10_000));
    assert!(server.ask("POST", &path, &many).text().contains("at most 10000 events"));
}

#[test]
fn what_is_no_stream_or_no_request_is_refused_by_name() {
    let server = with_stream("");
    sql(&server, "CREATE TABLE plain (n i64)");
    let refused = [
        ("plain/events", "{}", 400, "is no stream"),
        ("nothing/events", "{}", 404, "no table"),
        ("events/events?durability=soon", "{}", 400, "expected sync or async"),
        ("events/events?each=perhaps", "[]", 400, "expected true or false"),
        ("events/events", "{", 400, "expected"),
        ("events/events", "[{]", 400, "expected a list of events"),
        ("events/events", "{\"n\": 100}", 400, "n < 100 is false"),
    ];
    for (path, body, status, words) in refused {
        let answer = server.ask("POST", &format!("{D}/streams/{path}"), body);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert!(answer.text().contains(words), "{path}: {}", answer.text());
    }
    assert_eq!(count(&server), 0);
}

#[test]
fn events_of_many_connections_share_commits_and_none_is_lost() {
    const CLIENTS: usize = 8;
    const EACH: usize = 40;
    let server = Arc::new(with_stream(""));
    sql(&server, "CREATE TABLE users (id i64 PRIMARY KEY)");
    sql(&server, "INSERT INTO users VALUES (1)");
    sql(&server, "ALTER TABLE events ADD FOREIGN KEY (n) REFERENCES users (id)");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let server = Arc::clone(&server);
            std::thread::spawn(move || {
                let path = format!("{D}/streams/events/events");
                let mut ids = Vec::new();
                for i in 0..EACH {
                    // What one refers to is missing: it alone is refused.
                    let user = if i % 10 == 9 { 2 } else { 1 };
                    let body = format!("{{\"what\": \"{client} {i}\", \"n\": {user}}}");
                    let posted = server.ask("POST", &path, &body);
                    match user {
                        1 => {
                            assert_eq!(posted.status, 201, "{}", posted.text());
                            ids.push(posted.json()["id"].as_str().unwrap().to_owned());
                        }
                        _ => assert_eq!(posted.status, 400, "{}", posted.text()),
                    }
                }
                ids
            })
        })
        .collect();
    let mut ids: Vec<String> = clients.into_iter().flat_map(|c| c.join().unwrap()).collect();
    assert_eq!(count(&server), (CLIENTS * EACH * 9 / 10) as i64);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), CLIENTS * EACH * 9 / 10);
}

/// A client that goes away while it leads left its stream waiting for ever.
#[test]
fn clients_that_go_away_harm_no_other() {
    let server = with_stream("");
    let path = format!("{D}/streams/events/events");
    let body = r#"{"what": "gone"}"#;
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {0}\r\nauthorization: Bearer {1}\r\ncontent-type: \
         application/json\r\ncontent-length: {2}\r\n\r\n{body}",
        server.address,
        server.token,
        body.len()
    );
    for _ in 0..300 {
        let mut client = TcpStream::connect(server.address).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        client.shutdown(std::net::Shutdown::Both).unwrap();
    }
    for _ in 0..20 {
        assert_eq!(server.ask("POST", &path, body).status, 201);
    }
}

#[test]
fn events_are_no_part_of_a_transaction_of_http() {
    let server = with_stream("");
    let path = format!("{D}/streams/events/events");
    let id = server.ask("POST", &path, "{}").json()["id"].as_str().unwrap().to_owned();
    let within = [("esker-transaction", "0")];
    let one = format!("{path}/{id}");
    for (method, path, body) in [("POST", &path, "{}"), ("GET", &one, ""), ("DELETE", &one, "")] {
        let answer = server.send(method, path, &within, body.as_bytes());
        assert_eq!(answer.status, 400, "{method}: {}", answer.text());
        assert!(answer.text().contains("within a transaction"), "{}", answer.text());
    }
    assert_eq!(count(&server), 1);
}

/// Who asks for it waits for the disk, whatever the databases of the server do.
#[test]
fn a_request_says_how_durable_it_is() {
    let server = Harness::new(&[("durability", "20ms")]);
    sql(&server, "CREATE TABLE events (t timestamp NOT NULL DEFAULT now()) WITH (stream = 't')");
    let path = format!("{D}/streams/events/events");
    for (durability, status) in [("", 201), ("?durability=sync", 201), ("?durability=async", 202)] {
        let posted = server.ask("POST", &format!("{path}{durability}"), "{}");
        assert_eq!(posted.status, status, "{durability}: {}", posted.text());
    }
    assert_eq!(count(&server), 3);
}

const LINES: &[(&str, &str)] = &[("content-type", "application/x-ndjson")];

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).unwrap()
}

/// One malformed line lost all others, and more than 10,000 were refused.
#[test]
fn lines_of_any_number_are_stored_each_for_itself() {
    let server = with_stream(", rest = 'extra'");
    let path = format!("{D}/streams/events/events");
    let some =
        "{\"n\": 1, \"run\": 7}\n{\"n\": \nnot json\n\n{\"n\": 100}\n{\"n\": 2}\n[1]\n{\"n\":3}";
    let posted = server.send("POST", &path, LINES, some.as_bytes());
    assert_eq!(posted.status, 207, "{}", posted.text());
    let answer = posted.json();
    assert_eq!((&answer["accepted"], &answer["rejected"]), (&3.into(), &4.into()), "{answer}");
    let results = answer["results"].as_array().unwrap();
    let lines: Vec<_> = results.iter().map(|result| result["error"]["line"].as_u64()).collect();
    assert_eq!(lines, [None, Some(2), Some(3), Some(5), None, Some(7), None], "{answer}");
    let mut many = String::new();
    for n in 0..30_000 {
        many.push_str(match n % 10_000 {
            17 => "{\"n\": \"x\"}\n",
            18 => "{\"n\": 100}\n",
            _ => "{\"n\": 5, \"what\": \"a text of some length, of which there are several\"}\n",
        });
    }
    for (body, encoding) in
        [(many.clone().into_bytes(), None), (zstd(many.as_bytes()), Some("zstd"))]
    {
        let before = count(&server);
        let mut headers = LINES.to_vec();
        headers.extend(encoding.map(|encoding| ("content-encoding", encoding)));
        let posted = server.send("POST", &path, &headers, &body);
        assert_eq!(posted.status, 207, "{}", posted.text());
        let answer = posted.json();
        assert_eq!((&answer["accepted"], &answer["rejected"]), (&29_994.into(), &6.into()));
        let errors = answer["first_errors"].as_array().unwrap();
        let lines: Vec<_> = errors.iter().map(|error| error["line"].as_u64().unwrap()).collect();
        assert_eq!(lines, [18, 19, 10_018, 10_019, 20_018, 20_019], "{answer}");
        assert!(errors[0]["message"].as_str().unwrap().contains("field \"n\": expected i64"));
        assert!(errors[1]["message"].as_str().unwrap().contains("n < 100 is false"));
        assert_eq!(count(&server), before + 29_994);
        let last = format!("{path}/{}", answer["last_id"].as_str().unwrap());
        assert_eq!(server.ask("GET", &last, "").status, 200);
    }
}

#[test]
fn events_come_as_csv_and_compressed_json_too() {
    let server = with_stream(", rest = 'extra'");
    let path = format!("{D}/streams/events/events");
    let csv = "t,n,run\n2026-01-02 03:04:05,1,7\n2026-01-02,x,8\n2026-01-03,100,9\n2026-01-04,4,\n";
    let headers = [("content-type", "text/csv")];
    let posted = server.send("POST", &path, &headers, csv.as_bytes());
    assert_eq!(posted.status, 207, "{}", posted.text());
    let answer = posted.json();
    let results = answer["results"].as_array().unwrap();
    let lines: Vec<_> = results.iter().map(|result| result["error"]["line"].as_u64()).collect();
    assert_eq!(lines, [None, Some(3), Some(4), None], "{answer}");
    let rows = sql(&server, "SELECT extra.run AS run, n FROM events ORDER BY t");
    assert_eq!(
        (&rows["rows"][0]["run"], &rows["rows"][1]["n"]),
        (&"7".into(), &4.into()),
        "{rows}"
    );
    // What is no object becomes a member of one, as in JSON.
    let own =
        b"t,extra\n2026-02-01,7\n2026-02-02,\"{\"\"a\"\": 1}\"\n2026-02-03,\"1, \"\"b\"\": 2\"\n";
    let posted = server.send("POST", &path, &headers, own);
    assert_eq!((posted.status, &posted.json()["rejected"]), (207, &1.into()), "{}", posted.text());
    let rows = sql(&server, "SELECT extra FROM events WHERE t >= '2026-02-01' ORDER BY t");
    assert_eq!(rows["rows"][0]["extra"]["extra"], 7, "{rows}");
    assert_eq!(rows["rows"][1]["extra"]["a"], 1, "{rows}");
    sql(&server, "DELETE FROM events WHERE t >= '2026-02-01'");
    let packed = zstd(br#"[{"n": 8}, {"n": 9}]"#);
    let posted = server.send("POST", &path, &[("content-encoding", "zstd")], &packed);
    assert_eq!(posted.status, 201, "{}", posted.text());
    let refused = server.send("POST", &path, &[("content-encoding", "br")], &packed);
    assert_eq!(refused.status, 415, "{}", refused.text());
    assert_eq!(count(&server), 4);
    // All or none, of lines as well.
    let all = format!("{path}?each=false");
    let refused = server.send("POST", &all, LINES, b"{\"n\": 1}\n{\"n\": 100}\n");
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("line 2: "), "{}", refused.text());
    let many = "{}\n".repeat(10_001);
    let refused = server.send("POST", &all, LINES, many.as_bytes());
    assert!(refused.text().contains("at most 10000 events"), "{}", refused.text());
    assert_eq!(count(&server), 4);
    let posted = server.send("POST", &path, LINES, many.as_bytes());
    assert_eq!((posted.status, &posted.json()["accepted"]), (201, &10_001.into()));
}

/// What was stored is stored, and the answer says how much that is.
#[test]
fn a_body_that_breaks_off_keeps_what_was_stored() {
    let server = with_stream("");
    let path = format!("{D}/streams/events/events");
    let line = |n: usize| format!("{{\"n\": {}, \"what\": \"{}\"}}\n", n % 100, n * 7_919);
    let text: String = (0..60_000).map(line).collect();
    let whole = zstd(text.as_bytes());
    let headers = [LINES[0], ("content-encoding", "zstd")];
    let posted = server.send("POST", &path, &headers, &whole[..whole.len() / 2]);
    assert_eq!(posted.status, 400, "{}", posted.text());
    let answer = posted.json();
    let accepted = answer["accepted"].as_i64().unwrap();
    assert!(answer["detail"].as_str().unwrap().contains("cut short"), "{answer}");
    assert!(accepted > 0 && accepted < 60_000 && answer["last_id"].is_string(), "{answer}");
    assert_eq!(count(&server), accepted);
    // A client that goes away in the middle.
    let mut client = TcpStream::connect(server.address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {0}\r\nauthorization: Bearer {1}\r\ncontent-type: \
         application/x-ndjson\r\ncontent-length: {2}\r\n\r\n",
        server.address,
        server.token,
        text.len()
    );
    client.write_all(head.as_bytes()).unwrap();
    client.write_all(&text.as_bytes()[..text.len() / 2]).unwrap();
    drop(client);
    assert_eq!(server.ask("POST", &path, "{}").status, 201);
}

#[test]
fn a_client_says_how_long_it_waits_for_the_disk() {
    let server = with_stream("");
    let path = format!("{D}/streams/events/events");
    let posted = server.ask("POST", &format!("{path}?timeout_ms=60000"), "{}");
    assert_eq!(posted.status, 201, "{}", posted.text());
    for wrong in ["0", "600001", "soon"] {
        let refused = server.ask("POST", &format!("{path}?timeout_ms={wrong}"), "{}");
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(refused.text().contains("milliseconds from 1 to 600000"), "{}", refused.text());
    }
}

/// An event in MessagePack, of short names and texts.
fn packed(members: &[(&str, i8)]) -> Vec<u8> {
    let mut bytes = vec![0x80 | u8::try_from(members.len()).unwrap()];
    for (name, n) in members {
        bytes.push(0xa0 | u8::try_from(name.len()).unwrap());
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend([0xd0, n.cast_unsigned()]);
    }
    bytes
}

#[test]
fn events_come_in_message_pack_too() {
    let server = with_stream(", rest = 'extra'");
    let path = format!("{D}/streams/events/events");
    let headers = [("content-type", "application/msgpack")];
    let some = [packed(&[("n", 1), ("run", -7)]), packed(&[("n", 100)]), packed(&[("n", 2)])];
    let posted = server.send("POST", &path, &headers, &some.concat());
    assert_eq!(posted.status, 207, "{}", posted.text());
    let answer = posted.json();
    assert_eq!(
        (&answer["accepted"], &answer["results"][1]["error"]["item"]),
        (&2.into(), &2.into())
    );
    let rows = sql(&server, "SELECT extra.run AS run FROM events WHERE n = 1");
    assert_eq!(rows["rows"][0]["run"], "-7", "{rows}");
    // More than a thread of the runtime does, in a list, and compressed.
    let many = [&[0xdd, 0, 0, 0x9c, 0x40][..], &packed(&[("n", 9)]).repeat(40_000)].concat();
    let packing = [headers[0], ("content-encoding", "zstd")];
    for (headers, body) in [(&headers[..], many.clone()), (&packing, zstd(&many))] {
        let posted = server.send("POST", &path, headers, &body);
        assert_eq!((posted.status, &posted.json()["accepted"]), (201, &40_000.into()));
    }
    assert_eq!(count(&server), 80_002);
    let cut = server.send("POST", &path, &headers, &many[..many.len() - 1]);
    assert_eq!(
        (cut.status, cut.text().contains("ends within a row")),
        (400, true),
        "{}",
        cut.text()
    );
}

/// A row without it would be one that the next opening refuses.
#[test]
fn a_short_body_without_a_field_that_has_to_be_given_is_refused() {
    let server = Harness::new(&[]);
    let sql = |text: &str| {
        let body = serde_json::json!({ "sql": text }).to_string();
        server.ask("POST", "/v1/databases/default/query", &body)
    };
    for create in [
        "CREATE TABLE s (t timestamp NOT NULL, what text NOT NULL) WITH (stream = 't')",
        "CREATE TABLE n (a i64 NOT NULL, b text NOT NULL)",
    ] {
        assert_eq!(sql(create).status, 200);
    }
    let csv = [("content-type", "text/csv")];
    let post = |path: &str, body: &str| {
        server.send("POST", &format!("/v1/databases/default/{path}"), &csv, body.as_bytes())
    };
    for path in ["streams/s/events", "streams/s/events?each=false"] {
        for body in ["t\n2026-01-02\n", "what\nx\n"] {
            let response = post(path, body);
            let text = response.text();
            assert!(text.contains("must have a value"), "{path} {body:?}: {text}");
            assert!(matches!(response.status, 207 | 400), "{path} {text}");
        }
    }
    let response = post("tables/n/rows", "a\n1\n");
    assert_eq!(response.status, 400, "{}", response.text());
    assert!(response.text().contains("must have a value"), "{}", response.text());
    for table in ["s", "n"] {
        let count = sql(&format!("SELECT count(*) AS n FROM {table}"));
        assert_eq!(count.json()["rows"][0]["n"], 0, "{}", count.text());
    }
}

/// What only Unicode takes for space before a list was answered as one event.
#[test]
fn a_list_behind_other_spaces_is_no_event() {
    let server = Harness::new(&[]);
    let create = r#"{"sql":"CREATE TABLE s (t timestamp NOT NULL) WITH (stream = 't')"}"#;
    assert_eq!(server.ask("POST", "/v1/databases/default/query", create).status, 200);
    let path = "/v1/databases/default/streams/s/events";
    let list = r#"[{"t":"2026-01-02"},{"t":"2026-01-03"}]"#;
    let response = server.ask("POST", path, &format!("\u{a0}{list}"));
    assert_eq!(response.status, 400, "{}", response.text());
    assert_eq!(server.ask("POST", path, &format!(" \n{list}")).json()["accepted"], 2);
}
