//! Reading events of streams: pages by their times, tails, and exports.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::client::Harness;
use super::memory::until;

const D: &str = "/v1/databases/default";
const S: &str = "/v1/databases/default/streams/events";

pub fn sql(server: &Harness, text: &str) -> Json {
    let body = serde_json::json!({ "sql": text }).to_string();
    let answer = server.ask("POST", &format!("{D}/query"), &body);
    assert_eq!(answer.status, 200, "{text}: {}", answer.text());
    answer.json()
}

fn with_stream(flags: &[(&str, &str)]) -> Harness {
    let server = Harness::new(flags);
    let fields = "t timestamp NOT NULL DEFAULT now(), n i64, what text";
    sql(&server, &format!("CREATE TABLE events ({fields}) WITH (stream = 't')"));
    server
}

fn post(server: &Harness, body: &str) -> Json {
    let posted = server.ask("POST", &format!("{S}/events"), body);
    assert_eq!(posted.status, 201, "{}", posted.text());
    posted.json()
}

/// Posts events with these numbers, a second apart.
fn post_numbers(server: &Harness, numbers: std::ops::Range<i64>) {
    let events: Vec<Json> = numbers
        .map(|n| {
            let t = format!("2026-01-02 03:{:02}:{:02}", n / 60 % 60, n % 60);
            serde_json::json!({ "t": t, "n": n })
        })
        .collect();
    let answer = post(server, &Json::Array(events).to_string());
    assert_eq!(answer["rejected"], 0, "{answer}");
}

fn numbers(events: &[Json]) -> Vec<i64> {
    events.iter().map(|event| event["n"].as_i64().unwrap()).collect()
}

/// The answer of a tail as it comes: by HTTP/1.0 it has no chunks.
pub struct Heard {
    lines: BufReader<TcpStream>,
}

/// The id, what it is, and the data.
pub type Told = (String, String, Json);

impl Heard {
    pub fn of(server: &Harness, path: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let request = format!(
            "GET {path} HTTP/1.0\r\nhost: x\r\nauthorization: Bearer {}\r\n{headers}\r\n",
            server.token
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.contains(" 200 "), "{line}");
        while line != "\r\n" {
            line.clear();
            lines.read_line(&mut line).unwrap();
            assert!(!line.to_lowercase().starts_with("content-encoding"), "{line}");
        }
        Self { lines }
    }

    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).unwrap();
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// What is told next, without what is said so that something is; `None` at the end.
    pub fn next(&mut self) -> Option<Told> {
        let (mut id, mut kind, mut data) = (String::new(), "message".to_owned(), None);
        loop {
            let line = self.line()?;
            match line.split_once(": ") {
                Some(("id", value)) => id = value.to_owned(),
                Some(("event", value)) => kind = value.to_owned(),
                Some(("data", value)) => data = Some(serde_json::from_str(value).unwrap()),
                _ if line.is_empty() => match data {
                    Some(data) => return Some((id, kind, data)),
                    None => kind = "message".to_owned(),
                },
                _ => assert_eq!(line, ":"),
            }
        }
    }

    pub fn rest(mut self) -> Vec<Told> {
        std::iter::from_fn(move || self.next()).collect()
    }
}

fn tail_of(server: &Harness, parameters: &str) -> Heard {
    Heard::of(server, &format!("{S}/tail{parameters}"), "")
}

fn told_numbers(told: &[Told]) -> Vec<i64> {
    told.iter().map(|(_, _, data)| data["n"].as_i64().unwrap()).collect()
}

#[test]
fn pages_go_from_the_newest_to_the_oldest_and_back() {
    let server = with_stream(&[]);
    post_numbers(&server, 0..25);
    for (order, expected) in
        [("newest", (0..25).rev().collect::<Vec<_>>()), ("oldest", (0..25).collect())]
    {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let path = format!("{S}/events?order={order}&limit=7{after}");
            let page = server.ask("GET", &path, "");
            assert_eq!(page.status, 200, "{}", page.text());
            let page = page.json();
            found.extend(page["events"].as_array().unwrap().clone());
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
            // At the time of the last one, and where the page has been.
            post(&server, r#"{"t": "2026-01-02 02:00:00", "n": -1}"#);
            post(&server, r#"{"t": "2026-01-02 04:00:00", "n": -1}"#);
        }
        let found: Vec<i64> = numbers(&found).into_iter().filter(|n| *n >= 0).collect();
        assert_eq!(found, expected);
    }
    let path = format!("{S}/events?from=2026-01-02T03:00:05Z&to=2026-01-02T03:00:10Z");
    let page = server.ask("GET", &path, "").json();
    assert_eq!(numbers(page["events"].as_array().unwrap()), [9, 8, 7, 6, 5]);
    assert_eq!(page["next"], Json::Null);
    let one = &page["events"][0];
    let got = server.ask("GET", &format!("{S}/events/{}", one["id"].as_str().unwrap()), "");
    assert_eq!(got.json()["n"], one["n"]);
    let filter = "%7B%22field%22:%22n%22,%22op%22:%22gte%22,%22value%22:20%7D";
    let page = server.ask("GET", &format!("{S}/events?where={filter}&limit=3"), "").json();
    assert_eq!(numbers(page["events"].as_array().unwrap()), [24, 23, 22]);
    assert!(page["next"].is_string());
}

#[test]
fn what_is_no_page_tail_or_export_is_refused_by_what_was_expected() {
    let server = with_stream(&[]);
    sql(&server, "CREATE TABLE plain (n i64)");
    let id = post(&server, "{}")["id"].as_str().unwrap().to_owned();
    post(&server, "{}");
    let other = "%7B%22field%22:%22n%22,%22op%22:%22in%22,%22value%22:%7B%22table%22:%22plain%22,\
                 %22select%22:%5B%22n%22%5D%7D%7D";
    let now = "%7B%22field%22:%22m%22,%22op%22:%22gt%22,%22value%22:1%7D";
    let refused = [
        ("events?limit=0".to_owned(), "limit: expected a number from 1 to 10000"),
        ("events?limit=10001".to_owned(), "limit: expected a number from 1 to 10000"),
        ("events?order=latest".to_owned(), "order: expected newest or oldest"),
        ("events?after=xyz".to_owned(), "after: expected what `next` of a page was"),
        (format!("events?after={id}"), "after: expected what `next` of a page was"),
        ("events?from=soon".to_owned(), "from: expected a time such as"),
        ("events?to=7".to_owned(), "to: expected a time such as"),
        ("events?where=n%20%3E%205".to_owned(), "where: "),
        ("events?where=%7B%7D,%22limit%22:1".to_owned(), "where: "),
        (format!("events?where={other}"), "where: "),
        (format!("tail?where={other}"), "where: "),
        (format!("tail?where={now}"), "where.field: unknown field"),
        ("tail?after=later".to_owned(), "after: expected now, start, the id of an event"),
        ("tail?after=999999".to_owned(), "has the row id 999999: expected at most"),
        ("tail?limit=0".to_owned(), "limit: expected a number from 1 on"),
        ("events/export?format=xml".to_owned(), "format: expected ndjson or csv"),
        ("events/export?after=now".to_owned(), "after: expected the id of an event"),
        ("events/export?after=999999".to_owned(), "expected at most"),
        (format!("events/export?where={other}"), "where: "),
    ];
    for (path, words) in refused {
        let answer = server.ask("GET", &format!("{S}/{path}"), "");
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        assert!(answer.text().contains(words), "{path}: {}", answer.text());
    }
    let last = [("last-event-id", "x")];
    let answer = server.send("GET", &format!("{S}/tail"), &last, b"");
    assert!(answer.text().contains("last-event-id: expected now"), "{}", answer.text());
    let (reader, stranger) = (server.token("read:default/events"), server.token("read:default/x"));
    for path in ["events", "events/export", "tail?after=start&limit=1"] {
        let within = [("esker-transaction", "0")];
        let answer = server.send("GET", &format!("{S}/{path}"), &within, b"");
        assert!(answer.text().contains("within a transaction"), "{}", answer.text());
        let answer = server.ask("GET", &format!("{D}/streams/plain/{path}"), "");
        assert!(answer.text().contains("is no stream"), "{}", answer.text());
        assert_eq!(server.ask("GET", &format!("{D}/streams/none/{path}"), "").status, 404);
        for (token, status) in [(&reader, 200), (&stranger, 403)] {
            let bearer = format!("Bearer {token}");
            let headers = [("authorization", bearer.as_str())];
            let answer = server.raw("GET", &format!("{S}/{path}"), &headers, b"");
            assert_eq!(answer.status, status, "{path}: {}", answer.text());
        }
    }
}

#[test]
fn a_tail_tells_what_comes_and_goes_on_where_it_was() {
    let server = with_stream(&[]);
    post_numbers(&server, 0..5);
    let mut now = tail_of(&server, "");
    assert_eq!(now.line().as_deref(), Some(":"), "it is open");
    let all = tail_of(&server, "?after=start&limit=5").rest();
    assert_eq!(told_numbers(&all), [0, 1, 2, 3, 4]);
    assert!(all.iter().all(|(id, kind, data)| data["id"] == **id && kind == "message"));
    for (at, (id, ..)) in all.iter().enumerate() {
        let after = format!("?after=start&limit={}", 5 - at);
        let header = format!("last-event-id: {id}\r\n");
        let mut rest = Heard::of(&server, &format!("{S}/tail{after}"), &header);
        for n in at + 1..5 {
            assert_eq!(rest.next().unwrap().2["n"], n);
        }
    }
    post_numbers(&server, 5..7);
    let (id, _, first) = now.next().unwrap();
    assert_eq!((first["n"].as_i64(), now.next().unwrap().2["n"].as_i64()), (Some(5), Some(6)));
    // One that is visible, and soon durable.
    let posted = server.ask("POST", &format!("{S}/events?durability=async"), r#"{"n": 7}"#);
    assert_eq!(posted.status, 202);
    assert_eq!(now.next().unwrap().2["n"], 7);
    assert_eq!(server.ask("DELETE", &format!("{S}/events/{id}"), "").status, 204);
    let filter = "%7B%22field%22:%22n%22,%22op%22:%22gte%22,%22value%22:3%7D";
    let some = tail_of(&server, &format!("?after=start&limit=4&where={filter}")).rest();
    assert_eq!(told_numbers(&some), [3, 4, 6, 7], "what is gone is not told");
    // Compressed, it would be kept back.
    let gzip = "accept-encoding: gzip, zstd\r\n";
    let mut plain = Heard::of(&server, &format!("{S}/tail?after=start"), gzip);
    assert_eq!(plain.next().unwrap().2["n"], 0);
}

#[test]
fn two_hundred_tails_beside_posts_hear_every_event_once_in_order() {
    const TAILS: usize = 200;
    const WRITERS: i64 = 4;
    const EACH: i64 = 40;
    let server = Arc::new(with_stream(&[]));
    let total = usize::try_from(WRITERS * EACH).unwrap();
    let heard: Vec<Vec<Told>> = std::thread::scope(|scope| {
        let tails: Vec<_> = (0..TAILS)
            .map(|_| {
                let server = Arc::clone(&server);
                let parameters = format!("?after=start&limit={total}");
                scope.spawn(move || tail_of(&server, &parameters).rest())
            })
            .collect();
        for writer in 0..WRITERS {
            let server = Arc::clone(&server);
            scope.spawn(move || {
                for i in 0..EACH {
                    let n = writer * EACH + i;
                    match i % 4 {
                        0 => drop(sql(&server, &format!("INSERT INTO events (n) VALUES ({n})"))),
                        1 => drop(server.ask(
                            "POST",
                            &format!("{S}/events?durability=async"),
                            &format!("{{\"n\": {n}}}"),
                        )),
                        _ => drop(post(&server, &format!("{{\"n\": {n}}}"))),
                    }
                }
            });
        }
        tails.into_iter().map(|tail| tail.join().unwrap()).collect()
    });
    let mut all = told_numbers(&heard[0]);
    all.sort_unstable();
    assert_eq!(all, (0..WRITERS * EACH).collect::<Vec<_>>());
    assert!(heard.iter().all(|other| *other == heard[0]));
}

fn tails_there(server: &Harness) -> usize {
    let sessions = server.ask("GET", &format!("{D}/sessions"), "").json();
    let sessions = sessions["sessions"].as_array().unwrap();
    sessions.iter().filter(|session| session["running"].to_string().contains("tail")).count()
}

#[test]
fn readers_that_never_read_cost_nobody_else() {
    let server = with_stream(&[("buffer_bytes_max", "64MiB")]);
    let silent: Vec<Heard> = (0..20).map(|_| tail_of(&server, "?after=start")).collect();
    let long = "x".repeat(60 << 10);
    let mut other = tail_of(&server, "?after=start");
    for n in 0..200 {
        post(&server, &format!("{{\"n\": {n}, \"what\": \"{long}\"}}"));
        assert_eq!(other.next().unwrap().2["n"], n);
    }
    // 12 MB wait for each of them, of which about a piece each is in memory.
    let used = server.access_control.budget.used();
    assert!(used < 20 * (2 << 20), "{used}");
    assert_eq!(tails_there(&server), 21);
    drop((silent, other));
    until("tails are left", || tails_there(&server) == 0);
    until("memory is left", || server.access_control.budget.used() == 0);
}

#[test]
fn tails_end_with_the_server_their_session_their_token_and_their_stream() {
    let mut server = with_stream(&[("idle_timeout", "2s"), ("drain_timeout", "20s")]);
    sql(&server, "CREATE TABLE other (t timestamp NOT NULL DEFAULT now()) WITH (stream = 't')");
    let mut ended = tail_of(&server, "");
    until("it is not listed", || tails_there(&server) == 1);
    let sessions = server.ask("GET", &format!("{D}/sessions"), "").json();
    let sessions = sessions["sessions"].as_array().unwrap();
    let is_tail = |session: &&Json| session["running"].to_string().contains("tail");
    let id = sessions.iter().find(is_tail).unwrap()["id"].as_u64().unwrap();
    let path = format!("{D}/sessions/{id}");
    assert_eq!(server.ask("DELETE", &path, "").status, 204);
    let (_, kind, data) = ended.next().unwrap();
    assert_eq!((kind.as_str(), data["code"].as_str()), ("error", Some("cancelled")));
    assert!(ended.next().is_none());
    // A token that is removed, and a stream.
    let reader = server.token("read:default/events");
    let token = std::mem::replace(&mut server.token, reader);
    let mut removed = tail_of(&server, "");
    let text = std::mem::replace(&mut server.token, token);
    let mut dropped = Heard::of(&server, &format!("{D}/streams/other/tail"), "");
    let number = text.split('_').nth(1).unwrap();
    let path = format!("/v1/tokens/{number}");
    assert_eq!(server.ask("DELETE", &path, "").status, 204);
    sql(&server, "DROP TABLE other");
    let (_, kind, data) = removed.next().unwrap();
    assert_eq!((kind.as_str(), data["code"].as_str()), ("error", Some("unauthenticated")));
    let (_, kind, data) = dropped.next().unwrap();
    assert_eq!((kind.as_str(), data["code"].as_str()), ("error", Some("not_found")));
    // Beyond the time that a silent connection has, and then to the end of the server.
    let open = tail_of(&server, "");
    std::thread::sleep(Duration::from_millis(2_500));
    let began = Instant::now();
    let stopped = server.begin_stop();
    assert_eq!(open.rest(), []);
    stopped();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn an_export_has_all_events_and_goes_on_behind_any_of_them() {
    let server = with_stream(&[]);
    let rows: String =
        (0..20_000).map(|n| format!("{{\"n\": {n}, \"what\": \"a,b\"}}\n")).collect();
    let loaded = server.send(
        "POST",
        &format!("{D}/tables/events/rows"),
        &[("content-type", "application/x-ndjson")],
        rows.as_bytes(),
    );
    assert_eq!(loaded.status, 200, "{}", loaded.text());
    post_numbers(&server, 20_000..20_005);
    sql(&server, "DELETE FROM events WHERE n % 2 = 1");
    let all = server.ask("GET", &format!("{S}/events/export"), "");
    assert_eq!((all.status, all.header("content-type")), (200, "application/x-ndjson"));
    let lines: Vec<Json> = all.text().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(numbers(&lines), (0..20_005).step_by(2).collect::<Vec<_>>());
    for at in [0, 4_999, 9_999, 10_002] {
        let after = lines[at]["id"].as_str().unwrap();
        let rest = server.ask("GET", &format!("{S}/events/export?after={after}"), "");
        let rest: Vec<Json> =
            rest.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rest, lines[at + 1..]);
    }
    let filter = "%7B%22field%22:%22n%22,%22op%22:%22lt%22,%22value%22:4%7D";
    let path = format!("{S}/events/export?format=csv&where={filter}");
    let csv = server.ask("GET", &path, "");
    assert_eq!(csv.header("content-type"), "text/csv");
    let text = csv.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (3, "id,t,n,what"));
    assert!(lines[1].ends_with(",0,\"a,b\""), "{}", lines[1]);
    let path = format!("{S}/events/export?from=2026-01-02&to=2026-01-03");
    assert_eq!(server.ask("GET", &path, "").text().lines().count(), 3);
    // One who goes away holds nothing.
    let mut gone = TcpStream::connect(server.address).unwrap();
    let request = format!(
        "GET {S}/events/export HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n",
        server.token
    );
    gone.write_all(request.as_bytes()).unwrap();
    gone.read_exact(&mut [0; 100]).unwrap();
    drop(gone);
    until("memory is left", || server.access_control.budget.used() == 0);
}

/// The event's own field stays what it is.
#[test]
fn a_field_that_is_called_id_has_another_name_beside_the_id() {
    let server = Harness::new(&[]);
    let fields = "id i64, t timestamp NOT NULL DEFAULT now()";
    sql(&server, &format!("CREATE TABLE events ({fields}) WITH (stream = 't')"));
    let id = post(&server, r#"{"id": 7}"#)["id"].as_str().unwrap().to_owned();
    let page = server.ask("GET", &format!("{S}/events"), "").json();
    assert_eq!((&page["events"][0]["id"], &page["events"][0]["id_2"]), (&id.into(), &7.into()));
}

#[test]
fn events_are_removed_by_a_condition_and_erased() {
    let server = with_stream(&[]);
    post_numbers(&server, 0..100);
    let removed = |query: &str| server.ask("DELETE", &format!("{S}/events{query}"), "");
    let where_n = |op: &str, n: i64| {
        let json = serde_json::json!({ "field": "n", "op": op, "value": n }).to_string();
        json.replace('"', "%22").replace(' ', "")
    };
    let answer = removed(&format!("?where={}", where_n("lt", 10)));
    assert_eq!((answer.status, answer.json()), (200, serde_json::json!({ "removed": 10 })));
    let range = format!("?before=2026-01-02T03:00:30Z&where={}", where_n("gte", 20));
    assert_eq!(removed(&range).json(), serde_json::json!({ "removed": 10 }));
    let answer = removed(&format!("?erase=true&where={}", where_n("lt", 50)));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let erased = answer.json();
    assert_eq!((&erased["removed"], &erased["erasure"]), (&30.into(), &1.into()));
    assert!(erased["bytes_left"].as_u64().is_some(), "{erased}");
    let answer = removed("?erase=true&before=2026-01-02T03:01:00Z").json();
    assert_eq!((&answer["removed"], &answer["erasure"]), (&10.into(), &2.into()));
    assert_eq!(removed("?before=2026-01-02T03:01:10Z").json()["removed"], 10);
    let rows = sql(&server, "SELECT n FROM events")["rows"].as_array().unwrap().len();
    assert_eq!(rows, 30);
    let done = "SELECT count(*) AS n FROM esker_erasures WHERE finished_at IS NOT NULL";
    until("they are done", || sql(&server, done)["rows"][0]["n"] == 2);
    for wrong in ["", "?erase=true", "?erase=maybe&before=2026-01-02T03:01:00Z", "?where={}"] {
        let refused = removed(wrong);
        assert_eq!(refused.status, 400, "{wrong}: {}", refused.text());
    }
    let lists = server.ask("GET", &format!("{D}/buckets"), "").text();
    assert!(!lists.contains("esker_erasure_records"), "{lists}");
}
