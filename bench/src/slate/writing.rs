//! Records that are written in batches, by writers beside readers, and by two at once.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use esker::{Database, Durability, ErrorKind, Options, Table};

use super::SIZES;
use super::records::{TABLE, create, record, schema};
use crate::Result;
use crate::bench::Bench;
use crate::outcome::Outcome;

/// What nobody waits for is on the disk so late at most: the published table waits for no disk.
pub(super) const LATE: Duration = Duration::from_secs(1);
/// Batches of one size; the largest has them five times as often.
pub(super) const BATCHES: u64 = 10;
const WRITERS: u64 = 2;
const READERS: u64 = 4;
/// Commits of a writer, and questions of a reader.
const TURNS: u64 = 5;
const BATCH_ROWS: u64 = 1_000;
/// Rows that a reader takes.
const PAGE: usize = 100;
/// How often two write one record.
const DUELS: u64 = 100;

/// Ten batches of each size (fifty of the largest), made and committed within the time.
pub(super) fn insert(bench: &mut Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for (divisor, _) in SIZES {
        let rows = bench.rows / divisor;
        let batches = if divisor == 1 { BATCHES * 5 } else { BATCHES };
        let options = Options::new().durability(Durability::Async { at_most: LATE });
        let database = options.open(bench.place("slate-insert")?)?;
        let table = database.create_table(TABLE, schema()?)?;
        let start = Instant::now();
        for batch in 0..batches {
            let batch = rows * batch / batches..rows * (batch + 1) / batches;
            let records: Vec<_> = batch.map(record).collect();
            table.insert_many(&records)?;
        }
        outcome = outcome.and(start.elapsed().as_secs_f64() * 1e6, None);
        expect_records(&table, rows)?;
        database.close()?;
    }
    Ok(outcome)
}

/// All are there, and every hundredth is as it was made.
pub(super) fn expect_records(table: &Table, rows: u64) -> Result<()> {
    let count = table.count()?;
    if count != rows {
        return Err(format!("{count} records, not {rows}").into());
    }
    for i in (0..rows).step_by(100) {
        let wanted = record(i);
        let found = table.get(wanted.get(..1).unwrap_or_default())?;
        if found.as_ref().map(|row| row.values()) != Some(&wanted) {
            return Err(format!("record {i}: found {found:?}").into());
        }
    }
    Ok(())
}

/// Two writers of five batches of a thousand beside four readers of five pages, and then two who
/// change one record at once.
pub(super) fn together(bench: &mut Bench) -> Result<Outcome> {
    let rows = bench.rows / 5;
    let database = create(bench, "slate-together", rows)?;
    let table = database.table(TABLE)?;
    let query = esker_sql::parse("SELECT * FROM bench WHERE status = 'active' LIMIT 100")?;
    let start = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        let mut all = Vec::new();
        for writer in 0..WRITERS {
            let table = &table;
            all.push(scope.spawn(move || -> Result<()> {
                for turn in 0..TURNS {
                    let first = rows + (writer * TURNS + turn) * BATCH_ROWS;
                    let records: Vec<_> = (first..first + BATCH_ROWS).map(record).collect();
                    table.insert_many(&records)?;
                }
                Ok(())
            }));
        }
        for _ in 0..READERS {
            let (database, query) = (&database, &query);
            all.push(scope.spawn(move || -> Result<()> {
                for _ in 0..TURNS {
                    let found = database.query(query)?.to_rows().len();
                    if found != PAGE {
                        return Err(format!("a page of {found} rows, not {PAGE}").into());
                    }
                }
                Ok(())
            }));
        }
        all.into_iter().try_for_each(|one| one.join().map_err(|_| "a thread panicked")?)
    })?;
    let elapsed_us = start.elapsed().as_secs_f64() * 1e6;
    expect_records(&table, rows + WRITERS * TURNS * BATCH_ROWS)?;
    let winners = duels(&database)?;
    database.close()?;
    Ok(Outcome::default().and(elapsed_us, None).and(winners, Some(1.0)))
}

/// Two begin, write one record, wait for each other, and commit: how many of them succeed.
fn duels(database: &Database) -> Result<f64> {
    let mut committed = 0u64;
    for duel in 0..DUELS {
        let both = Barrier::new(2);
        let fight = |contacts: i64| -> esker::Result<bool> {
            let transaction = database.begin()?;
            let record = record(duel);
            let key = record.get(..1).unwrap_or_default();
            let changed = [("contacts_count", contacts.into())];
            let changed = transaction.table(TABLE)?.update(key, &changed);
            both.wait();
            changed?;
            match transaction.commit() {
                Ok(_) => Ok(true),
                Err(e) if e.kind() == ErrorKind::Conflict => Ok(false),
                Err(e) => Err(e),
            }
        };
        let won = std::thread::scope(|scope| -> Result<_> {
            let other = scope.spawn(|| fight(-1));
            let mine = fight(-2)?;
            Ok([mine, other.join().map_err(|_| "a thread panicked")??])
        })?;
        committed += won.into_iter().map(u64::from).sum::<u64>();
        if won == [true, true] || won == [false, false] {
            return Err(format!("{won:?}: not just one of two was committed").into());
        }
    }
    Ok(committed as f64 / DUELS as f64)
}
