//! Changes of tables as they are made: server-sent events of whole commits.

use serde_json::{Value as Json, json};

use super::client::Harness;
use super::event_reads::{Heard, Told, sql};

const T: &str = "/v1/databases/default/tables/orders";

fn with_feed() -> Harness {
    let server = Harness::new(&[]);
    let options = "WITH (changes = '1 day', changes_by = 'old')";
    sql(&server, &format!("CREATE TABLE orders (id i64 PRIMARY KEY, state text) {options}"));
    server
}

fn heard(server: &Harness, parameters: &str, headers: &str) -> Heard {
    Heard::of(server, &format!("{T}/changes{parameters}"), headers)
}

/// What was done, by commit.
fn ops(told: &[Told]) -> Vec<Vec<&str>> {
    let of = |data: &'_ Json| data["changes"].as_array().unwrap().clone();
    let names = ["insert", "update", "delete", "truncate"];
    let op = |change: &Json| *names.iter().find(|name| change["op"] == **name).unwrap();
    told.iter().map(|(.., data)| of(data).iter().map(op).collect()).collect()
}

#[test]
fn commits_are_told_whole_and_go_on_where_they_were() {
    let server = with_feed();
    let mut now = heard(&server, "", "");
    assert_eq!(now.line().as_deref(), Some(":"), "it is open");
    sql(&server, "INSERT INTO orders VALUES (1, 'new'), (2, 'new')");
    sql(&server, "UPDATE orders SET state = 'paid' WHERE id = 2");
    sql(&server, "DELETE FROM orders WHERE id = 1");
    let all = heard(&server, "?after=start&limit=3", "").rest();
    assert_eq!(ops(&all), [vec!["insert", "insert"], vec!["update"], vec!["delete"]]);
    let (id, kind, data) = &all[1];
    assert_eq!((kind.as_str(), &data["commit"]), ("message", &json!(id)));
    assert!(data["at"].as_str().unwrap().starts_with("20"), "{data}");
    let row = |state: &str| json!({ "id": 2, "state": state });
    let changed =
        json!([{ "op": "update", "key": { "id": 2 }, "new": row("paid"), "old": row("new") }]);
    assert_eq!(data["changes"], changed);
    assert_eq!(all[2].2["changes"][0]["new"], Json::Null);
    for (i, (id, ..)) in all.iter().enumerate().take(2) {
        let rest = heard(&server, &format!("?after={id}&limit={}", 2 - i), "").rest();
        assert_eq!(rest, all[i + 1..]);
        // One that comes again says so beside what it asked for first.
        let last = format!("last-event-id: {id}\r\n");
        let rest = heard(&server, &format!("?after=start&limit={}", 2 - i), &last).rest();
        assert_eq!(rest, all[i + 1..]);
    }
    assert_eq!([now.next().unwrap(), now.next().unwrap(), now.next().unwrap()], all[..]);
    sql(&server, "TRUNCATE orders");
    assert_eq!(ops(&[now.next().unwrap()]), [["truncate"]]);
}

#[test]
fn a_place_that_is_gone_is_told_with_the_one_to_begin_at() {
    let server = with_feed();
    sql(&server, "INSERT INTO orders VALUES (1, 'new')");
    let first = heard(&server, "?after=start&limit=1", "").rest().remove(0).0;
    let mut before = heard(&server, &format!("?after={first}"), "");
    sql(&server, "ALTER TABLE orders RESET (changes)");
    sql(&server, "ALTER TABLE orders SET (changes = '1 day')");
    sql(&server, "INSERT INTO orders VALUES (2, 'new')");
    let answer = server.ask("GET", &format!("{T}/changes?after={first}"), "");
    assert_eq!(answer.status, 410, "{}", answer.text());
    let problem = answer.json();
    assert_eq!(problem["code"], "cursor_gone");
    assert!(problem["detail"].as_str().unwrap().contains("read its rows anew"), "{problem}");
    let place = problem["after"].as_str().unwrap();
    sql(&server, "INSERT INTO orders VALUES (3, 'new')");
    let rest = heard(&server, &format!("?after={place}&limit=1"), "").rest();
    assert_eq!(rest[0].2["changes"][0]["key"], json!({ "id": 3 }));
    // One that was open is ended.
    let (_, kind, data) = before.next().unwrap();
    assert_eq!((kind.as_str(), &data["code"]), ("error", &json!("not_found")));
    assert_eq!(before.next(), None);
}

#[test]
fn who_may_read_the_table_may_read_its_changes() {
    let server = with_feed();
    sql(&server, "INSERT INTO orders VALUES (1, 'new')");
    sql(&server, "CREATE TABLE plain (n i64)");
    for (path, status, words) in [
        (format!("{T}/changes?after=later"), 400, "after: expected now, start, or the cursor"),
        (format!("{T}/changes?limit=0"), 400, "limit: expected a number from 1 on"),
        ("/v1/databases/default/tables/plain/changes".to_owned(), 400, "keeps no changes"),
        ("/v1/databases/default/tables/none/changes".to_owned(), 404, "none"),
    ] {
        let answer = server.ask("GET", &path, "");
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert!(answer.text().contains(words), "{path}: {}", answer.text());
    }
    let query = json!({ "sql": "SELECT op FROM changes('orders')" }).to_string();
    for (scope, status) in [("read:default/orders", 200), ("read:default/plain", 403)] {
        let bearer = format!("Bearer {}", server.token(scope));
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let path = format!("{T}/changes?after=start&limit=1");
        let answer = server.raw("GET", &path, &headers, b"");
        assert_eq!(answer.status, status, "{scope}: {}", answer.text());
        let path = "/v1/databases/default/query";
        let answer = server.raw("POST", path, &headers, query.as_bytes());
        assert_eq!(answer.status, status, "{scope}: {}", answer.text());
    }
}
