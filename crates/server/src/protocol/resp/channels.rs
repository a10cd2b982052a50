//! Tests of channels: who listens is told, of nothing that is not on the disk yet.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use esker::{Durability, Options};
use esker_sql::Session as SqlSession;

use super::tests::{Directory, Running, ask, database, state};
use crate::ServerConfig;

/// What comes next, of so many bytes.
fn next(stream: &mut TcpStream, bytes: usize) -> String {
    let mut told = vec![0; bytes];
    stream.read_exact(&mut told).unwrap();
    String::from_utf8(told).unwrap().replace("\r\n", "|")
}

fn send(stream: &mut TcpStream, line: &str) {
    stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
}

const MESSAGE: &str = "*3|$7|message|$4|news|$5|hello|";

#[test]
fn who_listens_is_told() {
    let database = database();
    let server = Running::start(&database, ServerConfig::default());
    let (mut one, mut two, mut other) = (server.connect(), server.connect(), server.connect());
    let listening = "*3|$9|subscribe|$4|news|:1|";
    send(&mut one, "SUBSCRIBE news");
    assert_eq!(next(&mut one, listening.len() + 6), listening);
    let pattern = "*3|$10|psubscribe|$2|n*|:1|";
    send(&mut two, "PSUBSCRIBE n*");
    assert_eq!(next(&mut two, pattern.len() + 6), pattern);
    send(&mut other, "PUBLISH news hello");
    assert_eq!(next(&mut other, 4), ":2|");
    assert_eq!(next(&mut one, MESSAGE.len() + 7), MESSAGE);
    let by_pattern = "*4|$8|pmessage|$2|n*|$4|news|$5|hello|";
    assert_eq!(next(&mut two, by_pattern.len() + 9), by_pattern);
    // SQL and Redis's protocol have the same channels.
    SqlSession::new(&database).sql("NOTIFY news, 'hello'", ()).unwrap();
    assert_eq!(next(&mut one, MESSAGE.len() + 7), MESSAGE);
    send(&mut other, "PUBSUB CHANNELS\r\nPUBSUB NUMSUB news none\r\nPUBSUB NUMPAT");
    let about = "*1|$4|news|*4|$4|news|:1|$4|none|:0|:1|";
    assert_eq!(next(&mut other, about.len() + 11), about);
    drop(two);
    send(&mut one, "UNSUBSCRIBE");
    let ended = "*3|$11|unsubscribe|$4|news|:0|";
    assert_eq!(next(&mut one, ended.len() + 6), ended);
    send(&mut one, "GET x\r\nPUBLISH news hello");
    assert_eq!(next(&mut one, 5), "$-1|");
}

#[test]
fn who_listens_does_nothing_else_in_the_second_form() {
    let database = database();
    let mut state = state(&database);
    for (line, expected) in [
        ("UNSUBSCRIBE", "*3|$11|unsubscribe|$-1|:0|"),
        ("SUBSCRIBE a b", "*3|$9|subscribe|$1|a|:1|*3|$9|subscribe|$1|b|:2|"),
        (
            "GET x",
            "-ERR Can't execute 'get': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT / RESET \
             are allowed in this context|",
        ),
        ("PING", "*2|$4|pong|$0||"),
        ("UNSUBSCRIBE a", "*3|$11|unsubscribe|$1|a|:1|"),
        ("RESET", "+RESET|"),
        ("GET x", "$-1|"),
        ("MULTI", "+OK|"),
        ("SUBSCRIBE a", "+QUEUED|"),
        ("PUBLISH a x", "+QUEUED|"),
        ("EXEC", "*2|-ERR subscribe inside MULTI is not allowed|:0|"),
        ("PUBLISH a", "-ERR wrong number of arguments for 'publish' command|"),
        ("SUBSCRIBE", "-ERR wrong number of arguments for 'subscribe' command|"),
    ] {
        assert_eq!(ask(&mut state, line), expected, "{line}");
    }
    let hello = ask(&mut state, "HELLO 3");
    assert!(hello.starts_with('%'), "{hello}");
    assert_eq!(ask(&mut state, "SUBSCRIBE a"), ">3|$9|subscribe|$1|a|:1|");
    assert_eq!(ask(&mut state, "SET x 1"), "+OK|");
}

/// Who is woken finds what was written before it was published.
#[test]
fn what_was_written_before_is_there() {
    let directory = Directory::new("resp-channels");
    let database = Options::new().durability(Durability::Sync).open(&directory.0).unwrap();
    let server = Running::start(&database, ServerConfig::default());
    let (mut one, mut reader, mut other) = (server.connect(), server.connect(), server.connect());
    send(&mut one, "SUBSCRIBE news");
    next(&mut one, "*3|$9|subscribe|$4|news|:1|".len() + 6);
    for number in 10..60 {
        send(&mut other, &format!("SET k {number}\r\nPUBLISH news hello"));
        assert_eq!(next(&mut one, MESSAGE.len() + 7), MESSAGE);
        send(&mut reader, "GET k");
        assert_eq!(next(&mut reader, 8), format!("$2|{number}|"));
        assert_eq!(next(&mut other, 9), "+OK|:1|");
    }
    // An EXEC that comes to nothing tells nothing.
    send(&mut other, "WATCH k\r\nMULTI\r\nPUBLISH news hello");
    assert_eq!(next(&mut other, 19), "+OK|+OK|+QUEUED|");
    send(&mut reader, "SET k 1");
    assert_eq!(next(&mut reader, 5), "+OK|");
    send(&mut other, "EXEC");
    assert_eq!(next(&mut other, 5), "*-1|");
    one.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(one.read(&mut [0; 8]).is_err());
}

#[test]
fn who_listens_may_be_silent_and_who_does_not_read_is_told() {
    let idle_timeout = Duration::from_millis(150);
    let stall_timeout = Duration::from_secs(2);
    let config = ServerConfig { idle_timeout, stall_timeout, ..ServerConfig::default() };
    let database = database();
    let server = Running::start(&database, config);
    let mut one = server.connect();
    send(&mut one, "SUBSCRIBE news");
    next(&mut one, "*3|$9|subscribe|$4|news|:1|".len() + 6);
    one.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    assert!(one.read(&mut [0; 8]).is_err_and(|e| e.kind() != std::io::ErrorKind::UnexpectedEof));
    one.set_read_timeout(None).unwrap();
    assert_eq!(database.notify(b"news", b"hello"), 1);
    assert_eq!(next(&mut one, MESSAGE.len() + 7), MESSAGE);
    // Far more than the sockets and what is kept hold.
    let long = vec![b'x'; 1 << 20];
    for _ in 0..64 {
        database.notify(b"news", &long);
    }
    let mut told = Vec::new();
    let _ = one.read_to_end(&mut told);
    let end = String::from_utf8_lossy(&told[told.len().saturating_sub(90)..]).into_owned();
    assert!(end.contains("notifications were lost") || told.len() < 64 << 20, "{end}");
    assert_eq!(database.notify(b"news", b"hello"), 0);
}
