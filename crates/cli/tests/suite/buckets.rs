//! `esker bucket`, and buckets in the commands for tables.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use crate::sandbox::Sandbox;

fn filled(name: &str) -> Sandbox {
    let sandbox = Sandbox::new(name);
    sandbox.ok(&["bucket", "put", "db", "users", "ada", "London"]);
    sandbox.ok(&["bucket", "put", "db", "users", "adam", "-x y"]);
    sandbox.ok(&["bucket", "put", "db", "users", "grace", "0x00ff"]);
    sandbox.ok(&["bucket", "put", "db", "users", "0x", "", "--ttl", "12h"]);
    sandbox
}

#[test]
fn entries_are_put_read_and_removed() {
    let sandbox = filled("bucket");
    let get = |key| sandbox.ok(&["bucket", "get", "db", "users", key]);
    assert_eq!(get("ada"), "London\n");
    assert_eq!(get("0x616461"), "London\n");
    assert_eq!(get("grace"), "0x00ff\n");
    assert_eq!(get(""), "\n");
    let raw = sandbox.run_with(&["bucket", "get", "db", "users", "grace", "--raw"], "");
    assert_eq!(raw.stdout, [0, 255]);
    let absent = ["bucket", "put", "db", "users", "ada", "Paris", "--if-absent"];
    assert_eq!(sandbox.fails(&absent).0, 2);
    assert_eq!(get("ada"), "London\n");
    sandbox.ok(&["bucket", "put", "db", "users", "ada", "Paris"]);
    assert_eq!(get("ada"), "Paris\n");
    sandbox.ok(&["bucket", "delete", "db", "users", "ada"]);
    let (code, error) = sandbox.fails(&["bucket", "get", "db", "users", "ada"]);
    assert_eq!((code, error.as_str()), (3, "error: bucket \"users\" has no key ada\n"));
    assert_eq!(sandbox.fails(&["bucket", "delete", "db", "users", "ada"]).0, 3);
    sandbox.ok(&["bucket", "delete", "db", "users", "--prefix", "ad"]);
    assert_eq!(sandbox.ok(&["bucket", "scan", "db", "users", "--keys"]), "\ngrace\n");
}

#[test]
fn entries_are_listed_in_the_order_of_their_keys() {
    let sandbox = filled("bucket-scan");
    let scan = |more: &[&str]| sandbox.ok(&[&["bucket", "scan", "db", "users"], more].concat());
    assert_eq!(scan(&[]), "\t\nada\tLondon\nadam\t-x y\ngrace\t0x00ff\n");
    assert_eq!(scan(&["--prefix", "ada", "--keys"]), "ada\nadam\n");
    assert_eq!(scan(&["--prefix", "0x6164", "--reverse", "--limit", "1"]), "adam\t-x y\n");
    assert_eq!(scan(&["--from", "adb"]), "grace\t0x00ff\n");
    assert_eq!(scan(&["--from", "adb", "--reverse", "--limit", "1", "--keys"]), "adam\n");
    sandbox.ok(&["bucket", "create", "db", "cache", "--ttl", "1h"]);
    assert_eq!(sandbox.ok(&["bucket", "list", "db"]), "cache\nusers\n");
    assert_eq!(sandbox.fails(&["bucket", "create", "db", "cache"]).0, 2);
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let sandbox = filled("bucket-wrong");
    assert_eq!(sandbox.fails(&["bucket", "put", "db", "users", "0x1", "x"]).0, 2);
    assert_eq!(sandbox.fails(&["bucket", "put", "db", "users", "k", "0xgg"]).0, 2);
    assert_eq!(sandbox.fails(&["bucket", "get", "db", "users", "0x\\x61"]).0, 2);
    assert_eq!(sandbox.fails(&["bucket", "get", "db", "none", "k"]).0, 3);
    assert_eq!(sandbox.fails(&["bucket", "delete", "db", "none", "k"]).0, 3);
    assert_eq!(sandbox.fails(&["bucket", "delete", "db", "users"]).0, 2);
    assert_eq!(sandbox.fails(&["bucket", "scan", "nowhere", "users"]).0, 3);
    let (_, error) = sandbox.fails(&["bucket", "list", "esker://localhost:1"]);
    assert!(error.contains("localhost:1: Connection refused"), "{error}");
    sandbox.write("t.csv", "id\n1\n");
    sandbox.ok(&["load", "db", "t", "t.csv", "--key", "id"]);
    let (code, error) = sandbox.fails(&["bucket", "put", "db", "t", "k", "v"]);
    assert!(code == 2 && error.contains("expected a bucket"), "{error}");
    for change in ["ADD COLUMN x i64", "DROP COLUMN value", "RESET (expires)"] {
        let statement = format!("ALTER TABLE users {change}");
        let (code, error) = sandbox.fails(&["sql", "db", &statement]);
        assert!(code == 2 && error.contains("\"users\" is a bucket: "), "{error}");
    }
    assert_eq!(sandbox.ok(&["bucket", "list", "db"]), "users\n");
}

/// A bucket is exported with its ends and loaded into another one; bytes are hexadecimal.
#[test]
fn a_bucket_is_exported_and_loaded() {
    let sandbox = filled("bucket-export");
    for file in ["b.csv", "b.ndjson"] {
        sandbox.ok(&["export", "db", "users", "--output", file]);
        let copy = format!("{file}.db");
        sandbox.ok(&["bucket", "create", &copy, "users"]);
        sandbox.ok(&["load", &copy, "users", file, "--append"]);
        let all = |db: &str| sandbox.ok(&["bucket", "scan", db, "users"]);
        assert_eq!(all(&copy), all("db"), "{file}");
        let ends = "SELECT key, expires_at FROM users ORDER BY key";
        assert_eq!(sandbox.ok(&["sql", &copy, ends]), sandbox.ok(&["sql", "db", ends]), "{file}");
    }
    assert!(sandbox.read("b.csv").contains("6772616365,00ff,\n"), "{}", sandbox.read("b.csv"));
}
