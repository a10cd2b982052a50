//! Streams under load: tails that hear nothing, tails that nobody reads, one body without an end,
//! producers that repeat themselves, and thousands of small senders.
//!
//! Each part asks a server of its own, which is on a disk, so that events are not what its memory
//! is full of; witnesses of all protocols ask beside it.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::protocol::Protocol;
use super::served::{BUDGET_BYTES, EVENTS_A_SECOND, MEMORY_BYTES, Served};
use super::{Clients, Error, Sizes, Witnesses};

/// The most memory of the server that an idle tail takes, its connection included.
const TAIL_BYTES_MAX: u64 = 48 << 10;
/// How long a tail may wait for an event beside many others.
const TOLD_WITHIN: Duration = Duration::from_secs(20);
/// No request takes longer.
const PATIENCE: Duration = Duration::from_secs(120);
const EVENTS: &str = "/v1/databases/default/streams/events/events";
const TAIL: &str = "/v1/databases/default/streams/events/tail";
/// What merges take, and what an allocator keeps.
const MERGES_BYTES_MAX: u64 = 256 << 20;
/// What the server takes beside its events: the budget of requests and answers, its share for
/// rows, and merges.
const GROWN_MAX: u64 = BUDGET_BYTES as u64 + MEMORY_BYTES + MERGES_BYTES_MAX;

/// Runs all parts.
pub(super) async fn streams(apart: &Handle, sizes: Sizes) -> Result<(), Error> {
    for part in 0..5 {
        let directory = Directory::new(part)?;
        let served = Served::start_in(&directory.0, part == 4)?;
        let to = Clients { served, apart, protocol: Protocol::Http };
        let told = match part {
            0 => idle_tails(&to, sizes.idle).await?,
            1 => deaf_tails(&to, sizes.bad, sizes.flood_mib).await?,
            2 => one_body(&to, sizes.body_mib).await?,
            3 => repeating(&to, sizes.bad, sizes.requests).await?,
            _ => small_senders(&to, sizes.busy, sizes.requests).await?,
        };
        println!("streams: {told}");
    }
    Ok(())
}

/// A directory that goes with this.
struct Directory(std::path::PathBuf);

impl Directory {
    #[allow(clippy::disallowed_methods, reason = "a real directory is what this is about")]
    fn new(part: usize) -> Result<Self, Error> {
        let name = format!("esker-load-{}-{part}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    #[allow(clippy::disallowed_methods, reason = "a real directory is what this is about")]
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A connection, and what came that was not looked at yet.
struct Http {
    stream: TcpStream,
    input: Vec<u8>,
}

struct Answered {
    status: u16,
    head: String,
    body: String,
}

impl Http {
    async fn connect(to: &Clients<'_>) -> Result<Self, Error> {
        let stream = TcpStream::connect(to.served.address(Protocol::Http)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, input: Vec::new() })
    }

    async fn send(&mut self, path: &str, more: &str, body: &str) -> Result<Answered, Error> {
        let media = "content-type: application/json";
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{media}\r\n{more}");
        let text = format!("{head}content-length: {length}\r\n\r\n{body}");
        self.stream.write_all(text.as_bytes()).await?;
        tokio::time::timeout(PATIENCE, self.answer()).await.map_err(|_| "no answer")?
    }

    /// An answer with a length.
    async fn answer(&mut self) -> Result<Answered, Error> {
        let head = self.head().await?;
        let lower = head.to_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.map_or(Ok(0), |text| text.trim().parse())?;
        while self.input.len() < length {
            self.more().await?;
        }
        let body: Vec<u8> = self.input.drain(..length).collect();
        let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
        Ok(Answered { status, head: lower, body: String::from_utf8(body)? })
    }

    async fn head(&mut self) -> Result<String, Error> {
        loop {
            if let Some(end) = self.input.windows(4).position(|part| part == b"\r\n\r\n") {
                let head: Vec<u8> = self.input.drain(..end + 4).collect();
                return Ok(String::from_utf8(head)?);
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<(), Error> {
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err("the server hung up".into()),
            _ => Ok(()),
        }
    }

    /// A tail from now on, that has been greeted.
    async fn tail(mut self) -> Result<Self, Error> {
        let text = format!("GET {TAIL} HTTP/1.1\r\nhost: x\r\n\r\n");
        self.stream.write_all(text.as_bytes()).await?;
        let head = self.head().await?;
        if !head.starts_with("HTTP/1.1 200") {
            return Err(format!("a tail: {head}").into());
        }
        self.until(":\n\n").await?;
        self.input = Vec::new();
        Ok(self)
    }

    async fn until(&mut self, text: &str) -> Result<(), Error> {
        while !self.input.windows(text.len()).any(|part| part == text.as_bytes()) {
            self.more().await?;
        }
        Ok(())
    }

    /// How many events there are.
    async fn count(to: &Clients<'_>) -> Result<u64, Error> {
        let body = "{\"sql\": \"SELECT count(*) AS n FROM events\"}";
        let length = body.len();
        let head = "POST /v1/databases/default/query HTTP/1.1\r\nhost: x\r\nconnection: close";
        let head = format!("{head}\r\ncontent-type: application/json\r\ncontent-length: {length}");
        let mut http = Self::connect(to).await?;
        http.stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await?;
        // It comes in pieces.
        http.stream.read_to_end(&mut http.input).await?;
        let answer = String::from_utf8(http.input)?;
        let number = answer.split_once("\"n\":").map(|(_, rest)| rest.trim_start());
        let number = number.and_then(|text| text.split(|c: char| !c.is_ascii_digit()).next());
        let number = number.ok_or_else(|| format!("no count: {answer}"))?;
        Ok(number.parse()?)
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

async fn idle_tails(to: &Clients<'_>, count: usize) -> Result<String, Error> {
    let mut tails = Vec::new();
    for _ in 0..10 {
        tails.push(Http::connect(to).await?.tail().await?);
    }
    let before = to.served.own_bytes()?;
    for _ in 0..count {
        tails.push(Http::connect(to).await?.tail().await?);
    }
    let each = to.served.own_bytes()?.saturating_sub(before) / count as u64;
    if each > TAIL_BYTES_MAX {
        return Err(format!("an idle tail takes {each} bytes").into());
    }
    let witnesses = Witnesses::start(to).await?;
    let begun = Instant::now();
    let answer = Http::connect(to).await?.send(EVENTS, "", "{\"n\":77}").await?;
    if answer.status != 201 {
        return Err(format!("an event beside tails: {}", answer.body).into());
    }
    let all = async {
        for tail in &mut tails {
            tail.until("\"n\":77").await?;
        }
        Ok::<_, Error>(())
    };
    tokio::time::timeout(TOLD_WITHIN, all).await.map_err(|_| "a tail is not told in time")??;
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    let seen = witnesses.stop().await?;
    let kib = each as f64 / 1024.0;
    Ok(format!("{count} idle tails: {kib:.1} KiB each; all told an event in {ms:.0} ms; {seen}"))
}

/// The body of many events, of so many bytes each.
fn many(events: usize) -> String {
    let text = "x".repeat(900);
    let event = |n: usize| format!("{{\"n\":{n},\"text\":\"{text}\"}}");
    let events: Vec<String> = (0..events).map(event).collect();
    format!("[{}]", events.join(","))
}

/// Tails whose clients never read, while much is to tell.
async fn deaf_tails(to: &Clients<'_>, count: usize, total_mib: usize) -> Result<String, Error> {
    let mut tails = Vec::new();
    for _ in 0..count {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4 << 10)?;
        let address = to.served.address(Protocol::Http).parse()?;
        let stream = socket.connect(address).await?;
        tails.push(Http { stream, input: Vec::new() }.tail().await?);
    }
    let before = to.served.own_bytes()?;
    let witnesses = Witnesses::start(to).await?;
    let (mut sender, body) = (Http::connect(to).await?, many(1_000));
    let (begun, mut most, mut sent) = (Instant::now(), 0, 0);
    while sent < total_mib << 20 {
        let answer = sender.send(EVENTS, "prefer: return=minimal\r\n", &body).await?;
        if answer.status != 201 {
            return Err(format!("events beside deaf tails: {}", answer.body).into());
        }
        sent += body.len();
        most = most.max(to.served.own_bytes()?.saturating_sub(before));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let seen = witnesses.stop().await?;
    expect_grown("deaf tails", most)?;
    let (rate, most) = (mib(sent as u64) / seconds, mib(most));
    Ok(format!(
        "{count} tails that nobody reads, {:.0} MiB of events at {rate:.0} MiB/s: at most \
         {most:.1} MiB more; {seen}",
        mib(sent as u64)
    ))
}

fn expect_grown(what: &str, bytes: u64) -> Result<(), Error> {
    match bytes <= GROWN_MAX {
        true => Ok(()),
        false => Err(format!("{what}: the server took {:.0} MiB more", mib(bytes)).into()),
    }
}

/// One body of lines, made as it is sent.
async fn one_body(to: &Clients<'_>, body_mib: usize) -> Result<String, Error> {
    let before = to.served.own_bytes()?;
    let witnesses = Witnesses::start(to).await?;
    let mut http = Http::connect(to).await?;
    let head = "content-type: application/x-ndjson\r\ntransfer-encoding: chunked";
    let head = format!("POST {EVENTS} HTTP/1.1\r\nhost: x\r\n{head}\r\n\r\n");
    http.stream.write_all(head.as_bytes()).await?;
    let (begun, mut most, mut sent, mut events) = (Instant::now(), 0, 0usize, 0u64);
    while sent < body_mib << 20 {
        let mut lines = String::new();
        for _ in 0..2_000 {
            let text = events.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            lines += &format!("{{\"n\":{events},\"text\":\"request {text:016x} of a client\"}}\n");
            events += 1;
        }
        let chunk = format!("{:x}\r\n{lines}\r\n", lines.len());
        http.stream.write_all(chunk.as_bytes()).await?;
        sent += lines.len();
        most = most.max(to.served.own_bytes()?.saturating_sub(before));
    }
    http.stream.write_all(b"0\r\n\r\n").await?;
    let answer = tokio::time::timeout(PATIENCE, http.answer()).await.map_err(|_| "no answer")??;
    let seconds = begun.elapsed().as_secs_f64();
    let seen = witnesses.stop().await?;
    let accepted = format!("\"accepted\":{events},");
    if answer.status != 201 || !answer.body.replace(' ', "").contains(&accepted) {
        return Err(format!("a body of {events} events: {}", answer.body).into());
    }
    expect_grown("one body", most)?;
    let (size, rate) = (mib(sent as u64), events as f64 / seconds / 1e3);
    Ok(format!(
        "one body of {size:.0} MiB, {events} events, {rate:.0} k/s: at most {:.1} MiB more; {seen}",
        mib(most)
    ))
}

/// Producers each of which sends every request twice, at once on two connections or one after the
/// other; each event is there once.
async fn repeating(to: &Clients<'_>, count: usize, requests: usize) -> Result<String, Error> {
    let witnesses = Witnesses::start(to).await?;
    let mut tasks = Vec::new();
    for number in 0..count {
        let (mut one, mut other) = (Http::connect(to).await?, Http::connect(to).await?);
        tasks.push(tokio::spawn(async move {
            for request in 0..requests {
                let producer =
                    format!("esker-producer: p{number}; epoch=1; seq={}\r\n", request * 3);
                let body = format!("[{{\"n\":{number}}},{{\"n\":{number}}},{{\"n\":{number}}}]");
                let answers = match request % 2 {
                    0 => {
                        let both = (
                            one.send(EVENTS, &producer, &body),
                            other.send(EVENTS, &producer, &body),
                        );
                        let (first, second) = tokio::join!(both.0, both.1);
                        [first?, second?]
                    }
                    _ => [
                        one.send(EVENTS, &producer, &body).await?,
                        one.send(EVENTS, &producer, &body).await?,
                    ],
                };
                if let Some(wrong) = answers.iter().find(|answer| answer.status != 201) {
                    return Err(format!("producer {number}: {}", wrong.body).into());
                }
            }
            Ok::<_, Error>(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    let seen = witnesses.stop().await?;
    let (found, wanted) = (Http::count(to).await?, (count * requests * 3) as u64);
    match found == wanted {
        true => {
            Ok(format!("{count} producers sent {wanted} events twice, each there once; {seen}"))
        }
        false => Err(format!("{found} events of producers, expected {wanted}").into()),
    }
}

/// Senders of single events, more than the server takes in a second: each event is stored, or
/// refused with a time to wait.
async fn small_senders(to: &Clients<'_>, count: usize, requests: usize) -> Result<String, Error> {
    let before = to.served.own_bytes()?;
    let witnesses = Witnesses::start(to).await?;
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for number in 0..count {
        let mut http = Http::connect(to).await?;
        tasks.push(tokio::spawn(async move {
            let (mut stored, mut refused) = (0u64, 0u64);
            let path = if number % 2 == 0 {
                EVENTS.to_owned()
            } else {
                format!("{EVENTS}?durability=async")
            };
            for _ in 0..requests {
                let answer = http.send(&path, "", "{\"n\":1}").await?;
                match answer.status {
                    201 | 202 => stored += 1,
                    429 | 503 if answer.head.contains("retry-after:") => refused += 1,
                    _ => {
                        return Err(
                            format!("a small sender: {} {}", answer.status, answer.body).into()
                        );
                    }
                }
            }
            Ok::<_, Error>((stored, refused))
        }));
    }
    let (mut stored, mut refused) = (0, 0);
    for task in tasks {
        let (own, others) = task.await??;
        (stored, refused) = (stored + own, refused + others);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let most = to.served.own_bytes()?.saturating_sub(before);
    let seen = witnesses.stop().await?;
    expect_grown("small senders", most)?;
    let found = Http::count(to).await?;
    if found != stored {
        return Err(format!("{found} events, {stored} were answered as stored").into());
    }
    let rate = (stored + refused) as f64 / seconds / 1e3;
    Ok(format!(
        "{count} senders of single events, {EVENTS_A_SECOND} a second taken: {stored} stored, \
         {refused} refused with Retry-After, {rate:.0} k/s; {:.1} MiB more; {seen}",
        mib(most)
    ))
}
