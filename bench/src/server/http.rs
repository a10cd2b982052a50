//! One row by its key over HTTP, of many connections that are kept, in turn with a handler of axum
//! that answers a constant of the same size.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use esker::{DataType, Durability, Options};
use esker_server::auth::access_control::AccessControl;
use esker_server::auth::token::NewToken;
use esker_server::config::Config;
use esker_server::protocol::http::HttpServer;
use esker_vfs::Environment;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::service::TABLE;
use crate::Result;
use crate::bench::{Bench, boxed, schema};
use crate::data::{key, mix};
use crate::outcome::{Outcome, median, percentile};

const CONNECTIONS: u64 = 64;
const ROWS: u64 = 1_000_000;
/// How long one side is asked before the other.
const TURN: Duration = Duration::from_millis(700);
const TURNS: usize = 5;
const CONSTANT: &str = "/constant";

/// Both servers, on one runtime.
struct Sides {
    runtime: Runtime,
    server: HttpServer,
    ours: SocketAddr,
    constant: SocketAddr,
    token: String,
}

pub(super) fn run(bench: &mut Bench) -> Result<Outcome> {
    let rows = bench.rows.min(ROWS);
    let sides = Sides::start(bench, rows)?;
    // A thread of its own sends all requests, and waits for none of them alone.
    let client = Builder::new_current_thread().enable_all().build()?;
    let path = |n| format!("/v1/databases/default/tables/{TABLE}/rows/{}", key(n));
    let token = sides.token.as_str();
    let ask_ours = |n: u64| request(&path(mix(n) % rows), token);
    let ask_constant = |_| request(CONSTANT, token);
    client.block_on(expect_row(sides.ours, &request(&path(0), token), bench))?;
    let (mut ours, mut constant, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut latencies = Vec::new();
    for _ in 0..TURNS {
        let (rate, times) = client.block_on(ask_all(sides.ours, ask_ours))?;
        latencies.extend(times);
        let (bare, _) = client.block_on(ask_all(sides.constant, ask_constant))?;
        ours.push(rate);
        constant.push(bare);
        ratios.push(rate / bare);
    }
    sides.stop();
    let note = format!(
        "{:.1} k/s beside {:.1} k/s; p50 {:.0} µs, p99 {:.0} µs",
        median(&ours) / 1e3,
        median(&constant) / 1e3,
        percentile(&mut latencies, 50),
        percentile(&mut latencies, 99)
    );
    Ok(Outcome::default().and(median(&ratios), None).note(note))
}

impl Sides {
    fn start(bench: &Bench, rows: u64) -> Result<Self> {
        let durability = Durability::Async { at_most: Duration::from_millis(100) };
        let dir = bench.place("server-http")?;
        let database = Options::new().durability(durability).open(&dir)?;
        let fields = [("key", DataType::Text), ("value", DataType::Text)];
        let mut load = database.create_table(TABLE, schema(&fields, &["key"])?)?.load()?;
        for row in 0..rows {
            load.push_row(&[key(row).into(), bench.texts.text(row).into()])?;
        }
        load.finish()?;
        database.wait_idle()?;
        database.close()?;
        let config = Config { durability, ..Config::default() };
        let access_control =
            AccessControl::open(config, &Environment::os(), Some(dir)).map_err(boxed)?;
        let scopes = vec!["admin".parse()?];
        let new = NewToken { name: "bench".to_owned(), scopes, lifetime: None };
        let (_, token) = access_control.tokens.create(&new).map_err(boxed)?;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server =
            runtime.block_on(HttpServer::start(any, Arc::new(access_control))).map_err(boxed)?;
        let ours = server.address();
        let body: &'static str = row_text(bench, 0).leak();
        let answer = move || async move { ([(CONTENT_TYPE, "application/json")], body) };
        let router = Router::new().route(CONSTANT, get(answer));
        let constant = runtime.block_on(async {
            let listener = TcpListener::bind(any).await?;
            let address = listener.local_addr()?;
            tokio::spawn(async { axum::serve(listener, router).await });
            Ok::<_, std::io::Error>(address)
        })?;
        Ok(Self { runtime, server, ours, constant, token })
    }

    fn stop(self) {
        self.runtime.block_on(self.server.stop());
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

fn row_text(bench: &Bench, row: u64) -> String {
    format!("{{\"key\":\"{}\",\"value\":\"{}\"}}", key(row), bench.texts.text(row))
}

fn request(path: &str, token: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n")
        .into()
}

/// The first row is answered as it was stored.
async fn expect_row(address: SocketAddr, request: &[u8], bench: &Bench) -> Result<()> {
    let mut connection = Connection::open(address).await?;
    let body = connection.ask(request).await?;
    let (found, wanted) = (String::from_utf8_lossy(body).into_owned(), row_text(bench, 0));
    match found == wanted {
        true => Ok(()),
        false => Err(format!("found {found}, expected {wanted}").into()),
    }
}

/// Requests of all connections for a while: how many a second, and the µs of each.
async fn ask_all(address: SocketAddr, ask: impl Fn(u64) -> Vec<u8>) -> Result<(f64, Vec<f64>)> {
    const EACH: u64 = 512;
    let mut tasks = JoinSet::new();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(address).await?);
    }
    let start = Instant::now();
    for (number, mut connection) in (0u64..).zip(connections) {
        let requests: Vec<Vec<u8>> = (0..EACH).map(|i| ask(number * EACH + i)).collect();
        tasks.spawn(async move {
            let mut times = Vec::new();
            for request in requests.iter().cycle() {
                let begun = Instant::now();
                if begun.duration_since(start) >= TURN {
                    break;
                }
                connection.ask(request).await?;
                times.push(begun.elapsed().as_secs_f64() * 1e6);
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(times)
        });
    }
    let mut all = Vec::new();
    while let Some(times) = tasks.join_next().await {
        all.extend(times??);
    }
    Ok((all.len() as f64 / start.elapsed().as_secs_f64(), all))
}

/// A connection that is kept.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(4_096) })
    }

    /// One request, and the body of its answer.
    async fn ask(&mut self, request: &[u8]) -> Result<&[u8]> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the connection was closed".into());
            }
            let Some((start, end)) = body_of(&self.buffer)? else { continue };
            if self.buffer.len() >= end {
                return Ok(self.buffer.get(start..end).unwrap_or_default());
            }
        }
    }
}

/// Where the body of an answer lies, once its head is there.
fn body_of(answer: &[u8]) -> Result<Option<(usize, usize)>> {
    const END: &[u8] = b"\r\n\r\n";
    let Some(head) = answer.windows(END.len()).position(|window| window == END) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(answer.get(..head).unwrap_or_default())?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let start = head + END.len();
    match (text.starts_with("HTTP/1.1 200 "), length) {
        (true, Some(length)) => Ok(Some((start, start + length))),
        _ => Err(format!("expected a row with its length, found {text:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_ends_where_its_head_says() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP";
        assert_eq!(body_of(answer).unwrap(), Some((38, 40)));
        assert_eq!(body_of(b"HTTP/1.1 200 OK\r\n").unwrap(), None);
        assert!(body_of(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").is_err());
    }
}
