//! 64 threads that insert row by row, each waiting until its row is durable, beside bare syncs of
//! one thread before and after.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use esker::Table;

use super::insert_durable::{small_row, small_rows};
use crate::Result;
use crate::bench::Bench;
use crate::machine::BareSync;
use crate::outcome::{Outcome, median, percentile};

const THREADS: i64 = 64;
const TIME: Duration = Duration::from_secs(2);
const BARE_TURNS: usize = 1_500;
/// About one commit of a small row.
const FRAME_BYTES: usize = 128;

pub(crate) fn run(bench: &mut Bench) -> Result<Outcome> {
    let (database, table) = small_rows(bench, "group-commit")?;
    let bare_path = bench.place("group-commit-bare")?;
    let mut bare = BareSync::create(&bare_path)?;
    let mut syncs = Vec::new();
    for _ in 0..BARE_TURNS {
        syncs.push(bare.turn(FRAME_BYTES)?);
    }
    let start = Instant::now();
    let mut latencies = insert_at_once(&table)?;
    let elapsed = start.elapsed().as_secs_f64();
    for _ in 0..BARE_TURNS {
        syncs.push(bare.turn(FRAME_BYTES)?);
    }
    let commits = latencies.len();
    if table.count()? != commits as u64 {
        return Err(format!("{} rows, not {commits}", table.count()?).into());
    }
    database.close()?;
    std::fs::remove_file(bare_path)?;
    let (sync, rate) = (median(&syncs), commits as f64 / elapsed);
    let base = 1e6 * syncs.len() as f64 / syncs.iter().sum::<f64>();
    let p99 = percentile(&mut latencies, 99);
    let note = format!(
        "{:.1} k commits/s beside {:.1} k syncs/s; p50 {:.0} µs, p99 {p99:.0} µs, \
         bare sync p50 {sync:.1} µs",
        rate / 1e3,
        base / 1e3,
        median(&latencies)
    );
    Ok(Outcome::default().and(rate / base, None).and(p99 / sync, None).note(note))
}

/// Inserts from all threads for a while; the latency of each insert, in µs.
fn insert_at_once(table: &Table) -> Result<Vec<f64>> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker = |thread: i64| {
            let (table, stop) = (table.clone(), &stop);
            move || {
                let mut latencies = Vec::new();
                let mut id = thread << 32;
                while !stop.load(Ordering::Relaxed) {
                    let row = small_row(id);
                    let start = Instant::now();
                    table.insert(&row)?;
                    latencies.push(start.elapsed().as_secs_f64() * 1e6);
                    id += 1;
                }
                Ok::<_, esker::Error>(latencies)
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(worker(thread))).collect();
        std::thread::sleep(TIME);
        stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| "a thread panicked")??);
        }
        Ok(all)
    })
}
