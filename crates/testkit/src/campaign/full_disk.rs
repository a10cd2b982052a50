//! Scenarios of a full disk: what frees space succeeds, and then all goes on.

use std::path::Path;

use esker::{DataType, Database, ErrorKind, Options, Schema, Value};
use esker_vfs::OpenMode;
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

use super::directed::{Outcome, Scenario, count, expect, open, row, said};

pub(super) const SCENARIOS: [Scenario; 1] =
    [("a disk that is full from some call on", emptied_from_every_call_on)];

/// The least size of the log's reserve.
const RESERVE_BYTES: u64 = 16 << 10;
/// Rows of one commit: some kilobytes.
const ROWS: u64 = 10;
const TABLES: [&str; 4] = ["kept", "dropped", "truncated", "deleted"];

fn options() -> Options {
    Options::new().group_limit(40, 1 << 20).small_group_limit(4 << 10).log_limit(40 << 10)
}

fn has_reserve(machine: &Simulation) -> bool {
    let files = machine.environment().files;
    let file = files.open(Path::new("db/reserve"), OpenMode::Read);
    file.and_then(|file| file.len()).is_ok_and(|len| len >= RESERVE_BYTES)
}

/// What the disk may refuse: true when it was done.
fn unless_full<T>(result: esker::Result<T>) -> Result<bool, String> {
    match result {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NoSpace => Ok(false),
        Err(e) => Err(said(e)),
    }
}

fn schema() -> Result<Schema, String> {
    let fields = Schema::builder().field("id", DataType::U64).field("text", DataType::Text);
    fields.primary_key(["id"]).build().map_err(|e| e.to_string())
}

/// Inserts some rows from a key on.
fn insert(db: &Database, table: &str, from: u64) -> Result<bool, String> {
    let rows: Vec<Vec<Value>> = (from..from + ROWS).map(row).collect();
    unless_full(db.table(table).map_err(said)?.insert_many(&rows))
}

/// Makes and fills tables while the disk fills up; returns how many rows each has.
fn work(db: &Database) -> Result<Vec<(&'static str, u64)>, String> {
    let mut tables = Vec::new();
    for name in TABLES {
        if unless_full(db.create_table(name, schema()?))? {
            tables.push((name, 0));
        }
    }
    unless_full(db.bucket("bucket").and_then(|bucket| bucket.put("key", "value")))?;
    for _ in 0..8 {
        for (name, rows) in &mut tables {
            *rows += if insert(db, name, *rows)? { ROWS } else { 0 };
        }
    }
    unless_full(db.checkpoint())?;
    Ok(tables)
}

/// Frees space, which must succeed, and sees that nothing else is gone.
fn empty(db: &Database, tables: &[(&'static str, u64)]) -> Outcome {
    for (name, rows) in tables {
        expect(name, count(db, name)?, *rows)?;
    }
    for (name, rows) in tables {
        let done = match *name {
            "dropped" => db.drop_table(name),
            "truncated" => db.truncate_table(name),
            "deleted" => {
                let table = db.table(name).map_err(said)?;
                (0..(*rows).min(5)).try_for_each(|id| table.delete(&[Value::Uint(id)]).map(drop))
            }
            _ => Ok(()),
        };
        done.map_err(|e| format!("{name}: {}", said(e)))?;
    }
    if db.buckets().iter().any(|name| name == "bucket") {
        let bucket = db.bucket("bucket").map_err(said)?;
        bucket.remove("key").map_err(|e| format!("remove: {}", said(e)))?;
        bucket.clear().map_err(|e| format!("clear: {}", said(e)))?;
    }
    Ok(())
}

/// Inserts until the disk refuses it.
fn fill(db: &Database, machine: &Simulation) -> Outcome {
    db.create_table("filling", schema()?).map_err(said)?;
    db.wait_idle().map_err(said)?;
    machine.set_capacity_bytes(machine.used_bytes());
    let mut rows = 0;
    while insert(db, "filling", rows)? {
        rows += ROWS;
    }
    let table = db.table("filling").map_err(said)?;
    while unless_full(table.insert(&row(rows)))? {
        rows += 1;
    }
    expect("rows of a refused commit", count(db, "filling")?, rows)
}

fn full_after(calls: u64) -> Result<bool, String> {
    let machine = Simulation::new(calls, SimOptions::default());
    machine.fill_disk_after(calls);
    // Before the reserve is there nothing is promised.
    let Ok(db) = options().environment(machine.environment()).open("db") else { return Ok(false) };
    if !has_reserve(&machine) {
        return Ok(false);
    }
    let tables = work(&db)?;
    let is_over = machine.call_count() < calls;
    let (capacity, mut machine) = (machine.used_bytes(), machine);
    match calls % 3 {
        0 => db.close().map_err(|e| format!("close: {}", said(e)))?,
        how => {
            // The machine dies; the process, too.
            let choice = if how == 1 { CrashChoice::KeepAll } else { CrashChoice::KeepNone };
            machine =
                Simulation::from_image(&machine.crash_image(choice), 8, SimOptions::default());
            machine.set_capacity_bytes(capacity.max(machine.used_bytes()));
        }
    }
    let db = open(options(), &machine)?;
    empty(&db, &tables)?;
    db.close().map_err(|e| format!("close: {}", said(e)))?;
    let db = open(options(), &machine)?;
    machine.set_capacity_bytes(u64::MAX);
    db.wait_idle().map_err(said)?;
    if let Some((name, rows)) = tables.first() {
        insert(&db, name, *rows)?;
        expect(name, count(&db, name)?, rows + ROWS)?;
    }
    // The reserve is there again, for the next time.
    fill(&db, &machine)?;
    let bucket = db.table("filling").map_err(said)?;
    bucket.delete(&[Value::Uint(0)]).map_err(|e| format!("once more, delete: {}", said(e)))?;
    db.close().map_err(|e| format!("close: {}", said(e)))?;
    let db = open(options(), &machine).map_err(|e| format!("once more, open: {e}"))?;
    db.drop_table("filling").map_err(|e| format!("once more, drop: {}", said(e)))?;
    match db.check().map_err(said)?.problems.first() {
        None => Ok(is_over),
        Some(problem) => Err(format!("{problem:?}")),
    }
}

fn emptied_from_every_call_on() -> Outcome {
    let mut calls = 0;
    while !full_after(calls).map_err(|e| format!("full after call {calls}: {e}"))? {
        calls += 1;
    }
    Ok(())
}
