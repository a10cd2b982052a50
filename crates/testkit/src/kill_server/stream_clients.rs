//! Clients of a stream: events singly and in batches, durable, of a producer, and before they are
//! durable; and a reader that follows them by a tail over all lives of the server.
//!
//! An event that was answered as durable is there after any kill. Of those that were answered
//! before, a kill takes the last ones only, and none that is older than [`WINDOW`]. The reader is
//! told each event once, and none that a kill takes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use esker::Value;
use esker_client::Client;

use super::contents::numbers;
use super::http::Http;
use super::line::{Line, Part};
use super::{Ended, Error, Outcome};

/// An event by its client, its request, and its place there.
type Noted = (i64, i64, i64);
/// An event with its id, as a tail tells it.
type Told = (String, Noted);

/// Events of a request of a producer.
pub(super) const PRODUCED: u64 = 7;
/// How old an event may be that a kill takes: what is promised is 10 ms; the rest is for threads
/// of a busy machine. Servers live longer than that, most of them.
const WINDOW: Duration = Duration::from_millis(120);
/// How long a reader waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(60);
/// The answers whose times are kept.
const ANSWERS_KEPT: usize = 100_000;

const JSON: (&str, &str) = ("content-type", "application/json");
const PATH: &str = "/streams/noted/events";

/// The stream.
pub(super) const DEFINITION: &str = "CREATE TABLE IF NOT EXISTS noted \
     (t timestamp NOT NULL DEFAULT now(), client i64, n i64, part i64) \
     WITH (stream = 't', window = '1 hour')";

/// How many events request `n` has.
pub(super) fn event_count(n: i64) -> u64 {
    if n % 4 == 0 { 1 } else { 20 }
}

/// What request `n` of a client sends: one event, or a list.
fn body(client: i64, n: i64, count: u64) -> String {
    let mut body = String::new();
    for part in 0..count {
        let comma = if part == 0 { "" } else { "," };
        let _ = write!(body, "{comma}{{\"client\":{client},\"n\":{n},\"part\":{part}}}");
    }
    if count == 1 { body } else { format!("[{body}]") }
}

/// Events that are durable when they are answered.
pub(super) fn append(line: &mut Line, address: &str) -> Outcome {
    let mut http = Http::connect(address)?;
    loop {
        let n = line.begin();
        let body = body(line.client, n, event_count(n));
        http.ask("POST", PATH, &[JSON], body.as_bytes())?.expect(201)?;
        line.answer();
    }
}

/// Events that are answered before.
pub(super) fn append_later(line: &mut Line, address: &str) -> Outcome {
    let mut http = Http::connect(address)?;
    let path = format!("{PATH}?durability=async");
    loop {
        let n = line.begin();
        let body = body(line.client, n, event_count(n));
        http.ask("POST", &path, &[JSON], body.as_bytes())?.expect(202)?;
        line.answer();
        line.stream.note_answer(n);
    }
}

/// Events of a producer. What the last server left unanswered is sent again first.
pub(super) fn produce(line: &mut Line, address: &str) -> Outcome {
    let mut http = Http::connect(address)?;
    loop {
        let is_again = line.sent > line.answered;
        let n = if is_again { line.answered } else { line.begin() };
        let seq = n.unsigned_abs() * PRODUCED;
        let producer = format!("of-{}; epoch=1; seq={seq}", line.client);
        let body = body(line.client, n, PRODUCED);
        let headers = [JSON, ("esker-producer", producer.as_str())];
        http.ask("POST", PATH, &headers, body.as_bytes())?.expect(201)?;
        line.answer();
        line.counts.retried += u64::from(is_again);
    }
}

/// What a client of a stream remembers over all lives of the server.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamState {
    /// When the last requests were answered.
    answers: VecDeque<(Instant, i64)>,
    /// When the server was killed last.
    killed: Option<Instant>,
    /// The id of the event that was told last.
    last: Option<String>,
    /// The events that were told, by client, request and part.
    told: BTreeSet<Noted>,
    /// How many of each request.
    counts: BTreeMap<(i64, i64), u64>,
}

impl StreamState {
    #[allow(clippy::disallowed_methods, reason = "real time is what this is about")]
    fn note_answer(&mut self, n: i64) {
        self.answers.push_back((Instant::now(), n));
        if self.answers.len() > ANSWERS_KEPT {
            self.answers.pop_front();
        }
    }

    /// The server was killed then.
    pub fn note_kill(&mut self, at: Instant) {
        self.killed = Some(at);
    }

    /// How many requests have to be there of so many that were answered before they were durable.
    pub fn owed(&self, answered: i64) -> i64 {
        let Some(killed) = self.killed else { return answered };
        let is_old = |(at, _): &&(Instant, i64)| killed.saturating_duration_since(*at) > WINDOW;
        match self.answers.iter().rev().find(is_old) {
            Some((_, n)) => (n + 1).min(answered),
            None => self.answers.front().map_or(answered, |(_, first)| *first),
        }
    }

    /// Requests from here on were not made.
    pub fn forget_from(&mut self, done: i64) {
        self.answers.retain(|(_, n)| *n < done);
    }

    /// What was told is there, however the server ended.
    pub fn judge(&self, parts: &BTreeMap<(Part, i64, i64), u64>) -> Result<(), String> {
        for ((client, n), told) in &self.counts {
            let found = parts.get(&(Part::Noted, *client, *n)).copied().unwrap_or(0);
            if *told > found {
                return Err(format!(
                    "a tail told {told} events of request {n} of client {client}: {found} are there"
                ));
            }
        }
        Ok(())
    }
}

/// Follows the stream until the server has gone.
pub(super) fn follow(line: &mut Line, address: &str) -> Outcome {
    let mut tail = Tail::open(address, line.stream.last.as_deref(), None)?;
    loop {
        let told = tail.next()?.ok_or_else(|| Ended::Wrong("a tail has ended".to_owned()))?;
        take(line, told)?;
    }
}

/// Reads on until all events that there are were told.
pub(super) fn catch_up(line: &mut Line, address: &str, all: u64) -> Result<(), Error> {
    let told = line.stream.told.len() as u64;
    if let Some(missing) = all.checked_sub(told).filter(|missing| *missing > 0) {
        let mut tail = Tail::open(address, line.stream.last.as_deref(), Some(missing))?;
        while let Some(told) = tail.next()? {
            take(line, told)?;
        }
    }
    match line.stream.told.len() as u64 == all {
        true => Ok(()),
        false => Err(format!("a tail told {} of {all} events", line.stream.told.len()).into()),
    }
}

fn take(line: &mut Line, (id, event): Told) -> Result<(), Ended> {
    if line.stream.last.as_ref().is_some_and(|last| row_id(last) >= row_id(&id)) {
        return Err(Ended::Wrong(format!("a tail told {id} behind {:?}", line.stream.last)));
    }
    if !line.stream.told.insert(event) {
        return Err(Ended::Wrong(format!("a tail told {event:?} twice")));
    }
    *line.stream.counts.entry((event.0, event.1)).or_default() += 1;
    line.counts.answered += 1;
    line.stream.last = Some(id);
    Ok(())
}

/// The characters of an id that are those of its row id.
fn row_id(id: &str) -> &str {
    id.get(13..).unwrap_or_default()
}

/// Adds what the stream has.
pub(super) fn read(
    client: &mut Client,
    parts: &mut BTreeMap<(Part, i64, i64), u64>,
) -> Result<(), Error> {
    let question = "SELECT client, n, count(*), sum(part) FROM noted GROUP BY client, n";
    for row in client.sql(question, &[])?.rows {
        let [of, n, count, sum] = numbers(&row)?.try_into().map_err(|_| "a row")?;
        if sum != count * (count - 1) / 2 {
            return Err(format!("events of {of}, {n}: other parts than were sent").into());
        }
        parts.insert((Part::Noted, of, n), count.unsigned_abs());
    }
    Ok(())
}

/// How many events there are.
pub(super) fn count(client: &mut Client) -> Result<u64, Error> {
    match client.sql("SELECT count(*) FROM noted", &[])?.rows.as_slice() {
        [row] => match row.as_slice() {
            [Value::Uint(n)] => Ok(*n),
            [Value::Int(n)] => Ok(u64::try_from(*n)?),
            other => Err(format!("a count: {other:?}").into()),
        },
        other => Err(format!("a count: {other:?}").into()),
    }
}

/// A tail: server-sent events of a stream, in chunks.
struct Tail {
    stream: BufReader<TcpStream>,
    text: String,
    /// Bytes of the text that were read.
    read: usize,
    is_over: bool,
}

impl Tail {
    fn open(address: &str, last: Option<&str>, limit: Option<u64>) -> Result<Self, Ended> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let limit = limit.map_or_else(String::new, |limit| format!("&limit={limit}"));
        let last = last.map_or_else(String::new, |id| format!("last-event-id: {id}\r\n"));
        let path = "/v1/databases/default/streams/noted/tail?after=start";
        write!(stream, "GET {path}{limit} HTTP/1.1\r\nhost: x\r\n{last}\r\n")?;
        let (stream, text) = (BufReader::new(stream), String::new());
        let mut tail = Self { stream, text, read: 0, is_over: false };
        let status = tail.line()?;
        while !tail.line()?.is_empty() {}
        match status.split(' ').nth(1) {
            Some("200") => Ok(tail),
            _ => Err(Ended::Wrong(format!("a tail: {status}"))),
        }
    }

    /// The next event with its id; `None` at the end.
    fn next(&mut self) -> Result<Option<Told>, Ended> {
        loop {
            while let Some((block, _)) =
                self.text.get(self.read..).and_then(|rest| rest.split_once("\n\n"))
            {
                self.read += block.len() + 2;
                if let Some(told) = event_of(block)? {
                    return Ok(Some(told));
                }
            }
            self.text.drain(..std::mem::take(&mut self.read));
            if self.is_over {
                return Ok(None);
            }
            let size = self.line()?;
            let size = usize::from_str_radix(&size, 16)
                .map_err(|e| Ended::Wrong(format!("a tail: chunk {size:?}: {e}")))?;
            let mut chunk = vec![0; size];
            self.stream.read_exact(&mut chunk)?;
            self.line()?;
            self.is_over = size == 0;
            self.text += &String::from_utf8_lossy(&chunk);
        }
    }

    fn line(&mut self) -> Result<String, Ended> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(Ended::Gone),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

/// The event that some lines tell, if they tell one.
fn event_of(block: &str) -> Result<Option<Told>, Ended> {
    let value = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
    if let Some(other) = value("event: ") {
        return Err(Ended::Wrong(format!("a tail told {other}: {block}")));
    }
    let (Some(id), Some(data)) = (value("id: "), value("data: ")) else { return Ok(None) };
    let number = |name: &str| {
        let rest = data.split_once(&format!("\"{name}\":"))?.1;
        rest.split([',', '}']).next()?.trim().parse().ok()
    };
    match (number("client"), number("n"), number("part")) {
        (Some(client), Some(n), Some(part)) => Ok(Some((id.to_owned(), (client, n, part)))),
        _ => Err(Ended::Wrong(format!("a tail told {data}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "real time is what this is about")]
    fn what_is_older_than_the_window_is_owed() {
        let mut state = StreamState::default();
        assert_eq!(state.owed(5), 5);
        let now = Instant::now();
        let ago = |ms| now.checked_sub(Duration::from_millis(ms)).unwrap();
        state.answers.extend([(ago(3_000), 0), (ago(2_000), 1), (ago(5), 2), (ago(1), 3)]);
        assert_eq!(state.owed(4), 4, "nothing was killed");
        state.killed = Some(now);
        assert_eq!(state.owed(4), 2);
        state.forget_from(1);
        assert_eq!(state.owed(1), 1);
    }

    #[test]
    fn blocks_of_a_tail_are_events_or_none() {
        let data =
            "id: 01K\ndata: {\"id\":\"01K\",\"t\":\"x\",\"client\":3,\"n\":12,\"part\":0}\n\n";
        assert_eq!(event_of(data).unwrap(), Some(("01K".to_owned(), (3, 12, 0))));
        assert!(event_of(": here\n\n").unwrap().is_none());
        assert!(event_of("event: gap\ndata: {}\n\n").is_err());
    }
}
