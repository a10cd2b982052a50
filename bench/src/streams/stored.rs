//! What is stored of many events: bytes, pages of the newest, sums by user and time, and the end of
//! a window.

use std::time::Instant;

use esker::{Database, Durability, Options, Schema};
use esker_sql::Sql;

use super::event::{Event, FIRST_US, STEP_US, STREAM, schema, table_schema, user_name};
use crate::Result;
use crate::bench::{Bench, boxed};
use crate::outcome::Outcome;
use crate::timing::repeat;

/// Events that bytes are counted of.
const COUNTED: u64 = 1 << 20;
/// How often each question is asked.
const TIMES: usize = 200;

/// Events in segments, which came by a load.
fn loaded(bench: &Bench, name: &str, events: u64) -> Result<Database> {
    loaded_as(bench, name, events, schema()?)
}

fn loaded_as(bench: &Bench, name: &str, events: u64, schema: Schema) -> Result<Database> {
    let options = Options::new().durability(Durability::Sync);
    let database = options.open(bench.place(name)?)?;
    let mut load = database.create_table(STREAM, schema)?.load()?;
    for number in 0..events {
        load.push_row(&Event::new(number).row()?)?;
    }
    load.finish()?;
    database.wait_idle()?;
    Ok(database)
}

/// Bytes of an event in segments, and how many times those of its lines of JSON by zstd 3.
pub(super) fn bytes(bench: &mut Bench) -> Result<Outcome> {
    let events = COUNTED.min(bench.rows);
    let database = loaded(bench, "streams-bytes", events)?;
    database.compact(false, &mut |_, _| ())?;
    database.wait_idle()?;
    let info = database.info();
    let table = info.tables.iter().find(|table| table.name == STREAM).ok_or("no stream")?;
    let each = table.segment_bytes as f64 / events as f64;
    let lines: Vec<u8> = (0..events)
        .flat_map(|number| (Event::new(number).json(true) + "\n").into_bytes())
        .collect();
    let packed = zstd::bulk::compress(&lines, 3)?.len() as f64 / events as f64;
    database.close()?;
    let note = format!(
        "lines of JSON: {:.0} B, {packed:.1} B by zstd 3",
        lines.len() as f64 / events as f64
    );
    Ok(Outcome::default().and(each, None).and(each / packed, None).note(note))
}

/// The same with an index of users and times, as who asks by user makes one.
fn indexed(database: Database) -> Result<Database> {
    let create = format!("CREATE INDEX by_user ON {STREAM} (user_id, t)");
    database.prepare(&create).map_err(boxed)?.run(()).map_err(boxed)?;
    database.wait_idle()?;
    Ok(database)
}

/// Questions that look at all events.
const SCANS: [&str; 4] = [
    "SELECT sum(latency_ms), sum(cost_nano), sum(input_tokens) FROM events",
    "SELECT count(*) FROM events WHERE status = 429 AND input_tokens > 3000",
    "SELECT model, count(*), sum(output_tokens) FROM events GROUP BY model",
    "SELECT count(*) FROM events WHERE t >= '2026-01-01T00:05:00.5Z' AND latency_ms < 900",
];

/// Scans of packed events, as parts of the speed of those of the same rows in a table.
pub(super) fn scans(bench: &mut Bench) -> Result<Outcome> {
    let events = COUNTED.min(bench.rows);
    let stream = loaded(bench, "streams-packed", events)?;
    let table = loaded_as(bench, "streams-plain", events, table_schema()?)?;
    let (mut outcome, mut note) = (Outcome::default(), Vec::new());
    for question in SCANS {
        let prepared = [&stream, &table].map(|database| database.prepare(question).map_err(boxed));
        let [packed, plain] = prepared;
        let (packed, plain) = (packed?, plain?);
        let [answer, wanted] = [&packed, &plain].map(|one| one.query(()).map_err(boxed));
        if answer?.to_rows() != wanted?.to_rows() {
            return Err(format!("{question}: another answer").into());
        }
        let (mut packed_us, mut plain_us) = (f64::MAX, f64::MAX);
        for _ in 0..5 {
            packed_us = packed_us.min(repeat(TIMES / 10, || packed.query(()))?.median);
            plain_us = plain_us.min(repeat(TIMES / 10, || plain.query(()))?.median);
        }
        outcome = outcome.and(plain_us / packed_us, None);
        note.push(format!("{packed_us:.0} and {plain_us:.0} µs"));
    }
    stream.close()?;
    table.close()?;
    Ok(outcome.note(note.join(", ")))
}

/// Pages and sums of many events: µs of each.
pub(super) fn reads(bench: &mut Bench) -> Result<Outcome> {
    let events = bench.rows;
    let database = match bench.kept.remove("streams") {
        Some(kept) => kept,
        None => indexed(loaded(bench, "streams-reads", events)?)?,
    };
    let last_us = FIRST_US + i64::try_from((events - 1) * STEP_US)?;
    let user = user_name(7);
    let hour_us = last_us - 3_600_000_000;
    let time = |us: i64| format!("'{}'", esker::Value::Timestamp(us));
    let questions = [
        "SELECT * FROM events ORDER BY t DESC LIMIT 100".to_owned(),
        "SELECT * FROM events ORDER BY t DESC LIMIT 1000".to_owned(),
        format!("SELECT * FROM events WHERE user_id = '{user}' ORDER BY t DESC LIMIT 100"),
        format!(
            "SELECT sum(cost_nano), count(*) FROM events WHERE user_id = '{user}' AND t >= {}",
            time(hour_us)
        ),
    ];
    let mut outcome = Outcome::default();
    for question in &questions {
        let prepared = database.prepare(question).map_err(boxed)?;
        let run = || prepared.query(());
        let first = run().map_err(boxed)?.to_rows();
        if first.is_empty() {
            return Err(format!("{question}: no rows").into());
        }
        outcome = outcome.and(repeat(TIMES, run)?.median, None);
    }
    let newest = database
        .prepare("SELECT max(t) FROM events")
        .map_err(boxed)?
        .query(())
        .map_err(boxed)?
        .to_rows();
    if newest != [[esker::Value::Timestamp(last_us)]] {
        return Err(format!("the newest event is {newest:?}").into());
    }
    bench.kept.insert("streams", database);
    Ok(outcome)
}

/// Ending half of the events at once: µs of the commit, and whether none is left.
pub(super) fn ending(bench: &mut Bench) -> Result<Outcome> {
    let events = bench.rows;
    let database = loaded(bench, "streams-ending", events)?;
    let stream = database.stream(STREAM)?;
    let days = i64::try_from(events * STEP_US)? / 86_400_000_000;
    let bound_us = FIRST_US + (days / 2).max(1) * 86_400_000_000;
    let begun = Instant::now();
    let ended = stream.delete_before(bound_us)?;
    let us = begun.elapsed().as_secs_f64() * 1e6;
    let left = database.table(STREAM)?.count()?;
    if left + ended != events {
        return Err(format!("{ended} events ended, {left} are left").into());
    }
    database.close()?;
    Ok(Outcome::default().and(us, None).note(format!("{ended} of {events} events")))
}
