//! A full disk is emptied from the command line, and by a server in every protocol. Needs a small
//! file system of its own: left out, with a line that says so, where none can be mounted.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test outside the engine, on real sockets and files"
)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::sandbox::Sandbox;
use crate::sandbox::served::Served;

/// A disk of a few megabytes with a database, `served`; unmounted at the end.
struct Disk(PathBuf);

impl Disk {
    fn mount(sandbox: &Sandbox) -> Option<Self> {
        let disk = sandbox.0.join("disk");
        std::fs::create_dir(&disk).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"]).arg(&disk).stderr(Stdio::null());
        if !mount.status().is_ok_and(|status| status.success()) {
            eprintln!("left out: no disk can be mounted here");
            return None;
        }
        std::fs::create_dir(disk.join("db")).unwrap();
        std::os::unix::fs::symlink(disk.join("db"), sandbox.0.join("served")).unwrap();
        Some(Self(disk))
    }

    /// Another program takes what is left.
    fn fill(&self) {
        let path = self.0.join("fill");
        let mut fill = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        for piece in [vec![1; 4096], vec![1; 1]] {
            while fill.write_all(&piece).is_ok() {}
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn load(sandbox: &Sandbox, tables: &[&str]) {
    let row = |n: u64| format!("{n},value {}\n", n * 7_919 % 1_000_003);
    let rows: String = (0..80_000).map(row).collect();
    sandbox.write("rows.csv", format!("a,b\n{rows}"));
    for table in tables {
        sandbox.ok(&["load", "served", table, "rows.csv", "--key", "a"]);
    }
}

#[test]
fn a_full_disk_is_emptied_from_the_command_line() {
    let sandbox = Sandbox::new("full-disk");
    let Some(disk) = Disk::mount(&sandbox) else { return };
    load(&sandbox, &["t", "u", "v"]);
    sandbox.ok(&["bucket", "put", "served", "b", "k", "v"]);
    for command in [
        &["sql", "served", "DELETE FROM t WHERE a < 10"][..],
        &["bucket", "delete", "served", "b", "k"],
        &["sql", "served", "TRUNCATE TABLE u"],
        &["sql", "served", "DROP TABLE v"],
        &["sql", "served", "DROP TABLE b"],
        &["compact", "served"],
        &["check", "served"],
        &["sql", "served", "INSERT INTO u VALUES (1, 'x')"],
    ] {
        // A compaction frees what it may take before.
        if command[0] == "sql" || command[0] == "bucket" {
            disk.fill();
        }
        if command[0] == "compact" || command.ends_with(&["INSERT INTO u VALUES (1, 'x')"]) {
            std::fs::remove_file(disk.0.join("fill")).unwrap();
        }
        sandbox.ok(command);
    }
    let count = sandbox.ok(&["sql", "served", "SELECT count(*) FROM t", "--format", "csv"]);
    assert_eq!(count, "count(*)\n79990\n");
}

/// The answer to what is sent, as far as it comes at once.
fn ask(address: &str, text: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = vec![0; 4096];
    let n = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..n]).into_owned()
}

fn http(server: &Served, method: &str, path: &str, body: &str) -> String {
    let request = format!(
        "{method} /v1/databases/default/{path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    ask(&server.http, &request)
}

fn frees(server: &Served, table: &str) {
    let deleted = http(server, "DELETE", "buckets/b/entries/k", "");
    assert!(deleted.starts_with("HTTP/1.1 204"), "{deleted}");
    assert_eq!(ask(&server.resp, "DEL one\r\n"), ":1\r\n");
    assert_eq!(ask(&server.resp, "FLUSHDB\r\n"), "+OK\r\n");
    let delete = format!("{{\"op\":\"delete\",\"table\":\"{table}\",\"keys\":[1]}}\n");
    assert!(ask(&server.wire, &delete).starts_with("{\"ok\":true"));
    let drop = format!("{{\"op\":\"sql\",\"sql\":\"DROP TABLE {table}\"}}\n");
    let dropped = ask(&server.wire, &drop);
    assert!(dropped.starts_with("{\"ok\":true"), "{dropped}");
}

fn adds(server: &Served) {
    let put = http(server, "PUT", "buckets/b/entries/k", "v");
    assert!(put.starts_with("HTTP/1.1 20"), "{put}");
    for command in ["SET one 1 EX 1000\r\n", "SET two 2\r\n"] {
        assert_eq!(ask(&server.resp, command), "+OK\r\n");
    }
}

#[test]
fn a_full_disk_is_emptied_by_a_server() {
    let sandbox = Sandbox::new("full-disk-server");
    let Some(disk) = Disk::mount(&sandbox) else { return };
    load(&sandbox, &["t", "u"]);
    sandbox.ok(&["bucket", "create", "served", "b"]);
    let mut server = Served::start(&sandbox, "5s");
    adds(&server);
    disk.fill();
    let value = "x".repeat(2_000);
    let put = |n: u32| http(&server, "PUT", &format!("buckets/b/entries/{n}"), &value);
    let refused = (0..1_000).map(put).find(|answer| !answer.starts_with("HTTP/1.1 20")).unwrap();
    assert!(refused.starts_with("HTTP/1.1 507"), "{refused}");
    frees(&server, "t");
    // A drop gives more back than these take.
    adds(&server);
    disk.fill();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let server = Served::start(&sandbox, "5s");
    frees(&server, "u");
    adds(&server);
    drop(server);
    sandbox.ok(&["check", "served"]);
}
