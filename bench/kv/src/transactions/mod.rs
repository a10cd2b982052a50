//! Transactions beside other embedded stores: `cargo xtask bench txn-peers --records 1000000`.
//!
//! Accounts of which four are read and two written, by one thread that waits for no disk and by 64
//! that do; and a counter that eight threads add to. No cent is made or lost, and the counter
//! counts what was committed. Who waits for the disk waits for the same: fdatasync or fsync.

mod esker;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sqlite;
mod store;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::report::{Asked, Report, Row};
use crate::store::Result;
use store::{CENTS, Kind, Store, Worker};

const STORES: &[Kind] = &[
    esker::KIND,
    redb::KIND,
    #[cfg(feature = "rocksdb")]
    rocksdb::KIND,
    sqlite::KIND,
];

const ALONE: &str = "4 reads and 2 writes, 1 thread, not synced";
const TOGETHER: &str = "4 reads and 2 writes, 64 threads, durable";
const COUNTER: &str = "one counter, 8 threads, durable";
const ATTEMPTS: &str = "one counter, attempts a commit";
const ROWS: &[Row] = &[
    (ALONE, "transactions/s", Asked::Least(150e3)),
    (TOGETHER, "transactions/s", Asked::Each(&[("sqlite", 3.0), ("rocksdb", 1.5)])),
    (COUNTER, "transactions/s", Asked::Best(3.0)),
    (ATTEMPTS, "attempts", Asked::Shown),
];

/// How long each row runs.
const TIME: Duration = Duration::from_secs(3);
const THREADS: u64 = 64;
const CONTENDERS: u64 = 8;

/// Every store in turn, as often as asked.
pub fn run(arguments: &Arguments) -> Result<()> {
    let title = format!("{} accounts", arguments.records);
    let names = STORES.iter().map(|kind| (kind.name, kind.settings)).collect();
    let mut report = Report::new(title, ROWS, names, arguments.runs);
    for run in 0..arguments.runs {
        for kind in STORES.iter().filter(|kind| arguments.wants(kind.name)) {
            eprintln!("run {} of {}: {}", run + 1, arguments.runs, kind.name);
            let dir = arguments.dir.join(format!("txn-{}-{run}", kind.name));
            let _ = std::fs::remove_dir_all(&dir);
            let outcome = measure(kind, &dir, arguments.records as u64, &mut report);
            std::fs::remove_dir_all(&dir)?;
            outcome.map_err(|e| format!("{}: {e}", kind.name))?;
        }
    }
    report.print();
    if let Some(path) = &arguments.plot {
        std::fs::write(path, crate::plot::svg(&report.groups()))?;
    }
    Ok(())
}

fn measure(kind: &Kind, dir: &Path, accounts: u64, report: &mut Report) -> Result<()> {
    let open = |name: &str, is_durable| -> Result<Box<dyn Store>> {
        let dir = dir.join(name);
        std::fs::create_dir_all(&dir)?;
        (kind.create)(&dir, accounts, is_durable)
    };
    let transfer = |worker: &mut dyn Worker, serial| worker.transfer(four(serial, accounts));
    {
        let store = open("async", false)?;
        let (done, _) = together(&*store, 1, transfer)?;
        expect_sum(&*store, accounts)?;
        report.note(ALONE, kind.name, rate(done));
    }
    let store = open("sync", true)?;
    let (done, _) = together(&*store, THREADS, transfer)?;
    expect_sum(&*store, accounts)?;
    report.note(TOGETHER, kind.name, rate(done));
    let (done, tried) = together(&*store, CONTENDERS, |worker, _| worker.count())?;
    let counted = store.counter()?;
    if u64::try_from(counted) != Ok(done) {
        return Err(format!("the counter is {counted}, not {done}").into());
    }
    report.note(COUNTER, kind.name, rate(done));
    report.note(ATTEMPTS, kind.name, tried as f64 / done.max(1) as f64);
    Ok(())
}

fn rate(done: u64) -> f64 {
    done as f64 / TIME.as_secs_f64()
}

/// Four accounts, none of them twice.
fn four(serial: u64, accounts: u64) -> [u64; 4] {
    let first = mix(serial) % accounts;
    let mut four = [first; 4];
    for at in 1..4u64 {
        let mut next = mix(serial ^ (at << 60)) % accounts;
        while four[..at as usize].contains(&next) {
            next = (next + 1) % accounts;
        }
        four[at as usize] = next;
    }
    four
}

/// Numbers without a pattern: the finisher of SplitMix64 (Steele, Lea and Flood, 2014).
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Many threads do something for a while: how often it was done, and how often tried.
fn together(
    store: &dyn Store,
    threads: u64,
    work: impl Fn(&mut dyn Worker, u64) -> Result<u64> + Sync,
) -> Result<(u64, u64)> {
    let (done, tried, serial) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + TIME;
    std::thread::scope(|scope| -> Result<()> {
        let run = || -> Result<()> {
            let mut worker = store.worker()?;
            while Instant::now() < end {
                let attempts = work(&mut *worker, serial.fetch_add(1, Ordering::Relaxed))?;
                tried.fetch_add(attempts, Ordering::Relaxed);
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|one| one.join().map_err(|_| "a thread panicked")?)
    })?;
    Ok((done.into_inner(), tried.into_inner()))
}

fn expect_sum(store: &dyn Store, accounts: u64) -> Result<()> {
    let (found, wanted) = (store.sum()?, i64::try_from(accounts)? * CENTS);
    if found == wanted { Ok(()) } else { Err(format!("{found} cents, not {wanted}").into()) }
}
