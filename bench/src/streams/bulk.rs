//! Many events at once: lines of JSON over one connection, and calls in process.

use std::time::Instant;

use esker::{Durability, EventId, Options, Value};

use super::client::post;
use super::event::{Event, STREAM, schema};
use super::sides::Sides;
use crate::Result;
use crate::bench::Bench;
use crate::outcome::Outcome;

/// Events of a call in process.
const CALL: u64 = 4_096;
/// Events of a body of lines.
const LINES: u64 = 200_000;

/// A body of lines of JSON: events a second until all are durable.
pub(super) fn lines(bench: &mut Bench) -> Result<Outcome> {
    let sides = Sides::start(bench, "streams-lines")?;
    let lines: Vec<String> = (0..LINES).map(|n| Event::new(n).json(true)).collect();
    let path = Sides::events("?each=true");
    let body = lines.join("\n");
    let mut request = post(&path, &sides.token, "application/x-ndjson", &body);
    let minimal = b"prefer: return=minimal\r\ncontent-length: ";
    replace(&mut request, b"content-length: ", minimal)?;
    let address = sides.ours;
    let seconds = sides.talk(async {
        let mut connection = super::client::Connection::open(address).await?;
        let begun = Instant::now();
        connection.ask(&request).await?;
        Ok(begun.elapsed().as_secs_f64())
    })?;
    sides.stop()?;
    let note = format!("{LINES} events, {:.0} bytes each", body.len() as f64 / LINES as f64);
    Ok(Outcome::default().and(LINES as f64 / seconds, None).note(note))
}

/// Puts some bytes in place of the first that are equal to others.
fn replace(all: &mut Vec<u8>, old: &[u8], new: &[u8]) -> Result<()> {
    let at = all.windows(old.len()).position(|window| window == old).ok_or("no such header")?;
    all.splice(at..at + old.len(), new.iter().copied());
    Ok(())
}

/// Calls of 4,096 events in process, one thread after another call: events a second.
pub(super) fn embedded(bench: &mut Bench) -> Result<Outcome> {
    let events = (bench.rows / 10).clamp(CALL, 100 * CALL);
    let database = Options::new().durability(Durability::Sync).open(bench.place("streams-own")?)?;
    database.create_table(STREAM, schema()?)?;
    let stream = database.stream(STREAM)?;
    let calls: Vec<Vec<Vec<Value>>> = (0..events / CALL)
        .map(|call| (0..CALL).map(|n| Event::new(call * CALL + n).row()).collect())
        .collect::<Result<_>>()?;
    let begun = Instant::now();
    for rows in &calls {
        let outcomes: Vec<esker::Result<EventId>> = stream.append_many(rows);
        for outcome in outcomes {
            outcome?;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let stored = database.table(STREAM)?.count()?;
    if stored != events / CALL * CALL {
        return Err(format!("{stored} events are stored").into());
    }
    database.close()?;
    Ok(Outcome::default().and(stored as f64 / seconds, None))
}
