//! Tables whose rows are more than they are given: a load with a reference, and one without, of the
//! same rows in the same run; inserts with a generated field, and without.

use std::path::Path;
use std::time::{Duration, Instant};

use esker::{Batch, DataType, Database, Durability, NewReference, Options, Schema, Table, Value};
use esker_sql::Sql;

use crate::Result;
use crate::bench::Bench;
use crate::data::mix;
use crate::machine::touch;
use crate::outcome::Outcome;

/// Rows that are referred to.
const USERS: u64 = 100_000;
/// Rows of one batch.
const BATCH_ROWS: u64 = 8_192;

fn orders(with_reference: bool) -> Result<Schema> {
    let schema = Schema::builder().field("id", DataType::I64).field("user", DataType::I64);
    let schema = schema.field("cents", DataType::I64).field("note", DataType::Text);
    let schema = schema.primary_key(["id"]).index("by_user", ["user"]);
    Ok(match with_reference {
        true => schema.reference(NewReference::new(["user"], "users")).build()?,
        false => schema.build()?,
    })
}

/// The rows, made before the time runs.
fn batches(rows: u64) -> Result<Vec<Batch>> {
    let schema = orders(false)?;
    let mut batches = Vec::new();
    for first in (0..rows).step_by(usize::try_from(BATCH_ROWS)?) {
        let mut batch = Batch::empty(&schema);
        for id in first..rows.min(first + BATCH_ROWS) {
            let user = Value::Int((mix(id) % USERS).cast_signed());
            let note = Value::Text(format!("order {id}"));
            let (id, cents) = (Value::Int(id.cast_signed()), Value::Int((id * 7).cast_signed()));
            batch.push_row(&schema, &[id, user, cents, note])?;
        }
        batches.push(batch);
    }
    Ok(batches)
}

fn users(database: &Database) -> Result<()> {
    let schema = Schema::builder().field("id", DataType::I64).primary_key(["id"]).build()?;
    let mut load = database.create_table("users", schema)?.load()?;
    for id in 0..USERS {
        load.push_row(&[Value::Int(id.cast_signed())])?;
    }
    load.finish()?;
    Ok(())
}

/// Loads the rows; how long that took, in seconds, and their count.
fn load(dir: &Path, with_reference: bool, batches: Vec<Batch>) -> Result<(f64, u64)> {
    let database = Options::new().open(dir)?;
    users(&database)?;
    let table: Table = database.create_table("orders", orders(with_reference)?)?;
    database.wait_idle()?;
    touch(1 << 30);
    let start = Instant::now();
    let mut load = table.load()?;
    for batch in batches {
        load.push(batch)?;
    }
    load.finish()?;
    let elapsed = start.elapsed().as_secs_f64();
    let count = table.count()?;
    database.close()?;
    Ok((elapsed, count))
}

/// A load with a reference, as a multiple of the speed without.
pub(super) fn load_with_reference(bench: &mut Bench) -> Result<Outcome> {
    let mut seconds = [0.0; 2];
    for (with_reference, seconds) in [false, true].into_iter().zip(&mut seconds) {
        let name = if with_reference { "load-reference" } else { "load-plain" };
        let dir = bench.place(name)?;
        let (elapsed, count) = load(&dir, with_reference, batches(bench.rows)?)?;
        if count != bench.rows {
            return Err(format!("{name}: {count} rows, not {}", bench.rows).into());
        }
        *seconds = elapsed;
    }
    let [plain, bound] = seconds;
    let rows = bench.rows as f64;
    let note = format!("{:.2} and {:.2} M rows/s", rows / plain / 1e6, rows / bound / 1e6);
    Ok(Outcome::default().and(plain / bound, None).note(note))
}

/// Inserts by a prepared statement; how long that took, in seconds, and the sum of a field.
fn insert(dir: &Path, is_generated: bool, rows: u64) -> Result<(f64, Option<Vec<Value>>)> {
    let durability = Durability::Async { at_most: Duration::from_millis(100) };
    let database = Options::new().durability(durability).open(dir)?;
    let sum = if is_generated { "i64 GENERATED ALWAYS AS (a + b) STORED" } else { "i64" };
    database.sql(&format!("CREATE TABLE t (id i64 PRIMARY KEY, a i64, b i64, c {sum})"), ())?;
    let (names, values) = if is_generated { ("", "") } else { (", c", ", ?") };
    let insert = format!("INSERT INTO t (id, a, b{names}) VALUES (?, ?, ?{values})");
    let insert = database.prepare(&insert)?;
    touch(1 << 30);
    let start = Instant::now();
    for i in 0..i64::try_from(rows)? {
        let row =
            [Value::Int(i), Value::Int(i * 3), Value::Int(i % 100), Value::Int(i * 3 + i % 100)];
        insert.execute(row.get(..3 + usize::from(!is_generated)).unwrap_or(&row))?;
    }
    let elapsed = start.elapsed().as_secs_f64();
    let sum = database.prepare("SELECT sum(c), count(*) FROM t")?.first(&[])?;
    database.close()?;
    Ok((elapsed, sum))
}

/// Inserts with a generated field, as a multiple of the speed of those that give it.
pub(super) fn insert_generated(bench: &mut Bench) -> Result<Outcome> {
    let rows = bench.rows / 5;
    let (plain, given) = insert(&bench.place("insert-given")?, false, rows)?;
    let (elapsed, generated) = insert(&bench.place("insert-generated")?, true, rows)?;
    if given != generated {
        return Err(format!("the sums are {given:?} and {generated:?}").into());
    }
    let microseconds = |seconds: f64| seconds * 1e6 / rows as f64;
    let note = format!("{:.2} and {:.2} µs a row", microseconds(plain), microseconds(elapsed));
    Ok(Outcome::default().and(plain / elapsed, None).note(note))
}
