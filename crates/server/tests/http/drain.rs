//! Stopping.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::client::Harness;
use super::memory::{half_a_put, until};

#[test]
fn requests_under_way_are_answered_while_the_server_stops() {
    let mut server = Harness::new(&[("drain_timeout", "20s"), ("stall_timeout", "20s")]);
    assert_eq!(server.ask("PUT", "/v1/databases/default/buckets/b", "").status, 201);
    let mut idle = TcpStream::connect(server.address).unwrap();
    idle.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut answer = vec![0; 1_000];
    let read = idle.read(&mut answer).unwrap();
    assert!(answer[..read].starts_with(b"HTTP/1.1 200"));
    let mut put = half_a_put(&server, 1_000, 500);
    until("the request has not come", || server.access_control.budget.used() > 0);
    let stopped = server.begin_stop();
    until("it does not tell that it stops", || server.ask("GET", "/readyz", "").status == 503);
    assert_eq!(server.ask("GET", "/healthz", "").status, 200, "it is still there");
    let refused = server.ask("GET", "/v1/databases/default/tables", "");
    assert_eq!(refused.json()["code"], "unavailable");
    // Who asks nothing is not waited for.
    idle.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(idle.read(&mut answer).unwrap(), 0);
    let _silent = TcpStream::connect(server.address).unwrap();
    put.write_all(&[b'x'; 500]).unwrap();
    let mut answer = String::new();
    put.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let waited = std::time::Instant::now();
    stopped();
    assert!(waited.elapsed() < Duration::from_secs(10), "as soon as all are answered");
    assert!(TcpStream::connect(server.address).is_err(), "nobody listens");
}

#[test]
fn a_first_request_that_comes_while_the_server_stops_is_answered() {
    let mut server = Harness::new(&[("drain_timeout", "20s"), ("stall_timeout", "20s")]);
    server.ask("PUT", "/v1/databases/default/buckets/b", "");
    let in_flight = half_a_put(&server, 1_000, 500);
    until("the request has not come", || server.access_control.budget.used() > 0);
    let mut early = TcpStream::connect(server.address).unwrap();
    // The next one is accepted after it.
    server.ask("GET", "/readyz", "");
    let stopped = server.begin_stop();
    std::thread::sleep(Duration::from_millis(100));
    early.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    early.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    drop(in_flight);
    stopped();
}
