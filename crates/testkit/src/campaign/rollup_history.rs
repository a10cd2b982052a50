//! Scenarios of rollups that outlive their events: at every commit that a crash leaves, a view with
//! a history is what all events come to that ever were, each once.
//!
//! Beside the stream is a table with all its events, which is changed in the same commits and whose
//! rows do not end. The view has to be what a grouping of that table is.

use std::time::Duration;

use esker::{
    DataType, Database, KeptFor, Options, Query, Schema, StreamOption, Value, ViewOptions,
};
use esker_query::model::{Aggregate, Change, Delete, Expr, Function, Operator, Update};
use esker_vfs::sim::{CrashChoice, CrashImage, Generator, Options as SimOptions, Simulation};

use super::directed::{Outcome, Scenario, open, revived, said};
use super::{Report, quietly};

pub(super) const SCENARIOS: [Scenario; 3] = [
    ("groups of events that end, and a crash at every I/O", crash_at_every_io),
    ("groups of events that are deleted before they end", deleted),
    ("blocks of an open group, beside older readers", blocks),
];

const WORKLOADS: u64 = 3;
const STEPS: u64 = 20;

fn options(seed: u64) -> Options {
    // The end of a segment with few groups is one frame, of one with many several.
    let options = Options::new().background(false).group_limit(12, 1 << 20).small_group_limit(0);
    options.segment_limit(4 + usize::try_from(seed % 3).unwrap_or(0)).commit_limit(6_000)
}

fn create(db: &Database) -> Outcome {
    let option = |name, value| StreamOption::read(name, Some(value)).map_err(|e| e.to_string());
    let of_stream = [option("retention", "2 days")?, option("window", "1 day")?];
    let fields = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
    let fields = fields.nullable("tier", DataType::Text).nullable("cost", DataType::I64);
    let ever = fields.clone().primary_key(["n"]).build().map_err(|e| e.to_string())?;
    let events = fields.stream("t", of_stream).build().map_err(|e| e.to_string())?;
    db.create_table("events", events).map_err(said)?;
    db.create_table("ever", ever).map_err(said)?;
    for (name, kept) in [("spend", KeptFor::Span(900 * 86_400_000_000)), ("tiers", KeptFor::Ever)] {
        let options = ViewOptions { history: Some(kept), ..ViewOptions::default() };
        db.create_rollup_with(name, &groups(name, "events"), &options).map_err(said)?;
    }
    Ok(())
}

/// The query of a view, of another table.
fn groups(view: &str, table: &str) -> Query {
    let of = |function, field: &str| Expr::Aggregate {
        function,
        operand: Some(Box::new(Expr::field(field))),
        distinct: false,
        order: Vec::new(),
    };
    let day = Expr::call(Function::DateTrunc, [Expr::literal("day"), Expr::field("t")]);
    let keys = match view {
        "spend" => vec![day, Expr::field("tier")],
        _ => vec![Expr::field("tier")],
    };
    let mut query = Query::table(table);
    for key in &keys {
        query.select(key.clone());
    }
    query.select(Expr::count()).select(of(Aggregate::Sum, "cost"));
    query.select(of(Aggregate::Min, "n")).select(of(Aggregate::Max, "cost"));
    query.group_by = keys;
    query
}

/// One step of a workload.
fn step(
    db: &Database,
    machine: &Simulation,
    generator: &mut Generator,
    n: i64,
) -> esker::Result<()> {
    let now_us = db.clock().date_us;
    let hour = 3_600_000_000;
    match generator.below(8) {
        0..=3 => db.transact(|within| {
            for at in 0..8 {
                let late = i64::try_from(generator.below(20)).unwrap_or(0) * hour;
                let tier = match generator.below(4) {
                    0 => Value::Null,
                    tier => Value::Text(format!("tier {tier}")),
                };
                let row = [Value::Timestamp(now_us - late), (n * 10 + at).into(), tier, at.into()];
                within.table("events")?.insert(&row)?;
                within.table("ever")?.insert(&row)?;
            }
            Ok(())
        }),
        4 => delete(db, n),
        5 => match generator.below(3) {
            0 => db.checkpoint(),
            1 => update(db, n),
            _ => db.wait_idle(),
        },
        _ => {
            machine.advance_clock(Duration::from_secs(3_600 * (8 + generator.below(20))));
            db.wait_idle()
        }
    }
}

/// Deletes some events that have not ended, here and there.
fn delete(db: &Database, n: i64) -> esker::Result<()> {
    db.transact(|within| {
        let mut numbers = Query::table("events");
        numbers.select(Expr::field("n"));
        let found = within.query(&numbers)?.to_rows().into_iter().flatten();
        let is_gone = |value: &Value| matches!(value, Value::Int(number) if number % 5 == n % 5);
        let gone: Vec<Expr> = found.filter(is_gone).map(Expr::Literal).collect();
        if gone.is_empty() {
            return Ok(());
        }
        let operands = std::iter::once(Expr::field("n")).chain(gone).collect();
        let filter = Some(Expr::Apply(Operator::In, operands));
        for table in ["events", "ever"] {
            let delete =
                Delete { table: table.into(), filter: filter.clone(), ..Delete::default() };
            within.change(&Change::Delete(delete))?;
        }
        Ok(())
    })
}

/// Changes what some events cost.
fn update(db: &Database, n: i64) -> esker::Result<()> {
    db.transact(|within| {
        let mut numbers = Query::table("events");
        numbers.select(Expr::field("n"));
        let found = within.query(&numbers)?.to_rows().into_iter().flatten();
        let is_changed = |value: &Value| matches!(value, Value::Int(number) if number % 7 == n % 7);
        let changed: Vec<Expr> = found.filter(is_changed).map(Expr::Literal).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let operands = std::iter::once(Expr::field("n")).chain(changed).collect();
        let filter = Some(Expr::Apply(Operator::In, operands));
        for table in ["events", "ever"] {
            let set = vec![("cost".to_owned(), Expr::literal(n + 100))];
            let update =
                Update { table: table.into(), set, filter: filter.clone(), ..Update::default() };
            within.change(&Change::Update(update))?;
        }
        Ok(())
    })
}

fn rows(db: &Database, query: &Query) -> Result<Vec<String>, String> {
    let rows = db.query(query).map_err(said)?.to_rows();
    let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    Ok(rows)
}

fn expect_whole(db: &Database) -> Outcome {
    for view in ["spend", "tiers"] {
        if db.table("ever").is_err() || !db.views().iter().any(|known| known.name == view) {
            continue;
        }
        let (shown, ever) = (rows(db, &Query::table(view))?, rows(db, &groups(view, "ever"))?);
        if shown != ever {
            return Err(format!("view {view} shows {shown:?}, the events came to {ever:?}"));
        }
    }
    Ok(())
}

fn crash_at_every_io() -> Outcome {
    for seed in 0..WORKLOADS {
        let history = crash_everywhere(seed, STEPS, &mut Report::default())?;
        if !history {
            return Err(format!("workload {seed}: no events have ended"));
        }
    }
    Ok(())
}

/// A random workload of a stream with rollups, crashed after every I/O.
#[must_use]
pub fn rollup_workload(seed: u64) -> Report {
    let mut report = Report { workloads: 1, ..Report::default() };
    let steps = 8 + Generator::new(seed, 73).below(14);
    if let Err(why) = quietly(|| crash_everywhere(seed, steps, &mut report)) {
        report.fail(why, format!("--rollup-workload {seed}"), Vec::new());
    }
    report
}

/// Whether there was anything of events that had ended.
fn crash_everywhere(seed: u64, steps: u64, report: &mut Report) -> Result<bool, String> {
    let machine = Simulation::new(seed, SimOptions { record: true, ..SimOptions::default() });
    let db = open(options(seed), &machine)?;
    create(&db)?;
    let mut generator = Generator::new(seed, 71);
    for n in 0..steps {
        let n = i64::try_from(n).map_err(|e| e.to_string())?;
        step(&db, &machine, &mut generator, n).map_err(said)?;
        expect_whole(&db).map_err(|why| format!("workload {seed}, step {n}: {why}"))?;
    }
    let mut has_history = true;
    for view in ["spend", "tiers"] {
        let history = Query::table(format!("{view}$history"));
        has_history &= db.query(&history).map_err(said)?.row_count() > 0;
    }
    drop(db);
    let journal = machine.journal().ok_or("a machine that records nothing")?;
    let mut cursor = journal.cursor();
    let mut image = 0;
    loop {
        image += 1;
        let torn = CrashChoice::TornSubset { mask: u64::MAX, seed: image };
        for choice in [CrashChoice::KeepNone, CrashChoice::Random(image), torn] {
            let at = |why| format!("workload {seed}, image {image}, {choice:?}: {why}");
            let crashed = cursor.crash_image(choice);
            recover(seed, &crashed, image, report).map_err(at)?;
        }
        if !cursor.advance() {
            return Ok(has_history);
        }
    }
}

/// What a crash leaves is whole, and stays so while events go on ending, beside one more crash.
fn recover(seed: u64, image: &CrashImage, number: u64, report: &mut Report) -> Outcome {
    report.images += 1;
    let machine = revived(image);
    let db = open(options(seed), &machine)?;
    expect_whole(&db)?;
    machine.advance_clock(Duration::from_secs(3_600 * (number % 30)));
    if number.is_multiple_of(3) {
        machine.crash_after_io(Some(number / 3 % 40));
        let _ = db.wait_idle();
        let again = machine.crash_image(CrashChoice::Random(number));
        drop(db);
        if let Some(crashes) = report.in_recovery.first_mut() {
            *crashes += 1;
        }
        let db = open(options(seed), &revived(&again))?;
        expect_whole(&db)?;
        db.wait_idle().map_err(said)?;
        return expect_whole(&db);
    }
    db.wait_idle().map_err(said)?;
    expect_whole(&db)
}

fn deleted() -> Outcome {
    let machine = Simulation::new(5, SimOptions::default());
    let db = open(options(1), &machine)?;
    create(&db)?;
    let mut generator = Generator::new(5, 72);
    for n in 0..40 {
        step(&db, &machine, &mut generator, n).map_err(said)?;
        delete(&db, n).map_err(said)?;
        expect_whole(&db)?;
    }
    db.check().map(drop).map_err(said)
}

/// Rows of a call, and how many are added before a snapshot is taken, and behind it.
const CALL_ROWS: i64 = 1_000;
const OLD_CALLS: i64 = 41;
const ALL_CALLS: i64 = 90;

/// A group that is written to, read with and without what a rollup has of its rows.
fn blocks() -> Outcome {
    let machine = Simulation::new(6, SimOptions::default());
    let db = open(Options::new().background(false), &machine)?;
    let fields = Schema::builder().field("n", DataType::I64).field("tier", DataType::Text);
    let schema = fields.primary_key(["n"]).build().map_err(|e| e.to_string())?;
    let table = db.create_table("rows", schema).map_err(said)?;
    let mut counts = Query::table("rows");
    counts.select(Expr::field("tier")).select(Expr::count());
    counts.group_by = vec![Expr::field("tier")];
    db.create_rollup("counts", &counts).map_err(said)?;
    let (mut held, read) = (None, Query::table("counts"));
    for call in 0..ALL_CALLS {
        let row = |n: i64| vec![n.into(), Value::Text(format!("tier {}", n % 5))];
        let rows: Vec<_> = (call * CALL_ROWS..(call + 1) * CALL_ROWS).map(row).collect();
        table.insert_many(&rows).map_err(said)?;
        if call == OLD_CALLS {
            held = Some(db.snapshot().map_err(said)?);
        }
        let found = db.query(&read).map_err(said)?.to_rows();
        expect_counts(&found, call + 1)?;
        if let Some(held) = &held {
            expect_counts(&held.query(&read).map_err(said)?.to_rows(), OLD_CALLS + 1)?;
        }
    }
    Ok(())
}

fn expect_counts(found: &[Vec<Value>], calls: i64) -> Outcome {
    let expected = Value::Int(calls * CALL_ROWS / 5);
    match found.len() == 5 && found.iter().all(|row| row.get(1) == Some(&expected)) {
        true => Ok(()),
        false => Err(format!("after {calls} calls the view shows {found:?}")),
    }
}
