//! The slowest gets while segments are merged, beside gets when nothing else happens.

use std::time::Instant;

use esker::{DataType, Options, Table, Value};

use super::get::{Probes, get_word};
use crate::Result;
use crate::bench::{Bench, schema, segments};
use crate::data::key;
use crate::outcome::{Outcome, percentile};

const GETS: u64 = 400_000;
const SEED: u64 = 0x6d65_7267;
/// More than a table may have once idle.
const SEGMENTS: u64 = 12;

/// The latency of some gets, in ns; the values are checked together at the end.
fn gets(table: &Table, probes: &Probes) -> Result<Vec<f64>> {
    let mut latencies = Vec::with_capacity(probes.keys.len());
    let mut sum = 0u64;
    for key in &probes.keys {
        let start = Instant::now();
        let word = get_word(table, key)?;
        latencies.push(start.elapsed().as_secs_f64() * 1e9);
        sum = sum.wrapping_add(word);
    }
    if sum == probes.sum { Ok(latencies) } else { Err("values of gets are wrong".into()) }
}

pub(crate) fn run(bench: &mut Bench) -> Result<Outcome> {
    let rows = (bench.rows / 5).max(SEGMENTS << 16);
    let limit = usize::try_from(rows.div_ceil(SEGMENTS))?;
    let options = Options::new().background(false).segment_limit(limit);
    let database = options.open(bench.place("merging")?)?;
    let fields = [("key", DataType::Text), ("value", DataType::Text)];
    let table = database.create_table("t", schema(&fields, &["key"])?)?;
    let mut load = table.load()?;
    for row in 0..rows {
        load.push_row(&[Value::Text(key(row)), Value::Text(bench.texts.text(row).to_owned())])?;
    }
    load.finish()?;
    let before = segments(&database, "t");
    database.query(&esker_sql::parse("SELECT count(*) FROM t WHERE value = '' OR key = ''")?)?;
    let probes = Probes::new(&bench.texts, rows, GETS, SEED);
    gets(&table, &probes)?;
    let mut idle = gets(&table, &probes)?;
    let mut merging = Vec::new();
    let merged = std::thread::scope(|scope| {
        let merge = scope.spawn(|| {
            let start = Instant::now();
            database.wait_idle()?;
            Ok::<_, esker::Error>(start.elapsed().as_secs_f64())
        });
        let chunk = Probes::new(&bench.texts, rows, GETS / 40, SEED + 1);
        while !merge.is_finished() {
            merging.extend(gets(&table, &chunk)?);
        }
        merge.join().map_err(|_| "merging panicked")?.map_err(crate::bench::boxed)
    })?;
    let after = segments(&database, "t");
    if after >= before {
        return Err(format!("nothing was merged: {before} segments, then {after}").into());
    }
    database.close()?;
    let (gets_meanwhile, with, without) =
        (merging.len(), percentile(&mut merging, 99), percentile(&mut idle, 99));
    let median = (percentile(&mut merging, 50), percentile(&mut idle, 50));
    let note = format!(
        "p99 {with:.0} beside {without:.0} ns, p50 {:.0} beside {:.0} ns; {gets_meanwhile} gets \
         while {before} segments became {after} in {merged:.2} s, at full speed on the other core",
        median.0, median.1
    );
    Ok(Outcome::default().and(with / without, None).segments(after).note(note))
}
