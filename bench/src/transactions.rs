//! `esker-bench txn`: transactions over a million rows, alone, durable from many threads, and all
//! upon one row.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use esker::{DataType, Database, Durability, Options, Value};
use esker_format::{Batch, Column, Values};

use crate::Result;
use crate::bench::{Bench, schema, segments};
use crate::data::mix;
use crate::outcome::Goal::{AtLeast, AtMost};
use crate::outcome::Outcome;
use crate::outcome::Unit::{Bytes, Nanoseconds, RowsPerSecond, Times};
use crate::rows::{Row, ask, row};
use crate::{large_transaction, update_operators};

const TABLE: &str = "accounts";
const LATE: Duration = Duration::from_secs(1);
/// Transactions of one thread.
const ALONE: u64 = 200_000;
/// How long many threads go on.
const TOGETHER: Duration = Duration::from_secs(3);
const THREADS: u64 = 64;
const CONTENDERS: u64 = 8;
/// Snapshots and transactions that are begun.
const BEGUN: u32 = 1_000_000;

/// Every row, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    row("begin-snapshot", &[ask("", AtMost(200.0), Nanoseconds, "")], |bench| {
        begin(bench, |db| db.snapshot().map(drop))
    }),
    row("begin", &[ask("and drop it", AtMost(500.0), Nanoseconds, "")], |bench| {
        begin(bench, |db| db.begin().map(drop))
    }),
    row("alone", &[ask("4 reads, 2 writes, Async", AtLeast(150e3), RowsPerSecond, "")], alone),
    row(
        "durable",
        &[ask("64 threads; commits a sync", AtLeast(1.0), Times, "(one commit a sync)")],
        durable,
    ),
    row(
        "counter",
        &[
            ask("8 threads; commits a sync", AtLeast(1.0), Times, "(one commit a sync)"),
            ask("attempts a commit", AtMost(4.0), Times, "(no conflict)"),
        ],
        counter,
    ),
    row(
        "operators",
        &[ask("json of 1 KB, the slowest", AtMost(3_000.0), Nanoseconds, "")],
        update_operators::run,
    ),
    row(
        "large",
        &[
            ask("ten times the rows in one transaction", AtLeast(200e3), RowsPerSecond, ""),
            ask("memory while it runs", AtMost(640.0 * 1048576.0), Bytes, "(its limit)"),
        ],
        large_transaction::run,
    ),
];

/// The accounts, in a directory.
fn accounts(bench: &mut Bench, durability: Durability, name: &'static str) -> Result<Database> {
    if let Some(database) = bench.kept.get(name) {
        return Ok(database.clone());
    }
    let dir = bench.place(name)?;
    let database = Options::new().durability(durability).open(&dir)?;
    let fields = [("id", DataType::I64), ("cents", DataType::I64), ("note", DataType::I64)];
    let table = database.create_table(TABLE, schema(&fields, &["id"])?)?;
    let mut load = table.load()?;
    let column = |value: &dyn Fn(i64) -> i64| {
        let values = (0..bench.rows.cast_signed()).map(value).collect();
        Column { data_type: DataType::I64, values: Values::I64(values), nulls: None }
    };
    load.push(Batch { columns: vec![column(&|id| id), column(&|_| 1_000), column(&|id| id)] })?;
    load.finish()?;
    database.wait_idle()?;
    bench.kept.insert(name, database.clone());
    Ok(database)
}

fn begin(bench: &mut Bench, run: fn(&Database) -> esker::Result<()>) -> Result<Outcome> {
    let database = accounts(bench, Durability::Async { at_most: LATE }, "async")?;
    let start = Instant::now();
    for _ in 0..BEGUN {
        run(&database)?;
    }
    let each_ns = start.elapsed().as_secs_f64() * 1e9 / f64::from(BEGUN);
    Ok(Outcome::default().and(each_ns, None))
}

/// Reads four accounts, and moves a cent between two of them.
fn transfer(transaction: &esker::Transaction, rows: u64, serial: u64) -> esker::Result<()> {
    let table = transaction.table(TABLE)?;
    let id = |i: u64| Value::Int((mix(serial * 4 + i) % rows).cast_signed());
    let (from, to) = (id(0), id(1));
    let mut cents = [0i64; 4];
    for (i, cents) in (0..4).zip(&mut cents) {
        if let Some(Value::Int(found)) =
            table.get(&[id(i)])?.and_then(|row| row.get("cents").cloned())
        {
            *cents = found;
        }
    }
    if from != to {
        table.update(&[from], &[("cents", (cents[0] - 1).into())])?;
        table.update(&[to], &[("cents", (cents[1] + 1).into())])?;
    }
    Ok(())
}

/// No cent is made or lost.
fn expect_sum(database: &Database, rows: u64) -> Result<()> {
    let query = esker_sql::parse("SELECT sum(cents) FROM accounts")?;
    let found = database.query(&query)?.to_rows();
    let wanted = (rows * 1_000).to_string();
    match found.first().and_then(|row| row.first()) {
        Some(sum) if sum.to_string() == wanted => Ok(()),
        other => Err(format!("{other:?} cents, expected {wanted}").into()),
    }
}

fn alone(bench: &mut Bench) -> Result<Outcome> {
    let rows = bench.rows;
    let database = accounts(bench, Durability::Async { at_most: LATE }, "async")?;
    let start = Instant::now();
    for serial in 0..ALONE {
        let transaction = database.begin()?;
        transfer(&transaction, rows, serial)?;
        transaction.commit()?;
    }
    let rate = ALONE as f64 / start.elapsed().as_secs_f64();
    expect_sum(&database, rows)?;
    Ok(Outcome::default().and(rate, None).segments(segments(&database, TABLE)))
}

/// Runs `work` on many threads for a while; how often they did, and how often they tried.
fn together(
    threads: u64,
    work: impl Fn(u64, &AtomicU64) -> esker::Result<()> + Sync,
) -> Result<(u64, u64)> {
    let (done, tried, serial) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + TOGETHER;
    std::thread::scope(|scope| -> Result<()> {
        let worker = || -> esker::Result<()> {
            while Instant::now() < end {
                work(serial.fetch_add(1, Ordering::Relaxed), &tried)?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })?;
    Ok((done.into_inner(), tried.into_inner()))
}

fn durable(bench: &mut Bench) -> Result<Outcome> {
    let rows = bench.rows;
    let database = accounts(bench, Durability::Sync, "sync")?;
    let (done, _) = together(THREADS, |serial, _| {
        database.transact(|transaction| transfer(transaction, rows, serial))
    })?;
    expect_sum(&database, rows)?;
    let rate = done as f64 / TOGETHER.as_secs_f64();
    let syncs = 1e6 / bench.machine.sync_us;
    Ok(Outcome::default().and(rate / syncs, Some(1.0)).note(format!("{rate:.0} a second")))
}

fn counter(bench: &mut Bench) -> Result<Outcome> {
    let database = accounts(bench, Durability::Sync, "sync")?;
    let hits = database.bucket("hits")?;
    let before = hits.increment(b"page", 0)?;
    let (done, tried) = together(CONTENDERS, |_, tried| {
        database.transact(|transaction| {
            tried.fetch_add(1, Ordering::Relaxed);
            transaction.bucket("hits")?.increment(b"page", 1).map(drop)
        })
    })?;
    let counted = hits.increment(b"page", 0)? - before;
    if counted.unsigned_abs() != done {
        return Err(format!("counted {counted}, not {done}").into());
    }
    let rate = done as f64 / TOGETHER.as_secs_f64();
    let syncs = 1e6 / bench.machine.sync_us;
    let outcome = Outcome::default().and(rate / syncs, Some(1.0));
    let attempts = tried as f64 / done.max(1) as f64;
    Ok(outcome.and(attempts, Some(1.0)).note(format!("{rate:.0} a second")))
}
