//! Events over HTTP, one or a hundred a request, in turn with the stand-in and with a constant.

use std::time::{Duration, Instant};

use super::client::Connection;
use super::event::Event;
use super::sides::Sides;
use super::stand_in::{ASYNC, CONSTANT, DURABLE};
use crate::Result;
use crate::bench::Bench;
use crate::machine::BareSync;
use crate::outcome::{Outcome, median, percentile};

/// How long one side is asked before the other.
const TURN: Duration = Duration::from_millis(900);
const TURNS: usize = 5;
const BARE_SYNCS: usize = 300;
/// Bytes of the frame of one event, about.
const FRAME_BYTES: usize = 512;
/// Events of a batch.
const BATCH: u64 = 100;

/// Requests that are answered before they are durable, of 256 connections: × the stand-in, × a
/// constant, and the 99th percentile.
pub(super) fn later(bench: &mut Bench) -> Result<Outcome> {
    const CONNECTIONS: u64 = 256;
    let sides = Sides::start(bench, "streams-async")?;
    let ours = sides.requests(&Sides::events("?durability=async"), 1);
    let beside = sides.requests(ASYNC, 1);
    let constant = sides.requests(CONSTANT, 1);
    expect_stored(&sides, &ours)?;
    let (mut rates, mut by_stand_in, mut by_constant) = (Vec::new(), Vec::new(), Vec::new());
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..TURNS {
        let answers = sides.ask(sides.ours, CONNECTIONS, TURN, &ours)?;
        let other = sides.ask(sides.stand_in.address, CONNECTIONS, TURN, &beside)?;
        let bare = sides.ask(sides.stand_in.address, CONNECTIONS, TURN, &constant)?;
        by_stand_in.push(answers.rate / other.rate);
        by_constant.push(answers.rate / bare.rate);
        rates.push(answers.rate);
        times.extend(answers.times);
    }
    sides.stop()?;
    let note = format!("{:.1} k/s; p50 {:.0} µs", median(&rates) / 1e3, percentile(&mut times, 50));
    let outcome = Outcome::default().and(median(&by_stand_in), None);
    let outcome = outcome.and(median(&by_constant), None);
    Ok(outcome.and(percentile(&mut times, 99), None).note(note))
}

/// Durable requests of one connection: the median, in syncs and an echo.
pub(super) fn alone(bench: &mut Bench) -> Result<Outcome> {
    let sides = Sides::start(bench, "streams-alone")?;
    let ours = sides.requests(&Sides::events(""), 1);
    let beside = sides.requests(DURABLE, 1);
    let constant = sides.requests(CONSTANT, 1);
    let path = bench.place("streams-bare")?;
    let mut bare = BareSync::create(&path)?;
    let (mut ratios, mut times, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let mut syncs = Vec::new();
        for _ in 0..BARE_SYNCS {
            syncs.push(bare.turn(FRAME_BYTES)?);
        }
        let mut own = sides.ask(sides.ours, 1, TURN, &ours)?;
        let mut echo = sides.ask(sides.stand_in.address, 1, TURN, &constant)?;
        let other = sides.ask(sides.stand_in.address, 1, TURN, &beside)?;
        let least = percentile(&mut syncs, 50) + percentile(&mut echo.times, 50);
        ratios.push(percentile(&mut own.times, 50) / least);
        rates.push(own.rate / other.rate);
        times.extend(own.times);
    }
    std::fs::remove_file(path)?;
    sides.stop()?;
    let p50 = percentile(&mut times, 50);
    let note = format!("p50 {p50:.0} µs, p99 {:.0} µs", percentile(&mut times, 99));
    Ok(Outcome::default().and(median(&ratios), None).and(median(&rates), None).note(note))
}

/// Durable requests of several connections: × the stand-in, and the 99th percentile.
pub(super) fn durable(bench: &mut Bench, connections: u64) -> Result<Outcome> {
    let sides = Sides::start(bench, "streams-durable")?;
    let ours = sides.requests(&Sides::events(""), 1);
    let beside = sides.requests(DURABLE, 1);
    let (mut rates, mut ratios, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let answers = sides.ask(sides.ours, connections, TURN, &ours)?;
        let other = sides.ask(sides.stand_in.address, connections, TURN, &beside)?;
        ratios.push(answers.rate / other.rate);
        rates.push(answers.rate);
        times.extend(answers.times);
    }
    sides.stop()?;
    let note = format!("{:.1} k/s; p50 {:.0} µs", median(&rates) / 1e3, percentile(&mut times, 50));
    let p99 = percentile(&mut times, 99);
    Ok(Outcome::default().and(median(&ratios), None).and(p99, None).note(note))
}

/// Durable batches of a hundred events: × the stand-in, and events a second.
pub(super) fn batches(bench: &mut Bench, connections: u64) -> Result<Outcome> {
    let sides = Sides::start(bench, "streams-batches")?;
    let ours = sides.requests(&Sides::events(""), BATCH);
    let beside = sides.requests(DURABLE, BATCH);
    let (mut rates, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let answers = sides.ask(sides.ours, connections, TURN, &ours)?;
        let other = sides.ask(sides.stand_in.address, connections, TURN, &beside)?;
        ratios.push(answers.rate / other.rate);
        rates.push(answers.rate * BATCH as f64);
    }
    sides.stop()?;
    Ok(Outcome::default().and(median(&ratios), None).and(median(&rates), None))
}

/// After an answer the next query has the event: how often it has not.
pub(super) fn visible(bench: &mut Bench) -> Result<Outcome> {
    const EVENTS: u64 = 500;
    let sides = Sides::start(bench, "streams-visible")?;
    let requests = sides.requests(&Sides::events("?durability=async"), 1);
    let (address, token) = (sides.ours, sides.token.clone());
    let count = move |body: &[u8]| -> Result<u64> {
        let answer: serde_json::Value = serde_json::from_slice(body)?;
        let cell = answer.pointer("/rows/0/n").or_else(|| answer.pointer("/rows/0/0"));
        cell.and_then(serde_json::Value::as_u64).ok_or_else(|| answer.to_string().into())
    };
    let question = format!(
        "POST /v1/databases/default/query HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \
         {token}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{QUESTION}",
        QUESTION.len()
    );
    let (missed, us) = sides.talk(async {
        let mut writes = Connection::open(address).await?;
        let mut reads = Connection::open(address).await?;
        let (mut missed, begun) = (0u64, Instant::now());
        for number in 1..=EVENTS {
            let at = usize::try_from(number)? % requests.len();
            writes.ask(requests.get(at).ok_or("no request")?).await?;
            missed += u64::from(count(reads.ask(question.as_bytes()).await?)? < number);
        }
        Ok((missed, begun.elapsed().as_secs_f64() * 1e6 / EVENTS as f64))
    })?;
    sides.stop()?;
    let note = format!("{EVENTS} events, each counted: {us:.0} µs for both");
    Ok(Outcome::default().and(missed as f64, None).note(note))
}

const QUESTION: &str = r#"{"sql":"SELECT count(*) AS n FROM events"}"#;

/// What is answered is stored, as it was sent.
fn expect_stored(sides: &Sides, requests: &[Vec<u8>]) -> Result<()> {
    let first = requests.first().ok_or("no requests")?.clone();
    let (address, token) = (sides.ours, sides.token.clone());
    sides.talk(async move {
        let mut connection = Connection::open(address).await?;
        let answer: serde_json::Value = serde_json::from_slice(connection.ask(&first).await?)?;
        let id = answer.get("id").and_then(serde_json::Value::as_str).ok_or("no id")?;
        let path = Sides::events(&format!("/{id}"));
        let get = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        let found: serde_json::Value =
            serde_json::from_slice(connection.ask(get.as_bytes()).await?)?;
        let sent: serde_json::Value = serde_json::from_str(&Event::new(0).json(false))?;
        for (name, value) in sent.as_object().ok_or("no event")? {
            if found.get(name) != Some(value) {
                return Err(format!("{name}: expected {value}, found {found}").into());
            }
        }
        Ok(())
    })
}
