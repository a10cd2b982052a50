//! Each command says the same of a server as of a directory.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::process::Command;

use crate::sandbox::Sandbox;
use crate::served::{both, said, serve};

#[test]
fn a_server_is_asked_as_a_directory_is() {
    let sandbox = Sandbox::new("remote");
    let (_served, url) = serve(&sandbox, &["--trust-local"]);
    let create = "CREATE TABLE t (id i64 PRIMARY KEY, name text, price decimal(9, 2), day date, \
                  doc json, raw bytes, kind enum('a', 'b'))";
    both(&sandbox, &url, &["sql", create]);
    for command in [
        &[
            "sql",
            "INSERT INTO t VALUES (1, 'tea', 2.50, '2024-02-29', '{\"a\": [1]}', X'00ff', 'b')",
        ][..],
        &["sql", "INSERT INTO t (id, name) VALUES (2, NULL), (3, '') RETURNING id, name"],
        &["sql", "SELECT * FROM t ORDER BY id"],
        &["sql", "SELECT * FROM t ORDER BY id", "--format", "json"],
        &["sql", "SELECT * FROM t ORDER BY id", "--format", "table"],
        &["sql", "SELECT count(*) AS n, sum(price) FROM t; UPDATE t SET name = 'x' WHERE id > 1"],
        &["sql", "SELECT id FROM t WHERE id > 99"],
        &["sql", "EXPLAIN SELECT id FROM t WHERE id = 1"],
        &["sql", "DELETE FROM t WHERE id = 3 RETURNING *"],
        &["sql", "SELEC 1"],
        &["sql", "SELECT nam FROM t"],
        &["sql", "SELECT 1 FROM nowhere"],
        &["sql", "INSERT INTO t (id) VALUES (1)"],
        &["sql", "INSERT INTO t (id, price) VALUES (9, 'much')"],
        &["sql", "BEGIN; INSERT INTO t (id) VALUES (50); ROLLBACK"],
        &["sql", "BEGIN; INSERT INTO t (id) VALUES (51)"],
        &["sql", "CREATE INDEX by_name ON t (name); DROP INDEX by_name"],
        &[
            "sql",
            "CREATE TABLE u (n i64); INSERT INTO u VALUES (1), (2); TRUNCATE TABLE u; DROP TABLE u",
        ],
        &["sql", ""],
        &["get", "t", "1"],
        &["get", "t", "1", "--format", "json"],
        &["get", "t", "77"],
        &["get", "t", "one"],
        &["get", "nowhere", "1"],
        &["insert", "t", "id=4", "name=rice", "price=1.25", "day=2024-03-01", "kind=a"],
        &["insert", "t", "id=4"],
        &["insert", "t", "id=5", "size=4"],
        &["insert", "t", "id=5", "price=a"],
        &["put", "t", r#"{"id": 4, "name": "salt", "doc": {"b": null}}"#],
        &["get", "t", "4"],
        &["delete", "t", "4"],
        &["delete", "t", "4"],
        &[
            "query",
            r#"{"table": "t", "where": {"field": "id", "op": "lt", "value": 9}, "order": ["id"]}"#,
        ],
        &["query", r#"{"table": "t", "ordr": ["id"]}"#],
        &["query", r#"{"table": "t", "order": ["nothing"]}"#],
    ] {
        let (code, _, error) = both(&sandbox, &url, command);
        assert_eq!(code == Some(0), !error.contains("error: "), "{command:?}: {error}");
    }
    let page = r#"{"table": "t", "order": ["id"], "limit": 1, "cursor": null, "total": true}"#;
    let (_, out, error) = said(&sandbox.run_with(&["query", &format!("esker://{url}"), page], ""));
    assert!(out.starts_with("id,name") && error.contains("total: 2"), "{out}{error}");
    assert!(error.contains("next: "), "{error}");
}

/// A summary without what took how long.
fn untimed(said: (Option<i32>, String, String)) -> (Option<i32>, String, String) {
    let (code, out, error) = said;
    let cut = |line: &str| match line.split_once(" in ").zip(line.rsplit_once(", durable")) {
        Some(((before, _), (_, after))) => format!("{before}, durable{after}"),
        None => line.to_owned(),
    };
    (code, out.lines().map(cut).collect::<Vec<_>>().join("\n"), error)
}

#[test]
fn files_are_loaded_into_a_server_as_into_a_directory() {
    let sandbox = Sandbox::new("remote-load");
    let (_served, url) = serve(&sandbox, &["--trust-local"]);
    let rows = "id,name,price,day,doc,kind\n1,tea,2.50,2024-02-29,\"{\"\"a\"\": [1]}\",b\n2,,,,,\n";
    sandbox.write("t.csv", rows);
    sandbox.write("more.ndjson", "{\"id\": 2, \"name\": \"x\"}\n{\"id\": 3, \"kind\": \"a\"}\n");
    sandbox.write("wrong.csv", "id,name\n7,seven\nten,ten\n8,eight\n");
    sandbox.write("plain.csv", "city,n\nRome,1\nOslo,2\n");
    let schema = "id i64 not null, name text, price decimal(9, 2), day date, doc json, \
                  kind enum('a', 'b'), primary key (id)";
    for command in [
        &["load", "t", "t.csv", "--schema", schema, "--index", "name, id desc"][..],
        &["load", "t", "t.csv"],
        &["load", "t", "more.ndjson", "--append", "--on-duplicate", "replace"],
        &["load", "t", "more.ndjson", "--append", "--on-duplicate", "skip"],
        &["load", "t", "wrong.csv", "--append"],
        &["load", "t", "wrong.csv", "--append", "--on-error", "skip"],
        &["load", "absent", "t.csv", "--append"],
        &["load", "absent", "nowhere.csv"],
        &["load", "plain", "plain.csv"],
        &["sql", "SELECT * FROM t ORDER BY id"],
        &["sql", "SELECT * FROM plain ORDER BY n"],
        &["sql", "SELECT * FROM absent"],
    ] {
        let (name, rest) = command.split_first().unwrap();
        let here = untimed(said(&sandbox.run_with(&[&[*name, "here"], rest].concat(), "")));
        let there = [&["--connect", &url, name], rest].concat();
        assert_eq!(untimed(said(&sandbox.run_with(&there, ""))), here, "{command:?}");
    }
    // Two rows of one key: nothing is loaded, and a table that was made is gone.
    sandbox.write("twice.csv", "id\n1\n1\n");
    let arguments = ["--connect", &url, "load", "twice", "twice.csv", "--key", "id"];
    let (code, _, error) = said(&sandbox.run_with(&arguments, ""));
    assert!(code == Some(2) && error.contains("nothing was loaded"), "{error}");
    let (_, _, error) = said(&sandbox.run_with(&["--connect", &url, "get", "twice", "1"], ""));
    assert!(error.contains("no table"), "{error}");
}

#[test]
fn statements_say_how_long_they_took_and_end_in_time() {
    let sandbox = Sandbox::new("remote-time");
    let (_served, url) = serve(&sandbox, &["--trust-local"]);
    let rows: String = (0..4_000).map(|n| format!("{n},x\n")).collect();
    sandbox.write("t.csv", format!("n,name\n{rows}"));
    sandbox.ok(&["--connect", &url, "load", "t", "t.csv", "--key", "n"]);
    let ask = |more: &[&str]| said(&sandbox.run_with(&[&["--connect", &url], more].concat(), ""));
    let (code, out, error) = ask(&["sql", "SELECT n FROM t WHERE n < 2", "--timing"]);
    assert!(code == Some(0) && out == "n\n0\n1\n" && error.starts_with("2 rows, "), "{error}");
    let query = r#"{"table": "t", "limit": 3}"#;
    let (code, _, error) = ask(&["query", query, "--timing", "--timeout", "1m"]);
    assert!(code == Some(0) && error.starts_with("3 rows, "), "{error}");
    let long = "SELECT count(*) FROM t a JOIN t b USING (name)";
    let (code, out, error) = ask(&["sql", long, "--timeout", "10ms"]);
    assert!(code == Some(4) && error.contains("its timeout of 10 ms"), "{out}{error}");
}

#[test]
fn what_servers_do_not_know_is_refused() {
    let sandbox = Sandbox::new("remote-refused");
    let url = "esker://127.0.0.1:1";
    for (command, wanted) in [
        (&["restore", url, "to"][..], "restore: expected a directory, found the address"),
        (&["--connect", "127.0.0.1:1", "serve"], "serve: expected a directory"),
        (&["token", "list", url], "token: expected a directory"),
        (&["quickstart", url], "quickstart: expected a directory"),
        (&["sql", url, "SELECT 1", "--dry-run"], "--dry-run: not of a server"),
        (&["sql", url, "SELECT 1"], "127.0.0.1:1"),
        (&["--connect", "a", "--connect=b", "sql", "SELECT 1"], "--connect comes twice"),
        (&["sql", "--connect"], "--connect: expected an address"),
        (&["--connect", "127.0.0.1:1"], "expected a statement, found none"),
    ] {
        let (code, out, error) = said(&sandbox.run_with(command, ""));
        assert!(code != Some(0) && error.contains(wanted), "{command:?}: {out}{error}");
    }
    assert_eq!(std::fs::read_dir(&sandbox.0).unwrap().count(), 0);
}

#[test]
fn tokens_come_from_the_environment() {
    let sandbox = Sandbox::new("remote-token");
    let (_served, url) = serve(&sandbox, &[]);
    let made = sandbox.ok(&["token", "create", "served", "--name", "me", "--scope", "admin"]);
    let token = made.split_whitespace().find(|word| word.starts_with("esk_")).unwrap();
    let ask = |token: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
        command.args(["--connect", &url, "sql", "SELECT 1 + 1 AS two"]).env("ESKER_TOKEN", token);
        said(&command.output().unwrap())
    };
    assert_eq!(ask(token).1, "two\n2\n");
    let (code, _, error) = ask("");
    assert!(code == Some(2) && error.contains("set ESKER_TOKEN to one"), "{error}");
    let (code, _, error) = ask("esk_0000000000000000_0");
    assert!(code == Some(2) && error.contains("(the one in ESKER_TOKEN)"), "{error}");
}
