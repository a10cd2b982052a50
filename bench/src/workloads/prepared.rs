//! Prepared statements of SQL on one row: inserts, each its own commit, and gets by key.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use esker::{Database, Durability, Options, Value};
use esker_sql::Sql;

use crate::Result;
use crate::bench::{Bench, segments};
use crate::data::mix;
use crate::machine::touch;
use crate::outcome::Outcome;

const WINDOW: Duration = Duration::from_millis(100);
const GETS: u64 = 1_000_000;

fn open(dir: &PathBuf) -> Result<Database> {
    Ok(Options::new().durability(Durability::Async { at_most: WINDOW }).open(dir)?)
}

/// Inserts `rows` rows; how long that took, in seconds.
fn fill(database: &Database, rows: u64) -> Result<f64> {
    database.sql("CREATE TABLE t (id i64 PRIMARY KEY, amount i64 NOT NULL, note text)", ())?;
    let insert = database.prepare("INSERT INTO t VALUES (?, ?, ?)")?;
    let mut row = [Value::Int(0), Value::Int(0), Value::Text("sixteen letters.".to_owned())];
    touch(1 << 30);
    let start = Instant::now();
    for i in 0..i64::try_from(rows)? {
        let [id, amount, _] = &mut row;
        (*id, *amount) = (Value::Int(i), Value::Int(i * 2));
        insert.execute(&row)?;
    }
    Ok(start.elapsed().as_secs_f64())
}

pub(crate) fn insert(bench: &mut Bench) -> Result<Outcome> {
    let dir = bench.place("prepared-insert")?;
    let database = open(&dir)?;
    let rows = bench.rows / 5;
    let elapsed = fill(&database, rows)?;
    let found = database.prepare("SELECT count(*), sum(amount) FROM t")?.first(&[])?;
    let wanted = [Value::Uint(rows), Value::Uint(rows * (rows - 1))];
    if found.as_deref() != Some(&wanted[..]) {
        return Err(format!("found {found:?}, not {wanted:?}").into());
    }
    database.wait_idle()?;
    let segments = segments(&database, "t");
    database.close()?;
    Ok(Outcome::of(elapsed * 1e6 / rows as f64, bench.machine.load_ns / 1e3).segments(segments))
}

pub(crate) fn get(bench: &mut Bench) -> Result<Outcome> {
    let dir = bench.place("prepared-get")?;
    let database = open(&dir)?;
    let rows = bench.rows / 5;
    fill(&database, rows)?;
    database.wait_idle()?;
    let get = database.prepare("SELECT amount, note FROM t WHERE id = ?")?;
    let start = Instant::now();
    let (mut sum, mut wanted) = (0u64, 0u64);
    for i in 0..GETS {
        let id = mix(i) % rows;
        match get.first(&[Value::Int(id.cast_signed())])?.as_deref() {
            Some([Value::Int(amount), Value::Text(_)]) => sum += amount.cast_unsigned(),
            other => return Err(format!("key {id}: found {other:?}").into()),
        }
        wanted += id * 2;
    }
    let elapsed = start.elapsed().as_secs_f64();
    if sum != wanted {
        return Err(format!("the amounts add up to {sum}, not {wanted}").into());
    }
    let segments = segments(&database, "t");
    database.close()?;
    let limit = bench.machine.load_ns * 3.0 / 1e3;
    Ok(Outcome::of(elapsed * 1e6 / GETS as f64, limit).segments(segments))
}
