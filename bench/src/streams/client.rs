//! Many connections that each send one request after another, on one thread.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Result;

/// What a while of requests gave.
pub(super) struct Answers {
    /// Requests a second.
    pub rate: f64,
    /// The microseconds of each.
    pub times: Vec<f64>,
}

/// A request to a path, whose body is JSON or lines of it.
pub(super) fn post(path: &str, token: &str, content_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: {content_type}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into()
}

/// Requests of all connections for a while, each of which goes through its own over and over.
pub(super) async fn ask_all(
    address: SocketAddr,
    connections: u64,
    time: Duration,
    requests: &Arc<Vec<Vec<u8>>>,
) -> Result<Answers> {
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(Connection::open(address).await?);
    }
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    for (number, mut connection) in open.into_iter().enumerate() {
        let requests = Arc::clone(requests);
        tasks.spawn(async move {
            let mut times = Vec::new();
            let own = requests.iter().cycle().skip(number * 37 % requests.len().max(1));
            for request in own {
                let begun = Instant::now();
                if begun.duration_since(start) >= time {
                    break;
                }
                connection.ask(request).await?;
                times.push(begun.elapsed().as_secs_f64() * 1e6);
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(times)
        });
    }
    let mut times = Vec::new();
    while let Some(own) = tasks.join_next().await {
        times.extend(own??);
    }
    Ok(Answers { rate: times.len() as f64 / start.elapsed().as_secs_f64(), times })
}

/// A connection that is kept.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(4_096) })
    }

    /// One request, and the body of its answer, which says that it was done.
    pub async fn ask(&mut self, request: &[u8]) -> Result<&[u8]> {
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
    if text.contains("transfer-encoding: chunked") {
        return Ok(one_chunk(answer, start));
    }
    match (text.starts_with("HTTP/1.1 20"), length) {
        (true, Some(length)) => Ok(Some((start, start + length))),
        _ => {
            let body = String::from_utf8_lossy(answer.get(start..).unwrap_or_default());
            Err(format!("expected an answer that it was done, found {text:?} {body}").into())
        }
    }
}

/// Where the bytes of an answer lie that is one chunk, once all of it is there.
fn one_chunk(answer: &[u8], start: usize) -> Option<(usize, usize)> {
    const LAST: &[u8] = b"\r\n0\r\n\r\n";
    let body = answer.get(start..)?;
    let size = body.windows(2).position(|window| window == b"\r\n")?;
    let end = body.len().checked_sub(LAST.len()).filter(|_| body.ends_with(LAST))?;
    Some((start + size + 2, start + end))
}
