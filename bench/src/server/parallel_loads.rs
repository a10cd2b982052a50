//! Bulk loads over several connections at a time: sent, loaded and on the disk.

use std::time::Instant;

use esker::Durability;
use esker_client::{Duplicates, Format, ValueRef};

use super::service::{Service, TABLE};
use crate::Result;
use crate::bench::{Bench, boxed};
use crate::data::key;
use crate::outcome::Outcome;

const CONNECTIONS: u64 = 5;
/// Bytes of text that are handed to a client at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// What one connection sends, made before the clock starts.
struct Body {
    text: String,
    /// Where each value ends, of rows that the client encodes.
    ends: Vec<usize>,
}

/// Each format in turn.
pub(super) fn run(bench: &mut Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for format in [Format::MessagePack, Format::Csv, Format::Ndjson] {
        outcome = outcome.and(rate(bench, format)?, None);
    }
    Ok(outcome)
}

fn rate(bench: &Bench, format: Format) -> Result<f64> {
    let bodies: Vec<Body> =
        (0..CONNECTIONS).map(|connection| body(bench, format, connection)).collect();
    let service = Service::start(bench, "server-bulks", Durability::Sync)?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let service = &service;
        let send = |body| scope.spawn(move || send(service, format, body));
        let threads: Vec<_> = bodies.iter().map(send).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a panic")?)
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let count = service.count()?;
    if count != bench.rows {
        return Err(format!("{count} rows, not {}", bench.rows).into());
    }
    service.stop()?;
    Ok(bench.rows as f64 / seconds)
}

/// The rows of one connection: every fifth.
fn body(bench: &Bench, format: Format, connection: u64) -> Body {
    let (mut text, mut ends) = (String::new(), Vec::new());
    if format == Format::Csv {
        text.push_str("key,value\n");
    }
    let mut row = connection;
    while row < bench.rows {
        let (key, value) = (key(row), bench.texts.text(row));
        match format {
            Format::MessagePack => {
                text.push_str(&key);
                ends.push(text.len());
                text.push_str(value);
                ends.push(text.len());
            }
            Format::Csv => text.extend([key.as_str(), ",", value, "\n"]),
            Format::Ndjson => {
                text.extend(["{\"key\":\"", &key, "\",\"value\":\"", value, "\"}\n"]);
            }
        }
        row += CONNECTIONS;
    }
    Body { text, ends }
}

fn send(service: &Service, format: Format, body: &Body) -> Result<()> {
    let mut client = service.connect()?;
    let mut load = client.load(TABLE, format, Duplicates::Error).map_err(boxed)?;
    if format == Format::MessagePack {
        let mut at = 0;
        for pair in body.ends.chunks_exact(2) {
            let values = pair.iter().map(|end| {
                let value = body.text.get(at..*end).unwrap_or_default();
                at = *end;
                ValueRef::Text(value)
            });
            load.push_refs(values).map_err(boxed)?;
        }
    } else {
        for chunk in body.text.as_bytes().chunks(CHUNK_BYTES) {
            load.push_text(chunk).map_err(boxed)?;
        }
    }
    load.finish().map_err(boxed)?;
    Ok(())
}
