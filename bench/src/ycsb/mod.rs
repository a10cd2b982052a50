//! `esker-bench ycsb`: the core workloads of the Yahoo! Cloud Serving Benchmark, A to F, upon a
//! bucket of this process, a table over the wire port, a bucket by Redis's protocol, and Redis.
//!
//! | module | what it defines |
//! |---|---|
//! | `distribution` | which record is asked for |
//! | `workload` | what is done, one operation after another |
//! | `store` | the bucket, the table, and a map to compare them with |
//! | `resp` | Redis, and the bucket by its protocol |
//!
//! The operations of a run follow from its seed. Before the clock runs, the first of them are done
//! upon a map, too, and every answer has to be the same.

mod distribution;
mod resp;
mod store;
mod workload;

use std::time::Instant;

use crate::Result;
use crate::bench::Bench;
use crate::outcome::Goal::Told;
use crate::outcome::Unit::PerSecond;
use crate::outcome::{Asked, Outcome, percentile};
use crate::rows::{Row, ask, row};
use resp::Resp;
use store::{Embedded, Model, Store, Wire};
use workload::{Mix, Operations};

/// Operations of which the answers are compared, upon so many records.
const COMPARED: u64 = 5_000;
/// Operations that are timed, at most; as many as there are records where these are fewer.
const TIMED: u64 = 100_000;
/// The same where most of them are scans.
const TIMED_SCANS: u64 = 10_000;
/// Operations before, which are not.
const WARM: u64 = 2_000;

const EMBEDDED: Asked = ask("embedded", Told, PerSecond, "");
const WIRE: Asked = ask("wire, 1 connection", Told, PerSecond, "");
const RESP: Asked = ask("RESP, 1 connection", Told, PerSecond, "");
const REDIS: Asked = ask("Redis, 1 connection", Told, PerSecond, "");

/// A figure a store.
const FIGURES: &[Asked] = &[EMBEDDED, WIRE, RESP, REDIS];
/// Buckets have no command of Redis that reads on from a key.
const SCAN_FIGURES: &[Asked] = &[EMBEDDED, WIRE, REDIS];

/// A row a workload.
pub(crate) const ROWS: &[Row] = &[
    row("a", FIGURES, |bench| run(bench, workload::A)),
    row("b", FIGURES, |bench| run(bench, workload::B)),
    row("c", FIGURES, |bench| run(bench, workload::C)),
    row("d", FIGURES, |bench| run(bench, workload::D)),
    row("e", SCAN_FIGURES, |bench| run(bench, workload::E)),
    row("f", FIGURES, |bench| run(bench, workload::F)),
];

type Fill = fn(&Bench, u64) -> Result<Box<dyn Store>>;

fn run(bench: &mut Bench, mix: Mix) -> Result<Outcome> {
    let mut stores: Vec<(&str, Fill)> = vec![
        ("embedded", |bench, records| Ok(Box::new(Embedded::filled(bench, records)?))),
        ("wire", |bench, records| Ok(Box::new(Wire::filled(bench, records)?))),
    ];
    if mix.scans == 0 {
        stores.push(("RESP", |bench, records| Ok(Box::new(Resp::of_bucket(bench, records)?))));
        stores.push(("Redis", |bench, records| Ok(Box::new(Resp::of_redis(bench, records)?))));
    } else {
        stores.push(("Redis", |bench, records| Ok(Box::new(Resp::sorted(bench, records)?))));
    }
    for (name, fill) in stores.clone() {
        compare(bench, mix, name, fill)?;
    }
    let mut outcome = Outcome::default();
    for (name, fill) in stores {
        let mut store = fill(bench, bench.rows)?;
        let (rate, note) = time(bench, mix, store.as_mut())?;
        store.close()?;
        outcome = outcome.and(rate, None).note(format!("{name}: {note}"));
    }
    Ok(outcome)
}

/// Each answer of a store beside that of a map.
fn compare(bench: &Bench, mix: Mix, name: &str, fill: Fill) -> Result<()> {
    let mut store = fill(bench, COMPARED)?;
    let mut model = Model::filled(&bench.texts, COMPARED);
    let (mut found, mut wanted) = (Vec::new(), Vec::new());
    for operation in Operations::new(mix, COMPARED, COMPARED, 1) {
        found.clear();
        wanted.clear();
        store.run(operation, &bench.texts, &mut found)?;
        model.run(operation, &bench.texts, &mut wanted)?;
        if found != wanted {
            let (found, wanted) = (found.len(), wanted.len());
            let message = format!(
                "{name}: {operation:?}: another answer, of {found} bytes, expected {wanted}"
            );
            return Err(message.into());
        }
    }
    store.close()
}

/// Operations a second, and how long single ones take.
fn time(bench: &Bench, mix: Mix, store: &mut dyn Store) -> Result<(f64, String)> {
    let most = if mix.scans > 0 { TIMED_SCANS } else { TIMED };
    let timed = bench.rows.min(most);
    let mut operations = Operations::new(mix, bench.rows, WARM + timed, 2);
    let mut answer = Vec::new();
    for operation in operations.by_ref().take(usize::try_from(WARM)?) {
        answer.clear();
        store.run(operation, &bench.texts, &mut answer)?;
    }
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    let start = Instant::now();
    for operation in operations {
        answer.clear();
        let start = Instant::now();
        store.run(operation, &bench.texts, &mut answer)?;
        let times = if operation.is_read() { &mut reads } else { &mut writes };
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let rate = timed as f64 / start.elapsed().as_secs_f64();
    let shown = |what: &str, times: &mut Vec<f64>| match times.is_empty() {
        true => String::new(),
        false => format!(
            " {what} p50 {:.1} µs, p99 {:.1} µs;",
            percentile(times, 50),
            percentile(times, 99)
        ),
    };
    let note = [shown("reads", &mut reads), shown("writes", &mut writes)].concat();
    Ok((rate, note.trim_matches([' ', ';']).to_owned()))
}
