//! What looks after a database says the same of a server as of a directory: exports, indexes,
//! figures, checks, backups, compaction, buckets.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::process::Command;

use crate::sandbox::Sandbox;
use crate::served::{both, said, serve};

type Said = (Option<i32>, String, String);

/// The same without how long it took.
fn untimed((code, out, error): Said) -> Said {
    let cut = |text: String| {
        let lines = text.lines().map(|line| match line.rsplit_once(" in ") {
            Some((before, time)) if time.starts_with(|c: char| c.is_ascii_digit()) => before,
            _ => line,
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    (code, cut(out), cut(error))
}

/// The command with a directory, and with an address: both say the same but for times.
fn both_untimed(sandbox: &Sandbox, url: &str, command: &[&str], takes: usize) -> Said {
    let (name, rest) = command.split_at(takes);
    let here = sandbox.run_with(&[name, &["here"], rest].concat(), "");
    let there = sandbox.run_with(&[&["--connect", url], command].concat(), "");
    let here = untimed(said(&here));
    assert_eq!(untimed(said(&there)), here, "{command:?}");
    here
}

fn fill(sandbox: &Sandbox, url: &str) {
    let create = "CREATE TABLE t (id i64 PRIMARY KEY, name text DEFAULT 'x' CHECK (name <> 'no'), \
                  price decimal(9, 2), day date, doc json, raw bytes, kind enum('a', 'b'))";
    both(sandbox, url, &["sql", create]);
    let rows = "INSERT INTO t VALUES \
                (1, 'tea', 2.50, '2024-02-29', '{\"a\": [1], \"b\": \"c\"}', X'00ff', 'b'), \
                (2, 'a \"quoted\", name', NULL, NULL, NULL, NULL, 'a'), \
                (3, '', 1, NULL, '[]', X'', NULL)";
    both(sandbox, url, &["sql", rows]);
}

#[test]
fn a_server_is_exported_as_a_directory_is() {
    let sandbox = Sandbox::new("remote-export");
    let (_served, url) = serve(&sandbox, &["--trust-local"]);
    fill(&sandbox, &url);
    both(&sandbox, &url, &["sql", "CREATE TABLE none (n i64)"]);
    for command in [
        &["export", "t"][..],
        &["export", "t", "--format", "json"],
        &["export", "t", "--format", "ndjson"],
        &["export", "t", "--format", "tsv"],
        &["export", "t", "--delimiter", ";"],
        &["export", "t", "--delimiter", "\""],
        &["export", "none", "--format", "json"],
        &["export", "none"],
        &["export", "tt"],
        &["export", "t", "--output", "t.csv.gz"],
        &["export", "--sql", "SELECT name, count(*) AS n FROM t GROUP BY name ORDER BY name"],
        &["export", "--sql", "SELECT id, id FROM t ORDER BY id"],
        &["export", "--sql", "SELECT nam FROM t"],
        &["export", "--sql", "SELEC"],
        &["export", "--sql", "DELETE FROM t"],
    ] {
        both(&sandbox, &url, command);
    }
    sandbox.write("there.csv", "");
    both(&sandbox, &url, &["export", "t", "--output", "there.csv"]);
    assert_eq!(sandbox.read("there.csv"), "");
    let out = sandbox.ok(&["--connect", &url, "export", "t", "--output", "t.ndjson"]);
    assert!(out.starts_with("exported 3 rows to t.ndjson in "), "{out}");
    assert_eq!(
        sandbox.read("t.ndjson"),
        sandbox.ok(&["export", "here", "t", "--format", "ndjson"])
    );
    // More rows than come at a time: what was exported is what is there.
    let rows: String = (0..50_000).map(|n| format!("{n},{}\n", n * 7 % 1_000)).collect();
    sandbox.write("many.csv", format!("n,m\n{rows}"));
    for place in [&["--connect", &url, "load"][..], &["load", "here"]] {
        sandbox.ok(&[place, &["many", "many.csv", "--key", "n"]].concat());
    }
    let (_, out, _) = both(&sandbox, &url, &["export", "many"]);
    assert_eq!(out.lines().count(), 50_001);
}

#[test]
fn indexes_of_a_server_are_made_and_dropped_as_those_of_a_directory() {
    let sandbox = Sandbox::new("remote-index");
    let (_served, url) = serve(&sandbox, &["--trust-local"]);
    fill(&sandbox, &url);
    for command in [
        &["index", "t", "name", "price desc"][..],
        &["index", "t", "name", "price desc"],
        &["index", "t", "\"name\"", "--name", "odd \"name\""],
        &["index", "t", "doc.b"],
        &["index", "t", "doc.b.c desc", "--name", "deep"],
        &["index", "t", "name", "--name", "parts", "--trigram"],
        &["index", "t", "kind", "--name", "kinds", "--kind", "bitmap"],
        &["index", "t", "unique name", "--name", "names"],
        &["index", "t", "day", "--unique", "--name", "days"],
        &["index", "t", "nam"],
        &["index", "t", "name,"],
        &["index", "nowhere", "name"],
    ] {
        both_untimed(&sandbox, &url, command, 1);
    }
    both(&sandbox, &url, &["sql", "INSERT INTO t (id, name) VALUES (9, 'tea')"]);
    for (table, name) in [("t", "odd \"name\""), ("t", "gone"), ("nowhere", "deep"), ("t", "parts")]
    {
        both_untimed(&sandbox, &url, &["index", "drop", table, name], 2);
    }
    // `info` counts segments, and background tasks seal rows at any time: now all are sealed.
    sandbox.ok(&["--connect", &url, "compact"]);
    sandbox.ok(&["compact", "here"]);
    let (code, out, _) = both_untimed(&sandbox, &url, &["info", "t"], 1);
    assert_eq!(code, Some(0));
    assert!(out.contains("rows expire") || out.contains("default of name: 'x'"), "{out}");
    assert!(out.contains("deep (doc.b.c desc)") && !out.contains("parts"), "{out}");
    both_untimed(&sandbox, &url, &["info", "nowhere"], 1);
}

#[test]
fn a_server_is_looked_after_as_a_directory_is() {
    let sandbox = Sandbox::new("remote-care");
    let (_served, url) = serve(&sandbox, &["--trust-local"]);
    let out = sandbox.ok(&["--connect", &url, "info"]);
    assert!(out.starts_with("no tables\nfiles"), "{out}");
    fill(&sandbox, &url);
    both(&sandbox, &url, &["sql", "CREATE SEQUENCE s START WITH 5; CREATE INDEX i ON t (name)"]);
    let there = |more: &[&str]| said(&sandbox.run_with(&[&["--connect", &url], more].concat(), ""));
    let (here, there_out) = (sandbox.ok(&["info", "here"]), there(&["info"]).1);
    // Files and memory are those of who has it open.
    let tables = |text: &str| text.split("\nfiles").next().unwrap().to_owned();
    assert!(tables(&here).contains("sequence"), "{here}");
    assert_eq!(tables(&there_out), tables(&here));
    let (code, out, _) = both_untimed(&sandbox, &url, &["check"], 1);
    assert!(code == Some(0) && out.ends_with("no problem found"), "{out}");
    both_untimed(&sandbox, &url, &["recount"], 1);
    both_untimed(&sandbox, &url, &["recount", "--dry-run"], 1);
    let (code, _, error) = there(&["compact", "--dry-run"]);
    assert!(code == Some(0) && error.starts_with("would rewrite "), "{error}");
    let (code, _, error) = there(&["compact"]);
    assert!(
        code == Some(0) && error.starts_with("rewrote ") && error.contains("before"),
        "{error}"
    );

    let (code, _, error) = there(&["backup", "monday", "--dry-run"]);
    assert!(code == Some(0) && error.starts_with("would back up commit "), "{error}");
    assert!(!sandbox.exists("served/backups"));
    let (code, _, error) = there(&["backup", "monday"]);
    assert!(code == Some(0) && error.contains(" to backups/default/monday\n"), "{error}");
    let (code, _, error) = there(&["backup", "tuesday", "--base", "monday", "--copy"]);
    assert!(code == Some(0) && error.contains("are in its checkpoint"), "{error}");
    for (name, wanted, status) in
        [("monday", "\"monday\" exists already", 2), ("../up", "the name of a backup", 2)]
    {
        let (code, _, error) = there(&["backup", name]);
        assert!(code == Some(status) && error.contains(wanted), "{error}");
    }
    let (code, _, error) = there(&["backup", "friday", "--base", "thursday"]);
    assert!(code == Some(3) && error.contains("no backup \"thursday\""), "{error}");
    for name in ["monday", "tuesday"] {
        let backup = format!("served/backups/default/{name}");
        assert_eq!(sandbox.ok(&["export", &backup, "t"]), sandbox.ok(&["export", "here", "t"]));
    }
}

#[test]
fn buckets_of_a_server_are_those_of_a_directory() {
    let sandbox = Sandbox::new("remote-bucket");
    let (_served, url) = serve(&sandbox, &["--trust-local"]);
    both(&sandbox, &url, &["sql", "CREATE TABLE t (\"key\" i64 PRIMARY KEY)"]);
    for command in [
        &["bucket", "list"][..],
        &["bucket", "get", "b", "k"],
        &["bucket", "scan", "b"],
        &["bucket", "delete", "b", "k"],
        &["bucket", "delete", "b", "--prefix", "k"],
        &["bucket", "put", "b", "k", "v"],
        &["bucket", "put", "b", "k", "other", "--if-absent"],
        &["bucket", "put", "b", "ka", "w", "--if-absent"],
        &["bucket", "put", "new", "first", "w", "--if-absent"],
        &["bucket", "put", "b", "0x00ff", "0xff"],
        &["bucket", "put", "b", "0xf", "0xff"],
        &["bucket", "put", "b", "-5", "-6", "--ttl", "1h"],
        &["bucket", "create", "short", "--ttl", "1h"],
        &["bucket", "create", "short"],
        &["bucket", "list"],
        &["bucket", "get", "b", "k"],
        &["bucket", "get", "b", "0x00ff"],
        &["bucket", "get", "b", "k", "--raw"],
        &["bucket", "get", "b", "none"],
        &["bucket", "scan", "b"],
        &["bucket", "scan", "b", "--keys", "--reverse"],
        &["bucket", "scan", "b", "--from", "k", "--limit", "1"],
        &["bucket", "scan", "b", "--from", "k", "--reverse"],
        &["bucket", "scan", "b", "--prefix", "k"],
        &["bucket", "scan", "b", "--limit", "0"],
        &["bucket", "delete", "b", "none"],
        &["bucket", "delete", "b", "0x00ff"],
        &["bucket", "delete", "b", "--prefix", "k"],
        &["bucket", "delete", "b", "--prefix", "k"],
        &["bucket", "scan", "b"],
    ] {
        both_untimed(&sandbox, &url, command, 2);
    }
    for command in [
        &["bucket", "get", "t", "k"][..],
        &["bucket", "delete", "t", "--prefix", "k"],
        &["bucket", "put", "t", "k", "v"],
        &["bucket", "put", "t", "k", "v", "--if-absent"],
        &["bucket", "create", "t"],
    ] {
        let (code, ..) = both_untimed(&sandbox, &url, command, 2);
        assert_ne!(code, Some(0), "{command:?}");
    }
    // More entries than come at a time, in both directions.
    let digits = |n: u32| format!("{n:04}").bytes().map(|b| format!("{b:02x}")).collect::<String>();
    let row = |n: u32| format!("(X'{}', X'76')", digits(n));
    for part in [0..1_250, 1_250..2_500] {
        let rows = part.map(row).collect::<Vec<_>>().join(", ");
        let text = format!("INSERT INTO new (\"key\", \"value\") VALUES {rows}");
        let (code, ..) = both(&sandbox, &url, &["sql", &text]);
        assert_eq!(code, Some(0));
    }
    let (_, out, _) = both_untimed(&sandbox, &url, &["bucket", "scan", "new"], 2);
    assert_eq!(out.lines().count(), 2_501);
    both_untimed(&sandbox, &url, &["bucket", "scan", "new", "--reverse", "--limit", "1500"], 2);
    both_untimed(&sandbox, &url, &["bucket", "scan", "new", "--prefix", "1", "--keys"], 2);
}

#[test]
fn what_a_token_does_not_reach_is_refused() {
    let sandbox = Sandbox::new("remote-admin-token");
    let (_served, url) = serve(&sandbox, &[]);
    let made = sandbox.ok(&["token", "create", "served", "--name", "me", "--scope", "write"]);
    let token = made.split_whitespace().find(|word| word.starts_with("esk_")).unwrap().to_owned();
    // A server that runs knows it within a second.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
        command.args(["--connect", &url]).args(arguments).env("ESKER_TOKEN", &token);
        said(&command.output().unwrap())
    };
    assert_eq!(ask(&["info"]).0, Some(0));
    for command in [
        &["check"][..],
        &["compact"],
        &["recount"],
        &["backup", "monday"],
        &["bucket", "create", "b"],
    ] {
        let (code, _, error) = ask(command);
        assert!(code == Some(2) && error.contains("admin"), "{command:?}: {error}");
    }
}
