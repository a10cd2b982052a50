//! Commands of Redis's protocol, and a session that answers them.

use esker::Options;
use esker_server::{Session, answer_commands};

/// Any bytes are answered, or end the conversation; the database goes on.
pub fn run(data: &[u8]) {
    let database = Options::new().memory().expect("a database in memory");
    let mut input = b"SET k 1\r\nSET text abc\r\n".to_vec();
    input.extend_from_slice(data);
    let out = answer_commands(Session::new(&database), &input);
    assert!(out.starts_with(b"+OK\r\n+OK\r\n"), "what came before is answered");
    assert_eq!(answer_commands(Session::new(&database), b"PING\r\n"), b"+PONG\r\n");
}
