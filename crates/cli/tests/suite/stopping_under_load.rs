//! A server that is told to stop while many clients write: each hears of it, and what was
//! acknowledged to one of them stays.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;
use crate::sandbox::served::Served;
use esker_client::{Call, Client, Code};

/// How long nothing ever takes.
const NEVER: Duration = Duration::from_secs(60);
/// Entries that are acknowledged before the server is told to stop.
const ACKNOWLEDGED_MIN: usize = 400;
/// Entries of a pipeline.
const TOGETHER: usize = 8;

/// How a request came to nothing.
type Refusal = String;

/// Writes entries, each once, until it is refused; the numbers of those that were acknowledged go
/// into `done` as soon as they are.
trait Writer: Send {
    fn write(&mut self, numbers: &[usize], done: &mut Vec<usize>) -> Result<(), Refusal>;

    /// Entries of one call of [`Writer::write`].
    fn at_once(&self) -> usize {
        1
    }
}

fn key(client: usize, number: usize) -> String {
    format!("{client}-{number}")
}

/// Whether a connection ended, rather than that an answer was wrong.
fn hung_up(e: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(e.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

fn ended(e: std::io::Error) -> Refusal {
    assert!(hung_up(&e), "{e}");
    e.to_string()
}

struct Wire {
    client: Client,
    number: usize,
    at_once: usize,
}

impl Writer for Wire {
    fn write(&mut self, numbers: &[usize], done: &mut Vec<usize>) -> Result<(), Refusal> {
        let refused = |e: esker_client::Error| {
            assert!(matches!(e.code(), None | Some(Code::Unavailable)), "{:?}: {e}", e.code());
            e.to_string()
        };
        let put = |number: &usize| {
            let key = key(self.number, *number);
            Call::bucket_put("db0", &[(key.as_str(), key.as_str())])
        };
        if let [number] = numbers {
            self.client.call(&put(number)).map_err(refused)?;
            done.push(*number);
            return Ok(());
        }
        let calls: Vec<_> = numbers.iter().map(put).collect();
        let mut pipeline = self.client.pipeline();
        calls.iter().for_each(|call| pipeline.push(call));
        // What is answered before the connection ends is acknowledged.
        let mut wrong = None;
        let ran = pipeline.run_with(|position, frame| match frame.kind() {
            Ok(esker_wire::Kind::Done) => done.push(numbers[position]),
            _ => wrong = Some(String::from_utf8_lossy(frame.payload).into_owned()),
        });
        ran.map_err(refused)?;
        match wrong {
            Some(told) if told.contains("unavailable") => Err(told),
            Some(told) => panic!("{told:?}"),
            None => Ok(()),
        }
    }

    fn at_once(&self) -> usize {
        self.at_once
    }
}

struct Http(BufReader<TcpStream>, usize);

impl Writer for Http {
    fn write(&mut self, numbers: &[usize], done: &mut Vec<usize>) -> Result<(), Refusal> {
        let key = key(self.1, numbers[0]);
        let request = format!(
            "PUT /v1/databases/default/buckets/db0/entries/{key} HTTP/1.1\r\nhost: x\r\n\
             content-length: {}\r\ncontent-type: application/octet-stream\r\n\r\n{key}",
            key.len()
        );
        self.0.get_mut().write_all(request.as_bytes()).map_err(ended)?;
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let start = head.len();
            if self.0.read_line(&mut head).map_err(ended)? == 0 {
                return Err("the server closed the connection".to_owned());
            }
            if let Some(text) = head[start..].strip_prefix("content-length: ") {
                length = text.trim_end().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).map_err(ended)?;
        match head.split(' ').nth(1) {
            Some("201") => done.push(numbers[0]),
            Some("503") => return Err(head),
            _ => panic!("{head}{}", String::from_utf8_lossy(&body)),
        }
        Ok(())
    }
}

struct Resp(BufReader<TcpStream>, usize);

impl Writer for Resp {
    fn write(&mut self, numbers: &[usize], done: &mut Vec<usize>) -> Result<(), Refusal> {
        let key = key(self.1, numbers[0]);
        let command = format!("SET {key} {key}\r\n");
        self.0.get_mut().write_all(command.as_bytes()).map_err(ended)?;
        let mut line = String::new();
        match self.0.read_line(&mut line).map_err(ended)? {
            0 => return Err("the server closed the connection".to_owned()),
            _ if line == "+OK\r\n" => done.push(numbers[0]),
            _ if line.contains("the server stops") => return Err(line),
            _ => panic!("{line}"),
        }
        Ok(())
    }
}

/// Which protocol a client speaks, and whether it sends several requests at once.
fn connect(server: &Served, number: usize) -> (&'static str, Box<dyn Writer>) {
    let open = |address: &str| {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        BufReader::new(stream)
    };
    match number % 4 {
        2 => ("HTTP", Box::new(Http(open(&server.http), number))),
        3 if number % 8 == 3 => ("Redis", Box::new(Resp(open(&server.resp), number))),
        kind => {
            let at_once = if kind == 0 { 1 } else { TOGETHER };
            let client = Client::connect(&server.wire).unwrap();
            ("wire", Box::new(Wire { client, number, at_once }))
        }
    }
}

/// What a client had acknowledged, and what it was told in the end.
struct End {
    number: usize,
    acknowledged: Vec<usize>,
    told: Refusal,
}

/// What clients and whoever stops the server know of each other.
#[derive(Default)]
struct Common {
    acknowledged: AtomicUsize,
    stops: AtomicBool,
}

fn write_on(number: usize, mut writer: Box<dyn Writer>, common: &Common) -> End {
    let (mut acknowledged, mut next) = (Vec::new(), 0);
    loop {
        let before = acknowledged.len();
        let numbers: Vec<_> = (next..next + writer.at_once()).collect();
        next += numbers.len();
        let written = writer.write(&numbers, &mut acknowledged);
        common.acknowledged.fetch_add(acknowledged.len() - before, Ordering::SeqCst);
        if let Err(told) = written {
            assert!(common.stops.load(Ordering::SeqCst), "before the server stops: {told}");
            return End { number, acknowledged, told };
        }
    }
}

/// Waits for the end of a program.
fn end_of(child: &mut Child, until: Instant) -> ExitStatus {
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < until, "all clients have gone, and the server does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn stop_with_clients(clients: usize, round: usize) {
    let sandbox = Sandbox::new(&format!("stopping-under-load-{clients}-{round}"));
    // Who is forgotten is not helped by the end of the time for what is under way.
    let mut server = Served::start(&sandbox, "600s");
    let common = Arc::new(Common::default());
    let (to_here, ends) = mpsc::channel();
    let mut left = BTreeMap::new();
    // HTTP makes no bucket by putting into it.
    Client::connect(&server.wire).unwrap().bucket_put("db0", "first", "first").unwrap();
    for number in 0..clients {
        let (protocol, writer) = connect(&server, number);
        left.insert(number, protocol);
        let (to_here, common) = (to_here.clone(), Arc::clone(&common));
        // Not waited for: one that hangs is named instead.
        std::thread::spawn(move || to_here.send(write_on(number, writer, &common)));
    }
    drop(to_here);
    let until = Instant::now() + NEVER;
    while common.acknowledged.load(Ordering::SeqCst) < ACKNOWLEDGED_MIN {
        assert!(Instant::now() < until, "too little is acknowledged");
        std::thread::sleep(Duration::from_millis(1));
    }
    common.stops.store(true, Ordering::SeqCst);
    Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    let until = Instant::now() + NEVER;
    let mut acknowledged = Vec::new();
    while !left.is_empty() {
        match ends.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(end) => {
                assert!(!end.told.is_empty());
                left.remove(&end.number);
                acknowledged.extend(end.acknowledged.iter().map(|n| key(end.number, *n)));
            }
            Err(RecvTimeoutError::Timeout) => panic!("these clients wait in vain: {left:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("these clients failed: {left:?}"),
        }
    }
    assert!(end_of(&mut server.child, until).success());
    assert!(acknowledged.len() >= ACKNOWLEDGED_MIN);
    let database = esker::Options::new().open(sandbox.0.join("served")).unwrap();
    let bucket = database.bucket("db0").unwrap();
    for key in &acknowledged {
        assert_eq!(bucket.get_copy(key).unwrap().as_deref(), Some(key.as_bytes()), "{key}");
    }
}

#[test]
fn nothing_acknowledged_is_lost_and_nobody_hangs() {
    for (round, clients) in [1, 8, 24].into_iter().enumerate() {
        stop_with_clients(clients, round);
    }
}
