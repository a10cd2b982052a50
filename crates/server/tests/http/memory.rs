//! Bodies have shares of the budget that all connections have together.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::Harness;

const ENTRY: &str = "/v1/databases/default/buckets/b/entries/k";
const MEDIA: &[(&str, &str)] = &[("content-type", "application/octet-stream")];

pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now();
    while !is_so() {
        assert!(patience.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The header of a put and a part of its body.
pub fn half_a_put(server: &Harness, len: usize, sent: usize) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let token = &server.token;
    let head = format!(
        "PUT {ENTRY} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         content-type: application/octet-stream\r\ncontent-length: {len}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&vec![b'x'; sent]).unwrap();
    stream
}

#[test]
fn bodies_wait_for_room_and_give_it_back() {
    let server = Harness::new(&[
        ("request_bytes_max", "2MiB"),
        ("buffer_bytes_max", "4MiB"),
        ("stall_timeout", "60s"),
    ]);
    let budget = server.access_control.budget.clone();
    let bucket = "/v1/databases/default/buckets/b";
    assert_eq!(server.send("PUT", bucket, &[], b"").status, 201);
    let put = |bytes: usize| server.send("PUT", ENTRY, MEDIA, &vec![b'x'; bytes]);
    assert_eq!(put(1_500_000).status, 201);
    assert_eq!(budget.used(), 0, "given back");
    // More than one request may have.
    let refused = put(3 << 20);
    assert_eq!((refused.status, budget.used()), (413, 0), "{}", refused.text());
    // Who has not sent all of a large body is in the way of another, and of no small one.
    let mut first = half_a_put(&server, 2_000_000, 1_900_000);
    until("the first has no share", || budget.used() == 2_000_000);
    let mut second = half_a_put(&server, 2_000_000, 1_900_000);
    assert_eq!(put(1_000).status, 204);
    assert!(budget.used() <= budget.limit());
    for (stream, rest) in [(&mut first, 100_000), (&mut second, 100_000)] {
        stream.write_all(&vec![b'x'; rest]).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    }
    assert_eq!(budget.used(), 0);
    // Whoever goes away leaves nothing.
    let gone = half_a_put(&server, 1_000_000, 900_000);
    until("no share", || budget.used() == 1_000_000);
    drop(gone);
    until("all of it is given back", || budget.used() == 0);
}

#[test]
fn bodies_that_do_not_go_on_hold_what_came_and_are_ended() {
    let server = Harness::new(&[
        ("request_bytes_max", "1MiB"),
        ("buffer_bytes_max", "4MiB"),
        ("stall_timeout", "3s"),
    ]);
    let budget = server.access_control.budget.clone();
    assert_eq!(server.send("PUT", "/v1/databases/default/buckets/b", &[], b"").status, 201);
    // They declare five times the budget.
    let silent: Vec<_> = (0..20).map(|_| half_a_put(&server, 1_000_000, 10)).collect();
    until("no body has come", || budget.used() > 0);
    let put = server.send("PUT", ENTRY, MEDIA, &vec![b'x'; 1_000_000]);
    assert_eq!(put.status, 201, "{}", put.text());
    assert!(budget.used() < 10_000, "{}", budget.used());
    for mut stream in silent {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("timeout"), "{answer}");
    }
    until("all of it is given back", || budget.used() == 0);
}

#[test]
fn answers_have_shares_until_they_are_sent() {
    let server = Harness::new(&[
        ("request_bytes_max", "3MiB"),
        ("buffer_bytes_max", "16MiB"),
        ("stall_timeout", "1s"),
    ]);
    let budget = server.access_control.budget.clone();
    assert_eq!(server.send("PUT", "/v1/databases/default/buckets/b", &[], b"").status, 201);
    assert_eq!(server.send("PUT", ENTRY, MEDIA, &vec![b'x'; 3 << 20]).status, 201);
    let mut others = budget.share();
    assert!(others.resize(13 << 20));
    let refused = server.ask("GET", ENTRY, "");
    assert_eq!(refused.json()["code"], "limit_exceeded", "{}", refused.text());
    drop(others);
    let found = server.ask("GET", ENTRY, "");
    assert_eq!((found.status, found.body.len()), (200, 3 << 20));
    until("all of it is given back", || budget.used() == 0);
}
