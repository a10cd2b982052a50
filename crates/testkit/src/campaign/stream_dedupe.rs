//! A scenario of events that come again: each is there once, behind a crash, in segments, and
//! beside rows that others insert.

use esker::{DataType, Database, Options, Schema, StreamOption, Value};
use esker_vfs::sim::CrashChoice;

use super::directed::{Outcome, Scenario, expect, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 1] =
    [("events that come again, before and behind a crash", come_again)];

const REQUESTS: i64 = 40;
const MINUTE_US: i64 = 60_000_000;

fn options() -> Options {
    Options::new().background(false).group_limit(16, 1 << 20)
}

/// The event of a number, half a minute after the one before.
fn event(n: i64) -> [Value; 2] {
    [Value::Timestamp(n * MINUTE_US / 2), format!("request {n}").into()]
}

fn append_all(db: &Database) -> Outcome {
    let events = db.stream("events").map_err(said)?;
    (0..REQUESTS).try_for_each(|n| events.append(&event(n)).map(|_| ()).map_err(said))
}

fn expect_once(db: &Database, when: &str) -> Outcome {
    let count = db.table("events").and_then(|table| table.count()).map_err(said)?;
    expect(&format!("events {when}"), count, REQUESTS.unsigned_abs())
}

fn come_again() -> Outcome {
    let machine = machine();
    let db = open(options(), &machine)?;
    let dedupe = StreamOption::read("dedupe", Some("request within 1 minute"));
    let dedupe = dedupe.map_err(|e| e.to_string())?;
    let fields = Schema::builder().field("t", DataType::Timestamp).field("request", DataType::Text);
    let schema = fields.stream("t", [dedupe]).build().map_err(|e| e.to_string())?;
    db.create_table("events", schema).map_err(said)?;
    // What others insert is known to those who append.
    let events = db.stream("events").map_err(said)?;
    events.append(&event(0)).map_err(said)?;
    let rows: Vec<Vec<Value>> = (1..REQUESTS / 2).map(|n| event(n).to_vec()).collect();
    db.table("events").and_then(|table| table.insert_many(&rows)).map_err(said)?;
    append_all(&db)?;
    expect_once(&db, "that were inserted and appended")?;
    db.wait_idle().map_err(said)?;
    append_all(&db)?;
    expect_once(&db, "in segments")?;
    db.sync().map_err(said)?;
    let image = machine.crash_image(CrashChoice::KeepNone);
    let db = open(options(), &revived(&image))?;
    append_all(&db)?;
    expect_once(&db, "behind a crash")
}
