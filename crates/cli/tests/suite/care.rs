//! Looking after a database: backup, restore, compact, recount, check.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use crate::sandbox::Sandbox;

/// A database of 100,000 rows in a segment, some of them removed: too few for a merge by itself.
fn populated(name: &str) -> Sandbox {
    let sandbox = Sandbox::new(name);
    let rows: String = (0..100_000).map(|i| format!("{i},name {i}\n")).collect();
    sandbox.write("t.csv", format!("id,name\n{rows}"));
    sandbox.ok(&["load", "db", "t", "t.csv", "--key", "id"]);
    sandbox.ok(&["sql", "db", "DELETE FROM t WHERE id % 50 = 0"]);
    sandbox
}

fn count(sandbox: &Sandbox, db: &str) -> String {
    sandbox.ok(&["sql", db, "SELECT count(*) FROM t", "--format", "csv"])
}

#[test]
fn a_backup_is_restored() {
    let sandbox = populated("backup");
    let dry = sandbox.run_with(&["backup", "db", "copy", "--dry-run"], "");
    assert!(String::from_utf8(dry.stderr).unwrap().contains("1 file linked"));
    assert!(!sandbox.exists("copy"));
    sandbox.ok(&["backup", "db", "copy"]);
    sandbox.ok(&["sql", "db", "DELETE FROM t"]);
    sandbox.ok(&["backup", "db", "later", "--base", "copy", "--copy"]);
    sandbox.ok(&["restore", "copy", "restored", "--copy"]);
    assert_eq!(count(&sandbox, "restored"), "count(*)\n98000\n");
    assert_eq!(count(&sandbox, "later"), "count(*)\n0\n");
    let (code, error) = sandbox.fails(&["backup", "db", "copy"]);
    assert!(code == 2 && error.contains("expected an empty directory"), "{code} {error}");
    let (code, error) = sandbox.fails(&["restore", "nothing", "x"]);
    assert!(error.contains("no such database"), "{code} {error}");
    assert!(!sandbox.exists("x"));
}

#[test]
fn space_is_given_back_and_rows_are_counted() {
    let sandbox = populated("compact");
    let run = |arguments: &[&str]| {
        let output = sandbox.run_with(arguments, "");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(run(&["compact", "db", "--dry-run"]).starts_with("would rewrite 1 segment"));
    assert!(run(&["compact", "db"]).starts_with("rewrote 1 segment"));
    assert!(run(&["compact", "db"]).starts_with("rewrote 0 segments"));
    assert_eq!(run(&["recount", "db"]), "counted 1 table; 0 was wrong\n");
    assert_eq!(count(&sandbox, "db"), "count(*)\n98000\n");
}

#[test]
fn what_is_damaged_has_a_remedy() {
    let sandbox = populated("damage");
    sandbox.ok(&["check", "db", "--repair-report", "none.json"]);
    assert!(!sandbox.exists("none.json"), "nothing is wrong");
    let files = std::fs::read_dir(sandbox.0.join("db")).unwrap().map(|entry| entry.unwrap().path());
    let segment = files.into_iter().find(|p| p.display().to_string().contains("segment-"));
    let segment = segment.unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let output = sandbox.run_with(&["check", "db", "--repair-report", "report.json"], "");
    assert!(!output.status.success());
    // Each row of the block is a problem.
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("more: check --repair-report FILE has all"), "{shown}");
    assert!(shown.contains("of row group") && shown.lines().count() < 110, "{shown}");
    let report = sandbox.read("report.json");
    let line: serde_json::Value = serde_json::from_str(report.lines().next().unwrap()).unwrap();
    assert!(line["remedy"].as_str().unwrap().contains("esker restore"), "{line}");
    let (code, error) = sandbox.fails(&["backup", "db", "copy", "--copy"]);
    assert!(code == 5 && error.contains("checksum"), "{code} {error}");
}

#[test]
fn check_knows_the_files_of_a_server() {
    let sandbox = Sandbox::new("check-served");
    drop(crate::sandbox::served::Served::start(&sandbox, "1s"));
    sandbox.ok(&["token", "create", "served", "--name", "me", "--scope", "admin"]);
    std::fs::create_dir_all(sandbox.0.join("served/tenants")).unwrap();
    sandbox.write("served/limits.json", "{}");
    assert!(!sandbox.ok(&["check", "served"]).contains("note:"));
    sandbox.write("served/mine.txt", "");
    let shown = sandbox.ok(&["check", "served"]);
    assert!(shown.contains("note: mine.txt: nothing names this file"), "{shown}");
}

#[test]
fn a_backup_without_segments_says_where_the_rows_are() {
    let sandbox = Sandbox::new("backup-small");
    sandbox.ok(&["sql", "db", "CREATE TABLE t (n i64); INSERT INTO t VALUES (1)"]);
    let output = sandbox.run_with(&["backup", "db", "copy"], "");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("all rows are in its checkpoint"), "{error}");
    assert_eq!(count(&sandbox, "copy"), "count(*)\n1\n");
}

#[test]
fn messages_name_a_file_once() {
    let sandbox = Sandbox::new("named-once");
    let (_, error) = sandbox.fails(&["load", "db", "t", "nothing.csv"]);
    assert_eq!(error.matches("nothing.csv").count(), 1, "{error}");
    sandbox.ok(&["sql", "db", "CREATE TABLE t (n i64)"]);
    let files = std::fs::read_dir(sandbox.0.join("db")).unwrap().map(|entry| entry.unwrap().path());
    let checkpoint = files.into_iter().find(|p| p.display().to_string().contains("checkpoint-"));
    let file = std::fs::File::options().write(true).open(checkpoint.unwrap()).unwrap();
    file.set_len(70).unwrap();
    let (code, error) = sandbox.fails(&["info", "db"]);
    assert!(code == 5 && error.starts_with("error: db/checkpoint-"), "{error}");
}
