//! `esker-bench rollups`: what materialized views cost the rows that come in, and what they save
//! the questions that they answer. Answers are compared with those that are computed of the rows.

use std::time::Instant;

use esker::{Database, Durability, Options, QueryOptions, Semantics, Value};
use esker_sql::Sql;

use crate::Result;
use crate::bench::{Bench, segments};
use crate::data::mix;
use crate::outcome::Goal::{AtLeast, AtMost};
use crate::outcome::Outcome;
use crate::outcome::Unit::{Microseconds, Times};
use crate::process::CpuTime;
use crate::rows::{Row, ask, row};
use crate::timing::repeat;

/// Rows of a call.
const CALL: u64 = 4_096;
/// The time of the first event: 2026-01-01.
const FIRST_US: i64 = 1_767_225_600_000_000;
const DAY_US: i64 = 86_400_000_000;
/// How many days the events of the questions are spread over.
const DAYS: u64 = 30;
const USERS: u64 = 500;
const MODELS: u64 = 12;

/// Every row, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    row(
        "ingest",
        &[
            ask("1 rollup of few groups, × without", AtLeast(0.98), Times, ""),
            ask("10 of them", AtLeast(0.95), Times, ""),
            ask("keplor's four dimensions", AtLeast(0.9), Times, ""),
            ask("the same, processor time, seals included", AtMost(1.15), Times, ""),
        ],
        ingest,
    ),
    row(
        "answers",
        &[
            ask("one group", AtMost(10.0), Microseconds, ""),
            ask("a day of all groups", AtMost(10_000.0), Microseconds, ""),
            ask("30 days by model", AtMost(5_000.0), Microseconds, ""),
            ask("a user's quota", AtMost(10.0), Microseconds, ""),
            ask("30 days by model, × without", AtLeast(50.0), Times, ""),
        ],
        answers,
    ),
];

const TABLE: &str = "CREATE TABLE events (t timestamp NOT NULL, user_id u32 NOT NULL, \
     api_key u32 NOT NULL, provider text NOT NULL, model text NOT NULL, cost i64 NOT NULL, \
     ms u32 NOT NULL, status u16 NOT NULL) WITH (stream = 't')";

/// Views of few groups, by what tells them apart.
const FEW: [&str; 10] = [
    "model",
    "provider",
    "status",
    "model, provider",
    "model, status",
    "provider, status",
    "date_trunc('hour', t)",
    "date_trunc('day', t), model",
    "date_trunc('day', t), provider",
    "date_trunc('day', t), status",
];

/// What keplor counts: by minute, user, key, provider and model.
const FOUR: &str = "date_trunc('minute', t), user_id, api_key, provider, model";

fn create(database: &Database, name: &str, keys: &str) -> Result<()> {
    let count = keys.matches(", ").count() + 1 - keys.matches("', t)").count();
    let places: Vec<String> = (1..=count).map(|place| place.to_string()).collect();
    let places = places.join(", ");
    let text = format!(
        "CREATE MATERIALIZED VIEW {name} AS SELECT {keys}, count(*) AS n, sum(cost) AS cost, \
         max(ms) AS worst FROM events GROUP BY {places}"
    );
    database.sql(&text, ())?;
    Ok(())
}

/// An event by its number, `step_us` after the one before.
fn event(number: u64, step_us: i64) -> Vec<Value> {
    let draw = |part: u64| mix(number ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let user = draw(1) % USERS;
    let model = draw(2) % MODELS;
    vec![
        Value::Timestamp(FIRST_US + number.cast_signed() * step_us),
        user.into(),
        (user % 90).into(),
        format!("provider-{}", model % 4).as_str().into(),
        format!("model-{model:02}").as_str().into(),
        Value::Int((draw(3) % 100_000).cast_signed()),
        (draw(4) % 3_000).into(),
        (if draw(5) % 50 == 0 { 429u64 } else { 200 }).into(),
    ]
}

/// The time and the processor time that events take with some views, until they are sealed.
fn ingest_with(
    bench: &Bench,
    views: &[(&str, &str)],
    calls: &[Vec<Vec<Value>>],
) -> Result<[f64; 2]> {
    let options =
        Options::new().durability(Durability::Async { at_most: std::time::Duration::from_secs(1) });
    let database = options.group_limit(262_144, 1 << 30).open(bench.place("rollups-in")?)?;
    database.sql(TABLE, ())?;
    views.iter().try_for_each(|(name, keys)| create(&database, name, keys))?;
    let stream = database.stream("events")?;
    let (begun, cpu) = (Instant::now(), CpuTime::of_process()?);
    for rows in calls {
        stream.append_many(rows).into_iter().try_for_each(|outcome| outcome.map(drop))?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    database.wait_idle()?;
    let cpu = cpu.seconds()?;
    database.close()?;
    Ok([seconds, cpu])
}

fn ingest(bench: &mut Bench) -> Result<Outcome> {
    let events = (bench.rows / 4).clamp(CALL, 4_000_000);
    let calls: Vec<Vec<Vec<Value>>> = (0..events / CALL)
        .map(|call| (0..CALL).map(|n| event(call * CALL + n, 1_000)).collect())
        .collect();
    let names: Vec<String> = (0..FEW.len()).map(|n| format!("v{n}")).collect();
    let few: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(FEW).collect();
    let without = ingest_with(bench, &[], &calls)?;
    let one = ingest_with(bench, few.get(..1).unwrap_or_default(), &calls)?;
    let ten = ingest_with(bench, &few, &calls)?;
    let four = ingest_with(bench, &[("four", FOUR)], &calls)?;
    let rate = |with: [f64; 2]| without[0] / with[0];
    let note = format!(
        "{events} events, {:.0} k/s without; processor time {:.2}, {:.2}, {:.2} s with 1, 10, \
         four, {:.2} s without",
        events as f64 / without[0] / 1e3,
        one[1],
        ten[1],
        four[1],
        without[1]
    );
    let outcome = Outcome::default().and(rate(one), None).and(rate(ten), None);
    Ok(outcome.and(rate(four), None).and(four[1] / without[1], None).note(note))
}

/// The events of thirty days, and what is kept of them.
fn kept(bench: &mut Bench) -> Result<Database> {
    const NAME: &str = "rollups-kept";
    if let Some(database) = bench.kept.get(NAME) {
        return Ok(database.clone());
    }
    let database = Options::new().open(bench.place(NAME)?)?;
    database.sql(TABLE, ())?;
    create(&database, "hourly", "date_trunc('hour', t), user_id, model")?;
    create(&database, "daily", "date_trunc('day', t), model")?;
    create(&database, "quota", "user_id")?;
    let step_us = DAY_US * DAYS.cast_signed() / bench.rows.max(1).cast_signed();
    let table = database.table("events")?;
    let mut load = table.load()?;
    for number in 0..bench.rows {
        load.push_row(&event(number, step_us))?;
    }
    load.finish()?;
    database.wait_idle()?;
    bench.kept.insert(NAME, database.clone());
    Ok(database)
}

fn answers(bench: &mut Bench) -> Result<Outcome> {
    let database = kept(bench)?;
    let day = "t >= '2026-01-12' AND t < '2026-01-13'";
    let questions = [
        "SELECT count(*), sum(cost) FROM events WHERE user_id = 77 AND model = 'model-05' \
         AND t >= '2026-01-12 10:00' AND t < '2026-01-12 11:00'"
            .to_owned(),
        format!("SELECT user_id, model, sum(cost), count(*) FROM events WHERE {day} GROUP BY 1, 2"),
        "SELECT model, sum(cost), count(*), max(ms) FROM events GROUP BY model".to_owned(),
        "SELECT sum(cost) FROM events WHERE user_id = 77".to_owned(),
    ];
    let with = |value: &str| -> Result<QueryOptions> {
        let semantics = Semantics::default().with("use_rollups", Some(value))?;
        Ok(QueryOptions { semantics, ..QueryOptions::default() })
    };
    let (on, off) = (with("on")?, with("off")?);
    let mut times = Vec::new();
    let mut without = 0.0;
    for (number, text) in questions.iter().enumerate() {
        let query = esker_sql::parse(text)?;
        let run = |options: &QueryOptions| -> Result<Vec<String>> {
            let rows = database.query_with(&query, options)?.to_rows();
            let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
            rows.sort();
            Ok(rows)
        };
        if run(&on)? != run(&off)? {
            return Err(format!("{text}: another answer by what is kept").into());
        }
        times.push(repeat(25, || database.query_with(&query, &on))?.median);
        if number == 2 {
            without = repeat(3, || database.query_with(&query, &off))?.median;
        }
    }
    let [group, day, model, quota] = times.as_slice() else { return Err("four answers".into()) };
    Ok(Outcome::default()
        .and(*group, None)
        .and(*day, None)
        .and(*model, None)
        .and(*quota, None)
        .and(without / model, None)
        .segments(segments(&database, "events")))
}
