//! Scenarios of streams: row ids rise with the commits, and none is given twice.

use std::time::Duration;

use esker::{DataType, Database, Durability, ErrorKind, Options, Schema, Value};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

use super::directed::{Outcome, Scenario, expect, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 3] = [
    ("events of transactions and loads that others overtake, and a crash", overtaken),
    ("events that nobody waited for, and a crash", lost),
    ("events of a producer that goes on after a crash", produced),
];

fn options() -> Options {
    Options::new()
        .background(false)
        .commit_limit(2_000)
        .transaction_limit(4_000)
        .segment_limit(32)
        .durability(Durability::Async { at_most: Duration::from_secs(3_600) })
}

fn event(n: i64) -> Vec<Value> {
    vec![Value::Timestamp(n), n.into()]
}

fn begun(machine: &Simulation) -> Result<Database, String> {
    let db = open(options(), machine)?;
    let fields = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
    let schema = fields.stream("t", []).build().map_err(|e| e.to_string())?;
    db.create_table("events", schema).map_err(said)?;
    Ok(db)
}

/// What the events are called, by their row ids.
fn arrived(db: &Database) -> Result<Vec<(u64, i64)>, String> {
    let table = db.table("events").map_err(said)?;
    let rows = table.snapshot().and_then(|snapshot| snapshot.rows()).map_err(said)?;
    let named = |(id, row): (_, Vec<Value>)| match row.get(1) {
        Some(Value::Int(n)) => Ok((id, *n)),
        other => Err(format!("an event with {other:?}")),
    };
    let mut events = rows.into_iter().map(named).collect::<Result<Vec<_>, String>>()?;
    events.sort_unstable();
    Ok(events)
}

/// The new ones have row ids above all that were there before.
fn expect_behind(db: &Database, before: &[(u64, i64)], new: usize) -> Outcome {
    let after = arrived(db)?;
    expect("events", after.len() as u64, (before.len() + new) as u64)?;
    match after.get(..before.len()) == Some(before) {
        true => Ok(()),
        false => Err("an event has a row id below one that was committed before".to_owned()),
    }
}

fn overtaken() -> Outcome {
    let machine = machine();
    let db = begun(&machine)?;
    let events = db.table("events").map_err(said)?;
    let add = |n: i64| events.insert(&event(n)).map_err(said);
    for n in 0..5 {
        add(n)?;
    }
    // Few events stay in memory; many are spilled, some of which replace others.
    for count in [3, 200] {
        let slow = db.begin().map_err(said)?;
        let mut load = events.load().map_err(said)?;
        {
            let own = slow.table("events").map_err(said)?;
            for n in 0..count {
                own.insert(&event(100 + n)).map_err(said)?;
                load.push_row(&event(1_000 + n)).map_err(said)?;
            }
            load.wait().map_err(said)?;
        }
        add(7)?;
        let before = arrived(&db)?;
        slow.commit().map_err(said)?;
        let new = usize::try_from(count).map_err(|e| e.to_string())?;
        expect_behind(&db, &before, new)?;
        add(8)?;
        let before = arrived(&db)?;
        load.finish().map_err(said)?;
        expect_behind(&db, &before, new)?;
    }
    db.sync().map_err(said)?;
    let before = arrived(&db)?;
    let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
    expect_behind(&db, &before, 0)?;
    db.checkpoint().map_err(said)?;
    db.compact(true, &mut |_, _| ()).map_err(said)?;
    expect_behind(&db, &before, 0)
}

fn lost() -> Outcome {
    let machine = machine();
    let db = begun(&machine)?;
    let events = db.table("events").map_err(said)?;
    events.insert(&event(1)).map_err(said)?;
    db.sync().map_err(said)?;
    let told = events.insert(&event(2)).map_err(said)?;
    let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
    expect("events", arrived(&db)?.len() as u64, 1)?;
    let new = db.table("events").and_then(|events| events.insert(&event(3))).map_err(said)?;
    match new > told {
        true => Ok(()),
        false => Err(format!("row id {new} was given to an event that a crash took")),
    }
}

/// After each call of the machine, what is kept of a producer is as its events are; and whoever
/// sends all of them again has each there once.
fn produced() -> Outcome {
    const REQUESTS: u64 = 4;
    let machine = Simulation::new(9, SimOptions { record: true, ..SimOptions::default() });
    let options = || Options::new().background(false);
    let producer = |db: &Database| db.stream("events").and_then(|s| s.producer("a", 1));
    let send = |db: &Database| {
        let producer = producer(db)?;
        for request in 0..REQUESTS {
            let events: Vec<_> = (0..3).map(|n| event((request * 3 + n).cast_signed())).collect();
            match producer.append_from(request * 3, &events) {
                Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
                _ => {}
            }
        }
        Ok(())
    };
    let db = open(options(), &machine)?;
    let fields = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
    let schema = fields.stream("t", []).build().map_err(|e| e.to_string())?;
    db.create_table("events", schema).map_err(said)?;
    send(&db).map_err(said)?;
    drop(db);
    let journal = machine.journal().ok_or("a machine that records nothing")?;
    let mut cursor = journal.cursor();
    loop {
        for choice in [CrashChoice::KeepNone, CrashChoice::Random(1), CrashChoice::Random(2)] {
            let db = open(options(), &revived(&cursor.crash_image(choice)))?;
            if db.tables().iter().all(|name| name != "events") {
                continue;
            }
            let there = arrived(&db)?.len() as u64;
            let next = producer(&db).and_then(|producer| producer.next_seq()).map_err(said)?;
            expect("the number of the next event", next, there)?;
            send(&db).map_err(said)?;
            let events = arrived(&db)?;
            expect("events", events.len() as u64, REQUESTS * 3)?;
            let is_next = |(at, (_, n)): (i64, &(u64, i64))| at == *n;
            if !(0..).zip(&events).all(is_next) {
                return Err(format!("events in another order: {events:?}"));
            }
        }
        if !cursor.advance() {
            return Ok(());
        }
    }
}
