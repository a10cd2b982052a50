//! Scenarios of requests of events: what becomes of each, and when it is on the disk.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use esker::{
    DataType, Database, Durability, ErrorKind, Options, ReadyRows, Schema, Stream, StreamOption,
    Value, generated,
};
use esker_query::model::{Expr, Lookup};
use esker_vfs::Event;
use esker_vfs::sim::{CrashChoice, Simulation};

use super::directed::{Outcome, Scenario, expect, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 5] = [
    ("requests that share a commit, each with its own outcome", shared),
    ("events that did not wait are on the disk within the window", soon_durable),
    ("events that would have ended are refused", old),
    ("late events are sealed apart from those of the newest window", apart),
    ("an event has what is looked up as of its commit", looked_up),
];

const DAY_US: i64 = 86_400_000_000;

/// The number of the first event of a request, and the row ids that it was told.
type Told = (i64, Vec<u64>);

fn begun(
    options: Options,
    machine: &Simulation,
    of_stream: &[(&str, &str)],
) -> Result<(Database, Stream), String> {
    let db = open(options, machine)?;
    let read = |(name, value): &(&str, &str)| StreamOption::read(name, Some(value));
    let of_stream: Result<Vec<_>, _> = of_stream.iter().map(read).collect();
    let fields = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
    let schema = fields.stream("t", of_stream.map_err(|e| e.to_string())?).build();
    db.create_table("events", schema.map_err(|e| e.to_string())?).map_err(said)?;
    let stream = db.stream("events").map_err(said)?;
    Ok((db, stream))
}

fn event(t: i64, n: i64) -> Vec<Value> {
    vec![Value::Timestamp(t), n.into()]
}

fn ready(schema: &Arc<Schema>, rows: &[Vec<Value>]) -> Result<ReadyRows, String> {
    let mut ready = ReadyRows::none(schema);
    rows.iter().try_for_each(|row| ready.push(row)).map_err(said)?;
    Ok(ready)
}

/// Three requests wait when their commit is made: each is told of its own events.
fn shared() -> Outcome {
    let machine = machine();
    let (db, stream) = begun(Options::new().background(false), &machine, &[])?;
    let told: Arc<Mutex<Vec<Told>>> = Arc::default();
    let mut lead = None;
    for (first, count) in [(0, 1), (10, 4), (20, 2)] {
        let rows: Vec<_> = (first..first + count).map(|n| event(n, n)).collect();
        let (rows, told) = (ready(&stream.schema(), &rows)?, Arc::clone(&told));
        let new = stream.submit((rows, false), None, move |appended| {
            let ids = appended.outcomes.into_iter().filter_map(Result::ok).collect();
            told.lock().unwrap_or_else(PoisonError::into_inner).push((first, ids));
        });
        if new.is_some() != lead.is_none() {
            return Err("not exactly the first request leads".to_owned());
        }
        lead = lead.or(new);
    }
    lead.ok_or("nobody leads")?.run();
    db.sync().map_err(said)?;
    let rows = db.table("events").and_then(|table| table.snapshot()).map_err(said)?;
    let rows = rows.rows().map_err(said)?;
    let told = told.lock().unwrap_or_else(PoisonError::into_inner);
    expect("requests that were told", told.len() as u64, 3)?;
    for (first, ids) in told.iter() {
        for (id, n) in ids.iter().zip(*first..) {
            let found =
                rows.iter().find(|(row_id, _)| row_id == id).and_then(|(_, row)| row.get(1));
            if found != Some(&Value::Int(n)) {
                return Err(format!("event {n} was told row id {id}, which is that of {found:?}"));
            }
        }
    }
    Ok(())
}

/// By the simulated clock: what was answered longer ago than the window is there after a crash,
/// whether somebody else waits for the disk or not.
fn soon_durable() -> Outcome {
    const AT_MOST: Duration = Duration::from_millis(20);
    let options = || Options::new().durability(Durability::Async { at_most: AT_MOST });
    let machine = machine();
    let (db, stream) = begun(options(), &machine, &[])?;
    db.sync().map_err(said)?;
    let now_ns = || machine.environment().clock.monotonic_ns();
    let mut answered = Vec::new();
    let mut has_lost = false;
    for n in 0..60i64 {
        stream.append(&event(n, n)).map_err(said)?;
        answered.push(now_ns());
        let pause = Event::new();
        let passes = Duration::from_micros(n.unsigned_abs() * 731 % 5_000);
        machine.environment().tasks.wait_timeout(&pause, pause.generation(), passes);
        let window_ns = u64::try_from(AT_MOST.as_nanos()).unwrap_or(u64::MAX);
        let owed = answered.iter().filter(|at| now_ns() - **at > window_ns).count();
        let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
        let left = db.table("events").and_then(|table| table.count()).map_err(said)?;
        if left < owed as u64 {
            return Err(format!("a crash leaves {left} events, {owed} are older than the window"));
        }
        has_lost |= left < answered.len() as u64;
    }
    if has_lost { Ok(()) } else { Err("nothing was ever at stake".to_owned()) }
}

/// Neither singly nor in a request is an event taken that is older than events are kept.
fn old() -> Outcome {
    let machine = machine();
    let kept = [("retention", "2 days")];
    let (db, stream) = begun(Options::new().background(false), &machine, &kept)?;
    let now_us = db.clock().date_us;
    let rows = [event(now_us, 0), event(now_us - 3 * DAY_US, 1), event(now_us, 2)];
    let outcomes = stream.append_many(&rows);
    let stored: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    if stored != [true, false, true] {
        return Err(format!("an event that would have ended, between others: {outcomes:?}"));
    }
    match stream.append(&event(now_us - 3 * DAY_US, 3)) {
        Err(e) if e.kind() == ErrorKind::ConstraintViolated => {}
        other => return Err(format!("an event that would have ended: {other:?}")),
    }
    expect("events", db.table("events").and_then(|table| table.count()).map_err(said)?, 2)
}

/// Half of a group is of the day before: each day has a segment of its own.
fn apart() -> Outcome {
    let machine = machine();
    let options = Options::new().background(false).group_limit(32, 1 << 20).small_group_limit(0);
    let (db, stream) = begun(options, &machine, &[("window", "1 day")])?;
    let into_day = db.clock().date_us.rem_euclid(DAY_US);
    let now_us = db.clock().date_us - into_day + DAY_US / 2;
    for n in 0..32 {
        stream.append(&event(now_us - n % 2 * DAY_US, n)).map_err(said)?;
    }
    db.wait_idle().map_err(said)?;
    let segments: usize = db.info().tables.iter().map(|table| table.segments).sum();
    expect("segments of two windows", segments as u64, 2)
}

/// The price changes between the making of an event and its commit.
fn looked_up() -> Outcome {
    let machine = machine();
    let db = open(Options::new().background(false), &machine)?;
    let prices = Schema::builder().field("of", DataType::I64).field("price", DataType::I64);
    let prices = prices.primary_key(["of"]).build().map_err(|e| e.to_string())?;
    let prices = db.create_table("prices", prices).map_err(said)?;
    let lookup = Lookup {
        table: "prices".into(),
        field: "price".into(),
        keys: vec![Expr::field("n")],
        data_type: None,
    };
    let price = generated(&Expr::Lookup(Box::new(lookup))).map_err(said)?;
    let fields = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
    let schema = fields.nullable("price", DataType::I64).generated(price).stream("t", []);
    db.create_table("events", schema.build().map_err(|e| e.to_string())?).map_err(said)?;
    let stream = db.stream("events").map_err(said)?;
    prices.upsert(&[7i64.into(), 100i64.into()]).map_err(said)?;
    let schema = stream.schema();
    let values = vec![("t".to_owned(), Value::Timestamp(1)), ("n".to_owned(), 7i64.into())];
    let row = stream.prepare(&schema, values).map_err(said)?;
    if row.get(2) != Some(&Value::Int(100)) {
        return Err(format!("{row:?} is prepared with another price"));
    }
    let lead = stream.submit((ready(&schema, &[row])?, false), None, drop).ok_or("nobody leads")?;
    prices.upsert(&[7i64.into(), 200i64.into()]).map_err(said)?;
    lead.run();
    prices.upsert(&[7i64.into(), 300i64.into()]).map_err(said)?;
    db.sync().map_err(said)?;
    let machine = revived(&machine.crash_image(CrashChoice::KeepNone));
    let db = open(Options::new().background(false), &machine)?;
    let rows = db.table("events").and_then(|table| table.snapshot()).map_err(said)?;
    let rows = rows.rows().map_err(said)?;
    let found: Vec<_> = rows.iter().filter_map(|(_, row)| row.get(2).cloned()).collect();
    match found == [Value::Int(200)] {
        true => Ok(()),
        false => Err(format!("an event has the price {found:?}, that of its commit is 200")),
    }
}
