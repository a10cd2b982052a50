//! Scenarios of streams whose events end: whole segments, and rows of others, in one commit.

use std::time::Duration;

use esker::{
    DataType, Database, Options, Schema, Snapshot, StreamOption, TailBatch, TailFrom, Value,
};
use esker_vfs::sim::{CrashChoice, Simulation};

use super::directed::{Outcome, Scenario, expect, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 3] = [
    ("events end by class and window, beside a snapshot, and crashes", ended),
    ("late events that share segments with others end", stragglers),
    ("a tail is told that events ended before it came to them", passed),
];

const DAY_US: i64 = 86_400_000_000;

fn options() -> Options {
    Options::new().background(false).group_limit(16, 1 << 20).small_group_limit(0)
}

fn begun(machine: &Simulation, retention: &[(&str, &str)]) -> Result<Database, String> {
    let db = open(options(), machine)?;
    let option = |(name, value): &(&str, &str)| StreamOption::read(name, Some(value));
    let options: Result<Vec<_>, _> = retention.iter().map(option).collect();
    let fields = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
    let fields = fields.field("tier", DataType::Text);
    let schema = fields.stream("t", options.map_err(|e| e.to_string())?).build();
    db.create_table("events", schema.map_err(|e| e.to_string())?).map_err(said)?;
    Ok(db)
}

fn add(db: &Database, t: i64, n: i64, tier: &str) -> Outcome {
    let event = [Value::Timestamp(t), n.into(), tier.into()];
    db.table("events").and_then(|events| events.insert(&event)).map(drop).map_err(said)
}

/// The events of a snapshot, by a scan.
fn scanned(snapshot: &Snapshot) -> Result<u64, String> {
    let rows = snapshot.table("events").and_then(|table| table.rows()).map_err(said)?;
    u64::try_from(rows.len()).map_err(|e| e.to_string())
}

fn now_scanned(db: &Database) -> Result<u64, String> {
    scanned(&db.snapshot().map_err(said)?)
}

fn ended() -> Outcome {
    let machine = machine();
    let by_class = [
        ("retention", "3 days"),
        ("retention_by", "tier: free 1 day, vip forever"),
        ("window", "1 day"),
    ];
    let db = begun(&machine, &by_class)?;
    // As if it were an hour after the beginning of a day.
    let rest = DAY_US - db.clock().date_us.rem_euclid(DAY_US);
    machine.advance_clock(Duration::from_micros(rest.unsigned_abs()) + Duration::from_secs(3_600));
    let pass = |hours: u64| {
        machine.advance_clock(Duration::from_secs(3_600 * hours));
        db.wait_idle().map_err(said)
    };
    for day in 0..3 {
        let now_us = db.clock().date_us;
        for n in 0..32 {
            // Every eighth event comes a day late, and shares segments with others.
            let tier = if n % 4 == 1 { "free" } else { "pro" };
            let is_late = n % 8 == 0 && day > 0;
            add(&db, now_us - if is_late { DAY_US } else { 0 }, day * 100 + n, tier)?;
        }
        add(&db, now_us, day * 100 + 99, "vip")?;
        pass(24)?;
    }
    // Three days later: free events of the first two days have ended, those of the third are left.
    expect("events", now_scanned(&db)?, 3 * 33 - 2 * 8)?;
    let held = db.snapshot().map_err(said)?;
    pass(24)?;
    // Those of the first day, and of the second that came as of it.
    let left = 3 * 33 - 3 * 8 - 24 - 4;
    expect("events a day later", now_scanned(&db)?, left)?;
    expect("events of the snapshot", scanned(&held)?, 3 * 33 - 2 * 8)?;
    let crashed = |db: &Database| {
        db.sync().map_err(said)?;
        let image = machine.crash_image(CrashChoice::KeepNone);
        let db = open(options(), &revived(&image))?;
        expect("events after a crash", now_scanned(&db)?, left)?;
        expect("counted events", db.table("events").and_then(|t| t.count()).map_err(said)?, left)
    };
    crashed(&db)?;
    db.checkpoint().map_err(said)?;
    crashed(&db)?;
    drop(held);
    db.wait_idle().map_err(said)?;
    crashed(&db)?;
    pass(24)?;
    pass(24)?;
    expect("only what is kept for ever", now_scanned(&db)?, 3)?;
    match db.check().map_err(said)?.problems.first() {
        Some(problem) => Err(format!("check: {problem:?}")),
        None => Ok(()),
    }
}

/// A tail has read a part of what ends, and goes on with what comes.
fn passed() -> Outcome {
    let machine = machine();
    let db = begun(&machine, &[("retention", "1 day"), ("window", "1 hour")])?;
    for n in 0..24 {
        add(&db, db.clock().date_us, n, "pro")?;
    }
    let stream = db.stream("events").map_err(said)?;
    let mut tail = stream.tail(TailFrom::After(0), None).map_err(said)?;
    let mut next = |limit| tail.next_batch(limit, Duration::ZERO).map_err(said);
    match next(3)? {
        TailBatch::Events(events) if events.len() == 3 => {}
        other => return Err(format!("the first three events are {other:?}")),
    }
    machine.advance_clock(Duration::from_secs(3 * 86_400));
    db.wait_idle().map_err(said)?;
    add(&db, db.clock().date_us, 24, "pro")?;
    match (next(100)?, next(100)?) {
        (TailBatch::Gap { from: 4, to: 24 }, TailBatch::Events(events)) if events.len() == 1 => {}
        other => return Err(format!("a tail that 21 events ended before is told {other:?}")),
    }
    Ok(())
}

/// Late events of two days share a segment; the end of a class passes between them.
fn stragglers() -> Outcome {
    let machine = machine();
    let db = begun(&machine, &[("retention", "4 days"), ("window", "1 day")])?;
    let rest = DAY_US - db.clock().date_us.rem_euclid(DAY_US);
    machine.advance_clock(Duration::from_micros(rest.unsigned_abs()) + Duration::from_secs(3_600));
    let now_us = db.clock().date_us;
    for n in 0..64 {
        // Of 16 events one is a day late, and one two days: too few for segments of their own.
        let late = match n % 16 {
            3 => DAY_US,
            7 => 2 * DAY_US,
            _ => 0,
        };
        add(&db, now_us - late, n, "pro")?;
    }
    db.wait_idle().map_err(said)?;
    let mut left = 64;
    for ends in [0, 0, 0, 4, 4, 56] {
        expect("events", now_scanned(&db)?, left - ends)?;
        left -= ends;
        machine.advance_clock(Duration::from_secs(24 * 3_600));
        db.wait_idle().map_err(said)?;
    }
    expect("events in the end", now_scanned(&db)?, 0)
}
