//! Tests of what lines do that are more than a request and its answer.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use esker_wire::{Kind, pack};

use super::OPERATIONS;
use crate::ServerConfig;
use crate::protocol::binary::safety::{access_control, code_of, hello, serve, token};
use crate::protocol::binary::tests::Running;
use crate::resources::budget::{Budget, SMALL_BYTES};
use crate::tenant::{TENANT_LOADS_MAX, TenantLimits, TenantName};

struct Lines(TcpStream, BufReader<TcpStream>);

impl Lines {
    fn connect(server: &Running) -> Self {
        let stream = server.connect();
        let mut lines = Self(stream.try_clone().unwrap(), BufReader::new(stream));
        let table = r#"{"op": "sql", "sql": "CREATE TABLE t (id i64 PRIMARY KEY, name text)"}"#;
        lines.ask(table);
        lines
    }

    fn send(&mut self, lines: &str) {
        // In one piece: the system delays the second of two small ones.
        self.0.write_all(format!("{lines}\n").as_bytes()).unwrap();
    }

    fn next(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.next()
    }

    fn count(&mut self) -> String {
        self.ask(r#"{"op": "sql", "sql": "SELECT count(*) AS n FROM t"}"#)
    }
}

#[test]
fn buckets_are_counted_on_and_listed() {
    let server = Running::empty();
    let mut lines = Lines::connect(&server);
    for key in ["aa", "ab", "b"] {
        let put = format!(r#"{{"op": "bucket_put", "bucket": "e", "key": "{key}", "value": "v"}}"#);
        lines.ask(&put);
    }
    let range = |more: &str| format!(r#"{{"op": "bucket_range", "bucket": "e"{more}}}"#);
    let told = lines.ask(&range(r#", "prefix": "a", "reverse": true"#));
    assert_eq!(told, r#"{"ok":true,"entries":[["ab","v"],["aa","v"]]}"#);
    let told = lines.ask(&range(r#", "from": "ab", "to": "c", "limit": 1"#));
    assert_eq!(told, r#"{"ok":true,"entries":[["ab","v"]]}"#);
    let add = r#"{"op": "bucket_increment", "bucket": "e", "key": "n", "by": 41}"#;
    assert_eq!(lines.ask(add), r#"{"ok":true,"number":41}"#);
    let one = r#"{"op": "bucket_increment", "bucket": "e", "key": "n"}"#;
    assert_eq!(lines.ask(one), r#"{"ok":true,"number":42}"#);
}

#[test]
fn many_rows_are_changed_by_one_line() {
    let server = Running::empty();
    let mut lines = Lines::connect(&server);
    lines.ask(r#"{"op": "insert", "table": "t", "rows": [{"id": 1}, {"id": 2}]}"#);
    let update = r#"{"op": "update_many", "table": "t", "updates": [
        {"key": 1, "fields": {"name": "x"}}, {"key": 9, "fields": {"name": "y"}}]}"#;
    assert_eq!(lines.ask(&update.replace('\n', " ")), r#"{"ok":true,"changed":1}"#);
    let wrong = r#"{"op": "update_many", "table": "t", "updates": [
        {"key": 2, "fields": {"name": "z"}}, {"key": 1, "fields": {"nam": "y"}}]}"#;
    let told = lines.ask(&wrong.replace('\n', " "));
    assert!(told.contains("update 1") && told.contains("did you mean"), "{told}");
    let rows = lines.ask(r#"{"op": "get", "table": "t", "keys": [1, 2]}"#);
    assert_eq!(rows, r#"{"ok":true,"rows":[{"id":1,"name":"x"},{"id":2,"name":null}]}"#);
}

#[test]
fn rows_behind_a_load_are_stored_all_or_none() {
    let server = Running::empty();
    let mut lines = Lines::connect(&server);
    let rows: Vec<String> =
        (0..5_000).map(|id| format!("{{\"id\": {id}, \"name\": \"row {id}\"}}")).collect();
    lines.send("{\"id\": \"l\", \"op\": \"load\", \"table\": \"t\"}");
    lines.send(&rows.join("\n"));
    assert_eq!(lines.ask(""), r#"{"id":"l","ok":true,"stored":5000}"#);
    // A key that is there, and a field that is not: each refused by one answer, rows apart.
    for (more, row, code) in [
        ("", r#"{"id": 7}"#, "already_exists"),
        ("", r#"{"id": 6000, "nam": 1}"#, "invalid_request"),
        (r#", "on_duplicate": "never""#, r#"{"id": 6001}"#, "invalid_request"),
    ] {
        lines.send(&format!("{{\"op\": \"load\", \"table\": \"t\"{more}}}"));
        lines.send("{\"id\": 5999}");
        lines.send(row);
        let told = lines.ask("");
        assert!(told.contains(code), "{told}");
    }
    lines.send(r#"{"op": "load", "table": "t", "on_duplicate": "skip"}"#);
    lines.send("{\"id\": 7}\n{\"id\": 5000}");
    assert_eq!(lines.ask(""), r#"{"ok":true,"stored":1}"#);
    assert_eq!(lines.count(), r#"{"ok":true,"rows":[{"n":5001}]}"#);
    lines.ask(r#"{"op": "begin"}"#);
    lines.send("{\"op\": \"load\", \"table\": \"t\"}\n{\"id\": 9000}");
    let told = lines.ask("");
    assert!(told.contains("expected no transaction"), "{told}");
    lines.ask(r#"{"op": "rollback"}"#);
    // Whoever goes before the empty line has loaded nothing.
    let mut other = server.connect();
    writeln!(other, "{{\"op\": \"load\", \"table\": \"t\"}}\n{{\"id\": 9001}}").unwrap();
    other.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = String::new();
    BufReader::new(other).read_line(&mut rest).unwrap();
    assert_eq!((rest.as_str(), lines.count().contains("5001")), ("", true));
}

/// A line with every member that there is, apart from those of every operation.
const ALL_MEMBERS: &str = r#""token": "t", "database": "d", "table": "t", "bucket": "e", "key": "1",
    "keys": [1], "row": {"id": 1}, "rows": [{"id": 1}], "fields": {}, "updates": [],
    "on_duplicate": "skip", "value": "v", "ttl_ms": 1, "by": 1, "from": "a", "to": "b",
    "prefix": "p", "limit": 1, "request": 1, "reverse": false, "replace": false, "sql": "SELECT 1",
    "parameters": [1], "query": {}, "admin": {}, "serializable": false, "read_only": false"#;

#[test]
fn members_that_are_not_for_what_is_asked_are_refused() {
    let server = Running::empty();
    let mut lines = Lines::connect(&server);
    let insert = |members: &str| format!(r#"{{"id": 3, "op": "insert", "row": {{}}, {members}}}"#);
    for (members, wanted) in [
        (
            r#""table": "t", "on_duplicate": "skip""#,
            r#"\"on_duplicate\"; members: table, row, rows, replace, id, op, idempotency_key"#,
        ),
        (r#""tabel": "t""#, r#"\"tabel\"; did you mean \"table\"?"#),
    ] {
        let code = r#"{"id":3,"error":{"code":"invalid_request","message":"#;
        let wanted = format!(r#"{code}"op \"insert\": unknown member {wanted}"}}}}"#);
        assert_eq!(lines.ask(&insert(members)), wanted);
    }
    // A null is as if it were not there.
    let null = r#"{"op": "insert", "table": "t", "row": {"id": 1}, "on_duplicate": null}"#;
    assert_eq!(lines.ask(null), r#"{"ok":true,"stored":1}"#);
    // Each is refused by each operation that does not take it.
    let all = format!("{{{ALL_MEMBERS}}}");
    let all: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&all).unwrap();
    for (op, known) in OPERATIONS.into_iter().filter(|(op, _)| *op != "load") {
        assert!(known.iter().all(|name| all.contains_key(*name)), "{op} {known:?}");
        for (name, value) in all.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
            let line = format!("{{\"op\": \"{op}\", \"{name}\": {value}}}");
            let told = lines.ask(&line);
            assert!(told.contains(&format!("unknown member \\\"{name}\\\"")), "{line} {told}");
        }
    }
    // Rows behind a load that is refused for them are no requests.
    for more in [r#""replace": true"#, r#""on_duplicates": "skip""#] {
        lines.send(&format!("{{\"id\": 5, \"op\": \"load\", \"table\": \"t\", {more}}}"));
        lines.send(r#"{"op": "sql", "sql": "DELETE FROM t"}"#);
        let told = lines.ask("");
        assert!(told.starts_with("{\"id\":5,") && told.contains("unknown member"), "{told}");
    }
    assert_eq!(lines.count(), r#"{"ok":true,"rows":[{"n":1}]}"#);
}

#[test]
fn a_parameter_beyond_every_float_is_refused() {
    let server = Running::empty();
    let mut lines = Lines::connect(&server);
    let told = lines.ask(r#"{"op": "sql", "sql": "SELECT ?1", "parameters": [1e400]}"#);
    assert!(told.contains("parameter 1e400: expected"), "{told}");
}

/// It passed for a statement that only reads, and was done.
#[test]
fn the_end_of_a_transaction_takes_no_key() {
    let server = Running::empty();
    let mut lines = Lines::connect(&server);
    for end in ["COMMIT", "ROLLBACK", "-- a comment\\nCOMMIT"] {
        lines.ask(r#"{"op": "begin"}"#);
        lines.ask(r#"{"op": "insert", "table": "t", "row": {"id": 1}}"#);
        let with_key = format!(r#"{{"op": "sql", "sql": "{end}", "idempotency_key": "k"}}"#);
        let told = lines.ask(&with_key);
        assert!(told.contains("idempotency-key: not within a transaction"), "{told}");
        assert_eq!(lines.ask(r#"{"op": "rollback"}"#), r#"{"ok":true}"#, "it goes on");
        let told = lines.ask(&with_key);
        assert!(told.contains("idempotency-key: not within a transaction"), "{told}");
    }
    assert_eq!(lines.count(), r#"{"ok":true,"rows":[{"n":0}]}"#);
}

#[test]
fn sequences_take_no_key_and_no_advice_about_transactions() {
    let server = Running::empty();
    let mut lines = Lines::connect(&server);
    for text in ["CREATE SEQUENCE s", "DROP SEQUENCE s"] {
        let told =
            lines.ask(&format!(r#"{{"op": "sql", "sql": "{text}", "idempotency_key": "k"}}"#));
        assert!(told.contains("idempotency-key: not for sequences"), "{told}");
        let told = lines.ask(&format!(r#"{{"op": "sql", "sql": "{text}"}}"#));
        assert!(told.contains("\"ok\":true"), "{told}");
    }
}

#[test]
fn a_parameter_too_many_is_refused() {
    let server = Running::empty();
    let mut lines = Lines::connect(&server);
    lines.ask(r#"{"op": "insert", "table": "t", "row": {"id": 1}}"#);
    let told = lines.ask(r#"{"op": "sql", "sql": "DELETE FROM t", "parameters": [7]}"#);
    assert!(told.contains("invalid_request") && told.contains("0 parameters, found 1"), "{told}");
    assert_eq!(lines.count(), r#"{"ok":true,"rows":[{"n":1}]}"#);
}

#[test]
fn a_line_ends_the_request_that_it_names() {
    let server = Running::empty();
    let mut lines = Lines::connect(&server);
    lines.send("{\"op\": \"load\", \"table\": \"t\"}");
    let rows: Vec<String> = (0..20_000).map(|id| format!("{{\"id\": {id}}}")).collect();
    lines.send(&rows.join("\n"));
    lines.ask("");
    let sql = "SELECT count(*) AS n FROM t a JOIN t b ON a.id <= b.id JOIN t c ON b.id <= c.id";
    lines.send(&format!("{{\"id\": 5, \"op\": \"sql\", \"sql\": \"{sql}\"}}"));
    // Not this one, and not by somebody else's id.
    lines.send("{\"op\": \"cancel\", \"request\": 4}\n{\"op\": \"ping\"}");
    lines.send("{\"op\": \"cancel\", \"request\": 5}");
    let told = lines.next();
    assert!(told.starts_with(r#"{"id":5,"error":{"code":"cancelled""#), "{told}");
    assert_eq!(lines.next(), r#"{"ok":true}"#, "what waited is done");
    assert_eq!(
        lines.ask(
            r#"{"op": "cancel", "request": 5}
{"op": "ping", "id": 6}"#
        ),
        r#"{"id":6,"ok":true}"#,
        "there is nothing to end"
    );
}

#[test]
fn what_is_cancelled_before_it_is_done_ends_nothing_behind_it() {
    let server = Running::empty();
    let mut lines = Lines::connect(&server);
    // The first has no table, and is refused before it is done.
    let refused = r#"{"id": 5, "op": "get"}"#;
    let cancel = r#"{"op": "cancel", "request": 5}"#;
    let told = lines.ask(&format!("{refused}\n{cancel}\n{{\"id\": 6, \"op\": \"ping\"}}"));
    assert!(told.starts_with(r#"{"id":5,"error""#), "{told}");
    assert_eq!(lines.next(), r#"{"id":6,"ok":true}"#);
}

#[test]
fn a_row_before_a_hello_is_no_larger_than_a_request() {
    let access_control = access_control(TenantLimits::default());
    let server = serve(&access_control);
    let stream = server.connect();
    let mut lines = Lines(stream.try_clone().unwrap(), BufReader::new(stream));
    lines.send(r#"{"id": 1, "op": "load", "table": "t"}"#);
    // Not the end of a row: the server would wait for more.
    lines.0.write_all(&vec![b'x'; SMALL_BYTES + 1]).unwrap();
    let told = lines.next();
    assert!(told.contains("limit_exceeded") && told.contains("a row of more than 65536"), "{told}");
    assert_eq!(lines.next(), "", "the connection has ended");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "sockets take real time")]
fn a_part_of_a_row_of_a_load_has_a_share_of_the_budget() {
    const BYTES: usize = 1 << 20;
    let budget = Budget::new(64 << 20);
    let change = ServerConfig { budget: Arc::clone(&budget), ..ServerConfig::default() };
    let database = esker::Options::new().memory().unwrap();
    let server =
        Running::with(change, || Arc::new(crate::auth::authenticator::Open::new(&database)));
    let mut lines = Lines::connect(&server);
    lines.send(r#"{"op": "load", "table": "t"}"#);
    lines.0.write_all(b"{\"id\": 1, \"name\": \"").unwrap();
    lines.0.write_all(&vec![b'x'; BYTES]).unwrap();
    let patience = Instant::now();
    while budget.used() < BYTES {
        assert!(patience.elapsed() < Duration::from_secs(10), "{} used", budget.used());
        std::thread::sleep(Duration::from_millis(5));
    }
    lines.send("\"}");
    assert_eq!(lines.ask(""), r#"{"ok":true,"stored":1}"#);
    drop(server);
    assert_eq!(budget.used(), 0, "all of it is given back");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "sockets take real time")]
fn a_load_ends_with_its_session() {
    let access_control = access_control(TenantLimits::default());
    let server = serve(&access_control);
    let stream = server.connect();
    let mut lines = Lines(stream.try_clone().unwrap(), BufReader::new(stream));
    lines.ask(&format!(
        r#"{{"op": "hello", "token": "{}"}}"#,
        token(&access_control, "admin", None).1
    ));
    lines.ask(r#"{"op": "sql", "sql": "CREATE TABLE t (id i64 PRIMARY KEY)"}"#);
    lines.send("{\"op\": \"load\", \"table\": \"t\"}\n{\"id\": 1}");
    let main = TenantName::main();
    let active_session = access_control.active_sessions.list(&main)[0].id;
    assert!(access_control.active_sessions.end(active_session, &main));
    // Nobody may be there any more to read this.
    let _ = lines.0.write_all(b"\n");
    let mut told = String::new();
    let _ = lines.1.read_line(&mut told);
    assert_eq!(told, "", "the connection has ended");
    let table = access_control.tenants.get(&main).unwrap().database.table("t").unwrap();
    assert_eq!(table.count().unwrap(), 0);
}

#[test]
fn a_load_too_many_waits_for_its_turn() {
    let access_control = access_control(TenantLimits::default());
    let server = serve(&access_control);
    let tenant = access_control.tenants.get(&TenantName::main()).unwrap();
    let stream = server.connect();
    let mut lines = Lines(stream.try_clone().unwrap(), BufReader::new(stream));
    let token = token(&access_control, "admin", None).1;
    lines.ask(&format!(r#"{{"op": "hello", "token": "{token}"}}"#));
    lines.ask(r#"{"op": "sql", "sql": "CREATE TABLE t (id i64 PRIMARY KEY)"}"#);
    let mut others: Vec<_> = std::iter::from_fn(|| tenant.usage.loads().try_begin()).collect();
    assert_eq!(others.len(), TENANT_LOADS_MAX);
    lines.send("{\"op\": \"load\", \"table\": \"t\"}\n{\"id\": 1}\n");
    let mut client = server.binary();
    assert_eq!(hello(&mut client, Some(&token), None), None);
    client.send(2, Kind::BulkBegin, |out| {
        pack::array(out, 3);
        ["t", "ndjson", "error"].iter().for_each(|text| pack::text(out, text));
    });
    client.send(2, Kind::BulkEnd, |_| ());
    // What comes behind it is answered before it.
    client.send(3, Kind::Ping, |_| ());
    assert_eq!(client.receive().0, 3);
    others.pop();
    assert_eq!(lines.next(), r#"{"ok":true,"stored":1}"#);
    let (id, kind, payload) = client.receive();
    assert_eq!((id, kind), (2, Kind::Done), "{}", code_of(&payload));
    drop(others);
    let all: Vec<_> = std::iter::from_fn(|| tenant.usage.loads().try_begin()).collect();
    assert_eq!(all.len(), TENANT_LOADS_MAX, "its place is given back");
}
