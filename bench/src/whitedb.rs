//! `esker-bench whitedb`: ten million records of five numbers on one core, counted by a scan, given
//! an index, and found by it, a hundred at a time.

use std::time::Instant;

use esker::{DataType, Database, NewIndex, Options};
use esker_format::{Batch, Column, Values};

use crate::Result;
use crate::bench::{Bench, schema, segments};
use crate::data::mix;
use crate::environment::cores;
use crate::outcome::Goal::AtMost;
use crate::outcome::Outcome;
use crate::outcome::Unit::{Microseconds, Seconds};
use crate::rows::{Row, ask, row};
use crate::timing;

const FIELDS: [&str; 5] = ["f1", "f2", "f3", "f4", "f5"];
const BATCH_ROWS: u64 = 1 << 18;
const REPEATS: usize = 5;
/// Different values of the field that is asked for.
const VALUES: u64 = 100_000;
/// Look-ups.
const QUERIES: u64 = 1_000_000;

/// Every row, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    row("scan", &[ask("", AtMost(10_000.0), Microseconds, "(memory bandwidth)")], scan),
    row("index", &[ask("", AtMost(0.35), Seconds, "")], index),
    row("find", &[ask("a million times one key", AtMost(0.45), Seconds, "")], |bench| {
        find(bench, |_| 123)
    }),
    row("find-random", &[ask("a million random keys", AtMost(1.2), Seconds, "")], |bench| {
        find(bench, |i| mix(i) % VALUES)
    }),
];

/// Figures are of ten million records.
fn share(bench: &Bench) -> f64 {
    bench.rows as f64 / 1e7
}

fn database(bench: &mut Bench) -> Result<Database> {
    if let Some(database) = bench.kept.get("whitedb") {
        return Ok(database.clone());
    }
    let database = Options::new().environment(cores(1)).memory()?;
    let fields = FIELDS.map(|name| (name, DataType::I64));
    let table = database.create_table("records", schema(&fields, &[])?)?;
    let mut load = table.load()?;
    for first in (0..bench.rows).step_by(usize::try_from(BATCH_ROWS)?) {
        let rows = first..bench.rows.min(first + BATCH_ROWS);
        let column = |field: u64| {
            let value = |i| if field == 2 { i % VALUES } else { i + field };
            let values = rows.clone().map(|i| value(i).cast_signed()).collect();
            Column { data_type: DataType::I64, values: Values::I64(values), nulls: None }
        };
        load.push(Batch { columns: (0..5).map(column).collect() })?;
    }
    load.finish()?;
    database.wait_idle()?;
    bench.kept.insert("whitedb", database.clone());
    Ok(database)
}

fn has_index(database: &Database) -> Result<bool> {
    Ok(!database.table("records")?.schema().indexes().is_empty())
}

fn scan(bench: &mut Bench) -> Result<Outcome> {
    let database = database(bench)?;
    if has_index(&database)? {
        database.drop_index("records", "by_f3")?;
    }
    let query = esker_sql::parse("SELECT count(*) FROM records WHERE f3 = 123")?;
    let found = database.query(&query)?.to_rows();
    let wanted = (0..bench.rows).filter(|i| i % VALUES == 123).count();
    let count = found.first().and_then(|row| row.first()).map(ToString::to_string);
    if count != Some(wanted.to_string()) {
        return Err(format!("{found:?}, not {wanted}").into());
    }
    let timing = timing::repeat(REPEATS, || database.query(&query))?;
    // Numbers below 2^17 are stored in four bytes.
    let limit = bench.rows as f64 * 4.0 / bench.machine.read_rate * 1e6;
    Ok(Outcome::default()
        .and_with_goal(timing.median, limit, AtMost(10_000.0 * share(bench)))
        .segments(segments(&database, "records")))
}

fn index(bench: &mut Bench) -> Result<Outcome> {
    let database = database(bench)?;
    if has_index(&database)? {
        database.drop_index("records", "by_f3")?;
    }
    let start = Instant::now();
    database.create_index("records", NewIndex::new("by_f3", ["f3"]))?;
    let elapsed = start.elapsed().as_secs_f64();
    Ok(Outcome::default()
        .and_with_goal(elapsed, 0.18 * share(bench), AtMost(0.35 * share(bench)))
        .segments(segments(&database, "records")))
}

fn find(bench: &mut Bench, key: fn(u64) -> u64) -> Result<Outcome> {
    let database = database(bench)?;
    if !has_index(&database)? {
        database.create_index("records", NewIndex::new("by_f3", ["f3"]))?;
    }
    let table = database.table("records")?.snapshot()?;
    let finder = table.finder("by_f3")?;
    let each = bench.rows / VALUES;
    let mut with_key = 0;
    for found in finder.find(&[123i64.into()])? {
        with_key += u64::from(found.get("f3")? == 123i64.into());
    }
    if with_key != each {
        return Err(format!("{with_key} records with one key, not {each}").into());
    }
    let start = Instant::now();
    let mut found = 0u64;
    for i in 0..QUERIES {
        let value = key(i).cast_signed();
        found += finder.find(&[value.into()])?.count() as u64;
    }
    let elapsed = start.elapsed().as_secs_f64();
    if found != QUERIES * each {
        return Err(format!("{found} records, not {}", QUERIES * each).into());
    }
    Ok(Outcome::default().and(elapsed, None).segments(segments(&database, "records")))
}
