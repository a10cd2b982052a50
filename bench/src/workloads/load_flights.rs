//! The flights of New York City in 2013: 19 columns of many types, with NULLs, no key.

use std::io::Write;
use std::time::Instant;

use esker_format::ValueRef;
use esker_import::ImportOptions;

use crate::Result;
use crate::bench::{Bench, TABLE, load_with, segments};
use crate::machine::{disk_rate, touch};
use crate::outcome::Outcome;
use crate::process::Files;

const ROWS: u64 = 336_776;
/// `select sum(distance)`, by SQLite.
const DISTANCE: i64 = 350_217_607;

pub(crate) fn run(bench: &mut Bench) -> Result<Outcome> {
    let csv = bench.place("flights-file")?;
    std::fs::create_dir_all(&csv)?;
    let csv = csv.join("flights.csv");
    let packed = std::fs::File::open(&bench.flights)
        .map_err(|e| format!("{}: {e}", bench.flights.display()))?;
    let mut file = std::fs::File::create(&csv)?;
    zstd::stream::copy_decode(packed, &mut file)?;
    file.flush()?;
    file.sync_all()?;
    let dir = bench.place("flights")?;
    touch(1 << 29);
    let start = Instant::now();
    let (database, rows) = load_with(&dir, &csv, ImportOptions::default().nulls(["NA"]))?;
    let elapsed = start.elapsed().as_secs_f64();
    let result = database.query(&esker_sql::parse("SELECT count(*), sum(distance) FROM kv")?)?;
    let answer: Vec<Vec<ValueRef<'_>>> = result.rows().collect();
    let right = matches!(
        answer.first().map(Vec::as_slice),
        Some([ValueRef::Int(count), ValueRef::Int(sum)])
            if u64::try_from(*count) == Ok(ROWS) && *sum == DISTANCE
    );
    if rows != ROWS || !right {
        return Err(format!("wrong answer: {rows} rows, {answer:?}").into());
    }
    database.wait_idle()?;
    let segments = segments(&database, TABLE);
    database.close()?;
    let bytes = Files::of(&dir, |_| true)?.bytes;
    let bare = disk_rate(&bench.place("bare")?, bytes)?;
    let limit = bare / bytes as f64 * ROWS as f64;
    Ok(Outcome::of(ROWS as f64 / elapsed, limit).segments(segments))
}
