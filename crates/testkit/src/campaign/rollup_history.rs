//! Scenarios of rollups that outlive their events: at every commit that a crash leaves, a view with
//! a history is what all events come to that ever were, each once.
//!
//! Beside the stream is a table with all its events, which is changed in the same commits and whose
//! rows do not end. The view has to be what a grouping of that table is.

use std::time::Duration;

use esker::{
    DataType, Database, KeptFor, Options, Query, Schema, StreamOption, Value, ViewOptions,
};
use esker_query::model::{Aggregate, Change, Delete, Expr, Function, Operator};
use esker_vfs::sim::{CrashChoice, Generator, Options as SimOptions, Simulation};

use super::directed::{Outcome, Scenario, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 2] = [
    ("groups of events that end, and a crash at every I/O", crash_at_every_io),
    ("groups of events that are deleted before they end", deleted),
];

const WORKLOADS: u64 = 3;
const STEPS: u64 = 14;

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
        let machine = Simulation::new(seed, SimOptions { record: true, ..SimOptions::default() });
        let db = open(options(seed), &machine)?;
        create(&db)?;
        let mut generator = Generator::new(seed, 71);
        for n in 0..STEPS {
            let n = i64::try_from(n).map_err(|e| e.to_string())?;
            step(&db, &machine, &mut generator, n).map_err(said)?;
            expect_whole(&db).map_err(|why| format!("workload {seed}, step {n}: {why}"))?;
        }
        for view in ["spend", "tiers"] {
            let history = Query::table(format!("{view}$history"));
            if db.query(&history).map_err(said)?.row_count() == 0 {
                return Err(format!("workload {seed}: no events have ended"));
            }
        }
        drop(db);
        let journal = machine.journal().ok_or("a machine that records nothing")?;
        let mut cursor = journal.cursor();
        let mut image = 0;
        loop {
            image += 1;
            let torn = CrashChoice::TornSubset { mask: u64::MAX, seed: image };
            for choice in [CrashChoice::KeepNone, CrashChoice::Random(image), torn] {
                let db = open(options(seed), &revived(&cursor.crash_image(choice)))?;
                let at = |why| format!("workload {seed}, image {image}, {choice:?}: {why}");
                expect_whole(&db).map_err(at)?;
                db.wait_idle().map_err(said)?;
                expect_whole(&db).map_err(at)?;
            }
            if !cursor.advance() {
                break;
            }
        }
    }
    Ok(())
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
