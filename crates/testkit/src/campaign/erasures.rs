//! Scenarios of erasures: what was erased is in no file once they say that they are done.

use std::path::Path;

use esker::{DataType, Database, ErasureInfo, Options, Schema, Table, Value};
use esker_query::model::{Expr, Operator};
use esker_vfs::OpenMode;
use esker_vfs::sim::{CrashChoice, Simulation};

use super::directed::{Outcome, Scenario, expect, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 3] = [
    ("events are erased from every file, beside a reader of one", beside_a_reader),
    ("an erasure goes on after a crash", after_a_crash),
    ("a log file with rows that are erased has become the reserve", in_the_reserve),
];

const MARK: &str = "ada-lovelace-1815";
const EVENTS: u64 = 64;
const ERASED: u64 = EVENTS / 8;

fn options() -> Options {
    Options::new().background(false).group_limit(16, 1 << 20).small_group_limit(0)
}

fn begun(machine: &Simulation) -> Result<(Database, Table), String> {
    let db = open(options(), machine)?;
    let fields = Schema::builder().field("t", DataType::Timestamp).field("user", DataType::Text);
    let schema = fields.stream("t", []).build().map_err(|e| e.to_string())?;
    let events = db.create_table("events", schema).map_err(said)?;
    for n in 0..EVENTS {
        let user = if n % 8 == 3 { MARK.to_owned() } else { format!("user {n}") };
        let t = i64::try_from(n).map_err(|e| e.to_string())?;
        events.insert(&[Value::Timestamp(t), Value::Text(user)]).map_err(said)?;
    }
    db.wait_idle().map_err(said)?;
    Ok((db, events))
}

fn erase(events: &Table) -> Outcome {
    let is_marked = Expr::field("user").binary(Operator::Eq, Expr::literal(MARK));
    expect("events erased", events.erase(Some(&is_marked)).map_err(said)?.rows, ERASED)
}

fn first(db: &Database) -> Result<ErasureInfo, String> {
    let mut all = db.erasures().map_err(said)?;
    if all.is_empty() { Err("no erasure".to_owned()) } else { Ok(all.remove(0)) }
}

/// The files that have the text.
fn with_mark(machine: &Simulation) -> Result<Vec<String>, String> {
    let (files, dir, mut found) = (machine.environment().files, Path::new("db"), Vec::new());
    let failed = |e: esker_vfs::Error| e.to_string();
    for name in files.list(dir).map_err(failed)? {
        let file = files.open(&dir.join(&name), OpenMode::Read).map_err(failed)?;
        let len = usize::try_from(file.len().map_err(failed)?).map_err(|e| e.to_string())?;
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, 0).map_err(failed)?;
        if bytes.windows(MARK.len()).any(|part| part == MARK.as_bytes()) {
            found.push(name);
        }
    }
    Ok(found)
}

fn expect_done(db: &Database, machine: &Simulation) -> Outcome {
    db.wait_idle().map_err(said)?;
    let info = first(db)?;
    if info.finished_us.is_none() {
        return Err(format!("it is not done: {info:?}"));
    }
    let found = with_mark(machine)?;
    if !found.is_empty() {
        return Err(format!("it is done, and these files have what was erased: {found:?}"));
    }
    let count = db.table("events").and_then(|events| events.count()).map_err(said)?;
    expect("events that are left", count, EVENTS - ERASED)?;
    match db.check().map_err(said)?.problems.first() {
        Some(problem) => Err(format!("check: {problem:?}")),
        None => Ok(()),
    }
}

fn beside_a_reader() -> Outcome {
    let machine = machine();
    let (db, events) = begun(&machine)?;
    if with_mark(&machine)?.len() < 2 {
        return Err("too few files have what is to be erased".to_owned());
    }
    erase(&events)?;
    // It sees none of these events, and holds the segments that have them.
    let mut reader = db.snapshot().and_then(|now| now.table("events")).map_err(said)?.iter();
    reader.next().ok_or("no event")?.map_err(said)?;
    db.wait_idle().map_err(said)?;
    if first(&db)?.finished_us.is_some() {
        return Err("it is done, and a reader holds a file".to_owned());
    }
    drop(reader);
    expect_done(&db, &machine)
}

fn after_a_crash() -> Outcome {
    let machine = machine();
    let (_db, events) = begun(&machine)?;
    erase(&events)?;
    for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
        let machine = revived(&machine.crash_image(choice));
        expect_done(&open(options(), &machine)?, &machine)?;
    }
    Ok(())
}

/// On a full disk a checkpoint takes the space of the reserve; the log file that it makes needless
/// is the reserve then.
fn in_the_reserve() -> Outcome {
    let machine = machine();
    let (db, events) = begun(&machine)?;
    machine.set_capacity_bytes(machine.used_bytes());
    db.checkpoint().map_err(said)?;
    machine.set_capacity_bytes(u64::MAX);
    if !with_mark(&machine)?.iter().any(|name| name == "reserve") {
        return Err("the reserve has nothing of the log".to_owned());
    }
    erase(&events)?;
    expect_done(&db, &machine)
}
