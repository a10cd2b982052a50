//! A server that is told to stop answers what is under way, and what it has answered stays.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;
use crate::sandbox::served::Served;

const ENTRY: &str = "/v1/databases/default/buckets/b/entries";

/// Sends a request of which only a part of the body is there.
fn begin(server: &Served, method: &str, path: &str, body: (&str, usize)) -> TcpStream {
    let mut stream = TcpStream::connect(&server.http).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let (body, len) = body;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len}\r\n\
         content-type: application/octet-stream\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// The status of an answer, and all of it.
fn end(mut stream: TcpStream) -> (u16, String) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

fn ask(server: &Served, method: &str, path: &str, body: &str) -> u16 {
    end(begin(server, method, path, (body, body.len()))).0
}

#[test]
fn what_is_under_way_is_answered_and_what_was_answered_stays() {
    let sandbox = Sandbox::new("stopping");
    let mut server = Served::start(&sandbox, "20s");
    assert_eq!(ask(&server, "PUT", "/v1/databases/default/buckets/b", ""), 201);
    let mut under_way = begin(&server, "PUT", &format!("{ENTRY}/late"), ("ha", 4));
    let mut wire = TcpStream::connect(&server.wire).unwrap();
    wire.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let put = b"{\"op\":\"bucket_put\",\"bucket\":\"b\",\"key\":\"wire\",\"value\":\"x\"}\n";
    wire.write_all(put).unwrap();
    let mut told = [0; 100];
    let n = wire.read(&mut told).unwrap();
    assert!(told[..n].starts_with(b"{\"ok\":true"), "{:?}", String::from_utf8_lossy(&told[..n]));
    // Answered just before it is told to stop.
    assert_eq!(ask(&server, "PUT", &format!("{ENTRY}/early"), "x"), 201);
    Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    let since = Instant::now();
    while ask(&server, "GET", "/readyz", "") != 503 {
        assert!(since.elapsed() < Duration::from_secs(10), "it does not say that it stops");
        std::thread::sleep(Duration::from_millis(5));
    }
    // The wire protocol does not wait for what HTTP has under way.
    assert_eq!(wire.read(&mut told).unwrap(), 0, "it is closed");
    assert!(server.child.try_wait().unwrap().is_none(), "something is under way");
    under_way.write_all(b"lf").unwrap();
    let (status, answer) = end(under_way);
    assert_eq!(status, 201, "{answer}");
    assert!(server.child.wait().unwrap().success());
    assert!(since.elapsed() < Duration::from_secs(15), "as soon as all is answered");
    let database = esker::Options::new().open(sandbox.0.join("served")).unwrap();
    let bucket = database.bucket("b").unwrap();
    for (key, value) in [("wire", "x"), ("early", "x"), ("late", "half")] {
        assert_eq!(bucket.get_copy(key).unwrap().as_deref(), Some(value.as_bytes()), "{key}");
    }
}
