//! A scenario of packed events: what is read of them is what was written, sealed, compressed, and
//! behind a crash.

use std::time::Duration;

use esker::{DataType, Database, Options, Schema, StreamOption, Value};
use esker_vfs::sim::CrashChoice;

use super::directed::{Outcome, Scenario, expect, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 2] = [
    ("events that are packed, then compressed, and crash", || packed(0)),
    ("compressed events of two windows, read in turn", || packed(DAY_US)),
];

const DAY_US: i64 = 86_400_000_000;
const EVENTS: i64 = 2_500;

fn options() -> Options {
    Options::new().background(false).group_limit(1_250, 1 << 20).small_group_limit(0)
}

/// The event of a number: a second after the one before, now and then half of one; the second half
/// of them so much later.
fn event((first_us, pause_us): (i64, i64), n: i64) -> [Value; 3] {
    let pause_us = if n < EVENTS / 2 { 0 } else { pause_us };
    let at_us = first_us + n * 1_000_000 - if n % 5 == 0 { 500_000 } else { 0 } + pause_us;
    [Value::Timestamp(at_us), (n % 77).into(), format!("request {:08}", n * 7_919).into()]
}

fn expect_all(db: &Database, times: (i64, i64), when: &str) -> Outcome {
    let snapshot = db.snapshot().map_err(said)?;
    let rows = snapshot.table("events").and_then(|table| table.rows()).map_err(said)?;
    let count = u64::try_from(rows.len()).map_err(|e| e.to_string())?;
    expect(&format!("events {when}"), count, EVENTS.unsigned_abs())?;
    for ((_, found), n) in rows.into_iter().zip(0..) {
        let wanted = event(times, n);
        if found != wanted {
            return Err(format!("event {n} {when}: {found:?}, expected {wanted:?}"));
        }
    }
    Ok(())
}

fn packed(pause_us: i64) -> Outcome {
    let machine = machine();
    let db = open(options(), &machine)?;
    let window = StreamOption::read("window", Some("1 day")).map_err(|e| e.to_string())?;
    let fields = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
    let schema = fields.field("request", DataType::Text).stream("t", [window]).build();
    db.create_table("events", schema.map_err(|e| e.to_string())?).map_err(said)?;
    // As if it were two hours after the beginning of a day.
    let rest = DAY_US - db.clock().date_us.rem_euclid(DAY_US);
    machine.advance_clock(Duration::from_micros(rest.unsigned_abs()) + Duration::from_secs(7_200));
    let times = (db.clock().date_us - EVENTS * 1_000_000 - pause_us, pause_us);
    let events = db.table("events").map_err(said)?;
    for n in 0..EVENTS {
        events.insert(&event(times, n)).map_err(said)?;
    }
    db.wait_idle().map_err(said)?;
    expect_all(&db, times, "when they are sealed")?;
    let crashed = |db: &Database, when: &str| {
        db.sync().map_err(said)?;
        let image = machine.crash_image(CrashChoice::KeepNone);
        expect_all(&open(options(), &revived(&image))?, times, when)
    };
    crashed(&db, "behind a crash")?;
    let sealed = db.info().tables.first().map(|table| table.segment_bytes);
    machine.advance_clock(Duration::from_secs(3 * 86_400));
    db.wait_idle().map_err(said)?;
    let closed = db.info().tables.first().map(|table| table.segment_bytes);
    if closed >= sealed {
        return Err(format!("{closed:?} bytes of a closed window, {sealed:?} before"));
    }
    expect_all(&db, times, "when their window is closed")?;
    crashed(&db, "compressed, behind a crash")?;
    match db.check().map_err(said)?.problems.first() {
        Some(problem) => Err(format!("check: {problem:?}")),
        None => Ok(()),
    }
}
